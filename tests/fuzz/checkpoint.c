/* safetensors files, and name maps as text. */
#include <stdlib.h>
#include <string.h>

#include "core/store/checkpoint.h"

#include "fuzz/fuzz.h"

static void read_all(sd_checkpoint *c)
{
    sodet_err err = SODET_ERR_INIT;
    for (uint64_t i = 0; i < sd_checkpoint_count(c); i++) {
        const sd_tensor *t = sd_checkpoint_tensor(c, i);
        uint64_t bytes = sd_tensor_bytes(t);
        if (bytes > 1 << 20)
            continue; /* of a file this small it cannot be */
        void *to = malloc(bytes ? bytes : 1);
        fuzz_said(sd_checkpoint_read(c, t, to, &err), err.text);
        free(to);
    }
    for (uint64_t i = 0; i < sd_checkpoint_meta_count(c); i++)
        sd_checkpoint_meta(c, sd_checkpoint_meta_at(c, i)->key);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    for (uint32_t flags = SD_CHECKPOINT_OWN; flags <= SD_CHECKPOINT_FOREIGN; flags++) {
        sodet_err err = SODET_ERR_INIT;
        sd_checkpoint *c = NULL;
        sodet_status s = sd_checkpoint_open(fuzz_file(bytes, n), flags, &c, &err);
        fuzz_said(s, err.text);
        if (s == SODET_OK)
            read_all(c);
        sd_checkpoint_close(c);
    }
    sodet_err err = SODET_ERR_INIT;
    sd_name_map *map = NULL;
    char *text = calloc(n + 1, 1);
    memcpy(text, bytes, n);
    fuzz_said(sd_name_map_parse(text, "fuzz", &map, &err), err.text);
    sd_name_map_free(map);
    free(text);
    return 0;
}
