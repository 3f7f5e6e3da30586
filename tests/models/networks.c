/* labels: big */
/* Whole networks against torch (tests/golden/net-*.json): logits, box codes and feature maps of a picture made by formula, at full size,
 * in inference. On `cpu` all of them; on `ref`, which is slow, one of each family. Arguments: cpu or ref, part of a file's name. */
#include "rig.h"

static sodet_err err = SODET_ERR_INIT;

typedef struct network {
    const char *file, *base, *map;
    const char *overrides[3];
    uint32_t classes;
    const char *feature[6]; /* names of the file's feature maps */
    bool ref;
    bool by_column; /* NVIDIA's and MLPerf's outputs: "conf" [1, columns, boxes], "loc" [1, 4, boxes] */
} network;

static const network networks[] = {
    {"net-tinyssd_paper_21.json",
     "model/tinyssd_paper.ini",
     "tinyssd_paper.map",
     {NULL},
     20,
     {"map0", "map1", "map2", "map3", "map4", "map5"},
     true,
     false},
    {"net-ssd300_resnet50_nvidia_81.json",
     "model/ssd300_resnet50.ini, model/dialect/ssd_nvidia.ini",
     "nvidia_ssd300_resnet.map",
     {NULL},
     80,
     {"map0", "map1", "map2", "map3", "map4", "map5"},
     false,
     true},
    {"net-ssd300_vgg16_21.json",
     "model/ssd300_vgg16.ini",
     "torchvision_ssd300_vgg16.map",
     {NULL},
     20,
     {"0", "1", "2", "3", "4", "5"},
     true,
     false},
    {"net-ssd300_vgg16_91.json",
     "model/ssd300_vgg16.ini",
     "torchvision_ssd300_vgg16.map",
     {NULL},
     90,
     {"0", "1", "2", "3", "4", "5"},
     false,
     false},
    {"net-retinanet_resnet50_fpn_91.json",
     "model/retinanet_r50_fpn.ini, model/dialect/retinanet_torchvision.ini",
     "torchvision_retinanet_resnet_fpn.map",
     {NULL},
     91,
     {"0", "1", "2", "p6", "p7"},
     true,
     false},
};

/* x[rows][columns] as [columns][rows]; frees x. */
static float *turned(float *x, uint64_t n, uint64_t columns)
{
    const uint64_t rows = n / columns;
    float *y = malloc(n * sizeof *y);
    for (uint64_t i = 0; i < n; i++)
        y[i % columns * rows + i / columns] = x[i];
    free(x);
    return y;
}

static void run(gold_tally *t, const network *n, const char *device)
{
    const gold *root = gold_open(n->file);
    const uint32_t side = (uint32_t)gold_number(gold_at(gold_get(root, "input_shape"), 2));
    const sd_graph_options options = {.training = false};
    const sd_model_shape shape = {.batch = 1, .height = side, .width = side, .flags = SD_MODEL_RAW};
    char devices[64], name[160], what[200];
    snprintf(devices, sizeof devices, "run.devices=%s", device);
    const char *const overrides[] = {devices, "run.threads=2", NULL};
    rig g;
    double start = sd_now();
    CHECK_OK(rig_open(&g, n->base, overrides, n->classes, &options, &shape, &err));
    if (g.program) {
        rig_fill_golden(&g, n->map, gold_number(gold_get(root, "gain")));
        const uint64_t pixels = 3u * side * side;
        float *image = malloc(pixels * sizeof *image);
        gold_fill_u(image, pixels, "input");
        const sodet_graph *graph = sd_program_graph(g.program);
        static const char *const ours[] = {"raw/logits", "raw/codes"}, *const theirs[][2] = {{"cls_logits", "bbox_regression"},
                                                                                             {"conf", "loc"}};
        rig_io io[12] = {{"image", image, NULL, pixels}};
        uint32_t n_io = 1;
        for (uint32_t i = 0; i < 8; i++) {
            char *own = malloc(32);
            if (i < 2) {
                snprintf(own, 32, "%s", ours[i]);
            } else if (n->feature[i - 2]) {
                snprintf(own, 32, "raw/feature%u", i - 2);
            } else {
                free(own);
                break;
            }
            sodet_value v = sd_graph_find_output(graph, own);
            sodet_shape s = sodet_shape_of(graph, v);
            uint64_t count = (uint64_t)sodet_elements(&s);
            io[n_io++] = (rig_io){own, NULL, malloc(count * sizeof(float)), count};
        }
        CHECK_OK(rig_run(&g, io, &err));
        for (uint32_t i = 1; i < n_io; i++) {
            const gold *record = i < 3 ? gold_path(root, "outputs", theirs[n->by_column][i - 1], NULL)
                                       : gold_path(root, "feature_maps", n->feature[i - 3], NULL);
            snprintf(what, sizeof what, "%s %s %s", device, n->file, io[i].name);
            if (i < 3 && n->by_column)
                io[i].out = turned(io[i].out, io[i].n, i == 1 ? n->classes + 1 : 4);
            gold_compare(t, what, record, io[i].out, io[i].n, 2e-5);
            free(io[i].out);
            free((char *)(uintptr_t)io[i].name);
        }
        free(image);
    }
    rig_close(&g);
    snprintf(name, sizeof name, "%s", n->file);
    printf("%s on %s: %.1f s\n", name, device, sd_now() - start);
    gold_close(root);
}

int main(int argc, char **argv)
{
    gold_tally t = GOLD_TALLY("networks");
    for (uint32_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        if (argc > 2 && !strstr(networks[i].file, argv[2]))
            continue;
        if (argc < 2 || strcmp(argv[1], "cpu") == 0)
            run(&t, &networks[i], "cpu");
        if (networks[i].ref && (argc < 2 || strcmp(argv[1], "ref") == 0))
            run(&t, &networks[i], "ref");
    }
    if (argc < 2)
        gold_done(&t);
    return check_done(argc < 2 ? 500 : 20);
}
