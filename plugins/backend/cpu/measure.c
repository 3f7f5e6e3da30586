/* precision = mixed: how long a convolution takes in float32 and in bf16 on this machine, measured once and kept.
 *
 * A node is measured as a program of its own; conversions of its maps are left out, for the plan counts those that it will need. What was
 * measured lies in a table that all devices of the process share, and in a file: the same choices, and so the same bytes, in the next run. */
#include <math.h>
#include <stdio.h>

#include "core/base/kept.h"
#include "core/graph/graph.h"
#include "plugins/backend/cpu/cpu.h"

enum { ROUNDS = 3 };

static sd_kept table = SD_KEPT_INIT("cpu"); /* a value: seconds in float32 <tab> seconds in bf16 */

static char *header(sd_pool *pool)
{
    const dnnl_version_t *v = dnnl_version();
    char name[96];
    cpu_processor_name(name, sizeof name);
    return sd_pool_printf(pool, "sodet cpu times 1, oneDNN %d.%d.%d %.12s, isa %#x, %s", v->major, v->minor, v->patch, v->hash,
                          (unsigned)dnnl_get_effective_cpu_isa(), name);
}

/* false: unknown, or not what a measurement can be. */
static bool find(const char *key, double seconds[2])
{
    const char *value = sd_kept_find(&table, key), *tab = value ? strchr(value, '\t') : NULL;
    char first[40];
    if (!value)
        return false;
    if (tab && (size_t)snprintf(first, sizeof first, "%.*s", (int)(tab - value), value) < sizeof first &&
        sd_parse_double(first, &seconds[0]) && sd_parse_double(tab + 1, &seconds[1]) && seconds[0] > 0 && seconds[1] > 0)
        return true;
    sd_log(SD_LOG_WARN, "%s: \"%.60s\" is no time of a convolution (%.60s); measuring that again", table.path ? table.path : "times", value,
           key);
    return false;
}

/* ---- measuring ---- */
static sodet_graph *alone(const cpu_plan *p, const sodet_node *n, sodet_err *err)
{
    sodet_graph *g = NULL;
    sodet_value in[8] = {{0}}, out[4] = {{0}};
    if (sd_graph_create(&(sd_graph_options){.training = sodet_is_training(p->graph)}, &g, err) != SODET_OK)
        return NULL;
    for (uint32_t i = 0; i < n->n_in && i < 8; i++)
        if (n->in[i].id)
            in[i] = sodet_input(g, (const char *const[]){"0", "1", "2", "3", "4", "5", "6", "7"}[i], &n->in_shape[i]);
    sodet_add_node(g, n->op, n->part, n->attr, in, n->n_in < 8 ? n->n_in : 8, out, n->n_out);
    for (uint32_t o = 0; o < n->n_out && o < 4; o++)
        sodet_output(g, (const char *const[]){"a", "b", "c", "d"}[o], out[o]);
    if (sd_graph_check(g, "a measurement", err) == SODET_OK && sd_graph_seal(g, err) == SODET_OK)
        return g;
    sd_graph_free(g);
    return NULL;
}

/* Seconds of the node in one precision. */
static sodet_status time_node(const cpu_plan *p, const cpu_node *n, uint32_t precision, double *seconds, sodet_err *err)
{
    cpu_device device = *p->device;
    device.precision = precision;
    device.measures = true;
    device.group = NULL;
    sodet_graph *g = alone(p, n->node, err);
    sodet_plan plan = {0};
    uint64_t work_bytes = 0, own_bytes = 0;
    void *work = NULL, *own = NULL, *program = NULL;
    sodet_status s = g ? cpu_prepare(&device, g, &plan, err) : err->code;
    if (s == SODET_OK)
        s = sd_plan_memory(&plan, &work_bytes, &own_bytes, err);
    if (s == SODET_OK)
        s = cpu_alloc(&device, work_bytes, &work, err);
    if (s == SODET_OK)
        s = cpu_alloc(&device, own_bytes, &own, err);
    if (s == SODET_OK)
        s = cpu_bind(&device, &plan, &(sodet_binding){.struct_size = sizeof(sodet_binding), .work = work, .own = own}, &program, err);
    *seconds = INFINITY;
    const char *text = s == SODET_OK ? plan.describe(plan.handle, 0) : NULL;
    const bool fell_back = precision == SODET_PRECISION_BF16 && !(text && strstr(text, "bf16"));
    for (int i = 0; i < ROUNDS + 1 && s == SODET_OK && !fell_back; i++) {
        double t = 0;
        s = cpu_time_steps(program, !sodet_is_training(p->graph), &t, err);
        if (i > 0 && t < *seconds) /* the first round is for the caches */
            *seconds = t;
    }
    if (program)
        cpu_unbind(program);
    if (plan.handle)
        cpu_discard(&device, &plan);
    cpu_release(&device, work, work_bytes);
    cpu_release(&device, own, own_bytes);
    sd_graph_free(g);
    return s;
}

/* Seconds for each element of a map, there and back. */
static sodet_status time_conversion(const cpu_plan *p, double seconds[2], sodet_err *err)
{
    const sodet_shape shape = {SODET_F32, 4, {1, 256, 75, 75}};
    const uint64_t bytes = cpu_form_bytes(p, &shape, CPU_FORM_BLOCKED);
    void *wide = NULL, *narrow = NULL;
    sodet_status s = cpu_alloc(p->device, bytes, &wide, err);
    if (s == SODET_OK)
        s = cpu_alloc(p->device, bytes, &narrow, err);
    seconds[0] = seconds[1] = INFINITY;
    for (int i = 0; i < 2 * ROUNDS && s == SODET_OK; i++) {
        sodet_tensor t[2] = {cpu_tensor(p, &shape, i % 2 ? CPU_FORM_NARROW : CPU_FORM_BLOCKED),
                             cpu_tensor(p, &shape, i % 2 ? CPU_FORM_BLOCKED : CPU_FORM_NARROW)};
        t[0].data = i % 2 ? narrow : wide;
        t[1].data = i % 2 ? wide : narrow;
        const sodet_kernel_args a = {
            .struct_size = sizeof a, .n_in = 1, .n_out = 1, .in = t, .out = t + 1, .n_threads = p->device->threads};
        const int64_t units = cpu_convert.units(&a, 0);
        const double before = sd_now();
        cpu_run_kernel(&cpu_convert, &a, &units);
        const double each = (sd_now() - before) / (double)sodet_elements(&shape);
        seconds[i % 2] = each < seconds[i % 2] ? each : seconds[i % 2];
    }
    cpu_release(p->device, wide, bytes);
    cpu_release(p->device, narrow, bytes);
    return s;
}

/* What decides how long a node takes. */
static void key_of(const cpu_plan *p, const sodet_node *n, char out[400])
{
    int at = snprintf(out, 400, "%s %u %s%s, %u threads:", n->op->name, n->part, sodet_is_training(p->graph) ? "training" : "inference",
                      p->device->emulate ? " emulated" : "", p->device->threads);
    for (uint32_t i = 0; i < n->n_in + n->n_out && at < 330; i++) {
        const sodet_shape *s = i < n->n_in ? &n->in_shape[i] : &n->out_shape[i - n->n_in];
        char shape[64] = "-";
        if (i >= n->n_in || n->in[i].id)
            sd_shape_text(s, shape);
        at += snprintf(out + at, (size_t)(400 - at), " %s%s", i == n->n_in ? "> " : "", shape);
    }
    snprintf(out + at, (size_t)(400 - at), ", attr %016llx",
             (unsigned long long)(n->attr ? sd_fnv1a64(n->attr, n->op->attr_size, SD_FNV_START) : 0));
}

static sodet_status look_up(cpu_plan *p, cpu_node *n, bool conversion, double seconds[2], uint64_t *measured, sodet_err *err)
{
    char key[400] = "conversion of an element";
    if (!conversion)
        key_of(p, n->node, key);
    if (find(key, seconds))
        return SODET_OK;
    sodet_status s = conversion ? time_conversion(p, seconds, err) : time_node(p, n, SODET_PRECISION_FP32, &seconds[0], err);
    if (s == SODET_OK && !conversion)
        s = time_node(p, n, SODET_PRECISION_BF16, &seconds[1], err);
    if (s == SODET_OK && seconds[1] > 1e6) /* no fast code: any large number that a file can hold */
        seconds[1] = 1e6;
    char value[80];
    snprintf(value, sizeof value, "%.9g\t%.9g", seconds[0], seconds[1]);
    ++*measured;
    return s == SODET_OK ? sd_kept_set(&table, key, value, err) : s;
}

sodet_status cpu_measure(cpu_plan *p, sodet_err *err)
{
    sd_pool pool = {0};
    char *path, *head = header(&pool);
    uint64_t measured = 0;
    pthread_mutex_lock(&table.lock);
    sodet_status s = sd_kept_path(p->device->config->times, "cpu_times.tsv", &pool, &path, err);
    if (s == SODET_OK && !head)
        s = cpu_out_of_memory(err);
    if (s == SODET_OK && path)
        s = sd_kept_read(&table, path, head, err);
    if (s == SODET_OK)
        s = look_up(p, NULL, true, p->conversion, &measured, err);
    for (uint32_t i = 0; i < p->forms.n_nodes && s == SODET_OK; i++)
        if (p->node[i].planner && p->node[i].planner->measured)
            s = look_up(p, &p->node[i], false, p->node[i].seconds, &measured, err);
    if (s == SODET_OK && path) {
        s = sd_kept_write(&table, head, err);
        if (s != SODET_OK)
            s = sd_fail_in(err, s, "times of convolutions for [run] precision = mixed ([backend.cpu] times names another file)");
    }
    if (s == SODET_OK && measured && !path)
        sd_log(SD_LOG_WARN,
               "precision = mixed: %llu times were measured and cannot be kept, for neither XDG_CACHE_HOME nor HOME names a "
               "folder; [backend.cpu] times = FILE keeps them",
               (unsigned long long)measured);
    else if (s == SODET_OK && measured)
        sd_log(SD_LOG_INFO, "precision = mixed: %llu times measured, kept in %s", (unsigned long long)measured, path);
    pthread_mutex_unlock(&table.lock);
    sd_pool_clear(&pool);
    return s;
}
