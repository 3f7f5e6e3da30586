/* INI files: whatever is taken can be written and read again to the same text. */
#include <string.h>

#include "core/config/config.h"

#include "fuzz/fuzz.h"

static sd_config *open_text(const char *text, size_t n)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg = NULL;
    fuzz_said(sd_config_open_text(text, n, "fuzz.ini", "/nowhere", NULL, 0, &cfg, &err), err.text);
    return cfg;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    sd_config *cfg = open_text((const char *)bytes, n);
    if (!cfg)
        return 0;
    sd_text once = {0}, twice = {0}, shown = {0};
    sd_config_write(cfg, false, &once);
    sd_config_write(cfg, true, &shown);
    sd_config *again = open_text(once.text, once.length);
    if (!again)
        __builtin_trap();
    sd_config_write(again, false, &twice);
    if (once.length != twice.length || memcmp(once.text, twice.text, once.length) != 0)
        __builtin_trap();
    sd_text_free(&once);
    sd_text_free(&twice);
    sd_text_free(&shown);
    sd_config_close(again);
    sd_config_close(cfg);
    return 0;
}
