/* device/host_group.h: collectives among the devices of one process whose memory the host can read: threads meet, each adds up its share
 * of the elements over all ranks in the order of the ranks, so that the result has the same bits on every rank and in every run.
 *
 * Each device's thread calls the same functions in the same order with its own rank. A device that fails instead must lead to
 * sd_host_group_abort, which wakes all others: their calls, then and later, return SODET_E_DEVICE. */
#ifndef SD_HOST_GROUP_H
#define SD_HOST_GROUP_H

#include "core/base/base.h"
#include "sodet/backend.h"

typedef struct sd_host_group sd_host_group;

typedef struct sd_host_part {
    const void *in; /* this rank's */
    void *out;      /* this rank's; in itself is allowed */
    uint64_t elements;
} sd_host_part;

sodet_status sd_host_group_open(uint32_t n, sd_host_group **out, sodet_err *err);
void sd_host_group_close(sd_host_group *group); /* accepts NULL; nobody may be in a call */
void sd_host_group_abort(sd_host_group *group);
/* The first rank that others are waiting for, and since how long; UINT32_MAX: nobody waits. Any thread. */
uint32_t sd_host_group_awaited(sd_host_group *group, double *seconds);
/* What a backend answers that was `run` seconds in runs: a collective is done inside one, by the thread that computes, so none of it is
 * hidden. By the rank's own thread; group may be NULL. */
void sd_host_group_times(const sd_host_group *group, uint32_t rank, double run, sodet_device_times *out);
uint32_t sd_host_group_size(const sd_host_group *group);

/* out = sum of in over the ranks, for n parts at one meeting. real_size: 4 (float, added in double, rounded once) or 8 (double). */
sodet_status sd_host_group_sum(sd_host_group *group, uint32_t rank, const sd_host_part *part, uint32_t n, uint32_t real_size,
                               sodet_err *err);
/* out = in of rank 0, in of rank 1, ... */
sodet_status sd_host_group_gather(sd_host_group *group, uint32_t rank, const void *in, void *out, uint64_t bytes, sodet_err *err);

#endif
