/* Scopes, names, sharing, sticky errors, and what a graph says of itself.
 * labels: valgrind */
#include "check.h"
#include "core/graph/graph.h"

static sodet_graph *fresh(bool training)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = NULL;
    CHECK_OK(sd_graph_create(&(sd_graph_options){.training = training}, &g, &err));
    return g;
}

static sodet_value map(sodet_graph *g, const char *name, int64_t channels, int64_t side)
{
    sodet_shape shape = sodet_shape_make(SODET_F32, 4, 2, channels, side, side);
    return sodet_input(g, name, &shape);
}

static const sodet_value_info *parameter(const sodet_graph *g, const char *name)
{
    for (uint32_t v = 1; v <= sodet_graph_value_count(g); v++) {
        const sodet_value_info *info = sodet_graph_value(g, (sodet_value){v});
        if (strcmp(info->name, name) == 0)
            return info;
    }
    return NULL;
}

static void names(void)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = fresh(false);
    sodet_enter(g, "backbone");
    sodet_enter(g, "block%d", 3);
    sodet_value y = sodet_conv2d(g, "conv", map(g, "image", 3, 8), SODET_CONV2D(.out = 4, .kernel = 3, .stride = 2, .pad = {1, 1, 1, 1}));
    sodet_leave(g);
    sodet_leave(g);
    CHECK_OK(sd_graph_check(g, "test", &err));
    CHECK_EQ(sodet_dim(g, y, 0), 2);
    CHECK_EQ(sodet_dim(g, y, 1), 4);
    CHECK_EQ(sodet_dim(g, y, 2), 4);
    CHECK_EQ(sodet_dim(g, y, 7), 1);
    CHECK(parameter(g, "backbone/block3/conv/weight"));
    CHECK(parameter(g, "backbone/block3/conv/bias"));
    CHECK_STR(sodet_graph_node(g, 0)->layer, "backbone/block3/conv");
    sd_graph_free(g);
}

static void used_twice(void)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = fresh(false);
    sodet_value x = map(g, "image", 4, 8);
    sodet_enter(g, "head");
    x = sodet_conv2d(g, "conv", x, SODET_CONV2D(.out = 4, .kernel = 1));
    x = sodet_conv2d(g, "conv", x, SODET_CONV2D(.out = 4, .kernel = 1));
    sodet_leave(g);
    CHECK_EQ(x.id, SODET_POISON.id);
    CHECK_FAILS(sd_graph_check(g, "head/mine", &err), SODET_E_INVALID, "head/mine: head/conv: parameter weight is used twice");
    sd_graph_free(g);
}

static void shared_tower(void)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = fresh(false);
    for (int64_t level = 0; level < 3; level++) {
        char name[8];
        snprintf(name, sizeof name, "p%d", (int)level);
        sodet_value x = map(g, name, 4, 8 >> level);
        sodet_enter_shared(g, "tower");
        x = sodet_conv2d(g, "0", x, SODET_CONV2D(.out = 4, .kernel = 3, .pad = {1, 1, 1, 1}));
        sodet_conv2d(g, "1", x, SODET_CONV2D(.out = 4, .kernel = 3, .pad = {1, 1, 1, 1}));
        sodet_leave(g);
    }
    CHECK_OK(sd_graph_check(g, "test", &err));
    sd_segments s;
    CHECK_OK(sd_segments_make(g, &s, &err));
    CHECK_EQ(s.n, 4);
    CHECK_EQ(s.parameter_count, 2 * (4 * 4 * 9 + 4));
    sd_segments_free(&s);
    /* In one entry the same name is still a mistake, and so is another shape. */
    sodet_enter_shared(g, "tower");
    sodet_conv2d(g, "0", map(g, "other", 5, 4), SODET_CONV2D(.out = 4, .kernel = 3));
    sodet_leave(g);
    CHECK_FAILS(sd_graph_check(g, "test", &err), SODET_E_INVALID, "shared parameter");
    sd_graph_free(g);

    g = fresh(false);
    sodet_value x = map(g, "p", 4, 8);
    sodet_enter_shared(g, "tower");
    x = sodet_conv2d(g, "0", x, SODET_CONV2D(.out = 4, .kernel = 1));
    x = sodet_conv2d(g, "0", x, SODET_CONV2D(.out = 4, .kernel = 1));
    sodet_leave(g);
    CHECK_FAILS(sd_graph_check(g, "test", &err), SODET_E_INVALID, "used twice");
    sd_graph_free(g);
}

static void sticky(void)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = fresh(false);
    sodet_enter(g, "neck");
    sodet_value bad = sodet_add(g, map(g, "a", 3, 8), map(g, "b", 4, 8));
    sodet_value after = sodet_relu(g, bad);
    sodet_leave(g);
    CHECK_EQ(bad.id, SODET_POISON.id);
    CHECK_EQ(after.id, SODET_POISON.id);
    CHECK_EQ(sodet_dim(g, after, 2), 1);
    CHECK_FAILS(sd_graph_check(g, "neck/mine", &err), SODET_E_INVALID, "neck/mine: neck: ");
    char first[sizeof err.text];
    strcpy(first, err.text);
    sodet_graph_fail(g, SODET_E_INTERNAL, "a later error");
    CHECK_EQ(sd_graph_check(g, "neck/mine", &err), SODET_E_INVALID);
    CHECK_STR(err.text, first);
    sd_graph_free(g);

    g = fresh(false);
    sodet_enter(g, "open");
    CHECK_FAILS(sd_graph_check(g, "head/mine", &err), SODET_E_INVALID, "scope \"open\" was entered and not left");
    sodet_leave(g);
    CHECK_OK(sd_graph_check(g, "head/mine", &err));
    sodet_leave(g);
    CHECK_FAILS(sd_graph_check(g, "head/mine", &err), SODET_E_INVALID, "sodet_leave without sodet_enter");
    sd_graph_free(g);
}

static void segments(void)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = fresh(true), *other = fresh(true);
    sodet_graph *both[] = {g, other};
    for (int i = 0; i < 2; i++) {
        sodet_value x = map(both[i], "image", 3, i ? 16 : 8);
        x = sodet_conv2d(both[i], "first", x, SODET_CONV2D(.out = 5, .kernel = 3, .weight = {.lr = SODET_FROZEN}));
        x = sodet_conv2d(both[i], "second", x, SODET_CONV2D(.out = i ? 7 : 6, .kernel = 1));
        sd_graph_add_loss(both[i], "mean", sodet_mean(both[i], x, 0));
        CHECK_OK(sd_graph_backward(both[i], &err));
    }
    sd_segments s;
    CHECK_OK(sd_segments_make(g, &s, &err));
    CHECK_EQ(s.n, 4);
    CHECK_EQ(s.n_trainable, 3);
    CHECK_STR(s.segment[0].name, "second/weight"); /* finished first: the last layer */
    CHECK_EQ(sd_segments_find(&s, "first/weight")->frozen, 1);
    CHECK_EQ(s.segment[1].offset % 16, 0);
    CHECK_OK(sd_graph_bind(g, &s, &err));
    CHECK_EQ(parameter(g, "second/weight")->offset, s.segment[0].offset);
    CHECK_FAILS(sd_graph_bind(other, &s, &err), SODET_E_INVALID, "second/weight is 7x5x1x1 f32 here and was 6x5x1x1 f32");

    float a[6 * 5], b[6 * 5];
    sd_segment_init(&s.segment[0], 1, SODET_INIT_XAVIER, a);
    sd_segment_init(&s.segment[0], 1, SODET_INIT_XAVIER, b);
    CHECK_EQ(memcmp(a, b, sizeof a), 0);
    sd_segment_init(&s.segment[0], 2, SODET_INIT_XAVIER, b);
    CHECK(memcmp(a, b, sizeof a) != 0);
    double bound = sqrt(6.0 / (5 + 6)), largest = 0;
    for (int i = 0; i < 30; i++)
        largest = fmax(largest, fabs((double)a[i]));
    CHECK(largest <= bound && largest > bound / 2);
    sd_segments_free(&s);
    sd_graph_free(g);
    sd_graph_free(other);
}

static void dead_code(void)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = fresh(false);
    sodet_value x = map(g, "image", 3, 8);
    sodet_value used = sodet_relu(g, x);
    sodet_relu(g, sodet_add(g, used, used)); /* nobody asks for it */
    sodet_output(g, "y", used);
    CHECK_OK(sd_graph_seal(g, &err));
    CHECK_EQ(sodet_graph_node_count(g), 1);
    CHECK_EQ(sd_graph_find_output(g, "y").id, used.id);
    CHECK_EQ(sd_graph_find_output(g, "z").id, 0);
    sd_graph_free(g);
}

int main(void)
{
    names();
    used_twice();
    shared_tower();
    sticky();
    segments();
    dead_code();
    return check_done(52);
}
