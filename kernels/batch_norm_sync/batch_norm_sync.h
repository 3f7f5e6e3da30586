/* batch_norm_sync: batch norm with the statistics of all devices' batches. Built by sodet_batch_norm as
 *   part 0 -> all_gather -> part 1 -> part 2,   and backward   part 3 -> all_reduce -> part 4.
 * Counts, means and sums of squared deviations are merged (Chan et al. 1979), not means of means: devices may hold unlike numbers of
 * samples, or none.
 *
 * Part 0  in  x [N, C, ...]   out own [3, C]: rows count (m = N * area), mean, sum of squared deviations from it
 * Part 1  in  all [R, 3, C] (part 0 of every rank), running_mean [C], running_var [C]
 *         out mean [C], r [C], count [1], running_mean [C], running_var [C]      the last two in the storage of the inputs of their names
 *         count = sum_i m_i,  mean = sum m_i mean_i / count,  M = sum (M_i + m_i (mean_i - mean)^2),  r = 1 / sqrt(M / count + epsilon);
 *         running_var takes M / (count - 1)
 * Part 2  in  x, scale [C], shift [C], mean, r, count   out y = scale * (x - mean) * r + shift      (count is for the gradient)
 * Part 3  in  x, dy, mean, r   out sums [2, C]: rows dshift = sum dy and dscale = sum dy * (x - mean) * r of this device
 * Part 4  in  x, dy, scale, mean, r, count, all [2, C] (the sums over every rank), own [2, C]   out dx, dscale [C], dshift [C]
 *         dx = scale * r * (dy - all[0] / count - (x - mean) * r * all[1] / count); dscale and dshift are this device's own share
 * Tolerance: 5e-6 of the largest value. */
#ifndef SODET_KERNELS_BATCH_NORM_SYNC_H
#define SODET_KERNELS_BATCH_NORM_SYNC_H

#include "sodet/ops/batch_norm.h"

#endif
