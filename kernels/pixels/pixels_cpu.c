/* A unit is a row of the output. For `pixels = device` on a CPU, which is for looking at it: loader threads are faster, they change the
 * colours of a pixel once, not for each of its neighbours. */
#include "kernels/kernels.h"
#include "kernels/pixels/pixels_math.h"

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return a->out[0].shape.dim[0] * a->out[0].shape.dim[2];
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    const sodet_shape *s = &a->out[0].shape;
    const int32_t *places = a->in[1].data;
    for (int64_t u = begin; u < end; u++) {
        const int64_t n = u / s->dim[2], i = u % s->dim[2], plane = s->dim[2] * s->dim[3];
        const int32_t *place = places + n * SODET_PIXELS_PLACES;
        const float *value = (const float *)a->in[2].data + n * SODET_PIXELS_VALUES;
        const uint8_t *picture = pixels_picture(a->in[0].data, places, n);
        const int64_t wide = i < place[SODET_PIXELS_OUT_HEIGHT] ? place[SODET_PIXELS_OUT_WIDTH] : 0;
        float *y = (float *)a->out[0].data + n * s->dim[1] * plane + i * s->dim[3];
        for (int64_t j = 0; j < s->dim[3]; j++) {
            const pixels_rgb v = j < wide ? pixels_at(picture, place, value, (int32_t)i, (int32_t)j) : (pixels_rgb){0, 0, 0};
            for (int64_t c = 0; c < s->dim[1]; c++)
                y[c * plane + j] = j < wide ? pixels_normal(a->attr, v, (int)c) : 0;
        }
    }
}

const sodet_cpu_kernel sodet_cpu_pixels[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
