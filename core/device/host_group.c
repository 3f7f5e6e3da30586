/* Threads of one process that reduce among each other. */
#include "core/device/host_group.h"

#include <pthread.h>
#include <string.h>

typedef struct member { /* what a rank has laid on the table for the others to read */
    const sd_host_part *part;
    uint32_t n;
    uint64_t bytes;           /* of all parts */
    uint64_t met;             /* meetings it has come to */
    double in_calls, awaited; /* seconds; its own thread's */
} member;

struct sd_host_group {
    uint32_t n;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t waiting;
    uint64_t meeting; /* number of meetings held */
    double since;     /* when the first came to the one that is waited for */
    double held;      /* when the last came to the last meeting */
    bool aborted;
    member *members; /* [n] */
};

sodet_status sd_host_group_open(uint32_t n, sd_host_group **out, sodet_err *err)
{
    *out = NULL;
    if (n == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "a group of 0 devices: at least 1 expected");
    sd_host_group *group = sd_alloc(1, sizeof *group);
    member *members = sd_alloc(n, sizeof *members);
    if (!group || !members) {
        sd_free(group);
        sd_free(members);
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a group of %u devices", n);
    }
    *group = (sd_host_group){.n = n, .members = members};
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->changed, NULL);
    *out = group;
    return SODET_OK;
}

void sd_host_group_close(sd_host_group *group)
{
    if (!group)
        return;
    pthread_mutex_destroy(&group->lock);
    pthread_cond_destroy(&group->changed);
    sd_free(group->members);
    sd_free(group);
}

void sd_host_group_abort(sd_host_group *group)
{
    pthread_mutex_lock(&group->lock);
    group->aborted = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
}

uint32_t sd_host_group_awaited(sd_host_group *group, double *seconds)
{
    uint32_t who = UINT32_MAX;
    pthread_mutex_lock(&group->lock);
    *seconds = group->waiting ? sd_now() - group->since : 0;
    for (uint32_t r = 0; group->waiting && who == UINT32_MAX && r < group->n; r++)
        who = group->members[r].met == group->meeting ? r : UINT32_MAX;
    pthread_mutex_unlock(&group->lock);
    return who;
}

void sd_host_group_times(const sd_host_group *group, uint32_t rank, double run, sodet_device_times *out)
{
    *out = (sodet_device_times){.struct_size = sizeof *out, .run = run};
    if (group) {
        out->collective = out->exposed = group->members[rank].in_calls;
        out->awaited = group->members[rank].awaited;
    }
}

uint32_t sd_host_group_size(const sd_host_group *group)
{
    return group->n;
}

/* Returns when all ranks have come; waited: seconds until then. */
static sodet_status meet(sd_host_group *group, uint32_t rank, double *waited, sodet_err *err)
{
    const double came = sd_now();
    pthread_mutex_lock(&group->lock);
    uint64_t mine = group->meeting;
    group->members[rank].met++;
    if (!group->waiting)
        group->since = came;
    if (++group->waiting == group->n) {
        group->waiting = 0;
        group->held = sd_now();
        group->meeting++;
        pthread_cond_broadcast(&group->changed);
    }
    while (group->meeting == mine && !group->aborted)
        pthread_cond_wait(&group->changed, &group->lock);
    bool aborted = group->aborted;
    *waited = group->held > came ? group->held - came : 0; /* no rank comes to the next meeting before this one is here */
    pthread_mutex_unlock(&group->lock);
    return aborted ? SODET_FAIL(err, SODET_E_DEVICE, "another device of the group failed; this one stopped waiting for it") : SODET_OK;
}

/* Lays this rank's parts on the table, waits for the others, and looks whether theirs fit. Every rank comes to the same verdict. */
static sodet_status exchange(sd_host_group *group, uint32_t rank, const sd_host_part *part, uint32_t n, uint64_t bytes, sodet_err *err)
{
    if (rank >= group->n)
        return SODET_FAIL(err, SODET_E_INTERNAL, "rank %u in a group of %u devices", rank, group->n);
    member *own = &group->members[rank];
    own->part = part;
    own->n = n;
    own->bytes = bytes;
    double waited;
    sodet_status status = meet(group, rank, &waited, err);
    if (status != SODET_OK)
        return status;
    own->awaited += waited;
    for (uint32_t r = 1; r < group->n; r++)
        if (group->members[r].n != group->members[0].n || group->members[r].bytes != group->members[0].bytes) {
            sd_host_group_abort(group);
            return SODET_FAIL(err, SODET_E_INTERNAL,
                              "device %u came to a collective of %llu bytes while device 0 came to one of %llu: their programs differ", r,
                              (unsigned long long)group->members[r].bytes, (unsigned long long)group->members[0].bytes);
        }
    return SODET_OK;
}

/* Nobody's part is touched any more when all have come here. */
static sodet_status leave(sd_host_group *group, uint32_t rank, double began, sodet_err *err)
{
    double waited;
    sodet_status status = meet(group, rank, &waited, err);
    group->members[rank].in_calls += sd_now() - began;
    return status;
}

static void sum_float(sd_host_group *group, uint32_t p, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        double sum = 0;
        for (uint32_t r = 0; r < group->n; r++)
            sum += (double)((const float *)group->members[r].part[p].in)[i];
        for (uint32_t r = 0; r < group->n; r++)
            ((float *)group->members[r].part[p].out)[i] = (float)sum;
    }
}

static void sum_double(sd_host_group *group, uint32_t p, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        double sum = 0;
        for (uint32_t r = 0; r < group->n; r++)
            sum += ((const double *)group->members[r].part[p].in)[i];
        for (uint32_t r = 0; r < group->n; r++)
            ((double *)group->members[r].part[p].out)[i] = sum;
    }
}

sodet_status sd_host_group_sum(sd_host_group *group, uint32_t rank, const sd_host_part *part, uint32_t n, uint32_t real_size,
                               sodet_err *err)
{
    const double began = sd_now();
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < n; p++)
        bytes += part[p].elements * real_size;
    sodet_status status = exchange(group, rank, part, n, bytes, err);
    if (status != SODET_OK)
        return status;
    /* Rank r alone reads and writes its stretch of every rank's buffers, so an output may be its input. Stretches end at cache lines. */
    for (uint32_t p = 0; p < n; p++) {
        uint64_t stretch = ((part[p].elements + group->n - 1) / group->n + 15) / 16 * 16;
        uint64_t from = stretch * rank, to = from + stretch;
        from = from < part[p].elements ? from : part[p].elements;
        to = to < part[p].elements ? to : part[p].elements;
        if (real_size == 8)
            sum_double(group, p, from, to);
        else
            sum_float(group, p, from, to);
    }
    return leave(group, rank, began, err);
}

sodet_status sd_host_group_gather(sd_host_group *group, uint32_t rank, const void *in, void *out, uint64_t bytes, sodet_err *err)
{
    const double began = sd_now();
    const sd_host_part part = {.in = in, .elements = bytes};
    sodet_status status = exchange(group, rank, &part, 1, bytes, err);
    if (status != SODET_OK)
        return status;
    for (uint32_t r = 0; bytes && r < group->n; r++)
        memcpy((char *)out + r * bytes, group->members[r].part[0].in, bytes);
    return leave(group, rank, began, err);
}
