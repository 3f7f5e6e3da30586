/* sodet summary: the network of a configuration, layer by layer, and what it will need on its devices. Reads no picture. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cli/network.h"
#include "core/data/recipe.h"
#include "core/device/program.h"
#include "core/report/layers.h"
#include "core/train/optimizer.h"
#include "core/train/scale.h"

enum { BOXES = 64 }; /* rows of truth per picture that a training plan is made for; the data set's largest count is not known here */

typedef struct use { /* of one device's memory */
    bool made;
    uint32_t batch; /* rows of this device */
    uint64_t parameters, frozen, gradients, state, work, own, total;
} use;

typedef struct pictures { /* [data] pixels = device: what there is room for, as far as annotations tell sizes */
    uint64_t bytes;       /* of the largest, as the loader rounds it; 0: none is known */
    uint64_t unknown;     /* pictures whose size only their file tells */
    sodet_err missing;    /* no data, and why; text[0] == 0: it was there */
} pictures;

typedef struct summary {
    sd_cli_network net;
    uint32_t batch;
    sd_layers layers;
    sd_segments segments;
    sodet_cost cost;
    uint64_t parameters;
    sd_device_pool *pool; /* NULL: --no-plan */
    use inference, training;
    pictures seen, learnt; /* by evaluation, by training */
    /* of the job */
    const sodet_graph *graph;
    use *at;
    bool says; /* implementations are wanted */
} summary;

/* ---- the plan ---- */
static void said(void *context, uint32_t node, const char *how)
{
    summary *s = context;
    const sodet_node *n = sodet_graph_node(s->graph, node);
    for (uint32_t i = 0; i < s->layers.n; i++) {
        sd_layer *x = &s->layers.layer[i];
        size_t k = strcspn(x->op, " ");
        if (!x->how && strcmp(x->path, n->layer) == 0 && strlen(n->op->name) == k && memcmp(n->op->name, x->op, k) == 0)
            x->how = sd_pool_strdup(&s->layers.pool, how);
    }
}

static sodet_status plan_job(sd_replica *r, void *context, sodet_err *err)
{
    summary *s = context;
    uint64_t work, own;
    sodet_status status = sd_program_plan(r, s->graph, &work, &own, s->says ? said : NULL, s, err);
    if (work > s->at->work)
        s->at->work = work;
    s->at->own += own;
    return status;
}

static sodet_status plan(summary *s, const sodet_graph *g, use *at, bool says, sodet_err *err)
{
    s->graph = g;
    s->at = at;
    s->says = says;
    return sd_device_pool_run_one(s->pool, 0, plan_job, s, err);
}

static void add_up(use *u, const sd_segments *segments, uint64_t state, bool training, uint64_t real)
{
    u->made = true;
    u->parameters = segments->param_elements * real;
    u->frozen = segments->frozen_elements * real;
    u->gradients = training ? u->parameters : 0;
    u->state = u->parameters * state;
    u->total = u->parameters + u->frozen + u->gradients + u->state + u->work + u->own;
}

/* As the loader does when it is opened, but for the files. */
static void find_pictures(summary *s, uint32_t which, pictures *out)
{
    sd_split split = {0};
    uint64_t most = 0;
    out->missing = (sodet_err)SODET_ERR_INIT;
    sodet_status status = sd_split_open(s->net.cfg, which, NULL, 0, &split, &out->missing);
    for (uint64_t i = 0; status == SODET_OK && i < sd_dataset_size(split.dataset); i++) {
        const sd_item *item = sd_dataset_item(split.dataset, i);
        const uint64_t bytes = (uint64_t)item->width * item->height * 3;
        out->unknown += bytes == 0;
        most = bytes > most ? bytes : most;
    }
    out->bytes = sodet_pixels_units(most) * SODET_PIXELS_UNIT;
    sd_split_close(&split);
}

static sodet_status plan_inference(summary *s, sodet_err *err)
{
    const sodet_size2d size = s->net.core->input.size;
    const sd_model_shape shape = {
        .batch = s->batch, .height = size.height, .width = size.width, .boxes = 1, .picture_bytes = s->seen.bytes};
    sodet_graph *g = NULL;
    sodet_status status = sd_cli_inference_graph(&s->net, &shape, &s->segments, &g, err);
    s->inference.batch = s->batch;
    if (status == SODET_OK)
        status = plan(s, g, &s->inference, true, err);
    if (status == SODET_OK)
        add_up(&s->inference, &s->segments, 0, false, sd_device_pool_replica(s->pool, 0)->real_size);
    sd_graph_free(g);
    return status;
}

static sodet_status plan_training(summary *s, sodet_err *err)
{
    const sd_core_cfg *core = s->net.core;
    const sodet_size2d size = core->input.size;
    uint32_t devices = sd_device_pool_count(s->pool);
    s->training.batch = (core->train.batch + devices - 1) / devices;
    const sd_model_shape shape = {
        .batch = s->training.batch, .height = size.height, .width = size.width, .boxes = BOXES, .picture_bytes = s->learnt.bytes};
    sd_segments segments = {0};
    sd_slots slots;
    sodet_graph *gradient = NULL, *update = NULL, *accumulate = NULL;
    sodet_status status = sd_slots_of(&core->optimizer, &slots, err);
    if (status == SODET_OK)
        status = sd_cli_training_graph(&s->net, devices, &shape, &segments, &gradient, err);
    if (status == SODET_OK)
        status = plan(s, gradient, &s->training, false, err);
    const sd_update_options o = {.scaled = sd_loss_scaled(core),
                                 .world = devices,
                                 .losses = core->optimizer.accumulate * (gradient ? sd_graph_loss_count(gradient) : 1)};
    if (status == SODET_OK)
        status = sd_update_build(&core->optimizer, &slots, &segments, &o, &update, err);
    if (status == SODET_OK)
        status = plan(s, update, &s->training, false, err);
    if (status == SODET_OK && slots.accumulator != UINT32_MAX) {
        status = sd_accumulate_build(&slots, &segments, &accumulate, err);
        if (status == SODET_OK)
            status = plan(s, accumulate, &s->training, false, err);
    }
    if (status == SODET_OK)
        add_up(&s->training, &segments, slots.n, true, sd_device_pool_replica(s->pool, 0)->real_size);
    sd_graph_free(gradient);
    sd_graph_free(update);
    sd_graph_free(accumulate);
    sd_segments_free(&segments);
    return status;
}

/* ---- the layers ---- */
static sodet_status list_layers(summary *s, sodet_err *err)
{
    const sodet_size2d size = s->net.core->input.size;
    const sd_graph_options options = {.training = false, .world = 1};
    const sd_model_shape shape = {.batch = s->batch, .height = size.height, .width = size.width, .boxes = 1};
    sodet_graph *g = NULL;
    sodet_status status = sd_model_build(s->net.model, &options, &shape, &g, err);
    if (status == SODET_OK)
        status = sd_segments_make(g, &s->segments, err);
    if (status == SODET_OK)
        status = sd_layers_make(g, &s->segments, NULL, NULL, NULL, &s->layers, err);
    s->parameters = s->segments.parameter_count;
    for (uint32_t i = 0; status == SODET_OK && i < s->layers.n; i++) {
        const sodet_cost *c = &s->layers.layer[i].cost;
        s->cost.macs += c->macs;
        s->cost.flops += c->flops;
        s->cost.bytes += c->bytes;
    }
    sd_graph_free(g);
    return status;
}

/* ---- printing ---- */
static const char *shape_text(const sd_layer *x, char text[64])
{
    int at = 0;
    text[0] = '\0';
    for (uint32_t i = 1; i < x->out.rank && x->same && at < 48; i++)
        at += snprintf(text + at, 64 - (size_t)at, "%s%lld", i > 1 ? "x" : "", (long long)x->out.dim[i]);
    return text;
}

static void print_use(const char *what, const use *u)
{
    const double mib = 1.0 / 1048576;
    if (!u->made)
        return;
    printf("  %s, batch %u: %.1f MiB = parameters %.1f", what, u->batch, (double)u->total * mib, (double)(u->parameters + u->frozen) * mib);
    if (u->gradients)
        printf(" + gradients %.1f + optimizer %.1f", (double)u->gradients * mib, (double)u->state * mib);
    printf(" + activations %.1f + inputs, outputs, copies of weights %.1f\n", (double)u->work * mib, (double)u->own * mib);
}

/* What of [data] pixels = device is in the figures, and what is not. */
static void print_pictures(const char *what, const use *u, const pictures *p)
{
    if (!u->made)
        return;
    printf("  %s, pixels made on the device: ", what);
    if (p->bytes)
        printf("pictures of up to %.2f MiB, %.2f MiB for a batch, are among the inputs", (double)p->bytes / 1048576,
               (double)(p->bytes * u->batch) / 1048576);
    if (p->bytes && p->unknown)
        printf("; ");
    if (p->unknown)
        printf("%" PRIu64 " pictures whose annotations do not tell their size are not counted and may be larger", p->unknown);
    if (p->missing.text[0])
        printf("pictures are not counted, since the data cannot be asked: %s", p->missing.text);
    printf("\n");
}

static void print_text(const summary *s, bool verbose)
{
    char a[32], b[32], shape[64], op[80];
    int wide = 12;
    for (uint32_t i = 0; i < s->layers.n; i++) {
        int k = (int)strlen(s->layers.layer[i].path);
        wide = k > wide ? k : wide;
    }
    printf("%-*s  %-18s %-14s %12s %10s%s\n", wide, "layer", "operator", "output", "parameters", "MACs", verbose ? "  implementation" : "");
    for (uint32_t i = 0; i < s->layers.n; i++) {
        const sd_layer *x = &s->layers.layer[i];
        snprintf(op, sizeof op, x->uses > 1 ? "%.60s *%u" : "%.60s", x->op, x->uses);
        printf("%-*s  %-18s %-14s %12s %10s", wide, x->path, op, shape_text(x, shape), x->parameters ? sd_cli_count(x->parameters, a) : "",
               sd_cli_amount((double)x->cost.macs, b));
        if (verbose)
            printf("  %s", x->how ? x->how : "");
        printf("\n");
    }
    printf("%-*s  %-18s %-14s %12s %10s\n", wide, "total", "", "", sd_cli_count(s->parameters, a), sd_cli_amount((double)s->cost.macs, b));
    printf("\ninput %ux%u, batch %u, %u classes: %sFLOPs, %sB read and written\n", s->net.core->input.size.width,
           s->net.core->input.size.height, s->batch, s->net.n_classes, sd_cli_amount((double)s->cost.flops, a),
           sd_cli_amount((double)s->cost.bytes, b));
    if (!s->pool)
        return;
    uint32_t n = sd_device_pool_count(s->pool);
    printf("memory on %s%s, %u threads:\n", n > 1 ? "each device, as on " : "", sd_device_pool_replica(s->pool, 0)->name,
           sd_device_pool_threads(s->pool));
    print_use("inference", &s->inference);
    print_use("training", &s->training);
    if (s->net.core->data.pixels == SD_PIXELS_DEVICE) {
        print_pictures("inference", &s->inference, &s->seen);
        print_pictures("training", &s->training, &s->learnt);
    }
}

static void json_use(sd_text *t, const char *what, const use *u, const pictures *p)
{
    if (u->made)
        sd_text_printf(t,
                       ", \"%s\": {\"batch\": %u, \"parameters\": %" PRIu64 ", \"frozen\": %" PRIu64 ", \"gradients\": %" PRIu64
                       ", \"state\": %" PRIu64 ", \"activations\": %" PRIu64 ", \"own\": %" PRIu64 ", \"picture_bytes\": %" PRIu64
                       ", \"pictures_unknown\": %" PRIu64 ", \"total\": %" PRIu64 "}",
                       what, u->batch, u->parameters, u->frozen, u->gradients, u->state, u->work, u->own, p->bytes, p->unknown, u->total);
}

static void json_layer(sd_text *t, const sd_layer *x, bool first)
{
    sd_text_printf(t, "%s\n  {\"path\": ", first ? "" : ",");
    sd_json_write_string(t, x->path);
    sd_text_printf(t, ", \"operator\": ");
    sd_json_write_string(t, x->op);
    sd_text_printf(t, ", \"output\": [");
    for (uint32_t k = 0; k < x->out.rank; k++)
        sd_text_printf(t, "%s%lld", k ? ", " : "", (long long)x->out.dim[k]);
    sd_text_printf(t, "], \"uses\": %u, \"parameters\": %" PRIu64 ", \"macs\": %" PRIu64 ", \"flops\": %" PRIu64 ", \"bytes\": %" PRIu64,
                   x->uses, x->parameters, x->cost.macs, x->cost.flops, x->cost.bytes);
    if (x->how) {
        sd_text_printf(t, ", \"implementation\": ");
        sd_json_write_string(t, x->how);
    }
    sd_text_printf(t, "}");
}

static sodet_status print_json(const summary *s, sodet_err *err)
{
    sd_text t = {0};
    sd_text_printf(&t, "{\"layers\": [");
    for (uint32_t i = 0; i < s->layers.n; i++)
        json_layer(&t, &s->layers.layer[i], i == 0);
    sd_text_printf(&t,
                   "\n ], \"parameters\": %" PRIu64 ", \"macs\": %" PRIu64 ", \"flops\": %" PRIu64 ", \"bytes\": %" PRIu64
                   ", \"batch\": %u, \"width\": %u, \"height\": %u, \"classes\": %u",
                   s->parameters, s->cost.macs, s->cost.flops, s->cost.bytes, s->batch, s->net.core->input.size.width,
                   s->net.core->input.size.height, s->net.n_classes);
    if (s->pool) {
        sd_text_printf(&t, ",\n \"plan\": {\"device\": ");
        sd_json_write_string(&t, sd_device_pool_replica(s->pool, 0)->name);
        sd_text_printf(&t, ", \"devices\": %u, \"threads\": %u", sd_device_pool_count(s->pool), sd_device_pool_threads(s->pool));
        json_use(&t, "inference", &s->inference, &s->seen);
        json_use(&t, "training", &s->training, &s->learnt);
        sd_text_printf(&t, "}");
    }
    sd_text_printf(&t, "}\n");
    return sd_cli_say(&t, err);
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    summary s = {0};
    uint64_t batch;
    sodet_status status = sd_cli_flag_uint(cli, "--batch", 1, 1, &batch, err);
    if (status == SODET_OK && batch > 65536)
        status = SODET_FAIL(err, SODET_E_INVALID, "--batch %" PRIu64 ": at most 65536", batch);
    s.batch = (uint32_t)batch;
    if (status == SODET_OK && sd_cli_flag(cli, "--plan") && sd_cli_flag(cli, "--no-plan"))
        status = SODET_FAIL(err, SODET_E_INVALID, "--plan and --no-plan: one of them, please");
    if (status == SODET_OK)
        status = sd_cli_network_open(cli, &s.net, err);
    if (status == SODET_OK)
        status = list_layers(&s, err);
    if (status == SODET_OK && !sd_cli_flag(cli, "--no-plan")) {
        if (s.net.core->data.pixels == SD_PIXELS_DEVICE) {
            find_pictures(&s, SD_SPLIT_TRAIN, &s.learnt);
            if (sd_recipe_validates(s.net.cfg))
                find_pictures(&s, SD_SPLIT_VAL, &s.seen);
            else
                s.seen = s.learnt;
        }
        status = sd_device_pool_open(s.net.cfg, &s.pool, err);
        if (status == SODET_OK)
            status = plan_inference(&s, err);
        if (status == SODET_OK)
            status = plan_training(&s, err);
        if (status != SODET_OK)
            sd_fail_in(err, status, "the plan (--no-plan leaves it out)");
    }
    if (status == SODET_OK && cli->json)
        status = print_json(&s, err);
    else if (status == SODET_OK)
        print_text(&s, cli->verbose);
    sd_device_pool_close(s.pool);
    sd_layers_free(&s.layers);
    sd_segments_free(&s.segments);
    sd_cli_network_close(&s.net);
    return status;
}

static const sd_flag flags[] = {
    {"--batch", "N", "pictures of the inference plan, and what layers are counted for (1)"},
    {"--classes", "N", "number of classes, where neither [data] classes nor the data say it"},
    {"--plan", NULL, "also the memory it will take, which is planned and not allocated (done unless --no-plan)"},
    {"--no-plan", NULL, "the network alone: no device is opened"},
    {0}};
const sd_command sd_cmd_summary;
const sd_command sd_cmd_summary = {
    .name = "summary",
    .synopsis = "x.ini [section.key=value ...] [--batch N] [--classes N] [--plan | --no-plan] [--verbose] [--json]",
    .summary = "the network, layer by layer, and the memory it is planned to take",
    .help =
        "One line per layer: path, operator (*N: used N times), output without the batch, parameters, multiply-adds. Operators without a\n"
        "name of their own are one line per scope and sort. FLOPs count everything, a multiply-add as two. --verbose: what the device "
        "will\n"
        "run each layer with; one that has no word there was folded into its neighbour. Memory is per device, for inference at --batch "
        "and\n"
        "for training at the device's share of [train] batch.\n"
        "--json: {\"layers\": [{\"path\", \"operator\", \"output\", \"uses\", \"parameters\", \"macs\", \"flops\", \"bytes\", "
        "\"implementation\"}], \"parameters\",\n"
        "\"macs\", \"flops\", \"bytes\", \"batch\", \"width\", \"height\", \"classes\", \"plan\": {\"device\", \"devices\", \"threads\", "
        "\"inference\" and \"training\":\n"
        "{\"batch\", \"parameters\", \"frozen\", \"gradients\", \"state\", \"activations\", \"own\", \"picture_bytes\", "
        "\"pictures_unknown\", \"total\"}}},\n"
        "memory in bytes. picture_bytes: with [data] pixels = device there is, in \"own\", room for a batch of pictures of so many each, "
        "the\n"
        "largest that annotations tell of; pictures_unknown: those whose size they do not tell.",
    .takes = SD_TAKES_INI | SD_NEEDS_INI | SD_TAKES_JSON,
    .flags = flags,
    .run = run,
};
