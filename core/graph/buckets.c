/* Buckets: stretches of the gradient arena that are summed over the replicas as soon as backward has finished them. */
#include "core/graph/internal.h"
#include "kernels/kernels.h"

sodet_status sd_add_buckets(sodet_graph *g, const sd_segments *s, sodet_err *err)
{
    uint64_t limit = g->options.bucket_bytes / 4, begin = 0;
    uint32_t n_buckets = 0;
    for (uint32_t i = 0; i < s->n_trainable; i++) {
        uint64_t end = s->segment[i].offset + sd_segment_room(s->segment[i].n);
        if (end - begin < limit && i + 1 < s->n_trainable)
            continue;
        /* The bucket's last gradient: the latest producer among its members. */
        uint32_t behind = 0;
        bool any = false;
        for (uint64_t v = 1; v < g->n_values; v++) {
            const sd_value *value = &g->values[v];
            const sd_value *gradient = value->parameter ? sd_value_at(g, value->gradient) : NULL;
            const sd_segment *own = gradient && gradient->producer != SD_NOWHERE ? sd_segments_find(s, value->info.name) : NULL;
            if (own && own->offset >= begin && own->offset < end) {
                behind = gradient->producer > behind ? gradient->producer : behind;
                any = true;
            }
        }
        if (any) {
            uint64_t first = g->n_nodes;
            g->layer = "bucket";
            sodet_value range = sd_graph_arena(g, SODET_STORE_GRAD, 0, end - begin);
            sd_graph_arena_at(g, range, begin);
            const sodet_all_reduce_attr attr = {.in_place = 1, .bucket = ++n_buckets};
            (void)sodet_apply(g, &sodet_op_all_reduce, &attr, &range, 1);
            g->layer = NULL;
            sd_move_nodes(g, first, behind + 1);
        }
        begin = end;
    }
    return sodet_graph_status(g, err);
}
