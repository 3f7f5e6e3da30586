/* JSON: COCO's instances as a data set and as ground truth, result lists, and the lines of metrics.jsonl. */
#include <string.h>

#include "core/eval/eval.h"
#include "core/report/metrics.h"
#include "sodet/coco.h"

#include "core/base/base.h"
#include "fuzz/fuzz.h"

static const char truth[] =
    "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\",\"width\":9,\"height\":9}],\"categories\":[{\"id\":1,\"name\":\"a\"}],"
    "\"annotations\":[{\"id\":1,\"image_id\":1,\"category_id\":1,\"bbox\":[1,1,2,2]}]}";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    sodet_err err = SODET_ERR_INIT;
    sodet_coco *coco = NULL;
    sodet_status s = sodet_coco_open(fuzz_file(bytes, n), "/nowhere", &coco, &err);
    fuzz_said(s, err.text);
    for (uint64_t c = 0; s == SODET_OK && sodet_coco_classes(coco)[c]; c++)
        sodet_coco_category_id(coco, (uint32_t)c);
    sodet_coco_close(coco);

    sd_gather *g = NULL;
    sodet_eval_input in;
    err = (sodet_err)SODET_ERR_INIT;
    s = sd_read_coco_truth(fuzz_file(bytes, n), 1, &g, &err);
    fuzz_said(s, err.text);
    if (s == SODET_OK)
        fuzz_said(sd_gather_finish(g, 1, &in, &err), err.text);
    sd_gather_free(g);

    g = NULL;
    if (sd_read_coco_truth(fuzz_file((const uint8_t *)truth, sizeof truth - 1), 1, &g, &err) != SODET_OK)
        __builtin_trap();
    err = (sodet_err)SODET_ERR_INIT;
    fuzz_said(sd_read_coco_detections(fuzz_file(bytes, n), g, 1, &err), err.text);
    sd_gather_free(g);

    sd_metrics m;
    sd_text table = {0};
    err = (sodet_err)SODET_ERR_INIT;
    s = sd_metrics_read(fuzz_file(bytes, n), &m, &err);
    fuzz_said(s, err.text);
    if (s == SODET_OK)
        sd_metrics_csv(&m, &table);
    sd_text_free(&table);
    sd_metrics_free(&m);
    return 0;
}
