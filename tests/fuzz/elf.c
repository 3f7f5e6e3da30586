/* Shared objects: the plugin's head is read from the file and judged before anything of it is loaded. */
#include "core/plugin/plugin.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    sodet_err err = SODET_ERR_INIT;
    fuzz_said(sd_plugin_check_head(fuzz_file(bytes, n), SODET_KIND_NECK, &err), err.text);
    return 0;
}
