/* device/program.h: a graph that is ready to run on a device, and the set of programs of a run.
 *
 * All programs of a device share its state arenas and one work arena. When a program needs a larger one, the arena is made anew and
 * the other programs are bound again before their next run. Functions that take a program or a replica are called on the device's
 * thread (inside a job of device/pool.h). */
#ifndef SD_DEVICE_PROGRAM_H
#define SD_DEVICE_PROGRAM_H

#include "core/device/pool.h"

typedef struct sd_program sd_program;

/* prepare -> plan memory -> bind. The graph has been bound to the segments (sd_graph_bind) and is taken over, also on failure.
 * param_arena: where its parameters lie: SD_ARENA_PARAM, or a state arena that holds averaged ones. */
sodet_status sd_program_make(sd_replica *r, sodet_graph *g, uint32_t param_arena, sd_program **out, sodet_err *err);
/* What a program of this graph would need, without making it: nothing is allocated for it, and the graph stays the caller's. said: called
 * for each node that the backend has a word on; may be NULL. */
typedef void sd_program_said(void *context, uint32_t node, const char *how);
sodet_status sd_program_plan(sd_replica *r, const sodet_graph *g, uint64_t *work_bytes, uint64_t *own_bytes, sd_program_said *said,
                             void *context, sodet_err *err);
void sd_program_free(sd_program *p); /* accepts NULL */
const sodet_graph *sd_program_graph(const sd_program *p);
uint64_t sd_program_work_bytes(const sd_program *p);
uint64_t sd_program_own_bytes(const sd_program *p);
/* The backend's word on node i ("winograd+relu"); NULL: none. Valid until the program is freed. */
const char *sd_program_describe(const sd_program *p, uint32_t node);

/* Input or output by name: F32 as float, I32 as int32_t; `elements` must be those of its shape. */
sodet_status sd_program_write(sd_program *p, const char *input, const void *data, uint64_t elements, sodet_err *err);
/* A part of an I32 input that holds bytes. */
sodet_status sd_program_write_bytes(sd_program *p, const char *input, uint64_t first, const void *data, uint64_t bytes, sodet_err *err);
/* JPEGs into it, by the backend's decode(): to bytes [offset - from, ...). *failed as there. */
sodet_status sd_program_decode(sd_program *p, const char *input, uint64_t from, uint32_t n, const sodet_coded *pictures, uint32_t *failed,
                               sodet_err *err);
sodet_status sd_program_read(sd_program *p, const char *output, void *to, uint64_t elements, sodet_err *err);
/* Elements [first, first + n) of a float input from device memory: an arena, or an output of another program (n is all of that). */
sodet_status sd_program_take(sd_program *p, const char *input, uint64_t first, const void *from, uint64_t from_first, uint64_t n,
                             sodet_err *err);
sodet_status sd_program_pass(sd_program *from, const char *output, sd_program *p, const char *input, uint64_t first, uint64_t n,
                             sodet_err *err);
/* Elements [0, n) of a float input back to device memory. */
sodet_status sd_program_give(sd_program *p, const char *input, void *to, uint64_t to_first, uint64_t n, sodet_err *err);
/* A float output that is read later, with slot < SODET_FETCHES: what it is when everything before is done. Where the backend has no fetch(),
 * or the output is too large for it, it is read when it is asked for. */
bool sd_replica_fetches(const sd_replica *r, uint64_t elements);
sodet_status sd_program_fetch(sd_program *p, const char *output, uint32_t slot, uint64_t elements, sodet_err *err);
sodet_status sd_program_fetched(sd_program *p, const char *output, uint32_t slot, float *to, uint64_t elements, sodet_err *err);
bool sd_program_has_input(const sd_program *p, const char *name);
bool sd_program_has_output(const sd_program *p, const char *name);
/* node_seconds: [nodes], added to; NULL: not timed. */
sodet_status sd_program_run(sd_program *p, uint64_t seed, uint64_t step, double *node_seconds, sodet_err *err);
/* Returns when the last run is done: a device with a stream comes back from it at once. Reading an output waits, too. */
sodet_status sd_program_wait(sd_program *p, sodet_err *err);

/* ---- the programs of a run ---- */
typedef struct sd_program_key {
    uint32_t mode; /* the builder's */
    uint32_t height, width, batch;
    uint64_t picture_bytes; /* of sd_model_shape */
} sd_program_key;
/* Makes the graph for one device; called on the caller's thread, one call at a time. */
typedef sodet_status (*sd_program_build)(void *context, const sd_program_key *key, sodet_graph **out, sodet_err *err);

typedef struct sd_programs sd_programs;
/* keep: programs a device holds before the one that was used longest ago is freed; 0: 16. */
typedef struct sd_programs_config {
    sd_device_pool *pool;
    sd_program_build build;
    void *context;
    uint32_t param_arena, keep;
} sd_programs_config;
sodet_status sd_programs_create(const sd_programs_config *config, sd_programs **out, sodet_err *err);
void sd_programs_free(sd_programs *s); /* before the pool is closed; accepts NULL */
/* keys and out: one per device. Makes what is missing; a program stays until the next call. */
sodet_status sd_programs_get(sd_programs *s, const sd_program_key *keys, sd_program **out, sodet_err *err);

#endif
