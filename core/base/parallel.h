/* base/parallel.h: independent items of work over threads that end with the call. */
#ifndef SD_PARALLEL_H
#define SD_PARALLEL_H

#include <stdint.h>

/* Processors that this process may run on; at least 1. */
uint32_t sd_processors(void);
/* work(context, worker, item) for every item below n_items, each once, in no order. worker is below n_threads, and no two threads have the
 * same one at a time. The caller is worker 0; where no more threads can be started, those that are there do it all. At most 256 threads. */
void sd_parallel(uint32_t n_threads, uint64_t n_items, void (*work)(void *context, uint32_t worker, uint64_t item), void *context);

#endif
