#include "core/train/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/train/run.h"

/* ---- checkpoints ---- */
/* Once for all files of a step. */
static sodet_status devices_agree(sd_run *r, sodet_err *err)
{
    const sodet_status s = r->agreed ? SODET_OK : sd_device_pool_agree(r->pool, false, err);
    r->agreed = s == SODET_OK;
    return s;
}

static sodet_status save_last(sd_run *r, sd_train_result *out, sodet_err *err)
{
    char path[4160];
    snprintf(path, sizeof path, "%.4095s/last.safetensors", r->folder);
    sodet_status s = devices_agree(r, err);
    if (s == SODET_OK)
        s = sd_state_save(&r->facts, &r->state, path, err);
    if (s == SODET_OK) {
        memcpy(out->checkpoint, path, sizeof path);
        r->last_save = sd_now();
    }
    return s;
}

/* step-<n>: another name of last.safetensors, which is only ever replaced whole. */
static sodet_status save_periodic(sd_run *r, sd_train_result *out, sodet_err *err)
{
    char path[4160];
    snprintf(path, sizeof path, "%.4095s/step-%09" PRIu64 ".safetensors", r->folder, r->state.step);
    sodet_status s = save_last(r, out, err);
    if (s != SODET_OK)
        return s;
    unlink(path);
    if (link(out->checkpoint, path) != 0)
        s = sd_state_save(&r->facts, &r->state, path, err);
    sd_run_prune(r->folder, r->core->checkpoint.keep);
    return s;
}

static bool periodic_due(const sd_run *r, bool boundary)
{
    const sd_checkpoint_cfg *c = &r->core->checkpoint;
    if (!c->every || !r->state.step)
        return false;
    switch (c->unit) {
    case SD_UNIT_EPOCHS:
        return boundary && r->state.epoch % c->every == 0;
    case SD_UNIT_ITERATIONS:
        return r->state.step % c->every == 0;
    default:
        return sd_now() - r->last_save >= 60.0 * c->every;
    }
}

/* ---- evaluation ---- */
static bool evaluation_due(const sd_run *r)
{
    const sd_eval_cfg *c = &r->core->eval;
    if (!r->validation)
        return false;
    for (uint64_t e = r->state.boundary + 1; e <= r->state.epoch; e++) {
        for (uint32_t i = 0; i < c->at.n; i++)
            if (c->at.v[i] == e)
                return true;
        if (!c->at.n && c->every && e % c->every == 0)
            return true;
    }
    return false;
}

static bool asked_to_stop(const sd_run *r)
{
    return r->stop && *r->stop;
}

static bool progressed(void *context, const sd_infer_stats *s)
{
    sd_run *r = context;
    sd_report_evaluating(r->report, s->done, s->of);
    r->broken_off = asked_to_stop(r);
    return !r->broken_off;
}

/* Nothing is changed by one that fails, or that is stopped. counts: the result becomes part of the state (best, patience, plateau); else it only decides best.safetensors. */
static sodet_status evaluate(sd_run *r, bool counts, sd_train_result *out, sodet_err *err)
{
    sd_infer_stats stats;
    sodet_status s = sd_usage_end(&r->usage, err);
    if (s == SODET_OK)
        s = sd_stepper_share_statistics(r->stepper, err);
    if (s == SODET_OK)
        s = sd_validation_run(r->validation, r->infer, NULL, progressed, r, &stats, err);
    if (s == SODET_OK)
        s = sd_usage_begin(&r->usage, err);
    if (s != SODET_OK)
        return s;
    if (stats.missing)
        sd_report_line(r->report,
                       "validation: %" PRIu64 " picture%s could not be read and %s left out, first %s (sodet data check says why)",
                       stats.missing, stats.missing == 1 ? "" : "s", stats.missing == 1 ? "was" : "were",
                       sd_dataset_item(sd_validation_dataset(r->validation), stats.first_missing)->id);
    sd_text members = {0};
    sd_validation_json(r->validation, &members);
    if (members.failed) {
        sd_text_free(&members);
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the evaluation's figures");
    }
    sd_train_state state = r->state;
    double value = sd_validation_best(r->validation);
    bool better = isfinite(value) && (isnan(state.best) || value > state.best);
    state.evaluations++;
    state.stale = better ? 0 : state.stale + 1;
    if (better) {
        state.best = value;
        state.best_epoch = state.epoch;
    }
    if (r->schedule.kind == SD_SCHEDULE_PLATEAU)
        sd_plateau_update(
            &r->schedule, &state.plateau,
            r->core->schedule.plateau_on == SD_PLATEAU_ON_LOSS ? state.loss_sum / (state.loss_count > 0 ? state.loss_count : 1) : value);
    state.loss_sum = state.loss_count = 0;
    out->last_metric = value;
    out->best = state.best;
    out->best_epoch = state.best_epoch;
    if (counts)
        r->state = state;
    sd_report_evaluation(r->report, r->state.step, sd_run_epoch(r), members.text ? members.text : "",
                         sd_validation_best_name(r->validation), value, state.best, stats.seconds);
    sd_text_free(&members);
    if (!better)
        return SODET_OK;
    char path[4160];
    snprintf(path, sizeof path, "%.4095s/best.safetensors", r->folder);
    s = devices_agree(r, err);
    if (s == SODET_OK)
        s = sd_state_save_weights(&r->facts, &state, path, err);
    if (s == SODET_OK)
        memcpy(out->best_checkpoint, path, sizeof path);
    return s;
}

static sodet_status draw_curve(const sd_run *r, sodet_err *err)
{
    char metrics[4160], png[4160];
    snprintf(metrics, sizeof metrics, "%.4095s/metrics.jsonl", r->folder);
    snprintf(png, sizeof png, "%.4095s/curve.png", r->folder);
    return sd_report_curve(metrics, r->validation ? sd_validation_best_name(r->validation) : "", png, err);
}

/* ---- steps ---- */
/* The state is what it was before the step, on the devices too. behind: another step was begun after it, so its gradients are gone. */
static sodet_status not_finite(sd_run *r, sd_flight *f, bool behind, sd_train_result *out, sodet_err *err)
{
    sd_text terms = {0}, who = {0}, how = {0};
    const sd_step *step = &f->step;
    sodet_status s = SODET_OK;
    if (behind && sd_device_pool_count(r->pool) == 1) { /* which layer it was is told of one device alone */
        sd_step again = *step;
        s = sd_stepper_gradients(r->stepper, f->batches, &again, err);
    }
    for (uint32_t i = 0; i < sd_stepper_terms(r->stepper); i++)
        sd_text_printf(&terms, "%s%s %g", i ? ", " : "", r->terms[i], step->term[i]);
    if (s == SODET_OK)
        sd_stepper_blame(r->stepper, f->batches, r->core->optimizer.accumulate, r->split.dataset, &who);
    sd_report_line(r->report, "step %" PRIu64 " was not made: %s", r->state.step + 1, who.failed || !who.text ? "" : who.text);
    sd_advice_not_finite(r->cfg, r->state.step, &how);
    sd_report_line(r->report, "advice: go on from the last checkpoint with %s", how.failed ? "a lower optimizer.lr" : how.text);
    if (s == SODET_OK)
        s = save_last(r, out, err);
    if (s == SODET_OK)
        s = SODET_FAIL(err, SODET_E_INVALID,
                       "step %" PRIu64 ": the %s is not finite (%.120s; gradient norm %g; %.200s); nothing was changed, %.120s can be "
                       "resumed, with a lower optimizer.lr say",
                       r->state.step + 1, isfinite(step->loss) ? "gradient" : "loss", terms.text ? terms.text : "", step->norm,
                       who.text ? who.text : "", out->checkpoint);
    sd_text_free(&terms);
    sd_text_free(&who);
    sd_text_free(&how);
    return s;
}

/* A gradient that overflowed is the factor's fault: the step is left out, and the factor changes. */
static sodet_status skipped(sd_run *r, const sd_flight *f, sd_train_result *out, sodet_err *err)
{
    sodet_status s = sd_loss_scale_step(r->core, &r->state.scale, false, err);
    if (s != SODET_OK) {
        sodet_err saving = SODET_ERR_INIT;
        if (save_last(r, out, &saving) == SODET_OK)
            sd_report_line(r->report, "%.4000s can be resumed", out->checkpoint);
        return sd_fail_in(err, s, "step %" PRIu64, r->state.step + 1);
    }
    sd_report_line(r->report, "step %" PRIu64 " was skipped: a gradient overflowed with loss_scale %g; %" PRIu64 " skipped so far, now %g",
                   r->state.step + 1, f->step.loss_scale, r->state.scale.skipped, r->state.scale.factor);
    sd_run_advance(r, f->batches);
    return SODET_OK;
}

static void advise(sd_run *r)
{
    sd_text t = {0};
    sd_advice_say(r->advice, &t);
    for (char *line = t.failed ? NULL : t.text, *end; line && (end = strchr(line, '\n')); line = end + 1)
        sd_report_line(r->report, "%.*s", (int)(end - line), line);
    sd_text_free(&t);
}

/* Puts a step on the devices with the batches that f holds, and takes it for good until it is known; unless it is given up. */
static sodet_status begin_step(sd_run *r, sd_flight *f, bool alone, sodet_err *err)
{
    const double scale = sd_loss_scale_begin(r->core, &r->state.scale);
    r->agreed = false;
    f->before = r->state;
    f->step = (sd_step){.step = r->state.step, .lr = sd_run_rate(r), .normaliser = r->state.normaliser, .loss_scale = scale};
    sodet_status s = sd_stepper_begin_step(r->stepper, f->batches, &f->step, alone, err);
    if (s == SODET_OK && f->step.given_up) {
        r->state = f->before;
        return SODET_OK;
    }
    if (s == SODET_OK && sd_loss_scaled(r->core))
        s = sd_loss_scale_step(r->core, &r->state.scale, true, err);
    if (s != SODET_OK)
        return s;
    r->state.normaliser = f->step.normaliser;
    sd_run_advance(r, f->batches);
    f->after = r->state;
    return SODET_OK;
}

static sodet_status report_step(sd_run *r, const sd_flight *f, sodet_err *err)
{
    const sd_step *step = &f->step;
    const sd_train_state now = r->state;
    const sd_schedule_cfg *schedule = &r->core->schedule;
    double per_epoch = (double)sd_loader_steps(r->loader) / r->core->optimizer.accumulate;
    r->state = f->after;
    sd_report_step report = {.step = r->state.step,
                             .steps = sd_run_steps(r),
                             .epoch = sd_run_epoch(r),
                             .epochs = schedule->unit == SD_UNIT_EPOCHS ? schedule->total : schedule->total / per_epoch,
                             .lr = step->lr,
                             .loss = step->loss,
                             .norm = step->norm,
                             .terms = step->term,
                             .images = step->images,
                             .positives = step->positives,
                             .wait = sd_run_wait(r),
                             .loss_scale = r->state.scale.factor,
                             .skipped = r->state.scale.skipped};
    r->state = now;
    if (isfinite(step->loss)) /* a skipped step's need not be: it would be the mean's end */
        sd_report_train(r->report, &report);
    if (r->advice)
        advise(r);
    return sd_report_status(r->report, err);
}

/* Reads what became of the step in flight. behind: one that was begun after it, or NULL. Where the step was not made, neither was that one,
 * and everything is as before the two: that one is then begun anew. */
static sodet_status finish_step(sd_run *r, sd_flight *behind, sd_train_result *out, sodet_err *err)
{
    sd_flight *f = r->flight;
    sodet_status s = sd_stepper_finish(r->stepper, &f->step, err);
    if (s != SODET_OK)
        return s;
    r->flight = behind;
    if (f->step.finite) {
        r->state.loss_sum += f->step.loss;
        r->state.loss_count++;
    } else {
        const double sum = r->state.loss_sum, n = r->state.loss_count; /* of the steps that were made since */
        r->state = f->before;
        r->state.loss_sum = sum;
        r->state.loss_count = n;
        if (!sd_loss_scaled(r->core))
            return not_finite(r, f, behind != NULL, out, err);
        s = skipped(r, f, out, err);
        f->after = r->state;
        if (s == SODET_OK && behind) {
            s = begin_step(r, behind, true, err);
            r->flight = behind->step.given_up ? NULL : behind;
        }
    }
    const uint32_t k = r->core->optimizer.accumulate;
    for (uint32_t i = 0; i < k && s == SODET_OK; i++)
        s = sd_run_note_unread(r, f->batches[i], err);
    if (s == SODET_OK && r->advice && f->step.finite)
        s = sd_advice_step(r->advice, f->batches, k, f->step.loss, err);
    sd_run_recycle(r, f->batches);
    if (s != SODET_OK)
        return s;
    out->images += f->step.images;
    out->loss = f->step.loss;
    return report_step(r, f, err);
}

static sodet_status make_step(sd_run *r, sd_train_result *out, sodet_err *err)
{
    const double began = sd_now(), waited = sd_run_wait(r);
    sd_flight *before = r->flight, *f = &r->flights[before == &r->flights[0]];
    sodet_status s = sd_run_next(r, f->batches, err);
    f->step.given_up = s == SODET_OK && !f->batches[0];
    if (s == SODET_OK && !f->step.given_up)
        s = begin_step(r, f, !before, err);
    if (s == SODET_OK && f->step.given_up) /* the loop asks why */
        return SODET_OK;
    if (s == SODET_OK && before)
        s = finish_step(r, f, out, err);
    else if (s == SODET_OK)
        r->flight = f;
    if (s == SODET_OK && !r->ahead)
        s = finish_step(r, NULL, out, err);
    sd_usage_step(&r->usage, sd_now() - began, sd_run_wait(r) - waited);
    return s;
}

static sodet_status drain(sd_run *r, sd_train_result *out, sodet_err *err)
{
    const double began = sd_now();
    sodet_status s = finish_step(r, NULL, out, err);
    r->usage.seconds += sd_now() - began;
    return s;
}

/* Why the run is over, or NULL. */
static const char *over(const sd_run *r)
{
    const sd_train_cfg *t = &r->core->train;
    const sd_schedule_cfg *c = &r->core->schedule;
    if (t->target > 0 && r->state.best >= t->target)
        return "target";
    if (t->patience && r->state.stale >= t->patience)
        return "patience";
    if (c->unit == SD_UNIT_EPOCHS ? sd_run_epoch(r) >= c->total - 1e-9 : (double)r->state.step >= c->total)
        return "total";
    return t->max_steps && r->state.step >= t->max_steps ? "max_steps" : NULL;
}

static sodet_status stopped(sd_run *r, sd_train_result *out, sodet_err *err)
{
    out->why = "signal";
    out->stopped = true;
    *err = (sodet_err)SODET_ERR_INIT;
    return save_last(r, out, err);
}

static sodet_status loop(sd_run *r, sd_train_result *out, sodet_err *err)
{
    for (;;) {
        sodet_status s = SODET_OK;
        const bool boundary = r->state.epoch > r->state.boundary, due = periodic_due(r, boundary), stop = asked_to_stop(r);
        bool evaluated = false;
        /* What looks at the state, or writes it down, comes after the steps that it holds. */
        if (r->flight && (stop || boundary || due || over(r)))
            s = drain(r, out, err);
        if (s != SODET_OK)
            return s;
        /* A stop comes before an evaluation that is due, or breaks it off: the resumed run makes it. */
        if (stop)
            return stopped(r, out, err);
        if (boundary) {
            evaluated = evaluation_due(r);
            if (evaluated)
                s = evaluate(r, true, out, err);
            if (s == SODET_OK)
                r->state.boundary = r->state.epoch;
        }
        if (s != SODET_OK)
            return r->broken_off ? stopped(r, out, err) : s;
        out->why = over(r);
        if (out->why) {
            /* Always at the last. A run that was only cut by max_steps is to continue as if it had not been. */
            bool cut = !strcmp(out->why, "max_steps"),
                 wanted = r->validation && !evaluated && !(r->state.evaluations > 0 && !(r->state.loss_count > 0));
            if (wanted && !cut)
                s = evaluate(r, true, out, err);
            if (s == SODET_OK)
                s = save_last(r, out, err);
            if (s == SODET_OK && wanted && cut)
                s = evaluate(r, false, out, err);
            return r->broken_off ? stopped(r, out, err) : s;
        }
        if (due)
            s = save_periodic(r, out, err);
        else if (evaluated)
            s = save_last(r, out, err);
        if (s == SODET_OK)
            s = make_step(r, out, err);
        if (s != SODET_OK)
            return s;
    }
}

static sodet_status tell_usage(sd_run *r, sd_train_result *out, sodet_err *err)
{
    sd_text text = {0}, json = {0};
    sodet_status s = sd_usage_end(&r->usage, err);
    out->usage = sd_usage_sum(&r->usage);
    if (s != SODET_OK || !(out->usage.seconds > 0))
        return s;
    sd_usage_text(&r->usage, &text);
    sd_usage_json(&r->usage, &json);
    if (text.failed || json.failed)
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the devices' figures");
    else
        sd_report_devices(r->report, r->state.step, sd_run_epoch(r), text.text, json.text);
    sd_text_free(&text);
    sd_text_free(&json);
    return s;
}

sodet_status sd_train(sd_config *cfg, const sd_train_options *o, sd_train_result *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    out->best = out->last_metric = out->loss = NAN;
    out->why = "";
    sd_run r;
    sodet_status s = sd_run_open(&r, cfg, o->quiet, err);
    if (s != SODET_OK)
        return s;
    snprintf(out->folder, sizeof out->folder, "%s", r.folder);
    if (r.validation)
        snprintf(out->metric, sizeof out->metric, "%.127s", sd_validation_best_name(r.validation));
    out->best = r.state.best;
    out->best_epoch = r.state.best_epoch;
    if (o->started)
        o->started(o->context);
    r.stop = o->stop;
    sd_stepper_stop_by(r.stepper, o->stop);
    s = sd_usage_begin(&r.usage, err);
    if (s == SODET_OK)
        s = loop(&r, out, err);
    if (s == SODET_OK)
        s = tell_usage(&r, out, err);
    if (s == SODET_OK) /* of the last evaluation */
        s = sd_report_status(r.report, err);
    if (s == SODET_OK)
        s = draw_curve(&r, err);
    out->steps = r.state.step;
    out->epochs = r.state.epoch;
    out->seconds = sd_now() - r.began;
    out->wait = sd_run_wait(&r);
    out->planned_bytes = sd_device_pool_bytes(r.pool, 0).total;
    sd_run_close(&r);
    return s;
}
