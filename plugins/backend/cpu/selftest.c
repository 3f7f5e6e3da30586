/* The start-up self-test: a dozen small convolutions in each direction against a plain loop, and as many in bf16 where that is computed in. Releases of oneDNN are known that compute
 * wrong convolutions on processors whose CPUID tells no cache sizes (3.7.2 in virtual machines): silently, by 7 to 100 %. */
#include <math.h>

#include "kernels/narrow.h"
#include "plugins/backend/cpu/cpu.h"

typedef struct small_conv {
    int64_t n, ic, oc, h, w, k, stride, dilation, pad;
    bool blocked;
    dnnl_alg_kind_t alg;
} small_conv;

static const small_conv cases[] = {
    {1, 16, 32, 7, 9, 3, 1, 1, 1, true, dnnl_convolution_direct},     {2, 16, 16, 8, 8, 3, 2, 1, 1, true, dnnl_convolution_direct},
    {1, 32, 16, 9, 9, 3, 1, 2, 2, true, dnnl_convolution_direct},     {2, 32, 48, 5, 6, 1, 1, 1, 0, true, dnnl_convolution_direct},
    {1, 24, 20, 6, 5, 3, 1, 1, 1, true, dnnl_convolution_direct},     {2, 3, 16, 11, 9, 3, 2, 1, 1, false, dnnl_convolution_direct},
    {1, 16, 16, 1, 1, 3, 1, 1, 1, true, dnnl_convolution_direct},     {1, 64, 32, 19, 19, 1, 2, 1, 0, true, dnnl_convolution_direct},
    {1, 32, 32, 12, 14, 3, 1, 1, 1, true, dnnl_convolution_winograd}, {2, 48, 64, 11, 10, 3, 1, 1, 1, true, dnnl_convolution_winograd},
    {1, 32, 16, 10, 13, 5, 1, 1, 2, true, dnnl_convolution_direct},   {1, 6, 5, 7, 7, 3, 2, 1, 0, false, dnnl_convolution_direct},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

typedef struct arrays { /* plain */
    float *x, *w, *y, *got;
    int64_t nx, nw, ny;
} arrays;

static int64_t out_side(const small_conv *c, int64_t in)
{
    return (in + 2 * c->pad - c->dilation * (c->k - 1) - 1) / c->stride + 1;
}

static void fill(float *v, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(sd_mix64(key + (uint64_t)i) >> 40) * 0x1p-23f - 1.0f;
}

/* part 0: y from x, w; 1: x from y, w; 2: w from x, y. `to` is of that array's size. */
static void plain_loop(const small_conv *c, const arrays *a, int part, double *to)
{
    int64_t oh = out_side(c, c->h), ow = out_side(c, c->w), n_to = part == 0 ? a->ny : part == 1 ? a->nx : a->nw;
    for (int64_t i = 0; i < n_to; i++)
        to[i] = 0;
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t o = 0; o < c->oc; o++)
            for (int64_t i = 0; i < oh; i++)
                for (int64_t j = 0; j < ow; j++)
                    for (int64_t q = 0; q < c->ic; q++)
                        for (int64_t k = 0; k < c->k; k++)
                            for (int64_t l = 0; l < c->k; l++) {
                                int64_t r = i * c->stride - c->pad + k * c->dilation, s = j * c->stride - c->pad + l * c->dilation;
                                if (r < 0 || s < 0 || r >= c->h || s >= c->w)
                                    continue;
                                int64_t xi = ((n * c->ic + q) * c->h + r) * c->w + s, wi = ((o * c->ic + q) * c->k + k) * c->k + l;
                                int64_t yi = ((n * c->oc + o) * oh + i) * ow + j;
                                if (part == 0)
                                    to[yi] += (double)a->x[xi] * (double)a->w[wi];
                                else if (part == 1)
                                    to[xi] += (double)a->y[yi] * (double)a->w[wi];
                                else
                                    to[wi] += (double)a->x[xi] * (double)a->y[yi];
                            }
}

static dnnl_memory_t memory_of(const cpu_device *d, dn_cmd md, void *data)
{
    dnnl_memory_t m = NULL;
    return md && dnnl_memory_create(&m, md, d->engine, data) == dnnl_success ? m : NULL;
}

/* Moves data between a plain array and a memory of oneDNN's. */
static bool move(const cpu_device *d, dnnl_memory_t from, dn_cmd from_md, dnnl_memory_t to, dn_cmd to_md)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t p = NULL;
    bool good =
        from && to && dn_reorder(&pd, d->engine, from_md, to_md, NULL) == dnnl_success && dnnl_primitive_create(&p, pd) == dnnl_success;
    if (good) {
        const dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        good = dnnl_primitive_execute(p, d->stream, 2, arg) == dnnl_success && dnnl_stream_wait(d->stream) == dnnl_success;
    }
    if (p)
        dnnl_primitive_destroy(p);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return good;
}

typedef struct tensor { /* one of x, w, y of a case */
    dn_md plain, any;
    dn_md result; /* what it is made as: float32 in most bf16 cases too */
    float *data;
} tensor;

/* Runs one direction; false: oneDNN has no such primitive (fine) or failed (`failed`). */
static bool run_case(const cpu_device *d, const small_conv *c, const tensor t[3], int part, float *got, bool *failed)
{
    const dn_window k = {.stride = {c->stride, c->stride},
                         .dilation = {c->dilation - 1, c->dilation - 1},
                         .pad_begin = {c->pad, c->pad},
                         .pad_end = {c->pad, c->pad}};
    dnnl_primitive_desc_t pd = NULL, hint = NULL;
    dnnl_status_t s =
        dn_conv_forward(&hint, d->engine, dnnl_forward_training, dnnl_convolution_direct, t[0].any, t[1].any, NULL, t[2].any, &k, NULL);
    if (s == dnnl_success && part == 0)
        s = dn_conv_forward(&pd, d->engine, dnnl_forward_training, c->alg, t[0].any, t[1].any, NULL, t[2].result, &k, NULL);
    else if (s == dnnl_success && part == 1)
        s = dn_conv_backward_data(&pd, d->engine, c->alg, t[0].result, t[1].any, t[2].any, &k, hint, NULL);
    else if (s == dnnl_success)
        s = dn_conv_backward_weights(&pd, d->engine, c->alg, t[0].any, t[1].result, NULL, t[2].any, &k, hint, NULL);
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    if (s != dnnl_success)
        return false;
    static const dnnl_query_t query[3][3] = {{dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
                                             {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
                                             {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    static const int argument[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                       {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                       {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    const int result = part == 0 ? 2 : part == 1 ? 0 : 1;
    dnnl_memory_t inner[3] = {0}, plain[3] = {0};
    dnnl_exec_arg_t arg[3];
    bool good = true;
    for (int i = 0; i < 3 && good; i++) {
        dn_cmd md = dn_query_md(pd, query[part][i]);
        inner[i] = memory_of(d, md, DNNL_MEMORY_ALLOCATE);
        plain[i] = memory_of(d, t[i].plain, i == result ? got : t[i].data);
        good = inner[i] && plain[i] && (i == result || move(d, plain[i], t[i].plain, inner[i], md));
        arg[i] = (dnnl_exec_arg_t){argument[part][i], inner[i]};
    }
    dnnl_primitive_t p = NULL;
    good = good && dnnl_primitive_create(&p, pd) == dnnl_success && dnnl_primitive_execute(p, d->stream, 3, arg) == dnnl_success &&
           dnnl_stream_wait(d->stream) == dnnl_success &&
           move(d, inner[result], dn_query_md(pd, query[part][result]), plain[result], t[result].plain);
    if (p)
        dnnl_primitive_destroy(p);
    for (int i = 0; i < 3; i++) {
        if (inner[i])
            dnnl_memory_destroy(inner[i]);
        if (plain[i])
            dnnl_memory_destroy(plain[i]);
    }
    dnnl_primitive_desc_destroy(pd);
    *failed = !good;
    return good;
}

enum { IN_FP32 = 0, IN_BF16, STORED_IN_BF16 /* maps that are made are narrow too, as a plan's are: other code writes them */ };

static sodet_status test_case(const cpu_device *d, uint32_t index, uint32_t how, sodet_err *err)
{
    const bool narrow = how != IN_FP32, stored = how == STORED_IN_BF16;
    const small_conv *c = &cases[index];
    int64_t oh = out_side(c, c->h), ow = out_side(c, c->w);
    arrays a = {.nx = c->n * c->ic * c->h * c->w, .nw = c->oc * c->ic * c->k * c->k, .ny = c->n * c->oc * oh * ow};
    int64_t most = a.nx > a.nw ? a.nx : a.nw;
    most = most > a.ny ? most : a.ny;
    float *all = sd_alloc((size_t)(a.nx + a.nw + a.ny + most), sizeof *all);
    double *want = sd_alloc((size_t)most, sizeof *want);
    if (!all || !want) {
        sd_free(all);
        sd_free(want);
        return cpu_out_of_memory(err);
    }
    a.x = all, a.w = a.x + a.nx, a.y = a.w + a.nw, a.got = a.y + a.ny;
    fill(all, a.nx + a.nw + a.ny, 1000 * (uint64_t)index);
    for (int64_t i = 0; narrow && i < a.nx + a.nw + a.ny; i++) /* so that the products are exact, and the sums as good as float32's */
        all[i] = narrow_value(narrow_bits(all[i]));
    const int64_t dim[3][4] = {{c->n, c->ic, c->h, c->w}, {c->oc, c->ic, c->k, c->k}, {c->n, c->oc, oh, ow}};
    dnnl_format_tag_t blocked = d->block == 16 ? dnnl_nChw16c : dnnl_nChw8c;
    dnnl_format_tag_t tag[3] = {c->blocked ? blocked : dnnl_nchw, dnnl_format_tag_any, c->ic <= 4 || c->blocked ? blocked : dnnl_nchw};
    if (narrow)
        tag[0] = tag[2] = dnnl_nhwc;
    tensor t[3];
    for (int i = 0; i < 3; i++)
        t[i] = (tensor){.plain = dn_md_tag(4, dim[i], dnnl_f32, dnnl_abcd),
                        .any = dn_md_tag(4, dim[i], narrow ? dnnl_bf16 : dnnl_f32, tag[i]),
                        .result = dn_md_tag(4, dim[i], stored ? dnnl_bf16 : dnnl_f32, tag[i]),
                        .data = i == 0   ? a.x
                                : i == 1 ? a.w
                                         : a.y};
    sodet_status status = SODET_OK;
    for (int part = 0; part < (stored ? 2 : 3) && status == SODET_OK; part++) {
        int64_t n = part == 0 ? a.ny : part == 1 ? a.nx : a.nw;
        bool failed = false, ran = run_case(d, c, t, part, a.got, &failed);
        if (!ran && !failed)
            continue;
        double worst = failed ? INFINITY : 0, largest = 0;
        if (ran) {
            plain_loop(c, &a, part, want);
            if (d->config->self_test == CPU_SELF_TEST_FAULT && index == N_CASES / 2 && part == 1)
                a.got[n / 2] += 1;
            for (int64_t i = 0; i < n; i++) {
                double off = fabs((double)a.got[i] - want[i]);
                largest = fabs(want[i]) > largest ? fabs(want[i]) : largest;
                worst = off > worst || off != off ? off : worst;
                if (off != off)
                    break;
            }
        }
        if (!(worst <= (stored ? 1.0 / 256 + 1e-4 : 1e-4) * largest)) { /* rounded once */
            static const char *const direction[] = {"forward", "gradient of the data", "gradient of the weights"};
            status =
                SODET_FAIL(err, SODET_E_DEVICE,
                           "oneDNN %d.%d.%d computes convolutions%s wrongly on this processor (self-test %u, %s: off by %.2g of %.2g); use "
                           "another version of the library, or %s",
                           DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH, narrow ? " in bf16" : "", index, direction[part],
                           worst, largest, narrow ? "precision = fp32" : "`devices = ref`, which does without it, slowly");
        }
    }
    for (int i = 0; i < 3; i++) {
        dn_md_free(t[i].plain);
        dn_md_free(t[i].any);
        dn_md_free(t[i].result);
    }
    sd_free(all);
    sd_free(want);
    return status;
}

sodet_status cpu_self_test(cpu_device *d, sodet_err *err)
{
    sodet_status s = SODET_OK;
    for (uint32_t i = 0; i < N_CASES && s == SODET_OK; i++)
        s = test_case(d, i, IN_FP32, err);
    for (uint32_t i = 0; i < N_CASES && s == SODET_OK && d->precision != SODET_PRECISION_FP32 && !d->emulate; i++)
        if (cases[i].h >= 4 && cases[i].alg == dnnl_convolution_direct) /* what plans use bf16 for */
            for (uint32_t how = IN_BF16; how <= STORED_IN_BF16 && s == SODET_OK; how++)
                s = test_case(d, i, how, err);
    return s;
}
