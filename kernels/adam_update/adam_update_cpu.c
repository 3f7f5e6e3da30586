#include "kernels/kernels.h"
#include "kernels/update.h"
#include "kernels/vector.h"

typedef struct rates {
    float scale, shrink, decay, rest1, beta2, rest2, step, root, epsilon; /* rest: 1 - beta; step: lr / c1; root: 1 / sqrt(c2) */
} rates;

SODET_CLONES
static void segment(float *restrict p, float *restrict m, float *restrict v, const float *restrict grad, int64_t n, const rates *r)
{
    float scale = r->scale, shrink = r->shrink, decay = r->decay, rest1 = r->rest1, beta2 = r->beta2, rest2 = r->rest2, step = r->step,
          root = r->root, epsilon = r->epsilon;
    for (int64_t i = 0; i < n; i++) {
        float g = scale * grad[i] + decay * p[i];
        m[i] += rest1 * (g - m[i]);
        v[i] = beta2 * v[i] + rest2 * g * g;
        p[i] = p[i] * shrink - step * m[i] / (sqrtf(v[i]) * root + epsilon);
    }
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return update_pieces(a);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_adam_update_attr *attr = a->attr;
    float *p = a->out[0].data, *m = a->out[1].data, *v = a->out[2].data;
    const float *grad = a->in[1].data, *factor = a->in[5].data, *hyper = a->in[6].data, *ok = a->in[8].data;
    const int32_t *start = a->in[4].data;
    int64_t n = a->in[0].shape.dim[0], segments = a->in[4].shape.dim[0], last = end * UPDATE_PIECE < n ? end * UPDATE_PIECE : n;
    if (ok && !(*ok < 0 || *ok > 0))
        return;
    rates r = {.scale = a->in[7].data ? *(const float *)a->in[7].data : 1,
               .rest1 = (float)(1 - (double)hyper[1]),
               .beta2 = hyper[2],
               .rest2 = (float)(1 - (double)hyper[2]),
               .root = (float)(1 / sqrt((double)hyper[6])),
               .epsilon = hyper[3]};
    int64_t s = update_segment(start, segments, begin * UPDATE_PIECE);
    for (int64_t i = begin * UPDATE_PIECE; i < last; s++) {
        int64_t stop = update_segment_end(start, segments, s, last);
        double lr = (double)hyper[0] * (double)factor[2 * s], decay = (double)hyper[4] * (double)factor[2 * s + 1];
        r.step = (float)(lr / (double)hyper[5]);
        r.shrink = attr->decoupled ? (float)(1 - lr * decay) : 1;
        r.decay = attr->decoupled ? 0 : (float)decay;
        segment(p + i, m + i, v + i, grad + i, stop - i, &r);
        i = stop;
    }
}

const sodet_cpu_kernel sodet_cpu_adam_update[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
