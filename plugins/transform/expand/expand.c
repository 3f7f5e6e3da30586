/* expand ("zoom out"): the picture somewhere on a larger canvas, so that objects become small. Liu et al. 2016, section 3.6; Caffe's
 * expand_param, ssd.pytorch's Expand, torchvision's RandomZoomOut. */
#include "sodet/data.h"

typedef struct expand_cfg {
    double probability;
    sodet_double_list ratio, fill;
} expand_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(expand_cfg, probability, "0.5", 0, 1, "of a picture to be put on a canvas"),
    SODET_OPT_DOUBLES(expand_cfg, ratio, "1, 4", 2, 1, 64, "least and greatest side of the canvas, in sides of the picture"),
    SODET_OPT_DOUBLES(expand_cfg, fill, NULL, 0, 0, 255, "colour of the canvas: red, green, blue; default: the mean of [input]"),
};

static sodet_status validate(const void *cfg, sodet_err *err)
{
    const expand_cfg *c = cfg;
    if (c->ratio.v[0] > c->ratio.v[1])
        return sodet_fail_option(err, "ratio", "the least is above the greatest; write them in rising order");
    if (c->fill.n != 0 && c->fill.n != 3)
        return sodet_fail_option(err, "fill", "has %u numbers; red, green and blue are wanted", c->fill.n);
    return SODET_OK;
}

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    const expand_cfg *c = self;
    if (!sodet_stream_chance(r, c->probability))
        return SODET_OK;
    uint32_t width, height;
    sodet_sample_size(s, &width, &height);
    double ratio = sodet_stream_uniform(r, c->ratio.v[0], c->ratio.v[1]);
    uint32_t w = (uint32_t)(width * ratio), h = (uint32_t)(height * ratio); /* whole pixels, rounded down, as they all do */
    int32_t x = (int32_t)sodet_stream_uniform(r, 0, w - width + 1.0), y = (int32_t)sodet_stream_uniform(r, 0, h - height + 1.0);
    float fill[3] = {0};
    for (uint32_t i = 0; i < c->fill.n; i++)
        fill[i] = (float)c->fill.v[i];
    return sodet_sample_crop(s, -x, -y, w, h, c->fill.n ? fill : NULL, err);
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .flags = SODET_TRANSFORM_ANY_SHAPE, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "expand", "puts the picture on a larger canvas", expand_cfg, options, .validate = validate, .ops = &ops);
