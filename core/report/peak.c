#include "core/report/peak.h"

#include "core/base/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Multiply-adds whose results wait for their own predecessors alone: twelve chains keep two units of a latency up to six cycles busy. The
 * values stay between 0 and 1. */
enum { CHAINS = 12, TURNS = 400000 };

#define KERNEL(NAME, TARGET, VECTOR, SET, STEP, LOWEST)                                                                                    \
    TARGET static float NAME(float factor, float shift)                                                                                    \
    {                                                                                                                                      \
        VECTOR v[CHAINS], f = SET(factor), s = SET(shift);                                                                                 \
        for (int c = 0; c < CHAINS; c++)                                                                                                   \
            v[c] = SET(shift * (float)c);                                                                                                  \
        for (int i = 0; i < TURNS; i++) {                                                                                                  \
            _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) v[c] = STEP(v[c], f, s);                                             \
        }                                                                                                                                  \
        float sum = 0;                                                                                                                     \
        for (int c = 0; c < CHAINS; c++)                                                                                                   \
            sum += LOWEST(v[c]);                                                                                                           \
        return sum;                                                                                                                        \
    }

#if defined(__x86_64__)
#define NOT_FUSED(v, f, s) _mm_add_ps(_mm_mul_ps(v, f), s)
KERNEL(narrow, , __m128, _mm_set1_ps, NOT_FUSED, _mm_cvtss_f32)
KERNEL(avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32)
KERNEL(avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32)
#else
#define SAME(x)            (x)
#define NOT_FUSED(v, f, s) ((v) * (f) + (s))
KERNEL(narrow, , float, SAME, NOT_FUSED, SAME)
#endif

enum { MOST = 256 };
typedef struct crew {
    float (*kernel)(float, float);
    double lanes, rate[MOST];
    volatile float sum[MOST]; /* so that the work is not for nothing */
} crew;

static void work(void *context, uint32_t worker, uint64_t item)
{
    crew *c = context;
    (void)worker;
    for (double begin = sd_now(), now = begin; now - begin < 0.2;) {
        double before = now;
        c->sum[item] = c->kernel(0.5f, 0.25f + (float)item * 1e-6f);
        now = sd_now();
        double rate = 2 * c->lanes * CHAINS * TURNS / (now - before);
        c->rate[item] = rate > c->rate[item] ? rate : c->rate[item];
    }
}

double sd_peak_flops(uint32_t n_threads)
{
    crew c = {.kernel = narrow, .lanes = 1};
    n_threads = n_threads < 1 ? 1 : n_threads < MOST ? n_threads : MOST;
#if defined(__x86_64__)
    __builtin_cpu_init();
    c.lanes = 4;
    if (__builtin_cpu_supports("avx512f")) {
        c.kernel = avx512;
        c.lanes = 16;
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        c.kernel = avx2;
        c.lanes = 8;
    }
#endif
    sd_parallel(n_threads, n_threads, work, &c);
    double sum = 0;
    for (uint32_t i = 0; i < n_threads; i++)
        sum += c.rate[i];
    return sum;
}
