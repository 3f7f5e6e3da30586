/* A unit is an image. Keys of the candidates are sorted; each is compared with the kept ones, whose corners lie in arrays of their own so that the comparison is a
 * vector loop. */
#include "kernels/kernels.h"
#include "kernels/select.h"
#include "kernels/vector.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

typedef struct kept {
    float *x1, *y1, *x2, *y2, *area;
    int32_t *label;
    int64_t n;
} kept;

static int64_t room(int64_t most)
{
    return (most + 15) / 16 * 16;
}

static uint64_t per_thread(int64_t candidates, int64_t most)
{
    return ((uint64_t)candidates * sizeof(uint64_t) + (uint64_t)room(most) * 6 * sizeof(float) + 63) / 64 * 64;
}

/* The threshold as a float t with: iou > threshold if and only if iou > t, for every float iou (inclusive: >= and >=). */
static float float_threshold(double threshold, int inclusive)
{
    float t = (float)threshold;
    if (inclusive)
        return (double)t < threshold ? nextafterf(t, INFINITY) : t;
    return (double)t > threshold ? nextafterf(t, -INFINITY) : t;
}

/* How many of kept[first, first + n) with this label overlap too much; *same counts those with the label. */
SODET_CLONES
static int32_t overlapping(const kept *k, int64_t first, int64_t n, const float *box, int32_t label, float one, float threshold,
                           int inclusive, int32_t *same)
{
    const float *kx1 = k->x1 + first, *ky1 = k->y1 + first, *kx2 = k->x2 + first, *ky2 = k->y2 + first, *karea = k->area + first;
    const int32_t *klabel = k->label + first;
    float x1 = box[0], y1 = box[1], x2 = box[2], y2 = box[3], bw = x2 - x1 + one, bh = y2 - y1 + one, area = bw * bh;
    int32_t found = 0, counted = 0;
    for (int64_t i = 0; i < n; i++) {
        float w = (kx2[i] < x2 ? kx2[i] : x2) - (kx1[i] > x1 ? kx1[i] : x1) + one,
              h = (ky2[i] < y2 ? ky2[i] : y2) - (ky1[i] > y1 ? ky1[i] : y1) + one;
        w = w > 0 ? w : 0;
        h = h > 0 ? h : 0;
        float inter = w * h, both = karea[i] + area, iou = inter / (both - inter);
        int32_t mine = klabel[i] == label, above = inclusive ? iou >= threshold : iou > threshold;
        found += mine & above;
        counted += mine;
    }
    *same += counted;
    return found;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return a->in[1].shape.dim[0];
}

static uint64_t scratch(const sodet_node *n, uint32_t n_threads)
{
    return per_thread(n->in_shape[1].dim[1], n->out_shape[0].dim[1]) * n_threads;
}

static void image(const sodet_kernel_args *a, int64_t b, char *memory)
{
    const sodet_nms_options *o = &((const sodet_nms_attr *)a->attr)->o;
    int64_t n = a->in[1].shape.dim[1], most = a->out[0].shape.dim[1], wide = room(most), found = 0;
    const float *box = (const float *)a->in[0].data + 4 * b * n, *score = (const float *)a->in[1].data + b * n;
    const int32_t *label = a->in[2].data;
    if (label && a->in[2].shape.rank == 2)
        label += b * n;
    uint64_t *key = (uint64_t *)(void *)memory;
    float *lists = (float *)(void *)(memory + (size_t)n * sizeof *key);
    kept k = {lists, lists + wide, lists + 2 * wide, lists + 3 * wide, lists + 4 * wide, (int32_t *)(void *)(lists + 5 * wide), 0};
    float one = o->plus_one ? 1 : 0, threshold = float_threshold(o->iou_threshold, o->inclusive != 0);
    for (int64_t i = 0; i < n; i++)
        if ((double)score[i] > o->score_threshold)
            key[found++] = select_key(score[i], i);
    if (o->candidates && o->candidates < found) {
        select_lowest(key, found, o->candidates);
        found = o->candidates;
    }
    select_sort(key, found);
    int32_t *index = (int32_t *)a->out[0].data + b * most;
    for (int64_t c = 0; c < found && k.n < most; c++) {
        int64_t i = select_index(key[c]);
        int32_t mine = label ? label[i] : 0, same = 0, over = 0;
        for (int64_t first = 0; first < k.n && !over; first += 64)
            over = overlapping(&k, first, k.n - first < 64 ? k.n - first : 64, box + 4 * i, mine, one, threshold, o->inclusive != 0, &same);
        if (over || (o->most_per_class && same >= (int64_t)o->most_per_class))
            continue;
        const float *p = box + 4 * i;
        float w = p[2] - p[0] + one, h = p[3] - p[1] + one;
        k.x1[k.n] = p[0];
        k.y1[k.n] = p[1];
        k.x2[k.n] = p[2];
        k.y2[k.n] = p[3];
        k.area[k.n] = w * h;
        k.label[k.n] = mine;
        index[k.n++] = (int32_t)i;
    }
    for (int64_t j = k.n; j < most; j++)
        index[j] = -1;
    ((int32_t *)a->out[1].data)[b] = (int32_t)k.n;
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase;
    uint64_t bytes = per_thread(a->in[1].shape.dim[1], a->out[0].shape.dim[1]);
    for (int64_t b = begin; b < end; b++)
        image(a, b, (char *)a->scratch + bytes * thread);
}

const sodet_cpu_kernel sodet_cpu_nms[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .scratch = scratch, .run = run}};
