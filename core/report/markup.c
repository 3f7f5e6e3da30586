#include "core/report/markup.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- text ---- */
void sd_html_text(sd_text *t, const char *text)
{
    sd_text_append(t, "", 0);
    for (const char *p = text; *p;) {
        uint32_t code = 0, n = sd_utf8_character(p, &code);
        const char *as = !n || (code < 0x20 && code != '\t' && code != '\n') || code == 0x7f || code == 0xfffe || code == 0xffff
                             ? "\xef\xbf\xbd"
                         : code == '&'  ? "&amp;"
                         : code == '<'  ? "&lt;"
                         : code == '>'  ? "&gt;"
                         : code == '"'  ? "&quot;"
                         : code == '\'' ? "&#39;"
                                        : NULL;
        if (as)
            sd_text_append(t, as, strlen(as));
        else
            sd_text_append(t, p, n);
        p += n ? n : 1;
    }
}

void sd_html_element(sd_text *t, const char *tag, const char *attributes, const char *text)
{
    sd_text_printf(t, "<%s%s>", tag, attributes);
    sd_html_text(t, text);
    sd_text_printf(t, "</%s>\n", tag);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void sd_html_number(sd_text *t, const char *format, double value)
{
    sd_text_printf(t, "<td>");
    if (isfinite(value))
        sd_text_printf(t, format, value);
    else
        sd_text_printf(t, "\xe2\x80\x93");
    sd_text_printf(t, "</td>");
}
#pragma GCC diagnostic pop

/* ---- the page ---- */
static const char style[] =
    "body { font: 15px/1.45 system-ui, sans-serif; color: #222; background: #fff; max-width: 1100px; margin: 1.5em auto; padding: 0 1em; "
    "}\n"
    "h1 { font-size: 1.6em; margin-bottom: 0.2em; } h2 { font-size: 1.2em; margin: 1.8em 0 0.4em; border-bottom: 1px solid #ddd; }\n"
    "p { margin: 0.4em 0; } .quiet { color: #666; } .wide { overflow-x: auto; }\n"
    ".grid { display: flex; flex-wrap: wrap; gap: 12px; } figure { margin: 0; } figcaption { font-size: 0.85em; color: #555; }\n"
    "figure img { max-width: 100%; height: auto; }\n"
    "table { border-collapse: collapse; margin: 0.5em 0; } th, td { padding: 2px 10px; border-bottom: 1px solid #eee; text-align: right; "
    "}\n"
    "th { font-weight: 600; } th:first-child, td:first-child, td.words { text-align: left; }\n"
    "table.matrix td, table.matrix th { padding: 1px 5px; font-size: 0.8em; border: 1px solid #eee; }\n"
    "table.matrix td.right { outline: 1px solid #888; }\n"
    "table.facts td, table.facts th { text-align: left; vertical-align: top; }\n"
    "pre { background: #f6f6f6; padding: 0.8em; overflow-x: auto; font-size: 0.85em; }\n"
    "svg text { font: 11px system-ui, sans-serif; fill: #444; } svg .title { font-weight: 600; font-size: 12px; }\n";

void sd_html_begin(sd_text *t, const char *title)
{
    sd_text_printf(t, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>");
    sd_html_text(t, title);
    sd_text_printf(t, "</title>\n<link rel=\"icon\" href=\"data:,\"/>\n<style>\n%s</style>\n</head>\n<body>\n", style);
}

void sd_html_end(sd_text *t)
{
    sd_text_printf(t, "</body>\n</html>\n");
}

void sd_base64(sd_text *t, const void *bytes, uint64_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes;
    char quad[4];
    for (uint64_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? (uint32_t)p[i + 2] : 0);
        for (int k = 0; k < 4; k++)
            quad[k] = i + (uint64_t)k > n ? '=' : digit[v >> (18 - 6 * k) & 63];
        sd_text_append(t, quad, sizeof quad);
    }
}

void sd_html_jpeg(sd_text *t, const void *bytes, uint64_t n, uint32_t width, uint32_t height, const char *alt)
{
    sd_text_printf(t, "<img width=\"%u\" height=\"%u\" alt=\"", width, height);
    sd_html_text(t, alt);
    sd_text_printf(t, "\" src=\"data:image/jpeg;base64,");
    sd_base64(t, bytes, n);
    sd_text_printf(t, "\"/>");
}

/* ---- charts ---- */
enum { LEFT = 52, RIGHT = 12, TOP = 26, BOTTOM = 34, POINTS = 400 };
static const char *const colours[] = {"#c8402c", "#1e5abe", "#2c8a3c", "#8a4fb5", "#d08a00", "#008a96", "#7a5a3a", "#c2418a"};

/* 1, 2 or 5 times a power of ten, so that the axis has four to ten of them. */
static double step_of(double span)
{
    double unit = pow(10, floor(log10(span)));
    for (int i = 0; i < 2 && span / unit < 4; i++)
        unit /= i ? 2.5 : 2;
    return span / unit > 10 ? unit * 2 : unit;
}

typedef struct frame {
    double x0, x1, y0, y1;
    const sd_chart *c;
} frame;

static double at_x(const frame *f, double v)
{
    return LEFT + (v - f->x0) / (f->x1 - f->x0) * (f->c->width - LEFT - RIGHT);
}

static double at_y(const frame *f, double v)
{
    double y = f->c->height - BOTTOM - (v - f->y0) / (f->y1 - f->y0) * (f->c->height - TOP - BOTTOM);
    return y < TOP ? TOP : y; /* first losses far above the rest may leave the range */
}

/* The largest value shown: all but the uppermost fiftieth of a long series. */
static double shown(const sd_chart_line *l, double least)
{
    uint64_t above = 0, most = l->marks || l->n < 50 ? 0 : l->n / 50;
    double high = least, low = least;
    for (uint64_t i = 0; i < l->n; i++)
        high = fmax(high, l->point[i].value);
    /* By halving: the smallest bound that no more than `most` points exceed. */
    for (int k = 0; most && k < 40; k++) {
        double middle = (low + high) / 2;
        above = 0;
        for (uint64_t i = 0; i < l->n; i++)
            above += l->point[i].value > middle;
        if (above > most)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static frame measure(const sd_chart *c)
{
    frame f = {.c = c};
    for (uint32_t i = 0; i < c->n; i++) {
        for (uint64_t k = 0; k < c->line[i].n; k++) {
            f.x1 = fmax(f.x1, c->line[i].point[k].step);
            f.y0 = fmin(f.y0, c->line[i].point[k].value);
        }
        f.y1 = fmax(f.y1, shown(&c->line[i], f.y0));
    }
    f.x1 = c->most_x > 0 ? c->most_x : f.x1 > 0 ? f.x1 : 1;
    f.y1 = c->most_y > 0 ? c->most_y : f.y1 > f.y0 ? f.y0 + (f.y1 - f.y0) * 1.05 : f.y0 + 1;
    return f;
}

static void axes(sd_text *t, const frame *f)
{
    const sd_chart *c = f->c;
    double step = step_of(f->y1 - f->y0);
    for (double v = ceil(f->y0 / step) * step; v <= f->y1 * (1 + 1e-9); v += step) {
        double shown_at = fabs(v) < step * 1e-9 ? 0 : v;
        sd_text_printf(t, "<path d=\"M%d %.1fH%u\" stroke=\"#e4e4e4\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n", LEFT,
                       at_y(f, v), c->width - RIGHT, LEFT - 5, at_y(f, v) + 4, shown_at);
    }
    step = step_of(f->x1 - f->x0);
    if (c->width < 300)
        step *= 2;
    for (double v = f->x0; v <= f->x1 * (1 + 1e-9); v += step)
        sd_text_printf(t, "<text x=\"%.1f\" y=\"%u\" text-anchor=\"middle\">%.6g</text>\n", at_x(f, v), c->height - BOTTOM + 14, v);
    sd_text_printf(t, "<path d=\"M%d %dV%uH%u\" fill=\"none\" stroke=\"#888\"/>\n<text x=\"%u\" y=\"%u\" text-anchor=\"end\">", LEFT, TOP,
                   c->height - BOTTOM, c->width - RIGHT, c->width - RIGHT, c->height - 6);
    sd_html_text(t, c->x);
    sd_text_printf(t, "</text>\n");
}

static void draw_line(sd_text *t, const frame *f, const sd_chart_line *l, const char *colour, const char *dash)
{
    uint64_t bucket = l->marks ? 1 : (l->n + POINTS - 1) / POINTS;
    if (!l->n)
        return;
    sd_text_printf(t, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.4\"%s points=\"", colour, dash);
    for (uint64_t i = 0; i < l->n; i += bucket) {
        double x = 0, y = 0;
        uint64_t n = l->n - i < bucket ? l->n - i : bucket;
        for (uint64_t k = 0; k < n; k++) {
            x += l->point[i + k].step / (double)n;
            y += l->point[i + k].value / (double)n;
        }
        sd_text_printf(t, "%s%.1f,%.1f", i ? " " : "", at_x(f, x), at_y(f, y));
    }
    sd_text_printf(t, "\"/>\n");
    for (uint64_t i = 0; l->marks && i < l->n; i++)
        sd_text_printf(t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>", at_x(f, l->point[i].step), at_y(f, l->point[i].value),
                       colour);
}

void sd_html_chart(sd_text *t, const sd_chart *c)
{
    frame f = measure(c);
    sd_text_printf(t, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" role=\"img\">\n<title>", c->width, c->height);
    sd_html_text(t, c->title);
    sd_text_printf(t, "</title>\n<text class=\"title\" x=\"%d\" y=\"14\">", c->n > 1 ? 4 : LEFT);
    sd_html_text(t, c->title);
    sd_text_printf(t, "</text>\n");
    axes(t, &f);
    double at = c->width - RIGHT;
    for (uint32_t i = c->n; i-- > 0;) {
        const char *colour = colours[i % 8], *dash = i < 8 ? "" : i < 16 ? " stroke-dasharray=\"5 3\"" : " stroke-dasharray=\"2 2\"";
        draw_line(t, &f, &c->line[i], colour, dash);
        if (c->n < 2 || i >= 8)
            continue;
        sd_text_printf(t, "<text x=\"%.1f\" y=\"14\" text-anchor=\"end\" style=\"fill: %s\">", at, colour);
        sd_html_text(t, c->line[i].name);
        sd_text_printf(t, "</text>\n");
        at -= 12 + 6.4 * (double)strlen(c->line[i].name);
    }
    sd_text_printf(t, "</svg>\n");
}
