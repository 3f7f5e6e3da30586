/* Devices that reduce among each other by NCCL: a thread and a communicator per device, none of them ever blocking. Other processes may have
 * devices of the same group; of these nothing is seen but that they do not come.
 *
 * A rank that is gone makes NCCL's kernels wait for ever, so nobody waits for a stream without looking here (cuda_wait). An abort is a
 * flag: each thread that sees it aborts its own communicator, which ends its kernels. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "plugins/backend/cuda/cuda.h"
#include "plugins/backend/cuda/nccl.h"

typedef struct member {
    ncclComm_t comm;
    _Atomic uint64_t met;      /* collectives that its device has come to; the first is joining */
    _Atomic uint64_t waits_ns; /* when it began to wait for the device; 0: it does not */
    double has_waited;         /* seconds; under the book's lock */
} member;

typedef struct entry { /* of a collective, until all ranks have told how long theirs took */
    uint64_t number;
    uint32_t n;
} entry;

struct cuda_group {
    uint32_t n, first, world; /* devices of this process, their first rank, devices of all */
    const cuda_nccl *nccl;
    ncclUniqueId id;
    _Atomic bool aborted;
    member *members;
    pthread_mutex_t book;
    entry *entries; /* [n_entries], by number */
    double *took;   /* [n_entries][n][2]: in all, and exposed */
    uint64_t n_entries;
};

static uint64_t now_ns(void)
{
    return (uint64_t)(sd_now() * 1e9) + 1;
}

static member *own(const cuda_device *d)
{
    return &d->group->members[d->rank - d->group->first];
}

/* What mostly helps (NCCL's documentation, Troubleshooting: errors, shared memory, networking). */
static const char *nccl_remedy(ncclResult_t r)
{
    switch (r) {
    case ncclSystemError:
        return "; NCCL_DEBUG=INFO names the call of the system that failed: mostly /dev/shm is too small (in a container: --shm-size=1g or "
               "--ipc=host), or the network interface is the wrong one (NCCL_SOCKET_IFNAME=eth0)";
    case ncclRemoteError:
        return "; another rank or the network between them failed: its own messages say why, NCCL_DEBUG=INFO names the connection";
    case ncclUnhandledCudaError:
        return "; NCCL_DEBUG=INFO names the call of CUDA that failed: mostly the device's memory is used up, or the driver is too old for "
               "this "
               "NCCL";
    default:
        return "; NCCL_DEBUG=INFO says more";
    }
}

static sodet_status nccl_failed(const cuda_device *d, ncclResult_t r, const char *what, sodet_err *err)
{
    const cuda_nccl *nccl = d->group->nccl;
    const char *more = own(d)->comm ? nccl->GetLastError(own(d)->comm) : NULL;
    return SODET_FAIL(err, SODET_E_DEVICE, "%s: NCCL: %s%s%.200s%s", what, nccl->GetErrorString(r), more && *more ? ": " : "",
                      more ? more : "", nccl_remedy(r));
}

sodet_status cuda_group_id(uint8_t id[SODET_GROUP_ID_BYTES], sodet_err *err)
{
    const cuda_nccl *nccl;
    ncclUniqueId made;
    _Static_assert(sizeof made <= SODET_GROUP_ID_BYTES, "an id of NCCL fits");
    sodet_status s = cuda_nccl_load(&nccl, err);
    if (s != SODET_OK)
        return s;
    const ncclResult_t r = nccl->GetUniqueId(&made);
    if (r != ncclSuccess)
        return SODET_FAIL(err, SODET_E_DEVICE, "an id for a group of devices: NCCL: %s%s", nccl->GetErrorString(r), nccl_remedy(r));
    memset(id, 0, SODET_GROUP_ID_BYTES);
    memcpy(id, &made, sizeof made);
    return SODET_OK;
}

sodet_status cuda_group_open(const sodet_group_options *o, cuda_group **out, sodet_err *err)
{
    *out = NULL;
    const cuda_nccl *nccl;
    if (!o->n || o->first >= o->world || o->n > o->world - o->first)
        return SODET_FAIL(err, SODET_E_INVALID, "ranks %u to %u of a group of %u devices", o->first, o->first + o->n, o->world);
    sodet_status s = cuda_nccl_load(&nccl, err);
    if (s != SODET_OK)
        return s;
    cuda_group *g = sd_alloc(1, sizeof *g);
    member *members = sd_alloc(o->n, sizeof *members);
    if (!g || !members) {
        sd_free(g);
        sd_free(members);
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a group of %u devices", o->n);
    }
    g->n = o->n;
    g->first = o->first;
    g->world = o->world;
    g->nccl = nccl;
    g->members = members;
    memcpy(&g->id, o->id, sizeof g->id);
    pthread_mutex_init(&g->book, NULL);
    *out = g;
    return SODET_OK;
}

void cuda_group_close(cuda_group *g)
{
    if (!g)
        return;
    pthread_mutex_destroy(&g->book);
    sd_free(g->entries);
    sd_free(g->took);
    sd_free(g->members);
    sd_free(g);
}

void cuda_group_abort(cuda_group *g)
{
    atomic_store(&g->aborted, true);
}

/* Counts what the device has come to. Only a host that waits looks; one that does not wait is not waited for, or soon looks. */
static void look(cuda_device *d)
{
    while (d->first_expected < d->n_expected && cuda_answer(cudaEventQuery(d->expected[d->first_expected])) == cudaSuccess) {
        d->first_expected++;
        atomic_fetch_add(&own(d)->met, 1);
    }
    if (d->first_expected == d->n_expected)
        d->first_expected = d->n_expected = 0;
}

void cuda_group_waits(cuda_device *d, bool waits)
{
    if (!d->group)
        return;
    look(d);
    atomic_store(&own(d)->waits_ns, waits ? now_ns() : 0);
}

sodet_status cuda_group_expect(cuda_device *d, cudaEvent_t ready, sodet_err *err)
{
    if (!d->group)
        return SODET_OK;
    look(d);
    if (sd_grow(&d->expected, &d->expected_capacity, d->n_expected + 1, sizeof *d->expected, err) != SODET_OK)
        return SODET_E_MEMORY;
    d->expected[d->n_expected++] = ready;
    return SODET_OK;
}

void cuda_group_forget(cuda_device *d)
{
    d->first_expected = d->n_expected = 0;
}

uint32_t cuda_group_awaited(cuda_group *g, double *seconds)
{
    uint64_t least = UINT64_MAX, since = 0;
    uint32_t who = UINT32_MAX, waiting = 0;
    *seconds = 0;
    for (uint32_t r = 0; r < g->n; r++) {
        const uint64_t met = atomic_load(&g->members[r].met), waits = atomic_load(&g->members[r].waits_ns);
        waiting += waits != 0;
        if (met < least) {
            least = met;
            who = g->first + r;
        }
        if (waits && (!since || waits < since))
            since = waits;
    }
    if (!since)
        return UINT32_MAX; /* nobody waits; where all wait for each other's data, the first is as good as any */
    *seconds = (double)(now_ns() - since) * 1e-9;
    for (uint32_t r = 0; r < g->n && waiting == g->n; r++)
        waiting -= atomic_load(&g->members[r].met) != least;
    if (waiting < g->n || g->world == g->n)
        return who;
    /* All of this process have come equally far and wait. */
    return g->world > g->n + 1 ? g->world : g->first ? 0 : g->n;
}

static void end_communicator(cuda_device *d)
{
    member *m = own(d);
    if (m->comm)
        d->group->nccl->CommAbort(m->comm);
    m->comm = NULL;
}

sodet_status cuda_group_check(cuda_device *d, sodet_err *err)
{
    cuda_group *g = d->group;
    member *m = own(d);
    ncclResult_t state = ncclSuccess;
    look(d);
    if (atomic_load(&g->aborted)) {
        end_communicator(d);
        return SODET_FAIL(err, SODET_E_DEVICE, "another device of the group failed; this one stopped waiting for it");
    }
    if (!m->comm)
        return SODET_FAIL(err, SODET_E_DEVICE, "this device has left its group");
    ncclResult_t r = g->nccl->CommGetAsyncError(m->comm, &state);
    if (r == ncclSuccess && (state == ncclSuccess || state == ncclInProgress))
        return SODET_OK;
    sodet_status s = nccl_failed(d, r == ncclSuccess ? state : r, "a collective", err);
    atomic_store(&g->aborted, true);
    end_communicator(d);
    return s;
}

/* A call on a communicator that does not block comes back at once; this waits until it has been taken. */
static sodet_status taken(cuda_device *d, ncclResult_t r, const char *what, sodet_err *err)
{
    member *m = own(d);
    sodet_status s = SODET_OK;
    ncclResult_t state = r;
    cuda_group_waits(d, true);
    while (state == ncclInProgress && (s = cuda_group_check(d, err)) == SODET_OK) {
        d->group->nccl->CommGetAsyncError(m->comm, &state);
        if (state == ncclInProgress)
            usleep(20);
    }
    cuda_group_waits(d, false);
    return s == SODET_OK && state != ncclSuccess ? nccl_failed(d, state, what, err) : s;
}

sodet_status cuda_group_join(cuda_device *d, sodet_err *err)
{
    cuda_group *g = d->group;
    member *m = own(d);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    atomic_fetch_add(&m->met, 1);
    ncclResult_t r = g->nccl->CommInitRankConfig(&m->comm, (int)g->world, g->id, (int)d->rank, &config);
    return taken(d, r, "joining the group of devices", err);
}

void cuda_group_leave(cuda_device *d)
{
    if (!d->group || !own(d)->comm)
        return;
    member *m = own(d);
    if (atomic_load(&d->group->aborted)) {
        end_communicator(d);
        return;
    }
    if (taken(d, d->group->nccl->CommFinalize(m->comm), "leaving the group of devices", NULL) == SODET_OK && m->comm)
        d->group->nccl->CommDestroy(m->comm);
    else
        end_communicator(d);
    m->comm = NULL;
}

sodet_status cuda_group_sum(cuda_device *d, const cuda_part *part, uint32_t n, sodet_err *err)
{
    if (!d->group) {
        cudaError_t e = cudaSuccess;
        for (uint32_t i = 0; e == cudaSuccess && i < n; i++)
            if (part[i].in != part[i].out)
                e = cudaMemcpyAsync(part[i].out, part[i].in, part[i].elements * sizeof(float), cudaMemcpyDeviceToDevice, d->comm);
        return e == cudaSuccess ? SODET_OK : cuda_failed(e, "a copy on the device", err);
    }
    sodet_status s = cuda_group_check(d, err);
    if (s != SODET_OK)
        return s;
    const cuda_nccl *nccl = d->group->nccl;
    member *m = own(d);
    ncclResult_t r = nccl->GroupStart(), end;
    for (uint32_t i = 0; i < n && (r == ncclSuccess || r == ncclInProgress); i++)
        if (part[i].elements)
            r = nccl->AllReduce(part[i].in, part[i].out, part[i].elements, ncclFloat32, ncclSum, m->comm, d->comm);
    end = nccl->GroupEnd();
    return taken(d, r == ncclSuccess || r == ncclInProgress ? end : r, "the sum over the devices", err);
}

sodet_status cuda_group_gather(cuda_device *d, const void *in, void *out, uint64_t bytes, sodet_err *err)
{
    if (!d->group) {
        cudaError_t e = cudaMemcpyAsync(out, in, bytes, cudaMemcpyDeviceToDevice, d->comm);
        return e == cudaSuccess ? SODET_OK : cuda_failed(e, "a copy on the device", err);
    }
    sodet_status s = cuda_group_check(d, err);
    if (s != SODET_OK || !bytes)
        return s;
    member *m = own(d);
    return taken(d, d->group->nccl->AllGather(in, out, bytes, ncclUint8, m->comm, d->comm), "gathering from the devices", err);
}

/* ---- who waited for whom ---- */
sodet_status cuda_group_keep_book(cuda_group *g, uint32_t collectives, sodet_err *err)
{
    /* A rank tells of a run when it begins a later one; ranks are a run apart at most. */
    const uint64_t wanted = 2 * (CUDA_RUNS + 1) * (uint64_t)collectives;
    pthread_mutex_lock(&g->book);
    sodet_status s = SODET_OK;
    if (wanted > g->n_entries) {
        entry *entries = sd_alloc(wanted, sizeof *entries);
        double *took = sd_alloc(wanted * g->n, 2 * sizeof *took);
        if (entries && took) {
            sd_free(g->entries);
            sd_free(g->took);
            g->entries = entries;
            g->took = took;
            g->n_entries = wanted;
        } else {
            sd_free(entries);
            sd_free(took);
            s = cuda_out_of_memory(err);
        }
    }
    pthread_mutex_unlock(&g->book);
    return s;
}

/* The clocks of two devices have nothing to do with each other, so durations are compared, not times. Ranks of other processes are not
 * asked: a wait for them that is common to all of this one counts as part of the sum. */
static void settle(cuda_group *g, const double *took)
{
    double least = took[0];
    for (uint32_t r = 1; r < g->n; r++)
        least = took[2 * r] < least ? took[2 * r] : least;
    for (uint32_t r = 0; r < g->n; r++) {
        const double longer = took[2 * r] - least, behind = took[2 * r + 1] - least, waited = behind < longer ? behind : longer;
        g->members[r].has_waited += waited > 0 ? waited : 0;
    }
}

void cuda_group_account(cuda_device *d, uint64_t number, double took, double exposed)
{
    cuda_group *g = d->group;
    if (!g)
        return;
    pthread_mutex_lock(&g->book);
    const uint64_t at = number % g->n_entries;
    entry *e = &g->entries[at];
    double *times = g->took + at * g->n * 2, *mine = times + (uint64_t)(d->rank - g->first) * 2;
    if (e->number < number)
        *e = (entry){.number = number};
    if (e->number == number) {
        mine[0] = took;
        mine[1] = exposed;
        if (++e->n == g->n)
            settle(g, times);
    }
    pthread_mutex_unlock(&g->book);
}

double cuda_group_has_waited(cuda_device *d)
{
    pthread_mutex_lock(&d->group->book);
    const double seconds = own(d)->has_waited;
    pthread_mutex_unlock(&d->group->book);
    return seconds;
}
