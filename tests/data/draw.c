/* Boxes and names on a picture; nothing is written outside it, whatever the numbers. */
#include "core/data/draw.h"

#include "check.h"

enum { W = 60, H = 40, GUARD = 512 };
static uint8_t memory[W * H * 3 + 2 * GUARD];
static const uint8_t red[3] = {255, 0, 0};
static const sd_canvas canvas = {memory + GUARD, W, H};

static uint32_t painted(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < W * H; i++)
        n += canvas.rgb[3 * i] != 0 || canvas.rgb[3 * i + 1] != 0 || canvas.rgb[3 * i + 2] != 0;
    return n;
}

static void clear(void)
{
    memset(memory, 0x5a, sizeof memory);
    memset(canvas.rgb, 0, W * H * 3);
}

static bool guarded(void)
{
    for (uint32_t i = 0; i < GUARD; i++) {
        if (memory[i] != 0x5a || memory[sizeof memory - 1 - i] != 0x5a)
            return false;
    }
    return true;
}

/* Rows and columns of a canvas of its own that hold something red behind one object's drawing. */
static void extent(uint32_t width, uint32_t height, sodet_box box, const char *name, uint32_t *frame, uint32_t *bar)
{
    sd_canvas c = {calloc((size_t)width * height, 3), width, height};
    sd_draw_object(&c, box, name, 0.93, red);
    *frame = *bar = 0;
    uint32_t middle = (uint32_t)(box.y1 + box.y2) / 2, left = (uint32_t)box.x1 + 1;
    while (c.rgb[((size_t)middle * width + (uint32_t)box.x1 + *frame) * 3])
        ++*frame;
    for (uint32_t y = 0; y < (uint32_t)box.y1; y++)
        *bar += c.rgb[((size_t)y * width + left) * 3] != 0;
    free(c.rgb);
}

/* Lines and letters grow with the longer side; letters shrink again where the text would not fit. */
static void test_sizes(void)
{
    static const struct {
        uint32_t width, height, frame, bar;
        const char *name;
    } of[] = {{128, 128, 1, 9, "circle"}, {500, 375, 2, 9, "circle"},      {640, 480, 2, 18, "circle"}, {4000, 3000, 11, 63, "circle"},
              {4000, 300, 11, 63, "cat"}, {200, 1600, 5, 18, "elephants"}, {200, 1600, 5, 27, "cat"}};
    for (uint32_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        uint32_t frame, bar;
        float w = (float)of[i].width, h = (float)of[i].height;
        extent(of[i].width, of[i].height, (sodet_box){0, floorf(h * 0.5f), w * 0.9f, floorf(h * 0.9f)}, of[i].name, &frame, &bar);
        CHECK_EQ(frame, of[i].frame);
        CHECK_EQ(bar, of[i].bar);
    }
}

/* A name that is too long gives way to its score: the last columns are those of "0.93" alone. */
static void test_cut(void)
{
    enum { WIDE = 90 };
    uint8_t longer[WIDE * 9 * 3] = {0}, shorter[WIDE * 9 * 3] = {0};
    const sd_canvas a = {longer, WIDE, 9}, b = {shorter, WIDE, 9};
    sd_draw_object(&a, (sodet_box){0, 0, 1, 1}, "a name that is longer than the picture is wide", 0.93, red);
    sd_draw_object(&b, (sodet_box){0, 0, 1, 1}, "a name t..", 0.93, red);
    CHECK(memcmp(longer, shorter, sizeof longer) == 0);
    memset(longer, 0, sizeof longer);
    memset(shorter, 0, sizeof shorter);
    sd_draw_object(&a, (sodet_box){0, 0, 1, 1}, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4",
                   0.93, red);
    sd_draw_object(&b, (sodet_box){0, 0, 1, 1}, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4..", 0.93, red);
    CHECK(memcmp(longer, shorter, sizeof longer) == 0);
}

static void test_zoom(void)
{
    CHECK_EQ(sd_draw_zoom(120, 1), 1);
    CHECK_EQ(sd_draw_zoom(119, 50), 2);
    CHECK_EQ(sd_draw_zoom(1, 1), 120);
    CHECK_EQ(sd_draw_zoom(1, 2000), 2);
    CHECK_EQ(sd_draw_zoom(10, 5000), 1);
    uint8_t small[2 * 2 * 3], large[6 * 6 * 3];
    for (uint32_t i = 0; i < sizeof small; i++)
        small[i] = (uint8_t)(i * 17);
    sd_draw_enlarge(&(sd_canvas){small, 2, 2}, 3, large);
    for (uint32_t y = 0; y < 6; y++)
        for (uint32_t x = 0; x < 6; x++)
            CHECK(memcmp(large + (y * 6 + x) * 3, small + (y / 3 * 2 + x / 3) * 3, 3) == 0);
}

int main(void)
{
    clear();
    sd_draw_box(&canvas, (sodet_box){10, 5, 30, 25}, red, 1);
    CHECK_EQ(painted(), 2 * 20 + 2 * 18);
    CHECK(canvas.rgb[(5 * W + 10) * 3] == 255 && canvas.rgb[(24 * W + 29) * 3] == 255 && canvas.rgb[(25 * W + 30) * 3] == 0 &&
          canvas.rgb[(6 * W + 11) * 3] == 0);
    clear();
    sd_draw_box(&canvas, (sodet_box){-5, -5, 200, 20}, red, 2);
    CHECK_EQ(painted(), 2 * W); /* only the lower edge is inside */
    clear();
    sd_draw_text(&canvas, 3, 4, "I", red, 1);
    CHECK_EQ(painted(), 7 * 9);
    uint32_t ink = 0;
    for (uint32_t i = 0; i < W * H; i++)
        ink += canvas.rgb[3 * i] == 255 && canvas.rgb[3 * i + 1] == 255;
    CHECK_EQ(ink, 11); /* the letter: a stem of seven and two serifs of two */
    static const float odd[] = {-1e30f, -100, -0.6f, 0, 17.5f, 59, 60, 61, 1e9f, 1e38f};
    for (uint32_t i = 0; i < 10 * 10 * 10; i++) {
        clear();
        sodet_box b = {odd[i % 10], odd[i / 10 % 10], odd[i / 100], i % 7 ? odd[i % 9] : NAN};
        sd_draw_object(&canvas, b, i % 3 ? "a name that is longer than the picture is wide" : "caf\xc3\xa9\x01", i % 2 ? 0.5 : -1, red);
        CHECK(guarded());
    }
    uint8_t seen[20][3];
    for (uint32_t i = 0; i < 20; i++) {
        sd_class_colour(i, 20, seen[i]);
        for (uint32_t k = 0; k < i; k++)
            CHECK(memcmp(seen[i], seen[k], 3) != 0);
    }
    test_sizes();
    test_cut();
    test_zoom();
    return check_done(1240);
}
