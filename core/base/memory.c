#include "core/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *sd_alloc(size_t n, size_t size)
{
    /* For nothing calloc may return NULL, which callers would take for "no memory". */
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : calloc(1, bytes ? bytes : 1);
}

void *sd_room(size_t n, size_t size)
{
    enum { HUGE_PAGE = 2 << 20 };
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - HUGE_PAGE)
        return NULL;
    if (bytes < HUGE_PAGE / 2)
        return malloc(bytes ? bytes : 1);
    size_t rounded = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *p = aligned_alloc(HUGE_PAGE, rounded);
    if (p)
        madvise(p, rounded, MADV_HUGEPAGE); /* a wish: what the system does with it is its own affair */
    return p;
}

void sd_free(void *p)
{
    free(p);
}

char *sd_strdup(const char *s)
{
    return s ? strdup(s) : NULL;
}

sodet_status sd_grow(void *items, uint64_t *capacity, uint64_t need, size_t size, sodet_err *err)
{
    if (need <= *capacity)
        return SODET_OK;
    uint64_t fresh = *capacity < 8 ? 8 : *capacity;
    while (fresh < need) {
        if (fresh > UINT64_MAX / 2)
            return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %llu elements were asked for", (unsigned long long)need);
        fresh *= 2;
    }
    size_t bytes;
    char *p;
    memcpy(&p, items, sizeof p); /* items is a pointer to a pointer of any type */
    if (fresh > SIZE_MAX || __builtin_mul_overflow((size_t)fresh, size, &bytes) || !(p = realloc(p, bytes)))
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %llu elements of %zu bytes", (unsigned long long)fresh, size);
    memset(p + (size_t)*capacity * size, 0, bytes - (size_t)*capacity * size);
    memcpy(items, &p, sizeof p);
    *capacity = fresh;
    return SODET_OK;
}

enum { POOL_BLOCK = 16 * 1024, POOL_ALIGN = 16 };

struct sd_pool_block {
    struct sd_pool_block *next;
    size_t used, size; /* of bytes[] */
    _Alignas(POOL_ALIGN) unsigned char bytes[];
};

void *sd_pool_alloc(sd_pool *pool, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    struct sd_pool_block *b = pool->blocks;
    if (!b || b->size - b->used < bytes) {
        size_t size = bytes > POOL_BLOCK ? bytes : POOL_BLOCK;
        struct sd_pool_block *fresh = calloc(1, sizeof *fresh + size);
        if (!fresh)
            return NULL;
        fresh->size = size;
        if (b && size > POOL_BLOCK) { /* a large one of its own goes behind, so that the current block is filled up */
            fresh->used = bytes;
            fresh->next = b->next;
            b->next = fresh;
            return fresh->bytes;
        }
        fresh->next = b;
        pool->blocks = b = fresh;
    }
    void *p = b->bytes + b->used;
    b->used += bytes;
    return p;
}

char *sd_pool_strdup(sd_pool *pool, const char *s)
{
    if (!s)
        return NULL;
    size_t n = strlen(s) + 1;
    char *p = sd_pool_alloc(pool, n);
    return p ? memcpy(p, s, n) : NULL;
}

char *sd_pool_printf(sd_pool *pool, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *p = n < 0 ? NULL : sd_pool_alloc(pool, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    return p;
}

void sd_pool_clear(sd_pool *pool)
{
    for (struct sd_pool_block *b = pool->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    pool->blocks = NULL;
}
