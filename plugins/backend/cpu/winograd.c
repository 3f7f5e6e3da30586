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

static void start(cpu_winograd *p, const cpu_winograd_code *code, const sodet_shape *x, const sodet_shape *y, int64_t dilation)
{
    *p = (cpu_winograd){
        .code = code, .batch = x->dim[0], .in = x->dim[1], .out = y->dim[1], .h = x->dim[2], .w = x->dim[3], .dilation = dilation};
    p->in_whole = up(p->in, code->lanes);
    p->out_whole = up(p->out, code->lanes);
    p->rows = parts(parts(p->h, dilation), 4);
    p->columns = parts(parts(p->w, dilation), 4);
    p->tiles = p->batch * dilation * dilation * p->rows * p->columns;
}

/* An odd number of cache lines, so that the 36 positions do not meet in one set of the cache. */
static int64_t odd_lines(int64_t floats)
{
    return (parts(floats, 16) | 1) * 16;
}

void cpu_winograd_plan(cpu_winograd *p, const cpu_winograd_code *code, const sodet_shape *x, const sodet_shape *y, int64_t dilation,
                       bool backward, bool relu, uint32_t threads)
{
    start(p, code, x, y, dilation);
    p->backward = backward;
    p->relu = relu;
    const int64_t pair = 2 * code->lanes;
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
    p->v_step = odd_lines(p->panels * p->panel * p->in_whole);
    p->m_step = odd_lines(p->panels * p->panel * p->chunk);
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

/* ---- gradient of the weights ---- */
enum { SUM_BYTES = 1 << 27 }; /* of all groups' sums, as long as one group's are not more */

static int64_t sum_floats(const cpu_winograd *p) /* of a group: those of the weights, those of the bias */
{
    const int64_t out = up(p->out_whole, 2 * p->code->lanes);
    return 36 * p->in_whole * out + up(out, 16);
}

void cpu_winograd_plan_gradient(cpu_winograd *p, const cpu_winograd_code *code, const sodet_shape *x, const sodet_shape *dy,
                                int64_t dilation, uint32_t threads)
{
    start(p, code, x, dy, dilation);
    /* A group of tiles for each thread; where weights are many, chunks of outputs for the rest of the threads. */
    const int64_t most = SUM_BYTES / (sum_floats(p) * (int64_t)sizeof(float)), pair = 2 * code->lanes, pairs = parts(p->out_whole, pair);
    p->groups = most < 1 ? 1 : most < threads ? most : threads;
    p->groups = p->groups > p->tiles ? p->tiles > 0 ? p->tiles : 1 : p->groups;
    p->chunks = parts(threads, p->groups);
    p->chunks = p->chunks > pairs ? pairs : p->chunks;
    p->chunk = parts(pairs, p->chunks) * pair;
    p->chunks = parts(pairs * pair, p->chunk);
    int64_t room = code->gradient_bytes / (144 * (p->in_whole + p->chunk)), least = 64, all = parts(p->tiles, p->groups);
    room = room < least ? least : room;
    p->tiles_at_once = room < all ? parts(all, parts(all, room)) : all > 0 ? all : 1;
    p->v_step = odd_lines(p->tiles_at_once * p->in_whole);
    p->m_step = odd_lines(p->tiles_at_once * p->chunk);
}

uint64_t cpu_winograd_gradient_scratch(const cpu_winograd *p, uint32_t threads)
{
    return ((uint64_t)(p->groups * sum_floats(p)) + unit_floats(p) * threads) * sizeof(float);
}

/* Phase 0: sums in the transformed domain. Phase 1: back, by blocks of outputs and of inputs. */
static int64_t units_gradient(const sodet_kernel_args *k, uint32_t phase)
{
    const cpu_winograd *p = k->attr;
    return phase == 0 ? p->groups * p->chunks : p->in_whole / p->code->lanes * (p->out_whole / p->code->lanes);
}

static void run_gradient(const sodet_kernel_args *k, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    const cpu_winograd *p = k->attr;
    const int64_t lanes = p->code->lanes, step = sum_floats(p), bias = step - up(up(p->out_whole, 2 * lanes), 16);
    float *sums = k->scratch, *mine = sums + p->groups * step + (int64_t)(thread * unit_floats(p));
    for (int64_t unit = begin; unit < end && phase == 0; unit++) {
        float *s = sums + unit % p->groups * step;
        p->code->gradient_unit(p, k->in[0].data, k->in[1].data, s, s + bias, mine, unit % p->groups, unit / p->groups);
    }
    const int64_t in_blocks = p->in_whole / lanes;
    for (int64_t unit = begin; unit < end && phase == 1; unit++) {
        const int64_t from = unit % in_blocks * lanes, o = unit / in_blocks;
        for (int64_t in = from; in < from + lanes && in < p->in; in++)
            p->code->gradient_weights(p, sums, step, k->out[0].data, in, o);
        for (int64_t c = o * lanes; from == 0 && k->n_out > 1 && c < (o + 1) * lanes && c < p->out; c++) {
            double sum = 0;
            for (int64_t g = 0; g < p->groups; g++)
                sum += (double)sums[g * step + bias + c];
            ((float *)k->out[1].data)[c] = (float)sum;
        }
    }
}

const sodet_cpu_kernel cpu_winograd_gradient = {
    .struct_size = sizeof(sodet_cpu_kernel), .phases = 2, .units = units_gradient, .run = run_gradient};
