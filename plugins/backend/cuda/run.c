/* bind() and run(): addresses go into the steps once; a run puts them on the stream and makes nothing. */
#include "kernels/kernels.h"
#include "plugins/backend/cuda/cuda.h"

typedef struct cuda_program {
    cuda_plan *plan;
    cuda_device *device;
    void **address; /* of inputs and outputs, by value */
    /* Used in turn: a run does not record events that an earlier one is still to be seen by. */
    cuda_marks marks[CUDA_RUNS], *now;
    uint64_t runs;
    cuda_part *part;           /* of the collective with most inputs */
    bool weights_ready;        /* the prologue has run */
    struct cuda_program *next; /* of the device's */
} cuda_program;

static void set_addresses(const cuda_plan *p, const cuda_steps *list)
{
    for (uint64_t i = 0; i < list->n; i++) {
        cuda_step *s = &list->step[i];
        for (uint32_t k = 0; k < s->call.n_in + s->call.n_out; k++)
            s->tensor[k].data = s->tensor_place[k] ? p->forms.place[s->tensor_place[k]].address : NULL;
        s->call.scratch = s->scratch ? p->forms.place[s->scratch].address : NULL;
    }
}

static sodet_status write_constants(cuda_program *g, sodet_err *err)
{
    const cuda_plan *p = g->plan;
    sodet_status s = SODET_OK;
    for (uint64_t i = 1; s == SODET_OK && i < p->forms.n_places; i++) {
        const sd_place_info *at = &p->forms.place[i];
        const sd_form_buffer *b = at->in == SD_IN_BUFFER ? &p->forms.buffer[at->index] : NULL;
        if (b && b->constant && !at->offset)
            s = cuda_upload(g->device, at->address, 0, b->constant, b->bytes, err);
    }
    return s;
}

static sodet_status make_events(cuda_program *g, sodet_err *err)
{
    const cuda_plan *p = g->plan;
    uint32_t most = 0;
    for (uint64_t i = 0; i < p->steps[0].n; i++)
        if (p->steps[0].step[i].kind == CUDA_COLLECTIVE && p->steps[0].step[i].call.n_in > most)
            most = p->steps[0].step[i].call.n_in;
    g->part = sd_alloc(most + 1, sizeof *g->part);
    if (!g->part)
        return cuda_out_of_memory(err);
    sodet_status s = g->device->group ? cuda_group_keep_book(g->device->group, p->n_events, err) : SODET_OK;
    for (uint32_t i = 0; s == SODET_OK && i < CUDA_RUNS; i++)
        s = cuda_marks_make(&g->marks[i], p->n_events, err);
    return s;
}

sodet_status cuda_bind(void *device, sodet_plan *plan, const sodet_binding *b, void **program, sodet_err *err)
{
    *program = NULL;
    cuda_plan *p = plan->handle;
    sodet_status s = cuda_use(device, err);
    if (s != SODET_OK)
        return s;
    if (p->references > 1)
        return SODET_FAIL(err, SODET_E_INTERNAL, "a plan is bound once; prepare another one");
    cuda_program *g = sd_alloc(1, sizeof *g);
    if (!g)
        return cuda_out_of_memory(err);
    g->plan = p;
    g->device = device;
    p->references++;
    g->next = g->device->programs;
    g->device->programs = g;
    g->address = sd_alloc(p->forms.n_values + 1, sizeof *g->address);
    s = g->address ? make_events(g, err) : cuda_out_of_memory(err);
    if (s == SODET_OK) {
        sd_forms_resolve(&p->forms, b);
        set_addresses(p, &p->steps[0]);
        set_addresses(p, &p->steps[1]);
        for (uint32_t v = 1; v <= p->forms.n_values; v++)
            g->address[v] = p->forms.place[p->forms.value[v].place[CUDA_PLAIN]].address;
        s = write_constants(g, err);
    }
    if (s != SODET_OK) {
        cuda_unbind(g);
        return s;
    }
    *program = g;
    return SODET_OK;
}

void cuda_unbind(void *program)
{
    cuda_program *g = program;
    if (!g)
        return;
    if (cuda_wait(g->device, NULL) != SODET_OK) /* nothing may still be at its memory */
        cuda_group_forget(g->device);
    for (uint32_t i = 0; i < CUDA_RUNS; i++) {
        (void)cuda_marks_read(g->device, &g->marks[i], NULL);
        cuda_marks_free(&g->marks[i]);
    }
    for (cuda_program **at = &g->device->programs; *at; at = &(*at)->next)
        if (*at == g) {
            *at = g->next;
            break;
        }
    cuda_release_plan(g->plan);
    sd_free(g->part);
    sd_free(g->address);
    sd_free(g);
}

void *cuda_address(void *program, sodet_value v)
{
    cuda_program *g = program;
    return v.id && v.id <= g->plan->forms.n_values ? g->address[v.id] : NULL;
}

static sodet_status run_collective(cuda_program *g, const cuda_step *s, sodet_err *err)
{
    cuda_device *d = g->device;
    const sodet_kernel_args *c = &s->call;
    const cudaEvent_t done = cuda_mark_of(g->now, s->event, CUDA_DONE), ready = cuda_mark_of(g->now, s->event, CUDA_READY);
    g->now->number[s->event] = ++d->n_collectives;
    cudaError_t e = cudaEventRecord(ready, d->stream);
    if (e == cudaSuccess)
        e = cudaStreamWaitEvent(d->comm, ready, 0);
    if (e == cudaSuccess)
        e = cudaEventRecord(cuda_mark_of(g->now, s->event, CUDA_BEGUN), d->comm);
    if (e != cudaSuccess)
        return cuda_failed(e, "ordering a collective", err);
    sodet_status status = cuda_group_expect(d, ready, err);
    if (status != SODET_OK)
        return status;
    if (g->plan->node[s->node].node->op->id == SODET_OP_all_reduce) {
        for (uint32_t i = 0; i < c->n_in; i++)
            g->part[i] = (cuda_part){c->in[i].data, c->out[i].data, (uint64_t)sodet_elements(&c->in[i].shape)};
        status = cuda_group_sum(d, g->part, c->n_in, err);
    } else if (c->out[0].shape.dim[0] != d->world) {
        status = SODET_FAIL(err, SODET_E_UNSUPPORTED, "the graph gathers from %lld devices, but %u take part in this process",
                            (long long)c->out[0].shape.dim[0], d->world);
    } else {
        status = cuda_group_gather(d, c->in[0].data, c->out[0].data, (uint64_t)sodet_elements(&c->in[0].shape) * sizeof(float), err);
    }
    if (status == SODET_OK && (e = cudaEventRecord(done, d->comm)) != cudaSuccess)
        status = cuda_failed(e, "ordering a collective", err);
    return status;
}

static sodet_status run_step(cuda_program *g, cuda_step *s, const sodet_run *r, sodet_err *err)
{
    cuda_device *d = g->device;
    const cuda_plan *p = g->plan;
    cudaError_t e = cudaSuccess;
    switch (s->kind) {
    case CUDA_KERNEL:
        s->call.seed = r->seed;
        s->call.step = r->step;
        e = (cudaError_t)s->kernel->launch(&s->call, d->stream);
        break;
    case CUDA_CONV: {
        const dnn_tensors t = {.x = p->forms.place[s->x].address,
                               .w = p->forms.place[s->w].address,
                               .y = p->forms.place[s->y].address,
                               .bias = p->forms.place[s->bias].address,
                               .residual = p->forms.place[s->residual].address,
                               .workspace = s->call.scratch};
        return dnn_plan_run(&d->conv[s->conv].plan, &t, err);
    }
    case CUDA_ZERO:
        e = cudaMemsetAsync(p->forms.place[s->to].address, 0, s->bytes, d->stream);
        break;
    case CUDA_COPY:
        e = cudaMemcpyAsync(p->forms.place[s->to].address, p->forms.place[s->from].address, s->bytes, cudaMemcpyDeviceToDevice, d->stream);
        break;
    case CUDA_COLLECTIVE:
        return run_collective(g, s, err);
    default: /* CUDA_JOIN */
        e = cudaEventRecord(cuda_mark_of(g->now, s->event, CUDA_ARRIVED), d->stream);
        if (e == cudaSuccess)
            e = cudaStreamWaitEvent(d->stream, cuda_mark_of(g->now, s->event, CUDA_DONE), 0);
        if (e == cudaSuccess)
            e = cudaEventRecord(cuda_mark_of(g->now, s->event, CUDA_PASSED), d->stream);
    }
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "launching a kernel", err);
}

static sodet_status run_steps(cuda_program *g, const cuda_steps *list, const sodet_run *r, sodet_err *err)
{
    double before = r->node_seconds ? sd_now() : 0;
    for (uint64_t i = 0; i < list->n; i++) {
        sodet_status s = run_step(g, &list->step[i], r, err);
        if (s == SODET_OK && r->node_seconds && (i + 1 == list->n || list->step[i + 1].node != list->step[i].node)) {
            s = cuda_wait(g->device, err); /* only a profile waits inside a run */
            const double now = sd_now();
            r->node_seconds[list->step[i].node] += now - before;
            before = now;
        }
        if (s != SODET_OK)
            return sd_fail_in(err, s, "%s", g->plan->node[list->step[i].node].node->layer);
    }
    return SODET_OK;
}

/* Of all programs, so that the ranks of a group come to know of a collective at about the same time. */
static sodet_status read_marks(cuda_device *d, sodet_err *err)
{
    sodet_status s = SODET_OK;
    for (cuda_program *g = d->programs; g; g = g->next)
        for (uint32_t i = 0; s == SODET_OK && i < CUDA_RUNS; i++)
            s = cuda_marks_read(d, &g->marks[i], err);
    return s;
}

sodet_status cuda_times(void *device, sodet_device_times *out, sodet_err *err)
{
    cuda_device *d = device;
    sodet_status s = cuda_use(d, err);
    if (s == SODET_OK)
        s = read_marks(d, err);
    *out = d->times;
    out->struct_size = sizeof *out;
    out->awaited = d->group ? cuda_group_has_waited(d) : 0;
    return s;
}

static sodet_status record_run(const cuda_program *g, uint32_t end, sodet_err *err)
{
    const cudaError_t e = cudaEventRecord(g->now->of[(uint64_t)g->now->n * CUDA_MARKS + end], g->device->stream);
    return e == cudaSuccess ? SODET_OK : cuda_failed(e, "timing a run", err);
}

sodet_status cuda_run(void *program, const sodet_run *r, sodet_err *err)
{
    cuda_program *g = program;
    sodet_status s = cuda_use(g->device, err);
    if (s == SODET_OK)
        s = read_marks(g->device, err);
    g->now = &g->marks[g->runs++ % CUDA_RUNS];
    if (s == SODET_OK && g->now->under_way) { /* many batches for one step: none goes uncounted */
        s = cuda_wait_for(g->device, cuda_end_of(g->now), err);
        if (s == SODET_OK)
            s = read_marks(g->device, err);
    }
    g->now->under_way = false;
    if (s == SODET_OK)
        s = record_run(g, 0, err);
    if (s == SODET_OK && ((r->flags & SODET_RUN_WEIGHTS_CHANGED) || !g->weights_ready)) {
        s = run_steps(g, &g->plan->steps[1], r, err);
        g->weights_ready = s == SODET_OK;
    }
    if (s == SODET_OK)
        s = run_steps(g, &g->plan->steps[0], r, err);
    if (s == SODET_OK)
        s = record_run(g, 1, err);
    g->now->under_way = s == SODET_OK;
    return s;
}
