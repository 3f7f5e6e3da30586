/* graph/internal.h: the graph's own structures; for core/graph alone. */
#ifndef SD_GRAPH_INTERNAL_H
#define SD_GRAPH_INTERNAL_H

#include "core/graph/graph.h"

#define SD_NOWHERE UINT32_MAX

typedef struct sd_value {
    sodet_value_info info;
    uint32_t producer, output; /* node and its output; SD_NOWHERE: none */
    uint32_t uses, last;       /* set by seal */
    bool parameter, buffer;    /* made by sodet_parameter, sodet_buffer */
    sodet_param param;
    float initial;
    uint32_t entry;       /* the entry of a shared scope that used the parameter last */
    sodet_value gradient; /* of a trainable parameter, after backward */
} sd_value;

typedef struct sd_output {
    const char *name;
    sodet_value value;
} sd_output;

struct sodet_graph {
    sd_graph_options options;
    sd_pool pool;
    sodet_err failure; /* sticky; code is SODET_OK while all is well */

    sd_value *values; /* [n_values]; id 0 is "absent" */
    uint64_t n_values, values_capacity;
    sodet_node **nodes; /* in order of execution */
    uint64_t n_nodes, nodes_capacity;
    uint32_t *named; /* open addressing: value ids of parameters and buffers by path */
    uint64_t named_capacity, n_named;

    char path[512]; /* of the scopes, without a trailing slash */
    uint32_t depth;
    uint16_t cut[64]; /* length of path before each scope */
    bool shared[64];
    uint32_t entries; /* shared scopes entered so far */
    uint32_t shared_depth, entry;
    const char *layer; /* overrides the path while gradients and passes add nodes; NULL otherwise */

    sd_loss_term *losses;
    uint64_t n_losses, losses_capacity;
    sd_output *outputs;
    uint64_t n_outputs, outputs_capacity;
    bool differentiated, sealed;
};

sd_value *sd_value_at(const sodet_graph *g, sodet_value v); /* NULL for absent and poison */
/* The node that makes v, or NULL. */
sodet_node *sd_producer(const sodet_graph *g, sodet_value v);
bool sd_is(const sodet_node *n, uint32_t op, uint32_t part);
/* Makes every use of `from` (nodes after `behind`, outputs, losses) a use of `to`. */
void sd_replace_uses(sodet_graph *g, sodet_value from, sodet_value to);
/* Nodes [first, n_nodes) move in front of node `at`; producers are kept right. */
void sd_move_nodes(sodet_graph *g, uint64_t first, uint64_t at);
/* Renumbers producers after nodes were moved or dropped. */
void sd_renumber(sodet_graph *g);
/* Uses of each value by nodes, base inputs, outputs and losses; sd_value.uses and .last. */
void sd_count_uses(sodet_graph *g);
/* Adds, behind the node that finishes the last gradient of each bucket, the reduction of that stretch of the gradient arena. */
sodet_status sd_add_buckets(sodet_graph *g, const sd_segments *s, sodet_err *err);
/* Elements that a segment of n takes in an arena: whole cache lines of float32. */
static inline uint64_t sd_segment_room(uint64_t n)
{
    return (n + 15) / 16 * 16;
}
/* Drops what nothing needs. */
sodet_status sd_drop_dead(sodet_graph *g, sodet_err *err);

#endif
