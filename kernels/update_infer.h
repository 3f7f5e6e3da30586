/* kernels/update_infer.h: checks of the inputs that the updates of arenas share. */
#ifndef SD_KERNELS_UPDATE_INFER_H
#define SD_KERNELS_UPDATE_INFER_H

#include "kernels/describe.h"

/* Input i is absent or has one element. */
static inline sodet_status update_check_one(const sodet_node *n, uint32_t i, const char *what, sodet_err *err)
{
    char given[64];
    if (op_has(n, i) && (n->in_shape[i].dtype != SODET_F32 || sodet_elements(&n->in_shape[i]) != 1))
        return SODET_FAIL(err, SODET_E_INVALID, "%s: %s is %s, one float32 expected", n->op->name, what,
                          sd_shape_text(&n->in_shape[i], given));
    return SODET_OK;
}

/* Inputs 0 .. arenas-1 are arenas of one size (input `optional` may be absent), then start, factor, hyper [n_hyper], scale, ok. */
static inline sodet_status update_check(const sodet_node *n, uint32_t arenas, uint32_t optional, int64_t n_hyper, sodet_err *err)
{
    sodet_status status = op_check_rank(n, 0, "p", SODET_F32, 1, err);
    for (uint32_t i = 1; i < arenas && status == SODET_OK; i++)
        if (i != optional || op_has(n, i))
            status = op_check_shape(n, i, i == 1 ? "grad" : "state", &n->in_shape[0], err);
    if (status == SODET_OK)
        status = op_check_rank(n, arenas, "start", SODET_I32, 1, err);
    if (status != SODET_OK)
        return status;
    int64_t segments = n->in_shape[arenas].dim[0];
    if (segments < 1 || n->in_shape[0].dim[0] > INT32_MAX)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s: %lld segments over %lld elements; at least 1 segment and at most 2^31 - 1 elements expected", n->op->name,
                          (long long)segments, (long long)n->in_shape[0].dim[0]);
    sodet_shape factor = sodet_shape_make(SODET_F32, 2, segments, 2, 0, 0), hyper = sodet_shape_make(SODET_F32, 1, n_hyper, 0, 0, 0);
    status = op_check_shape(n, arenas + 1, "factor", &factor, err);
    if (status == SODET_OK)
        status = op_check_shape(n, arenas + 2, "hyper", &hyper, err);
    if (status == SODET_OK)
        status = update_check_one(n, arenas + 3, "scale", err);
    if (status == SODET_OK)
        status = update_check_one(n, arenas + 4, "ok", err);
    return status;
}

#endif
