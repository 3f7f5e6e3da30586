#include "core/data/colour.h"

#include <math.h>

#define GREY(r, g, b) (0.299f * (r) + 0.587f * (g) + 0.114f * (b))
enum { LANES = 8 };

/* Eight pixels of a channel, anywhere in memory; where(c, a, b) is a where c holds and b elsewhere, without a branch. */
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define lanes_at(p)    (*(lanes *)(uintptr_t)(p))
#define where(c, a, b) ((lanes)(((c) & (mask)(a)) | (~(c) & (mask)(b))))
#define lesser(a, b)   where((a) < (b), a, b)
#define greater(a, b)  where((a) > (b), a, b)
#define INLINE         static inline __attribute__((always_inline))

INLINE void keep_within(lanes *v, float lo, float hi)
{
    const lanes least = lo - (lanes){0}, most = hi - (lanes){0}, x = greater(*v, least);
    *v = lesser(x, most);
}

INLINE void linear(lanes *v, float scale, float shift, float lo, float hi)
{
    *v = *v * scale + shift;
    keep_within(v, lo, hi);
}

INLINE void stretch(lanes *v, const lanes *base, const lanes *factor, float lo, float hi)
{
    *v = *base + *factor * (*v - *base);
    keep_within(v, lo, hi);
}

/* The largest channel, and how far the least is from it. */
INLINE void extremes(const lanes *r, const lanes *g, const lanes *b, lanes *most, lanes *range)
{
    const lanes high = greater(*g, *b), low = lesser(*g, *b), least = lesser(*r, low);
    *most = greater(*r, high);
    *range = *most - least;
}

/* In HSV only the distances from the largest channel scale: c' = v - f (v - c); f stops where the smallest channel reaches 0. */
INLINE void saturate_hsv(lanes *r, lanes *g, lanes *b, float factor, int clamp, float lo, float hi)
{
    const lanes one = 1 - (lanes){0};
    lanes base, d, f = factor * one;
    extremes(r, g, b, &base, &d);
    if (clamp) {
        const lanes room = base / where(d > 0, d, one);
        f = where(f * d > base, room, f);
    }
    stretch(r, &base, &f, lo, hi);
    stretch(g, &base, &f, lo, hi);
    stretch(b, &base, &f, lo, hi);
}

INLINE void saturate_luma(lanes *r, lanes *g, lanes *b, float factor, float lo, float hi)
{
    const lanes base = GREY(*r, *g, *b), f = factor - (lanes){0};
    stretch(r, &base, &f, lo, hi);
    stretch(g, &base, &f, lo, hi);
    stretch(b, &base, &f, lo, hi);
}

/* The channel whose own hue is `from` sextants away, -6..6, where `most` is the largest channel and d the range. */
INLINE void place(lanes *v, const lanes *from, const lanes *most, const lanes *d)
{
    const lanes at = where(*from < 0, *from + 6, *from), away = where(at > 3, 6 - at, at); /* 0: on its own hue, 3: opposite */
    lanes share = away - 1;
    keep_within(&share, 0, 1);
    *v = *most - *d * share;
}

/* Turns the hue, value and saturation stay. */
INLINE void turn(lanes *r, lanes *g, lanes *b, float sextants)
{
    const lanes zero = {0}, one = 1 - zero, two = 2 - zero, four = 4 - zero;
    lanes most, d;
    extremes(r, g, b, &most, &d);
    const mask red = *r == most, green = *g == most; /* the hue lies around 0, or 2, or 4 */
    const lanes across = where(red, *g - *b, where(green, *b - *r, *r - *g)), own = where(red, zero, where(green, two, four));
    lanes h = across / where(d > 0, d, one) + own + sextants + 12; /* far from 0, so that the remainder is of a positive number */
    h -= 6 * __builtin_convertvector(__builtin_convertvector(h * (1 / 6.0f), mask), lanes);
    h = greater(h, zero);
    const lanes from_green = h - 2, from_blue = h - 4;
    place(r, &h, &most, &d);
    place(g, &from_green, &most, &d);
    place(b, &from_blue, &most, &d);
}

INLINE void reorder(lanes *r, lanes *g, lanes *b, uint32_t number)
{
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const lanes was[3] = {*r, *g, *b};
    *r = was[orders[number][0]];
    *g = was[orders[number][1]];
    *b = was[orders[number][2]];
}

SODET_CLONES void sd_colour_follow(const void *how, float *red, float *green, float *blue, uint32_t n)
{
    const sd_colours *c = how;
    const float lo = c->clamp ? 0 : -HUGE_VALF, hi = c->clamp ? 255 : HUGE_VALF;
    for (uint32_t k = 0; k < c->n; k++) {
        const sodet_colour_step *s = &c->steps[k];
        for (uint32_t i = 0; i < n; i += LANES) {
            lanes *r = &lanes_at(red + i), *g = &lanes_at(green + i), *b = &lanes_at(blue + i);
            switch (s->what) {
            case SODET_COLOUR_LINEAR:
                linear(r, s->a, s->b, lo, hi);
                linear(g, s->a, s->b, lo, hi);
                linear(b, s->a, s->b, lo, hi);
                break;
            case SODET_COLOUR_SATURATE:
                saturate_hsv(r, g, b, s->a, c->clamp != 0, lo, hi);
                break;
            case SODET_COLOUR_SATURATE_LUMA:
                saturate_luma(r, g, b, s->a, lo, hi);
                break;
            case SODET_COLOUR_TURN:
                turn(r, g, b, s->a);
                break;
            default:
                reorder(r, g, b, (uint32_t)s->a);
                break;
            }
        }
    }
}
