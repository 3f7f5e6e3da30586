/* csv: one file, one row for each object. Without `columns` it is keras-retinanet's annotation format: no header, and path,x1,y1,x2,y2,class; a
 * row with the five fields behind the path empty says that the picture has no objects (its README, "CSV datasets"). With `columns` the file has
 * a header, in which those six are looked up by name; what other columns hold is nobody's business here.
 *
 * Fields may be quoted as in RFC 4180 (not over several lines). Rows of one picture need not stand together; samples are in the order of their
 * first rows. Class names: classes, class_file (one a line, or name,number as keras-retinanet has them), else those of the rows, sorted. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sodet/files.h"

enum { PATH, X1, Y1, X2, Y2, CLASS, N_COLUMNS, MOST_FIELDS = 256, LONGEST = 4096 };
typedef struct csv_cfg {
    const char *file, *pictures, *class_file, *ending;
    sodet_string_list columns, classes;
    uint32_t boxes, separator, zero_based, relative, need_pictures;
} csv_cfg;

static const char *const box_kinds[] = {"corners", "size", NULL}, *const separators[] = {"comma", "semicolon", "tab", NULL};
static const sodet_opt options[] = {
    SODET_OPT_PATH(csv_cfg, file, SODET_OPT_REQUIRED, "the rows"),
    SODET_OPT_PATH(csv_cfg, pictures, 0, "folder that the paths in it are relative to; default: the file's own"),
    SODET_OPT_STRING(csv_cfg, ending, NULL, "what is put behind each path (.jpg), for files that name pictures without it"),
    SODET_OPT_STRINGS(csv_cfg, columns, NULL, N_COLUMNS,
                      "names in the header of path, x1, y1, x2, y2, class (filename, xmin, ymin, xmax, ymax, class); none: no header"),
    SODET_OPT_ENUM(csv_cfg, boxes, "corners", box_kinds, "what the third and fourth number are: x2 and y2, or width and height"),
    SODET_OPT_BOOL(csv_cfg, zero_based, "yes", "corners are 0-based with exclusive ends; no: VOC's 1-based inclusive ones"),
    SODET_OPT_BOOL(csv_cfg, relative, "no", "numbers are shares of the picture's width and height, not pixels"),
    SODET_OPT_ENUM(csv_cfg, separator, "comma", separators, "between fields"),
    SODET_OPT_STRINGS(csv_cfg, classes, NULL, 0, "class names ([data] classes overrides them)"),
    SODET_OPT_PATH(csv_cfg, class_file, 0, "class names, one a line, or name,number with numbers from 0"),
    SODET_OPT_BOOL(csv_cfg, need_pictures, "yes", "a missing picture is an error when the rows are read"),
};

typedef struct row {
    const char *path, *class; /* class NULL: the picture has no objects */
    double v[4];
    uint64_t number; /* of the line, from 1 */
    char *broken;    /* a sentence, or NULL */
} row;
typedef struct entry {
    uint64_t first, n;                   /* rows, sorted by picture */
    char *broken;                        /* its own: the picture's fault */
    sodet_status code;                   /* of broken */
    uint32_t width, height, orientation; /* relative alone */
} entry;
typedef struct csv {
    const csv_cfg *cfg;
    sodet_lines *lines, *class_lines;
    row *rows;
    uint64_t n_rows;
    entry *entries;
    uint64_t n;
    const char **classes;         /* NULL at the end */
    uint32_t n_classes, n_fields; /* n_fields: of a row */
    char *folder;
} csv;

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "csv: no memory");
}

static void destroy(void *self)
{
    csv *c = self;
    if (!c)
        return;
    for (uint64_t i = 0; i < c->n; i++)
        free(c->entries[i].broken);
    for (uint64_t i = 0; i < c->n_rows; i++)
        free(c->rows[i].broken);
    free(c->entries);
    free(c->rows);
    free(c->classes);
    free(c->folder);
    sodet_lines_free(c->lines);
    sodet_lines_free(c->class_lines);
    free(c);
}

static sodet_status validate(const void *cfg, sodet_err *err)
{
    const csv_cfg *c = cfg;
    if (c->relative && !c->zero_based)
        return sodet_fail_option(err, "zero_based", "shares of the picture have no base; leave zero_based or relative out");
    if (c->boxes == 1 && !c->zero_based)
        return sodet_fail_option(err, "zero_based", "with boxes = size the corner has to be 0-based");
    if (c->classes.n && c->class_file)
        return sodet_fail_option(err, "class_file", "classes is given, too; keep one of them");
    return SODET_OK;
}

static sodet_status create(const void *cfg, void **self, sodet_err *err)
{
    csv *c = calloc(1, sizeof *c);
    *self = c;
    if (!c)
        return no_memory(err);
    c->cfg = cfg;
    return SODET_OK;
}

/* Fields of a line, cut in place; their number, or 0 where a quote is not closed. */
static uint32_t cut(char *line, char separator, char *field[MOST_FIELDS])
{
    uint32_t n = 0;
    for (char *at = line;; n++) {
        char *begin = at + strspn(at, separator == '\t' ? " " : " \t"), *end;
        if (*begin == '"') {
            char *to = end = ++begin;
            for (; *end && !(end[0] == '"' && end[1] != '"'); end++) { /* "" is one quote */
                end += end[0] == '"';
                *to++ = *end;
            }
            if (!*end)
                return 0;
            at = end + 1;
            at += strspn(at, separator == '\t' ? " " : " \t");
            if (*at && *at != separator)
                return 0;
            bool last = !*at;
            *to = 0;
            if (n < MOST_FIELDS)
                field[n] = begin;
            if (last)
                return n + 1;
            at++;
            continue;
        }
        end = strchr(begin, separator);
        at = end ? end + 1 : NULL;
        end = end ? end : begin + strlen(begin);
        while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        *end = 0;
        if (n < MOST_FIELDS)
            field[n] = begin;
        if (!at)
            return n + 1;
    }
}

/* Where each of the six stands. */
static sodet_status read_header(csv *c, char *line, uint64_t number, char separator, uint32_t column[N_COLUMNS], sodet_err *err)
{
    char *field[MOST_FIELDS], names[300] = "";
    uint32_t n = cut(line, separator, field);
    c->n_fields = n;
    n = n > MOST_FIELDS ? MOST_FIELDS : n;
    for (uint32_t i = 0; i < n; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", field[i]);
    for (uint32_t k = 0; k < N_COLUMNS; k++) {
        const char *name = c->cfg->columns.v[k];
        column[k] = 0;
        while (column[k] < n && strcmp(field[column[k]], name) != 0)
            column[k]++;
        if (column[k] >= n)
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: the header has no column \"%s\" but %s; correct columns", c->cfg->file,
                              (unsigned long long)number, name, names);
        for (uint32_t i = column[k] + 1; i < n; i++) {
            if (strcmp(field[i], name) == 0)
                return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: the header has two columns \"%s\"; rename one of them", c->cfg->file,
                                  (unsigned long long)number, name);
        }
    }
    return SODET_OK;
}

static sodet_status read_row(csv *c, char *line, uint64_t number, char separator, const uint32_t column[N_COLUMNS], sodet_err *err)
{
    static const char *const corner_names[] = {"x1", "y1", "x2", "y2"}, *const size_names[] = {"x", "y", "width", "height"};
    char *field[MOST_FIELDS];
    uint32_t n = cut(line, separator, field), most = 0, empty = 0;
    const char *const *names = c->cfg->boxes ? size_names : corner_names;
    row *r = &c->rows[c->n_rows];
#define AT c->cfg->file, (unsigned long long)number
    for (uint32_t k = 0; k < N_COLUMNS; k++)
        most = column[k] > most ? column[k] : most;
    if (n == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: a quote is not closed, or text follows it; correct the line", AT);
    if (n <= most || n > MOST_FIELDS)
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: %u field%s; path, %s, %s, %s, %s, class are expected%s", AT, n, n == 1 ? "" : "s",
                          names[0], names[1], names[2], names[3], c->cfg->separator ? "" : " with commas between (or set separator)");
    *r = (row){.path = field[column[PATH]], .number = number};
    if (n > c->n_fields)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "%s:%llu: %u fields, %u are expected; a field that holds the separator is written in quotes", AT, n, c->n_fields);
    if (!*r->path)
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: the path is empty; correct the line", AT);
    for (uint32_t k = X1; k <= CLASS; k++)
        empty += !*field[column[k]];
    if (empty == 0 && !sodet_is_utf8(field[column[CLASS]]))
        return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: the class name \"%s\" is no UTF-8; save the file as UTF-8", AT,
                          field[column[CLASS]]);
    if (empty == 0)
        r->class = field[column[CLASS]];
    else if (empty != 5)
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "%s:%llu: %u of %s, %s, %s, %s, class are empty; fill them, or leave all five empty for a picture without objects", AT, empty,
            names[0], names[1], names[2], names[3]);
    for (uint32_t k = 0; k < 4 && r->class; k++) {
        const char *text = field[column[X1 + k]];
        if (!sodet_parse_number(text, &r->v[k]))
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: %s \"%s\": a number is expected; correct the line%s", AT, names[k], text,
                              number == 1 && !c->cfg->columns.n ? ", or name the header's columns in columns" : "");
        if (c->cfg->relative && (r->v[k] < -1 || r->v[k] > 2))
            return SODET_FAIL(err, SODET_E_INVALID,
                              "%s:%llu: %s %s: a share of the picture between 0 and 1 is expected; set relative = no for pixels", AT,
                              names[k], text);
    }
    if (r->class && c->cfg->boxes) {
        r->v[2] += r->v[0];
        r->v[3] += r->v[1];
    }
    if (!c->cfg->zero_based) {
        r->v[0] -= 1;
        r->v[1] -= 1;
    }
    c->n_rows++;
    return SODET_OK;
#undef AT
}

static int by_picture(const void *a, const void *b)
{
    const row *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : x->number < y->number ? -1 : x->number > y->number;
}

static int by_first_row(const void *a, const void *b, void *rows)
{
    const row *r = rows;
    uint64_t x = r[((const entry *)a)->first].number, y = r[((const entry *)b)->first].number;
    return x < y ? -1 : x > y;
}

static bool picture_path(const csv *c, const entry *e, char path[LONGEST])
{
    const char *name = c->rows[e->first].path, *ending = c->cfg->ending ? c->cfg->ending : "";
    int n = name[0] == '/' ? snprintf(path, LONGEST, "%s%s", name, ending) : snprintf(path, LONGEST, "%s/%s%s", c->folder, name, ending);
    return n < LONGEST;
}

static sodet_status group(csv *c, sodet_err *err)
{
    const csv_cfg *cfg = c->cfg;
    const char *slash = strrchr(cfg->file, '/');
    c->folder = cfg->pictures ? strdup(cfg->pictures) : slash ? strndup(cfg->file, (size_t)(slash - cfg->file)) : strdup(".");
    c->entries = calloc(c->n_rows, sizeof *c->entries);
    if (!c->folder || !c->entries)
        return no_memory(err);
    qsort(c->rows, c->n_rows, sizeof *c->rows, by_picture);
    for (uint64_t i = 0; i < c->n_rows; i++) {
        if (i == 0 || strcmp(c->rows[i].path, c->rows[i - 1].path) != 0)
            c->entries[c->n++].first = i;
        c->entries[c->n - 1].n++;
    }
    qsort_r(c->entries, c->n, sizeof *c->entries, by_first_row, c->rows);
    for (uint64_t i = 0; i < c->n; i++) {
        entry *e = &c->entries[i];
        char path[LONGEST], sentence[LONGEST + 300];
        sodet_err local = SODET_ERR_INIT;
        bool good = picture_path(c, e, path);
        if (good && cfg->relative)
            good = sodet_picture_size(path, &e->width, &e->height, &e->orientation, &local) == SODET_OK;
        else if (good)
            good = !cfg->need_pictures || sodet_path_exists(path);
        if (good)
            continue;
        snprintf(sentence, sizeof sentence, "%s:%llu: %s", cfg->file, (unsigned long long)c->rows[e->first].number,
                 local.code ? local.text : "");
        if (!local.code)
            snprintf(sentence, sizeof sentence, "%s:%llu: %s: no such picture; correct the line, set pictures, or add it", cfg->file,
                     (unsigned long long)c->rows[e->first].number, path);
        e->code = local.code ? local.code : SODET_E_IO;
        if (!(e->broken = strdup(sentence)))
            return no_memory(err);
    }
    return SODET_OK;
}

/* ---- class names ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static sodet_status read_class_file(csv *c, sodet_err *err)
{
    const char *path = c->cfg->class_file;
    sodet_status status = sodet_lines_read(path, &c->class_lines, err);
    uint64_t n = sodet_lines_count(c->class_lines);
    if (status != SODET_OK)
        return status;
    if (!(c->classes = calloc(n + 1, sizeof *c->classes)))
        return no_memory(err);
    for (uint64_t i = 0; i < n; i++) {
        char *field[MOST_FIELDS], *line = sodet_lines_at(c->class_lines, i);
        double number = c->n_classes;
        if (!*line)
            continue;
        uint32_t fields = cut(line, ',', field);
        if (fields && !sodet_is_utf8(field[0]))
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: the class name \"%s\" is no UTF-8; save the file as UTF-8", path,
                              (unsigned long long)i + 1, field[0]);
        if (fields == 0 || fields > 2 || !*field[0] || (fields == 2 && !sodet_parse_number(field[1], &number)))
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: a class name, or name,number is expected", path, (unsigned long long)i + 1);
        if (number < 0 || number >= (double)n || number != (double)(uint64_t)number || c->classes[(uint64_t)number])
            return SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: class %s has number %g; each number from 0 to %llu is expected once", path,
                              (unsigned long long)i + 1, field[0], number, (unsigned long long)n - 1);
        c->classes[(uint64_t)number] = field[0];
        c->n_classes++;
    }
    for (uint32_t k = 0; k < c->n_classes; k++) {
        if (!c->classes[k])
            return SODET_FAIL(err, SODET_E_INVALID, "%s: no class has number %u; the numbers count from 0", path, k);
    }
    return c->n_classes ? SODET_OK : SODET_FAIL(err, SODET_E_INVALID, "%s: holds no class names", path);
}

static sodet_status find_classes(csv *c, sodet_err *err)
{
    const sodet_string_list *given = &c->cfg->classes;
    if (c->cfg->class_file)
        return read_class_file(c, err);
    uint64_t n = given->n ? given->n : c->n_rows;
    if (!(c->classes = calloc(n + 1, sizeof *c->classes)))
        return no_memory(err);
    if (given->n) {
        memcpy(c->classes, given->v, given->n * sizeof *c->classes);
        return SODET_OK;
    }
    uint64_t used = 0, kept = 0;
    for (uint64_t i = 0; i < c->n_rows; i++) {
        if (c->rows[i].class)
            c->classes[used++] = c->rows[i].class;
    }
    qsort(c->classes, used, sizeof *c->classes, by_text);
    for (uint64_t i = 0; i < used; i++) {
        if (kept == 0 || strcmp(c->classes[kept - 1], c->classes[i]) != 0)
            c->classes[kept++] = c->classes[i];
    }
    c->classes[kept] = NULL;
    return SODET_OK;
}

static sodet_status list(void *self, uint64_t *n_samples, sodet_err *err)
{
    csv *c = self;
    const char separator = ",;\t"[c->cfg->separator];
    uint32_t column[N_COLUMNS] = {PATH, X1, Y1, X2, Y2, CLASS};
    *n_samples = 0;
    sodet_status status = sodet_lines_read(c->cfg->file, &c->lines, err);
    uint64_t n = sodet_lines_count(c->lines), i = 0;
    if (status != SODET_OK)
        return status;
    if (!(c->rows = calloc(n + 1, sizeof *c->rows)))
        return no_memory(err);
    while (i < n && !*sodet_lines_at(c->lines, i))
        i++;
    c->n_fields = N_COLUMNS;
    if (c->cfg->columns.n && i < n) {
        status = read_header(c, sodet_lines_at(c->lines, i), i + 1, separator, column, err);
        i++;
    }
    for (; i < n && status == SODET_OK; i++) {
        sodet_err local = SODET_ERR_INIT;
        row *r = &c->rows[c->n_rows];
        if (!*sodet_lines_at(c->lines, i) || read_row(c, sodet_lines_at(c->lines, i), i + 1, separator, column, &local) == SODET_OK)
            continue;
        bool header = c->n_rows == 0 && !c->cfg->columns.n; /* or the first row is not what it should be */
        if (!r->path || !*r->path || header)                /* nothing can be made of the file */
            return SODET_FAIL(err, SODET_E_INVALID, "%s", local.text);
        r->class = NULL;
        if (!(r->broken = strdup(local.text)))
            return no_memory(err);
        c->n_rows++;
    }
    if (status == SODET_OK && c->n_rows == 0)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: holds no rows", c->cfg->file);
    if (status == SODET_OK)
        status = group(c, err);
    if (status == SODET_OK)
        status = find_classes(c, err);
    *n_samples = status == SODET_OK ? c->n : 0;
    return status;
}

static sodet_status describe(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const csv *c = self;
    const entry *e = &c->entries[index];
    double width = 1, height = 1;
    sodet_sample_set_id(out, c->rows[e->first].path, (int64_t)index);
    char source[LONGEST];
    snprintf(source, sizeof source, "%s:%llu", c->cfg->file, (unsigned long long)c->rows[e->first].number);
    sodet_sample_set_source(out, source);
    if (e->broken)
        return SODET_FAIL(err, e->code, "%s", e->broken);
    if (c->cfg->relative) {
        bool turned = sodet_sample_turns(out, e->orientation);
        width = turned ? e->height : e->width;
        height = turned ? e->width : e->height;
        sodet_sample_set_size(out, (uint32_t)width, (uint32_t)height);
    }
    for (uint64_t i = e->first; i < e->first + e->n; i++) {
        const row *r = &c->rows[i];
        snprintf(source, sizeof source, "%s:%llu", c->cfg->file, (unsigned long long)r->number);
        sodet_sample_set_source(out, source);
        if (r->broken)
            return SODET_FAIL(err, SODET_E_INVALID, "%s", r->broken);
        if (!r->class)
            continue;
        const sodet_box box = {(float)(r->v[0] * width), (float)(r->v[1] * height), (float)(r->v[2] * width), (float)(r->v[3] * height)};
        sodet_status status = sodet_sample_add_object(out, r->class, box, 0, -1, (int64_t)r->number, err);
        if (status != SODET_OK)
            return status;
    }
    return SODET_OK;
}

static sodet_status pixels(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const csv *c = self;
    char path[LONGEST];
    if (!picture_path(c, &c->entries[index], path))
        return SODET_FAIL(err, SODET_E_INVALID, "%.200s...: the path is too long", path);
    sodet_sample_set_path(out, path);
    return SODET_OK;
}

static const char *const *classes(const void *self)
{
    return ((const csv *)self)->classes;
}

static const sodet_dataset_ops ops = {.struct_size = sizeof ops, .open = list, .describe = describe, .pixels = pixels, .classes = classes};
SODET_PLUGIN(SODET_KIND_DATASET, "csv", "rows of one file: keras-retinanet's, or a list with a header", csv_cfg, options,
             .validate = validate, .create = create, .destroy = destroy, .ops = &ops);
