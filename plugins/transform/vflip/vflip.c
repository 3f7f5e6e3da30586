/* vflip: mirrors top and bottom. y1' = H - y2, y2' = H - y1 (ends are exclusive), so that twice is nothing. For pictures that have no up
 * and down: from the air, under a microscope, X-rays. */
#include "sodet/data.h"

typedef struct vflip_cfg {
    double probability;
} vflip_cfg;

static const sodet_opt options[] = {
    SODET_OPT_DOUBLE(vflip_cfg, probability, "0.5", 0, 1, "of a picture to be mirrored"),
};

static sodet_status apply(const void *self, sodet_sample *s, sodet_stream *r, sodet_err *err)
{
    if (!sodet_stream_chance(r, ((const vflip_cfg *)self)->probability))
        return SODET_OK;
    sodet_image *image = sodet_sample_image(s);
    if (!image)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the picture");
    const size_t row = (size_t)image->width * image->channels;
    float *top = image->pixels, *bottom = image->pixels + (image->height - 1) * row;
    for (; top < bottom; top += row, bottom -= row) {
        for (size_t i = 0; i < row; i++) {
            float t = top[i];
            top[i] = bottom[i];
            bottom[i] = t;
        }
    }
    sodet_sample_apply_affine(s, (const double[6]){1, 0, 0, 0, -1, image->height});
    return SODET_OK;
}

static const sodet_transform_ops ops = {.struct_size = sizeof ops, .apply = apply};
SODET_PLUGIN(SODET_KIND_TRANSFORM, "vflip", "mirrors top and bottom", vflip_cfg, options, .ops = &ops);
