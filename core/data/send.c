#include "core/data/send.h"

#include <inttypes.h>
#include <stdio.h>

#include "kernels/pixels/pixels.h"

/* The row's picture is the batch's JPEG `index`. */
static const char *name_of(const sd_batch *b, uint32_t first, uint32_t n, uint32_t index)
{
    for (uint32_t r = first; r < first + n; r++)
        if (b->picture[r].n_coded && b->picture[r].jpegs_before == index)
            return b->picture[r].name;
    return "a picture";
}

static sodet_status send_jpegs(const sd_batch *b, uint32_t first, uint32_t n, sd_program *p, sodet_err *err)
{
    const uint32_t before = b->picture[first].jpegs_before, end = first + n < b->n ? b->picture[first + n].jpegs_before : b->n_jpegs;
    const uint64_t from = (uint64_t)b->place[(size_t)first * SODET_PIXELS_PLACES + SODET_PIXELS_FIRST] * SODET_PIXELS_UNIT;
    uint32_t failed;
    if (end == before)
        return SODET_OK;
    const sodet_status status = sd_program_decode(p, "pictures", from, end - before, b->jpeg + before, &failed, err);
    if (status == SODET_OK || failed == UINT32_MAX)
        return status;
    return sd_fail_in(err, status, "%.200s", name_of(b, first, n, before + failed));
}

sodet_status sd_batch_send(const sd_batch *b, uint32_t first, uint32_t n, sd_program *p, sodet_err *err)
{
    if (!b->picture_bytes) {
        const uint64_t row = (uint64_t)b->channels * b->height * b->width;
        return sd_program_write(p, "image", b->image + first * row, n * row, err);
    }
    const int32_t *place = b->place + (size_t)first * SODET_PIXELS_PLACES;
    sodet_status status = n ? send_jpegs(b, first, n, p, err) : SODET_OK;
    for (uint32_t r = 0; r < n && status == SODET_OK; r++) {
        const int32_t behind = place[(size_t)r * SODET_PIXELS_PLACES + SODET_PIXELS_FIRST] - place[SODET_PIXELS_FIRST];
        const sd_batch_picture *x = &b->picture[first + r];
        if (!x->n_coded)
            status = sd_program_write_bytes(p, "pictures", (uint64_t)behind * SODET_PIXELS_UNIT, x->rgb, x->bytes, err);
    }
    if (status == SODET_OK)
        status = sd_program_write(p, "place", place, (uint64_t)n * SODET_PIXELS_PLACES, err);
    return status == SODET_OK
               ? sd_program_write(p, "value", b->value + (size_t)first * SODET_PIXELS_VALUES, (uint64_t)n * SODET_PIXELS_VALUES, err)
               : status;
}

static sodet_status make_ready(sd_replica *r, void *context, sodet_err *err)
{
    uint32_t failed;
    (void)context;
    return r->ops->decode(r->device, 0, NULL, NULL, 0, &failed, err);
}

sodet_status sd_send_ready(sd_device_pool *pool, bool jpegs, sodet_err *err)
{
    if (!jpegs)
        return SODET_OK;
    if (!sd_device_pool_replica(pool, 0)->ops->decode)
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "[data] decode = device: the backend %s has no decoder for JPEGs; write decode = host",
                          sd_device_pool_backend(pool));
    return sd_device_pool_run(pool, make_ready, NULL, err);
}

const char *sd_send_told(const sd_loader_stats *s, char *out, size_t size)
{
    out[0] = '\0';
    if (s->by_device + s->by_host)
        snprintf(out, size, "decoded: %" PRIu64 " pictures by the devices, %" PRIu64 " by the host%s%s", s->by_device, s->by_host,
                 s->first_by_host ? ", the first of them " : "", s->first_by_host ? s->first_by_host : "");
    return out;
}
