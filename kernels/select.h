/* kernels/select.h: selecting and sorting by a 64-bit key: (how much, then index), so that no two keys are equal and every result is the same on
 * every machine. Nothing is allocated. */
#ifndef SD_KERNELS_SELECT_H
#define SD_KERNELS_SELECT_H

#include <string.h>

#include "sodet/op.h"

/* Rises as v falls; equal for 0 and -0; NaN behind everything. With the index below: larger values first, ties by lower index. */
SODET_HD uint64_t select_key(float v, int64_t index)
{
    float plain = v + 0.0f; /* -0 becomes 0 */
    uint32_t bits;
    memcpy(&bits, &plain, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31;
    bits = plain != plain ? 0 : bits;
    return (uint64_t)~bits << 32 | (uint32_t)index;
}

SODET_HD int64_t select_index(uint64_t key)
{
    return (int64_t)(key & UINT32_MAX);
}

static inline void select_sift(uint64_t *key, int64_t root, int64_t n)
{
    uint64_t k = key[root];
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && key[child + 1] > key[child])
            child++;
        if (key[child] <= k)
            break;
        key[root] = key[child];
    }
    key[root] = k;
}

static inline void select_heap_sort(uint64_t *key, int64_t n)
{
    for (int64_t i = n / 2; i-- > 0;)
        select_sift(key, i, n);
    for (int64_t i = n; --i > 0;) {
        uint64_t top = key[0];
        key[0] = key[i];
        key[i] = top;
        select_sift(key, 0, i);
    }
}

static inline void select_insertion_sort(uint64_t *key, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        uint64_t k = key[i];
        int64_t j = i;
        for (; j > 0 && key[j - 1] > k; j--)
            key[j] = key[j - 1];
        key[j] = k;
    }
}

/* Splits key[0, n), n >= 3: returns m with key[0, m) <= key[m, n), 0 < m < n. */
static inline int64_t select_split(uint64_t *key, int64_t n)
{
    uint64_t a = key[0], b = key[n / 2], c = key[n - 1];
    uint64_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
    int64_t i = -1, j = n;
    for (;;) {
        while (key[++i] < pivot) {
        }
        while (key[--j] > pivot) {
        }
        if (i >= j)
            break;
        uint64_t t = key[i];
        key[i] = key[j];
        key[j] = t;
    }
    return j + 1 < n ? j + 1 : n - 1;
}

/* Rising order. */
static inline void select_sort(uint64_t *key, int64_t n)
{
    struct {
        int64_t from, n;
        int depth;
    } stack[64];
    int top = 0;
    stack[top].from = 0;
    stack[top].n = n;
    stack[top++].depth = 0;
    while (top > 0) {
        top--;
        int64_t from = stack[top].from, m = stack[top].n;
        int depth = stack[top].depth;
        while (m > 24) {
            if (depth++ > 48) {
                select_heap_sort(key + from, m);
                m = 0;
                break;
            }
            int64_t split = select_split(key + from, m), rest = m - split;
            int left_larger = split > rest;
            stack[top].from = left_larger ? from : from + split;
            stack[top].n = left_larger ? split : rest;
            stack[top++].depth = depth;
            from = left_larger ? from + split : from;
            m = left_larger ? rest : split;
        }
        select_insertion_sort(key + from, m);
    }
}

/* Moves the k lowest keys to the front, in no order. */
static inline void select_lowest(uint64_t *key, int64_t n, int64_t k)
{
    int depth = 0;
    while (k > 0 && k < n && n > 24) {
        if (depth++ > 48) {
            select_heap_sort(key, n);
            return;
        }
        int64_t split = select_split(key, n);
        if (k <= split)
            n = split;
        else {
            key += split;
            n -= split;
            k -= split;
        }
    }
    if (k > 0 && k < n)
        select_insertion_sort(key, n);
}

#endif
