#include "kernels/kernels.h"
#include "kernels/update.h"
#include "kernels/vector.h"

SODET_CLONES
static void with_momentum(float *restrict p, float *restrict v, const float *restrict grad, int64_t n, float scale, float lr,
                          float momentum, float decay, int nesterov)
{
    if (nesterov) {
        for (int64_t i = 0; i < n; i++) {
            float g = scale * grad[i] + decay * p[i];
            v[i] = momentum * v[i] + g;
            p[i] -= lr * (g + momentum * v[i]);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + (scale * grad[i] + decay * p[i]);
        p[i] -= lr * v[i];
    }
}

SODET_CLONES
static void plain(float *restrict p, const float *restrict grad, int64_t n, float scale, float lr, float decay)
{
    for (int64_t i = 0; i < n; i++)
        p[i] -= lr * (scale * grad[i] + decay * p[i]);
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return update_pieces(a);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_sgd_update_attr *attr = a->attr;
    float *p = a->out[0].data, *v = a->in[2].data;
    const float *grad = a->in[1].data, *factor = a->in[4].data, *hyper = a->in[5].data, *ok = a->in[7].data;
    const int32_t *start = a->in[3].data;
    float scale = a->in[6].data ? *(const float *)a->in[6].data : 1;
    int64_t n = a->in[0].shape.dim[0], segments = a->in[3].shape.dim[0], last = end * UPDATE_PIECE < n ? end * UPDATE_PIECE : n;
    if (ok && !(*ok < 0 || *ok > 0))
        return;
    int64_t s = update_segment(start, segments, begin * UPDATE_PIECE);
    for (int64_t i = begin * UPDATE_PIECE; i < last; s++) {
        int64_t stop = update_segment_end(start, segments, s, last);
        float lr = hyper[0] * factor[2 * s], decay = hyper[2] * factor[2 * s + 1];
        if (v)
            with_momentum(p + i, v + i, grad + i, stop - i, scale, lr, hyper[1], decay, attr->nesterov != 0);
        else
            plain(p + i, grad + i, stop - i, scale, lr, decay);
        i = stop;
    }
}

const sodet_cpu_kernel sodet_cpu_sgd_update[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
