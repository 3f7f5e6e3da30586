/* Boxes that reach over their picture's edge under [data] bad_boxes = clip, drop and fail, where the annotation tells the size and where only
 * the picture does. */
#include "files.h"

/* Rounding, over the edge by 5, wholly outside, inside. */
static const char format[] = "{\"images\":[{\"id\":1,\"file_name\":\"a.png\",\"width\":%d,\"height\":%d}],"
                             "\"categories\":[{\"id\":1,\"name\":\"dog\"}],\"annotations\":["
                             "{\"id\":1,\"image_id\":1,\"category_id\":1,\"bbox\":[80,10,20.4,20]},"
                             "{\"id\":2,\"image_id\":1,\"category_id\":1,\"bbox\":[-5,10,20,20]},"
                             "{\"id\":3,\"image_id\":1,\"category_id\":1,\"bbox\":[10,60,20,20]},"
                             "{\"id\":4,\"image_id\":1,\"category_id\":1,\"bbox\":[10,10,20,20]}]}";

static sodet_status open_set(set *out, bool sized, uint32_t outside)
{
    const char *folder = check_scratch("edges");
    char text[2000], ini[1000];
    memset(out, 0, sizeof *out);
    snprintf(text, sizeof text, format, sized ? 100 : 0, sized ? 50 : 0);
    write_file(folder, "a.json", text);
    write_picture(folder, "a.png", 100, 50);
    int n = snprintf(ini, sizeof ini, "[dataset.d]\nplugin = coco\nannotations = %s/a.json\n", folder);
    CHECK_OK(sd_config_open_text(ini, (uint64_t)n, "test.ini", NULL, NULL, 0, &out->cfg, &err));
    CHECK_OK(sd_instance_create(out->cfg, "dataset.d", &out->instance, &err));
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.outside = outside;
    const sd_dataset_part part = {"d", out->instance.ops, out->instance.self};
    sodet_status status = sd_dataset_open(&part, 1, NULL, 0, &rules, &out->d, &err);
    return status == SODET_OK ? sd_sample_new(out->d, &out->s, &err) : status;
}

/* The ids of the sample's objects, as digits. */
static long ids(const sodet_sample *s)
{
    long out = 0;
    for (uint32_t i = 0; i < sodet_sample_object_count(s); i++)
        out = out * 10 + (long)sodet_sample_object(s, i)->id;
    return out;
}

int main(void)
{
    for (uint32_t sized = 0; sized < 2; sized++) {
        set s;
        CHECK_OK(open_set(&s, sized, SD_OUTSIDE_CLIP));
        CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
        CHECK_EQ(ids(s.s), 1234);
        CHECK_OK(sd_dataset_load(s.d, 0, s.s, &err));
        CHECK_EQ(ids(s.s), 124);
        CHECK_NEAR(sodet_sample_object(s.s, 1)->box.x1, 0, 0, 0);
        CHECK_NEAR(sodet_sample_object(s.s, 0)->box.x2, 100, 0, 0);
        const sd_census *c = sd_dataset_census(s.d);
        CHECK_EQ(c->clipped, sized ? 3 : 0);
        CHECK_EQ(c->beyond, sized ? 1 : 0);
        CHECK(!sized || strstr(c->first_beyond, "a.png: dog: box 10 60 30 80, the picture has 100x50"));
        close_set(&s);

        CHECK_OK(open_set(&s, sized, SD_OUTSIDE_SKIP));
        CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
        CHECK_EQ(ids(s.s), sized ? 14 : 1234);
        CHECK_OK(sd_dataset_load(s.d, 0, s.s, &err));
        CHECK_EQ(ids(s.s), 14);
        c = sd_dataset_census(s.d);
        CHECK_EQ(c->outside, sized ? 2 : 0);
        CHECK_EQ(c->objects, sized ? 2 : 4);
        CHECK(!sized || strstr(c->first_outside, "a.png: dog: box -5 10 15 30 reaches over the edge of a picture of 100x50"));
        close_set(&s);

        if (sized) {
            CHECK_FAILS(open_set(&s, true, SD_OUTSIDE_STOP), SODET_E_INVALID, "a.png: dog: box -5 10 15 30 reaches over the edge");
        } else {
            CHECK_OK(open_set(&s, false, SD_OUTSIDE_STOP));
            CHECK_FAILS(sd_dataset_load(s.d, 0, s.s, &err), SODET_E_INVALID, "set bad_boxes = clip or drop");
        }
        close_set(&s);
    }
    const sodet_box b[] = {{0, 0, 100, 50}, {-1, 0, 101.5f, 50}, {100, 0, 110, 10}, {0, -9, 10, 0}, {99, 49, 120, 60}};
    CHECK_NEAR(sd_box_over(&b[0], 100, 50), 0, 0, 0);
    CHECK_NEAR(sd_box_over(&b[1], 100, 50), 1.5, 0, 0);
    CHECK(sd_box_over(&b[2], 100, 50) > 1e300 && sd_box_over(&b[3], 100, 50) > 1e300);
    CHECK_NEAR(sd_box_over(&b[4], 100, 50), 20, 0, 0);
    return check_done(40);
}
