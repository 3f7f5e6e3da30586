/* The csv plugin: keras-retinanet's files and lists with a header. */
#include "folder.h"

static const char *make(void)
{
    static char folder[1000];
    snprintf(folder, sizeof folder, "%s", check_scratch("csv"));
    write_picture(folder, "pics/a.b c.JPG", 100, 50);
    write_picture(folder, "pics/d,e.png", 100, 50);
    write_picture(folder, "pics/none.png", 100, 50);
    return folder;
}

static void plain(void)
{
    const char *folder = make();
    set s;
    write_file(folder, "a.csv",
               "\xef\xbb\xbfpics/a.b c.JPG,1,2,30.5,40,dog\r\npics/none.png,,,,,\r\n\"pics/d,e.png\", 5,6,120,8 ,\"big \"\"cat\"\"\"\r\n"
               "pics/a.b c.JPG,0,0,10,10,bird\r\n\r\n");
    CHECK_OK(open_set(&s, folder, "plugin = csv\nfile = @/a.csv\n", 0));
    const sd_census *c = sd_dataset_census(s.d);
    CHECK(c->images == 3 && c->empty == 1 && c->objects == 3);
    CHECK_STR(sd_dataset_item(s.d, 0)->id, "pics/a.b c.JPG"); /* in the order of first rows */
    CHECK_STR(sd_dataset_item(s.d, 1)->id, "pics/none.png");
    CHECK_STR(sd_dataset_item(s.d, 2)->id, "pics/d,e.png");
    CHECK_EQ(sd_dataset_classes(s.d)->n, 3);
    CHECK_STR(sd_dataset_classes(s.d)->names[0], "big \"cat\""); /* sorted */
    CHECK_STR(sd_dataset_classes(s.d)->names[2], "dog");
    CHECK(at(&s, "pics/a.b c.JPG") && box_is(s.s, 0, 1, 2, 30.5, 40) && box_is(s.s, 1, 0, 0, 10, 10));
    CHECK(sodet_sample_object(s.s, 0)->label == 2 && sodet_sample_object(s.s, 1)->label == 1);
    CHECK_OK(sd_dataset_load(s.d, 2, s.s, &err));
    CHECK(box_is(s.s, 0, 5, 6, 100, 8)); /* over the edge, clipped */
    close_set(&s);

    write_file(folder, "classes.csv", "dog,1\nbird,0\n\n\"big \"\"cat\"\"\",2\n");
    CHECK_OK(open_set(&s, folder, "plugin = csv\nfile = @/a.csv\nclass_file = @/classes.csv\n", 0));
    CHECK_STR(sd_dataset_classes(s.d)->names[0], "bird");
    CHECK_STR(sd_dataset_classes(s.d)->names[1], "dog");
    close_set(&s);
    CHECK_FAILS(open_set(&s, folder, "plugin = csv\nfile = @/a.csv\nclasses = dog, bird\n", 0), SODET_E_INVALID, "\"big \"cat\"\": 1 (");
    close_set(&s);
}

static void header(void)
{
    const char *folder = make();
    set s;
    write_file(folder, "b.csv", "name;w;h;what;left;top;right;bottom\na.b c;100;50;dog;11;21;31;41\nnone;100;50;;;;;\n");
    CHECK_OK(open_set(&s, folder,
                      "plugin = csv\nfile = @/b.csv\npictures = @/pics\nending = .JPG\nseparator = semicolon\nzero_based = no\n"
                      "columns = name, left, top, right, bottom, what\nneed_pictures = no\n",
                      0));
    CHECK(sd_dataset_size(s.d) == 2 && at(&s, "a.b c") && box_is(s.s, 0, 10, 20, 31, 41));
    CHECK_OK(sd_dataset_load(s.d, 0, s.s, &err));
    close_set(&s);
    CHECK_FAILS(open_set(&s, folder,
                         "plugin = csv\nfile = @/b.csv\npictures = @/pics\nending = .JPG\nseparator = semicolon\n"
                         "columns = name, xmin, top, right, bottom, what\n",
                         0),
                SODET_E_INVALID,
                "b.csv:1: the header has no column \"xmin\" but name, w, h, what, left, top, right, bottom; correct columns");
    close_set(&s);
    write_file(folder, "twice.csv", "path,x1,y1,x2,y2,class,x1\npics/none.png,1,2,3,4,dog,9\n");
    CHECK_FAILS(open_set(&s, folder, "plugin = csv\nfile = @/twice.csv\ncolumns = path, x1, y1, x2, y2, class\n", 0), SODET_E_INVALID,
                "twice.csv:1: the header has two columns \"x1\"; rename one of them");
    close_set(&s);
    write_file(folder, "c.csv", "path\tx\ty\tw\th\tclass\npics/none.png\t0.1\t0.2\t0.5\t0.6\tdog\n");
    CHECK_OK(open_set(
        &s, folder, "plugin = csv\nfile = @/c.csv\nseparator = tab\nboxes = size\nrelative = yes\ncolumns = path, x, y, w, h, class\n", 0));
    CHECK(at(&s, "pics/none.png") && s.s->width == 100 && box_is(s.s, 0, 10, 10, 60, 40));
    close_set(&s);
    CHECK_FAILS(open_set(&s, folder, "plugin = csv\nfile = @/c.csv\nrelative = yes\nzero_based = no\n", 0), SODET_E_INVALID,
                "have no base");
    close_set(&s);
}

static void refusals(void)
{
    static const struct {
        const char *text, *refused;
    } cases[] = {
        {"", "r.csv: holds no rows"},
        {"path,x1,y1,x2,y2,class\n", "r.csv:1: x1 \"x1\": a number is expected; correct the line, or name the header's columns in columns"},
        {"pics/none.png,1,2,3,4,dog\npics/none.png,1,2,3a,4,dog\n", "r.csv:2: x2 \"3a\": a number is expected; correct the line"},
        {"pics/none.png,1,2,3,4\n", "r.csv:1: 5 fields; path, x1, y1, x2, y2, class are expected with commas"},
        {"pics/none.png;1;2;3;4;dog\n", "r.csv:1: 1 field; "},
        {"\"pics/none.png,1,2,3,4,dog\n", "r.csv:1: a quote is not closed"},
        {"\"pics/none.png\"x,1,2,3,4,dog\n", "r.csv:1: a quote is not closed, or text follows it"},
        {",1,2,3,4,dog\n", "r.csv:1: the path is empty"},
        {"pics/none.png,1,2,,4,dog\n", "r.csv:1: 1 of x1, y1, x2, y2, class are empty"},
        {"pics/gone.png,1,2,3,4,dog\n", "pics/gone.png: no such picture; correct the line, set pictures, or add it"},
    };
    const char *folder = make();
    set s;
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(folder, "r.csv", cases[i].text);
        CHECK_FAILS(open_set(&s, folder, "plugin = csv\nfile = @/r.csv\n", 0),
                    strstr(cases[i].refused, "no such picture") ? SODET_E_IO : SODET_E_INVALID, cases[i].refused);
        close_set(&s);
    }
    write_file(folder, "r.csv",
               "pics/a.b c.JPG,1,2,3,4,dog\npics/none.png,1,2,x,4,dog\npics/d,1,2,3,4,dog\n\"pics/d,e.png\",1,2,3,4,dog\n");
    CHECK_OK(open_set(&s, folder, "plugin = csv\nfile = @/r.csv\n", 1)); /* a wrong row takes its picture with it, not the file */
    CHECK(sd_dataset_census(s.d)->skipped == 2 && sd_dataset_size(s.d) == 2);
    close_set(&s);
    static const char *const class_files[][2] = {{"a,0\nb,0\n", "each number from 0 to 1 is expected once"},
                                                 {"a,0\nb,2\n", "classes.csv:2: class b has number 2"},
                                                 {"a,x\n", "classes.csv:1: a class name, or name,number"},
                                                 {"\n", "holds no class names"}};
    for (uint32_t i = 0; i < 4; i++) {
        write_file(folder, "classes.csv", class_files[i][0]);
        CHECK_FAILS(open_set(&s, folder, "plugin = csv\nfile = @/r.csv\nclass_file = @/classes.csv\n", 1), SODET_E_INVALID,
                    class_files[i][1]);
        close_set(&s);
    }
}

int main(void)
{
    plain();
    header();
    refusals();
    return check_done(40);
}
