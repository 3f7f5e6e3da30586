/* labels: valgrind */
/* The memory plan: no two buffers that live at once overlap, and the plan is close to the least there can be. */
#include "check.h"
#include "core/graph/graph.h"

static void random_plans(uint64_t seed)
{
    sodet_stream r = sd_stream(seed, 0, 0, 0);
    sodet_plan_buffer b[200];
    sodet_err err = SODET_ERR_INIT;
    uint32_t n = 1 + sodet_stream_below(&r, 200);
    uint64_t alive[64] = {0}, peak = 0;
    memset(b, 0, sizeof b);
    for (uint32_t i = 0; i < n; i++) {
        b[i].bytes = sodet_stream_below(&r, 10) == 0 ? 0 : 1 + sodet_stream_below(&r, 100000);
        b[i].first = sodet_stream_below(&r, 60);
        b[i].last = b[i].first + sodet_stream_below(&r, 64 - b[i].first > 8 ? 8 : 64 - b[i].first);
        b[i].lifetime = sodet_stream_below(&r, 8) == 0 ? SODET_LIFE_PROGRAM : SODET_LIFE_RUN;
        for (uint32_t t = b[i].first; t <= b[i].last && b[i].lifetime == SODET_LIFE_RUN; t++)
            alive[t] += (b[i].bytes + 63) / 64 * 64;
    }
    for (int t = 0; t < 64; t++)
        peak = alive[t] > peak ? alive[t] : peak;
    sodet_plan plan = {.struct_size = sizeof plan, .n_buffers = n, .buffers = b};
    uint64_t work, own;
    CHECK_OK(sd_plan_memory(&plan, &work, &own, &err));
    CHECK(work >= peak);
    CHECK((double)work <= 1.5 * (double)peak + 64);
    int wrong = 0;
    for (uint32_t i = 0; i < n; i++) {
        wrong += b[i].offset % 64 != 0;
        wrong += b[i].offset + b[i].bytes > (b[i].lifetime == SODET_LIFE_RUN ? work : own);
        for (uint32_t k = 0; k < i; k++) {
            bool together = b[i].lifetime == b[k].lifetime &&
                            (b[i].lifetime == SODET_LIFE_PROGRAM || (b[i].first <= b[k].last && b[k].first <= b[i].last));
            bool apart = b[i].offset + b[i].bytes <= b[k].offset || b[k].offset + b[k].bytes <= b[i].offset;
            wrong += together && !apart && b[i].bytes && b[k].bytes;
        }
    }
    if (wrong)
        fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    CHECK_EQ(wrong, 0);
}

int main(void)
{
    for (uint64_t seed = 1; seed <= 200; seed++)
        random_plans(seed);
    return check_done(600);
}
