/* A data set that is one C file: the real folder, and what is refused. */
#include "core/data/dataset.h"
#include "core/data/sample.h"
#include "core/plugin/plugin.h"

#include "check.h"

static sodet_err err = SODET_ERR_INIT;

static sodet_status open_set(const char *root, const char *split, sd_config **cfg, sd_instance *in, sd_dataset **d)
{
    char text[3000];
    int n = snprintf(text, sizeof text, "[run]\nname = x\n[dataset.dentist]\nroot = %s\nsplit = %s\n", root, split);
    CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, cfg, &err));
    CHECK_OK(sd_instance_create(*cfg, "dataset.dentist", in, &err));
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    const sd_dataset_part part = {"dentist", in->ops, in->self};
    return sd_dataset_open(&part, 1, NULL, 0, &rules, d, &err);
}

int main(void)
{
    sd_config *cfg = NULL;
    sd_instance in = {0};
    sd_dataset *d = NULL;
    CHECK_FAILS(open_set("/nonexistent", "train", &cfg, &in, &d), SODET_E_IO, "data set \"dentist\": /nonexistent: no such folder");
    sd_instance_destroy(&in);
    sd_config_close(cfg);
    const char *root = check_shared("data/dental-xray");
    if (!root) {
        check_skip("data/dental-xray is not there");
        return check_done(3);
    }
    static const char *const splits[] = {"train", "val", "test"};
    static const uint64_t pictures[] = {458, 98, 99}, boxes[] = {3263, 750, 656};
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(open_set(root, splits[i], &cfg, &in, &d));
        const sd_census *c = sd_dataset_census(d);
        CHECK_EQ(c->images, pictures[i]);
        CHECK_EQ(c->objects, boxes[i]);
        CHECK_EQ(sd_dataset_classes(d)->n, 4);
        CHECK_STR(sd_dataset_classes(d)->names[2], "Impacted Tooth");
        sodet_sample *s = NULL;
        CHECK_OK(sd_sample_new(d, &s, &err));
        CHECK_OK(sd_dataset_load(d, 0, s, &err));
        CHECK(s->original_width == 640 && s->original_height == 640);
        sd_sample_free(s);
        sd_dataset_close(d);
        sd_instance_destroy(&in);
        sd_config_close(cfg);
    }
    return check_done(20);
}
