/* Result files: what is read, what is refused and in which words; the empty list; the devkit's text files. */
#include "run.h"

static char folder[1000];

static const char *put(const char *name, const char *text)
{
    static char path[4][1200];
    static int next;
    char *p = path[next++ % 4];
    sodet_err err = SODET_ERR_INIT;
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    CHECK_OK(sd_file_write_atomic(p, text, strlen(text), &err));
    return p;
}

#define IMAGES  "\"images\":[{\"id\":7,\"file_name\":\"a/b.jpg\"},{\"id\":\"3\",\"file_name\":\"c.x.png\"}]"
#define CLASSES "\"categories\":[{\"id\":9,\"name\":\"dog\"},{\"id\":2,\"name\":\"cat/lynx\"}]"
#define OBJECT                                                                                                                             \
    "{\"id\":5,\"image_id\":7,\"category_id\":9,\"bbox\":[1,2,30,40],\"iscrowd\":0,\"segmentation\":{\"counts\":\"a]b\",\"size\":[1,2]}}"
static const char good[] = "{" IMAGES ",\"annotations\":[" OBJECT "]," CLASSES ",\"info\":null}";

static void truth(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_gather *g = NULL;
    sodet_eval_input in;
    CHECK_OK(sd_read_coco_truth(put("g.json", good), 2, &g, &err));
    if (!g)
        return;
    CHECK_OK(sd_gather_finish(g, 3, &in, &err));
    CHECK(in.n_images == 2 && in.n_classes == 2 && in.n_threads == 3 && in.object_first[2] == 1 && in.detection_first[2] == 0);
    CHECK(sd_gather_key(g, 0) == 3 && sd_gather_key(g, 1) == 7);
    CHECK_STR(sd_gather_name(g, 1), "a/b.jpg");
    CHECK_STR(in.class_names[0], "cat/lynx");
    CHECK(sd_gather_category(g, 1) == 9 && in.objects[0].label == 1 && in.object_first[1] == 0 && in.objects[0].id == 5);
    CHECK(in.objects[0].area == 1200 && in.objects[0].box.x2 == 31 && in.object_xywh[3] == 40);
    sd_gather_free(g);

    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "line 1"},
        {"[]", "line 1"},
        {"{" IMAGES "," CLASSES "}", "images, annotations and categories are needed"},
        {"{" IMAGES ",\"annotations\":[{\"id\":5,\"image_id\":7,\"category_id\":9}]," CLASSES "}", "needs image_id, category_id and bbox"},
        {"{" IMAGES ",\"annotations\":[{\"image_id\":7,\"category_id\":9,\"bbox\":[1,2,3]}]," CLASSES "}", "bbox has 3 numbers"},
        {"{" IMAGES ",\"annotations\":[{\"image_id\":7,\"category_id\":1,\"bbox\":[1,2,3,4]}]," CLASSES "}",
         "category_id 1, which `categories` does not list"},
        {"{" IMAGES ",\"annotations\":[{\"image_id\":\"x7\",\"category_id\":1,\"bbox\":[1,2,3,4]}]," CLASSES "}",
         "id \"x7\" is not an integer"},
        {"{" IMAGES ",\"annotations\":[],\"categories\":[{\"id\":1,\"name\":\"a\"},{\"id\":1,\"name\":\"b\"}]}", "have the same id 1"},
        {"{\"images\":[{\"file_name\":\"a\"}],\"annotations\":[]," CLASSES "}", "without id"},
        {"{" IMAGES ",\"annotations\":[" OBJECT "]," CLASSES "}}", "line 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_FAILS(sd_read_coco_truth(put("bad.json", bad[i].text), 2, &g, &err), SODET_E_INVALID, bad[i].says);
        CHECK(!g && strstr(err.text, "bad.json"));
    }
}

static void detections(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_gather *g = NULL;
    sodet_eval_input in;
    CHECK_OK(sd_read_coco_truth(put("g.json", good), 2, &g, &err));
    if (!g)
        return;
    static const struct {
        const char *text;
        const char *says; /* NULL: good */
        uint64_t n;
    } files[] = {
        {"[]", NULL, 0},
        {"[{\"image_id\":7,\"category_id\":9,\"bbox\":[1,2,30.5,40],\"score\":0.1}]", NULL, 1},
        {"[{\"image_id\":7,\"category_id\":1,\"bbox\":[1,2,30.5,40],\"score\":0.1}]", NULL, 0}, /* of no class here */
        {"{\"annotations\":[{\"image_id\":0,\"category_id\":4,\"bbox\":[1,2,3,4],\"score\":1},{\"image_id\":1,\"category_id\":4,\"bbox\":["
         "1,2,3,4],\"score\":1}],"
         "\"images\":[{\"id\":0,\"file_name\":\"c.x.png\"},{\"id\":1,\"file_name\":\"a/"
         "b.jpg\"}],\"categories\":[{\"id\":4,\"name\":\"dog\"}]}",
         NULL, 2},
        {"[{\"image_id\":8,\"category_id\":9,\"bbox\":[1,2,3,4],\"score\":1}]", "detection 1 is of image 8", 0},
        {"[{\"image_id\":7,\"category_id\":9,\"bbox\":[1,2,3,4]}]", "without score", 0},
        {"[{\"image_id\":7,\"category_id\":9,\"bbox\":[1,2,3,NaN],\"score\":1}]", "line 1", 0},
        {"[{\"image_id\":7,\"category_id\":9,\"bbox\":[10,20,5,-1],\"score\":1}]", "bbox is 10 20 5 -1: width and height are at least 0",
         0},
        {"[{\"image_id\":7,\"category_id\":9,\"bbox\":[1,2,1e39,4],\"score\":1}]", "bbox is 1 2 1e+39 4: more than 1e+09 pixels", 0},
        {"[{\"image_id\":7,\"category_id\":9,\"bbox\":[-2e9,2,3,4],\"score\":1}]", "more than 1e+09 pixels", 0},
        {"[{\"image_id\":7,\"category_id\":9,\"bbox\":[-3,2,0,4],\"score\":1}]", NULL, 1},
        {"{\"results\":[]}", "neither a list", 0},
        {"[{\"image_id\":7,\"category_id\":9,\"bbox\":[1,2,3,4],\"score\":1}", "line 1", 0},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = put("d.json", files[i].text);
        if (files[i].says) {
            CHECK_FAILS(sd_read_coco_detections(path, g, 2, &err), SODET_E_INVALID, files[i].says);
            continue;
        }
        CHECK_OK(sd_read_coco_detections(path, g, 2, &err));
        CHECK_OK(sd_gather_finish(g, 1, &in, &err));
        CHECK_EQ(in.detection_first[in.n_images], files[i].n);
    }
    CHECK_OK(sd_read_coco_detections(put("d.json", files[3].text), g, 2, &err));
    CHECK_OK(sd_gather_finish(g, 1, &in, &err));
    CHECK(in.detection_first[1] == 1 && in.detections[0].label == 1);

    /* Category ids whose labels are remembered in the same place. */
    sd_gather *far = NULL;
    static const char apart[] =
        "{" IMAGES ",\"annotations\":[],\"categories\":[{\"id\":9,\"name\":\"a\"},{\"id\":265,\"name\":\"b\"},{\"id\":-247,"
        "\"name\":\"c\"}]}";
    static const int64_t ids[] = {265, 9, 265, -247, 9}, labels[] = {2, 1, 2, 0, 1};
    sd_text list = {0};
    for (int i = 0; i < 5; i++)
        sd_text_printf(&list, "%s{\"image_id\":7,\"category_id\":%d,\"bbox\":[1,2,3,4],\"score\":1}", i ? "," : "[", (int)ids[i]);
    sd_text_printf(&list, "]");
    CHECK_OK(sd_read_coco_truth(put("far.json", apart), 2, &far, &err));
    CHECK_OK(sd_read_coco_detections(put("d.json", list.text), far, 2, &err));
    CHECK_OK(sd_gather_finish(far, 1, &in, &err));
    CHECK_EQ(in.detection_first[2], 5);
    for (uint64_t i = 0; i < 5; i++)
        CHECK_EQ(in.detections[i].label, labels[i]);
    sd_text_free(&list);
    sd_gather_free(far);
    CHECK_OK(sd_read_coco_detections(put("d.json", files[3].text), g, 2, &err));
    CHECK_OK(sd_gather_finish(g, 1, &in, &err));

    /* The devkit's files: one per class, corners 1-based and inclusive; a class without detections has an empty one. */
    char text_folder[1200];
    snprintf(text_folder, sizeof text_folder, "%s/voc", folder);
    CHECK_OK(sd_write_voc_detections(text_folder, "comp4_det_val_", g, &in, &err));
    char *text = NULL, path[1400];
    uint64_t n;
    snprintf(path, sizeof path, "%s/comp4_det_val_dog.txt", text_folder);
    CHECK_OK(sd_file_read(path, 0, &text, &n, &err));
    CHECK_STR(text, "c.x 1 2 3 4 6\nb 1 2 3 4 6\n");
    sd_free(text);
    snprintf(path, sizeof path, "%s/comp4_det_val_cat_lynx.txt", text_folder);
    CHECK_OK(sd_file_read(path, 0, &text, &n, &err));
    CHECK_STR(text, "");
    sd_free(text);

    /* O-28: no detections are a valid file. */
    CHECK_OK(sd_read_coco_detections(put("d.json", "[]"), g, 2, &err));
    CHECK_OK(sd_gather_finish(g, 1, &in, &err));
    snprintf(path, sizeof path, "%s/empty.json", folder);
    CHECK_OK(sd_write_coco_detections(path, g, &in, &err));
    CHECK_OK(sd_file_read(path, 0, &text, &n, &err));
    CHECK_STR(text, "[]\n");
    sd_free(text);
    sd_gather_free(g);
}

/* Images in any order, twice: sorted, the first kept; written floats are read back exactly. */
static void gathered(void)
{
    sodet_err err = SODET_ERR_INIT;
    static const char *const classes[] = {"x"};
    sd_gather *g = NULL;
    sodet_eval_input in;
    const sodet_detection d[] = {{.box = {0.1f, 0.2f, 10.3f, 1e-3f}, .score = 0.7f}, {.box = {1.0f / 3, 2, 4, 5}, .score = 0.1f}};
    CHECK_OK(sd_gather_new(classes, (const int64_t[]){18}, 1, &g, &err));
    if (!g)
        return;
    static const int64_t keys[] = {5, 2, 5, 9, 2};
    for (int i = 0; i < 5; i++)
        CHECK_OK(sd_gather_add(
            g,
            &(sd_gather_image){
                .key = keys[i], .name = i < 2 ? "first" : "again", .detections = d + (i == 1), .n_detections = i == 1 ? 1 : 2},
            &err));
    CHECK_OK(sd_gather_finish(g, 1, &in, &err));
    CHECK(in.n_images == 3 && sd_gather_key(g, 0) == 2 && sd_gather_key(g, 1) == 5 && sd_gather_key(g, 2) == 9);
    CHECK_EQ(sd_gather_duplicates(g), 2);
    CHECK_STR(sd_gather_name(g, 1), "first");
    CHECK(in.detection_first[1] == 1 && in.detection_first[2] == 3 && in.detection_first[3] == 5 && in.detections[0].score == 0.1f);
    char path[1200], *text = NULL;
    uint64_t n;
    snprintf(path, sizeof path, "%s/r.json", folder);
    CHECK_OK(sd_write_coco_detections(path, g, &in, &err));
    CHECK_OK(sd_file_read(path, 0, &text, &n, &err));
    const char *box = text ? strstr(text, "\"image_id\": 5, \"category_id\": 18, \"bbox\": [") : NULL;
    CHECK(box != NULL);
    if (box) {
        double v[4];
        CHECK_EQ(sscanf(strchr(box, '[') + 1, "%lf, %lf, %lf, %lf", &v[0], &v[1], &v[2], &v[3]), 4);
        CHECK(v[0] == (double)0.1f && v[1] == (double)0.2f && v[2] == (double)10.3f - (double)0.1f && v[3] == (double)1e-3f - (double)0.2f);
    }
    sd_free(text);
    sd_gather_free(g);
}

int main(void)
{
    const char *scratch = check_scratch("eval_files");
    snprintf(folder, sizeof folder, "%s", scratch ? scratch : "");
    truth();
    detections();
    gathered();
    return check_done(80);
}
