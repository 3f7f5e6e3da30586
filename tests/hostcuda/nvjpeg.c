/* nvJPEG 13 on the CPU, as far as plugins/backend/cuda/jpeg.c uses it: batches of baseline and progressive JPEGs to interleaved RGB, by
 * libjpeg. Headers and data are looked at in the call, as its part on the host does; pixels are written in the stream's order, from the
 * caller's bytes as they are then: bytes that went too early, or a state that is used again too early, are found.
 *
 * It refuses what the real one refuses: other kinds of JPEG, and with NVJPEG_FLAGS_BITSTREAM_STRICT whatever libjpeg has a warning for. */
#include "internal.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "plugins/backend/cuda/nvjpeg.h"

struct nvjpegHandle {
    int device;
    unsigned flags;
    nvjpegDevAllocatorV2_t memory;
    nvjpegPinnedAllocatorV2_t pinned;
    size_t memory_padding, pinned_padding;
    atomic_int states;
};

struct nvjpegJpegState {
    nvjpegHandle_t handle;
    int batch; /* 0: to be initialised */
    int was;   /* what it was initialised for last, and has not failed since */
    atomic_int pending;
    void *memory, *pinned; /* of the handle's allocators */
    size_t memory_bytes, pinned_bytes;
};

typedef struct picture {
    const unsigned char *data;
    size_t length;
    nvjpegImage_t to;
} picture;

typedef struct work {
    nvjpegJpegState_t state;
    int n;
    picture of[];
} work;

static nvjpegStatus_t reject(nvjpegStatus_t status, const char *function, const char *why)
{
    hc_report("%s: %s", function, why);
    return status;
}

/* HC_FAIL=function:n[:status]. */
static nvjpegStatus_t enter(const char *function)
{
    const int planned = (int)hc_planned_failure(function);
    return planned == 0                                         ? NVJPEG_STATUS_SUCCESS
           : planned <= (int)NVJPEG_STATUS_INCOMPLETE_BITSTREAM ? (nvjpegStatus_t)planned
                                                                : NVJPEG_STATUS_EXECUTION_FAILED;
}
#define JPEG_ENTER()                                                                                                                       \
    do {                                                                                                                                   \
        nvjpegStatus_t jpeg_status = enter(__func__);                                                                                      \
        if (jpeg_status != NVJPEG_STATUS_SUCCESS)                                                                                          \
            return jpeg_status;                                                                                                            \
    } while (0)

nvjpegStatus_t nvjpegGetProperty(libraryPropertyType type, int *value)
{
    JPEG_ENTER();
    *value = type == MAJOR_VERSION ? CUDART_VERSION / 1000 : type == MINOR_VERSION ? 3 : 2;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegCreateExV2(nvjpegBackend_t backend, nvjpegDevAllocatorV2_t *device, nvjpegPinnedAllocatorV2_t *pinned, unsigned flags,
                                nvjpegHandle_t *out)
{
    JPEG_ENTER();
    if (backend != NVJPEG_BACKEND_GPU_HYBRID || !out || !device || !pinned || !device->dev_malloc || !device->dev_free ||
        !pinned->pinned_malloc || !pinned->pinned_free)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "another decoder than GPU_HYBRID, or no allocators: not known here");
    nvjpegHandle_t h = calloc(1, sizeof *h);
    if (!h)
        return NVJPEG_STATUS_ALLOCATOR_FAILURE;
    h->device = hc_device();
    h->flags = flags;
    h->memory = *device;
    h->pinned = *pinned;
    h->memory_padding = h->pinned_padding = 1;
    *out = h;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle)
{
    JPEG_ENTER();
    if (!handle)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "no handle");
    if (atomic_load(&handle->states))
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "states of the handle are still there");
    free(handle);
    return NVJPEG_STATUS_SUCCESS;
}

static nvjpegStatus_t pad(const char *function, size_t *of, size_t padding)
{
    if (!padding)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, function, "a padding of 0");
    *of = padding;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegSetDeviceMemoryPadding(size_t padding, nvjpegHandle_t handle)
{
    JPEG_ENTER();
    return handle ? pad(__func__, &handle->memory_padding, padding) : reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "no handle");
}

nvjpegStatus_t nvjpegSetPinnedMemoryPadding(size_t padding, nvjpegHandle_t handle)
{
    JPEG_ENTER();
    return handle ? pad(__func__, &handle->pinned_padding, padding) : reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "no handle");
}

nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t handle, nvjpegJpegState_t *out)
{
    JPEG_ENTER();
    if (!handle || !out)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "no handle");
    nvjpegJpegState_t s = calloc(1, sizeof *s);
    if (!s)
        return NVJPEG_STATUS_ALLOCATOR_FAILURE;
    s->handle = handle;
    atomic_fetch_add(&handle->states, 1);
    *out = s;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t s)
{
    JPEG_ENTER();
    if (!s)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "no state");
    if (atomic_load(&s->pending))
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "the state's batch is still on a stream");
    nvjpegHandle_t h = s->handle;
    if (s->memory)
        h->memory.dev_free(h->memory.dev_ctx, s->memory, s->memory_bytes, NULL);
    if (s->pinned)
        h->pinned.pinned_free(h->pinned.pinned_ctx, s->pinned, s->pinned_bytes, NULL);
    atomic_fetch_sub(&h->states, 1);
    free(s);
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeBatchedInitialize(nvjpegHandle_t handle, nvjpegJpegState_t s, int batch, int threads,
                                             nvjpegOutputFormat_t format)
{
    JPEG_ENTER();
    if (!handle || !s || s->handle != handle || batch < 1 || threads < 1 || format != NVJPEG_OUTPUT_RGBI)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__,
                      "no handle or state, another handle's state, no pictures, no threads, or "
                      "another format than RGBI, which alone is known here");
    if (atomic_load(&s->pending))
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "the state's batch is still on a stream");
    if (s->was == batch)
        hc_report("nvjpegDecodeBatchedInitialize: for %d pictures once more, which costs time for nothing", batch);
    s->batch = s->was = batch;
    return NVJPEG_STATUS_SUCCESS;
}

/* ---- a picture by libjpeg ---- */
typedef struct handler {
    struct jpeg_error_mgr base;
    jmp_buf back;
    bool cut;
} handler;

static void fail(j_common_ptr c)
{
    longjmp(((handler *)(void *)c->err)->back, 1);
}

static void message(j_common_ptr c, int level)
{
    handler *h = (handler *)(void *)c->err;
    if (level >= 0)
        return;
    h->base.num_warnings++;
    h->cut |= h->base.msg_code == JWRN_JPEG_EOF;
}

static bool is_supported(const struct jpeg_decompress_struct *c)
{
    return c->data_precision == 8 && !c->arith_code && (c->num_components == 1 || c->num_components == 3) &&
           (c->jpeg_color_space == JCS_GRAYSCALE || c->jpeg_color_space == JCS_YCbCr);
}

/* rows: one, of 3 * width bytes and more; `to` NULL: looked at alone. */
static nvjpegStatus_t decode(const picture *p, bool strict, const nvjpegImage_t *to, uint32_t *width, uint32_t *height)
{
    struct jpeg_decompress_struct c;
    handler h;
    unsigned char *volatile row = NULL;
    volatile nvjpegStatus_t status = NVJPEG_STATUS_SUCCESS;
    memset(&c, 0, sizeof c);
    memset(&h, 0, sizeof h);
    c.err = jpeg_std_error(&h.base);
    h.base.error_exit = fail;
    h.base.emit_message = message;
    if (setjmp(h.back)) {
        status = NVJPEG_STATUS_BAD_JPEG;
    } else {
        jpeg_create_decompress(&c);
        jpeg_mem_src(&c, p->data, (unsigned long)p->length);
        jpeg_read_header(&c, TRUE);
        *width = c.image_width;
        *height = c.image_height;
        if (!is_supported(&c)) {
            status = NVJPEG_STATUS_JPEG_NOT_SUPPORTED;
        } else {
            c.out_color_space = JCS_RGB;
            jpeg_start_decompress(&c);
            row = malloc((size_t)c.output_width * 3);
            while (row && c.output_scanline < c.output_height) {
                const size_t at = c.output_scanline;
                JSAMPROW rows[1] = {row};
                jpeg_read_scanlines(&c, rows, 1);
                if (to)
                    memcpy(to->channel[0] + at * to->pitch[0], row, (size_t)c.output_width * 3);
            }
            status = row ? status : NVJPEG_STATUS_ALLOCATOR_FAILURE;
            if (row)
                jpeg_finish_decompress(&c);
            if (h.base.num_warnings && strict)
                status = h.cut ? NVJPEG_STATUS_INCOMPLETE_BITSTREAM : NVJPEG_STATUS_BAD_JPEG;
        }
    }
    jpeg_destroy_decompress(&c);
    free(row);
    return status;
}

static void run(void *argument, bool skipped)
{
    work *w = argument;
    nvjpegJpegState_t s = w->state;
    uint32_t width, height;
    if (!skipped) {
        hc_open_memory(s->handle->device);
        memset(s->memory, 0xff, s->memory_bytes);
        memset(s->pinned, 0xff, s->pinned_bytes);
        for (int i = 0; i < w->n; i++)
            if (decode(&w->of[i], s->handle->flags & NVJPEG_FLAGS_BITSTREAM_STRICT, &w->of[i].to, &width, &height) != NVJPEG_STATUS_SUCCESS)
                hc_report("nvjpegDecodeBatched: the bytes of picture %d were changed before the stream had come to them", i);
        hc_close_memory(s->handle->device);
    }
    atomic_fetch_sub(&s->pending, 1);
    free(w);
}

/* ---- a batch ---- */
static nvjpegStatus_t need(nvjpegJpegState_t s, size_t memory, size_t pinned, cudaStream_t stream)
{
    nvjpegHandle_t h = s->handle;
    size_t left = 0;
    if (memory > s->memory_bytes) {
        if (s->memory)
            h->memory.dev_free(h->memory.dev_ctx, s->memory, s->memory_bytes, stream);
        s->memory = NULL;
        s->memory_bytes = 0;
        memory = (memory + h->memory_padding - 1) / h->memory_padding * h->memory_padding;
        if (h->memory.dev_malloc(h->memory.dev_ctx, &s->memory, memory, stream) != 0)
            return NVJPEG_STATUS_ALLOCATOR_FAILURE;
        if (hc_locate(s->memory, &left) != h->device || left < memory)
            return reject(NVJPEG_STATUS_ALLOCATOR_FAILURE, "nvjpegDecodeBatched", "what dev_malloc gave is not memory of the device");
        s->memory_bytes = memory;
    }
    if (pinned > s->pinned_bytes) {
        if (s->pinned)
            h->pinned.pinned_free(h->pinned.pinned_ctx, s->pinned, s->pinned_bytes, stream);
        s->pinned = NULL;
        s->pinned_bytes = 0;
        pinned = (pinned + h->pinned_padding - 1) / h->pinned_padding * h->pinned_padding;
        if (h->pinned.pinned_malloc(h->pinned.pinned_ctx, &s->pinned, pinned, stream) != 0)
            return NVJPEG_STATUS_ALLOCATOR_FAILURE;
        if (hc_locate(s->pinned, &left) != HC_PINNED || left < pinned)
            return reject(NVJPEG_STATUS_ALLOCATOR_FAILURE, "nvjpegDecodeBatched", "what pinned_malloc gave is not pinned memory");
        s->pinned_bytes = pinned;
    }
    return NVJPEG_STATUS_SUCCESS;
}

static nvjpegStatus_t look_at(const nvjpegHandle_t h, const picture *p, size_t *pixels)
{
    uint32_t width = 0, height = 0;
    size_t left = 0;
    if (!p->data || !p->length)
        return NVJPEG_STATUS_INVALID_PARAMETER;
    const nvjpegStatus_t status = decode(p, h->flags & NVJPEG_FLAGS_BITSTREAM_STRICT, NULL, &width, &height);
    if (status != NVJPEG_STATUS_SUCCESS)
        return status;
    const size_t row = (size_t)width * 3, pitch = p->to.pitch[0];
    if (!p->to.channel[0] || pitch < row)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, "nvjpegDecodeBatched", "no destination, or rows that lie in one another");
    if (hc_locate(p->to.channel[0], &left) != h->device || left < pitch * (height - 1) + row)
        return reject(NVJPEG_STATUS_EXECUTION_FAILED, "nvjpegDecodeBatched", "the destination is no memory of the device, or too small");
    *pixels += row * height;
    return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t nvjpegDecodeBatched(nvjpegHandle_t handle, nvjpegJpegState_t s, const unsigned char *const *data, const size_t *lengths,
                                   nvjpegImage_t *destinations, cudaStream_t stream)
{
    if (!handle || !s || s->handle != handle || !data || !lengths || !destinations)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "no handle, state or pictures, or another handle's state");
    if (s->batch < 1)
        return reject(NVJPEG_STATUS_NOT_INITIALIZED, __func__, "the state was not initialised, or its last batch failed");
    if (atomic_load(&s->pending))
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "the state's batch before is still on a stream");
    if (hc_device() != handle->device || hc_stream_device(stream) != handle->device)
        return reject(NVJPEG_STATUS_INVALID_PARAMETER, __func__, "the handle is of another device than the thread or the stream");
    nvjpegStatus_t status = enter(__func__);
    const int n = s->batch;
    work *w = calloc(1, sizeof *w + (size_t)n * sizeof w->of[0]);
    size_t pixels = 0, bytes = 0;
    if (!w)
        return NVJPEG_STATUS_ALLOCATOR_FAILURE;
    w->state = s;
    w->n = n;
    for (int i = 0; i < n && status == NVJPEG_STATUS_SUCCESS; i++) {
        w->of[i] = (picture){data[i], lengths[i], destinations[i]};
        bytes += lengths[i];
        status = look_at(handle, &w->of[i], &pixels);
    }
    if (status == NVJPEG_STATUS_SUCCESS)
        status = need(s, pixels, bytes, stream);
    if (status == NVJPEG_STATUS_SUCCESS) {
        atomic_fetch_add(&s->pending, 1);
        if (hc_enqueue(stream, run, w, false) == cudaSuccess)
            return status;
        atomic_fetch_sub(&s->pending, 1);
        status = NVJPEG_STATUS_EXECUTION_FAILED;
    }
    free(w);
    s->batch = s->was = 0;
    return status;
}
