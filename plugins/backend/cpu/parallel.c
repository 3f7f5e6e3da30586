/* The one place that hands work to threads. They belong to libgomp, the runtime that oneDNN uses: a second pool would fight with the
 * first one for the cores. Its entry points are called by name, so that code of every compiler lands in the same library.
 * Each driving thread has a team of its own; replicas that are driven by different threads run at the same time. */
#include "plugins/backend/cpu/cpu.h"

/* libgomp's stable interface (LIBGOMP ABI, sections GOMP_parallel and omp.h of the GCC manual) */
extern void GOMP_parallel(void (*fn)(void *), void *data, unsigned num_threads, unsigned flags);
extern void GOMP_barrier(void);
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
extern void omp_set_num_threads(int n);

void cpu_use_threads(uint32_t threads)
{
    omp_set_num_threads((int)threads);
}

typedef struct range_job {
    void (*body)(void *context, int64_t begin, int64_t end);
    void *context;
    int64_t n;
} range_job;

static int64_t cut(int64_t n, uint32_t part, uint32_t parts) /* where part `part` of n begins */
{
    return n / parts * part + (n % parts < part ? n % parts : part);
}

static void range_work(void *data)
{
    const range_job *j = data;
    uint32_t t = (uint32_t)omp_get_thread_num(), of = (uint32_t)omp_get_num_threads();
    int64_t begin = cut(j->n, t, of), end = cut(j->n, t + 1, of);
    if (begin < end)
        j->body(j->context, begin, end);
}

void cpu_parallel(uint32_t threads, int64_t n, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end), void *context)
{
    if (n <= 0)
        return;
    int64_t most = grain > 1 ? (n + grain - 1) / grain : n;
    if (most < threads)
        threads = (uint32_t)most;
    if (threads <= 1) {
        body(context, 0, n);
        return;
    }
    range_job j = {body, context, n};
    GOMP_parallel(range_work, &j, threads, 0);
}

typedef struct kernel_job {
    const sodet_cpu_kernel *kernel;
    const sodet_kernel_args *args;
    const int64_t *units;
    uint32_t phases;
} kernel_job;

static void kernel_work(void *data)
{
    const kernel_job *j = data;
    uint32_t t = (uint32_t)omp_get_thread_num(), of = (uint32_t)omp_get_num_threads();
    for (uint32_t phase = 0; phase < j->phases; phase++) {
        int64_t begin = cut(j->units[phase], t, of), end = cut(j->units[phase], t + 1, of);
        if (begin < end)
            j->kernel->run(j->args, phase, begin, end, t);
        if (phase + 1 < j->phases)
            GOMP_barrier();
    }
}

void cpu_run_kernel(const sodet_cpu_kernel *k, const sodet_kernel_args *a, const int64_t *units)
{
    uint32_t phases = k->phases ? k->phases : 1;
    if (a->n_threads <= 1) {
        for (uint32_t phase = 0; phase < phases; phase++)
            if (units[phase] > 0)
                k->run(a, phase, 0, units[phase], 0);
        return;
    }
    kernel_job j = {k, a, units, phases};
    GOMP_parallel(kernel_work, &j, a->n_threads, 0);
}

/* ---- elementary passes ---- */
enum { GRAIN_FLOATS = 16384 }; /* below this a second thread costs more than it brings */

typedef struct pass {
    float *to;
    const float *from;
    int64_t planes, hw, n;
    uint32_t block, keep;
} pass;

static void zero_range(void *c, int64_t begin, int64_t end)
{
    const pass *a = c;
    memset((char *)a->to + begin, 0, (size_t)(end - begin));
}

static void copy_range(void *c, int64_t begin, int64_t end)
{
    const pass *a = c;
    memcpy((char *)a->to + begin, (const char *)a->from + begin, (size_t)(end - begin));
}

__attribute__((target_clones("avx512f", "avx2", "default"))) static void add_range(void *c, int64_t begin, int64_t end)
{
    const pass *a = c;
    float *restrict to = a->to;
    const float *restrict from = a->from;
    for (int64_t i = begin; i < end; i++)
        to[i] += from[i];
}

static void pad_range(void *c, int64_t begin, int64_t end) /* over images and pixels of the last block */
{
    const pass *a = c;
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / a->hw, pixel = i % a->hw;
        float *at = a->to + ((image + 1) * a->planes - 1) * a->hw * a->block + pixel * a->block;
        for (uint32_t k = a->keep; k < a->block; k++)
            at[k] = 0;
    }
}

void cpu_zero(uint32_t threads, void *to, uint64_t bytes)
{
    pass a = {.to = to};
    cpu_parallel(threads, (int64_t)bytes, GRAIN_FLOATS * 4, zero_range, &a);
}

void cpu_copy_bytes(uint32_t threads, void *to, const void *from, uint64_t bytes)
{
    pass a = {.to = to, .from = from};
    cpu_parallel(threads, (int64_t)bytes, GRAIN_FLOATS * 4, copy_range, &a);
}

void cpu_add_floats(uint32_t threads, float *to, const float *from, uint64_t n)
{
    pass a = {.to = to, .from = from};
    cpu_parallel(threads, (int64_t)n, GRAIN_FLOATS, add_range, &a);
}

void cpu_zero_padding(uint32_t threads, float *map, const sodet_shape *s, uint32_t block)
{
    uint32_t keep = (uint32_t)(s->dim[1] % block);
    if (!keep)
        return;
    pass a = {.to = map, .planes = (s->dim[1] + block - 1) / block, .hw = s->dim[2] * s->dim[3], .block = block, .keep = keep};
    cpu_parallel(threads, s->dim[0] * a.hw, GRAIN_FLOATS / block, pad_range, &a);
}
