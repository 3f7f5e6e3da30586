#include "sodet/voc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/folder.h"
#include "core/data/voc_xml.h"
#include "sodet/files.h"

typedef struct entry {
    const char *id, *annotation, *picture; /* picture NULL: not wanted */
    const char *broken;                    /* a sentence, or NULL */
    sodet_status code;                     /* of broken */
    uint32_t width, height, n_objects;
    uint64_t first_object;
} entry;

struct sodet_voc {
    const char *root, *annotations, *pictures;
    uint32_t flags, zero_based;
    entry *entries;
    uint64_t n, capacity;
    sd_voc_object *objects;
    uint64_t n_objects, objects_capacity;
    uint64_t zeros; /* objects with a corner below the base */
    sd_pool pool;
};

static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG", ".bmp", ".BMP", ".ppm", ".tga"};
enum { N_EXTENSIONS = sizeof extensions / sizeof *extensions };

static const char *ending(const char *name)
{
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    return dot && (!slash || dot > slash) ? dot : name + strlen(name);
}

/* folder/stem + the first extension that exists; NULL if none does. */
static const char *find_picture(sodet_voc *v, const char *folder, const char *stem)
{
    char path[4096];
    for (uint32_t i = 0; i < N_EXTENSIONS; i++) {
        int n = snprintf(path, sizeof path, "%s/%s%s", folder, stem, extensions[i]);
        if (n < (int)sizeof path && sd_path_exists(path))
            return sd_pool_strdup(&v->pool, path);
    }
    return NULL;
}

static sodet_status no_memory(sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_MEMORY, "no memory for a list of annotations");
}

/* One sample. picture and annotation: paths below root, or NULL: looked for by the stem. */
static sodet_status add(sodet_voc *v, const char *stem, const char *picture, const char *annotation, sodet_err *err)
{
    sodet_status status = sd_grow(&v->entries, &v->capacity, v->n + 1, sizeof *v->entries, err);
    if (status != SODET_OK)
        return status;
    entry *e = &v->entries[v->n];
    *e = (entry){.id = sd_pool_strdup(&v->pool, stem), .code = SODET_E_IO};
    if (!e->id)
        return no_memory(err);
    bool wanted = !(v->flags & SODET_VOC_NO_PICTURES);
    if (picture) {
        e->picture = sd_path_join(&v->pool, v->root, picture);
        if (wanted && (!e->picture || !sd_path_exists(e->picture)))
            e->picture = NULL;
    }
    if (!e->picture)
        e->picture = find_picture(v, v->pictures, stem);
    if (!e->picture && wanted)
        e->broken = sd_pool_printf(&v->pool, "%s/%s: no picture of that name with an ending .jpg, .jpeg, .png, .bmp, .ppm or .tga",
                                   v->pictures, stem);
    if (annotation)
        e->annotation = sd_path_join(&v->pool, v->root, annotation);
    else
        e->annotation = sd_pool_printf(&v->pool, "%s/%s.xml", v->annotations, stem);
    if (!e->annotation)
        return no_memory(err);
    v->n++;
    return SODET_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* One line of a list; see the header for what is borne. */
static sodet_status add_line(sodet_voc *v, char *line, sodet_err *err)
{
    char *end = line + strlen(line);
    while (end > line && is_blank(end[-1]))
        *--end = 0;
    while (is_blank(*line))
        line++;
    if (!*line)
        return SODET_OK;
    char *column = end; /* the last one */
    while (column > line && !is_blank(column[-1]))
        column--;
    char *annotation = NULL;
    if (column > line) {
        bool is_flag = strcmp(column, "1") == 0 || strcmp(column, "-1") == 0 || strcmp(column, "0") == 0;
        bool is_xml = strcmp(ending(column), ".xml") == 0;
        if (is_flag || is_xml) {
            annotation = is_xml ? column : NULL;
            char *cut = column;
            while (cut > line && is_blank(cut[-1]))
                *--cut = 0;
        }
    }
    char *name = strrchr(line, '/');
    name = name ? name + 1 : line;
    char *dot = strrchr(name, '.');
    if (sodet_is_picture(line)) {
        char picture[4096];
        snprintf(picture, sizeof picture, "%s", line);
        *dot = 0;
        return add(v, name, picture, annotation, err);
    }
    if (dot && strcmp(dot, ".xml") == 0)
        *dot = 0;
    return add(v, name, NULL, annotation, err);
}

static sodet_status read_list(sodet_voc *v, const char *path, sodet_err *err)
{
    char *bytes = NULL;
    uint64_t n = 0;
    sodet_status status = sd_file_read(path, (uint64_t)1 << 30, &bytes, &n, err);
    if (status == SODET_OK && memchr(bytes, 0, n))
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: holds a NUL byte, so it is no text", path);
    char *line = bytes;
    if (status == SODET_OK && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
        line += 3;
    while (status == SODET_OK && line) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        status = add_line(v, line, err);
        line = next;
    }
    sd_free(bytes);
    if (status == SODET_OK && v->n == 0)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: the list is empty; one picture name a line is wanted", path);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every .xml of the annotations' folder. */
static sodet_status list_folder(sodet_voc *v, sodet_err *err)
{
    DIR *dir = opendir(v->annotations);
    if (!dir)
        return SODET_FAIL(err, SODET_E_IO, "%s: no such folder; it should hold the .xml files", v->annotations);
    char **names = NULL;
    uint64_t n = 0, capacity = 0;
    sodet_status status = SODET_OK;
    for (struct dirent *d; status == SODET_OK && (status = sd_folder_next(dir, v->annotations, &d, err)) == SODET_OK && d;) {
        size_t length = strlen(d->d_name);
        if (length < 5 || strcmp(d->d_name + length - 4, ".xml") != 0 || d->d_name[0] == '.')
            continue;
        status = sd_grow(&names, &capacity, n + 1, sizeof *names, err);
        if (status == SODET_OK && (names[n] = sd_pool_strdup(&v->pool, d->d_name)))
            names[n++][length - 4] = 0;
        else if (status == SODET_OK)
            status = no_memory(err);
    }
    closedir(dir);
    if (n)
        qsort(names, n, sizeof *names, by_name);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++)
        status = add(v, names[i], NULL, NULL, err);
    sd_free(names);
    if (status == SODET_OK && n == 0)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: holds no .xml file", v->annotations);
    return status;
}

static const char *first_that_exists(sodet_voc *v, const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char *path = sd_path_join(&v->pool, v->root, names[i]);
        if (path && sd_path_exists(path))
            return path;
    }
    return v->root;
}

static sodet_status find_list(sodet_voc *v, const char *split, sodet_err *err)
{
    static const char *const patterns[] = {"%s", "ImageSets/Main/%s.txt", "ImageSets/%s.txt", "%s.txt"};
    for (uint32_t i = 0; i < 4; i++) {
        if (i == 0 && !strchr(split, '/') && !strchr(split, '.'))
            continue; /* a bare word is no path: root may hold a folder `train` */
        char name[2048];
        snprintf(name, sizeof name, patterns[i], split);
        char *path = sd_path_join(&v->pool, v->root, name);
        if (!path)
            return no_memory(err);
        if (sd_path_exists(path))
            return read_list(v, path, err);
    }
    return SODET_FAIL(err, SODET_E_IO, "%s: there is no list %s: neither ImageSets/Main/%s.txt nor ImageSets/%s.txt nor %s.txt is there",
                      v->root, split, split, split, split);
}

static sodet_status read_annotations(sodet_voc *v, sodet_err *err)
{
    sd_voc_file file = {0};
    sodet_status status = SODET_OK;
    double base = v->zero_based ? 0 : 1;
    for (uint64_t i = 0; i < v->n && status == SODET_OK; i++) {
        entry *e = &v->entries[i];
        sodet_err local = SODET_ERR_INIT;
        e->first_object = v->n_objects;
        sodet_status s = sd_voc_xml_read(e->annotation, &v->pool, &file, &local);
        if (s == SODET_E_MEMORY)
            status = SODET_FAIL(err, s, "%s", local.text);
        if (s != SODET_OK && !e->broken) {
            e->broken = sd_pool_strdup(&v->pool, local.text);
            e->code = s;
        }
        if (s != SODET_OK)
            continue;
        e->width = file.width;
        e->height = file.height;
        e->n_objects = (uint32_t)file.n;
        status = sd_grow(&v->objects, &v->objects_capacity, v->n_objects + file.n, sizeof *v->objects, err);
        for (uint64_t k = 0; k < file.n && status == SODET_OK; k++) {
            sd_voc_object o = file.objects[k];
            for (uint32_t c = 0; c < 2; c++) {
                o.corner[c] -= base;
                if (o.corner[c] < 0 && o.corner[c] >= -base) {
                    o.corner[c] = 0;
                    v->zeros++;
                }
            }
            v->objects[v->n_objects++] = o;
        }
    }
    sd_free(file.objects);
    if (status == SODET_OK && v->zeros)
        sodet_warn("%s: %llu corner%s at 0 although VOC files count pixels from 1; they are taken as the picture's edge. If the tool that "
                   "wrote them counts from 0, "
                   "set zero_based = yes",
                   v->root, (unsigned long long)v->zeros, v->zeros == 1 ? " is" : "s are");
    return status;
}

sodet_status sodet_voc_open(const sodet_voc_layout *layout, sodet_voc **out, sodet_err *err)
{
    *out = NULL;
    sodet_voc_layout l = {0};
    memcpy(&l, layout, layout->struct_size < sizeof l ? layout->struct_size : sizeof l);
    if (!l.root || !*l.root)
        return SODET_FAIL(err, SODET_E_INVALID, "no root folder of the VOC data is given");
    sodet_voc *v = sd_alloc(1, sizeof *v);
    if (!v)
        return no_memory(err);
    static const char *const picture_folders[] = {"JPEGImages", "images", "Images"}, *const annotation_folders[] = {"Annotations",
                                                                                                                    "annotations"};
    v->flags = l.flags;
    v->zero_based = l.zero_based;
    v->root = sd_pool_strdup(&v->pool, l.root);
    sodet_status status = SODET_OK;
    if (!v->root) {
        status = no_memory(err);
    } else if (!sd_path_exists(v->root)) {
        status = SODET_FAIL(err, SODET_E_IO, "%s: no such folder; root should hold JPEGImages, Annotations and ImageSets", v->root);
    } else {
        v->pictures = l.pictures ? sd_path_join(&v->pool, v->root, l.pictures) : first_that_exists(v, picture_folders, 3);
        v->annotations = l.annotations ? sd_path_join(&v->pool, v->root, l.annotations) : first_that_exists(v, annotation_folders, 2);
        if (!l.annotations && v->annotations == v->root)
            v->annotations = v->pictures;
        status = !v->pictures || !v->annotations ? no_memory(err) : l.split && *l.split ? find_list(v, l.split, err) : list_folder(v, err);
    }
    if (status == SODET_OK)
        status = read_annotations(v, err);
    if (status != SODET_OK) {
        sodet_voc_close(v);
        return status;
    }
    *out = v;
    return SODET_OK;
}

uint64_t sodet_voc_size(const sodet_voc *v)
{
    return v->n;
}

sodet_status sodet_voc_describe(const sodet_voc *v, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const entry *e = &v->entries[index];
    sodet_sample_set_id(out, e->id, (int64_t)index);
    sodet_sample_set_source(out, e->annotation);
    sodet_sample_set_size(out, e->width, e->height);
    if (e->broken)
        return SODET_FAIL(err, e->code, "%s", e->broken);
    for (uint32_t i = 0; i < e->n_objects; i++) {
        const sd_voc_object *o = &v->objects[e->first_object + i];
        sodet_box box = {(float)o->corner[0], (float)o->corner[1], (float)o->corner[2], (float)o->corner[3]};
        sodet_status status = sodet_sample_add_object(out, o->name, box, o->flags, -1, (int64_t)(e->first_object + i + 1), err);
        if (status != SODET_OK)
            return status;
    }
    return SODET_OK;
}

sodet_status sodet_voc_pixels(const sodet_voc *v, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const entry *e = &v->entries[index];
    if (!e->picture)
        return SODET_FAIL(err, SODET_E_IO, "%s/%s: no picture of that name", v->pictures, e->id);
    sodet_sample_set_path(out, e->picture);
    return SODET_OK;
}

void sodet_voc_close(sodet_voc *v)
{
    if (!v)
        return;
    sd_free(v->entries);
    sd_free(v->objects);
    sd_pool_clear(&v->pool);
    sd_free(v);
}
