/* Pictures: what the header says is what the decoder gives; so for one that is left to a device. */
#include "core/data/decode.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static sd_pixels pixels, turned; /* used again, as the loader does */
    const sd_decode_options options = {.max_pixels = 1 << 20};
    sodet_err err = SODET_ERR_INIT;
    uint32_t width = 0, height = 0, orientation = 0, left_width = 0, left_height = 0;
    sodet_status sized = sd_decode_size("fuzz", bytes, n, &width, &height, &orientation, &err);
    fuzz_said(sized, err.text);
    const bool left = !sd_decode_by_host(bytes, n, false, &left_width, &left_height);
    err = (sodet_err)SODET_ERR_INIT;
    sodet_status s = sd_decode("fuzz", bytes, n, &options, &pixels, &turned, &err);
    fuzz_said(s, err.text);
    if (s != SODET_OK)
        return 0;
    if (left && (pixels.width != left_width || pixels.height != left_height))
        __builtin_trap();
    bool aside = orientation >= 5;
    if (sized != SODET_OK || pixels.width != (aside ? height : width) || pixels.height != (aside ? width : height))
        __builtin_trap();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < (uint64_t)pixels.width * pixels.height * 3; i++)
        sum += pixels.rgb[i]; /* all of it is there */
    static volatile uint64_t sink;
    sink = sum;
    return sink == UINT64_MAX;
}
