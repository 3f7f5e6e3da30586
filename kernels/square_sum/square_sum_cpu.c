/* Phase 0 sums pieces of fixed size into scratch, phase 1 adds them in order: the same bits for any number of threads. */
#include "kernels/kernels.h"
#include "kernels/update.h"
#include "kernels/vector.h"

#define COLUMNS (SODET_SQUARE_SUM_GROUPS + 1) /* the last: a sum that is finite if all elements are */

SODET_CLONES
static double squares(const float *x, int64_t n)
{
    double acc[16] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            acc[j] += (double)x[i + j] * (double)x[i + j];
    for (; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (int j = 0; j < 16; j++)
        sum += acc[j];
    return sum;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    return phase == 0 ? update_pieces(a) : 1;
}

static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    (void)n_threads;
    return (uint64_t)((n->in_shape[0].dim[0] + UPDATE_PIECE - 1) / UPDATE_PIECE) * COLUMNS * sizeof(double);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    const sodet_square_sum_attr *attr = a->attr;
    const float *x = a->in[0].data;
    const int32_t *start = a->in[1].data, *group = a->in[2].data;
    double *partial = a->scratch;
    int64_t n = a->in[0].shape.dim[0], segments = start ? a->in[1].shape.dim[0] : 1;
    if (phase == 0) {
        for (int64_t u = begin; u < end; u++) {
            double *row = partial + u * COLUMNS;
            int64_t first = u * UPDATE_PIECE, last = first + UPDATE_PIECE < n ? first + UPDATE_PIECE : n;
            memset(row, 0, COLUMNS * sizeof *row);
            int64_t s = start ? update_segment(start, segments, first) : 0;
            for (int64_t i = first; i < last; s++) {
                int64_t stop = start ? update_segment_end(start, segments, s, last) : last;
                double sum = squares(x + i, stop - i); /* squares of floats cannot overflow a double */
                int32_t at = start ? group[s] : 0;
                if (at >= 0 && at < (int32_t)attr->groups)
                    row[at] += sum;
                row[COLUMNS - 1] += sum;
                i = stop;
            }
        }
        return;
    }
    double total[COLUMNS] = {0};
    for (int64_t u = 0; u < update_pieces(a); u++)
        for (int k = 0; k < COLUMNS; k++)
            total[k] += partial[u * COLUMNS + k];
    for (uint32_t k = 0; k < attr->groups; k++)
        ((float *)a->out[0].data)[k] = (float)total[k];
    *(float *)a->out[1].data = isfinite(total[COLUMNS - 1]) ? 1.0f : 0.0f;
}

const sodet_cpu_kernel sodet_cpu_square_sum[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .phases = 2, .units = units, .scratch = scratch, .run = run}};
