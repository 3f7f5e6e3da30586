/* Columns' sources are worked out once (phase 0); then rows of y are independent. y may be a. A plane of a blocked map is a block of
 * channels, one of a narrow map has all of them. */
#include "kernels/upsample_add/upsample_add.h"

#include <stdio.h>

#include "kernels/kernels.h"
#include "kernels/narrow.h"
#include "kernels/resize/resize_math.h"
#include "kernels/vector.h"
#include "plugins/backend/cpu/cpu.h"

typedef struct sizes {
    int64_t planes, h, w, oh, ow, lanes;
} sizes;

static sizes sizes_of(const sodet_kernel_args *k)
{
    const sodet_shape *large = &k->in[0].shape, *small = &k->in[1].shape;
    const int64_t lanes = k->out[0].layout == SODET_BLOCKED ? k->out[0].block : k->out[0].layout == SODET_CHANNELS_LAST ? large->dim[1] : 1;
    return (sizes){
        large->dim[0] * ((large->dim[1] + lanes - 1) / lanes), small->dim[2], small->dim[3], large->dim[2], large->dim[3], lanes};
}

static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    (void)n_threads;
    return (uint64_t)n->out_shape[0].dim[3] * sizeof(int64_t);
}

static int64_t units(const sodet_kernel_args *k, uint32_t phase)
{
    const sizes z = sizes_of(k);
    return phase == 0 ? 1 : z.planes * z.oh;
}

/* Where, in b, the row begins that row u of y reads. */
static int64_t source_row(const sizes *z, int64_t u)
{
    return (u / z->oh * z->h + resize_nearest(u % z->oh, z->h, z->oh)) * z->w * z->lanes;
}

SODET_CLONES
static void rows(const sizes *z, float *y, const float *a, const float *b, const int64_t *from, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++) {
        const int64_t at = u * z->ow * z->lanes;
        const float *row = b + source_row(z, u);
        if (z->lanes == 16)
            for (int64_t j = 0; j < z->ow; j++)
                vector16_at(y + at + 16 * j) = vector16_at(a + at + 16 * j) + vector16_at(row + 16 * from[j]);
        else if (z->lanes == 8)
            for (int64_t j = 0; j < z->ow; j++)
                vector8_at(y + at + 8 * j) = vector8_at(a + at + 8 * j) + vector8_at(row + 8 * from[j]);
        else
            for (int64_t j = 0; j < z->ow; j++)
                y[at + j] = a[at + j] + row[from[j]];
    }
}

SODET_CLONES
static void rows_narrow(const sizes *z, uint16_t *y, const uint16_t *a, const uint16_t *b, const int64_t *from, int64_t begin, int64_t end)
{
    for (int64_t u = begin; u < end; u++) {
        const int64_t at = u * z->ow * z->lanes;
        const uint16_t *row = b + source_row(z, u);
        for (int64_t j = 0; j < z->ow; j++)
            for (int64_t c = 0; c < z->lanes; c++)
                y[at + j * z->lanes + c] = narrow_bits(narrow_value(a[at + j * z->lanes + c]) + narrow_value(row[from[j] * z->lanes + c]));
    }
}

static void run(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    const sizes z = sizes_of(k);
    int64_t *from = k->scratch;
    if (phase == 0)
        for (int64_t j = 0; j < z.ow; j++)
            from[j] = resize_nearest(j, z.w, z.ow);
    else if (k->out[0].layout == SODET_CHANNELS_LAST)
        rows_narrow(&z, k->out[0].data, k->in[0].data, k->in[1].data, from, begin, end);
    else
        rows(&z, k->out[0].data, k->in[0].data, k->in[1].data, from, begin, end);
}

const sodet_cpu_kernel sodet_cpu_upsample_add[] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .flags = SODET_CPU_BLOCKED, .phases = 2, .units = units, .scratch = scratch, .run = run}};

static uint64_t maps(const sodet_node *n)
{
    (void)n;
    return 3;
}

static bool narrow(const cpu_plan *p, const cpu_node *n)
{
    return p->device->precision == SODET_PRECISION_BF16 || p->forms.value[n->node->out[0].id].wanted == CPU_FORM_NARROW;
}

static sodet_status choose(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    (void)err;
    const sodet_node *node = n->node;
    cpu_choose_own(p, n);
    if (cpu_may_narrow(p, n, 0) &&
        (cpu_home(p, node->in[0]) == CPU_FORM_NARROW || p->forms.value[node->out[0].id].wanted == CPU_FORM_NARROW)) {
        n->form_in[0] = n->form_in[1] = n->form_out[0] = CPU_FORM_NARROW;
        snprintf(n->text, sizeof n->text, "own %s", cpu_form_name(p, CPU_FORM_NARROW));
    }
    return SODET_OK;
}

const cpu_planner sodet_cpu_plan_upsample_add = {.maps = maps, .narrow = narrow, .choose = choose, .emit = cpu_emit_own};
