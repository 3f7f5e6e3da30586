/* One pixel of pixels.h, in float, for the CPU's kernel and CUDA's. */
#ifndef SD_KERNELS_PIXELS_MATH_H
#define SD_KERNELS_PIXELS_MATH_H

#include "kernels/pixels/pixels.h"
#include "kernels/resize/resize_math.h"

typedef struct pixels_rgb {
    float r, g, b;
} pixels_rgb;

SODET_HD float pixels_within(float v, float lo, float hi)
{
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

SODET_HD pixels_rgb pixels_stretch(pixels_rgb v, float base, float factor)
{
    const pixels_rgb to = {base + factor * (v.r - base), base + factor * (v.g - base), base + factor * (v.b - base)};
    return to;
}

/* A channel whose own hue is `from` sextants away, -6..6. */
SODET_HD float pixels_at_hue(float from, float most, float d)
{
    const float at = from < 0 ? from + 6 : from, away = at > 3 ? 6 - at : at;
    return most - d * pixels_within(away - 1, 0, 1);
}

SODET_HD float pixels_grey(pixels_rgb v)
{
    return 0.299f * v.r + 0.587f * v.g + 0.114f * v.b;
}

SODET_HD pixels_rgb pixels_change(int32_t step, float a, float b, pixels_rgb v)
{
    const int clamp = (step & SODET_PIXELS_CLAMP) != 0, what = step & ~SODET_PIXELS_CLAMP;
    const float most = v.r > v.g ? (v.r > v.b ? v.r : v.b) : (v.g > v.b ? v.g : v.b);
    const float least = v.r < v.g ? (v.r < v.b ? v.r : v.b) : (v.g < v.b ? v.g : v.b), d = most - least;
    if (what == SODET_COLOUR_TURN) {
        const float own = v.r == most ? 0.0f : v.g == most ? 2.0f : 4.0f;
        const float across = v.r == most ? v.g - v.b : v.g == most ? v.b - v.r : v.r - v.g;
        float h = across / (d > 0 ? d : 1.0f) + own + a + 12; /* far from 0, so that the remainder is of a positive number */
        h -= 6 * (float)(int)(h * (1 / 6.0f));
        h = h > 0 ? h : 0;
        const pixels_rgb to = {pixels_at_hue(h, most, d), pixels_at_hue(h - 2, most, d), pixels_at_hue(h - 4, most, d)};
        return to;
    }
    if (what == SODET_COLOUR_REORDER) {
        const int order = (int)a; /* rgb, rbg, grb, gbr, brg, bgr */
        const pixels_rgb to = {order < 2   ? v.r
                               : order < 4 ? v.g
                                           : v.b,
                               order == 0 || order == 5   ? v.g
                               : order == 1 || order == 3 ? v.b
                                                          : v.r,
                               order == 0 || order == 2   ? v.b
                               : order == 1 || order == 4 ? v.g
                                                          : v.r};
        return to;
    }
    if (what == SODET_COLOUR_LINEAR) {
        v.r = v.r * a + b;
        v.g = v.g * a + b;
        v.b = v.b * a + b;
    } else if (what == SODET_COLOUR_SATURATE) {
        v = pixels_stretch(v, most, clamp && a * d > most ? most / d : a);
    } else {
        v = pixels_stretch(v, pixels_grey(v), a);
    }
    if (clamp) {
        v.r = pixels_within(v.r, 0, 255);
        v.g = pixels_within(v.g, 0, 255);
        v.b = pixels_within(v.b, 0, 255);
    }
    return v;
}

SODET_HD pixels_rgb pixels_steps(const int32_t *place, const float *value, int32_t first, int32_t n, pixels_rgb v)
{
    for (int32_t k = first; k < first + n; k++)
        v = pixels_change(place[SODET_PIXELS_STEP + k], value[SODET_PIXELS_STEP_A + 2 * k], value[SODET_PIXELS_STEP_A + 2 * k + 1], v);
    return v;
}

SODET_HD pixels_rgb pixels_window(const uint8_t *picture, const int32_t *place, const float *value, int32_t row, int32_t column)
{
    const int32_t y = place[SODET_PIXELS_Y] + (place[SODET_PIXELS_FLIP] ? place[SODET_PIXELS_HEIGHT] - 1 - row : row);
    const int32_t x = place[SODET_PIXELS_X] + (place[SODET_PIXELS_MIRROR] ? place[SODET_PIXELS_WIDTH] - 1 - column : column);
    if (y < 0 || y >= place[SODET_PIXELS_ROWS] || x < 0 || x >= place[SODET_PIXELS_ROW]) {
        const pixels_rgb fill = {value[SODET_PIXELS_FILL], value[SODET_PIXELS_FILL + 1], value[SODET_PIXELS_FILL + 2]};
        return fill;
    }
    const uint8_t *from = picture + ((int64_t)y * place[SODET_PIXELS_ROW] + x) * 3;
    const pixels_rgb v = {(float)from[0], (float)from[1], (float)from[2]};
    return pixels_steps(place, value, 0, place[SODET_PIXELS_BEFORE], v);
}

SODET_HD pixels_rgb pixels_between(pixels_rgb a, pixels_rgb b, float weight)
{
    const pixels_rgb v = {a.r + weight * (b.r - a.r), a.g + weight * (b.g - a.g), a.b + weight * (b.b - a.b)};
    return v;
}

/* Of place (i, j) inside the picture, its colours behind all steps. */
SODET_HD pixels_rgb pixels_at(const uint8_t *picture, const int32_t *place, const float *value, int32_t i, int32_t j)
{
    const resize_pair rows = resize_bilinear(i, place[SODET_PIXELS_HEIGHT], place[SODET_PIXELS_OUT_HEIGHT]);
    const resize_pair columns = resize_bilinear(j, place[SODET_PIXELS_WIDTH], place[SODET_PIXELS_OUT_WIDTH]);
    const int32_t top = (int32_t)rows.low, bottom = (int32_t)rows.high, left = (int32_t)columns.low, right = (int32_t)columns.high;
    const float across = (float)columns.weight;
    const pixels_rgb above =
        pixels_between(pixels_window(picture, place, value, top, left), pixels_window(picture, place, value, top, right), across);
    const pixels_rgb below =
        pixels_between(pixels_window(picture, place, value, bottom, left), pixels_window(picture, place, value, bottom, right), across);
    return pixels_steps(place, value, place[SODET_PIXELS_BEFORE], place[SODET_PIXELS_AFTER],
                        pixels_between(above, below, (float)rows.weight));
}

SODET_HD const uint8_t *pixels_picture(const void *bytes, const int32_t *places, int64_t n)
{
    const int32_t behind = places[n * SODET_PIXELS_PLACES + SODET_PIXELS_FIRST] - places[SODET_PIXELS_FIRST];
    return (const uint8_t *)bytes + (int64_t)behind * SODET_PIXELS_UNIT;
}

/* Channel c of y. */
SODET_HD float pixels_normal(const sodet_pixels_attr *attr, pixels_rgb v, int c)
{
    const float as = attr->channels == SODET_PIXELS_GREY                ? pixels_grey(v)
                     : c == 1                                           ? v.g
                     : (c == 0) == (attr->channels == SODET_PIXELS_RGB) ? v.r
                                                                        : v.b;
    return (as - attr->mean[c]) * (1.0f / attr->std[c]);
}

#endif
