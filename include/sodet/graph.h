/* sodet/graph.h: how a plugin describes computation.
 *
 * A builder call adds a node and returns its value. Nothing is computed, and no device memory is touched. Errors are sticky: the first
 * one is kept in the graph with the layer path, later calls do nothing and return SODET_POISON, whose sizes all read 1. The core checks
 * the status and the depth of scopes after every build; a plugin may ask earlier. So a network reads like the paper it comes from.
 *
 * Logical layout is NCHW. Shapes are checked when the node is added. Building is pure: it is done again for each input shape and mode,
 * and the parameters bind by path. The operators' own builders (sodet_conv2d, sodet_add, ...) stand in sodet/ops.h. */
#ifndef SODET_GRAPH_H
#define SODET_GRAPH_H

#include "sodet/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SODET_NONE   ((sodet_value){0u})         /* an absent input */
#define SODET_POISON ((sodet_value){UINT32_MAX}) /* what a failed call returns */

SODET_EXPORT sodet_status sodet_graph_status(const sodet_graph *g, sodet_err *err);
/* Raises the graph's sticky error (kept if it is the first): "<layer path>: <message>". Returns SODET_POISON. */
SODET_EXPORT sodet_value sodet_graph_fail(sodet_graph *g, sodet_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

SODET_EXPORT int64_t sodet_dim(const sodet_graph *g, sodet_value v, uint32_t axis); /* 1 for poison and for axes it does not have */
SODET_EXPORT uint32_t sodet_rank(const sodet_graph *g, sodet_value v);
SODET_EXPORT sodet_shape sodet_shape_of(const sodet_graph *g, sodet_value v);

/* True while a program that trains is built: dropout drops, batch norm uses the batch. */
SODET_EXPORT uint32_t sodet_is_training(const sodet_graph *g);

/* A parameter is called by the scopes around it and its layer's name: "backbone/block1/conv1/weight". Two of one name are an error,
 * except inside a scope entered with sodet_enter_shared: entered again, it gives the same parameters (towers used on several levels). */
SODET_EXPORT void sodet_enter(sodet_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
SODET_EXPORT void sodet_enter_shared(sodet_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
SODET_EXPORT void sodet_leave(sodet_graph *g);

enum {
    SODET_INIT_DEFAULT = 0, /* weights: the recipe's [train] init; biases: zeros */
    SODET_INIT_ZEROS,
    SODET_INIT_CONSTANT,  /* value */
    SODET_INIT_NORMAL,    /* deviation `value` */
    SODET_INIT_XAVIER,    /* uniform, a = sqrt(6 / (fan_in + fan_out)) (Glorot 2010) */
    SODET_INIT_HE,        /* normal, deviation sqrt(2 / fan_out) (He 2015; torchvision's kaiming fan_out) */
    SODET_INIT_HE_FAN_IN, /* normal, deviation sqrt(2 / fan_in) */
    SODET_INIT_TORCH,     /* uniform, a = 1 / sqrt(fan_in): PyTorch's Conv2d default, weights and biases */
    SODET_INIT_PRIOR      /* bias -log((1 - value) / value) (RetinaNet, section 4.1) */
};
enum { SODET_GROUP_WEIGHT = 0, SODET_GROUP_BIAS, SODET_GROUP_NORM }; /* what the decay rules of the recipe speak of */
#define SODET_FROZEN (-1.0f)
/* Zero means the default. */
typedef struct sodet_param {
    uint32_t init; /* SODET_INIT_* */
    float value;
    float lr, decay; /* factors; 0 means 1; SODET_FROZEN in lr freezes, SODET_FROZEN in decay means factor 0 */
    int64_t fan_in;  /* of a bias under SODET_INIT_TORCH; else from the shape: all dims but the first */
    uint32_t group;  /* SODET_GROUP_* */
} sodet_param;

/* What layers are made of. `name` is put behind the current path. */
SODET_EXPORT sodet_value sodet_parameter(sodet_graph *g, const char *name, const sodet_shape *shape, const sodet_param *param);
SODET_EXPORT sodet_value sodet_buffer(sodet_graph *g, const char *name, const sodet_shape *shape,
                                      float initial); /* state without gradient: running statistics */
SODET_EXPORT sodet_value sodet_constant(sodet_graph *g, const sodet_shape *shape, const void *data); /* copied: float or int32_t */
SODET_EXPORT sodet_value sodet_input(sodet_graph *g, const char *name, const sodet_shape *shape);    /* fed by the host before each run */
SODET_EXPORT sodet_value sodet_scalar(sodet_graph *g, double value);

/* The general call behind every builder: checks, infers, copies the attributes (op->attr_size bytes) and adds the node.
 * out receives n_out values (poison after an error). */
SODET_EXPORT void sodet_add_node(sodet_graph *g, const sodet_op *op, uint32_t part, const void *attr, const sodet_value *in, uint32_t n_in,
                                 sodet_value *out, uint32_t n_out);
/* Part 0, one output. */
SODET_EXPORT sodet_value sodet_apply(sodet_graph *g, const sodet_op *op, const void *attr, const sodet_value *in, uint32_t n_in);

/* A value that the host may read after the run, under this name ("loss/cls", "detections/boxes"). */
SODET_EXPORT void sodet_output(sodet_graph *g, const char *name, sodet_value v);

static inline sodet_shape sodet_shape_make(uint32_t dtype, uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    sodet_shape s = {dtype, rank, {a, b, c, d, 0}};
    for (uint32_t i = rank; i < SODET_MAX_RANK; i++)
        s.dim[i] = 0;
    return s;
}

#ifdef __cplusplus
}
#endif

#include "sodet/ops.h"
#endif
