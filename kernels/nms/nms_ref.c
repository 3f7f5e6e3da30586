#include "kernels/reference.h"

/* in float, so that a box kept by one backend is kept by all; no operation may be fused */
static float overlap(const SODET_REAL *a, const SODET_REAL *b, float one)
{
    float ax1 = (float)a[0], ay1 = (float)a[1], ax2 = (float)a[2], ay2 = (float)a[3], bx1 = (float)b[0], by1 = (float)b[1],
          bx2 = (float)b[2], by2 = (float)b[3];
    float aw = ax2 - ax1 + one, ah = ay2 - ay1 + one, bw = bx2 - bx1 + one, bh = by2 - by1 + one;
    float w = (ax2 < bx2 ? ax2 : bx2) - (ax1 > bx1 ? ax1 : bx1) + one, h = (ay2 < by2 ? ay2 : by2) - (ay1 > by1 ? ay1 : by1) + one;
    w = w > 0 ? w : 0;
    h = h > 0 ? h : 0;
    float inter = w * h, area = aw * ah, other = bw * bh, both = area + other;
    return inter / (both - inter);
}

static void forward(const sodet_kernel_args *a)
{
    const sodet_nms_options *o = &((const sodet_nms_attr *)a->attr)->o;
    int64_t images = a->in[1].shape.dim[0], n = a->in[1].shape.dim[1], most = a->out[0].shape.dim[1];
    for (int64_t b = 0; b < images; b++) {
        const SODET_REAL *box = ref_in(a, 0) + 4 * b * n, *score = ref_in(a, 1) + b * n;
        const int32_t *label = a->in[2].data;
        if (label && a->in[2].shape.rank == 2)
            label += b * n;
        int32_t *index = (int32_t *)a->out[0].data + b * most, count = 0;
        /* the candidates in order, one at a time: the best behind the last one looked at */
        int64_t last = -1, looked = 0;
        while (count < most && (o->candidates == 0 || looked < o->candidates)) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++) {
                int behind = last < 0 || score[i] < score[last] || (score[i] == score[last] && i > last);
                if (behind && (double)score[i] > o->score_threshold && (best < 0 || score[i] > score[best]))
                    best = i;
            }
            if (best < 0)
                break;
            last = best;
            looked++;
            uint32_t of_class = 0;
            int keep = 1;
            for (int32_t k = 0; k < count && keep; k++) {
                if (label && label[index[k]] != label[best])
                    continue;
                double iou = (double)overlap(box + 4 * index[k], box + 4 * best, o->plus_one ? 1 : 0);
                of_class++;
                keep = !(o->inclusive ? iou >= o->iou_threshold : iou > o->iou_threshold) &&
                       (o->most_per_class == 0 || of_class < o->most_per_class);
            }
            if (keep)
                index[count++] = (int32_t)best;
        }
        for (int64_t k = count; k < most; k++)
            index[k] = -1;
        ((int32_t *)a->out[1].data)[b] = count;
    }
}

const sodet_ref_kernel SODET_REF(nms)[] = {forward};
