/* Pictures that could not be read under [data] bad_files = skip: gathered batch by batch, told when their epoch ends. What stands in their place
 * was decided by (seed, epoch, sample), so the list does not depend on loader threads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/train/run.h"

static int by_sample(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void sd_run_tell_unread(sd_run *r)
{
    enum { NAMED = 5 };
    sd_unread *u = &r->unread;
    uint64_t n = 0;
    sd_text names = {0};
    if (u->n)
        qsort(u->samples, u->n, sizeof *u->samples, by_sample);
    for (uint64_t i = 0; i < u->n; i++) {
        if (i && u->samples[i] == u->samples[i - 1])
            continue;
        if (n++ < NAMED)
            sd_text_printf(&names, "%s%s", n > 1 ? ", " : "", sd_dataset_item(r->split.dataset, u->samples[i])->id);
    }
    if (n > NAMED)
        sd_text_printf(&names, " and %" PRIu64 " more", n - NAMED);
    if (n && !names.failed) {
        char from[40] = "";
        if (u->from)
            snprintf(from, sizeof from, " from batch %" PRIu64 " on", u->from + 1);
        sd_report_line(r->report, "epoch %" PRIu64 "%s: %" PRIu64 " picture%s could not be read and %s: %s (sodet data check says why)",
                       u->epoch + 1, from, n, n == 1 ? "" : "s",
                       r->loader_config.shuffle ? "others stood in"
                       : n == 1                 ? "was left blank"
                                                : "were left blank",
                       names.text);
    }
    sd_text_free(&names);
    u->n = 0;
}

sodet_status sd_run_note_unread(sd_run *r, const sd_batch *b, sodet_err *err)
{
    sd_unread *u = &r->unread;
    if (!u->begun || u->epoch != b->epoch) {
        sd_run_tell_unread(r);
        u->begun = true;
        u->epoch = b->epoch;
        u->from = b->step;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (!b->items[i].missing && b->items[i].planned == b->items[i].sample)
            continue;
        sodet_status s = sd_grow(&u->samples, &u->capacity, u->n + 1, sizeof *u->samples, err);
        if (s != SODET_OK)
            return s;
        u->samples[u->n++] = b->items[i].planned;
    }
    if (b->step + 1 >= b->steps)
        sd_run_tell_unread(r);
    return SODET_OK;
}
