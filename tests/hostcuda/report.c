/* Settings, findings, planned failures, the last error and errors that stick. */
#include "internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PLANS = 8 };

typedef struct plan {
    char function[48];
    unsigned long nth;
    int error; /* -1: what the function most likely fails with */
    bool hangs;
    atomic_ulong calls;
} plan;

static hc_settings setting;
static plan plans[MAX_PLANS];
static unsigned plan_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local cudaError_t last_error;
static _Thread_local bool in_callback;
static atomic_int fault[HC_MAX_DEVICES];
unsigned long hc_reports;

static _Noreturn void reject(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "hostcuda: %s=%s: expected %s\n", name, value, expected);
    abort();
}

static long number(const char *name, long otherwise, long least, long most)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return otherwise;
    char *end, expected[64];
    long value = strtol(text, &end, 10);
    if (*end || value < least || value > most) {
        snprintf(expected, sizeof expected, "a number from %ld to %ld", least, most);
        reject(name, text, expected);
    }
    return value;
}

static void read_plans(void)
{
    static const char form[] = "function:n[:error], separated by commas, at most 8";
    const char *text = getenv("HC_FAIL");
    plan_count = 0;
    for (const char *at = text; at && *at;) {
        size_t length = strcspn(at, ","), name = strcspn(at, ":");
        plan *p = &plans[plan_count];
        if (plan_count == MAX_PLANS || name == 0 || name >= length || name >= sizeof p->function)
            reject("HC_FAIL", text, form);
        memcpy(p->function, at, name);
        p->function[name] = 0;
        char *end;
        p->nth = strtoul(at + name + 1, &end, 10);
        p->hangs = strncmp(end, ":hang", 5) == 0;
        if (p->hangs)
            end += 5;
        p->error = *end == ':' ? (int)strtol(end + 1, &end, 10) : -1;
        atomic_store(&p->calls, 0);
        if (end != at + length || p->nth == 0 || p->error == 0)
            reject("HC_FAIL", text, form);
        plan_count++;
        at += length + (at[length] == ',');
    }
}

/* What was never freed is a finding too, but only for those who ask: not every program tidies up before it ends. */
void hc_report_leaks(void)
{
    if (setting.strict < 2)
        return;
    for (int d = 0; d < HC_MAX_DEVICES; d++)
        if (hc_memory_used(d) > 0)
            hc_report("end of program: %zu bytes of device %d were never freed", hc_memory_used(d), d);
    if (hc_live_streams() > 0 || hc_live_events() > 0)
        hc_report("end of program: %u streams and %u events were never destroyed", hc_live_streams(), hc_live_events());
}

static void read_settings(void)
{
    setting = (hc_settings){
        .devices = (int)number("HC_DEVICES", 1, 0, HC_MAX_DEVICES),
        .memory = (size_t)number("HC_MEM_MB", 4096, 0, 1 << 20) << 20,
        .order = (int)number("HC_SCHED", 0, 0, 2),
        .seed = (unsigned)number("HC_SEED", 1, 0, 0x7fffffff),
        .delay_us = (unsigned)number("HC_DELAY_US", 0, 0, 1000000),
        .guard = number("HC_GUARD", 1, 0, 1) != 0,
        .strict = (int)number("HC_STRICT", 1, 0, 2),
        .abort = number("HC_ABORT", 0, 0, 1) != 0,
        .nccl_timeout = (unsigned)number("HC_NCCL_TIMEOUT", 10, 0, 3600),
    };
    read_plans();
}

const hc_settings *hc_setting(void)
{
    pthread_once(&once, read_settings);
    return &setting;
}

void hc_configure(void)
{
    hc_setting();
    read_settings();
}

void hc_report(const char *format, ...)
{
    char text[600];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "hostcuda: %s\n", text); /* one call: lines of several threads do not mix */
    __atomic_add_fetch(&hc_reports, 1, __ATOMIC_RELAXED);
    if (hc_setting()->abort)
        abort();
}

cudaError_t hc_planned_failure(const char *function)
{
    hc_setting();
    for (unsigned i = 0; i < plan_count; i++) {
        plan *p = &plans[i];
        if (strcmp(p->function, function) != 0 || atomic_fetch_add_explicit(&p->calls, 1, memory_order_relaxed) + 1 != p->nth)
            continue;
        while (p->hangs)
            pause();
        if (p->error > 0)
            return (cudaError_t)p->error;
        if (strcmp(function, "kernel") == 0)
            return cudaErrorIllegalAddress;
        return strstr(function, "alloc") || strstr(function, "Alloc") ? cudaErrorMemoryAllocation : cudaErrorUnknown;
    }
    return cudaSuccess;
}

cudaError_t hc_fail(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

bool hc_is_sticky(cudaError_t error)
{
    switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
        return true;
    default:
        return false;
    }
}

void hc_set_fault(int device, cudaError_t error)
{
    int none = 0;
    atomic_compare_exchange_strong(&fault[device], &none, (int)error);
}

cudaError_t hc_fault(int device)
{
    return (cudaError_t)atomic_load_explicit(&fault[device], memory_order_relaxed);
}

cudaError_t hc_enter(const char *function)
{
    if (in_callback)
        hc_report("%s called from a host function of a stream: it may not call CUDA", function);
    cudaError_t error = hc_planned_failure(function);
    if (hc_is_sticky(error))
        hc_set_fault(hc_device(), error);
    if (error == cudaSuccess)
        error = hc_fault(hc_device());
    return hc_fail(error);
}

void hc_set_in_callback(bool inside)
{
    in_callback = inside;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return hc_fault(hc_device()) != cudaSuccess ? hc_fault(hc_device()) : last_error;
}

/* Names and meanings: CUDA Runtime API 13.0, cudaError. */
#define ERRORS(ROW)                                                                                                                        \
    ROW(cudaSuccess, "no error")                                                                                                           \
    ROW(cudaErrorInvalidValue, "invalid argument")                                                                                         \
    ROW(cudaErrorMemoryAllocation, "out of memory")                                                                                        \
    ROW(cudaErrorInitializationError, "initialization error")                                                                              \
    ROW(cudaErrorInvalidConfiguration, "invalid configuration argument")                                                                   \
    ROW(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                                                              \
    ROW(cudaErrorStubLibrary, "CUDA driver is a stub library")                                                                             \
    ROW(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")                                       \
    ROW(cudaErrorNoDevice, "no CUDA-capable device is detected")                                                                           \
    ROW(cudaErrorInvalidDeviceFunction, "invalid device function")                                                                         \
    ROW(cudaErrorInvalidDevice, "invalid device ordinal")                                                                                  \
    ROW(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")                                                                  \
    ROW(cudaErrorInvalidResourceHandle, "invalid resource handle")                                                                         \
    ROW(cudaErrorNotReady, "device not ready")                                                                                             \
    ROW(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device")                                       \
    ROW(cudaErrorIllegalAddress, "an illegal memory access was encountered")                                                               \
    ROW(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                                                          \
    ROW(cudaErrorLaunchTimeout, "the launch timed out and was terminated")                                                                 \
    ROW(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")                                          \
    ROW(cudaErrorAssert, "device-side assert triggered")                                                                                   \
    ROW(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped")                               \
    ROW(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region")                                     \
    ROW(cudaErrorHardwareStackError, "hardware stack error")                                                                               \
    ROW(cudaErrorIllegalInstruction, "an illegal instruction was encountered")                                                             \
    ROW(cudaErrorMisalignedAddress, "misaligned address")                                                                                  \
    ROW(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space")                                            \
    ROW(cudaErrorInvalidPc, "invalid program counter")                                                                                     \
    ROW(cudaErrorLaunchFailure, "unspecified launch failure")                                                                              \
    ROW(cudaErrorNotPermitted, "operation not permitted")                                                                                  \
    ROW(cudaErrorNotSupported, "operation not supported")                                                                                  \
    ROW(cudaErrorUnknown, "unknown error")
static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
#define ROW(error, text) {error, #error, text},
    ERRORS(ROW)
#undef ROW
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "unrecognized error code";
}
