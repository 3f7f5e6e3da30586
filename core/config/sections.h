/* config/sections.h: the core's own sections of an INI file, as plain structs. The rows in sections.c are parser, default, range,
 * help and documentation of every key; `sodet help run` prints them. A key is added by a field here and a row there. Enums are the
 * index in the choices that stand beside the field. Lists and strings live as long as the sd_config. */
#ifndef SD_CONFIG_SECTIONS_H
#define SD_CONFIG_SECTIONS_H

#include "sodet/plugin.h"

typedef struct sd_run_cfg {
    const char *name;       /* of the run; the INI file's name without folder and suffix if not given */
    int64_t seed;           /* of everything random */
    const char *devices;    /* cpu | cpu:x4 | ref | cuda:0,1 | cuda:all | cuda_host:0,1 */
    uint32_t threads;       /* compute threads of this process; 0: as many as it may run on */
    uint32_t precision;     /* SODET_PRECISION_* */
    const char *output;     /* run folder; NULL: runs/<name> below the working directory */
    const char *init;       /* weights to start from, nothing else; NULL: initialisers */
    const char *resume;     /* a checkpoint to continue; NULL: a new run */
    uint32_t overwrite;     /* 1: what an earlier run left in the output folder is removed */
    uint32_t report;        /* 1: report.html at the end, of best.safetensors */
    uint32_t tensorboard;   /* 1: the run's figures also as events for TensorBoard */
    double timeout;         /* seconds after which a rank that does not answer ends the job */
    sodet_string_list base; /* fragments; already merged */
} sd_run_cfg;

enum { SD_CHANNELS_RGB, SD_CHANNELS_BGR, SD_CHANNELS_GREY };
typedef struct sd_input_cfg {
    sodet_size2d size;           /* what the network is planned for where pictures do not decide */
    sodet_double_list mean, std; /* [3], in the order of `channels`, for values 0..255 */
    uint32_t channels;           /* SD_CHANNELS_* */
    uint32_t pad_to;             /* width and height of a batch are multiples of this */
} sd_input_cfg;

enum { SD_BAD_FAIL, SD_BAD_SKIP };
enum { SD_BOXES_FAIL, SD_BOXES_DROP, SD_BOXES_CLIP };
enum { SD_LAST_KEEP, SD_LAST_DROP, SD_LAST_WRAP };
enum { SD_DIFFICULT_KEEP, SD_DIFFICULT_IGNORE, SD_DIFFICULT_DROP };
enum { SD_PIXELS_HOST, SD_PIXELS_DEVICE };
enum { SD_DECODE_HOST, SD_DECODE_DEVICE };
typedef struct sd_data_cfg {
    sodet_string_list train, val; /* labels of [dataset.<label>] sections */
    uint32_t workers;             /* loader threads */
    uint32_t queue;               /* closed batches kept ready */
    sodet_string_list classes;    /* names, or one "@file" (see sd_config_path); empty: the dataset's */
    uint32_t bad_files,
        unknown_class;           /* SD_BAD_*: pictures and annotations that cannot be read; objects of a class that is not in the list */
    uint32_t bad_boxes;          /* SD_BOXES_*: boxes without area (clip: left out), or over the picture's edge */
    uint32_t drop_empty;         /* pictures without objects are left out */
    uint32_t ignore_orientation; /* pictures are not turned as their EXIF tag says */
    uint64_t max_pixels;         /* of a picture; larger ones are refused before memory is taken */
    uint32_t shuffle;            /* training order */
    uint32_t train_limit, val_limit;   /* use the first n samples; 0: all */
    uint32_t overfit;                  /* n > 0: train and val are the first n training samples, both through [transform] val */
    const char *train_list, *val_list; /* files of sample ids: only these are used; NULL: all */
    uint32_t last;                     /* SD_LAST_*: the last batch of a training epoch may be smaller, is left out, or is filled up */
    uint32_t difficult; /* SD_DIFFICULT_*: objects so marked, in training: as others, neither positive nor negative, or left out */
    double min_side;    /* network pixels; objects with a shorter side after the transforms do not train */
    uint32_t pixels;    /* SD_PIXELS_*: who makes the network's input of the decoded pictures, in training and evaluation */
    uint32_t decode;    /* SD_DECODE_*: who decodes JPEGs there; the device only with SD_PIXELS_DEVICE (sd_split_open says so) */
} sd_data_cfg;

typedef struct sd_eval_cfg {
    sodet_string_list evaluators; /* labels of [evaluator.<label>] */
    uint32_t every;               /* epochs between evaluations; 0: only `at` and at the end */
    sodet_uint_list at;           /* epochs after which to evaluate; empty: by `every` */
    const char *best;             /* evaluator/metric that decides the best checkpoint; NULL: the first evaluator's headline */
} sd_eval_cfg;

enum { SD_OPTIMIZER_SGD, SD_OPTIMIZER_ADAM, SD_OPTIMIZER_ADAMW };
enum { SD_SCALING_AUTO, SD_SCALING_NONE, SD_SCALING_STATIC, SD_SCALING_DYNAMIC };
typedef struct sd_optimizer_cfg {
    uint32_t type; /* SD_OPTIMIZER_* */
    double lr, momentum;
    uint32_t nesterov;
    sodet_double_list betas; /* [2] */
    double eps, weight_decay;
    double bias_lr;        /* factor on lr for biases */
    uint32_t bias_decay;   /* 0: none on biases */
    uint32_t norm_decay;   /* 0: none on scale and shift of normalisation layers */
    double clip_norm;      /* 0: off */
    uint32_t accumulate;   /* batches per step */
    double ema;            /* decay of averaged weights; 0: off */
    uint32_t loss_scaling; /* SD_SCALING_* */
    double loss_scale;     /* the factor, at first */
    uint32_t loss_scale_window, loss_scale_skips;
    sodet_string_list freeze;     /* parameter paths, with * */
    sodet_string_list lr_factors; /* "path with *:factor" */
} sd_optimizer_cfg;

enum { SD_UNIT_EPOCHS, SD_UNIT_ITERATIONS, SD_UNIT_MINUTES };
enum { SD_PLATEAU_ON_BEST, SD_PLATEAU_ON_LOSS };
typedef struct sd_schedule_cfg {
    uint32_t type; /* index: constant, step, multistep, cosine, poly, plateau; + 1 is SD_SCHEDULE_* of train/schedule.h */
    double total;  /* the length of the run */
    uint32_t unit; /* SD_UNIT_EPOCHS or SD_UNIT_ITERATIONS; of total, every and milestones */
    double every;
    sodet_double_list milestones;
    double factor, floor, power;
    uint32_t warmup;                         /* none, linear, constant */
    double warmup_iterations, warmup_epochs; /* at most one is not zero */
    double warmup_factor;
    uint32_t warmup_apart;
    uint32_t patience; /* of plateau, in evaluations */
    double threshold;
    uint32_t threshold_absolute, cooldown;
    uint32_t plateau_on; /* SD_PLATEAU_ON_* */
} sd_schedule_cfg;

enum { SD_TRAIN_NORM_SYNC, SD_TRAIN_NORM_LOCAL, SD_TRAIN_NORM_FROZEN };
typedef struct sd_train_cfg {
    uint32_t batch;     /* over all devices and ranks */
    uint32_t val_batch; /* 0: as batch */
    uint32_t max_steps; /* 0: no limit */
    uint32_t patience;  /* evaluations without a better best metric before the run ends; 0: off */
    double target;      /* the run ends when the best metric reaches it; 0: off */
    uint32_t norm;      /* SD_TRAIN_NORM_*: batch norm's statistics: of all devices' batch, of each device's, or the running ones */
    uint32_t init;      /* index: xavier, he, he_fan_in, torch: weights of layers that ask for the default */
    uint32_t log_every; /* steps between lines where the output is no terminal */
} sd_train_cfg;

typedef struct sd_checkpoint_cfg {
    uint32_t every; /* 0: only at evaluations and at the end */
    uint32_t unit;  /* SD_UNIT_EPOCHS, SD_UNIT_ITERATIONS or SD_UNIT_MINUTES */
    uint32_t keep;  /* periodic ones kept beside best and last; 0: all */
} sd_checkpoint_cfg;

enum { SD_NORMALISER_GLOBAL, SD_NORMALISER_IMAGE, SD_NORMALISER_DEVICE, SD_NORMALISER_EMA };
/* The keys of [loss] that the core reads beside the plugin's own. */
typedef struct sd_loss_cfg {
    uint32_t normaliser;                          /* SD_NORMALISER_*: what the loss terms are divided by */
    double normaliser_momentum, normaliser_start; /* of ema */
} sd_loss_cfg;

typedef struct sd_core_cfg {
    sd_run_cfg run;
    sd_input_cfg input;
    sd_data_cfg data;
    sd_eval_cfg eval;
    sd_optimizer_cfg optimizer;
    sd_schedule_cfg schedule;
    sd_train_cfg train;
    sd_checkpoint_cfg checkpoint;
    sd_loss_cfg loss;
    struct {
        sodet_string_list train, val; /* labels of [transform.<label>], in order */
    } transform;
} sd_core_cfg;

/* A table of options and the struct it fills. */
typedef struct sd_schema {
    const char *section, *summary;
    const sodet_opt *opts; /* ends after n_opts or at a row without a name */
    uint32_t n_opts, opt_size;
    size_t cfg_size;
    sodet_status (*validate)(const void *cfg, sodet_err *err);
    size_t offset; /* of the struct in sd_core_cfg (core sections) */
} sd_schema;
extern const sd_schema sd_core_sections[];
extern const uint32_t sd_core_section_count;

#endif
