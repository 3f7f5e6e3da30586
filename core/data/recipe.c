#include "core/data/recipe.h"

#include <stdio.h>
#include <string.h>

/* ---- classes ---- */
sodet_status sd_recipe_classes(const sd_config *cfg, sd_pool *pool, const char *const **names, uint32_t *n, sodet_err *err)
{
    *names = NULL;
    *n = 0;
    const sodet_string_list *list = &sd_config_core(cfg)->data.classes;
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
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        size_t k = strlen(line);
        while (k && (line[k - 1] == '\r' || line[k - 1] == ' ' || line[k - 1] == '\t'))
            line[--k] = '\0';
        line += strspn(line, " \t");
        if (*line)
            table[(*n)++] = line;
    }
    if (!*n)
        return sd_config_fail(cfg, err, "data", "classes", "%s holds no names; one a line is expected", path);
    *names = table;
    return SODET_OK;
}

/* ---- the first n samples ---- */
struct sd_limited {
    const sodet_dataset_ops *ops;
    void *self;
    uint64_t *left; /* of all parts together, while they are opened in order */
};

static sodet_status limited_open(void *self, uint64_t *n, sodet_err *err)
{
    struct sd_limited *l = self;
    sodet_status s = l->ops->open(l->self, n, err);
    if (s == SODET_OK) {
        if (*n > *l->left)
            *n = *l->left;
        *l->left -= *n;
    }
    return s;
}

static sodet_status limited_describe(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const struct sd_limited *l = self;
    return l->ops->describe(l->self, index, out, err);
}

static sodet_status limited_pixels(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const struct sd_limited *l = self;
    return l->ops->pixels(l->self, index, out, err);
}

static const char *const *limited_classes(const void *self)
{
    const struct sd_limited *l = self;
    return l->ops->classes ? l->ops->classes(l->self) : NULL;
}

static int64_t limited_category(const void *self, uint32_t i)
{
    const struct sd_limited *l = self;
    return l->ops->category_id ? l->ops->category_id(l->self, i) : (int64_t)i + 1;
}

static const sodet_dataset_ops limited_ops = {
    .struct_size = sizeof(sodet_dataset_ops),
    .open = limited_open,
    .describe = limited_describe,
    .pixels = limited_pixels,
    .classes = limited_classes,
    .category_id = limited_category,
};

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
    const sodet_string_list *labels = which == SD_SPLIT_TRAIN ? &core->transform.train : &core->transform.val;
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

static sodet_status open_parts(sd_config *cfg, uint32_t which, const char *const *classes, uint32_t n_classes, sd_split *s, sodet_err *err)
{
    const sd_data_cfg *data = &sd_config_core(cfg)->data;
    const sodet_string_list *labels = which == SD_SPLIT_TRAIN ? &data->train : &data->val;
    const char *key = which == SD_SPLIT_TRAIN ? "train" : "val";
    if (!labels->n)
        return sd_config_fail(cfg, err, "data", key, "names no data set; write the label of a [dataset.<label>] section");
    sodet_status status = create_all(cfg, "dataset", labels, &s->parts, &s->n_parts, &s->pool, err);
    if (status == SODET_OK && !classes)
        status = sd_recipe_classes(cfg, &s->pool, &classes, &n_classes, err);
    if (status != SODET_OK)
        return status;
    uint64_t left = which == SD_SPLIT_TRAIN ? data->train_limit : data->val_limit;
    s->part = sd_pool_alloc(&s->pool, s->n_parts * sizeof *s->part);
    s->limited = sd_pool_alloc(&s->pool, s->n_parts * sizeof *s->limited);
    if (!s->part || !s->limited)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the data sets");
    for (uint32_t i = 0; i < s->n_parts; i++) {
        s->limited[i] = (struct sd_limited){.ops = s->parts[i].ops, .self = s->parts[i].self, .left = &left};
        s->part[i] = (sd_dataset_part){.label = labels->v[i], .ops = s->parts[i].ops, .self = s->parts[i].self};
        if (left) {
            s->part[i].ops = &limited_ops;
            s->part[i].self = &s->limited[i];
        }
    }
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.bad_file = data->broken == SD_BROKEN_SKIP ? SD_SKIP : SD_STOP;
    return sd_dataset_open(s->part, s->n_parts, classes, n_classes, &rules, &s->dataset, err);
}

sodet_status sd_split_open(sd_config *cfg, uint32_t which, const char *const *classes, uint32_t n_classes, sd_split *out, sodet_err *err)
{
    memset(out, 0, sizeof *out);
    sodet_status s = open_parts(cfg, which, classes, n_classes, out, err);
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
                          .input = {.width = core->input.size.width, .height = core->input.size.height, .channels = core->input.channels},
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
