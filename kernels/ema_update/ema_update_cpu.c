#include <string.h>

#include "kernels/kernels.h"
#include "kernels/update.h"
#include "kernels/vector.h"

SODET_CLONES
static void piece(float *restrict average, const float *restrict p, int64_t n, float decay, float rest)
{
    for (int64_t i = 0; i < n; i++)
        average[i] = decay * average[i] + rest * p[i];
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return update_pieces(a);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    float decay = *(const float *)a->in[2].data;
    const float *ok = a->in[3].data;
    int64_t n = a->in[0].shape.dim[0], first = begin * UPDATE_PIECE, last = end * UPDATE_PIECE < n ? end * UPDATE_PIECE : n;
    if (ok && !(*ok < 0 || *ok > 0))
        return;
    if (decay == 0) {
        memcpy((float *)a->out[0].data + first, (const float *)a->in[1].data + first, (size_t)(last - first) * sizeof(float));
        return;
    }
    piece((float *)a->out[0].data + first, (const float *)a->in[1].data + first, last - first, decay, (float)(1 - (double)decay));
}

const sodet_cpu_kernel sodet_cpu_ema_update[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
