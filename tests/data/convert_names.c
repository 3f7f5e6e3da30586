/* Any pair of layouts, with names as nobody should have them: what is written reads back equal, class by class, picture by picture and float
 * by float; what a layout cannot say is refused by name, and nothing is left behind. Names are drawn; a failure prints its seed. */
#include "core/data/layout.h"
#include "core/data/recipe.h"
#include "data/files.h"
#include "sodet/files.h"

#include <sys/stat.h>

enum { ROUNDS = 21, PICTURES = 3, CLASSES = 3, OBJECTS = 4, LONGEST = 64, SIDE = 40 };
typedef struct source { /* what the data set below hands out */
    char class[CLASSES][LONGEST], raw[CLASSES][LONGEST], picture[PICTURES][LONGEST], path[PICTURES][1300], id[PICTURES][8];
    const char *classes[CLASSES + 1];
    sodet_box box[PICTURES][OBJECTS];
    uint32_t label[PICTURES][OBJECTS];
} source;
typedef struct names { /* what a set has, by picture: comparable when sets are read in another order */
    char class[CLASSES][LONGEST];
    uint32_t n_classes, n;
    char picture[PICTURES][LONGEST];
    uint64_t objects[PICTURES]; /* a hash of boxes and labels, in their order */
} names;

static char base[1000];

/* ---- names that are drawn ---- */

static uint64_t state;
static uint32_t below(uint32_t n)
{
    state = sd_mix64(state + 0x9e3779b97f4a7c15u);
    return (uint32_t)(state % n);
}

static const char *const harmless[] = {"a", "Z", "7", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x95", "-", "_", "."};
static const char *const odd[] = {" ", "\t", "'", "\"", "<", ">", "&", ",",  ";",   "#",     "=",   "@",  ":",  "\\",  "[",
                                  "]", "{",  "}", "|",  "%", "!", "*", "''", "]]>", "&amp;", "\\n", ": ", " #", "0: ", "- "};
static const char *const bad[] = {"\n", "\r", "\r\n", "\x01", "\x1f", "\xff", "\xc3", "\xed\xa0\x80", "\xc0\xaf"};
#define DRAW(list) list[below(sizeof list / sizeof *list)]

/* hardness 0: letters alone; 1: what means something in some format; 2: also one thing that some formats cannot say. Names differ by their
 * numbers, and begin and end in anything. */
static void draw_name(char out[LONGEST], uint32_t number, uint32_t hardness)
{
    static const char *const blank[] = {" ", "  ", "\t"};
    snprintf(out, LONGEST, "%s", hardness && !below(4) ? DRAW(blank) : "");
    for (uint32_t parts = 1 + below(5); parts--;)
        strcat(out, hardness && below(3) ? DRAW(odd) : DRAW(harmless));
    if (hardness > 1)
        strcat(out, DRAW(bad));
    snprintf(out + strlen(out), 8, "%u%s", number, hardness && !below(3) ? DRAW(blank) : hardness && !below(2) ? DRAW(odd) : "");
}

/* Blanks and line ends at the ends of a class's name are no part of it. */
static void trim(char *name)
{
    size_t n = strlen(name), begin = strspn(name, " \t\r\n");
    while (n && strchr(" \t\r\n", name[n - 1]))
        n--;
    name[n] = 0;
    memmove(name, name + begin, n - begin + 1);
}

/* ---- the data set ---- */

static sodet_status source_open(void *self, uint64_t *n, sodet_err *e)
{
    (void)self, (void)e;
    *n = PICTURES;
    return SODET_OK;
}

static sodet_status source_describe(const void *self, uint64_t i, sodet_sample *out, sodet_err *e)
{
    const source *s = self;
    sodet_sample_set_id(out, s->id[i], (int64_t)i);
    sodet_sample_set_size(out, SIDE, SIDE);
    sodet_status status = SODET_OK;
    for (uint32_t k = 0; k < OBJECTS && status == SODET_OK; k++)
        status = sodet_sample_add_object(out, s->classes[s->label[i][k]], s->box[i][k], 0, -1, k + 1, e);
    return status;
}

static sodet_status source_pixels(const void *self, uint64_t i, sodet_sample *out, sodet_err *e)
{
    (void)e;
    sodet_sample_set_path(out, ((const source *)self)->path[i]);
    return SODET_OK;
}

static const char *const *source_classes(const void *self)
{
    return ((const source *)self)->classes;
}

static const sodet_dataset_ops ops = {
    .struct_size = sizeof ops, .open = source_open, .describe = source_describe, .pixels = source_pixels, .classes = source_classes};

static void draw_source(source *s, uint32_t hardness)
{
    const uint32_t worst = below(CLASSES + PICTURES); /* the only one of hardness 2, so that it alone is what is refused */
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < CLASSES; i++) {
        do /* a class is not called what is no UTF-8 */
            draw_name(s->class[i], i, hardness > 1 && i != worst ? 1 : hardness);
        while (!sodet_is_utf8(s->class[i]));
        memcpy(s->raw[i], s->class[i], LONGEST);
        s->classes[i] = s->raw[i];
        trim(s->class[i]);
    }
    for (uint32_t i = 0; i < PICTURES; i++) {
        do {
            draw_name(s->picture[i], i, hardness > 1 && i + CLASSES != worst ? 1 : hardness);
        } while (strchr(s->picture[i], '/'));
        strcat(s->picture[i], below(20) || hardness < 2 ? ".png" : DRAW(odd));
        snprintf(s->path[i], sizeof s->path[i], "%s/pictures/%s", base, s->picture[i]);
        snprintf(s->id[i], sizeof s->id[i], "%u", i);
        write_picture(base, "pictures/x.png", SIDE, SIDE);
        char from[1300];
        snprintf(from, sizeof from, "%s/pictures/x.png", base);
        CHECK(rename(from, s->path[i]) == 0);
        for (uint32_t k = 0; k < OBJECTS; k++) {
            float x = (float)below(1 << 20) / (1 << 20) * 20, y = (float)below(1000) / 50;
            s->box[i][k] = (sodet_box){x, y, x + 1 + (float)below(1 << 20) / (1 << 16), y + 1 + (float)below(999) / 70};
            s->label[i][k] = below(CLASSES);
        }
    }
}

/* ---- what a layout can say: the rules of layout.h, told again ---- */

static bool utf8(const char *text)
{
    for (uint32_t i = 0; i < 9; i++) {
        if (strchr("\xff\xc3\xed\xc0", bad[i][0]) && strstr(text, bad[i]) && (bad[i][0] != '\xc3' || !strstr(text, "\xc3\xa9")))
            return false;
    }
    return true;
}

static bool has(const char *text, const char *of)
{
    return strpbrk(text, of) != NULL;
}

static bool sayable(uint32_t layout, const char *name, bool is_class)
{
    size_t n = strlen(name);
    bool picture = is_class || (name[0] != '.' && n > 4 && strcmp(name + n - 4, ".png") == 0);
    switch (layout) {
    case SD_LAYOUT_VOC:
        return utf8(name) && !has(name, "\n\r\x01\x1f") && (is_class || (n > 4 && strcmp(name + n - 4, ".png") == 0));
    case SD_LAYOUT_COCO:
        return utf8(name);
    case SD_LAYOUT_YOLO:
        return is_class ? utf8(name) : picture;
    default:
        return !has(name, "\n\r");
    }
}

/* ---- sets ---- */

static void gather(const sd_dataset *d, names *out)
{
    sodet_sample *s = NULL;
    const sd_classes *c = sd_dataset_classes(d);
    memset(out, 0, sizeof *out);
    CHECK_OK(sd_sample_new(d, &s, &err));
    out->n_classes = c->n;
    for (uint32_t i = 0; i < c->n && i < CLASSES; i++)
        snprintf(out->class[i], LONGEST, "%s", c->names[i]);
    out->n = (uint32_t)sd_dataset_size(d);
    for (uint32_t i = 0; i < out->n && i < PICTURES; i++) {
        CHECK_OK(sd_dataset_load(d, i, s, &err));
        CHECK_OK(sd_dataset_locate(d, i, s, &err));
        const char *slash = s->path.length ? strrchr(s->path.text, '/') : NULL;
        snprintf(out->picture[i], LONGEST, "%s", slash ? slash + 1 : "");
        uint64_t h = SD_FNV_START;
        for (uint64_t k = 0; k < s->n_objects; k++) {
            h = sd_fnv1a64(&s->objects[k].box, sizeof s->objects[k].box, h);
            h = sd_fnv1a64(&s->objects[k].label, sizeof s->objects[k].label, h);
        }
        out->objects[i] = h;
    }
    sd_sample_free(s);
}

static void same(const names *a, const names *b, uint64_t seed, uint32_t from, uint32_t to)
{
    bool good = a->n_classes == b->n_classes && a->n == b->n;
    for (uint32_t i = 0; i < a->n_classes && good; i++)
        good = strcmp(a->class[i], b -> class[i]) == 0;
    for (uint32_t i = 0; i < a->n && good; i++) {
        uint32_t k = 0;
        while (k < b->n && strcmp(a->picture[i], b->picture[k]) != 0)
            k++;
        good = k < b->n && a->objects[i] == b->objects[k];
    }
    check_count();
    if (!good)
        check_fail(__FILE__, __LINE__, "seed %llu: %s written as %s reads back other classes, pictures or boxes", (unsigned long long)seed,
                   from < SD_LAYOUTS ? sd_layout_names[from] : "the source", sd_layout_names[to]);
}

/* Writes d; false: it was refused, as it had to be. */
static bool written(const sd_dataset *d, const char *folder, uint32_t layout, uint64_t seed, bool expected)
{
    sd_layout *l = NULL;
    sd_text report = {0};
    sodet_status status = sd_layout_open(folder, layout, SD_PICTURES_COPY, sd_dataset_classes(d), NULL, &l, &err);
    if (status == SODET_OK)
        status = sd_layout_add(l, "train", d, &err);
    if (status == SODET_OK)
        status = sd_layout_finish(l, &report, &err);
    sd_layout_close(l);
    sd_text_free(&report);
    check_count();
    if ((status == SODET_OK) != expected)
        check_fail(__FILE__, __LINE__, "seed %llu: %s: %s", (unsigned long long)seed, sd_layout_names[layout],
                   status == SODET_OK ? "written, although it cannot be read back" : err.text);
    CHECK(status == SODET_OK || strstr(err.text, "rename it"));
    CHECK(sd_path_exists(folder) == (status == SODET_OK));
    return status == SODET_OK;
}

static void read_back(const char *folder, sd_config **cfg, sd_split *split)
{
    char ini[1300];
    snprintf(ini, sizeof ini, "%s/data.ini", folder);
    CHECK_OK(sd_config_open(ini, NULL, 0, cfg, &err));
    CHECK_OK(*cfg ? sd_split_open(*cfg, SD_SPLIT_TRAIN, NULL, 0, split, &err) : SODET_E_INVALID);
}

static uint32_t refusals, conversions;

static void round_of(uint64_t seed)
{
    static source s;
    static names want, got;
    sd_data_rules rules;
    sd_dataset *d = NULL;
    char folder[1100];
    state = seed;
    draw_source(&s, (uint32_t)(seed % 3));
    sd_data_rules_init(&rules);
    const sd_dataset_part part = {"source", &ops, &s};
    CHECK_OK(sd_dataset_open(&part, 1, NULL, 0, &rules, &d, &err));
    if (!d)
        return;
    gather(d, &want);
    for (uint32_t from = 0; from < SD_LAYOUTS; from++) {
        bool can[SD_LAYOUTS];
        sd_config *cfg = NULL, *again = NULL;
        sd_split split = {0}, back = {0};
        for (uint32_t k = 0; k < SD_LAYOUTS; k++) {
            can[k] = true;
            for (uint32_t i = 0; i < PICTURES; i++)
                can[k] = can[k] && sayable(k, s.class[i], true) && sayable(k, s.picture[i], false);
        }
        snprintf(folder, sizeof folder, "%s/%s", base, sd_layout_names[from]);
        if (!written(d, folder, from, seed, can[from])) {
            refusals++;
            continue;
        }
        read_back(folder, &cfg, &split);
        if (split.dataset) {
            gather(split.dataset, &got);
            same(&want, &got, seed, SD_LAYOUTS, from);
        }
        for (uint32_t to = 0; to < SD_LAYOUTS && split.dataset; to++) {
            snprintf(folder, sizeof folder, "%s/%s-%s", base, sd_layout_names[from], sd_layout_names[to]);
            if (written(split.dataset, folder, to, seed, can[to])) {
                read_back(folder, &again, &back);
                if (back.dataset) {
                    gather(back.dataset, &got);
                    same(&want, &got, seed, from, to);
                    conversions++;
                }
                sd_split_close(&back);
                sd_config_close(again);
                again = NULL;
            }
            check_scratch_remove(folder);
        }
        sd_split_close(&split);
        sd_config_close(cfg);
        snprintf(folder, sizeof folder, "%s/%s", base, sd_layout_names[from]);
        check_scratch_remove(folder);
    }
    sd_dataset_close(d);
    snprintf(folder, sizeof folder, "%s/pictures", base);
    check_scratch_remove(folder);
}

int main(void)
{
    snprintf(base, sizeof base, "%s", check_scratch("convert_names"));
    const char *one = getenv("SODET_SEED");
    if (one)
        round_of(strtoull(one, NULL, 10));
    for (uint64_t seed = 1; seed <= ROUNDS && !one; seed++)
        round_of(seed);
    printf("%u conversions there and back, %u refusals\n", conversions, refusals);
    CHECK(one || (conversions > 140 && refusals > 10));
    check_scratch_remove(base);
    return check_done(one ? 1 : 2000);
}
