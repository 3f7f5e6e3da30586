#include "core/detect/cluster.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 300 };

double sd_size_iou(double w1, double h1, double w2, double h2)
{
    double inter = (w1 < w2 ? w1 : w2) * (h1 < h2 ? h1 : h2);
    return inter / (w1 * h1 + w2 * h2 - inter);
}

static int by_area(const void *a, const void *b)
{
    const sd_cluster *x = a, *y = b;
    double p = x->n ? x->width * x->height : 1e300, q = y->n ? y->width * y->height : 1e300;
    if (p < q || p > q)
        return p < q ? -1 : 1;
    return x->width < y->width ? -1 : x->width > y->width;
}

/* Centres drawn among the boxes, each with a chance that rises with the square of its distance from the ones before. Returns their number:
 * fewer than k where no box is away from them. */
static uint32_t draw_centres(const double (*size)[2], uint64_t n, uint32_t k, uint64_t seed, double *distance, sd_cluster *out)
{
    sodet_stream r = sd_stream(seed, 0, n, k);
    uint64_t next = sd_stream_bits(&r) % n;
    for (uint64_t i = 0; i < n; i++)
        distance[i] = 1;
    for (uint32_t c = 0; c < k; c++) {
        double sum = 0;
        out[c] = (sd_cluster){.width = size[next][0], .height = size[next][1]};
        for (uint64_t i = 0; i < n; i++) {
            double d = 1 - sd_size_iou(size[i][0], size[i][1], out[c].width, out[c].height);
            d = d > 1e-12 ? d : 0;
            distance[i] = d < distance[i] ? d : distance[i];
            sum += distance[i] * distance[i];
        }
        if (!(sum > 0))
            return c + 1;
        double at = sodet_stream_uniform(&r, 0, sum), passed = 0;
        uint64_t last = 0;
        for (uint64_t i = 0; i < n && !(passed > at); i++) {
            passed += distance[i] * distance[i];
            last = distance[i] > 0 ? i : last;
        }
        next = last;
    }
    return k;
}

/* Every box to its nearest centre (the first on a tie): counts, IoUs, and the means that are the next centres. */
static double assign(const double (*size)[2], uint64_t n, sd_cluster *c, uint32_t k, double (*mean)[2])
{
    double sum = 0;
    for (uint32_t j = 0; j < k; j++) {
        c[j].n = 0;
        c[j].iou = mean[j][0] = mean[j][1] = 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        double best = -1;
        uint32_t whose = 0;
        for (uint32_t j = 0; j < k; j++) {
            double iou = sd_size_iou(size[i][0], size[i][1], c[j].width, c[j].height);
            if (iou > best) {
                best = iou;
                whose = j;
            }
        }
        c[whose].n++;
        c[whose].iou += best;
        mean[whose][0] += size[i][0];
        mean[whose][1] += size[i][1];
        sum += best;
    }
    for (uint32_t j = 0; j < k; j++) {
        double count = c[j].n ? (double)c[j].n : 1;
        c[j].iou /= count;
        mean[j][0] = c[j].n ? mean[j][0] / count : c[j].width;
        mean[j][1] = c[j].n ? mean[j][1] / count : c[j].height;
    }
    return sum / (double)n;
}

sodet_status sd_cluster_sizes(const double (*size)[2], uint64_t n, uint32_t k, uint64_t seed, sd_cluster *out, uint32_t *used, double *iou,
                              sodet_err *err)
{
    *used = 0;
    *iou = 0;
    if (!n || !k)
        return SODET_FAIL(err, SODET_E_INVALID, "%u clusters of %llu boxes: at least one of each is wanted", k, (unsigned long long)n);
    memset(out, 0, k * sizeof *out);
    double *distance = sd_alloc(n, sizeof *distance);
    sd_cluster *c = sd_alloc(k, sizeof *c);
    double(*mean)[2] = sd_alloc(k, sizeof *mean);
    sodet_status status = SODET_OK;
    if (!distance || !c || !mean) {
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u clusters of %llu boxes", k, (unsigned long long)n);
        goto end;
    }
    uint32_t there = draw_centres(size, n, k, seed, distance, c);
    bool moved = true;
    for (uint32_t round = 0; round < ROUNDS && moved; round++) {
        double now = assign(size, n, c, there, mean);
        if (now > *iou) {
            *iou = now;
            memcpy(out, c, there * sizeof *c);
        }
        moved = false;
        for (uint32_t j = 0; j < there; j++) {
            moved |= c[j].width < mean[j][0] || c[j].width > mean[j][0] || c[j].height < mean[j][1] || c[j].height > mean[j][1];
            c[j].width = mean[j][0];
            c[j].height = mean[j][1];
        }
    }
    qsort(out, k, sizeof *out, by_area);
    while (*used < k && out[*used].n)
        ++*used;
end:
    sd_free(distance);
    sd_free(c);
    sd_free(mean);
    return status;
}
