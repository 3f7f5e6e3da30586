/* COCO files: field cases O-07 to O-11 as far as reading goes, O-19's files, damage, real files, speed. */
#include "sodet/coco.h"

#include "files.h"

static sodet_status open_file(set *out, const char *path, const char *const *classes, uint32_t n_classes, const sd_data_rules *rules)
{
    memset(out, 0, sizeof *out);
    char text[3000];
    int n = snprintf(text, sizeof text, "[run]\nname = x\n[dataset.d]\nplugin = coco\nannotations = %s\n", path);
    CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &out->cfg, &err));
    CHECK_OK(sd_instance_create(out->cfg, "dataset.d", &out->instance, &err));
    sd_data_rules r;
    sd_data_rules_init(&r);
    const sd_dataset_part part = {"d", out->instance.ops, out->instance.self};
    sodet_status status = sd_dataset_open(&part, 1, classes, n_classes, rules ? rules : &r, &out->d, &err);
    if (status == SODET_OK)
        status = sd_sample_new(out->d, &out->s, &err);
    return status;
}

static sodet_status open_text(set *out, const char *json, const sd_data_rules *rules)
{
    static char path[1000];
    snprintf(path, sizeof path, "%s/g.json", check_scratch("coco"));
    CHECK_OK(sd_file_write_atomic(path, json, strlen(json), &err));
    return open_file(out, path, NULL, 0, rules);
}

/* images, categories, annotations as given. */
static const char *file(const char *categories, const char *annotations)
{
    static char text[4000];
    snprintf(text, sizeof text,
             "{\"info\":{\"x\":[1,{}]},\"annotations\":[%s],\"images\":[{\"id\":1,\"file_name\":\"a.jpg\",\"width\":500,\"height\":375},"
             "{\"license\":3,\"height\":40,\"width\":50,\"file_name\":\"b\\u00e9.jpg\",\"id\":20180000001}],\"categories\":[%s]}",
             annotations, categories);
    return text;
}

static const char dog[] = "{\"id\":1,\"name\":\"dog\",\"supercategory\":\"animal\"}";

static void o_07_category_gaps(void)
{
    set s;
    CHECK_OK(open_text(&s,
                       file("{\"id\":90,\"name\":\"bird\"},{\"id\":3,\"name\":\"cat\"},{\"id\":7,\"name\":\"dog\"}",
                            "{\"id\":1,\"image_id\":1,\"category_id\":90,\"bbox\":[1,2,3,4]},{\"id\":2,\"image_id\":1,\"category_id\":3,"
                            "\"bbox\":[5,6,7,8]},"
                            "{\"id\":3,\"image_id\":1,\"category_id\":7,\"bbox\":[9,10,11,12]}"),
                       NULL));
    const sd_classes *c = sd_dataset_classes(s.d);
    CHECK_EQ(c->n, 3);
    static const char *const names[] = {"cat", "dog", "bird"};
    static const int64_t ids[] = {3, 7, 90};
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_STR(c->names[i], names[i]);
        CHECK_EQ(c->category_id[i], ids[i]);
        CHECK_EQ(sd_dataset_census(s.d)->per_class[i], 1);
    }
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    static const int32_t labels[] = {2, 0, 1}; /* in the file's order */
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(sodet_sample_object(s.s, i)->label, labels[i]);
    CHECK_EQ(s.s->number, 1);
    close_set(&s);
    /* Each object with its own picture, though the file mixes them. */
    CHECK_OK(open_text(
        &s,
        file(dog, "{\"id\":1,\"image_id\":20180000001,\"category_id\":1,\"bbox\":[1,2,3,4]},{\"id\":2,\"image_id\":1,\"category_id\":1,"
                  "\"bbox\":[5,6,7,8]},{\"id\":3,\"image_id\":20180000001,\"category_id\":1,\"bbox\":[9,10,11,12]}"),
        NULL));
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    CHECK(sodet_sample_object_count(s.s) == 1 && sodet_sample_object(s.s, 0)->id == 2);
    CHECK_OK(sd_dataset_describe(s.d, 1, s.s, &err));
    CHECK(sodet_sample_object_count(s.s) == 2 && sodet_sample_object(s.s, 0)->id == 1 && sodet_sample_object(s.s, 1)->id == 3);
    close_set(&s);
    /* A list of one's own: another order, the file's ids. */
    const char *const own[] = {"bird", "dog", "cat"};
    char path[1000];
    snprintf(path, sizeof path, "%s/g.json", check_scratch("coco"));
    const char *text = file("{\"id\":90,\"name\":\"bird\"},{\"id\":3,\"name\":\"cat\"},{\"id\":7,\"name\":\"dog\"}", "");
    CHECK_OK(sd_file_write_atomic(path, text, strlen(text), &err));
    CHECK_OK(open_file(&s, path, own, 3, NULL));
    CHECK(sd_dataset_classes(s.d)->category_id[0] == 90 && sd_dataset_classes(s.d)->category_id[1] == 7 &&
          sd_dataset_classes(s.d)->category_id[2] == 3);
    close_set(&s);
}

static void o_08_o_09_optional(void)
{
    set s;
    CHECK_OK(open_text(
        &s,
        file(dog, "{\"id\":0,\"image_id\":1,\"category_id\":1,\"bbox\":[10,10,100.5,100]},{\"id\":-5,\"image_id\":1,\"category_id\":1,"
                  "\"bbox\":[1e1,10,4,4],\"area\":1.5,\"iscrowd\":false,\"segmentation\":{\"counts\":\"]}\",\"size\":[1,2]}}"),
        NULL));
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    CHECK_EQ(sodet_sample_object_count(s.s), 2);
    const sodet_object *o = sodet_sample_object(s.s, 0);
    CHECK(o->id == 0 && o->flags == 0 && o->area == 10050 && o->box.x1 == 10 && o->box.x2 == 110.5f && o->box.y2 == 110);
    o = sodet_sample_object(s.s, 1);
    CHECK(o->id == -5 && o->flags == 0 && o->area == 1.5 && o->box.x2 == 14);
    close_set(&s);
}

static void o_10_crowd(void)
{
    set s;
    CHECK_OK(open_text(&s,
                       file(dog, "{\"id\":1,\"image_id\":1,\"category_id\":1,\"bbox\":[10,10,40,40],\"iscrowd\":0},"
                                 "{\"id\":2,\"image_id\":1,\"category_id\":1,\"bbox\":[100,100,300,275],\"iscrowd\":1}"),
                       NULL));
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    CHECK(sodet_sample_object(s.s, 0)->flags == 0 && sodet_sample_object(s.s, 1)->flags == SODET_BOX_CROWD);
    CHECK_EQ(sd_dataset_census(s.d)->crowd, 1);
    close_set(&s);
    CHECK_OK(open_text(&s, file(dog, "{\"id\":2,\"image_id\":1,\"category_id\":1,\"bbox\":[1,1,3,3],\"iscrowd\":1}"), NULL));
    sd_text report = {0};
    sd_dataset_report(s.d, &report);
    CHECK(strstr(report.text, "every object is a crowd") != NULL);
    sd_text_free(&report);
    close_set(&s);
}

static void o_11_empty_images(void)
{
    set s;
    const char *json = file(dog, "{\"id\":1,\"image_id\":1,\"category_id\":1,\"bbox\":[10,10,40,40]}");
    CHECK_OK(open_text(&s, json, NULL));
    CHECK(sd_dataset_size(s.d) == 2 && sd_dataset_census(s.d)->empty == 1);
    CHECK_STR(sd_dataset_item(s.d, 1)->id, "b\xc3\xa9.jpg");
    CHECK_EQ(sd_dataset_item(s.d, 1)->number, 20180000001);
    close_set(&s);
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.drop_empty = 1;
    CHECK_OK(open_text(&s, json, &rules));
    CHECK(sd_dataset_size(s.d) == 1 && sd_dataset_census(s.d)->dropped_empty == 1);
    sd_text report = {0};
    sd_dataset_report(s.d, &report);
    CHECK(strstr(report.text, "1 image without objects left out") != NULL);
    sd_text_free(&report);
    close_set(&s);
}

static void o_03_flat(void)
{
    set s;
    CHECK_OK(open_text(&s, file(dog, "{\"id\":17,\"image_id\":1,\"category_id\":1,\"bbox\":[99,239,0,132]}"), NULL));
    CHECK(sd_dataset_census(s.d)->bad_boxes == 1 &&
          strstr(sd_dataset_census(s.d)->first_bad_box, "a.jpg: object 1 (dog): box 99 239 99 371 has no area"));
    close_set(&s);
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.bad_box = SD_STOP;
    CHECK_FAILS(open_text(&s, file(dog, "{\"id\":17,\"image_id\":1,\"category_id\":1,\"bbox\":[99,239,-3,132]}"), &rules), SODET_E_INVALID,
                "annotation 17");
    close_set(&s);
}

static void refusals(void)
{
    static const struct {
        const char *json, *message;
    } rows[] = {
        {"[{\"image_id\":1}]", "a list, as of detections"},
        {"{\"images\":[],\"annotations\":[]}", "no \"categories\""},
        {"{\"images\":[],\"annotations\":[],\"categories\":[]}", "\"categories\" is empty"},
        {"{\"images\":[],\"images\":[]}", "\"images\" stands twice"},
        {"{\"images\":[{\"id\":1}],\"annotations\":[],\"categories\":[]}", "image 1 has no \"file_name\""},
        {"{\"images\":[{\"file_name\":\"a\"}],\"annotations\":[],\"categories\":[]}", "image 1 has no \"id\""},
        {"{\"images\":[{\"id\":1,\"file_name\":\"a\",\"width\":-1}],\"annotations\":[],\"categories\":[]}", "-1 pixels"},
        {"{\"images\":[{\"id\":1,\"file_name\":\"a\"},{\"id\":1,\"file_name\":\"b\"}],\"annotations\":[],\"categories\":[{\"id\":1,"
         "\"name\":\"x\"}]}",
         "images a and b have the same id 1"},
        {"{\"images\":[],\"annotations\":[],\"categories\":[{\"id\":1,\"name\":\"x\"},{\"id\":1,\"name\":\"y\"}]}", "have the same id 1"},
        {"{\"images\":[],\"annotations\":[],\"categories\":[{\"id\":1,\"name\":\"x\"},{\"id\":2,\"name\":\"x\"}]}",
         "class \"x\" stands twice"},
        {"{\"images\":[],\"annotations\":[{\"id\":4,\"image_id\":9,\"category_id\":1,\"bbox\":[1,1,1,1]}],\"categories\":[{\"id\":1,"
         "\"name\":\"x\"}]}",
         "annotation 4 belongs to image 9"},
        {"{\"images\":[{\"id\":9,\"file_name\":\"a\"}],\"annotations\":[{\"id\":4,\"image_id\":9,\"category_id\":5,\"bbox\":[1,1,1,1]}],"
         "\"categories\":[{\"id\":1,\"name\":\"x\"}]}",
         "annotation 4 has category 5"},
        {"{\"annotations\":[{\"id\":4,\"image_id\":9,\"category_id\":5,\"bbox\":[1,1,1]}]}", "annotation 4: bbox has 3 numbers"},
        {"{\"annotations\":[{\"id\":4,\"image_id\":9,\"category_id\":5}]}", "annotation 4 has no \"bbox\""},
        {"{\"annotations\":[{\"id\":4,\"image_id\":\"x\"}]}", "line 1, byte 35: expected an integer"},
        {"{\"images\":[{\"id\":1,\"file_name\":\"a\"}],\"annotations\":[],\"categories\":[{\"id\":1,\"name\":\"x\"}]",
         "expected ',' or '}'"},
        {"", "expected a value, found the end"},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set s;
        CHECK_FAILS(open_text(&s, rows[i].json, NULL), SODET_E_INVALID, rows[i].message);
        CHECK(strstr(err.text, "g.json") || strstr(err.text, "stands twice in the class list"));
        close_set(&s);
    }
    set s;
    CHECK_FAILS(open_file(&s, "/nonexistent.json", NULL, 0, NULL), SODET_E_IO, "/nonexistent.json");
    close_set(&s);
}

/* Two files joined: classes must agree, or be written down. */
static void joined(void)
{
    char folder[900], path[2][1000];
    snprintf(folder, sizeof folder, "%s", check_scratch("coco"));
    static const char *const categories[] = {"{\"id\":1,\"name\":\"cat\"},{\"id\":2,\"name\":\"dog\"}", "{\"id\":5,\"name\":\"dog\"}"};
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%u.json", folder, i);
        char ann[200];
        snprintf(ann, sizeof ann, "{\"id\":1,\"image_id\":1,\"category_id\":%d,\"bbox\":[10,10,40,40]}", i ? 5 : 2);
        const char *text = file(categories[i], ann);
        CHECK_OK(sd_file_write_atomic(path[i], text, strlen(text), &err));
    }
    char text[3000];
    int n = snprintf(text, sizeof text,
                     "[run]\nname = x\n[dataset.a]\nplugin = coco\nannotations = %s\n[dataset.b]\nplugin = coco\nannotations = %s\n",
                     path[0], path[1]);
    const char *const names[] = {"dog"}, *const both[] = {"dog", "cat"};
    for (uint32_t way = 0; way < 3; way++) {
        sd_config *cfg = NULL;
        sd_instance in[2];
        CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &cfg, &err));
        CHECK_OK(sd_instance_create(cfg, "dataset.a", &in[0], &err));
        CHECK_OK(sd_instance_create(cfg, "dataset.b", &in[1], &err));
        const sd_dataset_part parts[] = {{"a", in[0].ops, in[0].self}, {"b", in[1].ops, in[1].self}};
        sd_data_rules rules;
        sd_data_rules_init(&rules);
        sd_dataset *d = NULL;
        if (way == 0) {
            CHECK_FAILS(sd_dataset_open(parts, 2, NULL, 0, &rules, &d, &err), SODET_E_INVALID,
                        "data sets \"a\" (2 classes) and \"b\" (1 classes) differ from class 1 on");
        } else {
            CHECK_OK(sd_dataset_open(parts, 2, way == 1 ? names : both, way, &rules, &d, &err));
            CHECK(sd_dataset_size(d) == 4 && sd_dataset_item(d, 3)->part == 1 && sd_dataset_item(d, 3)->row == 1 &&
                  sd_dataset_census(d)->per_class[0] == 2);
            CHECK_EQ(sd_dataset_classes(d)->category_id[0], 2); /* the first part that has it */
        }
        sd_dataset_close(d);
        sd_instance_destroy(&in[0]);
        sd_instance_destroy(&in[1]);
        sd_config_close(cfg);
    }
}

static void real_files(void)
{
    static const struct {
        const char *path;
        uint64_t images, objects;
        uint32_t classes;
    } rows[] = {{"data/bccd/derived-coco/instances_train.json", 205, 0, 3},
                {"data/dental-xray/derived-coco/instances_train.json", 458, 3263, 4},
                {"data/mmdet-fixtures/coco_sample.json", 3, 3, 0}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = check_shared(rows[i].path);
        if (!path) {
            check_skip(rows[i].path);
            continue;
        }
        set s;
        CHECK_OK(open_file(&s, path, NULL, 0, NULL));
        if (s.d) {
            const sd_census *c = sd_dataset_census(s.d);
            CHECK_EQ(c->images, rows[i].images);
            if (rows[i].objects)
                CHECK_EQ(c->objects, rows[i].objects);
            if (rows[i].classes)
                CHECK_EQ(sd_dataset_classes(s.d)->n, rows[i].classes);
        }
        close_set(&s);
    }
    /* The XML and the JSON of one data set are one data set. */
    const char *json = check_shared("data/bccd/derived-coco/instances_val.json"), *root = check_shared("data/bccd");
    if (!json || !root)
        return;
    set s;
    CHECK_OK(open_file(&s, json, NULL, 0, NULL));
    char text[3000];
    int n = snprintf(text, sizeof text, "[run]\nname = x\n[dataset.v]\nplugin = voc\nroot = %s\nsplit = val\n", root);
    sd_config *cfg = NULL;
    sd_instance in;
    CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &cfg, &err));
    CHECK_OK(sd_instance_create(cfg, "dataset.v", &in, &err));
    const sd_dataset_part part = {"v", in.ops, in.self};
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    sd_dataset *d = NULL;
    sodet_sample *v = NULL;
    CHECK_OK(sd_dataset_open(&part, 1, sd_dataset_classes(s.d)->names, sd_dataset_classes(s.d)->n, &rules, &d, &err));
    CHECK_OK(sd_sample_new(d, &v, &err));
    CHECK_EQ(sd_dataset_size(d), sd_dataset_size(s.d));
    uint64_t same = 0, objects = 0;
    for (uint64_t i = 0; i < sd_dataset_size(d); i++) {
        for (uint64_t k = 0; k < sd_dataset_size(s.d); k++) {
            const char *a = sd_dataset_item(d, i)->id, *b = sd_dataset_item(s.d, k)->id;
            if (strncmp(a, b, strlen(a)) != 0)
                continue;
            CHECK_OK(sd_dataset_describe(d, i, v, &err));
            CHECK_OK(sd_dataset_describe(s.d, k, s.s, &err));
            objects += v->n_objects;
            CHECK_EQ(v->n_objects, s.s->n_objects);
            for (uint64_t o = 0; o < v->n_objects && o < s.s->n_objects; o++)
                same += memcmp(&v->objects[o].box, &s.s->objects[o].box, sizeof(sodet_box)) == 0 &&
                        v->objects[o].label == s.s->objects[o].label;
        }
    }
    CHECK(objects > 900 && same == objects);
    sd_sample_free(v);
    sd_dataset_close(d);
    sd_instance_destroy(&in);
    sd_config_close(cfg);
    close_set(&s);
}

/* 60 MB in COCO's own style, from file to joined annotations. */
static void speed(void)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/big.json", check_scratch("coco_speed"));
    sd_text t = {0};
    uint64_t r = 1;
    enum { IMAGES = 9000, PER_IMAGE = 7 };
    sd_text_printf(&t, "{\"images\": [");
    for (uint32_t i = 0; i < IMAGES; i++)
        sd_text_printf(&t, "%s{\"license\": 1, \"file_name\": \"%012u.jpg\", \"height\": 480, \"width\": 640, \"id\": %u}", i ? ", " : "",
                       i * 3, i * 3);
    sd_text_printf(&t, "], \"categories\": [{\"id\": 1, \"name\": \"a\"}], \"annotations\": [");
    for (uint32_t i = 0; i < IMAGES * PER_IMAGE; i++) {
        sd_text_printf(&t, "%s{\"segmentation\": [[", i ? ", " : "");
        for (uint32_t k = 0; k < 60; k++)
            sd_text_printf(&t, "%s%.2f", k ? ", " : "", (double)((r = sd_mix64(r)) % 64000) / 100);
        sd_text_printf(
            &t,
            "]], \"area\": %.4f, \"iscrowd\": 0, \"image_id\": %u, \"bbox\": [%.2f, %.2f, 30.25, 20.5], \"category_id\": 1, \"id\": %u}",
            310.25, (uint32_t)(sd_mix64(i) % IMAGES) * 3, (double)(r % 600), (double)(r % 440), i);
    }
    sd_text_printf(&t, "]}");
    CHECK(!t.failed);
    CHECK_OK(sd_file_write_atomic(path, t.text, t.length, &err));
    double best = 1e9;
    for (uint32_t round = 0; round < 3; round++) {
        sodet_coco *c = NULL;
        double start = sd_now();
        CHECK_OK(sodet_coco_open(path, NULL, &c, &err));
        double s = sd_now() - start;
        best = s < best ? s : best;
        CHECK_EQ(sodet_coco_size(c), IMAGES);
        sodet_coco_close(c);
    }
    printf("coco: %.1f MB and %u annotations read and joined at %.2f GB/s\n", (double)t.length / 1e6, IMAGES * PER_IMAGE,
           (double)t.length / best / 1e9);
    sd_text_free(&t);
}

int main(void)
{
    o_07_category_gaps();
    o_08_o_09_optional();
    o_10_crowd();
    o_11_empty_images();
    o_03_flat();
    refusals();
    joined();
    real_files();
    speed();
    return check_done(130);
}
