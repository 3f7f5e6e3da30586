/* sodet bench x.ini [inference|training] --estimate DEVICE: the least time that a device could take, layer by layer: a node takes as long as
 * its arithmetic at the device's peak or as its bytes at the memory's bandwidth, whichever is longer (Williams et al. 2009, roofline).
 * Nodes are those that a backend gets, convolutions fused with bias, residual and activation; every input is read once and every output
 * written once, and nothing stays in a cache from one node to the next. No launch, no waiting: what is measured is slower. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/bench.h"
#include "core/cli/network.h"
#include "core/report/layers.h"
#include "core/train/optimizer.h"
#include "core/train/scale.h"
#include "kernels/kernels.h"

enum { FP32, TF32, NARROW, WAYS, SHOWN = 10 };
static const char *const ways[WAYS] = {"fp32", "tf32", "bf16 or fp16"};

/* Peaks as NVIDIA gives them, dense: data sheets of the H200 SXM (2024), the H100 SXM (2023), the A100 80 GB SXM (2021), the V100 SXM2 (2018,
 * which has neither TF32 nor bf16). vector: float32 outside of tensor cores. */
static const struct device {
    const char *name, *title;
    double memory, vector, peak[WAYS];
} devices[] = {
    {"h200", "H200 SXM", 4.8e12, 67e12, {67e12, 494e12, 989e12}},
    {"h100", "H100 SXM", 3.35e12, 67e12, {67e12, 494e12, 989e12}},
    {"a100", "A100 80 GB SXM", 2.039e12, 19.5e12, {19.5e12, 156e12, 312e12}},
    {"v100", "V100 SXM2", 0.9e12, 15.7e12, {15.7e12, 0, 125e12}},
};

typedef struct estimate {
    const struct device *device;
    double seconds, arithmetic, convolutions; /* of a step; of it: bound by arithmetic; in convolutions */
} estimate;

static const struct device *find(const char *name)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(devices[i].name, name) == 0)
            return &devices[i];
    return NULL;
}

/* Maps, and what a convolution reads of parameters, have the narrow type; all else is float32 or int32. */
static double bytes_of(const sodet_graph *g, const sodet_node *n, uint32_t way)
{
    double bytes = 0;
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        const bool in = i < n->n_in;
        const sodet_value v = in ? n->in[i] : n->out[i - n->n_in];
        const sodet_shape *s = in ? &n->in_shape[i] : &n->out_shape[i - n->n_in];
        if (!v.id)
            continue;
        const bool map =
            s->dtype == SODET_F32 && s->rank == 4 && (n->op->id == SODET_OP_conv2d || sodet_graph_value(g, v)->store == SODET_STORE_WORK);
        bytes += (double)sodet_elements(s) * (map && way == NARROW ? 2 : 4);
    }
    return bytes;
}

static void add_graph(const sodet_graph *g, uint32_t way, estimate *e, double *seconds)
{
    for (uint32_t i = 0; i < sodet_graph_node_count(g); i++) {
        const sodet_node *n = sodet_graph_node(g, i);
        if (n->op->flags & (SODET_OP_VIEW | SODET_OP_COLLECTIVE))
            continue;
        sodet_cost cost = {0};
        if (n->op->cost)
            n->op->cost(n, &cost);
        const bool conv = n->op->id == SODET_OP_conv2d;
        const double compute = (double)cost.flops / (conv ? e->device->peak[way] : e->device->vector),
                     memory = bytes_of(g, n, way) / e->device->memory, took = compute > memory ? compute : memory;
        e->seconds += took;
        e->arithmetic += compute > memory ? took : 0;
        e->convolutions += conv ? took : 0;
        if (seconds)
            seconds[i] = took;
    }
}

static int slower_first(const void *a, const void *b)
{
    const sd_layer *x = a, *y = b;
    const double d = (y->forward + y->backward) - (x->forward + x->backward);
    return d > 0 ? 1 : d < 0 ? -1 : 0;
}

static sodet_status print_layers(const sodet_graph *g, const sd_segments *segments, const double *seconds, double all, sodet_err *err)
{
    sd_layers l = {0};
    sodet_status s = sd_layers_make(g, segments, seconds, NULL, NULL, &l, err);
    if (s == SODET_OK && l.n)
        qsort(l.layer, l.n, sizeof *l.layer, slower_first);
    if (s == SODET_OK)
        printf("\nin bf16 or fp16, the longest of %u layers:\n", l.n);
    for (uint32_t i = 0; s == SODET_OK && i < l.n && i < SHOWN; i++) {
        const sd_layer *x = &l.layer[i];
        const double took = x->forward + x->backward;
        char amount[32];
        printf("  %-40.40s %-16.16s %8.1f us  %4.1f %%  %s FLOP\n", *x->path ? x->path : "-", x->op, took * 1e6, 100 * took / all,
               sd_cli_amount((double)x->cost.flops, amount));
    }
    sd_layers_free(&l);
    return s;
}

static sodet_status add_update(const sd_cli_network *net, const sd_segments *segments, sodet_graph **out, sodet_err *err)
{
    sd_slots slots;
    const sd_update_options o = {.scaled = sd_loss_scaled(net->core), .world = 1, .losses = net->core->optimizer.accumulate};
    sodet_status s = sd_slots_of(&net->core->optimizer, &slots, err);
    return s == SODET_OK ? sd_update_build(&net->core->optimizer, &slots, segments, &o, out, err) : s;
}

static void print_json(const sd_cli_network *net, const estimate *e, bool training, uint32_t batch)
{
    printf("{\"mode\": \"%s\", \"device\": \"%s\", \"batch\": %u, \"width\": %u, \"height\": %u, \"estimates\": [",
           training ? "training" : "inference", e->device->name, batch, net->core->input.size.width, net->core->input.size.height);
    for (uint32_t w = 0, n = 0; w < WAYS; w++)
        if (e->device->peak[w] > 0)
            printf(
                "%s{\"precision\": \"%s\", \"seconds\": %.6g, \"images_per_second\": %.6g, \"arithmetic\": %.4f, \"convolutions\": %.4f}",
                n++ ? ", " : "", w == NARROW ? "bf16" : ways[w], e[w].seconds, batch / e[w].seconds, e[w].arithmetic / e[w].seconds,
                e[w].convolutions / e[w].seconds);
    printf("]}\n");
}

static void print_text(const sd_cli_network *net, const estimate *e, bool training, uint32_t batch)
{
    printf("%s on one %s: at most, with %u pictures of %u x %u a step\n", training ? "training" : "inference", e->device->title, batch,
           net->core->input.size.width, net->core->input.size.height);
    printf("  %-14s %10s %12s %24s %14s\n", "", "ms", "img/s", "bound by arithmetic", "convolutions");
    for (uint32_t w = 0; w < WAYS; w++)
        if (e->device->peak[w] > 0)
            printf("  %-14s %10.3f %12.0f %22.0f %% %12.0f %%\n", ways[w], e[w].seconds * 1e3, batch / e[w].seconds,
                   100 * e[w].arithmetic / e[w].seconds, 100 * e[w].convolutions / e[w].seconds);
}

sodet_status sd_bench_estimate(sd_cli *cli, const char *name, bool training, uint32_t batch, sodet_err *err)
{
    const struct device *device = find(name);
    if (!device)
        return SODET_FAIL(err, SODET_E_INVALID, "--estimate %s: h200, h100, a100 or v100 is expected", name);
    sd_cli_network net = {0};
    sd_segments segments = {0};
    sodet_graph *g = NULL, *update = NULL;
    double *seconds = NULL;
    estimate e[WAYS] = {{.device = device}, {.device = device}, {.device = device}};
    sodet_status s = sd_cli_network_open(cli, &net, err);
    if (s == SODET_OK) {
        batch = batch ? batch : training ? net.core->train.batch : 1;
        const sd_model_shape shape = {
            .batch = batch, .height = net.core->input.size.height, .width = net.core->input.size.width, .boxes = 64};
        s = training ? sd_cli_training_graph(&net, 1, &shape, &segments, &g, err)
                     : sd_cli_inference_graph(&net, &shape, &segments, &g, err);
    }
    if (s == SODET_OK && training)
        s = add_update(&net, &segments, &update, err);
    if (s == SODET_OK && !(seconds = sd_alloc(sodet_graph_node_count(g) + 1, sizeof *seconds)))
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory: an estimate");
    for (uint32_t w = 0; s == SODET_OK && w < WAYS; w++) {
        if (!(device->peak[w] > 0))
            continue;
        add_graph(g, w, &e[w], w == NARROW ? seconds : NULL);
        if (update)
            add_graph(update, w, &e[w], NULL);
    }
    if (s == SODET_OK && cli->json)
        print_json(&net, e, training, batch);
    else if (s == SODET_OK)
        print_text(&net, e, training, batch);
    if (s == SODET_OK && !cli->json && sd_cli_flag(cli, "--layers"))
        s = print_layers(g, &segments, seconds, e[NARROW].seconds, err);
    sd_free(seconds);
    sd_graph_free(update);
    sd_graph_free(g);
    sd_segments_free(&segments);
    sd_cli_network_close(&net);
    return s;
}
