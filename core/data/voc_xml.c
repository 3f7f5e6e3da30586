#include "core/data/voc_xml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <expat.h>

enum { MOST_BYTES = 16 << 20, DEEP = 16 };
enum { NAME = 1, XMIN = 2, YMIN = 4, XMAX = 8, YMAX = 16, BOXED = 32, BOX = XMIN | YMIN | XMAX | YMAX };
static const char *const corner_names[] = {"xmin", "ymin", "xmax", "ymax"};

/* Where the parser is. Tags count only at their own place: <object><part><bndbox> is no box of the object. */
typedef enum place { ELSEWHERE, ROOT, SIZE, OBJECT, BNDBOX } place;

typedef struct state {
    const char *path;
    sd_pool *pool;
    sd_voc_file *out;
    sodet_err *err;
    sodet_status status;
    XML_Parser parser;
    place stack[DEEP];
    uint32_t depth;
    char text[256]; /* of the innermost element */
    size_t n_text;
    uint32_t seen; /* of the object: NAME, XMIN ... */
    sd_voc_object object;
} state;

static void fail(state *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(state *s, const char *format, ...)
{
    if (s->status != SODET_OK)
        return;
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    s->status = SODET_FAIL(s->err, SODET_E_INVALID, "%s, line %lu: %s", s->path, (unsigned long)XML_GetCurrentLineNumber(s->parser), text);
    XML_StopParser(s->parser, XML_FALSE);
}

static void on_open(void *user, const XML_Char *name, const XML_Char **attributes)
{
    (void)attributes;
    state *s = user;
    place above = s->depth ? s->stack[s->depth - 1] : ELSEWHERE, here = ELSEWHERE;
    if (s->depth == 0)
        here = ROOT; /* <annotation>, whatever it is called */
    else if (above == ROOT && strcmp(name, "size") == 0)
        here = SIZE;
    else if (above == ROOT && strcmp(name, "object") == 0) {
        here = OBJECT;
        s->seen = 0;
        s->object = (sd_voc_object){0};
    } else if (above == OBJECT && strcmp(name, "bndbox") == 0) {
        here = BNDBOX;
        if (s->seen & BOXED)
            fail(s, "object %llu has two <bndbox>; keep one, or write two objects", (unsigned long long)s->out->n + 1);
        s->seen |= BOXED;
    }
    if (s->depth == DEEP) {
        fail(s, "elements are nested more than %d deep", DEEP);
        return;
    }
    s->stack[s->depth++] = here;
    s->n_text = 0;
    s->text[0] = 0;
}

static void on_text(void *user, const XML_Char *text, int n)
{
    state *s = user;
    size_t room = sizeof s->text - 1 - s->n_text, take = (size_t)n < room ? (size_t)n : room;
    memcpy(s->text + s->n_text, text, take);
    s->n_text += take;
    s->text[s->n_text] = 0;
}

static char *trimmed(state *s)
{
    char *t = s->text, *end = t + s->n_text;
    while (end > t && strchr(" \t\r\n", end[-1]))
        *--end = 0;
    while (*t && strchr(" \t\r\n", *t))
        t++;
    return t;
}

static double number(state *s, const char *tag)
{
    double v = 0;
    const char *text = trimmed(s);
    if (!sd_parse_double(text, &v))
        fail(s, "object %llu: <%s> is \"%s\"; a number is wanted", (unsigned long long)s->out->n + 1, tag, text);
    return v;
}

static void end_object(state *s)
{
    sd_voc_file *f = s->out;
    unsigned long long k = f->n + 1;
    if (!(s->seen & NAME)) {
        fail(s, "object %llu has no <name>", k);
        return;
    }
    if ((s->seen & BOX) != BOX) {
        uint32_t c = 0;
        while (s->seen & (uint32_t)XMIN << c)
            c++;
        if (s->seen & BOX)
            fail(s, "object %llu (%s): <bndbox> has no <%s>", k, s->object.name, corner_names[c]);
        else
            fail(s, "object %llu (%s) has no <bndbox>", k, s->object.name);
        return;
    }
    sodet_status status = sd_grow(&f->objects, &f->capacity, f->n + 1, sizeof *f->objects, s->err);
    if (status != SODET_OK) {
        s->status = status;
        XML_StopParser(s->parser, XML_FALSE);
        return;
    }
    f->objects[f->n++] = s->object;
}

static void flag(state *s, const char *tag, uint32_t bit)
{
    const char *text = trimmed(s);
    int64_t v = 0;
    if (*text && strcmp(text, "Unspecified") != 0 && !sd_parse_int64(text, &v))
        fail(s, "object %llu: <%s> is \"%s\"; 0 or 1 is wanted", (unsigned long long)s->out->n + 1, tag, text);
    s->object.flags |= v ? bit : 0;
}

static uint32_t side(state *s, const char *tag)
{
    double v = 0;
    const char *text = trimmed(s);
    if (*text && (!sd_parse_double(text, &v) || v < 0 || v > 1e9 || v != floor(v)))
        fail(s, "<size> has the %s \"%s\"; a number of pixels is wanted", tag, text);
    return s->status == SODET_OK ? (uint32_t)v : 0;
}

static void on_close(void *user, const XML_Char *name)
{
    state *s = user;
    if (s->depth == 0 || s->status != SODET_OK)
        return;
    place here = s->stack[--s->depth], above = s->depth ? s->stack[s->depth - 1] : ELSEWHERE;
    if (here == OBJECT) {
        end_object(s);
    } else if (above == SIZE && here == ELSEWHERE) {
        if (strcmp(name, "width") == 0)
            s->out->width = side(s, name);
        else if (strcmp(name, "height") == 0)
            s->out->height = side(s, name);
    } else if (above == OBJECT && here == ELSEWHERE) {
        if (strcmp(name, "name") == 0) {
            if (s->n_text == sizeof s->text - 1)
                fail(s, "object %llu: its <name> has %zu bytes or more; shorten it", (unsigned long long)s->out->n + 1, sizeof s->text - 1);
            if (!*trimmed(s))
                fail(s, "object %llu: its <name> is empty; name its class", (unsigned long long)s->out->n + 1);
            s->object.name = sd_pool_strdup(s->pool, trimmed(s));
            s->seen |= NAME;
            if (!s->object.name) {
                s->status = SODET_FAIL(s->err, SODET_E_MEMORY, "%s: no memory for a class name", s->path);
                XML_StopParser(s->parser, XML_FALSE);
            }
        } else if (strcmp(name, "difficult") == 0) {
            flag(s, name, SODET_BOX_DIFFICULT);
        } else if (strcmp(name, "truncated") == 0) {
            flag(s, name, SODET_BOX_TRUNCATED);
        }
    } else if (above == BNDBOX) {
        for (uint32_t c = 0; c < 4; c++) {
            if (strcmp(name, corner_names[c]) == 0) {
                s->object.corner[c] = number(s, name);
                s->seen |= (uint32_t)XMIN << c;
            }
        }
    }
    s->n_text = 0;
    s->text[0] = 0;
}

sodet_status sd_voc_xml_read(const char *path, sd_pool *pool, sd_voc_file *out, sodet_err *err)
{
    char *bytes = NULL;
    uint64_t n = 0;
    out->n = 0;
    out->width = out->height = 0;
    sodet_status status = sd_file_read(path, MOST_BYTES, &bytes, &n, err);
    if (status != SODET_OK)
        return status;
    state s = {.path = path, .pool = pool, .out = out, .err = err, .parser = XML_ParserCreate(NULL)};
    if (!s.parser) {
        sd_free(bytes);
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the XML parser", path);
    }
    XML_SetUserData(s.parser, &s);
    XML_SetElementHandler(s.parser, on_open, on_close);
    XML_SetCharacterDataHandler(s.parser, on_text);
    const bool refused = XML_Parse(s.parser, bytes, (int)n, XML_TRUE) == XML_STATUS_ERROR && s.status == SODET_OK;
    if (refused && XML_GetErrorCode(s.parser) == XML_ERROR_NO_MEMORY)
        s.status = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the XML parser", path);
    else if (refused)
        fail(&s, "not well-formed XML: %s", XML_ErrorString(XML_GetErrorCode(s.parser)));
    XML_ParserFree(s.parser);
    sd_free(bytes);
    return s.status;
}
