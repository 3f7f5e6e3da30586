/* sodet bench x.ini evaluator: how long [eval] evaluators take, from files to numbers. */
#include "core/cli/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/parallel.h"
#include "core/data/recipe.h"
#include "core/eval/eval.h"
#include "core/eval/made.h"

enum { STAGES = 40, NAME = 64 };

typedef struct stage {
    char name[NAME];
    double *took; /* [rounds] */
    uint64_t n, capacity;
} stage;

typedef struct bench {
    sd_cli *cli;
    sd_config *cfg;
    uint32_t n_threads, n_evaluators;
    sd_instance evaluators[8];
    const char *labels[8], *truth, *results;
    int fds[2]; /* of files in memory */
    uint32_t n_fds;
    stage stages[STAGES], whole;
    uint32_t n_stages, at; /* at: the stage of this round that is next */
    sodet_eval_input in;   /* of the last round; its arrays are gone */
    uint64_t objects, detections;
} bench;

static sodet_status note(stage *s, double took, sodet_err *err)
{
    sodet_status status = sd_grow(&s->took, &s->capacity, s->n + 1, sizeof *s->took, err);
    if (status == SODET_OK)
        s->took[s->n++] = took;
    return status;
}

/* The stages come in the same order in every round. */
static sodet_status finished(bench *b, const char *name, double took, sodet_err *err)
{
    if (b->at == STAGES)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "[eval] evaluators: more than %d stages; measure fewer at once", STAGES);
    stage *s = &b->stages[b->at++];
    if (b->at > b->n_stages) {
        snprintf(s->name, sizeof s->name, "%s", name);
        b->n_stages = b->at;
    }
    return note(s, took, err);
}

static sodet_status evaluate(bench *b, uint32_t i, sodet_err *err)
{
    sodet_eval_sink sink = {.n = 0};
    double begin = sd_now();
    sodet_status s = sd_evaluate(&b->evaluators[i], &b->in, &sink, err);
    double rest = sd_now() - begin;
    char name[NAME];
    for (uint32_t k = 0; k < sink.n_phases && s == SODET_OK; k++) {
        snprintf(name, sizeof name, "%s: %s", b->labels[i], sink.phases[k].name);
        rest -= sink.phases[k].seconds;
        s = finished(b, name, sink.phases[k].seconds, err);
    }
    snprintf(name, sizeof name, "%s: summary", b->labels[i]);
    if (s == SODET_OK)
        s = finished(b, name, rest, err);
    sd_eval_sink_clear(&sink);
    return s;
}

static sodet_status round_of(bench *b, sodet_err *err)
{
    sd_gather *g = NULL;
    double begin = sd_now(), now = begin, before = begin;
    b->at = 0;
    sodet_status s = sd_read_coco_truth(b->truth, b->n_threads, &g, err);
    now = sd_now();
    if (s == SODET_OK)
        s = finished(b, "read ground truth", now - before, err);
    before = now;
    if (s == SODET_OK)
        s = sd_read_coco_detections(b->results, g, b->n_threads, err);
    if (s == SODET_OK)
        s = sd_gather_finish(g, b->n_threads, &b->in, err);
    now = sd_now();
    if (s == SODET_OK)
        s = finished(b, "read detections", now - before, err);
    for (uint32_t i = 0; i < b->n_evaluators && s == SODET_OK; i++)
        s = evaluate(b, i, err);
    if (s == SODET_OK) {
        b->objects = b->in.object_first[b->in.n_images];
        b->detections = b->in.detection_first[b->in.n_images];
    }
    sd_gather_free(g);
    return s == SODET_OK ? note(&b->whole, sd_now() - begin, err) : s;
}

/* ---- what is measured on ---- */
/* A file in memory, which no end of the process leaves behind. */
static sodet_status put(bench *b, const sd_text *text, const char **path, sodet_err *err)
{
    int fd = memfd_create("sodet-bench", MFD_CLOEXEC);
    if (fd < 0)
        return SODET_FAIL(err, SODET_E_IO, "no file in memory for what is to be read: %s", strerror(errno));
    b->fds[b->n_fds++] = fd;
    *path = sd_pool_printf(&b->cli->pool, "/proc/self/fd/%d", fd);
    if (!*path)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    for (uint64_t done = 0; done < text->length;) {
        ssize_t n = write(fd, text->text + done, text->length - done);
        if (n < 0 && errno != EINTR)
            return SODET_FAIL(err, SODET_E_IO, "%s: writing: %s", *path, strerror(errno));
        done += n > 0 ? (uint64_t)n : 0;
    }
    return SODET_OK;
}

static sodet_status make_files(bench *b, sodet_err *err)
{
    sd_cli *cli = b->cli;
    const char *const *names = NULL;
    uint32_t named = 0;
    sd_made m = {.seed = (uint64_t)sd_config_core(b->cfg)->run.seed};
    uint64_t n_classes = 0;
    sodet_status s = sd_recipe_classes(b->cfg, &cli->pool, &names, &named, err);
    if (s == SODET_OK)
        s = sd_cli_flag_uint(cli, "--classes", 1, named ? named : 80, &n_classes, err);
    if (s == SODET_OK)
        s = sd_cli_flag_uint(cli, "--pictures", 1, 5000, &m.pictures, err);
    if (s == SODET_OK)
        s = sd_cli_flag_uint(cli, "--objects", 0, 36781, &m.objects, err);
    if (s == SODET_OK)
        s = sd_cli_flag_uint(cli, "--found", 0, 500000, &m.detections, err);
    if (s == SODET_OK && (n_classes > 100000 || m.pictures > 10000000 || m.objects > 100000000 || m.detections > 100000000))
        s = SODET_FAIL(err, SODET_E_INVALID,
                       "at most 100000 classes, 10000000 pictures and 100000000 objects and detections each are made up");
    if (s != SODET_OK)
        return s;
    sd_classes classes = {.n = (uint32_t)n_classes};
    const char **list = sd_pool_alloc(&cli->pool, n_classes * sizeof *list);
    int64_t *ids = sd_pool_alloc(&cli->pool, n_classes * sizeof *ids);
    for (uint32_t c = 0; list && ids && c < n_classes; c++) {
        list[c] = c < named ? names[c] : sd_pool_printf(&cli->pool, "class%u", c);
        ids[c] = (int64_t)c + 1;
        list = list[c] ? list : NULL;
    }
    if (!list || !ids)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %llu classes", (unsigned long long)n_classes);
    classes.names = list;
    classes.category_id = ids;
    m.classes = &classes;
    sd_text truth = {0}, results = {0};
    s = sd_make_results(&m, &truth, &results, err);
    if (s == SODET_OK)
        s = put(b, &truth, &b->truth, err);
    if (s == SODET_OK)
        s = put(b, &results, &b->results, err);
    sd_text_free(&truth);
    sd_text_free(&results);
    return s;
}

static sodet_status open_evaluators(bench *b, sodet_err *err)
{
    const sodet_string_list *labels = &sd_config_core(b->cfg)->eval.evaluators;
    sodet_status s = SODET_OK;
    if (labels->n == 0 || labels->n > sizeof b->labels / sizeof *b->labels)
        return SODET_FAIL(err, SODET_E_INVALID, "[eval] evaluators has %u names; one to %zu are measured", labels->n,
                          sizeof b->labels / sizeof *b->labels);
    for (uint32_t i = 0; i < labels->n && s == SODET_OK; i++) {
        char section[200];
        snprintf(section, sizeof section, "evaluator.%s", labels->v[i]);
        s = sd_instance_create(b->cfg, section, &b->evaluators[i], err);
        b->labels[i] = labels->v[i];
        b->n_evaluators += s == SODET_OK;
    }
    return s;
}

static sodet_status open_all(bench *b, sodet_err *err)
{
    sd_cli *cli = b->cli;
    sodet_status s = sd_cli_config(cli, &b->cfg, err);
    if (s != SODET_OK)
        return s;
    b->n_threads = sd_config_core(b->cfg)->run.threads;
    b->n_threads = b->n_threads ? b->n_threads : sd_processors();
    b->truth = sd_cli_flag(cli, "--ground-truth");
    b->results = sd_cli_flag(cli, "--results");
    if (!b->truth != !b->results)
        return SODET_FAIL(err, SODET_E_INVALID, "%s is missing: --ground-truth g.json --results d.json, or neither, and both are made up",
                          b->truth ? "--results" : "--ground-truth");
    s = open_evaluators(b, err);
    return s == SODET_OK && !b->truth ? make_files(b, err) : s;
}

/* ---- printing ---- */
static void print_text(const bench *b)
{
    const stage *w = &b->whole;
    printf("evaluator, %" PRIu64 " pictures, %" PRIu64 " objects, %" PRIu64 " detections, %u classes, %u threads\n", b->in.n_images,
           b->objects, b->detections, b->in.n_classes, b->n_threads);
    printf("%-28s %10s %10s\n", "ms", "median", "least");
    for (uint32_t i = 0; i < b->n_stages; i++)
        printf("%-28s %10.3f %10.3f\n", b->stages[i].name, sd_bench_quantile(b->stages[i].took, b->stages[i].n, 0.5) * 1e3,
               b->stages[i].took[0] * 1e3);
    printf("%-28s %10.3f %10.3f  of %" PRIu64 " rounds\n", "all", sd_bench_quantile(w->took, w->n, 0.5) * 1e3, w->took[0] * 1e3, w->n);
}

static sodet_status print_json(const bench *b, sodet_err *err)
{
    sd_text t = {0};
    const stage *w = &b->whole;
    sd_text_printf(&t,
                   "{\"mode\": \"evaluator\", \"pictures\": %" PRIu64 ", \"objects\": %" PRIu64 ", \"detections\": %" PRIu64
                   ", \"classes\": %u, \"threads\": %u, \"steps\": %" PRIu64,
                   b->in.n_images, b->objects, b->detections, b->in.n_classes, b->n_threads, w->n);
    sd_bench_number(&t, "median", sd_bench_quantile(w->took, w->n, 0.5));
    sd_bench_number(&t, "p10", sd_bench_quantile(w->took, w->n, 0.1));
    sd_bench_number(&t, "p90", sd_bench_quantile(w->took, w->n, 0.9));
    sd_bench_number(&t, "least", w->took[0]);
    for (uint32_t i = 0; i < b->n_stages; i++) {
        const stage *x = &b->stages[i];
        sd_text_printf(&t, "%s{\"stage\": ", i ? ",\n  " : ", \"stages\": [\n  ");
        sd_json_write_string(&t, x->name);
        sd_bench_number(&t, "median", sd_bench_quantile(x->took, x->n, 0.5));
        sd_bench_number(&t, "least", x->took[0]);
        sd_text_printf(&t, "}");
    }
    sd_text_printf(&t, "\n ]}\n");
    return sd_cli_say(&t, err);
}

static sodet_status measure(bench *b, double seconds, sodet_err *err)
{
    sodet_status s = SODET_OK;
    double begin = sd_now();
    for (uint32_t i = 0; s == SODET_OK && (i < SD_BENCH_WARM || sd_now() - begin < seconds / 10); i++) {
        s = round_of(b, err);
        b->cli->started = s == SODET_OK; /* the files are good */
    }
    for (uint32_t i = 0; i < b->n_stages; i++)
        b->stages[i].n = 0;
    b->whole.n = 0;
    begin = sd_now();
    while (s == SODET_OK && (b->whole.n < SD_BENCH_LEAST || sd_now() - begin < seconds))
        s = round_of(b, err);
    for (uint32_t i = 0; i < b->n_stages && s == SODET_OK; i++)
        sd_bench_sort(b->stages[i].took, b->stages[i].n);
    if (s == SODET_OK)
        sd_bench_sort(b->whole.took, b->whole.n);
    return s;
}

sodet_status sd_bench_evaluator(sd_cli *cli, double seconds, sodet_err *err)
{
    bench b = {.cli = cli};
    sodet_status s = open_all(&b, err);
    if (s == SODET_OK)
        s = measure(&b, seconds, err);
    if (s == SODET_OK && cli->json)
        s = print_json(&b, err);
    else if (s == SODET_OK)
        print_text(&b);
    for (uint32_t i = 0; i < b.n_fds; i++)
        close(b.fds[i]);
    for (uint32_t i = 0; i < b.n_stages; i++)
        sd_free(b.stages[i].took);
    sd_free(b.whole.took);
    for (uint32_t i = 0; i < b.n_evaluators; i++)
        sd_instance_destroy(&b.evaluators[i]);
    sd_config_close(b.cfg);
    return s;
}
