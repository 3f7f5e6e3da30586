#include "core/config/sections.h"

#include "core/base/base.h"

static const char *const precisions[] = {"fp32", "bf16", "fp16", "mixed", NULL};
static const char *const channels[] = {"rgb", "bgr", "grey", NULL};
static const char *const fail_or_skip[] = {"fail", "skip", NULL};
static const char *const bad_boxes[] = {"fail", "drop", "clip", NULL};
static const char *const lasts[] = {"keep", "drop", "wrap", NULL};
static const char *const difficults[] = {"keep", "ignore", "drop", NULL};
static const char *const places[] = {"host", "device", NULL};
static const char *const norms[] = {"sync", "local", "frozen", NULL};
static const char *const inits[] = {"xavier", "he", "he_fan_in", "torch", NULL};
static const char *const optimizers[] = {"sgd", "adam", "adamw", NULL};
static const char *const scalings[] = {"auto", "none", "static", "dynamic", NULL};
static const char *const schedules[] = {"constant", "step", "multistep", "cosine", "poly", "plateau", NULL};
static const char *const units[] = {"epochs", "iterations", NULL};
static const char *const warmups[] = {"none", "linear", "constant", NULL};
static const char *const plateau_ons[] = {"best", "loss", NULL};
static const char *const checkpoint_units[] = {"epochs", "iterations", "minutes", NULL};
static const char *const normalisers[] = {"global", "image", "device", "ema", NULL};

static const double UINT_MOST = 4294967295.0;

static const sodet_opt run_opts[] = {
    SODET_OPT_STRING(sd_run_cfg, name, NULL, "name of the run; default: the INI file's"),
    SODET_OPT_INT(sd_run_cfg, seed, "1", 0, 9007199254740992.0, "seed of everything random"),
    SODET_OPT_STRING(sd_run_cfg, devices, "cpu", "cpu | cpu:x4 (replicas) | ref | cuda:0,1 | cuda:all"),
    SODET_OPT_UINT(sd_run_cfg, threads, "0", 0, 4096, "compute threads; 0: as many as the process may run on"),
    SODET_OPT_ENUM(sd_run_cfg, precision, "fp32", precisions, "numbers of the layers; masters are fp32"),
    SODET_OPT_PATH(sd_run_cfg, output, 0, "folder of the run; default: that of a resumed run, else runs/<name>"),
    SODET_OPT_PATH(sd_run_cfg, init, 0, "weights to start from; nothing else is taken"),
    SODET_OPT_PATH(sd_run_cfg, resume, 0, "run folder or checkpoint to continue"),
    SODET_OPT_BOOL(sd_run_cfg, overwrite, "no", "remove what an earlier run left in the output folder"),
    SODET_OPT_BOOL(sd_run_cfg, report, "no", "report.html in the run's folder at the end (sodet report)"),
    SODET_OPT_BOOL(sd_run_cfg, tensorboard, "no", "the run's figures as events for TensorBoard, too (tensorboard --logdir runs)"),
    SODET_OPT_DURATION(sd_run_cfg, timeout, "10m", 1, 86400, "how long the other ranks or devices wait for one before the job ends"),
    SODET_OPT_STRINGS(sd_run_cfg, base, NULL, 0, "fragments, read in order before this file; later wins"),
};
static const sodet_opt input_opts[] = {
    SODET_OPT_SIZE(sd_input_cfg, size, "300", 8, 16384, "width x height the network is planned for"),
    SODET_OPT_DOUBLES(sd_input_cfg, mean, "123.675, 116.28, 103.53", 3, -1e4, 1e4,
                      "subtracted from values 0..255, in the order of channels"),
    SODET_OPT_DOUBLES(sd_input_cfg, std, "58.395, 57.12, 57.375", 3, 1e-6, 1e4, "divided by after that"),
    SODET_OPT_ENUM(sd_input_cfg, channels, "rgb", channels, "order of the channels that the network sees"),
    SODET_OPT_UINT(sd_input_cfg, pad_to, "1", 1, 1024, "width and height of a batch are padded to a multiple of this"),
};
static const sodet_opt data_opts[] = {
    SODET_OPT_STRINGS(sd_data_cfg, train, NULL, 0, "labels of [dataset.<label>] sections, joined"),
    SODET_OPT_STRINGS(sd_data_cfg, val, NULL, 0, "labels of [dataset.<label>] sections, joined"),
    SODET_OPT_UINT(sd_data_cfg, workers, "2", 1, 1024, "loader threads; the batches do not depend on it"),
    SODET_OPT_UINT(sd_data_cfg, queue, "4", 1, 1024, "batches kept ready"),
    SODET_OPT_STRINGS(sd_data_cfg, classes, NULL, 0, "names, or @file with one a line; default: the dataset's own"),
    SODET_OPT_ENUM(sd_data_cfg, bad_files, "fail", fail_or_skip, "what a picture or annotation that cannot be read does"),
    SODET_OPT_ENUM(sd_data_cfg, unknown_class, "fail", fail_or_skip,
                   "what an object does whose class is not in the list; skipped ones are counted"),
    SODET_OPT_ENUM(sd_data_cfg, bad_boxes, "clip", bad_boxes,
                   "what a box does that has no area or reaches over the picture's edge by more than half a pixel: clip leaves out the "
                   "former, drop both; what is left out is counted"),
    SODET_OPT_BOOL(sd_data_cfg, drop_empty, "no", "leave out pictures without objects"),
    SODET_OPT_BOOL(sd_data_cfg, ignore_orientation, "no",
                   "do not turn pictures as their EXIF tag says: for labels made on the stored pixels"),
    SODET_OPT_BYTES(sd_data_cfg, max_pixels, "268435456", 1, 4294967295.0, "width x height of a picture; larger ones are refused"),
    SODET_OPT_BOOL(sd_data_cfg, shuffle, "yes", "order of training pictures"),
    SODET_OPT_UINT(sd_data_cfg, train_limit, "0", 0, UINT_MOST, "only the first n training pictures; 0: all"),
    SODET_OPT_UINT(sd_data_cfg, val_limit, "0", 0, UINT_MOST, "only the first n validation pictures; 0: all"),
    SODET_OPT_UINT(
        sd_data_cfg, overfit, "0", 0, UINT_MOST,
        "sanity run: train and validate on the first n training pictures, through [transform] val, without chance; an epoch is short, "
        "so give it many; the loss has to fall far, the metric to rise towards 1; 0: off"),
    SODET_OPT_PATH(sd_data_cfg, train_list, 0, "file of sample names, one a line: only these train (sodet data adopt writes one)"),
    SODET_OPT_PATH(sd_data_cfg, val_list, 0, "the same for validation"),
    SODET_OPT_ENUM(sd_data_cfg, last, "keep", lasts,
                   "smaller last batch of a training epoch: kept, left out, or filled from the epoch's beginning"),
    SODET_OPT_ENUM(sd_data_cfg, difficult, "keep", difficults,
                   "training objects marked difficult: as others, neither positive nor negative, left out"),
    SODET_OPT_DOUBLE(sd_data_cfg, min_side, "1", 0, 1e4,
                     "objects with a shorter side after the transforms, in network pixels, do not train"),
    SODET_OPT_ENUM(
        sd_data_cfg, pixels, "host", places,
        "who crops, changes colours, resizes and normalises in training and evaluation: loader threads, or the device, which then "
        "has room for a batch of the largest picture; the same chance, boxes equal, pixels within 0.005 grey levels"),
    SODET_OPT_ENUM(
        sd_data_cfg, decode, "host", places,
        "who decodes JPEGs in training and evaluation: loader threads, by libjpeg-turbo, or with pixels = device the device, if its "
        "backend "
        "can (by nvJPEG, whose pixels are a few grey levels off); other pictures, CMYK and what an EXIF tag turns stay with the host"),
};
static const sodet_opt eval_opts[] = {
    SODET_OPT_STRINGS(sd_eval_cfg, evaluators, "voc", 0, "labels of [evaluator.<label>] sections"),
    SODET_OPT_UINT(sd_eval_cfg, every, "1", 0, 1e6, "epochs between evaluations; 0: only by at, and at the end"),
    SODET_OPT_UINTS(sd_eval_cfg, at, NULL, 0, 1, 1e6, "epochs after which to evaluate, in the place of every"),
    SODET_OPT_STRING(sd_eval_cfg, best, NULL, "evaluator/metric that chooses the best checkpoint; default: the first evaluator's headline"),
};
static const sodet_opt optimizer_opts[] = {
    SODET_OPT_ENUM(sd_optimizer_cfg, type, "sgd", optimizers, "rule of the update"),
    SODET_OPT_DOUBLE(sd_optimizer_cfg, lr, "0.001", 0, 1e3, "learning rate, before the schedule"),
    SODET_OPT_DOUBLE(sd_optimizer_cfg, momentum, "0.9", 0, 0.999999, "of sgd"),
    SODET_OPT_BOOL(sd_optimizer_cfg, nesterov, "no", "of sgd"),
    SODET_OPT_DOUBLES(sd_optimizer_cfg, betas, "0.9, 0.999", 2, 0, 0.9999999, "of adam and adamw"),
    SODET_OPT_DOUBLE(sd_optimizer_cfg, eps, "1e-8", 0, 1, "of adam and adamw"),
    SODET_OPT_DOUBLE(sd_optimizer_cfg, weight_decay, "0", 0, 10, "L2 in the gradient; adamw: apart from it"),
    SODET_OPT_DOUBLE(sd_optimizer_cfg, bias_lr, "1", 0, 1e3, "factor on lr for biases (Caffe: 2)"),
    SODET_OPT_BOOL(sd_optimizer_cfg, bias_decay, "yes", "weight decay on biases"),
    SODET_OPT_BOOL(sd_optimizer_cfg, norm_decay, "yes", "weight decay on scale and shift of normalisation layers"),
    SODET_OPT_DOUBLE(sd_optimizer_cfg, clip_norm, "0", 0, 1e9, "largest 2-norm of all gradients; 0: off"),
    SODET_OPT_UINT(sd_optimizer_cfg, accumulate, "1", 1, 65536, "batches per step"),
    SODET_OPT_DOUBLE(sd_optimizer_cfg, ema, "0", 0, 0.9999999, "decay of averaged weights, which are evaluated and kept; 0: off"),
    SODET_OPT_ENUM(sd_optimizer_cfg, loss_scaling, "auto", scalings,
                   "a factor on the loss that keeps small gradients from vanishing; auto: dynamic with precision = fp16, else none"),
    SODET_OPT_DOUBLE(sd_optimizer_cfg, loss_scale, "65536", 1e-3, 1e9, "that factor; of dynamic: the first one"),
    SODET_OPT_UINT(sd_optimizer_cfg, loss_scale_window, "2000", 1, 1e9, "of dynamic: steps without an overflow before it doubles"),
    SODET_OPT_UINT(sd_optimizer_cfg, loss_scale_skips, "30", 1, 1e6, "steps in a row that may overflow before the run ends"),
    SODET_OPT_STRINGS(sd_optimizer_cfg, freeze, NULL, 0, "parameter paths that do not train; * stands for anything"),
    SODET_OPT_STRINGS(sd_optimizer_cfg, lr_factors, NULL, 0, "path:factor on lr; * stands for anything, the last match counts"),
};
static const sodet_opt schedule_opts[] = {
    SODET_OPT_ENUM(sd_schedule_cfg, type, "constant", schedules, "course of the learning rate"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, total, "1", 0, 1e12, "length of the run, in unit"),
    SODET_OPT_ENUM(sd_schedule_cfg, unit, "epochs", units, "of total, every and milestones"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, every, "0", 0, 1e12, "of step: length between reductions"),
    SODET_OPT_DOUBLES(sd_schedule_cfg, milestones, NULL, 0, 0, 1e12, "of multistep: where lr is multiplied by factor; ascending"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, factor, "0.1", 0, 1, "of step, multistep and plateau"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, floor, "0", 0, 1e3, "least rate of cosine, poly and plateau"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, power, "1", 0, 100, "of poly"),
    SODET_OPT_ENUM(sd_schedule_cfg, warmup, "none", warmups, "rate of the first iterations"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, warmup_iterations, "0", 0, 1e12, "length of the warm-up"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, warmup_epochs, "0", 0, 1e6, "length of the warm-up, in the place of warmup_iterations"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, warmup_factor, "0.001", 0, 1, "of the rate, at the first step (linear) or throughout (constant)"),
    SODET_OPT_BOOL(sd_schedule_cfg, warmup_apart, "no", "the schedule begins after the warm-up, not with it"),
    SODET_OPT_UINT(sd_schedule_cfg, patience, "10", 0, 1e6, "of plateau: evaluations without improvement that are borne"),
    SODET_OPT_DOUBLE(sd_schedule_cfg, threshold, "1e-4", 0, 1e6, "of plateau: improvement that counts, relative to the best"),
    SODET_OPT_BOOL(sd_schedule_cfg, threshold_absolute, "no", "of plateau: threshold is a difference"),
    SODET_OPT_UINT(sd_schedule_cfg, cooldown, "0", 0, 1e6, "of plateau: evaluations after a reduction that do not count"),
    SODET_OPT_ENUM(sd_schedule_cfg, plateau_on, "best", plateau_ons,
                   "of plateau: the best metric (higher is better), or the training loss"),
};
static const sodet_opt train_opts[] = {
    SODET_OPT_UINT(sd_train_cfg, batch, "32", 1, 1e6, "pictures per batch, over all devices and ranks"),
    SODET_OPT_UINT(sd_train_cfg, val_batch, "0", 0, 1e6, "pictures per batch of evaluation; 0: as batch"),
    SODET_OPT_UINT(sd_train_cfg, max_steps, "0", 0, UINT_MOST, "end after this many steps; 0: by the schedule's total alone"),
    SODET_OPT_UINT(sd_train_cfg, patience, "0", 0, 1e6, "end after this many evaluations without a better best metric; 0: off"),
    SODET_OPT_DOUBLE(sd_train_cfg, target, "0", 0, 1e6, "end when the best metric reaches it; 0: off"),
    SODET_OPT_ENUM(
        sd_train_cfg, norm, "sync", norms,
        "batch norm's statistics: of all devices' batch, of each device's own (the first one's running ones are kept and evaluated), the "
        "running ones"),
    SODET_OPT_ENUM(sd_train_cfg, init, "xavier", inits, "weights of layers that do not choose themselves"),
    SODET_OPT_UINT(sd_train_cfg, log_every, "50", 1, 1e6, "steps between lines where the output is no terminal"),
};
static const sodet_opt checkpoint_opts[] = {
    SODET_OPT_UINT(sd_checkpoint_cfg, every, "1", 0, 1e9, "distance of periodic checkpoints; 0: only best and last"),
    SODET_OPT_ENUM(sd_checkpoint_cfg, unit, "epochs", checkpoint_units, "of every"),
    SODET_OPT_UINT(sd_checkpoint_cfg, keep, "2", 0, 1e6, "periodic checkpoints kept beside best and last; 0: all"),
};
static const sodet_opt loss_opts[] = {
    SODET_OPT_ENUM(sd_loss_cfg, normaliser, "global", normalisers,
                   "what the terms are divided by: positives of the whole batch, of the image, of the device, or their running mean"),
    SODET_OPT_DOUBLE(sd_loss_cfg, normaliser_momentum, "0.9", 0, 1, "of ema"),
    SODET_OPT_DOUBLE(sd_loss_cfg, normaliser_start, "100", 0, 1e9, "of ema: value before the first step"),
};

typedef struct chain_cfg {
    sodet_string_list train, val;
} chain_cfg;
_Static_assert(sizeof(chain_cfg) == sizeof(((sd_core_cfg *)0)->transform), "the chains of sd_core_cfg");
static const sodet_opt transform_opts[] = {
    SODET_OPT_STRINGS(chain_cfg, train, "resize", 0, "labels of [transform.<label>] sections, in the order of application"),
    SODET_OPT_STRINGS(chain_cfg, val, "resize", 0, "labels of [transform.<label>] sections, in the order of application"),
};

static sodet_status check_schedule(const void *p, sodet_err *err)
{
    const sd_schedule_cfg *c = p;
    for (uint32_t i = 1; i < c->milestones.n; i++) {
        if (!(c->milestones.v[i] > c->milestones.v[i - 1]))
            return sodet_fail_option(err, "milestones", "must ascend: %g comes after %g", c->milestones.v[i], c->milestones.v[i - 1]);
    }
    if (!(c->total > 0))
        return sodet_fail_option(err, "total", "must be more than 0");
    if (c->total < 1e-6)
        return sodet_fail_option(err, "total", "no step would be made; 1e-6 is the least");
    if (c->type == 1 && !(c->every > 0))
        return sodet_fail_option(err, "every", "type = step needs it: the length between reductions");
    if (c->type == 2 && c->milestones.n == 0)
        return sodet_fail_option(err, "milestones", "type = multistep needs them");
    if (c->warmup_iterations > 0 && c->warmup_epochs > 0)
        return sodet_fail_option(err, "warmup_epochs", "warmup_iterations is given too; keep one of them");
    if (c->warmup != 0 && !(c->warmup_iterations > 0) && !(c->warmup_epochs > 0))
        return sodet_fail_option(err, "warmup", "needs a length: warmup_iterations or warmup_epochs");
    return SODET_OK;
}

static sodet_status check_optimizer(const void *p, sodet_err *err)
{
    const sd_optimizer_cfg *c = p;
    if (c->type == SD_OPTIMIZER_SGD && c->nesterov && !(c->momentum > 0))
        return sodet_fail_option(err, "nesterov", "needs a momentum above 0");
    for (uint32_t i = 0; i < c->lr_factors.n; i++) {
        const char *text = c->lr_factors.v[i], *colon = text;
        for (const char *q = text; *q; q++)
            colon = *q == ':' ? q : colon;
        double factor;
        if (*colon != ':' || colon == text || !sd_parse_double(colon + 1, &factor) || factor < 0)
            return sodet_fail_option(err, "lr_factors", "\"%s\": write path:factor, with a factor of 0 or more", text);
    }
    return SODET_OK;
}

#define ROWS(table) table, (uint32_t)(sizeof table / sizeof table[0]), (uint32_t)sizeof table[0]
const sd_schema sd_core_sections[] = {
    {"run", "what is run, where, and from which start", ROWS(run_opts), sizeof(sd_run_cfg), NULL, offsetof(sd_core_cfg, run)},
    {"input", "what the network sees of a picture", ROWS(input_opts), sizeof(sd_input_cfg), NULL, offsetof(sd_core_cfg, input)},
    {"data", "datasets, classes and loading", ROWS(data_opts), sizeof(sd_data_cfg), NULL, offsetof(sd_core_cfg, data)},
    {"transform", "chains of transforms", ROWS(transform_opts), sizeof(chain_cfg), NULL, offsetof(sd_core_cfg, transform)},
    {"loss", "the core's part of the loss; the plugin's options stand beside it", ROWS(loss_opts), sizeof(sd_loss_cfg), NULL,
     offsetof(sd_core_cfg, loss)},
    {"eval", "evaluation while training", ROWS(eval_opts), sizeof(sd_eval_cfg), NULL, offsetof(sd_core_cfg, eval)},
    {"optimizer", "update of the weights", ROWS(optimizer_opts), sizeof(sd_optimizer_cfg), check_optimizer,
     offsetof(sd_core_cfg, optimizer)},
    {"schedule", "length of the run and course of the learning rate", ROWS(schedule_opts), sizeof(sd_schedule_cfg), check_schedule,
     offsetof(sd_core_cfg, schedule)},
    {"train", "batches and ends", ROWS(train_opts), sizeof(sd_train_cfg), NULL, offsetof(sd_core_cfg, train)},
    {"checkpoint", "what is kept of a run", ROWS(checkpoint_opts), sizeof(sd_checkpoint_cfg), NULL, offsetof(sd_core_cfg, checkpoint)},
};
const uint32_t sd_core_section_count = sizeof sd_core_sections / sizeof sd_core_sections[0];
