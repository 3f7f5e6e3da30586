/* O-25: what the network gets of a picture is the same in training, evaluation and detection: a red half and a blue one, in every order of
 * channels that [input] knows. Detection goes through the same loader (eval/infer.c), so its part here is a set of files under the chain of
 * [transform] val; tests/cli/o_25_channels.sh looks at what comes out in the end. */
#include "core/data/recipe.h"
#include "data/files.h"

enum { TRAINING, EVALUATION, DETECTION, WAYS };
enum { W = 16, H = 8 };
static const char *const ways[] = {"training", "evaluation", "detection"};
static char folder[1000];

static void input_of(const char *input, uint32_t way, const float *want, uint32_t channels)
{
    char text[3000], picture[1100];
    const char *paths[] = {picture};
    static const char *const names[] = {"a"};
    sd_config *cfg = NULL;
    sd_split split = {0};
    sd_dataset *files = NULL;
    sd_loader *loader = NULL;
    const sd_batch *b = NULL;
    uint32_t which = way == TRAINING ? SD_SPLIT_TRAIN : SD_SPLIT_VAL;
    snprintf(picture, sizeof picture, "%s/two.png", folder);
    snprintf(
        text, sizeof text,
        "[run]\nname = x\n[input]\nsize = 16x8\nstd = 1, 1, 1\n%s\n[data]\ntrain = d\nval = d\nworkers = 1\n[dataset.d]\nplugin = coco\n"
        "annotations = %s/two.json\n[transform]\ntrain = resize\nval = resize\n",
        input, folder);
    CHECK_OK(sd_config_open_text(text, strlen(text), "test.ini", NULL, NULL, 0, &cfg, &err));
    if (way == DETECTION) {
        sd_data_rules rules;
        sd_data_rules_init(&rules);
        CHECK_OK(sd_split_open_links(cfg, SD_SPLIT_VAL, &split, &err));
        CHECK_OK(sd_dataset_of_files(paths, 1, names, 1, &rules, &files, &err));
    } else {
        CHECK_OK(sd_split_open(cfg, which, NULL, 0, &split, &err));
    }
    sd_loader_config c = sd_split_loader(cfg, &split, which);
    c.dataset = files ? files : c.dataset;
    c.batch = 1;
    CHECK_OK(sd_loader_open(&c, &loader, &err));
    CHECK_OK(loader ? sd_loader_next(loader, &b, &err) : SODET_E_INVALID);
    CHECK(b && b->channels == channels && b->width == W && b->height == H);
    for (uint32_t i = 0; b && i < channels * W * H; i++) {
        double got = (double)b->image[i], expected = (double)want[i / (W * H) * 2 + (i % W >= W / 2)];
        check_count();
        if (!check_close(got, expected, 0, 1e-4))
            check_fail(__FILE__, __LINE__, "%s, %s: value %u is %g, expected %g", ways[way], input, i, got, expected);
    }
    if (b)
        sd_loader_recycle(loader, b);
    sd_loader_close(loader);
    sd_dataset_close(files);
    sd_split_close(&split);
    sd_config_close(cfg);
}

int main(void)
{
    static const struct {
        const char *input;
        uint32_t channels;
        float want[6]; /* plane by plane: red, blue */
    } rows[] = {{"channels = rgb\nmean = 123, 117, 104", 3, {132, -123, -117, -117, -104, 151}},
                {"channels = bgr\nmean = 104, 117, 123", 3, {-104, 151, -117, -117, 132, -123}},
                {"channels = grey\nmean = 100, 100, 100", 1, {0.299f * 255 - 100, 0.114f * 255 - 100}}};
    char path[1100];
    uint8_t rgb[W * H * 3] = {0};
    for (uint32_t i = 0; i < W * H; i++)
        rgb[3 * i + (i % W < W / 2 ? 0 : 2)] = 255;
    snprintf(folder, sizeof folder, "%s", check_scratch("o_25"));
    snprintf(path, sizeof path, "%s/two.png", folder);
    CHECK_OK(sd_png_write(path, rgb, W, H, &err));
    write_file(
        folder, "two.json",
        "{\"images\": [{\"id\": 1, \"file_name\": \"two.png\", \"width\": 16, \"height\": 8}], \"categories\": [{\"id\": 1, \"name\": "
        "\"a\"}], \"annotations\": [{\"id\": 1, \"image_id\": 1, \"category_id\": 1, \"bbox\": [0, 0, 16, 8]}]}");
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t way = 0; way < WAYS; way++)
            input_of(rows[i].input, way, rows[i].want, rows[i].channels);
    }
    check_scratch_remove(folder);
    return check_done(80);
}
