#include "core/eval/errors.h"

#include <math.h>
#include <string.h>

#include "core/eval/internal.h"

const char *const sd_error_names[SD_ERROR_KINDS] = {"class", "place", "both", "duplicate", "background", "missed"};

enum { NOT_YET = 255 };                /* a fate */
static const double NEVER = -INFINITY; /* a score below all others */

typedef struct finder {
    const sodet_eval_input *in;
    sd_errors *out;
    uint64_t n_objects, n_detections;
    double *object, *detection; /* [4] of each: x y w h */
    double *score;
    uint64_t *order, *spare;      /* [n_detections] inside an image, later of all: by falling score */
    uint64_t *target;             /* [n_detections] what an error of place or class could have found */
    double *found_at, *usable_at; /* [n_objects] highest score of a hit, of an error that could have been one; NEVER: none */
    double *iou;                  /* [detections][objects] of one image */
    uint64_t iou_capacity;
    uint8_t *taken; /* [n_objects] for the table of confusions */
} finder;

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the kinds of errors");
}

static bool ignored(const sodet_object *o)
{
    return (o->flags & (SODET_BOX_CROWD | SODET_BOX_DIFFICULT)) != 0;
}

/* own: the shared area over that of b alone. */
static double overlap(const double *a, const double *b, bool own)
{
    double w = fmin(a[0] + a[2], b[0] + b[2]) - fmax(a[0], b[0]), h = fmin(a[1] + a[3], b[1] + b[3]) - fmax(a[1], b[1]);
    if (!(w > 0 && h > 0))
        return 0;
    return w * h / (own ? b[2] * b[3] : a[2] * a[3] + b[2] * b[3] - w * h);
}

/* ---- one image ---- */
typedef struct image {
    uint64_t o0, n_o, d0, n_d;
    const double *iou; /* [n_d][n_o] */
} image;

/* The object that counts, of this class (same) or of another, that detection d overlaps most; n_o if none at all. free_only: not yet found. */
static uint64_t nearest(const finder *f, const image *im, uint64_t d, bool same, bool free_only, double *iou)
{
    uint64_t best = im->n_o;
    *iou = 0;
    for (uint64_t o = 0; o < im->n_o; o++) {
        const sodet_object *object = &f->in->objects[im->o0 + o];
        double v = im->iou[d * im->n_o + o];
        if (ignored(object) || (object->label == f->in->detections[im->d0 + d].label) != same || v <= *iou ||
            (free_only && f->found_at[im->o0 + o] > NEVER))
            continue;
        *iou = v;
        best = o;
    }
    return best;
}

static bool on_ignored(const finder *f, const image *im, uint64_t d)
{
    for (uint64_t o = 0; o < im->n_o; o++) {
        const sodet_object *object = &f->in->objects[im->o0 + o];
        bool crowd = object->flags & SODET_BOX_CROWD;
        if (ignored(object) && object->label == f->in->detections[im->d0 + d].label &&
            overlap(f->object + 4 * (im->o0 + o), f->detection + 4 * (im->d0 + d), crowd) >= f->out->options.iou)
            return true;
    }
    return false;
}

static void name_error(finder *f, const image *im, uint64_t d)
{
    const sd_errors_options *t = &f->out->options;
    double same, other;
    uint64_t s = nearest(f, im, d, true, false, &same), o = nearest(f, im, d, false, false, &other), at = im->d0 + d, target = UINT64_MAX;
    uint8_t *fate = &f->out->fate[at];
    if (same >= t->background && same < t->iou) {
        *fate = SD_ERROR_PLACE;
        target = s;
    } else if (other >= t->iou) {
        *fate = SD_ERROR_CLASS;
        target = o;
    } else if (same >= t->iou) {
        *fate = SD_ERROR_DUPLICATE;
    } else {
        *fate = fmax(same, other) <= t->background ? SD_ERROR_BACKGROUND : SD_ERROR_BOTH;
    }
    f->target[at] = target == UINT64_MAX ? target : im->o0 + target;
    if (target != UINT64_MAX)
        f->usable_at[im->o0 + target] = fmax(f->usable_at[im->o0 + target], f->score[at]);
}

static void match(finder *f, const image *im)
{
    const uint64_t *order = f->order + im->d0;
    for (uint64_t k = 0; k < im->n_d; k++) {
        uint64_t d = order[k], at = im->d0 + d;
        double iou;
        if (f->out->fate[at] != NOT_YET)
            continue;
        uint64_t o = nearest(f, im, d, true, true, &iou);
        if (o < im->n_o && iou >= f->out->options.iou) {
            f->out->fate[at] = SD_FATE_HIT;
            f->found_at[im->o0 + o] = f->score[at];
            f->target[at] = im->o0 + o;
        } else if (on_ignored(f, im, d)) {
            f->out->fate[at] = SD_FATE_LEFT_OUT;
        }
    }
    for (uint64_t d = 0; d < im->n_d; d++)
        if (f->out->fate[im->d0 + d] == NOT_YET)
            name_error(f, im, d);
}

/* From options.score on: who was taken for whom. */
static void confuse(finder *f, const image *im, sd_image_faults *faults)
{
    sd_errors *e = f->out;
    uint32_t side = e->n_classes + 1;
    for (uint64_t o = 0; o < im->n_o; o++) {
        const sodet_object *object = &f->in->objects[im->o0 + o];
        bool hit = f->found_at[im->o0 + o] >= e->options.score;
        f->taken[im->o0 + o] = hit || ignored(object);
        faults->missed += !hit && !ignored(object);
        if (hit)
            e->confusion[(uint64_t)object->label * side + (uint64_t)object->label]++;
    }
    for (uint64_t k = 0; k < im->n_d; k++) {
        uint64_t d = f->order[im->d0 + k], at = im->d0 + d, best = im->n_o;
        if (e->fate[at] >= SD_FATE_HIT || f->score[at] < e->options.score)
            continue;
        double largest = 0;
        for (uint64_t o = 0; o < im->n_o; o++)
            if (!f->taken[im->o0 + o] && im->iou[d * im->n_o + o] > largest) {
                largest = im->iou[d * im->n_o + o];
                best = o;
            }
        uint64_t row = e->n_classes;
        if (largest >= e->options.iou) {
            f->taken[im->o0 + best] = 1;
            row = (uint64_t)f->in->objects[im->o0 + best].label;
        }
        e->confusion[row * side + (uint64_t)f->in->detections[at].label]++;
        faults->wrong++;
        faults->weight += f->score[at];
    }
    for (uint64_t o = 0; o < im->n_o; o++)
        if (!f->taken[im->o0 + o])
            e->confusion[(uint64_t)f->in->objects[im->o0 + o].label * side + e->n_classes]++;
    faults->weight += (double)faults->missed;
}

static sodet_status look_at(finder *f, uint64_t i, sodet_err *err)
{
    const sodet_eval_input *in = f->in;
    image im = {in->object_first[i], in->object_first[i + 1] - in->object_first[i], in->detection_first[i],
                in->detection_first[i + 1] - in->detection_first[i], NULL};
    sodet_status s = sd_grow(&f->iou, &f->iou_capacity, im.n_d * im.n_o + 1, sizeof *f->iou, err);
    if (s != SODET_OK)
        return s;
    im.iou = f->iou;
    for (uint64_t d = 0; d < im.n_d; d++)
        for (uint64_t o = 0; o < im.n_o; o++)
            f->iou[d * im.n_o + o] = overlap(f->object + 4 * (im.o0 + o), f->detection + 4 * (im.d0 + d), false);
    sodet_eval_rank(f->score + im.d0, im.n_d, f->order + im.d0, f->spare + im.d0);
    match(f, &im);
    confuse(f, &im, &f->out->images[i]);
    return SODET_OK;
}

/* ---- curves ---- */
typedef struct marks { /* all detections by class, in a class by falling score: 1 a hit, 0 not */
    uint64_t *first;
    uint8_t *hit;
    double *score;
    uint64_t *objects; /* [classes] that count */
} marks;

/* What a detection counts as when errors of kind `mended` are mended (SD_ERROR_KINDS: none): the class, or -1 for nothing. */
static int64_t counts_as(const finder *f, uint64_t d, uint32_t mended, bool *hit)
{
    const sd_errors *e = f->out;
    uint8_t fate = e->fate[d];
    *hit = fate == SD_FATE_HIT;
    if (fate == SD_FATE_LEFT_OUT)
        return -1;
    if (fate != mended || *hit)
        return f->in->detections[d].label;
    uint64_t o = f->target[d];
    if (o == UINT64_MAX || f->found_at[o] > NEVER || f->spare[o] != d + 1)
        return -1;
    *hit = true;
    return f->in->objects[o].label;
}

/* f->spare[o] = 1 + the surest detection whose error of this kind an object could mend. */
static void choose(finder *f, uint32_t kind)
{
    memset(f->spare, 0, (f->n_objects > f->n_detections ? f->n_objects : f->n_detections) * sizeof *f->spare);
    for (uint64_t k = 0; k < f->n_detections; k++) {
        uint64_t d = f->order[k], o = f->target[d];
        if (f->out->fate[d] == kind && o != UINT64_MAX && !f->spare[o])
            f->spare[o] = d + 1;
    }
}

static void sort_marks(const finder *f, uint32_t mended, marks *m)
{
    uint32_t n = f->in->n_classes;
    bool hit;
    memset(m->first, 0, ((uint64_t)n + 2) * sizeof *m->first);
    for (uint64_t d = 0; d < f->n_detections; d++) {
        int64_t c = counts_as(f, d, mended, &hit);
        if (c >= 0)
            m->first[c + 2]++;
    }
    for (uint32_t c = 0; c < n; c++)
        m->first[c + 2] += m->first[c + 1];
    for (uint64_t k = 0; k < f->n_detections; k++) { /* first[c + 1] walks to the end of class c */
        int64_t c = counts_as(f, f->order[k], mended, &hit);
        if (c < 0)
            continue;
        uint64_t at = m->first[c + 1]++;
        m->hit[at] = hit;
        m->score[at] = f->score[f->order[k]];
    }
}

static void trace(const uint8_t *hit, uint64_t n, uint64_t objects, double *recall, double *precision)
{
    uint64_t hits = 0;
    for (uint64_t k = 0; k < n; k++) {
        hits += hit[k];
        recall[k] = (double)hits / (double)objects;
        precision[k] = (double)hits / (double)(k + 1);
    }
}

static double mean_ap(const finder *f, const marks *m, const uint64_t *objects, double *recall, double *precision)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t c = 0; c < f->in->n_classes; c++) {
        uint64_t k = m->first[c + 1] - m->first[c];
        if (!objects[c])
            continue;
        trace(m->hit + m->first[c], k, objects[c], recall, precision);
        sum += sodet_ap_area(recall, precision, k);
        n++;
    }
    return n ? sum / n : (double)NAN;
}

static sodet_status keep_curves(finder *f, const marks *m, sodet_err *err)
{
    sd_errors *e = f->out;
    for (uint32_t c = 0; c < e->n_classes; c++) {
        sd_class_curve *x = &e->classes[c];
        uint64_t first = m->first[c], n = m->first[c + 1] - first;
        double *recall = sd_pool_alloc(&e->pool, (n + 1) * sizeof *recall),
               *precision = sd_pool_alloc(&e->pool, (n + 1) * sizeof *precision);
        double *score = sd_pool_alloc(&e->pool, (n + 1) * sizeof *score);
        if (!recall || !precision || !score)
            return no_memory(err);
        x->objects = m->objects[c];
        x->detections = x->n = n;
        x->ap = (double)NAN;
        memcpy(score, m->score + first, n * sizeof *score);
        for (uint64_t k = 0; k < n && score[k] >= e->options.score; k++) {
            x->sure++;
            x->correct += m->hit[first + k];
        }
        x->recall = recall;
        x->precision = precision;
        x->score = score;
        if (!x->objects) {
            x->n = 0;
            continue;
        }
        trace(m->hit + first, n, x->objects, recall, precision);
        x->ap = sodet_ap_area(recall, precision, n);
        for (uint64_t k = 0; k < n; k++) {
            double f1 = recall[k] > 0 ? 2 * recall[k] * precision[k] / (recall[k] + precision[k]) : 0;
            if (f1 > x->f1) {
                x->f1 = f1;
                x->f1_score = score[k];
            }
        }
    }
    return SODET_OK;
}

static sodet_status measure(finder *f, sodet_err *err)
{
    sd_errors *e = f->out;
    uint64_t nd = f->n_detections + 1;
    marks m = {sd_alloc((uint64_t)e->n_classes + 2, sizeof *m.first), sd_alloc(nd, 1), sd_alloc(nd, sizeof *m.score),
               sd_alloc((uint64_t)e->n_classes + 1, sizeof *m.objects)};
    double *recall = sd_alloc(nd, sizeof *recall), *precision = sd_alloc(nd, sizeof *precision);
    uint64_t *fewer = sd_alloc((uint64_t)e->n_classes + 1, sizeof *fewer);
    sodet_status s = m.first && m.hit && m.score && m.objects && recall && precision && fewer ? SODET_OK : no_memory(err);
    for (uint64_t o = 0; s == SODET_OK && o < f->n_objects; o++)
        if (!ignored(&f->in->objects[o])) {
            uint64_t missed = !(f->found_at[o] > NEVER) && !(f->usable_at[o] > NEVER);
            m.objects[f->in->objects[o].label]++;
            fewer[f->in->objects[o].label] += !missed;
            e->count[SD_ERROR_MISSED] += missed;
            e->sure[SD_ERROR_MISSED] += f->found_at[o] < e->options.score && f->usable_at[o] < e->options.score;
        }
    if (s == SODET_OK) {
        sodet_eval_rank(f->score, f->n_detections, f->order, f->spare);
        sort_marks(f, SD_ERROR_KINDS, &m);
        s = keep_curves(f, &m, err);
    }
    if (s == SODET_OK) {
        e->map = mean_ap(f, &m, m.objects, recall, precision);
        e->gain[SD_ERROR_MISSED] = mean_ap(f, &m, fewer, recall, precision) - e->map;
    }
    for (uint32_t kind = 0; s == SODET_OK && kind < SD_ERROR_MISSED; kind++) {
        choose(f, kind);
        sort_marks(f, kind, &m);
        e->gain[kind] = mean_ap(f, &m, m.objects, recall, precision) - e->map;
    }
    sd_free(m.first);
    sd_free(m.hit);
    sd_free(m.score);
    sd_free(m.objects);
    sd_free(recall);
    sd_free(precision);
    sd_free(fewer);
    return s;
}

/* ---- the whole ---- */
static sodet_status begin(finder *f, sodet_err *err)
{
    const sodet_eval_input *in = f->in;
    sd_errors *e = f->out;
    uint64_t no = f->n_objects + 1, nd = f->n_detections + 1, side = (uint64_t)e->n_classes + 1;
    f->object = sd_alloc(no, 4 * sizeof *f->object);
    f->detection = sd_alloc(nd, 4 * sizeof *f->detection);
    f->score = sd_alloc(nd, sizeof *f->score);
    f->order = sd_alloc(nd, sizeof *f->order);
    f->spare = sd_alloc(nd > no ? nd : no, sizeof *f->spare);
    f->target = sd_alloc(nd, sizeof *f->target);
    f->found_at = sd_alloc(no, sizeof *f->found_at);
    f->usable_at = sd_alloc(no, sizeof *f->usable_at);
    f->taken = sd_alloc(no, 1);
    e->classes = sd_pool_alloc(&e->pool, ((size_t)e->n_classes + 1) * sizeof *e->classes);
    e->fate = sd_pool_alloc(&e->pool, nd);
    e->confusion = sd_pool_alloc(&e->pool, side * side * sizeof *e->confusion);
    e->images = sd_pool_alloc(&e->pool, (e->n_images + 1) * sizeof *e->images);
    e->worst = sd_pool_alloc(&e->pool, (e->n_images + 1) * sizeof *e->worst);
    if (!f->object || !f->detection || !f->score || !f->order || !f->spare || !f->target || !f->found_at || !f->usable_at || !f->taken ||
        !e->classes || !e->fate || !e->confusion || !e->images || !e->worst)
        return no_memory(err);
    for (uint64_t o = 0; o < f->n_objects; o++) {
        sd_eval_xywh(in->object_xywh, o, in->objects[o].box, f->object + 4 * o);
        f->found_at[o] = f->usable_at[o] = NEVER;
        if (in->objects[o].label < 0 || (uint32_t)in->objects[o].label >= e->n_classes)
            return SODET_FAIL(err, SODET_E_INVALID, "object %llu of the ground truth has class %d of %u", (unsigned long long)o,
                              in->objects[o].label, e->n_classes);
    }
    for (uint64_t d = 0; d < f->n_detections; d++) {
        double *b = f->detection + 4 * d, score = in->detection_scores ? in->detection_scores[d] : (double)in->detections[d].score;
        sd_eval_xywh(in->detection_xywh, d, in->detections[d].box, b);
        bool finite = isfinite(score) && isfinite(b[0]) && isfinite(b[1]) && isfinite(b[2]) && isfinite(b[3]);
        f->score[d] = finite ? score : 0;
        f->target[d] = UINT64_MAX;
        e->fate[d] = finite ? NOT_YET : SD_FATE_LEFT_OUT;
        if (in->detections[d].label < 0 || (uint32_t)in->detections[d].label >= e->n_classes)
            return SODET_FAIL(err, SODET_E_INVALID, "detection %llu has class %d of %u", (unsigned long long)d, in->detections[d].label,
                              e->n_classes);
    }
    return SODET_OK;
}

static sodet_status rank_images(sd_errors *e, sodet_err *err)
{
    double *weight = sd_alloc(e->n_images + 1, sizeof *weight);
    uint64_t *scratch = sd_alloc(e->n_images + 1, sizeof *scratch);
    if (weight && scratch) {
        for (uint64_t i = 0; i < e->n_images; i++)
            weight[i] = e->images[i].weight;
        sodet_eval_rank(weight, e->n_images, e->worst, scratch);
    }
    sodet_status s = weight && scratch ? SODET_OK : no_memory(err);
    sd_free(weight);
    sd_free(scratch);
    return s;
}

sodet_status sd_errors_find(const sodet_eval_input *in, const sd_errors_options *options, sd_errors *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    out->n_classes = in->n_classes;
    out->n_images = in->n_images;
    out->options = *options;
    out->options.iou = options->iou > 0 ? options->iou : 0.5;
    out->options.background = options->background > 0 ? options->background : 0.1;
    finder f = {.in = in, .out = out, .n_objects = in->object_first[in->n_images], .n_detections = in->detection_first[in->n_images]};
    sodet_status s = begin(&f, err);
    for (uint64_t i = 0; s == SODET_OK && i < in->n_images; i++)
        s = look_at(&f, i, err);
    for (uint64_t d = 0; s == SODET_OK && d < f.n_detections; d++)
        if (out->fate[d] < SD_ERROR_KINDS) {
            out->count[out->fate[d]]++;
            out->sure[out->fate[d]] += f.score[d] >= out->options.score;
        }
    if (s == SODET_OK)
        s = measure(&f, err);
    if (s == SODET_OK)
        s = rank_images(out, err);
    sd_free(f.object);
    sd_free(f.detection);
    sd_free(f.score);
    sd_free(f.order);
    sd_free(f.spare);
    sd_free(f.target);
    sd_free(f.found_at);
    sd_free(f.usable_at);
    sd_free(f.taken);
    sd_free(f.iou);
    if (s != SODET_OK)
        sd_errors_free(out);
    return s;
}

void sd_errors_free(sd_errors *e)
{
    sd_pool_clear(&e->pool);
    memset(e, 0, sizeof *e);
}
