/* What kernels.c launches. */
#ifndef HC_TEST_KERNELS_H
#define HC_TEST_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each returns cudaGetLastError(). */
int launch_silu(void *stream, const float *x, float *y, size_t n);
float silu_on_host(float x);
/* partial[256], sum[1] */
int launch_sum(void *stream, const float *x, float *partial, float *sum, size_t n);
int launch_histogram(void *stream, const int32_t *labels, int32_t *bins, size_t n, int32_t n_bins);
/* type: 0 float, 1 narrow, 2 bfloat16 */
int launch_column_sum(void *stream, int type, const void *x, float *out, int rows, int columns);
/* out[i] of a warp of 32 (block 64): see the kernel */
int launch_warp_work(void *stream, int32_t *out);
int launch_votes(void *stream, int32_t *out, int threshold);
int launch_atomics(void *stream, int32_t *i, uint32_t *u, unsigned long long *w);
int launch_convert(void *stream, const float *x, uint16_t *narrow, uint16_t *bf, float *back, int n);
int launch_indices(void *stream, int32_t *out);
int launch_vectors(void *stream, const float *x, float *y, int n4);
int launch_big_shared(void *stream, float *out, int n);
int allow_big_shared(int bytes);

#ifdef __cplusplus
}
#endif
#endif
