/* Result files. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/eval/internal.h"

/* As few digits as read back to the same double. */
static void put_number(sd_text *t, double v)
{
    static const int digits[] = {6, 9, 15, 16, 17};
    char text[40];
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        snprintf(text, sizeof text, "%.*g", digits[i], v);
        if (i + 1 == sizeof digits / sizeof *digits || strtod(text, NULL) == v)
            break;
    }
    sd_text_append(t, text, strlen(text));
}

static double score_of(const sodet_eval_input *in, uint64_t d)
{
    return in->detection_scores ? in->detection_scores[d] : (double)in->detections[d].score;
}

static bool is_finite(const double xywh[4], double score)
{
    return isfinite(score) && isfinite(xywh[0]) && isfinite(xywh[1]) && isfinite(xywh[2]) && isfinite(xywh[3]);
}

sodet_status sd_write_coco_detections(const char *path, const sd_gather *g, const sodet_eval_input *in, sodet_err *err)
{
    sd_text t = {0};
    bool first = true;
    sd_text_append(&t, "[", 1);
    for (uint64_t i = 0; i < in->n_images; i++)
        for (uint64_t d = in->detection_first[i]; d < in->detection_first[i + 1]; d++) {
            double xywh[4], score = score_of(in, d);
            sd_eval_xywh(in->detection_xywh, d, in->detections[d].box, xywh);
            if (!is_finite(xywh, score)) /* JSON has no such numbers, and evaluators leave them out */
                continue;
            sd_text_printf(&t, "%s\n{\"image_id\": %lld, \"category_id\": %lld, \"bbox\": [", first ? "" : ",",
                           (long long)sd_gather_key(g, i), (long long)sd_gather_category(g, (uint32_t)in->detections[d].label));
            for (int k = 0; k < 4; k++) {
                if (k)
                    sd_text_append(&t, ", ", 2);
                put_number(&t, xywh[k]);
            }
            sd_text_append(&t, "], \"score\": ", 12);
            put_number(&t, score);
            sd_text_append(&t, "}", 1);
            first = false;
        }
    sd_text_append(&t, first ? "]\n" : "\n]\n", first ? 2 : 3);
    sodet_status s =
        t.failed ? SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory to write it", path) : sd_file_write_atomic(path, t.text, t.length, err);
    sd_text_free(&t);
    return s;
}

/* "JPEGImages/2007_000027.jpg" is 2007_000027 in the devkit's files. */
static void put_image_name(sd_text *t, const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
    sd_text_append(t, base, dot && dot > base ? (uint64_t)(dot - base) : strlen(base));
}

static sodet_status write_class(const char *path, uint32_t label, const sd_gather *g, const sodet_eval_input *in, sodet_err *err)
{
    sd_text t = {0};
    sd_text_append(&t, "", 0);
    for (uint64_t i = 0; i < in->n_images; i++)
        for (uint64_t d = in->detection_first[i]; d < in->detection_first[i + 1]; d++) {
            double xywh[4], score = score_of(in, d);
            sd_eval_xywh(in->detection_xywh, d, in->detections[d].box, xywh);
            if (in->detections[d].label != (int32_t)label || !is_finite(xywh, score))
                continue;
            const double corner[5] = {score, xywh[0] + 1, xywh[1] + 1, xywh[0] + xywh[2], xywh[1] + xywh[3]};
            put_image_name(&t, sd_gather_name(g, i));
            for (int k = 0; k < 5; k++) {
                sd_text_append(&t, " ", 1);
                put_number(&t, corner[k]);
            }
            sd_text_append(&t, "\n", 1);
        }
    sodet_status s = t.failed ? SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory to write it", path)
                              : sd_file_write_atomic(path, t.text ? t.text : "", t.length, err);
    sd_text_free(&t);
    return s;
}

sodet_status sd_write_voc_detections(const char *folder, const char *prefix, const sd_gather *g, const sodet_eval_input *in, sodet_err *err)
{
    sodet_status s = sd_make_folders(folder, err);
    for (uint32_t c = 0; c < in->n_classes && s == SODET_OK; c++) {
        char name[256], path[4096];
        snprintf(name, sizeof name, "%s", in->class_names[c]);
        for (char *p = name; *p; p++)
            *p = *p == '/' ? '_' : *p;
        int n = snprintf(path, sizeof path, "%s/%s%s.txt", folder, prefix, name);
        s = n < 0 || n >= (int)sizeof path ? SODET_FAIL(err, SODET_E_INVALID, "%.200s...: path too long", folder)
                                           : write_class(path, c, g, in, err);
    }
    return s;
}
