/* What evaluators share: threads, ranking, grouping by class, average precision. */
#include "sodet/evaluator.h"

#include <math.h>
#include <string.h>

#include "core/base/parallel.h"
#include "core/eval/internal.h"

/* ---- threads ---- */
typedef struct call {
    void (*work)(void *context, uint64_t item);
    void *context;
} call;

static void work_of(void *context, uint32_t worker, uint64_t item)
{
    const call *c = context;
    (void)worker;
    c->work(c->context, item);
}

void sodet_eval_parallel(uint32_t n_threads, uint64_t n_items, void (*work)(void *context, uint64_t item), void *context)
{
    call c = {work, context};
    sd_parallel(n_threads, n_items, work_of, &c);
}

/* ---- ranking ---- */
/* Bottom-up merge sort; runs of 16 by insertion. Equal scores: the earlier one first. */
void sodet_eval_rank(const double *scores, uint64_t n, uint64_t *order, uint64_t *scratch)
{
    enum { RUN = 16 };
    for (uint64_t begin = 0; begin < n; begin += RUN) {
        uint64_t end = n - begin < RUN ? n : begin + RUN;
        for (uint64_t i = begin; i < end; i++) {
            uint64_t k = i;
            for (; k > begin && scores[order[k - 1]] < scores[i]; k--)
                order[k] = order[k - 1];
            order[k] = i;
        }
    }
    uint64_t *from = order, *to = scratch;
    for (uint64_t width = RUN; width < n; width *= 2) {
        for (uint64_t begin = 0; begin < n; begin += 2 * width) {
            uint64_t middle = n - begin < width ? n : begin + width, end = n - begin < 2 * width ? n : begin + 2 * width;
            uint64_t a = begin, b = middle;
            for (uint64_t k = begin; k < end; k++)
                to[k] = b == end || (a < middle && scores[from[a]] >= scores[from[b]]) ? from[a++] : from[b++];
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != order)
        memcpy(order, from, n * sizeof *order);
}

/* ---- grouping ---- */
void sd_eval_xywh(const double *given, uint64_t i, sodet_box b, double out[4])
{
    if (given) {
        memcpy(out, given + 4 * i, 4 * sizeof *out);
        return;
    }
    out[0] = (double)b.x1;
    out[1] = (double)b.y1;
    out[2] = (double)b.x2 - (double)b.x1;
    out[3] = (double)b.y2 - (double)b.y1;
}

static bool finite4(const double *v)
{
    return isfinite(v[0]) && isfinite(v[1]) && isfinite(v[2]) && isfinite(v[3]);
}

/* Turns counts at first[c + 1] into starts, and gives each class a cursor there. */
static void starts(uint64_t *first, uint64_t *cursor, uint32_t n_classes)
{
    for (uint32_t c = 0; c < n_classes; c++) {
        first[c + 1] += first[c];
        cursor[c] = first[c];
    }
}

static sodet_status count_labels(const sodet_eval_input *in, sodet_eval_groups *g, uint64_t n_objects, uint64_t n_detections,
                                 sodet_err *err)
{
    for (uint64_t i = 0; i < n_objects; i++) {
        int32_t label = in->objects[i].label;
        if (label < 0 || (uint32_t)label >= in->n_classes)
            return SODET_FAIL(err, SODET_E_INVALID, "object %llu of the ground truth has class %d of %u", (unsigned long long)i, label,
                              in->n_classes);
        g->object_first[label + 1]++;
    }
    for (uint64_t i = 0; i < n_detections; i++) {
        int32_t label = in->detections[i].label;
        if (label < 0 || (uint32_t)label >= in->n_classes)
            return SODET_FAIL(err, SODET_E_INVALID, "detection %llu has class %d of %u", (unsigned long long)i, label, in->n_classes);
        g->detection_first[label + 1]++;
    }
    return SODET_OK;
}

static void place_objects(const sodet_eval_input *in, sodet_eval_groups *g, uint64_t *cursor)
{
    starts(g->object_first, cursor, in->n_classes);
    for (uint64_t image = 0; image < in->n_images; image++)
        for (uint64_t i = in->object_first[image]; i < in->object_first[image + 1]; i++) {
            uint64_t k = cursor[in->objects[i].label]++;
            g->objects[k] = i;
            g->object_image[k] = image;
            sd_eval_xywh(in->object_xywh, i, in->objects[i].box, g->object_xywh + 4 * k);
        }
}

/* Entries that are not finite leave a gap at the end of their class; the gaps are closed afterwards. */
static void place_detections(const sodet_eval_input *in, sodet_eval_groups *g, uint64_t *cursor)
{
    starts(g->detection_first, cursor, in->n_classes);
    for (uint64_t image = 0; image < in->n_images; image++)
        for (uint64_t i = in->detection_first[image]; i < in->detection_first[image + 1]; i++) {
            double score = in->detection_scores ? in->detection_scores[i] : (double)in->detections[i].score;
            double xywh[4];
            sd_eval_xywh(in->detection_xywh, i, in->detections[i].box, xywh);
            if (!isfinite(score) || !finite4(xywh)) {
                g->dropped++;
                continue;
            }
            uint64_t k = cursor[in->detections[i].label]++;
            g->detections[k] = i;
            g->detection_image[k] = image;
            g->scores[k] = score;
            memcpy(g->detection_xywh + 4 * k, xywh, sizeof xywh);
        }
    if (!g->dropped)
        return;
    uint64_t to = 0;
    for (uint32_t c = 0; c < in->n_classes; c++) {
        uint64_t from = g->detection_first[c], n = cursor[c] - from;
        memmove(g->detections + to, g->detections + from, n * sizeof *g->detections);
        memmove(g->detection_image + to, g->detection_image + from, n * sizeof *g->detection_image);
        memmove(g->scores + to, g->scores + from, n * sizeof *g->scores);
        memmove(g->detection_xywh + 4 * to, g->detection_xywh + 4 * from, 4 * n * sizeof *g->detection_xywh);
        g->detection_first[c] = to;
        to += n;
    }
    g->detection_first[in->n_classes] = to;
}

sodet_status sodet_eval_group(const sodet_eval_input *in, sodet_eval_groups *g, sodet_err *err)
{
    *g = (sodet_eval_groups){.dropped = 0};
    uint64_t no = in->object_first[in->n_images], nd = in->detection_first[in->n_images];
    uint64_t *cursor = sd_alloc(in->n_classes + 1, sizeof *cursor);
    g->object_first = sd_alloc((uint64_t)in->n_classes + 1, sizeof *g->object_first);
    g->detection_first = sd_alloc((uint64_t)in->n_classes + 1, sizeof *g->detection_first);
    g->objects = sd_alloc(no + 1, sizeof *g->objects);
    g->object_image = sd_alloc(no + 1, sizeof *g->object_image);
    g->object_xywh = sd_alloc(no + 1, 4 * sizeof *g->object_xywh);
    g->detections = sd_room(nd + 1, sizeof *g->detections);
    g->detection_image = sd_room(nd + 1, sizeof *g->detection_image);
    g->detection_xywh = sd_room(nd + 1, 4 * sizeof *g->detection_xywh);
    g->scores = sd_room(nd + 1, sizeof *g->scores);
    sodet_status s = SODET_OK;
    if (!cursor || !g->object_first || !g->detection_first || !g->objects || !g->object_image || !g->object_xywh || !g->detections ||
        !g->detection_image || !g->detection_xywh || !g->scores)
        s = SODET_FAIL(err, SODET_E_MEMORY, "no memory to evaluate %llu detections", (unsigned long long)nd);
    if (s == SODET_OK)
        s = count_labels(in, g, no, nd, err);
    if (s == SODET_OK) {
        place_objects(in, g, cursor);
        place_detections(in, g, cursor);
    }
    sd_free(cursor);
    if (s != SODET_OK)
        sodet_eval_groups_free(g);
    return s;
}

void sodet_eval_groups_free(sodet_eval_groups *g)
{
    sd_free(g->object_first);
    sd_free(g->detection_first);
    sd_free(g->objects);
    sd_free(g->object_image);
    sd_free(g->object_xywh);
    sd_free(g->detections);
    sd_free(g->detection_image);
    sd_free(g->detection_xywh);
    sd_free(g->scores);
    *g = (sodet_eval_groups){.dropped = 0};
}

/* ---- average precision ---- */
double sodet_ap_11point(const double *recall, const double *precision, uint64_t n)
{
    double best[11] = {0}, sum = 0, top = 0;
    uint64_t k = n;
    for (int t = 10; t >= 0; t--) {
        while (k > 0 && recall[k - 1] >= t * 0.1) {
            k--;
            top = precision[k] > top ? precision[k] : top;
        }
        best[t] = top;
    }
    for (int t = 0; t < 11; t++)
        sum += best[t] / 11;
    return sum;
}

double sodet_ap_area(const double *recall, const double *precision, uint64_t n)
{
    double area = 0, top = 0;
    for (uint64_t k = n; k-- > 0;) {
        top = precision[k] > top ? precision[k] : top;
        area += (recall[k] - (k ? recall[k - 1] : 0)) * top;
    }
    return area;
}
