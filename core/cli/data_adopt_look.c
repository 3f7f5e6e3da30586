/* sodet data adopt: what a folder of pictures and labels is. A layout is recognised when its plugin can open it; what the plugins say is what
 * is refused with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/cli/data_adopt.h"
#include "core/data/layout.h"
#include "core/data/sample.h"
#include "sodet/coco.h"
#include "sodet/files.h"

static void add(sd_adopt *a, uint32_t set, const char *key, const char *value, bool path)
{
    a->pairs[set][a->n[set]++] = (sd_adopt_pair){key, sd_pool_strdup(&a->pool, value), path};
}

static bool there(const sd_adopt *a, const char *name)
{
    char path[3 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", a->folder, name);
    return sd_path_exists(path);
}

/* ---- layouts: which options their plugin would need; false: there is nothing of the kind ---- */

static const char *const val_names[] = {"val", "valid", "validation", "test"};
enum { N_VAL = sizeof val_names / sizeof *val_names };

/* CVAT's own: one file about all pictures. */
static bool is_cvat(sd_adopt *a, const char *name)
{
    enum { MOST = 1 << 30 };
    char path[PATH_MAX + 300], *text = NULL;
    const char *slash = strrchr(name, '/');
    uint64_t n;
    snprintf(path, sizeof path, "%s/%s", a->folder, name);
    bool is = strcmp(slash ? slash + 1 : name, "annotations.xml") == 0 && sd_file_read(path, MOST, &text, &n, NULL) == SODET_OK &&
              strstr(text, "<annotations>");
    sd_free(text);
    if (is)
        snprintf(a->refused, sizeof a->refused, "%.80s is CVAT's own format, which is not read; export as PASCAL VOC, COCO or YOLO", name);
    return is;
}

static bool voc(sd_adopt *a)
{
    char name[PATH_MAX];
    sodet_lines *xml = NULL;
    if (sodet_lines_of_folder(a->folder, ".xml", &xml, NULL) != SODET_OK || sodet_lines_count(xml) == 0 ||
        (sodet_lines_count(xml) == 1 && is_cvat(a, sodet_lines_at(xml, 0)))) {
        sodet_lines_free(xml);
        return false;
    }
    static const char *const lists[][2] = {{"train", "val"}, {"trainval", "test"}, {"train", "test"}};
    for (uint32_t i = 0; i < 3 && !a->n[SD_ADOPT_TRAIN]; i++) {
        char other[100];
        snprintf(name, sizeof name, "ImageSets/Main/%s.txt", lists[i][0]);
        snprintf(other, sizeof other, "ImageSets/Main/%s.txt", lists[i][1]);
        for (uint32_t k = 0; k < 2 && there(a, name) && there(a, other); k++) {
            add(a, k, "root", "", true);
            add(a, k, "split", lists[i][k], false);
        }
    }
    if (a->n[SD_ADOPT_TRAIN] && strcmp(a->pairs[SD_ADOPT_VAL][1].value, "test") != 0 && there(a, "ImageSets/Main/test.txt")) {
        add(a, SD_ADOPT_TEST, "root", "", true);
        add(a, SD_ADOPT_TEST, "split", "test", false);
    }
    const char *first = sodet_lines_at(xml, 0), *slash = strrchr(first, '/');
    for (uint32_t i = 0; i < N_VAL && !a->n[SD_ADOPT_TRAIN]; i++) { /* train/ and valid/, pictures and .xml side by side */
        snprintf(name, sizeof name, "%s/", val_names[i]);
        bool train = false, val = false, test = false;
        for (uint64_t k = 0; k < sodet_lines_count(xml); k++) {
            train = train || strncmp(sodet_lines_at(xml, k), "train/", 6) == 0;
            val = val || strncmp(sodet_lines_at(xml, k), name, strlen(name)) == 0;
            test = test || strncmp(sodet_lines_at(xml, k), "test/", 5) == 0;
        }
        if (train && val) {
            add(a, SD_ADOPT_TRAIN, "root", "train", true);
            add(a, SD_ADOPT_VAL, "root", val_names[i], true);
        }
        if (train && val && test && i + 1 < N_VAL)
            add(a, SD_ADOPT_TEST, "root", "test", true);
    }
    if (!a->n[SD_ADOPT_TRAIN]) {
        add(a, SD_ADOPT_WHOLE, "root", "", true);
        snprintf(name, sizeof name, "%.*s", slash ? (int)(slash - first) : 0, first);
        if (*name && !there(a, "Annotations"))
            add(a, SD_ADOPT_WHOLE, "annotations", name, false);
    }
    sodet_lines_free(xml);
    return true;
}

/* File names are relative to the JSON's own folder, or to one of the usual ones; CVAT's instances_default.json to images/default. The first
 * picture that is there decides. */
static void coco_set(sd_adopt *a, uint32_t set, const char *json, const sodet_coco *c)
{
    enum { TRIED = 1000 };
    char own_subset[300] = "", own[3 * PATH_MAX];
    const char *usual[] = {
        own_subset,     "",           "images",           "JPEGImages",    "train", "val", "valid", "test", "train2017", "val2017",
        "images/train", "images/val", "images/train2017", "images/val2017"};
    sodet_sample s;
    const char *slash = strrchr(json, '/'), *file = slash ? slash + 1 : json, *under = strchr(file, '_'), *found = NULL;
    const int within = slash ? (int)(slash - json + 1) : 0;
    uint64_t n = sodet_coco_size(c) < TRIED ? sodet_coco_size(c) : TRIED;
    bool decided = false;
    snprintf(own, sizeof own, "%s/%.*s", a->folder, within < PATH_MAX ? within : PATH_MAX, json);
    add(a, set, "annotations", json, true);
    if (under)
        snprintf(own_subset, sizeof own_subset, "images/%.*s", (int)strcspn(under + 1, "."), under + 1);
    memset(&s, 0, sizeof s);
    for (uint64_t i = 0; i < n && !decided; i++) {
        sodet_err local = SODET_ERR_INIT;
        if (sodet_coco_pixels(c, i, &s, &local) != SODET_OK || !s.path.text)
            continue;
        decided = sd_path_exists(s.path.text);
        const char *name = strncmp(s.path.text, own, strlen(own) - 1) == 0 ? s.path.text + strlen(own) - 1 : NULL;
        while (name && *name == '/')
            name++;
        for (uint32_t k = 0; k < sizeof usual / sizeof *usual && name && !decided; k++) {
            char tried[2 * PATH_MAX];
            snprintf(tried, sizeof tried, "%s%s%s", usual[k], *usual[k] ? "/" : "", name);
            decided = there(a, tried);
            found = decided ? usual[k] : NULL;
        }
    }
    if (found)
        add(a, set, "pictures", found, true);
    sd_sample_clear(&s);
}

typedef struct candidate { /* for one of the sets */
    const char *name;
    sodet_coco *open; /* NULL: it cannot be read */
    bool meant;       /* as COCO's, though it cannot be read */
    char why[500];
} candidate;

static bool is_json(const char *text, uint64_t n)
{
    sd_json j;
    sodet_err local = SODET_ERR_INIT;
    sd_json_open(&j, "", text, n, &local);
    sd_json_skip(&j);
    return sd_json_close(&j) == SODET_OK;
}

/* A .json may be anything. Meant as COCO's is what is called as the tools call it, what has all three lists, and what is cut off or damaged
 * but speaks of them. *whole: it is JSON. */
static bool meant_as_coco(const char *path, bool *whole)
{
    enum { MOST = 1 << 26 };
    static const char *const keys[] = {"\"images\"", "\"annotations\"", "\"categories\""};
    const char *file = strrchr(path, '/') + 1, *ending = strstr(file, ".coco.json");
    char *text = NULL;
    uint64_t n;
    uint32_t spoken = 0;
    bool named = strncmp(file, "instances_", 10) == 0 || (ending && !ending[10]);
    *whole = false;
    if (sd_file_read(path, MOST, &text, &n, NULL) != SODET_OK)
        return true;
    for (uint32_t i = 0; i < 3; i++)
        spoken += strstr(text, keys[i]) != NULL;
    *whole = is_json(text, n);
    sd_free(text);
    return named || (*whole ? spoken == 3 : spoken > 0);
}

/* By its file's name, or by its folder's (Roboflow: train/_annotations.coco.json). SD_ADOPT_SETS: neither says. */
static uint32_t set_of(const char *name)
{
    const char *last = strrchr(name, '/'), *file = last ? last : name;
    static const uint32_t sets[N_VAL] = {SD_ADOPT_VAL, SD_ADOPT_VAL, SD_ADOPT_VAL, SD_ADOPT_TEST};
    if (strstr(file, "train"))
        return SD_ADOPT_TRAIN;
    for (uint32_t k = 0; k < N_VAL; k++) {
        if (strstr(file, val_names[k]))
            return sets[k];
    }
    if (last && strncmp(name, "train/", 6) == 0)
        return SD_ADOPT_TRAIN;
    for (uint32_t k = 0; k < N_VAL && last; k++) {
        if (strncmp(name, val_names[k], strlen(val_names[k])) == 0)
            return sets[k];
    }
    return SD_ADOPT_SETS;
}

/* The first file of each set that reads, or is meant to. */
static void look_at_json(sd_adopt *a, const char *name, candidate of[SD_ADOPT_SETS + 1])
{
    char path[PATH_MAX + 300];
    candidate *c = &of[set_of(name)];
    sodet_coco *open = NULL;
    sodet_err local = SODET_ERR_INIT;
    bool whole, meant = false;
    if (c->open || c->meant)
        return;
    snprintf(path, sizeof path, "%s/%s", a->folder, name);
    if (sodet_coco_open(path, NULL, &open, &local) != SODET_OK) {
        meant = meant_as_coco(path, &whole);
        if (whole && !meant) /* something else */
            return;
        if (c->name && !meant)
            return;
    }
    c->name = name;
    c->open = open;
    c->meant = meant;
    snprintf(c->why, sizeof c->why, "%s", local.text);
}

/* False: the set's file cannot be read. */
static bool take_json(sd_adopt *a, uint32_t set, const candidate *c)
{
    if (c->open) {
        coco_set(a, set, c->name, c->open);
        return true;
    }
    snprintf(a->refused, sizeof a->refused, "%s", c->why);
    return false;
}

static bool coco(sd_adopt *a)
{
    sodet_lines *files = NULL;
    candidate of[SD_ADOPT_SETS + 1] = {0}, *whole = &of[SD_ADOPT_SETS];
    bool any = false;
    if (sodet_lines_of_folder(a->folder, ".json", &files, NULL) != SODET_OK)
        return false;
    for (uint64_t i = 0; i < sodet_lines_count(files); i++)
        look_at_json(a, sodet_lines_at(files, i), of);
    for (uint32_t i = 0; i <= SD_ADOPT_SETS; i++)
        any = any || of[i].open || of[i].meant;
    for (uint32_t i = 0; i <= SD_ADOPT_SETS; i++) { /* what is no JSON and called nothing is no label's; without any label nothing is */
        if (of[i].open || of[i].meant || (any && i < SD_ADOPT_SETS))
            continue;
        if (!any && of[i].name)
            snprintf(a->refused, sizeof a->refused, "%s", of[i].why);
        of[i].name = NULL;
    }
    candidate *train = &of[SD_ADOPT_TRAIN], *val = of[SD_ADOPT_VAL].name ? &of[SD_ADOPT_VAL] : &of[SD_ADOPT_TEST];
    bool used[SD_ADOPT_SETS + 1] = {false}, good = true;
    if (train->name && val->name) {
        used[train - of] = used[val - of] = true;
        good = take_json(a, SD_ADOPT_TRAIN, train) && take_json(a, SD_ADOPT_VAL, val);
    } else if (train->name || val->name || whole->name) {
        const candidate *only = train->name ? train : whole->name ? whole : val;
        used[only - of] = true;
        good = take_json(a, SD_ADOPT_WHOLE, only);
    }
    if (good && of[SD_ADOPT_TEST].name && !used[SD_ADOPT_TEST])
        add(a, SD_ADOPT_TEST, "annotations", of[SD_ADOPT_TEST].name, true);
    for (uint32_t i = 0; i <= SD_ADOPT_SETS; i++) {
        if (good && of[i].name && !used[i] && i != SD_ADOPT_TEST)
            sd_log(SD_LOG_WARN, "left out: %s/%s%s%s", a->shown, of[i].name, of[i].open ? "" : ": ", of[i].why);
        sodet_coco_close(of[i].open);
    }
    sodet_lines_free(files);
    a->damaged = !good;
    return !good || a->n[SD_ADOPT_WHOLE] > 0;
}

static bool yolo_split(const sd_adopt *a, const char *split)
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

static bool yolo(sd_adopt *a)
{
    sodet_lines *files = NULL;
    bool any = sodet_lines_of_folder(a->folder, ".txt", &files, NULL) == SODET_OK && sodet_lines_count(files) > 0;
    sodet_lines_free(files);
    if (!any)
        return false;
    add(a, SD_ADOPT_TRAIN, "root", "", true);
    for (uint32_t i = 0; i < N_VAL && yolo_split(a, "train") && !a->n[SD_ADOPT_VAL]; i++) {
        if (!yolo_split(a, val_names[i]))
            continue;
        add(a, SD_ADOPT_TRAIN, "split", "train", false);
        add(a, SD_ADOPT_VAL, "root", "", true);
        add(a, SD_ADOPT_VAL, "split", val_names[i], false);
        if (i + 1 < N_VAL && yolo_split(a, "test")) {
            add(a, SD_ADOPT_TEST, "root", "", true);
            add(a, SD_ADOPT_TEST, "split", "test", false);
        }
    }
    return true;
}

/* Options for a header whose names are known; false: neither that nor numbers where a file without header has them. */
static bool csv_header(sd_adopt *a, uint32_t set, const char *file)
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

static bool csv(sd_adopt *a)
{
    sodet_lines *files = NULL;
    const char *of[SD_ADOPT_SETS] = {NULL};
    if (sodet_lines_of_folder(a->folder, ".csv", &files, NULL) != SODET_OK)
        return false;
    for (uint64_t i = 0; i < sodet_lines_count(files); i++) {
        const char *name = sodet_lines_at(files, i);
        uint32_t set = SD_ADOPT_TRAIN;
        for (uint32_t k = 0; k < N_VAL; k++) {
            if (strncmp(name, val_names[k], strlen(val_names[k])) == 0)
                set = k + 1 < N_VAL ? SD_ADOPT_VAL : SD_ADOPT_TEST;
        }
        if (strcmp(name, "classes.csv") != 0 && (!of[set] || (set == SD_ADOPT_TRAIN && strstr(name, "train"))))
            of[set] = name;
    }
    if (!of[SD_ADOPT_VAL]) {
        of[SD_ADOPT_VAL] = of[SD_ADOPT_TEST];
        of[SD_ADOPT_TEST] = NULL;
    }
    bool train = of[SD_ADOPT_TRAIN] && csv_header(a, SD_ADOPT_TRAIN, of[SD_ADOPT_TRAIN]),
         val = of[SD_ADOPT_VAL] && csv_header(a, of[SD_ADOPT_TRAIN] ? SD_ADOPT_VAL : SD_ADOPT_WHOLE, of[SD_ADOPT_VAL]);
    /* Without the one the other would be taken for the whole; but only a file that is called so is meant as the training's. */
    a->damaged = train != val && of[SD_ADOPT_TRAIN] && of[SD_ADOPT_VAL] && (train || strstr(of[SD_ADOPT_TRAIN], "train"));
    if (a->damaged)
        snprintf(a->refused, sizeof a->refused, "%.200s/%.200s: has neither path,x1,y1,x2,y2,class nor a header that names these",
                 a->folder, of[train ? SD_ADOPT_VAL : SD_ADOPT_TRAIN]);
    if (val && !train && of[SD_ADOPT_TRAIN] && !a->damaged) { /* another .csv, of something else */
        a->n[SD_ADOPT_VAL] = 0;
        csv_header(a, SD_ADOPT_WHOLE, of[SD_ADOPT_VAL]);
    }
    if (of[SD_ADOPT_TEST] && (train || val) && !a->damaged)
        csv_header(a, SD_ADOPT_TEST, of[SD_ADOPT_TEST]);
    sodet_lines_free(files);
    return train || val;
}

/* ---- opening what was recognised ---- */

static const char *label_of(const sd_adopt *a, uint32_t set)
{
    static const char *const labels[SD_ADOPT_SETS] = {"train", "val", "test"};
    return set == SD_ADOPT_TEST || a->n[SD_ADOPT_VAL] ? labels[set] : "all";
}

void sd_adopt_sections(const sd_adopt *a, const char *folder, uint32_t n, sd_text *out)
{
    for (uint32_t set = 0; set < n; set++) {
        if (a->n[set])
            sd_text_printf(out, "[dataset.%s]\nplugin = %s\n", label_of(a, set), a->layout);
        for (uint32_t i = 0; i < a->n[set]; i++) {
            const sd_adopt_pair *p = &a->pairs[set][i];
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

void sd_adopt_close(sd_adopt *a)
{
    for (uint32_t i = 0; i < SD_ADOPT_SETS; i++) {
        sd_split_close(&a->set[i]);
        sd_config_close(a->cfg[i]);
        a->cfg[i] = NULL;
    }
}

static sodet_status open_set(sd_adopt *a, uint32_t set, const char *const *names, uint32_t n, const char *rules, sodet_err *err)
{
    sd_text text = {0};
    const char *label = label_of(a, set);
    const uint32_t which = set == SD_ADOPT_TRAIN ? SD_SPLIT_TRAIN : SD_SPLIT_VAL;
    sd_text_printf(&text, "[run]\nname = adopt\n[data]\n%strain = %s\nval = %s\n", rules, label, label);
    sd_adopt_sections(a, a->folder, SD_ADOPT_SETS, &text);
    sodet_status status = text.failed ? SODET_FAIL(err, SODET_E_MEMORY, "no memory")
                                      : sd_config_open_text(text.text, text.length, "what was found", NULL, NULL, 0, &a->cfg[set], err);
    if (status == SODET_OK) {
        sd_data_rules r = sd_recipe_rules(a->cfg[set], which);
        r.bad_file = SD_KEEP;
        status = sd_split_open_under(a->cfg[set], which, names, n, &r, &a->set[set], err);
    }
    const sd_census *c = status == SODET_OK ? sd_dataset_census(a->set[set].dataset) : NULL;
    if (c && !c->images)
        status = SODET_FAIL(err, SODET_E_INVALID, "none of %llu samples can be read; the first: %s", (unsigned long long)c->skipped,
                            c->first_skipped ? c->first_skipped : "");
    sd_text_free(&text);
    return status;
}

/* A set that knows no names gets those that its objects bear, in the order of their bytes. */
static sodet_status gather_names(sd_adopt *a, sodet_err *err)
{
    static const char *const none[] = {"\x01"};
    sodet_status status = SODET_OK;
    uint64_t capacity = 0;
    const char **names = NULL;
    uint32_t n = 0, kept = 0;
    for (uint32_t set = SD_ADOPT_TRAIN; set <= SD_ADOPT_VAL && a->n[set] && status == SODET_OK; set++) {
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
    sd_adopt_close(a);
    return status;
}

static sodet_status open_sets(sd_adopt *a, sodet_err *err)
{
    sodet_status status = strcmp(a->layout, "voc") == 0 ? gather_names(a, err) : SODET_OK;
    if (status == SODET_OK)
        status = open_set(a, SD_ADOPT_TRAIN, a->names, a->n_names, "", err);
    if (status == SODET_OK && a->n[SD_ADOPT_VAL]) {
        const sd_classes *c = sd_dataset_classes(a->set[SD_ADOPT_TRAIN].dataset);
        status = open_set(a, SD_ADOPT_VAL, c->names, c->n, "", err);
    }
    return status;
}

static const struct layout {
    const char *name, *needs;
    bool (*look)(sd_adopt *);
} layouts[] = {{"voc", "no .xml", voc},
               {"coco", "no .json with images, annotations and categories", coco},
               {"yolo", "no .txt", yolo},
               {"csv", "no .csv with path, x1, y1, x2, y2, class", csv}};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

/* NULL if the folder is that; else why it is not. */
static const char *reads_as(sd_adopt *a, const struct layout *l, sodet_err *err)
{
    a->layout = l->name;
    memset(a->n, 0, sizeof a->n);
    a->n_names = 0;
    a->names = NULL;
    a->refused[0] = 0;
    a->damaged = false;
    *err = (sodet_err)SODET_ERR_INIT;
    if (!l->look(a) || a->damaged)
        return *a->refused ? a->refused : l->needs;
    if (open_sets(a, err) == SODET_OK)
        return NULL;
    sd_adopt_close(a);
    return err->text;
}

void sd_adopt_tell_others(sd_adopt *a)
{
    for (const struct layout *l = layouts; l < layouts + N_LAYOUTS; l++) {
        sd_adopt other = {0};
        sodet_err local;
        if (strcmp(l->name, a->layout) == 0)
            continue;
        snprintf(other.folder, sizeof other.folder, "%s", a->folder);
        snprintf(other.shown, sizeof other.shown, "%s", a->shown);
        bool reads = !reads_as(&other, l, &local);
        uint64_t images = 0, objects = 0;
        for (uint32_t i = 0; i < 2 && reads; i++) {
            const sd_census *c = other.set[i].dataset ? sd_dataset_census(other.set[i].dataset) : NULL;
            images += c ? c->images : 0;
            objects += c ? c->objects : 0;
        }
        if (reads)
            sd_text_printf(&a->report, "  it could also be read as %s: %llu images, %llu objects; --layout %s takes that\n", l->name,
                           (unsigned long long)images, (unsigned long long)objects, l->name);
        else if (other.damaged)
            sd_text_printf(&a->report, "  there is something of %s, too, that cannot be read: %s\n", l->name, other.refused);
        sd_adopt_close(&other);
        sd_pool_clear(&other.pool);
    }
}

/* Name without its folders and its ending. */
static const char *stem_of(sd_pool *pool, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return sd_pool_printf(pool, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

/* Pictures of VOC's layout without an .xml are in no set: nobody would miss them. */
static void tell_unlabelled(sd_adopt *a)
{
    enum { SHOWN = 3 };
    sodet_lines *xml = NULL, *pictures = NULL;
    sd_text examples = {0};
    uint64_t n = 0, missing = 0;
    bool listed = sodet_lines_of_folder(a->folder, ".xml", &xml, NULL) == SODET_OK &&
                  sodet_lines_of_folder(a->folder, NULL, &pictures, NULL) == SODET_OK;
    const char **stems = listed ? sd_pool_alloc(&a->pool, (sodet_lines_count(xml) + 1) * sizeof *stems) : NULL;
    for (; stems && n < sodet_lines_count(xml); n++) {
        if (!(stems[n] = stem_of(&a->pool, sodet_lines_at(xml, n))))
            break;
    }
    a->report.failed = a->report.failed || !stems || n < sodet_lines_count(xml);
    if (n && n == sodet_lines_count(xml)) {
        qsort(stems, n, sizeof *stems, by_text);
        for (uint64_t i = 0; i < sodet_lines_count(pictures); i++) {
            const char *stem = stem_of(&a->pool, sodet_lines_at(pictures, i));
            a->report.failed = a->report.failed || !stem;
            if (!stem || bsearch(&stem, stems, n, sizeof *stems, by_text))
                continue;
            if (missing++ < SHOWN)
                sd_text_printf(&examples, "%s%s", missing > 1 ? ", " : "", sodet_lines_at(pictures, i));
        }
    }
    if (missing)
        sd_text_printf(&a->report, "  %llu picture%s no .xml and %s left out: %s%s\n", (unsigned long long)missing,
                       missing == 1 ? " has" : "s have", missing == 1 ? "is" : "are", examples.text ? examples.text : "",
                       missing > SHOWN ? ", ..." : "");
    sd_text_free(&examples);
    sodet_lines_free(xml);
    sodet_lines_free(pictures);
}

void sd_adopt_tell_unused(sd_adopt *a)
{
    if (strcmp(a->layout, "voc") == 0)
        tell_unlabelled(a);
    if (!a->n[SD_ADOPT_TEST])
        return;
    const sd_classes *c = sd_dataset_classes(a->set[SD_ADOPT_TRAIN].dataset);
    const sd_adopt_pair *p = a->pairs[SD_ADOPT_TEST];
    sodet_err local = SODET_ERR_INIT;
    p += a->n[SD_ADOPT_TEST] > 1 && strcmp(p[1].key, "split") == 0; /* by which it differs from the validation's */
    const char *folder = p->path ? a->shown : "", *slash = p->path ? "/" : "";
    if (open_set(a, SD_ADOPT_TEST, c->names, c->n, "unknown_class = skip\n", &local) == SODET_OK)
        sd_text_printf(&a->report, "  the test set is left out: %llu pictures; to evaluate on it: dataset.val.%s=%s%s%s\n",
                       (unsigned long long)sd_dataset_size(a->set[SD_ADOPT_TEST].dataset), p->key, folder, slash, p->value);
    else
        sd_text_printf(&a->report, "  the test set is left out (%s%s%s); it cannot be read: %s\n", folder, slash, p->value, local.text);
    a->report.failed = a->report.failed || local.code == SODET_E_MEMORY;
}

sodet_status sd_adopt_recognise(sd_adopt *a, const char *only, sodet_err *err)
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
        if (!wrong)
            return SODET_OK;
        if (a->damaged)
            return SODET_FAIL(err, SODET_E_INVALID, "%.350s; mend it, export it again, or remove it%s", wrong,
                              only ? "" : " (--layout reads the folder as something else)");
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
