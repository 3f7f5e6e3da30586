/* Candidates are sorted; a block for each image then goes through them, TILE at a time, a thread for each: those that a box kept before
 * suppresses are out; of the rest the first is kept and tested against those behind it, and so on. */
#include "kernels/device_sort.h"
#include "kernels/nms/nms.h"

enum { TILE = 512, WORDS = TILE / 32 };

/* No operation may be fused, so that every backend keeps the same. */
static __device__ __forceinline__ float product(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

static __device__ __forceinline__ float overlap(const float4 &a, const float4 &b, float one)
{
    const float aw = a.z - a.x + one, ah = a.w - a.y + one, bw = b.z - b.x + one, bh = b.w - b.y + one;
    float w = (a.z < b.z ? a.z : b.z) - (a.x > b.x ? a.x : b.x) + one, h = (a.w < b.w ? a.w : b.w) - (a.y > b.y ? a.y : b.y) + one;
    w = w > 0 ? w : 0;
    h = h > 0 ? h : 0;
    const float inter = product(w, h), both = product(aw, ah) + product(bw, bh);
    return inter / (both - inter);
}

static __device__ __forceinline__ float4 box_at(const float *box, int64_t i)
{
    return make_float4(box[4 * i], box[4 * i + 1], box[4 * i + 2], box[4 * i + 3]);
}

struct nms_rule {
    double threshold;
    float one;
    uint32_t inclusive, most_per_class;
    /* `kept` is kept; whether it ends a later one, of whose class it is number *of_class (from 0). */
    __device__ __forceinline__ bool ends(const float4 &kept, int32_t kept_label, const float4 &box, int32_t label, uint32_t *of_class) const
    {
        if (kept_label != label)
            return false;
        const double iou = (double)overlap(kept, box, one);
        ++*of_class;
        return (inclusive ? iou >= threshold : iou > threshold) || (most_per_class > 0 && *of_class >= most_per_class);
    }
};

static __global__ void write_keys(uint64_t *key, const float *score, int64_t images, int64_t n, double threshold)
{
    for (int64_t i = device_thread(); i < images * n; i += device_threads())
        key[i] = (double)score[i] > threshold ? select_key(score[i], i % n) : DEVICE_NO_KEY;
}

/* limit: candidates that count. label_step: labels from image to image. */
static __global__ void suppress(int32_t *index, int32_t *count, const uint64_t *key, const float *boxes, const int32_t *label,
                                int64_t images, int64_t n, int64_t limit, int64_t most, int64_t label_step, nms_rule rule)
{
    __shared__ float4 box_of[TILE];
    __shared__ int32_t label_of[TILE];
    __shared__ uint32_t alive_of[2][WORDS];
    const int t = (int)threadIdx.x;
    for (int64_t image = blockIdx.x; image < images; image += gridDim.x) {
        const float *box = boxes + 4 * image * n;
        const int32_t *own_label = label ? label + image * label_step : NULL;
        int32_t *own = index + image * most;
        int64_t kept = 0;
        for (int64_t base = 0; base < limit && kept < most; base += TILE) {
            const uint64_t k = base + t < limit ? key[image * n + base + t] : DEVICE_NO_KEY;
            bool alive = k != DEVICE_NO_KEY;
            const int64_t i = alive ? select_index(k) : 0;
            const float4 mine = box_at(box, i);
            const int32_t of = own_label ? own_label[i] : 0;
            uint32_t of_class = 0;
            if (!__syncthreads_or(alive))
                break;
            for (int64_t from = 0; from < kept; from += TILE) {
                if (from + t < kept) {
                    const int32_t before = own[from + t];
                    box_of[t] = box_at(box, before);
                    label_of[t] = own_label ? own_label[before] : 0;
                }
                __syncthreads();
                const int m = kept - from < TILE ? (int)(kept - from) : TILE;
                for (int j = 0; alive && j < m; j++)
                    alive = !rule.ends(box_of[j], label_of[j], mine, of, &of_class);
                __syncthreads();
            }
            box_of[t] = mine;
            label_of[t] = of;
            int turn = 0, at = 0; /* the first that may be kept */
            for (;;) {
                const uint32_t bits = __ballot_sync(0xffffffffu, alive);
                if (t % 32 == 0)
                    alive_of[turn][t / 32] = bits;
                __syncthreads();
                uint32_t word = 0;
                int w = at / 32;
                for (uint32_t mask = ~UINT32_C(0) << at % 32; w < WORDS && !(word = alive_of[turn][w] & mask); mask = ~UINT32_C(0))
                    w++;
                if (w == WORDS)
                    break;
                int bit = 0;
                while (!(word >> bit & 1))
                    bit++;
                const int j = 32 * w + bit;
                if (t == j)
                    own[kept] = (int32_t)i;
                kept++;
                if (kept == most || j + 1 == TILE)
                    break;
                if (alive && t > j)
                    alive = !rule.ends(box_of[j], label_of[j], mine, of, &of_class);
                at = j + 1;
                turn ^= 1;
            }
            __syncthreads(); /* what was kept is read by others */
        }
        for (int64_t k = kept + t; k < most; k += TILE)
            own[k] = -1;
        if (t == 0)
            count[image] = (int32_t)kept;
        __syncthreads();
    }
}

static uint64_t scratch(const sodet_kernel_args *a)
{
    return 2 * sizeof(uint64_t) * (uint64_t)sodet_elements(&a->in[1].shape);
}

static int forward(const sodet_kernel_args *a, void *stream)
{
    const sodet_nms_options *o = &((const sodet_nms_attr *)a->attr)->o;
    const int64_t images = a->in[1].shape.dim[0], n = a->in[1].shape.dim[1], most = a->out[0].shape.dim[1];
    const bool labels = a->n_in > 2 && a->in[2].shape.dtype != 0;
    const nms_rule rule = {o->iou_threshold, o->plus_one ? 1.0f : 0.0f, o->inclusive, o->most_per_class};
    uint64_t *key = (uint64_t *)a->scratch, *sorted = key;
    if (images == 0)
        return 0;
    if (n > 0) {
        DEVICE_TRY(write_keys, device_blocks(images * n, DEVICE_THREADS), DEVICE_THREADS, 0, stream, key, (const float *)a->in[1].data,
                   images, n, o->score_threshold);
        const int error = device_sort(key, key + images * n, images, n, &sorted, stream);
        if (error != 0)
            return error;
    }
    DEVICE_TRY(suppress, device_blocks(images, 1), TILE, 0, stream, (int32_t *)a->out[0].data, (int32_t *)a->out[1].data,
               (const uint64_t *)sorted, (const float *)a->in[0].data, labels ? (const int32_t *)a->in[2].data : (const int32_t *)NULL,
               images, n, o->candidates > 0 && o->candidates < n ? (int64_t)o->candidates : n, most,
               labels && a->in[2].shape.rank == 2 ? n : 0, rule);
    return 0;
}

extern "C" const sodet_cuda_kernel sodet_cuda_nms[] = {{sizeof(sodet_cuda_kernel), 0, scratch, forward}};
