#include "core/data/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double sd_stats_share[SD_STATS_QUANTILES] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
const char *const sd_stats_size_names[SD_STATS_SIZES] = {"small", "medium", "large"};

static const double numbers[] = {0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
static const double sides[] = {0, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};
static const double ratios[] = {0, 0.1, 0.2, 1 / 3.0, 0.5, 2 / 3.0, 0.8, 1.25, 1.5, 2, 3, 5, 10};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of n sorted values. */
static double rank(const double *v, uint64_t n, double share)
{
    double at = ceil(share * (double)n);
    return n ? v[at < 1 ? 0 : (uint64_t)at - 1] : (double)NAN;
}

static void spread(double *v, uint64_t n, const double *edge, uint32_t n_bins, sd_spread *out)
{
    out->edge = edge;
    out->n_bins = n_bins;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k + 1 < n_bins && v[i] >= edge[k + 1])
            k++;
        out->count[k]++;
    }
    if (n)
        qsort(v, n, sizeof *v, by_value);
    for (uint32_t i = 0; i < SD_STATS_QUANTILES; i++)
        out->quantile[i] = rank(v, n, sd_stats_share[i]);
}

static uint32_t size_of(double area)
{
    return area < 32 * 32 ? SD_STATS_SMALL : area < 96 * 96 ? SD_STATS_MEDIUM : SD_STATS_LARGE;
}

static double width(const sodet_box *b)
{
    return (double)b->x2 - (double)b->x1;
}

static double height(const sodet_box *b)
{
    return (double)b->y2 - (double)b->y1;
}

/* Boxes of each class, and how many pictures have one: a picture counts for a class once. */
static sodet_status count_classes(const sd_boxes *b, sd_stats *s, sodet_err *err)
{
    uint64_t *seen = sd_alloc(s->n_classes + 1u, sizeof *seen); /* number of the last picture that had the class, from 1 */
    if (!seen)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %u classes", s->n_classes);
    for (uint64_t i = 0; i < b->n_items; i++) {
        for (uint64_t k = b->first[i]; k < b->first[i + 1]; k++) {
            uint32_t label = (uint32_t)b->label[k];
            sd_stats_class *c = &s->of_class[label];
            c->boxes++;
            c->input[size_of(width(&b->box[k]) * height(&b->box[k]))]++;
            c->pictures += seen[label] != i + 1;
            seen[label] = i + 1;
        }
    }
    sd_free(seen);
    return SODET_OK;
}

sodet_status sd_stats_make(const sd_boxes *b, uint32_t n_classes, sd_stats *s, sodet_err *err)
{
    memset(s, 0, sizeof *s);
    s->n_classes = n_classes;
    s->of_class = sd_alloc(n_classes + 1u, sizeof *s->of_class);
    double *v = sd_alloc((b->n > b->n_items ? b->n : b->n_items) + 1, sizeof *v);
    sodet_status status = s->of_class && v
                              ? count_classes(b, s, err)
                              : SODET_FAIL(err, SODET_E_MEMORY, "no memory for figures of %llu boxes", (unsigned long long)b->n);
    if (status == SODET_OK) {
        s->pictures = b->n_items;
        s->boxes = b->n;
        for (uint64_t i = 0; i < b->n_items; i++) {
            v[i] = (double)(b->first[i + 1] - b->first[i]);
            s->empty += b->first[i + 1] == b->first[i];
        }
        spread(v, b->n_items, numbers, sizeof numbers / sizeof *numbers, &s->per_picture);
        for (uint64_t k = 0; k < b->n; k++) {
            s->difficult += (b->flags[k] & SODET_BOX_DIFFICULT) != 0;
            s->crowd += (b->flags[k] & SODET_BOX_CROWD) != 0;
            s->labelled[size_of(width(&b->labelled[k]) * height(&b->labelled[k]))]++;
            s->input[size_of(width(&b->box[k]) * height(&b->box[k]))]++;
            v[k] = width(&b->labelled[k]) / height(&b->labelled[k]);
        }
        spread(v, b->n, ratios, sizeof ratios / sizeof *ratios, &s->ratio);
        for (uint32_t c = 0; c < n_classes; c++) {
            uint64_t n = 0;
            for (uint64_t k = 0; k < b->n; k++) {
                v[n] = sqrt(width(&b->box[k]) * height(&b->box[k]));
                n += (uint32_t)b->label[k] == c;
            }
            if (n)
                qsort(v, n, sizeof *v, by_value);
            s->of_class[c].side = rank(v, n, 0.5);
        }
        for (uint64_t k = 0; k < b->n; k++)
            v[k] = sqrt(width(&b->box[k]) * height(&b->box[k]));
        spread(v, b->n, sides, sizeof sides / sizeof *sides, &s->side);
    }
    sd_free(v);
    if (status != SODET_OK)
        sd_stats_free(s);
    return status;
}

void sd_stats_free(sd_stats *s)
{
    sd_free(s->of_class);
    memset(s, 0, sizeof *s);
}
