/* The formulas of pixels.h and sodet/colour.h, in doubles. */
#include "kernels/reference.h"

static double within(double v, int clamp)
{
    return !clamp ? v : v < 0 ? 0 : v > 255 ? 255 : v;
}

/* Red, green and blue of a hue in sextants, of value v and range d. */
static void from_hue(double hue, double v, double d, double *rgb)
{
    for (int c = 0; c < 3; c++) {
        double away = fabs(fmod(hue - 2 * c + 12, 6)); /* of the channel's own hue, the shorter way round */
        away = away > 3 ? 6 - away : away;
        rgb[c] = v - d * fmin(fmax(away - 1, 0), 1);
    }
}

static void change(int32_t step, double a, double b, double *rgb)
{
    static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const int clamp = (step & SODET_PIXELS_CLAMP) != 0;
    const double was[3] = {rgb[0], rgb[1], rgb[2]};
    const double most = fmax(was[0], fmax(was[1], was[2])), d = most - fmin(was[0], fmin(was[1], was[2]));
    double f = a, hue = 0, base = most;
    switch (step & ~SODET_PIXELS_CLAMP) {
    case SODET_COLOUR_LINEAR:
        for (int c = 0; c < 3; c++)
            rgb[c] = within(was[c] * a + b, clamp);
        break;
    case SODET_COLOUR_SATURATE:
    case SODET_COLOUR_SATURATE_LUMA:
        if ((step & ~SODET_PIXELS_CLAMP) == SODET_COLOUR_SATURATE_LUMA)
            base = 0.299 * was[0] + 0.587 * was[1] + 0.114 * was[2];
        else if (clamp && f * d > most)
            f = most / d;
        for (int c = 0; c < 3; c++)
            rgb[c] = within(base + f * (was[c] - base), clamp);
        break;
    case SODET_COLOUR_TURN:
        if (d > 0)
            hue = was[0] >= most ? (was[1] - was[2]) / d : was[1] >= most ? 2 + (was[2] - was[0]) / d : 4 + (was[0] - was[1]) / d;
        from_hue(hue + a, most, d, rgb);
        break;
    default:
        for (int c = 0; c < 3; c++)
            rgb[c] = was[order[(int)a][c]];
        break;
    }
}

static void steps(const int32_t *p, const SODET_REAL *v, int32_t first, int32_t n, double *rgb)
{
    for (int32_t k = first; k < first + n; k++)
        change(p[SODET_PIXELS_STEP + k], v[SODET_PIXELS_STEP_A + 2 * k], v[SODET_PIXELS_STEP_A + 2 * k + 1], rgb);
}

/* Place (row, column) of the window. */
static void window(const uint8_t *picture, const int32_t *p, const SODET_REAL *v, int64_t row, int64_t column, double *rgb)
{
    const int64_t y = p[SODET_PIXELS_Y] + (p[SODET_PIXELS_FLIP] ? p[SODET_PIXELS_HEIGHT] - 1 - row : row);
    const int64_t x = p[SODET_PIXELS_X] + (p[SODET_PIXELS_MIRROR] ? p[SODET_PIXELS_WIDTH] - 1 - column : column);
    const int inside = y >= 0 && y < p[SODET_PIXELS_ROWS] && x >= 0 && x < p[SODET_PIXELS_ROW];
    for (int c = 0; c < 3; c++)
        rgb[c] = inside ? (double)picture[(y * p[SODET_PIXELS_ROW] + x) * 3 + c] : (double)v[SODET_PIXELS_FILL + c];
    if (inside)
        steps(p, v, 0, p[SODET_PIXELS_BEFORE], rgb);
}

static void neighbours(int64_t i, int64_t in, int64_t out, int64_t *low, int64_t *high, double *weight)
{
    const double at = fmax(((double)i + 0.5) * (double)in / (double)out - 0.5, 0), below = floor(at);
    *low = below < (double)(in - 1) ? (int64_t)below : in - 1;
    *high = below + 1 < (double)(in - 1) ? (int64_t)below + 1 : in - 1;
    *weight = at - below;
}

static void forward(const sodet_kernel_args *a)
{
    const sodet_pixels_attr *attr = a->attr;
    const sodet_shape *s = &a->out[0].shape;
    const int64_t plane = s->dim[2] * s->dim[3];
    const int32_t *place = a->in[1].data;
    for (int64_t n = 0; n < s->dim[0]; n++) {
        const int32_t *p = place + n * SODET_PIXELS_PLACES;
        const SODET_REAL *v = ref_in(a, 2) + n * SODET_PIXELS_VALUES;
        const uint8_t *picture =
            (const uint8_t *)a->in[0].data + (int64_t)(p[SODET_PIXELS_FIRST] - place[SODET_PIXELS_FIRST]) * SODET_PIXELS_UNIT;
        SODET_REAL *y = ref_out(a, 0) + n * s->dim[1] * plane;
        for (int64_t e = 0; e < s->dim[1] * plane; e++)
            y[e] = 0;
        for (int64_t i = 0; i < p[SODET_PIXELS_OUT_HEIGHT]; i++) {
            for (int64_t j = 0; j < p[SODET_PIXELS_OUT_WIDTH]; j++) {
                int64_t y0, y1, x0, x1;
                double down, right, at[4][3], rgb[3];
                neighbours(i, p[SODET_PIXELS_HEIGHT], p[SODET_PIXELS_OUT_HEIGHT], &y0, &y1, &down);
                neighbours(j, p[SODET_PIXELS_WIDTH], p[SODET_PIXELS_OUT_WIDTH], &x0, &x1, &right);
                window(picture, p, v, y0, x0, at[0]);
                window(picture, p, v, y0, x1, at[1]);
                window(picture, p, v, y1, x0, at[2]);
                window(picture, p, v, y1, x1, at[3]);
                for (int c = 0; c < 3; c++)
                    rgb[c] = (1 - down) * ((1 - right) * at[0][c] + right * at[1][c]) + down * ((1 - right) * at[2][c] + right * at[3][c]);
                steps(p, v, p[SODET_PIXELS_BEFORE], p[SODET_PIXELS_AFTER], rgb);
                for (int64_t c = 0; c < s->dim[1]; c++) {
                    const double as = attr->channels == SODET_PIXELS_GREY  ? 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
                                      : attr->channels == SODET_PIXELS_BGR ? rgb[2 - c]
                                                                           : rgb[c];
                    y[c * plane + i * s->dim[3] + j] = (SODET_REAL)((as - (double)attr->mean[c]) / (double)attr->std[c]);
                }
            }
        }
    }
}

const sodet_ref_kernel SODET_REF(pixels)[] = {forward};
