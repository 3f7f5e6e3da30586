#include "core/train/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/data/model_assigner.h"
#include "core/data/send.h"
#include "core/report/build.h"
#include "core/train/resumed.h"

/* ---- schedule ---- */
static sodet_status make_schedule(sd_run *r, sodet_err *err)
{
    const sd_schedule_cfg *c = &r->core->schedule;
    double per_epoch = (double)sd_loader_steps(r->loader) / r->core->optimizer.accumulate;
    sd_schedule *s = &r->schedule;
    sd_schedule_init(s);
    s->kind = c->type + 1;
    s->lr = r->core->optimizer.lr;
    s->factor = c->factor;
    s->every = c->every;
    s->milestones = c->milestones.v;
    s->n_milestones = c->milestones.n;
    s->total = c->total;
    s->floor = c->floor;
    s->power = c->power;
    s->warmup_kind = c->warmup;
    s->warmup = c->warmup_epochs > 0 ? c->warmup_epochs : c->warmup_iterations;
    s->warmup_factor = c->warmup_factor;
    s->apart = c->warmup_apart;
    s->patience = c->patience;
    s->threshold = c->threshold;
    s->threshold_absolute = c->threshold_absolute;
    s->lower_is_better = c->plateau_on == SD_PLATEAU_ON_LOSS;
    s->cooldown = c->cooldown;
    /* A schedule that begins behind the warm-up counts both on one scale. */
    if (s->apart && c->unit == SD_UNIT_EPOCHS && !(c->warmup_epochs > 0))
        s->warmup /= per_epoch;
    if (s->apart && c->unit == SD_UNIT_ITERATIONS && c->warmup_epochs > 0)
        s->warmup *= per_epoch;
    return sd_schedule_check(s, err);
}

double sd_run_epoch(const sd_run *r)
{
    return (double)r->state.epoch + (double)r->state.batch / (double)sd_loader_steps(r->loader);
}

double sd_run_rate(const sd_run *r)
{
    const sd_schedule_cfg *c = &r->core->schedule;
    double epoch = sd_run_epoch(r), step = (double)r->state.step, at = c->unit == SD_UNIT_EPOCHS ? epoch : step;
    double warm = r->schedule.apart ? at : c->warmup_epochs > 0 ? epoch : step;
    return sd_schedule_at(&r->schedule, at, warm, &r->state.plateau);
}

uint64_t sd_run_steps(const sd_run *r)
{
    const sd_schedule_cfg *c = &r->core->schedule;
    double per_epoch = (double)sd_loader_steps(r->loader) / r->core->optimizer.accumulate;
    double steps = ceil(c->unit == SD_UNIT_EPOCHS ? c->total * per_epoch : c->total);
    uint64_t limit = r->core->train.max_steps;
    return limit && (double)limit < steps ? limit : (uint64_t)steps;
}

/* ---- batches ---- */
double sd_run_wait(const sd_run *r)
{
    sd_loader_stats s = {0};
    if (r->loader)
        sd_loader_stats_get(r->loader, &s);
    return r->wait_before + s.wait;
}

sodet_status sd_run_next(sd_run *r, const sd_batch **batches, sodet_err *err)
{
    for (uint32_t i = 0; i < r->core->optimizer.accumulate; i++) {
        if (r->stop && *r->stop) {
            batches[0] = NULL;
            return SODET_OK;
        }
        sodet_status s = sd_loader_next(r->loader, &batches[i], err);
        if (s == SODET_OK && !batches[i]) {
            /* Without shuffling a loader ends with the epoch; the next one begins again. Batches in hand are its. */
            if (i)
                return SODET_FAIL(err, SODET_E_UNSUPPORTED,
                                  "[data] shuffle = no and [optimizer] accumulate = %u: an epoch of %" PRIu64
                                  " batches is no multiple of it",
                                  r->core->optimizer.accumulate, sd_loader_steps(r->loader));
            r->wait_before = sd_run_wait(r);
            sd_loader_stats stats;
            sd_loader_stats_get(r->loader, &stats);
            r->by_device += stats.by_device;
            r->by_host += stats.by_host;
            sd_loader_close(r->loader);
            r->loader = NULL;
            r->loader_config.epoch = r->state.epoch;
            r->loader_config.step = 0;
            s = sd_loader_open(&r->loader_config, &r->loader, err);
            if (s == SODET_OK)
                s = sd_loader_next(r->loader, &batches[i], err);
        }
        if (s == SODET_OK && !batches[i])
            s = SODET_FAIL(err, SODET_E_INTERNAL, "the loader has no batch at the beginning of an epoch");
        if (s != SODET_OK)
            return s;
    }
    return SODET_OK;
}

void sd_run_recycle(sd_run *r, const sd_batch *const *batches)
{
    for (uint32_t i = 0; i < r->core->optimizer.accumulate; i++)
        sd_loader_recycle(r->loader, batches[i]);
}

void sd_run_advance(sd_run *r, const sd_batch *const *batches)
{
    for (uint32_t i = 0; i < r->core->optimizer.accumulate; i++) {
        const sd_batch *b = batches[i];
        bool last = b->step + 1 >= b->steps;
        r->state.epoch = b->epoch + (last ? 1 : 0);
        r->state.batch = last ? 0 : b->step + 1;
        r->state.samples += b->global_n;
    }
    r->state.step++;
}

/* ---- opening ---- */
static sodet_status open_loader(sd_run *r, sodet_err *err)
{
    const sd_core_cfg *core = r->core;
    uint32_t k = core->optimizer.accumulate;
    r->loader_config = sd_split_loader(r->cfg, &r->split, SD_SPLIT_TRAIN);
    r->loader_config.assigner = sd_model_assigner(r->model);
    r->loader_config.batch = core->train.batch;
    r->loader_config.last = core->data.last;
    r->loader_config.difficult = core->data.difficult;
    r->loader_config.min_side = core->data.min_side;
    r->loader_config.device_pixels = core->data.pixels == SD_PIXELS_DEVICE;
    r->loader_config.device_jpegs = core->data.decode == SD_DECODE_DEVICE;
    r->loader_config.epoch = r->state.epoch;
    r->loader_config.step = r->state.batch;
    /* The batches of a step are held at once; of two, where a step is begun before the one before it is finished. */
    const uint32_t held = sd_device_pool_replica(r->pool, 0)->ops->fetch ? 2 * k : k;
    if (r->loader_config.depth < held + 2)
        r->loader_config.depth = held + 2;
    for (uint32_t i = 0; i < 2; i++)
        r->flights[i].batches = sd_pool_alloc(&r->strings, k * sizeof(const sd_batch *));
    return r->flights[0].batches && r->flights[1].batches ? sd_loader_open(&r->loader_config, &r->loader, err)
                                                          : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: batches");
}

static sodet_status open_stepper(sd_run *r, sodet_err *err)
{
    uint32_t n;
    const sd_loader_shape *shapes = sd_loader_shapes(r->loader, &n);
    if (!n)
        return SODET_FAIL(err, SODET_E_INVALID, "[data] train holds no picture");
    sd_stepper_config c = {.core = r->core,
                           .pool = r->pool,
                           .model = r->model,
                           .batch = shapes[0].n,
                           .height = shapes[0].height,
                           .width = shapes[0].width,
                           .boxes = sd_loader_max_objects(r->loader),
                           .picture_bytes = sd_loader_picture_bytes(r->loader)};
    sodet_status s = sd_stepper_open(&c, &r->stepper, err);
    if (s != SODET_OK)
        return s;
    /* Without shuffling the loader is closed with the epoch: no step may then hold its batches (sd_run_next). */
    r->ahead = sd_stepper_runs_ahead(r->stepper) && r->core->data.shuffle;
    const sd_slots *slots = sd_stepper_slots(r->stepper);
    r->facts = (sd_run_facts){.cfg = r->cfg,
                              .pool = r->pool,
                              .segments = sd_stepper_segments(r->stepper),
                              .model = r->model,
                              .classes = sd_dataset_classes(r->split.dataset),
                              .fingerprint = sd_dataset_fingerprint(r->split.dataset),
                              .n_slots = slots->accumulator == UINT32_MAX ? slots->n : slots->n - 1,
                              .slot_names = slots->name,
                              .ema_slot = slots->ema};
    for (uint32_t i = 0; i < sd_stepper_terms(r->stepper); i++)
        r->terms[i] = sd_stepper_term(r->stepper, i);
    return SODET_OK;
}

/* Initialisers, then run.init or the checkpoint that is resumed. */
static sodet_status set_values(sd_run *r, sodet_err *err)
{
    const sd_segments *segments = r->facts.segments;
    sodet_status s;
    if (r->resume) {
        s = sd_state_load(&r->facts, r->resume, &r->state, err);
        sd_checkpoint_close(r->resume);
        r->resume = NULL;
        return s == SODET_OK ? sd_device_pool_agree(r->pool, true, err) : s;
    }
    s = sd_device_pool_init(r->pool, segments, (uint64_t)r->core->run.seed, SODET_INIT_XAVIER + r->core->train.init, err);
    if (s == SODET_OK && r->core->run.init) {
        sd_checkpoint *c;
        sd_load_report report = {0};
        s = sd_checkpoint_open(r->core->run.init, SD_CHECKPOINT_FOREIGN, &c, err);
        if (s != SODET_OK)
            return s;
        s = sd_state_init_from(r->pool, segments, c, &report, err);
        for (uint64_t i = 0; i < report.n; i++) {
            const sd_load_entry *e = &report.entries[i];
            /* State of the run that wrote the file is never taken, so it is not missed. */
            if (e->state == SD_TAKEN || (!e->name && (!strncmp(e->source, "optimizer/", 10) || !strncmp(e->source, "ema/", 4))))
                continue;
            sd_log(SD_LOG_INFO, "not taken: %s%s%s", e->name ? e->name : e->source, e->why ? ": " : "", e->why ? e->why : "");
        }
        if (s == SODET_OK)
            sd_log(SD_LOG_INFO, "init from %s: %" PRIu64 " tensors taken, %" PRIu64 " of the network keep their start", r->core->run.init,
                   report.taken, report.skipped);
        sd_load_report_free(&report);
        sd_checkpoint_close(c);
    }
    if (s == SODET_OK)
        s = sd_stepper_begin(r->stepper, err);
    return s == SODET_OK ? sd_device_pool_agree(r->pool, true, err) : s;
}

static sodet_status open_validation(sd_run *r, sodet_err *err)
{
    if (!sd_recipe_validates(r->cfg))
        return SODET_OK;
    const sd_classes *c = r->facts.classes;
    sodet_status s = sd_validation_open(r->cfg, c->names, c->n, &r->validation, err);
    if (s != SODET_OK)
        return s;
    sd_infer_config i = {.pool = r->pool,
                         .model = r->model,
                         .segments = r->facts.segments,
                         .param_arena = r->facts.ema_slot == UINT32_MAX ? (uint32_t)SD_ARENA_PARAM : SD_ARENA_STATE + r->facts.ema_slot};
    return sd_infer_open(&i, &r->infer, err);
}

static sodet_status open_report(sd_run *r, bool quiet, bool resumed, sodet_err *err)
{
    sodet_status s = sd_checkpoint_probe(r->folder, 2 * sd_state_bytes(&r->facts), err);
    if (s == SODET_OK)
        s = sd_run_folder_take(r->cfg, r->folder, resumed && sd_run_goes_on_in(r->core->run.resume, r->folder), &r->lock, err);
    sd_report_config c = {.folder = r->folder,
                          .log_every = r->core->train.log_every,
                          .quiet = quiet,
                          .events = r->core->run.tensorboard,
                          .resumed_step = r->state.step,
                          .n_terms = sd_stepper_terms(r->stepper),
                          .terms = r->terms};
    return s == SODET_OK ? sd_report_open(&c, &r->report, err) : s;
}

static void introduce(const sd_run *r, bool resumed)
{
    const sd_census *census = sd_dataset_census(r->split.dataset);
    sd_device_bytes bytes = sd_device_pool_bytes(r->pool, 0);
    sd_build_info built;
    sd_build_info_get(&built);
    sd_report_line(r->report, "sodet %s (%s), %s; %s", built.version, built.build, built.compiler, built.isa);
    sd_report_line(r->report, "run %s in %s%s", r->core->run.name ? r->core->run.name : "sodet", r->folder, resumed ? ", resumed" : "");
    if (r->changed.length)
        sd_report_line(r->report, "from here on: %s", r->changed.text);
    sd_report_line(r->report, "train: %" PRIu64 " pictures, %" PRIu64 " objects, %u classes; val: %" PRIu64 " pictures", census->images,
                   census->objects, r->facts.classes->n, r->validation ? sd_dataset_size(sd_validation_dataset(r->validation)) : 0);
    sd_report_line(r->report, "network: %" PRIu64 " parameters; device: %s%s, %u threads each, %.0f MiB planned",
                   r->facts.segments->parameter_count, sd_device_pool_replica(r->pool, 0)->name,
                   sd_device_pool_count(r->pool) > 1 ? " and others" : "", sd_device_pool_threads(r->pool), (double)bytes.total / 1048576);
    uint32_t n, most = 0;
    const sd_loader_shape *shapes = sd_loader_shapes(r->loader, &n);
    for (uint32_t i = 0; i < n; i++)
        most = shapes[i].n > most ? shapes[i].n : most;
    if (most < r->core->train.batch)
        sd_report_line(r->report, "batch: %u picture%s at most, in the place of train.batch = %u: no more can share one", most,
                       most == 1 ? "" : "s", r->core->train.batch);
    if (r->loader_config.device_pixels)
        sd_report_line(r->report, "pixels: made on the device, which has %.1f MiB for pictures of a batch, each of %.2f MiB at most",
                       (double)(sd_loader_picture_bytes(r->loader) * r->loader_config.batch) / 1048576,
                       (double)sd_loader_picture_bytes(r->loader) / 1048576);
}

static sodet_status open_all(sd_run *r, bool quiet, sodet_err *err)
{
    const sd_run_cfg *run = &r->core->run;
    if (run->resume && run->init)
        return sd_config_fail(r->cfg, err, "run", "init", "a run that is resumed has its weights; keep one of init and resume");
    r->folder = sd_run_folder(r->cfg, &r->strings);
    if (!r->folder)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the run's folder");
    sodet_status s = sd_run_folder_check(r->cfg, r->folder, run->resume && sd_run_goes_on_in(run->resume, r->folder), err);
    bool resumed = run->resume != NULL;
    if (s == SODET_OK && resumed)
        s = sd_run_find_checkpoint(run->resume, &r->resume, err);
    if (s == SODET_OK && resumed)
        s = sd_state_position(r->resume, &r->state, err);
    if (s == SODET_OK && resumed)
        s = sd_resumed_check(r->cfg, r->resume, &r->changed, err);
    if (s == SODET_OK)
        s = sd_split_open(r->cfg, SD_SPLIT_TRAIN, NULL, 0, &r->split, err);
    if (s == SODET_OK)
        s = sd_model_open(r->cfg, sd_dataset_classes(r->split.dataset)->n, &r->model, err);
    if (s == SODET_OK)
        s = sd_device_pool_open(r->cfg, &r->pool, err);
    if (s == SODET_OK)
        s = sd_send_ready(r->pool, r->core->data.decode == SD_DECODE_DEVICE, err);
    if (s == SODET_OK)
        s = open_loader(r, err);
    if (s == SODET_OK)
        s = make_schedule(r, err);
    if (s == SODET_OK)
        s = open_stepper(r, err);
    if (s == SODET_OK)
        s = set_values(r, err);
    if (s == SODET_OK)
        s = open_validation(r, err);
    uint32_t n;
    const sd_loader_shape *shapes = r->loader ? sd_loader_shapes(r->loader, &n) : NULL;
    for (uint32_t i = 0; s == SODET_OK && i < n; i++)
        s = sd_stepper_prepare(r->stepper, shapes[i].n, shapes[i].height, shapes[i].width, err);
    if (s == SODET_OK)
        s = open_report(r, quiet, resumed, err);
    if (s == SODET_OK && !resumed)
        s = sd_advice_new(r->cfg, r->model,
                          (sd_loader_steps(r->loader) + r->core->optimizer.accumulate - 1) / r->core->optimizer.accumulate, &r->advice,
                          err);
    if (s == SODET_OK)
        s = sd_usage_open(r->pool, r->stepper, &r->usage, err);
    if (s == SODET_OK)
        introduce(r, resumed);
    return s;
}

sodet_status sd_run_open(sd_run *r, sd_config *cfg, bool quiet, sodet_err *err)
{
    memset(r, 0, sizeof *r);
    r->cfg = cfg;
    r->core = sd_config_core(cfg);
    sd_train_state_init(&r->state);
    sodet_status s = open_all(r, quiet, err);
    if (s != SODET_OK)
        sd_run_close(r);
    r->began = r->last_save = sd_now();
    return s;
}

static void tell_decoded(sd_run *r)
{
    char told[700];
    sd_loader_stats stats = {0};
    if (r->loader)
        sd_loader_stats_get(r->loader, &stats);
    stats.by_device += r->by_device;
    stats.by_host += r->by_host;
    if (*sd_send_told(&stats, told, sizeof told))
        sd_report_line(r->report, "%s", told);
}

void sd_run_close(sd_run *r)
{
    if (r->report) {
        sd_run_tell_unread(r);
        tell_decoded(r);
    }
    sd_report_close(r->report);
    if (r->pool && sd_device_pool_hung(r->pool)) { /* its threads may still read batches and programs */
        memset(r, 0, sizeof *r);
        return;
    }
    sd_usage_close(&r->usage);
    sd_advice_free(r->advice);
    sd_infer_close(r->infer);
    sd_validation_close(r->validation);
    sd_loader_close(r->loader);
    sd_stepper_close(r->stepper);
    sd_device_pool_close(r->pool);
    sd_model_close(r->model);
    sd_split_close(&r->split);
    sd_checkpoint_close(r->resume);
    if (r->lock > 0)
        close(r->lock);
    sd_free(r->unread.samples);
    sd_text_free(&r->changed);
    sd_pool_clear(&r->strings);
    memset(r, 0, sizeof *r);
}
