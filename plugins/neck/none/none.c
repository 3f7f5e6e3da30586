/* No neck: what the backbone gives is what the head gets. */
#include "sodet/detection.h"

static const sodet_opt options[] = SODET_NO_OPTIONS;

static sodet_status build(const void *self, sodet_graph *g, const sodet_features *in, sodet_features *out, sodet_err *err)
{
    (void)self;
    for (uint32_t l = 0; l < sodet_feature_count(in); l++) {
        if (sodet_feature_stride(in, l))
            sodet_emit_feature(g, out, sodet_feature(in, l), sodet_feature_stride(in, l));
        else
            sodet_emit_global_feature(g, out, sodet_feature(in, l));
    }
    return sodet_graph_status(g, err);
}

static const sodet_neck_ops ops = {.struct_size = sizeof ops, .build = build};
SODET_PLUGIN(SODET_KIND_NECK, "none", "hands the backbone's feature maps on", char, options, .ops = &ops);
