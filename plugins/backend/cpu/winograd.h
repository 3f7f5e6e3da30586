/* winograd.h: 3x3 convolutions of stride 1 by Winograd's algorithm F(4x4, 3x3) (Lavin and Gray 2016), for AVX-512 on
 * blocks of 16 channels and for AVX2 with FMA on blocks of 8. The padding is the dilation all round, so that the map keeps its size. oneDNN's own writes all transformed tiles to memory and reads them back; here a block of tiles goes through
 * all stages while it is in the cache.
 *
 * The points are 0, +-3/4, +-3/2 and infinity: numbers that binary fractions hold exactly and whose products stay near 1, so that the
 * rounding errors are those of the direct sum (2e-6 of the largest value at 256 channels; 0, +-1, +-2 gives 9e-6). */
#ifndef CPU_WINOGRAD_H
#define CPU_WINOGRAD_H

#include "plugins/backend/cpu/cpu.h"

#define CPU_WINOGRAD_A 0.75f
#define CPU_WINOGRAD_B 1.5f

typedef struct cpu_winograd cpu_winograd;
/* What winograd_lanes.h makes, for one width of vectors. */
typedef struct cpu_winograd_code {
    int64_t lanes;
    int64_t least_panel, most_panel; /* tiles of a panel */
    int64_t unit_bytes;              /* what V and M of a unit should take, unless that were fewer than ... */
    int64_t least_tiles;             /* ... so many: enough to be worth reading all weights */
    void (*weights)(const cpu_winograd *p, const float *w, float *u, int64_t in, int64_t out_block);
    void (*unit)(const cpu_winograd *p, const float *x, const float *u, const float *bias, const float *residual, float *y, float *v,
                 int64_t block, int64_t chunk);
    int64_t gradient_bytes; /* what the transformed tiles of a unit should take */
    void (*gradient_unit)(const cpu_winograd *p, const float *x, const float *dy, float *s, float *bias, float *v, int64_t group,
                          int64_t chunk);
    void (*gradient_weights)(const cpu_winograd *p, const float *s, int64_t group_step, float *dw, int64_t in, int64_t out_block);
} cpu_winograd_code;
extern const cpu_winograd_code cpu_winograd_avx512, cpu_winograd_avx2;

struct cpu_winograd {
    const cpu_winograd_code *code;
    int64_t batch, in, out, h, w; /* channels of what is read and written; both maps are h x w */
    int64_t in_whole, out_whole;  /* whole blocks */
    int64_t dilation;             /* and padding */
    int64_t rows, columns, tiles; /* tiles of a map (of one residue class of pixels), of all maps */
    int64_t panel;                /* tiles of a panel */
    int64_t panels, blocks;       /* panels of tiles in a block; blocks */
    int64_t chunks, chunk;        /* chunks of output channels, and their size (the last may be smaller) */
    bool backward;                /* gradient of the data: weights turned and transposed */
    bool relu;
    int64_t v_step, m_step; /* floats from position to position in V and M */
    int64_t groups;         /* gradient of the weights: groups of tiles that have sums of their own */
    int64_t tiles_at_once;  /* of a unit of it */
};

/* The code for blocks of so many channels; NULL: none, or the processor has not what it needs. */
const cpu_winograd_code *cpu_winograd_for(uint32_t block);
void cpu_winograd_plan(cpu_winograd *p, const cpu_winograd_code *code, const sodet_shape *x, const sodet_shape *y, int64_t dilation,
                       bool backward, bool relu, uint32_t threads);
uint64_t cpu_winograd_weight_bytes(const cpu_winograd *p);
/* in w [O, I, 3, 3] plain; out: the transformed weights. attr: cpu_winograd */
extern const sodet_cpu_kernel cpu_winograd_weights;
/* in x, transformed weights, bias or none, residual or none; out y. attr: cpu_winograd */
extern const sodet_cpu_kernel cpu_winograd_maps;
uint64_t cpu_winograd_scratch(const cpu_winograd *p, uint32_t threads);

/* Gradient of the weights: the sums over tiles are taken in the transformed domain and come back once. */
void cpu_winograd_plan_gradient(cpu_winograd *p, const cpu_winograd_code *code, const sodet_shape *x, const sodet_shape *dy,
                                int64_t dilation, uint32_t threads);
/* in x, dy; out dw [O, I, 3, 3] plain and, perhaps, db [O]. attr: cpu_winograd */
extern const sodet_cpu_kernel cpu_winograd_gradient;
uint64_t cpu_winograd_gradient_scratch(const cpu_winograd *p, uint32_t threads);
#endif
