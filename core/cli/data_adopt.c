/* sodet data adopt: looks at a folder of pictures and labels, and writes an INI that trains TinySSD on it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cli/data.h"
#include "core/cli/data_adopt.h"
#include "core/data/layout.h"
#include "core/data/sample.h"
#include "sodet/files.h"

/* ---- the split ---- */

typedef struct content {
    uint64_t key, item;
} content;

static content content_of(const void *bytes, uint64_t n, uint64_t item, uint64_t seed)
{
    return (content){sd_mix64(sd_fnv1a64(bytes, n, SD_FNV_START) ^ sd_mix64(seed)), item};
}

static int by_key(const void *x, const void *y)
{
    uint64_t a = ((const content *)x)->key, b = ((const content *)y)->key;
    return a < b ? -1 : a > b;
}

static int by_id(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Names that a list, which has one a line, cannot hold, or that are two samples'. */
static sodet_status listable(const sd_adopt *a, const sd_dataset *d, sodet_err *err)
{
    char shown[120];
    uint64_t n = sd_dataset_size(d);
    const char **ids = sd_alloc(n, sizeof *ids);
    sodet_status status =
        ids ? SODET_OK : SODET_FAIL(err, SODET_E_MEMORY, "no memory for the names of %llu pictures", (unsigned long long)n);
    for (uint64_t i = 0; i < n && status == SODET_OK; i++) {
        ids[i] = sd_dataset_item(d, i)->id;
        size_t length = strlen(ids[i]);
        bool blank = length && (strchr(" \t", ids[i][0]) || strchr(" \t", ids[i][length - 1]));
        if (!length || blank || strpbrk(ids[i], "\r\n"))
            status = SODET_FAIL(err, SODET_E_INVALID,
                                "%s: picture \"%s\": its name %s, which the lists of the split cannot hold; rename it, there and in its "
                                "annotation",
                                a->shown, sd_layout_shown(ids[i], shown), blank ? "begins or ends with a blank" : "holds a line break");
    }
    if (status == SODET_OK)
        qsort(ids, n, sizeof *ids, by_id);
    for (uint64_t i = 1; i < n && status == SODET_OK; i++) {
        if (strcmp(ids[i], ids[i - 1]) == 0)
            status =
                SODET_FAIL(err, SODET_E_INVALID,
                           "%s: picture \"%s\" is there twice, so that a list of the split would not say which is meant; make one entry "
                           "of the two, or name them differently",
                           a->shown, sd_layout_shown(ids[i], shown));
    }
    sd_free(ids);
    return status;
}

static sodet_status write_file(sd_adopt *a, const char *path, const sd_text *text, sodet_err *err)
{
    if (!path || text->failed)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for %s", path ? path : a->ini);
    sodet_status status = sd_file_write_atomic(path, text->text ? text->text : "", text->length, err);
    if (status == SODET_OK)
        a->written[a->n_written++] = path;
    return status;
}

/* One line a sample; pictures with the same bytes stay on one side. The share is one of those that can be read; the others go where their
 * key falls: to both sides alike. */
static sodet_status split(sd_adopt *a, double share, uint64_t seed, const char *const list[2], sodet_err *err)
{
    const sd_dataset *d = a->set[SD_ADOPT_WHOLE].dataset;
    uint64_t all = sd_dataset_size(d), n = 0, n_val, n_lost[2] = {0};
    content *c = sd_alloc(all, sizeof *c), *lost = sd_alloc(all, sizeof *lost);
    uint8_t *val = sd_alloc(all, 1);
    sodet_sample *s = NULL;
    sd_text text[2] = {{0}, {0}};
    sodet_status status = c && lost && val
                              ? listable(a, d, err)
                              : SODET_FAIL(err, SODET_E_MEMORY, "no memory for a split of %llu pictures", (unsigned long long)all);
    if (status == SODET_OK)
        status = sd_sample_new(d, &s, err);
    for (uint64_t i = 0, k = 0; i < all && status == SODET_OK; i++) {
        const char *id = sd_dataset_item(d, i)->id;
        char *bytes = NULL;
        uint64_t length = 0;
        if (a->lost[SD_ADOPT_WHOLE][i]) {
            lost[k++] = content_of(id, strlen(id), i, seed);
            continue;
        }
        status = sd_dataset_locate(d, i, s, err);
        if (status == SODET_OK)
            status = sd_file_read(s->path.text, 0, &bytes, &length, err);
        if (status == SODET_OK)
            c[n++] = content_of(bytes, length, i, seed);
        sd_free(bytes);
    }
    if (status == SODET_OK && n < 2)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: one picture cannot be split into training and validation", a->shown);
    if (status == SODET_OK) {
        qsort(c, n, sizeof *c, by_key);
        n_val = (uint64_t)llround(share * (double)n);
        n_val = n_val < 1 ? 1 : n_val > n - 1 ? n - 1 : n_val;
        while (n_val < n && c[n_val].key == c[n_val - 1].key)
            n_val++;
        if (n_val == n)
            status = SODET_FAIL(err, SODET_E_INVALID, "%s: all pictures are the same, which cannot be split", a->shown);
        for (uint64_t i = 0; i < n_val; i++)
            val[c[i].item] = 1;
        for (uint64_t i = 0; i < all - n; i++) {
            val[lost[i].item] = lost[i].key <= c[n_val - 1].key;
            n_lost[val[lost[i].item]]++;
        }
        for (uint64_t i = 0; i < all; i++)
            sd_text_printf(&text[val[i]], "%s\n", sd_dataset_item(d, i)->id);
        sd_text_printf(&a->report, "  no split was there: %llu to train, %llu to validate, by the pictures' content, seed %llu (%s, %s)\n",
                       (unsigned long long)(n - n_val + n_lost[0]), (unsigned long long)(n_val + n_lost[1]), (unsigned long long)seed,
                       list[SD_ADOPT_TRAIN], list[SD_ADOPT_VAL]);
    }
    for (uint32_t i = 0; i < 2 && status == SODET_OK; i++)
        status = write_file(a, list[i], &text[i], err);
    sd_text_free(&text[0]);
    sd_text_free(&text[1]);
    sd_sample_free(s);
    sd_free(c);
    sd_free(lost);
    sd_free(val);
    return status;
}

/* ---- the detector ---- */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/* Opens no picture whose size the annotation says: sodet data check does. A folder or a pipe is none. */
static sodet_status look_at_picture(const sodet_sample *s, uint32_t *width, uint32_t *height, sodet_err *err)
{
    struct stat st;
    uint32_t orientation;
    *width = s->width;
    *height = s->height;
    if (!s->width || !s->height)
        return sodet_picture_size(s->path.text, width, height, &orientation, err);
    if (stat(s->path.text, &st) != 0 || access(s->path.text, R_OK) != 0)
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot be opened: %s", s->path.text, strerror(errno));
    return S_ISREG(st.st_mode) ? SODET_OK : SODET_FAIL(err, SODET_E_IO, "%s: not a regular file; a picture is expected here", s->path.text);
}

/* What cannot be read, and the sizes of pictures and objects to train. */
static sodet_status measure(sd_adopt *a, uint32_t set, sodet_err *err)
{
    const sd_dataset *d = a->set[set].dataset;
    uint64_t n = sd_dataset_size(d), used = 0;
    double *sides = sd_alloc(n + 1, sizeof *sides);
    sodet_sample *s = NULL;
    a->lost[set] = sd_alloc(n, 1);
    sodet_status status = sides && a->lost[set] ? sd_sample_new(d, &s, err) : SODET_FAIL(err, SODET_E_MEMORY, "no memory");
    for (uint64_t i = 0; i < n && status == SODET_OK; i++) {
        uint32_t w, h;
        sodet_err local = SODET_ERR_INIT;
        sodet_status wrong = sd_dataset_describe(d, i, s, &local);
        const bool described = wrong == SODET_OK;
        if (described)
            wrong = sd_dataset_locate(d, i, s, &local);
        if (wrong == SODET_OK)
            wrong = look_at_picture(s, &w, &h, &local);
        if (wrong == SODET_E_MEMORY || wrong == SODET_E_INTERNAL)
            status = SODET_FAIL(err, wrong, "%s", local.text);
        if (wrong != SODET_OK) {
            a->lost[set][i] = 1;
            if (described && a->n_lost++ == 0)
                snprintf(a->first_lost, sizeof a->first_lost, "%s", local.text);
            continue;
        }
        sides[used++] = w > h ? w : h;
        if (set == SD_ADOPT_TRAIN)
            status = sd_grow(&a->scales, &a->scales_capacity, a->n_scales + s->n_objects + 1, sizeof *a->scales, err);
        for (uint64_t k = 0; k < s->n_objects && status == SODET_OK && set == SD_ADOPT_TRAIN; k++) {
            const sodet_box *b = &s->objects[k].box;
            a->scales[a->n_scales++] = sqrt((double)(b->x2 - b->x1) * (double)(b->y2 - b->y1) / ((double)w * h));
        }
    }
    if (status == SODET_OK && !used)
        status = SODET_FAIL(err, SODET_E_INVALID,
                            "%s: none of the %llu pictures to %s can be opened; the first: %.250s; put them there, or correct their names "
                            "in the annotations",
                            a->shown, (unsigned long long)n, set ? "validate" : "train", a->first_lost);
    if (status == SODET_OK && set == SD_ADOPT_TRAIN && !a->n_scales)
        status = SODET_FAIL(err, SODET_E_INVALID, "%s: no picture has an object, so there is nothing to learn", a->shown);
    if (status == SODET_OK && set == SD_ADOPT_TRAIN) {
        qsort(sides, used, sizeof *sides, by_value);
        qsort(a->scales, a->n_scales, sizeof *a->scales, by_value);
        a->side = (uint32_t)sides[used / 2];
    }
    sd_free(sides);
    sd_sample_free(s);
    return status;
}

/* The tenth of the objects that is smallest should have 16 pixels, two cells of TinySSD's finest map; 256 is what its authors take, 512 what a
 * processor trains in bearable time; more than the pictures have is of no use. Multiples of 64: its maps halve six times. */
static uint32_t input_side(const sd_adopt *a)
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

static void detector(const sd_adopt *a, uint64_t n_train, sd_text *out)
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

static sodet_status place_sayable(const char *path, sodet_err *err)
{
    enum { LONGEST = 800 }; /* a line of an INI has 1000, and more than the folder stands in it */
    char shown[120];
    const char *why = sd_layout_has_control(path)               ? "a line break or another control character"
                      : strchr(path, '"') && strchr(path, '\'') ? "both \" and '"
                      : strlen(path) > LONGEST                  ? "more than 800 bytes with its folders"
                                                                : NULL;
    return why ? SODET_FAIL(err, SODET_E_INVALID, "data adopt: %s: the name holds %s, which an INI cannot say; rename or move it",
                            sd_layout_shown(path, shown), why)
               : SODET_OK;
}

/* What neither the INI nor a file of names, one a line, can say. */
static sodet_status sayable(const sd_adopt *a, sodet_err *err)
{
    enum { LONGEST = 255 }; /* as in VOC's layout: data convert could not write it */
    const sd_classes *classes = sd_dataset_classes(a->set[SD_ADOPT_TRAIN].dataset);
    char shown[120];
    for (uint32_t k = 0; k < classes->n; k++) {
        const char *name = classes->names[k];
        const char *why = sd_layout_has_control(name) ? "a line break or another control character"
                          : strlen(name) > LONGEST    ? "more than 255 bytes"
                          : sd_not_utf8(name)         ? "bytes that are no UTF-8"
                                                      : NULL;
        if (why)
            return SODET_FAIL(err, SODET_E_INVALID,
                              "%s: class %u, \"%s\": its name holds %s, which neither an INI nor a list of names can say; "
                              "rename it in the annotations (layout %s%s%s)",
                              a->shown, k + 1, sd_layout_shown(name, shown), why, a->layout, *a->pairs[SD_ADOPT_TRAIN][0].value ? ", " : "",
                              a->pairs[SD_ADOPT_TRAIN][0].value);
    }
    return SODET_OK;
}

static sodet_status write_ini(sd_adopt *a, const char *name, const char *names_file, const char *const list[2], sodet_err *err)
{
    sd_text ini = {0}, names = {0};
    const sd_dataset *d = a->set[SD_ADOPT_TRAIN].dataset;
    const sd_classes *classes = sd_dataset_classes(d);
    const sd_census *c = sd_dataset_census(d), *v = a->n[SD_ADOPT_VAL] ? sd_dataset_census(a->set[SD_ADOPT_VAL].dataset) : NULL;
    const char *slash = strrchr(names_file, '/');
    uint64_t skipped = c->skipped + (v ? v->skipped : 0) + a->n_lost;
    char shown[120];
    bool needs_file;
    sodet_status status = SODET_OK;
    sd_text_printf(&ini, "; %s, layout %s: %llu pictures, %llu objects\n", sd_layout_shown(a->shown, shown), a->layout,
                   (unsigned long long)(c->images + (v ? v->images : 0)), (unsigned long long)(c->objects + (v ? v->objects : 0)));
    for (uint32_t k = 0; k < classes->n; k++) {
        sd_text_printf(&ini, ";   %-20s %llu\n", classes->names[k], (unsigned long long)(c->per_class[k] + (v ? v->per_class[k] : 0)));
        sd_text_printf(&names, "%s\n", classes->names[k]);
    }
    sd_text_printf(&ini, "[run]\n");
    sd_layout_ini_value(&ini, "name", name);
    sd_text_printf(&ini, "seed = 1\n[data]\ntrain = %s\nval = %s\n", v ? "train" : "all", v ? "val" : "all");
    for (uint32_t i = 0; i < 2 && !v; i++) {
        const char *last = strrchr(list[i], '/');
        sd_layout_ini_value(&ini, i ? "val_list" : "train_list", last ? last + 1 : list[i]);
    }
    if (skipped)
        sd_text_printf(&ini, "; %llu could not be read\nbad_files = skip\n", (unsigned long long)skipped);
    sd_layout_classes(&ini, classes, slash ? slash + 1 : names_file, &needs_file);
    sd_adopt_sections(a, a->shown, 2, &ini);
    detector(a, c->images - (v ? 0 : a->n_lost), &ini);
    if (needs_file)
        status = write_file(a, names_file, &names, err);
    if (status == SODET_OK)
        status = write_file(a, a->ini, &ini, err);
    sd_text_free(&ini);
    sd_text_free(&names);
    return status;
}

/* Whatever the names of files and classes are: what was written says what was found, or it is not left there. */
static sodet_status read_back(const sd_adopt *a, const char *name, sodet_err *err)
{
    const sd_classes *classes = sd_dataset_classes(a->set[SD_ADOPT_TRAIN].dataset);
    const bool whole = !a->n[SD_ADOPT_VAL];
    uint64_t n = 0,
             expected = sd_dataset_size(a->set[SD_ADOPT_TRAIN].dataset) + (whole ? 0 : sd_dataset_size(a->set[SD_ADOPT_VAL].dataset));
    sd_config *cfg = NULL;
    sodet_status status = sd_config_open(a->ini, NULL, 0, &cfg, err);
    if (status == SODET_OK && strcmp(sd_config_core(cfg)->run.name, name) != 0)
        status = SODET_FAIL(err, SODET_E_INVALID, "the run is called \"%s\" and not \"%s\"; name another INI by --output",
                            sd_config_core(cfg)->run.name, name);
    for (uint32_t i = 0; i < 2 && status == SODET_OK; i++) {
        const uint32_t which = i ? SD_SPLIT_VAL : SD_SPLIT_TRAIN;
        sd_split set = {0};
        sd_data_rules r = sd_recipe_rules(cfg, which);
        r.bad_file = SD_KEEP;
        status = sd_split_open_under(cfg, which, NULL, 0, &r, &set, err);
        const sd_classes *c = status == SODET_OK ? sd_dataset_classes(set.dataset) : NULL;
        uint32_t same = 0;
        while (c && same < c->n && same < classes->n && strcmp(c->names[same], classes->names[same]) == 0)
            same++;
        if (c && (same < c->n || same < classes->n))
            status = SODET_FAIL(err, SODET_E_INVALID, "class %u is \"%s\" and not \"%s\"; rename it", same + 1,
                                same < c->n ? c->names[same] : "", same < classes->n ? classes->names[same] : "");
        n += c ? sd_dataset_size(set.dataset) : 0;
        sd_split_close(&set);
    }
    if (status == SODET_OK && n != expected)
        status = SODET_FAIL(err, SODET_E_INVALID, "%llu pictures, and not %llu; did the folder change?", (unsigned long long)n,
                            (unsigned long long)expected);
    sd_config_close(cfg);
    return status == SODET_OK ? status
                              : sd_fail_in(err, status, "data adopt: %s would not say what was found, so it is not left there", a->ini);
}

static void tell_found(sd_adopt *a)
{
    uint64_t lost = a->n_lost;
    sd_text_printf(&a->report, "%s: layout %s\n", a->shown, a->layout);
    for (uint32_t i = 0; i < 2; i++) {
        if (!a->set[i].dataset)
            continue;
        if (a->n[SD_ADOPT_VAL])
            sd_text_printf(&a->report, " %s:\n", i ? "validation" : "training");
        sd_dataset_report(a->set[i].dataset, &a->report);
        lost += sd_dataset_census(a->set[i].dataset)->skipped;
    }
    if (a->n_lost)
        sd_text_printf(&a->report, "  %llu picture%s cannot be opened: %s\n", (unsigned long long)a->n_lost, a->n_lost == 1 ? "" : "s",
                       a->first_lost);
    if (lost)
        sd_text_printf(&a->report,
                       "  what cannot be read (%llu) stays in the set; bad_files = skip in %s lets training leave it out, sodet data "
                       "check names each\n",
                       (unsigned long long)lost, a->ini);
}

static sodet_status adopt(sd_adopt *a, const sd_cli *cli, double share, uint64_t seed, sodet_err *err)
{
    const char *only = sd_cli_flag(cli, "--layout");
    const int stem = (int)strlen(a->ini) - 4;
    const char *slash = strrchr(a->ini, '/'), *last = slash ? slash + 1 : a->ini,
               *name = sd_pool_printf(&a->pool, "%.*s", (int)strlen(last) - 4, last);
    const char *const files[4] = {sd_pool_printf(&a->pool, "%.*s-train.txt", stem, a->ini),
                                  sd_pool_printf(&a->pool, "%.*s-val.txt", stem, a->ini),
                                  sd_pool_printf(&a->pool, "%.*s-names.txt", stem, a->ini), a->ini};
    sodet_status status = place_sayable(a->folder, err);
    if (status == SODET_OK)
        status = place_sayable(a->ini, err);
    for (uint32_t i = 0; i < 4 && status == SODET_OK; i++) {
        if (!files[i] || !name)
            status = SODET_FAIL(err, SODET_E_MEMORY, "data adopt: no memory");
        else if (sd_path_exists(files[i]))
            status = SODET_FAIL(err, SODET_E_INVALID, "data adopt: %s is there already; remove it, or name another by --output", files[i]);
    }
    if (status == SODET_OK)
        status = sd_adopt_recognise(a, only, err);
    if (status == SODET_OK)
        status = sayable(a, err);
    for (uint32_t i = 0; i < 2 && status == SODET_OK && a->set[i].dataset; i++)
        status = measure(a, i, err);
    if (status == SODET_OK) {
        tell_found(a);
        sd_adopt_tell_unused(a);
        if (!only)
            sd_adopt_tell_others(a);
    }
    if (status == SODET_OK && !a->n[SD_ADOPT_VAL])
        status = split(a, share, seed, files, err);
    if (status == SODET_OK)
        status = write_ini(a, name, files[2], files, err);
    if (status == SODET_OK)
        status = read_back(a, name, err);
    if (status == SODET_OK) {
        sd_text_printf(&a->report, "  %s trains TinySSD at %ux%u: sodet data check %s, then sodet train %s\n", a->ini, input_side(a),
                       input_side(a), a->ini, a->ini);
        status = sd_cli_say(&a->report, err);
    }
    for (uint32_t i = 0; i < a->n_written && status != SODET_OK; i++)
        remove(a->written[i]);
    return status; /* cli->started stays false: of what fails nothing is left, and it wants another folder or place */
}

sodet_status sd_data_adopt(sd_cli *cli, sodet_err *err)
{
    const char *folder = cli->files[1];
    sd_adopt a = {0};
    const char *share_text = sd_cli_flag(cli, "--share"), *ini = sd_cli_flag(cli, "--output");
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
    status = adopt(&a, cli, share, seed, err);
    sd_adopt_close(&a);
    sd_free(a.lost[0]);
    sd_free(a.lost[1]);
    sd_free(a.scales);
    sd_text_free(&a.report);
    sd_pool_clear(&a.pool);
    return status;
}
