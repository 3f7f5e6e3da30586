/* bind() and run(): addresses go into the steps once; a run walks over them and makes nothing. */
#include "plugins/backend/cpu/cpu.h"

struct cpu_program {
    cpu_plan *plan;
    cpu_device *device;
    void **address;     /* of inputs and outputs, by value */
    bool weights_ready; /* the prologue has run */
};

static sodet_status set_addresses(cpu_plan *p, cpu_steps *list, sodet_err *err)
{
    for (uint64_t i = 0; i < list->n; i++) {
        cpu_step *s = &list->step[i];
        for (uint32_t k = 0; k < s->n_args; k++)
            if (dnnl_memory_set_data_handle(s->arg[k].memory, p->forms.place[s->arg_place[k]].address) != dnnl_success)
                return SODET_FAIL(err, SODET_E_INTERNAL, "%s: oneDNN refused an address", p->node[s->node].node->layer);
        if (s->kind == CPU_KERNEL || s->kind == CPU_FLAT_NARROW) {
            for (uint32_t k = 0; k < s->call.n_in + s->call.n_out; k++)
                s->tensor[k].data = s->tensor_place[k] ? p->forms.place[s->tensor_place[k]].address : NULL;
            s->call.scratch = s->scratch ? p->forms.place[s->scratch].address : NULL;
        }
    }
    return SODET_OK;
}

sodet_status cpu_bind(void *device, sodet_plan *plan, const sodet_binding *b, void **program, sodet_err *err)
{
    *program = NULL;
    cpu_plan *p = plan->handle;
    cpu_use_threads(((cpu_device *)device)->threads);
    if (p->references > 1)
        return SODET_FAIL(err, SODET_E_INTERNAL, "a plan is bound once; prepare another one");
    cpu_program *g = sd_alloc(1, sizeof *g);
    if (!g)
        return cpu_out_of_memory(err);
    g->plan = p;
    g->device = device;
    p->references++;
    g->address = sd_alloc(p->forms.n_values + 1, sizeof *g->address);
    sodet_status s = g->address ? SODET_OK : cpu_out_of_memory(err);
    if (s == SODET_OK) {
        sd_forms_resolve(&p->forms, b);
        for (uint32_t v = 1; v <= p->forms.n_values; v++)
            g->address[v] = p->forms.place[p->forms.value[v].place[CPU_FORM_PLAIN]].address;
        s = set_addresses(p, &p->steps[0], err);
    }
    if (s == SODET_OK)
        s = set_addresses(p, &p->steps[1], err);
    if (s != SODET_OK) {
        cpu_unbind(g);
        return s;
    }
    *program = g;
    return SODET_OK;
}

void cpu_unbind(void *program)
{
    cpu_program *g = program;
    if (!g)
        return;
    cpu_release_plan(g->plan);
    sd_free(g->address);
    sd_free(g);
}

void *cpu_address(void *program, sodet_value v)
{
    cpu_program *g = program;
    return v.id && v.id <= g->plan->forms.n_values ? g->address[v.id] : NULL;
}

static sodet_status run_step(const cpu_program *g, cpu_step *s, const sodet_run *r, sodet_err *err)
{
    cpu_device *d = g->device;
    const cpu_plan *p = g->plan;
    switch (s->kind) {
    case CPU_PRIMITIVE: {
        dnnl_status_t status = dnnl_primitive_execute(s->primitive, d->stream, (int)s->n_args, s->arg);
        if (status != dnnl_success)
            return SODET_FAIL(err, SODET_E_DEVICE, "%s: oneDNN failed with status %d", p->node[s->node].node->layer, (int)status);
        return SODET_OK;
    }
    case CPU_KERNEL:
    case CPU_FLAT_NARROW:
        s->call.seed = r->seed;
        s->call.step = r->step;
        if (s->kind == CPU_KERNEL)
            cpu_run_kernel(s->kernel, &s->call, s->units);
        else
            cpu_run_flat_narrow(s->kernel, &s->call);
        return SODET_OK;
    case CPU_FILL_ZERO:
        cpu_zero(d->threads, p->forms.place[s->to].address, s->bytes);
        return SODET_OK;
    case CPU_ADD:
        cpu_add_floats(d->threads, p->forms.place[s->to].address, p->forms.place[s->from].address, s->bytes / sizeof(float));
        return SODET_OK;
    case CPU_COPY:
        cpu_copy_bytes(d->threads, p->forms.place[s->to].address, p->forms.place[s->from].address, s->bytes);
        return SODET_OK;
    case CPU_PAD:
        cpu_zero_padding(d->threads, p->forms.place[s->to].address, &s->shape, d->block);
        return SODET_OK;
    default:
        return s->run(s, d, p, r, err);
    }
}

static sodet_status run_steps(cpu_program *g, const cpu_steps *list, const sodet_run *r, sodet_err *err)
{
    double before = r->node_seconds ? sd_now() : 0;
    for (uint64_t i = 0; i < list->n; i++) {
        sodet_status status = run_step(g, &list->step[i], r, err);
        if (status != SODET_OK)
            return status;
        if (r->node_seconds) {
            double now = sd_now();
            r->node_seconds[list->step[i].node] += now - before;
            before = now;
        }
    }
    return SODET_OK;
}

sodet_status cpu_time_steps(void *program, bool kept, double *seconds, sodet_err *err)
{
    cpu_program *g = program;
    const sodet_run r = {.struct_size = sizeof r};
    cpu_use_threads(g->device->threads);
    *seconds = 0;
    for (uint32_t l = 2; l-- > 0;)
        for (uint64_t i = 0; i < g->plan->steps[l].n; i++) {
            cpu_step *step = &g->plan->steps[l].step[i];
            const double before = sd_now();
            sodet_status s = run_step(g, step, &r, err);
            if (s != SODET_OK)
                return s;
            if (step->moves == CPU_MOVES_NOTHING || (step->moves == CPU_MOVES_WEIGHTS && !kept))
                *seconds += sd_now() - before;
        }
    return SODET_OK;
}

sodet_status cpu_run(void *program, const sodet_run *r, sodet_err *err)
{
    cpu_program *g = program;
    const double began = sd_now();
    cpu_use_threads(g->device->threads);
    sodet_status s = SODET_OK;
    if ((r->flags & SODET_RUN_WEIGHTS_CHANGED) || !g->weights_ready)
        s = run_steps(g, &g->plan->steps[1], r, err);
    g->weights_ready = s == SODET_OK;
    if (s == SODET_OK)
        s = run_steps(g, &g->plan->steps[0], r, err);
    g->device->in_runs += sd_now() - began;
    return s;
}
