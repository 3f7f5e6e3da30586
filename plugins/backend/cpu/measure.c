/* precision = mixed: how long a convolution takes in float32 and in bf16 on this machine, measured once and kept.
 *
 * A node is measured as a program of its own; conversions of its maps are left out, for the plan counts those that it will need. What was
 * measured lies in a table that all devices of the process share, and in a file: the same choices, and so the same bytes, in the next run. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/graph/graph.h"
#include "plugins/backend/cpu/cpu.h"

enum { ROUNDS = 3, MOST_BYTES = 16 << 20 /* of the file */ };

typedef struct timing {
    char *key;
    double seconds[2]; /* float32, bf16; INFINITY: has no fast code */
} timing;

static struct {
    pthread_mutex_t lock;
    timing *row;
    uint64_t n, capacity;
    char *path; /* of the file that was read; NULL: none yet */
    bool changed;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the file: a line that says for what it holds, then "key <tab> seconds <tab> seconds" ---- */
static char *header(sd_pool *pool)
{
    const dnnl_version_t *v = dnnl_version();
    char name[96];
    cpu_processor_name(name, sizeof name);
    return sd_pool_printf(pool, "sodet cpu times 1, oneDNN %d.%d.%d %.12s, isa %#x, %s", v->major, v->minor, v->patch, v->hash,
                          (unsigned)dnnl_get_effective_cpu_isa(), name);
}

static timing *find(const char *key)
{
    for (uint64_t i = 0; i < table.n; i++)
        if (strcmp(table.row[i].key, key) == 0)
            return &table.row[i];
    return NULL;
}

static sodet_status add(const char *key, double fp32, double bf16, sodet_err *err)
{
    if (sd_grow(&table.row, &table.capacity, table.n + 1, sizeof *table.row, err) != SODET_OK)
        return SODET_E_MEMORY;
    char *copy = sd_strdup(key);
    if (!copy)
        return cpu_out_of_memory(err);
    table.row[table.n++] = (timing){copy, {fp32, bf16}};
    return SODET_OK;
}

static void forget(void)
{
    for (uint64_t i = 0; i < table.n; i++)
        sd_free(table.row[i].key);
    sd_free(table.row);
    sd_free(table.path);
    table.row = NULL;
    table.path = NULL;
    table.n = table.capacity = 0;
    table.changed = false;
}

/* Lines of another library, processor or form are measured anew. */
static sodet_status parse(char *text, const char *path, const char *head, sodet_err *err)
{
    char *save = NULL, *line = strtok_r(text, "\n", &save);
    if (!line || strcmp(line, head) != 0) {
        sd_log(SD_LOG_INFO, "%s: measured with another oneDNN or on another processor; measuring again", path);
        return SODET_OK;
    }
    while ((line = strtok_r(NULL, "\n", &save))) {
        char *first = strchr(line, '\t'), *second = first ? strchr(first + 1, '\t') : NULL;
        double t[2];
        if (second) {
            *first = *second = '\0';
            if (sd_parse_double(first + 1, &t[0]) && sd_parse_double(second + 1, &t[1]) && t[0] > 0 && t[1] > 0) {
                if (!find(line) && add(line, t[0], t[1], err) != SODET_OK)
                    return SODET_E_MEMORY;
                continue;
            }
        }
        sd_log(SD_LOG_WARN, "%s: a line is no time of a convolution (\"%.60s\"); measuring that again", path, line);
    }
    return SODET_OK;
}

/* Where times are kept: the option's file, or the user's folder of caches. NULL: nowhere. */
static char *file_of(const cpu_device *d, sd_pool *pool)
{
    const char *set = d->config->times, *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (set && *set)
        return sd_pool_strdup(pool, set);
    if (cache && *cache == '/')
        return sd_pool_printf(pool, "%s/sodet/cpu_times.tsv", cache);
    return home && *home == '/' ? sd_pool_printf(pool, "%s/.cache/sodet/cpu_times.tsv", home) : NULL;
}

static sodet_status read_file(const char *path, sd_pool *pool, sodet_err *err)
{
    if (table.path && strcmp(table.path, path) == 0)
        return SODET_OK;
    forget();
    char *text = NULL, *head = header(pool);
    uint64_t n = 0;
    table.path = sd_strdup(path);
    if (!head || !table.path)
        return cpu_out_of_memory(err);
    if (!sd_path_exists(path))
        return SODET_OK;
    sodet_status s = sd_file_read(path, MOST_BYTES, &text, &n, err);
    if (s == SODET_OK)
        s = parse(text, path, head, err);
    sd_free(text);
    return s;
}

static sodet_status write_file(sd_pool *pool, sodet_err *err)
{
    sd_text t = {0};
    const char *head = header(pool), *slash = strrchr(table.path, '/');
    if (!head)
        return cpu_out_of_memory(err);
    sd_text_printf(&t, "%s\n", head);
    for (uint64_t i = 0; i < table.n; i++)
        sd_text_printf(&t, "%s\t%.9g\t%.9g\n", table.row[i].key, table.row[i].seconds[0], table.row[i].seconds[1]);
    sodet_status s = SODET_OK;
    if (slash && slash != table.path) {
        const char *folder = sd_pool_printf(pool, "%.*s", (int)(slash - table.path), table.path);
        s = folder ? sd_make_folders(folder, err) : cpu_out_of_memory(err);
    }
    if (s == SODET_OK)
        s = !t.failed ? sd_file_write_atomic(table.path, t.text, t.length, err) : cpu_out_of_memory(err);
    if (s != SODET_OK)
        s = sd_fail_in(err, s, "times of convolutions for [run] precision = mixed ([backend.cpu] times names another file)");
    table.changed = s != SODET_OK;
    sd_text_free(&t);
    return s;
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
    const timing *t = find(key);
    sodet_status s = SODET_OK;
    if (!t) {
        s = conversion ? time_conversion(p, seconds, err) : time_node(p, n, SODET_PRECISION_FP32, &seconds[0], err);
        if (s == SODET_OK && !conversion)
            s = time_node(p, n, SODET_PRECISION_BF16, &seconds[1], err);
        if (s == SODET_OK && seconds[1] > 1e6) /* no fast code: any large number that a file can hold */
            seconds[1] = 1e6;
        if (s == SODET_OK)
            s = add(key, seconds[0], seconds[1], err);
        table.changed = true;
        ++*measured;
        return s;
    }
    seconds[0] = t->seconds[0];
    seconds[1] = t->seconds[1];
    return s;
}

sodet_status cpu_measure(cpu_plan *p, sodet_err *err)
{
    sd_pool pool = {0};
    char *path = file_of(p->device, &pool);
    uint64_t measured = 0;
    pthread_mutex_lock(&table.lock);
    sodet_status s = path ? read_file(path, &pool, err) : SODET_OK;
    if (s == SODET_OK)
        s = look_up(p, NULL, true, p->conversion, &measured, err);
    for (uint32_t i = 0; i < p->n_nodes && s == SODET_OK; i++)
        if (p->node[i].planner && p->node[i].planner->measured)
            s = look_up(p, &p->node[i], false, p->node[i].seconds, &measured, err);
    if (s == SODET_OK && table.changed && path)
        s = write_file(&pool, err);
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
