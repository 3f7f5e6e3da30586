/* data/pixel_row.c: what transforms have said of a sample that records, as a row of the tables of the operator `pixels`. */
#include <string.h>

#include "core/data/colour.h"
#include "core/data/sample.h"

void sd_sample_pixel_row(const sodet_sample *s, sd_pixel_row *out)
{
    const sd_view *seen = s->resized ? &s->window : &s->view;
    const bool turned = s->resized; /* then the view has what was mirrored behind the resize */
    uint32_t steps[2] = {0, 0}, n = 0;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < s->n_colours; i++) {
        const sd_colours *c = (const sd_colours *)(const void *)s->colours[i].how;
        for (uint32_t k = 0; k < c->n; k++, n++) {
            out->place[SODET_PIXELS_STEP + n] = (int32_t)(c->steps[k].what + (c->clamp ? SODET_PIXELS_CLAMP : 0));
            out->value[SODET_PIXELS_STEP_A + 2 * n] = c->steps[k].a;
            out->value[SODET_PIXELS_STEP_A + 2 * n + 1] = c->steps[k].b;
        }
        steps[s->resized && i >= s->before] += c->n;
    }
    /* Of the picture the rows alone that the window has. */
    const int64_t below = (int64_t)seen->y + seen->height, height = s->stored.height;
    const bool coded = s->n_coded != 0; /* then there are all of them */
    const int64_t top = seen->y > 0 ? seen->y : 0, bottom = below < height ? below : height;
    const int64_t first = coded ? 0 : top, end = coded ? height : bottom, rows = end > first ? end - first : 0;
    const int32_t table[] = {
        [SODET_PIXELS_ROW] = (int32_t)s->stored.width,
        [SODET_PIXELS_ROWS] = (int32_t)rows,
        [SODET_PIXELS_X] = seen->x,
        [SODET_PIXELS_Y] = rows ? (int32_t)(seen->y - first) : 0,
        [SODET_PIXELS_WIDTH] = (int32_t)seen->width,
        [SODET_PIXELS_HEIGHT] = (int32_t)seen->height,
        [SODET_PIXELS_MIRROR] = seen->mirror != (turned && s->view.mirror),
        [SODET_PIXELS_FLIP] = seen->flip != (turned && s->view.flip),
        [SODET_PIXELS_OUT_WIDTH] = (int32_t)s->view.width,
        [SODET_PIXELS_OUT_HEIGHT] = (int32_t)s->view.height,
        [SODET_PIXELS_BEFORE] = (int32_t)steps[0],
        [SODET_PIXELS_AFTER] = (int32_t)steps[1],
    };
    memcpy(out->place, table, sizeof table);
    memcpy(out->value + SODET_PIXELS_FILL, seen->fill, sizeof seen->fill);
    if (!coded)
        out->rgb = rows ? s->stored.rgb + (size_t)first * s->stored.width * 3 : s->stored.rgb;
    out->bytes = (uint64_t)rows * s->stored.width * 3;
    out->coded = coded ? s->encoded : NULL;
    out->n_coded = s->n_coded;
}
