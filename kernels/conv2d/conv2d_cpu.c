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
    bool narrow;          /* maps and weights in bf16 */
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

/* Maps below 4 cells stay in float32: oneDNN 2.6 and 3.13 compute wrong bf16 gradients of the weights from columns of one cell with stride 2,
 * and nothing is gained. */
static bool narrow(const cpu_plan *p, const cpu_node *n)
{
    const conv_shape s = shape_of(n->node);
    return s.x->dim[2] >= 4 && s.x->dim[3] >= 4 && (p->device->precision != SODET_PRECISION_MIXED || n->seconds[1] < n->seconds[0]);
}

/* precision = mixed: with the conversions of what comes in another form and of what is wanted in another form. */
static bool narrow_pays(const cpu_plan *p, const cpu_node *n)
{
    const sodet_node *node = n->node;
    double fp32 = n->seconds[0], bf16 = n->seconds[1];
    if (p->device->precision != SODET_PRECISION_MIXED)
        return true;
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (!(maps(node) >> i & 1) || !node->in[i].id)
            continue;
        const double elements = (double)sodet_elements(&node->in_shape[i]);
        const uint32_t home = cpu_home(p, node->in[i]);
        bf16 += home == CPU_FORM_NARROW ? 0 : p->conversion[0] * elements;
        fp32 += home == CPU_FORM_NARROW ? p->conversion[1] * elements : 0;
    }
    if (node->part < 2) {
        const double elements = (double)sodet_elements(&node->out_shape[0]);
        const uint32_t wanted = p->forms.value[node->out[0].id].wanted;
        fp32 += wanted == CPU_FORM_NARROW ? p->conversion[0] * elements : 0;
        bf16 += wanted == CPU_FORM_BLOCKED ? p->conversion[1] * elements : 0;
    }
    return bf16 < fp32;
}

/* The form that oneDNN is told. Where bf16 is emulated, that is the fastest of float32's. */
static uint32_t told(const cpu_plan *p, const sodet_shape *map, bool read, uint32_t form)
{
    if (!p->device->emulate || form < CPU_FORM_LAST)
        return form;
    return read && map->dim[1] <= 4 ? CPU_FORM_PLAIN : CPU_FORM_BLOCKED;
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
    dn_cmd x = cpu_md(p, s->x, told(p, s->x, n->part != 1, t->x)), y = cpu_md(p, s->y, told(p, s->y, false, t->y)),
           b = s->bias ? cpu_md(p, &b_shape, 0) : NULL;
    dn_cmd w = cpu_md_any(p, &w_shape, c->narrow && !p->device->emulate ? dnnl_bf16 : dnnl_f32), dw = cpu_md_any(p, &w_shape, dnnl_f32);
    dnnl_primitive_desc_t pd = NULL, hint = NULL;
    if (!x || !y || !w || !dw)
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
    dn_cmd hint_x = c->narrow ? cpu_md(p, s->x, told(p, s->x, n->part != 1, CPU_FORM_NARROW)) : x; /* a float32 dx is of a bf16 x */
    if (!hint_x)
        return NULL;
    if (dn_conv_forward(&hint, e, dnnl_forward_training, alg, hint_x, w, n->part == 2 ? b : NULL, y, &s->window, NULL) != dnnl_success &&
        dn_conv_forward(&hint, e, dnnl_forward_training, dnnl_convolution_direct, hint_x, w, n->part == 2 ? b : NULL, y, &s->window,
                        NULL) != dnnl_success)
        return NULL;
    dnnl_status_t status = n->part == 1 ? dn_conv_backward_data(&pd, e, alg, x, w, y, &s->window, hint, p->attr)
                                        : dn_conv_backward_weights(&pd, e, alg, x, dw, b, y, &s->window, hint, p->attr);
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
enum { COPY_FORWARD = 1, COPY_BACKWARD, COPY_ROUNDED }; /* kinds of copies of weights */

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
    sd_place place[4] = {cpu_read(p, n, 0, err), cpu_read(p, n, 1, err)};
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

static sodet_status emit_activation(cpu_plan *p, cpu_node *n, sd_place y, uint32_t form, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_conv2d_attr *a = n->node->attr;
    const sodet_cpu_kernel *k = cpu_kernel_of(&sodet_op_activation, 0);
    sodet_tensor t = cpu_tensor(p, &n->node->out_shape[0], form);
    c->activation = (sodet_activation_attr){.kind = a->activation, .slope = a->slope};
    if (!k)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: activation %u has no code for the CPU", n->node->layer, a->activation);
    return cpu_emit_kernel(p, n, k, (const sodet_tensor[]){t, t}, (const sd_place[]){y, y}, 1, 1, &c->activation, err);
}

static sodet_status emit_own(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_node *node = n->node;
    const bool backward = node->part == 1, bias = !backward && node->n_in > 2 && node->in[2].id,
               residual = !backward && node->n_in > 3 && node->in[3].id;
    uint64_t bytes = cpu_winograd_weight_bytes(&c->winograd);
    sd_place place[5] = {cpu_read(p, n, 0, err)};
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
        status = emit_activation(p, n, place[4], CPU_FORM_BLOCKED, err);
    return status == SODET_OK ? cpu_written(p, n, 0, place[4], err) : status;
}

/* The first of the attempts that oneDNN has fast code for; with `slow`, any code. The residual comes in by a sum or a binary operation,
 * the activation inside or after. */
static dnnl_primitive_desc_t search(cpu_plan *p, const cpu_node *n, const conv_shape *s, conv_state *c, const attempt *list,
                                    uint32_t n_list, bool slow, attempt *taken)
{
    const sodet_node *node = n->node;
    const bool residual = node->part == 0 && node->n_in > 3 && node->in[3].id, dies = residual && residual_dies(p, n);
    for (uint32_t i = 0; i < n_list; i++)
        for (uint32_t how = 0; how < 4; how++) {
            if ((how & 1 && !residual) || (how & 2 && s->attr->activation == SODET_ACT_NONE))
                continue;
            if (node->part != 0 && how)
                break;
            *taken = list[i];
            c->narrow = node->part == 1 ? taken->y == CPU_FORM_NARROW : taken->x == CPU_FORM_NARROW;
            const bool sum = residual && (dies || (c->narrow && p->device->emulate) ? !(how & 1) : how & 1);
            c->sum = sum;
            c->binary = residual && !sum;
            c->after = how & 2;
            dnnl_primitive_desc_t pd = try_one(p, node, s, c, taken);
            if (pd && (slow || !cpu_is_reference(pd)))
                return pd;
            if (pd)
                dnnl_primitive_desc_destroy(pd);
        }
    c->narrow = false;
    return NULL;
}

static void take(cpu_plan *p, cpu_node *n, const conv_shape *s, conv_state *c, dnnl_primitive_desc_t pd, const attempt *taken)
{
    const sodet_node *node = n->node;
    cpu_own_pd(p, pd);
    c->pd = pd;
    switch (node->part) {
    case 0:
        n->form_in[0] = (uint8_t)taken->x;
        if (c->sum || c->binary)
            n->form_in[3] = (uint8_t)taken->y;
        n->form_out[0] = (uint8_t)taken->y;
        break;
    case 1:
        n->form_in[0] = (uint8_t)taken->y;
        n->form_out[0] = (uint8_t)taken->x;
        break;
    default:
        n->form_in[0] = (uint8_t)taken->x;
        n->form_in[1] = (uint8_t)taken->y;
    }
    char kind[24] = "";
    const char *impl = strchr(dn_impl(pd), ':'); /* "jit:avx512_core": the part before the colon says enough */
    snprintf(kind, sizeof kind, "%.*s", (int)(impl ? impl - dn_impl(pd) : 16), dn_impl(pd));
    snprintf(n->text, sizeof n->text, "%s %s%s%s%s", taken->alg == dnnl_convolution_winograd ? "winograd" : kind,
             c->narrow && p->device->emulate ? "emulated " : "", c->narrow ? cpu_form_name(p, CPU_FORM_NARROW) : cpu_form_name(p, taken->y),
             c->binary || c->sum ? " +residual" : "", s->attr->activation ? c->after ? " activation" : " +activation" : "");
}

/* In bf16, if oneDNN has fast code for it. A result that nobody wants narrow (a head's) stays as exact as it was summed. */
static dnnl_primitive_desc_t search_narrow(cpu_plan *p, const cpu_node *n, const conv_shape *s, conv_state *c, attempt *taken)
{
    const sodet_node *node = n->node;
    const bool keep =
        node->part < 2 && cpu_may_narrow(p, n, 0) && (p->device->measures || p->forms.value[node->out[0].id].wanted == CPU_FORM_NARROW);
    attempt one = {CPU_FORM_NARROW, CPU_FORM_NARROW, dnnl_convolution_direct};
    if (node->part < 2 && !keep)
        *(node->part == 0 ? &one.y : &one.x) = CPU_FORM_LAST;
    if (s->x->dim[2] < 4 || s->x->dim[3] < 4 || !narrow_pays(p, n))
        return NULL;
    return search(p, n, s, c, &one, 1, false, taken);
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
    attempt taken = {0};
    dnnl_primitive_desc_t pd = cpu_is_narrow(p) ? search_narrow(p, n, &s, c, &taken) : NULL;
    if (!pd && own_pays(p, &s, node->part))
        return choose_own(p, n, &s);
    /* Few channels (an image) stay plain: oneDNN reads them so, and blocks would be mostly padding. */
    uint32_t x_form =
        s.x->dim[1] <= 4 && (node->part == 1 || cpu_home(p, node->in[0]) == CPU_FORM_PLAIN) ? CPU_FORM_PLAIN : CPU_FORM_BLOCKED;
    const uint32_t first = p->device->config->winograd != CPU_WINOGRAD_NEVER && winograd_pays(&s, node->part) ? 0 : 1;
    const attempt wide[] = {{x_form, CPU_FORM_BLOCKED, dnnl_convolution_winograd},
                            {x_form, CPU_FORM_BLOCKED, dnnl_convolution_direct},
                            {CPU_FORM_BLOCKED, CPU_FORM_BLOCKED, dnnl_convolution_direct},
                            {CPU_FORM_PLAIN, CPU_FORM_PLAIN, dnnl_convolution_direct}};
    if (!pd)
        pd = search(p, n, &s, c, wide + first, 4 - first, false, &taken);
    if (!pd) /* oneDNN's plain loops are better than nothing */
        pd = search(p, n, &s, c, wide + 1, 3, true, &taken);
    if (!pd)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: oneDNN has no convolution for this shape; `devices = ref` can compute it",
                          node->layer);
    take(p, n, &s, c, pd, &taken);
    return SODET_OK;
}

/* ---- bf16 by float32 convolutions: what is read is widened, weights are rounded, what is written is rounded ---- */
static bool emulated(const cpu_plan *p, const cpu_node *n)
{
    return p->device->emulate && ((const conv_state *)n->state)->narrow;
}

static sd_place read_map(cpu_plan *p, cpu_node *n, uint32_t i, sodet_err *err)
{
    sd_place from = cpu_read(p, n, i, err);
    if (!from || !emulated(p, n))
        return from;
    const sodet_shape *shape = &n->node->in_shape[i];
    const uint32_t form = told(p, shape, i == 0 && n->node->part != 1, n->form_in[i]);
    sd_place to = cpu_temporary(p, n, cpu_form_bytes(p, shape, form), err);
    return to && cpu_emit_convert(p, n, shape, from, n->form_in[i], to, form, false, err) == SODET_OK ? to : 0;
}

static sd_place read_weights(cpu_plan *p, cpu_node *n, dn_cmd md, sodet_err *err)
{
    const conv_state *c = n->state;
    if (!emulated(p, n))
        return cpu_reordered(p, n, 1, c->plain_weights, md, err);
    sd_place from = cpu_derived(p, n, 1, COPY_ROUNDED, &cpu_round, NULL, dn_md_size(c->plain_weights), err);
    if (!from || dn_md_equal(md, c->plain_weights))
        return from;
    sd_place to = cpu_temporary(p, n, dn_md_size(md), err);
    return to && cpu_emit_reorder(p, n, from, c->plain_weights, to, md, false, false, err) == SODET_OK ? to : 0;
}

/* Where oneDNN writes map 0, which is to lie at `to` in the end. */
static sd_place result_place(cpu_plan *p, cpu_node *n, sd_place to, sodet_err *err)
{
    if (!to || !emulated(p, n))
        return to;
    return cpu_temporary(p, n, cpu_form_bytes(p, &n->node->out_shape[0], CPU_FORM_BLOCKED), err);
}

static sodet_status finish_result(cpu_plan *p, cpu_node *n, sd_place result, sd_place to, sodet_err *err)
{
    sodet_status s = SODET_OK;
    if (result != to)
        s = cpu_emit_convert(p, n, &n->node->out_shape[0], result, CPU_FORM_BLOCKED, to, n->form_out[0], false, err);
    return s == SODET_OK ? cpu_written(p, n, 0, to, err) : s;
}

static sodet_status failed(sodet_err *err)
{
    return err->code ? err->code : cpu_out_of_memory(err);
}

static sodet_status emit_forward(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_node *node = n->node;
    conv_shape s = shape_of(node);
    dn_cmd y_md = dn_query_md(c->pd, dnnl_query_dst_md), w_md = dn_query_md(c->pd, dnnl_query_weights_md);
    sd_place x = read_map(p, n, 0, err), w = x ? read_weights(p, n, w_md, err) : 0, b = 0, r = 0;
    if (!x || !w)
        return failed(err);
    if (s.bias && !(b = cpu_read(p, n, 2, err)))
        return failed(err);
    if ((c->sum || c->binary) && !(r = cpu_read(p, n, 3, err)))
        return failed(err);
    const bool apart = emulated(p, n);
    sd_place to = cpu_write(p, n, 0, c->sum && !apart ? 3 : UINT32_MAX, err), y = result_place(p, n, to, err);
    if (!y)
        return failed(err);
    if (c->sum && y != r) {
        sodet_status status = apart ? cpu_emit_convert(p, n, &node->in_shape[3], r, n->form_in[3], y, CPU_FORM_BLOCKED, false, err)
                                    : cpu_emit_copy(p, n, y, r, dn_md_size(y_md), err);
        if (status != SODET_OK)
            return status;
    }
    sodet_shape b_shape = sodet_shape_make(SODET_F32, 1, s.w->dim[0], 0, 0, 0);
    const cpu_arg arg[] = {{DNNL_ARG_SRC, x, dn_query_md(c->pd, dnnl_query_src_md)},
                           {DNNL_ARG_WEIGHTS, w, w_md},
                           {DNNL_ARG_BIAS, b, b ? cpu_md(p, &b_shape, CPU_FORM_PLAIN) : NULL},
                           {DNNL_ARG_DST, y, y_md},
                           {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, c->binary ? r : 0, y_md}};
    sodet_status status = cpu_emit(p, n, c->pd, arg, 5, err);
    if (status == SODET_OK && c->after)
        status = emit_activation(p, n, y, apart ? CPU_FORM_BLOCKED : n->form_out[0], err);
    return status == SODET_OK ? finish_result(p, n, y, to, err) : status;
}

static sodet_status emit_backward_data(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    dn_cmd w_md = dn_query_md(c->pd, dnnl_query_weights_md);
    sd_place dy = read_map(p, n, 0, err), w = dy ? read_weights(p, n, w_md, err) : 0, to = w ? cpu_write(p, n, 0, UINT32_MAX, err) : 0,
             dx = result_place(p, n, to, err);
    if (!dx)
        return failed(err);
    const cpu_arg arg[] = {{DNNL_ARG_DIFF_DST, dy, dn_query_md(c->pd, dnnl_query_diff_dst_md)},
                           {DNNL_ARG_WEIGHTS, w, w_md},
                           {DNNL_ARG_DIFF_SRC, dx, dn_query_md(c->pd, dnnl_query_diff_src_md)}};
    sodet_status status = cpu_emit(p, n, c->pd, arg, 3, err);
    return status == SODET_OK ? finish_result(p, n, dx, to, err) : status;
}

static sodet_status emit_backward_weights(cpu_plan *p, cpu_node *n, sodet_err *err)
{
    conv_state *c = n->state;
    const sodet_node *node = n->node;
    dn_cmd w_md = dn_query_md(c->pd, dnnl_query_diff_weights_md);
    bool direct = dn_md_equal(w_md, c->plain_weights) && !(node->base && node->base[0].id);
    sd_place x = read_map(p, n, 0, err), dy = x ? read_map(p, n, 1, err) : 0;
    if (!dy)
        return failed(err);
    sd_place dw = direct ? cpu_write(p, n, 0, UINT32_MAX, err) : cpu_temporary(p, n, dn_md_size(w_md), err);
    sd_place db = node->n_out > 1 ? cpu_write(p, n, 1, UINT32_MAX, err) : 0;
    if (!dw || (node->n_out > 1 && !db))
        return failed(err);
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

const cpu_planner sodet_cpu_plan_conv2d = {.maps = maps, .narrow = narrow, .measured = true, .choose = choose, .emit = emit};
