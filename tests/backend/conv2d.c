/* conv2d on cpu against ref, in its three parts: strides, dilations, groups, odd sizes, maps of one pixel, asymmetric padding, fused
 * activation and residual, Winograd and direct, no images at all (field case O-47). */
#include "rig.h"

#include "kernels/kernels.h"

typedef struct conv_case {
    int64_t n, ic, oc, h, w;
    int32_t k, stride, dilation, groups;
    int32_t pad[4];
    uint32_t activation;
    bool bias, residual;
} conv_case;

static void name_of(const conv_case *c, char out[160])
{
    snprintf(out, 160, "n%lld ic%lld oc%lld %lldx%lld k%d s%d d%d g%d pad %d %d %d %d act%u%s%s", (long long)c->n, (long long)c->ic,
             (long long)c->oc, (long long)c->h, (long long)c->w, c->k, c->stride, c->dilation, c->groups, c->pad[0], c->pad[1], c->pad[2],
             c->pad[3], c->activation, c->bias ? " bias" : "", c->residual ? " residual" : "");
}

/* In bf16, inputs are representable and results are float32, so the products are exact and the same tolerance holds. */
static double one(rig *cpu, rig *ref, const conv_case *c)
{
    char name[160];
    name_of(c, name);
    sodet_graph *g = rig_graph(true);
    sodet_conv2d_attr a = {c->stride, c->stride,     c->dilation, c->dilation, c->groups, c->pad[0], c->pad[1], c->pad[2],
                           c->pad[3], c->activation, 0.1f,        0,           0,         0,         0};
    sodet_value in[4] = {rig_input(g, "x", c->n, c->ic, c->h, c->w)};
    in[1] = rig_input(g, "w", c->oc, c->ic / c->groups, c->k, c->k);
    sodet_shape vector = sodet_shape_make(SODET_F32, 1, c->oc, 0, 0, 0);
    if (c->bias)
        in[2] = sodet_input(g, "b", &vector);
    int64_t oh = (c->h + c->pad[0] + c->pad[2] - c->dilation * (c->k - 1) - 1) / c->stride + 1;
    int64_t ow = (c->w + c->pad[1] + c->pad[3] - c->dilation * (c->k - 1) - 1) / c->stride + 1;
    if (c->residual)
        in[3] = rig_input(g, "r", c->n, c->oc, oh, ow);
    sodet_output(g, "y", sodet_apply(g, &sodet_op_conv2d, &a, in, 4));
    sodet_value dy = rig_input(g, "dy", c->n, c->oc, oh, ow), out[2], dx;
    a.activation = 0;
    a.kernel_h = a.kernel_w = c->k;
    a.in_h = (int32_t)c->h;
    a.in_w = (int32_t)c->w;
    sodet_add_node(g, &sodet_op_conv2d, 1, &a, (const sodet_value[]){dy, in[1]}, 2, &dx, 1);
    sodet_add_node(g, &sodet_op_conv2d, 2, &a, (const sodet_value[]){in[0], dy}, 2, out, c->bias ? 2 : 1);
    sodet_output(g, "dx", dx);
    sodet_output(g, "dw", out[0]);
    if (c->bias)
        sodet_output(g, "db", out[1]);
    /* of the largest value, which a relu6 or a sigmoid has made small */
    double off = rig_compare(cpu, ref, g, c->activation > 1 ? 4e-5 : 1e-5, name);
    sd_graph_free(g);
    return off;
}

static const conv_case cases[] = {
    /* n ic oc h w  k s d g  pad          act bias residual */
    {1, 3, 16, 13, 17, 3, 1, 1, 1, {1, 1, 1, 1}, 0, true, false},  {2, 3, 64, 24, 24, 7, 2, 1, 1, {3, 3, 3, 3}, 1, false, false},
    {2, 16, 16, 9, 11, 3, 1, 1, 1, {1, 1, 1, 1}, 1, true, false},  {2, 16, 32, 9, 11, 3, 2, 1, 1, {1, 1, 1, 1}, 0, true, false},
    {1, 32, 32, 12, 15, 3, 1, 1, 1, {1, 1, 1, 1}, 1, true, false}, {2, 64, 48, 20, 11, 3, 1, 1, 1, {1, 1, 1, 1}, 1, true, true},
    {1, 32, 48, 14, 14, 3, 1, 6, 1, {6, 6, 6, 6}, 1, true, false}, {1, 24, 20, 7, 5, 3, 1, 1, 1, {1, 1, 1, 1}, 0, true, true},
    {1, 17, 33, 6, 6, 1, 1, 1, 1, {0, 0, 0, 0}, 1, true, true},    {2, 64, 32, 10, 10, 1, 2, 1, 1, {0, 0, 0, 0}, 0, false, false},
    {3, 64, 84, 1, 1, 3, 1, 1, 1, {1, 1, 1, 1}, 0, true, false},   {1, 32, 16, 3, 3, 3, 1, 1, 1, {0, 0, 0, 0}, 1, true, false},
    {1, 48, 48, 1, 4, 3, 2, 1, 1, {1, 1, 1, 1}, 0, true, false},   {1, 16, 16, 4, 1, 3, 2, 1, 1, {1, 1, 1, 1}, 0, true, false},
    {2, 32, 32, 8, 8, 3, 1, 1, 32, {1, 1, 1, 1}, 2, true, false},  {2, 32, 32, 9, 8, 3, 2, 1, 32, {1, 1, 1, 1}, 2, true, false},
    {1, 32, 64, 8, 8, 3, 1, 1, 2, {1, 1, 1, 1}, 0, true, false},   {1, 12, 18, 8, 8, 3, 1, 1, 3, {1, 1, 1, 1}, 1, true, false},
    {2, 16, 24, 10, 9, 3, 2, 1, 1, {0, 0, 1, 1}, 0, true, false},  {1, 8, 8, 7, 7, 5, 1, 1, 1, {2, 2, 2, 2}, 3, true, true},
    {1, 16, 16, 6, 6, 3, 1, 1, 1, {1, 1, 1, 1}, 4, true, false},   {1, 16, 20, 6, 6, 3, 1, 1, 1, {1, 1, 1, 1}, 5, true, false},
    {1, 16, 20, 6, 6, 3, 1, 1, 1, {1, 1, 1, 1}, 6, true, true},    {1, 16, 20, 6, 6, 3, 1, 1, 1, {1, 1, 1, 1}, 7, true, false},
    {1, 1, 4, 5, 5, 3, 1, 1, 1, {1, 1, 1, 1}, 0, true, false},     {1, 4, 2, 5, 5, 3, 1, 1, 1, {1, 1, 1, 1}, 0, true, false},
    {0, 16, 16, 8, 8, 3, 1, 1, 1, {1, 1, 1, 1}, 1, true, true},
};

/* Shapes nobody thought of; the seed is printed with what fails (it is in the name). */
static conv_case random_case(uint64_t seed)
{
    sodet_stream r = sd_stream(seed, 0, 0, 0);
#define PICK(n) ((int32_t)(sd_stream_bits(&r) % (uint64_t)(n)))
    conv_case c = {.n = 1 + PICK(3), .ic = 1 + PICK(70), .oc = 1 + PICK(70), .h = 1 + PICK(20), .w = 1 + PICK(20), .groups = 1};
    c.k = (const int32_t[]){1, 3, 3, 3, 5, 2}[PICK(6)];
    c.stride = 1 + PICK(2);
    c.dilation = PICK(4) ? 1 : 1 + PICK(3);
    if (PICK(4) == 0) {
        c.groups = 1 + PICK(6);
        c.ic = c.groups * (1 + PICK(20));
        c.oc = c.groups * (1 + PICK(20));
    }
    int32_t reach = c.dilation * (c.k - 1) + 1;
    for (int i = 0; i < 4; i++)
        c.pad[i] = PICK(2) ? reach / 2 : PICK(reach);
    c.h = c.h < reach ? reach : c.h;
    c.w = c.w < reach ? reach : c.w;
    c.activation = (uint32_t)PICK(3);
    c.bias = PICK(3);
    c.residual = PICK(3) == 0;
#undef PICK
    return c;
}

int main(void)
{
    rig cpu, ref, own;
    sodet_err err = SODET_ERR_INIT;
    rig_open(&cpu, "cpu", 2);
    rig_open(&ref, "ref", 1);
    CHECK_OK(rig_open_more(&own, "cpu", 3, "[backend.cpu]\nwinograd = own\n", &err)); /* wherever it can, however small */
    double worst = 0;
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double off = one(&cpu, &ref, &cases[i]);
        worst = off > worst ? off : worst;
    }
    for (uint64_t i = 0; i < 60; i++) { /* Winograd's shapes: edges of maps, of panels, of blocks, several chunks, depths and dilations */
        conv_case c = random_case(77 + i);
        c.k = 3;
        c.stride = c.groups = 1;
        c.dilation = i < 40 ? 1 : 1 + (int32_t)i % 7;
        c.pad[0] = c.pad[1] = c.pad[2] = c.pad[3] = c.dilation;
        c.ic += i % 5 ? 0 : 200;
        double off = one(&own, &ref, &c);
        worst = off > worst ? off : worst;
    }
    ref.coarse = true;
    for (uint32_t native = 0; native < 2; native++) {
        rig narrow;
        sodet_status s = rig_open_as(&narrow, "cpu", 2, native ? "" : "[backend.cpu]\nbf16 = emulate\n", SODET_PRECISION_BF16, &err);
        for (uint32_t i = 0; i < sizeof cases / sizeof cases[0] + 40 && s == SODET_OK; i++) {
            conv_case random = random_case(500 + i);
            double off = one(&narrow, &ref, i < sizeof cases / sizeof cases[0] ? &cases[i] : &random);
            worst = off > worst ? off : worst;
        }
        CHECK(s == SODET_OK || (native && s == SODET_E_UNSUPPORTED)); /* by the processor */
        rig_close(&narrow);
    }
    ref.coarse = false;
    const char *many = getenv("SODET_CONV_CASES");
    uint64_t n = many ? strtoull(many, NULL, 10) : 60, first = 20261130;
    printf("random shapes: seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)(first + n - 1));
    for (uint64_t i = 0; i < n; i++) {
        conv_case c = random_case(first + i);
        double off = one(&cpu, &ref, &c);
        worst = off > worst ? off : worst;
    }
    printf("largest relative error %.3g\n", worst);
    rig_close(&cpu);
    rig_close(&ref);
    rig_close(&own);
    return check_done(400);
}
