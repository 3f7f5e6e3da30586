/* report/layers.h: a graph by layers: what each costs, and what it took. A row is an operator at a path: a named layer with the parts of its
 * gradient, a shared tower's uses on several levels, or all operators of one sort that a scope uses without a name ("backbone activation").
 * Scopes that compute no layer of the network ("detect", "loss") are one row each. */
#ifndef SD_REPORT_LAYERS_H
#define SD_REPORT_LAYERS_H

#include "core/detect/model.h"
#include "core/graph/graph.h"

typedef struct sd_layer {
    const char *path;         /* "backbone/conv1"; "detect"; "" for what has no name */
    const char *op;           /* "conv2d 3x3": of its first node, with the kernel's size where it has one */
    sodet_shape out;          /* of its first node */
    bool same;                /* the other forward nodes have that shape, too */
    uint32_t uses;            /* forward nodes of that operator: 5 for a tower that five levels share */
    uint64_t parameters;      /* buffers not counted; each is counted in the first layer that uses it */
    sodet_cost cost;          /* of all its nodes, those that run only when the weights change apart */
    double forward, backward; /* seconds, if seconds were given */
    const char *how;          /* what was said about its costliest node, or NULL */
} sd_layer;
typedef struct sd_layers {
    sd_pool pool;
    uint32_t n;
    sd_layer *layer; /* in the order of their first nodes */
} sd_layers;

/* segments: to tell parameters from buffers. seconds: [nodes] or NULL. said: the backend's word on node i, or NULL. Strings are copied. */
typedef const char *sd_layers_said(const void *context, uint32_t node);
sodet_status sd_layers_make(const sodet_graph *g, const sd_segments *segments, const double *seconds, sd_layers_said *said,
                            const void *context, sd_layers *out, sodet_err *err);
void sd_layers_free(sd_layers *l);                                    /* accepts a zeroed one */
const sd_layer *sd_layers_find(const sd_layers *l, const char *path); /* NULL: not there */

/* What one picture of height x width costs in the network, decoding and suppression included. */
sodet_status sd_inference_cost(const sd_model *m, uint32_t height, uint32_t width, sodet_cost *out, sodet_err *err);

#endif
