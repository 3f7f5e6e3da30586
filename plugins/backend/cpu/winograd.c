/* See winograd.h: which code, how the work is cut, and the kernels that walk it. */
#include "plugins/backend/cpu/winograd.h"

const cpu_winograd_code *cpu_winograd_for(uint32_t block)
{
#if defined(__x86_64__)
    if (block == 16 && __builtin_cpu_supports("avx512f"))
        return &cpu_winograd_avx512;
    if (block == 8 && __builtin_cpu_supports("fma") && (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2)
        return &cpu_winograd_avx2;
#endif
    (void)block;
    return NULL;
}

static int64_t parts(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

static int64_t up(int64_t n, int64_t unit)
{
    return parts(n, unit) * unit;
}

void cpu_winograd_plan(cpu_winograd *p, const cpu_winograd_code *code, const sodet_shape *x, const sodet_shape *y, int64_t dilation,
                       bool backward, bool relu, uint32_t threads)
{
    *p = (cpu_winograd){.code = code,
                        .batch = x->dim[0],
                        .in = x->dim[1],
                        .out = y->dim[1],
                        .h = x->dim[2],
                        .w = x->dim[3],
                        .dilation = dilation,
                        .backward = backward,
                        .relu = relu};
    const int64_t pair = 2 * code->lanes;
    p->in_whole = up(p->in, code->lanes);
    p->out_whole = up(p->out, code->lanes);
    p->rows = parts(parts(p->h, dilation), 4);
    p->columns = parts(parts(p->w, dilation), 4);
    p->tiles = p->batch * dilation * dilation * p->rows * p->columns;
    p->panel = code->most_panel; /* or what leaves clearly fewer places of the last panel empty */
    for (int64_t size = p->panel - 1; size >= code->least_panel; size--)
        if (up(p->tiles, size) * 33 < up(p->tiles, p->panel) * 32)
            p->panel = size;
    int64_t all = parts(p->tiles, p->panel), most = code->unit_bytes / (144 * p->panel * (p->in_whole + p->out_whole)),
            least = code->least_tiles / p->panel;
    most = most < least ? least : most;
    p->blocks = parts(all, most);
    p->chunks = 1;
    if (p->blocks < threads)
        p->chunks = parts(threads, p->blocks); /* weights are read once, transforms of tiles done for each chunk */
    else
        p->blocks = up(p->blocks, threads);
    p->blocks = p->blocks > all ? all : p->blocks;
    p->panels = parts(all, p->blocks);
    int64_t pairs = parts(p->out_whole, pair);
    p->chunks = p->chunks > pairs ? pairs : p->chunks;
    p->chunk = parts(pairs, p->chunks) * pair;
    p->chunks = parts(p->out_whole, p->chunk);
    /* An odd number of cache lines, so that the 36 positions do not meet in one set of the cache. */
    p->v_step = (parts(p->panels * p->panel * p->in_whole, 16) | 1) * 16;
    p->m_step = (parts(p->panels * p->panel * p->chunk, 16) | 1) * 16;
}

uint64_t cpu_winograd_weight_bytes(const cpu_winograd *p)
{
    return (uint64_t)(36 * p->in_whole * up(p->out_whole, 2 * p->code->lanes)) * sizeof(float);
}

static uint64_t unit_floats(const cpu_winograd *p)
{
    return (uint64_t)(36 * (p->v_step + p->m_step));
}

uint64_t cpu_winograd_scratch(const cpu_winograd *p, uint32_t threads)
{
    return unit_floats(p) * sizeof(float) * threads;
}

static int64_t units_weights(const sodet_kernel_args *k, uint32_t phase)
{
    (void)phase;
    const cpu_winograd *p = k->attr;
    return p->in_whole;
}

static void run_weights(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const cpu_winograd *p = k->attr;
    for (int64_t block = 0; block < parts(p->out_whole, 2 * p->code->lanes) * 2; block++) /* an odd last block gets zeros beside it */
        for (int64_t in = begin; in < end; in++)
            p->code->weights(p, k->in[0].data, k->out[0].data, in, block);
}

static int64_t units_maps(const sodet_kernel_args *k, uint32_t phase)
{
    (void)phase;
    const cpu_winograd *p = k->attr;
    return p->blocks * p->chunks;
}

static void run_maps(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase;
    const cpu_winograd *p = k->attr;
    for (int64_t unit = begin; unit < end; unit++)
        p->code->unit(p, k->in[0].data, k->in[1].data, k->in[2].data, k->in[3].data, k->out[0].data,
                      (float *)k->scratch + thread * unit_floats(p), unit % p->blocks, unit / p->blocks);
}

const sodet_cpu_kernel cpu_winograd_weights = {.struct_size = sizeof(sodet_cpu_kernel), .units = units_weights, .run = run_weights};
const sodet_cpu_kernel cpu_winograd_maps = {.struct_size = sizeof(sodet_cpu_kernel), .units = units_maps, .run = run_maps};
