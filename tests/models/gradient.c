/* labels: big */
/* Gradients of whole networks, at small width, in double on `ref`: the derivative along random directions against differences of the
 * loss. The loss comes back in full precision as the gradient of a probe: with (1 + probe) L to be minimised and probe = 0, dL/dprobe is L. */
#include "rig.h"

static sodet_err err = SODET_ERR_INIT;
enum { BATCH = 2, DIRECTIONS = 3 };
static const uint64_t seed = 77;

typedef struct network {
    const char *what, *text;
    uint32_t side;
} network;
#define REF "[run]\ndevices = ref\n[backend.ref]\nprecision = double\n"
static const network networks[] = {
    {"tinyssd + ssd + multibox", REF "[backbone]\nplugin = tinyssd\nwidth = 0.25\n[head]\nplugin = ssd\n[loss]\nplugin = multibox\n", 64},
    {"tinyssd + ssd + multibox as d2l",
     REF "[backbone]\nplugin = tinyssd\nwidth = 0.25\n[head]\nplugin = ssd\n[loss]\nplugin = multibox\nnegatives = all\nmean_over = "
         "anchors\nbeta = "
         "0\nsize_epsilon = 1e-6\n",
     64},
    {"tinyssd (paper) + ssd + multibox",
     REF "[backbone]\nplugin = tinyssd\nvariant = paper\nwidth = 0.1\n[head]\nplugin = ssd\n[loss]\nplugin = multibox\n", 128},
    {"vgg16 + ssd_extras + ssd + multibox",
     REF "[backbone]\nplugin = vgg16\nwidth = 0.03\n[neck]\nplugin = ssd_extras\nwidth = 0.05\n[head]\nplugin = ssd\n[loss]\nplugin = "
         "multibox\n",
     272},
    {"resnet50 up to C4 at stride 8 + ssd_extras with norms + ssd + multibox",
     REF "[backbone]\nplugin = resnet\ndepth = 50\nwidth = 0.05\nfirst_level = 4\nlast_level = 4\nlast_stride = 1\n[neck]\nplugin = "
         "ssd_extras\nwidth = 0.05\nlead = yes\nnorm = yes\nextra_levels = 3\n[head]\nplugin = ssd\norder = shape\n[loss]\nplugin = "
         "multibox\n",
     96},
    {"resnet18 + fpn + retinanet + focal",
     REF "[backbone]\nplugin = resnet\ndepth = 18\nwidth = 0.1\n[neck]\nplugin = fpn\nwidth = 0.05\n[head]\nplugin = retinanet\nwidth = "
         "0.05\nbase = 2\n[loss]\nplugin = focal\n",
     96},
    {"resnet50 + fpn + ssd + focal",
     REF "[backbone]\nplugin = resnet\ndepth = 50\nwidth = 0.05\n[neck]\nplugin = fpn\nwidth = 0.05\nextra_from = p5\n[head]\nplugin = "
         "ssd\n[loss]\nplugin = focal\n",
     96},
    {"mobilenet_v2 + fpn + ssd + multibox",
     REF
     "[backbone]\nplugin = mobilenet_v2\nwidth = 0.1\nround_to = 2\nlast_conv = no\n[neck]\nplugin = fpn\nwidth = 0.05\n[head]\nplugin = "
     "ssd\n[loss]\nplugin = multibox\n",
     96},
};

/* Loss in double, and the gradient of all trainable parameters. */
static double loss_of(rig *r, const rig_io *io, double *gradient)
{
    double loss = NAN;
    const sd_segment *probe = sd_segments_find(&r->segments, "probe");
    CHECK_OK(rig_run(r, io, &err));
    CHECK_OK(sd_device_pool_read_raw(r->pool, SD_ARENA_GRAD, probe->offset, 1, &loss, &err));
    if (gradient)
        CHECK_OK(sd_device_pool_read_raw(r->pool, SD_ARENA_GRAD, 0, r->segments.param_elements, gradient, &err));
    return loss;
}

static void set(rig *r, const double *at, const double *direction, double step)
{
    const uint64_t n = r->segments.param_elements;
    double *x = malloc(n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = at[i] + step * direction[i];
    CHECK_OK(sd_device_pool_write_raw(r->pool, SD_ARENA_PARAM, 0, n, x, &err));
    free(x);
}

static void check_network(const network *net)
{
    rig r = {0};
    CHECK_OK(sd_config_open_text(net->text, strlen(net->text), "gradient.ini", NULL, NULL, 0, &r.m.cfg, &err));
    CHECK_OK(sd_model_open(r.m.cfg, 3, &r.m.model, &err));
    const sd_graph_options options = {.training = true};
    const sd_model_shape shape = {.batch = BATCH, .height = net->side, .width = net->side, .boxes = 2};
    const sd_model_grid *grid = NULL;
    CHECK_OK(sd_model_grid_of(r.m.model, net->side, net->side, &grid, &err));
    CHECK_OK(sd_model_build(r.m.model, &options, &shape, &r.graph, &err));
    const sodet_shape scalar = sodet_shape_make(SODET_F32, 0, 0, 0, 0, 0);
    const sodet_param zero = {.init = SODET_INIT_ZEROS};
    sodet_value all = sodet_add(r.graph, sd_graph_loss(r.graph, 0)->value, sd_graph_loss(r.graph, 1)->value);
    sd_graph_add_loss(r.graph, "probe", sodet_mul(r.graph, all, sodet_parameter(r.graph, "probe", &scalar, &zero)));
    CHECK_OK(rig_start(&r, &err));
    if (!r.program) {
        rig_close(&r);
        return;
    }
    CHECK_OK(sd_device_pool_init(r.pool, &r.segments, seed, 0, &err));

    sodet_stream s = sd_stream(seed, net->side, 1, 2);
    const uint64_t a = grid->anchors->n, pixels = 3ull * net->side * net->side * BATCH, n = r.segments.param_elements;
    float *image = malloc(pixels * sizeof *image), truth[BATCH][2][4], weight[BATCH], share[BATCH] = {0.5f, 0.5f};
    int32_t *index = malloc(BATCH * a * sizeof *index), label[BATCH][2] = {{0, 2}, {1, 1}};
    for (uint64_t i = 0; i < pixels; i++)
        image[i] = (float)sodet_stream_uniform(&s, -1, 1);
    for (uint32_t b = 0; b < BATCH; b++) {
        const float side = (float)net->side;
        const sodet_box box[2] = {{0.1f * side, 0.15f * side, 0.55f * side, 0.5f * side},
                                  {0.4f * side, 0.3f * side, 0.9f * side, 0.95f * side}};
        const sodet_boxes t = {.struct_size = sizeof t, .n = 2, .box = box, .label = label[b]};
        uint32_t positives = 0;
        memcpy(truth[b], box, sizeof truth[b]);
        CHECK_OK(sd_model_assign(r.m.model, grid, &t, index + b * a, &positives, &err));
        CHECK(positives > 0);
        weight[b] = 0.5f / (float)positives;
    }
    const rig_io io[] = {{"image", image, NULL, pixels},
                         {"index", index, NULL, BATCH * a},
                         {"truth", truth, NULL, BATCH * 8},
                         {"label", label, NULL, BATCH * 2},
                         {"weight", weight, NULL, BATCH},
                         {"share", share, NULL, BATCH},
                         {NULL, NULL, NULL, 0}};
    double *at = malloc(n * sizeof *at), *gradient = malloc(n * sizeof *gradient), *direction = malloc(n * sizeof *direction);
    CHECK_OK(sd_device_pool_read_raw(r.pool, SD_ARENA_PARAM, 0, n, at, &err));
    const double loss = loss_of(&r, io, gradient);
    CHECK(isfinite(loss) && loss > 0);
    double size = 0, worst = 0;
    for (uint64_t i = 0; i < n; i++)
        size += gradient[i] * gradient[i];
    size = sqrt(size);
    const sd_segment *probe = sd_segments_find(&r.segments, "probe");
    for (uint32_t d = 0; d < DIRECTIONS; d++) {
        /* The last direction is the gradient's own, which no error can hide from by chance. */
        double slope = 0, length = 0;
        for (uint64_t i = 0; i < n; i++) {
            direction[i] = i == probe->offset ? 0 : d + 1 == DIRECTIONS ? gradient[i] : sd_stream_normal(&s);
            length += direction[i] * direction[i];
        }
        for (uint64_t i = 0; i < n; i++) {
            direction[i] /= sqrt(length);
            slope += direction[i] * gradient[i];
        }
        double best = INFINITY; /* a step may cross a kink of ReLU, max or hard negatives; a smaller one then does not */
        for (double step = 1e-5; step > 1e-8; step /= 10) {
            set(&r, at, direction, step);
            double up = loss_of(&r, io, NULL);
            set(&r, at, direction, -step);
            double down = loss_of(&r, io, NULL);
            best = fmin(best, fabs((up - down) / (2 * step) - slope));
        }
        worst = fmax(worst, best / size);
        check_count();
        if (!(best < 1e-5 * size))
            check_fail(__FILE__, __LINE__, "%s, seed %llu, direction %u: slope %.9g, differences are off by %.3g", net->what,
                       (unsigned long long)seed, d, slope, best);
    }
    printf("%s: %llu parameters, loss %.4f, |gradient| %.4f, worst %.2g of it\n", net->what, (unsigned long long)r.segments.parameter_count,
           loss, size, worst);
    free(at);
    free(gradient);
    free(direction);
    free(image);
    free(index);
    rig_close(&r);
}

int main(void)
{
    for (uint32_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        check_network(&networks[i]);
    return check_done(60);
}
