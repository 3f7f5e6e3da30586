/* hostcuda's parts to each other, and what tests may ask: report.c (settings, findings, errors), device.c, memory.c, stream.c, exec.cpp.
 * The environment is read at the first call; README.md lists the variables. */
#ifndef HC_INTERNAL_H
#define HC_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#if defined(__SANITIZE_ADDRESS__)
#define HC_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HC_ASAN 1
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HC_EXPORT __attribute__((visibility("default")))

enum { HC_MAX_DEVICES = 16, HC_PINNED = -1, HC_PAGEABLE = -2 };

typedef struct hc_settings {
    int devices;
    size_t memory;         /* bytes of each device */
    int order;             /* 0 forward, 1 reverse, 2 random */
    unsigned seed;         /* of 2 and of the streams' delays */
    unsigned delay_us;     /* longest random delay before each piece of a stream's work */
    bool guard;            /* device memory is out of bounds for the host (address sanitizer) */
    int strict;            /* 0: threads may exit before a barrier; 2: what is left at the program's end is reported */
    bool abort;            /* at the first finding */
    unsigned nccl_timeout; /* seconds until ranks that wait are reported */
} hc_settings;
const hc_settings *hc_setting(void);

/* What .cu files call of the runtime; visible as HC_RIG is (hostcuda.h). */
HC_EXPORT cudaError_t cudaGetLastError(void);
HC_EXPORT cudaError_t cudaPeekAtLastError(void);
HC_EXPORT cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value);
HC_EXPORT cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel);

/* Findings so far: anything a correct program never does. One line on stderr each. */
HC_EXPORT extern unsigned long hc_reports;
/* Reads the environment again, with all counters of HC_FAIL at 0. No other thread may be in the runtime. */
HC_EXPORT void hc_configure(void);

void hc_report_leaks(void); /* what is left at the end, if HC_STRICT asks for it */
void hc_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What every function of the runtime begins with: HC_FAIL, a call from a host function of a stream, the error a device is stuck in. */
cudaError_t hc_enter(const char *function);
#define HC_ENTER()                                                                                                                         \
    do {                                                                                                                                   \
        cudaError_t hc_error = hc_enter(__func__);                                                                                         \
        if (hc_error != cudaSuccess)                                                                                                       \
            return hc_error;                                                                                                               \
    } while (0)
/* The error HC_FAIL asks of this call, or success; does not record it. */
cudaError_t hc_planned_failure(const char *function);
/* Records an error for cudaGetLastError and returns it. */
cudaError_t hc_fail(cudaError_t error);
/* An error that nothing but the end of the process clears (CUDA Runtime API, cudaError). */
bool hc_is_sticky(cudaError_t error);
void hc_set_fault(int device, cudaError_t error);
cudaError_t hc_fault(int device);

/* The calling thread's. */
int hc_device(void);
void hc_bind_device(int device);
void hc_set_in_callback(bool inside);

/* Where a pointer points: a device, HC_PINNED, or HC_PAGEABLE (anything else). left: bytes from it to the end of its block. */
int hc_locate(const void *p, size_t *left);
bool hc_was_freed(const void *p); /* was lately a device's */
size_t hc_memory_used(int device);
/* Device work begins and ends: the host may touch the device's memory only between them (it is the device then). */
void hc_open_memory(int device);
void hc_close_memory(int device);

/* Puts work on a stream; it runs on that stream's thread. Skipped once the device is stuck in an error, unless `always`. */
typedef void (*hc_work)(void *argument, bool skipped);
cudaError_t hc_enqueue(cudaStream_t stream, hc_work run, void *argument, bool always);
/* The device of a stream, or -1 with a report if there is no such stream. */
int hc_stream_device(cudaStream_t stream);
cudaError_t hc_drain_stream(cudaStream_t stream);
void hc_drain_device(int device);
/* For the end of the program. */
unsigned hc_live_streams(void), hc_live_events(void);

/* Frees what the executor keeps from grid to grid. No stream may be working. */
void hc_free_executor(void);
/* cudaFuncSetAttribute's dynamic shared memory of a kernel. */
size_t hc_shared_limit(const void *kernel);

/* Order as the thread sanitizer sees it. The rig's own locks are hidden from it, since a GPU has no such thing: work is ordered by what
 * the program asked for alone. hc_release and hc_acquire say where: what came before a release of an address comes before what follows an
 * acquire of it. That is why the runtime is compiled without the sanitizer; the copies it makes are seen all the same (memmove). */
#ifdef HC_TSAN
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define hc_acquire(address) __tsan_acquire(address)
#define hc_release(address) __tsan_release(address)
#else
#define AnnotateIgnoreSyncBegin(file, line)   ((void)0)
#define AnnotateIgnoreSyncEnd(file, line)     ((void)0)
#define AnnotateIgnoreWritesBegin(file, line) ((void)0)
#define AnnotateIgnoreWritesEnd(file, line)   ((void)0)
#define hc_acquire(address)                   ((void)(address))
#define hc_release(address)                   ((void)(address))
#endif
static inline void hc_lock(pthread_mutex_t *lock)
{
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    pthread_mutex_lock(lock);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}
static inline void hc_unlock(pthread_mutex_t *lock)
{
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    pthread_mutex_unlock(lock);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}
static inline void hc_wait(pthread_cond_t *changed, pthread_mutex_t *lock)
{
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    pthread_cond_wait(changed, lock);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

#ifdef __cplusplus
}
#endif
#endif
