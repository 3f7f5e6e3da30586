/* NCCL 2.28 on the CPU: communicators whose ranks meet in a room (room.h), collectives that run on streams. Like the real library it
 * hangs, until ncclCommAbort, where a rank is missing; unlike it, it says which one (HC_NCCL_TIMEOUT), and compares what the ranks call. */
#include "room.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nccl.h>

enum { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER };
static const char *const kinds[] = {"ncclAllReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter"};

struct ncclComm {
    hc_room *room;
    char name[HC_ROOM_NAME];
    int rank, ranks, device;
    int siblings; /* ranks that one thread owns: ncclCommInitAll */
    bool blocking;
    atomic_int state; /* ncclResult_t; ncclInProgress until all ranks came */
    atomic_bool aborted, finalizing;
    uint64_t sequence; /* of the stream's thread */
    pthread_t starter;
    bool started;
    /* Collectives that were put on streams and have not ended. They keep the communicator. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned pending;
    bool owned;
};

typedef struct collective {
    struct collective *next;
    ncclComm_t comm;
    cudaStream_t stream;
    const char *in;
    char *out;
    hc_call call;
} collective;

static _Thread_local int depth; /* of groups */
static _Thread_local collective *first, **last;
static _Thread_local ncclComm_t opened[HC_MAX_RANKS]; /* in the group: to be waited for at its end */
static _Thread_local unsigned opened_count;
static _Thread_local char last_error[300];

static ncclResult_t reject(ncclResult_t result, const char *format, ...) __attribute__((format(printf, 2, 3)));
static ncclResult_t reject(ncclResult_t result, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    hc_report("nccl: %s", last_error);
    return result;
}

/* HC_FAIL=function:n[:error] with an ncclResult_t. */
static ncclResult_t enter(const char *function)
{
    int planned = (int)hc_planned_failure(function);
    if (planned == 0)
        return ncclSuccess;
    snprintf(last_error, sizeof last_error, "%s fails as HC_FAIL asks", function);
    return planned < ncclNumResults ? (ncclResult_t)planned : ncclSystemError;
}
#define NCCL_ENTER()                                                                                                                       \
    do {                                                                                                                                   \
        ncclResult_t nccl_result = enter(__func__);                                                                                        \
        if (nccl_result != ncclSuccess)                                                                                                    \
            return nccl_result;                                                                                                            \
    } while (0)

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return (unsigned)result < sizeof texts / sizeof texts[0] ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

ncclResult_t ncclGetVersion(int *version)
{
    NCCL_ENTER();
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    NCCL_ENTER();
    memset(id, 0, sizeof *id);
    if (hc_room_make(id->internal))
        return ncclSuccess;
    snprintf(last_error, sizeof last_error, "no shared memory: %s", strerror(errno));
    return ncclSystemError;
}

static void drop(ncclComm_t comm)
{
    hc_room_leave(comm->room);
    pthread_mutex_destroy(&comm->mutex);
    pthread_cond_destroy(&comm->changed);
    free(comm);
}

/* One collective less; the last one of a communicator that its owner has given up frees it. */
static void end_collective(collective *c)
{
    ncclComm_t comm = c->comm;
    pthread_mutex_lock(&comm->mutex);
    bool free_it = --comm->pending == 0 && !comm->owned;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->mutex);
    if (free_it)
        drop(comm);
    free(c);
}

static bool equal(const hc_call *a, const hc_call *b)
{
    return a->kind == b->kind && a->type == b->type && a->op == b->op && a->root == b->root && a->count == b->count;
}

/* Whether all ranks make the same call. Each that does not make rank 0's reports it. */
static bool same_calls(ncclComm_t comm)
{
    const hc_call *own = hc_room_call(comm->room, comm->rank), *zero = hc_room_call(comm->room, 0);
    bool same = true;
    for (int r = 0; r < comm->ranks; r++)
        same &= equal(hc_room_call(comm->room, r), zero);
    if (!equal(own, zero))
        hc_report("nccl: call %llu: rank 0 calls %s of %llu elements (type %d, operation %d, root %d), rank %d calls %s of %llu (type %d, "
                  "operation %d, root %d)",
                  (unsigned long long)own->sequence, kinds[zero->kind], (unsigned long long)zero->count, zero->type, zero->op, zero->root,
                  comm->rank, kinds[own->kind], (unsigned long long)own->count, own->type, own->op, own->root);
    return same;
}

/* Takes what the ranks brought: elements at .. at + n of each one's input. */
static void take_piece(const collective *c, size_t at, size_t n)
{
    ncclComm_t comm = c->comm;
    size_t size = hc_type_size(c->call.type), count = c->call.count;
    const void *in[HC_MAX_RANKS];
    for (int r = 0; r < comm->ranks; r++)
        in[r] = hc_room_data(comm->room, r);
    switch (c->call.kind) {
    case ALL_REDUCE:
        hc_reduce(c->call.type, c->call.op, comm->ranks, in, c->out + at * size, n);
        break;
    case BROADCAST:
        memcpy(c->out + at * size, in[c->call.root], n * size);
        break;
    case ALL_GATHER:
        for (int r = 0; r < comm->ranks; r++)
            memcpy(c->out + ((size_t)r * count + at) * size, in[r], n * size);
        break;
    case REDUCE_SCATTER: { /* the part of this piece that is this rank's */
        size_t own = (size_t)comm->rank * count, begin = at > own ? at : own, end = at + n < own + count ? at + n : own + count;
        for (int r = 0; r < comm->ranks && begin < end; r++)
            in[r] = (const char *)in[r] + (begin - at) * size;
        if (begin < end)
            hc_reduce(c->call.type, c->call.op, comm->ranks, in, c->out + (begin - own) * size, end - begin);
        break;
    }
    }
}

static void run_collective(void *argument, bool skipped)
{
    collective *c = argument;
    ncclComm_t comm = c->comm;
    int none = ncclSuccess;
    if (skipped)
        atomic_compare_exchange_strong(&comm->state, &none, (int)ncclUnhandledCudaError);
    size_t size = hc_type_size(c->call.type), step = HC_ROOM_BYTES / size;
    size_t all = c->call.kind == REDUCE_SCATTER ? c->call.count * (size_t)comm->ranks : c->call.count;
    c->call.sequence = ++comm->sequence;
    size_t at = 0;
    do {
        if (atomic_load(&comm->aborted) || atomic_load(&comm->state) != ncclSuccess)
            break;
        size_t n = all - at < step ? all - at : step;
        *hc_room_own_call(comm->room) = c->call;
        if (c->call.kind != BROADCAST || comm->rank == c->call.root)
            memcpy(hc_room_own_data(comm->room), c->in + at * size, n * size);
        if (!hc_room_meet(comm->room, kinds[c->call.kind]))
            break;
        if (at == 0 && !same_calls(comm)) {
            atomic_store(&comm->state, (int)ncclInvalidUsage);
            break;
        }
        take_piece(c, at, n);
        at += n;
    } while (at < all);
    end_collective(c);
}

static ncclResult_t post(collective *c)
{
    ncclComm_t comm = c->comm;
    int device = hc_device();
    pthread_mutex_lock(&comm->mutex);
    comm->pending++;
    pthread_mutex_unlock(&comm->mutex);
    hc_bind_device(comm->device); /* as the real one does */
    cudaError_t error = hc_enqueue(c->stream, run_collective, c, false);
    hc_bind_device(device);
    if (error == cudaSuccess)
        return ncclSuccess;
    end_collective(c);
    return ncclUnhandledCudaError;
}

static bool holds(ncclComm_t comm, const void *p, size_t bytes, const char *function, const char *role)
{
    size_t left;
    int where = hc_locate(p, &left);
    if (bytes == 0 || (where == comm->device && bytes <= left))
        return true;
    reject(ncclInvalidArgument, "%s: rank %d: the %s buffer is not %zu bytes of device %d", function, comm->rank, role, bytes,
           comm->device);
    return false;
}

static ncclResult_t collect(int kind, const void *in, void *out, size_t count, int type, int op, int root, ncclComm_t comm,
                            cudaStream_t stream)
{
    const char *function = kinds[kind];
    ncclResult_t planned = enter(function);
    if (planned != ncclSuccess)
        return planned;
    if (!comm)
        return reject(ncclInvalidArgument, "%s: no communicator", function);
    int state = atomic_load(&comm->state);
    if (state == ncclInProgress)
        return reject(ncclInvalidUsage, "%s: rank %d is not ready: ncclCommGetAsyncError says when it is", function, comm->rank);
    if (state != ncclSuccess)
        return (ncclResult_t)state;
    size_t size = hc_type_size(type);
    if (size == 0 || (kind != BROADCAST && kind != ALL_GATHER && op != ncclSum && op != ncclMax && op != ncclMin) || root < 0 ||
        root >= comm->ranks)
        return reject(ncclInvalidArgument, "%s: type %d, operation %d, root %d: not known here, or none of %d ranks", function, type, op,
                      root, comm->ranks);
    int device = stream ? hc_stream_device(stream) : hc_device();
    if (device != comm->device)
        return reject(ncclInvalidArgument, "%s: rank %d is device %d, its stream is of device %d", function, comm->rank, comm->device,
                      device);
    size_t bytes = count * size, many = bytes * (size_t)comm->ranks;
    if ((kind != BROADCAST || comm->rank == root) && !holds(comm, in, kind == REDUCE_SCATTER ? many : bytes, function, "input"))
        return ncclInvalidArgument;
    if (!holds(comm, out, kind == ALL_GATHER ? many : bytes, function, "output"))
        return ncclInvalidArgument;
    collective *c = calloc(1, sizeof *c);
    if (!c)
        return ncclSystemError;
    *c = (collective){
        .comm = comm, .stream = stream, .in = in, .out = out, .call = {.kind = kind, .type = type, .op = op, .root = root, .count = count}};
    if (depth > 0) {
        *(last ? last : &first) = c;
        last = &c->next;
        return ncclSuccess;
    }
    if (comm->siblings > 1)
        hc_report("nccl: %s outside ncclGroupStart and ncclGroupEnd, although one thread owns %d ranks: it may hang on GPUs", function,
                  comm->siblings);
    return post(c);
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    return collect(ALL_REDUCE, in, out, count, (int)type, (int)op, 0, comm, stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return collect(BROADCAST, in, out, count, (int)type, 0, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    return collect(ALL_GATHER, in, out, count, (int)type, 0, 0, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    return collect(REDUCE_SCATTER, in, out, count, (int)type, (int)op, 0, comm, stream);
}

static void *start(void *self)
{
    ncclComm_t comm = self;
    int result = ncclSuccess, waiting = ncclInProgress;
    if (!hc_room_meet(comm->room, "ncclCommInitRank"))
        result = ncclInternalError;
    else if (hc_room_twin(comm->room) >= 0)
        result =
            (int)reject(ncclInvalidUsage, "ranks %d and %d are the same device %d", comm->rank, hc_room_twin(comm->room), comm->device);
    if (comm->rank == 0)
        hc_room_close(comm->name);
    atomic_compare_exchange_strong(&comm->state, &waiting, result);
    return NULL;
}

static void stop_starter(ncclComm_t comm)
{
    if (comm->started)
        pthread_join(comm->starter, NULL);
    comm->started = false;
}

static ncclComm_t open_comm(const char *name, int ranks, int rank, int device, int siblings, bool blocking)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    *comm = (struct ncclComm){
        .rank = rank, .ranks = ranks, .device = device, .siblings = siblings, .blocking = blocking, .state = ncclInProgress, .owned = true};
    memcpy(comm->name, name, sizeof comm->name);
    comm->room = hc_room_enter(comm->name, rank, ranks, device);
    if (!comm->room) {
        free(comm);
        return NULL;
    }
    pthread_mutex_init(&comm->mutex, NULL);
    pthread_cond_init(&comm->changed, NULL);
    comm->started = pthread_create(&comm->starter, NULL, start, comm) == 0;
    if (!comm->started) {
        drop(comm);
        return NULL;
    }
    return comm;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    NCCL_ENTER();
    *out = NULL;
    if (ranks < 1 || ranks > HC_MAX_RANKS || rank < 0 || rank >= ranks)
        return reject(ncclInvalidArgument, "rank %d of %d: at most %d ranks here", rank, ranks, HC_MAX_RANKS);
    if (config && (config->size != sizeof *config || config->magic != 0xcafebeef))
        return reject(ncclInvalidArgument, "a configuration that was not made by NCCL_CONFIG_INITIALIZER");
    bool blocking = !config || config->blocking != 0;
    ncclComm_t comm = open_comm(id.internal, ranks, rank, hc_device(), 1, blocking);
    if (!comm)
        return ncclSystemError;
    *out = comm;
    if (!blocking)
        return ncclInProgress;
    if (depth > 0 && opened_count < HC_MAX_RANKS) {
        opened[opened_count++] = comm;
        return ncclSuccess;
    }
    stop_starter(comm);
    return (ncclResult_t)atomic_load(&comm->state);
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(out, ranks, id, rank, NULL);
}

ncclResult_t ncclCommInitAll(ncclComm_t *out, int n, const int *list)
{
    NCCL_ENTER();
    int devices = hc_setting()->devices;
    if (n < 1 || n > HC_MAX_RANKS || (!list && n > devices))
        return reject(ncclInvalidArgument, "ncclCommInitAll of %d devices: there are %d", n, devices);
    for (int i = 0; list && i < n; i++)
        if (list[i] < 0 || list[i] >= devices)
            return reject(ncclInvalidArgument, "ncclCommInitAll: no device %d", list[i]);
    ncclUniqueId id;
    ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess)
        return result;
    for (int i = 0; i < n; i++) {
        out[i] = open_comm(id.internal, n, i, list ? list[i] : i, n, true);
        if (!out[i])
            result = ncclSystemError;
    }
    for (int i = 0; i < n; i++) {
        if (!out[i])
            continue;
        if (result == ncclSystemError)
            hc_room_abort(out[i]->room);
        stop_starter(out[i]);
        if (result == ncclSuccess)
            result = (ncclResult_t)atomic_load(&out[i]->state);
    }
    for (int i = 0; i < n && result != ncclSuccess; i++) {
        if (out[i])
            drop(out[i]);
        out[i] = NULL;
    }
    return result;
}

ncclResult_t ncclGroupStart(void); /* nccl.h says () */
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void)
{
    NCCL_ENTER();
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    NCCL_ENTER();
    if (depth == 0)
        return reject(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--depth > 0)
        return ncclSuccess;
    ncclResult_t result = ncclSuccess;
    for (unsigned i = 0; i < opened_count; i++) {
        stop_starter(opened[i]);
        if (result == ncclSuccess)
            result = (ncclResult_t)atomic_load(&opened[i]->state);
    }
    opened_count = 0;
    collective *c = first;
    first = NULL;
    last = NULL;
    while (c) {
        collective *next = c->next;
        ncclResult_t posted = post(c);
        result = result == ncclSuccess ? posted : result;
        c = next;
    }
    return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result)
{
    NCCL_ENTER();
    if (!comm)
        return reject(ncclInvalidArgument, "ncclCommGetAsyncError: no communicator");
    pthread_mutex_lock(&comm->mutex);
    bool finalizing = atomic_load(&comm->finalizing) && comm->pending > 0;
    pthread_mutex_unlock(&comm->mutex);
    int state = atomic_load(&comm->state);
    *result = state == ncclSuccess && finalizing ? ncclInProgress : (ncclResult_t)state;
    return ncclSuccess;
}

static void wait_pending(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->mutex);
    while (comm->pending > 0)
        pthread_cond_wait(&comm->changed, &comm->mutex);
    pthread_mutex_unlock(&comm->mutex);
}

/* The owner is done with it; collectives that are still queued free it. */
static void give_up(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->mutex);
    comm->owned = false;
    bool free_it = comm->pending == 0;
    pthread_mutex_unlock(&comm->mutex);
    if (free_it)
        drop(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    NCCL_ENTER();
    if (!comm || atomic_load(&comm->state) == ncclInProgress)
        return reject(ncclInvalidArgument, "ncclCommFinalize: a communicator that is not ready");
    if (atomic_exchange(&comm->finalizing, true))
        return reject(ncclInvalidArgument, "ncclCommFinalize: called before");
    stop_starter(comm);
    if (!comm->blocking)
        return ncclInProgress; /* ncclCommGetAsyncError says when it is done */
    wait_pending(comm);
    return (ncclResult_t)atomic_load(&comm->state);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    NCCL_ENTER();
    if (!comm)
        return ncclSuccess;
    if (atomic_load(&comm->state) != ncclSuccess)
        hc_report("nccl: ncclCommDestroy of rank %d, whose state is \"%s\": it may hang; ncclCommAbort is for that", comm->rank,
                  ncclGetErrorString((ncclResult_t)atomic_load(&comm->state)));
    stop_starter(comm);
    wait_pending(comm);
    give_up(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    NCCL_ENTER();
    if (!comm)
        return ncclSuccess;
    atomic_store(&comm->aborted, true);
    hc_room_abort(comm->room);
    stop_starter(comm);
    hc_room_close(comm->name);
    give_up(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *ranks)
{
    NCCL_ENTER();
    *ranks = comm->ranks;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    NCCL_ENTER();
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    NCCL_ENTER();
    *device = comm->device;
    return ncclSuccess;
}
