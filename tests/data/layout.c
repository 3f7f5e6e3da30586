/* Data sets written in the layouts of voc, coco, yolo and csv and read again: the same pictures, classes, marks and floats. */
#include "core/data/layout.h"
#include "plugins/folder.h"

#include <sys/stat.h>
#include <unistd.h>

static char base[1000];

static const char *const read_again[SD_LAYOUTS] = {
    "plugin = voc\nroot = @\nsplit = train\nclasses = big dog, a & b <c>, it's\n",
    "plugin = coco\nannotations = @/annotations/instances_train.json\npictures = @\n",
    "plugin = yolo\nroot = @\nsplit = train\n",
    "plugin = csv\nfile = @/train.csv\nclass_file = @/classes.csv\n",
};

/* from written as split "train" into a new folder below base; its path. */
static const char *write_layout(const set *from, const char *name, uint32_t layout, uint32_t pictures, sd_text *report)
{
    static char folders[8][1100];
    static uint32_t next;
    char *folder = folders[next++ % 8];
    snprintf(folder, sizeof folders[0], "%s/%s", base, name);
    sd_layout *l = NULL;
    CHECK_OK(sd_layout_open(folder, layout, pictures, sd_dataset_classes(from->d), NULL, &l, &err));
    CHECK_OK(sd_layout_add(l, "train", from->d, &err));
    CHECK_OK(sd_layout_finish(l, report, &err));
    sd_layout_close(l);
    return folder;
}

/* Sample by sample; flags: which marks must be equal, the others must be gone. */
static void same(set *a, set *b, uint32_t flags, bool sizes)
{
    CHECK_EQ(sd_dataset_size(a->d), sd_dataset_size(b->d));
    CHECK_EQ(sd_dataset_classes(a->d)->n, sd_dataset_classes(b->d)->n);
    for (uint64_t i = 0; i < sd_dataset_size(a->d) && i < sd_dataset_size(b->d); i++) {
        uint64_t k = i; /* folders are read in the order of names */
        CHECK_OK(sd_dataset_locate(a->d, i, a->s, &err));
        const char *stem = strrchr(a->s->path.text, '/') + 1;
        for (k = 0; k < sd_dataset_size(b->d); k++) {
            CHECK_OK(sd_dataset_locate(b->d, k, b->s, &err));
            if (strcmp(strrchr(b->s->path.text, '/') + 1, stem) == 0)
                break;
        }
        CHECK(k < sd_dataset_size(b->d));
        CHECK(!sizes || (a->s->width == b->s->width && a->s->height == b->s->height));
        CHECK_EQ(a->s->n_objects, b->s->n_objects);
        for (uint64_t o = 0; o < a->s->n_objects && o < b->s->n_objects; o++) {
            const sodet_object *x = &a->s->objects[o], *y = &b->s->objects[o];
            CHECK(memcmp(&x->box, &y->box, sizeof x->box) == 0);
            CHECK_STR(sd_dataset_classes(a->d)->names[x->label], sd_dataset_classes(b->d)->names[y->label]);
            CHECK_EQ(x->flags & flags, y->flags);
        }
        CHECK_OK(sd_dataset_load(b->d, k, b->s, &err));
    }
}

static void make_voc(char folder[1100])
{
    static const char *const pictures[] = {"a.b c.JPG", "photo 1.png", "x.jpg.png", "none.png"};
    snprintf(folder, 1100, "%s/source", base);
    for (uint32_t i = 0; i < 4; i++) {
        char name[200], text[2000];
        snprintf(name, sizeof name, "JPEGImages/%s", pictures[i]);
        write_picture(folder, name, 97 + i, 53);
        snprintf(name, sizeof name, "Annotations/%.*s.xml", (int)(strrchr(pictures[i], '.') - pictures[i]), pictures[i]);
        snprintf(text, sizeof text, "<annotation><size><width>%u</width><height>53</height></size>%s%s%s</annotation>", 97 + i,
                 i == 3 ? ""
                        : "<object><name>big dog</name><difficult>1</difficult><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>33</xmax><ymax>"
                          "53</ymax></bndbox></object>",
                 i == 0 ? "<object><name>a &amp; b &lt;c&gt;</name><truncated>1</truncated><bndbox><xmin>10.37</xmin><ymin>7</ymin><xmax>"
                          "123.456</xmax><ymax>50.1</ymax></bndbox></object>"
                        : "",
                 i == 2 ? "<object><name>it's</name><bndbox><xmin>2</xmin><ymin>3</ymin><xmax>4</xmax><ymax>5</ymax></bndbox></object>"
                        : "");
        write_file(folder, name, text);
    }
}

static void there_and_back(void)
{
    char folder[1100];
    make_voc(folder);
    set source, there, back;
    CHECK_OK(open_set(&source, folder, "plugin = voc\nroot = @\nclasses = big dog, a & b <c>, it's\n", 0));
    CHECK(sd_dataset_size(source.d) == 4 && sd_dataset_census(source.d)->objects == 5);
    for (uint32_t layout = 0; layout < SD_LAYOUTS; layout++) {
        for (uint32_t mode = 0; mode < 3; mode++) {
            char name[100];
            sd_text report = {0};
            bool marks = layout == SD_LAYOUT_VOC || layout == SD_LAYOUT_COCO;
            if (layout == SD_LAYOUT_YOLO && mode == SD_PICTURES_LEAVE)
                continue;
            snprintf(name, sizeof name, "%s-%s", sd_layout_names[layout], sd_picture_modes[mode]);
            const char *to = write_layout(&source, name, layout, mode, &report);
            CHECK_OK(open_set(&there, to, read_again[layout], 0));
            same(&source, &there, marks ? ~0u : 0, layout != SD_LAYOUT_CSV);
            CHECK(strstr(report.text, "  train: 4 pictures, 5 objects\n") != NULL);
            CHECK((strstr(report.text, "3 difficult objects are now ordinary ones") == NULL) == marks);
            CHECK((strstr(report.text, "1 truncated object has lost that mark") == NULL) == marks);
            CHECK(strstr(report.text, "exactly") == NULL && strstr(report.text, "area") == NULL);
            sd_text_free(&report);
            snprintf(name, sizeof name, "back-%u-%u", layout, mode);
            back = (set){0};
            to = write_layout(&there, name, SD_LAYOUT_VOC, SD_PICTURES_COPY, &report);
            CHECK_OK(open_set(&back, to, read_again[SD_LAYOUT_VOC], 0));
            same(&source, &back, marks ? ~0u : 0, true);
            close_set(&back);
            close_set(&there);
            sd_text_free(&report);
        }
    }
    struct stat st;
    snprintf(folder, sizeof folder, "%s/voc-link/JPEGImages/none.png", base);
    CHECK(lstat(folder, &st) == 0 && S_ISLNK(st.st_mode));
    snprintf(folder, sizeof folder, "%s/voc-leave/JPEGImages", base);
    CHECK(lstat(folder, &st) != 0);
    sd_layout *l = NULL;
    snprintf(folder, sizeof folder, "%s/yolo-leave", base);
    CHECK_FAILS(sd_layout_open(folder, SD_LAYOUT_YOLO, SD_PICTURES_LEAVE, sd_dataset_classes(source.d), NULL, &l, &err), SODET_E_INVALID,
                "labels lie beside their pictures");
    snprintf(folder, sizeof folder, "%s/voc-copy", base);
    CHECK_FAILS(sd_layout_open(folder, SD_LAYOUT_VOC, SD_PICTURES_COPY, sd_dataset_classes(source.d), NULL, &l, &err), SODET_E_INVALID,
                "is not empty");
    close_set(&source);
}

/* Floats of every kind, a crowd, an area, two pictures of one name, boxes over the left edge. */
static void coco(void)
{
    char folder[1100];
    sd_text json = {0}, report = {0};
    uint64_t state = 7;
    snprintf(folder, sizeof folder, "%s/coco", base);
    write_picture(folder, "d1/p.png", 641, 479);
    write_picture(folder, "d2/p.png", 333, 500);
    sd_text_printf(
        &json, "{\"images\": [{\"id\": 5, \"file_name\": \"d1/p.png\", \"width\": 641, \"height\": 479},\n"
               "{\"id\": 2, \"file_name\": \"d2/p.png\"}],\n\"categories\": [{\"id\": 9, \"name\": \"a\"}, {\"id\": 4, \"name\": \"b\"}],"
               "\n\"annotations\": [{\"id\": 1, \"image_id\": 5, \"category_id\": 9, \"bbox\": [10, 10, 20, 20], \"iscrowd\": 1, "
               "\"area\": 400}, {\"id\": 2, \"image_id\": 2, \"category_id\": 4, \"bbox\": [1, 1, 9, 9], \"area\": 17}");
    for (uint32_t i = 0; i < 500; i++) {
        double v[4];
        for (uint32_t k = 0; k < 4; k++) {
            state = sd_mix64(state + i);
            v[k] = (double)(float)((double)(state >> 40) / (1 << 24) * (k < 2 ? 300 : 200));
        }
        sd_text_printf(&json, ",\n{\"id\": %u, \"image_id\": %u, \"category_id\": 9, \"bbox\": [%.17g, %.17g, %.17g, %.17g]}", i + 3,
                       i % 2 ? 5 : 2, v[0], v[1], v[2], v[3]);
    }
    sd_text_printf(&json, "]}");
    write_file(folder, "x.json", json.text);
    set source, there;
    CHECK_OK(open_set(&source, folder, "plugin = coco\nannotations = @/x.json\n", 0));
    for (uint32_t layout = 0; layout < SD_LAYOUTS; layout++) {
        char name[40], lines[300];
        snprintf(name, sizeof name, "from-coco-%u", layout);
        const char *to = write_layout(&source, name, layout, SD_PICTURES_COPY, &report);
        bool own = layout == SD_LAYOUT_COCO;
        CHECK((strstr(report.text, "1 crowd object is left out") == NULL) == own);
        CHECK((strstr(report.text, "1 area of a segmentation is lost") == NULL) == own);
        CHECK(strstr(report.text, "1 picture got a name with a number") != NULL);
        CHECK(strstr(report.text, "exactly") == NULL);
        snprintf(lines, sizeof lines, "%s", read_again[layout]);
        if (layout == SD_LAYOUT_VOC)
            snprintf(strstr(lines, "classes"), 40, "classes = b, a\n");
        CHECK_OK(open_set(&there, to, lines, 0));
        const sd_census *c = sd_dataset_census(there.d);
        CHECK(c->images == 2 && c->objects == (own ? 502 : 501) && c->crowd == own);
        CHECK_STR(sd_dataset_classes(there.d)->names[0], "b");
        /* Both pictures, in the order of the file, object by object; the crowd is the first of its picture. */
        for (uint64_t i = 0; i < 2; i++) {
            CHECK_OK(sd_dataset_describe(source.d, i, source.s, &err));
            CHECK_OK(sd_dataset_describe(there.d, layout == SD_LAYOUT_YOLO ? !i : i, there.s, &err)); /* "p-2" comes before "p." */
            uint64_t skip = source.s->n_objects - there.s->n_objects;
            CHECK_EQ(skip, i == 0 && !own);
            for (uint64_t k = 0; k < there.s->n_objects; k++)
                CHECK(memcmp(&source.s->objects[k + skip].box, &there.s->objects[k].box, sizeof(sodet_box)) == 0);
            CHECK(!own || source.s->objects[0].area == there.s->objects[0].area);
        }
        if (own)
            CHECK(sd_dataset_classes(there.d)->category_id[0] == 4 && sd_dataset_classes(there.d)->category_id[1] == 9);
        close_set(&there);
        sd_text_free(&report);
    }
    close_set(&source);
    write_file(folder, "x.json",
               "{\"images\": [{\"id\": 1, \"file_name\": \"d1/p.png\"}], \"categories\": [{\"id\": 1, \"name\": \"b\"}], "
               "\"annotations\": [{\"id\": 1, \"image_id\": 1, \"category_id\": 1, \"bbox\": [-0.5, -9, 9, 20]}]}");
    CHECK_OK(open_set(&source, folder, "plugin = coco\nannotations = @/x.json\n", 0));
    write_layout(&source, "edge-voc", SD_LAYOUT_VOC, SD_PICTURES_COPY, &report);
    CHECK(strstr(report.text, "1 box will not be read back exactly: voc takes up to a pixel") != NULL);
    sd_text_free(&report);
    const char *to = write_layout(&source, "edge-yolo", SD_LAYOUT_YOLO, SD_PICTURES_COPY, &report);
    CHECK(strstr(report.text, "exactly") == NULL);
    CHECK_OK(open_set(&there, to, read_again[SD_LAYOUT_YOLO], 0));
    CHECK_OK(sd_dataset_describe(there.d, 0, there.s, &err));
    CHECK(box_is(there.s, 0, -0.5, -9, 8.5, 11));
    close_set(&there);
    close_set(&source);
    sd_text_free(&report);
    sd_text_free(&json);
}

/* Class lists and values that an INI would misread. */
static void ini(void)
{
    static const char *const odd[] = {"a", "b, c"}, *const plain[] = {"a", "big dog"};
    static const int64_t ids[] = {1, 2};
    sd_text t = {0};
    bool file;
    sd_layout_classes(&t, &(sd_classes){2, plain, ids}, "n.txt", &file);
    CHECK(!file && strcmp(t.text, "classes = a, big dog\n") == 0);
    sd_text_free(&t);
    sd_layout_classes(&t, &(sd_classes){2, odd, ids}, "n.txt", &file);
    CHECK(file && strcmp(t.text, "classes = @n.txt\n") == 0);
    sd_text_free(&t);
    sd_layout_ini_value(&t, "root", "a#b \"c\"");
    CHECK_STR(t.text, "root = 'a#b \"c\"'\n");
    sd_text_free(&t);
}

int main(void)
{
    snprintf(base, sizeof base, "%s", check_scratch("layout"));
    there_and_back();
    coco();
    ini();
    check_scratch_remove(base);
    return check_done(2000);
}
