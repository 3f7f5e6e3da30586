/* Grids of anchors in the dialects of SSD and RetinaNet. */
#include "sodet/anchors.h"

#include <math.h>

#include "core/base/base.h"

/* Refuses what a head's table cannot mean, with the option's name. */
static sodet_status check_length(uint32_t n, uint32_t n_levels, uint32_t more, const char *option, const char *what, sodet_err *err)
{
    if (n == 0 || n == n_levels || (more && n == n_levels + 1))
        return SODET_OK;
    if (more)
        return SODET_FAIL(err, SODET_E_INVALID, "%s has %u values for %u levels: give %u, or %u with the %s, or leave it out", option, n,
                          n_levels, n_levels, n_levels + 1, what);
    return SODET_FAIL(err, SODET_E_INVALID, "%s has %u values for %u levels: give one %s per level, or leave it out", option, n, n_levels,
                      what);
}

static sodet_status check_levels(const sodet_shape2d *levels, uint32_t n_levels, sodet_shape2d image, sodet_err *err)
{
    if (n_levels == 0 || image.height == 0 || image.width == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "anchors for %u levels of a %ux%u input: both must be at least 1", n_levels, image.width,
                          image.height);
    for (uint32_t l = 0; l < n_levels; l++) {
        if (levels[l].height == 0 || levels[l].width == 0)
            return SODET_FAIL(err, SODET_E_INVALID, "level %u has %ux%u cells: the input of %ux%u is too small for this network", l,
                              levels[l].width, levels[l].height, image.width, image.height);
    }
    return SODET_OK;
}

static void put(sodet_anchors *a, uint64_t at, double cx, double cy, double w, double h)
{
    float *box = a->box + 4 * at;
    box[0] = (float)cx;
    box[1] = (float)cy;
    box[2] = (float)w;
    box[3] = (float)h;
}

/* ---- SSD ---- */
static sodet_status check_ssd(const sodet_ssd_boxes *b, uint32_t n_levels, sodet_err *err)
{
    sodet_status s = check_length(b->sizes.n, n_levels, 1, "sizes", "last level's second size", err);
    if (s == SODET_OK)
        s = check_length(b->second.n, n_levels, 0, "second_sizes", "size", err);
    if (s == SODET_OK)
        s = check_length(b->steps.n, n_levels, 0, "steps", "step", err);
    if (s == SODET_OK && b->counts.n != 1)
        s = check_length(b->counts.n, n_levels, 0, "per_cell", "count", err);
    return s;
}

static uint32_t ssd_count(const sodet_ssd_boxes *b, uint32_t n_levels, uint32_t level)
{
    if (b->counts.n == 1)
        return b->counts.v[0];
    if (b->counts.n)
        return b->counts.v[level];
    uint32_t full = 2 + 2 * b->ratios.n, few = full < 4 ? full : 4;
    return level == 0 || level + 2 >= n_levels ? few : full;
}

uint32_t sodet_ssd_boxes_per_cell(const sodet_ssd_boxes *b, uint32_t n_levels, uint32_t level, sodet_err *err)
{
    if (check_ssd(b, n_levels, err) != SODET_OK)
        return 0;
    uint32_t count = ssd_count(b, n_levels, level);
    if (count == 0 || (count - 1) / 2 > b->ratios.n) {
        SODET_FAIL(err, SODET_E_INVALID,
                   "per_cell is %u on level %u, which takes %u ratios, but ratios has %u: give more ratios or fewer boxes", count, level,
                   count ? (count - 1) / 2 : 0, b->ratios.n);
        return 0;
    }
    return count;
}

/* s_k of level k, 0..n_levels, in pixels. */
static double ssd_size(const sodet_ssd_boxes *b, uint32_t n_levels, uint32_t k, double shorter)
{
    double s;
    if (b->sizes.n > k) {
        s = b->sizes.v[k];
    } else if (b->sizes.n) { /* the last level's next: as far again as the one before */
        double last = b->sizes.v[n_levels - 1];
        s = n_levels > 1 ? last * 2 - b->sizes.v[n_levels - 2] : last * 1.5;
    } else {
        double step = n_levels > 2 ? floor(70.0 / (double)(n_levels - 2)) / 100 : 0.35;
        return (k == 0 ? 0.1 : 0.2 + step * (double)(k - 1)) * shorter;
    }
    if (b->unit == SODET_SIZE_FRACTION)
        s *= shorter;
    return b->truncate ? trunc(s) : s;
}

static double ssd_second(const sodet_ssd_boxes *b, uint32_t n_levels, uint32_t k, double shorter)
{
    if (!b->second.n)
        return sqrt(ssd_size(b, n_levels, k, shorter) * ssd_size(b, n_levels, k + 1, shorter));
    double s = b->second.v[k] * (b->unit == SODET_SIZE_FRACTION ? shorter : 1);
    return b->truncate ? trunc(s) : s;
}

/* Shape i of a cell of level k. */
static void ssd_shape(const sodet_ssd_boxes *b, uint32_t n_levels, uint32_t k, uint32_t i, double shorter, double *w, double *h)
{
    uint32_t squares = ssd_count(b, n_levels, k) % 2 ? 1 : 2;
    double s = ssd_size(b, n_levels, k, shorter);
    if (i < squares) {
        *w = *h = i == 0 ? s : ssd_second(b, n_levels, k, shorter);
        return;
    }
    double r = sqrt(b->ratios.v[(i - squares) / 2]);
    *w = (i - squares) % 2 ? s / r : s * r;
    *h = (i - squares) % 2 ? s * r : s / r;
}

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static void put_clipped(const sodet_ssd_boxes *b, sodet_shape2d image, sodet_anchors *a, uint64_t at, double cx, double cy, double w,
                        double h)
{
    const double wide = image.width, high = image.height;
    if (b->clip == SODET_CLIP_CORNERS) {
        double x1 = clamp(cx - w / 2, 0, wide), x2 = clamp(cx + w / 2, 0, wide);
        double y1 = clamp(cy - h / 2, 0, high), y2 = clamp(cy + h / 2, 0, high);
        cx = (x1 + x2) / 2, cy = (y1 + y2) / 2, w = x2 - x1, h = y2 - y1;
    } else if (b->clip != SODET_CLIP_NONE) {
        w = clamp(w, 0, wide), h = clamp(h, 0, high);
        if (b->clip == SODET_CLIP_CENTRE)
            cx = clamp(cx, 0, wide), cy = clamp(cy, 0, high);
    }
    put(a, at, cx, cy, w, h);
}

sodet_status sodet_ssd_boxes_make(const sodet_ssd_boxes *b, const sodet_shape2d *levels, uint32_t n_levels, sodet_shape2d image,
                                  sodet_anchors *out, sodet_err *err)
{
    sodet_status s = check_levels(levels, n_levels, image, err);
    uint64_t n = 0;
    for (uint32_t k = 0; k < n_levels && s == SODET_OK; k++) {
        uint32_t count = sodet_ssd_boxes_per_cell(b, n_levels, k, err);
        if (!count)
            s = SODET_E_INVALID;
        n += (uint64_t)count * levels[k].height * levels[k].width;
    }
    if (s == SODET_OK)
        s = sodet_anchors_resize(out, n, err);
    if (s != SODET_OK)
        return s;

    const double shorter = image.height < image.width ? image.height : image.width;
    uint64_t base = 0;
    for (uint32_t k = 0; k < n_levels; k++) {
        const sodet_shape2d level = levels[k];
        const uint32_t count = ssd_count(b, n_levels, k);
        double step_x = b->steps.n ? b->steps.v[k] : level.stride ? level.stride : (double)image.width / level.width;
        double step_y = b->steps.n ? b->steps.v[k] : level.stride ? level.stride : (double)image.height / level.height;
        const uint64_t cells = (uint64_t)level.height * level.width;
        for (uint32_t i = 0; i < count; i++) {
            double w, h;
            ssd_shape(b, n_levels, k, i, shorter, &w, &h);
            for (uint64_t cell = 0; cell < cells; cell++) {
                double cx = ((double)(cell % level.width) + b->offset) * step_x, cy = ((double)(cell / level.width) + b->offset) * step_y;
                uint64_t at = b->order == SODET_BOX_ORDER_SHAPE ? i * cells + cell : cell * count + i;
                put_clipped(b, image, out, base + at, cx, cy, w, h);
            }
        }
        base += cells * count;
    }
    return SODET_OK;
}

/* ---- RetinaNet ---- */
uint32_t sodet_retina_boxes_per_cell(const sodet_retina_boxes *b)
{
    return b->octaves * b->ratios.n;
}

/* Width and height of anchor i of a cell; for rounded corners also where its centre lies from the cell's point. */
static void retina_shape(const sodet_retina_boxes *b, uint32_t level, double stride, uint32_t i, double *w, double *h, double *dx,
                         double *dy)
{
    uint32_t r = b->order == SODET_ANCHOR_SIZE_FASTEST ? i / b->octaves : i % b->ratios.n;
    uint32_t o = b->order == SODET_ANCHOR_SIZE_FASTEST ? i % b->octaves : i / b->ratios.n;
    double ratio = b->ratio_means == SODET_RATIO_WIDTH_BY_HEIGHT ? 1 / b->ratios.v[r] : b->ratios.v[r];
    double size = (b->sizes.n ? b->sizes.v[level] : b->base * stride) * exp2((double)o / b->octaves);
    *dx = *dy = 0;
    if (b->round == SODET_ROUND_CELL) {
        double side = rint(sqrt(stride * stride / ratio));
        *w = side * (size / stride);
        *h = rint(side * ratio) * (size / stride);
        return;
    }
    if (b->round == SODET_ROUND_CORNERS)
        size = trunc(size + 1e-9); /* 32 * 2^(3/3) is 64 however exp2 rounds */
    *w = size / sqrt(ratio);
    *h = size * sqrt(ratio);
    if (b->round == SODET_ROUND_CORNERS) {
        double x1 = rint(-*w / 2), x2 = rint(*w / 2), y1 = rint(-*h / 2), y2 = rint(*h / 2);
        *w = x2 - x1, *h = y2 - y1, *dx = (x1 + x2) / 2, *dy = (y1 + y2) / 2;
    }
}

static double retina_step(const sodet_retina_boxes *b, uint32_t stride, uint32_t size, uint32_t cells)
{
    if (b->divide || stride == 0)
        return size / cells ? (double)(size / cells) : 1.0;
    return stride;
}

static double retina_centre(const sodet_retina_boxes *b, double i, double step)
{
    if (b->centre == SODET_CENTRE_HALF)
        return (i + 0.5) * step;
    return b->centre == SODET_CENTRE_CORNER ? i * step : i * step + (step - 1) / 2;
}

sodet_status sodet_retina_boxes_make(const sodet_retina_boxes *b, const sodet_shape2d *levels, uint32_t n_levels, sodet_shape2d image,
                                     sodet_anchors *out, sodet_err *err)
{
    const uint32_t count = sodet_retina_boxes_per_cell(b);
    sodet_status s = check_levels(levels, n_levels, image, err);
    if (s == SODET_OK)
        s = check_length(b->sizes.n, n_levels, 0, "sizes", "size", err);
    if (s == SODET_OK && count == 0)
        s = SODET_FAIL(err, SODET_E_INVALID, "octaves is %u and ratios has %u values: both must be at least 1", b->octaves, b->ratios.n);
    uint64_t n = 0;
    for (uint32_t l = 0; l < n_levels; l++)
        n += (uint64_t)levels[l].height * levels[l].width * count;
    if (s == SODET_OK)
        s = sodet_anchors_resize(out, n, err);
    if (s != SODET_OK)
        return s;

    uint64_t base = 0;
    for (uint32_t l = 0; l < n_levels; l++) {
        const sodet_shape2d level = levels[l];
        double step_x = retina_step(b, level.stride, image.width, level.width);
        double step_y = retina_step(b, level.stride, image.height, level.height);
        for (uint32_t i = 0; i < count; i++) {
            double w, h, dx, dy;
            retina_shape(b, l, level.stride ? level.stride : step_x, i, &w, &h, &dx, &dy);
            for (uint64_t cell = 0; cell < (uint64_t)level.height * level.width; cell++)
                put(out, base + cell * count + i, retina_centre(b, (double)(cell % level.width), step_x) + dx,
                    retina_centre(b, (double)(cell / level.width), step_y) + dy, w, h);
        }
        base += (uint64_t)level.height * level.width * count;
    }
    return SODET_OK;
}

/* ---- names of the enums, in their order ---- */
const char *const sodet_clip_names[] = {"none", "corners", "centre", "size", NULL};
const char *const sodet_size_unit_names[] = {"pixels", "fraction", NULL};
const char *const sodet_box_order_names[] = {"cell", "shape", NULL};
const char *const sodet_ratio_names[] = {"height/width", "width/height", NULL};
const char *const sodet_anchor_order_names[] = {"size", "ratio", NULL};
const char *const sodet_round_names[] = {"none", "corners", "cell", NULL};
const char *const sodet_centre_names[] = {"half", "corner", "pixel", NULL};
const char *const sodet_claim_names[] = {"none", "greedy", "best", "low", NULL};
const char *const sodet_truth_names[] = {"use", "drop", "ignore", NULL};
const char *const sodet_border_names[] = {"keep", "inside", "centre", NULL};
