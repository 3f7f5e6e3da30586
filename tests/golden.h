/* golden.h: reading tests/golden/: the JSON files as trees, the formula that makes every input, comparison of records.
 * The formula and the files are described in tests/golden/README.md.
 *
 *     const gold *root = gold_open("optim.json");
 *     gold_tally t = GOLD_TALLY("optim");
 *     gold_compare(&t, "sgd/step 3", gold_path(root, "optimizers", "sgd", NULL), got, n, 1e-6);
 *     gold_done(&t);         prints count and worst error, and checks the count against tests/golden/expected-counts.txt
 */
#ifndef SODET_TESTS_GOLDEN_H
#define SODET_TESTS_GOLDEN_H

#include <stdbool.h>

#include "check.h"

/* ---- trees ---- */
typedef struct gold gold;
const gold *gold_open(const char *file);                   /* in tests/golden/; NULL, and a failed check, if it is missing or not JSON */
const gold *gold_read(const char *path, const char *name); /* any JSON file; path NULL: missing; name: for messages */
void gold_close(const gold *root);
/* Member of an object, element of an array. A missing one is a failed check and gives a null node, on which every call below is safe. */
const gold *gold_get(const gold *node, const char *key);
const gold *gold_at(const gold *node, uint64_t i);       /* element, or the value of member i */
const gold *gold_path(const gold *node, ...);            /* keys, NULL at the end; "#3" is an element */
const gold *gold_try(const gold *node, const char *key); /* NULL if it is not there, no failure */
const char *gold_key(const gold *node, uint64_t i);      /* name of member i, in the file's order */
uint64_t gold_size(const gold *node);                    /* elements or members; 0 for anything else */
bool gold_is_number(const gold *node);
bool gold_is_list(const gold *node);
bool gold_is_object(const gold *node);
double gold_number(const gold *node);    /* NaN if it is none (true and false are 1 and 0) */
const char *gold_text(const gold *node); /* "" if it is none */
/* All numbers below, in order (nested lists flattened); malloc'd; *n may be NULL. */
double *gold_numbers(const gold *node, uint64_t *n);

/* ---- the formula ---- */
uint64_t gold_fnv1a64(const char *s);
uint64_t gold_mix(uint64_t x);
uint64_t gold_hash(const char *name, uint64_t i);
double gold_u(const char *name, uint64_t i);
double gold_u53(const char *name, uint64_t i);
uint64_t gold_sample(uint64_t k, uint64_t n);                           /* index of sample k of a tensor of n values */
void gold_fill_u(float *out, uint64_t n, const char *name);             /* u: pictures */
void gold_fill(float *out, uint64_t n, const char *name, double scale); /* (u - 0.5) * 2 * scale */
/* A state tensor by its torchvision name, with the rules of the README's table. `norm`: a bias whose sibling weight has one dimension. */
void gold_fill_state(float *out, const char *name, const uint64_t *dims, uint32_t rank, double gain, bool norm);

/* ---- comparison ---- */
typedef struct gold_tally {
    const char *name; /* its line in expected-counts.txt */
    uint64_t records, failed;
    double worst; /* largest error of a value relative to its tensor's max */
    char worst_at[200];
} gold_tally;
#define GOLD_TALLY(name_)                                                                                                                  \
    {                                                                                                                                      \
        .name = (name_)                                                                                                                    \
    }
/* A record {shape, sum, abs, max, samples | values} against n values. Samples (or all values) may differ by tolerance * max; max by the
 * same; sum and abs by tolerance * max * min(n, 20 sqrt(n)). A record without `max` takes the largest value it lists. */
void gold_compare(gold_tally *t, const char *what, const gold *record, const float *got, uint64_t n, double tolerance);
/* more[n]: what each value may be off beyond the tolerance. */
void gold_compare_each(gold_tally *t, const char *what, const gold *record, const float *got, uint64_t n, double tolerance,
                       const float *more);
void gold_compare_double(gold_tally *t, const char *what, const gold *record, const double *got, uint64_t n, double tolerance);
/* A plain list of all values; `absolute` is added to tolerance * (largest value). */
void gold_compare_list(gold_tally *t, const char *what, const gold *list, const double *got, uint64_t n, double tolerance, double absolute);
void gold_compare_list_f32(gold_tally *t, const char *what, const gold *list, const float *got, uint64_t n, double tolerance,
                           double absolute);
/* One number: |got - want| <= tolerance * |want| + absolute. */
void gold_compare_number(gold_tally *t, const char *what, double want, double got, double tolerance, double absolute);
void gold_count(gold_tally *t, const char *what, bool equal); /* an exact comparison that the caller made */
void gold_done(gold_tally *t);

#endif
