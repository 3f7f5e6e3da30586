// Runs grids. One grid runs at a time in a process, one block at a time in a grid, on the thread of its stream; the threads of a block are
// fibers. A fiber runs one CUDA thread after another until one waits, so that a kernel whose threads never wait costs a call per thread.
//
// __syncthreads parks a thread; when none can run, either all that are left stand at one barrier, which opens, or the block is stuck. Lanes
// of a warp wait for exactly those that their mask names. HC_SCHED changes the order of blocks and of threads: a kernel whose result
// depends on it is wrong.
#include "hostcuda.h"

#include "fiber.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace
{

enum class state { fresh, ready, at_barrier, in_warp, done };

struct thread : hc_thread {
    state now;
    hc_fiber *fiber;
    // What it waits with.
    const hc_site *site;
    uint32_t mask;
    unsigned source;
    uint64_t value; // brought; then received
    int predicate;
    hc_vote vote;
    uint32_t votes;
};

struct grid {
    const char *name;
    const void *kernel;
    hc_arrays shared; // of the object that the kernel is in
    dim3 size, block;
    size_t shared_bytes;
    hc_closure run, drop;
    void *closure;
    int device;
    char end; // for the thread sanitizer: what comes before the grid's end
};

// Places of order as the thread sanitizer sees them, new for each block: two blocks have none, so that what both touch is found.
struct block_order {
    char begin, barrier, warp[32];
};

// The lists have no destructors, which would run while a stream still works: hc_free_executor.
grid *running;
block_order *order;
std::vector<thread> &threads = *new std::vector<thread>;      // of the block that runs
std::vector<unsigned> &turns = *new std::vector<unsigned>;    // the order they are given a turn in
std::vector<hc_fiber *> &idle = *new std::vector<hc_fiber *>; // whose threads are done
size_t turn;
unsigned alive;
thread *own; // the one that runs: hc_current
// HC_FIBER_PER_THREAD: of each place in a block. What one fiber does has an order, so two streams have none in common, nor have a block and
// the next (large ones do: the sanitizer knows some 8000 threads at most).
struct kept_fibers {
    hc_fiber *of[2][1024] = {};
    ~kept_fibers()
    {
        for (auto &set : of)
            for (hc_fiber *f : set)
                hc_fiber_free(f);
    }
};
thread_local kept_fibers kept;
unsigned kept_set;
unsigned waiting[32]; // lanes of each warp that stand at a warp operation
void *dynamic_shared;
int barrier_result;
uint64_t random_state;
pthread_mutex_t one_grid = PTHREAD_MUTEX_INITIALIZER;

unsigned random_below(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>((random_state >> 32) * n >> 32);
}

void shuffle(std::vector<unsigned> &v)
{
    for (unsigned i = static_cast<unsigned>(v.size()); i > 1; i--)
        std::swap(v[i - 1], v[random_below(i)]);
}

// "kernel: block (1,0,0) thread (5,0,0)" of a report.
struct where {
    char text[120];
    explicit where(const thread *t)
    {
        int n = std::snprintf(text, sizeof text, "block (%u,%u,%u)", hc_block_index.x, hc_block_index.y, hc_block_index.z);
        if (t)
            std::snprintf(text + n, sizeof text - static_cast<size_t>(n), " thread (%u,%u,%u)", t->index.x, t->index.y, t->index.z);
    }
};

// The next thread of this pass, if it has not begun: the fiber that runs can take it.
thread *next_fresh()
{
    if (HC_FIBER_PER_THREAD || turn + 1 >= turns.size() || threads[turns[turn + 1]].now != state::fresh)
        return nullptr;
    return &threads[turns[++turn]];
}

void begin(thread *t, hc_fiber *f)
{
    t->fiber = f;
    t->now = state::ready;
    own = t;
    hc_current = t;
}

void fiber_body()
{
    hc_fiber_begin();
    for (;;) {
        hc_fiber *self = own->fiber;
        for (thread *next = own; next; next = next_fresh()) {
            begin(next, self);
            hc_acquire(&order->begin);
            running->run(running->closure);
            hc_release(&running->end);
            own->now = state::done;
            alive--;
        }
        if (!HC_FIBER_PER_THREAD)
            idle.push_back(self);
        hc_fiber_leave(self);
    }
}

void resume(thread *t)
{
    hc_fiber *f = t->fiber;
    if (t->now == state::fresh && HC_FIBER_PER_THREAD) {
        hc_fiber *&own_fiber = kept.of[kept_set][t - threads.data()];
        if (!own_fiber)
            own_fiber = hc_fiber_new(fiber_body);
        f = own_fiber;
    } else if (t->now == state::fresh && idle.empty()) {
        f = hc_fiber_new(fiber_body);
    } else if (t->now == state::fresh) {
        f = idle.back();
        idle.pop_back();
    }
    begin(t, f);
    hc_fiber_enter(f);
}

// Opens a warp operation if all lanes of t's mask stand at it. `stuck`: nobody else will come; lanes that have exited are a finding and
// are not waited for any longer.
bool complete_warp(thread *t, bool stuck)
{
    if (!stuck && waiting[t->warp] < static_cast<unsigned>(__builtin_popcount(t->mask)))
        return false; // most arrivals end here
    thread *warp = &threads[t->warp * 32];
    unsigned lanes = static_cast<unsigned>(threads.size()) - t->warp * 32;
    uint64_t brought[32];
    uint32_t here = 0, votes = 0;
    for (unsigned l = 0; l < 32 && l < lanes; l++) {
        const thread &other = warp[l];
        if (!(t->mask >> l & 1) || other.now != state::in_warp || other.mask != t->mask || other.site != t->site)
            continue;
        here |= 1u << l;
        votes |= (other.predicate ? 1u : 0u) << l;
        brought[l] = other.value;
    }
    uint32_t missing = t->mask & ~here;
    if (missing && !stuck)
        return false;
    for (unsigned l = 0; l < 32; l++)
        if (missing >> l & 1 && l < lanes && warp[l].now != state::done)
            return false;
    if (missing)
        hc_report("%s: %s: mask %08x of a warp operation (line %d) names lanes %08x, which have exited or never were", running->name,
                  where(t).text, t->mask, t->site->line, missing);
    for (unsigned l = 0; l < 32 && l < lanes; l++) {
        if (!(here >> l & 1))
            continue;
        thread &other = warp[l];
        if (here >> other.source & 1) {
            other.value = brought[other.source];
        } else {
            if (!(missing >> other.source & 1)) // those are reported already
                hc_report("%s: %s: shuffle (line %d) reads lane %u, which is not in its mask %08x", running->name, where(&other).text,
                          t->site->line, other.source, t->mask);
            other.value = UINT64_MAX;
        }
        other.votes = votes;
        other.now = state::ready;
        waiting[t->warp]--;
    }
    return true;
}

int barrier_votes()
{
    int count = 0, standing = 0;
    hc_vote vote = HC_PLAIN;
    for (const thread &t : threads) {
        if (t.now == state::at_barrier) {
            standing++;
            count += t.predicate;
            vote = t.vote;
        }
    }
    return vote == HC_COUNT ? count : vote == HC_OR ? count > 0 : vote == HC_AND ? count == standing : 0;
}

// No thread can run: something must be opened.
void unblock()
{
    bool opened = false;
    const thread *at_barrier = nullptr, *elsewhere = nullptr, *in_warp = nullptr;
    for (thread &t : threads)
        if (t.now == state::in_warp)
            opened |= complete_warp(&t, true);
    if (opened)
        return;
    for (const thread &t : threads) {
        if (t.now == state::in_warp)
            in_warp = &t;
        if (t.now == state::at_barrier && !at_barrier)
            at_barrier = &t;
        if (t.now == state::at_barrier && !elsewhere && t.site != at_barrier->site)
            elsewhere = &t;
    }
    if (in_warp) {
        hc_report("%s: %s waits for ever in a warp operation (line %d, mask %08x)%s", running->name, where(in_warp).text,
                  in_warp->site->line, in_warp->mask, at_barrier ? ": others stand at a __syncthreads" : "");
        std::abort(); // a GPU would hang
    }
    if (elsewhere)
        hc_report("%s: %s waits at the __syncthreads of line %d while others wait at that of line %d", running->name, where(elsewhere).text,
                  elsewhere->site->line, at_barrier->site->line);
    if (alive != threads.size() && hc_setting()->strict)
        hc_report("%s: %s: %zu threads exited before a __syncthreads (line %d) that others reached", running->name, where(at_barrier).text,
                  threads.size() - alive, at_barrier->site->line);
    barrier_result = barrier_votes();
    for (thread &t : threads)
        if (t.now == state::at_barrier)
            t.now = state::ready;
}

enum { HC_SHARED_ALIGNMENT = 32 }; // shared.ld

typedef uint64_t four __attribute__((vector_size(HC_SHARED_ALIGNMENT), may_alias));
struct span {
    char *first, *last;
};
// What the blocks of a kernel have written of the shared arrays so far: between two blocks all of them together would take longer than
// most blocks do.
std::unordered_map<const void *, span> &written = *new std::unordered_map<const void *, span>;
std::unordered_set<const char *> &all_spoilt = *new std::unordered_set<const char *>; // objects, by where their arrays begin

// Stores and loads of its own: the address sanitizer's memset would report the arrays' red zones.
__attribute__((no_sanitize("address"))) void spoil(span s)
{
    const four spoilt = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (char *p = s.first; p < s.last; p += sizeof spoilt)
        *reinterpret_cast<volatile four *>(p) = spoilt;
}

__attribute__((no_sanitize("address"))) bool is_spoilt(const char *at)
{
    const four v = *reinterpret_cast<const volatile four *>(at);
    return (v[0] & v[1] & v[2] & v[3]) == UINT64_MAX;
}

void widen(hc_arrays all, span *s)
{
    if (s->first == s->last)
        *s = {all.end, all.begin};
    for (char *p = all.begin; p < s->first; p += sizeof(four))
        if (!is_spoilt(p))
            s->first = p;
    for (char *p = all.end; p > s->last; p -= sizeof(four))
        if (!is_spoilt(p - sizeof(four)))
            s->last = p;
    if (s->first >= s->last)
        *s = {all.begin, all.begin};
}

void run_block(size_t index)
{
    grid &g = *running;
    hc_block_index = {static_cast<unsigned>(index % g.size.x), static_cast<unsigned>(index / g.size.x % g.size.y),
                      static_cast<unsigned>(index / g.size.x / g.size.y)};
    for (thread &t : threads)
        t.now = state::fresh;
    alive = static_cast<unsigned>(threads.size());
    kept_set = threads.size() <= 256 ? kept_set ^ 1 : 0;
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__); // nobody else's memory, whoever had it before
    order = static_cast<block_order *>(std::malloc(sizeof *order));
    // of its own size, so that the address sanitizer knows where it ends
    dynamic_shared = g.shared_bytes > 0 ? std::malloc(g.shared_bytes) : nullptr;
    if (!order || (!dynamic_shared && g.shared_bytes > 0))
        std::abort();
    if (dynamic_shared)
        std::memset(dynamic_shared, 0xff, g.shared_bytes);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    hc_release(&order->begin);
    while (alive > 0) {
        bool ran = false;
        if (hc_setting()->order == 2)
            shuffle(turns);
        for (turn = 0; turn < turns.size(); turn++) {
            thread &t = threads[turns[turn]];
            if (t.now != state::fresh && t.now != state::ready)
                continue;
            ran = true;
            resume(&t);
        }
        if (!ran)
            unblock();
    }
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    std::free(dynamic_shared);
    std::free(order);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}

void run_grid(void *argument, bool skipped)
{
    grid *g = static_cast<grid *>(argument);
    cudaError_t planned = skipped ? cudaSuccess : hc_planned_failure("kernel");
    if (planned != cudaSuccess)
        hc_set_fault(g->device, planned);
    if (!skipped && planned == cudaSuccess) {
        hc_lock(&one_grid);
        running = g;
        int turn_order = hc_setting()->order;
        unsigned n = g->block.x * g->block.y * g->block.z;
        size_t blocks = static_cast<size_t>(g->size.x) * g->size.y * g->size.z;
        random_state = hc_setting()->seed;
        hc_grid_size = g->size;
        hc_block_size = g->block;
        threads.assign(n, thread{});
        turns.resize(n);
        for (unsigned i = 0; i < n; i++) {
            threads[i].index = {i % g->block.x, i / g->block.x % g->block.y, i / g->block.x / g->block.y};
            threads[i].lane = i % 32;
            threads[i].warp = i / 32;
            turns[i] = turn_order == 1 ? n - 1 - i : i;
        }
        std::vector<unsigned> shuffled;
        if (turn_order == 2 && blocks <= UINT32_MAX) {
            shuffled.resize(blocks);
            for (size_t b = 0; b < blocks; b++)
                shuffled[b] = static_cast<unsigned>(b);
            shuffle(shuffled);
        }
        const hc_arrays shared = g->shared;
        if (all_spoilt.insert(shared.begin).second)
            spoil({shared.begin, shared.end});
        hc_forget(shared.begin, static_cast<size_t>(shared.end - shared.begin));
        span &known = written.try_emplace(g->kernel, span{shared.begin, shared.begin}).first->second;
        for (size_t b = 0; b < blocks; b++) {
            run_block(!shuffled.empty() ? shuffled[b] : turn_order == 1 ? blocks - 1 - b : b);
            // An array that only blocks in between have touched is known from the next launch on; to the thread sanitizer it must be at once.
            if (HC_FIBER_PER_THREAD || b == 0 || b + 1 == blocks)
                widen(shared, &known);
            spoil(known);
            hc_forget(known.first, static_cast<size_t>(known.last - known.first));
        }
        hc_acquire(&g->end);
        running = nullptr;
        hc_unlock(&one_grid);
    }
    g->drop(g->closure);
    delete g;
}

} // namespace

void hc_free_executor(void)
{
    for (hc_fiber *f : idle)
        hc_fiber_free(f);
    delete &idle;
    delete &threads;
    delete &turns;
    delete &written;
    delete &all_spoilt;
}

hc_thread *hc_current;
uint3 hc_block_index;
dim3 hc_block_size, hc_grid_size;

void *hc_dynamic_shared(void)
{
    if (!dynamic_shared)
        hc_report("%s: dynamic shared memory, but the launch gives none", running->name);
    return dynamic_shared;
}

int hc_block_barrier(const hc_site *site, int predicate, hc_vote vote)
{
    thread *self = own;
    self->site = site;
    self->predicate = predicate;
    self->vote = vote;
    self->now = state::at_barrier;
    hc_release(&order->barrier);
    hc_fiber_leave(self->fiber);
    hc_acquire(&order->barrier);
    return barrier_result;
}

uint64_t hc_warp_meet(const hc_site *site, uint32_t mask, uint64_t value, unsigned source, int predicate, uint32_t *votes)
{
    thread *self = own;
    if (!(mask >> self->lane & 1))
        hc_report("%s: %s: lane %u is not in the mask %08x of its own warp operation (line %d)", running->name, where(self).text,
                  self->lane, mask, site->line);
    self->site = site;
    self->mask = mask | 1u << self->lane;
    self->value = value;
    self->source = source & 31;
    self->predicate = predicate;
    self->now = state::in_warp;
    waiting[self->warp]++;
    hc_release(&order->warp[self->warp]);
    if (!complete_warp(self, false))
        hc_fiber_leave(self->fiber);
    hc_acquire(&order->warp[self->warp]);
    *votes = self->votes;
    return self->value;
}

void hc_check_pointer(const char *kernel, int argument, cudaStream_t stream, const void *p)
{
    size_t left;
    if (!p)
        return;
    int where = hc_locate(p, &left), device = hc_stream_device(stream);
    if (where == HC_PAGEABLE)
        hc_report("%s: argument %d (%p) is not device memory: %s", kernel, argument, p,
                  hc_was_freed(p) ? "freed before the launch" : "a host pointer, or wild");
    else if (where >= 0 && device >= 0 && where != device)
        hc_report("%s: argument %d lies on device %d, the launch is on device %d", kernel, argument, where, device);
}

// A structure may hold anything; only what surely is an address of the wrong memory is reported.
void hc_check_words(const char *kernel, int argument, cudaStream_t stream, const void *data, size_t bytes)
{
    int device = hc_stream_device(stream);
    for (size_t i = 0; i + sizeof(void *) <= bytes; i += sizeof(void *)) {
        const void *p;
        size_t left;
        std::memcpy(&p, static_cast<const char *>(data) + i, sizeof p);
        int where = p ? hc_locate(p, &left) : HC_PAGEABLE;
        if (where >= 0 && device >= 0 && where != device)
            hc_report("%s: argument %d holds an address on device %d, the launch is on device %d", kernel, argument, where, device);
        else if (p && where == HC_PAGEABLE && hc_was_freed(p))
            hc_report("%s: argument %d holds an address of device memory that was freed before the launch", kernel, argument);
    }
}

void hc_launch_grid(const char *name, const void *kernel, hc_arrays shared, dim3 size, dim3 block, size_t shared_bytes, cudaStream_t stream,
                    hc_closure run, hc_closure drop, void *closure)
{
    cudaError_t error = hc_enter("cudaLaunchKernel");
    size_t n = static_cast<size_t>(block.x) * block.y * block.z;
    int device = hc_stream_device(stream);
    if (error == cudaSuccess && device < 0)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && (n == 0 || n > 1024 || block.z > 64 || size.x == 0 || size.y == 0 || size.z == 0 || size.x > 2147483647u ||
                                 size.y > 65535 || size.z > 65535)) {
        hc_report("%s: no such configuration: grid (%u,%u,%u), block (%u,%u,%u)", name, size.x, size.y, size.z, block.x, block.y, block.z);
        error = cudaErrorInvalidConfiguration;
    }
    if (error == cudaSuccess && shared_bytes > hc_shared_limit(kernel)) {
        hc_report("%s: %zu bytes of dynamic shared memory, %zu are allowed (cudaFuncSetAttribute)", name, shared_bytes,
                  hc_shared_limit(kernel));
        error = cudaErrorInvalidValue;
    }
    grid *g = nullptr;
    if (error == cudaSuccess) {
        g = new grid{name, kernel, shared, size, block, shared_bytes, run, drop, closure, device, 0};
        error = hc_enqueue(stream, run_grid, g, false);
    }
    if (error != cudaSuccess) {
        drop(closure);
        delete g;
    }
    hc_fail(error);
}
