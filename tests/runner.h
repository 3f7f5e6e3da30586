/* runner.h: runs a graph on a backend with nothing of the device pool between: values go in and come out by name, as doubles.
 *
 *     runner *r = runner_open("ref", true, 1);
 *     running *p = running_make(r, g, 0, &err);
 *     running_set(p, "x", x, n);  running_run(p, &err);  running_get(p, "y", y, n);  running_grad(p, "w", dw, n);
 *
 * With RUNNING_GUARDS no two buffers share memory, each lies between guards, and all of it begins as NaN: reading what was never written,
 * and writing where nothing belongs, show. */
#ifndef SODET_TESTS_RUNNER_H
#define SODET_TESTS_RUNNER_H

#include <stdbool.h>

#include "check.h"
#include "core/graph/graph.h"

typedef struct runner runner;
typedef struct running running;
enum { RUNNING_GUARDS = 1 };

/* backend: "ref", "cpu", "cuda_host"; with [run] precision behind a colon: "cuda_host:bf16". real64: the reference in double. A backend that cannot be opened ends the test. */
runner *runner_open(const char *backend, bool real64, uint32_t threads);
void runner_close(runner *r);
const char *runner_name(const runner *r); /* "ref (double)" */

/* Seals and binds the graph. NULL and *err if the backend refuses it. Parameters, buffers and inputs are zeros, constants what they are. */
running *running_make(runner *r, sodet_graph *g, uint32_t flags, sodet_err *err);
void running_free(running *p);
const sd_segments *running_segments(const running *p);
/* Parameter, buffer or input of that name; int32 is converted. Returns false if there is none or its size is another. */
bool running_set(running *p, const char *name, const double *v, uint64_t n);
bool running_set_f32(running *p, const char *name, const float *v, uint64_t n);
sodet_status running_run(running *p, sodet_err *err);
/* Output, or the new value of a parameter or buffer. False as above. */
bool running_get(running *p, const char *name, double *v, uint64_t n);
bool running_grad(running *p, const char *parameter, double *v, uint64_t n);
/* What guards were overwritten, in a static buffer; NULL: none. Without RUNNING_GUARDS always NULL. */
const char *running_damage(running *p);

/* A new training graph; ends the test when memory ran out. */
sodet_graph *running_graph(bool training);

#endif
