#include "core/train/usage.h"

#include <stdio.h>
#include <string.h>

sodet_status sd_usage_open(sd_device_pool *pool, const sd_stepper *stepper, sd_usage *out, sodet_err *err)
{
    *out = (sd_usage){.pool = pool, .stepper = stepper, .n = sd_device_pool_count(pool)};
    out->device = sd_alloc(out->n, sizeof *out->device);
    return out->device ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the times of %u devices", out->n);
}

void sd_usage_close(sd_usage *u)
{
    sd_free(u->device);
    *u = (sd_usage){0};
}

static sodet_status look(sd_replica *r, sodet_device_times *now, sodet_err *err)
{
    *now = (sodet_device_times){.struct_size = sizeof *now};
    return r->ops->times ? r->ops->times(r->device, now, err) : SODET_OK;
}

/* Before times are read: each device brings the group what it knows. */
static sodet_status ask(sd_replica *r, void *context, sodet_err *err)
{
    sodet_device_times now;
    (void)context;
    return look(r, &now, err);
}

static sodet_status run_both(sd_usage *u, sd_replica_job job, sodet_err *err)
{
    sodet_status s = sd_device_pool_run(u->pool, ask, u, err);
    return s == SODET_OK ? sd_device_pool_run(u->pool, job, u, err) : s;
}

static sodet_status begin(sd_replica *r, void *context, sodet_err *err)
{
    return look(r, &((sd_usage *)context)->device[r->index].since, err);
}

static sodet_status end(sd_replica *r, void *context, sodet_err *err)
{
    sd_usage_device *d = &((sd_usage *)context)->device[r->index];
    sodet_device_times now;
    sodet_status s = look(r, &now, err);
    d->times.run += now.run - d->since.run;
    d->times.collective += now.collective - d->since.collective;
    d->times.exposed += now.exposed - d->since.exposed;
    d->times.awaited += now.awaited - d->since.awaited;
    d->since = now;
    return s;
}

sodet_status sd_usage_begin(sd_usage *u, sodet_err *err)
{
    u->counts = true;
    return run_both(u, begin, err);
}

sodet_status sd_usage_end(sd_usage *u, sodet_err *err)
{
    const bool counts = u->counts;
    u->counts = false;
    return counts ? run_both(u, end, err) : SODET_OK;
}

void sd_usage_step(sd_usage *u, double seconds, double data)
{
    u->seconds += seconds;
    u->data += data;
    for (uint32_t i = 0; i < u->n; i++)
        u->device[i].images += sd_stepper_dealt(u->stepper, i);
}

static double not_below_zero(double v)
{
    return v > 0 ? v : 0;
}

sd_usage_shares sd_usage_sum(const sd_usage *u)
{
    sd_usage_shares s = {.seconds = u->seconds, .known = u->n && sd_device_pool_replica(u->pool, 0)->ops->times};
    if (!(u->seconds > 0))
        return s;
    const double all = u->seconds * u->n;
    for (uint32_t i = 0; i < u->n; i++) {
        const sodet_device_times *t = &u->device[i].times;
        s.images += (double)u->device[i].images / u->seconds;
        s.efficiency += not_below_zero(t->run - t->exposed) / all;
        s.exposed += not_below_zero(t->exposed - t->awaited) / all;
        s.hidden += not_below_zero(t->collective - t->exposed) / all;
        s.awaited += t->awaited / all;
        s.slowest = t->awaited < u->device[s.slowest].times.awaited ? i : s.slowest;
    }
    s.data = u->data / u->seconds;
    s.rest = not_below_zero(1 - s.efficiency - s.exposed - s.awaited - s.data);
    return s;
}

double sd_usage_rate(const sd_usage *u, uint32_t device)
{
    return u->seconds > 0 ? (double)u->device[device].images / u->seconds : 0;
}

/* "cpu:0 replica 2" of "cpu:0 replica 2 (AMD EPYC 9654)" */
static int short_name(const sd_usage *u, uint32_t i, const char **name)
{
    *name = sd_device_pool_replica(u->pool, i)->name;
    const char *end = strstr(*name, " (");
    return end ? (int)(end - *name) : (int)strlen(*name);
}

void sd_usage_text(const sd_usage *u, sd_text *out)
{
    const sd_usage_shares s = sd_usage_sum(u);
    const char *name;
    sd_text_printf(out, u->n > 1 ? "devices: " : "device: ");
    for (uint32_t i = 0; i < u->n; i++) {
        const int length = short_name(u, i, &name);
        sd_text_printf(out, "%s%.*s %.1f img/s", i ? ", " : "", length, name, sd_usage_rate(u, i));
    }
    if (!s.known) {
        sd_text_printf(out, "; %.1f %% of the time waiting for data", 100 * s.data);
        return;
    }
    if (u->n == 1) {
        sd_text_printf(out, "; of the time %.1f %% computing, %.1f %% waiting for data, %.1f %% else", 100 * s.efficiency, 100 * s.data,
                       100 * s.rest);
        return;
    }
    const int length = short_name(u, s.slowest, &name);
    sd_text_printf(out, "; efficiency %.3f, the share of the time in which they computed\n", s.efficiency);
    sd_text_printf(out,
                   "the rest: %.1f %% reduction (%.1f %% more was hidden), %.1f %% waiting for the slowest, most for %.*s, %.1f %% waiting "
                   "for data, %.1f %% else",
                   100 * s.exposed, 100 * s.hidden, 100 * s.awaited, length, name, 100 * s.data, 100 * s.rest);
}

static void number(sd_text *out, const char *key, double v)
{
    sd_text_printf(out, ", \"%s\": ", key);
    sd_json_write_double(out, v);
}

void sd_usage_json(const sd_usage *u, sd_text *out)
{
    const sd_usage_shares s = sd_usage_sum(u);
    sd_text_printf(out, "\"devices\": [");
    for (uint32_t i = 0; i < u->n; i++) {
        const sodet_device_times *t = &u->device[i].times;
        const char *name;
        char text[224];
        const int length = short_name(u, i, &name);
        snprintf(text, sizeof text, "%.*s", length, name);
        sd_text_printf(out, "%s{\"name\": ", i ? ", " : "");
        sd_json_write_string(out, text);
        number(out, "images_per_second", sd_usage_rate(u, i));
        if (s.known) {
            number(out, "computing", not_below_zero(t->run - t->exposed));
            number(out, "collective", t->collective);
            number(out, "exposed", t->exposed);
            number(out, "awaited", t->awaited);
        }
        sd_text_printf(out, "}");
    }
    sd_text_printf(out, "]");
    if (s.known) {
        number(out, "efficiency", s.efficiency);
        number(out, "reduction_exposed", s.exposed);
        number(out, "reduction_hidden", s.hidden);
        number(out, "waiting", s.awaited);
    }
    number(out, "waiting_for_data", s.data);
    if (s.known)
        number(out, "rest", s.rest);
}
