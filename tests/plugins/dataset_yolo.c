/* The yolo plugin on folders as people have them: names, splits, boxes, and every refusal. */
#include "folder.h"

/* 100 x 50 pictures with odd names under images/ and labels/, split into folders. */
static const char *make(void)
{
    static char folder[1000];
    snprintf(folder, sizeof folder, "%s", check_scratch("yolo"));
    write_file(folder, "classes.txt",
               "\xef\xbb\xbf"
               "cat\r\nbig dog\r\nbird\r\n");
    write_picture(folder, "images/train/a.b c.JPG", 100, 50);
    write_file(folder, "labels/train/a.b c.txt", "1 0.5 0.5 0.2 0.4\r\n\r\n 0\t0.1 0.2 0.4 0.2 \r\n");
    write_picture(folder, "images/train/deep/none.png", 100, 50);
    write_picture(folder, "images/train/empty.png", 100, 50);
    write_file(folder, "labels/train/empty.txt", "");
    write_picture(folder, "images/val/v.jpeg", 100, 50);
    write_file(folder, "labels/val/v.TXT", "2 0.5 0.5 1 1");
    write_file(folder, "images/train/notes.txt", "not a label\n");
    return folder;
}

static void good(void)
{
    set s;
    const char *folder = make();
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = train\n", 0));
    const sd_census *c = sd_dataset_census(s.d);
    CHECK_EQ(c->images, 3);
    CHECK_EQ(c->empty, 2);
    CHECK_EQ(c->objects, 2);
    CHECK_EQ(c->clipped, 1);
    CHECK_EQ(sd_dataset_classes(s.d)->n, 3);
    CHECK_STR(sd_dataset_classes(s.d)->names[1], "big dog");
    CHECK(at(&s, "images/train/a.b c.JPG"));
    CHECK(s.s->width == 100 && s.s->height == 50);
    CHECK(box_is(s.s, 0, 40, 15, 60, 35) && sodet_sample_object(s.s, 0)->label == 1);
    CHECK(box_is(s.s, 1, -10, 5, 30, 15) && sodet_sample_object(s.s, 1)->label == 0);
    CHECK(at(&s, "images/train/deep/none.png") && sodet_sample_object_count(s.s) == 0);
    CHECK_OK(sd_dataset_load(s.d, 0, s.s, &err)); /* the box over the edge is clipped now */
    CHECK(box_is(s.s, 1, 0, 5, 30, 15));
    close_set(&s);
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = val\nclasses = a, b, c\n", 0));
    CHECK(at(&s, "images/val/v.jpeg") && box_is(s.s, 0, 0, 0, 100, 50));
    CHECK_STR(sd_dataset_classes(s.d)->names[2], "c");
    close_set(&s);
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0)); /* everything */
    CHECK_EQ(sd_dataset_size(s.d), 4);
    close_set(&s);

    /* Lists: absolute, below root, darknet's with a folder before. */
    char list[3000];
    snprintf(list, sizeof list, "%s/images/val/v.jpeg\r\n./images/train/empty.png\n\ndata/images/train/a.b c.JPG\n", folder);
    write_file(folder, "some.txt", list);
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = some\n", 0));
    CHECK_EQ(sd_dataset_size(s.d), 3);
    CHECK_STR(sd_dataset_item(s.d, 0)->id, "images/val/v.jpeg");
    CHECK_EQ(sd_dataset_item(s.d, 2)->n_objects, 2);
    close_set(&s);
    write_file(folder, "some.txt", "images/val/v.jpeg\nimages/val/gone.jpeg\n");
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = some.txt\n", 0), SODET_E_IO,
                "some.txt:2: images/val/gone.jpeg: no such picture");
    close_set(&s);
    write_file(folder, "some.txt", "\n");
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = some\n", 0), SODET_E_INVALID, "some.txt: the list is empty");
    close_set(&s);
}

/* Side by side, Roboflow's folders, labels elsewhere. */
static void layouts(void)
{
    static char folder[1000];
    set s;
    snprintf(folder, sizeof folder, "%s", check_scratch("yolo2"));
    write_picture(folder, "p.png", 10, 10);
    write_file(folder, "p.txt", "0 0.5 0.5 0.5 0.5\n");
    write_file(folder, "obj.names", "one\n\n");
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0));
    CHECK(sd_dataset_size(s.d) == 1 && at(&s, "p.png") && box_is(s.s, 0, 2.5, 2.5, 7.5, 7.5));
    close_set(&s);
    write_file(folder, "q.txt", "0 0.5 0.5 0.5 0.5\n"); /* objects without a picture */
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0), SODET_E_IO, "q.txt: no picture of that name in");
    close_set(&s);
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\n", 1));
    CHECK_EQ(sd_dataset_census(s.d)->skipped, 1);
    close_set(&s);

    write_picture(folder, "valid/images/r.png", 10, 10);
    write_file(folder, "valid/labels/r.txt", "0 0.5 0.5 1 1\n");
    write_file(folder, "valid/labels/lost.txt", "0 0.5 0.5 1 1\n");
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = valid\n", 0), SODET_E_IO,
                "valid/labels/lost.txt: no picture of that name in");
    close_set(&s);
    write_file(folder, "valid/labels/lost.txt", "");
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = valid\n", 0));
    CHECK(at(&s, "valid/images/r.png") && box_is(s.s, 0, 0, 0, 10, 10));
    close_set(&s);

    write_picture(folder, "imgs/r.png", 10, 10);
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = imgs\n", 0), SODET_E_INVALID, "none of 1 pictures has a .txt");
    close_set(&s);
    write_file(folder, "anno/r.txt", "0 0.5 0.5 1 1\n");
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = imgs\nlabels = anno\n", 0));
    CHECK_EQ(sd_dataset_census(s.d)->objects, 1);
    close_set(&s);
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\nsplit = no\n", 0), SODET_E_IO, "there is no split no");
    close_set(&s);
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @/no\n", 0), SODET_E_IO, "no such folder");
    close_set(&s);
    write_file(folder, "bare/readme", "");
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @/bare\n", 0), SODET_E_INVALID, "holds no picture");
    close_set(&s);
}

static void names(void)
{
    static const struct {
        const char *yaml, *want, *refused;
    } cases[] = {
        {"train: x\nnames: [a, 'b c', \"d, e\"]  # three\nnc: 3\n", "a|b c|d, e", NULL},
        {"names:\n  - a b\n  # no name\n  - 'c'\nnc: 2\n", "a b|c", NULL},
        {"path: .\nnames:\r\n  0: a\r\n  1: b c # comment\r\n", "a|b c", NULL},
        {"names: {0: a, 1: b}\n", "a|b", NULL},
        {"names: [\n  a,\n  b,\n]\n", "a|b", NULL},
        {"names:\n  1: a\n  2: b\n", NULL, "must count from 0"},
        {"names: [a, b\n", NULL, "no ] closes the list"},
        {"nc: 2\n", NULL, "data.yaml: has no names:"},
        {"names: []\n", NULL, "the list is empty"},
    };
    static char folder[1000];
    snprintf(folder, sizeof folder, "%s", check_scratch("yolo3"));
    write_picture(folder, "p.png", 10, 10);
    write_file(folder, "p.txt", "0 0.5 0.5 0.5 0.5\n");
    set s;
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0), SODET_E_INVALID, "no classes.txt, data.yaml or obj.names");
    close_set(&s);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(folder, "data.yaml", cases[i].yaml);
        if (cases[i].refused) {
            CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0), SODET_E_INVALID, cases[i].refused);
        } else {
            char got[200] = "";
            CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0));
            for (uint32_t k = 0; k < sd_dataset_classes(s.d)->n; k++)
                snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", k ? "|" : "", sd_dataset_classes(s.d)->names[k]);
            CHECK_STR(got, cases[i].want);
        }
        close_set(&s);
    }
    write_file(folder, "other.txt", "a\n\nb\n");
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\nnames = @/other.txt\n", 0), SODET_E_INVALID, "other.txt:2: an empty line");
    close_set(&s);
}

static void lines(void)
{
    static const struct {
        const char *text, *refused;
    } cases[] = {
        {"0 0.5 0.5 0.5 0.5\n\n3 0.5 0.5 0.1 0.1\n", "labels/p.txt:3: class 3: outside the 3 names of "},
        {"-1 0.5 0.5 0.1 0.1\n", "labels/p.txt:1: class -1: a whole number from 0 is expected"},
        {"1e300 0.5 0.5 0.1 0.1\n", "class 1e300: outside the 3 names of "},
        {"0.5 0.5 0.5 0.1 0.1\n", "class 0.5: a whole number"},
        {"0 0.5 0.5x 0.1 0.1\n", "labels/p.txt:1: centre y 0.5x: a number is expected"},
        {"0 nan 0.5 0.1 0.1\n", "centre x nan: a number"},
        {"0 320 0.5 0.1 0.1\n", "centre x 320: a share of the picture between 0 and 1 is expected; divide pixels"},
        {"0 0.5 0.5 0.1\n", "labels/p.txt:1: 4 numbers"},
        {"0 0.5 0.5 0.1 0.1 0.9\n", "6 numbers; class, centre x"},
        {"0 0.1 0.2 0.3 0.2 0.3 0.4\n", "7 numbers, an outline; set polygons = yes"},
    };
    static char folder[1000];
    snprintf(folder, sizeof folder, "%s", check_scratch("yolo4"));
    write_picture(folder, "images/p.png", 10, 10);
    write_file(folder, "classes.txt", "a\nb\nc");
    set s;
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(folder, "labels/p.txt", cases[i].text);
        CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0), SODET_E_INVALID, cases[i].refused);
        close_set(&s);
    }
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\npolygons = yes\n", 0));
    CHECK(at(&s, "images/p.png") && box_is(s.s, 0, 1, 2, 3, 4));
    close_set(&s);
    write_file(folder, "labels/p.txt", "0 0.5 0.5 0 0.5\n1 0.5 0.5 0.5 0.5\n"); /* no area: skipped and counted */
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0));
    CHECK(sd_dataset_census(s.d)->bad_boxes == 1 && sd_dataset_census(s.d)->objects == 1);
    close_set(&s);
    write_file(folder, "images/p.png", "no picture");
    CHECK_FAILS(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0), SODET_E_INVALID, "images/p.png: no picture that is known here");
    close_set(&s);
}

/* Shares are of the upright picture, unless the run does not turn pictures. */
static void orientation(void)
{
    static char folder[1000];
    char picture[1200], *bytes;
    uint64_t n;
    snprintf(folder, sizeof folder, "%s", check_scratch("yolo5"));
    for (uint32_t o = 1; o <= 8; o++) {
        snprintf(picture, sizeof picture, "tests/data/pictures/orientation-%u.jpg", o);
        CHECK_OK(sd_file_read(check_source(picture), 0, &bytes, &n, &err));
        snprintf(picture, sizeof picture, "%s/%u.jpg", folder, o);
        CHECK_OK(sd_file_write_atomic(picture, bytes, n, &err));
        free(bytes);
        snprintf(picture, sizeof picture, "%u.txt", o);
        write_file(folder, picture, "0 0.5 0.5 1 1\n");
    }
    write_file(folder, "classes.txt", "a");
    set s;
    CHECK_OK(open_set(&s, folder, "plugin = yolo\nroot = @\n", 0));
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_OK(sd_dataset_load(s.d, i, s.s, &err));
        CHECK(s.s->width == s.s->original_width && s.s->height == s.s->original_height && s.s->width != s.s->height);
        CHECK(box_is(s.s, 0, 0, 0, s.s->original_width, s.s->original_height));
    }
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    rules.ignore_orientation = 1;
    sd_dataset_close(s.d);
    sd_sample_free(s.s);
    s.s = NULL;
    sd_instance again; /* a data set is opened once */
    CHECK_OK(sd_instance_create(s.cfg, "dataset.d", &again, &err));
    const sd_dataset_part fresh = {"d", again.ops, again.self};
    CHECK_OK(sd_dataset_open(&fresh, 1, NULL, 0, &rules, &s.d, &err));
    CHECK_OK(sd_sample_new(s.d, &s.s, &err));
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_OK(sd_dataset_load(s.d, i, s.s, &err));
        CHECK(s.s->width == s.s->original_width && box_is(s.s, 0, 0, 0, s.s->original_width, s.s->original_height));
    }
    close_set(&s);
    sd_instance_destroy(&again);
}

int main(void)
{
    good();
    layouts();
    names();
    lines();
    orientation();
    return check_done(90);
}
