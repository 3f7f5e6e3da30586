#include "core/data/layout.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/folder.h"
#include "core/base/json.h"
#include "core/data/coco_write.h"
#include "core/data/sample.h"
#include "sodet/files.h"

const char *const sd_layout_names[SD_LAYOUTS + 1] = {"voc", "coco", "yolo", "csv", NULL};
const char *const sd_picture_modes[4] = {"copy", "link", "leave", NULL};

typedef struct placed { /* a stem that is taken, and by what */
    const char *scope, *stem, *source, *name;
} placed;

struct sd_layout {
    const char *folder, *work; /* work: .unfinished below it */
    const volatile sig_atomic_t *stop;
    bool made;     /* the folder was not there before */
    bool finished; /* everything is in its place */
    uint32_t layout, pictures;
    const sd_classes *classes;
    placed *placed; /* open addressing: a power of two, at most half full */
    uint64_t n_placed, slots;
    const char *split;
    sd_text list;      /* of the split: ImageSets, rows */
    sd_coco_text coco; /* of the split */
    sd_text ini, yaml, summary;
    const char *first; /* of the splits */
    bool train, val;   /* are among them */
    uint64_t n_pictures, n_objects;
    uint64_t crowd, difficult, truncated, areas, inexact, renamed;
    sd_pool pool;
};

static sodet_status no_memory(const sd_layout *l, sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", l->folder);
}

/* ---- numbers ---- */

static double rounded(double v, int digits, char text[32])
{
    snprintf(text, 32, "%.*g", digits, v);
    return strtod(text, NULL);
}

/* The two numbers by which a layout says where the box begins and ends along one side of the picture: the shortest that its reader turns
 * into the same floats. False: there are none; then all digits are written. */
static bool extent(uint32_t layout, float begin, float end, uint32_t side, char a[32], char b[32])
{
    enum { FEWEST = 4, MOST = 17 };
    double x1 = (double)begin, x2 = (double)end, v, w, lo, hi, s = side;
    for (int digits = FEWEST; digits <= MOST; digits++) {
        switch (layout) {
        case SD_LAYOUT_VOC: /* 1-based, inclusive */
            lo = rounded(x1 + 1, digits, a) - 1;
            hi = rounded(x2, digits, b);
            lo = lo < 0 && lo >= -1 ? 0 : lo;
            break;
        case SD_LAYOUT_COCO:
            lo = rounded(x1, digits, a);
            hi = lo + rounded(x2 - lo, digits, b);
            break;
        case SD_LAYOUT_YOLO:
            v = rounded((x1 + x2) / 2 / s, digits, a);
            w = rounded((x2 - x1) / s, digits, b);
            lo = (v - w / 2) * s;
            hi = (v + w / 2) * s;
            break;
        default:
            lo = rounded(x1, digits, a);
            hi = rounded(x2, digits, b);
            break;
        }
        if ((float)lo == begin && (float)hi == end)
            return true;
    }
    return false;
}

/* ---- text ---- */

void sd_layout_ini_value(sd_text *ini, const char *key, const char *value)
{
    bool quoted = strpbrk(value, ";#'\"") || *value == ' ' || !*value || value[strlen(value) - 1] == ' ';
    char quote = strchr(value, '"') ? '\'' : '"';
    if (quoted)
        sd_text_printf(ini, "%s = %c%s%c\n", key, quote, value, quote);
    else
        sd_text_printf(ini, "%s = %s\n", key, value);
}

bool sd_layout_has_control(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 && *text != '\t')
            return true;
    }
    return false;
}

/* Why the layout's files cannot hold this name so that it is read back, or NULL. */
static const char *unsayable(uint32_t layout, const char *name, bool is_class)
{
    enum { LONGEST = 255 }; /* of voc_xml.c */
    size_t n = strlen(name);
    if (layout != SD_LAYOUT_CSV && (is_class || layout != SD_LAYOUT_YOLO) && sd_not_utf8(name))
        return "bytes that are no UTF-8";
    if (layout == SD_LAYOUT_VOC && sd_layout_has_control(name))
        return "a line break or another control character";
    if (layout == SD_LAYOUT_CSV && strpbrk(name, "\r\n"))
        return "a line break";
    if (layout == SD_LAYOUT_YOLO && !is_class && name[0] == '.')
        return "a dot at its beginning";
    if (layout == SD_LAYOUT_VOC && is_class && n > LONGEST)
        return "more than 255 bytes";
    return NULL;
}

const char *sd_layout_shown(const char *name, char out[120])
{
    bool utf8 = !sd_not_utf8(name);
    size_t at = 0;
    for (; *name && at < 100; name++) {
        unsigned char c = (unsigned char)*name;
        at += (size_t)snprintf(out + at, 120 - at, c < 0x20 || (c >= 0x80 && !utf8) ? "\\x%02x" : "%c", c);
    }
    out[at] = 0;
    return out;
}

void sd_layout_classes(sd_text *ini, const sd_classes *classes, const char *file, bool *needs_file)
{
    enum { LONGEST = 900 }; /* of a line of an INI: 1000 */
    size_t length = 0;
    *needs_file = false;
    for (uint32_t c = 0; c < classes->n; c++) {
        if (strpbrk(classes->names[c], "\r\n")) /* no list of lines can hold it */
            return;
    }
    for (uint32_t c = 0; c < classes->n; c++) {
        const char *name = classes->names[c];
        length += strlen(name) + 2;
        *needs_file = *needs_file || strpbrk(name, ",;#'\"\\=@") || *name == ' ' || name[strlen(name) - 1] == ' ';
    }
    *needs_file = *needs_file || length > LONGEST;
    if (*needs_file) {
        char value[PATH_MAX + 1];
        snprintf(value, sizeof value, "@%s", file);
        sd_layout_ini_value(ini, "classes", value);
        return;
    }
    sd_text_printf(ini, "classes = ");
    for (uint32_t c = 0; c < classes->n; c++)
        sd_text_printf(ini, "%s%s", c ? ", " : "", classes->names[c]);
    sd_text_printf(ini, "\n");
}

static void xml_text(sd_text *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        const char *entity = *p == '&' ? "&amp;" : *p == '<' ? "&lt;" : *p == '>' ? "&gt;" : NULL;
        sd_text_printf(out, entity ? "%s" : "%.1s", entity ? entity : p);
    }
}

static void yaml_text(sd_text *out, const char *text)
{
    bool plain = !sd_layout_has_control(text);
    sd_text_printf(out, plain ? "'" : "\"");
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (plain)
            sd_text_printf(out, c == '\'' ? "''" : "%c", c);
        else
            sd_text_printf(out, c < 0x20 ? "\\x%02x" : c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    sd_text_printf(out, plain ? "'" : "\"");
}

static sodet_status write_text(const sd_layout *l, const char *name, const sd_text *text, sodet_err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", l->work, name);
    return text->failed ? no_memory(l, err) : sd_file_write(path, text->text ? text->text : "", text->length, err);
}

/* ---- names and pictures ---- */

static const char *picture_folder(const sd_layout *l, char out[300])
{
    snprintf(out, 300, "%s%s%s", l->layout == SD_LAYOUT_VOC ? "JPEGImages" : "images", l->layout == SD_LAYOUT_YOLO ? "/" : "",
             l->layout == SD_LAYOUT_YOLO ? l->split : "");
    return out;
}

static placed *slot_of(placed *table, uint64_t slots, const char *scope, const char *stem)
{
    uint64_t at = sd_fnv1a64(stem, strlen(stem), sd_fnv1a64(scope, strlen(scope), SD_FNV_START));
    while (table[at & (slots - 1)].stem &&
           (strcmp(table[at & (slots - 1)].stem, stem) != 0 || strcmp(table[at & (slots - 1)].scope, scope) != 0))
        at++;
    return &table[at & (slots - 1)];
}

static sodet_status room(sd_layout *l, sodet_err *err)
{
    if (l->n_placed * 2 < l->slots)
        return SODET_OK;
    uint64_t slots = l->slots ? l->slots * 2 : 1024;
    placed *table = sd_alloc(slots, sizeof *table);
    if (!table)
        return no_memory(l, err);
    for (uint64_t i = 0; i < l->slots; i++) {
        if (l->placed[i].stem)
            *slot_of(table, slots, l->placed[i].scope, l->placed[i].stem) = l->placed[i];
    }
    sd_free(l->placed);
    l->placed = table;
    l->slots = slots;
    return SODET_OK;
}

/* A name of its own for the picture: stems differ, because .xml and .txt are called as they are. *again: the same file was placed before. */
static sodet_status choose_name(sd_layout *l, const char *source, const char *wanted, const char **name, bool *again, sodet_err *err)
{
    const char *scope = l->layout == SD_LAYOUT_YOLO ? l->split : "", *dot = strrchr(wanted, '.');
    int stem_length = dot && dot > wanted ? (int)(dot - wanted) : (int)strlen(wanted);
    sodet_status status = room(l, err);
    *again = false;
    for (uint32_t k = 1; status == SODET_OK; k++) {
        char *stem =
            k == 1 ? sd_pool_printf(&l->pool, "%.*s", stem_length, wanted) : sd_pool_printf(&l->pool, "%.*s-%u", stem_length, wanted, k);
        if (!stem)
            return no_memory(l, err);
        placed *p = slot_of(l->placed, l->slots, scope, stem);
        if (p->stem && strcmp(p->source, source) == 0) {
            *name = p->name;
            *again = true;
            return SODET_OK;
        }
        if (p->stem)
            continue;
        *p = (placed){.scope = scope,
                      .stem = stem,
                      .source = sd_pool_strdup(&l->pool, source),
                      .name = sd_pool_printf(&l->pool, "%s%s", stem, wanted + stem_length)};
        if (!p->source || !p->name)
            return no_memory(l, err);
        l->n_placed++;
        l->renamed += k > 1;
        *name = p->name;
        return SODET_OK;
    }
    return status;
}

static sodet_status copy_file(const char *from, const char *to, sodet_err *err)
{
    char *bytes;
    uint64_t n;
    sodet_status status = sd_file_read(from, 0, &bytes, &n, err);
    if (status == SODET_OK)
        status = sd_file_write(to, bytes, n, err);
    sd_free(bytes);
    return status;
}

/* The picture of a sample that sd_dataset_locate has filled comes into the folder, or stays; *shown: how the layout's files call it. */
static sodet_status place(sd_layout *l, sodet_sample *s, uint64_t i, const char **name, const char **shown, sodet_err *err)
{
    char wanted[300], folder[300], whole[PATH_MAX], path[PATH_MAX + 600];
    bool again, is_file = s->path.length && !s->has_pixels && !s->n_encoded;
    if (!is_file && l->pictures != SD_PICTURES_COPY)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: the picture is drawn or in memory, no file to link or leave; use --pictures copy",
                          s->id.length ? s->id.text : l->split);
    const char *slash = is_file ? strrchr(s->path.text, '/') : NULL;
    if (is_file)
        snprintf(wanted, sizeof wanted, "%s", slash ? slash + 1 : s->path.text);
    else
        snprintf(wanted, sizeof wanted, "%s_%06llu.png", l->split, (unsigned long long)(i + 1));
    const char *why = unsayable(l->layout, wanted, false);
    if (why)
        return SODET_FAIL(err, SODET_E_INVALID, "picture %s: its name holds %s, which %s's files cannot say; rename it",
                          sd_layout_shown(wanted, folder), why, sd_layout_names[l->layout]);
    if ((l->layout == SD_LAYOUT_VOC || l->layout == SD_LAYOUT_YOLO) && !sodet_is_picture(wanted))
        return SODET_FAIL(
            err, SODET_E_INVALID,
            "picture %s: its name does not end in .jpg, .jpeg, .png, .bmp, .ppm, .pgm or .tga, by which %s finds pictures; rename "
            "it, or use --to coco or csv",
            sd_layout_shown(wanted, folder), sd_layout_names[l->layout]);
    if (is_file && !realpath(s->path.text, whole))
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot be found: %s", s->path.text, strerror(errno));
    sodet_status status = choose_name(l, is_file ? whole : wanted, wanted, name, &again, err);
    if (status != SODET_OK)
        return status;
    if (l->pictures == SD_PICTURES_LEAVE) {
        const char *last = strrchr(whole, '/') + 1;
        if (l->layout == SD_LAYOUT_VOC && strcmp(*name, last) != 0)
            return SODET_FAIL(err, SODET_E_INVALID, "%s: another picture of that name has the annotation %s's; use --pictures copy", whole,
                              last);
        *shown = sd_pool_strdup(&l->pool, whole);
        return *shown ? SODET_OK : no_memory(l, err);
    }
    *shown = sd_pool_printf(&l->pool, "%s/%s", picture_folder(l, folder), *name);
    if (!*shown)
        return no_memory(l, err);
    if (again)
        return SODET_OK;
    snprintf(path, sizeof path, "%s/%s", l->work, *shown);
    if (l->pictures == SD_PICTURES_LINK)
        return symlink(whole, path) == 0 ? SODET_OK : SODET_FAIL(err, SODET_E_IO, "%s: cannot be linked: %s", path, strerror(errno));
    if (is_file)
        return copy_file(whole, path, err);
    if (!s->has_pixels)
        return sd_file_write(path, s->encoded, s->n_encoded, err);
    status = sd_sample_decode(s, err);
    return status == SODET_OK ? sd_png_write(path, s->stored.rgb, s->stored.width, s->stored.height, err) : status;
}

/* ---- one sample ---- */

/* As the layout's reader will see it: from the header where there is one, because an annotation may be wrong or silent. */
static sodet_status size_of(const sd_layout *l, const sodet_sample *s, uint32_t *width, uint32_t *height, sodet_err *err)
{
    *width = s->has_pixels ? s->stored.width : s->width;
    *height = s->has_pixels ? s->stored.height : s->height;
    if (s->has_pixels || l->layout == SD_LAYOUT_CSV || (l->layout != SD_LAYOUT_YOLO && *width && *height))
        return SODET_OK;
    uint32_t w, h, orientation;
    sodet_status status = s->path.length ? sodet_picture_size(s->path.text, &w, &h, &orientation, err)
                                         : sd_decode_size(l->split, s->encoded, s->n_encoded, &w, &h, &orientation, err);
    if (status != SODET_OK)
        return status;
    bool turned = sodet_sample_turns(s, orientation);
    *width = turned ? h : w;
    *height = turned ? w : h;
    return SODET_OK;
}

static bool count_marks(sd_layout *l, const sodet_object *o)
{
    double own = ((double)o->box.x2 - (double)o->box.x1) * ((double)o->box.y2 - (double)o->box.y1);
    if (l->layout == SD_LAYOUT_COCO)
        return true;
    if (o->flags & SODET_BOX_CROWD) {
        l->crowd++;
        return false;
    }
    l->areas += o->area < own * (1 - 1e-6) || o->area > own * (1 + 1e-6);
    if (l->layout != SD_LAYOUT_VOC) {
        l->difficult += (o->flags & SODET_BOX_DIFFICULT) != 0;
        l->truncated += (o->flags & SODET_BOX_TRUNCATED) != 0;
    }
    return true;
}

static void write_object(sd_layout *l, const sodet_object *o, const char *shown, const char number[4][32], sd_text *own)
{
    const char *class = l->classes->names[o->label];
    switch (l->layout) {
    case SD_LAYOUT_VOC:
        sd_text_printf(own, "  <object>\n    <name>");
        xml_text(own, class);
        sd_text_printf(own,
                       "</name>\n    <truncated>%d</truncated>\n    <difficult>%d</difficult>\n    <bndbox><xmin>%s</xmin><ymin>%s</ymin>"
                       "<xmax>%s</xmax><ymax>%s</ymax></bndbox>\n  </object>\n",
                       (o->flags & SODET_BOX_TRUNCATED) != 0, (o->flags & SODET_BOX_DIFFICULT) != 0, number[0], number[1], number[2],
                       number[3]);
        break;
    case SD_LAYOUT_COCO:
        sd_coco_add_object(&l->coco, o, (const char *const[4]){number[0], number[1], number[2], number[3]}, l->classes);
        break;
    case SD_LAYOUT_YOLO:
        sd_text_printf(own, "%d %s %s %s %s\n", o->label, number[0], number[1], number[2], number[3]);
        break;
    default:
        sd_text_csv(&l->list, shown);
        sd_text_printf(&l->list, ",%s,%s,%s,%s,", number[0], number[1], number[2], number[3]);
        sd_text_csv(&l->list, class);
        sd_text_printf(&l->list, "\n");
        break;
    }
}

/* A line of ImageSets: the stem where that says it; a path where a stem would be misread, or the picture is elsewhere. */
static void list_voc(sd_layout *l, const char *stem, const char *shown)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG"};
    const char *dot = strrchr(shown, '.'), *blank = strrchr(stem, ' ');
    bool plain = l->pictures != SD_PICTURES_LEAVE && !sodet_is_picture(stem) && !(blank && (blank[1] == '-' || strlen(blank) < 3)),
         known = false;
    size_t n = strlen(stem);
    plain = plain && !(n > 4 && strcmp(stem + n - 4, ".xml") == 0) && !strchr(" \t", stem[0]) && !strchr(" \t", stem[n - 1]);
    for (uint32_t i = 0; i < sizeof endings / sizeof *endings; i++)
        known = known || (dot && strcmp(dot, endings[i]) == 0);
    sd_text_printf(&l->list, "%s\n", plain && known ? stem : shown);
}

static sodet_status write_sample(sd_layout *l, const sd_dataset *d, uint64_t i, sodet_sample *s, sodet_err *err)
{
    sd_text own = {0}; /* the sample's own file */
    const char *name = "", *shown = "";
    char path[PATH_MAX];
    uint32_t width = 0, height = 0, written = 0;
    sodet_status status = sd_dataset_locate(d, i, s, err);
    if (status == SODET_OK)
        status = size_of(l, s, &width, &height, err);
    sodet_object *objects = NULL; /* decoding a drawn picture clips the sample's */
    uint64_t n = s->n_objects;
    if (status == SODET_OK && n && !(objects = sd_alloc(n, sizeof *objects)))
        status = no_memory(l, err);
    if (status == SODET_OK && n)
        memcpy(objects, s->objects, n * sizeof *objects);
    if (status == SODET_OK)
        status = place(l, s, i, &name, &shown, err);
    if (status != SODET_OK) {
        sd_free(objects);
        return status;
    }
    const char *dot = strrchr(name, '.');
    int stem = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    if (l->layout == SD_LAYOUT_COCO)
        sd_coco_add_image(&l->coco, shown, width, height, NULL);
    if (l->layout == SD_LAYOUT_VOC) {
        sd_text_printf(&own, "<annotation>\n  <filename>");
        xml_text(&own, name);
        sd_text_printf(&own, "</filename>\n  <size><width>%u</width><height>%u</height><depth>3</depth></size>\n", width, height);
    }
    for (uint64_t k = 0; k < n; k++) {
        const sodet_object *o = &objects[k];
        char number[4][32];
        if (!count_marks(l, o))
            continue;
        bool exact = extent(l->layout, o->box.x1, o->box.x2, width, number[0], number[2]);
        exact = extent(l->layout, o->box.y1, o->box.y2, height, number[1], number[3]) && exact;
        l->inexact += !exact;
        write_object(l, o, shown, (const char(*)[32])number, &own);
        written++;
    }
    l->n_pictures++;
    l->n_objects += written;
    char stem_text[300];
    snprintf(stem_text, sizeof stem_text, "%.*s", stem, name);
    if (l->layout == SD_LAYOUT_VOC) {
        sd_text_printf(&own, "</annotation>\n");
        list_voc(l, stem_text, shown);
        snprintf(path, sizeof path, "Annotations/%s.xml", stem_text);
        status = write_text(l, path, &own, err);
    } else if (l->layout == SD_LAYOUT_YOLO) {
        snprintf(path, sizeof path, "labels/%s/%s.txt", l->split, stem_text);
        status = write_text(l, path, &own, err);
    } else if (l->layout == SD_LAYOUT_CSV && !written) {
        sd_text_csv(&l->list, shown);
        sd_text_printf(&l->list, ",,,,,\n");
    }
    sd_free(objects);
    sd_text_free(&own);
    return status;
}

/* ---- the whole ---- */

#define UNFINISHED ".unfinished"

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path);
}

static void remove_tree(const char *folder)
{
    enum { OPEN = 16 };
    nftw(folder, remove_entry, OPEN, FTW_DEPTH | FTW_PHYS);
}

/* Out of .unfinished; data.ini, by which a set is known to be whole, is the last. */
static sodet_status move_up(sd_layout *l, sodet_err *err)
{
    DIR *dir = opendir(l->work);
    if (!dir)
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot be listed: %s", l->work, strerror(errno));
    sodet_status status = SODET_OK;
    for (uint32_t last = 0; last < 2; last++, rewinddir(dir)) {
        for (struct dirent *e; status == SODET_OK && (status = sd_folder_next(dir, l->work, &e, err)) == SODET_OK && e;) {
            char from[PATH_MAX], to[PATH_MAX];
            if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || (strcmp(e->d_name, "data.ini") == 0) != (last == 1))
                continue;
            snprintf(from, sizeof from, "%s/%s", l->work, e->d_name);
            snprintf(to, sizeof to, "%s/%s", l->folder, e->d_name);
            if (rename(from, to) != 0)
                status = SODET_FAIL(err, SODET_E_IO, "%s: cannot be moved to %s: %s", from, to, strerror(errno));
        }
    }
    closedir(dir);
    l->finished = status == SODET_OK;
    return status;
}

sodet_status sd_layout_open(const char *folder, uint32_t layout, uint32_t pictures, const sd_classes *classes,
                            const volatile sig_atomic_t *stop, sd_layout **out, sodet_err *err)
{
    *out = NULL;
    if (layout == SD_LAYOUT_YOLO && pictures == SD_PICTURES_LEAVE)
        return SODET_FAIL(err, SODET_E_INVALID,
                          "yolo: labels lie beside their pictures, so these cannot stay where they are; use --pictures "
                          "link or copy");
    for (uint32_t c = 0; c < classes->n; c++) {
        char name[120];
        const char *why = unsayable(layout, classes->names[c], true);
        if (why)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "class \"%s\": its name holds %s, which %s's files cannot say; rename it where it comes from",
                              sd_layout_shown(classes->names[c], name), why, sd_layout_names[layout]);
    }
    bool made = !sd_path_exists(folder);
    sodet_status status = sd_make_folders(folder, err);
    DIR *dir = status == SODET_OK ? opendir(folder) : NULL;
    if (status == SODET_OK && !dir)
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot be listed: %s", folder, strerror(errno));
    for (struct dirent *e; dir && status == SODET_OK && (status = sd_folder_next(dir, folder, &e, err)) == SODET_OK && e;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strcmp(e->d_name, UNFINISHED) != 0)
            status =
                SODET_FAIL(err, SODET_E_INVALID, "%s: is not empty (%s); name a new folder, so that nothing is mixed", folder, e->d_name);
    }
    if (dir)
        closedir(dir);
    if (status != SODET_OK)
        return status;
    sd_layout *l = sd_alloc(1, sizeof *l);
    if (!l)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", folder);
    *l = (sd_layout){.layout = layout, .pictures = pictures, .classes = classes, .stop = stop, .made = made};
    l->folder = sd_pool_strdup(&l->pool, folder);
    l->work = sd_pool_printf(&l->pool, "%s/" UNFINISHED, folder);
    status = l->folder && l->work ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", folder);
    if (status == SODET_OK) {
        remove_tree(l->work); /* of an earlier, interrupted one */
        status = sd_make_folders(l->work, err);
    }
    if (status != SODET_OK) {
        sd_layout_close(l);
        return status;
    }
    *out = l;
    return SODET_OK;
}

static sodet_status make_folder(const sd_layout *l, const char *name, sodet_err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", l->work, name);
    return sd_make_folders(path, err);
}

/* The section by which sodet reads the split again. */
static void describe_split(sd_layout *l)
{
    sd_text_printf(&l->ini, "[dataset.%s]\nplugin = %s\n", l->split, sd_layout_names[l->layout]);
    switch (l->layout) {
    case SD_LAYOUT_COCO:
        sd_text_printf(&l->ini, "annotations = annotations/instances_%s.json\npictures = .\n", l->split);
        break;
    case SD_LAYOUT_CSV:
        sd_text_printf(&l->ini, "file = %s.csv\nclass_file = classes.csv\n", l->split);
        break;
    default:
        sd_text_printf(&l->ini, "root = .\nsplit = %s\n", l->split);
        break;
    }
}

sodet_status sd_layout_add(sd_layout *l, const char *split, const sd_dataset *d, sodet_err *err)
{
    sodet_sample *s = NULL;
    char name[400], folder[300];
    uint64_t pictures = l->n_pictures, objects = l->n_objects;
    l->split = sd_pool_strdup(&l->pool, split);
    sodet_status status = l->split ? sd_sample_new(d, &s, err) : no_memory(l, err);
    if (status == SODET_OK && l->pictures != SD_PICTURES_LEAVE)
        status = make_folder(l, picture_folder(l, folder), err);
    static const char *const folders[SD_LAYOUTS] = {"Annotations", "annotations", "labels/", NULL};
    snprintf(name, sizeof name, "%s%s", l->layout == SD_LAYOUT_CSV ? "" : folders[l->layout], l->layout == SD_LAYOUT_YOLO ? split : "");
    if (status == SODET_OK && *name)
        status = make_folder(l, name, err);
    for (uint64_t i = 0; i < sd_dataset_size(d) && status == SODET_OK; i++)
        status = l->stop && *l->stop ? SODET_FAIL(err, SODET_E_INVALID, "%s: stopped; nothing is left there", l->folder)
                                     : write_sample(l, d, i, s, err);
    if (status == SODET_OK && l->layout == SD_LAYOUT_VOC) {
        snprintf(name, sizeof name, "ImageSets/Main/%s.txt", split);
        status = make_folder(l, "ImageSets/Main", err);
        if (status == SODET_OK)
            status = write_text(l, name, &l->list, err);
    } else if (status == SODET_OK && l->layout == SD_LAYOUT_CSV) {
        snprintf(name, sizeof name, "%s.csv", split);
        status = write_text(l, name, &l->list, err);
    } else if (status == SODET_OK && l->layout == SD_LAYOUT_COCO) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/annotations/instances_%s.json", l->work, split);
        status = sd_coco_write(&l->coco, path, l->classes, err);
    } else if (status == SODET_OK) {
        sd_text_printf(&l->yaml, "%s: images/%s\n", split, split);
    }
    describe_split(l);
    sd_text_printf(&l->summary, "  %s: %llu picture%s, %llu object%s\n", split, (unsigned long long)(l->n_pictures - pictures),
                   l->n_pictures - pictures == 1 ? "" : "s", (unsigned long long)(l->n_objects - objects),
                   l->n_objects - objects == 1 ? "" : "s");
    l->first = l->first ? l->first : l->split;
    l->train = l->train || strcmp(split, "train") == 0;
    l->val = l->val || strcmp(split, "val") == 0;
    sd_sample_free(s);
    sd_text_free(&l->list);
    sd_coco_text_free(&l->coco);
    return status;
}

static sodet_status write_classes(sd_layout *l, sodet_err *err)
{
    sd_text text = {0};
    sodet_status status = SODET_OK;
    if (l->layout == SD_LAYOUT_YOLO) {
        sd_text_printf(&text, "path: .\n");
        sd_text_join(&text, &l->yaml);
        sd_text_printf(&text, "nc: %u\nnames:\n", l->classes->n);
        for (uint32_t c = 0; c < l->classes->n; c++) {
            sd_text_printf(&text, "  %u: ", c);
            yaml_text(&text, l->classes->names[c]);
            sd_text_printf(&text, "\n");
        }
        status = write_text(l, "data.yaml", &text, err);
    } else if (l->layout == SD_LAYOUT_CSV) {
        for (uint32_t c = 0; c < l->classes->n; c++) {
            sd_text_csv(&text, l->classes->names[c]);
            sd_text_printf(&text, ",%u\n", c);
        }
        status = write_text(l, "classes.csv", &text, err);
    }
    sd_text_free(&text);
    return status;
}

static void tell(sd_text *out, uint64_t n, const char *one, const char *many, const char *layout, const char *why)
{
    if (n)
        sd_text_printf(out, "  %llu %s: %s %s\n", (unsigned long long)n, n == 1 ? one : many, layout, why);
}

sodet_status sd_layout_finish(sd_layout *l, sd_text *report, sodet_err *err)
{
    sd_text ini = {0}, names = {0};
    bool needs_file;
    const char *layout = sd_layout_names[l->layout];
    sodet_status status = write_classes(l, err);
    sd_text_printf(&ini, "[data]\n");
    if (l->train || !l->val)
        sd_text_printf(&ini, "train = %s\n", l->train ? "train" : l->first);
    sd_text_printf(&ini, "val = %s\n", l->val ? "val" : l->first);
    sd_layout_classes(&ini, l->classes, "names.txt", &needs_file);
    sd_text_join(&ini, &l->ini);
    for (uint32_t c = 0; c < l->classes->n; c++)
        sd_text_printf(&names, "%s\n", l->classes->names[c]);
    if (status == SODET_OK && needs_file)
        status = write_text(l, "names.txt", &names, err);
    if (status == SODET_OK)
        status = write_text(l, "data.ini", &ini, err);
    if (status == SODET_OK)
        status = move_up(l, err);
    sd_text_printf(report, "%s: layout %s, %u class%s; data.ini reads it\n", l->folder, layout, l->classes->n,
                   l->classes->n == 1 ? "" : "es");
    sd_text_join(report, &l->summary);
    tell(report, l->renamed, "picture got a name with a number", "pictures got names with numbers", "another", "had the name already");
    tell(report, l->crowd, "crowd object is left out", "crowd objects are left out", layout, "has no mark for them");
    tell(report, l->difficult, "difficult object is now an ordinary one", "difficult objects are now ordinary ones", layout,
         "has no mark for them");
    tell(report, l->truncated, "truncated object has lost that mark", "truncated objects have lost that mark", layout, "has none");
    tell(report, l->areas, "area of a segmentation is lost", "areas of segmentations are lost", layout, "has the box alone");
    tell(report, l->inexact, "box will not be read back exactly", "boxes will not be read back exactly", layout,
         l->layout == SD_LAYOUT_VOC ? "takes up to a pixel over the left or upper edge as the edge" : "cannot say them");
    sd_text_free(&ini);
    sd_text_free(&names);
    return status;
}

void sd_layout_close(sd_layout *l)
{
    if (!l)
        return;
    if (l->work)
        remove_tree(l->work);
    if (l->made && !l->finished && l->folder)
        rmdir(l->folder);
    sd_free(l->placed);
    sd_text_free(&l->list);
    sd_text_free(&l->ini);
    sd_text_free(&l->yaml);
    sd_text_free(&l->summary);
    sd_coco_text_free(&l->coco);
    sd_pool_clear(&l->pool);
    sd_free(l);
}
