/* What a step may not do: allocate in our code, meet pages for the first time, take more memory than the plan says. Also: elementwise work
 * in place, replicas at the same time, a group that is given up, the self-test's verdict. */
#include "rig.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/kernels.h"

/* ---- allocations, told apart by who asks ---- */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTED 0
#else
#define COUNTED 1
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
#endif

static atomic_int counting;
static atomic_long ours, others;

#if COUNTED
static void count(const void *caller)
{
    static _Thread_local bool inside; /* dladdr may allocate */
    if (!atomic_load(&counting) || inside)
        return;
    inside = true;
    Dl_info info;
    const char *name = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "";
    const char *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    /* A call at a function's end is a jump, and then the caller's caller asks: this program's calls into libsodet count, too. */
    if (strcmp(name, "cpu.so") == 0 || strncmp(name, "libsodet", 8) == 0 || strncmp(name, "test_", 5) == 0)
        atomic_fetch_add(&ours, 1);
    else
        atomic_fetch_add(&others, 1);
    inside = false;
}

void *malloc(size_t n)
{
    count(__builtin_return_address(0));
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    count(__builtin_return_address(0));
    return __libc_realloc(p, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    count(__builtin_return_address(0));
    *out = __libc_memalign(alignment, n);
    return *out ? 0 : 12;
}

void *aligned_alloc(size_t alignment, size_t n)
{
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, n);
}
#endif

static sodet_graph *network(int64_t batch, int64_t side)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = rig_graph(true);
    sodet_value x = rig_input(g, "image", batch, 3, side, side);
    for (uint32_t i = 0; i < 3; i++) {
        sodet_enter(g, "stage%u", i);
        x = sodet_conv2d(g, "conv", x, SODET_CONV2D(.out = 32u << i, .kernel = 3, .pad = {1, 1, 1, 1}, .flags = SODET_CONV_NO_BIAS));
        x = sodet_relu(g, sodet_batch_norm(g, "norm", x, SODET_NORM(.flags = 0)));
        x = sodet_relu(g, sodet_conv2d(g, "conv2", x, SODET_CONV2D(.out = 32u << i, .kernel = 3, .pad = {1, 1, 1, 1})));
        x = sodet_max_pool(g, x, SODET_POOL(.kernel = 2));
        sodet_leave(g);
    }
    x = sodet_permute(g, x, (const uint32_t[]){0, 2, 3, 1});
    sd_graph_add_loss(g, "l", sodet_sum(g, sodet_mul(g, x, x), 0));
    CHECK_OK(sd_graph_check(g, "test", &err));
    CHECK_OK(sd_graph_optimize(g, &err));
    CHECK_OK(sd_graph_backward(g, &err));
    return g;
}

static long resident(void)
{
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static void steps(rig *cpu)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = network(8, 96);
    rig_program p;
    long before = resident();
    CHECK_OK(rig_make(cpu, g, &p, &err));
    for (int i = 0; i < 3; i++)
        CHECK_OK(rig_run(&p, &err));
    double planned = (double)(p.work_bytes + p.own_bytes + p.segments.param_elements * 8 + p.segments.frozen_elements * 4);
    double taken = (double)(resident() - before), mib = 1048576;
    printf("planned %.1f MiB, resident memory grew by %.1f MiB\n", planned / mib, taken / mib);
    /* The constant: oneDNN's code for this network, page tables, libgomp's stacks, and the rounding of five arenas to pages of 2 MiB. */
    CHECK(!COUNTED || taken <= planned * 1.05 + 24 * mib);
    struct rusage a, b;
    long per_step[2] = {0, 0};
    for (int round = 0; round < 2; round++) {
        atomic_store(&ours, 0);
        atomic_store(&others, 0);
        getrusage(RUSAGE_SELF, &a);
        atomic_store(&counting, 1);
        for (int i = 0; i < 5; i++)
            if (rig_run(&p, &err) != SODET_OK)
                check_fail(__FILE__, __LINE__, "step: %s", err.text);
        atomic_store(&counting, 0);
        getrusage(RUSAGE_SELF, &b);
        per_step[round] = atomic_load(&others);
        printf("5 steps: %ld page faults, allocations: ours %ld, of the libraries %ld\n", b.ru_minflt - a.ru_minflt, atomic_load(&ours),
               atomic_load(&others));
        CHECK_EQ(atomic_load(&ours), 0);
        CHECK(!COUNTED || b.ru_minflt - a.ru_minflt < 10 * 5);
    }
    CHECK(per_step[1] <= per_step[0]);
#if COUNTED
    atomic_store(&ours, 0);
    atomic_store(&counting, 1);
    sd_free(sd_alloc(1, 64)); /* the counter counts */
    atomic_store(&counting, 0);
    CHECK_EQ(atomic_load(&ours), 1);
#endif
    rig_free(&p);
    sd_graph_free(g);
}

/* A chain of elementwise operators needs one buffer. */
static void in_place(rig *cpu)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_graph *g = rig_graph(false);
    sodet_value x = rig_input(g, "x", 1, 16, 32, 32);
    x = sodet_relu6(g, sodet_sigmoid(g, sodet_leaky_relu(g, x, 0.1f)));
    x = sodet_mul(g, x, x);
    x = sodet_conv2d(g, "conv", x, SODET_CONV2D(.out = 16, .kernel = 1));
    sodet_output(g, "y", x);
    rig_program p;
    CHECK_OK(rig_make(cpu, g, &p, &err));
    const uint64_t map = 16 * 32 * 32 * sizeof(float);
    uint64_t most = 0;
    uint32_t maps = 0;
    for (uint32_t i = 0; i < p.plan.n_buffers; i++) {
        const sodet_plan_buffer *b = &p.plan.buffers[i];
        maps += b->lifetime == SODET_LIFE_RUN && b->bytes >= map;
        most = b->bytes > most ? b->bytes : most;
    }
    CHECK(maps >= 1 && maps <= 3); /* the input in blocks, what the chain works on, the result in blocks */
    rig_free(&p);
    sd_graph_free(g);
}

/* Field case O-47: a batch without images goes through forward and backward; sums are 0, running statistics stay. */
static void no_images(rig *cpu, rig *ref)
{
    sodet_graph *g = network(0, 16);
    rig_compare(cpu, ref, g, 0, "a batch of no images");
    sd_graph_free(g);
}

static void self_test(void)
{
    sodet_err err = SODET_ERR_INIT;
    rig broken;
    CHECK_FAILS(rig_open_more(&broken, "cpu", 1, "[backend.cpu]\nself_test = fault\n", &err), SODET_E_DEVICE,
                "computes convolutions wrongly");
    CHECK(strstr(err.text, "`devices = ref`") != NULL);
    CHECK(broken.device == NULL);
    rig_close(&broken);
    CHECK_OK(rig_open_more(&broken, "cpu", 1, "[backend.cpu]\nself_test = off\n", &err));
    rig_close(&broken);
    rig third;
    CHECK_OK(rig_open_more(&third, "cpu", 1, "", &err));
    void *device;
    const sodet_device_options o = {.struct_size = sizeof o, .threads = 1, .world = 1};
    CHECK_FAILS(third.ops->open(third.backend.self, 3, &o, &device, &err), SODET_E_INVALID, "one CPU device");
    rig_close(&third);
}

/* ---- replicas ---- */
typedef struct replica {
    rig *rig;
    void *group, *device;
    uint32_t rank;
    bool stay_away; /* fails instead of running */
    sodet_status status;
    sodet_err err;
    float sum, gathered[2];
} replica;

static sodet_graph *collective(void)
{
    sodet_graph *g = rig_graph(false);
    sodet_shape one = sodet_shape_make(SODET_F32, 1, 1, 0, 0, 0);
    sodet_value x = sodet_input(g, "x", &one);
    sodet_output(g, "sum", sodet_all_reduce(g, x));
    sodet_output(g, "all", sodet_all_gather(g, x, 2));
    return g;
}

static void *drive(void *arg)
{
    replica *r = arg;
    rig own = *r->rig;
    const sodet_device_options o = {.struct_size = sizeof o, .threads = 1, .rank = r->rank, .world = 2, .group = r->group};
    r->err = (sodet_err)SODET_ERR_INIT;
    r->status = own.ops->open(own.backend.self, 0, &o, &own.device, &r->err);
    if (r->status != SODET_OK)
        return NULL;
    sodet_graph *g = collective();
    rig_program p;
    r->status = rig_make(&own, g, &p, &r->err);
    float mine = (float)(r->rank + 1);
    if (r->status == SODET_OK)
        r->status = own.ops->upload(own.device, own.ops->address(p.handle, sd_graph_find_input(g, "x")), 0, &mine, sizeof mine, &r->err);
    if (r->status == SODET_OK && r->stay_away) {
        usleep(50000);
        own.ops->abort_group(r->group);
    } else if (r->status == SODET_OK) {
        /* The sum can only come to be while the other replica runs as well. */
        r->status = rig_run(&p, &r->err);
    }
    if (r->status == SODET_OK && !r->stay_away) {
        own.ops->download(own.device, own.ops->address(p.handle, sd_graph_find_output(g, "sum")), 0, &r->sum, sizeof r->sum, &r->err);
        own.ops->download(own.device, own.ops->address(p.handle, sd_graph_find_output(g, "all")), 0, r->gathered, sizeof r->gathered,
                          &r->err);
    }
    rig_free(&p);
    sd_graph_free(g);
    own.ops->close(own.device);
    return NULL;
}

static void replicas(rig *cpu, bool one_fails)
{
    sodet_err err = SODET_ERR_INIT;
    void *group;
    CHECK_OK(cpu->ops->open_group(cpu->backend.self, 2, &group, &err));
    replica r[2] = {{.rig = cpu, .group = group, .rank = 0}, {.rig = cpu, .group = group, .rank = 1, .stay_away = one_fails}};
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, drive, &r[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    if (one_fails) {
        CHECK_EQ(r[0].status, SODET_E_DEVICE);
    } else {
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(r[i].status, SODET_OK);
            CHECK_NEAR((double)r[i].sum, 3.0, 0, 0);
            CHECK_NEAR((double)r[i].gathered[0], 1.0, 0, 0);
            CHECK_NEAR((double)r[i].gathered[1], 2.0, 0, 0);
        }
    }
    cpu->ops->close_group(group);
}

int main(void)
{
    rig cpu, ref;
    rig_open(&cpu, "cpu", 2);
    rig_open(&ref, "ref", 1);
    steps(&cpu);
    in_place(&cpu);
    no_images(&cpu, &ref);
    self_test();
    replicas(&cpu, false);
    replicas(&cpu, true);
    rig_close(&cpu);
    rig_close(&ref);
    return check_done(60);
}
