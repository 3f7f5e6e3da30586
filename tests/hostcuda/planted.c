/* labels: threads */
/* Bugs that people write, planted one by one: each runs in a process of its own, `planted <name>`, and must be found, by the text that a
 * developer would see. Those that only a sanitizer sees are run in its build. */
#include "internal.h"

#include "check.h"
#include "child.h"
#include "test_planted.h"

static cudaStream_t stream, second, foreign; /* two of device 0, one of device 1 */
static float *out, *other, *beyond;          /* 64 floats of device 0 twice, of device 1 */
static float *pinned;                        /* 64 floats of the host */
static float host[64];

static void fetch(void)
{
    cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    int nan = 0;
    for (int i = 0; i < 64; i++)
        nan += isnan(host[i]) != 0;
    fprintf(stderr, "%d results are NaN\n", nan);
}

#define KERNEL(name)                                                                                                                       \
    static void name(void)                                                                                                                 \
    {                                                                                                                                      \
        planted_##name(stream, out);                                                                                                       \
        fetch();                                                                                                                           \
    }
KERNEL(divergent_barrier)
KERNEL(early_exit)
KERNEL(exited_lanes)
KERNEL(foreign_mask)
KERNEL(outside_mask)
KERNEL(warp_deadlock)
KERNEL(uninitialised_shared)
KERNEL(uninitialised_template)
KERNEL(left_by_a_block)
KERNEL(no_dynamic_shared)
KERNEL(missing_barrier)

static void uninitialised_global(void)
{
    planted_copy(stream, other, out);
    fetch();
}

static void host_pointer(void)
{
    planted_copy(stream, host, out);
    cudaStreamSynchronize(stream);
}

static void freed_pointer(void)
{
    cudaFree(other);
    fprintf(stderr, "launch: %d\n", planted_configuration(stream, other, 1, 1, 0));
}

static void pointer_of_other_device(void)
{
    planted_copy(stream, beyond, out);
    cudaStreamSynchronize(stream);
}

static void pointer_in_a_structure(void)
{
    planted_copy_by_table(stream, beyond, out);
    cudaStreamSynchronize(stream);
}

static void copy_direction(void)
{
    fprintf(stderr, "error %d\n", (int)cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyHostToDevice, stream));
}

static void copy_too_long(void)
{
    fprintf(stderr, "error %d\n", (int)cudaMemcpyAsync(out, host, sizeof host + 4, cudaMemcpyHostToDevice, stream));
}

static void fill_too_long(void)
{
    fprintf(stderr, "error %d\n", (int)cudaMemsetAsync(out + 1, 0, sizeof host, stream));
}

static void stream_of_other_device(void)
{
    planted_fill(foreign, beyond, 1.0f);
}

static void empty_grid(void)
{
    fprintf(stderr, "launch: %d\n", planted_configuration(stream, out, 0, 64, 0));
}

static void large_block(void)
{
    fprintf(stderr, "launch: %d\n", planted_configuration(stream, out, 1, 1025, 0));
}

static void much_shared(void)
{
    fprintf(stderr, "launch: %d\n", planted_configuration(stream, out, 1, 64, 48 * 1024 + 1));
}

static void double_free(void)
{
    cudaFree(out);
    fprintf(stderr, "error %d\n", (int)cudaFree(out));
}

static void free_of_inside(void)
{
    fprintf(stderr, "error %d\n", (int)cudaFree(out + 1));
}

static void free_of_host(void)
{
    fprintf(stderr, "error %d\n", (int)cudaFree(pinned));
}

static void destroyed_stream(void)
{
    cudaStreamDestroy(stream);
    fprintf(stderr, "error %d\n", (int)cudaMemsetAsync(out, 0, 4, stream));
}

static void destroyed_event(void)
{
    cudaEvent_t e;
    cudaEventCreate(&e);
    cudaEventDestroy(e);
    fprintf(stderr, "error %d\n", (int)cudaStreamWaitEvent(stream, e, 0));
}

static void event_of_other_device(void)
{
    cudaEvent_t e;
    cudaEventCreate(&e);
    cudaSetDevice(1);
    fprintf(stderr, "error %d\n", (int)cudaEventRecord(e, foreign));
}

static void call_cuda(void *argument)
{
    cudaStreamQuery(argument);
}

static void cuda_in_a_callback(void)
{
    cudaLaunchHostFunc(stream, call_cuda, second);
    cudaStreamSynchronize(stream);
}

static void never_freed(void)
{
    setenv("HC_STRICT", "2", 1);
    hc_configure();
    exit(0);
}

static void unnoticed_error(void)
{
    cudaMemsetAsync(NULL, 0, 4, stream); /* whose error nobody looks at */
    fprintf(stderr, "launch: %d\n", planted_fill(stream, out, 1.0f));
}

static void global_overflow(void)
{
    planted_global_overflow(stream, out);
    cudaStreamSynchronize(stream);
    cudaFree(out);
}

/* For the address sanitizer. */
KERNEL(shared_overflow)
KERNEL(dynamic_overflow)
KERNEL(local_overflow)

static void overflow_seen(void)
{
    global_overflow();
}

static void host_dereference(void)
{
    planted_fill(stream, out, 1.0f);
    cudaStreamSynchronize(stream);
    fprintf(stderr, "read %f\n", (double)*(volatile float *)out);
}

/* For the thread sanitizer. */
KERNEL(missing_syncwarp)
KERNEL(blocks_overlap)

static void missing_barrier_seen(void)
{
    missing_barrier();
}

static void pinned_reused(void)
{
    cudaMemcpyAsync(out, pinned, 256, cudaMemcpyHostToDevice, stream);
    for (int i = 0; i < 64; i++)
        pinned[i] = 2.0f;
    cudaStreamSynchronize(stream);
}

static void result_read_early(void)
{
    cudaMemcpyAsync(pinned, out, 256, cudaMemcpyDeviceToHost, stream);
    fprintf(stderr, "read %f\n", (double)((volatile float *)pinned)[3]);
    cudaStreamSynchronize(stream);
}

static void kernels_without_event(void)
{
    planted_fill(stream, other, 1.0f);
    planted_copy(second, other, out);
    cudaDeviceSynchronize();
}

static void copy_without_event(void)
{
    planted_fill(stream, other, 1.0f);
    cudaMemcpyAsync(out, other, 256, cudaMemcpyDeviceToDevice, second);
    cudaDeviceSynchronize();
}

/* The builds that see it. */
enum { EVERY, ADDRESS, THREAD };
#if defined(__SANITIZE_THREAD__)
enum { BUILD = THREAD };
#elif defined(HC_ASAN)
enum { BUILD = ADDRESS };
#else
enum { BUILD = EVERY };
#endif

/* clang-format off */
static const struct bug {
    int seen;
    const char *name;
    void (*run)(void);
    const char *found[2];
} bugs[] = {
#define BUG(seen, name, ...) {seen, #name, name, {__VA_ARGS__}}
    BUG(EVERY, divergent_barrier, "divergent_barrier_kernel: block (0,0,0) thread (32,0,0) waits at the __syncthreads of line 11 while",
        "at that of line 9"),
    BUG(EVERY, early_exit, "early_exit_kernel: block (0,0,0) thread (0,0,0): 24 threads exited before a __syncthreads (line 19)"),
    BUG(EVERY, exited_lanes,
        "exited_lanes_kernel: block (0,0,0) thread (1,0,0): mask ffffffff of a warp operation (line 26) names lanes 55555555"),
    BUG(EVERY, foreign_mask, "foreign_mask_kernel: block (0,0,0) thread (1,0,0): lane 1 is not in the mask 55555555"),
    BUG(EVERY, outside_mask, "thread (0,0,0): shuffle (line 40) reads lane 16, which is not in its mask 0000ffff"),
    BUG(EVERY, warp_deadlock, "waits for ever in a warp operation (line 46, mask ffffffff): others stand at a __syncthreads"),
    BUG(EVERY, uninitialised_shared, "64 results are NaN"),
    BUG(EVERY, uninitialised_template, "64 results are NaN"),
    BUG(EVERY, left_by_a_block, "64 results are NaN"),
    BUG(EVERY, uninitialised_global, "64 results are NaN"),
    BUG(EVERY, no_dynamic_shared, "dynamic_kernel: dynamic shared memory, but the launch gives none"),
    BUG(EVERY, missing_barrier, "32 results are NaN"),
    BUG(EVERY, host_pointer, "copy_kernel: argument 0 (", "is not device memory: a host pointer, or wild"),
    BUG(EVERY, freed_pointer, "fill_kernel: argument 0 (", "is not device memory: freed before the launch"),
    BUG(EVERY, pointer_of_other_device, "copy_kernel: argument 0 lies on device 1, the launch is on device 0"),
    BUG(EVERY, pointer_in_a_structure, "copy_by_table_kernel: argument 0 holds an address on device 1, the launch is on device 0"),
    BUG(EVERY, copy_direction, "cudaMemcpyAsync: kind 1, but the copy goes from device 0 to host memory", "error 1"),
    BUG(EVERY, copy_too_long, "cudaMemcpyAsync of 260 bytes runs past a block", "error 1"),
    BUG(EVERY, fill_too_long, "cudaMemsetAsync: the destination is not 256 bytes of device memory", "error 1"),
    BUG(EVERY, stream_of_other_device, "work for a stream of device 1 while device 0 is current"),
    BUG(EVERY, empty_grid, "fill_kernel: no such configuration: grid (0,1,1), block (64,1,1)", "launch: 9"),
    BUG(EVERY, large_block, "fill_kernel: no such configuration: grid (1,1,1), block (1025,1,1)", "launch: 9"),
    BUG(EVERY, much_shared, "fill_kernel: 49153 bytes of dynamic shared memory, 49152 are allowed", "launch: 1"),
    BUG(EVERY, double_free, "not the beginning of such a block: freed already", "error 1"),
    BUG(EVERY, free_of_inside, "not the beginning of such a block", "error 1"),
    BUG(EVERY, free_of_host, "not the beginning of such a block", "error 1"),
    BUG(EVERY, destroyed_stream, "is no stream: destroyed, or never created", "error 400"),
    BUG(EVERY, destroyed_event, "is no event: destroyed, or never created", "error 400"),
    BUG(EVERY, event_of_other_device, "an event of device 0 on a stream of device 1", "error 400"),
    BUG(EVERY, cuda_in_a_callback, "cudaStreamQuery called from a host function of a stream"),
    BUG(EVERY, never_freed, "512 bytes of device 0 were never freed", "3 streams and 0 events were never destroyed"),
#ifndef HC_ASAN
    BUG(EVERY, global_overflow, "4 bytes behind the block", "of 256 bytes were overwritten"),
#endif
    BUG(EVERY, unnoticed_error, "launch: 1"),
    BUG(ADDRESS, shared_overflow, "AddressSanitizer: global-buffer-overflow", "shared_overflow_kernel"),
    BUG(ADDRESS, dynamic_overflow, "AddressSanitizer: heap-buffer-overflow", "in dynamic_kernel"),
    BUG(ADDRESS, local_overflow, "AddressSanitizer: stack-buffer-overflow", "local_overflow_kernel"),
    BUG(ADDRESS, overflow_seen, "AddressSanitizer: heap-buffer-overflow", "global_overflow_kernel"),
    BUG(ADDRESS, host_dereference, "AddressSanitizer: use-after-poison", "host_dereference"),
    BUG(THREAD, missing_barrier_seen, "ThreadSanitizer: data race", "missing_barrier_kernel"),
    BUG(THREAD, missing_syncwarp, "ThreadSanitizer: data race", "missing_syncwarp_kernel"),
    BUG(THREAD, blocks_overlap, "ThreadSanitizer: data race", "blocks_overlap_kernel"),
    BUG(THREAD, pinned_reused, "ThreadSanitizer: data race", "pinned_reused"),
    BUG(THREAD, result_read_early, "ThreadSanitizer: data race", "result_read_early"),
    BUG(THREAD, kernels_without_event, "ThreadSanitizer: data race", "copy_kernel"),
    BUG(THREAD, copy_without_event, "ThreadSanitizer: data race", "fill_kernel"),
};

static int run_bug(const char *name)
{
    setenv("HC_DEVICES", "2", 1);
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking);
    cudaMalloc((void **)&beyond, 256);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaMalloc((void **)&out, 256);
    cudaMalloc((void **)&other, 256);
    cudaMallocHost((void **)&pinned, 256);
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        if (strcmp(bugs[i].name, name) == 0) {
            bugs[i].run();
            return hc_reports > 0;
        }
    }
    fprintf(stderr, "no bug %s\n", name);
    return 2;
}

int main(int n, char **arguments)
{
    if (n > 1)
        return run_bug(arguments[1]);
    static char text[1 << 16];
    setenv("TSAN_OPTIONS", "atexit_sleep_ms=0", 0); /* of the children, which would each wait a second for late reports */
    /* A child that ends while another thread of it reports would hang in the search for leaks: each holds what the other waits for. */
    char options[512];
    const char *given = getenv("ASAN_OPTIONS");
    snprintf(options, sizeof options, "%s:detect_leaks=0", given ? given : "");
    setenv("ASAN_OPTIONS", options, 1);
    int run = 0;
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        if (bugs[i].seen != EVERY && bugs[i].seen != BUILD)
            continue;
        run++;
        child_run((const char *const[4]){bugs[i].name}, text, sizeof text);
        for (int k = 0; k < 2 && bugs[i].found[k]; k++) {
            check_count();
            if (!strstr(text, bugs[i].found[k]))
                check_fail(__FILE__, __LINE__, "%s: not found: \"%s\"; said was:\n%s", bugs[i].name, bugs[i].found[k], text);
        }
    }
    return check_done(run > 30 ? run : 30);
}
