/* The COCO measure for boxes. Lin et al., "Microsoft COCO: Common Objects in Context", 2014, and the rules in detail of pycocotools
 * (cocoapi, PythonAPI/pycocotools/cocoeval.py and common/maskApi.c): ten IoU thresholds 0.50:0.05:0.95, 101 recall points, four area
 * ranges with both ends inside, 1, 10 and 100 detections per image and class, crowds that take any number of detections. Equal scores:
 * by image, then by order in it. With `compat = pycocotools` the numbers are pycocotools' to rounding, its quirk with annotation id 0
 * included (a detection that finds such an object counts as missed).
 *
 * Metrics: AP AP50 AP75 APs APm APl AR1 AR10 AR100 ARs ARm ARl, then AP/<class>; -1 where there are no objects of the kind. */
#include "coco.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const compat_names[] = {"none", "pycocotools", NULL};
static const sodet_opt options[] = {
    SODET_OPT_ENUM(coco_cfg, compat, "none", compat_names, "pycocotools: annotation id 0 is never found, as there"),
    SODET_OPT_BOOL(coco_cfg, per_class, "no", "a line per class in the report"),
};

/* Mean precision and recall of a class and area range, by threshold. n: objects that count. */
typedef struct score {
    int64_t n;
    double precision[THRESHOLDS], recall[3][THRESHOLDS];
} score;

typedef struct block { /* whole images of one class */
    uint32_t class;
    uint64_t begin, end;
} block;

typedef struct job {
    coco_run run;
    block *blocks;
    uint64_t n_blocks;
    uint64_t *order, *spare; /* of each class: its detections by falling score */
    score *scores;           /* [class][area] */
    atomic_int out_of_memory;
} job;

/* Items of the first pass: the blocks, then the classes' orders. */
static void match_or_rank(void *context, uint64_t item)
{
    job *j = context;
    const sodet_eval_groups *g = &j->run.groups;
    if (item >= j->n_blocks) {
        uint64_t c = item - j->n_blocks, first = g->detection_first[c];
        sodet_eval_rank(g->scores + first, g->detection_first[c + 1] - first, j->order + first, j->spare + first);
        return;
    }
    const block *b = &j->blocks[item];
    if (!coco_match(&j->run, b->class, b->begin, b->end))
        atomic_store(&j->out_of_memory, 1);
}

static void accumulate(void *context, uint64_t item)
{
    job *j = context;
    score *s = &j->scores[item];
    uint32_t c = (uint32_t)(item / AREAS);
    s->n = coco_accumulate(&j->run, c, (int)(item % AREAS), j->order + j->run.groups.detection_first[c], s->precision, s->recall);
    if (s->n < 0)
        atomic_store(&j->out_of_memory, 1);
}

static int make_blocks(job *j)
{
    enum { SIZE = 2048 };
    const sodet_eval_groups *g = &j->run.groups;
    uint32_t n_classes = j->run.in->n_classes;
    uint64_t n = g->detection_first[n_classes];
    j->blocks = malloc((size_t)(n / SIZE + n_classes + 1) * sizeof *j->blocks);
    if (!j->blocks)
        return 0;
    for (uint32_t c = 0; c < n_classes; c++)
        for (uint64_t begin = g->detection_first[c], last = g->detection_first[c + 1]; begin < last;) {
            uint64_t end = last - begin < SIZE ? last : begin + SIZE;
            while (end < last && g->detection_image[end] == g->detection_image[end - 1])
                end++;
            j->blocks[j->n_blocks++] = (block){c, begin, end};
            begin = end;
        }
    return 1;
}

/* Mean over the classes that have objects, and over thresholds [t0, t1); -1: none has. what: 0..2 recall with 1, 10, 100; 3 precision.
 * one_class >= 0: of this class alone. */
static double mean(const job *j, int area, int what, int t0, int t1, int64_t one_class)
{
    long double sum = 0; /* tens of thousands of terms, and 1e-12 is promised */
    uint64_t n = 0;
    for (uint32_t c = 0; c < j->run.in->n_classes; c++) {
        const score *s = &j->scores[(uint64_t)c * AREAS + (uint64_t)area];
        if (s->n <= 0 || (one_class >= 0 && one_class != (int64_t)c))
            continue;
        for (int t = t0; t < t1; t++, n++)
            sum += what == 3 ? s->precision[t] : s->recall[what][t];
    }
    return n ? (double)(sum / n) : -1;
}

static void report(const job *j, sodet_eval_sink *out)
{
    static const struct {
        const char *name, *iou, *area;
        int most, area_index, what, t0, t1;
    } rows[] = {
        {"AP", "0.50:0.95", "all", 100, AREA_ALL, 3, 0, THRESHOLDS},
        {"AP50", "0.50", "all", 100, AREA_ALL, 3, 0, 1},
        {"AP75", "0.75", "all", 100, AREA_ALL, 3, 5, 6},
        {"APs", "0.50:0.95", "small", 100, AREA_SMALL, 3, 0, THRESHOLDS},
        {"APm", "0.50:0.95", "medium", 100, AREA_MEDIUM, 3, 0, THRESHOLDS},
        {"APl", "0.50:0.95", "large", 100, AREA_LARGE, 3, 0, THRESHOLDS},
        {"AR1", "0.50:0.95", "all", 1, AREA_ALL, 0, 0, THRESHOLDS},
        {"AR10", "0.50:0.95", "all", 10, AREA_ALL, 1, 0, THRESHOLDS},
        {"AR100", "0.50:0.95", "all", 100, AREA_ALL, 2, 0, THRESHOLDS},
        {"ARs", "0.50:0.95", "small", 100, AREA_SMALL, 2, 0, THRESHOLDS},
        {"ARm", "0.50:0.95", "medium", 100, AREA_MEDIUM, 2, 0, THRESHOLDS},
        {"ARl", "0.50:0.95", "large", 100, AREA_LARGE, 2, 0, THRESHOLDS},
    };
    const sodet_eval_input *in = j->run.in;
    const sodet_eval_groups *g = &j->run.groups;
    uint64_t n = g->detection_first[in->n_classes], same = 1;
    while (same < n && g->scores[same] == g->scores[0])
        same++;
    if (g->dropped)
        sodet_emit_line(out, "note: %llu detections with a value that is not finite were left out", (unsigned long long)g->dropped);
    if (n == 0)
        sodet_emit_line(out, "note: there are no detections");
    else if (n > 1 && same == n)
        sodet_emit_line(out, "note: all %llu scores are equal: AP depends on the order of the images", (unsigned long long)n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = mean(j, rows[i].area_index, rows[i].what, rows[i].t0, rows[i].t1, -1);
        sodet_emit_metric(out, rows[i].name, value);
        sodet_emit_line(out, " Average %-9s  (%s) @[ IoU=%-9s | area=%6s | maxDets=%3d ] = %.3f", i < 6 ? "Precision" : "Recall",
                        i < 6 ? "AP" : "AR", rows[i].iou, rows[i].area, rows[i].most, value);
    }
    for (uint32_t c = 0; c < in->n_classes; c++) {
        char name[300] = "AP/";
        double value = mean(j, AREA_ALL, 3, 0, THRESHOLDS, c);
        strncat(name, in->class_names[c], sizeof name - 4);
        sodet_emit_metric(out, name, value);
        if (j->run.cfg->per_class)
            sodet_emit_line(out, " AP for %-20s = %.3f", in->class_names[c], value);
    }
}

static sodet_status evaluate(const void *self, const sodet_eval_input *in, sodet_eval_sink *out, sodet_err *err)
{
    job j = {.run = {.cfg = self, .in = in}};
    sodet_status status = sodet_eval_group(in, &j.run.groups, err);
    if (status != SODET_OK)
        return status;
    sodet_emit_phase(out, "group");
    coco_params(&j.run);
    size_t n = (size_t)j.run.groups.detection_first[in->n_classes] + 1;
    j.run.marks = malloc(n * sizeof *j.run.marks);
    j.order = malloc(n * sizeof *j.order);
    j.spare = malloc(n * sizeof *j.spare);
    j.scores = calloc((size_t)in->n_classes * AREAS + 1, sizeof *j.scores);
    int good = j.run.marks && j.order && j.spare && j.scores && make_blocks(&j);
    if (good) {
        sodet_eval_parallel(in->n_threads, j.n_blocks + in->n_classes, match_or_rank, &j);
        sodet_emit_phase(out, "match");
        if (!atomic_load(&j.out_of_memory))
            sodet_eval_parallel(in->n_threads, (uint64_t)in->n_classes * AREAS, accumulate, &j);
        sodet_emit_phase(out, "accumulate");
    }
    if (!good || atomic_load(&j.out_of_memory))
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory to evaluate");
    else
        report(&j, out);
    free(j.run.marks);
    free(j.order);
    free(j.spare);
    free(j.scores);
    free(j.blocks);
    sodet_eval_groups_free(&j.run.groups);
    return status;
}

static const sodet_evaluator_ops ops = {.struct_size = sizeof ops, .evaluate = evaluate, .headline = "AP"};
SODET_PLUGIN(SODET_KIND_EVALUATOR, "coco", "COCO's twelve numbers for boxes", coco_cfg, options, .ops = &ops);
