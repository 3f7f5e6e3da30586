/* opcase.h: the cases of tests/ops/: each builds a small graph around one operator. From a case come
 *   - `ref` in float and `cpu` (also with a memory plan that shares nothing and guards everything) against `ref` in double: outputs, gradients of all
 *     operands, new values of states;
 *   - the gradients against central differences, on `ref` in double (test grad/<file>);
 *   - the list of the rows of ops.def and parts that have a case (test ops/coverage).
 *
 * tests/ops/<file>.c is a table, and nothing else has to be listed:
 *
 *     static void add(opcase *c) { op_result(c, sodet_add(op_graph(c), op_real(c, 0), op_real(c, 1))); }
 *     const opcase_entry opcases_prims[] = {
 *         {.name = "add, broadcast", .build = add, .shape = {"2x3x4", "3x1"}},
 *         {.name = NULL}};
 *
 * All data come from the case's name, so a failure is the same again; it is printed. */
#ifndef SODET_TESTS_OPCASE_H
#define SODET_TESTS_OPCASE_H

#include "check.h"
#include "sodet/detection.h"
#include "sodet/graph.h"

typedef struct opcase opcase;

enum {                 /* what operands hold */
       OP_UNIFORM = 0, /* (-1, 1) */
       OP_POSITIVE,    /* (0.25, 2) */
       OP_LARGE_MEAN,  /* 1000 + (-1, 1) */
       OP_TIES,        /* -1, -0.5, 0, 0.5, 1 */
       OP_WIDE,        /* (-20, 20) */
       OP_SPREAD,      /* all different, at least 0.01 apart, shuffled: no ties, no kinks within a small step */
       OP_SPECIAL,     /* some of it NaN, infinite, 0, -0; not for gradients */
       OP_ZEROS
};

typedef struct opcase_entry {
    const char *name; /* NULL ends the table */
    void (*build)(opcase *c);
    const char *shape[6]; /* "2x3x4"; "" is a scalar; read by op_real and its like */
    uint32_t data;        /* of op_real and op_fixed */
    uint32_t data_of[6];  /* 1 + another kind for that operand */
    double option[8];     /* for build: op_option */
    /* Largest allowed error over the largest value of the tensor. 0: 2e-6. OP_EXACT: none. Double against central differences: `slope`, 0: 1e-6. */
    double forward, backward, slope;
    uint32_t flags;
} opcase_entry;
#define OP_EXACT (-1.0)
enum {
    OP_NO_GRADIENT = 1,    /* operands are inputs */
    OP_NO_DIFFERENCES = 2, /* a derivative there is, but the data lie on kinks */
    OP_INFERENCE = 4       /* not a training graph; implies OP_NO_GRADIENT */
};

sodet_graph *op_graph(opcase *c);
const opcase_entry *op_entry(const opcase *c);
double op_option(const opcase *c, uint32_t i);
/* Operand i: a parameter "operand<i>", whose gradient is checked. Without elements, or with OP_NO_GRADIENT, an input. */
sodet_value op_real(opcase *c, uint32_t i);
sodet_value op_fixed(opcase *c, uint32_t i);                            /* the same as an input: no gradient */
sodet_value op_int(opcase *c, uint32_t i, int32_t least, int32_t most); /* int32, uniform, inclusive */
sodet_value op_state(opcase *c, uint32_t i);                            /* a buffer; its new value is compared */
/* Given values: F32 input. The array must live as long as the case's table. */
sodet_value op_values(opcase *c, const char *shape, const float *v);
sodet_value op_int_values(opcase *c, const char *shape, const int32_t *v);
/* Boxes x1 y1 x2 y2 (the last dimension of operand i is 4) within [0, 100), at least 1 wide and high; or cx cy w h. */
sodet_value op_boxes(opcase *c, uint32_t i);
sodet_value op_anchors(opcase *c, uint32_t i);
/* An output that is compared. The loss is the sum of all F32 results, each element with a weight of its own. */
void op_result(opcase *c, sodet_value v);

#endif
