/* The kernels of planted.c, each with one bug. */
#ifndef HC_TEST_PLANTED_H
#define HC_TEST_PLANTED_H

#ifdef __cplusplus
extern "C" {
#endif

/* A block of 64 threads, or two of 32; out: 64 floats. Returns cudaGetLastError(). */
int planted_divergent_barrier(void *stream, float *out);
int planted_early_exit(void *stream, float *out);
int planted_exited_lanes(void *stream, float *out);
int planted_foreign_mask(void *stream, float *out);
int planted_outside_mask(void *stream, float *out);
int planted_warp_deadlock(void *stream, float *out);
int planted_uninitialised_shared(void *stream, float *out);
int planted_uninitialised_template(void *stream, float *out);
int planted_left_by_a_block(void *stream, float *out);
int planted_no_dynamic_shared(void *stream, float *out);
int planted_missing_barrier(void *stream, float *out);
int planted_missing_syncwarp(void *stream, float *out);
int planted_blocks_overlap(void *stream, float *out);
int planted_shared_overflow(void *stream, float *out);
int planted_dynamic_overflow(void *stream, float *out);
int planted_local_overflow(void *stream, float *out);
int planted_global_overflow(void *stream, float *out);
/* Correct ones, for bugs of the host. */
int planted_fill(void *stream, float *out, float value);
int planted_copy(void *stream, const float *x, float *out);
int planted_copy_by_table(void *stream, const float *x, float *out); /* the addresses in a structure */
int planted_configuration(void *stream, float *out, unsigned grid, unsigned block, unsigned long shared_bytes);

#ifdef __cplusplus
}
#endif
#endif
