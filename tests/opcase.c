/* Runs the cases of tests/ops/. Arguments: <file> compares backends, --on BACKEND <file> that one with the reference, --grad <file> checks
 * gradients, --coverage counts rows and parts.
 * SODET_OPCASE=<text> in the environment: only cases with the text in their names. */
#include "opcase.h"

#include "kernels/kernels.h"
#include "runner.h"

#define OPCASES(name) extern const opcase_entry opcases_##name[];
#include "opcases.inc"
#undef OPCASES

static const struct {
    const char *name;
    const opcase_entry *table;
} files[] = {
#define OPCASES(name) {#name, opcases_##name},
#include "opcases.inc"
#undef OPCASES
};

/* Rows without a case here, and where they are tested. */
static const char *const tested_elsewhere[] = {"all_reduce", /* tests/device/host_group.c: needs several devices */
                                               "all_gather", NULL};

enum { MOST_OPERANDS = 16, MOST_RESULTS = 8 };
typedef struct operand {
    char name[32];
    sodet_shape shape;
    const double *values; /* malloc'd, [n] */
    uint64_t n;
    bool parameter;
} operand;

struct opcase {
    const opcase_entry *entry;
    sodet_graph *g;
    operand operand[MOST_OPERANDS];
    uint32_t n_operands, n_results, n_nodes; /* n_nodes: before the losses */
    sodet_value result[MOST_RESULTS];
    bool differentiated;
};

/* ---- building ---- */
static uint64_t stream(const opcase *c, const char *name)
{
    return sd_fnv1a64(name, strlen(name), sd_fnv1a64(c->entry->name, strlen(c->entry->name), SD_FNV_START));
}

static double unit(uint64_t key, uint64_t i)
{
    return (double)(sd_mix64(key ^ sd_mix64(i)) >> 40) * 0x1p-24;
}

static uint64_t common_factor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static double value_of(uint32_t kind, uint64_t key, uint64_t i, uint64_t n)
{
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-40, 3e38, -3e38};
    double u = unit(key, i);
    switch (kind) {
    case OP_POSITIVE:
        return 0.25 + 1.75 * u;
    case OP_LARGE_MEAN:
        return (double)(float)(1000 + 2 * u - 1);
    case OP_TIES:
        return floor(u * 5) / 2 - 1;
    case OP_WIDE:
        return 40 * u - 20;
    case OP_SPREAD: { /* i times a number that has no factor in common with n, modulo n: a permutation */
        uint64_t step = n / 3 + 1 + sd_mix64(key) % (n + 1);
        while (n > 1 && common_factor(n, step) > 1)
            step++;
        double at = (double)((i * step + 3) % n);
        return 0.02 * (at - (double)n / 2) + 0.005 + 0.008 * (u - 0.5);
    }
    case OP_SPECIAL:
        return u < 0.4 ? (double)(float)special[(uint64_t)(u * 20) % 8] : 4 * u - 2;
    case OP_ZEROS:
        return 0;
    default:
        return 2 * u - 1;
    }
}

static sodet_shape shape_from(const char *text, uint32_t dtype)
{
    sodet_shape s = {.dtype = dtype};
    while (text && *text && s.rank < SODET_MAX_RANK) {
        char *end;
        s.dim[s.rank++] = strtoll(text, &end, 10);
        text = *end == 'x' ? end + 1 : end;
        if (!*end)
            break;
    }
    return s;
}

static operand *add_operand(opcase *c, const char *prefix, uint32_t i, const sodet_shape *shape)
{
    operand *o = &c->operand[c->n_operands++];
    snprintf(o->name, sizeof o->name, "%s%u", prefix, i);
    o->shape = *shape;
    o->n = (uint64_t)sodet_elements(shape);
    o->values = malloc((size_t)(o->n + 1) * sizeof(double));
    return o;
}

static double *values_of(operand *o)
{
    return (double *)(uintptr_t)o->values;
}

static void fill(const opcase *c, operand *o, uint32_t i)
{
    const opcase_entry *e = c->entry;
    uint32_t kind = i < 6 && e->data_of[i] ? e->data_of[i] - 1 : e->data;
    for (uint64_t k = 0; k < o->n; k++)
        values_of(o)[k] = (double)(float)value_of(kind, stream(c, o->name), k, o->n);
}

sodet_graph *op_graph(opcase *c)
{
    return c->g;
}

const opcase_entry *op_entry(const opcase *c)
{
    return c->entry;
}

double op_option(const opcase *c, uint32_t i)
{
    return c->entry->option[i];
}

sodet_value op_real(opcase *c, uint32_t i)
{
    sodet_shape shape = shape_from(c->entry->shape[i], SODET_F32);
    if (sodet_elements(&shape) == 0 || (c->entry->flags & (OP_NO_GRADIENT | OP_INFERENCE)))
        return op_fixed(c, i);
    operand *o = add_operand(c, "operand", i, &shape);
    o->parameter = true;
    fill(c, o, i);
    return sodet_parameter(c->g, o->name, &shape, NULL);
}

sodet_value op_fixed(opcase *c, uint32_t i)
{
    sodet_shape shape = shape_from(c->entry->shape[i], SODET_F32);
    operand *o = add_operand(c, "operand", i, &shape);
    fill(c, o, i);
    return sodet_input(c->g, o->name, &shape);
}

sodet_value op_int(opcase *c, uint32_t i, int32_t least, int32_t most)
{
    sodet_shape shape = shape_from(c->entry->shape[i], SODET_I32);
    operand *o = add_operand(c, "int", i, &shape);
    for (uint64_t k = 0; k < o->n; k++)
        values_of(o)[k] = floor((double)least + unit(stream(c, o->name), k) * ((double)most - (double)least + 1));
    return sodet_input(c->g, o->name, &shape);
}

sodet_value op_state(opcase *c, uint32_t i)
{
    sodet_shape shape = shape_from(c->entry->shape[i], SODET_F32);
    operand *o = add_operand(c, "state", i, &shape);
    fill(c, o, i);
    return sodet_buffer(c->g, o->name, &shape, 0);
}

sodet_value op_values(opcase *c, const char *text, const float *v)
{
    sodet_shape shape = shape_from(text, SODET_F32);
    operand *o = add_operand(c, "given", c->n_operands, &shape);
    for (uint64_t k = 0; k < o->n; k++)
        values_of(o)[k] = (double)v[k];
    return sodet_input(c->g, o->name, &shape);
}

sodet_value op_int_values(opcase *c, const char *text, const int32_t *v)
{
    sodet_shape shape = shape_from(text, SODET_I32);
    operand *o = add_operand(c, "given", c->n_operands, &shape);
    for (uint64_t k = 0; k < o->n; k++)
        values_of(o)[k] = (double)v[k];
    return sodet_input(c->g, o->name, &shape);
}

static sodet_value boxes(opcase *c, uint32_t i, bool centres)
{
    sodet_shape shape = shape_from(c->entry->shape[i], SODET_F32);
    operand *o = add_operand(c, centres ? "anchors" : "boxes", i, &shape);
    uint64_t key = stream(c, o->name);
    for (uint64_t k = 0; k + 4 <= o->n; k += 4)
        for (uint64_t d = 0; d < 2; d++) {
            double size = 1 + 40 * unit(key, k + d), at = 60 * unit(key, k + d + 2);
            values_of(o)[k + d] = (double)(float)(centres ? at + size / 2 : at);
            values_of(o)[k + d + 2] = (double)(float)(centres ? size : at + size);
        }
    return sodet_input(c->g, o->name, &shape);
}

sodet_value op_boxes(opcase *c, uint32_t i)
{
    return boxes(c, i, false);
}

sodet_value op_anchors(opcase *c, uint32_t i)
{
    return boxes(c, i, true);
}

void op_result(opcase *c, sodet_value v)
{
    c->result[c->n_results++] = v;
}

static bool has_parameters(const sodet_graph *g)
{
    for (uint32_t v = 1; v <= sodet_graph_value_count(g); v++)
        if (sodet_graph_value(g, (sodet_value){v})->store == SODET_STORE_PARAM)
            return true;
    return false;
}

/* The graph with its losses, differentiated if anything can be. NULL after a failure, which was reported. */
static sodet_graph *build(opcase *c, const opcase_entry *e)
{
    sodet_err err = SODET_ERR_INIT;
    *c = (opcase){.entry = e, .g = running_graph(!(e->flags & OP_INFERENCE))};
    sodet_graph *g = c->g;
    e->build(c);
    c->n_nodes = sodet_graph_node_count(g);
    bool learns = !(e->flags & (OP_INFERENCE | OP_NO_GRADIENT)) && has_parameters(g), terms = false;
    for (uint32_t i = 0; i < c->n_results; i++) {
        char name[32];
        snprintf(name, sizeof name, "result%u", i);
        sodet_output(g, name, c->result[i]);
        sodet_shape shape = sodet_shape_of(g, c->result[i]);
        if (!learns || shape.dtype != SODET_F32 || sodet_elements(&shape) == 0)
            continue;
        operand *o = add_operand(c, "weight", i, &shape);
        for (uint64_t k = 0; k < o->n; k++)
            values_of(o)[k] = (double)(float)(0.2 + 1.6 * unit(stream(c, o->name), k)) * (sd_mix64(k + 77) & 1 ? 1 : -1);
        sodet_value weighted = sodet_mul(g, c->result[i], sodet_input(g, o->name, &shape));
        sd_graph_add_loss(g, name, shape.rank ? sodet_sum(g, weighted, 0) : weighted);
        terms = true;
    }
    sodet_status s = sd_graph_check(g, e->name, &err);
    c->differentiated = learns && terms;
    if (s == SODET_OK && c->differentiated)
        s = sd_graph_backward(g, &err);
    check_count();
    if (s == SODET_OK)
        return g;
    check_fail(__FILE__, __LINE__, "%s: cannot be built: %s", e->name, err.text);
    return NULL;
}

static void clear(opcase *c)
{
    for (uint32_t i = 0; i < c->n_operands; i++)
        free(values_of(&c->operand[i]));
    sd_graph_free(c->g);
}

/* ---- running ---- */
static const operand *operand_of(const opcase *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_operands; i++)
        if (strcmp(c->operand[i].name, name) == 0)
            return &c->operand[i];
    return NULL;
}

/* Parameters and buffers that layers made: (-1, 1) / sqrt(fan in); running means small, other buffers (0.5, 1.5). */
static void set_segment(running *p, const opcase *c, const sd_segment *s)
{
    const operand *o = operand_of(c, s->name);
    if (o) {
        CHECK(running_set(p, s->name, o->values, o->n));
        return;
    }
    double *v = malloc((size_t)s->n * sizeof *v), fan = s->shape.rank > 1 ? (double)s->n / (double)s->shape.dim[0] : 1;
    uint64_t key = sd_fnv1a64(s->name, strlen(s->name), SD_FNV_START);
    for (uint64_t i = 0; i < s->n; i++) {
        double u = 2 * unit(key, i) - 1;
        v[i] = (double)(float)(!s->buffer ? u / sqrt(fan) : strstr(s->name, "mean") ? 0.1 * u : 1 + 0.5 * u);
    }
    CHECK(running_set(p, s->name, v, s->n));
    free(v);
}

static running *start(runner *r, const opcase *c, uint32_t flags, sodet_err *err)
{
    running *p = running_make(r, c->g, flags, err);
    if (!p)
        return NULL;
    const sd_segments *segments = running_segments(p);
    for (uint32_t i = 0; i < segments->n; i++)
        set_segment(p, c, &segments->segment[i]);
    for (uint32_t i = 0; i < c->n_operands; i++)
        if (sd_graph_find_input(c->g, c->operand[i].name).id)
            CHECK(running_set(p, c->operand[i].name, c->operand[i].values, c->operand[i].n));
    if (running_run(p, err) == SODET_OK)
        return p;
    running_free(p);
    return NULL;
}

static bool same_kind(double got, double want)
{
    return (isnan(got) && isnan(want)) || (isinf(want) && got == want);
}

/* Maps of 16 bits: what is allowed beside a case's own tolerance. An operand is off by half a unit in its last place (2^-9 in bf16, 2^-12 in
 * fp16, of numbers up to the largest), sums of such errors grow with the square root of the terms while the sum itself does so too, and
 * the result is rounded again; ten units leave room for the few operators whose derivative multiplies two such numbers.
 *
 * A gate (relu, a maximum, a comparison) behind a sum may turn over when the sum is rounded, which moves single elements as far as one
 * pleases. So a tensor passes too if its errors are small in the mean: a layout, scale or index that is wrong moves all of it. */
static double narrow;
static const double narrow_in_mean = 0.15;

/* got against want, element by element; a number that is not finite must be so in both. */
static void compare(const opcase *c, const char *who, const char *what, const double *got, const double *want, uint64_t n, double tolerance)
{
    double most = 0, worst = -1;
    uint64_t at = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(want[i]) && fabs(want[i]) > most)
            most = fabs(want[i]);
    if (!(c->entry->data == OP_SPECIAL))
        for (uint64_t i = 0; i < n; i++)
            if (!isfinite(want[i])) {
                check_count();
                check_fail(__FILE__, __LINE__, "%s: %s: %s[%llu] = %g in the reference", c->entry->name, who, what, (unsigned long long)i,
                           want[i]);
                return;
            }
    double allowed = tolerance == OP_EXACT ? 0 : (tolerance == 0 ? 2e-6 : tolerance) * most;
    allowed = allowed > narrow * most ? allowed : narrow * most;
    for (uint64_t i = 0; i < n; i++) {
        double off = fabs(got[i] - want[i]);
        if (isfinite(got[i]) && isfinite(want[i]) ? off > allowed : !same_kind(got[i], want[i]))
            off = isfinite(off) ? off : INFINITY;
        else
            continue;
        if (off > worst) {
            worst = off;
            at = i;
        }
    }
    double squares = 0, all = 0;
    for (uint64_t i = 0; narrow > 0 && i < n; i++) {
        squares += (got[i] - want[i]) * (got[i] - want[i]);
        all += want[i] * want[i];
    }
    check_count();
    if (worst >= 0 && !(narrow > 0 && squares <= narrow_in_mean * narrow_in_mean * all))
        check_fail(__FILE__, __LINE__, "%s: %s: %s[%llu] = %.9g, expected %.9g (off by %.3g; %.3g allowed, largest %.3g)", c->entry->name,
                   who, what, (unsigned long long)at, got[at], want[at], worst, allowed, most);
}

static double *fetch(running *p, const char *name, uint64_t n, bool gradient)
{
    double *v = calloc((size_t)n + 1, sizeof *v);
    CHECK(gradient ? running_grad(p, name, v, n) : running_get(p, name, v, n));
    return v;
}

static void compare_all(const opcase *c, running *got, running *want, const char *who)
{
    for (uint32_t i = 0; i < c->n_results; i++) {
        char name[32];
        snprintf(name, sizeof name, "result%u", i);
        sodet_shape shape = sodet_graph_value(c->g, sd_graph_find_output(c->g, name))->shape;
        uint64_t n = (uint64_t)sodet_elements(&shape);
        double *a = fetch(got, name, n, false), *b = fetch(want, name, n, false);
        if (narrow > 0 && shape.dtype == SODET_I32) /* which of two is larger may turn when they are rounded */
            memcpy(a, b, (size_t)n * sizeof *a);
        compare(c, who, name, a, b, n, shape.dtype == SODET_I32 ? OP_EXACT : c->entry->forward);
        free(a);
        free(b);
    }
    const sd_segments *segments = running_segments(want);
    for (uint32_t i = 0; i < segments->n; i++) {
        const sd_segment *s = &segments->segment[i];
        if (s->frozen && !s->buffer)
            continue;
        bool gradient = !s->frozen;
        if (gradient && !c->differentiated)
            continue;
        char what[300];
        snprintf(what, sizeof what, "%s %s", gradient ? "gradient of" : "state", s->name);
        double *a = fetch(got, s->name, s->n, gradient), *b = fetch(want, s->name, s->n, gradient);
        compare(c, who, what, a, b, s->n, gradient ? c->entry->backward : c->entry->forward);
        free(a);
        free(b);
    }
}

static bool listed(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* ---- the matrix ---- */
static const char *const op_names[] = {
    "none",
#define OP(name, parts) #name,
#include "kernels/ops.def"
#undef OP
};
enum { RAN, SKIPPED, FAILED, OUTCOMES };
static const char *outcome_of = "cpu"; /* the backend that is counted */
static uint32_t outcomes[SODET_OP_COUNT][OUTCOMES];

/* The operators of a case are those that it builds, not those of the loss behind them. */
static void count_outcome(const opcase *c, int outcome)
{
    bool seen[SODET_OP_COUNT] = {false};
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const uint32_t op = sodet_graph_node(c->g, i)->op->id;
        if (op < SODET_OP_COUNT && !seen[op])
            outcomes[op][outcome]++;
        if (op < SODET_OP_COUNT)
            seen[op] = true;
    }
}

static uint32_t may_be_skipped(const char *op)
{
    const char *path = check_source("tests/ops/skipped.txt");
    FILE *f = path ? fopen(path, "r") : NULL;
    char line[200], backend[64], name[64];
    uint32_t most = 0, n;
    CHECK(f != NULL);
    while (f && fgets(line, sizeof line, f))
        if (line[0] != '#' && sscanf(line, "%63s %63s %u", backend, name, &n) == 3 && strcmp(backend, outcome_of) == 0 &&
            strcmp(name, op) == 0)
            most = n;
    if (f)
        fclose(f);
    return most;
}

static void print_matrix(void)
{
    uint32_t all[OUTCOMES] = {0};
    printf("%-24s %5s %8s %7s\n", outcome_of, "run", "skipped", "failed");
    for (uint32_t op = 1; op < SODET_OP_COUNT; op++) {
        const uint32_t *o = outcomes[op];
        if (!o[RAN] && !o[SKIPPED] && !o[FAILED])
            continue;
        printf("%-24s %5u %8u %7u\n", op_names[op], o[RAN], o[SKIPPED], o[FAILED]);
        for (int i = 0; i < OUTCOMES; i++)
            all[i] += o[i];
        check_count();
        if (o[SKIPPED] && o[SKIPPED] > may_be_skipped(op_names[op]))
            check_fail("tests/ops/skipped.txt", 1, "%s: %u cases of %s were skipped, %u may be", outcome_of, o[SKIPPED], op_names[op],
                       may_be_skipped(op_names[op]));
    }
    printf("%-24s %5u %8u %7u\n", "all", all[RAN], all[SKIPPED], all[FAILED]);
}

enum { MOST_ROUNDS = 3 };
typedef struct round_of {
    runner *r;
    uint32_t flags;
    const char *who;
} round_of;
typedef struct backends {
    runner *exact, *ref;
    round_of round[MOST_ROUNDS];
} backends;

static void run_case(const opcase_entry *e, const backends *b)
{
    sodet_err err = SODET_ERR_INIT;
    opcase c;
    int before = check_failures();
    bool skipped = false;
    if (build(&c, e)) {
        bool special = e->data == OP_SPECIAL; /* what overflows in float need not in double */
        running *want = start(special ? b->ref : b->exact, &c, 0, &err);
        check_count();
        if (!want)
            check_fail(__FILE__, __LINE__, "%s: reference: %s", e->name, err.text);
        for (const round_of *round = b->round; want && round < b->round + MOST_ROUNDS && round->r; round++) {
            running *got = start(round->r, &c, round->flags, &err);
            check_count();
            if (!got && err.code == SODET_E_UNSUPPORTED && round->r != b->ref) {
                printf("%s: %s leaves it out: %s\n", e->name, round->who, err.text); /* how often it may: print_matrix */
                skipped = true;
                continue;
            }
            if (!got) {
                check_fail(__FILE__, __LINE__, "%s: %s: %s", e->name, round->who, err.text);
                continue;
            }
            compare_all(&c, got, want, round->who);
            const char *damage = running_damage(got);
            check_count();
            if (damage)
                check_fail(__FILE__, __LINE__, "%s: %s: %s", e->name, round->who, damage);
            running_free(got);
        }
        running_free(want);
    }
    count_outcome(&c, check_failures() > before ? FAILED : skipped ? SKIPPED : RAN);
    if (check_failures() > before)
        printf("    case: %s (data from its name)\n", e->name);
    clear(&c);
}

/* ---- central differences ---- */
static double loss_at(running *p, const char *name, const double *v, uint64_t n)
{
    sodet_err err = SODET_ERR_INIT;
    double loss = NAN;
    CHECK(running_set(p, name, v, n));
    CHECK_OK(running_run(p, &err));
    CHECK(running_get(p, "loss", &loss, 1));
    return loss;
}

/* Along single elements, and along one direction through all of them. */
static void difference(const opcase *c, running *p, const char *name, const double *at, const double *slope, uint64_t n)
{
    double most = 0, worst = -1, w_got = 0, w_want = 0, step = 1e-5;
    uint64_t where = 0, probes = n < 12 ? n : 12;
    double *v = malloc((size_t)n * sizeof *v);
    for (uint64_t i = 0; i < n; i++)
        most = fabs(slope[i]) > most ? fabs(slope[i]) : most;
    for (uint64_t k = 0; k <= probes; k++) {
        uint64_t i = n <= 12 ? k : sd_mix64(k + 1) % n;
        double want = 0, along = 1;
        memcpy(v, at, (size_t)n * sizeof *v);
        if (k == probes)
            along = 1 / sqrt((double)n);
        for (uint64_t j = 0; j < n; j++) {
            double d = k == probes ? (2 * unit(99, j) - 1) * along : j == i;
            v[j] = at[j] + step * d;
            want += slope[j] * d;
        }
        double up = loss_at(p, name, v, n);
        for (uint64_t j = 0; j < n; j++)
            v[j] = 2 * at[j] - v[j];
        double down = loss_at(p, name, v, n), got = (up - down) / (2 * step), off = fabs(got - want);
        double allowed = (c->entry->slope > 0 ? c->entry->slope : 1e-6) * (most > 1e-3 ? most : 1e-3) + 1e-10 * fabs(up);
        check_count();
        if (!(off <= allowed) && !(off <= worst)) {
            worst = isfinite(off) ? off : INFINITY;
            where = k == probes ? n : i;
            w_got = want;
            w_want = got;
        }
    }
    if (worst >= 0)
        check_fail(__FILE__, __LINE__, "%s: gradient of %s %s%llu is %.12g, central difference %.12g (off by %.3g, largest gradient %.3g)",
                   c->entry->name, name, where == n ? "along a direction of all " : "at ", (unsigned long long)where, w_got, w_want, worst,
                   most);
    CHECK(running_set(p, name, at, n));
    free(v);
}

static uint32_t grad_case(const opcase_entry *e, runner *exact)
{
    sodet_err err = SODET_ERR_INIT;
    opcase c;
    uint32_t done = 0;
    if ((e->flags & (OP_NO_GRADIENT | OP_NO_DIFFERENCES | OP_INFERENCE)) || e->data == OP_SPECIAL)
        return 0;
    running *p = build(&c, e) ? start(exact, &c, 0, &err) : NULL;
    if (p && c.differentiated) {
        const sd_segments *segments = running_segments(p);
        double **slope = calloc(segments->n + 1u, sizeof *slope), **at = calloc(segments->n + 1u, sizeof *at);
        for (uint32_t i = 0; i < segments->n_trainable; i++) {
            slope[i] = fetch(p, segments->segment[i].name, segments->segment[i].n, true);
            at[i] = fetch(p, segments->segment[i].name, segments->segment[i].n, false);
        }
        for (uint32_t i = 0; i < segments->n_trainable; i++, done++)
            difference(&c, p, segments->segment[i].name, at[i], slope[i], segments->segment[i].n);
        for (uint32_t i = 0; i < segments->n; i++) {
            free(slope[i]);
            free(at[i]);
        }
        free(slope);
        free(at);
    } else if (!p) {
        check_count();
        check_fail(__FILE__, __LINE__, "%s: ref (double): %s", e->name, err.text);
    }
    running_free(p);
    clear(&c);
    return done;
}

/* ---- coverage ---- */
static int coverage(void)
{
    static const uint32_t parts[] = {
        0,
#define OP(name, parts) parts,
#include "kernels/ops.def"
#undef OP
    };
    uint32_t seen[SODET_OP_COUNT][16] = {{0}};
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++)
        for (const opcase_entry *e = files[f].table; e->name; e++) {
            opcase c;
            if (build(&c, e))
                for (uint32_t i = 0; i < sodet_graph_node_count(c.g); i++) {
                    const sodet_node *n = sodet_graph_node(c.g, i);
                    if (n->op->id < SODET_OP_COUNT && n->part < 16)
                        seen[n->op->id][n->part]++;
                }
            clear(&c);
        }
    for (uint32_t op = 1; op < SODET_OP_COUNT; op++)
        for (uint32_t part = 0; part < parts[op] && !listed(tested_elsewhere, op_names[op]); part++) {
            check_count();
            if (seen[op][part] == 0)
                check_fail("kernels/ops.def", (int)op, "operator %s, part %u, is in no case of tests/ops/", op_names[op], part);
        }
    return check_done(1);
}

int main(int argc, char **argv)
{
    bool grad = argc > 2 && strcmp(argv[1], "--grad") == 0;
    const char *on = argc > 3 && strcmp(argv[1], "--on") == 0 ? argv[2] : NULL;
    if (argc > 1 && strcmp(argv[1], "--coverage") == 0)
        return coverage();
    const char *wanted = argc > 1 ? argv[argc - 1] : "", *only = getenv("SODET_OPCASE");
    const opcase_entry *table = NULL;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++)
        if (strcmp(files[f].name, wanted) == 0)
            table = files[f].table;
    if (!table) {
        fprintf(stderr, "usage: %s [--grad | --on BACKEND] <file in tests/ops> | --coverage\n", argv[0]);
        return 2;
    }
    runner *opened[] = {runner_open("ref", true, 1), grad ? NULL : runner_open("ref", false, 1), NULL, NULL};
    backends b = {.exact = opened[0], .ref = opened[1]};
    if (on) {
        outcome_of = on;
        narrow = strstr(on, ":bf16") ? 0x1p-9 * 10 : strstr(on, ":fp16") ? 0x1p-12 * 10 : 0;
        opened[2] = runner_open(on, false, 2);
        b.round[0] = (round_of){opened[2], RUNNING_GUARDS, "guarded"};
        b.round[1] = (round_of){opened[2], 0, "memory shared"};
    } else if (!grad) {
        opened[2] = runner_open("cpu", false, 2);
        opened[3] = runner_open("cpu", false, 3); /* so that ranges are cut at odd places */
        b.round[0] = (round_of){b.ref, RUNNING_GUARDS, "ref (float)"};
        b.round[1] = (round_of){opened[2], RUNNING_GUARDS, "cpu, guarded"};
        b.round[2] = (round_of){opened[3], 0, "cpu, 3 threads"};
    }
    uint32_t cases = 0, gradients = 0, left_out = 0;
    for (const opcase_entry *e = table; e->name; e++) {
        if (only && !strstr(e->name, only))
            continue;
        if (narrow > 0 && (e->data == OP_SPECIAL || e->data == OP_LARGE_MEAN)) { /* 1000.5 and 1001 are one number in bf16 */
            left_out++;
            continue;
        }
        cases++;
        if (grad)
            gradients += grad_case(e, b.exact);
        else
            run_case(e, &b);
    }
    for (size_t i = 0; i < sizeof opened / sizeof opened[0]; i++)
        runner_close(opened[i]);
    if (!grad)
        print_matrix();
    if (left_out)
        printf("%u cases are of numbers that 16 bits do not hold\n", left_out);
    printf("%u cases, %u gradients checked by differences\n", cases, gradients);
    return check_done(only ? 0 : 1);
}
