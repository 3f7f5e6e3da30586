/* Shared objects: the plugin's head is read from the file before anything of it is loaded. */
#include "core/plugin/elf.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    sodet_err err = SODET_ERR_INIT;
    unsigned char head[64];
    uint64_t size;
    fuzz_said(sd_elf_read_symbol(fuzz_file(bytes, n), "sodet_plugin_desc", head, sizeof head, &size, &err), err.text);
    return 0;
}
