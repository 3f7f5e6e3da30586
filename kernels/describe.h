/* kernels/describe.h: what the operators' descriptions (<op>.c) share: checks of a node's inputs with one wording, and costs.
 * Messages name the operator, the input, what was given and what is wanted; the graph puts the layer's path in front. */
#ifndef SD_KERNELS_DESCRIBE_H
#define SD_KERNELS_DESCRIBE_H

#include <string.h>

#include "core/graph/graph.h"
#include "kernels/kernels.h"

/* Number of inputs and outputs, both inclusive ranges; a caller of the graph's general call may get them wrong. */
static inline sodet_status op_check_arity(const sodet_node *n, uint32_t in_least, uint32_t in_most, uint32_t out_least, uint32_t out_most,
                                          sodet_err *err)
{
    if (n->n_in < in_least || n->n_in > in_most)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: %u inputs given, %u to %u expected", n->op->name, n->n_in, in_least, in_most);
    if (n->n_out < out_least || n->n_out > out_most)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: %u outputs asked for, %u to %u expected", n->op->name, n->n_out, out_least, out_most);
    return SODET_OK;
}

static inline int op_has(const sodet_node *n, uint32_t i)
{
    return i < n->n_in && n->in[i].id != 0;
}

/* Input `i` ("weight") is there, with this type and rank (UINT32_MAX: any). */
static inline sodet_status op_check_rank(const sodet_node *n, uint32_t i, const char *what, uint32_t dtype, uint32_t rank, sodet_err *err)
{
    char given[64];
    if (!op_has(n, i))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: no %s given", n->op->name, what);
    const sodet_shape *s = &n->in_shape[i];
    if (s->dtype != dtype || (rank != UINT32_MAX && s->rank != rank)) {
        if (rank == UINT32_MAX)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: %s is %s, %s expected", n->op->name, what, sd_shape_text(s, given),
                              dtype == SODET_I32 ? "int32" : "float32");
        return SODET_FAIL(err, SODET_E_INVALID, "%s: %s is %s, rank %u in %s expected", n->op->name, what, sd_shape_text(s, given), rank,
                          dtype == SODET_I32 ? "int32" : "float32");
    }
    return SODET_OK;
}

static inline int op_same_shape(const sodet_shape *a, const sodet_shape *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return 0;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return 0;
    return 1;
}

static inline sodet_status op_check_shape(const sodet_node *n, uint32_t i, const char *what, const sodet_shape *want, sodet_err *err)
{
    char given[64], wanted[64];
    if (!op_has(n, i))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: no %s given", n->op->name, what);
    if (!op_same_shape(&n->in_shape[i], want))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: %s is %s, %s expected", n->op->name, what, sd_shape_text(&n->in_shape[i], given),
                          sd_shape_text(want, wanted));
    return SODET_OK;
}

/* A vector with one number for each channel. */
static inline sodet_status op_check_channels(const sodet_node *n, uint32_t i, const char *what, int64_t channels, sodet_err *err)
{
    sodet_shape want = sodet_shape_make(SODET_F32, 1, channels, 0, 0, 0);
    return op_check_shape(n, i, what, &want, err);
}

/* Copies a descriptor that begins with its size over zeros, so that either side may be newer. */
static inline void op_descriptor(void *to, size_t size, const void *from)
{
    uint32_t given;
    memcpy(&given, from, sizeof given);
    memset(to, 0, size);
    memcpy(to, from, given < size ? given : size);
}

static inline uint64_t op_bytes(const sodet_node *n)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i].id)
            bytes += 4 * (uint64_t)sodet_elements(&n->in_shape[i]);
    for (uint32_t i = 0; i < n->n_out; i++)
        bytes += 4 * (uint64_t)sodet_elements(&n->out_shape[i]);
    return bytes;
}

#define OP_TRY(call)                                                                                                                       \
    do {                                                                                                                                   \
        sodet_status op_status = (call);                                                                                                   \
        if (op_status != SODET_OK)                                                                                                         \
            return op_status;                                                                                                              \
    } while (0)
#define OP_WANTED(want, i) (((want) >> (i)) & 1u)

#endif
