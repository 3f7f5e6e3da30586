#include "core/store/store.h"

#include <string.h>

static uint64_t step(uint64_t lane, uint64_t word)
{
    uint64_t x = (lane ^ word) * 0x9E3779B97F4A7C15ull; /* odd, so that no word is lost */
    return x << 31 | x >> 33;
}

static void block(sd_sum *s, const unsigned char *p)
{
    uint64_t w[4];
    memcpy(w, p, sizeof w);
    for (int i = 0; i < 4; i++)
        s->lane[i] = step(s->lane[i], w[i]);
}

void sd_sum_begin(sd_sum *s)
{
    *s = (sd_sum){.lane = {1, 2, 3, 4}};
}

void sd_sum_add(sd_sum *s, const void *bytes, uint64_t n)
{
    const unsigned char *p = bytes;
    s->total += n;
    if (s->n_tail) {
        uint64_t part = sizeof s->tail - s->n_tail < n ? sizeof s->tail - s->n_tail : n;
        memcpy(s->tail + s->n_tail, p, part);
        s->n_tail += (uint32_t)part;
        p += part;
        n -= part;
        if (s->n_tail < sizeof s->tail)
            return;
        block(s, s->tail);
        s->n_tail = 0;
    }
    for (; n >= sizeof s->tail; n -= sizeof s->tail, p += sizeof s->tail)
        block(s, p);
    if (n) {
        memcpy(s->tail, p, n);
        s->n_tail = (uint32_t)n;
    }
}

uint64_t sd_sum_end(sd_sum *s)
{
    memset(s->tail + s->n_tail, 0, sizeof s->tail - s->n_tail);
    block(s, s->tail);
    uint64_t h = sd_mix64(s->total);
    for (int i = 0; i < 4; i++)
        h = sd_mix64(h ^ s->lane[i]);
    return h;
}
