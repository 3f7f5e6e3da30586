/* The PASCAL VOC measure. Everingham et al., "The PASCAL Visual Object Classes Challenge: A Retrospective", IJCV 2015, section 4.1; the
 * rules in detail are those of the devkit's VOCevaldet.m:
 *   - detections of a class over all images by falling score; equal scores by image, then by their order in it;
 *   - each takes the object of its image and class with the largest IoU (the first of equal ones), difficult ones included;
 *   - IoU >= threshold: a hit if the object is free; nothing at all if it is difficult (every time); false if it is taken;
 *   - recall counts objects that are not difficult. Crowds are handled as difficult ones.
 * A box is [x1, x2) here, and a VOC file's inclusive corners have become that, so the devkit's "+ 1" is in the coordinates. `plus_one` is
 * for boxes that were not converted.
 * A class without objects has no AP and is not in the mean. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sodet/evaluator.h"

enum { AP_11POINT, AP_AREA };
enum { DIFFICULT_IGNORE, DIFFICULT_COUNT };
static const char *const ap_names[] = {"11point", "area", NULL};
static const char *const difficult_names[] = {"ignore", "count", NULL};

typedef struct voc_cfg {
    double iou;
    uint32_t ap, difficult, plus_one, per_class;
} voc_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(voc_cfg, iou, "0.5", 0, 1, "least IoU of a hit"),
    SODET_OPT_ENUM(voc_cfg, ap, "11point", ap_names, "11point is VOC 2007's, area that of 2010 and later"),
    SODET_OPT_ENUM(voc_cfg, difficult, "ignore", difficult_names, "objects marked difficult: neither right nor wrong, or like any other"),
    SODET_OPT_BOOL(voc_cfg, plus_one, "no", "boxes hold inclusive corners that were not converted: widths are x2 - x1 + 1"),
    SODET_OPT_BOOL(voc_cfg, per_class, "yes", "a line per class in the report"),
};

typedef struct run {
    const voc_cfg *cfg;
    const sodet_eval_input *in;
    sodet_eval_groups groups;
    double *ap; /* [n_classes] */
    atomic_int out_of_memory;
} run;

typedef struct scratch {
    uint64_t *order, *spare;
    unsigned char *taken;
    double *recall, *precision;
} scratch;

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

static double overlap(const double *a, const double *b, double extra)
{
    double w = least(a[0] + a[2], b[0] + b[2]) - most(a[0], b[0]) + extra;
    double h = least(a[1] + a[3], b[1] + b[3]) - most(a[1], b[1]) + extra;
    if (!(w > 0 && h > 0))
        return 0;
    return w * h / ((a[2] + extra) * (a[3] + extra) + (b[2] + extra) * (b[3] + extra) - w * h);
}

static int ignored(const run *r, uint64_t entry)
{
    uint32_t flags = r->in->objects[r->groups.objects[entry]].flags;
    return (flags & SODET_BOX_CROWD) || ((flags & SODET_BOX_DIFFICULT) && r->cfg->difficult == DIFFICULT_IGNORE);
}

/* The first entry in [lo, hi) whose image is at least `image`. */
static uint64_t find_image(const uint64_t *images, uint64_t lo, uint64_t hi, uint64_t image)
{
    while (lo < hi) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (images[middle] < image)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* The object entry that detection entry d takes, or `end` if none is near enough. */
static uint64_t best_object(const run *r, uint64_t d, uint64_t begin, uint64_t end)
{
    const sodet_eval_groups *g = &r->groups;
    uint64_t image = g->detection_image[d], best = end;
    double largest = 0;
    for (uint64_t o = find_image(g->object_image, begin, end, image); o < end && g->object_image[o] == image; o++) {
        double iou = overlap(g->object_xywh + 4 * o, g->detection_xywh + 4 * d, r->cfg->plus_one ? 1 : 0);
        if (iou > largest) {
            largest = iou;
            best = o;
        }
    }
    return largest >= r->cfg->iou ? best : end;
}

static double average_precision(const run *r, uint32_t c, scratch *s)
{
    const sodet_eval_groups *g = &r->groups;
    uint64_t o0 = g->object_first[c], o1 = g->object_first[c + 1], d0 = g->detection_first[c], n = g->detection_first[c + 1] - d0;
    uint64_t positives = 0, hits = 0, misses = 0, points = 0;
    for (uint64_t o = o0; o < o1; o++)
        positives += !ignored(r, o);
    if (positives == 0)
        return (double)NAN;
    sodet_eval_rank(g->scores + d0, n, s->order, s->spare);
    for (uint64_t k = 0; k < n; k++) {
        uint64_t o = best_object(r, d0 + s->order[k], o0, o1);
        if (o < o1 && ignored(r, o))
            continue;
        if (o < o1 && !s->taken[o - o0]) {
            s->taken[o - o0] = 1;
            hits++;
        } else
            misses++;
        s->recall[points] = (double)hits / (double)positives;
        s->precision[points++] = (double)hits / (double)(hits + misses);
    }
    return r->cfg->ap == AP_11POINT ? sodet_ap_11point(s->recall, s->precision, points) : sodet_ap_area(s->recall, s->precision, points);
}

static void one_class(void *context, uint64_t item)
{
    run *r = context;
    uint32_t c = (uint32_t)item;
    size_t n = (size_t)(r->groups.detection_first[c + 1] - r->groups.detection_first[c]) + 1;
    size_t objects = (size_t)(r->groups.object_first[c + 1] - r->groups.object_first[c]) + 1;
    scratch s = {malloc(n * sizeof *s.order), malloc(n * sizeof *s.spare), calloc(objects, 1), malloc(n * sizeof *s.recall),
                 malloc(n * sizeof *s.precision)};
    if (s.order && s.spare && s.taken && s.recall && s.precision)
        r->ap[c] = average_precision(r, c, &s);
    else
        atomic_store(&r->out_of_memory, 1);
    free(s.order);
    free(s.spare);
    free(s.taken);
    free(s.recall);
    free(s.precision);
}

static void report(const run *r, sodet_eval_sink *out)
{
    const sodet_eval_input *in = r->in;
    const char *form = r->cfg->ap == AP_11POINT ? "11-point" : "area";
    double sum = 0;
    uint32_t n = 0;
    int widest = 4;
    for (uint32_t c = 0; c < in->n_classes; c++) {
        int width = (int)strlen(in->class_names[c]);
        widest = width > widest ? width : widest;
        if (!isnan(r->ap[c])) {
            sum += r->ap[c];
            n++;
        }
    }
    double mean = n ? sum / n : (double)NAN;
    sodet_emit_metric(out, "mAP", mean);
    if (r->groups.dropped)
        sodet_emit_line(out, "note: %llu detections with a value that is not finite were left out", (unsigned long long)r->groups.dropped);
    if (in->detection_first[in->n_images] == 0)
        sodet_emit_line(out, "note: there are no detections");
    for (uint32_t c = 0; c < in->n_classes; c++) {
        char name[300] = "AP/";
        strncat(name, in->class_names[c], sizeof name - 4);
        sodet_emit_metric(out, name, r->ap[c]);
        if (r->cfg->per_class && isnan(r->ap[c]))
            sodet_emit_line(out, " AP for %-*s =      -  (no objects)", widest, in->class_names[c]);
        else if (r->cfg->per_class)
            sodet_emit_line(out, " AP for %-*s = %.4f", widest, in->class_names[c], r->ap[c]);
    }
    if (n)
        sodet_emit_line(out, " mAP @ IoU=%.2f, %s, %u classes = %.4f", r->cfg->iou, form, n, mean);
    else
        sodet_emit_line(out, " mAP @ IoU=%.2f, %s = - (no objects at all)", r->cfg->iou, form);
}

static sodet_status evaluate(const void *self, const sodet_eval_input *in, sodet_eval_sink *out, sodet_err *err)
{
    run r = {.cfg = self, .in = in};
    sodet_status status = sodet_eval_group(in, &r.groups, err);
    if (status != SODET_OK)
        return status;
    r.ap = calloc((size_t)in->n_classes + 1, sizeof *r.ap);
    if (r.ap)
        sodet_eval_parallel(in->n_threads, in->n_classes, one_class, &r);
    if (!r.ap || atomic_load(&r.out_of_memory))
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory to evaluate");
    else
        report(&r, out);
    free(r.ap);
    sodet_eval_groups_free(&r.groups);
    return status;
}

static const sodet_evaluator_ops ops = {.struct_size = sizeof ops, .evaluate = evaluate, .headline = "mAP"};
SODET_PLUGIN(SODET_KIND_EVALUATOR, "voc", "PASCAL VOC's mean average precision, 11-point or area", voc_cfg, options, .ops = &ops);
