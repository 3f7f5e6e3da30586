/* How long runs and collectives took on the device: events on its streams, looked at when they are over. */
#include "plugins/backend/cuda/cuda.h"

sodet_status cuda_marks_make(cuda_marks *m, uint32_t n, sodet_err *err)
{
    const uint64_t all = (uint64_t)n * CUDA_MARKS + 2;
    m->n = n;
    m->of = sd_alloc(all, sizeof *m->of);
    m->number = sd_alloc(n + 1, sizeof *m->number);
    if (!m->of || !m->number)
        return cuda_out_of_memory(err);
    for (uint64_t i = 0; i < all; i++) {
        const cudaError_t e = cudaEventCreate(&m->of[i]);
        if (e != cudaSuccess)
            return cuda_failed(e, "making an event", err);
    }
    return SODET_OK;
}

void cuda_marks_free(cuda_marks *m)
{
    for (uint64_t i = 0; m->of && i < (uint64_t)m->n * CUDA_MARKS + 2; i++)
        if (m->of[i])
            cudaEventDestroy(m->of[i]);
    sd_free(m->of);
    sd_free(m->number);
    *m = (cuda_marks){0};
}

cudaEvent_t cuda_mark_of(const cuda_marks *m, uint32_t collective, uint32_t mark)
{
    return m->of[(uint64_t)collective * CUDA_MARKS + mark];
}

cudaEvent_t cuda_end_of(const cuda_marks *m)
{
    return m->of[(uint64_t)m->n * CUDA_MARKS + 1];
}

static cudaError_t seconds_between(cudaEvent_t from, cudaEvent_t to, double *out)
{
    float milliseconds = 0;
    const cudaError_t e = cudaEventElapsedTime(&milliseconds, from, to);
    *out = e == cudaSuccess && milliseconds > 0 ? (double)milliseconds * 1e-3 : 0;
    return e;
}

sodet_status cuda_marks_read(cuda_device *d, cuda_marks *m, sodet_err *err)
{
    if (!m->under_way)
        return SODET_OK;
    const cudaEvent_t *run = m->of + (uint64_t)m->n * CUDA_MARKS;
    cudaError_t e = cuda_answer(cudaEventQuery(cuda_end_of(m)));
    if (e == cudaErrorNotReady)
        return SODET_OK;
    m->under_way = false;
    double took = 0, exposed = 0;
    if (e == cudaSuccess)
        e = seconds_between(run[0], run[1], &took);
    d->times.run += took;
    for (uint32_t i = 0; e == cudaSuccess && i < m->n; i++) {
        e = seconds_between(cuda_mark_of(m, i, CUDA_BEGUN), cuda_mark_of(m, i, CUDA_DONE), &took);
        if (e == cudaSuccess)
            e = seconds_between(cuda_mark_of(m, i, CUDA_ARRIVED), cuda_mark_of(m, i, CUDA_PASSED), &exposed);
        d->times.collective += took;
        d->times.exposed += exposed;
        if (e == cudaSuccess)
            cuda_group_account(d, m->number[i], took, exposed);
    }
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "reading how long the device took", err);
}
