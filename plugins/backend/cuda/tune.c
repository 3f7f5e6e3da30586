/* What plans of cuDNN take on this device. [backend.cuda] autotune = yes: which of the first ones for a convolution is the fastest, measured
 * once and kept. deterministic = yes: what the plan taken for it costs.
 *
 * Plans differ in the order of their sums: equal bytes are promised for equal choices, and the file is what makes them equal in the next
 * run. Devices of one kind share what one of them has measured. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/kept.h"
#include "plugins/backend/cuda/cuda.h"

enum { PLANS = 6, ROUNDS = 5 };
#define HEAD "sodet cuda engines 1"

static sd_kept table = SD_KEPT_INIT(SODET_CUDA_NAME); /* a value: place in cuDNN's list <tab> the plan's text <tab> seconds */

/* What decides which plan is the fastest, and which place it has in the list. */
static sodet_status key_of(const cuda_device *d, const dnn_conv *c, char out[600], sodet_err *err)
{
    static const char *const part[] = {"forward", "gradient of data", "gradient of weights"};
    static const char *const type[] = {[SODET_F32] = "fp32", [SODET_BF16] = "bf16", [SODET_F16] = "fp16"};
    struct cudaDeviceProp p;
    cudaError_t e = cudaGetDeviceProperties(&p, d->index);
    if (e != cudaSuccess)
        return cuda_failed(e, "asking for a device's properties", err);
    snprintf(out, 600,
             "%.100s, cuDNN %u%s%s, workspace %" PRIu64 ": %s %s, x %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 ", w %" PRId64 "x%" PRId64
             "x%" PRId64 ", y %" PRId64 "x%" PRId64 ", groups %" PRId64 ", stride %" PRId64 " %" PRId64 ", dilation %" PRId64 " %" PRId64
             ", padding %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "%s%s%s",
             p.name, dnn_version(d->dnn), d->config->deterministic ? ", deterministic" : "", d->config->tf32 ? ", tf32" : "",
             d->config->workspace, part[c->part], type[c->type], c->n, c->c, c->h, c->w, c->k, c->r, c->s, c->p, c->q, c->groups,
             c->stride[0], c->stride[1], c->dilation[0], c->dilation[1], c->before[0], c->before[1], c->after[0], c->after[1],
             c->bias ? ", bias" : "", c->residual ? ", residual" : "", c->relu ? ", relu" : "");
    return SODET_OK;
}

/* The place that was measured; UINT32_MAX: none was, or the list is not the one that it was measured in. */
static uint32_t known(const char *key, const dnn_plan *plan, uint32_t n)
{
    const char *value = sd_kept_find(&table, key);
    if (!value)
        return UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        char text[80];
        const int length = snprintf(text, sizeof text, "%u\t%s\t", i, plan[i].text);
        if (strncmp(value, text, (size_t)length) == 0)
            return i;
    }
    sd_log(SD_LOG_WARN, "%s: \"%.60s\" is no plan that cuDNN offers (%.200s); measuring that again", table.path ? table.path : "autotune",
           value, key);
    return UINT32_MAX;
}

typedef struct room {
    dnn_tensors at;
    cudaEvent_t begin, end;
} room;

/* Device memory for a convolution's tensors and the largest workspace; all zero, which takes as long as any other numbers. */
static cudaError_t take_room(const cuda_device *d, const dnn_conv *c, uint64_t workspace, room *r)
{
    const uint64_t size = c->type == SODET_F32 ? 4 : 2;
    const uint64_t x = (uint64_t)(c->n * c->c * c->h * c->w), y = (uint64_t)(c->n * c->k * c->p * c->q);
    const uint64_t w = (uint64_t)(c->k * (c->c / c->groups) * c->r * c->s);
    void **const at[] = {&r->at.x, &r->at.w, &r->at.y, &r->at.bias, &r->at.residual, &r->at.workspace};
    const uint64_t bytes[] = {x * size, w * size, y * size, c->bias ? (uint64_t)c->k * size : 0, c->residual ? y * size : 0, workspace};
    cudaError_t e = cudaEventCreate(&r->begin);
    if (e == cudaSuccess)
        e = cudaEventCreate(&r->end);
    for (uint32_t i = 0; i < sizeof at / sizeof *at && e == cudaSuccess; i++) {
        if (bytes[i])
            e = cudaMalloc(at[i], bytes[i]);
        if (e == cudaSuccess && bytes[i])
            e = cudaMemsetAsync(*at[i], 0, bytes[i], d->stream);
    }
    return e;
}

static void give_back(room *r)
{
    void *const at[] = {r->at.x, r->at.w, r->at.y, r->at.bias, r->at.residual, r->at.workspace};
    for (uint32_t i = 0; i < sizeof at / sizeof *at; i++)
        if (at[i])
            cudaFree(at[i]);
    if (r->begin)
        cudaEventDestroy(r->begin);
    if (r->end)
        cudaEventDestroy(r->end);
}

/* The least of some rounds; the first one is for caches and for what cuDNN loads. */
static sodet_status time_plan(cuda_device *d, const dnn_plan *p, const room *r, float *best, sodet_err *err)
{
    for (int i = 0; i < ROUNDS + 1; i++) {
        float ms = 0;
        cudaError_t e = cudaEventRecord(r->begin, d->stream);
        sodet_status s = e == cudaSuccess ? dnn_plan_run(p, &r->at, err) : SODET_OK;
        if (s != SODET_OK)
            return s;
        if (e == cudaSuccess)
            e = cudaEventRecord(r->end, d->stream);
        if (e == cudaSuccess && (s = cuda_wait(d, err)) != SODET_OK)
            return s;
        if (e == cudaSuccess)
            e = cudaEventElapsedTime(&ms, r->begin, r->end);
        if (e != cudaSuccess)
            return cuda_failed(e, "timing a convolution", err);
        if (i == 1 || (i > 1 && ms < *best))
            *best = ms;
    }
    return SODET_OK;
}

/* ms[i] is what plan i takes. *done = false: there is no room on the device to measure in. */
static sodet_status time_plans(cuda_device *d, const dnn_conv *c, const dnn_plan *plan, uint32_t n, float *ms, bool *done, sodet_err *err)
{
    uint64_t workspace = 0;
    room r = {.at = {0}};
    for (uint32_t i = 0; i < n; i++)
        workspace = plan[i].workspace > workspace ? plan[i].workspace : workspace;
    const cudaError_t e = take_room(d, c, workspace, &r);
    sodet_status s = SODET_OK;
    *done = e == cudaSuccess;
    if (e == cudaErrorMemoryAllocation)
        (void)cudaGetLastError();
    else if (e != cudaSuccess)
        s = cuda_failed(e, "memory to measure a convolution in", err);
    for (uint32_t i = 0; *done && i < n && s == SODET_OK; i++)
        s = time_plan(d, &plan[i], &r, &ms[i], err);
    give_back(&r);
    return s;
}

static sodet_status measure(cuda_device *d, const char *key, const dnn_conv *c, const dnn_plan *plan, uint32_t n, uint32_t *fastest,
                            sodet_err *err)
{
    float ms[PLANS];
    bool done;
    *fastest = 0;
    sodet_status s = time_plans(d, c, plan, n, ms, &done, err);
    if (s != SODET_OK)
        return s;
    if (!done) {
        sd_log(SD_LOG_WARN, "autotune: no room on device %d to measure a convolution; cuDNN's own choice stands (%.200s)", d->index, key);
        return SODET_OK;
    }
    for (uint32_t i = 1; i < n; i++)
        *fastest = ms[i] < ms[*fastest] ? i : *fastest;
    char value[160];
    snprintf(value, sizeof value, "%u\t%s\t%.4g", *fastest, plan[*fastest].text, (double)ms[*fastest] * 1e-3);
    return sd_kept_set(&table, key, value, err);
}

sodet_status cuda_tune_against_first(cuda_device *d, const cuda_conv *c, float ms[2], bool *done, sodet_err *err)
{
    dnn_plan first = {0};
    sodet_status s = dnn_plan_varying(d->dnn, &c->conv, &first, err);
    if (s == SODET_OK)
        s = time_plans(d, &c->conv, (const dnn_plan[]){c->plan, first}, 2, ms, done, err);
    dnn_plan_free(&first);
    return s;
}

sodet_status cuda_tune(cuda_device *d, const dnn_conv *c, dnn_plan *out, sodet_err *err)
{
    dnn_plan plan[PLANS];
    char key[600];
    uint32_t n = 0, fastest = 0;
    *out = (dnn_plan){0};
    sodet_status s = key_of(d, c, key, err);
    if (s == SODET_OK)
        s = dnn_plan_list(d->dnn, c, PLANS, plan, &n, err);
    if (s == SODET_OK && n > 1) {
        sd_pool pool = {0};
        char *path;
        pthread_mutex_lock(&table.lock);
        s = sd_kept_path(d->config->times, "cuda_engines.tsv", &pool, &path, err);
        if (s == SODET_OK && path)
            s = sd_kept_read(&table, path, HEAD, err);
        fastest = s == SODET_OK ? known(key, plan, n) : 0;
        if (fastest == UINT32_MAX) {
            s = measure(d, key, c, plan, n, &fastest, err);
            d->measured += s == SODET_OK;
        }
        pthread_mutex_unlock(&table.lock);
        sd_pool_clear(&pool);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (s == SODET_OK && i == fastest)
            *out = plan[i];
        else
            dnn_plan_free(&plan[i]);
    }
    return s;
}

sodet_status cuda_tuned(cuda_device *d, sodet_err *err)
{
    if (!d->measured)
        return SODET_OK;
    pthread_mutex_lock(&table.lock);
    const bool kept = table.path;
    sodet_status s = sd_kept_write(&table, HEAD, err);
    if (s != SODET_OK)
        s = sd_fail_in(err, s, CUDA_SECTION " autotune: what was measured (" CUDA_SECTION " times names another file)");
    else if (kept)
        sd_log(SD_LOG_INFO, "autotune: %" PRIu64 " convolutions measured on device %d, kept in %s", d->measured, d->index, table.path);
    else
        sd_log(SD_LOG_WARN,
               "autotune: %" PRIu64 " convolutions were measured and what was found cannot be kept, for neither XDG_CACHE_HOME nor HOME "
               "names a folder; " CUDA_SECTION " times = FILE keeps it",
               d->measured);
    d->measured = 0;
    pthread_mutex_unlock(&table.lock);
    return s;
}
