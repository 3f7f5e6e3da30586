/* labels: big */
/* Every convolution of every recipe, planned by the real cuDNN for a described device: as inference and training run it at the recipe's
 * batch, fused as the core's passes leave it, with the gradients that are asked for, in float32, bf16 and fp16. One that cannot be planned
 * within the budget and without the run-time compiler is a failure.
 *     test_cuda_plans [device [recipe.ini ...]]        device: a name in devices/; h200 is what CI asks for
 * Prints a line for each plan, then those that needed the fallback list. */
#include <inttypes.h>
#include <time.h>

#include "check.h"
#include "core/base/folder.h"
#include "core/data/recipe.h"
#include "core/detect/model.h"
#include "core/graph/graph.h"
#include "kernels/kernels.h"
#include "plugins/backend/cuda/dnn_node.h"

enum { MOST = 4096, BUDGET_MIB = 1024, COCO_CLASSES = 80, DENTIST_CLASSES = 4 };

typedef struct use {
    dnn_conv conv;              /* type 0 */
    char recipe[48], layer[80]; /* where it was met first */
    uint32_t times;
} use;

static use uses[MOST];
static uint32_t n_uses;
static sodet_err err = SODET_ERR_INIT;

/* ---- collecting ---- */
static void collect(const sodet_graph *g, const char *recipe)
{
    for (uint32_t i = 0; i < sodet_graph_node_count(g); i++) {
        const sodet_node *n = sodet_graph_node(g, i);
        if (n->op->id != SODET_OP_conv2d)
            continue;
        const dnn_conv c = dnn_conv_of(n, 0);
        uint32_t k = 0;
        while (k < n_uses && memcmp(&uses[k].conv, &c, sizeof c) != 0)
            k++;
        CHECK(k < MOST);
        if (k == MOST)
            return;
        if (k == n_uses) {
            uses[n_uses].conv = c;
            snprintf(uses[k].recipe, sizeof uses[k].recipe, "%s", recipe);
            snprintf(uses[k].layer, sizeof uses[k].layer, "%s", n->layer);
            n_uses++;
        }
        uses[k].times++;
    }
}

/* The number of classes: the recipe's own, else the data set's; sets that are not on every machine are known by name. */
static uint32_t classes_of(sd_config *cfg)
{
    const char *set = sd_config_text(cfg, "data", "train");
    sd_pool pool = {0};
    const char *const *names;
    uint32_t n = 0;
    CHECK_OK(sd_recipe_classes(cfg, &pool, &names, &n, &err));
    sd_pool_clear(&pool);
    if (n)
        return n;
    if (set && strstr(set, "coco"))
        return COCO_CLASSES;
    if (set && strstr(set, "dentist"))
        return DENTIST_CLASSES;
    sd_split split = {0};
    CHECK_OK(sd_split_open(cfg, SD_SPLIT_TRAIN, NULL, 0, &split, &err));
    n = split.dataset ? sd_dataset_classes(split.dataset)->n : 0;
    sd_split_close(&split);
    return n;
}

static void build(const sd_model *m, const sd_graph_options *o, const sd_model_shape *shape, const char *recipe)
{
    sodet_graph *g = NULL;
    CHECK_OK(sd_model_build(m, o, shape, &g, &err));
    if (!g)
        return;
    CHECK_OK(sd_graph_optimize(g, &err));
    if (o->training)
        CHECK_OK(sd_graph_backward(g, &err));
    CHECK_OK(sd_graph_seal(g, &err)); /* what nobody needs goes */
    collect(g, recipe);
    sd_graph_free(g);
}

static void read_recipe(const char *path)
{
    static const uint32_t norms[] = {
        [SD_TRAIN_NORM_SYNC] = SD_NORM_TRAIN, [SD_TRAIN_NORM_LOCAL] = SD_NORM_TRAIN, [SD_TRAIN_NORM_FROZEN] = SD_NORM_FROZEN};
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    sd_config *cfg = NULL;
    sd_model *model = NULL;
    const uint32_t before = n_uses;
    CHECK_OK(sd_config_open(path, NULL, 0, &cfg, &err));
    if (cfg)
        CHECK_OK(sd_model_open(cfg, classes_of(cfg), &model, &err));
    if (model) {
        const sd_core_cfg *core = sd_config_core(cfg);
        const sd_graph_options inference = {.world = 1}, training = {.training = true, .norm = norms[core->train.norm], .world = 1};
        sd_model_shape shape = {.height = core->input.size.height, .width = core->input.size.width, .boxes = 64};
        shape.batch = core->train.val_batch ? core->train.val_batch : core->train.batch;
        build(model, &inference, &shape, name);
        shape.batch = core->train.batch;
        build(model, &training, &shape, name);
        printf("%s: %ux%u, batch %u, %u convolutions that no other has\n", name, shape.width, shape.height, shape.batch, n_uses - before);
    }
    sd_model_close(model);
    sd_config_close(cfg);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void read_all(void)
{
    static char names[64][256];
    uint32_t n = 0;
    char folder[512], path[700];
    snprintf(folder, sizeof folder, "%s", check_source("conf"));
    DIR *d = opendir(folder);
    struct dirent *e = NULL;
    CHECK(d != NULL);
    while (d && sd_folder_next(d, folder, &e, &err) == SODET_OK && e) {
        const char *end = strrchr(e->d_name, '.');
        if (end && strcmp(end, ".ini") == 0 && n < 64)
            snprintf(names[n++], sizeof names[0], "%s", e->d_name);
    }
    if (d)
        closedir(d);
    CHECK(n >= 10);
    qsort(names, n, sizeof names[0], by_name);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        read_recipe(path);
    }
}

/* ---- planning ---- */
static const char *text_of(const use *u, char text[160])
{
    static const char *const part[] = {"y ", "dx", "dw"};
    const dnn_conv *v = &u->conv;
    snprintf(text, 160,
             "%s %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " k%" PRId64 " %" PRId64 "x%" PRId64 " /%" PRId64 " g%" PRId64 " d%" PRId64
             "%s%s%s",
             part[v->part], v->n, v->c, v->h, v->w, v->k, v->r, v->s, v->stride[0], v->groups, v->dilation[0],
             v->residual ? " +residual" : "", v->bias ? " +bias" : "", v->relu ? " +relu" : "");
    return text;
}

typedef struct manner {
    const char *name;
    dnn_options options;
    bool wide_only, table; /* float32 alone; a line for each plan */
} manner;

static void plan_all(const char *json, manner m)
{
    static const struct {
        uint32_t type;
        const char *name;
    } types[] = {{SODET_F32, "fp32"}, {SODET_BF16, "bf16"}, {SODET_F16, "fp16"}};
    static char fallback[3 * MOST][256];
    uint32_t n_fallback = 0, failed = 0, plans = 0;
    char text[160];
    uint64_t largest = 0;
    dnn_context *c = NULL;
    m.options.workspace_limit = (uint64_t)BUDGET_MIB << 20;
    CHECK_OK(dnn_open_described(json, &m.options, &c, &err));
    if (m.table)
        printf("%-56s %-5s %-20s %12s  %s\n", "convolution", "type", "engine", "workspace", "first met");
    for (uint32_t i = 0; c && i < n_uses; i++)
        for (uint32_t t = 0; t < (m.wide_only ? 1 : 3); t++) {
            dnn_conv v = uses[i].conv;
            dnn_plan p;
            v.type = types[t].type;
            err = (sodet_err)SODET_ERR_INIT;
            sodet_status s = dnn_plan_make(c, &v, &p, &err);
            CHECK(s == SODET_OK && p.workspace <= m.options.workspace_limit);
            text_of(&uses[i], text);
            plans++;
            if (m.table)
                printf("%-56s %-5s %-20s %12" PRIu64 "  %s %s\n", text, types[t].name, s == SODET_OK ? p.text : "NONE", p.workspace,
                       uses[i].recipe, uses[i].layer);
            if (s != SODET_OK && failed++ < 20)
                printf("    %s\n", err.text);
            if (strncmp(p.text, "fallback", 8) == 0)
                snprintf(fallback[n_fallback++], sizeof fallback[0], "%s %s: %s", text, types[t].name, p.text);
            largest = p.workspace > largest ? p.workspace : largest;
            dnn_plan_free(&p);
        }
    dnn_close(c);
    printf("%s: %u convolutions, %u plans, %u failed, largest workspace %.1f MiB, %u from the fallback list%s\n", m.name, n_uses, plans,
           failed, (double)largest / 1048576, n_fallback, n_fallback ? ":" : "");
    for (uint32_t i = 0; i < n_fallback; i++)
        printf("    %s\n", fallback[i]);
}

int main(int argc, char **argv)
{
    static char json[8192];
    char path[700];
    snprintf(path, sizeof path, "%s/tests/cuda/devices/%s.json", check_source(""), argc > 1 ? argv[1] : "h200");
    FILE *f = fopen(path, "rb");
    CHECK(f && fread(json, 1, sizeof json - 1, f) > 100);
    if (f)
        fclose(f);
    for (int i = 2; i < argc; i++)
        read_recipe(argv[i]);
    if (argc <= 2)
        read_all();
    const clock_t begin = clock();
    plan_all(json, (manner){.name = "as it comes", .table = true});
    plan_all(json, (manner){.name = "deterministic", .options = {.deterministic = 1}});
    plan_all(json, (manner){.name = "TF32", .options = {.tf32 = 1}, .wide_only = true});
    printf("%.0f s of processor time for the plans\n", (double)(clock() - begin) / CLOCKS_PER_SEC);
    return check_done(argc <= 2 ? 5000 : 3);
}
