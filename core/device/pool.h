/* device/pool.h: the devices of this process. Each has a thread, a replica of the model's state, and the programs made for it.
 *
 * `[run] devices = <backend>[:<which>]`, which = a list of indices (cuda:0,1), `all`, or xN: N replicas on device 0 (cpu:x4). The
 * threads of [run] threads are shared out evenly, at least one each.
 *
 * Everything that touches a device runs on its thread: sd_device_pool_run hands one job to all threads at once and waits. If one
 * fails, the group is aborted, so that no other waits for it in a collective; the pool is then broken and every later run fails with
 * the same message, which names the device. So does it when the others have waited for one for [run] timeout: that thread hangs, cannot be
 * ended, and may still touch what it was given, so neither that nor the pool is freed then (sd_device_pool_hung). */
#ifndef SD_DEVICE_POOL_H
#define SD_DEVICE_POOL_H

#include "core/graph/graph.h"
#include "core/plugin/plugin.h"

enum { SD_ARENA_PARAM = 0, SD_ARENA_FROZEN, SD_ARENA_GRAD, SD_ARENA_STATE, SD_ARENA_COUNT = SD_ARENA_STATE + SODET_MAX_STATE };
extern const char *const sd_arena_names[]; /* "parameters", "frozen", ... */

struct sd_program;
typedef struct sd_replica {
    uint32_t index; /* in the pool */
    uint32_t real_size;
    uint64_t memory; /* of the device, bytes; 0: unknown */
    char name[224];  /* "cpu:0 replica 2 (AMD EPYC 9654)" */
    const sodet_backend_ops *ops;
    void *device;
    struct {
        void *memory;
        uint64_t elements;
    } arena[SD_ARENA_COUNT];
    /* The work arena is one for all programs, as large as the largest needs; see program.h. */
    void *work;
    uint64_t work_bytes, own_bytes;
    struct sd_program *programs;
    uint64_t weights; /* counts changes of the parameters, so that a program knows whether its derived copies are stale */
    void *staging;    /* of conversions between float and double */
    uint64_t staging_bytes;
} sd_replica;

typedef struct sd_device_pool sd_device_pool;

/* Loads the backend, opens devices and group, starts the threads. cfg is used for [run] and [backend.<name>] during the call, and its
 * strings until close. */
sodet_status sd_device_pool_open(sd_config *cfg, sd_device_pool **out, sodet_err *err);
void sd_device_pool_close(sd_device_pool *pool); /* programs are freed first; accepts NULL */
bool sd_device_pool_hung(const sd_device_pool *pool);
uint32_t sd_device_pool_count(const sd_device_pool *pool);
sd_replica *sd_device_pool_replica(sd_device_pool *pool, uint32_t i);
const char *sd_device_pool_backend(const sd_device_pool *pool); /* "cpu" */
uint32_t sd_device_pool_threads(const sd_device_pool *pool);    /* compute threads of each device */

typedef sodet_status (*sd_replica_job)(sd_replica *r, void *context, sodet_err *err);
sodet_status sd_device_pool_run(sd_device_pool *pool, sd_replica_job job, void *context, sodet_err *err);
/* The same on one device alone; the job must not reach a collective. */
sodet_status sd_device_pool_run_one(sd_device_pool *pool, uint32_t i, sd_replica_job job, void *context, sodet_err *err);

/* Parameters, frozen and, if `training`, gradients and n_state arenas of optimizer state on every device, all zero. */
sodet_status sd_device_pool_arenas(sd_device_pool *pool, const sd_segments *segments, bool training, uint32_t n_state, sodet_err *err);
/* Every device: writes the initialisers' values (functions of seed and path, so all replicas are equal). */
sodet_status sd_device_pool_init(sd_device_pool *pool, const sd_segments *segments, uint64_t seed, uint32_t default_init, sodet_err *err);

/* Whether every device has the same bytes as device 0: parameters and optimizer state; with `frozen`, what is frozen too (running statistics
 * of a device's own batches differ once it has trained). Names the device and the arena that differ. */
sodet_status sd_device_pool_agree(sd_device_pool *pool, bool frozen, sodet_err *err);

/* Elements [offset, offset + n) of an arena of device 0, as float, or raw (real_size bytes each). Write goes to every device. */
sodet_status sd_device_pool_read(sd_device_pool *pool, uint32_t arena, uint64_t offset, uint64_t n, float *out, sodet_err *err);
sodet_status sd_device_pool_read_raw(sd_device_pool *pool, uint32_t arena, uint64_t offset, uint64_t n, void *out, sodet_err *err);
sodet_status sd_device_pool_write(sd_device_pool *pool, uint32_t arena, uint64_t offset, uint64_t n, const float *values, sodet_err *err);
sodet_status sd_device_pool_write_raw(sd_device_pool *pool, uint32_t arena, uint64_t offset, uint64_t n, const void *values,
                                      sodet_err *err);
/* The same inside a job. */
sodet_status sd_replica_read(sd_replica *r, uint32_t arena, uint64_t offset, uint64_t n, float *out, sodet_err *err);
sodet_status sd_replica_write(sd_replica *r, uint32_t arena, uint64_t offset, uint64_t n, const float *values, sodet_err *err);
/* Device memory <-> host, converting where a real has 8 bytes; `at`: from address(). */
sodet_status sd_replica_upload_reals(sd_replica *r, void *to, uint64_t first, uint64_t n, const float *values, sodet_err *err);
/* Bytes of device memory to other device memory, in order with runs. */
sodet_status sd_replica_copy(sd_replica *r, void *to, uint64_t to_offset, const void *from, uint64_t from_offset, uint64_t bytes,
                             sodet_err *err);
sodet_status sd_replica_download_reals(sd_replica *r, const void *from, uint64_t first, uint64_t n, float *out, sodet_err *err);

/* Planned bytes of one device: arenas, the work arena, the programs' own. */
typedef struct sd_device_bytes {
    uint64_t arena[SD_ARENA_COUNT], work, own, total;
} sd_device_bytes;
sd_device_bytes sd_device_pool_bytes(const sd_device_pool *pool, uint32_t i);

#endif
