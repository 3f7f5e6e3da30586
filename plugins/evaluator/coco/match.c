/* Which detection finds which object: steps h.3 and h.4 of the COCO measure, for every area range and threshold at once.
 *
 * An object can only be taken at IoU >= 0.5, so each detection first gets the short list of objects that near; thresholds and area
 * ranges then walk that list. Objects that count come before ignored ones, as the stable sort of pycocotools puts them: two walks. */
#include "coco.h"

#include <stdlib.h>
#include <string.h>

int coco_ignored(const coco_run *r, uint64_t o, int a)
{
    const sodet_object *object = &r->in->objects[r->groups.objects[o]];
    return (object->flags & SODET_BOX_CROWD) || object->area < r->lo[a] || object->area > r->hi[a];
}

/* An object near a detection. */
typedef struct candidate {
    double iou;
    uint32_t object; /* of the image */
} candidate;

typedef struct workspace {
    candidate *candidates;
    size_t capacity;
    uint64_t *order, *spare; /* an image's detections by falling score */
    size_t n_order;
    uint16_t *taken;                     /* [objects of the image]: bit t */
    uint8_t *ignored, *crowd, *nameless; /* nameless: annotation id 0, which pycocotools takes for "not matched" */
    size_t n_objects;
} workspace;

static int grow(void *p, size_t *have, size_t need, size_t size)
{
    void **at = p;
    if (need <= *have)
        return 1;
    size_t n = need > 2 * *have ? need : 2 * *have;
    void *bigger = realloc(*at, n * size);
    if (!bigger)
        return 0;
    *at = bigger;
    *have = n;
    return 1;
}

static int make_room(workspace *w, size_t detections, size_t objects)
{
    size_t a = w->n_order, b = w->n_order, c = w->n_objects, d = w->n_objects, e = w->n_objects, f = w->n_objects;
    int good = grow(&w->order, &a, detections, sizeof *w->order) && grow(&w->spare, &b, detections, sizeof *w->spare) &&
               grow(&w->taken, &c, objects, sizeof *w->taken) && grow(&w->ignored, &d, objects, 1) && grow(&w->crowd, &e, objects, 1) &&
               grow(&w->nameless, &f, objects, 1);
    if (good) {
        w->n_order = a;
        w->n_objects = c;
    }
    return good;
}

/* fmin and fmax would be calls; boxes are finite. */
static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* maskApi's bbIou: boxes x y w h, a crowd is measured by the detection's own area. */
static double overlap(const double *d, const double *g, int crowd)
{
    double w = least(d[0] + d[2], g[0] + g[2]) - most(d[0], g[0]);
    if (!(w > 0))
        return 0;
    double h = least(d[1] + d[3], g[1] + g[3]) - most(d[1], g[1]);
    if (!(h > 0))
        return 0;
    double both = w * h, own = d[2] * d[3];
    return both / (crowd ? own : own + g[2] * g[3] - both);
}

/* Fills the near lists of an image's first `kept` detections: detection k has candidates [start[k], start[k + 1]). */
static int find_near(const coco_run *r, workspace *w, uint64_t first, size_t kept, uint64_t first_object, size_t n_objects,
                     size_t start[MOST + 1])
{
    const sodet_eval_groups *g = &r->groups;
    size_t n = 0;
    for (size_t k = 0; k < kept; k++) {
        const double *d = g->detection_xywh + 4 * (first + w->order[k]);
        start[k] = n;
        for (size_t o = 0; o < n_objects; o++) {
            double iou = overlap(d, g->object_xywh + 4 * (first_object + o), w->crowd[o]);
            if (!(iou >= r->threshold[0]))
                continue;
            if (!grow(&w->candidates, &w->capacity, n + 1, sizeof *w->candidates))
                return 0;
            w->candidates[n++] = (candidate){iou, (uint32_t)o};
        }
    }
    start[kept] = n;
    return 1;
}

/* The object that threshold t gives a detection, or -1. Of equal IoU the later one. */
static long choose(const workspace *w, const candidate *near, size_t n, double threshold, int t)
{
    long best = -1;
    double iou = least(threshold, 1 - 1e-10);
    for (int ignored = 0; ignored < 2 && best < 0; ignored++)
        for (size_t k = 0; k < n; k++) {
            uint32_t o = near[k].object;
            if (w->ignored[o] != ignored || near[k].iou < iou || ((w->taken[o] >> t & 1) && !w->crowd[o]))
                continue;
            iou = near[k].iou;
            best = (long)o;
        }
    return best;
}

static void mark_one(const coco_run *r, workspace *w, uint64_t d, int a, const candidate *near, size_t n)
{
    coco_mark *m = &r->marks[d];
    unsigned hit = 0, ignored = 0;
    for (int t = 0; n && t < THRESHOLDS; t++) {
        long o = choose(w, near, n, r->threshold[t], t);
        if (o < 0)
            continue;
        w->taken[o] = (uint16_t)(w->taken[o] | 1u << t);
        if (!w->nameless[o])
            hit |= 1u << t;
        if (w->ignored[o])
            ignored |= 1u << t;
    }
    const double *box = r->groups.detection_xywh + 4 * d;
    double area = box[2] * box[3];
    if (area < r->lo[a] || area > r->hi[a])
        ignored |= ~hit & ALL_HITS;
    m->hit[a] = (uint16_t)hit;
    m->ignored[a] = (uint16_t)ignored;
}

/* One image and class. */
static int match_image(coco_run *r, workspace *w, uint64_t first, size_t n, uint64_t first_object, size_t n_objects)
{
    size_t kept = n < MOST ? n : MOST, start[MOST + 1];
    if (!make_room(w, n, n_objects))
        return 0;
    sodet_eval_rank(r->groups.scores + first, n, w->order, w->spare);
    for (size_t k = 0; k < n; k++)
        r->marks[first + w->order[k]].rank = k < kept ? (uint32_t)k : MOST;
    for (size_t o = 0; o < n_objects; o++) {
        const sodet_object *object = &r->in->objects[r->groups.objects[first_object + o]];
        w->crowd[o] = (object->flags & SODET_BOX_CROWD) != 0;
        w->nameless[o] = r->cfg->compat == COMPAT_PYCOCOTOOLS && object->id == 0;
    }
    if (!find_near(r, w, first, kept, first_object, n_objects, start))
        return 0;
    for (int a = 0; a < AREAS; a++) {
        for (size_t o = 0; o < n_objects; o++) {
            w->ignored[o] = (uint8_t)coco_ignored(r, first_object + o, a);
            w->taken[o] = 0;
        }
        for (size_t k = 0; k < kept; k++)
            mark_one(r, w, first + w->order[k], a, w->candidates ? w->candidates + start[k] : NULL, start[k + 1] - start[k]);
    }
    return 1;
}

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

int coco_match(coco_run *r, uint32_t c, uint64_t begin, uint64_t end)
{
    const sodet_eval_groups *g = &r->groups;
    uint64_t object = begin < end ? find_image(g->object_image, g->object_first[c], g->object_first[c + 1], g->detection_image[begin]) : 0;
    workspace w = {0};
    int good = 1;
    for (uint64_t d = begin; d < end && good;) {
        uint64_t image = g->detection_image[d], next = d;
        while (next < end && g->detection_image[next] == image)
            next++;
        while (object < g->object_first[c + 1] && g->object_image[object] < image)
            object++;
        uint64_t behind = object;
        while (behind < g->object_first[c + 1] && g->object_image[behind] == image)
            behind++;
        good = match_image(r, &w, d, (size_t)(next - d), object, (size_t)(behind - object));
        d = next;
        object = behind;
    }
    free(w.candidates);
    free(w.order);
    free(w.spare);
    free(w.taken);
    free(w.ignored);
    free(w.crowd);
    free(w.nameless);
    return good;
}
