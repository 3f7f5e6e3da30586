/* photometric: brightness, contrast, saturation, hue, order of channels. Howard 2013, as Liu et al. 2016 use it.
 *
 * Brightness first; then, by a coin, contrast before or after saturation and hue; channels last. Each step has its own coin.
 *   Caffe        hue = 36 (18 of OpenCV's half degrees), clamp = yes                                             (default)
 *   ssd.pytorch  hue = 18, clamp = no, channels = 0.5
 *   GluonCV      saturation_in = luma, hue = 180 (its angle is 18 pi: any), clamp = no
 *   torchvision  brightness = 0, gain = 0.875, 1.125, centre = mean, saturation_in = luma, hue = 18, channels = 0.5
 *   NVIDIA       brightness = 0, gain = 0.875, 1.125, centre = middle, hue = 0.5, probability = 1 */
#include <math.h>

#include "sodet/data.h"

enum { ZERO, MEAN, MIDDLE };
static const char *const centres[] = {"zero", "mean", "middle", NULL};
enum { HSV, LUMA };
static const char *const spaces[] = {"hsv", "luma", NULL};

typedef struct photometric_cfg {
    double probability, brightness, hue, channels;
    sodet_double_list gain, contrast, saturation;
    uint32_t centre, saturation_in, clamp;
} photometric_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(photometric_cfg, probability, "0.5", 0, 1, "of each step"),
    SODET_OPT_DOUBLE(photometric_cfg, brightness, "32", 0, 255, "grey levels that are added or taken away at most"),
    SODET_OPT_DOUBLES(photometric_cfg, gain, "1, 1", 2, 0, 16, "least and greatest factor of brightness"),
    SODET_OPT_DOUBLES(photometric_cfg, contrast, "0.5, 1.5", 2, 0, 16, "least and greatest factor of the distance from the centre"),
    SODET_OPT_ENUM(photometric_cfg, centre, "zero", centres,
                   "of contrast: black [Caffe, ssd.pytorch, GluonCV], the picture's mean grey [torchvision], 128 [NVIDIA]"),
    SODET_OPT_DOUBLES(photometric_cfg, saturation, "0.5, 1.5", 2, 0, 16, "least and greatest factor of saturation"),
    SODET_OPT_ENUM(photometric_cfg, saturation_in, "hsv", spaces,
                   "saturation is that of HSV [Caffe, ssd.pytorch], or the distance from the pixel's grey [GluonCV, torchvision]"),
    SODET_OPT_DOUBLE(photometric_cfg, hue, "36", 0, 180, "degrees of 360 that hues are turned by at most"),
    SODET_OPT_DOUBLE(photometric_cfg, channels, "0", 0, 1,
                     "probability of a random order of red, green and blue [ssd.pytorch, torchvision: 0.5]"),
    SODET_OPT_BOOL(photometric_cfg, clamp, "yes", "values are kept within 0..255 after every step"),
};

static sodet_status rising(const sodet_double_list *l, const char *name, sodet_err *err)
{
    return l->v[0] <= l->v[1] ? SODET_OK : sodet_fail_option(err, name, "the least is above the greatest; write them in rising order");
}

static sodet_status validate(const void *cfg, sodet_err *err)
{
    const photometric_cfg *c = cfg;
    sodet_status status = rising(&c->gain, "gain", err);
    if (status == SODET_OK)
        status = rising(&c->contrast, "contrast", err);
    return status == SODET_OK ? rising(&c->saturation, "saturation", err) : status;
}

static inline float bounded(float v)
{
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

/* v * scale + shift */
static void linear(const photometric_cfg *c, sodet_image *image, float scale, float shift)
{
    size_t n = (size_t)image->width * image->height * 3;
    float *p = image->pixels, lo = c->clamp ? 0 : -HUGE_VALF, hi = c->clamp ? 255 : HUGE_VALF;
    for (size_t i = 0; i < n; i++) {
        float v = p[i] * scale + shift;
        v = v < lo ? lo : v;
        p[i] = v > hi ? hi : v;
    }
}

static inline float grey(const float *p)
{
    return 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];
}

static void contrast(const photometric_cfg *c, sodet_image *image, double factor)
{
    double centre = c->centre == MIDDLE ? 128 : 0;
    if (c->centre == MEAN) {
        size_t n = (size_t)image->width * image->height;
        for (size_t i = 0; i < n; i++)
            centre += (double)grey(image->pixels + 3 * i);
        centre /= (double)n;
    }
    linear(c, image, (float)factor, (float)(centre * (1 - factor)));
}

/* In HSV only the distances from the largest channel scale: c' = v - f (v - c); f stops where the smallest channel reaches 0. */
static void saturate(const photometric_cfg *c, sodet_image *image, float factor)
{
    size_t n = (size_t)image->width * image->height;
    float *p = image->pixels;
    for (size_t i = 0; i < n; i++, p += 3) {
        float base, f = factor;
        if (c->saturation_in == HSV) {
            float least = fminf(p[0], fminf(p[1], p[2]));
            base = fmaxf(p[0], fmaxf(p[1], p[2]));
            if (c->clamp && f * (base - least) > base)
                f = base / (base - least);
        } else {
            base = grey(p);
        }
        for (int k = 0; k < 3; k++) {
            float v = base + f * (p[k] - base);
            p[k] = c->clamp ? bounded(v) : v;
        }
    }
}

/* Turns the hue by a number of sextants (60 degrees), value and saturation stay. */
static void turn(sodet_image *image, float sextants)
{
    size_t n = (size_t)image->width * image->height;
    float *p = image->pixels;
    for (size_t i = 0; i < n; i++, p += 3) {
        float r = p[0], g = p[1], b = p[2], most = fmaxf(r, fmaxf(g, b)), d = most - fminf(r, fminf(g, b));
        if (!(d > 0))
            continue;
        float h = most == r ? (g - b) / d : most == g ? (b - r) / d + 2 : (r - g) / d + 4;
        h += sextants + 12;           /* far from 0, so that the remainder below is of a positive number */
        for (int k = 0; k < 3; k++) { /* the distance from the largest: channel k is largest around 0, 2, 4 */
            float at = h - (float)(2 * k);
            at -= 6 * (float)(int)(at / 6);
            float away = at > 3 ? 6 - at : at; /* 0: on the channel's own hue, 3: opposite */
            float share = away - 1;
            share = share < 0 ? 0 : share > 1 ? 1 : share;
            p[k] = most - d * share;
        }
    }
}

static void colours(const photometric_cfg *c, sodet_image *image, sodet_stream *r)
{
    if (sodet_stream_chance(r, c->probability))
        saturate(c, image, (float)sodet_stream_uniform(r, c->saturation.v[0], c->saturation.v[1]));
    if (sodet_stream_chance(r, c->probability) && c->hue > 0)
        turn(image, (float)(sodet_stream_uniform(r, -c->hue, c->hue) / 60));
}

static void contrasts(const photometric_cfg *c, sodet_image *image, sodet_stream *r)
{
    if (sodet_stream_chance(r, c->probability))
        contrast(c, image, sodet_stream_uniform(r, c->contrast.v[0], c->contrast.v[1]));
}

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    const photometric_cfg *c = self;
    sodet_image *image = sodet_sample_image(s);
    if (!image)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the picture");
    if (sodet_stream_chance(r, c->probability)) {
        double shift = sodet_stream_uniform(r, -c->brightness, c->brightness), gain = sodet_stream_uniform(r, c->gain.v[0], c->gain.v[1]);
        linear(c, image, (float)gain, (float)shift);
    }
    uint32_t early = sodet_stream_chance(r, 0.5);
    if (early)
        contrasts(c, image, r);
    colours(c, image, r);
    if (!early)
        contrasts(c, image, r);
    if (sodet_stream_chance(r, c->channels)) {
        static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        const uint8_t *order = orders[sodet_stream_below(r, 6)];
        float *p = image->pixels;
        for (size_t i = 0, n = (size_t)image->width * image->height; i < n; i++, p += 3) {
            float t[3] = {p[0], p[1], p[2]};
            for (int k = 0; k < 3; k++)
                p[k] = t[order[k]];
        }
    }
    return SODET_OK;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "photometric", "brightness, contrast, saturation, hue", photometric_cfg, options, .validate = validate,
             .ops = &ops);
