/* One group of devices over several processes: the id goes over a transport, each process drives some of the devices, sums are over all.
 * --on cuda_host: two processes with three virtual GPUs; one is killed, the other learns which rank it waits for, and ends. Else: what a
 * backend says whose groups are of one process. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/device/program.h"
#include "core/device/transport.h"

enum { N = 1000, MOST = 2, SUMS = 3, PATIENCE = 120 };
static sodet_err err = SODET_ERR_INIT;

/* ---- a transport of two processes: a socket between them ---- */
typedef struct wire {
    int end;
    uint32_t rank;
} wire;

static bool moved(wire *w, void *bytes, size_t n, bool out)
{
    for (char *at = bytes; n;) {
        ssize_t k = out ? write(w->end, at, n) : read(w->end, at, n);
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static sodet_status broadcast(void *self, void *bytes, uint64_t n, uint32_t root, sodet_err *e)
{
    wire *w = self;
    return moved(w, bytes, (size_t)n, w->rank == root) ? SODET_OK : SODET_FAIL(e, SODET_E_DEVICE, "rank %u is gone", 1 - w->rank);
}

static sodet_status sum(void *self, double *values, uint64_t n, sodet_err *e)
{
    wire *w = self;
    double theirs[MOST];
    if (n > MOST || !moved(w, values, (size_t)n * sizeof *values, true) || !moved(w, theirs, (size_t)n * sizeof *values, false))
        return SODET_FAIL(e, SODET_E_DEVICE, "rank %u is gone", 1 - w->rank);
    for (uint64_t i = 0; i < n; i++)
        values[i] += theirs[i];
    return SODET_OK;
}
static const sodet_transport_ops wire_ops = {.struct_size = sizeof wire_ops, .broadcast = broadcast, .sum = sum};

/* ---- a process ---- */
typedef struct device {
    const sd_instance *backend;
    const sd_world_group *group;
    uint32_t index, rank, die; /* die: before that sum */
    sodet_status status;
    sodet_err err;
    bool right;
} device;

static sodet_status sums(device *d, sd_replica *r, sodet_err *e)
{
    sodet_graph *g;
    sd_segments none = {0};
    sd_program *p = NULL;
    sodet_status s = sd_graph_create(&(sd_graph_options){.world = d->group->world}, &g, e);
    if (s != SODET_OK)
        return s;
    const sodet_shape shape = sodet_shape_make(SODET_F32, 1, N, 0, 0, 0);
    sodet_output(g, "y", sodet_all_reduce(g, sodet_input(g, "x", &shape)));
    s = sd_graph_bind(g, &none, e);
    if (s == SODET_OK)
        s = sd_program_make(r, g, SD_ARENA_PARAM, &p, e);
    else
        sd_graph_free(g);
    d->right = true;
    for (uint32_t k = 0; s == SODET_OK && k < SUMS; k++) {
        float x[N];
        for (int i = 0; i < N; i++)
            x[i] = (float)((1u << d->rank) * (unsigned)(i % 100) + k);
        if (k == d->die)
            raise(SIGKILL);
        s = sd_program_write(p, "x", x, N, e);
        if (s == SODET_OK)
            s = sd_program_run(p, 0, 0, NULL, e);
        if (s == SODET_OK)
            s = sd_program_read(p, "y", x, N, e);
        for (int i = 0; s == SODET_OK && i < N; i++)
            d->right = d->right && x[i] == (float)(7u * (unsigned)(i % 100) + 3 * k);
    }
    sd_program_free(p);
    return s;
}

static void *drive(void *self)
{
    device *d = self;
    const sodet_backend_ops *ops = d->backend->ops;
    sd_replica r = {.ops = ops};
    const sodet_device_options o = {
        .struct_size = sizeof o, .threads = 1, .rank = d->rank, .world = d->group->world, .group = d->group->group};
    d->status = ops->open(d->backend->self, d->index, &o, &r.device, &d->err);
    if (d->status == SODET_OK) {
        r.real_size = ops->real_size(r.device);
        d->status = sums(d, &r, &d->err);
        if (r.work)
            ops->release(r.device, r.work, r.work_bytes);
        ops->close(r.device);
    }
    return NULL;
}

typedef struct outcome {
    uint32_t awaited;
    device device[MOST];
} outcome;

/* Watches as the pool does: who is waited for longer than five seconds, which no process needs to come, ends the group. */
static void process(wire *w, uint32_t n, uint32_t first_device, uint32_t die, outcome *out)
{
    sd_config *cfg = NULL;
    sd_instance backend = {0};
    sd_world_group group;
    const sd_world world = {.ops = &wire_ops, .self = w, .info = {.rank = w->rank, .size = 2}};
    CHECK_OK(sd_config_open(NULL, &(sd_override){"run.devices=cuda_host", NULL}, 1, &cfg, &err));
    CHECK_OK(sd_instance_create(cfg, "backend.cuda_host", &backend, &err));
    CHECK_OK(sd_world_join(&world, backend.ops, backend.self, "cuda_host", n, &group, &err));
    CHECK_EQ(group.world, 3);
    CHECK_EQ(group.first, w->rank ? 2 : 0);
    const sodet_backend_ops *ops = backend.ops;
    if (!group.group)
        return;
    pthread_t thread[MOST];
    out->awaited = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        out->device[i] = (device){.backend = &backend, .group = &group, .index = first_device + i, .rank = group.first + i, .die = die};
        out->device[i].err = (sodet_err)SODET_ERR_INIT;
        pthread_create(&thread[i], NULL, drive, &out->device[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        for (int tries = 0; pthread_tryjoin_np(thread[i], NULL) != 0; tries++) {
            double seconds = 0;
            const uint32_t who = ops->awaited(group.group, &seconds);
            const bool late = die != UINT32_MAX - 1 && seconds > 5 && tries > 100; /* UINT32_MAX - 1: nobody is to die */
            if (late && out->awaited == UINT32_MAX) {
                out->awaited = who;
                ops->abort_group(group.group);
            }
            usleep(10000);
        }
    ops->close_group(group.group);
    sd_instance_destroy(&backend);
    sd_config_close(cfg);
}

static void together(bool killed)
{
    int ends[2], status = 0;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fflush(NULL);
    const pid_t child = fork(); /* before the rig has made a thread */
    static outcome out;
    alarm(PATIENCE);
    if (child == 0) {
        close(ends[0]);
        process(&(wire){.end = ends[1], .rank = 1}, 1, 2, killed ? SUMS - 1 : UINT32_MAX - 1, &out);
        _exit(check_failures() || out.device[0].status != SODET_OK || !out.device[0].right);
    }
    close(ends[1]);
    const double began = sd_now();
    process(&(wire){.end = ends[0], .rank = 0}, 2, 0, killed ? UINT32_MAX : UINT32_MAX - 1, &out);
    CHECK_EQ(waitpid(child, &status, 0), child);
    close(ends[0]);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(out.device[i].status, killed ? SODET_E_DEVICE : SODET_OK);
        CHECK(out.device[i].right); /* the sums that were made */
        CHECK(!killed || strstr(out.device[i].err.text, "another device of the group failed"));
    }
    if (killed) {
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK_EQ(out.awaited, 2); /* the rank that is gone */
        CHECK(sd_now() - began < PATIENCE / 2);
    } else {
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void refused(void)
{
    sd_config *cfg = NULL;
    sd_instance backend = {0};
    sd_world_group group;
    const sd_world two = {.ops = &wire_ops, .info = {.size = 2}}, one = {.ops = &sd_transport_self, .info = {.size = 1}};
    CHECK_OK(sd_config_open(NULL, NULL, 0, &cfg, &err));
    CHECK_OK(sd_instance_create(cfg, "backend.ref", &backend, &err));
    const sodet_backend_ops *ops = backend.ops;
    CHECK_FAILS(sd_world_join(&two, ops, backend.self, "ref", 1, &group, &err), SODET_E_UNSUPPORTED, "the job has 2");
    CHECK_OK(sd_world_join(&one, ops, backend.self, "ref", 1, &group, &err));
    CHECK(!group.group && group.world == 1 && group.first == 0);
    CHECK_OK(sd_world_join(&one, ops, backend.self, "ref", 3, &group, &err));
    CHECK(group.group && group.world == 3 && group.first == 0);
    ops->close_group(group.group);
    sd_instance_destroy(&backend);
    sd_config_close(cfg);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--on") == 0) {
        together(false);
        together(true);
        return check_done(20);
    }
    refused();
    return check_done(7);
}
