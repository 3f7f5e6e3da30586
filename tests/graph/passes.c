/* Folding and fusion leave the numbers as they are: the same network with and without sd_graph_optimize, on the reference in double.
 * labels: valgrind */
#include "check.h"
#include "core/device/program.h"
#include "core/graph/graph.h"

enum { N = 2, C = 3, SIDE = 9 };

/* A residual block with frozen statistics, a shortcut convolution, an activation that keeps its input, and a value used twice. */
static sodet_graph *network(const sd_graph_options *options, bool optimize)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = NULL;
    CHECK_OK(sd_graph_create(options, &g, &err));
    sodet_shape shape = sodet_shape_make(SODET_F32, 4, N, C, SIDE, SIDE);
    sodet_value x = sodet_input(g, "image", &shape);
    sodet_value a = sodet_conv2d(g, "stem", x, SODET_CONV2D(.out = 6, .kernel = 3, .pad = {1, 1, 1, 1}));
    a = sodet_relu(g, sodet_batch_norm(g, "stem_norm", a, SODET_NORM(0)));
    sodet_value b = sodet_conv2d(g, "conv1", a, SODET_CONV2D(.out = 6, .kernel = 1, .flags = SODET_CONV_NO_BIAS));
    b = sodet_relu(g, sodet_batch_norm(g, "norm1", b, SODET_NORM(0)));
    b = sodet_conv2d(g, "conv2", b, SODET_CONV2D(.out = 6, .kernel = 3, .pad = {1, 1, 1, 1}, .flags = SODET_CONV_NO_BIAS));
    b = sodet_batch_norm(g, "norm2", b, SODET_NORM(0));
    sodet_value shortcut = sodet_batch_norm(g, "norm3", sodet_conv2d(g, "conv3", a, SODET_CONV2D(.out = 6, .kernel = 1)), SODET_NORM(0));
    b = sodet_relu(g, sodet_add(g, b, shortcut));
    sodet_value kept = sodet_conv2d(g, "conv4", b, SODET_CONV2D(.out = 4, .kernel = 3, .stride = 2));
    sodet_value y = sodet_add(g, sodet_activation(g, SODET_ACT_HARD_SWISH, kept), sodet_relu(g, kept));
    if (options->training)
        sd_graph_add_loss(g, "sum", sodet_mean(g, sodet_mul(g, y, y), 0));
    else
        sodet_output(g, "y", y);
    if (optimize)
        CHECK_OK(sd_graph_optimize(g, &err));
    if (options->training)
        CHECK_OK(sd_graph_backward(g, &err));
    return g;
}

static uint32_t count(const sodet_graph *g, const char *op, uint32_t part)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sodet_graph_node_count(g); i++)
        n += strcmp(sodet_graph_node(g, i)->op->name, op) == 0 && sodet_graph_node(g, i)->part == part && !sodet_graph_node(g, i)->prologue;
    return n;
}

typedef struct job {
    sodet_graph *g;
    const char *output;
    float *to;
    uint64_t n;
    bool counted;
} job;

static sodet_status run(sd_replica *r, void *context, sodet_err *err)
{
    job *j = context;
    sd_program *p = NULL;
    float image[N * C * SIDE * SIDE];
    sodet_stream random = sd_stream(7, 0, 0, 0);
    for (uint32_t i = 0; i < sizeof image / sizeof *image; i++)
        image[i] = (float)sd_stream_normal(&random);
    sodet_status status = sd_program_make(r, j->g, SD_ARENA_PARAM, &p, err);
    if (status == SODET_OK)
        status = sd_program_write(p, "image", image, sizeof image / sizeof *image, err);
    if (status == SODET_OK)
        status = sd_program_run(p, 1, 0, NULL, err);
    if (status == SODET_OK)
        status = sd_program_read(p, j->output, j->to, j->n, err);
    sd_program_free(p);
    return status;
}

static void compare(bool training)
{
    sodet_err err = SODET_ERR_INIT;
    const char *const overrides[] = {"run.devices=ref", "backend.ref.precision=double"};
    sd_override o[2] = {{overrides[0], NULL}, {overrides[1], NULL}};
    sd_config *cfg = NULL;
    sd_device_pool *pool = NULL;
    CHECK_OK(sd_config_open(NULL, o, 2, &cfg, &err));
    CHECK_OK(sd_device_pool_open(cfg, &pool, &err));
    const sd_graph_options options = {.training = training, .norm = SD_NORM_FROZEN};
    sd_segments s;
    float out[2][4 * N * 4 * 4] = {{0}}, *gradient[2] = {NULL, NULL};
    for (int optimize = 0; optimize < 2; optimize++) {
        sodet_graph *g = network(&options, optimize);
        if (optimize == 0) {
            CHECK_OK(sd_segments_make(g, &s, &err));
            CHECK_OK(sd_device_pool_arenas(pool, &s, training, 0, &err));
            CHECK_OK(sd_device_pool_init(pool, &s, 3, SODET_INIT_HE, &err));
            for (uint32_t i = 0; i < s.n; i++) { /* statistics and factors that are not the identity */
                float v[64];
                sodet_stream random = sd_stream(11, 0, i, 0);
                for (uint64_t k = 0; k < s.segment[i].n && s.segment[i].n <= 64; k++)
                    v[k] = (float)sodet_stream_uniform(&random, 0.5, 1.5);
                if (s.segment[i].n <= 64)
                    CHECK_OK(sd_device_pool_write(pool, s.segment[i].frozen ? SD_ARENA_FROZEN : SD_ARENA_PARAM, s.segment[i].offset,
                                                  s.segment[i].n, v, &err));
            }
        }
        CHECK_OK(sd_graph_bind(g, &s, &err));
        CHECK_EQ(count(g, "batch_norm", 0), optimize ? 0 : 4);
        CHECK_EQ(count(g, "activation", 0), optimize ? 2 : 5); /* what hard_swish and relu share stays apart */
        if (optimize && !training)
            CHECK_EQ(count(g, "binary", 0), 1);
        job j = {.g = g, .output = training ? "loss" : "y", .to = out[optimize], .n = training ? 1 : sizeof out[0] / sizeof(float)};
        CHECK_OK(sd_device_pool_run_one(pool, 0, run, &j, &err));
        if (training) {
            gradient[optimize] = calloc(s.param_elements, sizeof(float));
            CHECK_OK(sd_device_pool_read(pool, SD_ARENA_GRAD, 0, s.param_elements, gradient[optimize], &err));
        }
    }
    double largest_out = 0;
    for (size_t i = 0; i < sizeof out[0] / sizeof(float); i++)
        largest_out = fmax(largest_out, fabs((double)out[0][i]));
    CHECK(largest_out > 1e-3);
    CHECK(check_worst(out[1], out[0], training ? 1 : (int64_t)(sizeof out[0] / sizeof(float))) < 1e-6);
    for (uint32_t i = 0; i < s.n_trainable && training; i++) {
        double worst = check_worst(gradient[1] + s.segment[i].offset, gradient[0] + s.segment[i].offset, (int64_t)s.segment[i].n),
               largest = 0;
        for (uint64_t k = 0; k < s.segment[i].n; k++)
            largest = fmax(largest, fabs((double)gradient[0][s.segment[i].offset + k]));
        if (!(worst < 1e-6) || !(largest > 0))
            fprintf(stderr, "%s: off by %g of %g\n", s.segment[i].name, worst, largest);
        CHECK(worst < 1e-6 && largest > 0);
    }
    free(gradient[0]);
    free(gradient[1]);
    sd_segments_free(&s);
    sd_device_pool_close(pool);
    sd_config_close(cfg);
}

int main(void)
{
    compare(false);
    compare(true);
    return check_done(60);
}
