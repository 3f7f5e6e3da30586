/* Primitives. Tolerances: exact where the contract says so; else float rounding of one result, 2e-6 of the largest value. */
#include "opcase.h"

typedef sodet_value binary_builder(sodet_graph *g, sodet_value a, sodet_value b);
typedef sodet_value unary_builder(sodet_graph *g, sodet_value x);

static void two(opcase *c, binary_builder *f)
{
    sodet_value a = op_real(c, 0), b = op_real(c, 1);
    op_result(c, f(op_graph(c), a, b));
}
#define TWO(name)                                                                                                                          \
    static void try_##name(opcase *c)                                                                                                      \
    {                                                                                                                                      \
        two(c, sodet_##name);                                                                                                              \
    }
TWO(add)
TWO(sub)
TWO(mul)
TWO(div)
TWO(min)
TWO(max)
TWO(pow)
TWO(ge)
TWO(gt)
TWO(le)
TWO(lt)
TWO(eq)
TWO(ne)

static void ints(opcase *c)
{
    binary_builder *f[] = {sodet_add, sodet_sub, sodet_mul, sodet_div, sodet_min, sodet_max, sodet_mod};
    sodet_value a = op_int(c, 0, (int32_t)op_option(c, 0), (int32_t)op_option(c, 1)),
                b = op_int(c, 1, (int32_t)op_option(c, 2), (int32_t)op_option(c, 3));
    for (int i = 0; i < 7; i++)
        op_result(c, f[i](op_graph(c), a, b));
}

static void compare_mixed(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value a = op_int(c, 0, -2, 2), b = op_int(c, 1, -2, 2), x = op_fixed(c, 2);
    op_result(c, sodet_ge(g, a, b));
    op_result(c, sodet_ge(g, a, x));
    op_result(c, sodet_lt(g, x, a));
    op_result(c, sodet_eq(g, a, sodet_scalar(g, -1)));
    op_result(c, sodet_ne(g, x, b));
    op_result(c, sodet_le(g, a, b));
    op_result(c, sodet_gt(g, b, x));
}

static void one(opcase *c, unary_builder *f)
{
    op_result(c, f(op_graph(c), op_real(c, 0)));
}
#define ONE(name)                                                                                                                          \
    static void try_##name(opcase *c)                                                                                                      \
    {                                                                                                                                      \
        one(c, sodet_##name);                                                                                                              \
    }
ONE(exp)
ONE(log)
ONE(sqrt)
ONE(abs)
ONE(neg)
ONE(square)
ONE(reciprocal)
ONE(sign)
ONE(floor)

/* The result of one is the operand of the next, in place where memory allows. */
static void chain(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value x = op_real(c, 0), y = sodet_square(g, x);
    y = sodet_add(g, y, sodet_scalar(g, 1));
    y = sodet_log(g, y);
    y = sodet_mul(g, y, sodet_exp(g, sodet_neg(g, x)));
    op_result(c, sodet_add(g, y, y));
}

/* Between convolutions, where maps are blocked: 19 channels leave padding, where log(0) and 0 / 0 must not stay. */
static void between_convolutions(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value x = sodet_conv2d(g, "in", op_real(c, 0), SODET_CONV2D(.out = 19, .kernel = 3, .flags = SODET_CONV_SAME));
    /* the logarithm stays away from 0, where it would make a difference in rounding as large as one pleases */
    sodet_value half = sodet_scalar(g, 0.5), y = sodet_log(g, sodet_add(g, sodet_square(g, x), half));
    op_result(c, sodet_conv2d(g, "out", y, SODET_CONV2D(.out = 5, .kernel = 3, .flags = SODET_CONV_SAME)));
    y = sodet_div(g, x, sodet_abs(g, x));
    op_result(c, sodet_conv2d(g, "out2", y, SODET_CONV2D(.out = 5, .kernel = 3, .flags = SODET_CONV_SAME)));
    y = sodet_max(g, sodet_add(g, sodet_exp(g, x), half), half);
    y = sodet_where(g, sodet_ge(g, x, half), x, sodet_sqrt(g, y));
    op_result(c, sodet_conv2d(g, "out3", y, SODET_CONV2D(.out = 5, .kernel = 3, .flags = SODET_CONV_SAME)));
}

static void where(opcase *c)
{
    sodet_graph *g = op_graph(c);
    op_result(c, sodet_where(g, sodet_ge(g, op_fixed(c, 0), sodet_scalar(g, 0.1)), op_real(c, 1), op_real(c, 2)));
}

static void where_int(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value k = op_int(c, 0, -1, 1);
    op_result(c, sodet_where(g, k, op_int(c, 1, -9, 9), op_int(c, 2, -9, 9)));
    op_result(c, sodet_where(g, k, sodet_scalar(g, 2), sodet_scalar(g, 3)));
}

/* What was not chosen may be anything: neither value nor gradient sees it. */
static void where_guards(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value x = op_real(c, 0), good = sodet_gt(g, x, sodet_scalar(g, 0));
    sodet_value safe = sodet_where(g, good, x, sodet_scalar(g, 1));
    op_result(c, sodet_where(g, good, sodet_log(g, safe), sodet_scalar(g, 0)));
}

static void sum(opcase *c)
{
    op_result(c, sodet_sum(op_graph(c), op_real(c, 0), (uint32_t)op_option(c, 0)));
}

static void mean(opcase *c)
{
    op_result(c, sodet_mean(op_graph(c), op_real(c, 0), (uint32_t)op_option(c, 0)));
}

static void reduce_max(opcase *c)
{
    op_result(c, sodet_reduce_max(op_graph(c), op_real(c, 0), (uint32_t)op_option(c, 0)));
}

static void per_image(opcase *c)
{
    op_result(c, sodet_sum_per_image(op_graph(c), op_real(c, 0)));
}

static void cast(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value scaled = sodet_mul(g, op_fixed(c, 0), sodet_scalar(g, op_option(c, 0)));
    sodet_value whole = sodet_cast(g, scaled, SODET_I32);
    op_result(c, whole);
    op_result(c, sodet_cast(g, whole, SODET_F32));
    op_result(c, sodet_cast(g, scaled, SODET_F32));
}

static void slice(opcase *c)
{
    op_result(c, sodet_slice(op_graph(c), op_real(c, 0), (int32_t)op_option(c, 0), (int64_t)op_option(c, 1), (int64_t)op_option(c, 2)));
}

static void slice_twice(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value x = op_real(c, 0);
    op_result(c, sodet_slice(g, sodet_slice(g, x, 1, 1, 2), 3, 0, 3));
    op_result(c, sodet_slice(g, op_int(c, 1, -9, 9), 0, 1, -1));
}

static void gather(opcase *c)
{
    op_result(c, sodet_gather(op_graph(c), op_real(c, 0), op_int(c, 1, (int32_t)op_option(c, 1), (int32_t)op_option(c, 2)),
                              (uint32_t)op_option(c, 0)));
}

static void gather_per_image(opcase *c)
{
    sodet_graph *g = op_graph(c);
    sodet_value index = op_int(c, 1, -2, 6);
    op_result(c, sodet_gather_per_image(g, op_real(c, 0), index));
    op_result(c, sodet_gather_per_image(g, op_int(c, 2, -9, 9), index));
}

static void top_k(opcase *c)
{
    sodet_value value, index;
    sodet_top_k(op_graph(c), op_real(c, 0), (uint32_t)op_option(c, 0), &value, &index);
    op_result(c, value);
    op_result(c, index);
}

static void top_pairs(opcase *c)
{
    sodet_value out[3];
    sodet_top_pairs(op_graph(c), op_fixed(c, 0), (uint32_t)op_option(c, 0), &out[0], &out[1], &out[2]);
    for (int i = 0; i < 3; i++)
        op_result(c, out[i]);
}

static void top_per_class(opcase *c)
{
    sodet_value out[3];
    sodet_top_per_class(op_graph(c), op_fixed(c, 0), (uint32_t)op_option(c, 0), &out[0], &out[1], &out[2]);
    for (int i = 0; i < 3; i++)
        op_result(c, out[i]);
}

#define EXACT      .forward = OP_EXACT
#define EXACT_BOTH .forward = OP_EXACT, .backward = OP_EXACT

const opcase_entry opcases_prims[] = {
    {.name = "add, one shape", .build = try_add, .shape = {"2x17x5x7", "2x17x5x7"}},
    {.name = "add, scalar", .build = try_add, .shape = {"2x3x4", ""}},
    {.name = "add, scalars", .build = try_add, .shape = {"", ""}},
    {.name = "add, rows", .build = try_add, .shape = {"2x3x4", "4"}},
    {.name = "add, columns", .build = try_add, .shape = {"3x1", "2x3x4"}},
    {.name = "add, both repeated", .build = try_add, .shape = {"5x1x3", "4x1"}},
    {.name = "add, outer", .build = try_add, .shape = {"2x1x7x1x3", "1x5x1x4x1"}},
    {.name = "add, one element", .build = try_add, .shape = {"1x1x1x1", "1x1x1x1"}},
    {.name = "add, nothing", .build = try_add, .shape = {"0x3", "0x3"}},
    {.name = "add, nothing repeated", .build = try_add, .shape = {"2x0x3", "3"}},
    {.name = "add, large", .build = try_add, .shape = {"3x70001", "3x70001"}},
    {.name = "add, large mean", .build = try_add, .shape = {"2x3x4", "3x4"}, .data = OP_LARGE_MEAN},
    {.name = "sub", .build = try_sub, .shape = {"4x33", "33"}},
    {.name = "sub, large mean", .build = try_sub, .shape = {"4x33", "4x33"}, .data = OP_LARGE_MEAN, .forward = 1e-4},
    {.name = "mul", .build = try_mul, .shape = {"2x3x5", "3x1"}},
    {.name = "mul, one shape", .build = try_mul, .shape = {"2x19x3x3", "2x19x3x3"}},
    {.name = "div", .build = try_div, .shape = {"2x3x5", "1x5"}, .data = OP_POSITIVE},
    {.name = "div, one shape", .build = try_div, .shape = {"1x19x3x3", "1x19x3x3"}, .data = OP_POSITIVE},
    {.name = "div, special", .build = try_div, .shape = {"211", "211"}, .data = OP_SPECIAL, .flags = OP_NO_GRADIENT},
    {.name = "min", .build = try_min, .shape = {"7x5", "7x5"}, .data = OP_SPREAD, EXACT_BOTH},
    {.name = "max", .build = try_max, .shape = {"7x1", "5"}, .data = OP_SPREAD, EXACT},
    {.name = "min, ties", .build = try_min, .shape = {"9x8", "9x8"}, .data = OP_TIES, EXACT_BOTH, .flags = OP_NO_DIFFERENCES},
    {.name = "max, ties", .build = try_max, .shape = {"9x8", "8"}, .data = OP_TIES, EXACT, .flags = OP_NO_DIFFERENCES},
    {.name = "max, special", .build = try_max, .shape = {"211", "211"}, .data = OP_SPECIAL, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "min, special", .build = try_min, .shape = {"211", "211"}, .data = OP_SPECIAL, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "pow", .build = try_pow, .shape = {"3x1x4", "5x1"}, .data = OP_POSITIVE},
    {.name = "pow, one shape", .build = try_pow, .shape = {"1x17x2x3", "1x17x2x3"}, .data = OP_POSITIVE},
    {.name = "ge, ties", .build = try_ge, .shape = {"9x8", "8"}, .data = OP_TIES, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "gt, ties", .build = try_gt, .shape = {"9x8", "9x8"}, .data = OP_TIES, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "le, ties", .build = try_le, .shape = {"1x17x3x2", "1x17x3x2"}, .data = OP_TIES, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "lt, ties", .build = try_lt, .shape = {"", "9x8"}, .data = OP_TIES, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "eq, special", .build = try_eq, .shape = {"300", "300"}, .data = OP_SPECIAL, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "ne, special", .build = try_ne, .shape = {"300", "300"}, .data = OP_SPECIAL, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "compare, int32 and mixed", .build = compare_mixed, .shape = {"5x7", "7", "5x1"}, .data = OP_TIES, EXACT},
    {.name = "int32", .build = ints, .shape = {"11x13", "13"}, .option = {-50, 50, -3, 3}},
    {.name = "int32, wrapping",
     .build = ints,
     .shape = {"400", "400"},
     .option = {-2147483648.0, 2147483647.0, -2147483648.0, 2147483647.0}},
    {.name = "exp", .build = try_exp, .shape = {"3x50"}},
    {.name = "exp, wide", .build = try_exp, .shape = {"1x19x3x5"}, .data = OP_WIDE},
    {.name = "exp, special", .build = try_exp, .shape = {"300"}, .data = OP_SPECIAL, .flags = OP_NO_GRADIENT},
    {.name = "log", .build = try_log, .shape = {"1x18x2x3"}, .data = OP_POSITIVE},
    {.name = "log, special", .build = try_log, .shape = {"300"}, .data = OP_SPECIAL, .flags = OP_NO_GRADIENT},
    {.name = "sqrt", .build = try_sqrt, .shape = {"41"}, .data = OP_POSITIVE},
    {.name = "abs", .build = try_abs, .shape = {"41"}, .data = OP_SPREAD, EXACT_BOTH},
    {.name = "neg", .build = try_neg, .shape = {"41"}, EXACT_BOTH},
    {.name = "square", .build = try_square, .shape = {"4x5"}},
    {.name = "reciprocal", .build = try_reciprocal, .shape = {"1x17x3x3"}, .data = OP_POSITIVE},
    {.name = "sign, special", .build = try_sign, .shape = {"300"}, .data = OP_SPECIAL, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "floor", .build = try_floor, .shape = {"300"}, .data = OP_WIDE, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "unary, nothing", .build = try_exp, .shape = {"0x4"}},
    {.name = "unary, large", .build = try_square, .shape = {"100003"}},
    {.name = "chain", .build = chain, .shape = {"1x20x4x4"}},
    {.name = "between convolutions", .build = between_convolutions, .shape = {"2x16x7x9"}, .forward = 1e-5, .flags = OP_NO_GRADIENT},
    {.name = "where", .build = where, .shape = {"2x3x4", "2x3x4", "4"}, EXACT},
    {.name = "where, condition repeated", .build = where, .shape = {"3x1", "2x3x4", ""}, EXACT},
    {.name = "where, scalars", .build = where, .shape = {"6x5", "", ""}, EXACT},
    {.name = "where, map", .build = where, .shape = {"2x19x3x5", "2x19x3x5", "2x19x3x5"}, EXACT_BOTH},
    {.name = "where, int32", .build = where_int, .shape = {"6x5", "5", "6x1"}, EXACT},
    {.name = "where guards", .build = where_guards, .shape = {"6x5"}, .data = OP_SPREAD},
    {.name = "sum, all", .build = sum, .shape = {"3x4x5x2"}},
    {.name = "sum, last", .build = sum, .shape = {"5x300"}, .option = {2}},
    {.name = "sum, first", .build = sum, .shape = {"300x70"}, .option = {1}},
    {.name = "sum, middle", .build = sum, .shape = {"3x40x5"}, .option = {2}},
    {.name = "sum, outer and inner", .build = sum, .shape = {"3x4x5x6"}, .option = {9}},
    {.name = "sum, alternating", .build = sum, .shape = {"3x4x2x3x5"}, .option = {10}},
    {.name = "sum, alternating the other way", .build = sum, .shape = {"3x4x2x3x5"}, .option = {21}},
    {.name = "sum, size 1", .build = sum, .shape = {"1x7x1"}, .option = {5}},
    {.name = "sum, nothing", .build = sum, .shape = {"3x0"}, .option = {2}},
    {.name = "sum, nothing left", .build = sum, .shape = {"0x3"}, .option = {2}},
    {.name = "sum, large mean", .build = sum, .shape = {"4x70001"}, .option = {2}, .data = OP_LARGE_MEAN, .flags = OP_NO_DIFFERENCES},
    {.name = "sum, scalar", .build = sum, .shape = {""}},
    {.name = "mean", .build = mean, .shape = {"3x4x5"}, .option = {5}},
    {.name = "mean, large mean", .build = mean, .shape = {"4x7001"}, .option = {2}, .data = OP_LARGE_MEAN, .flags = OP_NO_DIFFERENCES},
    {.name = "max over the last", .build = reduce_max, .shape = {"5x40"}, .option = {2}, .data = OP_SPREAD, EXACT_BOTH},
    {.name = "max over the first", .build = reduce_max, .shape = {"40x70"}, .option = {1}, .data = OP_SPREAD, EXACT_BOTH},
    {.name = "max over two", .build = reduce_max, .shape = {"3x4x5x6"}, .option = {5}, .data = OP_SPREAD, EXACT_BOTH},
    {.name = "max, ties", .build = reduce_max, .shape = {"6x37"}, .option = {2}, .data = OP_TIES, EXACT_BOTH, .flags = OP_NO_DIFFERENCES},
    {.name = "max of a column, ties",
     .build = reduce_max,
     .shape = {"37x6"},
     .option = {1},
     .data = OP_TIES,
     EXACT_BOTH,
     .flags = OP_NO_DIFFERENCES},
    {.name = "max, special", .build = reduce_max, .shape = {"40x7"}, .option = {2}, .data = OP_SPECIAL, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "sum per image", .build = per_image, .shape = {"3x8x4"}},
    {.name = "sum per image, vector", .build = per_image, .shape = {"3"}},
    {.name = "cast", .build = cast, .shape = {"321"}, .option = {10}},
    {.name = "cast, special", .build = cast, .shape = {"321"}, .option = {1}, .data = OP_SPECIAL},
    {.name = "slice, first", .build = slice, .shape = {"5x3x4"}, .option = {0, 1, 3}, EXACT_BOTH},
    {.name = "slice, last", .build = slice, .shape = {"5x3x4"}, .option = {-1, 1, -1}, EXACT_BOTH},
    {.name = "slice, middle", .build = slice, .shape = {"2x5x3x4"}, .option = {1, 4, 1}, EXACT_BOTH},
    {.name = "slice, nothing", .build = slice, .shape = {"2x5"}, .option = {1, 5, 0}, .flags = OP_NO_GRADIENT},
    {.name = "slice, all", .build = slice, .shape = {"2x5"}, .option = {1, 0, 5}, EXACT_BOTH},
    {.name = "slice of a slice", .build = slice_twice, .shape = {"2x3x2x5", "4x3"}, EXACT_BOTH},
    {.name = "gather rows", .build = gather, .shape = {"6x3", "5"}, .option = {0, -1, 6}, EXACT},
    {.name = "gather, axis 1", .build = gather, .shape = {"2x6x3", "2x4"}, .option = {1, -1, 5}, EXACT},
    {.name = "gather, last axis", .build = gather, .shape = {"2x3x6", "7"}, .option = {2, 0, 5}, EXACT},
    {.name = "gather, repeated", .build = gather, .shape = {"2x3", "700"}, .option = {0, -1, 1}, EXACT},
    {.name = "gather, nothing", .build = gather, .shape = {"4x3", "0"}, .option = {0, 0, 3}, .flags = OP_NO_GRADIENT},
    {.name = "gather from nothing", .build = gather, .shape = {"0x3", "4"}, .option = {0, -1, 3}},
    {.name = "gather per image", .build = gather_per_image, .shape = {"3x5x4", "3x9", "3x5"}, EXACT},
    {.name = "top_k", .build = top_k, .shape = {"3x50"}, .option = {7}, .data = OP_SPREAD, EXACT_BOTH},
    {.name = "top_k, ties", .build = top_k, .shape = {"2x3x60"}, .option = {11}, .data = OP_TIES, EXACT_BOTH, .flags = OP_NO_DIFFERENCES},
    {.name = "top_k, all", .build = top_k, .shape = {"4x9"}, .option = {100}, .data = OP_SPREAD, EXACT_BOTH},
    {.name = "top_k, one", .build = top_k, .shape = {"4x1"}, .option = {1}, EXACT_BOTH},
    {.name = "top_k, many", .build = top_k, .shape = {"2x20011"}, .option = {300}, EXACT_BOTH, .flags = OP_NO_DIFFERENCES},
    {.name = "top_k, many ties", .build = top_k, .shape = {"2x20011"}, .option = {1000}, .data = OP_TIES, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "top_k, special", .build = top_k, .shape = {"2x9001"}, .option = {700}, .data = OP_SPECIAL, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "top_k, special, nearly all",
     .build = top_k,
     .shape = {"2x5000"},
     .option = {4990},
     .data = OP_SPECIAL,
     EXACT,
     .flags = OP_NO_GRADIENT},
    {.name = "top_k, equal", .build = top_k, .shape = {"2x9001"}, .option = {5}, .data = OP_ZEROS, EXACT, .flags = OP_NO_GRADIENT},
    {.name = "top pairs", .build = top_pairs, .shape = {"2x40x7"}, .option = {20}, EXACT},
    {.name = "top per class", .build = top_per_class, .shape = {"2x40x7"}, .option = {6}, EXACT},
    {.name = "top per class, more than there are", .build = top_per_class, .shape = {"1x5x3"}, .option = {400}, EXACT},
    {.name = NULL}};
