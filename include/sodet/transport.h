/* sodet/transport.h: the processes of a job. The core asks for nothing but host memory; devices reduce among themselves through
 * their backend. Every rank calls the same functions in the same order; a call that some rank does not join within the time given
 * to open fails on all others with a message that names the missing rank. The job of one process needs no plugin.
 *
 * Threads: all calls by one thread. Buffers are the caller's. */
#ifndef SODET_TRANSPORT_H
#define SODET_TRANSPORT_H

#include "sodet/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sodet_transport_info {
    uint32_t struct_size;
    uint32_t rank, size;             /* of all processes */
    uint32_t local_rank, local_size; /* of those on this machine */
} sodet_transport_info;

typedef struct sodet_transport_ops {
    uint32_t struct_size, flags;
    /* Joins the job; timeout in seconds for this and every later call. */
    sodet_status (*open)(void *self, double timeout, sodet_transport_info *out, sodet_err *err);
    sodet_status (*barrier)(void *self, sodet_err *err);
    sodet_status (*broadcast)(void *self, void *bytes, uint64_t n, uint32_t root, sodet_err *err);
    /* counts[size] bytes of every rank, known to all; all: their pieces in order of rank, on root (others pass NULL). */
    sodet_status (*gather)(void *self, const void *bytes, const uint64_t *counts, void *all, uint32_t root, sodet_err *err);
    sodet_status (*sum)(void *self, double *values, uint64_t n, sodet_err *err); /* element by element, in order of rank, on every rank */
    /* Ends the job on every rank; `why` is what they print. Returns. */
    void (*abort)(void *self, const char *why);
    void (*close)(void *self);
} sodet_transport_ops;

#ifdef __cplusplus
}
#endif
#endif
