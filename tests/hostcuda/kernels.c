/* labels: threads valgrind */
/* Kernels of every kind give what they should under each order of blocks and threads, and without a finding. */
#include "internal.h"

#include <stdlib.h>

#include "check.h"
#include "test_kernels.h"

enum { N = 5000 };

static cudaStream_t stream;

static void *device_copy(const void *from, size_t bytes)
{
    void *p = NULL;
    CHECK_EQ(cudaMalloc(&p, bytes), cudaSuccess);
    if (from)
        CHECK_EQ(cudaMemcpyAsync(p, from, bytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
    else
        CHECK_EQ(cudaMemsetAsync(p, 0, bytes, stream), cudaSuccess);
    return p;
}

static void host_copy(void *to, const void *from, size_t bytes)
{
    CHECK_EQ(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

static void elementwise(void)
{
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 97) * 0.125f - 6.0f;
    float *dx = device_copy(x, N * sizeof *x), *dy = device_copy(NULL, N * sizeof *y);
    CHECK_EQ(launch_silu(stream, dx, dy, N), cudaSuccess);
    host_copy(y, dy, N * sizeof *y);
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += !(y[i] == silu_on_host(x[i]));
    CHECK_EQ(wrong, 0);
    CHECK_EQ(launch_vectors(stream, dx, dy, N / 4), cudaSuccess);
    host_copy(y, dy, N * sizeof *y);
    for (int i = 0; i < N; i += 4)
        wrong += !(y[i] == x[i + 3] && y[i + 1] == x[i + 2] && y[i + 2] == fminf(x[i + 1], 0) && y[i + 3] == fmaxf(x[i], 0) / 2);
    CHECK_EQ(wrong, 0);
    cudaFree(dx);
    cudaFree(dy);
    free(x);
    free(y);
}

static void reductions(void)
{
    float *x = malloc(N * sizeof *x), got;
    double want = 0;
    for (int i = 0; i < N; i++)
        want += x[i] = (float)(i * 7 % 61) - 30.0f; /* small integers: exact in any order */
    float *dx = device_copy(x, N * sizeof *x), *partial = device_copy(NULL, 256 * sizeof *x), *sum = device_copy(NULL, sizeof *x);
    CHECK_EQ(launch_sum(stream, dx, partial, sum, N), cudaSuccess);
    host_copy(&got, sum, sizeof got);
    CHECK_NEAR(got, want, 0, 0);

    enum { BINS = 80 };
    int32_t *labels = malloc(N * sizeof *labels), bins[BINS], counted[BINS] = {0};
    for (int i = 0; i < N; i++) {
        labels[i] = i * 31 % 85 - 2; /* some lie outside */
        if (labels[i] >= 0 && labels[i] < BINS)
            counted[labels[i]]++;
    }
    int32_t *dl = device_copy(labels, N * sizeof *labels), *db = device_copy(NULL, sizeof bins);
    CHECK_EQ(launch_histogram(stream, dl, db, N, BINS), cudaSuccess);
    host_copy(bins, db, sizeof bins);
    CHECK(memcmp(bins, counted, sizeof bins) == 0);
    cudaFree(dx);
    cudaFree(partial);
    cudaFree(sum);
    cudaFree(dl);
    cudaFree(db);
    free(x);
    free(labels);
}

static void columns(void)
{
    enum { ROWS = 9, COLUMNS = 150 };
    static const uint16_t half[4] = {0x3c00, 0x4000, 0xb800, 0x0000}, bf[4] = {0x3f80, 0x4000, 0xbf00, 0x0000};
    static const float real[4] = {1.0f, 2.0f, -0.5f, 0.0f};
    float wide[ROWS * COLUMNS], got[COLUMNS];
    uint16_t narrow[2][ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        wide[i] = real[i * i % 4];
        narrow[0][i] = half[i * i % 4];
        narrow[1][i] = bf[i * i % 4];
    }
    for (int type = 0; type < 3; type++) {
        void *x = type ? device_copy(narrow[type - 1], sizeof narrow[0]) : device_copy(wide, sizeof wide);
        float *out = device_copy(NULL, sizeof got);
        CHECK_EQ(launch_column_sum(stream, type, x, out, ROWS, COLUMNS), cudaSuccess);
        host_copy(got, out, sizeof got);
        int wrong = 0;
        for (int c = 0; c < COLUMNS; c++) {
            float sum = 0;
            for (int r = 0; r < ROWS; r++)
                sum += wide[r * COLUMNS + c];
            wrong += !(got[c] == sum);
        }
        CHECK_EQ(wrong, 0);
        cudaFree(x);
        cudaFree(out);
    }
}

static void warps(void)
{
    int32_t got[512];
    int32_t *out = device_copy(NULL, sizeof got);
    CHECK_EQ(launch_warp_work(stream, out), cudaSuccess);
    host_copy(got, out, sizeof got);
    int wrong = 0;
    for (int t = 0; t < 64; t++) {
        int lane = t & 31, warp = t & 32, section = lane & ~7, half = lane & ~15;
        wrong += got[t] != 3 * (warp + 5);
        wrong += got[64 + t] != 3 * (lane >= 3 ? t - 3 : t);
        wrong += got[128 + t] != 3 * (lane + 7 < 32 ? t + 7 : t);
        wrong += got[192 + t] != 3 * (t ^ 6);
        wrong += got[256 + t] != 3 * (warp + section + 1);
        wrong += got[320 + t] != 3 * (lane - 3 >= half ? t - 3 : t);
        wrong += got[384 + t] != 3 * (lane + 3 < half + 16 ? t + 3 : t);
        wrong += got[448 + t] != 3 * (lane < 16 ? t ^ 3 : t ^ 8);
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(launch_votes(stream, out, 40), cudaSuccess);
    host_copy(got, out, sizeof got);
    for (int t = 0; t < 64; t++) {
        wrong += got[t] != (t < 32 ? -1 : 0xff);
        wrong += got[64 + t] != 1;
        wrong += got[128 + t] != (t < 32);
        wrong += got[192 + t] != 40;
        wrong += got[256 + t] != 1;
        wrong += got[320 + t] != 1;
    }
    CHECK_EQ(wrong, 0);
    cudaFree(out);
}

static void atomics(void)
{
    int32_t i[4] = {0, 600, -5, 5};
    uint32_t u[4] = {0, 0xffffffffu, 0, 0};
    unsigned long long w[2] = {0, 1};
    int32_t *di = device_copy(i, sizeof i);
    uint32_t *du = device_copy(u, sizeof u);
    unsigned long long *dw = device_copy(w, sizeof w);
    CHECK_EQ(launch_atomics(stream, di, du, dw), cudaSuccess);
    host_copy(i, di, sizeof i);
    host_copy(u, du, sizeof u);
    host_copy(w, dw, sizeof w);
    CHECK_EQ(i[0], 511 * 512 / 2);
    CHECK_EQ(i[1], 600 - 512);
    CHECK_EQ(i[2], 511);
    CHECK_EQ(i[3], -511);
    CHECK_EQ(u[0], 0xffffffffu);
    CHECK_EQ(u[1], 0xffffff00u);
    CHECK_EQ(u[2], 0);
    CHECK_EQ(u[3], 123);
    CHECK_EQ(w[0], 512ll << 32);
    CHECK_EQ(w[1], 1 + 2 * 512);
    cudaFree(di);
    cudaFree(du);
    cudaFree(dw);
}

/* Rounding to nearest even, infinities, the smallest numbers, NaN. */
static void conversions(void)
{
    enum { M = 9 };
    const float x[M] = {1.0f, 1.00048828125f, 1.00146484375f, 65504.0f, 65520.0f, 5.9604644775390625e-8f, 1.00390625f, -0.0f, NAN};
    const uint16_t half_want[M - 1] = {0x3c00, 0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0001, 0x3c04, 0x8000};
    const uint16_t bf_want[M - 1] = {0x3f80, 0x3f80, 0x3f80, 0x4780, 0x4780, 0x3380, 0x3f80, 0x8000};
    uint16_t half[M], bf[M];
    float back[M];
    float *dx = device_copy(x, sizeof x), *dback = device_copy(NULL, sizeof back);
    uint16_t *dh = device_copy(NULL, sizeof half), *db = device_copy(NULL, sizeof bf);
    CHECK_EQ(launch_convert(stream, dx, dh, db, dback, M), cudaSuccess);
    host_copy(half, dh, sizeof half);
    host_copy(bf, db, sizeof bf);
    host_copy(back, dback, sizeof back);
    for (int i = 0; i < M - 1; i++) {
        CHECK_EQ(half[i], half_want[i]);
        CHECK_EQ(bf[i], bf_want[i]);
    }
    CHECK((half[M - 1] & 0x7fff) > 0x7c00 && (bf[M - 1] & 0x7fff) > 0x7f80);
    CHECK_NEAR(back[0], 4.0, 0, 0);
    cudaFree(dx);
    cudaFree(dback);
    cudaFree(dh);
    cudaFree(db);
}

static void indices(void)
{
    enum { BLOCKS = 12, THREADS = 24 };
    int32_t got[BLOCKS * THREADS];
    int32_t *out = device_copy(NULL, sizeof got);
    CHECK_EQ(launch_indices(stream, out), cudaSuccess);
    host_copy(got, out, sizeof got);
    int wrong = 0;
    for (int b = 0; b < BLOCKS; b++)
        for (int t = 0; t < THREADS; t++)
            wrong +=
                got[b * THREADS + t] != b % 3 + 10 * (b / 3 % 2) + 100 * (b / 6) + 1000 * (t % 4) + 10000 * (t / 4 % 3) + 100000 * (t / 12);
    CHECK_EQ(wrong, 0);
    cudaFree(out);
}

static void shared_memory(void)
{
    enum { FLOATS = 20000 };
    float got = 0, *out = device_copy(NULL, sizeof got);
    CHECK_EQ(allow_big_shared(300000), cudaErrorInvalidValue);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    CHECK_EQ(allow_big_shared(FLOATS * 4), cudaSuccess);
    CHECK_EQ(launch_big_shared(stream, out, FLOATS), cudaSuccess);
    host_copy(&got, out, sizeof got);
    CHECK_NEAR(got, FLOATS - 1, 0, 0);
    cudaFree(out);
}

int main(void)
{
    for (int order = 0; order < 3; order++) {
        char text[2] = {(char)('0' + order), 0};
        setenv("HC_SCHED", text, 1);
        hc_configure();
        CHECK_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
        elementwise();
        reductions();
        columns();
        warps();
        atomics();
        conversions();
        indices();
        shared_memory();
        CHECK_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
    CHECK_EQ(hc_memory_used(0), 0);
    CHECK_EQ(hc_reports, 0);
    return check_done(100);
}
