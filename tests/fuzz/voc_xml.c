/* VOC's annotation files. */
#include "core/data/voc_xml.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    sodet_err err = SODET_ERR_INIT;
    sd_pool pool = {0};
    sd_voc_file file = {0};
    fuzz_said(sd_voc_xml_read(fuzz_file(bytes, n), &pool, &file, &err), err.text);
    sd_free(file.objects);
    sd_pool_clear(&pool);
    return 0;
}
