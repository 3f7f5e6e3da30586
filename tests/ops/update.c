/* Updates of whole arenas. States are buffers, whose new values are compared. */
#include "opcase.h"

/* Five segments over 40,000 elements (more than one piece), the last but one empty of effect: lr factor 0. */
static const int32_t start[5] = {0, 16, 20000, 33000, 39984};
static const float factor[10] = {1, 1, 2, 0, 0.1f, 10, 0, 1, 1, 1};

enum { KIND, SCALED, FLAG }; /* options; FLAG: 0 none, 1 set, 2 zero, 3 NaN */

static sodet_update table(opcase *c, sodet_value p, const float *hyper, const char *n_hyper)
{
    static const float flags[] = {1, 1, 0, NAN}, scale = 0.37f;
    sodet_update u = {.struct_size = sizeof u,
                      .p = p,
                      .grad = op_fixed(c, 1),
                      .start = op_int_values(c, "5", start),
                      .factor = op_values(c, "5x2", factor),
                      .hyper = op_values(c, n_hyper, hyper)};
    if (op_option(c, SCALED) > 0)
        u.scale = op_values(c, "1", &scale);
    if (op_option(c, FLAG) > 0)
        u.ok = op_values(c, "", &flags[(int)op_option(c, FLAG)]);
    return u;
}

static void sgd(opcase *c)
{
    static const float hyper[3] = {0.1f, 0.9f, 5e-4f};
    sodet_value p = op_state(c, 0), v = op_option(c, KIND) > 0 ? op_state(c, 2) : SODET_NONE;
    sodet_update u = table(c, p, hyper, "3");
    sodet_sgd_update(op_graph(c), &u, v, op_option(c, KIND) > 1);
}

static void adam(opcase *c)
{
    static const float hyper[7] = {0.01f, 0.9f, 0.999f, 1e-8f, 0.05f, 0.271f, 0.002997001f};
    sodet_value p = op_state(c, 0), m = op_state(c, 2), v = op_state(c, 3);
    sodet_update u = table(c, p, hyper, "7");
    sodet_adam_update(op_graph(c), &u, m, v, op_option(c, KIND) > 0);
}

static void ema(opcase *c)
{
    static const float decay = 0.9998f, ok[] = {1, 1, 0, NAN};
    sodet_value average = op_state(c, 0), p = op_fixed(c, 1);
    sodet_ema_update(op_graph(c), average, p, op_values(c, "1", &decay),
                     op_option(c, FLAG) > 0 ? op_values(c, "", &ok[(int)op_option(c, FLAG)]) : SODET_NONE);
}

/* What an overflow has left in an average is gone when it begins anew. */
static void ema_anew(opcase *c)
{
    static const float some = 0.5f, none = 0;
    const float nan = NAN;
    sodet_graph *g = op_graph(c);
    sodet_value average = op_state(c, 0), p = op_fixed(c, 1), lost = sodet_constant(g, &(sodet_shape){.dtype = SODET_F32}, &nan);
    average = sodet_ema_update(g, average, sodet_mul(g, p, lost), op_values(c, "1", &some), SODET_NONE);
    sodet_ema_update(g, average, p, op_values(c, "1", &none), SODET_NONE);
}

static void square_sum(opcase *c)
{
    static const int32_t group[5] = {1, 0, 2, 7, 1};
    sodet_value finite, sum, x = op_fixed(c, 0);
    if (op_option(c, 0) > 0)
        sum = sodet_square_sum(op_graph(c), x, op_int_values(c, "5", start), op_int_values(c, "5", group), 3, &finite);
    else
        sum = sodet_square_sum(op_graph(c), x, SODET_NONE, SODET_NONE, 1, &finite);
    op_result(c, sum);
    op_result(c, finite);
}

/* One element in a hundred is infinite, none is NaN. */
static void square_sum_infinite(opcase *c)
{
    sodet_graph *g = op_graph(c);
    const float infinite = INFINITY;
    sodet_value finite, x = op_fixed(c, 0), scalar = sodet_constant(g, &(sodet_shape){.dtype = SODET_F32}, &infinite);
    sodet_value sum =
        sodet_square_sum(g, sodet_where(g, sodet_gt(g, x, sodet_scalar(g, 0.98)), scalar, x), SODET_NONE, SODET_NONE, 1, &finite);
    op_result(c, sodet_min(g, sum, sodet_scalar(g, 1)));
    op_result(c, finite);
}

static void clip(opcase *c)
{
    static const float limit = 10, scale = 0.125f;
    sodet_graph *g = op_graph(c);
    sodet_value norm, sum = sodet_square_sum(g, op_fixed(c, 0), SODET_NONE, SODET_NONE, 1, NULL);
    op_result(c, sodet_clip_factor(g, sum, op_values(c, "", &limit), op_values(c, "", &scale), &norm));
    op_result(c, norm);
    op_result(c, sodet_clip_factor(g, sum, sodet_scalar(g, 1e9), SODET_NONE, NULL));
}

#define N        "40000"
#define POSITIVE (1 + OP_POSITIVE)

const opcase_entry opcases_update[] = {
    {.name = "sgd, plain", .build = sgd, .shape = {N, N, N}, .option = {0}},
    {.name = "sgd, momentum", .build = sgd, .shape = {N, N, N}, .option = {1}},
    {.name = "sgd, nesterov, scaled", .build = sgd, .shape = {N, N, N}, .option = {2, 1}},
    {.name = "sgd, flag set", .build = sgd, .shape = {N, N, N}, .option = {1, 1, 1}},
    {.name = "sgd, flag zero", .build = sgd, .shape = {N, N, N}, .option = {1, 1, 2}, .forward = OP_EXACT},
    {.name = "sgd, flag NaN", .build = sgd, .shape = {N, N, N}, .option = {0, 0, 3}, .forward = OP_EXACT},
    {.name = "adam", .build = adam, .shape = {N, N, N, N}, .data_of = {0, 0, 0, POSITIVE}},
    {.name = "adamw, scaled", .build = adam, .shape = {N, N, N, N}, .data_of = {0, 0, 0, POSITIVE}, .option = {1, 1, 1}},
    {.name = "adam, flag zero",
     .build = adam,
     .shape = {N, N, N, N},
     .data_of = {0, 0, 0, POSITIVE},
     .option = {0, 1, 2},
     .forward = OP_EXACT},
    {.name = "adamw, flag NaN",
     .build = adam,
     .shape = {N, N, N, N},
     .data_of = {0, 0, 0, POSITIVE},
     .option = {1, 0, 3},
     .forward = OP_EXACT},
    {.name = "ema", .build = ema, .shape = {N, N}},
    {.name = "ema, anew", .build = ema_anew, .shape = {N, N}, .forward = OP_EXACT},
    {.name = "ema, flag zero", .build = ema, .shape = {N, N}, .option = {0, 0, 2}, .forward = OP_EXACT},
    {.name = "square sum", .build = square_sum, .shape = {"100003"}},
    {.name = "square sum, groups", .build = square_sum, .shape = {N}, .option = {1}},
    {.name = "square sum, large mean", .build = square_sum, .shape = {N}, .option = {1}, .data = OP_LARGE_MEAN},
    {.name = "square sum, special", .build = square_sum, .shape = {N}, .option = {1}, .data = OP_SPECIAL},
    {.name = "square sum, infinite", .build = square_sum_infinite, .shape = {N}},
    {.name = "square sum, one", .build = square_sum, .shape = {"1"}},
    {.name = "clip factor", .build = clip, .shape = {N}},
    {.name = NULL}};
