/* photometric: brightness, contrast, saturation, hue, order of channels. Howard 2013, as Liu et al. 2016 use it.
 *
 * Brightness first; then, by a coin, contrast before or after saturation and hue; channels last. Each step has its own coin.
 *   Caffe        hue = 36 (18 of OpenCV's half degrees), clamp = yes                                             (default)
 *   ssd.pytorch  hue = 18, clamp = no, channels = 0.5
 *   GluonCV      saturation_in = luma, hue = 180 (its angle is 18 pi: any), clamp = no
 *   torchvision  brightness = 0, gain = 0.875, 1.125, centre = mean, saturation_in = luma, hue = 18, channels = 0.5
 *   NVIDIA       brightness = 0, gain = 0.875, 1.125, centre = middle, saturation_in = luma, hue = 0.5, probability = 1 */
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

/* ---- what is done to pixels ---- */
#define GREY(r, g, b) (0.299f * (r) + 0.587f * (g) + 0.114f * (b))
enum { LINEAR, SATURATE_HSV, SATURATE_LUMA, TURN, REORDER };
enum { MOST_STEPS = 6, LANES = 8 };

/* Of a picture, in the order in which they are taken. */
typedef struct recipe {
    uint32_t n, clamp;
    struct step {
        uint32_t what;
        float a, b; /* LINEAR: v a + b. SATURATE: factor a. TURN: a sextants (60 degrees). REORDER: a is the order's number */
    } steps[MOST_STEPS];
} recipe;
_Static_assert(sizeof(recipe) <= SODET_RECOLOUR_BYTES, "a recipe is kept by the sample");

/* Eight pixels of a channel, anywhere in memory; where(c, a, b) is a where c holds and b elsewhere, without a branch. */
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define lanes_at(p)    (*(lanes *)(uintptr_t)(p))
#define where(c, a, b) ((lanes)(((c) & (mask)(a)) | (~(c) & (mask)(b))))
#define lesser(a, b)   where((a) < (b), a, b)
#define greater(a, b)  where((a) > (b), a, b)
#define INLINE         static inline __attribute__((always_inline))

INLINE void keep_within(lanes *v, float lo, float hi)
{
    const lanes least = lo - (lanes){0}, most = hi - (lanes){0}, x = greater(*v, least);
    *v = lesser(x, most);
}

INLINE void linear(lanes *v, float scale, float shift, float lo, float hi)
{
    *v = *v * scale + shift;
    keep_within(v, lo, hi);
}

INLINE void stretch(lanes *v, const lanes *base, const lanes *factor, float lo, float hi)
{
    *v = *base + *factor * (*v - *base);
    keep_within(v, lo, hi);
}

/* The largest channel, and how far the least is from it. */
INLINE void extremes(const lanes *r, const lanes *g, const lanes *b, lanes *most, lanes *range)
{
    const lanes high = greater(*g, *b), low = lesser(*g, *b), least = lesser(*r, low);
    *most = greater(*r, high);
    *range = *most - least;
}

/* In HSV only the distances from the largest channel scale: c' = v - f (v - c); f stops where the smallest channel reaches 0. */
INLINE void saturate_hsv(lanes *r, lanes *g, lanes *b, float factor, int clamp, float lo, float hi)
{
    const lanes one = 1 - (lanes){0};
    lanes base, d, f = factor * one;
    extremes(r, g, b, &base, &d);
    if (clamp) {
        const lanes room = base / where(d > 0, d, one);
        f = where(f * d > base, room, f);
    }
    stretch(r, &base, &f, lo, hi);
    stretch(g, &base, &f, lo, hi);
    stretch(b, &base, &f, lo, hi);
}

INLINE void saturate_luma(lanes *r, lanes *g, lanes *b, float factor, float lo, float hi)
{
    const lanes base = GREY(*r, *g, *b), f = factor - (lanes){0};
    stretch(r, &base, &f, lo, hi);
    stretch(g, &base, &f, lo, hi);
    stretch(b, &base, &f, lo, hi);
}

/* The channel whose own hue is `from` sextants away, -6..6, where `most` is the largest channel and d the range. */
INLINE void place(lanes *v, const lanes *from, const lanes *most, const lanes *d)
{
    const lanes at = where(*from < 0, *from + 6, *from), away = where(at > 3, 6 - at, at); /* 0: on its own hue, 3: opposite */
    lanes share = away - 1;
    keep_within(&share, 0, 1);
    *v = *most - *d * share;
}

/* Turns the hue, value and saturation stay. */
INLINE void turn(lanes *r, lanes *g, lanes *b, float sextants)
{
    const lanes zero = {0}, one = 1 - zero, two = 2 - zero, four = 4 - zero;
    lanes most, d;
    extremes(r, g, b, &most, &d);
    const mask red = *r == most, green = *g == most; /* the hue lies around 0, or 2, or 4 */
    const lanes across = where(red, *g - *b, where(green, *b - *r, *r - *g)), own = where(red, zero, where(green, two, four));
    lanes h = across / where(d > 0, d, one) + own + sextants + 12; /* far from 0, so that the remainder is of a positive number */
    h -= 6 * __builtin_convertvector(__builtin_convertvector(h * (1 / 6.0f), mask), lanes);
    h = greater(h, zero);
    const lanes from_green = h - 2, from_blue = h - 4;
    place(r, &h, &most, &d);
    place(g, &from_green, &most, &d);
    place(b, &from_blue, &most, &d);
}

INLINE void reorder(lanes *r, lanes *g, lanes *b, uint32_t number)
{
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const lanes was[3] = {*r, *g, *b};
    *r = was[orders[number][0]];
    *g = was[orders[number][1]];
    *b = was[orders[number][2]];
}

SODET_CLONES static void follow(const void *how, float *red, float *green, float *blue, uint32_t n)
{
    const recipe *c = how;
    const float lo = c->clamp ? 0 : -HUGE_VALF, hi = c->clamp ? 255 : HUGE_VALF;
    for (uint32_t k = 0; k < c->n; k++) {
        const struct step *s = &c->steps[k];
        for (uint32_t i = 0; i < n; i += LANES) {
            lanes *r = &lanes_at(red + i), *g = &lanes_at(green + i), *b = &lanes_at(blue + i);
            switch (s->what) {
            case LINEAR:
                linear(r, s->a, s->b, lo, hi);
                linear(g, s->a, s->b, lo, hi);
                linear(b, s->a, s->b, lo, hi);
                break;
            case SATURATE_HSV:
                saturate_hsv(r, g, b, s->a, c->clamp != 0, lo, hi);
                break;
            case SATURATE_LUMA:
                saturate_luma(r, g, b, s->a, lo, hi);
                break;
            case TURN:
                turn(r, g, b, s->a);
                break;
            default:
                reorder(r, g, b, (uint32_t)s->a);
                break;
            }
        }
    }
}

/* ---- what is drawn ---- */
static void add(recipe *to, uint32_t what, double a, double b)
{
    to->steps[to->n++] = (struct step){what, (float)a, (float)b};
}

/* The picture's mean grey, after what has been decided so far. */
static sodet_status mean_grey(sodet_sample *s, recipe *so_far, double *mean, sodet_err *err)
{
    sodet_status status = so_far->n ? sodet_sample_recolour(s, follow, so_far, sizeof *so_far, err) : SODET_OK;
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
        add(to, LINEAR, factor, centre * (1 - factor));
    return status;
}

static void colours(const photometric_cfg *c, sodet_stream *r, recipe *to)
{
    if (sodet_stream_chance(r, c->probability))
        add(to, c->saturation_in == HSV ? SATURATE_HSV : SATURATE_LUMA, sodet_stream_uniform(r, c->saturation.v[0], c->saturation.v[1]), 0);
    if (sodet_stream_chance(r, c->probability) && c->hue > 0)
        add(to, TURN, sodet_stream_uniform(r, -c->hue, c->hue) / 60, 0);
}

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    const photometric_cfg *c = self;
    recipe to = {.clamp = c->clamp};
    sodet_status status = SODET_OK;
    if (sodet_stream_chance(r, c->probability)) {
        double shift = sodet_stream_uniform(r, -c->brightness, c->brightness), gain = sodet_stream_uniform(r, c->gain.v[0], c->gain.v[1]);
        add(&to, LINEAR, gain, shift);
    }
    uint32_t early = sodet_stream_chance(r, 0.5);
    if (early)
        status = contrast(c, s, r, &to, err);
    colours(c, r, &to);
    if (!early)
        status = contrast(c, s, r, &to, err);
    if (sodet_stream_chance(r, c->channels))
        add(&to, REORDER, sodet_stream_below(r, 6), 0);
    return status == SODET_OK && to.n ? sodet_sample_recolour(s, follow, &to, sizeof to, err) : status;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "photometric", "brightness, contrast, saturation, hue", photometric_cfg, options, .validate = validate,
             .ops = &ops);
