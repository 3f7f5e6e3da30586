#include "core/data/send.h"

#include "kernels/pixels/pixels.h"

sodet_status sd_batch_send(const sd_batch *b, uint32_t first, uint32_t n, sd_program *p, sodet_err *err)
{
    if (!b->picture_bytes) {
        const uint64_t row = (uint64_t)b->channels * b->height * b->width;
        return sd_program_write(p, "image", b->image + first * row, n * row, err);
    }
    const int32_t *place = b->place + (size_t)first * SODET_PIXELS_PLACES;
    sodet_status status = SODET_OK;
    for (uint32_t r = 0; r < n && status == SODET_OK; r++) {
        const int32_t behind = place[(size_t)r * SODET_PIXELS_PLACES + SODET_PIXELS_FIRST] - place[SODET_PIXELS_FIRST];
        const sd_batch_picture *x = &b->picture[first + r];
        status = sd_program_write_bytes(p, "pictures", (uint64_t)behind * SODET_PIXELS_UNIT, x->rgb, x->bytes, err);
    }
    if (status == SODET_OK)
        status = sd_program_write(p, "place", place, (uint64_t)n * SODET_PIXELS_PLACES, err);
    return status == SODET_OK
               ? sd_program_write(p, "value", b->value + (size_t)first * SODET_PIXELS_VALUES, (uint64_t)n * SODET_PIXELS_VALUES, err)
               : status;
}
