#include "core/data/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GLYPH_WIDTH = 5, GLYPH_HEIGHT = 7, ADVANCE = 6, LINE = 9, FIRST = ' ', LAST = '~' };

/* Five columns of a character, the lowest bit on top. */
static const uint8_t font[LAST - FIRST + 1][GLYPH_WIDTH] = {{0x00, 0x00, 0x00, 0x00, 0x00}, {0x00, 0x00, 0x5f, 0x00, 0x00},
                                                            {0x00, 0x07, 0x00, 0x07, 0x00}, {0x14, 0x7f, 0x14, 0x7f, 0x14}, /*   ! " # */
                                                            {0x24, 0x2a, 0x7f, 0x2a, 0x12}, {0x23, 0x13, 0x08, 0x64, 0x62},
                                                            {0x36, 0x49, 0x56, 0x20, 0x50}, {0x00, 0x00, 0x07, 0x00, 0x00}, /* $ % & ' */
                                                            {0x00, 0x1c, 0x22, 0x41, 0x00}, {0x00, 0x41, 0x22, 0x1c, 0x00},
                                                            {0x2a, 0x1c, 0x7f, 0x1c, 0x2a}, {0x08, 0x08, 0x3e, 0x08, 0x08}, /* ( ) * + */
                                                            {0x00, 0x50, 0x30, 0x00, 0x00}, {0x08, 0x08, 0x08, 0x08, 0x08},
                                                            {0x00, 0x60, 0x60, 0x00, 0x00}, {0x20, 0x10, 0x08, 0x04, 0x02}, /* , - . / */
                                                            {0x3e, 0x51, 0x49, 0x45, 0x3e}, {0x00, 0x42, 0x7f, 0x40, 0x00},
                                                            {0x62, 0x51, 0x49, 0x49, 0x46}, {0x22, 0x41, 0x49, 0x49, 0x36}, /* 0 1 2 3 */
                                                            {0x18, 0x14, 0x12, 0x7f, 0x10}, {0x27, 0x45, 0x45, 0x45, 0x39},
                                                            {0x3c, 0x4a, 0x49, 0x49, 0x30}, {0x01, 0x71, 0x09, 0x05, 0x03}, /* 4 5 6 7 */
                                                            {0x36, 0x49, 0x49, 0x49, 0x36}, {0x06, 0x49, 0x49, 0x29, 0x1e},
                                                            {0x00, 0x36, 0x36, 0x00, 0x00}, {0x00, 0x56, 0x36, 0x00, 0x00}, /* 8 9 : ; */
                                                            {0x08, 0x14, 0x22, 0x41, 0x00}, {0x14, 0x14, 0x14, 0x14, 0x14},
                                                            {0x00, 0x41, 0x22, 0x14, 0x08}, {0x02, 0x01, 0x51, 0x09, 0x06}, /* < = > ? */
                                                            {0x3e, 0x41, 0x5d, 0x55, 0x1e}, {0x7c, 0x12, 0x11, 0x12, 0x7c},
                                                            {0x7f, 0x49, 0x49, 0x49, 0x36}, {0x3e, 0x41, 0x41, 0x41, 0x22}, /* @ A B C */
                                                            {0x7f, 0x41, 0x41, 0x22, 0x1c}, {0x7f, 0x49, 0x49, 0x49, 0x41},
                                                            {0x7f, 0x09, 0x09, 0x09, 0x01}, {0x3e, 0x41, 0x49, 0x49, 0x7a}, /* D E F G */
                                                            {0x7f, 0x08, 0x08, 0x08, 0x7f}, {0x00, 0x41, 0x7f, 0x41, 0x00},
                                                            {0x20, 0x40, 0x41, 0x3f, 0x01}, {0x7f, 0x08, 0x14, 0x22, 0x41}, /* H I J K */
                                                            {0x7f, 0x40, 0x40, 0x40, 0x40}, {0x7f, 0x02, 0x0c, 0x02, 0x7f},
                                                            {0x7f, 0x04, 0x08, 0x10, 0x7f}, {0x3e, 0x41, 0x41, 0x41, 0x3e}, /* L M N O */
                                                            {0x7f, 0x09, 0x09, 0x09, 0x06}, {0x3e, 0x41, 0x51, 0x21, 0x5e},
                                                            {0x7f, 0x09, 0x19, 0x29, 0x46}, {0x26, 0x49, 0x49, 0x49, 0x32}, /* P Q R S */
                                                            {0x01, 0x01, 0x7f, 0x01, 0x01}, {0x3f, 0x40, 0x40, 0x40, 0x3f},
                                                            {0x1f, 0x20, 0x40, 0x20, 0x1f}, {0x3f, 0x40, 0x38, 0x40, 0x3f}, /* T U V W */
                                                            {0x63, 0x14, 0x08, 0x14, 0x63}, {0x07, 0x08, 0x70, 0x08, 0x07},
                                                            {0x61, 0x51, 0x49, 0x45, 0x43}, {0x00, 0x7f, 0x41, 0x41, 0x00}, /* X Y Z [ */
                                                            {0x02, 0x04, 0x08, 0x10, 0x20}, {0x00, 0x41, 0x41, 0x7f, 0x00},
                                                            {0x04, 0x02, 0x01, 0x02, 0x04}, {0x40, 0x40, 0x40, 0x40, 0x40}, /* \ ] ^ _ */
                                                            {0x00, 0x01, 0x02, 0x04, 0x00}, {0x20, 0x54, 0x54, 0x54, 0x78},
                                                            {0x7f, 0x48, 0x44, 0x44, 0x38}, {0x38, 0x44, 0x44, 0x44, 0x20}, /* ` a b c */
                                                            {0x38, 0x44, 0x44, 0x48, 0x7f}, {0x38, 0x54, 0x54, 0x54, 0x18},
                                                            {0x08, 0x7e, 0x09, 0x01, 0x02}, {0x0c, 0x52, 0x52, 0x52, 0x3e}, /* d e f g */
                                                            {0x7f, 0x08, 0x04, 0x04, 0x78}, {0x00, 0x44, 0x7d, 0x40, 0x00},
                                                            {0x20, 0x40, 0x44, 0x3d, 0x00}, {0x7f, 0x10, 0x28, 0x44, 0x00}, /* h i j k */
                                                            {0x00, 0x41, 0x7f, 0x40, 0x00}, {0x7c, 0x04, 0x18, 0x04, 0x78},
                                                            {0x7c, 0x08, 0x04, 0x04, 0x78}, {0x38, 0x44, 0x44, 0x44, 0x38}, /* l m n o */
                                                            {0x7c, 0x14, 0x14, 0x14, 0x08}, {0x08, 0x14, 0x14, 0x18, 0x7c},
                                                            {0x7c, 0x08, 0x04, 0x04, 0x08}, {0x48, 0x54, 0x54, 0x54, 0x20}, /* p q r s */
                                                            {0x04, 0x3f, 0x44, 0x40, 0x20}, {0x3c, 0x40, 0x40, 0x20, 0x7c},
                                                            {0x1c, 0x20, 0x40, 0x20, 0x1c}, {0x3c, 0x40, 0x30, 0x40, 0x3c}, /* t u v w */
                                                            {0x44, 0x28, 0x10, 0x28, 0x44}, {0x0c, 0x50, 0x50, 0x50, 0x3c},
                                                            {0x44, 0x64, 0x54, 0x4c, 0x44}, {0x00, 0x08, 0x36, 0x41, 0x00}, /* x y z { */
                                                            {0x00, 0x00, 0x7f, 0x00, 0x00}, {0x00, 0x41, 0x36, 0x08, 0x00},
                                                            {0x10, 0x08, 0x08, 0x10, 0x08}}; /* | } ~ */
static const uint8_t unknown[GLYPH_WIDTH] = {0x7f, 0x41, 0x41, 0x41, 0x7f};

void sd_class_colour(uint32_t i, uint32_t n, uint8_t rgb[3])
{
    /* Every hue once for few classes, the golden section's walk for many. */
    double h = n && n <= 12 ? (double)i / n : fmod((double)i * 0.6180339887498949, 1), v = i % 2 ? 200 : 255;
    for (uint32_t c = 0; c < 3; c++) {
        double at = fabs(fmod(h * 6 + 6 - 2.0 * c, 6) - 3), share = at - 1; /* 3 on the channel's own hue, 0 opposite */
        share = share < 0 ? 0 : share > 1 ? 1 : share;
        rgb[c] = (uint8_t)(v * (0.1 + 0.9 * share));
    }
}

static void fill(const sd_canvas *c, int64_t x1, int64_t y1, int64_t x2, int64_t y2, const uint8_t rgb[3])
{
    x1 = x1 < 0 ? 0 : x1;
    y1 = y1 < 0 ? 0 : y1;
    x2 = x2 > (int64_t)c->width ? (int64_t)c->width : x2;
    y2 = y2 > (int64_t)c->height ? (int64_t)c->height : y2;
    for (int64_t y = y1; y < y2; y++) {
        for (int64_t x = x1; x < x2; x++)
            memcpy(c->rgb + ((size_t)y * c->width + (size_t)x) * 3, rgb, 3);
    }
}

static int64_t pixel(float v)
{
    return !(v > -1e6f) ? -1000000 : !(v < 1e6f) ? 1000000 : (int64_t)floorf(v + 0.5f);
}

static uint32_t longer(const sd_canvas *c)
{
    return c->width > c->height ? c->width : c->height;
}

void sd_draw_box(const sd_canvas *c, sodet_box b, const uint8_t rgb[3], uint32_t thickness)
{
    int64_t t = thickness ? thickness : 1 + longer(c) / 400;
    int64_t x1 = pixel(b.x1), y1 = pixel(b.y1), x2 = pixel(b.x2), y2 = pixel(b.y2);
    fill(c, x1, y1, x2, y1 + t < y2 ? y1 + t : y2, rgb);
    fill(c, x1, y2 - t > y1 ? y2 - t : y1, x2, y2, rgb);
    fill(c, x1, y1, x1 + t < x2 ? x1 + t : x2, y2, rgb);
    fill(c, x2 - t > x1 ? x2 - t : x1, y1, x2, y2, rgb);
}

/* Characters, not bytes: what follows a first byte of UTF-8 takes no room. */
static uint32_t text_length(const char *text)
{
    uint32_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Pixels per dot for a text of so many characters. */
static uint32_t text_scale(const sd_canvas *c, uint32_t characters)
{
    uint32_t s = 1 + longer(c) / 640, fits = c->width / (characters * ADVANCE + 1);
    return s < fits ? s : fits ? fits : 1;
}

void sd_draw_text(const sd_canvas *c, int32_t x, int32_t y, const char *text, const uint8_t rgb[3], uint32_t scale)
{
    int64_t s = scale ? scale : text_scale(c, text_length(text)), w = (int64_t)text_length(text) * ADVANCE * s + s, h = LINE * s;
    int64_t left = x + w > (int64_t)c->width ? (int64_t)c->width - w : x, top = y + h > (int64_t)c->height ? (int64_t)c->height - h : y;
    left = left < 0 ? 0 : left;
    top = top < 0 ? 0 : top;
    fill(c, left, top, left + w, top + h, rgb);
    uint32_t light = rgb[0] * 299u + rgb[1] * 587u + rgb[2] * 114u;
    const uint8_t ink[3] = {light > 128000 ? 0 : 255, light > 128000 ? 0 : 255, light > 128000 ? 0 : 255};
    for (left += s; *text; text++) {
        unsigned char k = (unsigned char)*text;
        if ((k & 0xc0) == 0x80)
            continue;
        const uint8_t *glyph = k >= FIRST && k <= LAST ? font[k - FIRST] : unknown;
        for (int64_t i = 0; i < GLYPH_WIDTH * GLYPH_HEIGHT; i++) {
            int64_t gx = i % GLYPH_WIDTH, gy = i / GLYPH_WIDTH;
            if (glyph[gx] >> gy & 1)
                fill(c, left + gx * s, top + (gy + 1) * s, left + (gx + 1) * s, top + (gy + 2) * s, ink);
        }
        left += ADVANCE * s;
    }
}

/* The first n characters of text, in bytes. */
static size_t bytes_of(const char *text, uint32_t n)
{
    size_t i = 0;
    for (; text[i] && (n || ((unsigned char)text[i] & 0xc0) == 0x80); i++)
        n -= ((unsigned char)text[i] & 0xc0) != 0x80;
    return i;
}

void sd_draw_object(const sd_canvas *c, sodet_box box, const char *name, double score, const uint8_t rgb[3])
{
    char text[512], number[32] = "";
    if (score >= 0)
        snprintf(number, sizeof number, " %.2f", score);
    uint32_t most = c->width / ADVANCE, behind = (uint32_t)strlen(number), length = text_length(name);
    bool cut = length > 2 && length + behind > most; /* ".." says so */
    uint32_t room = cut ? most > behind + 2 + 1 ? most - behind - 2 : 1 : 100;
    snprintf(text, sizeof text, "%.*s%s%s", (int)bytes_of(name, room), name, cut ? ".." : "", number);
    uint32_t scale = text_scale(c, text_length(text));
    sd_draw_box(c, box, rgb, 0);
    int64_t above = pixel(box.y1) - LINE * (int64_t)scale;
    sd_draw_text(c, (int32_t)pixel(box.x1), (int32_t)(above < 0 ? pixel(box.y1) : above), text, rgb, scale);
}

uint32_t sd_draw_zoom(uint32_t width, uint32_t height)
{
    enum { READABLE = 120, MOST = 4096 }; /* a score and a name of about thirteen letters; no strip becomes a giant */
    uint32_t zoom = width && width < READABLE ? (READABLE + width - 1) / width : 1;
    while (zoom > 1 && (uint64_t)height * zoom > MOST)
        zoom--;
    return zoom;
}

void sd_draw_enlarge(const sd_canvas *from, uint32_t zoom, uint8_t *to)
{
    size_t row = (size_t)from->width * zoom * 3;
    for (uint32_t y = 0; y < from->height; y++, to += row * zoom) {
        for (uint32_t x = 0; x < from->width * zoom; x++)
            memcpy(to + (size_t)x * 3, from->rgb + ((size_t)y * from->width + x / zoom) * 3, 3);
        for (uint32_t k = 1; k < zoom; k++)
            memcpy(to + k * row, to, row);
    }
}
