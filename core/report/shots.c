#include "core/report/shots.h"

#include <string.h>

#include "core/data/decode.h"

enum { QUALITY = 85 };

static uint8_t byte_of(double v)
{
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)(v + 0.5);
}

/* Pixels [*first, *last) of `size` that pixel i of `to` covers; at least one. */
static void covered(uint32_t i, uint32_t to, uint32_t size, uint32_t *first, uint32_t *last)
{
    *first = (uint32_t)((uint64_t)i * size / to);
    *last = (uint32_t)((uint64_t)(i + 1) * size / to);
    *last = *last > *first ? *last : *first + 1;
}

static void scale(const sodet_image *p, const sd_canvas *c)
{
    uint32_t grey = p->channels == 1;
    for (uint32_t y = 0; y < c->height; y++) {
        uint32_t y0, y1, x0, x1;
        covered(y, c->height, p->height, &y0, &y1);
        for (uint32_t x = 0; x < c->width; x++) {
            covered(x, c->width, p->width, &x0, &x1);
            double sum[3] = {0, 0, 0};
            for (uint32_t sy = y0; sy < y1; sy++)
                for (uint32_t sx = x0; sx < x1; sx++)
                    for (uint32_t k = 0; k < 3; k++)
                        sum[k] += (double)p->pixels[((size_t)sy * p->width + sx) * p->channels + (grey ? 0 : k)];
            for (uint32_t k = 0; k < 3; k++)
                c->rgb[((size_t)y * c->width + x) * 3 + k] = byte_of(sum[k] / ((double)(y1 - y0) * (x1 - x0)));
        }
    }
}

sodet_status sd_shot_paint(const sodet_image *p, const sd_shot_box *boxes, uint64_t n, uint32_t side, const char *name, sd_canvas *out,
                           sodet_err *err)
{
    uint32_t longer = p->width > p->height ? p->width : p->height;
    double by = longer > side ? (double)side / longer : side / longer;
    sd_canvas c = {.width = (uint32_t)(p->width * by + 0.5), .height = (uint32_t)(p->height * by + 0.5)};
    c.width = c.width ? c.width : 1;
    c.height = c.height ? c.height : 1;
    c.rgb = sd_alloc((size_t)c.width * c.height, 3);
    if (!c.rgb)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a small picture of %s", name);
    scale(p, &c);
    for (uint64_t k = n; k-- > 0;) {
        const sodet_box *b = &boxes[k].box;
        float fx = (float)c.width / (float)p->width, fy = (float)c.height / (float)p->height;
        const sodet_box at = {b->x1 * fx, b->y1 * fy, b->x2 * fx, b->y2 * fy};
        if (boxes[k].name)
            sd_draw_object(&c, at, boxes[k].name, boxes[k].score, boxes[k].colour);
        else
            sd_draw_box(&c, at, boxes[k].colour, 1);
    }
    *out = c;
    return SODET_OK;
}

sodet_status sd_shot_make(const sodet_image *p, const sd_shot_box *boxes, uint64_t n, uint32_t side, const char *name, sd_shot *out,
                          sodet_err *err)
{
    sd_canvas c = {0};
    sodet_status s = sd_shot_paint(p, boxes, n, side, name, &c, err);
    if (s == SODET_OK)
        s = sd_jpeg_encode(name, c.rgb, c.width, c.height, QUALITY, &out->jpeg, err);
    out->width = c.width;
    out->height = c.height;
    sd_free(c.rgb);
    return s;
}
