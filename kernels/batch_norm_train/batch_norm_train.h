/* batch_norm_train: batch norm with the statistics of this device's batch. Built by sodet_batch_norm.
 *   mean[c] = sum x / m,  var[c] = sum (x - mean)^2 / m,  m = N * area,  r = 1 / sqrt(var + epsilon),  y = scale * (x - mean) * r + shift
 *   running_mean = (1 - momentum) * running_mean + momentum * mean
 *   running_var  = (1 - momentum) * running_var  + momentum * var * m / (m - 1)        (unbiased, as torch; m = 1: var itself)
 * An empty batch (N = 0) leaves the running statistics as they are; mean and r are then 0.
 *
 * Part 0  in  x [N, C, ...], scale [C], shift [C], running_mean [C], running_var [C]
 *         out y, mean [C], r [C], running_mean [C], running_var [C]      the last two in the storage of the inputs of their names
 * Part 1  in  x, dy, scale, mean, r   out dx, dscale [C], dshift [C]
 *         dshift = sum dy,  dscale = sum dy * (x - mean) * r,  dx = scale * r * (dy - dshift / m - (x - mean) * r * dscale / m)
 * The variance must be summed from deviations (two passes, or merged partial sums): a large mean would eat it otherwise.
 * Tolerance: 5e-6 of the largest value. */
#ifndef SODET_KERNELS_BATCH_NORM_TRAIN_H
#define SODET_KERNELS_BATCH_NORM_TRAIN_H

#include "sodet/ops/batch_norm.h"

#endif
