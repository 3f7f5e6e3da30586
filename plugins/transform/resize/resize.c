/* resize: bilinear, to a fixed size or keeping the ratio.
 *
 *   stretch  to size, whatever the picture's ratio [SSD, d2l, MLPerf]
 *   fit      as large as fits into size, at the upper left; the rest of the canvas is the padding [zgcr: a square size]
 *   sides    the shorter side becomes one of `short_side`, but the longer one at most `long_side`; every picture has its own canvas, whose
 *            sides are rounded up to `multiple` [RetinaNet, Detectron2: 800, 1333, 32]
 *
 * With several short sides each training sample draws one (multi-scale); the canvas is made for the largest. */
#include <math.h>

#include "sodet/data.h"

enum { STRETCH, FIT, SIDES };
static const char *const modes[] = {"stretch", "fit", "sides", NULL};
enum { NEAREST, DOWN };
static const char *const roundings[] = {"nearest", "down", NULL};

typedef struct resize_cfg {
    uint32_t mode, rounding, long_side, multiple;
    sodet_size2d size;
    sodet_uint_list short_side;
} resize_cfg;

static const sodet_opt options[] = {
    SODET_OPT_ENUM(resize_cfg, mode, "stretch", modes,
                   "stretch: to size; fit: into size, ratio kept; sides: by the shorter and longer side, ratio kept"),
    SODET_OPT_SIZE(resize_cfg, size, "0x0", 0, 65536, "of stretch and fit; 0x0: that of [input]"),
    SODET_OPT_UINTS(resize_cfg, short_side, "800", 0, 1, 65536,
                    "of sides: pixels of the shorter side; from several, each sample draws one"),
    SODET_OPT_UINT(resize_cfg, long_side, "1333", 1, 65536, "of sides: the longer side is at most this"),
    SODET_OPT_UINT(resize_cfg, multiple, "32", 1, 4096, "of sides: canvas sides are multiples of this"),
    SODET_OPT_ENUM(resize_cfg, rounding, "nearest", roundings,
                   "of sizes that are no whole pixels: nearest [Detectron2] or down [torchvision, zgcr]"),
};

static uint32_t whole(const resize_cfg *c, double v)
{
    double r = c->rounding == DOWN ? floor(v + 1e-9) : floor(v + 0.5);
    return r < 1 ? 1 : (uint32_t)r;
}

static void by_sides(const resize_cfg *c, uint32_t side, uint32_t *width, uint32_t *height)
{
    double lo = *width < *height ? *width : *height, hi = *width < *height ? *height : *width;
    double scale = side / lo;
    if (hi * scale > c->long_side)
        scale = c->long_side / hi;
    *width = whole(c, *width * scale);
    *height = whole(c, *height * scale);
}

static sodet_status validate(const void *cfg, sodet_err *err)
{
    const resize_cfg *c = cfg;
    if ((c->size.width == 0) != (c->size.height == 0))
        return sodet_fail_option(err, "size", "one side is 0; give both, or 0x0 for the size of [input]");
    if (c->mode == SIDES && c->short_side.n == 0)
        return sodet_fail_option(err, "short_side", "empty; give at least one number of pixels");
    return SODET_OK;
}

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    const resize_cfg *c = self;
    uint32_t width = c->size.width, height = c->size.height;
    if (width == 0)
        sodet_sample_input_size(s, &width, &height);
    if (c->mode == STRETCH)
        return sodet_sample_resize(s, width, height, err);
    uint32_t w, h;
    sodet_sample_size(s, &w, &h);
    if (c->mode == FIT) {
        double scale = fmin((double)width / w, (double)height / h);
        uint32_t to_w = whole(c, w * scale), to_h = whole(c, h * scale);
        return sodet_sample_resize(s, to_w > width ? width : to_w, to_h > height ? height : to_h, err);
    }
    uint32_t which = c->short_side.n > 1 ? sodet_stream_below(r, c->short_side.n) : 0;
    by_sides(c, c->short_side.v[which], &w, &h);
    return sodet_sample_resize(s, w, h, err);
}

static void shape(const void *self, uint32_t *width, uint32_t *height)
{
    const resize_cfg *c = self;
    if (c->mode != SIDES) {
        *width = c->size.width;
        *height = c->size.height;
        return;
    }
    uint32_t side = 0;
    for (uint32_t i = 0; i < c->short_side.n; i++)
        side = c->short_side.v[i] > side ? c->short_side.v[i] : side;
    by_sides(c, side, width, height);
    *width = (*width + c->multiple - 1) / c->multiple * c->multiple;
    *height = (*height + c->multiple - 1) / c->multiple * c->multiple;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .apply = apply, .shape = shape};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "resize", "bilinear, to a fixed size or keeping the ratio", resize_cfg, options, .validate = validate,
             .ops = &ops);
