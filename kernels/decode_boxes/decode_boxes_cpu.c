/* A unit is GROUP boxes. */
#include "kernels/kernels.h"
#include "kernels/vector.h"

#define GROUP 512

SODET_INLINE float clip(float x, float most)
{
    float low = x < 0 ? 0 : x;
    return low > most ? most : low;
}

SODET_CLONES
static void decode(float *y, const float *c, const float *a, int64_t n, const sodet_decode_boxes_attr *attr)
{
    float vx = attr->variance[0], vy = attr->variance[1], vw = attr->variance[2], vh = attr->variance[3],
          one = attr->plus_one ? 1.0f : 0.0f;
    float clamp = attr->clamp > 0 ? (float)attr->clamp : INFINITY, width = (float)attr->clip_width, height = (float)attr->clip_height;
    for (int64_t i = 0; i < n; i++, y += 4, c += 4, a += 4) {
        float gw = c[2] * vw, gh = c[3] * vh;
        float w = a[2] * vector_exp(gw > clamp ? clamp : gw), h = a[3] * vector_exp(gh > clamp ? clamp : gh);
        float cx = a[0] + c[0] * vx * a[2], cy = a[1] + c[1] * vy * a[3];
        y[0] = cx - 0.5f * w;
        y[1] = cy - 0.5f * h;
        y[2] = cx + 0.5f * w - one;
        y[3] = cy + 0.5f * h - one;
        if (width > 0) {
            y[0] = clip(y[0], width);
            y[2] = clip(y[2], width);
        }
        if (height > 0) {
            y[1] = clip(y[1], height);
            y[3] = clip(y[3], height);
        }
    }
}

static int64_t groups_of(const sodet_kernel_args *a)
{
    return (a->in[0].shape.dim[1] + GROUP - 1) / GROUP;
}

static int64_t units(const sodet_kernel_args *a, uint32_t phase)
{
    (void)phase;
    return a->in[0].shape.dim[0] * groups_of(a);
}

static void run(const sodet_kernel_args *a, uint32_t phase, int64_t begin, int64_t end, uint32_t thread)
{
    (void)phase, (void)thread;
    int64_t boxes = a->in[0].shape.dim[1], groups = groups_of(a), shared = a->in[1].shape.rank == 2;
    for (int64_t u = begin; u < end; u++) {
        int64_t b = u / groups, first = u % groups * GROUP, n = first + GROUP < boxes ? GROUP : boxes - first, at = 4 * (b * boxes + first);
        decode((float *)a->out[0].data + at, (const float *)a->in[0].data + at, (const float *)a->in[1].data + (shared ? 4 * first : at), n,
               a->attr);
    }
}

const sodet_cpu_kernel sodet_cpu_decode_boxes[] = {{.struct_size = sizeof(sodet_cpu_kernel), .units = units, .run = run}};
