/* sodet data adopt: looks at a folder of pictures and labels, and writes an INI that trains TinySSD on it. A layout is recognised when its
 * plugin can open it; what the plugins say is what is refused with. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/data.h"
#include "core/data/layout.h"
#include "core/data/recipe.h"
#include "core/data/sample.h"
#include "sodet/coco.h"
#include "sodet/files.h"

enum { TRAIN, VAL, WHOLE = TRAIN };
typedef struct pair {
    const char *key, *value;
    bool path; /* below the folder */
} pair;
typedef struct adopt {
    char folder[PATH_MAX], shown[PATH_MAX]; /* absolute; as the INI says it */
    const char *ini;                        /* file to write */
    const char *layout;
    pair pairs[2][8]; /* of [dataset.train] and [dataset.val]; the second is empty where there is no split */
    uint32_t n[2];
    sd_split set[2];
    sd_config *cfg[2];
    const char **names; /* of voc, whose files do not list them */
    uint32_t n_names;
    double *scales; /* sqrt(box / picture) of every object */
    uint64_t n_scales, scales_capacity;
    uint32_t side;     /* median of the longer sides of the pictures */
    char refused[500]; /* why a file that meant to be COCO's was left out */
    sd_text report;
    sd_pool pool;
} adopt;

static void add(adopt *a, uint32_t set, const char *key, const char *value, bool path)
{
    a->pairs[set][a->n[set]++] = (pair){key, sd_pool_strdup(&a->pool, value), path};
}

static bool there(const adopt *a, const char *name)
{
    char path[3 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", a->folder, name);
    return sd_path_exists(path);
}

/* ---- layouts: which options their plugin would need; false: there is nothing of the kind ---- */

static const char *const val_names[] = {"val", "valid", "validation", "test"};
enum { N_VAL = sizeof val_names / sizeof *val_names };

static bool voc(adopt *a)
{
    char name[PATH_MAX];
    sodet_lines *xml = NULL;
    if (sodet_lines_of_folder(a->folder, ".xml", &xml, NULL) != SODET_OK || sodet_lines_count(xml) == 0) {
        sodet_lines_free(xml);
        return false;
    }
    static const char *const lists[][2] = {{"train", "val"}, {"trainval", "test"}, {"train", "test"}};
    for (uint32_t i = 0; i < 3 && !a->n[TRAIN]; i++) {
        char other[100];
        snprintf(name, sizeof name, "ImageSets/Main/%s.txt", lists[i][0]);
        snprintf(other, sizeof other, "ImageSets/Main/%s.txt", lists[i][1]);
        for (uint32_t k = 0; k < 2 && there(a, name) && there(a, other); k++) {
            add(a, k, "root", "", true);
            add(a, k, "split", lists[i][k], false);
        }
    }
    const char *first = sodet_lines_at(xml, 0), *slash = strrchr(first, '/');
    for (uint32_t i = 0; i < N_VAL && !a->n[TRAIN]; i++) { /* train/ and valid/, pictures and .xml side by side */
        snprintf(name, sizeof name, "%s/", val_names[i]);
        bool train = false, val = false;
        for (uint64_t k = 0; k < sodet_lines_count(xml); k++) {
            train = train || strncmp(sodet_lines_at(xml, k), "train/", 6) == 0;
            val = val || strncmp(sodet_lines_at(xml, k), name, strlen(name)) == 0;
        }
        if (train && val) {
            add(a, TRAIN, "root", "train", true);
            add(a, VAL, "root", val_names[i], true);
        }
    }
    if (!a->n[TRAIN]) {
        add(a, WHOLE, "root", "", true);
        snprintf(name, sizeof name, "%.*s", slash ? (int)(slash - first) : 0, first);
        if (*name && !there(a, "Annotations"))
            add(a, WHOLE, "annotations", name, false);
    }
    sodet_lines_free(xml);
    return true;
}

static const char *first_name(const sodet_coco *c, sodet_sample *s)
{
    sodet_err local = SODET_ERR_INIT;
    memset(s, 0, sizeof *s);
    return sodet_coco_size(c) && sodet_coco_pixels(c, 0, s, &local) == SODET_OK ? s->path.text : NULL;
}

/* File names are relative to the JSON's own folder, or to one of the usual ones; CVAT's instances_default.json to images/default. */
static void coco_set(adopt *a, uint32_t set, const char *json, const sodet_coco *c)
{
    char own_subset[300] = "";
    const char *usual[] = {
        own_subset,     "",           "images",           "JPEGImages",    "train", "val", "valid", "test", "train2017", "val2017",
        "images/train", "images/val", "images/train2017", "images/val2017"};
    sodet_sample s;
    const char *path = first_name(c, &s), *slash = strrchr(json, '/');
    char own[3 * PATH_MAX];
    const int within = slash ? (int)(slash - json + 1) : 0;
    snprintf(own, sizeof own, "%s/%.*s", a->folder, within < PATH_MAX ? within : PATH_MAX, json);
    add(a, set, "annotations", json, true);
    const char *file = slash ? slash + 1 : json, *under = strchr(file, '_');
    if (under)
        snprintf(own_subset, sizeof own_subset, "images/%.*s", (int)strcspn(under + 1, "."), under + 1);
    if (path && !sd_path_exists(path) && strncmp(path, own, strlen(own) - 1) == 0) {
        const char *name = path + strlen(own) - 1;
        while (*name == '/')
            name++;
        for (uint32_t i = 0; i < sizeof usual / sizeof *usual; i++) {
            char tried[2 * PATH_MAX];
            snprintf(tried, sizeof tried, "%s%s%s", usual[i], *usual[i] ? "/" : "", name);
            if (there(a, tried)) {
                add(a, set, "pictures", usual[i], true);
                break;
            }
        }
    }
    sd_sample_clear(&s);
}

/* A .json may be anything; one that speaks of images and annotations is meant. */
static bool meant_as_coco(const char *path)
{
    enum { MOST = 1 << 26 };
    char *text = NULL;
    uint64_t n;
    bool meant = sd_file_read(path, MOST, &text, &n, NULL) != SODET_OK || (strstr(text, "\"images\"") && strstr(text, "\"annotations\""));
    sd_free(text);
    return meant;
}

static bool coco(adopt *a)
{
    sodet_lines *files = NULL;
    const char *chosen[2] = {NULL, NULL}, *whole = NULL;
    sodet_coco *open[2] = {NULL, NULL};
    if (sodet_lines_of_folder(a->folder, ".json", &files, NULL) != SODET_OK)
        return false;
    for (uint64_t i = 0; i < sodet_lines_count(files); i++) {
        char path[PATH_MAX + 300];
        const char *name = sodet_lines_at(files, i), *last = strrchr(name, '/');
        uint32_t set = 2;
        sodet_coco *c = NULL;
        snprintf(path, sizeof path, "%s/%s", a->folder, name);
        set = strstr(last ? last : name, "train") ? TRAIN : 2;
        for (uint32_t k = 0; k < N_VAL && set == 2; k++)
            set = strstr(last ? last : name, val_names[k]) ? VAL : 2;
        for (uint32_t k = 0; k < N_VAL && set == 2 && last; k++) /* Roboflow: train/_annotations.coco.json */
            set = strncmp(name, "train/", 6) == 0 ? TRAIN : strncmp(name, val_names[k], strlen(val_names[k])) == 0 ? VAL : 2;
        bool better = set == VAL && chosen[VAL] && strstr(chosen[VAL], "test") && !strstr(name, "test");
        if (set < 2 ? (chosen[set] != NULL && !better) : whole != NULL)
            continue;
        sodet_err local = SODET_ERR_INIT;
        if (sodet_coco_open(path, NULL, &c, &local) != SODET_OK) {
            if (meant_as_coco(path)) {
                sd_log(SD_LOG_WARN, "left out: %s", local.text);
                snprintf(a->refused, sizeof a->refused, "%s", local.text);
            }
            continue;
        }
        uint32_t slot = set == VAL ? VAL : TRAIN;
        if (set == 2)
            whole = name;
        else
            chosen[set] = name;
        if (set < 2 || !open[TRAIN]) {
            sodet_coco_close(open[slot]);
            open[slot] = c;
        } else {
            sodet_coco_close(c);
        }
    }
    if (chosen[TRAIN] && chosen[VAL]) {
        coco_set(a, TRAIN, chosen[TRAIN], open[TRAIN]);
        coco_set(a, VAL, chosen[VAL], open[VAL]);
    } else if (chosen[TRAIN] || chosen[VAL] || whole) {
        coco_set(a, WHOLE, chosen[TRAIN] ? chosen[TRAIN] : whole ? whole : chosen[VAL], open[TRAIN] ? open[TRAIN] : open[VAL]);
    }
    sodet_coco_close(open[TRAIN]);
    sodet_coco_close(open[VAL]);
    sodet_lines_free(files);
    return a->n[WHOLE] > 0;
}

static bool yolo_split(const adopt *a, const char *split)
{
    char name[100];
    static const char *const before[] = {"images/", "", "", ""}, *const behind[] = {"", "/images", ".txt", ""};
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s%s%s", before[i], split, behind[i]);
        if (there(a, name))
            return true;
    }
    return false;
}

static bool yolo(adopt *a)
{
    sodet_lines *files = NULL;
    bool any = sodet_lines_of_folder(a->folder, ".txt", &files, NULL) == SODET_OK && sodet_lines_count(files) > 0;
    sodet_lines_free(files);
    if (!any)
        return false;
    add(a, TRAIN, "root", "", true);
    for (uint32_t i = 0; i < N_VAL && yolo_split(a, "train") && !a->n[VAL]; i++) {
        if (!yolo_split(a, val_names[i]))
            continue;
        add(a, TRAIN, "split", "train", false);
        add(a, VAL, "root", "", true);
        add(a, VAL, "split", val_names[i], false);
    }
    return true;
}

/* Options for a header whose names are known; false: neither that nor numbers where a file without header has them. */
static bool csv_header(adopt *a, uint32_t set, const char *file)
{
    static const char *const known[6][8] = {{"path", "filename", "file_name", "image", "image_path", "file", NULL},
                                            {"x1", "xmin", "x_min", "left", NULL},
                                            {"y1", "ymin", "y_min", "top", NULL},
                                            {"x2", "xmax", "x_max", "right", NULL},
                                            {"y2", "ymax", "y_max", "bottom", NULL},
                                            {"class", "class_name", "label", "name", "category", NULL}};
    char path[PATH_MAX + 300], text[300] = "", *field[64], *save = NULL;
    sodet_lines *lines = NULL;
    uint32_t n = 0, found = 0;
    double v;
    snprintf(path, sizeof path, "%s/%s", a->folder, file);
    if (sodet_lines_read(path, &lines, NULL) != SODET_OK || !sodet_lines_count(lines)) {
        sodet_lines_free(lines);
        return false;
    }
    char *line = sodet_lines_at(lines, 0), separator[2] = {strchr(line, '\t') ? '\t' : strchr(line, ';') ? ';' : ',', 0};
    bool plain = strstr(line, ",,,,,") != NULL;
    for (char *f = strtok_r(line, separator, &save); f && n < 64; f = strtok_r(NULL, separator, &save))
        field[n++] = f;
    plain = plain || (n == 6 && sodet_parse_number(field[1], &v) && sodet_parse_number(field[4], &v));
    for (uint32_t c = 0; c < 6 && !plain && found == c; c++) {
        for (uint32_t k = 0; known[c][k] && found == c; k++) {
            for (uint32_t i = 0; i < n && found == c; i++) {
                if (strcmp(field[i], known[c][k]) != 0)
                    continue;
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", c ? ", " : "", field[i]);
                found++;
            }
        }
    }
    sodet_lines_free(lines);
    if (!plain && found < 6)
        return false;
    add(a, set, "file", file, true);
    if (!plain)
        add(a, set, "columns", text, false);
    if (*separator != ',')
        add(a, set, "separator", *separator == ';' ? "semicolon" : "tab", false);
    if (there(a, "classes.csv"))
        add(a, set, "class_file", "classes.csv", true);
    return true;
}

static bool csv(adopt *a)
{
    sodet_lines *files = NULL;
    const char *train = NULL, *val = NULL;
    if (sodet_lines_of_folder(a->folder, ".csv", &files, NULL) != SODET_OK)
        return false;
    for (uint64_t i = 0; i < sodet_lines_count(files); i++) {
        const char *name = sodet_lines_at(files, i);
        bool is_val = false;
        for (uint32_t k = 0; k < N_VAL; k++)
            is_val = is_val || strncmp(name, val_names[k], strlen(val_names[k])) == 0;
        if (strcmp(name, "classes.csv") == 0)
            continue;
        if (is_val)
            val = val ? val : name;
        else if (!train || strstr(name, "train"))
            train = name;
    }
    bool good = (train || val) && csv_header(a, TRAIN, train ? train : val);
    if (good && train && val)
        csv_header(a, VAL, val);
    sodet_lines_free(files);
    return good;
}

/* ---- opening what was recognised ---- */

static void sections(const adopt *a, const char *folder, sd_text *out)
{
    for (uint32_t set = 0; set < 2 && a->n[set]; set++) {
        sd_text_printf(out, "[dataset.%s]\nplugin = %s\n", !a->n[VAL] ? "all" : set ? "val" : "train", a->layout);
        for (uint32_t i = 0; i < a->n[set]; i++) {
            const pair *p = &a->pairs[set][i];
            char value[2 * PATH_MAX];
            snprintf(value, sizeof value, "%s%s%s", p->path ? folder : "", p->path && *p->value ? "/" : "", p->value);
            sd_layout_ini_value(out, p->key, value);
        }
    }
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void close_sets(adopt *a)
{
    for (uint32_t i = 0; i < 2; i++) {
        sd_split_close(&a->set[i]);
        sd_config_close(a->cfg[i]);
        a->cfg[i] = NULL;
    }
}

static sodet_status open_set(adopt *a, uint32_t set, const char *const *names, uint32_t n, const char *rules, sodet_err *err)
{
    sd_text text = {0};
    sd_text_printf(&text, "[run]\nname = adopt\n[data]\nbad_files = skip\n%strain = %s\nval = %s\n", rules, a->n[VAL] ? "train" : "all",
                   a->n[VAL] ? "val" : "all");
    sections(a, a->folder, &text);
    sodet_status status = text.failed ? SODET_FAIL(err, SODET_E_MEMORY, "no memory")
                                      : sd_config_open_text(text.text, text.length, "what was found", NULL, NULL, 0, &a->cfg[set], err);
    if (status == SODET_OK)
        status = sd_split_open(a->cfg[set], set == VAL ? SD_SPLIT_VAL : SD_SPLIT_TRAIN, names, n, &a->set[set], err);
    sd_text_free(&text);
    return status;
}

/* A set that knows no names gets those that its objects bear, in the order of their bytes. */
static sodet_status gather_names(adopt *a, sodet_err *err)
{
    static const char *const none[] = {"\x01"};
    sodet_status status = SODET_OK;
    uint64_t capacity = 0;
    const char **names = NULL;
    uint32_t n = 0, kept = 0;
    for (uint32_t set = TRAIN; set <= VAL && a->n[set] && status == SODET_OK; set++) {
        status = open_set(a, set, none, 1, "unknown_class = skip\n", err);
        const sd_census *c = status == SODET_OK ? sd_dataset_census(a->set[set].dataset) : NULL;
        if (c)
            status = sd_grow(&names, &capacity, n + c->n_unknown + 1, sizeof *names, err);
        for (uint32_t i = 0; c && i < c->n_unknown && status == SODET_OK; i++) {
            names[n] = sd_pool_strdup(&a->pool, c->unknown[i].name);
            status = names[n++] ? status : SODET_FAIL(err, SODET_E_MEMORY, "no memory for the names of classes");
        }
    }
    if (status == SODET_OK && !n)
        status = SODET_FAIL(err, SODET_E_INVALID, "no annotation holds an object");
    if (status == SODET_OK && (a->names = sd_pool_alloc(&a->pool, n * sizeof *a->names))) {
        qsort(names, n, sizeof *names, by_text);
        for (uint32_t i = 0; i < n; i++) {
            if (!kept || strcmp(names[i], a->names[kept - 1]) != 0)
                a->names[kept++] = names[i];
        }
    }
    a->n_names = kept;
    sd_free(names);
    close_sets(a);
    return status;
}

static sodet_status open_sets(adopt *a, sodet_err *err)
{
    sodet_status status = strcmp(a->layout, "voc") == 0 ? gather_names(a, err) : SODET_OK;
    if (status == SODET_OK)
        status = open_set(a, TRAIN, a->names, a->n_names, "", err);
    if (status == SODET_OK && a->n[VAL]) {
        const sd_classes *c = sd_dataset_classes(a->set[TRAIN].dataset);
        status = open_set(a, VAL, c->names, c->n, "", err);
    }
    return status;
}

static const struct layout {
    const char *name, *needs;
    bool (*look)(adopt *);
} layouts[] = {{"voc", "no .xml", voc},
               {"coco", "no .json with images, annotations and categories", coco},
               {"yolo", "no .txt", yolo},
               {"csv", "no .csv with path, x1, y1, x2, y2, class", csv}};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

/* NULL if the folder is that; else why it is not. */
static const char *reads_as(adopt *a, const struct layout *l, sodet_err *err)
{
    a->layout = l->name;
    a->n[0] = a->n[1] = 0;
    a->n_names = 0;
    a->names = NULL;
    a->refused[0] = 0;
    *err = (sodet_err)SODET_ERR_INIT;
    if (!l->look(a))
        return *a->refused ? a->refused : l->needs;
    if (open_sets(a, err) == SODET_OK)
        return NULL;
    close_sets(a);
    return err->text;
}

/* What else the folder could be taken for: nobody should train on labels that he did not mean. */
static void tell_others(adopt *a, const struct layout *chosen)
{
    for (const struct layout *l = layouts; l < layouts + N_LAYOUTS; l++) {
        adopt other = {0};
        sodet_err local;
        snprintf(other.folder, sizeof other.folder, "%s", a->folder);
        snprintf(other.shown, sizeof other.shown, "%s", a->shown);
        bool reads = l != chosen && !reads_as(&other, l, &local);
        uint64_t images = 0, objects = 0;
        for (uint32_t i = 0; i < 2 && reads; i++) {
            const sd_census *c = other.set[i].dataset ? sd_dataset_census(other.set[i].dataset) : NULL;
            images += c ? c->images : 0;
            objects += c ? c->objects : 0;
        }
        if (reads)
            sd_text_printf(&a->report, "  it could also be read as %s: %llu images, %llu objects; --layout %s takes that\n", l->name,
                           (unsigned long long)images, (unsigned long long)objects, l->name);
        close_sets(&other);
        sd_pool_clear(&other.pool);
    }
}

static sodet_status recognise(adopt *a, const char *only, const struct layout **chosen, sodet_err *err)
{
    char why[400 + 300] = "", names[100] = "";
    bool known = !only;
    for (const struct layout *l = layouts; l < layouts + N_LAYOUTS; l++) {
        known = known || strcmp(only, l->name) == 0;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", l->name);
    }
    if (!known)
        return SODET_FAIL(err, SODET_E_INVALID, "data adopt: --layout %s: expected one of %s", only, names);
    for (const struct layout *l = layouts; l < layouts + N_LAYOUTS; l++) {
        sodet_err local;
        if (only && strcmp(only, l->name) != 0)
            continue;
        const char *wrong = reads_as(a, l, &local);
        *chosen = l;
        if (!wrong)
            return SODET_OK;
        snprintf(why + strlen(why), sizeof why - strlen(why), "; %s: %.150s", l->name, wrong);
    }
    sodet_lines *pictures = NULL;
    sodet_status status = sodet_lines_of_folder(a->folder, NULL, &pictures, err);
    if (status == SODET_OK)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: %llu pictures, but no layout is recognised%s", a->shown,
                            (unsigned long long)sodet_lines_count(pictures), why);
    sodet_lines_free(pictures);
    return status;
}

/* ---- the split ---- */

typedef struct content {
    uint64_t key, item;
} content;

static int by_key(const void *x, const void *y)
{
    uint64_t a = ((const content *)x)->key, b = ((const content *)y)->key;
    return a < b ? -1 : a > b;
}

/* One line a sample; pictures with the same bytes stay on one side. */
static sodet_status split(adopt *a, double share, uint64_t seed, const char *const list[2], sodet_err *err)
{
    const sd_dataset *d = a->set[WHOLE].dataset;
    uint64_t n = sd_dataset_size(d), n_val = (uint64_t)llround(share * (double)n);
    content *c = sd_alloc(n, sizeof *c);
    uint8_t *val = sd_alloc(n, 1);
    sodet_sample *s = NULL;
    sd_text text[2] = {{0}, {0}};
    sodet_status status = !c || !val ? SODET_FAIL(err, SODET_E_MEMORY, "no memory for a split of %llu pictures", (unsigned long long)n)
                          : n < 2
                              ? SODET_FAIL(err, SODET_E_INVALID, "%s: one picture cannot be split into training and validation", a->shown)
                              : sd_sample_new(d, &s, err);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++) {
        char *bytes = NULL;
        uint64_t length = 0;
        status = sd_dataset_locate(d, i, s, err);
        if (status == SODET_OK)
            status = sd_file_read(s->path.text, 0, &bytes, &length, err);
        if (status == SODET_OK)
            c[i] = (content){sd_mix64(sd_fnv1a64(bytes, length, SD_FNV_START) ^ sd_mix64(seed)), i};
        sd_free(bytes);
    }
    if (status == SODET_OK) {
        qsort(c, n, sizeof *c, by_key);
        n_val = n_val < 1 ? 1 : n_val > n - 1 ? n - 1 : n_val;
        while (n_val < n && c[n_val].key == c[n_val - 1].key)
            n_val++;
        if (n_val == n)
            status = SODET_FAIL(err, SODET_E_INVALID, "%s: all pictures are the same, which cannot be split", a->shown);
        for (uint64_t i = 0; i < n_val; i++)
            val[c[i].item] = 1;
        for (uint64_t i = 0; i < n; i++)
            sd_text_printf(&text[val[i]], "%s\n", sd_dataset_item(d, i)->id);
    }
    for (uint32_t i = 0; i < 2 && status == SODET_OK; i++)
        status = text[i].failed ? SODET_FAIL(err, SODET_E_MEMORY, "no memory for %s", list[i])
                                : sd_file_write_atomic(list[i], text[i].text, text[i].length, err);
    if (status == SODET_OK)
        sd_text_printf(&a->report, "  no split was there: %llu to train, %llu to validate, by the pictures' content, seed %llu (%s, %s)\n",
                       (unsigned long long)(n - n_val), (unsigned long long)n_val, (unsigned long long)seed, list[TRAIN], list[VAL]);
    sd_text_free(&text[0]);
    sd_text_free(&text[1]);
    sd_sample_free(s);
    sd_free(c);
    sd_free(val);
    return status;
}

/* ---- the detector ---- */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static sodet_status measure(adopt *a, sodet_err *err)
{
    const sd_dataset *d = a->set[TRAIN].dataset;
    uint64_t n = sd_dataset_size(d);
    double *sides = sd_alloc(n + 1, sizeof *sides);
    sodet_sample *s = NULL;
    sodet_status status = sides ? sd_sample_new(d, &s, err) : SODET_FAIL(err, SODET_E_MEMORY, "no memory");
    for (uint64_t i = 0; i < n && status == SODET_OK; i++) {
        uint32_t w, h, orientation;
        status = sd_dataset_locate(d, i, s, err);
        w = s->width;
        h = s->height;
        if (status == SODET_OK && (!w || !h))
            status = sodet_picture_size(s->path.text, &w, &h, &orientation, err);
        if (status == SODET_OK)
            status = sd_grow(&a->scales, &a->scales_capacity, a->n_scales + s->n_objects + 1, sizeof *a->scales, err);
        for (uint64_t k = 0; k < s->n_objects && status == SODET_OK; k++) {
            const sodet_box *b = &s->objects[k].box;
            a->scales[a->n_scales++] = sqrt((double)(b->x2 - b->x1) * (double)(b->y2 - b->y1) / ((double)w * h));
        }
        sides[i] = w > h ? w : h;
    }
    if (status == SODET_OK && !a->n_scales)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: no picture has an object, so there is nothing to learn", a->shown);
    if (status == SODET_OK) {
        qsort(sides, n, sizeof *sides, by_value);
        qsort(a->scales, a->n_scales, sizeof *a->scales, by_value);
        a->side = (uint32_t)sides[n / 2];
    }
    sd_free(sides);
    sd_sample_free(s);
    return status;
}

/* The tenth of the objects that is smallest should have 16 pixels, two cells of TinySSD's finest map; 256 is what its authors take, 512 what a
 * processor trains in bearable time; more than the pictures have is of no use. Multiples of 64: its maps halve six times. */
static uint32_t input_side(const adopt *a)
{
    double small = a->scales[a->n_scales / 10];
    uint32_t most = (a->side + 63) / 64 * 64, side = 256;
    while (side < 512 && small * side < 16)
        side += 64;
    side = side > most ? most : side;
    return side < 128 ? 128 : side;
}

static double clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static void detector(const adopt *a, uint64_t n_train, sd_text *out)
{
    enum { LEVELS = 5, PICTURES = 64000 }; /* seen in a run: what the quickstart sees */
    double lo = clamp(a->scales[a->n_scales / 20], 0.03, 0.4), hi = clamp(a->scales[a->n_scales - 1 - a->n_scales / 20], lo * 2, 0.9);
    double ratio = pow(hi / lo, 1.0 / (LEVELS - 1)), size = lo;
    uint32_t side = input_side(a), epochs = (uint32_t)clamp((double)PICTURES / (double)n_train, 8, 200);
    sd_text_printf(out, "[input]\nsize = %ux%u\nmean = 127.5, 127.5, 127.5\nstd = 64, 64, 64\n", side, side);
    sd_text_printf(out, "[backbone]\nplugin = tinyssd\nvariant = d2l\n[neck]\nplugin = none\n[head]\nplugin = ssd\nsize_unit = fraction\n"
                        "; from the smallest to the largest twentieth of the boxes\nsizes =");
    for (uint32_t i = 0; i < LEVELS; i++)
        sd_text_printf(out, " %.3f", lo * pow(ratio, i));
    sd_text_printf(out, "\nsecond_sizes =");
    for (uint32_t i = 0; i < LEVELS; i++, size *= ratio)
        sd_text_printf(out, " %.3f", clamp(size * sqrt(ratio), 0, 0.98));
    sd_text_printf(
        out, "\nratios = 2\nper_cell = 4\n[loss]\nplugin = multibox\n[transform]\ntrain = hflip, photometric, resize\nval = resize\n");
    sd_text_printf(out, "[eval]\nevaluators = voc\nevery = %u\n[evaluator.voc]\nplugin = voc\n", epochs >= 20 ? epochs / 10 : 1);
    sd_text_printf(out, "[optimizer]\ntype = sgd\nlr = 0.02\nmomentum = 0.9\nweight_decay = 5e-4\nclip_norm = 10\n");
    sd_text_printf(out,
                   "[schedule]\ntype = cosine\nunit = epochs\ntotal = %u\nwarmup = linear\nwarmup_iterations = 100\nwarmup_factor = 0.01\n",
                   epochs);
    sd_text_printf(out, "[train]\nbatch = %u\ninit = he_fan_in\n", n_train >= 64 ? 32 : n_train >= 8 ? 8 : 1);
}

static sodet_status write_ini(adopt *a, const char *const list[2], sodet_err *err)
{
    sd_text ini = {0}, names = {0};
    const sd_dataset *d = a->set[TRAIN].dataset;
    const sd_classes *classes = sd_dataset_classes(d);
    const sd_census *c = sd_dataset_census(d), *v = a->n[VAL] ? sd_dataset_census(a->set[VAL].dataset) : NULL;
    const char *slash = strrchr(a->ini, '/'), *stem = slash ? slash + 1 : a->ini, *file;
    uint64_t skipped = c->skipped + (v ? v->skipped : 0);
    bool needs_file;
    sodet_status status = SODET_OK;
    file = sd_pool_printf(&a->pool, "%.*s-names.txt", (int)strlen(a->ini) - 4, a->ini);
    sd_text_printf(&ini, "; %s, layout %s: %llu pictures, %llu objects\n", a->shown, a->layout,
                   (unsigned long long)(c->images + (v ? v->images : 0)), (unsigned long long)(c->objects + (v ? v->objects : 0)));
    for (uint32_t k = 0; k < classes->n; k++) {
        sd_text_printf(&ini, ";   %-20s %llu\n", classes->names[k], (unsigned long long)(c->per_class[k] + (v ? v->per_class[k] : 0)));
        sd_text_printf(&names, "%s\n", classes->names[k]);
    }
    sd_text_printf(&ini, "[run]\nname = %.*s\nseed = 1\n[data]\n", (int)strlen(stem) - 4, stem);
    sd_text_printf(&ini, "train = %s\nval = %s\n", v ? "train" : "all", v ? "val" : "all");
    for (uint32_t i = 0; i < 2 && !v; i++) {
        const char *last = strrchr(list[i], '/');
        sd_layout_ini_value(&ini, i ? "val_list" : "train_list", last ? last + 1 : list[i]);
    }
    if (skipped)
        sd_text_printf(&ini, "; %llu could not be read\nbad_files = skip\n", (unsigned long long)skipped);
    sd_layout_classes(&ini, classes, file && strrchr(file, '/') ? strrchr(file, '/') + 1 : file ? file : "", &needs_file);
    sections(a, a->shown, &ini);
    detector(a, c->images, &ini);
    if (!file || ini.failed || names.failed)
        status = SODET_FAIL(err, SODET_E_MEMORY, "no memory for %s", a->ini);
    if (status == SODET_OK && needs_file)
        status = sd_file_write_atomic(file, names.text, names.length, err);
    if (status == SODET_OK)
        status = sd_file_write_atomic(a->ini, ini.text, ini.length, err);
    sd_text_free(&ini);
    sd_text_free(&names);
    return status;
}

static void tell_found(adopt *a)
{
    sd_text_printf(&a->report, "%s: layout %s\n", a->shown, a->layout);
    for (uint32_t i = 0; i < 2; i++) {
        if (!a->set[i].dataset)
            continue;
        if (a->n[VAL])
            sd_text_printf(&a->report, " %s:\n", i ? "validation" : "training");
        sd_dataset_report(a->set[i].dataset, &a->report);
    }
}

sodet_status sd_data_adopt(sd_cli *cli, sodet_err *err)
{
    const char *folder = cli->files[1];
    adopt a = {0};
    const char *share_text = sd_cli_flag(cli, "--share"), *only = sd_cli_flag(cli, "--layout"), *ini = sd_cli_flag(cli, "--output");
    const struct layout *layout = NULL;
    double share = 0.2;
    uint64_t seed;
    if (share_text && (!sd_parse_double(share_text, &share) || share <= 0 || share >= 1))
        return SODET_FAIL(err, SODET_E_INVALID, "data adopt: --share %s: a number between 0 and 1 is expected, the part to validate with",
                          share_text);
    sodet_status status = sd_cli_flag_uint(cli, "--split-seed", 0, 1, &seed, err);
    if (status != SODET_OK)
        return status;
    if (!sodet_is_folder(folder) || !realpath(folder, a.folder))
        return SODET_FAIL(err, SODET_E_IO, "data adopt: %s: no such folder; name one that holds pictures and labels", folder);
    const char *base = strrchr(a.folder, '/') + 1;
    a.ini = ini ? ini : sd_pool_printf(&a.pool, "%s.ini", *base ? base : "data");
    size_t length = a.ini ? strlen(a.ini) : 0;
    if (length < 5 || strcmp(a.ini + length - 4, ".ini") != 0)
        return SODET_FAIL(err, SODET_E_INVALID, "data adopt: --output %s: the name of a file x.ini is expected", a.ini ? a.ini : "");
    /* Relative paths of an INI are relative to its folder, which is ours where it has none. */
    snprintf(a.shown, sizeof a.shown, "%s", folder[0] == '/' || folder[0] == '~' || strchr(a.ini, '/') ? a.folder : folder);
    for (size_t n = strlen(a.shown); n > 1 && a.shown[n - 1] == '/'; n--)
        a.shown[n - 1] = 0;
    const char *const list[2] = {sd_pool_printf(&a.pool, "%.*s-train.txt", (int)length - 4, a.ini),
                                 sd_pool_printf(&a.pool, "%.*s-val.txt", (int)length - 4, a.ini)};
    if (!list[0] || !list[1])
        status = SODET_FAIL(err, SODET_E_MEMORY, "data adopt: no memory");
    for (uint32_t i = 0; i < 3 && status == SODET_OK; i++) {
        const char *name = i < 2 ? list[i] : a.ini;
        if (sd_path_exists(name))
            status = SODET_FAIL(err, SODET_E_INVALID, "data adopt: %s is there already; remove it, or name another by --output", name);
    }
    if (status == SODET_OK)
        status = recognise(&a, only, &layout, err);
    cli->started = status == SODET_OK;
    if (status == SODET_OK) {
        tell_found(&a);
        if (!only)
            tell_others(&a, layout);
        status = measure(&a, err);
    }
    if (status == SODET_OK && !a.n[VAL])
        status = split(&a, share, seed, list, err);
    if (status == SODET_OK)
        status = write_ini(&a, list, err);
    if (status == SODET_OK)
        sd_text_printf(&a.report, "  %s trains TinySSD at %ux%u: sodet data check %s, then sodet train %s\n", a.ini, input_side(&a),
                       input_side(&a), a.ini, a.ini);
    if (status == SODET_OK)
        status = sd_cli_say(&a.report, err);
    close_sets(&a);
    sd_free(a.scales);
    sd_text_free(&a.report);
    sd_pool_clear(&a.pool);
    return status;
}
