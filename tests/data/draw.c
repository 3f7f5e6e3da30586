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
    return check_done(1100);
}
