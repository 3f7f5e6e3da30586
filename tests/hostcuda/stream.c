/* Streams and events. A stream is a thread with a queue; work of two streams has no order but what events give it, which is what the
 * thread sanitizer then checks. The default stream of a device waits for that device's blocking streams and they for it (CUDA C++
 * Programming Guide, "Default Stream"), by events of its own. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct work {
    struct work *next;
    hc_work run;
    void *argument;
    bool always;
} work;

struct CUstream_st {
    int device;
    unsigned flags;
    bool stop;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    work *first, **last;
    uint64_t put, done;
    struct CUstream_st *next;
};

/* One recording of an event. Who waits for it holds it, so the event may be recorded anew or destroyed meanwhile. */
typedef struct mark {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool reached;
    unsigned holders;
    int device;
    struct timespec time;
} mark;

struct CUevent_st {
    unsigned flags;
    int device;
    pthread_mutex_t mutex;
    mark *mark; /* NULL: never recorded */
    struct CUevent_st *next;
};

static struct {
    struct CUstream_st *named, *standard;
} devices[HC_MAX_DEVICES];
static struct CUevent_st *events;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists */

static bool is_standard(cudaStream_t s)
{
    return s == NULL || s == cudaStreamLegacy;
}

static void *work_through(void *self)
{
    struct CUstream_st *s = self;
    unsigned random = hc_setting()->seed + (unsigned)s->device;
    bool open = false;
    hc_bind_device(s->device);
    hc_lock(&s->mutex);
    for (;;) {
        while (!s->first && !s->stop)
            hc_wait(&s->changed, &s->mutex);
        if (!s->first)
            break;
        work *w = s->first;
        s->first = w->next;
        if (!s->first)
            s->last = &s->first;
        hc_unlock(&s->mutex);
        hc_acquire(w);
        if (hc_setting()->delay_us)
            usleep((useconds_t)((unsigned)rand_r(&random) % hc_setting()->delay_us));
        if (!open && !w->always) {
            hc_open_memory(s->device);
            open = true;
        }
        w->run(w->argument, !w->always && hc_fault(s->device) != cudaSuccess);
        free(w);
        hc_release(s);
        hc_lock(&s->mutex);
        if (open && !s->first) { /* before anyone learns that it is done, so that what the host then touches is found every time */
            hc_close_memory(s->device);
            open = false;
        }
        s->done++;
        pthread_cond_broadcast(&s->changed);
    }
    hc_unlock(&s->mutex);
    return NULL;
}

static struct CUstream_st *stream_new(int device, unsigned flags)
{
    struct CUstream_st *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->device = device;
    s->flags = flags;
    s->last = &s->first;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (pthread_create(&s->thread, NULL, work_through, s) != 0) {
        free(s);
        return NULL;
    }
    return s;
}

static void stream_stop(struct CUstream_st *s)
{
    hc_lock(&s->mutex);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    hc_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->changed);
    free(s);
}

/* At the program's end, or where a plugin is unloaded: threads must not outlive the code they run. One that still works (hangs, perhaps) is
 * left alone, and what it uses with it. */
__attribute__((destructor)) static void finish(void)
{
    hc_report_leaks();
    bool all = hc_live_streams() == 0;
    for (int d = 0; d < HC_MAX_DEVICES; d++) {
        struct CUstream_st *s = devices[d].standard;
        if (!s)
            continue;
        hc_lock(&s->mutex);
        bool idle = s->put == s->done;
        hc_unlock(&s->mutex);
        if (idle)
            stream_stop(s);
        all &= idle;
        devices[d].standard = NULL;
    }
    if (all)
        hc_free_executor();
}

/* The stream behind a handle, or NULL after a report. */
static struct CUstream_st *resolve(cudaStream_t handle)
{
    struct CUstream_st *found = NULL;
    hc_lock(&lock);
    if (is_standard(handle)) {
        int at = hc_device();
        if (!devices[at].standard)
            devices[at].standard = stream_new(at, 0);
        found = devices[at].standard;
    } else {
        for (int d = 0; d < HC_MAX_DEVICES && !found; d++)
            for (struct CUstream_st *s = devices[d].named; s && !found; s = s->next)
                found = s == handle ? s : NULL;
    }
    hc_unlock(&lock);
    if (!found)
        hc_report("%p is no stream: destroyed, or never created", (void *)handle);
    return found;
}

int hc_stream_device(cudaStream_t handle)
{
    if (is_standard(handle))
        return hc_device();
    struct CUstream_st *s = resolve(handle);
    return s ? s->device : -1;
}

static cudaError_t append(struct CUstream_st *s, hc_work run, void *argument, bool always)
{
    work *w = malloc(sizeof *w);
    if (!w)
        return cudaErrorMemoryAllocation;
    *w = (work){.run = run, .argument = argument, .always = always};
    hc_release(w);
    hc_lock(&s->mutex);
    *s->last = w;
    s->last = &w->next;
    s->put++;
    pthread_cond_broadcast(&s->changed);
    hc_unlock(&s->mutex);
    return cudaSuccess;
}

static mark *mark_new(int device)
{
    mark *m = calloc(1, sizeof *m);
    if (m) {
        pthread_mutex_init(&m->mutex, NULL);
        pthread_cond_init(&m->changed, NULL);
        m->holders = 1;
        m->device = device;
    }
    return m;
}

static mark *mark_hold(mark *m)
{
    hc_lock(&m->mutex);
    m->holders++;
    hc_unlock(&m->mutex);
    return m;
}

static void mark_drop(mark *m)
{
    if (!m)
        return;
    hc_lock(&m->mutex);
    bool last = --m->holders == 0;
    hc_unlock(&m->mutex);
    if (last) {
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__); /* those who held it have no order among each other */
        pthread_mutex_destroy(&m->mutex);
        pthread_cond_destroy(&m->changed);
        free(m);
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    }
}

static void mark_await(mark *m)
{
    hc_lock(&m->mutex);
    while (!m->reached)
        hc_wait(&m->changed, &m->mutex);
    hc_unlock(&m->mutex);
    hc_acquire(m);
}

static void run_reach(void *argument, bool skipped)
{
    mark *m = argument;
    (void)skipped;
    hc_release(m);
    hc_lock(&m->mutex);
    clock_gettime(CLOCK_MONOTONIC, &m->time);
    m->reached = true;
    pthread_cond_broadcast(&m->changed);
    hc_unlock(&m->mutex);
    mark_drop(m);
}

static void run_await(void *argument, bool skipped)
{
    (void)skipped;
    mark_await(argument);
    mark_drop(argument);
}

/* `later` goes on only after what `earlier` has been given so far. */
static cudaError_t order(struct CUstream_st *earlier, struct CUstream_st *later)
{
    hc_lock(&earlier->mutex);
    bool idle = earlier->put == earlier->done;
    hc_unlock(&earlier->mutex);
    if (idle)
        return cudaSuccess;
    mark *m = mark_new(earlier->device);
    if (!m)
        return cudaErrorMemoryAllocation;
    cudaError_t error = append(earlier, run_reach, mark_hold(m), true);
    if (error == cudaSuccess)
        error = append(later, run_await, mark_hold(m), true);
    mark_drop(m);
    return error;
}

static cudaError_t order_with_standard(struct CUstream_st *s)
{
    struct CUstream_st *others[64];
    unsigned n = 0;
    hc_lock(&lock);
    if (s == devices[s->device].standard) {
        for (struct CUstream_st *o = devices[s->device].named; o && n < 64; o = o->next)
            if (!(o->flags & cudaStreamNonBlocking))
                others[n++] = o;
    } else if (!(s->flags & cudaStreamNonBlocking) && devices[s->device].standard) {
        others[n++] = devices[s->device].standard;
    }
    hc_unlock(&lock);
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < n && error == cudaSuccess; i++)
        error = order(others[i], s);
    return error;
}

cudaError_t hc_enqueue(cudaStream_t handle, hc_work run, void *argument, bool always)
{
    struct CUstream_st *s = resolve(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (s->device != hc_device())
        hc_report("work for a stream of device %d while device %d is current", s->device, hc_device());
    cudaError_t error = order_with_standard(s);
    return error == cudaSuccess ? append(s, run, argument, always) : error;
}

static void drain(struct CUstream_st *s)
{
    hc_lock(&s->mutex);
    for (uint64_t until = s->put; s->done < until;)
        hc_wait(&s->changed, &s->mutex);
    hc_unlock(&s->mutex);
    hc_acquire(s);
}

cudaError_t hc_drain_stream(cudaStream_t handle)
{
    struct CUstream_st *s = resolve(handle);
    if (!s)
        return hc_fail(cudaErrorInvalidResourceHandle);
    drain(s);
    return hc_fail(hc_fault(s->device));
}

void hc_drain_device(int device)
{
    struct CUstream_st *all[64];
    unsigned n = 0;
    hc_lock(&lock);
    for (struct CUstream_st *s = devices[device].named; s && n < 63; s = s->next)
        all[n++] = s;
    if (devices[device].standard)
        all[n++] = devices[device].standard;
    hc_unlock(&lock);
    for (unsigned i = 0; i < n; i++)
        drain(all[i]);
}

unsigned hc_live_streams(void)
{
    unsigned n = 0;
    for (int d = 0; d < HC_MAX_DEVICES; d++)
        for (struct CUstream_st *s = devices[d].named; s; s = s->next)
            n++;
    return n;
}

unsigned hc_live_events(void)
{
    unsigned n = 0;
    for (struct CUevent_st *e = events; e; e = e->next)
        n++;
    return n;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    HC_ENTER();
    if (flags & ~(unsigned)cudaStreamNonBlocking)
        return hc_fail(cudaErrorInvalidValue);
    struct CUstream_st *s = stream_new(hc_device(), flags);
    if (!s)
        return hc_fail(cudaErrorMemoryAllocation);
    hc_lock(&lock);
    s->next = devices[s->device].named;
    devices[s->device].named = s;
    hc_unlock(&lock);
    *out = s;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    (void)priority; /* a hint */
    return cudaStreamCreateWithFlags(out, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    HC_ENTER();
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

/* Waits for the stream's work, where the real one lets it go on by itself. */
cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    HC_ENTER();
    struct CUstream_st *s = is_standard(handle) ? NULL : resolve(handle);
    if (!s)
        return hc_fail(cudaErrorInvalidResourceHandle);
    hc_lock(&lock);
    struct CUstream_st **link = &devices[s->device].named;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    hc_unlock(&lock);
    stream_stop(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    HC_ENTER();
    return hc_drain_stream(handle);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    HC_ENTER();
    struct CUstream_st *s = resolve(handle);
    if (!s)
        return hc_fail(cudaErrorInvalidResourceHandle);
    hc_lock(&s->mutex);
    bool busy = s->done < s->put;
    hc_unlock(&s->mutex);
    if (busy)
        return cudaErrorNotReady;
    hc_acquire(s);
    return hc_fail(hc_fault(s->device));
}

cudaError_t cudaDeviceSynchronize(void)
{
    HC_ENTER();
    hc_drain_device(hc_device());
    return hc_fail(hc_fault(hc_device()));
}

typedef struct callback {
    cudaHostFn_t run;
    void *argument;
} callback;

static void run_callback(void *argument, bool skipped)
{
    callback *c = argument;
    if (!skipped) {
        hc_set_in_callback(true);
        c->run(c->argument);
        hc_set_in_callback(false);
    }
    free(c);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t run, void *argument)
{
    HC_ENTER();
    callback *c = malloc(sizeof *c);
    if (!c)
        return hc_fail(cudaErrorMemoryAllocation);
    *c = (callback){run, argument};
    cudaError_t error = hc_enqueue(handle, run_callback, c, false);
    if (error != cudaSuccess)
        free(c);
    return hc_fail(error);
}

/* An event's latest mark, held; NULL: never recorded. False after a report: no such event. */
static bool latest(cudaEvent_t e, mark **out)
{
    bool found = false;
    hc_lock(&lock);
    for (struct CUevent_st *at = events; at && !found; at = at->next)
        found = at == e;
    hc_unlock(&lock);
    if (!found) {
        hc_report("%p is no event: destroyed, or never created", (void *)e);
        return false;
    }
    hc_lock(&e->mutex);
    *out = e->mark ? mark_hold(e->mark) : NULL;
    hc_unlock(&e->mutex);
    return true;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    HC_ENTER();
    struct CUevent_st *e = calloc(1, sizeof *e);
    if (!e)
        return hc_fail(cudaErrorMemoryAllocation);
    e->flags = flags;
    e->device = hc_device();
    pthread_mutex_init(&e->mutex, NULL);
    hc_lock(&lock);
    e->next = events;
    events = e;
    hc_unlock(&lock);
    *out = e;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    HC_ENTER();
    mark *m;
    if (!latest(e, &m))
        return hc_fail(cudaErrorInvalidResourceHandle);
    mark_drop(m);
    hc_lock(&lock);
    struct CUevent_st **link = &events;
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    hc_unlock(&lock);
    mark_drop(e->mark);
    pthread_mutex_destroy(&e->mutex);
    free(e);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t handle)
{
    HC_ENTER();
    mark *before;
    struct CUstream_st *s = resolve(handle);
    if (!s || !latest(e, &before))
        return hc_fail(cudaErrorInvalidResourceHandle);
    mark_drop(before);
    if (e->device != s->device) {
        hc_report("cudaEventRecord: an event of device %d on a stream of device %d", e->device, s->device);
        return hc_fail(cudaErrorInvalidResourceHandle);
    }
    mark *m = mark_new(s->device);
    if (!m)
        return hc_fail(cudaErrorMemoryAllocation);
    hc_lock(&e->mutex);
    before = e->mark;
    e->mark = m;
    mark_hold(m);
    hc_unlock(&e->mutex);
    mark_drop(before);
    return hc_fail(hc_enqueue(handle, run_reach, m, true));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t e, unsigned flags)
{
    HC_ENTER();
    mark *m;
    if (flags & ~(unsigned)cudaEventWaitExternal)
        return hc_fail(cudaErrorInvalidValue);
    if (!latest(e, &m))
        return hc_fail(cudaErrorInvalidResourceHandle);
    return m ? hc_fail(hc_enqueue(handle, run_await, m, true)) : cudaSuccess; /* an event that was never recorded is as if reached */
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    HC_ENTER();
    mark *m;
    if (!latest(e, &m))
        return hc_fail(cudaErrorInvalidResourceHandle);
    if (!m)
        return cudaSuccess;
    mark_await(m);
    mark_drop(m);
    return hc_fail(hc_fault(e->device));
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    HC_ENTER();
    mark *m;
    if (!latest(e, &m))
        return hc_fail(cudaErrorInvalidResourceHandle);
    if (!m)
        return cudaSuccess;
    hc_lock(&m->mutex);
    bool reached = m->reached;
    hc_unlock(&m->mutex);
    if (reached)
        hc_acquire(m);
    mark_drop(m);
    return reached ? hc_fail(hc_fault(e->device)) : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    HC_ENTER();
    mark *m[2] = {NULL, NULL};
    struct timespec t[2];
    cudaError_t error = cudaSuccess;
    if (!latest(begin, &m[0]) || !latest(end, &m[1]) || !m[0] || !m[1] || ((begin->flags | end->flags) & cudaEventDisableTiming))
        error = cudaErrorInvalidResourceHandle;
    for (int i = 0; i < 2 && error == cudaSuccess; i++) {
        hc_lock(&m[i]->mutex);
        if (!m[i]->reached)
            error = cudaErrorNotReady;
        t[i] = m[i]->time;
        hc_unlock(&m[i]->mutex);
    }
    mark_drop(m[0]);
    mark_drop(m[1]);
    if (error == cudaSuccess)
        *ms = (float)((double)(t[1].tv_sec - t[0].tv_sec) * 1e3 + (double)(t[1].tv_nsec - t[0].tv_nsec) * 1e-6);
    return hc_fail(error);
}
