/* nvJPEG's stand-in: what it decodes, in the stream's order and from the bytes as they are then; what it refuses, with which status; and what
 * no correct program does, which is a finding. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "core/data/decode.h"
#include "internal.h"
#include "plugins/backend/cuda/nvjpeg.h"

static sodet_err err = SODET_ERR_INIT;
static int device_blocks, pinned_blocks;
static bool no_memory;

static int take_device(void *context, void **out, size_t bytes, cudaStream_t stream)
{
    (void)context;
    (void)stream;
    device_blocks++;
    return no_memory ? 1 : (int)cudaMalloc(out, bytes);
}

static int give_device(void *context, void *memory, size_t bytes, cudaStream_t stream)
{
    (void)context;
    (void)bytes;
    (void)stream;
    device_blocks--;
    return (int)cudaFree(memory);
}

static int take_pinned(void *context, void **out, size_t bytes, cudaStream_t stream)
{
    (void)context;
    (void)stream;
    pinned_blocks++;
    return (int)cudaMallocHost(out, bytes);
}

static int give_pinned(void *context, void *memory, size_t bytes, cudaStream_t stream)
{
    (void)context;
    (void)bytes;
    (void)stream;
    pinned_blocks--;
    return (int)cudaFreeHost(memory);
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

/* The call answers so, with a finding or without. */
#define ANSWERS(call, status, finding)                                                                                                     \
    do {                                                                                                                                   \
        const unsigned long before = hc_reports;                                                                                           \
        CHECK_EQ((call), (status));                                                                                                        \
        CHECK_EQ(hc_reports - before, (finding));                                                                                          \
    } while (0)

enum { W = 40, H = 24, BYTES = W * H * 3 };
static sd_text jpeg, other, cmyk, cut, hurt; /* `other` shows something else */

static void make_pictures(void)
{
    static uint8_t rgb[BYTES];
    char path[1000];
    for (size_t i = 0; i < BYTES; i++)
        rgb[i] = (uint8_t)(i * 7 % 90);
    CHECK_OK(sd_jpeg_encode("one", rgb, W, H, 90, &jpeg, &err));
    memset(rgb, 200, sizeof rgb);
    CHECK_OK(sd_jpeg_encode("other", rgb, W, H, 90, &other, &err));
    snprintf(path, sizeof path, "%s/tests/data/pictures/cmyk-adobe.jpg", getenv("SODET_SOURCE"));
    uint8_t *bytes = NULL;
    uint64_t capacity = 0, n = 0;
    CHECK_OK(sd_decode_read(path, &bytes, &capacity, &n, &err));
    sd_text_append(&cmyk, bytes, n);
    sd_free(bytes);
    sd_text_append(&cut, jpeg.text, jpeg.length * 2 / 3);
    sd_text_append(&hurt, jpeg.text, jpeg.length);
    for (size_t i = 0; i + 5 < hurt.length; i++)
        if ((uint8_t)hurt.text[i] == 0xff && (uint8_t)hurt.text[i + 1] == 0xc4)
            hurt.text[i + 5] = '\xff'; /* so many codes of one bit */
}

static nvjpegStatus_t decode(nvjpegHandle_t h, nvjpegJpegState_t s, const sd_text *t, uint8_t *to, size_t pitch, cudaStream_t stream)
{
    const unsigned char *data = (const unsigned char *)t->text;
    const size_t length = t->length;
    nvjpegImage_t image = {.channel = {to}, .pitch = {pitch}};
    return nvjpegDecodeBatched(h, s, &data, &length, &image, stream);
}

/* What is at `from` on the device is the picture. */
static void shows(const uint8_t *from, const sd_text *t)
{
    static uint8_t got[BYTES];
    static sd_pixels want, turned;
    const sd_decode_options options = {0};
    CHECK_EQ(cudaMemcpy(got, from, BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK_OK(sd_decode("want", (const uint8_t *)t->text, t->length, &options, &want, &turned, &err));
    CHECK(want.width == W && want.height == H && memcmp(got, want.rgb, BYTES) == 0);
    sd_pixels_free(&want);
    sd_pixels_free(&turned);
}

int main(void)
{
    nvjpegDevAllocatorV2_t device = {take_device, give_device, NULL};
    nvjpegPinnedAllocatorV2_t pinned = {take_pinned, give_pinned, NULL};
    nvjpegHandle_t h, lenient;
    nvjpegJpegState_t s, loose;
    cudaStream_t stream, second;
    uint8_t *to, *elsewhere;
    int value;
    setenv("HC_DEVICES", "2", 1);
    unsetenv("HC_ABORT");
    hc_configure();
    make_pictures();
    CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    CHECK_EQ(cudaStreamCreate(&second), cudaSuccess);
    CHECK_EQ(cudaMalloc((void **)&elsewhere, BYTES), cudaSuccess);
    CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    CHECK_EQ(cudaStreamCreate(&stream), cudaSuccess);
    CHECK_EQ(cudaMalloc((void **)&to, BYTES), cudaSuccess);

    ANSWERS(nvjpegGetProperty(MAJOR_VERSION, &value), NVJPEG_STATUS_SUCCESS, 0);
    CHECK_EQ(value, CUDART_VERSION / 1000);
    ANSWERS(nvjpegCreateExV2(NVJPEG_BACKEND_GPU_HYBRID, NULL, &pinned, 0, &h), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegCreateExV2((nvjpegBackend_t)3, &device, &pinned, 0, &h), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegCreateExV2(NVJPEG_BACKEND_GPU_HYBRID, &device, &pinned, NVJPEG_FLAGS_BITSTREAM_STRICT, &h), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegCreateExV2(NVJPEG_BACKEND_GPU_HYBRID, &device, &pinned, 0, &lenient), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegSetPinnedMemoryPadding(0, h), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegSetPinnedMemoryPadding(4096, h), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegSetDeviceMemoryPadding(4096, NULL), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegJpegStateCreate(NULL, &s), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegJpegStateCreate(h, &s), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegJpegStateCreate(lenient, &loose), NVJPEG_STATUS_SUCCESS, 0);

    /* Before it is initialised, and for what it cannot be. */
    ANSWERS(decode(h, s, &jpeg, to, W * 3, stream), NVJPEG_STATUS_NOT_INITIALIZED, 1);
    ANSWERS(nvjpegDecodeBatchedInitialize(h, s, 0, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegDecodeBatchedInitialize(h, loose, 1, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegDecodeBatchedInitialize(h, s, 1, 1, (nvjpegOutputFormat_t)3), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegDecodeBatchedInitialize(h, s, 1, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegDecodeBatchedInitialize(h, s, 1, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_SUCCESS, 1); /* for nothing */

    ANSWERS(decode(h, s, &jpeg, to, W * 3, stream), NVJPEG_STATUS_SUCCESS, 0);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    shows(to, &jpeg);
    CHECK(device_blocks == 1 && pinned_blocks == 1);

    /* Each failed batch wants the state to be initialised anew. */
    const struct {
        const sd_text *picture;
        uint8_t *to;
        size_t pitch;
        cudaStream_t stream;
        nvjpegStatus_t status;
        unsigned long finding;
        bool ends;
    } wrong[] = {
        {&cmyk, to, W * 3, stream, NVJPEG_STATUS_JPEG_NOT_SUPPORTED, 0, true},
        {&cut, to, W * 3, stream, NVJPEG_STATUS_INCOMPLETE_BITSTREAM, 0, true},
        {&hurt, to, W * 3, stream, NVJPEG_STATUS_BAD_JPEG, 0, true},
        {&jpeg, to, W * 2, stream, NVJPEG_STATUS_INVALID_PARAMETER, 1, true},
        {&jpeg, to + 3, W * 3, stream, NVJPEG_STATUS_EXECUTION_FAILED, 1, true},               /* ends behind the block */
        {&jpeg, elsewhere, W * 3, stream, NVJPEG_STATUS_EXECUTION_FAILED, 1, true},            /* another device's */
        {&jpeg, (uint8_t *)hurt.text, W * 3, stream, NVJPEG_STATUS_EXECUTION_FAILED, 1, true}, /* the host's */
        {&jpeg, to, W * 3, second, NVJPEG_STATUS_INVALID_PARAMETER, 1, false},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ANSWERS(decode(h, s, wrong[i].picture, wrong[i].to, wrong[i].pitch, wrong[i].stream), wrong[i].status, wrong[i].finding);
        if (!wrong[i].ends)
            continue;
        ANSWERS(decode(h, s, &jpeg, to, W * 3, stream), NVJPEG_STATUS_NOT_INITIALIZED, 1);
        ANSWERS(nvjpegDecodeBatchedInitialize(h, s, 1, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_SUCCESS, 0);
    }
    ANSWERS(nvjpegDecodeBatchedInitialize(lenient, loose, 1, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(decode(lenient, loose, &cut, to, W * 3, stream), NVJPEG_STATUS_SUCCESS, 0);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);

    /* On the stream: a state that is at work, and bytes that are others by then. */
    atomic_int gate;
    hold(stream, &gate);
    ANSWERS(decode(h, s, &jpeg, to, W * 3, stream), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(decode(h, s, &jpeg, to, W * 3, stream), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    ANSWERS(nvjpegDecodeBatchedInitialize(h, s, 2, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_INVALID_PARAMETER, 1);
    atomic_store(&gate, 1);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    sd_text changing = {0};
    sd_text_append(&changing, jpeg.text, jpeg.length);
    hold(stream, &gate);
    CHECK_EQ(decode(h, s, &changing, to, W * 3, stream), NVJPEG_STATUS_SUCCESS);
    memset(changing.text, 0, changing.length);
    const unsigned long before_it = hc_reports;
    atomic_store(&gate, 1);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    CHECK_EQ(hc_reports, before_it + 1);

    /* Memory that is not to be had, and calls that are to fail. */
    setenv("HC_FAIL", "nvjpegDecodeBatched:1:8", 1);
    hc_configure();
    ANSWERS(decode(h, s, &other, to, W * 3, stream), NVJPEG_STATUS_INTERNAL_ERROR, 0);
    unsetenv("HC_FAIL");
    hc_configure();
    nvjpegJpegState_t poor;
    ANSWERS(nvjpegJpegStateCreate(h, &poor), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegDecodeBatchedInitialize(h, poor, 1, 1, NVJPEG_OUTPUT_RGBI), NVJPEG_STATUS_SUCCESS, 0);
    no_memory = true;
    ANSWERS(decode(h, poor, &jpeg, to, W * 3, stream), NVJPEG_STATUS_ALLOCATOR_FAILURE, 0);
    device_blocks--;
    ANSWERS(nvjpegJpegStateDestroy(poor), NVJPEG_STATUS_SUCCESS, 0);

    ANSWERS(nvjpegDestroy(h), NVJPEG_STATUS_INVALID_PARAMETER, 1); /* its state is still there */
    ANSWERS(nvjpegJpegStateDestroy(s), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegJpegStateDestroy(loose), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegDestroy(h), NVJPEG_STATUS_SUCCESS, 0);
    ANSWERS(nvjpegDestroy(lenient), NVJPEG_STATUS_SUCCESS, 0);
    CHECK(device_blocks == 0 && pinned_blocks == 0);
    sd_text_free(&jpeg);
    sd_text_free(&other);
    sd_text_free(&cmyk);
    sd_text_free(&cut);
    sd_text_free(&hurt);
    sd_text_free(&changing);
    return check_done(100);
}
