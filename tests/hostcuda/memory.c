/* Blocks of device and pinned memory, what a pointer may be used for, copies. Device memory is host memory that the host may not touch:
 * it begins as 0xff bytes (NaN), is counted against the device's size, and is out of bounds for the address sanitizer while no work of
 * the device runs. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HC_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum { ALIGNMENT = 256, REMEMBERED = 64, TAIL_BYTE = 0xa5 };
/* Behind a block, so that no two touch, and to see who writes past the end. The address sanitizer has red zones of its own. */
#ifdef HC_ASAN
enum { TAIL = 0 };
#else
enum { TAIL = 256 };
#endif

typedef struct block {
    char *at;
    size_t bytes;
    bool registered; /* the program's own memory, pinned by cudaHostRegister */
    struct block *next;
} block;

typedef struct device {
    block *blocks;
    size_t used;
    unsigned open; /* how many streams work */
} device;

static device devices[HC_MAX_DEVICES];
static block *pinned;
/* The last freed blocks of devices, to tell a freed address from one that never was. */
static struct {
    char *at;
    size_t bytes;
} freed[REMEMBERED];
static unsigned freed_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void guard(const block *b, bool open)
{
#ifdef HC_ASAN
    if (open || !hc_setting()->guard)
        ASAN_UNPOISON_MEMORY_REGION(b->at, b->bytes);
    else
        ASAN_POISON_MEMORY_REGION(b->at, b->bytes);
#else
    (void)b;
    (void)open;
#endif
}

static void guard_all(int at, bool open)
{
#ifdef HC_ASAN
    for (const block *b = devices[at].blocks; b; b = b->next)
        guard(b, open);
#else
    (void)at;
    (void)open;
#endif
}

void hc_open_memory(int at)
{
    hc_lock(&lock);
    if (devices[at].open++ == 0)
        guard_all(at, true);
    hc_unlock(&lock);
}

void hc_close_memory(int at)
{
    hc_lock(&lock);
    if (--devices[at].open == 0)
        guard_all(at, false);
    hc_unlock(&lock);
}

size_t hc_memory_used(int at)
{
    hc_lock(&lock);
    size_t used = devices[at].used;
    hc_unlock(&lock);
    return used;
}

static const block *find(const block *b, const void *p, bool at_end, size_t *left)
{
    for (; b; b = b->next) {
        size_t offset = (size_t)((uintptr_t)p - (uintptr_t)b->at);
        if ((uintptr_t)p >= (uintptr_t)b->at && (at_end ? offset == b->bytes : offset < b->bytes)) {
            *left = b->bytes - offset;
            return b;
        }
    }
    return NULL;
}

static int locate(const void *p, size_t *left)
{
    for (int at_end = 0; at_end < 2; at_end++) { /* an empty tensor may lie at the end; what begins there comes first */
        for (int d = 0; d < HC_MAX_DEVICES; d++)
            if (find(devices[d].blocks, p, at_end, left))
                return d;
        if (find(pinned, p, at_end, left))
            return HC_PINNED;
    }
    *left = SIZE_MAX;
    return HC_PAGEABLE;
}

int hc_locate(const void *p, size_t *left)
{
    hc_lock(&lock);
    int where = locate(p, left);
    hc_unlock(&lock);
    return where;
}

bool hc_was_freed(const void *p)
{
    bool found = false;
    hc_lock(&lock);
    for (unsigned i = 0; i < REMEMBERED && i < freed_count; i++)
        found |= (uintptr_t)p >= (uintptr_t)freed[i].at && (uintptr_t)p - (uintptr_t)freed[i].at < freed[i].bytes;
    hc_unlock(&lock);
    return found;
}

/* at: a device, or HC_PINNED */
static cudaError_t allocate(int at, void **out, size_t bytes)
{
    *out = NULL;
    if (bytes == 0)
        return cudaSuccess;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    hc_lock(&lock);
    block *b = NULL;
    if (at < 0 || (rounded >= bytes && rounded <= hc_setting()->memory - devices[at].used))
        b = calloc(1, sizeof *b);
    void *memory = NULL;
    if (!b || posix_memalign(&memory, ALIGNMENT, bytes + TAIL) != 0) {
        free(b);
        hc_unlock(&lock);
        return hc_fail(cudaErrorMemoryAllocation);
    }
    memset(memory, 0xff, bytes);
    memset((char *)memory + bytes, TAIL_BYTE, TAIL);
    *b = (block){.at = memory, .bytes = bytes, .next = at < 0 ? pinned : devices[at].blocks};
    if (at < 0) {
        pinned = b;
    } else {
        devices[at].blocks = b;
        devices[at].used += rounded;
        if (devices[at].open == 0)
            guard(b, false);
    }
    hc_unlock(&lock);
    *out = memory;
    return cudaSuccess;
}

static void check_tail(const block *b)
{
    size_t touched = 0;
    for (size_t i = b->bytes; i < b->bytes + TAIL && !b->registered; i++)
        touched += (unsigned char)b->at[i] != TAIL_BYTE;
    if (touched > 0)
        hc_report("%zu bytes behind the block %p of %zu bytes were overwritten", touched, (void *)b->at, b->bytes);
}

static cudaError_t release(int at, void *p, bool registered, const char *function)
{
    hc_lock(&lock);
    block **link = at < 0 ? &pinned : &devices[at].blocks;
    while (*link && ((*link)->at != p || (*link)->registered != registered))
        link = &(*link)->next;
    block *b = *link;
    if (b) {
        *link = b->next;
        if (at >= 0) {
            guard(b, true);
            devices[at].used -= (b->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            freed[freed_count % REMEMBERED].at = b->at;
            freed[freed_count++ % REMEMBERED].bytes = b->bytes;
        }
    }
    hc_unlock(&lock);
    if (!b) {
        hc_report("%s(%p): not the beginning of such a block%s", function, p, hc_was_freed(p) ? ": freed already" : "");
        return hc_fail(cudaErrorInvalidValue);
    }
    check_tail(b);
    if (!registered)
        free(p);
    free(b);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    HC_ENTER();
    return allocate(hc_device(), out, bytes);
}

cudaError_t cudaFree(void *p)
{
    HC_ENTER();
    size_t left;
    if (!p)
        return cudaSuccess;
    int where = hc_locate(p, &left);
    if (where >= 0)
        hc_drain_device(where); /* as the real one does */
    return release(where >= 0 ? where : hc_device(), p, false, __func__);
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    HC_ENTER();
    return allocate(HC_PINNED, out, bytes);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    HC_ENTER();
    if (flags & ~(unsigned)(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
        return hc_fail(cudaErrorInvalidValue);
    return allocate(HC_PINNED, out, bytes);
}

cudaError_t cudaFreeHost(void *p)
{
    HC_ENTER();
    if (!p)
        return cudaSuccess;
    for (int d = 0; d < hc_setting()->devices; d++)
        hc_drain_device(d);
    return release(HC_PINNED, p, false, __func__);
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags)
{
    HC_ENTER();
    size_t left;
    if (!p || bytes == 0 || (flags & ~(unsigned)(cudaHostRegisterPortable | cudaHostRegisterMapped)))
        return hc_fail(cudaErrorInvalidValue);
    if (hc_locate(p, &left) != HC_PAGEABLE)
        return hc_fail(cudaErrorHostMemoryAlreadyRegistered);
    block *b = calloc(1, sizeof *b);
    if (!b)
        return hc_fail(cudaErrorMemoryAllocation);
    hc_lock(&lock);
    *b = (block){.at = p, .bytes = bytes, .registered = true, .next = pinned};
    pinned = b;
    hc_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *p)
{
    HC_ENTER();
    return release(HC_PINNED, p, true, __func__);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *p)
{
    HC_ENTER();
    size_t left;
    int where = hc_locate(p, &left);
    memset(out, 0, sizeof *out);
    out->type = where >= 0 ? cudaMemoryTypeDevice : where == HC_PINNED ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    out->device = where >= 0 ? where : where == HC_PINNED ? hc_device() : -2;
    union {
        const void *given;
        void *plain;
    } address = {.given = p};
    out->devicePointer = where == HC_PAGEABLE ? NULL : address.plain;
    out->hostPointer = where == HC_PINNED ? address.plain : NULL;
    return cudaSuccess;
}

/* A copy, or with from == NULL a fill, of rows. */
typedef struct copy {
    char *to;
    const char *from;
    size_t width, rows, to_pitch, from_pitch;
    int value, to_device, from_device;
    char *staged;
} copy;

static void run_copy(void *argument, bool skipped)
{
    copy *c = argument;
    if (!skipped) {
        if (c->to_device >= 0)
            hc_open_memory(c->to_device);
        if (c->from_device >= 0)
            hc_open_memory(c->from_device);
        for (size_t r = 0; r < c->rows; r++) {
            if (c->from)
                memmove(c->to + r * c->to_pitch, c->from + r * c->from_pitch, c->width);
            else
                memset(c->to + r * c->to_pitch, c->value, c->width);
        }
        if (c->from_device >= 0)
            hc_close_memory(c->from_device);
        if (c->to_device >= 0)
            hc_close_memory(c->to_device);
    }
    free(c->staged);
    free(c);
}

static cudaError_t put(const copy *wanted, cudaStream_t stream)
{
    copy *c = malloc(sizeof *c);
    if (!c)
        return hc_fail(cudaErrorMemoryAllocation);
    *c = *wanted;
    cudaError_t error = hc_enqueue(stream, run_copy, c, false);
    if (error != cudaSuccess) {
        free(c->staged);
        free(c);
    }
    return hc_fail(error);
}

/* Where a copy begins or ends, in words. */
typedef struct place {
    char text[32];
} place;

static place name_place(int where)
{
    place p;
    if (where >= 0)
        snprintf(p.text, sizeof p.text, "device %d", where);
    else
        snprintf(p.text, sizeof p.text, "%s memory", where == HC_PINNED ? "pinned" : "host");
    return p;
}

static cudaError_t transfer(copy c, enum cudaMemcpyKind kind, cudaStream_t stream, bool wait, const char *function)
{
    size_t to_left, from_left;
    if (c.width == 0 || c.rows == 0)
        return cudaSuccess;
    if (!c.to || !c.from || (c.rows > 1 && (c.to_pitch < c.width || c.from_pitch < c.width)))
        return hc_fail(cudaErrorInvalidValue);
    c.to_device = hc_locate(c.to, &to_left);
    c.from_device = hc_locate(c.from, &from_left);
    bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if ((unsigned)kind > cudaMemcpyDefault)
        return hc_fail(cudaErrorInvalidMemcpyDirection);
    if (kind != cudaMemcpyDefault && ((c.to_device >= 0) != to || (c.from_device >= 0) != from)) {
        hc_report("%s: kind %d, but the copy goes from %s to %s", function, (int)kind, name_place(c.from_device).text,
                  name_place(c.to_device).text);
        return hc_fail(cudaErrorInvalidValue);
    }
    if ((c.rows - 1) * c.to_pitch + c.width > to_left || (c.rows - 1) * c.from_pitch + c.width > from_left) {
        hc_report("%s of %zu bytes runs past a block: %zd left at its source, %zd at its destination", function,
                  (c.rows - 1) * c.from_pitch + c.width, (ssize_t)from_left, (ssize_t)to_left);
        return hc_fail(cudaErrorInvalidValue);
    }
    /* CUDA Runtime API, "API synchronization behavior": from pageable memory the call returns once the bytes are staged, to pageable
     * memory once they are there. */
    if (c.from_device == HC_PAGEABLE && !wait) {
        c.staged = malloc(c.width * c.rows);
        if (!c.staged)
            return hc_fail(cudaErrorMemoryAllocation);
        for (size_t r = 0; r < c.rows; r++)
            memcpy(c.staged + r * c.width, c.from + r * c.from_pitch, c.width);
        c.from = c.staged;
        c.from_pitch = c.width;
    }
    cudaError_t error = put(&c, stream);
    if (error == cudaSuccess && (wait || c.to_device == HC_PAGEABLE))
        error = hc_drain_stream(stream);
    return error;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    HC_ENTER();
    return transfer((copy){.to = to, .from = from, .width = bytes, .rows = 1}, kind, stream, false, __func__);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    HC_ENTER();
    return transfer((copy){.to = to, .from = from, .width = bytes, .rows = 1}, kind, NULL, true, __func__);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    HC_ENTER();
    return transfer((copy){.to = to, .from = from, .width = width, .rows = height, .to_pitch = to_pitch, .from_pitch = from_pitch}, kind,
                    stream, false, __func__);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
    HC_ENTER();
    size_t left;
    if (bytes > 0 && (hc_locate(to, &left) != to_device || hc_locate(from, &left) != from_device)) {
        hc_report("%s: an address does not lie on the device that is named with it (%d to %d)", __func__, from_device, to_device);
        return hc_fail(cudaErrorInvalidValue);
    }
    return transfer((copy){.to = to, .from = from, .width = bytes, .rows = 1}, cudaMemcpyDeviceToDevice, stream, false, __func__);
}

static cudaError_t fill(void *to, int value, size_t bytes, cudaStream_t stream, const char *function)
{
    size_t left;
    if (bytes == 0)
        return cudaSuccess;
    copy c = {.to = to, .value = value, .width = bytes, .rows = 1, .from_device = HC_PAGEABLE};
    c.to_device = hc_locate(to, &left);
    if (c.to_device < 0 || bytes > left) {
        hc_report("%s: the destination is not %zu bytes of device memory", function, bytes);
        return hc_fail(cudaErrorInvalidValue);
    }
    return put(&c, stream);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    HC_ENTER();
    return fill(to, value, bytes, stream, __func__);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    HC_ENTER();
    return fill(to, value, bytes, NULL, __func__);
}
