/* Pictures of bytes into the network's input. Rows of tables are written out: windows over the edges, mirrored, of every kind of step. */
#include "opcase.h"

typedef struct row {
    int32_t first, size[2], window[4], mirror, flip, out[2], before, after;
    struct {
        int32_t what;
        float a, b;
    } step[8];
    float fill[3];
} row;

enum { LINEAR = SODET_COLOUR_LINEAR, HSV = SODET_COLOUR_SATURATE, LUMA = SODET_COLOUR_SATURATE_LUMA, TURN = SODET_COLOUR_TURN };
enum { ORDER = SODET_COLOUR_REORDER, KEPT = SODET_PIXELS_CLAMP };
enum { CHANNELS, HEIGHT, WIDTH, BEHIND };

static sodet_value made(opcase *c, const row *rows, int32_t n)
{
    static int32_t place[8 * SODET_PIXELS_PLACES];
    static float value[8 * SODET_PIXELS_VALUES];
    char places[32], values[32];
    memset(place, 0, sizeof place);
    memset(value, 0, sizeof value);
    for (int32_t i = 0; i < n; i++) {
        const row *r = &rows[i];
        int32_t *p = place + i * SODET_PIXELS_PLACES;
        float *v = value + i * SODET_PIXELS_VALUES;
        const int32_t head[] = {r->first,  r->size[0], r->size[1], r->window[0], r->window[1], r->window[2], r->window[3],
                                r->mirror, r->flip,    r->out[0],  r->out[1],    r->before,    r->after};
        memcpy(p, head, sizeof head);
        memcpy(v, r->fill, sizeof r->fill);
        for (int32_t k = 0; k < r->before + r->after; k++) {
            p[SODET_PIXELS_STEP + k] = r->step[k].what;
            v[SODET_PIXELS_STEP_A + 2 * k] = r->step[k].a;
            v[SODET_PIXELS_STEP_A + 2 * k + 1] = r->step[k].b;
        }
    }
    snprintf(places, sizeof places, "%dx%d", n, SODET_PIXELS_PLACES);
    snprintf(values, sizeof values, "%dx%d", n, SODET_PIXELS_VALUES);
    const sodet_pixels_attr a = {.channels = (uint32_t)op_option(c, CHANNELS),
                                 .height = (int32_t)op_option(c, HEIGHT),
                                 .width = (int32_t)op_option(c, WIDTH),
                                 .mean = {123.675f, 116.28f, 103.53f},
                                 .std = {58.395f, 57.12f, 57.375f}};
    sodet_value y =
        sodet_pixels(op_graph(c), op_int(c, 0, INT32_MIN, INT32_MAX), op_int_values(c, places, place), op_values(c, values, value), &a);
    return op_option(c, BEHIND) > 0
               ? sodet_conv2d(op_graph(c), "behind", y, SODET_CONV2D(.out = 5, .kernel = 3, .flags = SODET_CONV_NO_BIAS))
               : y;
}

#define SIZED(w, h) .size = {w, h}, .window = {0, 0, w, h}

static void copies(opcase *c)
{
    static const row rows[] = {{0, SIZED(20, 9), .out = {20, 9}}, {34, SIZED(7, 13), .out = {7, 13}, .mirror = 1, .flip = 1}};
    op_result(c, made(c, rows, 2));
}

/* The second begins behind 16 units, whatever the first says of its own beginning; the third is none. */
static void sizes(opcase *c)
{
    static const row rows[] = {{1000, SIZED(9, 9), .out = {24, 17}},
                               {1016, SIZED(40, 30), .out = {33, 20}, .mirror = 1},
                               {1400, SIZED(5, 5)},
                               {1250, SIZED(64, 1), .out = {1, 20}, .flip = 1}};
    op_result(c, made(c, rows, 4));
}

static void windows(opcase *c)
{
    static const row rows[] = {
        {0, {12, 10}, {-5, -7, 40, 31}, .out = {18, 15}, .fill = {255, 0, 17.5f}, .mirror = 1},
        {23, {12, 10}, {3, 2, 6, 5}, .out = {18, 15}, .flip = 1},
        {0, {12, 10}, {6, -3, 30, 8}, .out = {18, 15}, .fill = {1, 2, 3}, .flip = 1, .mirror = 1, .before = 1, .step = {{LINEAR, 0.5f, 9}}},
        {23, {12, 0}, {40, 2, 6, 5}, .out = {18, 15}, .fill = {9, 99, 199}, .after = 1, .step = {{LINEAR, 2, -20}}}};
    op_result(c, made(c, rows, 4));
}

static void linear(opcase *c)
{
    static const row rows[] = {
        {0, SIZED(30, 20), .out = {16, 12}, .before = 3, .step = {{LINEAR + KEPT, 1.3f, -31}, {LUMA + KEPT, 1.5f, 0}, {ORDER, 3, 0}}},
        {0, SIZED(30, 20), .out = {16, 12}, .after = 3, .step = {{LINEAR, 1.3f, -31}, {LUMA, 0.5f, 0}, {ORDER, 5, 0}}},
        {0, SIZED(30, 20), .out = {16, 12}, .before = 1, .after = 1, .step = {{ORDER, 1, 0}, {ORDER, 4, 0}}},
        {0, SIZED(30, 20), .out = {16, 12}, .before = 1, .after = 1, .step = {{ORDER, 2, 0}, {ORDER, 0, 0}}}};
    op_result(c, made(c, rows, 4));
}

static void hues(opcase *c)
{
    static const row rows[] = {{0, SIZED(30, 20), .out = {16, 12}, .before = 4,
                                .step = {{LINEAR + KEPT, 1, 20}, {HSV + KEPT, 1.5f, 0}, {TURN + KEPT, 0.6f, 0}, {LINEAR + KEPT, 1.4f, 0}}},
                               {0, SIZED(30, 20), .out = {16, 12}, .after = 3, .step = {{HSV, 1.5f, 0}, {TURN, -3, 0}, {LINEAR, 0.7f, 0}}},
                               {0, SIZED(30, 20), .out = {16, 12}, .before = 1, .after = 2,
                                .step = {{HSV + KEPT, 0.5f, 0}, {TURN + KEPT, 3, 0}, {HSV + KEPT, 1.4f, 0}}},
                               {0, SIZED(30, 20), .out = {16, 12}, .before = 1, .step = {{TURN, -0.6f, 0}}}};
    op_result(c, made(c, rows, 4));
}

static void none(opcase *c)
{
    op_result(c, made(c, NULL, 0));
}

#define MADE .flags = OP_INFERENCE

const opcase_entry opcases_pixels[] = {
    {.name = "pixels, as they are", .build = copies, .shape = {"210"}, .option = {SODET_PIXELS_RGB, 13, 20}, MADE},
    {.name = "pixels, sizes", .build = sizes, .shape = {"1200"}, .option = {SODET_PIXELS_BGR, 20, 33}, MADE},
    {.name = "pixels, sizes, grey", .build = sizes, .shape = {"1200"}, .option = {SODET_PIXELS_GREY, 22, 40}, MADE},
    {.name = "pixels, windows", .build = windows, .shape = {"190"}, .option = {SODET_PIXELS_RGB, 16, 19}, MADE},
    {.name = "pixels, windows, grey", .build = windows, .shape = {"190"}, .option = {SODET_PIXELS_GREY, 15, 18}, MADE},
    {.name = "pixels, steps", .build = linear, .shape = {"450"}, .option = {SODET_PIXELS_RGB, 12, 16}, MADE},
    /* 0.005 of 255 grey levels, as pixels.h derives it. */
    {.name = "pixels, hues", .build = hues, .shape = {"450"}, .option = {SODET_PIXELS_RGB, 12, 16}, .forward = 2e-5, MADE},
    {.name = "pixels, in front of a convolution", .build = windows, .shape = {"190"}, .option = {SODET_PIXELS_RGB, 16, 19, 1}, MADE},
    {.name = "pixels, hues in front of a convolution",
     .build = hues,
     .shape = {"450"},
     .option = {SODET_PIXELS_BGR, 12, 16, 1},
     .forward = 2e-5,
     MADE},
    {.name = "pixels, no images", .build = none, .shape = {"0"}, .option = {SODET_PIXELS_RGB, 12, 16}, MADE},
    {.name = NULL}};
