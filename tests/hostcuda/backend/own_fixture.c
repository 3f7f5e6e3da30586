/* Files beside a plugin that are not what they should be: own_operator.sh builds one for each CASE_. */
#include <stdio.h>
#include <stdlib.h>

#include "sodet/cuda.h"

static uint64_t no_scratch(const sodet_kernel_args *a)
{
    (void)a;
    return 0;
}

static int no_launch(const sodet_kernel_args *a, void *stream)
{
    (void)a;
    (void)stream;
    return 0;
}

static int probe(void)
{
#ifdef CASE_PROBE
    return CASE_PROBE;
#else
    return 0;
#endif
}

/* Code of the file: nothing of it may run before the descriptor was looked at. */
__attribute__((constructor)) static void runs(void)
{
    const char *trace = getenv("OWN_TRACE");
    FILE *f = trace ? fopen(trace, "w") : NULL;
    if (f)
        fclose(f);
}

/* What a later release might append. */
typedef struct longer_kernel {
    sodet_cuda_kernel now;
    uint64_t more;
} longer_kernel;
typedef struct longer_op {
    sodet_cuda_op now;
    uint64_t more;
} longer_op;
typedef struct longer_part {
    sodet_cuda_part now;
    uint64_t more;
} longer_part;
#ifdef CASE_NEWER_KERNEL
enum { KERNEL_MORE = 1 };
#else
enum { KERNEL_MORE = 0 };
#endif
#ifdef CASE_NEWER_OP
enum { OP_MORE = 1 };
#else
enum { OP_MORE = 0 };
#endif
#ifdef CASE_NEWER_PART
enum { PART_MORE = 1 };
#else
enum { PART_MORE = 0 };
#endif

#ifdef CASE_NO_GRADIENT
#define LAST NULL
#else
#define LAST no_launch
#endif
#ifndef CASE_PARTS
#define CASE_PARTS 3
#endif
#ifndef CASE_OP
#define CASE_OP "swish"
#endif
#ifndef CASE_PLUGIN
#define CASE_PLUGIN "swish"
#endif
#ifndef CASE_MAGIC
#define CASE_MAGIC SODET_CUDA_MAGIC
#endif
#ifndef CASE_MAJOR
#define CASE_MAJOR SODET_ABI_MAJOR
#endif
#ifndef CASE_SIZE
#define CASE_SIZE sizeof(longer_part)
#endif
#ifndef CASE_STRIDE
#define CASE_STRIDE sizeof(longer_kernel)
#endif
#ifdef CASE_UNDEFINED
int sodet_of_tomorrow(void);
#endif

static const longer_kernel kernels[3] = {{{sizeof(longer_kernel), SODET_CUDA_FLAT, no_scratch, no_launch}, KERNEL_MORE},
                                         {{sizeof(longer_kernel), SODET_CUDA_FLAT, no_scratch, no_launch}, KERNEL_MORE},
                                         {{sizeof(longer_kernel), SODET_CUDA_LAST, no_scratch, LAST}, KERNEL_MORE}};
static const longer_op ops[1] = {{{CASE_OP, CASE_PARTS, &kernels[0].now}, OP_MORE}};
#ifdef CASE_SYMBOL
#define sodet_cuda_desc CASE_SYMBOL
#else
#define sodet_cuda_desc sodet_cuda_desc_
extern SODET_EXPORT const longer_part sodet_cuda_desc_ __asm__("sodet_cuda_desc"); /* a longer one under the same name */
#endif
SODET_EXPORT const longer_part sodet_cuda_desc = {
    {CASE_MAGIC, CASE_SIZE, CASE_MAJOR, SODET_ABI_MINOR, 1, CASE_PLUGIN, &ops[0].now, sizeof(longer_op), CASE_STRIDE, probe}, PART_MORE};
#ifdef CASE_UNDEFINED
SODET_EXPORT int (*const sodet_cuda_needs)(void) = sodet_of_tomorrow;
#endif
