/* Pictures with boxes: shrunk by the mean, enlarged whole, a box without a name is a frame of one pixel. */
#include "core/report/shots.h"

#include "check.h"
#include "core/base/base.h"

static sodet_err err = SODET_ERR_INIT;

static uint32_t coloured(const sd_canvas *c, uint8_t r, uint8_t g, uint8_t b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->width * c->height; i++)
        n += c->rgb[3 * i] == r && c->rgb[3 * i + 1] == g && c->rgb[3 * i + 2] == b;
    return n;
}

int main(void)
{
    enum { WIDTH = 20, HEIGHT = 10 };
    static float pixels[WIDTH * HEIGHT * 3];
    const sodet_image picture = {.struct_size = sizeof picture, .width = WIDTH, .height = HEIGHT, .channels = 3, .pixels = pixels};
    const sd_shot_box box = {.box = {2, 2, 12, 8}, .name = NULL, .score = -1, .colour = {250, 20, 30}};
    sd_canvas c = {0};
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) /* stripes of 100 and 200 */
        pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = i % 2 ? 200 : 100;
    CHECK_OK(sd_shot_paint(&picture, &box, 1, WIDTH, "x", &c, &err));
    CHECK(c.width == WIDTH && c.height == HEIGHT);
    CHECK_EQ(coloured(&c, 250, 20, 30), 2 * 10 + 2 * 4);
    CHECK_EQ(coloured(&c, 100, 100, 100) + coloured(&c, 200, 200, 200) + 28, WIDTH * HEIGHT);
    sd_free(c.rgb);
    CHECK_OK(sd_shot_paint(&picture, &box, 1, 50, "x", &c, &err)); /* twice, not two and a half times */
    CHECK(c.width == 40 && c.height == 20);
    CHECK_EQ(coloured(&c, 250, 20, 30), 2 * 20 + 2 * 10);
    sd_free(c.rgb);
    CHECK_OK(sd_shot_paint(&picture, NULL, 0, 10, "x", &c, &err));
    CHECK(c.width == 10 && c.height == 5);
    CHECK_EQ(coloured(&c, 150, 150, 150), 50);
    sd_free(c.rgb);
    return check_done(10);
}
