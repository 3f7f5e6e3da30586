/* The VOC evaluator against the recorded average precisions of voc2012-100: 16 variants, mean and every class. */
#include <dirent.h>

#include "golden.h"
#include "run.h"

static const char *names[21];

static char *slurp(const char *path)
{
    char *text = NULL;
    uint64_t n;
    sodet_err err = SODET_ERR_INIT;
    return sd_file_read(path, 1 << 20, &text, &n, &err) == SODET_OK ? text : NULL;
}

static double tag(const char *from, const char *end, const char *name)
{
    const char *p = strstr(from, name);
    return p && p < end ? strtod(p + strlen(name), NULL) : (double)NAN;
}

static int32_t label_of(const char *p)
{
    for (int32_t i = 0; names[i]; i++)
        if (strncmp(p, names[i], strlen(names[i])) == 0 && p[strlen(names[i])] == '<')
            return i;
    return -1;
}

/* Objects of one annotation; these files hold no comments and one tag a line. Parts of an object have boxes of their own, behind it. */
static uint64_t read_objects(const char *path, sodet_object *out, double *xywh)
{
    char *text = slurp(path);
    uint64_t n = 0;
    CHECK(text != NULL);
    for (const char *p = text; p && (p = strstr(p, "<object>"));) {
        const char *end = strstr(p, "</object>"), *part = strstr(p, "<part>"), *stop = part && part < end ? part : end,
                   *name = strstr(p, "<name>");
        const double c[4] = {tag(p, stop, "<xmin>"), tag(p, stop, "<ymin>"), tag(p, stop, "<xmax>"), tag(p, stop, "<ymax>")};
        out[n] = (sodet_object){.box = {(float)c[0], (float)c[1], (float)c[2], (float)c[3]},
                                .label = label_of(name + 6),
                                .flags = tag(p, end, "<difficult>") == 1 ? SODET_BOX_DIFFICULT : 0};
        CHECK(out[n].label >= 0 && isfinite(c[0] + c[1] + c[2] + c[3]));
        memcpy(xywh + 4 * n, (double[]){c[0], c[1], c[2] - c[0], c[3] - c[1]}, 4 * sizeof *xywh);
        n++;
        p = end;
    }
    sd_free(text);
    return n;
}

static uint64_t read_detections(const char *path, sodet_detection *out, double *xywh, double *scores)
{
    char *text = slurp(path);
    uint64_t n = 0;
    for (char *p = text, *end; p; p = end) {
        double v[6];
        end = p;
        for (int i = 0; i < 6; i++)
            v[i] = strtod(end, &end);
        if (end == p)
            break;
        out[n] =
            (sodet_detection){.box = {(float)v[2], (float)v[3], (float)v[4], (float)v[5]}, .label = (int32_t)v[0], .score = (float)v[1]};
        scores[n] = v[1];
        memcpy(xywh + 4 * n, (double[]){v[2], v[3], v[4] - v[2], v[5] - v[3]}, 4 * sizeof *xywh);
        n++;
    }
    sd_free(text);
    return n;
}

static sd_gather *load(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_gather *g = NULL;
    uint64_t n_objects = 0, n_detections = 0;
    CHECK_OK(sd_gather_new(names, NULL, 20, &g, &err));
    char annotations[1000], detections[1000];
    snprintf(annotations, sizeof annotations, "%s", check_shared("data/voc2012-100/Annotations"));
    snprintf(detections, sizeof detections, "%s", check_shared("data/voc2012-100/dets/abs_xyx2y2"));
    DIR *dir = opendir(annotations);
    int64_t key = 0;
    for (struct dirent *e; dir && g && (e = readdir(dir));) {
        static sodet_object o[200];
        static sodet_detection d[200];
        static double oxywh[800], dxywh[800], scores[200];
        char path[1400];
        if (!strstr(e->d_name, ".xml"))
            continue;
        key = strtoll(e->d_name, NULL, 10) * 1000000 + strtoll(e->d_name + 5, NULL, 10);
        sd_gather_image image = {
            .key = key, .name = e->d_name, .objects = o, .object_xywh = oxywh, .detections = d, .detection_xywh = dxywh, .scores = scores};
        snprintf(path, sizeof path, "%s/%.200s", annotations, e->d_name);
        image.n_objects = read_objects(path, o, oxywh);
        snprintf(path, sizeof path, "%s/%.*s.txt", detections, (int)strlen(e->d_name) - 4, e->d_name);
        image.n_detections = read_detections(path, d, dxywh, scores);
        n_objects += image.n_objects;
        n_detections += image.n_detections;
        CHECK_OK(sd_gather_add(g, &image, &err));
        CHECK_OK(sd_gather_add(g, &image, &err)); /* twice, as padded batches do: the second is left out */
    }
    if (dir)
        closedir(dir);
    CHECK_EQ(n_objects, 273);
    CHECK_EQ(n_detections, 452);
    return g;
}

int main(void)
{
    sodet_err err = SODET_ERR_INIT;
    char names_path[1000];
    const char *list = check_shared("data/voc2012-100/voc.names"),
               *expected = check_shared("data/eval-fixtures/expected-voc2012-100-ap.json");
    if (!list || !expected) {
        check_skip("voc2012-100 is not there");
        CHECK(1);
        return check_done(1);
    }
    snprintf(names_path, sizeof names_path, "%s", list);
    const gold *root = gold_read(expected, "expected-voc2012-100-ap.json"), *variants = gold_get(root, "voc2012-100");
    char *text = slurp(names_path), *rest = text;
    for (int i = 0; i < 20 && rest; i++) {
        names[i] = strsep(&rest, "\n");
        char *cr = strchr(names[i], '\r');
        if (cr)
            *cr = '\0';
    }
    sd_gather *g = load();
    sodet_eval_input in;
    CHECK_OK(sd_gather_finish(g, 2, &in, &err));
    CHECK_EQ(in.n_images, 100);
    CHECK_EQ(sd_gather_duplicates(g), 100);
    double worst = 0;
    CHECK_EQ(gold_size(variants), 16);
    for (uint64_t i = 0; i < gold_size(variants); i++) {
        const char *key = gold_key(variants, i);
        char options[300];
        sodet_eval_sink sink = {.n = 0};
        snprintf(options, sizeof options, "iou = %s\nplus_one = %s\ndifficult = %s\nap = %s", strstr(key, "0.75") ? "0.75" : "0.5",
                 strstr(key, "no +1") ? "no" : "yes", strstr(key, "counted") ? "count" : "ignore",
                 strstr(key, "11-point") ? "11point" : "area");
        CHECK_OK(run_evaluator("voc", options, &in, &sink, &err));
        double want = gold_number(gold_path(variants, key, "mAP", NULL)), got = sd_eval_sink_get(&sink, "mAP", NULL);
        CHECK_NEAR(got, want, 0, 1e-12);
        const gold *classes = gold_path(variants, key, "AP", NULL);
        CHECK_EQ(gold_size(classes), 20);
        for (uint64_t c = 0; c < gold_size(classes); c++) {
            char metric[100];
            snprintf(metric, sizeof metric, "AP/%s", gold_key(classes, c));
            double e = fabs(sd_eval_sink_get(&sink, metric, NULL) - gold_number(gold_at(classes, c)));
            check_count();
            if (!(e <= 1e-12))
                check_fail(__FILE__, __LINE__, "%s: %s off by %.3g", key, metric, e);
            worst = e > worst ? e : worst;
        }
        sd_eval_sink_clear(&sink);
    }
    printf("largest difference to the recorded numbers %.2g\n", worst);
    sd_gather_free(g);
    gold_close(root);
    sd_free(text);
    return check_done(300);
}
