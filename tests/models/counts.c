/* Parameters and multiply-adds of every network, against the numbers that the papers and systems print. Parameters must be equal;
 * multiply-adds equal in every printed digit. */
#include "models.h"

static sodet_err err = SODET_ERR_INIT;

typedef struct network {
    const char *base;
    const char *overrides[6];
    uint32_t classes, height, width;
    uint64_t parameters; /* 0: not asked */
    double gmac;         /* 0: not asked */
    int digits;          /* behind the point */
} network;

#define R(depth_, from)                                                                                                                    \
    "model/retinanet_r50_fpn.ini",                                                                                                         \
    {                                                                                                                                      \
        "backbone.depth=" depth_, "neck.extra_from=" from                                                                                  \
    }
static const network networks[] = {
    /* d2l-ai/d2l-en, ssd.md, with one class */
    {"model/tinyssd_d2l.ini", {NULL}, 1, 256, 256, 1010376, 0.977, 3},
    /* the Caffe port lampsonSong/tinySSD (tests/golden/net-tinyssd_paper_21.json has every digit) */
    {"model/tinyssd_paper.ini", {NULL}, 20, 300, 300, 1134272, 0.570814191, 9},
    /* weiliu89/caffe; 91 columns: torchvision prints 35,641,826 */
    {"model/ssd300_vgg16.ini", {NULL}, 20, 300, 300, 26285486, 31.37, 2},
    {"model/ssd300_vgg16.ini", {NULL}, 80, 300, 300, 34305206, 34.36, 2},
    {"model/ssd300_vgg16.ini", {NULL}, 90, 300, 300, 35641826, 34.86, 2},
    /* NVIDIA's and MLPerf's on ResNet (tests/golden/make/g8_nets.py counts them so) */
    {"model/ssd300_resnet50.ini", {NULL}, 80, 300, 300, 22894902, 20.150906112, 9},
    {"model/ssd300_resnet50.ini", {"backbone.depth=34", "neck.norm=no"}, 80, 300, 300, 19972534, 15.86, 2},
    {"model/ssd512_vgg16.ini", {NULL}, 20, 512, 512, 27188676, 90.21, 2},
    {"model/ssd512_vgg16.ini", {NULL}, 80, 512, 512, 36038196, 98.63, 2},
    /* RetinaNet with P6 from C5: SimpleAICV prints 37.969 M, 36.724 M (20 classes), 56.961 M */
    {R("18", "c5"), 80, 600, 600, 21410100, 66.82, 2},
    {R("34", "c5"), 80, 600, 600, 31518260, 80.31, 2},
    {R("50", "c5"), 80, 600, 600, 37968692, 84.72, 2},
    {R("101", "c5"), 80, 600, 600, 56960820, 112.07, 2},
    {R("18", "c5"), 20, 600, 600, 20165400, 0, 0},
    {R("34", "c5"), 20, 600, 600, 30273560, 0, 0},
    {R("50", "c5"), 20, 600, 600, 36723992, 0, 0},
    {R("101", "c5"), 20, 600, 600, 55716120, 0, 0},
    {R("18", "p5"), 80, 600, 600, 20820276, 0, 0},
    {R("34", "p5"), 80, 600, 600, 30928436, 0, 0},
    {R("50", "p5"), 80, 600, 600, 33839924, 0, 0},
    {R("101", "p5"), 80, 600, 600, 52832052, 0, 0},
    /* torchvision prints 34,014,999, without the 53,120 scales and shifts that are buffers there, and 151.54 */
    {R("50", "p5"), 91, 800, 800, 34014999 + 53120, 151.54, 2},
    {R("18", "c5"), 80, 640, 640, 0, 75.33, 2},
    {R("34", "c5"), 80, 640, 640, 0, 90.43, 2},
    {R("50", "c5"), 80, 640, 640, 0, 95.35, 2},
    {R("101", "c5"), 80, 640, 640, 0, 125.65, 2},
    {R("18", "c5"), 80, 667, 667, 0, 83.14, 2},
    {R("34", "c5"), 80, 667, 667, 0, 99.76, 2},
    {R("50", "c5"), 80, 667, 667, 0, 105.21, 2},
    {R("101", "c5"), 80, 667, 667, 0, 138.62, 2},
    {R("18", "c5"), 80, 800, 800, 0, 117.88, 2},
    {R("34", "c5"), 80, 800, 800, 0, 141.47, 2},
    {R("50", "c5"), 80, 800, 800, 0, 149.19, 2},
    {R("101", "c5"), 80, 800, 800, 0, 196.54, 2},
    {R("18", "c5"), 80, 1000, 1000, 0, 185.35, 2},
    {R("34", "c5"), 80, 1000, 1000, 0, 222.73, 2},
    {R("50", "c5"), 80, 1000, 1000, 0, 234.91, 2},
    {R("101", "c5"), 80, 1000, 1000, 0, 310.08, 2},
    {R("18", "c5"), 80, 1024, 1024, 0, 192.85, 2},
    {R("34", "c5"), 80, 1024, 1024, 0, 231.51, 2},
    {R("50", "c5"), 80, 1024, 1024, 0, 244.09, 2},
    {R("101", "c5"), 80, 1024, 1024, 0, 321.67, 2},
    {R("18", "c5"), 80, 800, 1333, 0, 197.07, 2},
    {R("34", "c5"), 80, 800, 1333, 0, 236.62, 2},
    {R("50", "c5"), 80, 800, 1333, 0, 249.52, 2},
    {R("101", "c5"), 80, 800, 1333, 0, 329.07, 2},
};

/* Of the layers whose path begins so. */
static uint64_t macs_below(const sodet_graph *g, const char *prefix)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sodet_graph_node_count(g); i++) {
        const sodet_node *n = sodet_graph_node(g, i);
        if (*prefix == 0 || (n->layer && strncmp(n->layer, prefix, strlen(prefix)) == 0))
            sum += sd_node_cost(n).macs;
    }
    return sum;
}

static uint64_t parameters_below(const sd_segments *s, const char *prefix)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!s->segment[i].buffer && strncmp(s->segment[i].name, prefix, strlen(prefix)) == 0)
            sum += s->segment[i].n;
    }
    return sum;
}

static void check_network(const network *n)
{
    test_model m;
    char what[160];
    snprintf(what, sizeof what, "%s %s %s, %u classes, %ux%u", n->base, n->overrides[0] ? n->overrides[0] : "",
             n->overrides[0] && n->overrides[1] ? n->overrides[1] : "", n->classes, n->width, n->height);
    CHECK_OK(test_model_open(&m, n->base, n->overrides, n->classes, &err));
    if (m.model) {
        const sd_graph_options options = {.training = true};
        const sd_model_shape shape = {.batch = 1, .height = n->height, .width = n->width, .boxes = 4};
        sodet_graph *g = NULL;
        sd_segments s = {0};
        CHECK_OK(sd_model_build(m.model, &options, &shape, &g, &err));
        if (g) {
            char got[32], want[32];
            snprintf(got, sizeof got, "%.*f", n->digits, (double)macs_below(g, "") * 1e-9);
            snprintf(want, sizeof want, "%.*f", n->digits, n->gmac);
            check_count();
            if (n->gmac > 0 && strcmp(got, want) != 0)
                check_fail(__FILE__, __LINE__, "%s: %s GMAC, expected %s", what, got, want);
            CHECK_OK(sd_graph_backward(g, &err));
            CHECK_OK(sd_segments_make(g, &s, &err));
            check_count();
            if (n->parameters && s.parameter_count != n->parameters)
                check_fail(__FILE__, __LINE__, "%s: %llu parameters, expected %llu", what, (unsigned long long)s.parameter_count,
                           (unsigned long long)n->parameters);
        }
        sd_segments_free(&s);
        sd_graph_free(g);
    }
    test_model_close(&m);
}

/* The parts of RetinaNet-R50 and of Tiny SSD, so that errors in two parts cannot cancel. */
static void parts(void)
{
    static const struct {
        const char *depth;
        uint64_t backbone, neck;
    } want[] = {{"backbone.depth=18", 11176512, 3770368},
                {"backbone.depth=34", 21284672, 3770368},
                {"backbone.depth=50", 23508032, 7997440},
                {"backbone.depth=101", 42500160, 7997440}};
    for (uint32_t i = 0; i < 4; i++) {
        const char *const overrides[] = {want[i].depth, "loss.normaliser=image", NULL};
        const sd_graph_options options = {.training = true};
        const sd_model_shape shape = {.batch = 1, .height = 128, .width = 128, .boxes = 1};
        test_model m;
        sodet_graph *g = NULL;
        sd_segments s = {0};
        CHECK_OK(test_model_open(&m, "model/retinanet_r50_fpn.ini", overrides, 80, &err));
        CHECK_OK(sd_model_build(m.model, &options, &shape, &g, &err));
        CHECK_OK(sd_graph_backward(g, &err));
        CHECK_OK(sd_segments_make(g, &s, &err));
        CHECK_EQ(parameters_below(&s, "backbone/"), want[i].backbone);
        CHECK_EQ(parameters_below(&s, "neck/"), want[i].neck);
        CHECK_EQ(parameters_below(&s, "head/"), 6463220);
        const sd_segment *bias = sd_segments_find(&s, "head/cls/out/bias");
        CHECK(bias && bias->n == 720);
        float start[720];
        if (bias) {
            sd_segment_init(bias, 1, 0, start);
            CHECK_NEAR(start[719], -4.59511985, 1e-7, 0); /* a score of 0.01 (field case O-21) */
        }
        const sd_segment *stem = sd_segments_find(&s, "backbone/conv1/weight"),
                         *c3 = sd_segments_find(&s, "backbone/layer2/0/conv1/weight");
        CHECK(stem && stem->frozen && c3 && !c3->frozen);
        const sd_segment *norm = sd_segments_find(&s, "backbone/layer4/0/norm1/weight");
        CHECK(norm && norm->frozen);
        sd_segments_free(&s);
        sd_graph_free(g);
        test_model_close(&m);
    }
}

/* torchvision's mobilenet_v2(width_mult).features, asked for parameters, multiply-adds at 224x224 and the maps at strides 8, 16, 32. */
static void mobilenet_v2(void)
{
    static const struct {
        const char *width;
        uint64_t parameters, macs, channels[3];
    } want[] = {{"backbone.width=1", 2223872, 299494272, {32, 96, 1280}},    {"backbone.width=0.35", 396128, 58005808, {16, 32, 1280}},
                {"backbone.width=0.5", 687680, 95851840, {16, 48, 1280}},    {"backbone.width=0.75", 1355424, 207789792, {24, 72, 1280}},
                {"backbone.width=1.4", 4315776, 580403824, {48, 136, 1792}}, {"backbone.width=0.1", 86080, 25379648, {8, 16, 1280}}};
    for (uint32_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const char *const overrides[] = {want[i].width, "neck.channels=1", "neck.width=1", NULL};
        const sd_graph_options options = {.training = true};
        const sd_model_shape shape = {.batch = 1, .height = 224, .width = 224, .boxes = 1};
        test_model m;
        sodet_graph *g = NULL;
        sd_segments s = {0};
        CHECK_OK(test_model_open(&m, "model/ssd_mobilenet_v2.ini", overrides, 20, &err));
        CHECK_OK(sd_model_build(m.model, &options, &shape, &g, &err));
        CHECK_EQ(macs_below(g, "backbone/"), want[i].macs);
        CHECK_OK(sd_graph_backward(g, &err));
        CHECK_OK(sd_segments_make(g, &s, &err));
        CHECK_EQ(parameters_below(&s, "backbone/"), want[i].parameters);
        for (uint32_t l = 0; l < 3; l++) {
            char name[40];
            snprintf(name, sizeof name, "neck/level%u/lateral/weight", l);
            const sd_segment *lateral = sd_segments_find(&s, name);
            CHECK(lateral && lateral->n == want[i].channels[l]);
        }
        sd_segments_free(&s);
        sd_graph_free(g);
        test_model_close(&m);
    }
}

/* The parts of NVIDIA's, as tests/golden/net-ssd300_resnet50_nvidia_81.json has them. */
static void resnet50_cut(void)
{
    const sd_graph_options options = {.training = true};
    const sd_model_shape shape = {.batch = 1, .height = 300, .width = 300, .boxes = 1};
    test_model m;
    sodet_graph *g = NULL;
    sd_segments s = {0};
    CHECK_OK(test_model_open(&m, "model/ssd300_resnet50.ini", NULL, 80, &err));
    CHECK_OK(sd_model_build(m.model, &options, &shape, &g, &err));
    CHECK_EQ(macs_below(g, "backbone/"), 13517961984);
    CHECK_EQ(macs_below(g, "head/"), 5645283840);
    CHECK_OK(sd_graph_backward(g, &err));
    CHECK_OK(sd_segments_make(g, &s, &err));
    CHECK_EQ(parameters_below(&s, "backbone/"), 8543296);
    CHECK_EQ(parameters_below(&s, "head/"), 10577910);
    sd_segments_free(&s);
    sd_graph_free(g);
    test_model_close(&m);
}

int main(void)
{
    for (uint32_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        check_network(&networks[i]);
    parts();
    mobilenet_v2();
    resnet50_cut();
    return check_done(240);
}
