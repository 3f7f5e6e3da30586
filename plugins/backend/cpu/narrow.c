/* Maps between their forms where oneDNN is not asked: to and from channels last, float32 and bf16. And float32 kernels on narrow maps. */
#include "kernels/narrow.h"
#include "kernels/vector.h"
#include "plugins/backend/cpu/cpu.h"

enum { POSITIONS = 64 }; /* of a map, in one unit */

typedef struct map_side {
    char *data;
    uint32_t layout;
    int64_t block; /* 1: plain */
    bool narrow;
} map_side;

static map_side side_of(const sodet_tensor *t)
{
    return (map_side){t->data, t->layout, t->layout == SODET_BLOCKED ? t->block : 1, t->shape.dtype == SODET_BF16};
}

static int64_t runs_of(const sodet_shape *map)
{
    return (map->dim[2] * map->dim[3] + POSITIONS - 1) / POSITIONS;
}

static int64_t convert_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return a->in[0].shape.dim[0] * runs_of(&a->in[0].shape);
}

/* Channels [0, n) of one position, n at most CHUNK, as float32. */
enum { CHUNK = 64 };

SODET_INLINE void take(const map_side *s, int64_t image, int64_t position, int64_t first, int64_t n, int64_t channels, int64_t area,
                       float *to)
{
    const float *from = (const float *)(const void *)s->data;
    if (s->layout == SODET_CHANNELS_LAST) {
        const int64_t at = (image * area + position) * channels + first;
        if (s->narrow)
            narrow_widen(to, (const uint16_t *)(const void *)s->data + at, n);
        else
            memcpy(to, from + at, (size_t)n * sizeof *to);
    } else if (s->layout == SODET_BLOCKED) {
        const int64_t blocks = (channels + s->block - 1) / s->block;
        for (int64_t k = 0; k < n; k += s->block) {
            const float *block = from + ((image * blocks + (first + k) / s->block) * area + position) * s->block;
            const int64_t used = n - k < s->block ? n - k : s->block;
            if (used == 8)
                vector8_at(to + k) = vector8_at(block);
            else
                for (int64_t i = 0; i < used; i++)
                    to[k + i] = block[i];
        }
    } else {
        for (int64_t k = 0; k < n; k++)
            to[k] = from[(image * channels + first + k) * area + position];
    }
}

SODET_INLINE void give(const map_side *s, int64_t image, int64_t position, int64_t first, int64_t n, int64_t channels, int64_t area,
                       const float *from)
{
    float *to = (float *)(void *)s->data;
    if (s->layout == SODET_CHANNELS_LAST) {
        const int64_t at = (image * area + position) * channels + first;
        if (s->narrow)
            narrow_round((uint16_t *)(void *)s->data + at, from, n);
        else
            memcpy(to + at, from, (size_t)n * sizeof *to);
    } else if (s->layout == SODET_BLOCKED) {
        const int64_t blocks = (channels + s->block - 1) / s->block;
        for (int64_t k = 0; k < n; k += s->block) {
            float *block = to + ((image * blocks + (first + k) / s->block) * area + position) * s->block;
            const int64_t used = n - k < s->block ? n - k : s->block;
            if (used == 8)
                vector8_at(block) = vector8_at(from + k);
            else
                for (int64_t i = 0; i < s->block; i++)
                    block[i] = i < used ? from[k + i] : 0;
        }
    } else {
        for (int64_t k = 0; k < n; k++)
            to[(image * channels + first + k) * area + position] = from[k];
    }
}

SODET_CLONES
static void convert_positions(const map_side *from, const map_side *to, int64_t image, int64_t begin, int64_t end, int64_t channels,
                              int64_t area)
{
    float chunk[CHUNK];
    const bool rows = to->layout == SODET_CHANNELS_LAST && !to->narrow; /* taken to where they belong */
    for (int64_t c = 0; c < channels; c += CHUNK) {
        const int64_t n = channels - c < CHUNK ? channels - c : CHUNK;
        for (int64_t p = begin; p < end; p++) {
            float *row = rows ? (float *)(void *)to->data + (image * area + p) * channels + c : chunk;
            take(from, image, p, c, n, channels, area, row);
            if (!rows)
                give(to, image, p, c, n, channels, area, row);
        }
    }
}

static void convert_run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_shape *s = &a->in[0].shape;
    const map_side from = side_of(&a->in[0]), to = side_of(&a->out[0]);
    const int64_t area = s->dim[2] * s->dim[3], runs = runs_of(s);
    for (int64_t u = begin; u < end; u++) {
        const int64_t first = u % runs * POSITIONS;
        convert_positions(&from, &to, u / runs, first, first + POSITIONS < area ? first + POSITIONS : area, s->dim[1], area);
    }
}

const sodet_cpu_kernel cpu_convert = {.struct_size = sizeof(sodet_cpu_kernel), .units = convert_units, .run = convert_run};

static int64_t round_units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return vector_pieces(&a->in[0]);
}

SODET_CLONES
static void round_floats(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = narrow_value(narrow_bits(from[i]));
}

static void round_run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    int64_t first, last;
    vector_range(&a->in[0], begin, end, &first, &last);
    round_floats((float *)a->out[0].data + first, (const float *)a->in[0].data + first, last - first);
}

const sodet_cpu_kernel cpu_round = {.struct_size = sizeof(sodet_cpu_kernel), .units = round_units, .run = round_run};

/* ---- flat kernels on narrow maps ---- */
typedef struct flat_job {
    const sodet_cpu_kernel *kernel;
    const sodet_kernel_args *args;
} flat_job;

SODET_CLONES
static void widen(float *to, const uint16_t *from, int64_t n)
{
    narrow_widen(to, from, n);
}

SODET_CLONES
static void narrow(uint16_t *to, const float *from, int64_t n)
{
    narrow_round(to, from, n);
}

static void flat_range(void *context, int64_t begin, int64_t end) /* of pieces */
{
    const flat_job *j = context;
    const sodet_kernel_args *a = j->args;
    float wide[CPU_MOST_FLAT][VECTOR_PIECE];
    sodet_tensor tensor[CPU_MOST_FLAT];
    const int64_t n = sodet_elements(&a->out[0].shape);
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t first = piece * VECTOR_PIECE, length = n - first < VECTOR_PIECE ? n - first : VECTOR_PIECE;
        for (uint32_t i = 0; i < a->n_in + a->n_out; i++) {
            const sodet_tensor *t = i < a->n_in ? &a->in[i] : &a->out[i - a->n_in];
            tensor[i] = *t;
            if (t->shape.dtype != SODET_BF16) /* absent, or a factor for all */
                continue;
            tensor[i] = (sodet_tensor){wide[i], {SODET_F32, 1, {length}}, SODET_PLAIN, 0};
            if (i < a->n_in)
                widen(wide[i], (const uint16_t *)t->data + first, length);
        }
        sodet_kernel_args one = *a;
        one.in = tensor;
        one.out = tensor + a->n_in;
        one.n_threads = 1;
        j->kernel->run(&one, 0, 0, j->kernel->units(&one, 0), 0);
        for (uint32_t o = 0; o < a->n_out; o++)
            narrow((uint16_t *)a->out[o].data + first, wide[a->n_in + o], length);
    }
}

void cpu_run_flat_narrow(const sodet_cpu_kernel *k, const sodet_kernel_args *a)
{
    flat_job j = {k, a};
    cpu_parallel(a->n_threads, (sodet_elements(&a->out[0].shape) + VECTOR_PIECE - 1) / VECTOR_PIECE, 4, flat_range, &j);
}
