/* Axes that stay neighbours are walked as one. If the last axis keeps its place, rows are copied; else the axis that is last in x and the
 * one that is last in y are exchanged in tiles. Between a blocked map and [N, H, W, C], which is what heads do, every position is a row of
 * whole blocks, so the plan lets this operator read or write blocked maps. */
#include "kernels/permute/permute.h"

#include <stdio.h>

#include "kernels/kernels.h"
#include "kernels/vector.h"
#include "plugins/backend/cpu/cpu.h"

enum { TILE = 16, POSITIONS = 64 };

typedef struct walk {
    uint32_t rank;
    int64_t dim[SODET_MAX_RANK], from[SODET_MAX_RANK], to[SODET_MAX_RANK]; /* of y's axes: size, step in x, step in y */
    uint32_t last_in;                                                      /* y's axis that is x's last */
    int64_t outer;                                                         /* product of the axes that are neither last_in nor y's last */
} walk;

static walk walk_of(const sodet_kernel_args *a)
{
    const sodet_permute_attr *t = a->attr;
    const sodet_shape *x = &a->in[0].shape, *y = &a->out[0].shape;
    walk w = {.outer = 1};
    int64_t step[SODET_MAX_RANK], all = 1;
    for (uint32_t i = x->rank; i-- > 0; all *= x->dim[i])
        step[i] = all;
    for (uint32_t i = 0; i < y->rank; i++) {
        int64_t from = step[t->order[i]];
        if (y->dim[i] == 1)
            continue;
        if (w.rank && w.from[w.rank - 1] == from * y->dim[i]) {
            w.dim[w.rank - 1] *= y->dim[i];
            w.from[w.rank - 1] = from;
        } else {
            w.dim[w.rank] = y->dim[i];
            w.from[w.rank++] = from;
        }
    }
    if (w.rank == 0) {
        w.rank = 1;
        w.dim[0] = all;
        w.from[0] = 1;
    }
    all = 1;
    for (uint32_t i = w.rank; i-- > 0; all *= w.dim[i]) {
        w.to[i] = all;
        if (w.from[i] == 1)
            w.last_in = i;
    }
    for (uint32_t i = 0; i + 1 < w.rank; i++)
        if (i != w.last_in)
            w.outer *= w.dim[i];
    return w;
}

static int64_t tiles(const walk *w)
{
    return w->last_in + 1 == w->rank ? 1 : (w->dim[w->last_in] + TILE - 1) / TILE;
}

static int64_t runs(const sodet_shape *map)
{
    return (map->dim[2] * map->dim[3] + POSITIONS - 1) / POSITIONS;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    if (a->in[0].layout == SODET_BLOCKED)
        return a->in[0].shape.dim[0] * runs(&a->in[0].shape);
    if (a->out[0].layout == SODET_BLOCKED)
        return a->out[0].shape.dim[0] * runs(&a->out[0].shape);
    if (sodet_elements(&a->out[0].shape) == 0)
        return 0;
    walk w = walk_of(a);
    return w.outer * tiles(&w);
}

SODET_CLONES
static void tile(const walk *w, uint32_t *y, const uint32_t *x, int64_t begin, int64_t end) /* [begin, end) of last_in */
{
    const int64_t n = w->dim[w->rank - 1], step = w->from[w->rank - 1], row = w->to[w->last_in];
    for (int64_t b = 0; b < n; b += TILE) {
        int64_t to = b + TILE < n ? b + TILE : n;
        for (int64_t i = begin; i < end; i++)
            for (int64_t j = b; j < to; j++)
                y[i * row + j] = x[i + j * step];
    }
}

/* Positions [begin, end) of one sample between [blocks][area][block] and [area][C]. */
SODET_INLINE void rows_of_blocks(uint32_t *rows, uint32_t *blocked, int64_t channels, int64_t area, int64_t begin, int64_t end,
                                 bool to_rows, const int64_t block)
{
    for (int64_t p = begin; p < end; p++)
        for (int64_t c = 0; c < channels; c += block) {
            uint32_t *in_rows = rows + p * channels + c, *in_block = blocked + (c * area) + p * block;
            const int64_t n = channels - c < block ? channels - c : block;
            if (n == block) {
                for (int64_t k = 0; k < block; k++)
                    *(to_rows ? &in_rows[k] : &in_block[k]) = to_rows ? in_block[k] : in_rows[k];
            } else if (to_rows) {
                for (int64_t k = 0; k < n; k++)
                    in_rows[k] = in_block[k];
            } else {
                for (int64_t k = 0; k < block; k++)
                    in_block[k] = k < n ? in_rows[k] : 0;
            }
        }
}

SODET_CLONES
static void exchange(const sodet_tensor *map, uint32_t *rows, bool to_rows, int64_t begin, int64_t end)
{
    const int64_t channels = map->shape.dim[1], area = map->shape.dim[2] * map->shape.dim[3], n = runs(&map->shape);
    const int64_t blocks = (channels + map->block - 1) / map->block;
    for (int64_t u = begin; u < end; u++) {
        const int64_t sample = u / n, first = u % n * POSITIONS, last = first + POSITIONS < area ? first + POSITIONS : area;
        uint32_t *blocked = (uint32_t *)map->data + sample * blocks * area * map->block, *plain = rows + sample * area * channels;
        if (map->block == 16)
            rows_of_blocks(plain, blocked, channels, area, first, last, to_rows, 16);
        else
            rows_of_blocks(plain, blocked, channels, area, first, last, to_rows, 8);
    }
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    if (a->in[0].layout == SODET_BLOCKED || a->out[0].layout == SODET_BLOCKED) {
        const bool to_rows = a->in[0].layout == SODET_BLOCKED;
        exchange(to_rows ? &a->in[0] : &a->out[0], to_rows ? a->out[0].data : a->in[0].data, to_rows, begin, end);
        return;
    }
    const walk w = walk_of(a);
    const uint32_t last = w.rank - 1;
    const int64_t n = tiles(&w);
    for (int64_t u = begin; u < end; u++) {
        int64_t rest = u / n, from = 0, to = 0;
        for (uint32_t i = w.rank; i-- > 0;) {
            if (i == last || i == w.last_in)
                continue;
            from += rest % w.dim[i] * w.from[i];
            to += rest % w.dim[i] * w.to[i];
            rest /= w.dim[i];
        }
        const uint32_t *x = (const uint32_t *)a->in[0].data + from;
        uint32_t *y = (uint32_t *)a->out[0].data + to;
        if (w.last_in == last) {
            memcpy(y, x, (size_t)w.dim[last] * sizeof *y);
        } else {
            int64_t first = u % n * TILE;
            tile(&w, y, x, first, first + TILE < w.dim[w.last_in] ? first + TILE : w.dim[w.last_in]);
        }
    }
}

const sodet_cpu_kernel sodet_cpu_permute[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};

/* ---- the plan ---- */
static bool is_order(const sodet_node *n, const uint32_t order[4])
{
    return n->in_shape[0].rank == 4 && n->in_shape[0].dtype == SODET_F32 &&
           memcmp(((const sodet_permute_attr *)n->attr)->order, order, 4 * sizeof *order) == 0;
}

static const uint32_t to_nhwc[4] = {0, 2, 3, 1}, to_nchw[4] = {0, 3, 1, 2};

static uint64_t maps(const sodet_node *n)
{
    return is_order(n, to_nhwc) && cpu_can_block(&n->in_shape[0]);
}

static sodet_status choose(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    (void)err;
    const sodet_node *node = n->node;
    snprintf(n->text, sizeof n->text, "own");
    if (is_order(node, to_nhwc) && cpu_can_block(&node->in_shape[0]) && cpu_home(p, node->in[0]) == CPU_FORM_LAST) {
        n->form_in[0] = CPU_FORM_LAST;
        snprintf(n->text, sizeof n->text, "view of %s", cpu_form_name(p, CPU_FORM_LAST));
    } else if (is_order(node, to_nchw) && cpu_may_narrow(p, n, 0) && p->value[node->out[0].id].wanted == CPU_FORM_NARROW) {
        n->form_out[0] = CPU_FORM_LAST;
        snprintf(n->text, sizeof n->text, "view as %s", cpu_form_name(p, CPU_FORM_LAST));
    } else if (is_order(node, to_nhwc) && cpu_can_block(&node->in_shape[0]) && cpu_home(p, node->in[0]) == CPU_FORM_BLOCKED) {
        n->form_in[0] = CPU_FORM_BLOCKED;
        snprintf(n->text, sizeof n->text, "own from nChw%uc", p->device->block);
    } else if (is_order(node, to_nchw) && cpu_can_block(&node->out_shape[0]) && p->value[node->out[0].id].wanted &&
               sodet_graph_value(p->graph, node->out[0])->store == SODET_STORE_WORK) {
        n->form_out[0] = CPU_FORM_BLOCKED;
        snprintf(n->text, sizeof n->text, "own to nChw%uc", p->device->block);
    }
    return SODET_OK;
}

static sodet_status emit(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    if (n->form_in[0] == CPU_FORM_LAST || n->form_out[0] == CPU_FORM_LAST) /* the same bytes in the same order */
        return cpu_emit_view(p, n, err);
    const bool in = n->form_in[0] == CPU_FORM_BLOCKED, out = n->form_out[0] == CPU_FORM_BLOCKED;
    const sodet_tensor tensor[2] = {{NULL, node->in_shape[0], in ? SODET_BLOCKED : SODET_PLAIN, in ? p->device->block : 0},
                                    {NULL, node->out_shape[0], out ? SODET_BLOCKED : SODET_PLAIN, out ? p->device->block : 0}};
    cpu_place place[2];
    place[0] = cpu_read(p, n, 0, err);
    place[1] = place[0] ? cpu_write(p, n, 0, UINT32_MAX, err) : 0;
    if (!place[0] || !place[1])
        return err && err->code ? err->code : cpu_out_of_memory(err);
    sodet_status status = cpu_emit_kernel(p, n, sodet_cpu_permute, tensor, place, 1, 1, node->attr, err);
    return status == SODET_OK ? cpu_written(p, n, 0, place[1], err) : status;
}

const cpu_planner sodet_cpu_plan_permute = {.maps = maps, .choose = choose, .emit = emit};
