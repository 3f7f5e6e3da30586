/* Axes that stay neighbours are walked as one. If the last axis keeps its place, rows are copied; else the axis that is last in x and the
 * one that is last in y are exchanged in tiles. Between a map and [N, H, W, C], which is what heads do, the plan converts from and to the
 * form that has its channels last. */
#include "kernels/permute/permute.h"

#include <stdio.h>

#include "kernels/kernels.h"
#include "kernels/vector.h"
#include "plugins/backend/cpu/cpu.h"

enum { TILE = 16 };

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

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
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

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
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
    } else if (is_order(node, to_nchw) && cpu_may_narrow(p, n, 0) && p->forms.value[node->out[0].id].wanted == CPU_FORM_NARROW) {
        n->form_out[0] = CPU_FORM_LAST;
        snprintf(n->text, sizeof n->text, "view as %s", cpu_form_name(p, CPU_FORM_LAST));
    } else if (is_order(node, to_nhwc) && cpu_can_block(&node->in_shape[0]) && cpu_home(p, node->in[0]) == CPU_FORM_BLOCKED) {
        n->form_in[0] = CPU_FORM_BLOCKED;
        snprintf(n->text, sizeof n->text, "own from nChw%uc", p->device->block);
    } else if (is_order(node, to_nchw) && cpu_can_block(&node->out_shape[0]) && p->forms.value[node->out[0].id].wanted &&
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
    /* [N, H, W, C] is the map with its channels last. */
    const sodet_tensor tensor[2] = {
        out ? cpu_tensor(p, &node->out_shape[0], CPU_FORM_LAST) : cpu_tensor(p, &node->in_shape[0], n->form_in[0]),
        in ? cpu_tensor(p, &node->in_shape[0], CPU_FORM_LAST) : cpu_tensor(p, &node->out_shape[0], n->form_out[0])};
    sd_place place[2];
    place[0] = cpu_read(p, n, 0, err);
    place[1] = place[0] ? cpu_write(p, n, 0, UINT32_MAX, err) : 0;
    if (!place[0] || !place[1])
        return err && err->code ? err->code : cpu_out_of_memory(err);
    sodet_status status = cpu_emit_kernel(p, n, in || out ? &cpu_convert : sodet_cpu_permute, tensor, place, 1, 1, node->attr, err);
    return status == SODET_OK ? cpu_written(p, n, 0, place[1], err) : status;
}

const cpu_planner sodet_cpu_plan_permute = {.maps = maps, .choose = choose, .emit = emit};
