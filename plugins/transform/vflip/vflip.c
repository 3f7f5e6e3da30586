/* vflip: mirrors top and bottom. y1' = H - y2, y2' = H - y1 (ends are exclusive), so that twice is nothing. For pictures that have no up
 * and down: from the air, under a microscope, X-rays. */
#include "sodet/data.h"

typedef struct vflip_cfg {
    double probability;
} vflip_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(vflip_cfg, probability, "0.5", 0, 1, "of a picture to be mirrored"),
};

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    (void)err;
    if (sodet_stream_chance(r, ((const vflip_cfg *)self)->probability))
        sodet_sample_flip(s);
    return SODET_OK;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "vflip", "mirrors top and bottom", vflip_cfg, options, .ops = &ops);
