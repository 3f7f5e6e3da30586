#include "core/data/recipe.h"

#include <string.h>

/* ---- classes ---- */
sodet_status sd_recipe_classes(const sd_config *cfg, sd_pool *pool, const char *const **names, uint32_t *n, sodet_err *err)
{
    *names = NULL;
    *n = 0;
    const sodet_string_list *list = &sd_config_core(cfg)->data.classes;
    if (!list->n && sd_config_text(cfg, "data", "classes"))
        return sd_config_fail(cfg, err, "data", "classes", "names no class; write a, b, c or @names.txt, or leave the key out");
    if (!list->n || list->v[0][0] != '@') {
        *names = list->v;
        *n = list->n;
        return SODET_OK;
    }
    char *path = sd_config_path(cfg, pool, "data", "classes", list->v[0] + 1), *bytes;
    uint64_t length;
    if (!path)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the class list");
    sodet_status s = sd_file_read(path, 16u << 20, &bytes, &length, err);
    if (s != SODET_OK)
        return sd_fail_in(err, s, "[data] classes");
    char *text = sd_pool_strdup(pool, bytes);
    sd_free(bytes);
    const char **table = text ? sd_pool_alloc(pool, (size_t)(length / 2 + 2) * sizeof *table) : NULL;
    if (!table)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the class list");
    uint32_t number = 0;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        size_t k = strlen(line);
        while (k && (line[k - 1] == '\r' || line[k - 1] == ' ' || line[k - 1] == '\t'))
            line[--k] = '\0';
        line += strspn(line, " \t");
        number++;
        if (sd_not_utf8(line))
            return sd_config_fail(cfg, err, "data", "classes", "%s:%u: \"%s\" is no UTF-8; save the file as UTF-8", path, number, line);
        if (*line)
            table[(*n)++] = line;
    }
    if (!*n)
        return sd_config_fail(cfg, err, "data", "classes", "%s holds no names; one a line is expected", path);
    *names = table;
    return SODET_OK;
}

/* ---- splits ---- */
void sd_split_close(sd_split *s)
{
    sd_dataset_close(s->dataset);
    for (uint32_t i = 0; i < s->n_parts && s->parts; i++)
        sd_instance_destroy(&s->parts[i]);
    for (uint32_t i = 0; i < s->n_links && s->transforms; i++)
        sd_instance_destroy(&s->transforms[i]);
    sd_pool_clear(&s->pool);
    memset(s, 0, sizeof *s);
}

static sodet_status create_all(sd_config *cfg, const char *kind, const sodet_string_list *labels, sd_instance **out, uint32_t *n,
                               sd_pool *pool, sodet_err *err)
{
    *out = sd_pool_alloc(pool, labels->n * sizeof **out);
    if (!*out)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %u of [%s.*]", labels->n, kind);
    for (uint32_t i = 0; i < labels->n; i++) {
        char *section = sd_pool_printf(pool, "%s.%s", kind, labels->v[i]);
        if (!section)
            return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: [%s.%s]", kind, labels->v[i]);
        sodet_status s = sd_instance_create(cfg, section, &(*out)[i], err);
        if (s != SODET_OK)
            return s;
        *n = i + 1;
    }
    return SODET_OK;
}

static sodet_status open_links(sd_config *cfg, uint32_t which, sd_split *s, sodet_err *err)
{
    const sd_core_cfg *core = sd_config_core(cfg);
    const sodet_string_list *labels = which == SD_SPLIT_TRAIN && !core->data.overfit ? &core->transform.train : &core->transform.val;
    if (core->data.decode == SD_DECODE_DEVICE && core->data.pixels != SD_PIXELS_DEVICE)
        return sd_config_fail(cfg, err, "data", "decode",
                              "the device leaves them there, whose pixels are then made there: set pixels = device, or "
                              "decode = host");
    sodet_status status = create_all(cfg, "transform", labels, &s->transforms, &s->n_links, &s->pool, err);
    if (status != SODET_OK)
        return status;
    s->links = sd_pool_alloc(&s->pool, s->n_links * sizeof *s->links);
    if (!s->links)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the transforms");
    for (uint32_t i = 0; i < s->n_links; i++)
        s->links[i] = (sd_link){.label = labels->v[i], .ops = s->transforms[i].ops, .self = s->transforms[i].self};
    return SODET_OK;
}

/* Whether a split's pictures are those of [data] train: with `overfit` those of both are. */
static bool trains_on(const sd_data_cfg *data, uint32_t which)
{
    return which == SD_SPLIT_TRAIN || data->overfit;
}

bool sd_recipe_validates(const sd_config *cfg)
{
    const sd_data_cfg *data = &sd_config_core(cfg)->data;
    return data->val.n || data->overfit;
}

sd_data_rules sd_recipe_rules(const sd_config *cfg, uint32_t which)
{
    const sd_data_cfg *data = &sd_config_core(cfg)->data;
    bool train = trains_on(data, which);
    static const uint32_t outside[] = {
        [SD_BOXES_FAIL] = SD_OUTSIDE_STOP, [SD_BOXES_DROP] = SD_OUTSIDE_SKIP, [SD_BOXES_CLIP] = SD_OUTSIDE_CLIP};
    return (sd_data_rules){.unknown_class = data->unknown_class == SD_BAD_SKIP ? SD_SKIP : SD_STOP,
                           .bad_box = data->bad_boxes == SD_BOXES_FAIL ? SD_STOP : SD_SKIP,
                           .outside = outside[data->bad_boxes],
                           .bad_file = data->bad_files == SD_BAD_SKIP ? SD_SKIP : SD_STOP,
                           .drop_empty = data->drop_empty,
                           .ignore_orientation = data->ignore_orientation,
                           .max_pixels = data->max_pixels,
                           .limit = data->overfit ? data->overfit
                                    : train       ? data->train_limit
                                                  : data->val_limit,
                           .list = train ? data->train_list : data->val_list};
}

static sodet_status open_parts(sd_config *cfg, uint32_t which, const char *const *classes, uint32_t n_classes, const sd_data_rules *rules,
                               sd_split *s, sodet_err *err)
{
    const sd_data_cfg *data = &sd_config_core(cfg)->data;
    const sodet_string_list *labels = trains_on(data, which) ? &data->train : &data->val;
    const char *key = trains_on(data, which) ? "train" : "val";
    if (!labels->n)
        return sd_config_fail(cfg, err, "data", key, "names no data set; write the label of a [dataset.<label>] section");
    sodet_status status = create_all(cfg, "dataset", labels, &s->parts, &s->n_parts, &s->pool, err);
    if (status == SODET_OK && !classes)
        status = sd_recipe_classes(cfg, &s->pool, &classes, &n_classes, err);
    if (status != SODET_OK)
        return status;
    s->part = sd_pool_alloc(&s->pool, s->n_parts * sizeof *s->part);
    if (!s->part)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the data sets");
    for (uint32_t i = 0; i < s->n_parts; i++)
        s->part[i] = (sd_dataset_part){.label = labels->v[i], .ops = s->parts[i].ops, .self = s->parts[i].self};
    return sd_dataset_open(s->part, s->n_parts, classes, n_classes, rules, &s->dataset, err);
}

sodet_status sd_split_open(sd_config *cfg, uint32_t which, const char *const *classes, uint32_t n_classes, sd_split *out, sodet_err *err)
{
    const sd_data_rules rules = sd_recipe_rules(cfg, which);
    return sd_split_open_under(cfg, which, classes, n_classes, &rules, out, err);
}

sodet_status sd_split_open_under(sd_config *cfg, uint32_t which, const char *const *classes, uint32_t n_classes, const sd_data_rules *rules,
                                 sd_split *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    sodet_status s = open_parts(cfg, which, classes, n_classes, rules, out, err);
    if (s == SODET_OK)
        s = open_links(cfg, which, out, err);
    if (s != SODET_OK)
        sd_split_close(out);
    return s;
}

sodet_status sd_split_open_links(sd_config *cfg, uint32_t which, sd_split *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    sodet_status s = open_links(cfg, which, out, err);
    if (s != SODET_OK)
        sd_split_close(out);
    return s;
}

sd_loader_config sd_split_loader(const sd_config *cfg, const sd_split *s, uint32_t which)
{
    const sd_core_cfg *core = sd_config_core(cfg);
    sd_loader_config c = {.dataset = s->dataset,
                          .links = s->links,
                          .n_links = s->n_links,
                          .input = {.width = core->input.size.width,
                                    .height = core->input.size.height,
                                    .pad_to = core->input.pad_to,
                                    .channels = core->input.channels},
                          .seed = (uint64_t)core->run.seed,
                          .shuffle = which == SD_SPLIT_TRAIN ? core->data.shuffle : 0,
                          .threads = core->data.workers,
                          .depth = core->data.queue};
    for (uint32_t i = 0; i < 3 && i < core->input.mean.n && i < core->input.std.n; i++) {
        c.input.mean[i] = (float)core->input.mean.v[i];
        c.input.std[i] = (float)core->input.std.v[i];
    }
    return c;
}
