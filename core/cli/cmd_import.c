/* Weights of other systems become a checkpoint of sodet: names by a map, shapes by the network that the INI describes. */
#include <stdio.h>
#include <string.h>

#include "core/cli/cli.h"
#include "core/data/recipe.h"
#include "core/detect/model.h"
#include "core/store/checkpoint.h"
#include "core/train/state.h"

/* Values and their index, or safetensors. */
static sodet_status open_weights(sd_cli *cli, const char *path, sd_checkpoint **out, sodet_err *err)
{
    const char *index = sd_cli_flag(cli, "--index");
    return index ? sd_checkpoint_open_raw(path, index, out, err) : sd_checkpoint_open(path, SD_CHECKPOINT_FOREIGN, out, err);
}

static sodet_status list(sd_cli *cli, const char *path, sodet_err *err)
{
    sd_checkpoint *c = NULL;
    sodet_status s = open_weights(cli, path, &c, err);
    if (s != SODET_OK)
        return s;
    for (uint64_t i = 0; i < sd_checkpoint_count(c); i++) {
        const sd_tensor *t = sd_checkpoint_tensor(c, i);
        printf("%s %s", t->name, sd_tensor_type_name(t->type));
        for (uint32_t k = 0; k < t->rank; k++)
            printf("%c%llu", k ? 'x' : ' ', (unsigned long long)t->dims[k]);
        printf("\n");
    }
    sd_checkpoint_close(c);
    return SODET_OK;
}

typedef struct import {
    sd_pool pool;
    sd_split split; /* only where the data sets have to say what the classes are */
    sd_classes classes;
    sd_model *model;
    sodet_graph *graph;
    sd_segments segments;
    sd_tensor *targets;
    sd_load_report report;
} import;

static sodet_status find_classes(import *m, sd_config *cfg, sodet_err *err)
{
    const char *const *names;
    uint32_t n;
    sodet_status s = sd_recipe_classes(cfg, &m->pool, &names, &n, err);
    if (s != SODET_OK)
        return s;
    if (n == 0) {
        s = sd_split_open(cfg, SD_SPLIT_TRAIN, NULL, 0, &m->split, err);
        if (s == SODET_OK)
            m->classes = *sd_dataset_classes(m->split.dataset);
        return s == SODET_OK ? s : sd_fail_in(err, s, "the classes are needed: give [data] classes, or the data ([data] train)");
    }
    int64_t *ids = sd_pool_alloc(&m->pool, n * sizeof *ids);
    if (!ids)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int64_t)i + 1;
    m->classes = (sd_classes){.n = n, .names = names, .category_id = ids};
    return SODET_OK;
}

/* The network's parameters and buffers, with room for their values. */
static sodet_status find_targets(import *m, sd_config *cfg, sodet_err *err)
{
    const sd_input_cfg *input = &sd_config_core(cfg)->input;
    const sd_graph_options options = {.training = false};
    const sd_model_shape shape = {.batch = 1, .height = input->size.height, .width = input->size.width, .boxes = 1};
    sodet_status s = sd_model_open(cfg, m->classes.n, &m->model, err);
    if (s == SODET_OK)
        s = sd_model_build(m->model, &options, &shape, &m->graph, err);
    if (s == SODET_OK)
        s = sd_segments_make(m->graph, &m->segments, err);
    if (s == SODET_OK && !(m->targets = sd_alloc(m->segments.n + 1, sizeof *m->targets)))
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    for (uint32_t i = 0; s == SODET_OK && i < m->segments.n; i++) {
        const sd_segment *g = &m->segments.segment[i];
        m->targets[i] = (sd_tensor){.name = g->name, .type = SD_F32, .rank = g->shape.rank, .data = sd_alloc((size_t)g->n, sizeof(float))};
        for (uint32_t k = 0; k < g->shape.rank; k++)
            m->targets[i].dims[k] = (uint64_t)g->shape.dim[k];
        if (!m->targets[i].data)
            s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory: \"%s\"", g->name);
    }
    return s;
}

static sodet_status take(import *m, sd_cli *cli, const char *path, sodet_err *err)
{
    const char *map_path = sd_cli_flag(cli, "--map");
    sd_name_map *map = NULL;
    sd_checkpoint *c = NULL;
    sodet_status s = map_path ? sd_name_map_read(map_path, &map, err) : SODET_OK;
    if (s == SODET_OK)
        s = open_weights(cli, path, &c, err);
    if (s == SODET_OK) {
        const sd_load_rule rule = {.map = map, .prefix = sd_cli_flag(cli, "--prefix"), .exact = !sd_cli_flag(cli, "--partial")};
        s = sd_checkpoint_load_partial(c, m->targets, m->segments.n, &rule, NULL, NULL, &m->report, err);
    }
    sd_checkpoint_close(c);
    sd_name_map_free(map);
    return s;
}

/* What was not taken is left out of the file, so that run.init starts it afresh. */
static sodet_status put(import *m, sd_config *cfg, const char *path, sodet_err *err)
{
    uint64_t n = 0, values = 0;
    for (uint32_t i = 0; i < m->segments.n; i++) {
        if (m->report.entries[i].state != SD_TAKEN)
            continue;
        sd_tensor kept = m->targets[i];
        m->targets[i] = m->targets[n];
        m->targets[n++] = kept;
        values += m->segments.segment[i].buffer ? 0 : m->segments.segment[i].n;
    }
    const sd_run_facts facts = {.cfg = cfg, .model = m->model, .classes = &m->classes};
    sodet_status s = sd_state_write_weights(&facts, m->targets, n, path, err);
    if (s == SODET_OK)
        printf("%s: %llu of %u tensors, %llu parameters\n", path, (unsigned long long)n, m->segments.n, (unsigned long long)values);
    return s;
}

static void print_report(const import *m, bool all)
{
    sd_text text = {0};
    sd_load_report_print(&m->report, !all, &text);
    if (text.text)
        fputs(text.text, stderr);
    sd_text_free(&text);
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    const char *listed = sd_cli_flag(cli, "--list"), *to = sd_cli_flag(cli, "--out");
    if (listed)
        return list(cli, listed, err);
    if (!cli->ini || cli->n_files != 1 || !to)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "an INI file that describes the network, one file of weights and --out are needed: `sodet import x.ini "
                          "weights.safetensors --map names.map --out weights.sodet`");
    sd_config *cfg = NULL;
import m = {.targets = NULL };
    sodet_status s = sd_cli_config(cli, &cfg, err);
    if (s == SODET_OK)
        s = find_classes(&m, cfg, err);
    if (s == SODET_OK)
        s = find_targets(&m, cfg, err);
    if (s == SODET_OK)
        s = take(&m, cli, cli->files[0], err);
    print_report(&m, cli->verbose);
    if (s == SODET_OK)
        s = put(&m, cfg, to, err);
    for (uint32_t i = 0; m.targets && i < m.segments.n; i++)
        sd_free(m.targets[i].data);
    sd_free(m.targets);
    sd_load_report_free(&m.report);
    sd_segments_free(&m.segments);
    sd_graph_free(m.graph);
    sd_model_close(m.model);
    sd_split_close(&m.split);
    sd_pool_clear(&m.pool);
    sd_config_close(cfg);
    return s;
}

static const sd_flag flags[] = {
    {"--out", sd_written_file, "the checkpoint to write: weights alone, for run.init, eval and detect"},
    {"--map", "FILE", "a name map: their/name -> our/name [transpose], one a line (conf/maps/)"},
    {"--index", "FILE", "the weights are raw float32; this file has name, shape, offset and count of each tensor"},
    {"--prefix", "TEXT", "only tensors whose names begin so; it is cut off"},
    {"--partial", NULL, "tensors that the file lacks, or has in another shape, may be missing"},
    {"--list", "FILE", "only print the names, types and shapes of a file"},
    {0}};
const sd_command sd_cmd_import;
const sd_command sd_cmd_import = {
    .name = "import",
    .synopsis = "x.ini weights.safetensors|weights.pth [--map FILE] --out FILE | x.ini values.f32 --index values.tsv [--map FILE] --out "
                "FILE | --list FILE",
    .summary = "weights of another system, as a checkpoint",
    .help =
        "The INI describes the network; every one of its tensors must be found in the file under the name that the map gives it, in "
        "the same\n"
        "shape. What was skipped, and what of the file was not used, is listed; with -v what was taken too.\n"
        "PyTorch's .pt and .pth files are read as data, nothing in them is executed; --list shows their names: `--prefix model.` for those "
        "below\n"
        "the key \"model\".",
    .takes = SD_TAKES_INI | SD_TAKES_FILES,
    .flags = flags,
    .run = run,
};
