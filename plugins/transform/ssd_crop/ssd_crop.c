/* ssd_crop: a patch of the picture that overlaps objects by at least a drawn bound. Liu et al. 2016, section 2.2 "data augmentation".
 *
 * The systems differ, and their differences are options:
 *   Caffe        every bound is tried `trials` times, one of the patches found (or the whole picture) is taken; a patch passes if one object
 *                meets the bound; sides from a scale and a ratio                     choice = pool,  accept = one, sides = ratio   (default)
 *   GluonCV      as Caffe, but all objects must meet it                              choice = pool,  accept = all, sides = ratio
 *   torchvision  a bound (or the whole picture) is drawn, tried, else drawn anew     choice = draw,  accept = one, sides = free, trials = 40
 *   MLPerf, NVIDIA  the same with one trial and all objects, and the aspect is that of the two fractions that are drawn
 *                                                                                    choice = draw,  accept = all, sides = fractions, trials = 1
 *   ssd.pytorch  as torchvision with 0.5 left out; its bound is never in force (min is compared with an upper limit of infinity):
 *                                                                                    choice = draw, iou = 0, sides = free
 * An object stays if its centre is strictly inside the patch; it is clipped to it. */
#include <math.h>
#include <stdlib.h>

#include "sodet/data.h"

enum { POOL, DRAW };
static const char *const choices[] = {"pool", "draw", NULL};
enum { ONE, ALL };
static const char *const accepts[] = {"one", "all", NULL};
enum { RATIO, FREE, FRACTIONS };
static const char *const shapes[] = {"ratio", "free", "fractions", NULL};
enum { ROUNDS = 50 /* of drawing a bound anew */, MOST_BOUNDS = 32 };

typedef struct crop_cfg {
    sodet_double_list iou, scale, aspect;
    uint32_t trials, choice, accept, sides, whole, unbounded, need_centre;
} crop_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLES(crop_cfg, iou, "0.1, 0.3, 0.5, 0.7, 0.9", 0, 0, 1,
                      "bounds: least overlap of patch and object, intersection over union"),
    SODET_OPT_DOUBLES(crop_cfg, scale, "0.3, 1", 2, 0.01, 1, "of the picture's sides (sides = free) or of both together (ratio)"),
    SODET_OPT_DOUBLES(crop_cfg, aspect, "0.5, 2", 2, 0.01, 100,
                      "least and greatest ratio of the patch's width and height: in pixels (sides = free), or in units of the picture's"),
    SODET_OPT_UINT(crop_cfg, trials, "50", 1, 10000, "patches tried for a bound"),
    SODET_OPT_ENUM(
        crop_cfg, choice, "pool", choices,
        "pool: one of the patches that were found for all bounds [Caffe, GluonCV]; draw: a bound first [ssd.pytorch, torchvision]"),
    SODET_OPT_ENUM(crop_cfg, accept, "one", accepts,
                   "one: some object meets the bound [Caffe, torchvision]; all: every one does [GluonCV, MLPerf]"),
    SODET_OPT_ENUM(crop_cfg, sides, "ratio", shapes,
                   "ratio: scale and aspect are drawn [Caffe, GluonCV]; free: width and height are [ssd.pytorch, torchvision]; fractions: "
                   "as free, but aspect holds for them as fractions of the picture's [MLPerf, NVIDIA]"),
    SODET_OPT_BOOL(crop_cfg, whole, "yes", "the whole picture is one of the choices"),
    SODET_OPT_BOOL(crop_cfg, unbounded, "yes", "a patch without any bound is one of the choices"),
    SODET_OPT_BOOL(crop_cfg, need_centre, "yes", "a patch without the centre of an object does not count [all but Caffe]"),
};

typedef struct patch {
    double x, y, w, h;
} patch;

static sodet_status validate(const void *cfg, sodet_err *err)
{
    const crop_cfg *c = cfg;
    if (c->scale.v[0] > c->scale.v[1])
        return sodet_fail_option(err, "scale", "the least is above the greatest; write them in rising order");
    if (c->aspect.v[0] > c->aspect.v[1])
        return sodet_fail_option(err, "aspect", "the least is above the greatest; write them in rising order");
    if (c->iou.n > MOST_BOUNDS)
        return sodet_fail_option(err, "iou", "%u bounds; at most %d are taken", c->iou.n, MOST_BOUNDS);
    if (c->iou.n == 0 && !c->whole && !c->unbounded)
        return sodet_fail_option(err, "iou", "no bound, and neither whole nor unbounded: there is nothing to choose from");
    return SODET_OK;
}

/* Whole pixels, as the picture is cut. 0: this trial's sides are out of range. */
static int draw_patch(const crop_cfg *c, sodet_stream *r, uint32_t width, uint32_t height, patch *p)
{
    double w, h;
    if (c->sides == RATIO) {
        double s = sodet_stream_uniform(r, c->scale.v[0], c->scale.v[1]);
        double lo = fmax(c->aspect.v[0], s * s), hi = fmin(c->aspect.v[1], 1 / (s * s));
        double a = sqrt(sodet_stream_uniform(r, lo, hi));
        w = s * a;
        h = s / a;
    } else {
        w = sodet_stream_uniform(r, c->scale.v[0], c->scale.v[1]);
        h = sodet_stream_uniform(r, c->scale.v[0], c->scale.v[1]);
        double a = c->sides == FREE ? w * width / (h * height) : w / h;
        if (!(a >= c->aspect.v[0] && a <= c->aspect.v[1]))
            return 0;
    }
    w = fmax(1, floor(fmin(w, 1) * width));
    h = fmax(1, floor(fmin(h, 1) * height));
    *p = (patch){floor(sodet_stream_uniform(r, 0, width - w + 1)), floor(sodet_stream_uniform(r, 0, height - h + 1)), w, h};
    return 1;
}

static int centre_inside(const patch *p, const sodet_box *b)
{
    double x = ((double)b->x1 + (double)b->x2) / 2, y = ((double)b->y1 + (double)b->y2) / 2;
    return x > p->x && x < p->x + p->w && y > p->y && y < p->y + p->h;
}

static double iou(const patch *p, const sodet_box *b)
{
    double w = fmin(p->x + p->w, (double)b->x2) - fmax(p->x, (double)b->x1),
           h = fmin(p->y + p->h, (double)b->y2) - fmax(p->y, (double)b->y1);
    if (!(w > 0) || !(h > 0))
        return 0;
    return w * h / (p->w * p->h + ((double)b->x2 - (double)b->x1) * ((double)b->y2 - (double)b->y1) - w * h);
}

static int passes(const crop_cfg *c, const sodet_sample *s, const patch *p, double bound)
{
    uint32_t n = sodet_sample_object_count(s), met = 0, centres = 0, used = 0;
    for (uint32_t i = 0; i < n; i++) {
        const sodet_object *o = sodet_sample_object(s, i);
        if (o->flags & SODET_BOX_CROWD)
            continue;
        used++;
        met += bound <= 0 || iou(p, &o->box) >= bound;
        centres += centre_inside(p, &o->box) != 0;
    }
    if (c->need_centre && centres == 0)
        return 0;
    return c->accept == ALL ? met == used : met > 0;
}

static int search(const crop_cfg *c, const sodet_sample *s, sodet_stream *r, double bound, patch *p)
{
    uint32_t width, height;
    sodet_sample_size(s, &width, &height);
    for (uint32_t t = 0; t < c->trials; t++) {
        if (draw_patch(c, r, width, height, p) && passes(c, s, p, bound))
            return 1;
    }
    return 0;
}

/* 0: the whole picture. */
static int choose(const crop_cfg *c, const sodet_sample *s, sodet_stream *r, patch *p)
{
    uint32_t n = c->iou.n + c->unbounded;
    if (c->choice == POOL) {
        patch found[MOST_BOUNDS + 1];
        uint32_t k = 0;
        for (uint32_t i = 0; i < n; i++)
            k += search(c, s, r, i < c->iou.n ? c->iou.v[i] : 0, &found[k]) != 0;
        if (k + c->whole == 0)
            return 0;
        uint32_t which = sodet_stream_below(r, k + c->whole);
        if (which == k)
            return 0;
        *p = found[which];
        return 1;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t which = sodet_stream_below(r, n + c->whole);
        if (which == n)
            return 0;
        if (search(c, s, r, which < c->iou.n ? c->iou.v[which] : 0, p))
            return 1;
    }
    return 0;
}

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    const crop_cfg *c = self;
    uint32_t n = sodet_sample_object_count(s);
    patch p = {0};
    if (n == 0 || !choose(c, s, r, &p))
        return SODET_OK;
    uint8_t few[256], *keep = n <= sizeof few ? few : malloc(n);
    if (!keep)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u objects", n);
    for (uint32_t i = 0; i < n; i++)
        keep[i] = (uint8_t)centre_inside(&p, &sodet_sample_object(s, i)->box);
    sodet_sample_keep_objects(s, keep);
    if (keep != few)
        free(keep);
    sodet_status status = sodet_sample_crop(s, (int32_t)p.x, (int32_t)p.y, (uint32_t)p.w, (uint32_t)p.h, NULL, err);
    sodet_sample_clip_objects(s);
    return status;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .flags = SODET_TRANSFORM_ANY_SHAPE, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "ssd_crop", "patches that overlap objects by a drawn bound", crop_cfg, options, .validate = validate,
             .ops = &ops);
