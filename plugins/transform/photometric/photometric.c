/* photometric: brightness, contrast, saturation, hue, order of channels. Howard 2013, as Liu et al. 2016 use it.
 *
 * Brightness first; then, by a coin, contrast before or after saturation and hue; channels last. Each step has its own coin.
 *   Caffe        hue = 36 (18 of OpenCV's half degrees), clamp = yes                                             (default)
 *   ssd.pytorch  hue = 18, clamp = no, channels = 0.5
 *   GluonCV      saturation_in = luma, hue = 180 (its angle is 18 pi: any), clamp = no
 *   torchvision  brightness = 0, gain = 0.875, 1.125, centre = mean, saturation_in = luma, hue = 18, channels = 0.5
 *   NVIDIA       brightness = 0, gain = 0.875, 1.125, centre = middle, saturation_in = luma, hue = 0.5, probability = 1 */
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

#define GREY(r, g, b) (0.299f * (r) + 0.587f * (g) + 0.114f * (b))

/* Of a picture, in the order in which they are taken. */
typedef struct recipe {
    uint32_t n, clamp;
    sodet_colour_step steps[SODET_COLOUR_STEPS];
} recipe;

/* ---- what is drawn ---- */
static void add(recipe *to, uint32_t what, double a, double b)
{
    to->steps[to->n++] = (sodet_colour_step){what, (float)a, (float)b};
}

/* The picture's mean grey, after what has been decided so far. */
static sodet_status mean_grey(sodet_sample *s, recipe *so_far, double *mean, sodet_err *err)
{
    sodet_status status = so_far->n ? sodet_sample_colour(s, so_far->steps, so_far->n, so_far->clamp, err) : SODET_OK;
    if (status != SODET_OK)
        return status;
    so_far->n = 0;
    const sodet_image *image = sodet_sample_image(s);
    if (!image)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the picture");
    size_t n = (size_t)image->width * image->height;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)GREY(image->pixels[3 * i], image->pixels[3 * i + 1], image->pixels[3 * i + 2]);
    *mean = sum / (double)n;
    return SODET_OK;
}

static sodet_status contrast(const photometric_cfg *c, sodet_sample *s, sodet_stream *r, recipe *to, sodet_err *err)
{
    if (!sodet_stream_chance(r, c->probability))
        return SODET_OK;
    double factor = sodet_stream_uniform(r, c->contrast.v[0], c->contrast.v[1]), centre = c->centre == MIDDLE ? 128 : 0;
    sodet_status status = c->centre == MEAN ? mean_grey(s, to, &centre, err) : SODET_OK;
    if (status == SODET_OK)
        add(to, SODET_COLOUR_LINEAR, factor, centre * (1 - factor));
    return status;
}

static void colours(const photometric_cfg *c, sodet_stream *r, recipe *to)
{
    if (sodet_stream_chance(r, c->probability))
        add(to, c->saturation_in == HSV ? SODET_COLOUR_SATURATE : SODET_COLOUR_SATURATE_LUMA,
            sodet_stream_uniform(r, c->saturation.v[0], c->saturation.v[1]), 0);
    if (sodet_stream_chance(r, c->probability) && c->hue > 0)
        add(to, SODET_COLOUR_TURN, sodet_stream_uniform(r, -c->hue, c->hue) / 60, 0);
}

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    const photometric_cfg *c = self;
    recipe to = {.clamp = c->clamp};
    sodet_status status = SODET_OK;
    if (sodet_stream_chance(r, c->probability)) {
        double shift = sodet_stream_uniform(r, -c->brightness, c->brightness), gain = sodet_stream_uniform(r, c->gain.v[0], c->gain.v[1]);
        add(&to, SODET_COLOUR_LINEAR, gain, shift);
    }
    uint32_t early = sodet_stream_chance(r, 0.5);
    if (early)
        status = contrast(c, s, r, &to, err);
    colours(c, r, &to);
    if (!early)
        status = contrast(c, s, r, &to, err);
    if (sodet_stream_chance(r, c->channels))
        add(&to, SODET_COLOUR_REORDER, sodet_stream_below(r, 6), 0);
    return status == SODET_OK && to.n ? sodet_sample_colour(s, to.steps, to.n, to.clamp, err) : status;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "photometric", "brightness, contrast, saturation, hue", photometric_cfg, options, .validate = validate,
             .ops = &ops);
