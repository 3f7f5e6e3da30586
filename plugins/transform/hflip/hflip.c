/* hflip: mirrors left and right. x1' = W - x2, x2' = W - x1 (ends are exclusive), so that twice is nothing. */
#include "sodet/data.h"

typedef struct hflip_cfg {
    double probability;
} hflip_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(hflip_cfg, probability, "0.5", 0, 1, "of a picture to be mirrored"),
};

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    (void)err;
    if (sodet_stream_chance(r, ((const hflip_cfg *)self)->probability))
        sodet_sample_mirror(s);
    return SODET_OK;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "hflip", "mirrors left and right", hflip_cfg, options, .ops = &ops);
