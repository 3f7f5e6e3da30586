/* O-24: non-maximum suppression per class or not, at the threshold, in a chain, in normalised coordinates. */
#include "runner.h"
#include "sodet/graph.h"

enum { MOST = 4 };
typedef struct scene {
    const char *name;
    int n;
    double box[4 * MOST], score[MOST], label[MOST];
    double threshold;
    uint32_t plus_one, inclusive;
    bool by_class;
    double want[MOST]; /* -1 behind the last */
} scene;

#define P    0, 0, 10, 10
#define HALF 0, 0, 10, 5
static const scene scenes[] = {
    {"per class", 4, {P, P, P, HALF}, {0.9, 0.8, 0.7, 0.6}, {0, 0, 1, 0}, 0.5, 0, 0, true, {0, 2, 3, -1}},
    {"agnostic", 4, {P, P, P, HALF}, {0.9, 0.8, 0.7, 0.6}, {0, 0, 1, 0}, 0.5, 0, 0, false, {0, 3, -1, -1}},
    {"agnostic, inclusive", 4, {P, P, P, HALF}, {0.9, 0.8, 0.7, 0.6}, {0, 0, 1, 0}, 0.5, 0, 1, false, {0, -1, -1, -1}},
    {"chain", 3, {0, 0, 10, 10, 0, 3, 10, 13, 0, 6, 10, 16}, {0.9, 0.8, 0.7}, {0}, 0.5, 0, 0, false, {0, 2, -1}},
    {"normalised", 2, {0.1, 0.1, 0.3, 0.3, 0.35, 0.1, 0.55, 0.3}, {0.9, 0.8}, {0}, 0.45, 0, 0, false, {0, 1}},
    {"normalised, with the rule for whole pixels",
     2,
     {0.1, 0.1, 0.3, 0.3, 0.35, 0.1, 0.55, 0.3},
     {0.9, 0.8},
     {0},
     0.45,
     1,
     0,
     false,
     {0, -1}},
    {"the same, above 0.655172", 2, {0.1, 0.1, 0.3, 0.3, 0.35, 0.1, 0.55, 0.3}, {0.9, 0.8}, {0}, 0.6552, 1, 0, false, {0, 1}},
    {"equal scores", 3, {0, 0, 10, 10, 50, 50, 60, 60, 1, 0, 11, 10}, {0.5, 0.5, 0.5}, {0}, 0.5, 0, 0, false, {0, 1, -1}},
    {"no area", 2, {5, 5, 5, 5, 5, 5, 5, 5}, {0.5, 0.4}, {0}, 0.5, 0, 0, false, {0, 1}},
};

static void one(runner *r, const scene *s)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = running_graph(false);
    sodet_shape boxes = sodet_shape_make(SODET_F32, 3, 1, s->n, 4, 0), row = sodet_shape_make(SODET_F32, 2, 1, s->n, 0, 0),
                ints = sodet_shape_make(SODET_I32, 2, 1, s->n, 0, 0);
    sodet_value box = sodet_input(g, "box", &boxes), score = sodet_input(g, "score", &row),
                label = s->by_class ? sodet_input(g, "label", &ints) : SODET_NONE, index, count;
    sodet_nms(g, box, score, label, SODET_NMS(.iou_threshold = s->threshold, .plus_one = s->plus_one, .inclusive = s->inclusive), &index,
              &count);
    sodet_output(g, "index", index);
    sodet_output(g, "count", count);
    running *p = running_make(r, g, RUNNING_GUARDS, &err);
    CHECK(p != NULL);
    if (p) {
        double got[MOST] = {0}, many = 0, expected = 0;
        CHECK(running_set(p, "box", s->box, 4 * (uint64_t)s->n) && running_set(p, "score", s->score, (uint64_t)s->n));
        if (s->by_class)
            CHECK(running_set(p, "label", s->label, (uint64_t)s->n));
        CHECK_OK(running_run(p, &err));
        CHECK(running_get(p, "index", got, (uint64_t)s->n) && running_get(p, "count", &many, 1));
        for (int i = 0; i < s->n; i++) {
            check_count();
            if (got[i] != s->want[i])
                check_fail(__FILE__, __LINE__, "%s, %s: place %d holds box %g, expected %g", s->name, runner_name(r), i, got[i],
                           s->want[i]);
            expected += s->want[i] >= 0;
        }
        CHECK_EQ(many, expected);
    }
    running_free(p);
    sd_graph_free(g);
}

int main(void)
{
    runner *all[3] = {runner_open("ref", true, 1), runner_open("ref", false, 1), runner_open("cpu", false, 2)};
    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < sizeof scenes / sizeof scenes[0]; k++)
            one(all[i], &scenes[k]);
        runner_close(all[i]);
    }
    return check_done(150);
}
