/* How anchors cover boxes, against numbers worked out by hand: the largest IoU, k-means under 1 - IoU, boxes in the network's input. */
#include "core/data/boxes.h"
#include "core/detect/cluster.h"
#include "core/detect/match.h"
#include "files.h"

static void best(void)
{
    /* Two anchors of 10 x 10: [0, 10] and [15, 25] in both directions; the third is the first again. */
    float box[] = {5, 5, 10, 10, 20, 20, 10, 10, 5, 5, 10, 10};
    const sodet_anchors a = {.struct_size = sizeof a, .n = 3, .box = box, .width = 40, .height = 40};
    static const struct {
        sodet_box box;
        double iou;
        int anchor;
    } rows[] = {
        {{0, 0, 10, 10}, 1, 0},         /* the lower of two that tie */
        {{0, 0, 10, 5}, 0.5, 0},        /* 50 / 100 */
        {{5, 0, 15, 10}, 1.0 / 3, 0},   /* 50 / 150 */
        {{15, 15, 25, 30}, 2.0 / 3, 1}, /* 100 / 150 */
        {{7, 7, 17, 17}, 9.0 / 191, 0}, /* 3 x 3 of the first, 2 x 2 of the second */
        {{10, 0, 15, 10}, 0, -1},       /* touches */
        {{0, 0, 40, 40}, 100.0 / 1600, 0},
    };
    enum { N = sizeof rows / sizeof *rows, MANY = 100 };
    sodet_box boxes[MANY];
    float iou[MANY];
    int32_t anchor[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        boxes[i] = rows[i % N].box;
    sd_best_anchors(&a, boxes, MANY, iou, anchor);
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK_NEAR(iou[i], rows[i % N].iou, 1e-6, 1e-7);
        CHECK_EQ(anchor[i], rows[i % N].anchor);
    }
}

static void clusters(void)
{
    static const double size[][2] = {{10, 10}, {10, 11}, {10, 12}, {100, 50}, {105, 50}, {110, 50}};
    sd_cluster c[8];
    uint32_t used;
    double iou;
    CHECK_NEAR(sd_size_iou(10, 10, 10, 11), 100.0 / 110, 1e-12, 0);
    CHECK_NEAR(sd_size_iou(20, 10, 10, 20), 100.0 / 300, 1e-12, 0);
    for (uint64_t seed = 0; seed < 5; seed++) {
        CHECK_OK(sd_cluster_sizes(size, 6, 2, seed, c, &used, &iou, &err));
        CHECK_EQ(used, 2);
        CHECK(c[0].n == 3 && c[1].n == 3);
        CHECK_NEAR(c[0].width, 10, 1e-12, 0);
        CHECK_NEAR(c[0].height, 11, 1e-12, 0);
        CHECK_NEAR(c[1].width, 105, 1e-12, 0);
        CHECK_NEAR(c[1].height, 50, 1e-12, 0);
        CHECK_NEAR(c[0].iou, (10.0 / 11 + 1 + 11.0 / 12) / 3, 1e-12, 0);
        CHECK_NEAR(c[1].iou, (100.0 / 105 + 1 + 105.0 / 110) / 3, 1e-12, 0);
        CHECK_NEAR(iou, (c[0].iou + c[1].iou) / 2, 1e-12, 0);
    }
    /* More clusters than sizes, one cluster, none. */
    CHECK_OK(sd_cluster_sizes(size, 6, 8, 1, c, &used, &iou, &err));
    CHECK_EQ(used, 6);
    CHECK_NEAR(iou, 1, 1e-12, 0);
    CHECK(c[0].height < 11 && c[2].height > 11 && c[6].n == 0);
    CHECK_OK(sd_cluster_sizes(size, 3, 1, 1, c, &used, &iou, &err));
    CHECK_NEAR(c[0].height, 11, 1e-12, 0);
    CHECK_FAILS(sd_cluster_sizes(size, 0, 1, 1, c, &used, &iou, &err), SODET_E_INVALID, "at least one of each");
}

/* A 200 x 100 picture under resize to 50 x 50: x by 1/4, y by 1/2; a box over the edge is cut first, one outside is counted. The third is
 * stored as 24 x 40 and stands upright, 40 x 24, by its EXIF orientation (O-12): its box is the lower right quarter. */
static void boxes(void)
{
    const char *folder = check_scratch("cover");
    char ini[1000], json[3000];
    set s = {0};
    sd_instance resize = {0};
    sd_boxes b;
    snprintf(json, sizeof json,
             "{\"images\":[{\"id\":1,\"file_name\":\"a.png\",\"width\":200,\"height\":100},{\"id\":2,\"file_name\":\"b.png\"},"
             "{\"id\":3,\"file_name\":\"%s\"}],"
             "\"categories\":[{\"id\":1,\"name\":\"dog\"}],\"annotations\":["
             "{\"id\":1,\"image_id\":1,\"category_id\":1,\"bbox\":[40,20,80,40]},"
             "{\"id\":2,\"image_id\":1,\"category_id\":1,\"bbox\":[180,90,40,40]},"
             "{\"id\":3,\"image_id\":1,\"category_id\":1,\"bbox\":[300,90,40,40]},"
             "{\"id\":4,\"image_id\":2,\"category_id\":1,\"bbox\":[0,0,50,40],\"iscrowd\":1},"
             "{\"id\":5,\"image_id\":3,\"category_id\":1,\"bbox\":[20,12,20,12]}]}",
             check_source("tests/data/pictures/orientation-6.jpg"));
    write_file(folder, "a.json", json);
    write_picture(folder, "b.png", 100, 80); /* its size is in the file alone; a.png need not be there */
    int n =
        snprintf(ini, sizeof ini,
                 "[input]\nsize = 50\n[transform.resize]\nplugin = resize\n[dataset.d]\nplugin = coco\nannotations = %s/a.json\n", folder);
    CHECK_OK(sd_config_open_text(ini, (uint64_t)n, "test.ini", NULL, NULL, 0, &s.cfg, &err));
    CHECK_OK(sd_instance_create(s.cfg, "dataset.d", &s.instance, &err));
    CHECK_OK(sd_instance_create(s.cfg, "transform.resize", &resize, &err));
    sd_data_rules rules;
    sd_data_rules_init(&rules);
    const sd_dataset_part part = {"d", s.instance.ops, s.instance.self};
    CHECK_OK(sd_dataset_open(&part, 1, NULL, 0, &rules, &s.d, &err));
    const sd_link link = {"resize", resize.ops, resize.self};
    const sd_loader_config config = {.dataset = s.d, .links = &link, .n_links = 1, .input = {.width = 50, .height = 50}};
    CHECK_OK(sd_boxes_gather(&config, &b, &err));
    CHECK(b.n == 4 && b.n_items == 3 && b.outside == 1 && b.n_canvases == 1);
    static const sodet_box want[] = {{10, 10, 30, 30}, {45, 45, 50, 50}, {0, 0, 25, 25}, {25, 25, 50, 50}};
    for (uint32_t i = 0; i < 4 && b.n == 4; i++)
        CHECK(memcmp(&b.box[i], &want[i], sizeof *want) == 0);
    CHECK(b.n == 4 && b.labelled[1].x2 == 200 && b.flags[2] == SODET_BOX_CROWD && b.first[1] == 2);
    CHECK(sd_boxes_canvas(&b)->width == 50 && sd_boxes_canvas(&b)->pictures == 3);
    sd_boxes_free(&b);
    sd_instance_destroy(&resize);
    close_set(&s);
}

int main(void)
{
    best();
    clusters();
    boxes();
    return check_done(250);
}
