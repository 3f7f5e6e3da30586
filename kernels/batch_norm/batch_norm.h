/* batch_norm: y[n,c,...] = scale[c] * (x[n,c,...] - mean[c]) / sqrt(var[c] + epsilon) + shift[c] with given statistics (Ioffe and Szegedy 2015).
 * This row is the layer with the running statistics: inference, and training with frozen ones. The rows batch_norm_train (statistics of
 * this device's batch) and batch_norm_sync (of all devices' batches) are what the builder below makes of a training graph.
 *
 * Part 0  in  x [N, C, ...], scale [C], shift [C], mean [C], var [C]   out y
 * Part 1  in  x, dy, scale, mean, var                                  out dx, dscale [C], dshift [C]
 *         dx = dy * scale * r,  dscale = sum dy * (x - mean) * r,  dshift = sum dy,  r = 1 / sqrt(var + epsilon); mean and var are constants
 * Sums in double in the reference. Tolerance: 2e-6 of the largest value. */
#ifndef SODET_KERNELS_BATCH_NORM_H
#define SODET_KERNELS_BATCH_NORM_H

#include "sodet/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_batch_norm_attr { /* of all three rows */
    float epsilon;
    float momentum; /* running = (1 - momentum) * running + momentum * batch */
} sodet_batch_norm_attr;

enum {
    SODET_NORM_FROZEN =
        1, /* running statistics, and scale and shift are not trained, whatever the recipe says (torchvision's FrozenBatchNorm2d) */
    SODET_NORM_NO_SCALE = 2, /* scale is the constant 1 */
    SODET_NORM_NO_SHIFT = 4  /* shift is the constant 0 */
};
typedef struct sodet_norm_desc {
    uint32_t struct_size;
    float epsilon;            /* 1e-5 */
    float momentum;           /* 0.1; of the new batch, as in torch */
    uint32_t flags;           /* SODET_NORM_* */
    sodet_param weight, bias; /* scale starts at 1, shift at 0 */
} sodet_norm_desc;
#define SODET_NORM(...) (&(const sodet_norm_desc){.struct_size = sizeof(sodet_norm_desc), __VA_ARGS__})

/* Parameters "<name>/weight" (scale), "<name>/bias" (shift), buffers "<name>/running_mean" and "<name>/running_var", all [C]. Whether
 * a training graph takes the statistics of the batch, of all devices' batches or the running ones is the recipe's choice. */
SODET_EXPORT sodet_value sodet_batch_norm(sodet_graph *g, const char *name, sodet_value x, const sodet_norm_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
