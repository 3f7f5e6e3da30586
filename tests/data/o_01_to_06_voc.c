/* VOC annotations as people have them: field cases O-01 to O-06, then the layouts, errors, and the real folders. */
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

static const char base_xml[] =
    "<annotation><filename>a.jpg</filename>\n <size><width>500</width><height>375</height><depth>3</depth></size>\n"
    " <object><name>dog</name><difficult>0</difficult>\n  "
    "<bndbox><xmin>48</xmin><ymin>240</ymin><xmax>195</xmax><ymax>371</ymax></bndbox>\n"
    " </object></annotation>\n";

/* A data set of plugin voc with these options. */
static sodet_status open_set(set *out, const char *root, const char *options, const char *classes, const sd_data_rules *rules)
{
    memset(out, 0, sizeof *out);
    char text[3000];
    int n = snprintf(text, sizeof text, "[run]\nname = x\n[dataset.d]\nplugin = voc\nroot = %s\n%s\n", root, options);
    const char *names[32];
    char copy[400];
    uint32_t n_names = 0;
    snprintf(copy, sizeof copy, "%s", classes ? classes : "");
    for (char *p = strtok(copy, ","); p; p = strtok(NULL, ","))
        names[n_names++] = p;
    CHECK_OK(sd_config_open_text(text, (uint64_t)n, "test.ini", NULL, NULL, 0, &out->cfg, &err));
    CHECK_OK(sd_instance_create(out->cfg, "dataset.d", &out->instance, &err));
    sd_data_rules r;
    sd_data_rules_init(&r);
    const sd_dataset_part part = {"d", out->instance.ops, out->instance.self};
    sodet_status status = sd_dataset_open(&part, 1, classes ? names : NULL, n_names, rules ? rules : &r, &out->d, &err);
    if (status == SODET_OK)
        status = sd_sample_new(out->d, &out->s, &err);
    return status;
}

/* base_xml with one text replaced. */
static const char *with(const char *from, const char *to)
{
    static char out[4000];
    const char *at = strstr(base_xml, from);
    CHECK(at != NULL);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - base_xml), base_xml, to, at + strlen(from));
    return out;
}

static const char *one(const char *xml)
{
    static char folder[1000];
    snprintf(folder, sizeof folder, "%s", check_scratch("voc"));
    write_file(folder, "Annotations/a.xml", xml);
    write_file(folder, "JPEGImages/readme", "");
    char name[1100];
    snprintf(name, sizeof name, "%s/JPEGImages", folder);
    write_picture(name, "a.jpg", 500, 375);
    return folder;
}

static bool box_is(const sodet_sample *s, uint32_t i, double x1, double y1, double x2, double y2)
{
    const sodet_object *o = sodet_sample_object(s, i);
    return o && o->box.x1 == (float)x1 && o->box.y1 == (float)y1 && o->box.x2 == (float)x2 && o->box.y2 == (float)y2;
}

static void o_01_difficult_missing(void)
{
    uint64_t prints[2];
    for (uint32_t i = 0; i < 2; i++) {
        set s;
        CHECK_OK(open_set(&s, one(i ? with("<difficult>0</difficult>", "") : base_xml), "", "dog", NULL));
        CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
        CHECK_EQ(sodet_sample_object_count(s.s), 1);
        CHECK(box_is(s.s, 0, 47, 239, 195, 371) && sodet_sample_object(s.s, 0)->flags == 0);
        prints[i] = sd_dataset_fingerprint(s.d);
        close_set(&s);
    }
    CHECK(prints[0] == prints[1]);
    set s;
    CHECK_OK(open_set(&s, one(with("<difficult>0", "<truncated>1</truncated><difficult>1")), "", "dog", NULL));
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    CHECK_EQ(sodet_sample_object(s.s, 0)->flags, SODET_BOX_DIFFICULT | SODET_BOX_TRUNCATED);
    CHECK_EQ(sd_dataset_census(s.d)->difficult, 1);
    close_set(&s);
}

static void o_02_decimals(void)
{
    set s;
    const char *decimals = with("<xmin>48</xmin><ymin>240</ymin><xmax>195</xmax><ymax>371</ymax>",
                                "<xmin>45.7</xmin><ymin> 240 </ymin><xmax>195.25</xmax><ymax>3.71e2</ymax>");
    CHECK_OK(open_set(&s, one(decimals), "", "dog", NULL));
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    CHECK(box_is(s.s, 0, 44.7, 239, 195.25, 371));
    close_set(&s);
    CHECK_FAILS(open_set(&s, one(with("<xmin>48", "<xmin>45px")), "", "dog", NULL), SODET_E_INVALID,
                "a.xml, line 4: object 1: <xmin> is \"45px\"");
    close_set(&s);
}

static void o_03_flat_boxes(void)
{
    set s;
    CHECK_OK(open_set(&s, one(with("<xmin>48</xmin>", "<xmin>195</xmin>")), "", "dog", NULL)); /* one inclusive pixel wide */
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    CHECK(box_is(s.s, 0, 194, 239, 195, 371));
    close_set(&s);
    CHECK_OK(open_set(&s, one(with("<xmin>48</xmin>", "<xmin>196</xmin>")), "", "dog", NULL)); /* zero wide: skipped, counted, named */
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    CHECK_EQ(sodet_sample_object_count(s.s), 0);
    CHECK_EQ(sd_dataset_census(s.d)->bad_boxes, 1);
    CHECK(strstr(sd_dataset_census(s.d)->first_bad_box, "a.xml: object 1 (dog): box 195 239 195 371 has no area"));
    sd_text report = {0};
    sd_dataset_report(s.d, &report);
    CHECK(strstr(report.text, "1 object skipped") != NULL);
    sd_text_free(&report);
    close_set(&s);
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.bad_box = SD_STOP;
    CHECK_FAILS(open_set(&s, one(with("<ymax>371", "<ymax>0")), "", "dog", &rules), SODET_E_INVALID, "has no area");
    close_set(&s);
}

static void o_04_base(void)
{
    static const char *const corners[] = {"<xmin>0</xmin><ymin>0</ymin><xmax>500</xmax><ymax>375</ymax>",
                                          "<xmin>1</xmin><ymin>1</ymin><xmax>500</xmax><ymax>375</ymax>"};
    for (uint32_t base = 0; base < 2; base++) {
        for (uint32_t i = 0; i < 2; i++) {
            set s;
            CHECK_OK(open_set(&s, one(with("<xmin>48</xmin><ymin>240</ymin><xmax>195</xmax><ymax>371</ymax>", corners[i])),
                              base ? "" : "zero_based = yes", "dog", NULL));
            CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
            CHECK(base || i == 0 ? box_is(s.s, 0, 0, 0, 500, 375) : box_is(s.s, 0, 1, 1, 500, 375));
            close_set(&s);
        }
    }
    /* Over the edge: told in the census, clipped when the picture is loaded. */
    set s;
    CHECK_OK(open_set(&s, one(with("<xmax>195", "<xmax>510")), "", "dog", NULL));
    CHECK_EQ(sd_dataset_census(s.d)->clipped, 1);
    CHECK_OK(sd_dataset_load(s.d, 0, s.s, &err));
    CHECK(box_is(s.s, 0, 47, 239, 500, 371));
    close_set(&s);
}

static void o_05_names(void)
{
    static const char *const names[] = {"dog", " dog ", "Dog", "dgo"};
    char folder[1000];
    snprintf(folder, sizeof folder, "%s", check_scratch("voc_names"));
    for (uint32_t i = 0; i < 4; i++) {
        char file[40];
        snprintf(file, sizeof file, "Annotations/%u.xml", i);
        char to[60];
        snprintf(to, sizeof to, "<name>%s<", names[i]);
        write_file(folder, file, with("<name>dog<", to));
    }
    set s;
    CHECK_FAILS(open_set(&s, folder, "need_pictures = no", "dog,cat", NULL), SODET_E_INVALID,
                "2 objects of a class that is not in the list");
    CHECK(strstr(err.text, "\"Dog\": 1 (") && strstr(err.text, "2.xml) like \"dog\"") && strstr(err.text, "\"dgo\": 1 (") &&
          strstr(err.text, "unknown_class = skip"));
    close_set(&s);
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.unknown_class = SD_SKIP;
    CHECK_OK(open_set(&s, folder, "need_pictures = no", "dog,cat", &rules));
    const sd_census *c = sd_dataset_census(s.d);
    CHECK(c->objects == 2 && c->per_class[0] == 2 && c->unknown_objects == 2 && c->n_unknown == 2 && c->images == 4 && c->empty == 2);
    close_set(&s);
}

static void o_06_lists(void)
{
    char root[1000], pictures[1100];
    snprintf(root, sizeof root, "%s/my data", check_scratch("voc_lists"));
    snprintf(pictures, sizeof pictures, "%s/JPEGImages", root);
    write_file(root, "Annotations/000001.xml", base_xml);
    write_file(root, "Annotations/000002.xml", base_xml);
    write_file(root, "Annotations/a.b c.xml", base_xml);
    write_file(root, "JPEGImages/readme", "");
    write_picture(pictures, "000001.jpg", 500, 375);
    write_picture(pictures, "000002.png", 500, 375);
    write_picture(pictures, "a.b c.JPEG", 500, 375);
    write_file(root, "ImageSets/Main/train.txt", "000001  1\r\n000002 -1\r\n\r\n");
    write_file(root, "other.txt", "\xef\xbb\xbfJPEGImages/000001.jpg\n  a.b c \nJPEGImages/000002.png Annotations/000002.xml");
    write_file(root, "ImageSets/Main/none.txt", "\n\r\n");
    set s;
    CHECK_OK(open_set(&s, root, "split = train", "dog", NULL));
    CHECK_EQ(sd_dataset_size(s.d), 2);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_OK(sd_dataset_load(s.d, i, s.s, &err));
        CHECK(s.s->original_width == 500 && s.s->n_objects == 1);
    }
    CHECK_STR(sd_dataset_item(s.d, 1)->id, "000002");
    close_set(&s);
    static const char *const ways[] = {"split = other", "split = other.txt", ""};
    for (uint32_t i = 0; i < 3; i++) { /* a name with dots and a blank; a path with its annotation; no list at all */
        CHECK_OK(open_set(&s, root, ways[i], "dog", NULL));
        CHECK_EQ(sd_dataset_size(s.d), 3);
        for (uint64_t k = 0; k < 3; k++)
            CHECK_OK(sd_dataset_load(s.d, k, s.s, &err));
        close_set(&s);
    }
    CHECK_FAILS(open_set(&s, root, "split = none", "dog", NULL), SODET_E_INVALID, "the list is empty");
    close_set(&s);
    char list[1200];
    snprintf(list, sizeof list, "%s/ImageSets/Main/nul.txt", root);
    CHECK_OK(sd_file_write_atomic(list,
                                  "000001\0"
                                  "000002\n",
                                  14, &err));
    CHECK_FAILS(open_set(&s, root, "split = nul", "dog", NULL), SODET_E_INVALID, "nul.txt: holds a NUL byte, so it is no text");
    close_set(&s);
    CHECK_FAILS(open_set(&s, root, "split = tarin", "dog", NULL), SODET_E_IO, "neither ImageSets/Main/tarin.txt");
    close_set(&s);
    /* Named in the list, not in the folders. */
    write_file(root, "ImageSets/Main/lost.txt", "000001\n000009\n");
    CHECK_FAILS(open_set(&s, root, "split = lost", "dog", NULL), SODET_E_IO, "JPEGImages/000009");
    close_set(&s);
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.bad_file = SD_SKIP;
    CHECK_OK(open_set(&s, root, "split = lost", "dog", &rules));
    CHECK(sd_dataset_size(s.d) == 1 && sd_dataset_census(s.d)->skipped == 1 && strstr(sd_dataset_census(s.d)->first_skipped, "000009"));
    close_set(&s);
}

/* O-11, the VOC part. */
static void o_11_no_object(void)
{
    set s;
    const char *xml = "<annotation><size><width>50</width><height>40</height></size></annotation>";
    CHECK_OK(open_set(&s, one(xml), "", "dog", NULL));
    CHECK(sd_dataset_size(s.d) == 1 && sd_dataset_census(s.d)->empty == 1);
    close_set(&s);
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.drop_empty = 1;
    CHECK_FAILS(open_set(&s, one(xml), "", "dog", &rules), SODET_E_INVALID, "drop_empty");
    close_set(&s);
}

static void damaged(void)
{
    static const struct {
        const char *from, *to, *message;
    } rows[] = {{"<name>dog</name>", "", "object 1 has no <name>"},
                {"<name>dog</name>", "<name> </name>", "object 1: its <name> is empty"},
                {"</bndbox>", "</bndbox><bndbox><xmin>1</xmin></bndbox>", "object 1 has two <bndbox>"},
                {"<ymax>371</ymax>", "", "object 1 (dog): <bndbox> has no <ymax>"},
                {"<bndbox>", "<bindbox>", "mismatched tag"},
                {"</annotation>", "", "no element found"},
                {"<width>500", "<width>-5", "<size> has the width \"-5\""},
                {"<difficult>0", "<difficult>maybe", "<difficult> is \"maybe\""},
                {"<xmin>48", "<xmin>nan", "<xmin> is \"nan\""},
                {"<xmin>48", "<xmin>", "<xmin> is \"\""}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set s;
        CHECK_FAILS(open_set(&s, one(with(rows[i].from, rows[i].to)), "", "dog", NULL), SODET_E_INVALID, rows[i].message);
        CHECK(strstr(err.text, "a.xml, line ") != NULL);
        close_set(&s);
    }
    /* Parts have boxes and names of their own. */
    set s;
    CHECK_OK(
        open_set(&s,
                 one(with("</bndbox>", "</bndbox><part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax>"
                                       "</bndbox></part>")),
                 "", "dog", NULL));
    CHECK_OK(sd_dataset_describe(s.d, 0, s.s, &err));
    CHECK(sodet_sample_object_count(s.s) == 1 && box_is(s.s, 0, 47, 239, 195, 371));
    close_set(&s);
    /* An entity that grows: expat stops it. */
    sd_text bomb = {0};
    sd_text_printf(&bomb, "<!DOCTYPE a [<!ENTITY a0 \"lollollollol\">");
    for (int i = 1; i < 12; i++)
        sd_text_printf(&bomb, "<!ENTITY a%d \"&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;\">", i, i - 1, i - 1, i - 1, i - 1, i - 1,
                       i - 1, i - 1, i - 1, i - 1, i - 1);
    sd_text_printf(&bomb, "]><annotation>&a11;</annotation>");
    double start = sd_now();
    CHECK_FAILS(open_set(&s, one(bomb.text), "", "dog", NULL), SODET_E_INVALID, "a.xml, line ");
    CHECK(sd_now() - start < 3);
    sd_text_free(&bomb);
    close_set(&s);
    CHECK_FAILS(open_set(&s, "/nonexistent", "", "dog", NULL), SODET_E_IO, "/nonexistent: no such folder");
    close_set(&s);
}

/* Labels on the upright picture are right, on the stored one are refused: O-12. */
static void o_12_orientation(void)
{
    char folder[1000], path[1100];
    snprintf(folder, sizeof folder, "%s", check_scratch("voc_exif"));
    const char *xml =
        "<annotation><size><width>%d</width><height>%d</height></size><object><name>dog</name><bndbox><xmin>11</xmin><ymin>11</ymin>"
        "<xmax>20</xmax><ymax>20</ymax></bndbox></object></annotation>";
    char *jpeg = NULL;
    uint64_t n = 0;
    CHECK_OK(sd_file_read(check_source("tests/data/pictures/orientation-6.jpg"), 0, &jpeg, &n, &err));
    for (uint32_t stored = 0; stored < 2; stored++) {
        char text[500];
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, xml, stored ? 24 : 40, stored ? 40 : 24);
        write_file(folder, "Annotations/a.xml", text);
        write_file(folder, "JPEGImages/readme", "");
        snprintf(path, sizeof path, "%s/JPEGImages/a.jpg", folder);
        CHECK_OK(sd_file_write_atomic(path, jpeg, n, &err));
        set s;
        CHECK_OK(open_set(&s, folder, "", "dog", NULL));
        if (stored) {
            CHECK_FAILS(sd_dataset_load(s.d, 0, s.s, &err), SODET_E_INVALID, "ignore_orientation");
        } else {
            CHECK_OK(sd_dataset_load(s.d, 0, s.s, &err));
            CHECK(s.s->original_width == 40 && s.s->original_height == 24 && box_is(s.s, 0, 10, 10, 20, 20));
        }
        close_set(&s);
    }
    sd_free(jpeg);
}

static void real_folders(void)
{
    static const struct {
        const char *root, *options, *classes;
        uint64_t images, objects, difficult, bad;
        bool load;
    } rows[] = {{"data/bccd", "split = trainval", "RBC,WBC,Platelets", 292, 0, 0, 0, false},
                {"data/bccd", "", "RBC,WBC,Platelets", 364, 4888, 0, 0, false},
                {"data/dental-xray", "split = val", "Cavity,Fillings,Impacted Tooth,Implant", 98, 750, 0, 0, false},
                {"data/dental-xray", "", "Cavity,Fillings,Impacted Tooth,Implant", 655, 4669, 0, 0, false},
                {"data/voc2012-100", "split = val", NULL, 100, 273, 38, 0, true},
                {"data/mmdet-fixtures/VOCdevkit/VOC2007", "split = trainval", NULL, 1, 2, 0, 0, true}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *root = check_shared(rows[i].root);
        if (!root) {
            check_skip(rows[i].root);
            continue;
        }
        set s;
        double start = sd_now();
        CHECK_OK(open_set(&s, root, rows[i].options, rows[i].classes, NULL));
        start = sd_now() - start;
        if (!s.d) {
            close_set(&s);
            continue;
        }
        const sd_census *c = sd_dataset_census(s.d);
        CHECK_EQ(c->images, rows[i].images);
        if (rows[i].objects)
            CHECK_EQ(c->objects, rows[i].objects);
        CHECK_EQ(c->difficult, rows[i].difficult);
        CHECK_EQ(c->bad_boxes, rows[i].bad);
        CHECK_EQ(c->clipped, 0);
        printf("%s %s: %llu annotations in %.1f ms\n", rows[i].root, rows[i].options, (unsigned long long)c->images, start * 1e3);
        start = sd_now();
        for (uint64_t k = 0; k < c->images && rows[i].load; k++)
            CHECK_OK(sd_dataset_load(s.d, k, s.s, &err));
        if (rows[i].load)
            printf("  decoded at %.0f images/s\n", (double)c->images / (sd_now() - start));
        close_set(&s);
    }
}

int main(void)
{
    o_01_difficult_missing();
    o_02_decimals();
    o_03_flat_boxes();
    o_04_base();
    o_05_names();
    o_06_lists();
    o_11_no_object();
    o_12_orientation();
    damaged();
    real_folders();
    return check_done(200);
}
