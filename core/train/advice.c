#include "core/train/advice.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    BINS = 32,  /* of sides: 2^(k/2) .. 2^((k+1)/2) pixels */
    EARLY = 50, /* steps after which what cannot be chance is said */
    THIRD = 3,  /* steps: shorter thirds of an epoch say nothing about its loss */
    ENOUGH = 50 /* objects that sizes are judged by */
};
static const double FALLEN = 0.98; /* the last third's loss over the first's that counts as a fall */

struct sd_advice {
    const sd_core_cfg *core;
    const sd_model *model;
    uint64_t steps, done;
    bool said_early, over;
    double first, last; /* losses of the first and the last third */
    uint64_t objects, ignored, positives;
    uint64_t object[BINS], anchor[BINS], matched[BINS]; /* objects that count, anchors, and matched anchors, by size */
    uint8_t *bin;                                       /* of each anchor of the grid */
    uint64_t bin_capacity;
    uint32_t height, width; /* whose grid it is */
};

sodet_status sd_advice_new(const sd_config *cfg, const sd_model *model, uint64_t steps, sd_advice **out, sodet_err *err)
{
    *out = sd_alloc(1, sizeof **out);
    if (!*out)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: advice");
    (*out)->core = sd_config_core(cfg);
    (*out)->model = model;
    (*out)->steps = steps;
    return SODET_OK;
}

void sd_advice_free(sd_advice *a)
{
    if (a)
        sd_free(a->bin);
    sd_free(a);
}

/* ---- looking ---- */
static uint8_t bin_of(double w, double h)
{
    double k = w > 0 && h > 0 ? floor(log2(w * h)) : 0; /* the side is the root of the area */
    return (uint8_t)(k < 0 ? 0 : k > BINS - 1 ? BINS - 1 : k);
}

static sodet_status take_grid(sd_advice *a, const sd_batch *b, sodet_err *err)
{
    const sd_model_grid *grid;
    sodet_status s = sd_model_grid_of(a->model, b->height, b->width, &grid, err);
    if (s == SODET_OK)
        s = sd_grow(&a->bin, &a->bin_capacity, grid->anchors->n, 1, err);
    if (s != SODET_OK)
        return s;
    for (uint64_t i = 0; i < grid->anchors->n; i++) {
        a->bin[i] = bin_of((double)grid->anchors->box[4 * i + 2], (double)grid->anchors->box[4 * i + 3]);
        a->anchor[a->bin[i]]++;
    }
    a->height = b->height;
    a->width = b->width;
    return SODET_OK;
}

static void look_at(sd_advice *a, const sd_batch *b, uint32_t row)
{
    const int32_t *index = b->index + (uint64_t)row * b->n_anchors;
    const sd_batch_item *item = &b->items[row];
    for (uint32_t k = 0; k < item->n_objects; k++) {
        const float *t = b->truth + 4 * ((uint64_t)row * b->max_objects + k);
        bool ignored = b->flags[(uint64_t)row * b->max_objects + k] & SODET_BOX_CROWD;
        a->objects++;
        a->ignored += ignored;
        if (!ignored)
            a->object[bin_of((double)t[2] - (double)t[0], (double)t[3] - (double)t[1])]++;
    }
    a->positives += item->positives;
    for (uint32_t i = 0; i < b->n_anchors && item->positives; i++)
        if (index[i] >= 0)
            a->matched[a->bin[i]]++;
}

sodet_status sd_advice_step(sd_advice *a, const sd_batch *const *batches, uint32_t n, double loss, sodet_err *err)
{
    uint64_t third = a->steps / 3;
    if (a->over)
        return SODET_OK;
    for (uint32_t i = 0; i < n; i++) {
        const sd_batch *b = batches[i];
        sodet_status s = b->n_anchors && (b->height != a->height || b->width != a->width) ? take_grid(a, b, err) : SODET_OK;
        if (s != SODET_OK)
            return s;
        for (uint32_t row = 0; row < b->n && b->n_anchors; row++)
            look_at(a, b, row);
    }
    if (a->done < third)
        a->first += loss;
    if (a->done >= a->steps - third)
        a->last += loss;
    a->done++;
    return SODET_OK;
}

/* ---- saying ---- */
/* "12 to 180" pixels: the sizes of which there is one. */
static void say_range(const uint64_t *count, sd_text *t)
{
    uint32_t low = 0, high = BINS - 1;
    while (low < high && !count[low])
        low++;
    while (high > low && !count[high])
        high--;
    sd_text_printf(t, "%.0f to %.0f", exp2(low / 2.0), exp2((high + 1) / 2.0));
}

static void say_matches(const sd_advice *a, sd_text *t)
{
    if (!a->objects) {
        sd_text_printf(t,
                       "advice: %" PRIu64
                       " steps without an object: are there annotations (sodet data check), or do the transforms and [data] "
                       "min_side = %g leave none?\n",
                       a->done, a->core->data.min_side);
    } else if (a->ignored == a->objects) {
        sd_text_printf(t,
                       "advice: all %" PRIu64 " objects of %" PRIu64
                       " steps are ignored, so the network sees background alone: they are crowds, or "
                       "marked difficult under [data] difficult = ignore\n",
                       a->objects, a->done);
    } else if (!a->positives) {
        sd_text_printf(t, "advice: no anchor was matched in %" PRIu64 " steps, so the network sees background alone: objects are ",
                       a->done);
        say_range(a->object, t);
        sd_text_printf(t, " pixels large in the network's input, anchors ");
        say_range(a->anchor, t);
        sd_text_printf(
            t, "; [head] sizes or [input] size have to bring them together, or positive_iou is too high (sodet data show draws what "
               "is matched)\n");
    }
}

static void say_unmatched(const sd_advice *a, sd_text *t)
{
    uint64_t unmatched[BINS] = {0}, n = 0, all = 0;
    for (uint32_t k = 0; k < BINS; k++) {
        all += a->anchor[k];
        unmatched[k] = a->matched[k] ? 0 : a->anchor[k];
        n += unmatched[k];
    }
    if (!n || a->objects - a->ignored < ENOUGH)
        return;
    sd_text_printf(t, "advice: %" PRIu64 " of %" PRIu64 " anchors have matched nothing in the first epoch, those of", n, all);
    for (uint32_t k = 0, said = 0; k < BINS; k++) {
        if (!unmatched[k])
            continue;
        uint32_t from = k;
        while (k + 1 < BINS && unmatched[k + 1])
            k++;
        sd_text_printf(t, "%s %.0f to %.0f", said++ ? "," : "", exp2(from / 2.0), exp2((k + 1) / 2.0));
    }
    sd_text_printf(t, " pixels: objects are ");
    say_range(a->object, t);
    sd_text_printf(t, " pixels large in the network's input (sodet data anchors suggests sizes)\n");
}

static void say_flat(const sd_advice *a, sd_text *t)
{
    const sd_schedule_cfg *c = &a->core->schedule;
    uint64_t third = a->steps / 3;
    if (third < THIRD || !(a->first > 0) || a->last < FALLEN * a->first)
        return;
    bool warm = c->warmup && (c->warmup_epochs > 1 || c->warmup_iterations > (double)a->steps);
    sd_text_printf(t, "advice: the loss has not fallen in the first epoch: %.4g in its first third, %.4g in its last; ",
                   a->first / (double)third, a->last / (double)third);
    if (warm)
        sd_text_printf(t, "the warm-up is not over yet\n");
    else
        sd_text_printf(
            t,
            "[optimizer] lr = %g is too high or too low, or boxes and pictures do not belong together (sodet data show draws them); "
            "--overfit 8 --epochs 200 shows in minutes whether it can learn at all\n",
            a->core->optimizer.lr);
}

void sd_advice_say(sd_advice *a, sd_text *out)
{
    bool end = a->done >= a->steps;
    if (a->over || (!end && (a->done < EARLY || a->said_early)))
        return;
    if (!a->said_early)
        say_matches(a, out);
    a->said_early = true;
    a->over = end;
    if (!end)
        return;
    if (a->positives)
        say_unmatched(a, out);
    say_flat(a, out);
}

void sd_advice_not_finite(const sd_config *cfg, uint64_t step, sd_text *out)
{
    const sd_core_cfg *core = sd_config_core(cfg);
    sd_text_printf(out, "a lower rate (optimizer.lr=%g)", core->optimizer.lr / 10);
    if (!core->schedule.warmup && step < 1000)
        sd_text_printf(out, ", a warm-up (schedule.warmup=linear schedule.warmup_iterations=500)");
    if (!(core->optimizer.clip_norm > 0))
        sd_text_printf(out, ", optimizer.clip_norm=10");
}
