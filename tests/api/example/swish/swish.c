/* The neck swish: y = x * sigmoid(beta * x) on every feature map, with a trained slope beta for each (Ramachandran, Zoph and Le 2017,
 * "Searching for Activation Functions", section 5: beta starts as 1).
 *
 * An example of a plugin with an operator of its own: described here for all backends; computed by the reference and on the CPU here, on GPUs by
 * swish.cu. Its gradient is two more parts of the same operator: of x, and of beta. */
#include <math.h>

#include "sodet/detection.h"

typedef struct swish_cfg {
    double beta;
} swish_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(swish_cfg, beta, "1", -100, 100, "the slope that training begins with"),
};

/* ---- what it is: inputs x [N, C, H, W], beta [1] and, for the gradients, dy ---- */
enum { VALUE, GRADIENT_OF_X, GRADIENT_OF_BETA, PARTS };

static sodet_status infer(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    const uint32_t wanted = n->part == VALUE ? 2 : 3;
    if (n->n_in != wanted || n->n_out != 1)
        return SODET_FAIL(err, SODET_E_INVALID, "swish: %u inputs and %u outputs, %u and 1 expected", n->n_in, n->n_out, wanted);
    if (n->in_shape[0].dtype != SODET_F32 || n->in_shape[0].rank != 4 || sodet_elements(&n->in_shape[1]) != 1)
        return SODET_FAIL(err, SODET_E_INVALID, "swish: a map of rank %u and a slope of %lld elements, 4 and 1 expected",
                          n->in_shape[0].rank, (long long)sodet_elements(&n->in_shape[1]));
    out[0] = n->in_shape[n->part == GRADIENT_OF_BETA ? 1 : 0];
    return SODET_OK;
}

static sodet_status gradient(sodet_graph *g, const sodet_node *n, const sodet_value *dout, uint64_t want, sodet_value *din, sodet_err *err)
{
    const sodet_value in[3] = {n->in[0], n->in[1], dout[0]};
    if (n->part != VALUE)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "swish: there is no second derivative");
    for (uint32_t i = 0; i < 2; i++)
        if (want >> i & 1)
            sodet_add_node(g, n->op, i == 0 ? GRADIENT_OF_X : GRADIENT_OF_BETA, NULL, in, 3, &din[i], 1);
    return sodet_graph_status(g, err);
}

/* ---- the reference: plain loops, in double; F32 tensors are float or double ---- */
static double get(const sodet_tensor *t, int64_t i, int wide)
{
    return wide ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

static void set(const sodet_tensor *t, int64_t i, int wide, double v)
{
    if (wide)
        ((double *)t->data)[i] = v;
    else
        ((float *)t->data)[i] = (float)v;
}

static void reference(const sodet_kernel_args *a, int wide)
{
    const int64_t n = sodet_elements(&a->in[0].shape);
    const double beta = get(&a->in[1], 0, wide);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = get(&a->in[0], i, wide), s = 1 / (1 + exp(-beta * x));
        if (a->part == VALUE)
            set(&a->out[0], i, wide, x * s);
        else if (a->part == GRADIENT_OF_X)
            set(&a->out[0], i, wide, get(&a->in[2], i, wide) * (s + beta * x * s * (1 - s)));
        else
            sum += get(&a->in[2], i, wide) * x * x * s * (1 - s);
    }
    if (a->part == GRADIENT_OF_BETA)
        set(&a->out[0], 0, wide, sum);
}

static void in_float(const sodet_kernel_args *a)
{
    reference(a, 0);
}

static void in_double(const sodet_kernel_args *a)
{
    reference(a, 1);
}

/* ---- the CPU: pieces of the map, which threads share ---- */
enum { PIECE = 4096 };

static int64_t pieces(const sodet_shape *map)
{
    return (sodet_elements(map) + PIECE - 1) / PIECE;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    return phase == 0 ? pieces(&a->in[0].shape) : 1;
}

/* The sum of each piece, so that it is the same for any number of threads. */
static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    (void)n_threads;
    return (uint64_t)pieces(&n->in_shape[0]) * sizeof(double);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)thread;
    const int64_t n = sodet_elements(&a->in[0].shape);
    const float *x = a->in[0].data, beta = *(const float *)a->in[1].data, *dy = a->part == VALUE ? NULL : a->in[2].data;
    float *y = a->out[0].data;
    double *sums = a->scratch;
    if (phase == 1) {
        double all = 0;
        for (int64_t p = 0; p < pieces(&a->in[0].shape) && begin < end; p++)
            all += sums[p];
        if (begin < end)
            y[0] = (float)all;
        return;
    }
    for (int64_t p = begin; p < end; p++) {
        double sum = 0;
        for (int64_t i = p * PIECE; i < n && i < (p + 1) * PIECE; i++) {
            const float s = 1 / (1 + expf(-beta * x[i]));
            if (a->part == VALUE)
                y[i] = x[i] * s;
            else if (a->part == GRADIENT_OF_X)
                y[i] = dy[i] * (s + beta * x[i] * s * (1 - s));
            else
                sum += (double)(dy[i] * x[i] * x[i] * s * (1 - s));
        }
        if (a->part == GRADIENT_OF_BETA)
            sums[p] = sum;
    }
}

static const sodet_ref_kernel floats[PARTS] = {in_float, in_float, in_float}, doubles[PARTS] = {in_double, in_double, in_double};
static const sodet_cpu_kernel cpu[PARTS] = {
    {.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run},
    {.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run},
    {.struct_size = sizeof(sodet_cpu_kernel), .phases = 2, .units = units, .scratch = scratch, .run = run}};
static const sodet_custom_kernels kernels = {
    .struct_size = sizeof kernels, .entry_size = sizeof cpu[0], .ref_float = floats, .ref_double = doubles, .cpu = cpu};
static const sodet_op swish = {.struct_size = sizeof swish,
                               .name = "swish",
                               .n_parts = PARTS,
                               .flags = SODET_OP_ELEMENTWISE,
                               .infer = infer,
                               .gradient = gradient,
                               .kernels = &kernels};

/* ---- the neck ---- */
static sodet_status build(const void *self, sodet_graph *g, const sodet_features *in, sodet_features *out, sodet_err *err)
{
    const swish_cfg *c = self;
    const sodet_shape one = sodet_shape_make(SODET_F32, 1, 1, 0, 0, 0);
    const sodet_param slope = {.init = SODET_INIT_CONSTANT, .value = (float)c->beta, .decay = SODET_FROZEN};
    for (uint32_t l = 0; l < sodet_feature_count(in); l++) {
        sodet_enter(g, "level%u", (unsigned)l);
        const sodet_value of[2] = {sodet_feature(in, l), sodet_parameter(g, "beta", &one, &slope)};
        const sodet_value y = sodet_apply(g, &swish, NULL, of, 2);
        sodet_leave(g);
        if (sodet_feature_stride(in, l))
            sodet_emit_feature(g, out, y, sodet_feature_stride(in, l));
        else
            sodet_emit_global_feature(g, out, y);
    }
    return sodet_graph_status(g, err);
}

static const sodet_neck_ops ops = {.struct_size = sizeof ops, .build = build};
SODET_PLUGIN(SODET_KIND_NECK, "swish", "x * sigmoid(beta * x) on every map, beta trained", swish_cfg, options, .ops = &ops);
