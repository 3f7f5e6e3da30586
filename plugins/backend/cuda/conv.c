/* conv2d by cuDNN: the convolution with bias, residual and ReLU in one plan; any other activation is a step of its own, in place. */
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "plugins/backend/cuda/cuda.h"
#include "plugins/backend/cuda/dnn_node.h"

/* Plans are the device's: programs of other shapes, and the same program made again, find them there. */
static sodet_status find_plan(cuda_device *d, const dnn_conv *c, uint32_t *index, sodet_err *err)
{
    for (uint64_t i = 0; i < d->n_convs; i++)
        if (memcmp(&d->conv[i].conv, c, sizeof *c) == 0) {
            *index = (uint32_t)i;
            return SODET_OK;
        }
    if (sd_grow(&d->conv, &d->conv_capacity, d->n_convs + 1, sizeof *d->conv, err) != SODET_OK)
        return SODET_E_MEMORY;
    cuda_conv *made = &d->conv[d->n_convs];
    made->conv = *c;
    sodet_status s = d->config->autotune ? cuda_tune(d, c, &made->plan, err) : dnn_plan_make(d->dnn, c, &made->plan, err);
    if (s == SODET_OK)
        *index = (uint32_t)d->n_convs++;
    return s;
}

/* Without images, or onto nothing. */
static bool is_empty(const sodet_node *n)
{
    return sodet_elements(&n->in_shape[0]) == 0 || sodet_elements(&n->out_shape[0]) == 0 ||
           (n->part == 2 && !sodet_elements(&n->in_shape[1]));
}

sodet_status cuda_choose_conv(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    if (is_empty(node)) {
        n->conv = UINT32_MAX;
        snprintf(n->text, sizeof n->text, "empty");
        return SODET_OK;
    }
    const dnn_conv c = dnn_conv_of(node, p->device->map_type);
    sodet_status s = find_plan(p->device, &c, &n->conv, err);
    if (s != SODET_OK)
        return sd_fail_in(err, s, "%s", node->layer);
    n->form_in[0] = CUDA_MAP;
    if (node->part == 0 && c.residual)
        n->form_in[3] = CUDA_MAP;
    if (node->part == 2)
        n->form_in[1] = CUDA_MAP;
    else
        n->form_out[0] = CUDA_MAP;
    const sodet_conv2d_attr *a = node->attr;
    const bool after = node->part == 0 && a->activation && !c.relu;
    snprintf(n->text, sizeof n->text, "cudnn %s%s%s%s%s", p->device->conv[n->conv].plan.text, c.bias ? "+bias" : "",
             c.residual ? "+residual" : "", c.relu ? "+relu" : "", after ? ", activation after" : "");
    return SODET_OK;
}

static sodet_status no_place(const cuda_node *n, sodet_err *err)
{
    return err->code ? err->code : SODET_FAIL(err, SODET_E_MEMORY, "%s: no host memory to plan it", n->node->layer);
}

static sodet_status emit_empty(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    for (uint32_t o = 0; o < n->node->n_out; o++) {
        const sd_place to = cuda_write(p, n, o, UINT32_MAX, err);
        sodet_status s = to ? cuda_emit_zero(p, n, to, cuda_form_bytes(p, &n->node->out_shape[o], CUDA_PLAIN), err) : no_place(n, err);
        if (s == SODET_OK)
            s = cuda_written(p, n, o, to, err);
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

static sodet_status add_conv(cuda_plan *p, cuda_node *n, sd_place x, sd_place w, sd_place y, sd_place bias, sd_place residual,
                             sodet_err *err)
{
    const uint64_t bytes = p->device->conv[n->conv].plan.workspace;
    const sd_place workspace = bytes ? cuda_temporary(p, n, bytes, err) : 0;
    cuda_step *s = bytes && !workspace ? NULL : cuda_add_step(p, CUDA_CONV, n->index, n->node->prologue != 0, err);
    if (!s)
        return SODET_E_MEMORY;
    s->conv = n->conv;
    s->x = x, s->w = w, s->y = y, s->bias = bias, s->residual = residual, s->scratch = workspace;
    const sd_place used[] = {x, w, y, bias, residual};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        sd_forms_until(&p->forms, used[i], n->node->prologue ? 0 : n->index);
    return SODET_OK;
}

static sodet_status emit_forward(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sodet_conv2d_attr *a = node->attr;
    const dnn_conv *c = &p->device->conv[n->conv].conv;
    const bool narrow = c->type != SODET_F32;
    const sd_place x = cuda_read(p, n, 0, err), w = x ? cuda_derived(p, n, 1, err) : 0;
    sd_place bias = 0, residual = 0;
    if (w && c->bias)
        bias = narrow ? cuda_derived(p, n, 2, err) : cuda_read(p, n, 2, err);
    if (w && c->residual)
        residual = cuda_read(p, n, 3, err);
    if (!w || (c->bias && !bias) || (c->residual && !residual))
        return no_place(n, err);
    const sd_place y = cuda_write(p, n, 0, UINT32_MAX, err);
    sodet_status s = y ? add_conv(p, n, x, w, y, bias, residual, err) : no_place(n, err);
    if (s == SODET_OK && a->activation && !c->relu) {
        const sodet_cuda_kernel *k = cuda_kernel_of(SODET_OP_activation, 0);
        sodet_activation_attr *attr = sd_pool_alloc(&p->pool, sizeof *attr);
        if (!k || !attr)
            return no_place(n, err);
        *attr = (sodet_activation_attr){.kind = a->activation, .slope = a->slope};
        const sodet_tensor t = cuda_tensor(p, &node->out_shape[0], CUDA_MAP), both[2] = {t, t};
        s = cuda_emit_kernel(p, n, k, both, (const sd_place[]){y, y}, 1, 1, attr, 0, node->prologue != 0, err);
    }
    return s == SODET_OK ? cuda_written(p, n, 0, y, err) : s;
}

static sodet_status emit_gradient_data(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    const sd_place dy = cuda_read(p, n, 0, err), w = dy ? cuda_derived(p, n, 1, err) : 0, dx = w ? cuda_write(p, n, 0, UINT32_MAX, err) : 0;
    sodet_status s = dx ? add_conv(p, n, dx, w, dy, 0, 0, err) : no_place(n, err);
    return s == SODET_OK ? cuda_written(p, n, 0, dx, err) : s;
}

static sodet_status emit_gradient_weight(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    const sodet_node *node = n->node;
    const sd_place x = cuda_read(p, n, 0, err), dy = x ? cuda_read(p, n, 1, err) : 0;
    sodet_tensor packed = {.shape = node->out_shape[0]}, plain = packed;
    packed.shape.dtype = p->device->map_type;
    packed.layout = SODET_CHANNELS_LAST;
    const uint64_t bytes = (uint64_t)sodet_elements(&plain.shape) * (packed.shape.dtype == SODET_F32 ? 4 : 2);
    const sd_place dw = dy ? cuda_temporary(p, n, bytes, err) : 0;
    sodet_status s = dw ? add_conv(p, n, x, dw, dy, 0, 0, err) : no_place(n, err);
    if (s != SODET_OK)
        return s;
    sd_place to = cuda_write(p, n, 0, UINT32_MAX, err);
    const sodet_tensor unpack[2] = {packed, plain};
    s = to ? cuda_emit_kernel(p, n, &cuda_convert, unpack, (const sd_place[]){dw, to}, 1, 1, NULL, 0, node->prologue != 0, err)
           : no_place(n, err);
    if (s == SODET_OK)
        s = cuda_written(p, n, 0, to, err);
    if (s != SODET_OK || node->n_out < 2)
        return s;
    to = cuda_write(p, n, 1, UINT32_MAX, err);
    const sodet_tensor sum[2] = {cuda_tensor(p, &node->in_shape[1], CUDA_MAP), {.shape = node->out_shape[1]}};
    s = to ? cuda_emit_kernel(p, n, &cuda_sum_channels, sum, (const sd_place[]){dy, to}, 1, 1, NULL, 0, node->prologue != 0, err)
           : no_place(n, err);
    return s == SODET_OK ? cuda_written(p, n, 1, to, err) : s;
}

sodet_status cuda_emit_conv(cuda_plan *p, cuda_node *n, sodet_err *err)
{
    if (is_empty(n->node))
        return emit_empty(p, n, err);
    return n->node->part == 0   ? emit_forward(p, n, err)
           : n->node->part == 1 ? emit_gradient_data(p, n, err)
                                : emit_gradient_weight(p, n, err);
}
