/* A program that finds objects with a checkpoint: everything that sodet/detector.h offers to a C or C++ program of one page. */
#include <stdio.h>

#include "sodet/detector.h"

int main(int argc, char **argv)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_detector_options options = SODET_DETECTOR_OPTIONS_INIT;
    sodet_detector *d;
    if (argc < 3) {
        fprintf(stderr, "usage: embed best.safetensors pictures ...\n");
        return 2;
    }
    options.threads = 1;
    if (sodet_detector_open(argv[1], &options, &d, &err) != SODET_OK || sodet_detector_warm_up(d, 0, 0, 1, &err) != SODET_OK) {
        fprintf(stderr, "%s\n", err.text);
        sodet_detector_close(d);
        return 2;
    }
    int code = 0;
    for (int i = 2; i < argc; i++) {
        sodet_result *r;
        if (sodet_detect_file(d, argv[i], &r, &err) != SODET_OK) {
            fprintf(stderr, "%s\n", err.text);
            code = 1;
            continue;
        }
        for (uint32_t k = 0; k < r->n; k++) {
            const sodet_found *f = &r->found[k];
            printf("%s\t%s\t%.3f\t%.1f %.1f %.1f %.1f\n", argv[i], f->name, (double)f->score, (double)f->box.x1, (double)f->box.y1,
                   (double)f->box.x2, (double)f->box.y2);
        }
        if (r->n == 0)
            printf("%s\tnothing\n", argv[i]);
        sodet_result_free(r);
    }
    sodet_detector_close(d);
    return code;
}
