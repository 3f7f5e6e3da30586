/* report/markup.h: pieces of an HTML page that is one file: text, tables' cells, charts as inline SVG, pictures as data: URIs. The markup
 * is well-formed XML as well, so that a strict parser can check it; nothing in it is fetched from anywhere, and there is no script. */
#ifndef SD_REPORT_MARKUP_H
#define SD_REPORT_MARKUP_H

#include "core/base/base.h"
#include "core/report/metrics.h"

void sd_html_begin(sd_text *t, const char *title);
void sd_html_end(sd_text *t);
/* Any text, as text and inside quoted attributes: & < > " ' are escaped; bytes that are no UTF-8, and characters that XML has not, become
 * U+FFFD. */
void sd_html_text(sd_text *t, const char *text);
/* <tag>text</tag>; attributes: "" or ' class="x"'. */
void sd_html_element(sd_text *t, const char *tag, const char *attributes, const char *text);
/* A table's cell with a number, or a dash where it is not finite; format: of one double. */
void sd_html_number(sd_text *t, const char *format, double value) __attribute__((format(printf, 2, 0)));
/* An <img> of a JPEG's bytes. */
void sd_html_jpeg(sd_text *t, const void *bytes, uint64_t n, uint32_t width, uint32_t height, const char *alt);
void sd_base64(sd_text *t, const void *bytes, uint64_t n);

/* ---- charts ---- */
typedef struct sd_chart_line {
    const char *name;
    const sd_point *point; /* [n] step is x, value is y, x rising; many points are drawn as the means of neighbours */
    uint64_t n;
    bool marks; /* dots at the points, and all of them */
} sd_chart_line;
typedef struct sd_chart {
    const char *title, *x; /* x: of the axis */
    uint32_t width, height;
    double most_x, most_y; /* 0: what the points need; both axes begin at 0, or below if points do */
    const sd_chart_line *line;
    uint32_t n;
} sd_chart;
void sd_html_chart(sd_text *t, const sd_chart *chart);

#endif
