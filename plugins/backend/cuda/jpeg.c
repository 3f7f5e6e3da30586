/* JPEGs into device memory, by nvJPEG, in order with everything else on the stream.
 *
 * Two states take turns, and with each goes pinned memory that holds the files' bytes: what nvJPEG has begun may be under way on the
 * stream when its call comes back, so a state is used again only when the event behind its batch has come.
 *
 * The decoder is that of the CUDA cores (NVJPEG_BACKEND_GPU_HYBRID), not the engine for JPEGs that some GPUs have: that one was seen to write
 * before the work that was on its stream was done (pytorch/vision #9606, torchcodec #1634: over what a step still reads), and to report
 * pictures as decoded that it had left out (LichtFeld-Studio #1924). nvJPEG lets the host undo the Huffman coding of batches of up to 50
 * pictures, on [run] threads.
 *
 * nvJPEG's memory comes from here: whoever frees pinned memory waits for all devices (see cuda.c, make_stages), so nothing is freed before
 * the device is closed, but used again. */
#include "plugins/backend/cuda/cuda.h"
#include "plugins/backend/cuda/nvjpeg.h"

#include <string.h>

enum { TURNS = 2, GRAIN = 1 << 20 };

typedef struct block {
    struct block *next;
    void *memory;
    size_t bytes;
    bool pinned, free;
} block;

typedef struct turn {
    nvjpegJpegState_t state;
    cudaEvent_t done;
    bool busy;      /* `done` was recorded */
    uint32_t batch; /* the state has been initialised for; 0: for none, or its last one failed */
    uint8_t *bytes; /* pinned */
    uint64_t capacity;
} turn;

struct cuda_jpegs {
    cuda_device *device;
    const cuda_nvjpeg *calls;
    nvjpegHandle_t handle;
    turn turn[TURNS];
    uint32_t next;
    const unsigned char **data;
    size_t *lengths;
    nvjpegImage_t *images;
    uint64_t n_data, n_lengths, n_images;
    block *blocks;
};

/* ---- memory ---- */
static int take(cuda_jpegs *j, bool pinned, void **out, size_t bytes)
{
    block *best = NULL;
    *out = NULL;
    for (block *b = j->blocks; b; b = b->next)
        if (b->free && b->pinned == pinned && b->bytes >= bytes && (!best || b->bytes < best->bytes))
            best = b;
    if (!best) {
        best = sd_alloc(1, sizeof *best);
        if (!best)
            return (int)cudaErrorMemoryAllocation;
        *best = (block){.next = j->blocks, .bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN, .pinned = pinned};
        const cudaError_t e = pinned ? cudaMallocHost(&best->memory, best->bytes) : cudaMalloc(&best->memory, best->bytes);
        if (e != cudaSuccess) {
            (void)cudaGetLastError();
            sd_free(best);
            return (int)e;
        }
        j->blocks = best;
    }
    best->free = false;
    *out = best->memory;
    return 0;
}

/* Who gets it next may write from the host: what is on the stream is waited for, as it may still read it. */
static int give(cuda_jpegs *j, const void *memory)
{
    for (block *b = j->blocks; b; b = b->next)
        if (b->memory == memory) {
            if (!b->pinned || cuda_wait(j->device, NULL) == SODET_OK)
                b->free = true;
            return 0;
        }
    return memory ? (int)cudaErrorInvalidValue : 0;
}

static int take_device(void *context, void **out, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return take(context, false, out, bytes);
}

static int take_pinned(void *context, void **out, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return take(context, true, out, bytes);
}

static int give_back(void *context, void *memory, size_t bytes, cudaStream_t stream)
{
    (void)bytes;
    (void)stream;
    return give(context, memory);
}

/* ---- what nvJPEG says ---- */
static sodet_status refused(nvjpegStatus_t status, uint32_t n, sodet_err *err)
{
    static const struct {
        const char *name, *what;
    } said[] = {{"SUCCESS", "nothing"},
                {"NOT_INITIALIZED", "something was not made before it was used"},
                {"INVALID_PARAMETER", "an argument is wrong"},
                {"BAD_JPEG", "it is no JPEG, or a damaged one"},
                {"JPEG_NOT_SUPPORTED", "it is a JPEG of a kind that it does not decode"},
                {"ALLOCATOR_FAILURE", "memory ran out"},
                {"EXECUTION_FAILED", "the work on the device failed"},
                {"ARCH_MISMATCH", "the device is none that it supports"},
                {"INTERNAL_ERROR", "an error of its own"},
                {"IMPLEMENTATION_NOT_SUPPORTED", "this way of decoding is not supported on the device"},
                {"INCOMPLETE_BITSTREAM", "the JPEG ends too early"}};
    const bool known = (uint32_t)status < sizeof said / sizeof said[0];
    const char *name = known ? said[status].name : "of another release", *what = known ? said[status].what : "an error";
    const cudaError_t e = cudaGetLastError();
    const char *cuda = e == cudaSuccess ? "" : cudaGetErrorName(e), *by = e == cudaSuccess ? "" : ", CUDA: ";
    switch (status) {
    case NVJPEG_STATUS_BAD_JPEG:
    case NVJPEG_STATUS_JPEG_NOT_SUPPORTED:
    case NVJPEG_STATUS_INCOMPLETE_BITSTREAM:
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "nvJPEG refuses it: %s (NVJPEG_STATUS_%s%s%s); sodet data check tells whether it is damaged, [data] decode = host "
            "reads what libjpeg-turbo reads",
            what, name, by, cuda);
    case NVJPEG_STATUS_ALLOCATOR_FAILURE:
        return SODET_FAIL(err, SODET_E_MEMORY,
                          "nvJPEG: %s (NVJPEG_STATUS_%s%s%s) for %u JPEGs: use a smaller batch (train.batch), or write [data] "
                          "decode = host",
                          what, name, by, cuda, n);
    default:
        return SODET_FAIL(err, SODET_E_DEVICE, "nvJPEG: %s (NVJPEG_STATUS_%s%s%s); write [data] decode = host", what, name, by, cuda);
    }
}

/* ---- opening ---- */
void cuda_jpegs_close(cuda_jpegs *j)
{
    if (!j)
        return;
    for (uint32_t i = 0; i < TURNS; i++) {
        if (j->turn[i].state)
            j->calls->JpegStateDestroy(j->turn[i].state);
        if (j->turn[i].done)
            cudaEventDestroy(j->turn[i].done);
    }
    if (j->handle)
        j->calls->Destroy(j->handle);
    while (j->blocks) {
        block *b = j->blocks;
        j->blocks = b->next;
        if (b->pinned)
            cudaFreeHost(b->memory);
        else
            cudaFree(b->memory);
        sd_free(b);
    }
    sd_free(j->data);
    sd_free(j->lengths);
    sd_free(j->images);
    sd_free(j);
}

static sodet_status open_library(cuda_jpegs *j, sodet_err *err)
{
    nvjpegDevAllocatorV2_t device = {take_device, give_back, j};
    nvjpegPinnedAllocatorV2_t pinned = {take_pinned, give_back, j};
    sodet_status s = cuda_nvjpeg_load(&j->calls, err);
    if (s != SODET_OK)
        return s;
    nvjpegStatus_t status = j->calls->CreateExV2(NVJPEG_BACKEND_GPU_HYBRID, &device, &pinned,
                                                 NVJPEG_FLAGS_BITSTREAM_STRICT | NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION, &j->handle);
    if (status == NVJPEG_STATUS_SUCCESS)
        status = j->calls->SetDeviceMemoryPadding(GRAIN, j->handle);
    if (status == NVJPEG_STATUS_SUCCESS)
        status = j->calls->SetPinnedMemoryPadding(GRAIN, j->handle);
    for (uint32_t i = 0; status == NVJPEG_STATUS_SUCCESS && i < TURNS; i++)
        status = j->calls->JpegStateCreate(j->handle, &j->turn[i].state);
    cudaError_t e = cudaSuccess;
    for (uint32_t i = 0; status == NVJPEG_STATUS_SUCCESS && e == cudaSuccess && i < TURNS; i++)
        e = cudaEventCreateWithFlags(&j->turn[i].done, cudaEventDisableTiming);
    return status != NVJPEG_STATUS_SUCCESS ? refused(status, 0, err) : e == cudaSuccess ? SODET_OK : cuda_failed(e, "opening nvJPEG", err);
}

static sodet_status open_jpegs(cuda_device *d, sodet_err *err)
{
    cuda_jpegs *j = sd_alloc(1, sizeof *j);
    if (!j)
        return cuda_out_of_memory(err);
    j->device = d;
    const sodet_status s = open_library(j, err);
    if (s != SODET_OK)
        cuda_jpegs_close(j);
    else
        d->jpegs = j;
    return s;
}

/* ---- a batch ---- */
static sodet_status hold_bytes(cuda_jpegs *j, turn *t, uint32_t n, const sodet_coded *pictures, sodet_err *err)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += pictures[i].n_coded;
    if (bytes > t->capacity) {
        give(j, t->bytes);
        t->bytes = NULL;
        t->capacity = 0;
        if (take(j, true, (void **)&t->bytes, bytes) != 0)
            return SODET_FAIL(err, SODET_E_MEMORY,
                              "no pinned memory for %.1f MiB of JPEGs: use a smaller batch (train.batch), or write [data] decode = host",
                              (double)bytes / 1048576);
        t->capacity = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    }
    uint8_t *to = t->bytes;
    for (uint32_t i = 0; i < n; to += pictures[i++].n_coded) {
        memcpy(to, pictures[i].coded, pictures[i].n_coded);
        j->data[i] = to;
    }
    return SODET_OK;
}

/* Pictures [first, first + n) of those that the arrays hold. */
static nvjpegStatus_t decode_some(cuda_jpegs *j, turn *t, uint32_t first, uint32_t n)
{
    nvjpegStatus_t status = NVJPEG_STATUS_SUCCESS;
    if (t->batch != n) {
        const uint32_t threads = j->device->threads < n ? j->device->threads : n;
        status = j->calls->DecodeBatchedInitialize(j->handle, t->state, (int)n, (int)threads, NVJPEG_OUTPUT_RGBI);
    }
    if (status == NVJPEG_STATUS_SUCCESS)
        status = j->calls->DecodeBatched(j->handle, t->state, j->data + first, j->lengths + first, j->images + first, j->device->stream);
    t->batch = status == NVJPEG_STATUS_SUCCESS ? n : 0;
    return status;
}

/* nvJPEG has one status for a batch: which picture it is about shows when each is decoded alone. */
static sodet_status find_failed(cuda_jpegs *j, turn *t, uint32_t n, nvjpegStatus_t of_all, uint32_t *failed, sodet_err *err)
{
    nvjpegStatus_t status = of_all;
    for (uint32_t i = 0; i < n && *failed == UINT32_MAX; i++) {
        const sodet_status s = cuda_wait(j->device, err); /* for the state */
        if (s != SODET_OK)
            return s;
        const nvjpegStatus_t alone = decode_some(j, t, i, 1);
        if (alone != NVJPEG_STATUS_SUCCESS) {
            *failed = i;
            status = alone;
        }
    }
    t->batch = 0;
    return refused(status, n, err);
}

sodet_status cuda_decode(void *device, uint32_t n, const sodet_coded *pictures, void *to, uint64_t from, uint32_t *failed, sodet_err *err)
{
    cuda_device *d = device;
    *failed = UINT32_MAX;
    sodet_status s = cuda_use(d, err);
    if (s == SODET_OK && !d->jpegs)
        s = open_jpegs(d, err);
    if (s != SODET_OK || !n)
        return s;
    cuda_jpegs *j = d->jpegs;
    turn *t = &j->turn[j->next++ % TURNS];
    s = t->busy ? cuda_wait_for(d, t->done, err) : SODET_OK;
    if (s == SODET_OK)
        s = sd_grow(&j->data, &j->n_data, n, sizeof *j->data, err);
    if (s == SODET_OK)
        s = sd_grow(&j->lengths, &j->n_lengths, n, sizeof *j->lengths, err);
    if (s == SODET_OK)
        s = sd_grow(&j->images, &j->n_images, n, sizeof *j->images, err);
    if (s == SODET_OK)
        s = hold_bytes(j, t, n, pictures, err);
    if (s != SODET_OK)
        return s;
    for (uint32_t i = 0; i < n; i++) {
        const sodet_coded *x = &pictures[i];
        j->lengths[i] = x->n_coded;
        j->images[i] = (nvjpegImage_t){.channel = {(unsigned char *)to + (x->offset - from)}, .pitch = {(size_t)x->width * 3}};
    }
    const nvjpegStatus_t status = decode_some(j, t, 0, n);
    s = status == NVJPEG_STATUS_SUCCESS ? SODET_OK : find_failed(j, t, n, status, failed, err);
    const cudaError_t e = cudaEventRecord(t->done, d->stream);
    t->busy = e == cudaSuccess;
    return s == SODET_OK && e != cudaSuccess ? cuda_failed(e, "decoding JPEGs", err) : s;
}
