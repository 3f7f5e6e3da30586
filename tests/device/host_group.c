/* labels: threads */
/* Threads that reduce among each other: sums in the order of the ranks, gathers, a device that fails, programs that differ. */
#include "core/device/host_group.h"

#include <pthread.h>

#include "check.h"

enum { N = 3, ELEMENTS = 1000, ROUNDS = 200 };

typedef struct worker {
    sd_host_group *group;
    uint32_t rank;
    sodet_status status;
    sodet_err err;
    float in[ELEMENTS], out[ELEMENTS];
    double wide[37];
    float all[N * 5];
} worker;

static float value(uint32_t rank, int round, int i)
{
    return (float)sd_mix64((uint64_t)rank * 1000003u + (uint64_t)round * 7919u + (uint64_t)i) / 1.8446744e19f - 0.5f;
}

static void *reduce(void *self)
{
    worker *w = self;
    for (int round = 0; round < ROUNDS && w->status == SODET_OK; round++) {
        for (int i = 0; i < ELEMENTS; i++)
            w->in[i] = value(w->rank, round, i);
        for (int i = 0; i < 37; i++)
            w->wide[i] = (double)(w->rank + 1) * i;
        const sd_host_part parts[2] = {{w->in, w->out, 900}, {w->in + 900, w->in + 900, 100}}; /* the second in place */
        w->status = sd_host_group_sum(w->group, w->rank, parts, 2, 4, &w->err);
        if (w->status == SODET_OK)
            w->status = sd_host_group_sum(w->group, w->rank, &(sd_host_part){w->wide, w->wide, 37}, 1, 8, &w->err);
        if (w->status == SODET_OK)
            w->status = sd_host_group_gather(w->group, w->rank, w->in, w->all, 5 * sizeof(float), &w->err);
    }
    return NULL;
}

static void sums_and_gathers(void)
{
    static worker w[N];
    pthread_t thread[N];
    sodet_err err = SODET_ERR_INIT;
    sd_host_group *group;
    CHECK_OK(sd_host_group_open(N, &group, &err));
    CHECK_EQ(sd_host_group_size(group), N);
    for (uint32_t r = 0; r < N; r++) {
        w[r] = (worker){.group = group, .rank = r, .err = SODET_ERR_INIT};
        pthread_create(&thread[r], NULL, reduce, &w[r]);
    }
    for (uint32_t r = 0; r < N; r++)
        pthread_join(thread[r], NULL);
    for (uint32_t r = 0; r < N; r++) {
        CHECK_EQ(w[r].status, SODET_OK);
        int wrong = 0;
        for (int i = 0; i < ELEMENTS; i++) {
            double sum = 0;
            for (uint32_t k = 0; k < N; k++)
                sum += (double)value(k, ROUNDS - 1, i);
            float got = i < 900 ? w[r].out[i] : w[r].in[i];
            wrong += got != (float)sum;
        }
        CHECK_EQ(wrong, 0);
        for (int i = 0; i < 37; i++)
            CHECK(w[r].wide[i] == 6.0 * i);
        for (int i = 0; i < N * 5; i++)
            CHECK(w[r].all[i] == value((uint32_t)i / 5, ROUNDS - 1, i % 5));
    }
    sd_host_group_close(group);
}

static void *wait_for_others(void *self)
{
    worker *w = self;
    w->status = sd_host_group_sum(w->group, w->rank, &(sd_host_part){w->in, w->out, w->rank == 1 ? 8u : 9u}, 1, 4, &w->err);
    return NULL;
}

/* Rank 2 never comes; the abort wakes the others. */
static void abort_wakes(void)
{
    static worker w[2];
    pthread_t thread[2];
    sodet_err err = SODET_ERR_INIT;
    sd_host_group *group;
    CHECK_OK(sd_host_group_open(3, &group, &err));
    for (uint32_t r = 0; r < 2; r++) {
        w[r] = (worker){.group = group, .rank = r, .err = SODET_ERR_INIT};
        pthread_create(&thread[r], NULL, wait_for_others, &w[r]);
    }
    sd_host_group_abort(group);
    for (uint32_t r = 0; r < 2; r++) {
        pthread_join(thread[r], NULL);
        CHECK_EQ(w[r].status, SODET_E_DEVICE);
        CHECK(strstr(w[r].err.text, "another device") != NULL);
    }
    float x[4] = {0};
    CHECK_FAILS(sd_host_group_gather(group, 2, x, x, 4, &err), SODET_E_DEVICE, "another device");
    sd_host_group_close(group);
}

/* Ranks that come with unlike sizes all learn of it. */
static void unlike_programs(void)
{
    static worker w[2];
    pthread_t thread[2];
    sodet_err err = SODET_ERR_INIT;
    sd_host_group *group;
    CHECK_OK(sd_host_group_open(2, &group, &err));
    for (uint32_t r = 0; r < 2; r++) {
        w[r] = (worker){.group = group, .rank = r, .err = SODET_ERR_INIT};
        pthread_create(&thread[r], NULL, wait_for_others, &w[r]);
    }
    for (uint32_t r = 0; r < 2; r++) {
        pthread_join(thread[r], NULL);
        CHECK(w[r].status != SODET_OK);
    }
    CHECK(strstr(w[0].err.text, "programs differ") || strstr(w[1].err.text, "programs differ"));
    sd_host_group_close(group);
    CHECK_FAILS(sd_host_group_open(0, &group, &err), SODET_E_INVALID, "at least 1");
}

int main(void)
{
    sums_and_gathers();
    abort_wakes();
    unlike_programs();
    return check_done(100);
}
