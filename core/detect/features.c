/* The lists that backbones, necks and heads hand on: feature maps and anchors. */
#include "core/detect/features.h"

#include <stdlib.h>
#include <string.h>

static void emit(sodet_graph *g, sodet_features *out, sodet_value map, uint32_t stride)
{
    if (sodet_rank(g, map) != 4 && sodet_graph_status(g, NULL) == SODET_OK) {
        sodet_graph_fail(g, SODET_E_INVALID, "feature %u has rank %u: a feature map is [N, C, H, W]", out->n, sodet_rank(g, map));
        return;
    }
    if (out->n == SODET_MAX_LEVELS) {
        sodet_graph_fail(g, SODET_E_INVALID, "more than %d feature maps", SODET_MAX_LEVELS);
        return;
    }
    out->map[out->n] = map;
    out->stride[out->n] = stride;
    out->n++;
}

void sodet_emit_feature(sodet_graph *g, sodet_features *out, sodet_value map, uint32_t stride)
{
    if (stride == 0)
        sodet_graph_fail(g, SODET_E_INVALID,
                         "feature %u has stride 0: say how many input pixels a cell is, or use sodet_emit_global_feature", out->n);
    emit(g, out, map, stride);
}

void sodet_emit_global_feature(sodet_graph *g, sodet_features *out, sodet_value map)
{
    emit(g, out, map, 0);
}

uint32_t sodet_feature_count(const sodet_features *f)
{
    return f->n;
}

sodet_value sodet_feature(const sodet_features *f, uint32_t level)
{
    return level < f->n ? f->map[level] : SODET_POISON;
}

uint32_t sodet_feature_stride(const sodet_features *f, uint32_t level)
{
    return level < f->n ? f->stride[level] : 0;
}

sodet_status sodet_anchors_resize(sodet_anchors *a, uint64_t n, sodet_err *err)
{
    sd_free(a->box);
    a->n = 0;
    a->box = NULL;
    if (n > INT32_MAX)
        return SODET_FAIL(err, SODET_E_INVALID, "%llu anchors: an index is 32 bits wide", (unsigned long long)n);
    a->box = sd_alloc(n ? n : 1, 4 * sizeof(float));
    if (!a->box)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %llu anchors", (unsigned long long)n);
    a->n = n;
    return SODET_OK;
}
