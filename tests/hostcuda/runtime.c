/* labels: threads */
/* The CUDA runtime's rules as the rig keeps them: what streams and events order, when a copy returns, what memory there is, how errors come
 * and go. Settings that end the program are tried in processes of their own, `runtime <case>`. */
#include "internal.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "test_planted.h"

enum { N = 64, BYTES = N * sizeof(float) };

static cudaStream_t one, two;
static float *device_a, *device_b, *pinned;

static void configure(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
    hc_configure();
}

/* Holds a stream up until it is opened. */
static void wait_open(void *gate)
{
    while (!atomic_load((atomic_int *)gate))
        usleep(200);
}

static void hold(cudaStream_t stream, atomic_int *gate)
{
    atomic_store(gate, 0);
    CHECK_EQ(cudaLaunchHostFunc(stream, wait_open, gate), cudaSuccess);
}

static void set_up(void)
{
    cudaSetDevice(0);
    CHECK_EQ(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), cudaSuccess);
    CHECK_EQ(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking), cudaSuccess);
    CHECK_EQ(cudaMalloc((void **)&device_a, BYTES), cudaSuccess);
    CHECK_EQ(cudaMalloc((void **)&device_b, BYTES), cudaSuccess);
    CHECK_EQ(cudaMallocHost((void **)&pinned, BYTES), cudaSuccess);
}

static void tear_down(unsigned left)
{
    CHECK_EQ(cudaFree(device_a), cudaSuccess);
    CHECK_EQ(cudaFree(device_b), cudaSuccess);
    CHECK_EQ(cudaFreeHost(pinned), cudaSuccess);
    CHECK_EQ(cudaStreamDestroy(one), cudaSuccess);
    CHECK_EQ(cudaStreamDestroy(two), cudaSuccess);
    CHECK_EQ(hc_live_streams() + hc_live_events(), left);
    CHECK_EQ(hc_memory_used(0), 0);
}

/* Every element is v. */
static int all_are(const float *x, float v)
{
    int right = 0;
    for (int i = 0; i < N; i++)
        right += x[i] == v;
    return right == N;
}

static void fetch(float *to, const float *from, cudaStream_t stream)
{
    CHECK_EQ(cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

static void events(void)
{
    atomic_int gate;
    cudaEvent_t e, begin, end, untimed;
    float host[N], ms = -1;
    CHECK_EQ(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), cudaSuccess);
    CHECK_EQ(cudaEventCreate(&begin), cudaSuccess);
    CHECK_EQ(cudaEventCreate(&end), cudaSuccess);
    CHECK_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);

    CHECK_EQ(cudaEventQuery(e), cudaSuccess); /* never recorded: as if reached */
    CHECK_EQ(cudaEventSynchronize(e), cudaSuccess);
    CHECK_EQ(cudaStreamWaitEvent(two, e, 0), cudaSuccess);
    CHECK_EQ(cudaEventRecord(begin, one), cudaSuccess);
    CHECK_EQ(cudaEventSynchronize(begin), cudaSuccess);
    hold(one, &gate);
    CHECK_EQ(planted_fill(one, device_a, 3.0f), cudaSuccess);
    CHECK_EQ(cudaEventRecord(e, one), cudaSuccess);
    CHECK_EQ(cudaStreamWaitEvent(two, e, 0), cudaSuccess);
    CHECK_EQ(planted_copy(two, device_a, device_b), cudaSuccess);
    CHECK_EQ(cudaEventQuery(e), cudaErrorNotReady);
    CHECK_EQ(cudaStreamQuery(one), cudaErrorNotReady);
    CHECK_EQ(cudaStreamQuery(two), cudaErrorNotReady);
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess); /* "not ready" is no error */
    CHECK_EQ(cudaEventElapsedTime(&ms, begin, end), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    usleep(20000);
    atomic_store(&gate, 1);
    fetch(host, device_b, two);
    CHECK(all_are(host, 3.0f));
    CHECK_EQ(cudaEventQuery(e), cudaSuccess);
    CHECK_EQ(cudaEventRecord(end, one), cudaSuccess);
    CHECK_EQ(cudaEventSynchronize(end), cudaSuccess);
    CHECK_EQ(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
    CHECK(ms >= 20.0f && ms < 60000.0f);
    CHECK_EQ(cudaEventElapsedTime(&ms, begin, untimed), cudaErrorInvalidResourceHandle);
    cudaGetLastError();

    /* a wait is for the recording it was given, whatever becomes of the event */
    CHECK_EQ(planted_fill(one, device_a, 4.0f), cudaSuccess);
    CHECK_EQ(cudaEventRecord(e, one), cudaSuccess);
    CHECK_EQ(cudaStreamWaitEvent(two, e, 0), cudaSuccess);
    hold(one, &gate);
    CHECK_EQ(cudaEventRecord(e, one), cudaSuccess);
    CHECK_EQ(cudaEventDestroy(e), cudaSuccess);
    fetch(host, device_a, two);
    CHECK(all_are(host, 4.0f));
    atomic_store(&gate, 1);
    CHECK_EQ(cudaStreamSynchronize(one), cudaSuccess); /* who waits at the gate has seen it open */
    CHECK_EQ(cudaEventDestroy(begin), cudaSuccess);
    CHECK_EQ(cudaEventDestroy(end), cudaSuccess);
    CHECK_EQ(cudaEventDestroy(untimed), cudaSuccess);
}

/* The default stream and blocking streams wait for each other; streams that are not blocking take no part. */
static void default_stream(void)
{
    atomic_int gate;
    cudaStream_t blocking;
    float host[N];
    CHECK_EQ(cudaStreamCreate(&blocking), cudaSuccess);
    hold(blocking, &gate);
    CHECK_EQ(planted_fill(blocking, device_a, 5.0f), cudaSuccess);
    CHECK_EQ(planted_copy(NULL, device_a, device_b), cudaSuccess);
    CHECK_EQ(cudaStreamQuery(NULL), cudaErrorNotReady);
    CHECK_EQ(planted_fill(one, device_a + 0, 9.0f), cudaSuccess); /* goes on at once */
    CHECK_EQ(cudaStreamSynchronize(one), cudaSuccess);
    atomic_store(&gate, 1);
    fetch(host, device_b, NULL);
    CHECK(all_are(host, 5.0f));
    hold(NULL, &gate);
    CHECK_EQ(planted_fill(NULL, device_a, 6.0f), cudaSuccess);
    CHECK_EQ(planted_copy(blocking, device_a, device_b), cudaSuccess);
    CHECK_EQ(cudaStreamQuery(blocking), cudaErrorNotReady);
    atomic_store(&gate, 1);
    fetch(host, device_b, blocking);
    CHECK(all_are(host, 6.0f));
    CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

/* From pageable memory a copy takes the bytes at once; from pinned memory when it runs. */
static void copies(void)
{
    atomic_int gate;
    float host[N], back[N];
    for (int i = 0; i < N; i++)
        host[i] = pinned[i] = 1.0f;
    hold(one, &gate);
    CHECK_EQ(cudaMemcpyAsync(device_a, host, BYTES, cudaMemcpyHostToDevice, one), cudaSuccess);
    CHECK_EQ(cudaMemcpyAsync(device_b, pinned, BYTES, cudaMemcpyDefault, one), cudaSuccess);
    for (int i = 0; i < N; i++)
        host[i] = 2.0f;
#ifndef __SANITIZE_THREAD__ /* the bug that planted.c has it find */
    for (int i = 0; i < N; i++)
        pinned[i] = 2.0f;
#endif
    atomic_store(&gate, 1);
    CHECK_EQ(cudaMemcpyAsync(back, device_a, BYTES, cudaMemcpyDeviceToHost, one), cudaSuccess);
    CHECK(all_are(back, 1.0f)); /* to pageable memory: there when the call returns */
    CHECK_EQ(cudaMemcpyAsync(back, device_b, BYTES, cudaMemcpyDeviceToHost, one), cudaSuccess);
#ifndef __SANITIZE_THREAD__
    CHECK(all_are(back, 2.0f));
#endif
    CHECK_EQ(cudaMemset(device_a, 0, BYTES), cudaSuccess);
    CHECK_EQ(cudaMemcpy(back, device_a, BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK(all_are(back, 0.0f));

    /* the left half of 4 rows of 8 into rows of 4 */
    for (int i = 0; i < 32; i++)
        host[i] = (float)i;
    CHECK_EQ(cudaMemcpy2DAsync(device_a, 16, host, 32, 16, 4, cudaMemcpyHostToDevice, one), cudaSuccess);
    fetch(back, device_a, one);
    int wrong = 0;
    for (int i = 0; i < 16; i++)
        wrong += back[i] != (float)(i / 4 * 8 + i % 4);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(cudaMemcpy2DAsync(device_a, 8, host, 32, 16, 4, cudaMemcpyHostToDevice, one), cudaErrorInvalidValue);
    cudaGetLastError();

    float *far;
    CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    CHECK_EQ(cudaMalloc((void **)&far, BYTES), cudaSuccess);
    CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    CHECK_EQ(cudaMemcpyPeerAsync(far, 1, device_a, 0, BYTES, one), cudaSuccess);
    CHECK_EQ(cudaMemcpyAsync(device_b, far, BYTES, cudaMemcpyDeviceToDevice, one), cudaSuccess);
    fetch(host, device_b, one);
    CHECK(memcmp(host, back, BYTES) == 0);
    CHECK_EQ(cudaFree(far), cudaSuccess);

    struct cudaPointerAttributes where;
    CHECK_EQ(cudaPointerGetAttributes(&where, device_a + 3), cudaSuccess);
    CHECK(where.type == cudaMemoryTypeDevice && where.device == 0 && !where.hostPointer);
    CHECK_EQ(cudaHostRegister(host, BYTES, 0), cudaSuccess);
    CHECK_EQ(cudaHostRegister(host, BYTES, 0), cudaErrorHostMemoryAlreadyRegistered);
    CHECK_EQ(cudaGetLastError(), cudaErrorHostMemoryAlreadyRegistered);
    CHECK_EQ(cudaPointerGetAttributes(&where, host), cudaSuccess);
    CHECK(where.type == cudaMemoryTypeHost && where.devicePointer == host);
    CHECK_EQ(cudaHostUnregister(host), cudaSuccess);
    CHECK_EQ(cudaPointerGetAttributes(&where, host), cudaSuccess);
    CHECK_EQ(where.type, cudaMemoryTypeUnregistered);
}

static void out_of_memory(void)
{
    size_t free_before, free_after, total;
    void *half, *more, *none;
    configure("HC_MEM_MB", "8");
    CHECK_EQ(cudaMemGetInfo(&free_before, &total), cudaSuccess);
    CHECK_EQ(total, 8 << 20);
    CHECK_EQ(cudaMalloc(&half, (4 << 20) + 1), cudaSuccess);
    CHECK_EQ(cudaMemGetInfo(&free_after, &total), cudaSuccess);
    CHECK_EQ(free_before - free_after, (4 << 20) + 256);
    CHECK_EQ(cudaMalloc(&more, 4 << 20), cudaErrorMemoryAllocation);
    CHECK(more == NULL);
    CHECK_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    CHECK_STR(cudaGetErrorName(cudaGetLastError()), "cudaErrorMemoryAllocation");
    CHECK_EQ(cudaGetLastError(), cudaSuccess);
    CHECK_EQ(cudaMalloc(&more, 3 << 20), cudaSuccess);
    CHECK_EQ(cudaSetDevice(1), cudaSuccess); /* which has its own */
    CHECK_EQ(cudaMalloc(&none, 7 << 20), cudaSuccess);
    CHECK_EQ(cudaFree(none), cudaSuccess);
    CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    CHECK_EQ(cudaFree(half), cudaSuccess);
    CHECK_EQ(cudaFree(more), cudaSuccess);
    CHECK_EQ(cudaMalloc(&none, SIZE_MAX - 10), cudaErrorMemoryAllocation);
    CHECK_EQ(cudaMalloc(&none, 0), cudaSuccess);
    CHECK(none == NULL);
    CHECK_EQ(cudaFree(NULL), cudaSuccess);
    CHECK_EQ(cudaMemGetInfo(&free_after, &total), cudaSuccess);
    CHECK_EQ(free_after, free_before);
    cudaGetLastError();
    configure("HC_MEM_MB", NULL);
}

static void planned_failures(void)
{
    void *p[3];
    float host[N];
    configure("HC_FAIL", "cudaMalloc:2,cudaLaunchKernel:1:701,cudaStreamSynchronize:2");
    CHECK_EQ(cudaMalloc(&p[0], 16), cudaSuccess);
    CHECK_EQ(cudaMalloc(&p[1], 16), cudaErrorMemoryAllocation);
    CHECK_EQ(cudaMalloc(&p[2], 16), cudaSuccess);
    CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_EQ(planted_fill(one, device_a, 1.0f), cudaErrorLaunchOutOfResources);
    CHECK_EQ(planted_fill(one, device_a, 7.0f), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(one), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(one), cudaErrorUnknown);
    CHECK_EQ(cudaStreamSynchronize(one), cudaSuccess);
    CHECK_EQ(cudaGetLastError(), cudaErrorUnknown);
    configure("HC_FAIL", NULL);
    fetch(host, device_a, one);
    CHECK(all_are(host, 7.0f));
    cudaFree(p[0]);
    cudaFree(p[2]);
}

static void described(void)
{
    struct cudaDeviceProp p;
    int value = 0;
    CHECK_EQ(cudaGetDeviceCount(&value), cudaSuccess);
    CHECK_EQ(value, 3);
    CHECK_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    CHECK_EQ(cudaGetDevice(&value), cudaSuccess);
    CHECK_EQ(value, 0);
    CHECK_EQ(cudaGetDeviceProperties(&p, 2), cudaSuccess);
    CHECK_STR(p.name, "hostcuda virtual GPU 2");
    CHECK_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 2), cudaSuccess);
    CHECK_EQ(value, p.major);
    CHECK_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), cudaSuccess);
    CHECK_EQ(value, 227 << 10);
    CHECK_EQ(cudaRuntimeGetVersion(&value), cudaSuccess);
    CHECK_EQ(value, CUDART_VERSION);
    CHECK_STR(cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device is detected");
    CHECK_STR(cudaGetErrorString((cudaError_t)4242), "unrecognized error code");
    configure("HC_DEVICES", "0");
    value = 77;
    CHECK_EQ(cudaGetDeviceCount(&value), cudaErrorNoDevice);
    CHECK_EQ(value, 77);
    CHECK_EQ(cudaGetLastError(), cudaErrorNoDevice);
    configure("HC_DEVICES", "3");
}

/* A kernel that fails while it runs: nothing but the end of the process helps the device. The others go on. Last, therefore. */
static void stuck(void)
{
    atomic_int gate;
    float host[N] = {0};
    cudaEvent_t e;
    cudaStream_t other;
    float *far;
    cudaSetDevice(2);
    CHECK_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    CHECK_EQ(cudaMalloc((void **)&far, BYTES), cudaSuccess);
    CHECK_EQ(cudaEventCreate(&e), cudaSuccess);
    configure("HC_FAIL", "kernel:2");
    CHECK_EQ(planted_fill(other, far, 1.0f), cudaSuccess);
    hold(other, &gate);
    CHECK_EQ(planted_fill(other, far, 2.0f), cudaSuccess); /* the launch itself goes well */
    CHECK_EQ(planted_fill(other, far, 3.0f), cudaSuccess);
    CHECK_EQ(cudaEventRecord(e, other), cudaSuccess);
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    atomic_store(&gate, 1);
    CHECK_EQ(cudaEventSynchronize(e), cudaErrorIllegalAddress); /* and does not hang */
    CHECK_EQ(cudaStreamSynchronize(other), cudaErrorIllegalAddress);
    CHECK_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK_EQ(cudaGetLastError(), cudaErrorIllegalAddress); /* not cleared */
    CHECK_EQ(cudaMemcpy(host, far, BYTES, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
    CHECK_EQ(cudaFree(far), cudaErrorIllegalAddress);
    CHECK_EQ(planted_fill(other, far, 4.0f), cudaErrorIllegalAddress);
    CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    cudaGetLastError();
    CHECK_EQ(planted_fill(one, device_a, 8.0f), cudaSuccess);
    fetch(host, device_a, one);
    CHECK(all_are(host, 8.0f));
    configure("HC_FAIL", NULL);
}

static int run_case(const char *name)
{
    if (strcmp(name, "abort") == 0) {
        float host[N], *out = NULL;
        cudaMalloc((void **)&out, BYTES);
        planted_copy(NULL, host, out);
        cudaDeviceSynchronize();
    } else if (strcmp(name, "lenient") == 0) {
        float *out;
        cudaMalloc((void **)&out, BYTES);
        planted_early_exit(NULL, out);
        cudaDeviceSynchronize();
    } else if (strcmp(name, "attribute") == 0) {
        int value;
        fprintf(stderr, "error %d\n", (int)cudaDeviceGetAttribute(&value, cudaDevAttrMax, 0));
    } else {
        cudaFree(NULL);
    }
    fprintf(stderr, "%lu findings\n", hc_reports);
    return 0;
}

static void settings(void)
{
    static const struct {
        const char *name, *value, *run, *said;
        int status;
    } cases[] = {
        {"HC_ABORT", "1", "abort", "copy_kernel: argument 0", 128 + SIGABRT},
        {"HC_STRICT", "0", "lenient", "0 findings", 0},
        {"HC_STRICT", "1", "lenient", "1 findings", 0},
        {"HC_GUARD", "0", "attribute", "add it to device.c\nerror 1\n1 findings", 0},
        {"HC_SCHED", "3", "none", "HC_SCHED=3: expected a number from 0 to 2", 128 + SIGABRT},
        {"HC_DEVICES", "two", "none", "HC_DEVICES=two: expected a number from 0 to 16", 128 + SIGABRT},
        {"HC_FAIL", "cudaMalloc", "none", "HC_FAIL=cudaMalloc: expected function:n[:error]", 128 + SIGABRT},
        {"HC_FAIL", "cudaMalloc:0", "none", "HC_FAIL=cudaMalloc:0: expected function:n[:error]", 128 + SIGABRT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[4096];
        setenv(cases[i].name, cases[i].value, 1);
        CHECK_EQ(child_run((const char *const[4]){cases[i].run}, text, sizeof text), cases[i].status);
        unsetenv(cases[i].name);
        check_count();
        if (!strstr(text, cases[i].said))
            check_fail(__FILE__, __LINE__, "%s=%s: not found: \"%s\"; said was:\n%s", cases[i].name, cases[i].value, cases[i].said, text);
    }
}

int main(int n, char **arguments)
{
    if (n > 1)
        return run_case(arguments[1]);
    settings();
    setenv("HC_DEVICES", "3", 1);
    for (int delayed = 0; delayed < 2; delayed++) {
        configure("HC_DELAY_US", delayed ? "2000" : NULL);
        set_up();
        events();
        default_stream();
        copies();
        tear_down(0);
    }
    configure("HC_DELAY_US", NULL);
    set_up();
    out_of_memory();
    planned_failures();
    described();
    stuck();
    tear_down(2); /* those of the device that is stuck */
    CHECK_EQ(hc_reports, 0);
    return check_done(150);
}
