/* Replicas: one, two and four devices make the same steps of the same batches, whatever is dealt to whom; they run at the same time; one
 * that fails ends the run with a message that names it. --on cuda_host: virtual GPUs of tests/hostcuda against the CPU.
 * labels: big */
#include "runs.h"

#include <dlfcn.h>
#include <pthread.h>

#include "core/device/host_group.h"
#include "core/device/program.h"
#include "core/train/run.h"

enum { STEPS = 20, TENSORS = 256, VALUES = 400000 }; /* steps compared; room for parameters */
typedef struct tensor {
    char name[96];
    uint64_t first, n;
} tensor;
typedef struct facts { /* what a run tells the test */
    uint32_t n_tensors;
    tensor tensors[TENSORS];
    float gradient[2][VALUES];         /* of the first two batches, before any update */
    uint32_t images[2 + STEPS], empty; /* of each batch; pictures without boxes seen */
    double loss[STEPS], norm[STEPS];
    bool equal; /* all replicas ended with the same bits */
} facts;

/* Eleven pictures in batches of eight: every second batch is one of three, so the last of four devices has none of it. */
static const char ini[] = "[run]\nseed = 11\nthreads = 1\n"
                          "[input]\nsize = 64x64\nmean = 127.5, 127.5, 127.5\nstd = 64, 64, 64\n"
                          "[backbone]\nplugin = tinyssd\nwidth = 0.1\n"
                          "[neck]\nplugin = none\n"
                          "[head]\nplugin = ssd\nsize_unit = fraction\nratios = 2\nper_cell = 4\n"
                          "[loss]\nplugin = multibox\n"
                          "[data]\ntrain = drawn\n"
                          "[dataset.drawn]\nplugin = shapes\ncount = 11\nsize = 64\nseed = 7\n"
                          "[transform]\ntrain = hflip, resize\n"
                          "[optimizer]\ntype = sgd\nlr = 0.01\nmomentum = 0.9\n"
                          "[schedule]\ntotal = 100\n"
                          "[train]\nbatch = 8\n"
                          "[checkpoint]\nevery = 0\n";

static sd_config *configure(const char *const *lines)
{
    sodet_err err = SODET_ERR_INIT;
    sd_override list[24];
    uint64_t n = 0;
    for (; lines[n] && n < 24; n++)
        list[n] = (sd_override){lines[n], NULL};
    sd_config *cfg = NULL;
    CHECK_OK(sd_config_open_text(ini, strlen(ini), "test.ini", NULL, list, n, &cfg, &err));
    return cfg;
}

/* ---- the same steps ---- */
static void keep_gradients(sd_run *r, facts *f, uint32_t which)
{
    sodet_err err = SODET_ERR_INIT;
    const sd_segments *s = sd_stepper_segments(r->stepper);
    const uint32_t accumulator = sd_stepper_slots(r->stepper)->accumulator;
    uint64_t used = 0;
    f->n_tensors = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const sd_segment *x = &s->segment[i];
        if (x->frozen)
            continue;
        CHECK(f->n_tensors < TENSORS && used + x->n <= VALUES);
        if (f->n_tensors == TENSORS || used + x->n > VALUES)
            return;
        tensor *t = &f->tensors[f->n_tensors++];
        snprintf(t->name, sizeof t->name, "%s", x->name);
        t->first = used;
        t->n = x->n;
        CHECK_OK(sd_device_pool_read(r->pool, accumulator == UINT32_MAX ? (uint32_t)SD_ARENA_GRAD : SD_ARENA_STATE + accumulator, x->offset,
                                     x->n, f->gradient[which] + used, &err));
        used += x->n;
    }
}

typedef struct sums {
    uint64_t of[8], param_elements, frozen_elements;
} sums;
static sodet_status add_up(sd_replica *r, void *context, sodet_err *err)
{
    sums *s = context;
    uint64_t hash = SD_FNV_START;
    for (uint32_t arena = SD_ARENA_PARAM; arena <= SD_ARENA_FROZEN; arena++) {
        uint64_t n = arena == SD_ARENA_PARAM ? s->param_elements : s->frozen_elements;
        float *v = calloc(n + 1, sizeof *v);
        sodet_status status = sd_replica_read(r, arena, 0, n, v, err);
        hash = sd_fnv1a64(v, n * sizeof *v, hash);
        free(v);
        if (status != SODET_OK)
            return status;
    }
    s->of[r->index] = hash;
    return SODET_OK;
}

typedef struct job {
    const char *lines[24];
    facts *facts;
} job;

static void step(sd_run *r, facts *f, uint32_t number, bool update)
{
    sodet_err err = SODET_ERR_INIT;
    sd_step x = {.step = update ? number - 2 : 0, .lr = r->core->optimizer.lr, .normaliser = r->state.normaliser};
    const sd_batch **batches = r->flights[0].batches;
    sodet_status s = sd_run_next(r, batches, &err);
    CHECK_OK(s);
    if (s != SODET_OK)
        exit(99);
    f->images[number] = 0;
    for (uint32_t k = 0; k < r->core->optimizer.accumulate; k++) {
        f->images[number] += batches[k]->n;
        for (uint32_t i = 0; i < batches[k]->n; i++)
            f->empty += !batches[k]->items[i].n_objects;
    }
    CHECK_OK(sd_stepper_gradients(r->stepper, batches, &x, &err));
    CHECK(x.finite);
    if (update) {
        CHECK_OK(sd_stepper_update(r->stepper, &x, &err));
        f->loss[number - 2] = x.loss;
        f->norm[number - 2] = x.norm;
        r->state.normaliser = x.normaliser;
    } else {
        keep_gradients(r, f, number);
    }
    sd_run_advance(r, batches);
    sd_run_recycle(r, batches);
}

static void make_steps(void *context)
{
    job *j = context;
    facts *f = j->facts;
    sodet_err err = SODET_ERR_INIT;
    sd_run r;
    sd_config *cfg = configure(j->lines);
    sodet_status s = cfg ? sd_run_open(&r, cfg, true, &err) : SODET_E_INTERNAL;
    CHECK_OK(s);
    if (s != SODET_OK)
        return;
    memset(f, 0, sizeof *f);
    for (uint32_t i = 0; i < 2 + STEPS; i++)
        step(&r, f, i, i >= 2);
    sums sum = {.param_elements = r.facts.segments->param_elements, .frozen_elements = r.facts.segments->frozen_elements};
    CHECK_OK(sd_device_pool_run(r.pool, add_up, &sum, &err));
    f->equal = true;
    for (uint32_t i = 1; i < sd_device_pool_count(r.pool); i++)
        f->equal = f->equal && sum.of[i] == sum.of[0];
    sd_run_close(&r);
    sd_config_close(cfg);
}

static const tensor *find(const facts *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_tensors; i++)
        if (strcmp(f->tensors[i].name, name) == 0)
            return &f->tensors[i];
    return NULL;
}

/* The error of a tensor over its largest value. A bias before a batch norm has no gradient but rounding: one of less than a ten-thousandth
 * of the largest of all must only stay so. */
static double error_of(const float *got, const float *want, uint64_t n, double largest)
{
    double worst = 0, most = 0;
    for (uint64_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (!isfinite(d))
            return (double)INFINITY;
        worst = d > worst ? d : worst;
        most = fabs((double)want[i]) > most ? fabs((double)want[i]) : most;
    }
    if (most < 1e-4 * largest)
        return worst < 1e-4 * largest ? 0 : worst / most;
    return worst > 0 ? worst / most : 0;
}

/* The whole gradient agrees to `tolerance` in the 2-norm, each tensor to ten times that in its largest value: single precision adds the
 * same numbers in another order. */
static void compare(const char *what, const facts *got, const facts *want, double tolerance)
{
    double worst = 0, whole = 0;
    for (uint32_t g = 0; g < 2; g++) {
        double largest = 0, difference = 0, length = 0;
        for (uint32_t i = 0; i < VALUES; i++)
            largest = fabs((double)want->gradient[g][i]) > largest ? fabs((double)want->gradient[g][i]) : largest;
        for (uint32_t i = 0; i < want->n_tensors; i++) {
            const tensor *t = &want->tensors[i], *u = find(got, t->name);
            CHECK(u && u->n == t->n);
            if (!u || u->n != t->n)
                continue;
            const float *x = got->gradient[g] + u->first, *y = want->gradient[g] + t->first;
            double off = error_of(x, y, t->n, largest);
            worst = off > worst ? off : worst;
            check_count();
            if (!(off <= 10 * tolerance))
                check_fail(__FILE__, __LINE__, "%s, batch of %u: gradient of %s is off by %.3g", what, want->images[g], t->name, off);
            for (uint64_t k = 0; k < t->n; k++) {
                difference += ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k]);
                length += (double)y[k] * (double)y[k];
            }
        }
        difference = sqrt(difference / length);
        CHECK(length > 0 && difference <= tolerance);
        whole = difference > whole ? difference : whole;
    }
    double worst_loss = 0, sum = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        CHECK_EQ(got->images[i + 2], want->images[i + 2]);
        CHECK_NEAR(got->loss[i], want->loss[i], 1e-3, 0);
        double off = want->loss[i] > 0 ? fabs(got->loss[i] / want->loss[i] - 1) : 0;
        sum += want->loss[i];
        worst_loss = off > worst_loss ? off : worst_loss;
    }
    CHECK(sum > 0 && got->equal && want->n_tensors > 10 && got->n_tensors == want->n_tensors);
    printf("%s: gradients agree to %.2g (worst tensor %.2g), %d losses to %.2g\n", what, whole, worst, STEPS, worst_loss);
}

enum { MOST_DEVICES = 4 };
static const char *const replicas[MOST_DEVICES + 1] = {"", ":x2", ":x4"}, *const virtual_gpus[MOST_DEVICES + 1] = {
                                                                              "cpu", "cuda_host:0", "cuda_host:2,1", "cuda_host:0,1,2,3"};

/* On `backend`; wants_empty: the data is meant to have pictures without boxes. */
static void agree(const char *what, const char *backend, const char *const *lines, bool wants_empty, double tolerance, facts *f)
{
    const bool gpus = strcmp(backend, "cuda_host") == 0;
    for (uint32_t d = 0; (gpus ? virtual_gpus : replicas)[d]; d++) {
        const char *which = gpus ? virtual_gpus[d] : replicas[d];
        job j = {.facts = &f[d]};
        char output[100], devices[100], text[120];
        uint32_t n = 0;
        for (; lines[n]; n++)
            j.lines[n] = lines[n];
        snprintf(output, sizeof output, "run.output=%.40s-%u", what, d);
        snprintf(devices, sizeof devices, "run.devices=%.40s%s", gpus ? "" : backend, which);
        j.lines[n++] = devices;
        j.lines[n++] = output;
        runs_start(0, "", NULL, &(runs_job){.work = make_steps, .context = &j});
        const runs_outcome *o = runs_finish(0);
        CHECK(o->exit_code == 0);
        CHECK(!wants_empty || f[d].empty > 0);
        CHECK(f[d].images[0] != f[d].images[1]); /* an uneven rest is among the gradients */
        snprintf(text, sizeof text, "%s, %s%s", what, gpus ? "" : backend, which);
        if (d > 0)
            compare(text, &f[d], &f[0], tolerance);
    }
}

/* ---- at the same time ---- */
static pthread_barrier_t door;

static sodet_status as_it_is(const sodet_node *n, sodet_shape *out, sodet_err *err)
{
    (void)err;
    out[0] = n->in_shape[0];
    return SODET_OK;
}

static int64_t one(const sodet_kernel_args *a, uint32_t phase)
{
    (void)a;
    (void)phase;
    return 1;
}

static void wait_for_all(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase;
    (void)thread;
    if (begin == end)
        return;
    pthread_barrier_wait(&door); /* nobody comes through before all are here */
    *(float *)a->out[0].data = *(const float *)a->in[0].data + 1;
}
static const sodet_cpu_kernel meeting_on_cpu = {.struct_size = sizeof meeting_on_cpu, .units = one, .run = wait_for_all};
static const sodet_custom_kernels meeting_kernels = {
    .struct_size = sizeof meeting_kernels, .entry_size = sizeof meeting_on_cpu, .cpu = &meeting_on_cpu};
static const sodet_op meeting = {
    .struct_size = sizeof meeting, .name = "meeting", .n_parts = 1, .infer = as_it_is, .kernels = &meeting_kernels};

static sodet_status meet(sd_replica *r, void *context, sodet_err *err)
{
    sodet_graph *g = NULL;
    sd_program *p = NULL;
    float *seen = context, x = (float)r->index;
    sodet_status s = sd_graph_create(&(sd_graph_options){.world = 4}, &g, err);
    if (s != SODET_OK)
        return s;
    sodet_shape shape = sodet_shape_make(SODET_F32, 1, 1, 0, 0, 0);
    const sodet_value in = sodet_input(g, "x", &shape);
    sodet_output(g, "y", sodet_apply(g, &meeting, NULL, &in, 1));
    sd_segments none;
    s = sd_segments_make(g, &none, err);
    if (s == SODET_OK)
        s = sd_graph_bind(g, &none, err);
    if (s == SODET_OK)
        s = sd_program_make(r, g, SD_ARENA_PARAM, &p, err);
    if (s == SODET_OK)
        s = sd_program_write(p, "x", &x, 1, err);
    if (s == SODET_OK)
        s = sd_program_run(p, 1, 1, NULL, err);
    if (s == SODET_OK)
        s = sd_program_read(p, "y", &seen[r->index], 1, err);
    sd_program_free(p);
    sd_segments_free(&none);
    return s;
}

/* An operator without any collective, in which each replica waits until all four are in it: it ends only if they overlap. */
static void overlap(void *context)
{
    (void)context;
    sodet_err err = SODET_ERR_INIT;
    float seen[4] = {0};
    sd_device_pool *pool = NULL;
    sd_config *cfg = configure(RUNS("run.devices=cpu:x4"));
    pthread_barrier_init(&door, NULL, 4);
    CHECK_OK(sd_device_pool_open(cfg, &pool, &err));
    if (pool) {
        sd_segments empty = {0};
        CHECK_OK(sd_device_pool_arenas(pool, &empty, false, 0, &err));
        CHECK_OK(sd_device_pool_run(pool, meet, seen, &err));
    }
    for (int i = 0; i < 4; i++)
        CHECK_NEAR((double)seen[i], i + 1.0, 0, 0);
    sd_device_pool_close(pool);
    sd_config_close(cfg);
    pthread_barrier_destroy(&door);
}

/* ---- a replica that fails ---- */
/* The backend's call comes here first: rank `broken` fails at its call number `broken_at`, and never comes to the others. */
static uint32_t broken = UINT32_MAX, broken_at;
static bool hangs; /* it does not fail, it never comes back */
sodet_status sd_host_group_sum(sd_host_group *group, uint32_t rank, const sd_host_part *part, uint32_t n, uint32_t real_size,
                               sodet_err *err)
{
    typedef sodet_status function(sd_host_group *, uint32_t, const sd_host_part *, uint32_t, uint32_t, sodet_err *);
    static _Thread_local uint32_t calls;
    union {
        void *address;
        function *call;
    } real = {dlvsym(RTLD_NEXT, "sd_host_group_sum", "SODET_PRIVATE")};
    if (rank == broken && ++calls == broken_at && hangs)
        for (;;)
            pause();
    if (rank == broken && calls == broken_at)
        return SODET_FAIL(err, SODET_E_DEVICE, "the link is down");
    return real.call ? real.call(group, rank, part, n, real_size, err) : SODET_FAIL(err, SODET_E_INTERNAL, "no sd_host_group_sum");
}

static uint32_t break_rank, break_at;
static void break_soon(void)
{
    broken = break_rank;
    broken_at = break_at;
}

static void failing(void)
{
    for (break_rank = 0; break_rank < 3; break_rank++) {
        char named[40], output[40];
        break_at = 1 + 37 * break_rank; /* inside forward, inside backward, steps later */
        snprintf(named, sizeof named, "cpu:0 replica %u", break_rank);
        snprintf(output, sizeof output, "run.output=broken-%u", break_rank);
        runs_start(0, ini, RUNS("run.devices=cpu:x3", "checkpoint.every=1", "checkpoint.unit=iterations", "schedule.total=3", output),
                   &(runs_job){.before = break_soon});
        const runs_outcome *o = runs_finish(0);
        CHECK_EQ(o->signal, 0);
        CHECK_EQ(o->status, SODET_E_DEVICE);
        check_count();
        if (!strstr(o->err.text, named) || !strstr(o->err.text, "the link is down"))
            check_fail(__FILE__, __LINE__, "\"%s\" does not name %s and what it met", o->err.text, named);
    }
    /* What was saved before is whole: two devices fewer go on with it. */
    CHECK_RUN(ini, "run.output=broken-2", "run.resume=broken-2", "schedule.total=3");
}

static void hang_soon(void)
{
    hangs = true;
    break_soon();
}

static void hanging(void)
{
    break_rank = 1;
    break_at = 40;
    runs_start(0, ini,
               RUNS("run.devices=cpu:x3", "run.timeout=2", "checkpoint.every=1", "checkpoint.unit=iterations", "schedule.total=3",
                    "run.output=hung"),
               &(runs_job){.before = hang_soon});
    const runs_outcome *o = runs_finish(0);
    CHECK_EQ(o->signal, 0);
    CHECK_EQ(o->status, SODET_E_DEVICE);
    CHECK(strstr(o->err.text, "cpu:0 replica 1") && strstr(o->err.text, "has not answered for 2 s") && strstr(o->err.text, "run.timeout"));
    CHECK_RUN(ini, "run.output=hung", "run.resume=hung", "schedule.total=3");
}

#define RETINANET                                                                                                                          \
    "backbone.plugin=resnet", "backbone.depth=18", "backbone.width=0.1", "neck.plugin=fpn", "neck.width=0.1", "head.plugin=retinanet",     \
        "head.width=0.1", "head.depth=1", "loss.plugin=focal", "optimizer.lr=0.002"

/* ---- on virtual GPUs ---- */
static const char *plan; /* HC_FAIL */
static void fail_soon(void)
{
    setenv("HC_FAIL", plan, 1);
    setenv("HC_ABORT", "1", 1); /* what a device that failed leaves behind is not used wrongly either */
}

/* A rank that fails, whatever in, ends the run within its time; the message names the rank; the last checkpoint goes on. */
static void failing_gpus(void)
{
    static const struct {
        const char *what, *plan, *said;
        sodet_status status;
    } cases[] = {
        {"a collective that fails", "ncclAllReduce:40:3", "NCCL", SODET_E_DEVICE},
        {"an absent peer", "ncclCommInitRankConfig:2:hang", "has not answered", SODET_E_DEVICE},
        {"a peer that cannot join", "ncclCommInitRankConfig:2:3", "NCCL", SODET_E_DEVICE},
        {"a kernel that goes astray", "kernel:2500:700", "illegal memory access", SODET_E_DEVICE},
        {"a kernel that does not end", "kernel:2500:hang", "has not answered", SODET_E_DEVICE},
        {"a host that does not come", "ncclAllGather:40:hang", "has not answered", SODET_E_DEVICE},
        {"no memory on one", "cudaMalloc:10", "MiB", SODET_E_MEMORY},
        {"a copy that fails", "cudaMemcpyAsync:120:1", "copy", SODET_E_DEVICE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char output[40], resume[40];
        plan = cases[i].plan;
        snprintf(output, sizeof output, "run.output=gpu-%zu", i);
        snprintf(resume, sizeof resume, "run.resume=gpu-%zu", i);
        runs_start(0, ini,
                   RUNS("run.devices=cuda_host:0,1,2", "run.timeout=3", "checkpoint.every=1", "checkpoint.unit=iterations",
                        "schedule.total=3", output),
                   &(runs_job){.before = fail_soon});
        const double began = sd_now();
        const runs_outcome *o = runs_finish(0);
        const double took = sd_now() - began;
        CHECK_EQ(o->signal, 0);
        CHECK_EQ(o->status, cases[i].status);
        CHECK(took < 100); /* three seconds of waiting; the rest is for a busy machine */
        check_count();
        if (!strstr(o->err.text, "cuda_host:") || !strstr(o->err.text, cases[i].said))
            check_fail(__FILE__, __LINE__, "%s: \"%s\" does not name the device and \"%s\"", cases[i].what, o->err.text, cases[i].said);
        char last[64];
        snprintf(last, sizeof last, "gpu-%zu/last.safetensors", i);
        if (access(last, R_OK) == 0)
            CHECK_RUN(ini, output, resume, "run.devices=cuda_host:3", "schedule.total=3");
    }
}

static int on_gpus(facts *f)
{
    agree("gpus synchronised", "cuda_host", RUNS(RETINANET, "train.norm=sync"), false, 1e-5, f);
    agree("gpus multibox", "cuda_host",
          RUNS("train.norm=sync", "backbone.width=0.25", "dataset.drawn.count=15", "train.init=he_fan_in", "optimizer.lr=1e-4"), false,
          1e-5, f);
    agree("gpus accumulated", "cuda_host",
          RUNS(RETINANET, "loss.normaliser=ema", "optimizer.accumulate=2", "train.batch=3", "dataset.drawn.seed=8"), false, 1e-5, f);
    agree("gpus without boxes", "cuda_host",
          RUNS("train.norm=frozen", "data.classes=circle, star", "data.unknown_class=skip", "dataset.drawn.seed=4", "loss.min_negatives=3",
               "loss.normaliser=image"),
          true, 1e-5, f);
    return runs_done(250);
}

int main(int argc, char **argv)
{
    runs_begin("replicas");
    facts *f = mmap(NULL, MOST_DEVICES * sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f == MAP_FAILED)
        return 1;
    if (argc > 3 && strcmp(argv[1], "--on") == 0 && strcmp(argv[3], "--failing") == 0) {
        failing_gpus();
        return runs_done(30);
    }
    if (argc > 2 && strcmp(argv[1], "--on") == 0 && strcmp(argv[2], "cuda_host") == 0)
        return on_gpus(f);
    agree("synchronised", "cpu", RUNS(RETINANET, "train.norm=sync"), false, 1e-5, f);
    agree("multibox", "cpu",
          RUNS("train.norm=sync", "backbone.width=0.25", "dataset.drawn.count=15", "train.init=he_fan_in", "optimizer.lr=1e-4"), false,
          1e-5, f);
    agree("frozen", "cpu", RUNS("train.norm=frozen"), false, 1e-5, f);
    agree("without boxes", "cpu",
          RUNS("train.norm=frozen", "data.classes=circle, star", "data.unknown_class=skip", "dataset.drawn.seed=4", "loss.min_negatives=3",
               "loss.normaliser=image"),
          true, 1e-5, f);
    /* In single precision on pictures that put no ReLU gate within rounding. Of the seeds 7 to 18 two do: 7 sets one otherwise between cpu
     * and its replicas, 15 also between ref and ref:x2, by 4e-3 of the gradient; all others agree to 2e-6. So the first is judged in double. */
    agree("accumulated", "cpu", RUNS(RETINANET, "loss.normaliser=ema", "optimizer.accumulate=2", "train.batch=3", "dataset.drawn.seed=8"),
          false, 1e-5, f);
    agree("accumulated in double", "ref",
          RUNS(RETINANET, "loss.normaliser=ema", "optimizer.accumulate=2", "train.batch=3", "backend.ref.precision=double"), false, 1e-9,
          f);
    /* Narrow maps of one cell make this one so sensitive that in single precision a rounding decides; in double they agree. */
    agree("narrow", "ref", RUNS("train.norm=sync", "backend.ref.precision=double"), false, 1e-9, f);
    runs_start(0, "", NULL, &(runs_job){.work = overlap});
    runs_finish(0);
    failing();
    hanging();
    return runs_done(500);
}
