/* curve.png: loss and the headline metric of a metrics.jsonl over the steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/decode.h"
#include "core/data/draw.h"
#include "core/report/metrics.h"
#include "core/report/report.h"

enum { WIDTH = 960, HEIGHT = 540, LEFT = 70, RIGHT = 70, TOP = 40, BOTTOM = 50 };

typedef struct series { /* of the file, and the range that is shown */
    const sd_point *p;
    uint64_t n;
    double least, most;
} series;

static int by_value(const void *a, const void *b)
{
    double x = ((const sd_point *)a)->value, y = ((const sd_point *)b)->value;
    return x < y ? -1 : x > y;
}

/* The range that is shown; a few first losses far above the rest may leave it. */
static sodet_status range(series *s, double share, sodet_err *err)
{
    s->least = 0;
    s->most = 1;
    if (!s->n)
        return SODET_OK;
    sd_point *sorted = sd_alloc((size_t)s->n, sizeof *sorted);
    if (!sorted)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the curve");
    memcpy(sorted, s->p, (size_t)s->n * sizeof *sorted);
    qsort(sorted, (size_t)s->n, sizeof *sorted, by_value);
    s->least = sorted[0].value < 0 ? sorted[0].value : 0;
    s->most = sorted[(uint64_t)(share * (double)(s->n - 1))].value * 1.05;
    if (!(s->most > s->least))
        s->most = s->least + 1;
    sd_free(sorted);
    return SODET_OK;
}

static void dot(const sd_canvas *c, double x, double y, const uint8_t rgb[3], int radius)
{
    for (int dy = -radius; dy <= radius; dy++)
        for (int dx = -radius; dx <= radius; dx++) {
            int px = (int)lround(x) + dx, py = (int)lround(y) + dy;
            if (px >= LEFT && px < WIDTH - RIGHT && py >= TOP && py <= HEIGHT - BOTTOM)
                memcpy(c->rgb + ((size_t)py * WIDTH + (size_t)px) * 3, rgb, 3);
        }
}

static void draw_series(const sd_canvas *c, const series *s, double steps, const uint8_t rgb[3], bool marks)
{
    double before_x = 0, before_y = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        double x = LEFT + (WIDTH - LEFT - RIGHT) * s->p[i].step / steps;
        double y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (s->p[i].value - s->least) / (s->most - s->least);
        y = fmax(fmin(y, 2 * HEIGHT), -HEIGHT); /* a loss that exploded is not followed to where it went */
        double length = i ? hypot(x - before_x, y - before_y) : 0;
        for (double t = 0; i && t < length; t += 0.5)
            dot(c, before_x + (x - before_x) * t / length, before_y + (y - before_y) * t / length, rgb, marks ? 1 : 0);
        dot(c, x, y, rgb, marks ? 3 : 1);
        before_x = x;
        before_y = y;
    }
}

static void label(const sd_canvas *c, int x, int y, double v, const uint8_t rgb[3])
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", v);
    sd_draw_text(c, x, y, text, rgb, 1);
}

static void axes(const sd_canvas *c, const series *loss, const series *metric, double steps, const uint8_t colours[3][3])
{
    static const uint8_t grid[3] = {225, 225, 225};
    for (int i = 0; i <= 5; i++) {
        int y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * i / 5, x = LEFT + (WIDTH - LEFT - RIGHT) * i / 5;
        for (int k = LEFT; k < WIDTH - RIGHT; k++)
            memcpy(c->rgb + ((size_t)y * WIDTH + (size_t)k) * 3, grid, 3);
        if (loss->n)
            label(c, 8, y - 5, loss->least + (loss->most - loss->least) * i / 5, colours[0]);
        if (metric->n)
            label(c, WIDTH - RIGHT + 10, y - 5, metric->least + (metric->most - metric->least) * i / 5, colours[1]);
        label(c, x - 12, HEIGHT - BOTTOM + 14, steps * i / 5, colours[2]);
    }
}

static sodet_status paint(series *loss, series *metric, const char *headline, const char *png, sodet_err *err)
{
    static const uint8_t colours[3][3] = {{200, 60, 40}, {30, 90, 190}, {90, 90, 90}};
    double steps = 1;
    for (uint64_t i = 0; i < loss->n; i++)
        steps = loss->p[i].step > steps ? loss->p[i].step : steps;
    for (uint64_t i = 0; i < metric->n; i++)
        steps = metric->p[i].step > steps ? metric->p[i].step : steps;
    sodet_status s = range(loss, 0.98, err);
    if (s == SODET_OK)
        s = range(metric, 1, err);
    sd_canvas c = {sd_alloc((size_t)WIDTH * HEIGHT, 3), WIDTH, HEIGHT};
    if (s == SODET_OK && !c.rgb)
        s = SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the curve");
    if (s == SODET_OK) {
        memset(c.rgb, 255, (size_t)WIDTH * HEIGHT * 3);
        axes(&c, loss, metric, steps, colours);
        draw_series(&c, loss, steps, colours[0], false);
        draw_series(&c, metric, steps, colours[1], true);
        sd_draw_text(&c, LEFT, 12, "loss", colours[0], 2);
        if (metric->n)
            sd_draw_text(&c, LEFT + 90, 12, headline, colours[1], 2);
        sd_draw_text(&c, WIDTH / 2 - 12, HEIGHT - 20, "step", colours[2], 1);
        s = sd_png_write(png, c.rgb, WIDTH, HEIGHT, err);
    }
    sd_free(c.rgb);
    return s;
}

static series take(const sd_metrics *m, const char *name)
{
    const sd_series *s = sd_metrics_find(m, name);
    return (series){.p = s ? s->point : NULL, .n = s ? s->n : 0};
}

sodet_status sd_report_curve(const char *metrics, const char *headline, const char *png, sodet_err *err)
{
    sd_metrics m;
    sodet_status s = sd_metrics_read(metrics, &m, err);
    if (s != SODET_OK)
        return s;
    series loss = take(&m, "loss"), metric = take(&m, headline);
    s = paint(&loss, &metric, headline, png, err);
    sd_metrics_free(&m);
    return s;
}
