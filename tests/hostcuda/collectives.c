/* labels: threads */
/* NCCL's stand-in: every collective of every type over 1, 2 and 4 ranks, the same bits on every rank; ranks as threads and as processes;
 * and what happens where a rank is missing, dies, or calls something else. Those run in processes of their own, `collectives <case>`. */
#include "room.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <nccl.h>

#include "check.h"
#include "child.h"

/* Elements: two pieces of a room. Seconds: for what must come, however busy the machine is, and for what never will. */
enum { MAX = 200001, LONG = 60, SHORT = 1 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool shm_gone(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "/dev/shm%s", name);
    return access(path, F_OK) != 0;
}

/* A small number that every type can hold exactly, as can the sum of four. */
static int value(int rank, size_t i)
{
    return (int)((size_t)(rank + 2) * (i % 5 + 1) % 11);
}

static void put(int type, void *at, size_t i, int v)
{
    static const uint16_t half[16] = {0,      0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700,
                                      0x4800, 0x4880, 0x4900, 0x4980, 0x4a00, 0x4a80, 0x4b00, 0x4b80};
    float real = (float)v;
    uint32_t bits;
    memcpy(&bits, &real, sizeof bits);
    if (type == ncclFloat32)
        ((float *)at)[i] = real;
    else if (type == ncclFloat64)
        ((double *)at)[i] = v;
    else if (type == ncclInt32)
        ((int32_t *)at)[i] = v;
    else if (type == ncclInt8 || type == ncclUint8)
        ((uint8_t *)at)[i] = (uint8_t)v;
    else if (type == ncclBfloat16)
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
    else if (v < 16)
        ((uint16_t *)at)[i] = half[v];
    else /* 16 to 63: exponent 4 or 5, the rest of the bits */
        ((uint16_t *)at)[i] = (uint16_t)(v < 32 ? 0x4c00 + (v - 16) * 64 : 0x5000 + (v - 32) * 32);
}

static int reduced(int op, int ranks, size_t i)
{
    int all = value(0, i);
    for (int r = 1; r < ranks; r++) {
        int v = value(r, i);
        all = op == ncclSum ? all + v : op == ncclMax ? (v > all ? v : all) : (v < all ? v : all);
    }
    return all;
}

typedef struct rank {
    int index, ranks;
    ncclUniqueId id;
    int wrong, failed;
} rank;

/* Waits as a backend must: with a deadline, watching the communicator. */
static ncclResult_t watch(ncclComm_t comm, cudaStream_t stream, double deadline)
{
    for (double begin = now(); now() - begin < deadline; usleep(500)) {
        ncclResult_t state;
        cudaError_t error = cudaStreamQuery(stream);
        if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || (state != ncclSuccess && state != ncclInProgress))
            return state;
        if (error != cudaErrorNotReady)
            return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
    }
    return ncclInProgress;
}

static ncclComm_t open_rank(const rank *r, double deadline)
{
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t state;
    config.blocking = 0;
    state = ncclCommInitRankConfig(&comm, r->ranks, r->id, r->index, &config);
    for (double begin = now(); state == ncclInProgress && now() - begin < deadline; usleep(500))
        ncclCommGetAsyncError(comm, &state);
    return state == ncclSuccess ? comm : NULL;
}

static void exchange(rank *r, ncclComm_t comm, cudaStream_t stream, int type, size_t n)
{
    size_t size = hc_type_size(type), bytes = n * size;
    int ranks = r->ranks, root = ranks - 1;
    void *in, *out, *host = malloc(bytes * (size_t)ranks + 1), *want = malloc(bytes * (size_t)ranks + 1);
    cudaMalloc(&in, bytes * (size_t)ranks);
    cudaMalloc(&out, bytes * (size_t)ranks);
    for (int kind = 0; kind < 6; kind++) {
        static const ncclRedOp_t ops[6] = {ncclSum, ncclMax, ncclMin, ncclSum, ncclSum, ncclSum};
        size_t results = kind == 4 ? n * (size_t)ranks : n;
        for (size_t i = 0; i < n * (size_t)ranks; i++)
            put(type, host, i, value(r->index, i));
        cudaMemcpyAsync(in, host, bytes * (size_t)ranks, cudaMemcpyHostToDevice, stream);
        if (kind < 3)
            r->failed += ncclAllReduce(in, out, n, (ncclDataType_t)type, ops[kind], comm, stream) != ncclSuccess;
        else if (kind == 3)
            r->failed += ncclBroadcast(in, out, n, (ncclDataType_t)type, root, comm, stream) != ncclSuccess;
        else if (kind == 4)
            r->failed += ncclAllGather(in, out, n, (ncclDataType_t)type, comm, stream) != ncclSuccess;
        else
            r->failed += ncclReduceScatter(in, out, n, (ncclDataType_t)type, ncclSum, comm, stream) != ncclSuccess;
        for (size_t i = 0; i < results; i++) {
            int v = kind < 3    ? reduced((int)ops[kind], ranks, i)
                    : kind == 3 ? value(root, i)
                    : kind == 4 ? value((int)(i / n), i % n)
                                : reduced(ncclSum, ranks, i + (size_t)r->index * n);
            put(type, want, i, v);
        }
        cudaMemcpyAsync(host, out, results * size, cudaMemcpyDeviceToHost, stream);
        r->failed += watch(comm, stream, LONG) != ncclSuccess;
        r->wrong += memcmp(host, want, results * size) != 0;
    }
    cudaFree(in);
    cudaFree(out);
    free(host);
    free(want);
}

static void *work(void *self)
{
    static const int types[] = {ncclFloat32, ncclFloat16, ncclBfloat16, ncclInt32, ncclInt8, ncclUint8, ncclFloat64};
    rank *r = self;
    cudaStream_t stream;
    cudaSetDevice(r->index);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    ncclComm_t comm = open_rank(r, LONG);
    if (!comm) {
        r->failed++;
        return NULL;
    }
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        exchange(r, comm, stream, types[t], 37);
        exchange(r, comm, stream, types[t], 1);
    }
    exchange(r, comm, stream, ncclFloat32, MAX / 2);
    ncclResult_t state = ncclCommFinalize(comm);
    for (double begin = now(); state == ncclInProgress && now() - begin < LONG; usleep(500))
        ncclCommGetAsyncError(comm, &state);
    r->failed += state != ncclSuccess || ncclCommDestroy(comm) != ncclSuccess;
    cudaStreamDestroy(stream);
    return NULL;
}

static void threads(void)
{
    for (int n = 1; n <= 4; n *= 2) {
        pthread_t thread[4];
        rank r[4];
        ncclUniqueId id;
        CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
        for (int i = 0; i < n; i++) {
            r[i] = (rank){.index = i, .ranks = n, .id = id};
            pthread_create(&thread[i], NULL, work, &r[i]);
        }
        for (int i = 0; i < n; i++) {
            pthread_join(thread[i], NULL);
            CHECK_EQ(r[i].failed, 0);
            CHECK_EQ(r[i].wrong, 0);
        }
        CHECK(shm_gone(id.internal));
    }
}

/* Sums whose value depends on the order: the same bits everywhere, those of a sum in double in the order of the ranks. */
static void one_thread(void)
{
    enum { N = 1000, RANKS = 4 };
    static float in[RANKS][N], got[RANKS][N];
    ncclComm_t comm[RANKS];
    cudaStream_t stream[RANKS];
    float *at[RANKS];
    int wrong = 0, n = 0, r = -1, device = -1, version = 0;
    CHECK_EQ(ncclCommInitAll(comm, RANKS, NULL), ncclSuccess);
    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking);
        cudaMalloc((void **)&at[i], sizeof in[i]);
        for (int k = 0; k < N; k++)
            in[i][k] = (float)((k * 7919 + i * 104729) % 10007) * (i & 1 ? -1e-3f : 1e4f) / 3.0f;
        cudaMemcpyAsync(at[i], in[i], sizeof in[i], cudaMemcpyHostToDevice, stream[i]);
        CHECK_EQ(ncclAllReduce(at[i], at[i], N, ncclFloat, ncclSum, comm[i], stream[i]), ncclSuccess); /* in place */
    }
    CHECK_EQ(ncclGroupEnd(), ncclSuccess);
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        cudaMemcpyAsync(got[i], at[i], sizeof got[i], cudaMemcpyDeviceToHost, stream[i]);
        CHECK_EQ(cudaStreamSynchronize(stream[i]), cudaSuccess);
    }
    for (int k = 0; k < N; k++) {
        double sum = 0;
        for (int i = 0; i < RANKS; i++)
            sum += (double)in[i][k];
        for (int i = 0; i < RANKS; i++)
            wrong += !(got[i][k] == (float)sum);
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(ncclCommCount(comm[2], &n), ncclSuccess);
    CHECK_EQ(ncclCommUserRank(comm[2], &r), ncclSuccess);
    CHECK_EQ(ncclCommCuDevice(comm[2], &device), ncclSuccess);
    CHECK_EQ(ncclGetVersion(&version), ncclSuccess);
    CHECK(n == 4 && r == 2 && device == 2 && version == NCCL_VERSION_CODE);
    CHECK_STR(ncclGetErrorString(ncclRemoteError), "remote process exited or there was a network error");
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        cudaFree(at[i]);
        cudaStreamDestroy(stream[i]);
        CHECK_EQ(ncclCommDestroy(comm[i]), ncclSuccess);
    }
    /* several ranks of one thread, opened in a group */
    ncclUniqueId id;
    CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
    CHECK_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        CHECK_EQ(ncclCommInitRank(&comm[i], 2, id, i), ncclSuccess);
    }
    CHECK_EQ(ncclGroupEnd(), ncclSuccess);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(ncclCommDestroy(comm[i]), ncclSuccess);
    cudaSetDevice(0);
}

/* The cases of faults. Arguments: case, rank, id. */
static ncclComm_t pair[2];
static cudaStream_t lane[2];
static float *data[2];

static void open_pair(void)
{
    ncclCommInitAll(pair, 2, NULL);
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        cudaStreamCreateWithFlags(&lane[i], cudaStreamNonBlocking);
        cudaMalloc((void **)&data[i], 4000);
        cudaMemsetAsync(data[i], 0, 4000, lane[i]);
        cudaStreamSynchronize(lane[i]);
    }
}

static void say(const char *what, int number)
{
    fprintf(stderr, "%s %d\n", what, number);
}

static void both(size_t n0, size_t n1)
{
    ncclGroupStart();
    ncclAllReduce(data[0], data[0], n0, ncclFloat, ncclSum, pair[0], lane[0]);
    ncclAllReduce(data[1], data[1], n1, ncclFloat, ncclSum, pair[1], lane[1]);
    say("group", (int)ncclGroupEnd());
}

static void leave_pair(void)
{
    for (int i = 0; i < 2; i++) {
        say("abort", (int)ncclCommAbort(pair[i]));
        cudaSetDevice(i);
        say("stream", (int)cudaStreamSynchronize(lane[i]));
        cudaFree(data[i]);
        cudaStreamDestroy(lane[i]);
    }
}

static int run_case(const char *name, const char *number, const char *id_text)
{
    setenv("HC_DEVICES", "2", 1);
    if (strcmp(name, "mismatch") == 0) {
        open_pair();
        both(100, 50);
        say("state", (int)watch(pair[1], lane[1], LONG));
        leave_pair();
    } else if (strcmp(name, "missing") == 0) {
        setenv("HC_NCCL_TIMEOUT", "0", 1);
        open_pair();
        ncclGroupStart();
        ncclAllReduce(data[0], data[0], 100, ncclFloat, ncclSum, pair[0], lane[0]);
        ncclAllReduce(data[0], data[0], 100, ncclFloat, ncclSum, pair[0], lane[0]); /* queued behind it when the abort comes */
        ncclGroupEnd();
        say("state", (int)watch(pair[0], lane[0], SHORT));
        leave_pair();
    } else if (strcmp(name, "no_group") == 0) {
        open_pair();
        ncclAllReduce(data[0], data[0], 10, ncclFloat, ncclSum, pair[0], lane[0]);
        ncclAllReduce(data[1], data[1], 10, ncclFloat, ncclSum, pair[1], lane[1]);
        say("state", (int)watch(pair[0], lane[0], LONG));
        leave_pair();
    } else if (strcmp(name, "wrong_stream") == 0) {
        open_pair();
        say("call", (int)ncclAllReduce(data[0], data[0], 10, ncclFloat, ncclSum, pair[0], lane[1]));
        leave_pair();
    } else if (strcmp(name, "wrong_buffer") == 0) {
        open_pair();
        say("call", (int)ncclAllReduce(data[0], data[1], 10, ncclFloat, ncclSum, pair[0], lane[0]));
        say("call", (int)ncclAllReduce(data[0], data[0], 1001, ncclFloat, ncclSum, pair[0], lane[0]));
        leave_pair();
    } else if (strcmp(name, "planned") == 0) {
        setenv("HC_FAIL", "ncclAllReduce:2:6", 1);
        open_pair();
        ncclGroupStart();
        for (int i = 0; i < 2; i++)
            say("call", (int)ncclAllReduce(data[i], data[i], 10, ncclFloat, ncclSum, pair[i], lane[i]));
        ncclGroupEnd();
        leave_pair();
    } else if (strcmp(name, "twin") == 0) {
        int both_zero[2] = {0, 0};
        say("init", (int)ncclCommInitAll(pair, 2, both_zero));
    } else if (strcmp(name, "destroyed") == 0) {
        open_pair();
        both(100, 50);
        say("state", (int)watch(pair[0], lane[0], LONG));
        say("destroy", (int)ncclCommDestroy(pair[0]));
        say("destroy", (int)ncclCommDestroy(pair[1]));
    } else if (strcmp(name, "absent") == 0) {
        rank r = {.index = 0, .ranks = 2};
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        ncclResult_t state = ncclInProgress;
        config.blocking = 0;
        setenv("HC_NCCL_TIMEOUT", "0", 1);
        ncclGetUniqueId(&r.id);
        say("init", (int)ncclCommInitRankConfig(&pair[0], 2, r.id, 0, &config));
        say("call", (int)ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, pair[0], NULL));
        usleep(200000);
        ncclCommGetAsyncError(pair[0], &state);
        say("state", (int)state);
        say("abort", (int)ncclCommAbort(pair[0]));
        say("gone", shm_gone(r.id.internal));
    } else if (strcmp(name, "stale") == 0) {
        ncclUniqueId id;
        ncclGetUniqueId(&id);
        fprintf(stderr, "%s", id.internal);
        raise(SIGKILL);
    } else { /* "process" and "killed": one rank of two, for another process */
        rank r = {.index = atoi(number), .ranks = 2};
        snprintf(r.id.internal, sizeof r.id.internal, "%s", id_text);
        if (strcmp(name, "process") == 0) {
            work(&r);
            say("failed", r.failed);
            say("wrong", r.wrong);
            return 0;
        }
        cudaSetDevice(r.index);
        cudaStreamCreateWithFlags(&lane[0], cudaStreamNonBlocking);
        cudaMalloc((void **)&data[0], 4000);
        ncclComm_t comm = open_rank(&r, LONG);
        if (!comm)
            return 3;
        for (int i = 0; i < 3; i++) {
            if (i == 2 && r.index == 1)
                raise(SIGKILL);
            ncclAllReduce(data[0], data[0], 1000, ncclFloat, ncclMax, comm, lane[0]);
            for (double begin = now(); i == 2 && hc_reports == 0 && now() - begin < LONG;)
                usleep(500); /* until the death of the other is noticed */
            say("state", (int)watch(comm, lane[0], i < 2 ? LONG : SHORT));
        }
        say("abort", (int)ncclCommAbort(comm));
        say("stream", (int)cudaStreamSynchronize(lane[0]));
    }
    return 0;
}

static char text[2][1 << 15];

static void expect(const char *name, const char *const found[4])
{
    double begin = now();
    child_run((const char *const[4]){name}, text[0], sizeof text[0]);
    CHECK(now() - begin < 60); /* a hang would end with the test's own limit */
    for (int i = 0; i < 4 && found[i]; i++) {
        check_count();
        if (!strstr(text[0], found[i]))
            check_fail(__FILE__, __LINE__, "%s: not found: \"%s\"; said was:\n%s", name, found[i], text[0]);
    }
}

static void faults(void)
{
    expect("mismatch", (const char *const[4]){"call 1: rank 0 calls ncclAllReduce of 100 elements (type 7, operation 0, root 0), rank 1 "
                                              "calls ncclAllReduce of 50",
                                              "state 5\n", "abort 0\nstream 0\n"});
    expect("missing", (const char *const[4]){"rank 0 of 2 waits in ncclAllReduce for rank 1", "state 7\n", "abort 0\nstream 0\nabort 0"});
    expect("no_group",
           (const char *const[4]){"ncclAllReduce outside ncclGroupStart and ncclGroupEnd, although one thread owns 2 ranks", "state 0"});
    expect("wrong_stream", (const char *const[4]){"rank 0 is device 0, its stream is of device 1", "call 4"});
    expect("wrong_buffer", (const char *const[4]){"the output buffer is not 40 bytes of device 0", "call 4\n",
                                                  "the input buffer is not 4004 bytes of device 0"});
    expect("planned", (const char *const[4]){"call 0\ncall 6\n"});
    expect("twin", (const char *const[4]){"are the same device 0", "init 5"});
    expect("destroyed", (const char *const[4]){"ncclCommDestroy of rank 0, whose state is \"invalid usage\"", "destroy 0\n"});
    expect("absent", (const char *const[4]){"init 7\n", "waits in ncclCommInitRank for rank 1 (never came)", "state 7\nabort 0\ngone 1",
                                            "rank 0 is not ready"});
}

static void processes(void)
{
    ncclUniqueId id;
    for (int killed = 0; killed < 2; killed++) {
        child c[2];
        int status[2];
        CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
        for (int i = 0; i < 2; i++)
            c[i] = child_start((const char *const[4]){killed ? "killed" : "process", i ? "1" : "0", id.internal});
        for (int i = 0; i < 2; i++)
            status[i] = child_end(c[i], text[i], sizeof text[i]);
        if (!killed) {
            for (int i = 0; i < 2; i++) {
                CHECK_EQ(status[i], 0);
                CHECK_STR(text[i], "failed 0\nwrong 0\n");
            }
        } else {
            CHECK_EQ(status[1], 128 + SIGKILL);
            CHECK_EQ(status[0], 0);
            CHECK(strstr(text[0], "rank 0 of 2 waits in ncclAllReduce for rank 1 (its process has died)") != NULL);
            CHECK(strstr(text[0], "state 7\nabort 0\nstream 0") != NULL);
        }
        CHECK(shm_gone(id.internal));
    }
    /* what a process that was killed has left is removed by the next that makes a communicator */
    CHECK_EQ(child_run((const char *const[4]){"stale"}, text[0], sizeof text[0]), 128 + SIGKILL);
    CHECK(text[0][0] == '/' && !shm_gone(text[0]));
    CHECK_EQ(ncclGetUniqueId(&id), ncclSuccess);
    CHECK(shm_gone(text[0]));
    hc_room_close(id.internal);
}

int main(int n, char **arguments)
{
    if (n > 1)
        return run_case(arguments[1], n > 2 ? arguments[2] : "", n > 3 ? arguments[3] : "");
    setenv("HC_DEVICES", "4", 1);
    processes();
    faults();
    threads();
    one_thread();
    CHECK_EQ(hc_reports, 0);
    return check_done(60);
}
