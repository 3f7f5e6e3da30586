#include "core/base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum { MOST = 256 };

typedef struct crew {
    void (*work)(void *context, uint32_t worker, uint64_t item);
    void *context;
    uint64_t n;
    atomic_uint_fast64_t next;
} crew;
typedef struct member {
    crew *crew;
    pthread_t thread;
    uint32_t worker;
} member;

uint32_t sd_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (uint32_t)n : 1;
}

static void *take_items(void *arg)
{
    const member *m = arg;
    crew *c = m->crew;
    for (uint64_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n;)
        c->work(c->context, m->worker, i);
    return NULL;
}

void sd_parallel(uint32_t n_threads, uint64_t n_items, void (*work)(void *context, uint32_t worker, uint64_t item), void *context)
{
    member members[MOST];
    uint32_t most = n_threads < MOST ? n_threads : MOST, n = 1;
    crew c = {.work = work, .context = context, .n = n_items};
    members[0] = (member){.crew = &c};
    for (; n < most && n < n_items; n++) {
        members[n] = (member){.crew = &c, .worker = n};
        if (pthread_create(&members[n].thread, NULL, take_items, &members[n]) != 0)
            break;
    }
    take_items(&members[0]);
    for (uint32_t i = 1; i < n; i++)
        pthread_join(members[i].thread, NULL);
}
