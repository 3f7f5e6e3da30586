/* winograd.h: 3x3 convolutions of stride 1 and padding 1 by Winograd's algorithm F(4x4, 3x3) (Lavin and Gray 2016), for AVX-512 and
 * blocks of 16 channels. oneDNN's own writes all transformed tiles to memory and reads them back; here a block of tiles goes through
 * all stages while it is in the cache.
 *
 * The points are 0, +-3/4, +-3/2 and infinity: numbers that binary fractions hold exactly and whose products stay near 1, so that the
 * rounding errors are those of the direct sum (2e-6 of the largest value at 256 channels; 0, +-1, +-2 gives 9e-6). */
#ifndef CPU_WINOGRAD_H
#define CPU_WINOGRAD_H

#include "plugins/backend/cpu/cpu.h"

typedef struct cpu_winograd {
    int64_t batch, in, out, h, w; /* channels of what is read and written; both maps are h x w */
    int64_t in16, out16;          /* whole blocks */
    int64_t rows, columns, tiles; /* tiles of a map, of all maps */
    int64_t panel;                /* tiles of a panel: 11 to 14 */
    int64_t panels, blocks;       /* panels of tiles in a block; blocks */
    int64_t chunks, chunk;        /* chunks of output channels, and their size (the last may be smaller) */
    bool backward;                /* gradient of the data: weights turned and transposed */
    bool relu;
} cpu_winograd;

bool cpu_winograd_can(void); /* the processor has AVX-512 and ONEDNN_MAX_CPU_ISA allows it */
void cpu_winograd_plan(cpu_winograd *p, const sodet_shape *x, const sodet_shape *y, bool backward, bool relu, uint32_t threads);
uint64_t cpu_winograd_weight_bytes(const cpu_winograd *p);
/* in w [O, I, 3, 3] plain; out: the transformed weights. attr: cpu_winograd */
extern const sodet_cpu_kernel cpu_winograd_weights;
/* in x, transformed weights, bias or none, residual or none; out y. attr: cpu_winograd */
extern const sodet_cpu_kernel cpu_winograd_maps;
uint64_t cpu_winograd_scratch(const cpu_winograd *p, uint32_t threads);
#endif
