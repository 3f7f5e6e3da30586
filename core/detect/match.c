/* Matching of anchors with ground truth.
 *
 * Anchors are taken in blocks of BLOCK, turned into corners once, with the rectangle around all of them: a box that misses the
 * rectangle misses the block, so that 200,000 anchors and a few small boxes are soon done. The loops over a block have a fixed length
 * and no branches: the compiler makes vectors of them. */
#include "core/detect/match.h"

#include <math.h>
#include <string.h>

#include "core/base/base.h"

enum { BLOCK = 256, NOBODY = -1 };

typedef struct block {
    float x1[BLOCK], y1[BLOCK], x2[BLOCK], y2[BLOCK], area[BLOCK];
    float left, top, right, bottom; /* around all of them */
    uint64_t first;
    uint32_t n; /* of BLOCK; the rest are far away and empty */
} block;

/* A box that takes part. */
typedef struct rival {
    sodet_box box;
    float area, best; /* largest IoU with an anchor */
    int32_t anchor;   /* the lowest of those that have it; NOBODY: none overlaps */
    int32_t row;      /* in truth */
    bool placed;
} rival;

static void load_block(const sodet_anchors *a, uint64_t first, block *b)
{
    b->first = first;
    b->n = a->n - first < BLOCK ? (uint32_t)(a->n - first) : BLOCK;
    const float *box = a->box + 4 * first;
    for (uint32_t k = 0; k < b->n; k++) {
        float w = box[4 * k + 2], h = box[4 * k + 3];
        b->x1[k] = box[4 * k] - w / 2;
        b->y1[k] = box[4 * k + 1] - h / 2;
        b->x2[k] = box[4 * k] + w / 2;
        b->y2[k] = box[4 * k + 1] + h / 2;
    }
    for (uint32_t k = b->n; k < BLOCK; k++)
        b->x1[k] = b->x2[k] = b->y1[k] = b->y2[k] = -1e30f;
    for (uint32_t k = 0; k < BLOCK; k++)
        b->area[k] = (b->x2[k] - b->x1[k]) * (b->y2[k] - b->y1[k]);
    b->left = b->top = INFINITY;
    b->right = b->bottom = -INFINITY;
    for (uint32_t k = 0; k < b->n; k++) {
        b->left = b->x1[k] < b->left ? b->x1[k] : b->left;
        b->top = b->y1[k] < b->top ? b->y1[k] : b->top;
        b->right = b->x2[k] > b->right ? b->x2[k] : b->right;
        b->bottom = b->y2[k] > b->bottom ? b->y2[k] : b->bottom;
    }
}

static bool misses(const block *b, const sodet_box *r)
{
    return r->x1 >= b->right || r->x2 <= b->left || r->y1 >= b->bottom || r->y2 <= b->top;
}

/* IoU of one box with the block's anchors; with `of_anchor`, the share of each anchor that the box covers. */
static void overlaps(const block *b, const sodet_box *r, float area, bool of_anchor, float out[BLOCK])
{
    const float x1 = r->x1, y1 = r->y1, x2 = r->x2, y2 = r->y2;
    const float mine = of_anchor ? 0 : area, shared = of_anchor ? 0 : 1;
    for (uint32_t k = 0; k < BLOCK; k++) {
        float left = b->x1[k] > x1 ? b->x1[k] : x1, right = b->x2[k] < x2 ? b->x2[k] : x2;
        float top = b->y1[k] > y1 ? b->y1[k] : y1, bottom = b->y2[k] < y2 ? b->y2[k] : y2;
        float w = right - left, h = bottom - top;
        w = w > 0 ? w : 0;
        h = h > 0 ? h : 0;
        float inter = w * h, whole = b->area[k] + mine - shared * inter;
        out[k] = inter /
                 whole; /* of a box that has an area: never 0 / 0; a covered share of an anchor without area is NaN, and below any bound */
    }
}

float sodet_box_iou(const sodet_box *a, const sodet_box *b)
{
    float w = fminf(a->x2, b->x2) - fmaxf(a->x1, b->x1), h = fminf(a->y2, b->y2) - fmaxf(a->y1, b->y1);
    if (!(w > 0 && h > 0))
        return 0;
    float inter = w * h;
    return inter / ((a->x2 - a->x1) * (a->y2 - a->y1) + (b->x2 - b->x1) * (b->y2 - b->y1) - inter);
}

/* The lowest anchor of the block with a larger IoU than the box has so far. */
static void improve(rival *r, const block *b, const float *iou)
{
    float best = r->best;
    for (uint32_t k = 0; k < BLOCK; k++)
        best = iou[k] > best ? iou[k] : best;
    if (!(best > r->best))
        return;
    uint32_t k = 0;
    while (iou[k] != best)
        k++;
    r->best = best;
    r->anchor = (int32_t)(b->first + k);
}

/* Thresholds: every anchor by its best box; finds each box's best anchor on the way. */
static void by_threshold(const sodet_match_options *o, const sodet_anchors *a, rival *rivals, uint32_t n, int32_t *index)
{
    const float high = (float)o->positive, below = (float)o->negative;
    block b;
    float iou[BLOCK], best[BLOCK];
    int32_t whose[BLOCK];
    for (uint64_t first = 0; first < a->n; first += BLOCK) {
        load_block(a, first, &b);
        for (uint32_t k = 0; k < BLOCK; k++) {
            best[k] = 0;
            whose[k] = NOBODY;
        }
        for (uint32_t i = 0; i < n; i++) {
            if (misses(&b, &rivals[i].box))
                continue;
            overlaps(&b, &rivals[i].box, rivals[i].area, false, iou);
            const int32_t row = rivals[i].row;
            for (uint32_t k = 0; k < BLOCK; k++) {
                whose[k] = iou[k] > best[k] ? row : whose[k];
                best[k] = iou[k] > best[k] ? iou[k] : best[k];
            }
            if (o->claim != SODET_CLAIM_NONE)
                improve(&rivals[i], &b, iou);
        }
        for (uint32_t k = 0; k < b.n; k++) {
            bool positive = o->strict ? best[k] > high : best[k] >= high;
            index[first + k] = positive                                            ? whose[k]
                               : below < high && best[k] >= below && whose[k] >= 0 ? SODET_INDEX_IGNORE
                                                                                   : SODET_INDEX_BACKGROUND;
        }
    }
}

/* The box's best among the anchors that are not taken. */
static void search_again(const sodet_anchors *a, const uint8_t *taken, rival *r)
{
    block b;
    float iou[BLOCK];
    r->best = 0;
    r->anchor = NOBODY;
    for (uint64_t first = 0; first < a->n; first += BLOCK) {
        load_block(a, first, &b);
        if (misses(&b, &r->box))
            continue;
        overlaps(&b, &r->box, r->area, false, iou);
        for (uint32_t k = 0; k < b.n; k++)
            iou[k] = taken[first + k] ? 0 : iou[k];
        improve(r, &b, iou);
    }
}

/* Greedy over the whole table. A box whose best anchor was taken keeps its old value, which is no smaller than its new one, until it
 * comes up; then it searches again, before any of the same value is placed. */
static sodet_status claim_greedy(const sodet_match_options *o, const sodet_anchors *a, rival *rivals, uint32_t n, int32_t *index,
                                 sodet_err *err)
{
    uint8_t *taken = sd_alloc(a->n ? a->n : 1, 1);
    if (!taken)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory to match %llu anchors", (unsigned long long)a->n);
    for (;;) {
        rival *next = NULL, *stale = NULL;
        for (uint32_t i = 0; i < n; i++) {
            rival *r = &rivals[i];
            if (r->placed || r->anchor == NOBODY || !(r->best > (float)o->floor) || (next && r->best < next->best))
                continue;
            if (next && r->best > next->best)
                next = stale = NULL;
            if (taken[r->anchor])
                stale = r;
            if (!next || r->anchor < next->anchor)
                next = r;
        }
        if (!next)
            break;
        if (stale) {
            search_again(a, taken, stale);
            continue;
        }
        taken[next->anchor] = 1;
        next->placed = true;
        index[next->anchor] = next->row;
    }
    sd_free(taken);
    return SODET_OK;
}

/* Every anchor at some box's maximum becomes positive for its own best box. */
static void claim_low(const sodet_match_options *o, const sodet_anchors *a, const rival *rivals, uint32_t n, int32_t *index)
{
    block b;
    float iou[BLOCK], best[BLOCK];
    int32_t whose[BLOCK];
    uint8_t claimed[BLOCK];
    for (uint64_t first = 0; first < a->n; first += BLOCK) {
        load_block(a, first, &b);
        bool any = false;
        for (uint32_t k = 0; k < BLOCK; k++) {
            best[k] = 0;
            whose[k] = NOBODY;
            claimed[k] = 0;
        }
        for (uint32_t i = 0; i < n; i++) {
            if (misses(&b, &rivals[i].box))
                continue;
            overlaps(&b, &rivals[i].box, rivals[i].area, false, iou);
            const int32_t row = rivals[i].row;
            const float mine = rivals[i].best > (float)o->floor ? rivals[i].best : INFINITY;
            for (uint32_t k = 0; k < BLOCK; k++) {
                whose[k] = iou[k] > best[k] ? row : whose[k];
                best[k] = iou[k] > best[k] ? iou[k] : best[k];
            }
            for (uint32_t k = 0; k < b.n; k++) {
                claimed[k] |= iou[k] == mine;
                any |= iou[k] == mine;
            }
        }
        for (uint32_t k = 0; any && k < b.n; k++) {
            if (claimed[k])
                index[first + k] = whose[k];
        }
    }
}

/* Background anchors that lie half or more inside boxes that are neither object nor background. */
static void ignore_covered(const sodet_anchors *a, const sodet_box *boxes, uint32_t n, int32_t *index)
{
    block b;
    float share[BLOCK];
    for (uint64_t first = 0; first < a->n; first += BLOCK) {
        load_block(a, first, &b);
        for (uint32_t i = 0; i < n; i++) {
            if (misses(&b, &boxes[i]))
                continue;
            overlaps(&b, &boxes[i], 0, true, share);
            for (uint32_t k = 0; k < b.n; k++) {
                if (share[k] >= 0.5f && index[first + k] == SODET_INDEX_BACKGROUND)
                    index[first + k] = SODET_INDEX_IGNORE;
            }
        }
    }
}

static void ignore_border(const sodet_match_options *o, const sodet_anchors *a, int32_t *index)
{
    const float wide = (float)a->width, high = (float)a->height;
    for (uint64_t k = 0; k < a->n; k++) {
        const float *box = a->box + 4 * k;
        float w = o->border == SODET_BORDER_INSIDE ? box[2] / 2 : 0, h = o->border == SODET_BORDER_INSIDE ? box[3] / 2 : 0;
        if (!(box[0] - w > 0 && box[1] - h > 0 && box[0] + w < wide && box[1] + h < high))
            index[k] = SODET_INDEX_IGNORE;
    }
}

static sodet_status check(const sodet_match_options *o, const sodet_boxes *truth, sodet_err *err)
{
    if (!(o->negative > 0 && o->negative <= o->positive && o->positive <= 1))
        return SODET_FAIL(err, SODET_E_INVALID, "matching: positive is %g and negative %g: 0 < negative <= positive <= 1 is wanted",
                          o->positive, o->negative);
    for (uint32_t i = 0; i < truth->n; i++) {
        const sodet_box *r = &truth->box[i];
        if (!(isfinite(r->x1) && isfinite(r->y1) && isfinite(r->x2) && isfinite(r->y2) && r->x1 < r->x2 && r->y1 < r->y2))
            return SODET_FAIL(err, SODET_E_INVALID, "matching: box %u is (%g, %g, %g, %g): x1 < x2 and y1 < y2 are wanted", i,
                              (double)r->x1, (double)r->y1, (double)r->x2, (double)r->y2);
    }
    return SODET_OK;
}

static uint32_t what_of(const sodet_match_options *o, uint32_t flags)
{
    uint32_t a = flags & SODET_BOX_CROWD ? o->crowd : SODET_TRUTH_USE, b = flags & SODET_BOX_DIFFICULT ? o->difficult : SODET_TRUTH_USE;
    return a > b ? a : b;
}

sodet_status sodet_match(const sodet_match_options *o, const sodet_anchors *a, const sodet_boxes *truth, int32_t *index, sodet_err *err)
{
    sodet_status s = check(o, truth, err);
    if (s != SODET_OK)
        return s;
    rival *rivals = sd_alloc(truth->n + 1u, sizeof *rivals);
    sodet_box *apart = sd_alloc(truth->n + 1u, sizeof *apart);
    uint32_t n = 0, n_apart = 0;
    if (!rivals || !apart) {
        s = SODET_FAIL(err, SODET_E_MEMORY, "no memory to match %u boxes", truth->n);
        goto end;
    }
    for (uint32_t i = 0; i < truth->n; i++) {
        const sodet_box *r = &truth->box[i];
        uint32_t what = what_of(o, truth->flags ? truth->flags[i] : 0);
        if (what == SODET_TRUTH_USE)
            rivals[n++] = (rival){.box = *r, .area = (r->x2 - r->x1) * (r->y2 - r->y1), .anchor = NOBODY, .row = (int32_t)i};
        else if (what == SODET_TRUTH_IGNORE)
            apart[n_apart++] = *r;
    }

    if (n == 0 && o->ignore_empty) {
        for (uint64_t k = 0; k < a->n; k++)
            index[k] = SODET_INDEX_IGNORE;
        goto end;
    }
    by_threshold(o, a, rivals, n, index);
    if (o->claim == SODET_CLAIM_GREEDY) {
        s = claim_greedy(o, a, rivals, n, index, err);
    } else if (o->claim == SODET_CLAIM_LOW) {
        claim_low(o, a, rivals, n, index);
    } else if (o->claim == SODET_CLAIM_BEST) {
        for (uint32_t i = 0; i < n; i++) {
            if (rivals[i].anchor != NOBODY && rivals[i].best > (float)o->floor)
                index[rivals[i].anchor] = rivals[i].row;
        }
    }
    if (n_apart)
        ignore_covered(a, apart, n_apart, index);
    if (o->border != SODET_BORDER_KEEP)
        ignore_border(o, a, index);
end:
    sd_free(rivals);
    sd_free(apart);
    return s;
}

void sd_best_anchors(const sodet_anchors *a, const sodet_box *boxes, uint64_t n, float *iou, int32_t *anchor)
{
    enum { AT_ONCE = 64 };
    rival rivals[AT_ONCE];
    block b;
    float table[BLOCK];
    for (uint64_t begin = 0; begin < n; begin += AT_ONCE) {
        uint64_t count = n - begin < AT_ONCE ? n - begin : AT_ONCE;
        for (uint64_t i = 0; i < count; i++) {
            const sodet_box *r = &boxes[begin + i];
            rivals[i] = (rival){.box = *r, .area = (r->x2 - r->x1) * (r->y2 - r->y1), .anchor = NOBODY};
        }
        for (uint64_t first = 0; first < a->n; first += BLOCK) {
            load_block(a, first, &b);
            for (uint64_t i = 0; i < count; i++) {
                if (misses(&b, &rivals[i].box))
                    continue;
                overlaps(&b, &rivals[i].box, rivals[i].area, false, table);
                improve(&rivals[i], &b, table);
            }
        }
        for (uint64_t i = 0; i < count; i++) {
            iou[begin + i] = rivals[i].best;
            anchor[begin + i] = rivals[i].anchor;
        }
    }
}
