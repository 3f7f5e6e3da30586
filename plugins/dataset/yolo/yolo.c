/* yolo: pictures with a .txt each, as darknet reads them and Ultralytics' and Roboflow's tools write them. A line is one object: the number of
 * its class from 0, then centre and size of its box as shares of the picture's width and height (darknet's README, "How to train").
 *
 * Pictures, the first that is there: with split, the list <split> itself if it is the path of a .txt, <root>/<split>.txt, or the folders
 * images/<split>, <split>/images, <split>; without, images/ or root. Folders are read with all below them.
 * The .txt of a picture: with the last folder "images" of its path named "labels", or beside it. A picture without one has no objects; a .txt
 * with objects and without a picture is an error, and so is a set without any .txt.
 * Class names, the first that is there: classes here, names, classes.txt, data.yaml (its names), obj.names; also in labels/.
 *
 * Shares are of the picture as it stands when it has been turned upright, so the sizes come from the pictures' headers. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sodet/files.h"

typedef struct yolo_cfg {
    const char *root, *split, *labels, *names;
    sodet_string_list classes;
    uint32_t polygons;
} yolo_cfg;

static const sodet_opt options[] = {
    SODET_OPT_PATH(yolo_cfg, root, SODET_OPT_REQUIRED, "folder that holds images and labels; or pictures and .txt side by side"),
    SODET_OPT_STRING(yolo_cfg, split, NULL, "images/<split>, <split>/images, <split> or the list <split>.txt; none: every picture"),
    SODET_OPT_STRING(yolo_cfg, labels, NULL, "folder below root with the .txt files, laid out as the pictures; default: labels for images"),
    SODET_OPT_PATH(yolo_cfg, names, 0,
                   "file of class names: one a line, or a .yaml with names; default: classes.txt, data.yaml, obj.names"),
    SODET_OPT_STRINGS(yolo_cfg, classes, NULL, 0, "class names in the order of their numbers, in the place of a file"),
    SODET_OPT_BOOL(yolo_cfg, polygons, "no", "lines of more than two points are outlines: the box around them is taken"),
};

typedef struct object {
    double corner[4]; /* x1 y1 x2 y2, shares */
    uint32_t class;
} object;
typedef struct entry {
    char *id, *picture, *label, *broken; /* label NULL: no objects; broken: a sentence, or NULL */
    sodet_status code;                   /* of broken */
    uint32_t width, height, orientation;
    uint64_t first, n;
} entry;
typedef struct yolo {
    const yolo_cfg *cfg;
    const char **classes; /* [n_classes + 1] */
    uint32_t n_classes;
    char *names; /* the file that they come from */
    entry *entries;
    uint64_t n, capacity;
    object *objects;
    uint64_t n_objects, object_capacity;
    uint64_t n_labels;
} yolo;

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "yolo: no memory");
}

static void destroy(void *self)
{
    yolo *y = self;
    if (!y)
        return;
    for (uint64_t i = 0; i < y->n; i++) {
        free(y->entries[i].id);
        free(y->entries[i].picture);
        free(y->entries[i].label);
        free(y->entries[i].broken);
    }
    for (uint32_t i = 0; i < y->n_classes; i++)
        free((char *)(uintptr_t)y->classes[i]);
    free(y->classes);
    free(y->names);
    free(y->entries);
    free(y->objects);
    free(y);
}

static sodet_status create(const void *cfg, void **self, sodet_err *err)
{
    yolo *y = calloc(1, sizeof *y);
    *self = y;
    if (!y)
        return no_memory(err);
    y->cfg = cfg;
    return SODET_OK;
}

/* Room for one more of `size` bytes; NULL: no memory. */
static void *more(void *items, uint64_t *capacity, uint64_t n, size_t size)
{
    if (n < *capacity)
        return items;
    uint64_t wanted = *capacity ? *capacity * 2 : 64;
    void *p = reallocarray(items, wanted, size);
    if (p)
        *capacity = wanted;
    return p;
}

__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...)
{
    char *out = NULL;
    va_list list;
    va_start(list, format);
    int n = vasprintf(&out, format, list);
    va_end(list);
    return n < 0 ? NULL : out;
}

/* ---- class names ---- */

static sodet_status add_class(yolo *y, const char *name, size_t n, sodet_err *err)
{
    const char **p = reallocarray(y->classes, y->n_classes + 2u, sizeof *p);
    if (!p)
        return no_memory(err);
    y->classes = p;
    if (!(p[y->n_classes] = strndup(name, n)))
        return no_memory(err);
    p[++y->n_classes] = NULL;
    return SODET_OK;
}

/* A code point as UTF-8, behind `to`. */
static char *put_code(char *to, unsigned long code)
{
    static const struct {
        unsigned long below;
        unsigned char first, more;
    } rows[] = {{0x80, 0, 0}, {0x800, 0xc0, 1}, {0x10000, 0xe0, 2}, {0x110000, 0xf0, 3}};
    uint32_t k = 0;
    while (code >= rows[k].below)
        k++;
    *to++ = (char)(rows[k].first | code >> 6 * rows[k].more);
    for (uint32_t i = rows[k].more; i-- > 0;)
        *to++ = (char)(0x80 | (code >> 6 * i & 0x3f));
    return to;
}

/* What stands behind a backslash, at *at (YAML 1.2, section 5.7, but for line breaks), which takes no more room; NULL: nothing known, or no text. */
static char *escaped(char *to, char **at)
{
    static const char from[] = "0abtnvfre \"/\\N_", what[] = "xuU";
    static const unsigned long means[] = {0, 7, 8, 9, 10, 11, 12, 13, 27, ' ', '"', '/', '\\', 0x85, 0xa0};
    const char *simple = **at ? strchr(from, **at) : NULL, *coded = **at ? strchr(what, **at) : NULL;
    unsigned long code = simple ? means[simple - from] : 0;
    (*at)++;
    if (coded) {
        char digits[9] = "", *end;
        size_t n = (size_t)2 << (coded - what);
        memcpy(digits, *at, strnlen(*at, n));
        code = strtoul(digits, &end, 16);
        if (end != digits + n || strspn(digits, "0123456789abcdefABCDEF") != n)
            return NULL;
        *at += n;
    }
    return !code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? NULL : put_code(to, code);
}

/* A YAML scalar of n bytes, made plain in place: *text. Behind it; NULL: *why it is none that is read here. */
static char *scalar(char *at, bool flow, char **text, size_t *n, const char **why)
{
    char quote = *at == '"' || *at == '\'' ? *at++ : 0, *to = at;
    *text = at;
    while (quote && *at && (*at != quote || (quote == '\'' && at[1] == quote))) {
        bool escape = quote == '"' && *at == '\\';
        at += escape || *at == quote; /* '' is one */
        if (!escape)
            *to++ = *at++;
        else if (!(to = escaped(to, &at))) {
            *why = "an escape behind \\ that has no meaning here";
            return NULL;
        }
    }
    *n = (size_t)(to - *text);
    if (quote) {
        *why = *at ? *why : "a quote is not closed on its line";
        return *at ? at + 1 : NULL;
    }
    if (strchr("&*|>!?@`%[{", *at)) {
        *why = "anchors, aliases, tags, block scalars and lists in the list are not read here";
        return NULL;
    }
    for (; *at && !(flow && strchr(",]}", *at)) && !((*at == ' ' || *at == '\t') && at[1] == '#'); at++) {
        if (*at == ':' && (at[1] == ' ' || !at[1])) {
            *why = "a key in the place of a name";
            return NULL;
        }
    }
    for (to = at; to > *text && (to[-1] == ' ' || to[-1] == '\t');)
        to--;
    *n = (size_t)(to - *text);
    return at;
}

/* "3: name" of a mapping, whose numbers must rise from 0: then at the name; else as it was. */
static char *behind_key(char *at, uint32_t expected, bool *wrong)
{
    char *end, quote = *at == '"' || *at == '\'' ? *at : 0, *begin = at + (quote != 0);
    unsigned long key = strtoul(begin, &end, 10);
    if (end == begin || (quote && *end++ != quote) || *end != ':' || (end[1] != ' ' && end[1] != '\0'))
        return at;
    *wrong = key != expected;
    return end + 1 + strspn(end + 1, " \t");
}

/* The names of a data.yaml in the three ways in which they are written: [a, b], - a, and 0: a. */
static sodet_status yaml_names(yolo *y, const char *path, const sodet_lines *lines, sodet_err *err)
{
    uint64_t i = 0, n = sodet_lines_count(lines);
    sodet_status status = SODET_OK;
    bool wrong = false;
    const char *why = NULL;
    while (i < n && strncmp(sodet_lines_at(lines, i), "names:", 6) != 0)
        i++;
    if (i == n)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: has no names:; write names: [a, b], or classes = a, b in the data set's section",
                          path);
    char *at = sodet_lines_at(lines, i) + 6, *text;
    size_t length;
    at += strspn(at, " \t");
    bool flow = *at == '[' || *at == '{', closed = !flow;
    if (!flow && *at && *at != '#')
        why = "one value where the list of the classes is expected";
    at += flow;
    while (status == SODET_OK && !wrong && !why) {
        at += strspn(at, flow ? " \t," : " \t");
        if (flow && (*at == ']' || *at == '}')) {
            closed = true;
            break;
        }
        if (!*at || *at == '#') {
            if (++i == n)
                break;
            at = sodet_lines_at(lines, i);
            if (!flow && *at && *at != '#' && *at != '-' && !(*at >= '0' && *at <= '9') && *at != '\'' && *at != '"')
                break; /* the next key */
            continue;
        }
        if (!flow && *at == '-')
            at += 1 + strspn(at + 1, " \t");
        at = behind_key(at, y->n_classes, &wrong);
        length = 0;
        if (*at && *at != '#' && !(at = scalar(at, flow, &text, &length, &why)))
            break;
        at += strspn(at, " \t");
        if (!length)
            why = "an empty name; its place is the number of a class";
        else if (*at && *at != '#' && !(flow && strchr(",]}", *at)))
            why = "text behind a name";
        else if ((status = add_class(y, text, length, err)) == SODET_OK && !sodet_is_utf8(y->classes[y->n_classes - 1]))
            why = "a name that is no UTF-8 (save the file as UTF-8)";
    }
    why = why            ? why
          : wrong        ? "the numbers of classes must count from 0"
          : !closed      ? "no ] closes the list"
          : y->n_classes ? NULL
                         : "the list is empty";
    if (status == SODET_OK && why)
        status =
            SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: names: %s; write names: [a, b]", path, (unsigned long long)(i < n ? i + 1 : n), why);
    for (i = 0; i < n && status == SODET_OK; i++) {
        const char *line = sodet_lines_at(lines, i);
        if (strncmp(line, "nc:", 3) == 0 && strtoul(line + 3, NULL, 10) != y->n_classes)
            status = SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: %s, but names has %u; correct the one or the other", path,
                                (unsigned long long)i + 1, line, y->n_classes);
    }
    return status;
}

static sodet_status read_names(yolo *y, const char *path, sodet_err *err)
{
    sodet_lines *lines;
    size_t length = strlen(path);
    bool yaml = length > 4 && (strcmp(path + length - 4, "yaml") == 0 || strcmp(path + length - 4, ".yml") == 0);
    sodet_status status = sodet_lines_read(path, &lines, err);
    if (status == SODET_OK && yaml)
        status = yaml_names(y, path, lines, err);
    uint64_t n = sodet_lines_count(lines);
    while (n && !*sodet_lines_at(lines, n - 1))
        n--;
    for (uint64_t i = 0; i < n && status == SODET_OK && !yaml; i++) {
        const char *name = sodet_lines_at(lines, i);
        if (!sodet_is_utf8(name))
            status = SODET_FAIL(err, SODET_E_INVALID, "%s:%llu: the class name \"%s\" is no UTF-8; save the file as UTF-8", path,
                                (unsigned long long)i + 1, name);
        else
            status = *name ? add_class(y, name, strlen(name), err)
                           : SODET_FAIL(err, SODET_E_INVALID,
                                        "%s:%llu: an empty line among the class names; the line's place is the number of "
                                        "its class",
                                        path, (unsigned long long)i + 1);
    }
    sodet_lines_free(lines);
    if (status == SODET_OK && !y->n_classes)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: holds no class names; one a line is expected", path);
    return status;
}

static sodet_status find_names(yolo *y, sodet_err *err)
{
    static const char *const files[] = {"classes.txt", "data.yaml", "data.yml", "obj.names", "labels/classes.txt", "labels/obj.names"};
    const yolo_cfg *c = y->cfg;
    sodet_status status = SODET_OK;
    if (c->classes.n) {
        y->names = strdup("classes");
        for (uint32_t i = 0; i < c->classes.n && status == SODET_OK; i++)
            status = add_class(y, c->classes.v[i], strlen(c->classes.v[i]), err);
        return status == SODET_OK && !y->names ? no_memory(err) : status;
    }
    for (uint32_t i = 0; i < sizeof files / sizeof *files && !y->names; i++) {
        y->names = c->names ? strdup(c->names) : text_of("%s/%s", c->root, files[i]);
        if (!y->names)
            return no_memory(err);
        if (c->names || sodet_path_exists(y->names))
            return read_names(y, y->names, err);
        free(y->names);
        y->names = NULL;
    }
    return SODET_FAIL(err, SODET_E_INVALID,
                      "%s: no classes.txt, data.yaml or obj.names names the classes; write classes = a, b in the data set's section",
                      c->root);
}

/* ---- pictures and their labels ---- */

/* path with its ending replaced by .txt, or .TXT, if that is there. */
static char *text_beside(const char *path, size_t before, const char *middle, const char *rest)
{
    const char *dot = strrchr(rest, '.'), *slash = strrchr(rest, '/');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - rest) : (int)strlen(rest);
    for (uint32_t i = 0; i < 2; i++) {
        char *name = text_of("%.*s%s%.*s%s", (int)before, path, middle, stem, rest, i ? ".TXT" : ".txt");
        if (name && sodet_path_exists(name))
            return name;
        free(name);
    }
    return NULL;
}

static char *find_label(const yolo *y, const char *picture, const char *relative)
{
    const yolo_cfg *c = y->cfg;
    const char *images = NULL;
    if (c->labels) {
        char *folder = c->labels[0] == '/' ? text_of("%s/", c->labels) : text_of("%s/%s/", c->root, c->labels);
        char *found = folder ? text_beside(folder, strlen(folder), "", relative) : NULL;
        free(folder);
        return found;
    }
    for (const char *p = picture; (p = strstr(p, "/images/")); p++)
        images = p;
    char *found = images ? text_beside(picture, (size_t)(images - picture), "/labels/", images + strlen("/images/")) : NULL;
    return found ? found : text_beside(picture, 0, "", picture);
}

/* Owns picture, label and broken. */
static sodet_status add_entry(yolo *y, char *picture, char *label, char *broken, sodet_err *err)
{
    size_t root = strlen(y->cfg->root);
    const char *named = picture ? picture : label;
    entry *p = more(y->entries, &y->capacity, y->n, sizeof *p);
    if (p)
        y->entries = p;
    if (p && named)
        p[y->n++] = (entry){.picture = picture,
                            .label = label,
                            .broken = broken,
                            .code = SODET_E_IO,
                            .id = strdup(strncmp(named, y->cfg->root, root) == 0 && named[root] == '/' ? named + root + 1 : named)};
    else
        free(picture), free(label), free(broken);
    return p && named && p[y->n - 1].id ? SODET_OK : no_memory(err);
}

static bool starts_with_objects(const sodet_lines *lines)
{
    for (uint64_t i = 0; i < sodet_lines_count(lines); i++) {
        double v[5];
        char word[40];
        int n = 0, used;
        const char *at = sodet_lines_at(lines, i);
        if (!*at)
            continue;
        while (n < 5 && sscanf(at, "%39s%n", word, &used) == 1 && sodet_parse_number(word, &v[n]))
            n++, at += used;
        return n == 5;
    }
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every .txt of the folder that holds objects and belongs to none of the pictures becomes an entry that tells so. */
static sodet_status find_orphans(yolo *y, const char *pictures, const char *folder, sodet_err *err)
{
    sodet_lines *files;
    sodet_status status = sodet_lines_of_folder(folder, ".txt", &files, err);
    uint64_t n_known = 0, most = y->n;
    const char **known = calloc(most + 1, sizeof *known);
    if (status == SODET_OK && !known)
        status = no_memory(err);
    for (uint64_t i = 0; i < most && known; i++) {
        if (y->entries[i].label)
            known[n_known++] = y->entries[i].label;
    }
    if (n_known)
        qsort(known, n_known, sizeof *known, by_text);
    for (uint64_t i = 0; i < sodet_lines_count(files) && status == SODET_OK; i++) {
        char *path = text_of("%s/%s", folder, sodet_lines_at(files, i));
        if (!path) {
            status = no_memory(err);
            break;
        }
        const char *key = path;
        sodet_lines *lines = NULL;
        sodet_err local = SODET_ERR_INIT;
        if (!bsearch(&key, known, n_known, sizeof *known, by_text) && sodet_lines_read(path, &lines, &local) == SODET_OK &&
            starts_with_objects(lines)) {
            status =
                add_entry(y, NULL, path, text_of("%s: no picture of that name in %s; add it or remove the labels", path, pictures), err);
            path = NULL;
        }
        sodet_lines_free(lines);
        free(path);
    }
    free(known);
    sodet_lines_free(files);
    return status;
}

static sodet_status list_folder(yolo *y, const char *folder, sodet_err *err)
{
    sodet_lines *files;
    sodet_status status = sodet_lines_of_folder(folder, NULL, &files, err);
    for (uint64_t i = 0; i < sodet_lines_count(files) && status == SODET_OK; i++) {
        char *picture = text_of("%s/%s", folder, sodet_lines_at(files, i));
        status = add_entry(y, picture, picture ? find_label(y, picture, sodet_lines_at(files, i)) : NULL, NULL, err);
    }
    sodet_lines_free(files);
    if (status == SODET_OK && y->n == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: holds no picture (.jpg, .jpeg, .png, .bmp, .ppm, .pgm, .tga)", folder);
    if (status != SODET_OK)
        return status;
    /* The folder of the labels: as find_label looks for them. */
    const char *images = NULL;
    char *slashed = text_of("%s/", folder), *labels = NULL;
    for (const char *p = slashed; p && (p = strstr(p, "/images/")); p++)
        images = p;
    if (y->cfg->labels)
        labels = y->cfg->labels[0] == '/' ? strdup(y->cfg->labels) : text_of("%s/%s", y->cfg->root, y->cfg->labels);
    else if (images)
        labels = text_of("%.*s/labels/%.*s", (int)(images - slashed), slashed, (int)strlen(images + 8) - (images[8] != 0), images + 8);
    if (labels && labels[strlen(labels) - 1] == '/')
        labels[strlen(labels) - 1] = 0;
    status = !slashed ? no_memory(err) : find_orphans(y, folder, labels && sodet_is_folder(labels) ? labels : folder, err);
    free(slashed);
    free(labels);
    return status;
}

/* Paths of a list are absolute, or below root, or below the list's own folder; darknet's, which begin at its working directory, are also
 * found by what follows their first folder. */
static char *find_listed(const yolo *y, const char *list, const char *line)
{
    const char *slash = strrchr(list, '/'), *rest = strchr(line, '/');
    char *tries[] = {line[0] == '/' ? strdup(line) : text_of("%s/%s", y->cfg->root, line),
                     text_of("%.*s%s", slash ? (int)(slash - list + 1) : 0, list, line), rest ? text_of("%s%s", y->cfg->root, rest) : NULL};
    char *found = NULL;
    for (uint32_t i = 0; i < 3; i++) {
        if (!found && tries[i] && sodet_path_exists(tries[i]))
            found = tries[i];
        else
            free(tries[i]);
    }
    return found;
}

static sodet_status read_list(yolo *y, const char *path, sodet_err *err)
{
    sodet_lines *lines;
    sodet_status status = sodet_lines_read(path, &lines, err);
    for (uint64_t i = 0; i < sodet_lines_count(lines) && status == SODET_OK; i++) {
        const char *line = sodet_lines_at(lines, i);
        if (!*line)
            continue;
        line += strncmp(line, "./", 2) == 0 ? 2 : 0;
        char *picture = find_listed(y, path, line), *broken = NULL;
        if (!picture) {
            broken = text_of("%s:%llu: %s: no such picture in %s; correct the line or add the picture", path, (unsigned long long)i + 1,
                             line, y->cfg->root);
            picture = strdup(line);
        }
        const char *slash = strrchr(line, '/');
        char *label = picture && !broken ? find_label(y, picture, slash ? slash + 1 : line) : NULL;
        status = add_entry(y, picture, label, broken, err);
    }
    sodet_lines_free(lines);
    if (status == SODET_OK && y->n == 0)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: the list is empty; the path of one picture a line is wanted", path);
    return status;
}

static sodet_status find_pictures(yolo *y, sodet_err *err)
{
    const yolo_cfg *c = y->cfg;
    static const char *const before[] = {"images/", "", ""}, *const behind[] = {"", "/images", ""};
    size_t length = c->split ? strlen(c->split) : 0;
    char *path = NULL;
    sodet_status status;
    if (!sodet_is_folder(c->root))
        return SODET_FAIL(err, SODET_E_IO, "%s: no such folder; root should hold images and labels", c->root);
    if (!length) {
        path = text_of("%s/images", c->root);
        status = !path ? no_memory(err) : list_folder(y, sodet_is_folder(path) ? path : c->root, err);
        free(path);
        return status;
    }
    if (length > 4 && strcmp(c->split + length - 4, ".txt") == 0)
        path = c->split[0] == '/' ? strdup(c->split) : text_of("%s/%s", c->root, c->split);
    else
        path = text_of("%s/%s.txt", c->root, c->split);
    if (!path)
        return no_memory(err);
    if (sodet_path_exists(path)) {
        status = read_list(y, path, err);
        free(path);
        return status;
    }
    free(path);
    for (uint32_t i = 0; i < 3; i++) {
        path = text_of("%s/%s%s%s", c->root, before[i], c->split, behind[i]);
        bool found = path && sodet_is_folder(path);
        status = !path ? no_memory(err) : found ? list_folder(y, path, err) : SODET_OK;
        free(path);
        if (found || status != SODET_OK)
            return status;
    }
    return SODET_FAIL(err, SODET_E_IO, "%s: there is no split %s: neither %s.txt nor the folders images/%s, %s/images, %s are there",
                      c->root, c->split, c->split, c->split, c->split, c->split);
}

/* ---- lines of labels ---- */

/* A sentence about what is wrong with the line, or NULL; NULL and *failed: no memory. */
static char *read_line(yolo *y, const entry *e, uint64_t number, char *line, bool *failed)
{
    double v[5] = {0}, x, lo[2] = {0}, hi[2] = {0};
    uint32_t n = 0;
    char *save = NULL, *broken = NULL, *class = NULL;
    static const char *const what[] = {"class", "centre x", "centre y", "width", "height"};
    bool outline = false;
#define REFUSE(...) (broken = text_of(__VA_ARGS__), *failed = !broken, broken)
#define AT          e->label, (unsigned long long)number
    for (char *word = strtok_r(line, " \t", &save); word; word = strtok_r(NULL, " \t", &save), n++) {
        if (!sodet_parse_number(word, &x))
            return REFUSE("%s:%llu: %s %s: a number is expected; correct the line", AT, n < 5 ? what[n] : "coordinate", word);
        if (n == 0)
            class = word;
        else if (x < -1 || x > 2)
            return REFUSE("%s:%llu: %s %s: a share of the picture between 0 and 1 is expected; divide pixels by its width or height", AT,
                          n < 5 ? what[n] : "coordinate", word);
        if (n < 5)
            v[n] = x;
        if (n) { /* as if of an outline: x, y, x, y, ... */
            uint32_t c = (n - 1) % 2;
            lo[c] = n <= 2 || x < lo[c] ? x : lo[c];
            hi[c] = n <= 2 || x > hi[c] ? x : hi[c];
        }
    }
    outline = n >= 7 && n % 2 == 1;
    if (outline && !y->cfg->polygons)
        return REFUSE("%s:%llu: %u numbers, an outline; set polygons = yes to take the box around it", AT, n);
    if (n != 5 && !outline)
        return REFUSE("%s:%llu: %u numbers; class, centre x, centre y, width, height are expected", AT, n);
    if (v[0] < 0 || v[0] != floor(v[0]))
        return REFUSE("%s:%llu: class %s: a whole number from 0 is expected; correct the line", AT, class);
    if (v[0] >= y->n_classes)
        return REFUSE("%s:%llu: class %s: outside the %u name%s of %s; add it or correct the line", AT, class, y->n_classes,
                      y->n_classes == 1 ? "" : "s", y->names);
    object *o = more(y->objects, &y->object_capacity, y->n_objects, sizeof *o);
    *failed = !o;
    if (!o)
        return NULL;
    y->objects = o;
    o += y->n_objects++;
    if (outline)
        *o = (object){{lo[0], lo[1], hi[0], hi[1]}, (uint32_t)v[0]};
    else
        *o = (object){{v[1] - v[3] / 2, v[2] - v[4] / 2, v[1] + v[3] / 2, v[2] + v[4] / 2}, (uint32_t)v[0]};
    return NULL;
#undef REFUSE
#undef AT
}

static sodet_status read_entry(yolo *y, entry *e, sodet_err *err)
{
    sodet_lines *lines = NULL;
    sodet_err local = SODET_ERR_INIT;
    sodet_status status = sodet_picture_size(e->picture, &e->width, &e->height, &e->orientation, &local);
    if (status == SODET_OK && e->label)
        status = sodet_lines_read(e->label, &lines, &local);
    if (status == SODET_E_MEMORY)
        return SODET_FAIL(err, status, "%s", local.text);
    bool failed = false;
    if (status != SODET_OK)
        failed = !(e->broken = strdup(local.text));
    e->code = status != SODET_OK ? status : SODET_E_INVALID;
    e->first = y->n_objects;
    for (uint64_t i = 0; i < sodet_lines_count(lines) && !e->broken && !failed; i++) {
        char *line = sodet_lines_at(lines, i);
        if (*line)
            e->broken = read_line(y, e, i + 1, line, &failed);
    }
    e->n = y->n_objects - e->first;
    y->n_labels += e->label != NULL;
    sodet_lines_free(lines);
    return failed ? no_memory(err) : SODET_OK;
}

static sodet_status list(void *self, uint64_t *n_samples, sodet_err *err)
{
    yolo *y = self;
    *n_samples = 0;
    sodet_status status = find_pictures(y, err);
    if (status == SODET_OK)
        status = find_names(y, err);
    for (uint64_t i = 0; i < y->n && status == SODET_OK; i++) {
        if (!y->entries[i].broken)
            status = read_entry(y, &y->entries[i], err);
    }
    if (status == SODET_OK && !y->n_labels)
        status = SODET_FAIL(err, SODET_E_INVALID,
                            "%s: none of %llu pictures has a .txt, neither in labels beside images nor beside itself; "
                            "set labels = FOLDER if they lie elsewhere",
                            y->cfg->root, (unsigned long long)y->n);
    *n_samples = status == SODET_OK ? y->n : 0;
    return status;
}

static sodet_status describe(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const yolo *y = self;
    const entry *e = &y->entries[index];
    sodet_sample_set_id(out, e->id, (int64_t)index);
    sodet_sample_set_source(out, e->label ? e->label : e->picture);
    if (e->broken)
        return SODET_FAIL(err, e->code, "%s", e->broken);
    bool turned = sodet_sample_turns(out, e->orientation);
    uint32_t width = turned ? e->height : e->width, height = turned ? e->width : e->height;
    sodet_sample_set_size(out, width, height);
    for (uint64_t i = 0; i < e->n; i++) {
        const object *o = &y->objects[e->first + i];
        const sodet_box box = {(float)(o->corner[0] * width), (float)(o->corner[1] * height), (float)(o->corner[2] * width),
                               (float)(o->corner[3] * height)};
        sodet_status status = sodet_sample_add_object(out, y->classes[o->class], box, 0, -1, (int64_t)(e->first + i + 1), err);
        if (status != SODET_OK)
            return status;
    }
    return SODET_OK;
}

static sodet_status pixels(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const entry *e = &((const yolo *)self)->entries[index];
    if (!e->picture)
        return SODET_FAIL(err, SODET_E_IO, "%s", e->broken);
    sodet_sample_set_path(out, e->picture);
    return SODET_OK;
}

static const char *const *classes(const void *self)
{
    return ((const yolo *)self)->classes;
}

static const sodet_dataset_ops ops = {.struct_size = sizeof ops, .open = list, .describe = describe, .pixels = pixels, .classes = classes};
SODET_PLUGIN(SODET_KIND_DATASET, "yolo", "YOLO layout: pictures, and a .txt with relative boxes for each", yolo_cfg, options,
             .create = create, .destroy = destroy, .ops = &ops);
