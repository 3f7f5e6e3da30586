/* Rows with bars: each series by its own sum, the longest as long as there is room, nothing outside the canvas. */
#include "core/report/bars.h"

#include "check.h"

/* Pixels of this colour in a row of the canvas. */
static uint32_t coloured(const sd_canvas *c, uint32_t y, uint8_t r, uint8_t g, uint8_t b)
{
    uint32_t n = 0;
    for (uint32_t x = 0; x < c->width; x++) {
        const uint8_t *p = c->rgb + ((size_t)y * c->width + x) * 3;
        n += p[0] == r && p[1] == g && p[2] == b;
    }
    return n;
}

int main(void)
{
    static const char *const labels[] = {"a", "a name that is far too long for the place that names have in such a picture", "c"};
    static const double one[] = {30, 60, 10}, two[] = {2, 1, 1}, none[] = {0, 0, 0};
    const sd_bars b = {
        .title = "t", .n_rows = 3, .n_series = 3, .label = labels, .name = {"one", "two", "none"}, .value = {one, two, none}};
    uint32_t height = sd_bars_height(&b);
    sd_canvas c = {.width = SD_BARS_WIDTH, .height = height};
    c.rgb = malloc((size_t)c.width * height * 3 + 16);
    memset(c.rgb, 255, (size_t)c.width * height * 3);
    memset(c.rgb + (size_t)c.width * height * 3, 7, 16);
    sd_bars_draw(&c, 0, 0, &b);
    /* Bars are 9 high below a title of 26, rows have a gap of 4. The longest, 60 %, has 640 - 170 - 80 - 20 = 370 pixels. */
    enum { TITLE = 26, ROW = 3 * 9 + 4 };
    CHECK_EQ(height, TITLE + 3 * ROW + 10);
    CHECK_EQ(coloured(&c, TITLE + ROW + 2, 30, 90, 190), 370);
    CHECK_EQ(coloured(&c, TITLE + 2, 30, 90, 190), 370 * 30 / 60);
    CHECK_EQ(coloured(&c, TITLE + 2 * ROW + 2, 30, 90, 190), 370 * 10 / 60);
    CHECK_EQ(coloured(&c, TITLE + 9 + 2, 220, 120, 30), 370 * 50 / 60);
    CHECK_EQ(coloured(&c, TITLE + ROW + 9 + 2, 220, 120, 30), 370 * 25 / 60);
    CHECK_EQ(coloured(&c, TITLE + 18 + 2, 40, 150, 70), 0);
    for (uint32_t i = 0; i < 16; i++)
        CHECK_EQ(c.rgb[(size_t)c.width * height * 3 + i], 7);
    free(c.rgb);
    return check_done(20);
}
