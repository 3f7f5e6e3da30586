/* conv2d by our own Winograd or by oneDNN. For each part: blocked maps before plain ones, Winograd before direct where it pays; what
 * oneDNN has no fast code for falls through to the next candidate, at last to its plain loops.
 *
 * The rule for oneDNN's Winograd comes from measurements (F(4x3) on two generations of AVX-512 machines; SSD300 and RetinaNet layers at batch 1
 * and 8): 3x3, stride 1, no dilation, one group, at least 32 channels to read (16 for the gradient of the weights) and 16 to write, and an
 * output of at least 10x10; for the gradient of the data at batch 1 also an output of at least 38x38 and at most 512 output channels. */
#include <stdio.h>

#include "kernels/activation/activation.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/kernels.h"
#include "plugins/backend/cpu/cpu.h"
#include "plugins/backend/cpu/winograd.h"

typedef struct conv_state {
    dnnl_primitive_desc_t pd;
    dn_cmd plain_weights; /* plain weights as oneDNN sees them: rank 5 with groups */
    bool sum, binary;     /* how the residual gets in */
    bool after;           /* the activation is a step of its own */
    bool own;             /* by winograd.c; pd is NULL */
    cpu_winograd winograd;
    sodet_activation_attr activation;
} conv_state;

typedef struct conv_shape {
    const sodet_shape *x, *y, *w; /* of the convolution, whatever the part */
    const sodet_conv2d_attr *attr;
    dn_window window;
    bool bias;
} conv_shape;

static conv_shape shape_of(const sodet_node *n)
{
    const sodet_conv2d_attr *a = n->attr;
    conv_shape s = {.attr = a};
    switch (n->part) {
    case 0:
        s.x = &n->in_shape[0], s.w = &n->in_shape[1], s.y = &n->out_shape[0];
        s.bias = n->n_in > 2 && n->in[2].id;
        break;
    case 1:
        s.x = &n->out_shape[0], s.w = &n->in_shape[1], s.y = &n->in_shape[0];
        break;
    default:
        s.x = &n->in_shape[0], s.w = &n->out_shape[0], s.y = &n->in_shape[1];
        s.bias = n->n_out > 1;
    }
    s.window = (dn_window){.kernel = {s.w->dim[2], s.w->dim[3]},
                           .stride = {a->stride_h, a->stride_w},
                           .dilation = {a->dilation_h - 1, a->dilation_w - 1},
                           .pad_begin = {a->pad_top, a->pad_left},
                           .pad_end = {a->pad_bottom, a->pad_right}};
    return s;
}

static uint64_t maps(const sodet_node *n)
{
    switch (n->part) {
    case 0:
        return 1u | 8u;
    case 1:
        return 1u;
    default:
        return 3u;
    }
}

static bool same_padding_3x3(const conv_shape *s, int32_t dilation)
{
    const sodet_conv2d_attr *a = s->attr;
    return a->groups == 1 && a->stride_h == 1 && a->stride_w == 1 && a->dilation_h == dilation && a->dilation_w == dilation &&
           s->w->dim[2] == 3 && s->w->dim[3] == 3 && a->pad_top == dilation && a->pad_left == dilation && a->pad_bottom == dilation &&
           a->pad_right == dilation;
}

/* With AVX-512 ours is faster than oneDNN's Winograd where the transformed weights fit the second-level cache, from 16 channels on and on
 * small maps too, as long as their tiles are filled and are many enough. With AVX2 oneDNN has none. */
static bool own_pays(const cpu_plan *p, const conv_shape *s, uint32_t part)
{
    const uint32_t how = p->device->config->winograd;
    if (how > CPU_WINOGRAD_OWN || !cpu_winograd_for(p->device->block) || !same_padding_3x3(s, s->attr->dilation_h))
        return false;
    if (how == CPU_WINOGRAD_OWN)
        return true;
    const int64_t out = s->w->dim[0], in = s->w->dim[1], h = s->y->dim[2], w = s->y->dim[3], d = s->attr->dilation_h,
                  tiles = d * d * ((h + 4 * d - 1) / (4 * d)) * ((w + 4 * d - 1) / (4 * d));
    if (in < 16 || out < 16 || s->x->dim[0] * tiles < 24 || 20 * h * w < 9 * 16 * tiles)
        return false;
    return p->device->block == 8 || (part < 2 && in * out <= 160 * 160 && d == 1);
}

static bool winograd_pays(const conv_shape *s, uint32_t part)
{
    if (!same_padding_3x3(s, 1)) /* with unlike paddings 2.6.3's computes wrong gradients of the data */
        return false;
    int64_t read = part == 1 ? s->w->dim[0] : s->w->dim[1], written = part == 1 ? s->w->dim[1] : s->w->dim[0];
    if (read < (part == 2 ? 16 : 32) || written < 16 || s->y->dim[2] < 10 || s->y->dim[3] < 10)
        return false;
    return part != 1 || s->x->dim[0] > 1 || (s->y->dim[2] >= 38 && s->y->dim[3] >= 38 && s->w->dim[0] <= 512);
}

/* The activation as a post-operation; false: oneDNN has none. */
static bool post_activation(dnnl_post_ops_t ops, const sodet_conv2d_attr *a)
{
    switch (a->activation) {
    case SODET_ACT_NONE:
        return true;
    case SODET_ACT_RELU:
        return dn_post_eltwise(ops, dnnl_eltwise_relu, 0, 0) == dnnl_success;
    case SODET_ACT_LEAKY_RELU:
        return dn_post_eltwise(ops, dnnl_eltwise_relu, a->slope, 0) == dnnl_success;
    case SODET_ACT_RELU6:
        return dn_post_eltwise(ops, dnnl_eltwise_clip, 0, 6) == dnnl_success;
    case SODET_ACT_SIGMOID:
        return dn_post_eltwise(ops, dnnl_eltwise_logistic, 0, 0) == dnnl_success;
    case SODET_ACT_SILU:
        return dn_post_eltwise(ops, dnnl_eltwise_swish, 1, 0) == dnnl_success;
    case SODET_ACT_HARD_SWISH:
        return dn_post_eltwise(ops, dnnl_eltwise_hardswish, 1.0f / 6, 0.5f) == dnnl_success;
    default:
        return false;
    }
}

static dnnl_primitive_attr_t make_attr(cpu_plan *p, const conv_shape *s, const conv_state *c, dn_cmd residual)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    bool good = dnnl_primitive_attr_clone(&attr, p->attr) == dnnl_success && dnnl_post_ops_create(&ops) == dnnl_success;
    if (good && c->sum)
        good = dn_post_sum(ops) == dnnl_success;
    if (good && c->binary)
        good = dnnl_post_ops_append_binary(ops, dnnl_binary_add, residual) == dnnl_success;
    if (good && !c->after)
        good = post_activation(ops, s->attr);
    if (good)
        good = dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (!good && attr) {
        dnnl_primitive_attr_destroy(attr);
        attr = NULL;
    }
    return attr;
}

/* A rank-5 shape for grouped weights. */
static sodet_shape oned_weights(const sodet_shape *w, int32_t groups)
{
    sodet_shape s = *w;
    if (groups > 1)
        s = (sodet_shape){SODET_F32, 5, {groups, w->dim[0] / groups, w->dim[1], w->dim[2], w->dim[3]}};
    return s;
}

typedef struct attempt {
    uint32_t x, y; /* forms */
    dnnl_alg_kind_t alg;
} attempt;

static dnnl_primitive_desc_t try_one(cpu_plan *p, const sodet_node *n, const conv_shape *s, conv_state *c, const attempt *t)
{
    dnnl_engine_t e = p->device->engine;
    sodet_shape w_shape = oned_weights(s->w, s->attr->groups), b_shape = sodet_shape_make(SODET_F32, 1, s->w->dim[0], 0, 0, 0);
    dn_cmd x = cpu_md(p, s->x, t->x), y = cpu_md(p, s->y, t->y), w = cpu_md_any(p, &w_shape), b = s->bias ? cpu_md(p, &b_shape, 0) : NULL;
    dnnl_primitive_desc_t pd = NULL, hint = NULL;
    if (!x || !y || !w)
        return NULL;
    if (n->part == 0) {
        dnnl_primitive_attr_t attr = make_attr(p, s, c, y);
        /* Where weights stay, Winograd keeps them transformed; where they change each step it transforms them as it goes. */
        dnnl_prop_kind_t prop = sodet_is_training(p->graph) ? dnnl_forward_training : dnnl_forward_inference;
        if (attr && dn_conv_forward(&pd, e, prop, t->alg, x, w, b, y, &s->window, attr) != dnnl_success)
            pd = NULL;
        if (attr)
            dnnl_primitive_attr_destroy(attr);
        return pd;
    }
    dnnl_alg_kind_t alg = t->alg == dnnl_convolution_auto ? dnnl_convolution_direct : t->alg;
    if (dn_conv_forward(&hint, e, dnnl_forward_training, alg, x, w, n->part == 2 ? b : NULL, y, &s->window, NULL) != dnnl_success &&
        dn_conv_forward(&hint, e, dnnl_forward_training, dnnl_convolution_direct, x, w, n->part == 2 ? b : NULL, y, &s->window, NULL) !=
            dnnl_success)
        return NULL;
    dnnl_status_t status = n->part == 1 ? dn_conv_backward_data(&pd, e, alg, x, w, y, &s->window, hint, p->attr)
                                        : dn_conv_backward_weights(&pd, e, alg, x, w, b, y, &s->window, hint, p->attr);
    dnnl_primitive_desc_destroy(hint);
    return status == dnnl_success ? pd : NULL;
}

static bool residual_dies(const cpu_plan *p, const cpu_node *n)
{
    uint32_t last;
    sodet_graph_uses(p->graph, n->node->in[3], &last);
    return last == n->index && n->node->in[3].id != n->node->in[0].id &&
           sodet_graph_value(p->graph, n->node->in[3])->store == SODET_STORE_WORK;
}

/* ---- our own Winograd ---- */
enum { COPY_FORWARD = 1, COPY_BACKWARD }; /* kinds of transformed weights */

static sodet_status choose_own(cpu_plan *p, cpu_node *n, const conv_shape *s)
{
    conv_state *c = n->state;
    const cpu_winograd_code *code = cpu_winograd_for(p->device->block);
    const uint32_t threads = p->device->threads;
    const int64_t dilation = s->attr->dilation_h;
    const bool backward = n->node->part == 1, relu = s->attr->activation == SODET_ACT_RELU;
    c->own = true;
    c->after = s->attr->activation != SODET_ACT_NONE && !relu;
    n->form_in[0] = CPU_FORM_BLOCKED;
    if (n->node->part == 2) {
        n->form_in[1] = CPU_FORM_BLOCKED;
        cpu_winograd_plan_gradient(&c->winograd, code, s->x, s->y, dilation, threads);
    } else {
        n->form_out[0] = CPU_FORM_BLOCKED;
        cpu_winograd_plan(&c->winograd, code, backward ? s->y : s->x, backward ? s->x : s->y, dilation, backward, relu, threads);
    }
    bool residual = n->node->part == 0 && n->node->n_in > 3 && n->node->in[3].id;
    if (residual)
        n->form_in[3] = CPU_FORM_BLOCKED;
    snprintf(n->text, sizeof n->text, "own winograd nChw%uc%s%s", p->device->block, residual ? " +residual" : "",
             c->after              ? " activation"
             : s->attr->activation ? " +activation"
                                   : "");
    return SODET_OK;
}

static sodet_status emit_own_gradient(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_node *node = n->node;
    const bool base = node->base && node->base[0].id;
    const sodet_shape *w = &node->out_shape[0];
    cpu_place place[4] = {cpu_read(p, n, 0, err), cpu_read(p, n, 1, err)};
    if (!place[0] || !place[1])
        return err->code ? err->code : cpu_out_of_memory(err);
    place[2] = base ? cpu_temporary(p, n, (uint64_t)sodet_elements(w) * sizeof(float), err) : cpu_write(p, n, 0, UINT32_MAX, err);
    place[3] = node->n_out > 1 ? cpu_write(p, n, 1, UINT32_MAX, err) : 0;
    if (!place[2] || (node->n_out > 1 && !place[3]))
        return err->code ? err->code : cpu_out_of_memory(err);
    sodet_tensor t[4] = {cpu_tensor(p, &node->in_shape[0], CPU_FORM_BLOCKED), cpu_tensor(p, &node->in_shape[1], CPU_FORM_BLOCKED),
                         cpu_tensor(p, w, CPU_FORM_PLAIN)};
    if (place[3])
        t[3] = cpu_tensor(p, &node->out_shape[1], CPU_FORM_PLAIN);
    sodet_status status = cpu_emit_kernel(p, n, &cpu_winograd_gradient, t, place, 2, place[3] ? 2 : 1, &c->winograd, err);
    if (status == SODET_OK)
        status = cpu_give_scratch(p, n, cpu_winograd_gradient_scratch(&c->winograd, p->device->threads), err);
    if (status == SODET_OK)
        status = base ? cpu_deliver(p, n, 0, place[2], c->plain_weights, c->plain_weights, err) : cpu_written(p, n, 0, place[2], err);
    return status == SODET_OK && place[3] ? cpu_written(p, n, 1, place[3], err) : status;
}

static sodet_status emit_activation(cpu_plan *p, cpu_node *n, cpu_place y, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_conv2d_attr *a = n->node->attr;
    const sodet_cpu_kernel *k = cpu_kernel_of(&sodet_op_activation, 0);
    sodet_tensor t = cpu_tensor(p, &n->node->out_shape[0], n->form_out[0]);
    c->activation = (sodet_activation_attr){.kind = a->activation, .slope = a->slope};
    if (!k)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: activation %u has no code for the CPU", n->node->layer, a->activation);
    return cpu_emit_kernel(p, n, k, (const sodet_tensor[]){t, t}, (const cpu_place[]){y, y}, 1, 1, &c->activation, err);
}

static sodet_status emit_own(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_node *node = n->node;
    const bool backward = node->part == 1, bias = !backward && node->n_in > 2 && node->in[2].id,
               residual = !backward && node->n_in > 3 && node->in[3].id;
    uint64_t bytes = cpu_winograd_weight_bytes(&c->winograd);
    cpu_place place[5] = {cpu_read(p, n, 0, err)};
    place[1] = cpu_derived(p, n, 1, backward ? COPY_BACKWARD : COPY_FORWARD, &cpu_winograd_weights, &c->winograd, bytes, err);
    place[2] = bias ? cpu_read(p, n, 2, err) : 0;
    place[3] = residual ? cpu_read(p, n, 3, err) : 0;
    if (!place[0] || !place[1] || (bias && !place[2]) || (residual && !place[3]))
        return err->code ? err->code : cpu_out_of_memory(err);
    /* A tile's residual is read just before the tile is written. */
    place[4] = cpu_write(p, n, 0, residual && node->in[3].id != node->in[0].id ? 3 : UINT32_MAX, err);
    if (!place[4])
        return err->code ? err->code : cpu_out_of_memory(err);
    const sodet_shape flat = {SODET_F32, 1, {(int64_t)(bytes / sizeof(float))}};
    sodet_tensor t[5] = {cpu_tensor(p, &node->in_shape[0], CPU_FORM_BLOCKED), {NULL, flat, SODET_PLAIN, 0}};
    if (bias)
        t[2] = cpu_tensor(p, &node->in_shape[2], CPU_FORM_PLAIN);
    t[4] = cpu_tensor(p, &node->out_shape[0], CPU_FORM_BLOCKED);
    if (residual)
        t[3] = t[4];
    sodet_status status = cpu_emit_kernel(p, n, &cpu_winograd_maps, t, place, 4, 1, &c->winograd, err);
    if (status == SODET_OK)
        status = cpu_give_scratch(p, n, cpu_winograd_scratch(&c->winograd, p->device->threads), err);
    if (status == SODET_OK && c->after)
        status = emit_activation(p, n, place[4], err);
    return status == SODET_OK ? cpu_written(p, n, 0, place[4], err) : status;
}

static sodet_status choose(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    conv_shape s = shape_of(node);
    conv_state *c = n->state = sd_pool_alloc(&p->pool, sizeof *c);
    if (!c)
        return cpu_out_of_memory(err);
    sodet_shape w_shape = oned_weights(s.w, s.attr->groups);
    c->plain_weights = cpu_md(p, &w_shape, CPU_FORM_PLAIN);
    bool residual = node->part == 0 && node->n_in > 3 && node->in[3].id, dies = residual && residual_dies(p, n);
    /* Few channels (an image) stay plain: oneDNN reads them so, and blocks would be mostly padding. */
    uint32_t x_form =
        s.x->dim[1] <= 4 && (node->part == 1 || cpu_home(p, node->in[0]) == CPU_FORM_PLAIN) ? CPU_FORM_PLAIN : CPU_FORM_BLOCKED;
    bool winograd = p->device->config->winograd != CPU_WINOGRAD_NEVER && winograd_pays(&s, node->part);
    const attempt attempts[] = {{x_form, CPU_FORM_BLOCKED, dnnl_convolution_winograd},
                                {x_form, CPU_FORM_BLOCKED, dnnl_convolution_direct},
                                {CPU_FORM_BLOCKED, CPU_FORM_BLOCKED, dnnl_convolution_direct},
                                {CPU_FORM_PLAIN, CPU_FORM_PLAIN, dnnl_convolution_direct}};
    if (own_pays(p, &s, node->part))
        return choose_own(p, n, &s);
    attempt taken = {0};
    dnnl_primitive_desc_t pd = NULL;
    for (uint32_t slow = 0; slow < 2 && !pd; slow++) /* second round: oneDNN's plain loops are better than nothing */
        for (uint32_t i = winograd && !slow ? 0 : 1; i < 4 && !pd; i++)
            for (uint32_t how = 0; how < 4 && !pd; how++) { /* residual by binary or sum, activation inside or after */
                if (how & 1 && !residual)
                    continue;
                if (how & 2 && s.attr->activation == SODET_ACT_NONE)
                    continue;
                if (node->part != 0 && how)
                    break;
                bool sum = residual && (dies ? !(how & 1) : how & 1);
                c->sum = sum;
                c->binary = residual && !sum;
                c->after = how & 2;
                taken = attempts[i];
                pd = try_one(p, node, &s, c, &taken);
                if (pd && !slow && cpu_is_reference(pd)) {
                    dnnl_primitive_desc_destroy(pd);
                    pd = NULL;
                }
            }
    if (!pd)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: oneDNN has no convolution for this shape; `devices = ref` can compute it",
                          node->layer);
    cpu_own_pd(p, pd);
    c->pd = pd;
    switch (node->part) {
    case 0:
        n->form_in[0] = (uint8_t)taken.x;
        if (residual)
            n->form_in[3] = (uint8_t)taken.y;
        n->form_out[0] = (uint8_t)taken.y;
        break;
    case 1:
        n->form_in[0] = (uint8_t)taken.y;
        n->form_out[0] = (uint8_t)taken.x;
        break;
    default:
        n->form_in[0] = (uint8_t)taken.x;
        n->form_in[1] = (uint8_t)taken.y;
    }
    char kind[24] = "";
    const char *impl = strchr(dn_impl(pd), ':'); /* "jit:avx512_core": the part before the colon says enough */
    snprintf(kind, sizeof kind, "%.*s", (int)(impl ? impl - dn_impl(pd) : 16), dn_impl(pd));
    snprintf(n->text, sizeof n->text, "%s %s%u%s%s%s", taken.alg == dnnl_convolution_winograd ? "winograd" : kind,
             taken.y == CPU_FORM_BLOCKED ? "nChw" : "nchw", taken.y == CPU_FORM_BLOCKED ? p->device->block : 0,
             taken.y == CPU_FORM_BLOCKED ? "c" : "", c->binary || c->sum ? " +residual" : "",
             s.attr->activation ? c->after ? " activation" : " +activation" : "");
    return SODET_OK;
}

static sodet_status emit_forward(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_node *node = n->node;
    conv_shape s = shape_of(node);
    dn_cmd y_md = dn_query_md(c->pd, dnnl_query_dst_md), b_md = dn_query_md(c->pd, dnnl_query_weights_md);
    cpu_place x = cpu_read(p, n, 0, err), w = cpu_reordered(p, n, 1, c->plain_weights, b_md, err), b = 0, r = 0;
    if (!x || !w)
        return err->code ? err->code : cpu_out_of_memory(err);
    if (s.bias && !(b = cpu_read(p, n, 2, err)))
        return err->code ? err->code : cpu_out_of_memory(err);
    if ((c->sum || c->binary) && !(r = cpu_read(p, n, 3, err)))
        return err->code ? err->code : cpu_out_of_memory(err);
    cpu_place y = cpu_write(p, n, 0, c->sum ? 3 : UINT32_MAX, err);
    if (!y)
        return err->code ? err->code : cpu_out_of_memory(err);
    if (c->sum && y != r) {
        sodet_status status = cpu_emit_copy(p, n, y, r, dn_md_size(y_md), err);
        if (status != SODET_OK)
            return status;
    }
    sodet_shape b_shape = sodet_shape_make(SODET_F32, 1, s.w->dim[0], 0, 0, 0);
    const cpu_arg arg[] = {{DNNL_ARG_SRC, x, dn_query_md(c->pd, dnnl_query_src_md)},
                           {DNNL_ARG_WEIGHTS, w, b_md},
                           {DNNL_ARG_BIAS, b, b ? cpu_md(p, &b_shape, CPU_FORM_PLAIN) : NULL},
                           {DNNL_ARG_DST, y, y_md},
                           {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, c->binary ? r : 0, y_md}};
    sodet_status status = cpu_emit(p, n, c->pd, arg, 5, err);
    if (status == SODET_OK && c->after)
        status = emit_activation(p, n, y, err);
    return status == SODET_OK ? cpu_written(p, n, 0, y, err) : status;
}

static sodet_status emit_backward_data(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    dn_cmd w_md = dn_query_md(c->pd, dnnl_query_weights_md);
    cpu_place dy = cpu_read(p, n, 0, err), w = cpu_reordered(p, n, 1, c->plain_weights, w_md, err),
              dx = dy && w ? cpu_write(p, n, 0, UINT32_MAX, err) : 0;
    if (!dx)
        return err->code ? err->code : cpu_out_of_memory(err);
    const cpu_arg arg[] = {{DNNL_ARG_DIFF_DST, dy, dn_query_md(c->pd, dnnl_query_diff_dst_md)},
                           {DNNL_ARG_WEIGHTS, w, w_md},
                           {DNNL_ARG_DIFF_SRC, dx, dn_query_md(c->pd, dnnl_query_diff_src_md)}};
    sodet_status status = cpu_emit(p, n, c->pd, arg, 3, err);
    return status == SODET_OK ? cpu_written(p, n, 0, dx, err) : status;
}

static sodet_status emit_backward_weights(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_node *node = n->node;
    dn_cmd w_md = dn_query_md(c->pd, dnnl_query_diff_weights_md);
    bool direct = dn_md_equal(w_md, c->plain_weights) && !(node->base && node->base[0].id);
    cpu_place x = cpu_read(p, n, 0, err), dy = x ? cpu_read(p, n, 1, err) : 0;
    if (!dy)
        return err->code ? err->code : cpu_out_of_memory(err);
    cpu_place dw = direct ? cpu_write(p, n, 0, UINT32_MAX, err) : cpu_temporary(p, n, dn_md_size(w_md), err);
    cpu_place db = node->n_out > 1 ? cpu_write(p, n, 1, UINT32_MAX, err) : 0;
    if (!dw || (node->n_out > 1 && !db))
        return err->code ? err->code : cpu_out_of_memory(err);
    dn_cmd b_md = db ? cpu_md(p, &node->out_shape[1], CPU_FORM_PLAIN) : NULL;
    const cpu_arg arg[] = {{DNNL_ARG_SRC, x, dn_query_md(c->pd, dnnl_query_src_md)},
                           {DNNL_ARG_DIFF_DST, dy, dn_query_md(c->pd, dnnl_query_diff_dst_md)},
                           {DNNL_ARG_DIFF_WEIGHTS, dw, w_md},
                           {DNNL_ARG_DIFF_BIAS, db, b_md}};
    sodet_status status = cpu_emit(p, n, c->pd, arg, 4, err);
    if (status == SODET_OK)
        status = direct ? cpu_written(p, n, 0, dw, err) : cpu_deliver(p, n, 0, dw, w_md, c->plain_weights, err);
    return status == SODET_OK && db ? cpu_written(p, n, 1, db, err) : status;
}

static sodet_status emit(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    if (((const conv_state *)n->state)->own)
        return n->node->part == 2 ? emit_own_gradient(p, n, err) : emit_own(p, n, err);
    switch (n->node->part) {
    case 0:
        return emit_forward(p, n, err);
    case 1:
        return emit_backward_data(p, n, err);
    default:
        return emit_backward_weights(p, n, err);
    }
}

const cpu_planner sodet_cpu_plan_conv2d = {.maps = maps, .choose = choose, .emit = emit};
