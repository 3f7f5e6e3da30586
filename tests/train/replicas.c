/* Replicas agree: `cpu`, `cpu:x2` and `cpu:x4` at one global batch, with synchronised and with frozen batch norm: gradients of the first
 * step to 1e-5 of each tensor's largest, 20 losses to 1e-3; also where the batch cannot be dealt out evenly, where a device gets no
 * picture, and where a step is made of several batches. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "core/train/run.h"

static sodet_err err = SODET_ERR_INIT;
enum { STEPS = 20 };

typedef struct trace {
    double loss[STEPS];
    uint32_t n_losses, n;
    char (*name)[128];
    float **gradient;
    uint64_t *elements;
} trace;

static void train(const char *devices, const char *const *options, uint32_t steps, trace *out)
{
    char text[64], output[600];
    sd_override o[24];
    uint64_t n = 0;
    snprintf(text, sizeof text, "run.devices=%s", devices);
    snprintf(output, sizeof output, "run.output=%s", check_scratch("replicas"));
    o[n++] = (sd_override){text, NULL};
    o[n++] = (sd_override){output, NULL};
    for (uint32_t i = 0; options[i]; i++)
        o[n++] = (sd_override){options[i], NULL};
    sd_config *cfg = NULL;
    sd_run r;
    memset(out, 0, sizeof *out);
    CHECK_OK(sd_config_open(check_source("conf/tinyssd_shapes.ini"), o, n, &cfg, &err));
    sodet_status opened = cfg ? sd_run_open(&r, cfg, true, &err) : SODET_E_INVALID;
    CHECK_OK(opened);
    if (opened != SODET_OK)
        return;
    for (uint32_t step = 0; step < steps; step++) {
        sd_step x = {.step = step, .lr = sd_run_rate(&r)};
        CHECK_OK(sd_run_next(&r, &err));
        CHECK_OK(sd_stepper_gradients(r.stepper, r.batches, &x, &err));
        if (!step) {
            const sd_segments *s = sd_stepper_segments(r.stepper);
            out->n = s->n_trainable;
            out->name = calloc(out->n, sizeof *out->name);
            out->gradient = calloc(out->n, sizeof *out->gradient);
            out->elements = calloc(out->n, sizeof *out->elements);
            uint32_t slot = sd_stepper_slots(r.stepper)->accumulator;
            for (uint32_t i = 0; i < out->n; i++) {
                const sd_segment *g = &s->segment[i];
                snprintf(out->name[i], sizeof out->name[i], "%s", g->name);
                out->elements[i] = g->n;
                out->gradient[i] = malloc(g->n * sizeof(float));
                CHECK_OK(sd_device_pool_read(r.pool, slot == UINT32_MAX ? SD_ARENA_GRAD : SD_ARENA_STATE + slot, g->offset, g->n,
                                             out->gradient[i], &err));
            }
        }
        CHECK_OK(sd_stepper_update(r.stepper, &x, &err));
        CHECK(x.finite);
        out->loss[out->n_losses++] = x.loss;
        sd_run_advance(&r);
        sd_run_recycle(&r);
    }
    sd_run_close(&r);
    sd_config_close(cfg);
}

static void free_trace(trace *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        free(t->gradient[i]);
    free(t->gradient);
    free(t->name);
    free(t->elements);
}

static void compare(const char *what, const trace *a, const trace *b)
{
    double worst = 0, loss = 0;
    CHECK_EQ(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++) {
            if (strcmp(a->name[i], b->name[k]) != 0)
                continue;
            double largest = 0, off = 0;
            for (uint64_t e = 0; e < a->elements[i]; e++) {
                double v = (double)a->gradient[i][e], d = fabs(v - (double)b->gradient[k][e]);
                largest = fabs(v) > largest ? fabs(v) : largest;
                off = !(d <= off) ? d : off;
            }
            /* A bias in front of a batch norm has gradient 0 but for rounding, which is some 1e-7 of what was summed. */
            bool ahead_of_norm = largest < 1e-5;
            CHECK(ahead_of_norm ? off < 1e-5 : off <= 1e-5 * largest);
            if (!ahead_of_norm && off / largest > worst)
                worst = off / largest;
        }
    CHECK_EQ(a->n_losses, b->n_losses);
    for (uint32_t i = 0; i < a->n_losses; i++) {
        CHECK_NEAR(b->loss[i], a->loss[i], 1e-3, 0);
        double d = fabs(b->loss[i] / a->loss[i] - 1);
        loss = d > loss ? d : loss;
    }
    printf("%s: gradients differ by %.2g, losses by %.2g\n", what, worst, loss);
}

#define SMALL                                                                                                                              \
    "run.threads=2", "backbone.width=0.25", "input.size=64x64", "dataset.shapes_train.count=64", "dataset.shapes_train.size=64",           \
        "data.val=", "transform.train=resize", "optimizer.lr=0.002", "run.overwrite=yes", "data.workers=1"

int main(void)
{
    static const char *const cases[][16] = {
        {"synchronised", SMALL, "train.batch=8", NULL},
        {"frozen", SMALL, "train.batch=8", "train.norm=frozen", NULL},
        {"uneven", SMALL, "train.batch=7", NULL},
        {"one without", SMALL, "train.batch=3", "train.norm=frozen", NULL},
        {"accumulated", SMALL, "train.batch=4", "optimizer.accumulate=2", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trace one, many;
        uint32_t steps = i < 2 ? STEPS : 5;
        train("cpu", cases[i] + 1, steps, &one);
        for (int k = 2; k <= 4; k += 2) {
            char what[64];
            snprintf(what, sizeof what, "%s, cpu:x%d", cases[i][0], k);
            train(k == 2 ? "cpu:x2" : "cpu:x4", cases[i] + 1, steps, &many);
            compare(what, &one, &many);
            free_trace(&many);
        }
        free_trace(&one);
    }
    return check_done(500);
}
