#include "core/report/bars.h"

#include <stdio.h>
#include <string.h>

enum { TITLE = 26, LABEL = 170, VALUE = 80, BAR = 9, GAP = 4, MARGIN = 10 };
static const uint8_t colours[SD_BARS_SERIES][3] = {{30, 90, 190}, {220, 120, 30}, {40, 150, 70}, {150, 60, 160}};
static const uint8_t paper[3] = {255, 255, 255};

uint32_t sd_bars_height(const sd_bars *b)
{
    return TITLE + b->n_rows * (b->n_series * BAR + GAP) + MARGIN;
}

static void text(const sd_canvas *c, uint32_t x, uint32_t y, const char *words, const uint8_t rgb[3])
{
    char cut[LABEL / 6 + 1];
    snprintf(cut, sizeof cut, "%s", words); /* what is longer would cover the bars */
    sd_draw_text(c, (int32_t)x, (int32_t)y, cut, rgb, 1);
}

void sd_bars_draw(const sd_canvas *c, uint32_t x, uint32_t y, const sd_bars *b)
{
    double sum[SD_BARS_SERIES] = {0}, most = 0;
    uint32_t at = x + MARGIN + LABEL;
    for (uint32_t s = 0; s < b->n_series; s++) {
        for (uint32_t i = 0; i < b->n_rows; i++)
            sum[s] += b->value[s][i];
        for (uint32_t i = 0; i < b->n_rows && sum[s] > 0; i++)
            most = b->value[s][i] / sum[s] > most ? b->value[s][i] / sum[s] : most;
    }
    sd_draw_text(c, (int32_t)(x + MARGIN), (int32_t)y + 4, b->title, paper, 1);
    for (uint32_t s = 0; s < b->n_series; s++) {
        uint32_t wide = (uint32_t)strlen(b->name[s]) * 6 + 14;
        sd_draw_text(c, (int32_t)(x + SD_BARS_WIDTH - MARGIN - (b->n_series - s) * wide), (int32_t)y + 4, b->name[s], colours[s], 1);
    }
    y += TITLE;
    for (uint32_t i = 0; i < b->n_rows; i++, y += GAP) {
        text(c, x + MARGIN, y + (b->n_series * BAR - BAR) / 2, b->label[i], paper);
        for (uint32_t s = 0; s < b->n_series; s++, y += BAR) {
            double share = sum[s] > 0 && most > 0 ? b->value[s][i] / sum[s] / most : 0;
            uint32_t length = (uint32_t)(share * (SD_BARS_WIDTH - LABEL - VALUE - 2 * MARGIN));
            char number[32];
            const sodet_box bar = {(float)at, (float)y, (float)(at + length), (float)(y + BAR - 1)};
            if (length)
                sd_draw_box(c, bar, colours[s], BAR);
            snprintf(number, sizeof number, "%.10g", b->value[s][i]);
            sd_draw_text(c, (int32_t)(at + length + 4), (int32_t)y, number, paper, 1);
        }
    }
}
