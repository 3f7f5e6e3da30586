/* hflip: mirrors left and right. x1' = W - x2, x2' = W - x1 (ends are exclusive), so that twice is nothing. */
#include <string.h>

#include "sodet/data.h"

typedef struct hflip_cfg {
    double probability;
} hflip_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(hflip_cfg, probability, "0.5", 0, 1, "of a picture to be mirrored"),
};

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    (void)err;
    if (!sodet_stream_chance(r, ((const hflip_cfg *)self)->probability))
        return SODET_OK;
    sodet_image *image = sodet_sample_image(s);
    if (!image)
        return SODET_E_MEMORY;
    for (uint32_t y = 0; y < image->height; y++) {
        float *left = image->pixels + (size_t)y * image->width * 3, *right = left + (size_t)(image->width - 1) * 3;
        for (; left < right; left += 3, right -= 3) {
            float t[3];
            memcpy(t, left, sizeof t);
            memcpy(left, right, sizeof t);
            memcpy(right, t, sizeof t);
        }
    }
    const double mirror[6] = {-1, 0, image->width, 0, 1, 0};
    sodet_sample_apply_affine(s, mirror);
    return SODET_OK;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "hflip", "mirrors left and right", hflip_cfg, options, .ops = &ops);
