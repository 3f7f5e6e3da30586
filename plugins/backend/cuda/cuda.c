/* backend/cuda: NVIDIA's GPUs: convolutions by cuDNN, own kernels for everything else, NCCL where several devices take part. See cuda.h.
 *
 * The same sources are compiled for the CPU over a shim (tests/hostcuda) and are then called cuda_host. */
#include "plugins/backend/cuda/cuda.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const sodet_opt options[] = {
    SODET_OPT_BOOL(
        cuda_config, deterministic, "no",
        "take only algorithms of cuDNN that give the same bits in every run; own kernels always do. Some convolutions get slower"),
    SODET_OPT_BOOL(cuda_config, tf32, "no", "let fp32 convolutions round their factors to 10 bits of mantissa: several times faster"),
    SODET_OPT_BOOL(
        cuda_config, autotune, "no",
        "measure for each convolution which of cuDNN's plans is the fastest, instead of taking the first one; takes seconds once, "
        "for what was measured is kept"),
    SODET_OPT_STRING(cuda_config, times, "",
                     "file in which autotune keeps what it measured; empty: sodet/cuda_engines.tsv in the user's folder of caches"),
    SODET_OPT_BYTES(cuda_config, workspace, "1GiB", 0, 1ull << 40, "working memory that one convolution may ask for"),
};

/* ---- errors ---- */
sodet_status cuda_failed(cudaError_t e, const char *what, sodet_err *err)
{
    const char *name = cudaGetErrorName(e), *text = cudaGetErrorString(e);
    (void)cudaGetLastError(); /* handled here: the next call shall not report it again */
    switch (e) {
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorNoDevice: {
        int driver = 0, runtime = 0;
        (void)cudaDriverGetVersion(&driver);
        (void)cudaRuntimeGetVersion(&runtime);
        if (driver)
            return SODET_FAIL(
                err, SODET_E_DEVICE,
                "no usable CUDA device: %s (%s); the driver knows CUDA %d.%d, this build needs %d.%d: install a newer driver, or "
                "write devices = cpu",
                text, name, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        return SODET_FAIL(err, SODET_E_DEVICE,
                          "no usable CUDA device: %s (%s); no driver was found, this build needs one for CUDA %d.%d: install it, or write "
                          "devices = cpu",
                          text, name, runtime / 1000, runtime % 1000 / 10);
    }
    case cudaErrorMemoryAllocation:
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: the device's memory ran out (%s)", what, name);
    default:
        return SODET_FAIL(err, SODET_E_DEVICE, "%s: %s (%s)", what, text, name);
    }
}

cudaError_t cuda_answer(cudaError_t e)
{
    if (e == cudaErrorNotReady)
        (void)cudaGetLastError();
    return e;
}

sodet_status cuda_use(const cuda_device *d, sodet_err *err)
{
    cudaError_t e = cudaSetDevice(d->index);
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "choosing the device", err);
}

/* ---- devices ---- */
static sodet_status devices(const void *self, uint32_t capacity, sodet_device_info *out, uint32_t *n, sodet_err *err)
{
    (void)self;
    int count = 0;
    *n = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess)
        return cuda_failed(e, "counting CUDA devices", err);
    *n = count > 0 ? (uint32_t)count : 0;
    for (uint32_t i = 0; i < *n && i < capacity; i++) {
        struct cudaDeviceProp properties;
        e = cudaGetDeviceProperties(&properties, (int)i);
        if (e != cudaSuccess)
            return cuda_failed(e, "asking for a device's properties", err);
        out[i] = (sodet_device_info){.struct_size = sizeof out[i], .memory = properties.totalGlobalMem};
        snprintf(out[i].name, sizeof out[i].name, "%.*s", (int)sizeof out[i].name - 1, properties.name);
    }
    return SODET_OK;
}

static void close_device(void *device)
{
    cuda_device *d = device;
    if (!d)
        return;
    (void)cuda_use(d, NULL);
    (void)cuda_wait(d, NULL);
    cuda_group_leave(d);
    for (uint64_t i = 0; i < d->n_convs; i++)
        dnn_plan_free(&d->conv[i].plan);
    sd_free(d->conv);
    sd_free(d->expected);
    dnn_close(d->dnn);
    cuda_jpegs_close(d->jpegs);
    for (uint32_t i = 0; i < CUDA_STAGES; i++) {
        if (d->stage[i].memory)
            cudaFreeHost(d->stage[i].memory);
        if (d->stage[i].copied)
            cudaEventDestroy(d->stage[i].copied);
        if (d->stage[i].placed)
            cudaEventDestroy(d->stage[i].placed);
    }
    for (uint32_t i = 0; i < CUDA_SMALLS; i++)
        if (d->small[i].placed)
            cudaEventDestroy(d->small[i].placed);
    if (d->small[0].memory)
        cudaFreeHost(d->small[0].memory);
    cudaFree(d->mirrors);
    for (uint32_t i = 0; i < SODET_FETCHES; i++) {
        if (d->fetched[i].memory)
            cudaFreeHost(d->fetched[i].memory);
        if (d->fetched[i].done)
            cudaEventDestroy(d->fetched[i].done);
    }
    if (d->copies)
        cudaStreamDestroy(d->copies);
    if (d->comm)
        cudaStreamDestroy(d->comm);
    if (d->stream)
        cudaStreamDestroy(d->stream);
    sd_free(d);
}

static sodet_status check_precision(cuda_device *d, const sodet_device_options *o, sodet_err *err)
{
    static const uint32_t types[] = {
        [SODET_PRECISION_FP32] = SODET_F32, [SODET_PRECISION_BF16] = SODET_BF16, [SODET_PRECISION_FP16] = SODET_F16};
    if (o->precision == SODET_PRECISION_MIXED)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                          "[run] precision = mixed: the CUDA backend computes in fp32, bf16 or fp16; write one of these");
    d->map_type = types[o->precision];
    int major = 0;
    cudaError_t e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index);
    if (e != cudaSuccess)
        return cuda_failed(e, "asking for the compute capability", err);
    if (o->precision == SODET_PRECISION_BF16 && major < 8)
        return SODET_FAIL(
            err, SODET_E_UNSUPPORTED,
            "[run] precision = bf16: device %d has compute capability %d.x and multiplies bf16 from 8.0 on; write fp16 or fp32", d->index,
            major);
    return SODET_OK;
}

static sodet_status make_streams(cuda_device *d, sodet_err *err)
{
    int least = 0, greatest = 0;
    cudaError_t e = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&d->stream, cudaStreamNonBlocking, least);
    if (e == cudaSuccess) /* a bucket that is ready goes first: many kernels are still to come, and its end is waited for */
        e = cudaStreamCreateWithPriority(&d->comm, cudaStreamNonBlocking, greatest);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&d->copies, cudaStreamNonBlocking, greatest);
    for (uint32_t i = 0; e == cudaSuccess && i < SODET_FETCHES; i++) {
        e = cudaEventCreateWithFlags(&d->fetched[i].done, cudaEventDisableTiming);
        if (e == cudaSuccess)
            e = cudaMallocHost((void **)&d->fetched[i].memory, SODET_FETCH_BYTES);
    }
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "opening the device", err);
}

static sodet_status alloc_memory(void *device, uint64_t bytes, void **out, sodet_err *err)
{
    cuda_device *d = device;
    *out = NULL;
    sodet_status s = cuda_use(d, err);
    if (s != SODET_OK)
        return s;
    cudaError_t e = cudaMalloc(out, bytes ? bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        size_t available = 0, all = 0;
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&available, &all);
        return SODET_FAIL(err, SODET_E_MEMORY,
                          "device %d has %.0f MiB of its %.0f MiB free, and %.0f MiB were asked for: use a smaller batch (train.batch), "
                          "precision = bf16, or more devices",
                          d->index, (double)available / 1048576, (double)all / 1048576, (double)bytes / 1048576);
    }
    if (e == cudaSuccess)
        e = cudaMemsetAsync(*out, 0, bytes, d->stream);
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "allocating device memory", err);
}

/* All of it from the beginning: freeing pinned memory waits for every device, and a device may be in a collective that this one has not come
 * to yet. */
static sodet_status make_stages(cuda_device *d, sodet_err *err)
{
    size_t available = 0, all = 0;
    cudaError_t e = cudaMemGetInfo(&available, &all);
    if (e != cudaSuccess)
        return cuda_failed(e, "asking for the device's memory", err);
    d->stage_bytes = all / (64 * CUDA_STAGES) / 4096 * 4096;
    d->stage_bytes = d->stage_bytes < CUDA_STAGE_LEAST  ? CUDA_STAGE_LEAST
                     : d->stage_bytes > CUDA_STAGE_MOST ? CUDA_STAGE_MOST
                                                        : d->stage_bytes;
    sodet_status s = alloc_memory(d, d->stage_bytes * CUDA_STAGES, &d->mirrors, err);
    if (s != SODET_OK)
        return s;
    for (uint32_t i = 0; e == cudaSuccess && i < CUDA_STAGES; i++) {
        cuda_stage *stage = &d->stage[i];
        stage->mirror = (char *)d->mirrors + i * d->stage_bytes;
        e = cudaEventCreateWithFlags(&stage->copied, cudaEventDisableTiming);
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(&stage->placed, cudaEventDisableTiming);
        if (e == cudaSuccess)
            e = cudaMallocHost((void **)&stage->memory, d->stage_bytes);
    }
    char *small = NULL;
    if (e == cudaSuccess)
        e = cudaMallocHost((void **)&small, CUDA_SMALLS * CUDA_SMALL_BYTES);
    for (uint32_t i = 0; e == cudaSuccess && i < CUDA_SMALLS; i++) {
        d->small[i].memory = small + (size_t)i * CUDA_SMALL_BYTES;
        e = cudaEventCreateWithFlags(&d->small[i].placed, cudaEventDisableTiming);
    }
    /* The mirrors are cleared on the stream: nothing may be copied into them before. */
    for (uint32_t i = 0; e == cudaSuccess && i < CUDA_STAGES; i++) {
        e = cudaEventRecord(d->stage[i].placed, d->stream);
        d->stage[i].used = true;
    }
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "opening the device", err);
}

static sodet_status open_device(const void *self, uint32_t index, const sodet_device_options *o, void **device, sodet_err *err)
{
    *device = NULL;
    cuda_device *d = sd_alloc(1, sizeof *d);
    if (!d)
        return cuda_out_of_memory(err);
    d->config = self;
    d->index = (int)index;
    d->rank = o->rank;
    d->world = o->group && o->world ? o->world : 1;
    d->threads = o->threads ? o->threads : 1;
    d->group = o->group;
    sodet_status s = cuda_use(d, err);
    if (s == SODET_OK)
        s = check_precision(d, o, err);
    if (s == SODET_OK)
        s = make_streams(d, err);
    if (s == SODET_OK)
        s = make_stages(d, err);
    const dnn_options dnn = {.workspace_limit = d->config->workspace, .deterministic = d->config->deterministic, .tf32 = d->config->tf32};
    if (s == SODET_OK)
        s = dnn_open(d->stream, &dnn, &d->dnn, err);
    if (s == SODET_OK && d->group)
        s = cuda_group_join(d, err);
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
static void release_memory(void *device, void *memory, uint64_t bytes)
{
    cuda_device *d = device;
    (void)bytes;
    if (!memory)
        return;
    (void)cuda_use(d, NULL);
    (void)cuda_wait(d, NULL);
    cudaFree(memory);
}

/* Waits on the host, for an event or a stream, with the group in view: whoever waits for it alone hangs when a rank is gone. */
static sodet_status wait_for(cuda_device *d, cudaEvent_t event, cudaStream_t stream, sodet_err *err)
{
    cudaError_t e;
    if (d->world == 1) {
        e = event ? cudaEventSynchronize(event) : cudaStreamSynchronize(stream);
    } else {
        sodet_status s = SODET_OK;
        cuda_group_waits(d, true);
        while ((e = cuda_answer(event ? cudaEventQuery(event) : cudaStreamQuery(stream))) == cudaErrorNotReady &&
               (s = cuda_group_check(d, err)) == SODET_OK)
            usleep(50);
        cuda_group_waits(d, false);
        if (s != SODET_OK)
            return s;
    }
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "waiting for the device", err);
}

sodet_status cuda_wait_for(cuda_device *d, cudaEvent_t event, sodet_err *err)
{
    return wait_for(d, event, NULL, err);
}

sodet_status cuda_wait(cuda_device *d, sodet_err *err)
{
    sodet_status s = d->stream ? wait_for(d, NULL, d->stream, err) : SODET_OK;
    return s == SODET_OK && d->comm ? wait_for(d, NULL, d->comm, err) : s;
}

/* A piece of pinned memory that no copy is at. */
static sodet_status take_stage(cuda_device *d, cuda_stage **out, sodet_err *err)
{
    cuda_stage *stage = &d->stage[d->next_stage++ % CUDA_STAGES];
    const bool busy = stage->busy;
    stage->busy = false;
    *out = stage;
    return busy ? cuda_wait_for(d, stage->copied, err) : SODET_OK;
}

static sodet_status upload_small(cuda_device *d, void *to, const void *from, uint64_t bytes, sodet_err *err)
{
    cuda_small *small = &d->small[d->next_small++ % CUDA_SMALLS];
    sodet_status s = small->busy ? cuda_wait_for(d, small->placed, err) : SODET_OK;
    small->busy = false;
    if (s != SODET_OK)
        return s;
    memcpy(small->memory, from, bytes);
    cudaError_t e = cudaMemcpyAsync(to, small->memory, bytes, cudaMemcpyHostToDevice, d->stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(small->placed, d->stream);
    if (e != cudaSuccess)
        return cuda_failed(e, "a copy to the device", err);
    small->busy = true;
    return SODET_OK;
}

static sodet_status upload_piece(cuda_device *d, void *to, const void *from, uint64_t bytes, sodet_err *err)
{
    cuda_stage *stage;
    sodet_status s = take_stage(d, &stage, err);
    if (s != SODET_OK)
        return s;
    memcpy(stage->memory, from, bytes);
    cudaError_t e = stage->used ? cudaStreamWaitEvent(d->copies, stage->placed, 0) : cudaSuccess;
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(stage->mirror, stage->memory, bytes, cudaMemcpyHostToDevice, d->copies);
    if (e == cudaSuccess)
        e = cudaEventRecord(stage->copied, d->copies);
    if (e == cudaSuccess)
        e = cudaStreamWaitEvent(d->stream, stage->copied, 0);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(to, stage->mirror, bytes, cudaMemcpyDeviceToDevice, d->stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(stage->placed, d->stream);
    if (e != cudaSuccess)
        return cuda_failed(e, "a copy to the device", err);
    stage->busy = stage->used = true;
    return SODET_OK;
}

sodet_status cuda_upload(void *device, void *to, uint64_t offset, const void *from, uint64_t bytes, sodet_err *err)
{
    cuda_device *d = device;
    sodet_status s = cuda_use(d, err);
    for (uint64_t at = 0, piece; s == SODET_OK && at < bytes; at += piece) {
        piece = bytes - at < d->stage_bytes ? bytes - at : d->stage_bytes;
        s = (piece <= CUDA_SMALL_BYTES ? upload_small : upload_piece)(d, (char *)to + offset + at, (const char *)from + at, piece, err);
    }
    return s;
}

static sodet_status download(void *device, const void *from, uint64_t offset, void *to, uint64_t bytes, sodet_err *err)
{
    cuda_device *d = device;
    sodet_status s = cuda_use(d, err);
    for (uint64_t at = 0; s == SODET_OK && at < bytes;) {
        const uint64_t piece = bytes - at < d->stage_bytes ? bytes - at : d->stage_bytes;
        cuda_stage *stage;
        s = take_stage(d, &stage, err);
        if (s != SODET_OK)
            return s;
        cudaError_t e = cudaMemcpyAsync(stage->memory, (const char *)from + offset + at, piece, cudaMemcpyDeviceToHost, d->stream);
        if (e != cudaSuccess)
            return cuda_failed(e, "a copy from the device", err);
        s = cuda_wait(d, err);
        if (s == SODET_OK)
            memcpy((char *)to + at, stage->memory, piece);
        at += piece;
    }
    return s;
}

static sodet_status copy(void *device, void *to, uint64_t to_offset, const void *from, uint64_t from_offset, uint64_t bytes, sodet_err *err)
{
    cuda_device *d = device;
    sodet_status s = cuda_use(d, err);
    if (s != SODET_OK || !bytes)
        return s;
    const cudaError_t e =
        cudaMemcpyAsync((char *)to + to_offset, (const char *)from + from_offset, bytes, cudaMemcpyDeviceToDevice, d->stream);
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "a copy on the device", err);
}

/* ---- results that are read later ---- */
static sodet_status fetch(void *device, uint32_t slot, const void *from, uint64_t offset, uint64_t bytes, sodet_err *err)
{
    cuda_device *d = device;
    sodet_status s = cuda_use(d, err);
    if (s == SODET_OK && (slot >= SODET_FETCHES || bytes > SODET_FETCH_BYTES))
        s = SODET_FAIL(err, SODET_E_INTERNAL, "a result of %llu bytes in slot %u is not for reading later", (unsigned long long)bytes,
                       slot);
    if (s != SODET_OK)
        return s;
    cudaError_t e = cudaMemcpyAsync(d->fetched[slot].memory, (const char *)from + offset, bytes, cudaMemcpyDeviceToHost, d->stream);
    if (e == cudaSuccess)
        e = cudaEventRecord(d->fetched[slot].done, d->stream);
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "a copy from the device", err);
}

static sodet_status fetched(void *device, uint32_t slot, void *to, uint64_t bytes, sodet_err *err)
{
    cuda_device *d = device;
    sodet_status s = cuda_use(d, err);
    if (s == SODET_OK)
        s = cuda_wait_for(d, d->fetched[slot].done, err);
    if (s == SODET_OK)
        memcpy(to, d->fetched[slot].memory, bytes);
    return s;
}

/* ---- groups ---- */
static sodet_status open_group(const void *self, uint32_t n, void **group, sodet_err *err)
{
    (void)self;
    sodet_group_options o = {.struct_size = sizeof o, .n = n, .world = n};
    *group = NULL;
    const sodet_status s = cuda_group_id(o.id, err);
    return s == SODET_OK ? cuda_group_open(&o, (cuda_group **)group, err) : s;
}

static sodet_status group_id(const void *self, uint8_t id[SODET_GROUP_ID_BYTES], sodet_err *err)
{
    (void)self;
    return cuda_group_id(id, err);
}

static sodet_status join_group(const void *self, const sodet_group_options *o, void **group, sodet_err *err)
{
    (void)self;
    return cuda_group_open(o, (cuda_group **)group, err);
}

static void close_group(void *group)
{
    cuda_group_close(group);
}

static void abort_group(void *group)
{
    cuda_group_abort(group);
}

static uint32_t awaited(void *group, double *seconds)
{
    return cuda_group_awaited(group, seconds);
}

static const sodet_backend_ops ops = {.struct_size = sizeof ops,
                                      .devices = devices,
                                      .open_group = open_group,
                                      .close_group = close_group,
                                      .abort_group = abort_group,
                                      .awaited = awaited,
                                      .times = cuda_times,
                                      .copy = copy,
                                      .fetch = fetch,
                                      .fetched = fetched,
                                      .decode = cuda_decode,
                                      .group_id = group_id,
                                      .join_group = join_group,
                                      .open = open_device,
                                      .close = close_device,
                                      .real_size = real_size,
                                      .alloc = alloc_memory,
                                      .release = release_memory,
                                      .upload = cuda_upload,
                                      .download = download,
                                      .prepare = cuda_prepare,
                                      .discard = cuda_discard,
                                      .bind = cuda_bind,
                                      .unbind = cuda_unbind,
                                      .address = cuda_address,
                                      .run = cuda_run};

SODET_PLUGIN(SODET_KIND_BACKEND, SODET_CUDA_NAME, "NVIDIA GPUs: cuDNN's convolutions and own kernels, in fp32, bf16 and fp16", cuda_config,
             options, .ops = &ops);
