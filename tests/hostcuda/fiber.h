/* fiber.h: stacks that one thread switches between, announced to the sanitizers and to valgrind. */
#ifndef HC_FIBER_H
#define HC_FIBER_H

#include "internal.h"

struct hc_fiber {
    void *stack_pointer; /* where it goes on */
    char *stack;         /* lowest usable byte */
    void *fake_stack;    /* the address sanitizer's */
    void *tsan;
};

/* A fiber that will run `body`, which never returns. Ends the program if there is no memory for its stack. */
hc_fiber *hc_fiber_new(void (*body)(void));
void hc_fiber_free(hc_fiber *f); /* accepts NULL; it must not be running */
/* From the scheduler's stack to a fiber's. Returns when that fiber calls hc_fiber_leave. */
void hc_fiber_enter(hc_fiber *f);
void hc_fiber_leave(hc_fiber *self);
/* The first thing in `body`. */
void hc_fiber_begin(void);

/* What was done to this memory so far is no part of any race: the shared arrays of two grids are not the same memory on a GPU. */
void hc_forget(void *memory, size_t bytes);

#ifdef HC_TSAN
inline constexpr bool HC_FIBER_PER_THREAD = true; /* a stack that changes hands looks like a race */
#else
inline constexpr bool HC_FIBER_PER_THREAD = false;
#endif

#endif
