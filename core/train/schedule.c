#include "core/train/schedule.h"

#include <math.h>

const char *const sd_schedule_names[] = {"constant", "step", "multistep", "cosine", "poly", "plateau", NULL};
const char *const sd_warmup_names[] = {"none", "linear", "constant", NULL};

void sd_schedule_init(sd_schedule *s)
{
    *s = (sd_schedule){.kind = SD_SCHEDULE_CONSTANT, .factor = 0.1, .power = 1, .threshold = 1e-4, .patience = 10};
}

sodet_status sd_schedule_check(const sd_schedule *s, sodet_err *err)
{
    if (s->kind < SD_SCHEDULE_CONSTANT || s->kind > SD_SCHEDULE_PLATEAU)
        return SODET_FAIL(err, SODET_E_INVALID, "schedule %u does not exist", s->kind);
    const char *name = sd_schedule_names[s->kind - 1];
    if (!isfinite(s->lr) || s->lr < 0)
        return SODET_FAIL(err, SODET_E_INVALID, "lr = %g: a number of at least 0 is needed", s->lr);
    if (s->kind == SD_SCHEDULE_STEP && !(s->every > 0))
        return SODET_FAIL(err, SODET_E_INVALID, "schedule step needs `every`, after how much the rate falls");
    if (s->kind == SD_SCHEDULE_MULTISTEP && s->n_milestones == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "schedule multistep needs `milestones`");
    for (uint64_t i = 1; s->kind == SD_SCHEDULE_MULTISTEP && i < s->n_milestones; i++)
        if (!(s->milestones[i] >= s->milestones[i - 1]))
            return SODET_FAIL(err, SODET_E_INVALID, "milestones: %g stands behind %g; they must ascend", s->milestones[i],
                              s->milestones[i - 1]);
    if ((s->kind == SD_SCHEDULE_COSINE || s->kind == SD_SCHEDULE_POLY) && !(s->total > 0))
        return SODET_FAIL(err, SODET_E_INVALID, "schedule %s needs `total`, its length", name);
    if (s->apart && s->warmup_kind != SD_WARMUP_NONE && s->total > 0 && !(s->total > s->warmup))
        return SODET_FAIL(err, SODET_E_INVALID, "the warm-up of %g leaves nothing of the schedule's total of %g", s->warmup, s->total);
    if (s->warmup_kind > SD_WARMUP_CONSTANT || s->warmup < 0 || s->warmup_factor < 0)
        return SODET_FAIL(err, SODET_E_INVALID, "warm-up over %g with factor %g: neither may be negative", s->warmup, s->warmup_factor);
    return SODET_OK;
}

static bool improved(const sd_schedule *s, const sd_plateau *p, double metric)
{
    if (p->seen == 0)
        return !isnan(metric);
    double sign = s->lower_is_better ? -1 : 1;
    double bar = s->threshold_absolute ? p->best + sign * s->threshold : p->best * (1 + sign * s->threshold);
    return s->lower_is_better ? metric < bar : metric > bar; /* false for NaN */
}

void sd_plateau_update(const sd_schedule *s, sd_plateau *p, double metric)
{
    if (improved(s, p, metric)) {
        p->best = metric;
        p->seen++;
        p->bad = 0;
    } else
        p->bad++;
    if (p->cooling) {
        p->cooling--;
        p->bad = 0;
    }
    if ((double)p->bad > s->patience) {
        p->reductions++;
        p->cooling = (uint64_t)s->cooldown;
        p->bad = 0;
    }
}

static double at_least(double x, double least)
{
    return x > least ? x : least;
}

static double scheduled(const sd_schedule *s, double t, double total, const sd_plateau *p)
{
    const double pi = 3.14159265358979323846;
    uint64_t passed = 0;
    switch (s->kind) {
    case SD_SCHEDULE_STEP:
        return s->lr * pow(s->factor, floor(t / s->every));
    case SD_SCHEDULE_MULTISTEP:
        while (passed < s->n_milestones && s->milestones[passed] <= t)
            passed++;
        return s->lr * pow(s->factor, (double)passed);
    case SD_SCHEDULE_COSINE:
        return t >= total ? s->floor : s->floor + (s->lr - s->floor) * (1 + cos(pi * t / total)) / 2;
    case SD_SCHEDULE_POLY:
        return t >= total ? s->floor : at_least(s->lr * pow(1 - t / total, s->power), s->floor);
    case SD_SCHEDULE_PLATEAU:
        return p && p->reductions ? at_least(s->lr * pow(s->factor, (double)p->reductions), s->floor) : s->lr;
    default:
        return s->lr;
    }
}

double sd_schedule_at(const sd_schedule *s, double step, double warm, const sd_plateau *p)
{
    if (s->warmup_kind == SD_WARMUP_NONE || !(s->warmup > 0))
        return scheduled(s, step, s->total, p);
    if (warm < s->warmup) {
        double factor =
            s->warmup_kind == SD_WARMUP_CONSTANT ? s->warmup_factor : s->warmup_factor + (1 - s->warmup_factor) * warm / s->warmup;
        /* Apart, the schedule has not begun, and its first value is the base. */
        return factor * (s->apart ? scheduled(s, 0, s->total, p) : scheduled(s, step, s->total, p));
    }
    return s->apart ? scheduled(s, step - s->warmup, s->total - s->warmup, p) : scheduled(s, step, s->total, p);
}
