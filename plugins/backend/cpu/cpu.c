/* backend/cpu: x86-64 processors by oneDNN and own vector code. See cpu.h for its inside.
 *
 * There is one device, index 0: all cores. Replicas ("cpu:x4") are that device opened several times, each with its own team of threads. */
#include "plugins/backend/cpu/cpu.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/device/host_group.h"

enum { HUGE_PAGE = 2 << 20 };

static const char *const winograd_choices[] = {"auto", "own", "onednn", "never", NULL};
static const char *const bf16_choices[] = {"native", "emulate", NULL};
static const char *const self_test_choices[] = {"on", "off", "fault", NULL};
static const sodet_opt options[] = {
    SODET_OPT_ENUM(cpu_config, winograd, "auto", winograd_choices,
                   "Winograd's algorithm for 3x3 convolutions: where measurements say that it pays, by oneDNN's code alone, or never"),
    SODET_OPT_BOOL(cpu_config, huge_pages, "yes", "ask the system for pages of 2 MiB: fewer page faults and misses of the address cache"),
    SODET_OPT_ENUM(
        cpu_config, self_test, "on", self_test_choices,
        "compare a dozen small convolutions of oneDNN with plain loops when a device is opened; fault: pretend that one is wrong"),
    SODET_OPT_ENUM(cpu_config, bf16, "native", bf16_choices,
                   "precision = bf16 by the processor's own instructions, or by float32 ones on rounded numbers: slow, and everywhere"),
    SODET_OPT_STRING(cpu_config, times, "",
                     "file in which precision = mixed keeps how long convolutions take; empty: sodet/cpu_times.tsv in the user's folder of "
                     "caches"),
};

void cpu_processor_name(char *out, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];
    snprintf(out, size, "CPU");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (!colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (f)
        fclose(f);
}

static sodet_status devices(const void *self, uint32_t capacity, sodet_device_info *out, uint32_t *n, sodet_err *err)
{
    (void)self;
    (void)err;
    *n = 1;
    if (capacity) {
        out[0] = (sodet_device_info){.struct_size = sizeof out[0]};
        cpu_processor_name(out[0].name, sizeof out[0].name);
        long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
        if (pages > 0 && size > 0)
            out[0].memory = (uint64_t)pages * (uint64_t)size;
    }
    return SODET_OK;
}

static void close_device(void *device)
{
    cpu_device *d = device;
    if (!d)
        return;
    if (d->stream)
        dnnl_stream_destroy(d->stream);
    if (d->engine)
        dnnl_engine_destroy(d->engine);
    sd_free(d);
}

static sodet_status check_precision(cpu_device *d, sodet_err *err)
{
    const bool able = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
    d->emulate = d->config->bf16 == CPU_BF16_EMULATE;
    if (d->precision == SODET_PRECISION_FP16)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "[run] precision = fp16: the CPU backend computes in fp32, bf16 or mixed; write one of these");
    if (d->precision != SODET_PRECISION_FP32 && !able && !d->emulate)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "[run] precision = %s: this processor multiplies no bf16 numbers (AVX512_BF16 is missing or switched off by "
                          "ONEDNN_MAX_CPU_ISA); write precision = fp32, which is faster here, or [backend.cpu] bf16 = emulate to see what "
                          "bf16 would compute",
                          d->precision == SODET_PRECISION_BF16 ? "bf16" : "mixed");
    return SODET_OK;
}

static sodet_status open_device(const void *self, uint32_t index, const sodet_device_options *o, void **device, sodet_err *err)
{
    *device = NULL;
    if (index != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "cpu:%u: there is one CPU device, index 0; cpu:x%u opens it %u times", index, index + 1,
                          index + 1);
    cpu_device *d = sd_alloc(1, sizeof *d);
    if (!d)
        return cpu_out_of_memory(err);
    d->config = self;
    d->threads = o->threads ? o->threads : 1;
    d->rank = o->rank;
    d->world = o->world ? o->world : 1;
    d->group = o->group;
    d->verbose = o->verbose;
    d->precision = o->precision;
    /* The cpuid bits that oneDNN goes by, and the limit that ONEDNN_MAX_CPU_ISA may have set. */
    d->block = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? 16 : 8;
    cpu_use_threads(d->threads);
    sodet_status s = check_precision(d, err);
    if (s == SODET_OK && (dnnl_engine_create(&d->engine, dnnl_cpu, 0) != dnnl_success ||
                          dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags) != dnnl_success))
        s = SODET_FAIL(err, SODET_E_DEVICE, "oneDNN cannot use this processor; `devices = ref` does without it, slowly");
    if (s == SODET_OK && d->config->self_test != CPU_SELF_TEST_OFF)
        s = cpu_self_test(d, err);
    if (s != SODET_OK) {
        close_device(d);
        return s;
    }
    *device = d;
    return SODET_OK;
}

static uint32_t real_size(const void *device)
{
    (void)device;
    return sizeof(float);
}

/* ---- memory ---- */
static uint64_t mapped(uint64_t bytes)
{
    uint64_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : 4096;
    return bytes ? (bytes + unit - 1) / unit * unit : unit;
}

static void touch(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        ((volatile char *)context)[i * 4096] = 0;
}

sodet_status cpu_alloc(void *device, uint64_t bytes, void **out, sodet_err *err)
{
    cpu_device *d = device;
    *out = NULL;
    uint64_t size = mapped(bytes), extra = size >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *at = mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return SODET_FAIL(err, SODET_E_MEMORY, "the system gave no %.1f MiB of memory: %s; a smaller batch needs less",
                          (double)bytes / 1048576, strerror(errno));
    if (extra) { /* cut to a multiple of the huge page, so that they can be used from the first byte on */
        uint64_t before = (HUGE_PAGE - (uintptr_t)at % HUGE_PAGE) % HUGE_PAGE;
        if (before)
            munmap(at, before);
        if (extra - before)
            munmap(at + before + size, extra - before);
        at += before;
        if (d->config->huge_pages)
            (void)madvise(at, size, MADV_HUGEPAGE);
    }
    /* A first touch costs more than computing with what is touched: it is paid here, by all threads, and not in the first steps. */
    cpu_use_threads(d->threads);
    cpu_parallel(d->threads, (int64_t)(size / 4096), HUGE_PAGE / 4096, touch, at);
    *out = at;
    return SODET_OK;
}

void cpu_release(void *device, void *memory, uint64_t bytes)
{
    (void)device;
    if (memory)
        munmap(memory, mapped(bytes));
}

static sodet_status upload(void *device, void *to, uint64_t offset, const void *from, uint64_t bytes, sodet_err *err)
{
    (void)err;
    cpu_use_threads(((cpu_device *)device)->threads);
    cpu_copy_bytes(((cpu_device *)device)->threads, (char *)to + offset, from, bytes);
    return SODET_OK;
}

static sodet_status download(void *device, const void *from, uint64_t offset, void *to, uint64_t bytes, sodet_err *err)
{
    (void)err;
    cpu_use_threads(((cpu_device *)device)->threads);
    cpu_copy_bytes(((cpu_device *)device)->threads, to, (const char *)from + offset, bytes);
    return SODET_OK;
}

static sodet_status copy(void *device, void *to, uint64_t to_offset, const void *from, uint64_t from_offset, uint64_t bytes, sodet_err *err)
{
    return upload(device, to, to_offset, (const char *)from + from_offset, bytes, err);
}

/* ---- groups ---- */
static sodet_status open_group(const void *self, uint32_t n, void **group, sodet_err *err)
{
    (void)self;
    return sd_host_group_open(n, (sd_host_group **)group, err);
}

static void close_group(void *group)
{
    sd_host_group_close(group);
}

static void abort_group(void *group)
{
    sd_host_group_abort(group);
}

static uint32_t awaited(void *group, double *seconds)
{
    return sd_host_group_awaited(group, seconds);
}

static sodet_status times(void *device, sodet_device_times *out, sodet_err *err)
{
    (void)err;
    const cpu_device *d = device;
    sd_host_group_times(d->group, d->rank, d->in_runs, out);
    return SODET_OK;
}

static const sodet_backend_ops ops = {.struct_size = sizeof ops,
                                      .devices = devices,
                                      .open_group = open_group,
                                      .close_group = close_group,
                                      .abort_group = abort_group,
                                      .awaited = awaited,
                                      .times = times,
                                      .copy = copy,
                                      .open = open_device,
                                      .close = close_device,
                                      .real_size = real_size,
                                      .alloc = cpu_alloc,
                                      .release = cpu_release,
                                      .upload = upload,
                                      .download = download,
                                      .prepare = cpu_prepare,
                                      .discard = cpu_discard,
                                      .bind = cpu_bind,
                                      .unbind = cpu_unbind,
                                      .address = cpu_address,
                                      .run = cpu_run};

SODET_PLUGIN(SODET_KIND_BACKEND, "cpu", "x86-64 processors: oneDNN and own vector code, float32 and bf16", cpu_config, options,
             .ops = &ops);
