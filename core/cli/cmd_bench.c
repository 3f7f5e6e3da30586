/* sodet bench: how fast a network runs, on random pixels and weights; or how fast its data come. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/cli/bench.h"
#include "core/cli/network.h"
#include "core/data/model_assigner.h"
#include "core/data/recipe.h"
#include "core/data/send.h"
#include "core/device/program.h"
#include "core/report/layers.h"
#include "core/report/peak.h"
#include "core/train/usage.h"

enum { OBJECTS = 8 };
enum { INFERENCE, TRAINING, DATA, EVALUATOR, MODES };
static const char *const modes[MODES] = {"inference", "training", "data", "evaluator"};

typedef struct bench {
    sd_cli *cli;
    sd_cli_network net;
    uint32_t mode, batch, height, width;
    bool detections; /* inference with decoding and suppression */
    bool on_data;    /* training on [data] train */
    double seconds;
    sd_device_pool *pool;
    uint32_t devices;
    sd_segments segments; /* of inference; the stepper has its own */
    sd_programs *programs;
    sd_program **program;
    uint32_t *dealt;
    sd_stepper *stepper;
    const sd_batch **batches; /* [optimizer] accumulate times the one batch */
    sd_batch data;
    double *node_seconds;
    uint64_t step;
    sd_split split;
    sd_loader *loader;
    /* results */
    double *took;
    uint64_t n, capacity, images;
    double faults, planned, heap;
    sd_layers layers;
    double in_layers; /* seconds of a step */
    double peak;      /* floating-point operations a second that the threads of the layers could do at most */
    double cpu;       /* processor seconds of a step */
    double wait;      /* training on [data]: the share of the time in which it waited for data */
    sd_usage usage;   /* of training */
} bench;

/* ---- a random batch ---- */
static sodet_status make_pixels(bench *b, uint32_t rows, sodet_err *err)
{
    uint32_t channels = b->net.core->input.channels == SD_CHANNELS_GREY ? 1 : 3;
    uint64_t n = (uint64_t)rows * channels * b->height * b->width;
    b->data = (sd_batch){.n = rows, .global_n = rows, .steps = 1, .height = b->height, .width = b->width, .channels = channels};
    b->data.image = sd_alloc((size_t)n, sizeof(float));
    if (!b->data.image)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a batch of %u", rows);
    sodet_stream r = sd_stream((uint64_t)b->net.core->run.seed, 0, 0, 0);
    for (uint64_t i = 0; i < n; i++)
        b->data.image[i] = (float)sodet_stream_uniform(&r, -1, 1);
    return SODET_OK;
}

/* Objects of a fifth to half of the picture, and what the head assigns to them. */
static sodet_status make_truth(bench *b, sodet_err *err)
{
    const sd_model_grid *grid;
    sodet_status s = sd_model_grid_of(b->net.model, b->height, b->width, &grid, err);
    if (s != SODET_OK)
        return s;
    sd_batch *d = &b->data;
    uint64_t rows = d->n, anchors = grid->anchors->n;
    d->n_anchors = (uint32_t)anchors;
    d->max_objects = OBJECTS;
    d->index = sd_alloc((size_t)(rows * anchors), sizeof *d->index);
    d->truth = sd_alloc((size_t)rows * OBJECTS, 4 * sizeof *d->truth);
    d->label = sd_alloc((size_t)rows * OBJECTS, sizeof *d->label);
    d->flags = sd_alloc((size_t)rows * OBJECTS, sizeof *d->flags);
    d->items = sd_alloc((size_t)rows, sizeof *d->items);
    if (!d->index || !d->truth || !d->label || !d->flags || !d->items)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a batch of %u", d->n);
    sodet_stream r = sd_stream((uint64_t)b->net.core->run.seed, 0, 1, 0);
    for (uint64_t i = 0; i < rows && s == SODET_OK; i++) {
        float *box = d->truth + i * OBJECTS * 4;
        for (uint32_t k = 0; k < OBJECTS; k++, box += 4) {
            double w = b->width * sodet_stream_uniform(&r, 0.2, 0.5), h = b->height * sodet_stream_uniform(&r, 0.2, 0.5);
            double x = sodet_stream_uniform(&r, 0, b->width - w), y = sodet_stream_uniform(&r, 0, b->height - h);
            box[0] = (float)x;
            box[1] = (float)y;
            box[2] = (float)(x + w);
            box[3] = (float)(y + h);
            d->label[i * OBJECTS + k] = (int32_t)sodet_stream_below(&r, b->net.n_classes);
        }
        const sodet_boxes boxes = {.struct_size = sizeof boxes,
                                   .n = OBJECTS,
                                   .box = (const sodet_box *)(const void *)(d->truth + i * OBJECTS * 4),
                                   .label = d->label + i * OBJECTS,
                                   .flags = d->flags + i * OBJECTS};
        d->items[i].n_objects = OBJECTS;
        s = sd_model_assign(b->net.model, grid, &boxes, d->index + i * anchors, &d->items[i].positives, err);
    }
    return s;
}

static void free_batch(bench *b)
{
    sd_free(b->data.image);
    sd_free(b->data.index);
    sd_free(b->data.truth);
    sd_free(b->data.label);
    sd_free(b->data.flags);
    sd_free(b->data.items);
}

/* ---- inference ---- */
static sodet_status build(void *context, const sd_program_key *key, sodet_graph **out, sodet_err *err)
{
    bench *b = context;
    const sd_model_shape shape = {.batch = key->batch,
                                  .height = key->height,
                                  .width = key->width,
                                  .boxes = 1,
                                  .flags = b->detections ? 0u : (uint32_t)SD_MODEL_NETWORK};
    return sd_cli_inference_graph(&b->net, &shape, &b->segments, out, err);
}

static sodet_status write_pixels(sd_replica *r, void *context, sodet_err *err)
{
    bench *b = context;
    uint32_t first = b->dealt[r->index], rows = b->dealt[r->index + 1] - first;
    uint64_t each = (uint64_t)b->data.channels * b->height * b->width;
    return sd_program_write(b->program[r->index], "image", b->data.image + first * each, rows * each, err);
}

static sodet_status run_program(sd_replica *r, void *context, sodet_err *err)
{
    bench *b = context;
    sd_program *p = b->program[r->index];
    sodet_status s = sd_program_run(p, 0, b->step, r->index == 0 ? b->node_seconds : NULL, err);
    return s == SODET_OK ? sd_program_wait(p, err) : s;
}

static sodet_status infer(bench *b, sodet_err *err)
{
    b->step++;
    return sd_device_pool_run(b->pool, run_program, b, err);
}

static sodet_status open_inference(bench *b, sodet_err *err)
{
    if (b->batch < b->devices)
        return SODET_FAIL(err, SODET_E_INVALID, "--batch %u: at least one picture for each of %u devices is needed", b->batch, b->devices);
    const sd_model_shape shape = {.batch = 1, .height = b->height, .width = b->width, .boxes = 1};
    sodet_graph *g = NULL;
    sodet_status s = sd_cli_inference_graph(&b->net, &shape, &b->segments, &g, err);
    sd_graph_free(g);
    if (s == SODET_OK)
        s = sd_device_pool_arenas(b->pool, &b->segments, false, 0, err);
    if (s == SODET_OK)
        s = sd_device_pool_init(b->pool, &b->segments, (uint64_t)b->net.core->run.seed, SODET_INIT_XAVIER + b->net.core->train.init, err);
    const sd_programs_config c = {.pool = b->pool, .build = build, .context = b, .param_arena = SD_ARENA_PARAM};
    if (s == SODET_OK)
        s = sd_programs_create(&c, &b->programs, err);
    sd_program_key *keys = sd_pool_alloc(&b->cli->pool, b->devices * sizeof *keys);
    b->program = sd_pool_alloc(&b->cli->pool, b->devices * sizeof(sd_program *));
    b->dealt = sd_pool_alloc(&b->cli->pool, (b->devices + 1) * sizeof *b->dealt);
    if (s == SODET_OK && (!keys || !b->program || !b->dealt))
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    if (s != SODET_OK)
        return s;
    for (uint32_t i = 0; i < b->devices; i++) {
        b->dealt[i + 1] = b->dealt[i] + b->batch / b->devices + (i < b->batch % b->devices ? 1 : 0);
        keys[i] = (sd_program_key){.height = b->height, .width = b->width, .batch = b->dealt[i + 1] - b->dealt[i]};
    }
    s = sd_programs_get(b->programs, keys, b->program, err);
    if (s == SODET_OK)
        s = make_pixels(b, b->batch, err);
    return s == SODET_OK ? sd_device_pool_run(b->pool, write_pixels, b, err) : s;
}

/* ---- data ---- */
static sodet_status load(bench *b, sodet_err *err)
{
    const sd_batch *batch = NULL;
    sodet_status s = sd_loader_next(b->loader, &batch, err);
    if (s == SODET_OK && !batch)
        s = SODET_FAIL(err, SODET_E_INTERNAL, "the loader ended");
    if (s == SODET_OK)
        sd_loader_recycle(b->loader, batch);
    return s;
}

static sodet_status open_data(bench *b, sodet_err *err)
{
    const sd_core_cfg *core = b->net.core;
    sodet_status s = sd_split_open(b->net.cfg, SD_SPLIT_TRAIN, NULL, 0, &b->split, err);
    if (s != SODET_OK)
        return s;
    sd_loader_config c = sd_split_loader(b->net.cfg, &b->split, SD_SPLIT_TRAIN);
    c.assigner = sd_model_assigner(b->net.model);
    c.batch = b->batch;
    c.shuffle = 1; /* epochs follow one another */
    c.last = SD_LAST_DROP;
    c.difficult = core->data.difficult;
    c.min_side = core->data.min_side;
    c.device_pixels = core->data.pixels == SD_PIXELS_DEVICE;
    c.device_jpegs = core->data.decode == SD_DECODE_DEVICE;
    uint32_t held = b->mode == TRAINING ? core->optimizer.accumulate + 2 : 0;
    c.depth = c.depth < held ? held : c.depth;
    if (sd_dataset_size(b->split.dataset) < b->batch)
        return SODET_FAIL(err, SODET_E_INVALID, "--batch %u: the training set has %" PRIu64 " pictures", b->batch,
                          sd_dataset_size(b->split.dataset));
    return sd_loader_open(&c, &b->loader, err);
}

static double waited(bench *b)
{
    sd_loader_stats stats = {0};
    if (b->loader)
        sd_loader_stats_get(b->loader, &stats);
    return stats.wait;
}

/* ---- training ---- */
static sodet_status train(bench *b, sodet_err *err)
{
    uint32_t k = b->net.core->optimizer.accumulate, n = 0;
    sodet_status s = SODET_OK;
    for (; s == SODET_OK && b->loader && n < k; n += s == SODET_OK) {
        s = sd_loader_next(b->loader, &b->batches[n], err);
        if (s == SODET_OK && !b->batches[n])
            s = SODET_FAIL(err, SODET_E_INTERNAL, "the loader ended");
    }
    /* So small a rate that the weights stay where they are, as finite as they were. */
    sd_step step = {.step = b->step++, .lr = 1e-9};
    if (s == SODET_OK)
        s = sd_stepper_step(b->stepper, b->batches, &step, err);
    for (uint32_t i = 0; i < n; i++)
        sd_loader_recycle(b->loader, b->batches[i]);
    if (s == SODET_OK && !step.finite)
        s = SODET_FAIL(err, SODET_E_INVALID, "the loss of random pixels is not finite with this initialisation; try [train] init = he");
    return s;
}

/* Programs for every shape that will come. */
static sodet_status prepare(bench *b, sodet_err *err)
{
    uint32_t n = 0;
    const sd_loader_shape *shapes = b->loader ? sd_loader_shapes(b->loader, &n) : NULL;
    sodet_status s = b->loader ? SODET_OK : sd_stepper_prepare(b->stepper, b->batch, b->height, b->width, err);
    for (uint32_t i = 0; i < n && s == SODET_OK; i++)
        s = sd_stepper_prepare(b->stepper, shapes[i].n, shapes[i].height, shapes[i].width, err);
    return s;
}

static sodet_status open_training(bench *b, sodet_err *err)
{
    const sd_core_cfg *core = b->net.core;
    sodet_status s = b->on_data ? sd_send_ready(b->pool, core->data.decode == SD_DECODE_DEVICE, err) : SODET_OK;
    if (s == SODET_OK && b->on_data)
        s = open_data(b, err);
    if (s != SODET_OK)
        return s;
    uint32_t n = 0;
    const sd_loader_shape *shapes = b->loader ? sd_loader_shapes(b->loader, &n) : NULL;
    b->height = n ? shapes[0].height : b->height;
    b->width = n ? shapes[0].width : b->width;
    const sd_stepper_config c = {.core = core,
                                 .pool = b->pool,
                                 .model = b->net.model,
                                 .batch = b->batch,
                                 .height = b->height,
                                 .width = b->width,
                                 .boxes = b->loader ? sd_loader_max_objects(b->loader) : OBJECTS,
                                 .picture_bytes = b->loader ? sd_loader_picture_bytes(b->loader) : 0};
    s = sd_stepper_open(&c, &b->stepper, err);
    if (s == SODET_OK)
        s = sd_device_pool_init(b->pool, sd_stepper_segments(b->stepper), (uint64_t)core->run.seed, SODET_INIT_XAVIER + core->train.init,
                                err);
    if (s == SODET_OK)
        s = sd_stepper_begin(b->stepper, err);
    if (s == SODET_OK && !b->loader)
        s = make_pixels(b, b->batch, err);
    if (s == SODET_OK && !b->loader)
        s = make_truth(b, err);
    uint32_t k = core->optimizer.accumulate;
    b->batches = sd_pool_alloc(&b->cli->pool, k * sizeof *b->batches);
    if (s == SODET_OK && !b->batches)
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory");
    for (uint32_t i = 0; s == SODET_OK && i < k; i++)
        b->batches[i] = &b->data;
    b->images = (uint64_t)k * b->batch;
    return s == SODET_OK ? prepare(b, err) : s;
}

/* ---- measuring ---- */
static double faults_so_far(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_minflt : 0;
}

/* Seconds that processors have worked for this process. */
static double cpu_so_far(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double heap_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sd_bench_sort(double *times, uint64_t n)
{
    if (n)
        qsort(times, (size_t)n, sizeof *times, ascending);
}

double sd_bench_quantile(const double *sorted, uint64_t n, double q)
{
    double at = q * (double)(n - 1);
    uint64_t i = (uint64_t)at;
    double rest = at - (double)i;
    return i + 1 < n ? sorted[i] * (1 - rest) + sorted[i + 1] * rest : sorted[i];
}

static double quantile(const bench *b, double q)
{
    return sd_bench_quantile(b->took, b->n, q);
}

static sodet_status measure(bench *b, sodet_err *err)
{
    sodet_status (*const step[])(bench *, sodet_err *) = {infer, train, load};
    double begin = sd_now(), now = begin;
    sodet_status s = SODET_OK;
    for (uint64_t i = 0; s == SODET_OK && (i < SD_BENCH_WARM || now - begin < b->seconds / 10); i++) {
        s = step[b->mode](b, err);
        now = sd_now();
    }
    /* Room for what is to come, so that the list itself faults in no page. */
    uint64_t room = s == SODET_OK ? (uint64_t)(b->seconds * 1e5) + SD_BENCH_LEAST : 0;
    room = room > 4000000 ? 4000000 : room;
    if (s == SODET_OK)
        s = sd_grow(&b->took, &b->capacity, room, sizeof *b->took, err);
    if (s == SODET_OK)
        memset(b->took, 1, (size_t)room * sizeof *b->took);
    if (s == SODET_OK && b->mode == TRAINING)
        s = sd_usage_open(b->pool, b->stepper, &b->usage, err);
    if (s == SODET_OK && b->mode == TRAINING)
        s = sd_usage_begin(&b->usage, err);
    double faults = faults_so_far(), heap = heap_in_use(), wait = waited(b), cpu = cpu_so_far();
    begin = now = sd_now();
    while (s == SODET_OK && b->n < room && (b->n < SD_BENCH_LEAST || now - begin < b->seconds)) {
        double before = now;
        s = step[b->mode](b, err);
        now = sd_now();
        b->took[b->n++] = now - before;
        if (b->mode == TRAINING)
            sd_usage_step(&b->usage, now - before, 0);
    }
    b->usage.data = waited(b) - wait;
    b->heap = heap_in_use() - heap;
    b->cpu = b->n ? (cpu_so_far() - cpu) / (double)b->n : 0;
    b->wait = now > begin ? (waited(b) - wait) / (now - begin) : 0;
    b->faults = b->n ? (faults_so_far() - faults) / (double)b->n : 0;
    if (s == SODET_OK && b->mode == TRAINING)
        s = sd_usage_end(&b->usage, err);
    sd_bench_sort(b->took, b->n);
    return s;
}

static const char *describe(const void *program, uint32_t node)
{
    return sd_program_describe(program, node);
}

/* A few steps more with every node timed, which the figures above are without. */
static sodet_status time_layers(bench *b, sodet_err *err)
{
    const sd_program *p = b->mode == INFERENCE ? b->program[0] : sd_stepper_program(b->stepper);
    const sodet_graph *g = sd_program_graph(p);
    uint32_t nodes = sodet_graph_node_count(g);
    double *seconds = sd_alloc(nodes, sizeof *seconds), begin = sd_now();
    if (!seconds)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the times of %u nodes", nodes);
    if (b->mode == INFERENCE)
        b->node_seconds = seconds;
    else
        sd_stepper_time_nodes(b->stepper, seconds, nodes);
    uint64_t n = 0;
    sodet_status s = SODET_OK;
    while (s == SODET_OK && (n < SD_BENCH_LEAST || sd_now() - begin < b->seconds / 2)) {
        s = b->mode == INFERENCE ? infer(b, err) : train(b, err);
        n++;
    }
    n *= b->mode == TRAINING ? b->net.core->optimizer.accumulate : 1;
    b->node_seconds = NULL;
    if (b->stepper)
        sd_stepper_time_nodes(b->stepper, NULL, 0);
    for (uint32_t i = 0; i < nodes; i++)
        b->in_layers += seconds[i] /= (double)n;
    b->peak = sd_peak_flops(sd_device_pool_threads(b->pool));
    if (s == SODET_OK)
        s = sd_layers_make(g, b->mode == INFERENCE ? &b->segments : sd_stepper_segments(b->stepper), seconds, describe, p, &b->layers, err);
    sd_free(seconds);
    return s;
}

/* ---- printing ---- */
static int slower_first(const void *a, const void *b)
{
    const sd_layer *x = a, *y = b;
    double p = x->forward + x->backward, q = y->forward + y->backward;
    return (p < q) - (p > q);
}

static double per_second(double amount, double seconds, double unit)
{
    return seconds > 0 ? amount / seconds / unit : 0;
}

static void print_layers(const bench *b)
{
    int wide = 12;
    double flops = 0;
    printf("peak      %.1f GFLOP/s of float32 on %u threads, measured\n", b->peak / 1e9, sd_device_pool_threads(b->pool));
    for (uint32_t i = 0; i < b->layers.n; i++) {
        int k = (int)strlen(b->layers.layer[i].path);
        wide = k > wide ? k : wide;
    }
    printf("\n%-*s  %-16s %9s", wide, "layer", "operator", "ms");
    if (b->mode == TRAINING)
        printf(" %9s %9s", "forward", "backward");
    printf(" %6s %9s %8s %8s  implementation\n", "share", "GFLOP/s", "of peak", "GB/s");
    for (uint32_t i = 0; i < b->layers.n; i++) {
        const sd_layer *x = &b->layers.layer[i];
        double t = x->forward + x->backward;
        printf("%-*s  %-16s %9.3f", wide, x->path, x->op, t * 1e3);
        if (b->mode == TRAINING)
            printf(" %9.3f %9.3f", x->forward * 1e3, x->backward * 1e3);
        double rate = per_second((double)x->cost.flops, t, 1e9);
        flops += (double)x->cost.flops;
        printf(" %5.1f%% %9.1f %7.1f%% %8.1f  %s\n", b->in_layers > 0 ? 100 * t / b->in_layers : 0, rate, 100 * rate / (b->peak / 1e9),
               per_second((double)x->cost.bytes, t, 1e9), x->how ? x->how : "");
    }
    double rate = per_second(flops, b->in_layers, 1e9);
    printf("%-*s  %-16s %9.3f", wide, "all", "", b->in_layers * 1e3);
    if (b->mode == TRAINING)
        printf(" %9s %9s", "", "");
    printf(" %6s %9.1f %7.1f%%\n", "", rate, 100 * rate / (b->peak / 1e9));
}

static double peak_rss(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_maxrss * 1024 : 0;
}

static void print_usage(const bench *b)
{
    sd_text t = {0};
    sd_usage_text(&b->usage, &t);
    if (!t.failed)
        puts(t.text);
    sd_text_free(&t);
}

static void print_text(const bench *b)
{
    double median = quantile(b, 0.5);
    if (b->mode == DATA)
        printf("data, batch %u of %ux%u\n", b->batch, b->width, b->height);
    else
        printf("%s%s, batch %u of %ux%u, on %s%s, %u threads%s\n", modes[b->mode],
               b->mode == TRAINING ? ""
               : b->detections     ? " with detections"
                                   : " of the network",
               b->batch, b->width, b->height, sd_device_pool_replica(b->pool, 0)->name, b->devices > 1 ? " and others" : "",
               sd_device_pool_threads(b->pool), b->devices > 1 ? " each" : "");
    printf("median    %.3f ms  %.2f img/s\n", median * 1e3, (double)b->images / median);
    printf("quantiles %.3f ms (10 %%)  %.3f ms (90 %%)  least %.3f ms, of %" PRIu64 " steps\n", quantile(b, 0.1) * 1e3,
           quantile(b, 0.9) * 1e3, b->took[0] * 1e3, b->n);
    if (b->mode == DATA) {
        printf("processor %.3f ms a picture, of all threads\n", b->cpu / (double)b->images * 1e3);
        return;
    }
    printf("memory    %.1f MiB planned, %.1f MiB of the process at its peak\n", b->planned / 1048576, peak_rss() / 1048576);
    printf("per step  %.2f page faults; heap grew by %.0f bytes in all\n", b->faults, b->heap);
    if (b->on_data)
        printf("data      waited for during %.2f %% of the time\n", 100 * b->wait);
    if (b->usage.n)
        print_usage(b);
    if (b->layers.n)
        print_layers(b);
}

void sd_bench_number(sd_text *t, const char *key, double v)
{
    sd_text_printf(t, ", \"%s\": ", key);
    sd_json_write_double(t, v);
}

static sodet_status print_json(const bench *b, sodet_err *err)
{
    sd_text t = {0};
    double median = quantile(b, 0.5);
    sd_text_printf(&t, "{\"mode\": \"%s\", \"detections\": %s, \"batch\": %u, \"width\": %u, \"height\": %u, \"steps\": %" PRIu64,
                   modes[b->mode], b->detections ? "true" : "false", b->batch, b->width, b->height, b->n);
    sd_bench_number(&t, "median", median);
    sd_bench_number(&t, "p10", quantile(b, 0.1));
    sd_bench_number(&t, "p90", quantile(b, 0.9));
    sd_bench_number(&t, "least", b->took[0]);
    sd_bench_number(&t, "images_per_second", (double)b->images / median);
    sd_bench_number(&t, "cpu_seconds", b->cpu);
    if (b->pool) {
        sd_text_printf(&t, ", \"device\": ");
        sd_json_write_string(&t, sd_device_pool_replica(b->pool, 0)->name);
        sd_text_printf(&t, ", \"devices\": %u, \"threads\": %u", b->devices, sd_device_pool_threads(b->pool));
        sd_bench_number(&t, "planned_bytes", b->planned);
        sd_bench_number(&t, "peak_rss_bytes", peak_rss());
        sd_bench_number(&t, "page_faults", b->faults);
        sd_bench_number(&t, "heap_growth", b->heap);
    }
    if (b->on_data)
        sd_bench_number(&t, "data_wait", b->wait);
    if (b->usage.n) {
        sd_text_printf(&t, ", \"usage\": {");
        sd_usage_json(&b->usage, &t);
        sd_text_printf(&t, "}");
    }
    if (b->layers.n)
        sd_bench_number(&t, "peak_flops", b->peak);
    for (uint32_t i = 0; i < b->layers.n; i++) {
        const sd_layer *x = &b->layers.layer[i];
        sd_text_printf(&t, "%s{\"path\": ", i ? ",\n  " : ", \"layers\": [\n  ");
        sd_json_write_string(&t, x->path);
        sd_text_printf(&t, ", \"operator\": ");
        sd_json_write_string(&t, x->op);
        sd_bench_number(&t, "forward", x->forward);
        sd_bench_number(&t, "backward", x->backward);
        sd_text_printf(&t, ", \"flops\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"implementation\": ", x->cost.flops, x->cost.bytes);
        sd_json_write_string(&t, x->how ? x->how : "");
        sd_text_printf(&t, "}");
    }
    sd_text_printf(&t, b->layers.n ? "\n ]}\n" : "}\n");
    return sd_cli_say(&t, err);
}

/* ---- the whole ---- */
static sodet_status parse(bench *b, sodet_err *err)
{
    const sd_cli *cli = b->cli;
    const char *seconds = sd_cli_flag(cli, "--seconds"), *mode = cli->n_files ? cli->files[0] : modes[0];
    while (b->mode < MODES && strcmp(mode, modes[b->mode]) != 0)
        b->mode++;
    if (b->mode == MODES || cli->n_files > 1)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: inference, training, data or evaluator is expected", cli->files[cli->n_files - 1]);
    b->seconds = 10;
    if (seconds && (!sd_parse_double(seconds, &b->seconds) || !(b->seconds > 0) || b->seconds > 86400))
        return SODET_FAIL(err, SODET_E_INVALID, "--seconds %s: a number above 0 is needed, at most 86400", seconds);
    b->detections = sd_cli_flag(cli, "--detections") != NULL;
    if (b->detections && b->mode != INFERENCE)
        return SODET_FAIL(err, SODET_E_INVALID, "--detections: goes with inference alone");
    b->on_data = sd_cli_flag(cli, "--data") != NULL;
    if (b->on_data && b->mode != TRAINING)
        return SODET_FAIL(err, SODET_E_INVALID, "--data: goes with training alone");
    for (const char *const *f = (const char *const[]){"--ground-truth", "--results", "--pictures", "--objects", "--found", NULL}; *f; f++)
        if (sd_cli_flag(cli, *f) && b->mode != EVALUATOR)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: goes with evaluator alone", *f);
    if (b->mode >= DATA && sd_cli_flag(cli, "--layers"))
        return SODET_FAIL(err, SODET_E_INVALID, "--layers: goes with inference and training");
    if (b->mode >= DATA && sd_cli_flag(cli, "--estimate"))
        return SODET_FAIL(err, SODET_E_INVALID, "--estimate: goes with inference and training");
    uint64_t batch;
    sodet_status s = sd_cli_flag_uint(cli, "--batch", 1, 0, &batch, err);
    if (s == SODET_OK && batch > 65536)
        s = SODET_FAIL(err, SODET_E_INVALID, "--batch %" PRIu64 ": at most 65536", batch);
    b->batch = (uint32_t)batch;
    return s;
}

static sodet_status open_all(bench *b, sodet_err *err)
{
    sodet_status s = sd_cli_network_open(b->cli, &b->net, err);
    if (s != SODET_OK)
        return s;
    b->width = b->net.core->input.size.width;
    b->height = b->net.core->input.size.height;
    if (b->mode == DATA || b->mode == TRAINING)
        b->batch = b->batch ? b->batch : b->net.core->train.batch;
    else if (!b->batch)
        b->batch = 1;
    b->images = b->batch;
    if (b->mode == DATA)
        return open_data(b, err);
    s = sd_device_pool_open(b->net.cfg, &b->pool, err);
    if (s != SODET_OK)
        return s;
    b->devices = sd_device_pool_count(b->pool);
    if (b->mode == INFERENCE && !sd_cli_flag(b->cli, "--batch"))
        b->images = b->batch = b->devices;
    return b->mode == INFERENCE ? open_inference(b, err) : open_training(b, err);
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    bench b = {.cli = cli};
    sodet_status s = parse(&b, err);
    if (s == SODET_OK && b.mode == EVALUATOR)
        return sd_bench_evaluator(cli, b.seconds, err);
    if (s == SODET_OK && sd_cli_flag(cli, "--estimate"))
        return sd_bench_estimate(cli, sd_cli_flag(cli, "--estimate"), b.mode == TRAINING, b.batch, err);
    if (s == SODET_OK)
        s = open_all(&b, err);
    if (s == SODET_OK) {
        cli->started = true;
        s = measure(&b, err);
    }
    if (s == SODET_OK && b.pool)
        b.planned = (double)sd_device_pool_bytes(b.pool, 0).total;
    if (s == SODET_OK && sd_cli_flag(cli, "--layers"))
        s = time_layers(&b, err);
    if (b.layers.n)
        qsort(b.layers.layer, b.layers.n, sizeof *b.layers.layer, slower_first);
    if (s == SODET_OK && cli->json)
        s = print_json(&b, err);
    else if (s == SODET_OK)
        print_text(&b);
    sd_layers_free(&b.layers);
    sd_usage_close(&b.usage);
    sd_loader_close(b.loader);
    sd_split_close(&b.split);
    sd_stepper_close(b.stepper);
    sd_programs_free(b.programs);
    sd_device_pool_close(b.pool);
    sd_segments_free(&b.segments);
    sd_cli_network_close(&b.net);
    free_batch(&b);
    sd_free(b.took);
    return s;
}

static void words(sd_text *out)
{
    for (uint32_t i = 0; i < MODES; i++)
        sd_text_printf(out, "%s%s", i ? " " : "", modes[i]);
}

static const sd_flag flags[] = {{"--batch", "N", "pictures per step, over all devices (inference: one each; else [train] batch)"},
                                {"--seconds", "S", "how long to measure, after the warm-up (10); at least five steps"},
                                {"--detections", NULL, "inference with what makes detections of the network's outputs"},
                                {"--layers", NULL, "the time of every layer, the slowest first"},
                                {"--estimate", "DEVICE", "measure nothing: what an h200, h100, a100 or v100 could do at most"},
                                {"--data", NULL, "training on [data] train instead of random pixels: how long it waits for data"},
                                {"--ground-truth", "FILE", "evaluator: a COCO instances file"},
                                {"--results", "FILE", "evaluator: a COCO result list for it; without the two, both are made up"},
                                {"--pictures", "N", "evaluator: pictures that are made up (5000)"},
                                {"--objects", "N", "evaluator: their objects (36781)"},
                                {"--found", "N", "evaluator: their detections (500000)"},
                                {"--classes", "N", "number of classes, where neither [data] classes nor the data say it"},
                                {0}};
const sd_command sd_cmd_bench;
const sd_command sd_cmd_bench = {
    .name = "bench",
    .synopsis = "x.ini [inference|training|data|evaluator] [section.key=value ...] [--batch N] [--seconds S] [--detections] [--layers] "
                "[--estimate DEVICE] [--json]",
    .summary = "how fast the network, the data loader or the evaluators are",
    .help =
        "inference (the default) and training run the network on random pixels with its initial weights: no data set is opened. training "
        "is\n"
        "whole steps: forward, backward, update. data opens [data] train and runs loader and transforms alone; evaluator\n"
        "runs [eval] evaluators from reading files to their numbers, on 500,000 detections in 5,000 pictures that it makes up or on what "
        "it\n"
        "is given. The median is over the steps after a warm-up of at least three. Page faults are those that needed no disk, of the "
        "whole\n"
        "process. Of a layer, GFLOP/s counts what its definition asks for, so that one that Winograd's way saves multiplications can be\n"
        "above the peak, which is measured: multiply-adds of float32 in registers on as many threads.\n"
        "--json: {\"mode\", \"detections\", \"batch\", \"width\", \"height\", \"steps\", \"median\", \"p10\", \"p90\", \"least\" "
        "(seconds), "
        "\"images_per_second\",\n"
        "\"cpu_seconds\" (of a step, all threads), \"device\", \"devices\", \"threads\", \"planned_bytes\" (of one device), "
        "\"peak_rss_bytes\", \"page_faults\" (per step), "
        "\"heap_growth\" (bytes over all\n"
        "steps), \"data_wait\" (share, with --data), \"usage\" (training: as the last line of metrics.jsonl), \"peak_flops\", \"layers\": "
        "[{\"path\", \"operator\", \"forward\", \"backward\" "
        "(seconds), \"flops\", \"bytes\", \"implementation\"}]};\n"
        "--estimate: {\"mode\", \"device\", \"batch\", \"width\", \"height\", \"estimates\": [{\"precision\", \"seconds\", "
        "\"images_per_second\",\n"
        "\"arithmetic\" (share of the time that is bound by it), \"convolutions\" (share of the time)}]};\n"
        "evaluator: {\"mode\", \"pictures\", \"objects\", \"detections\", \"classes\", \"threads\", \"steps\", \"median\", \"p10\", "
        "\"p90\", \"least\",\n"
        "\"stages\": [{\"stage\", \"median\", \"least\"}]}",
    .takes = SD_TAKES_INI | SD_NEEDS_INI | SD_TAKES_FILES | SD_TAKES_JSON,
    .flags = flags,
    .words = words,
    .run = run,
};
