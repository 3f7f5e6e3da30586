/* shapes: pictures that are drawn when they are asked for, so that a detector can be trained without downloading anything. A picture is a
 * function of (seed, index) alone.
 *
 * A soft gradient of random colours, one to six objects of six classes (some of which differ only in outline), noise. The longer
 * side of an object's box is 0.12 to 0.6 of the picture's; a new object covers at most 40 % of the box of an earlier one. Boxes are those of
 * the whole object, covered or not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sodet/data.h"

enum { CIRCLE, DIAMOND, TRIANGLE, STAR, RING, CROSS, N_CLASSES };
enum {
    MOST_OBJECTS = 6,
    MOST_POINTS = 12,
    TRIES = 20,
    SUB = 4 /* samples per pixel and direction */,
    MOST_SIZE = 4096,
    GRID = 4 /* colours of the gradient */
};
static const char *const class_names[] = {"circle", "diamond", "triangle", "star", "ring", "cross", NULL};
static const double LEAST = 0.12, MOST = 0.6, COVERED = 0.4, NOISE = 12, TAU = 6.283185307179586;

typedef struct shapes_cfg {
    uint32_t count, size;
    int64_t seed;
} shapes_cfg;

static const sodet_opt options[] = {
    SODET_OPT_UINT(shapes_cfg, count, "8000", 1, 100000000, "number of pictures"),
    SODET_OPT_UINT(shapes_cfg, size, "128", 32, 4096, "side of a picture in pixels"),
    SODET_OPT_INT(shapes_cfg, seed, "1", 0, 9e15, "another seed draws other pictures: give training and validation data different ones"),
};

typedef struct shapes {
    const shapes_cfg *cfg;
    float *weights; /* [size][GRID]: of the gradient's colours at each row and column */
} shapes;

typedef struct object {
    uint32_t class, n;
    double x[MOST_POINTS], y[MOST_POINTS]; /* polygon, in units of the side */
    double cx, cy, r;                      /* circle, ring */
    double box[4];
    float colour[3];
} object;

/* ---- numbers: value i of a picture's stream ---- */

typedef struct random {
    uint64_t key, i;
} random_stream;

static uint64_t mix(uint64_t x) /* splitmix64's output function */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t bits(random_stream *r)
{
    return mix(r->key ^ mix(r->i++));
}

static double uniform(random_stream *r, double lo, double hi)
{
    return lo + (hi - lo) * ((double)(bits(r) >> 11) * 0x1p-53);
}

static uint32_t below(random_stream *r, uint32_t n)
{
    return (uint32_t)((bits(r) >> 32) * n >> 32);
}

/* ---- what is in a picture ---- */

static void outline(object *o, double theta)
{
    static const double w = 0.34, arm = 0.9, dent = 0.45;
    static const double cross[12][2] = {{-w, -1}, {w, -1}, {w, -w}, {1, -w}, {1, w},   {w, w},
                                        {w, 1},   {-w, 1}, {-w, w}, {-1, w}, {-1, -w}, {-w, -w}};
    static const uint32_t corners[N_CLASSES] = {0, 4, 3, 10, 0, 12};
    double c = cos(theta), s = sin(theta);
    o->n = corners[o->class];
    o->box[0] = o->cx - o->r;
    o->box[1] = o->cy - o->r;
    o->box[2] = o->cx + o->r;
    o->box[3] = o->cy + o->r;
    if (o->n == 0)
        return;
    o->box[0] = o->box[1] = 2;
    o->box[2] = o->box[3] = -1;
    for (uint32_t i = 0; i < o->n; i++) {
        double px, py;
        if (o->class == CROSS) {
            px = arm * o->r * (cross[i][0] * c - cross[i][1] * s);
            py = arm * o->r * (cross[i][0] * s + cross[i][1] * c);
        } else {
            double a = theta + TAU * i / o->n, r = o->class == STAR && i % 2 ? o->r * dent : o->r;
            px = r * cos(a);
            py = r * sin(a);
        }
        o->x[i] = o->cx + px;
        o->y[i] = o->cy + py;
        o->box[0] = fmin(o->box[0], o->x[i]);
        o->box[1] = fmin(o->box[1], o->y[i]);
        o->box[2] = fmax(o->box[2], o->x[i]);
        o->box[3] = fmax(o->box[3], o->y[i]);
    }
}

static int covers(const object *fresh, const object *old)
{
    double w = fmin(fresh->box[2], old->box[2]) - fmax(fresh->box[0], old->box[0]);
    double h = fmin(fresh->box[3], old->box[3]) - fmax(fresh->box[1], old->box[1]);
    return w > 0 && h > 0 && w * h > COVERED * (old->box[2] - old->box[0]) * (old->box[3] - old->box[1]);
}

static random_stream stream_of(const shapes *s, uint64_t index)
{
    return (random_stream){mix(mix((uint64_t)s->cfg->seed) ^ index), 0};
}

static uint32_t place(const shapes *s, uint64_t index, object out[MOST_OBJECTS])
{
    random_stream r = stream_of(s, index);
    uint32_t wanted = 1 + below(&r, MOST_OBJECTS), n = 0;
    for (uint32_t k = 0; k < wanted; k++) {
        for (uint32_t t = 0; t < TRIES; t++) {
            object *o = &out[n];
            double side = uniform(&r, LEAST, MOST), theta = uniform(&r, 0, TAU);
            o->class = below(&r, N_CLASSES);
            o->cx = o->cy = 0.5;
            o->r = side / 2;
            outline(o, theta);
            o->r *= side / fmax(o->box[2] - o->box[0], o->box[3] - o->box[1]);
            o->cx = uniform(&r, o->r, 1 - o->r);
            o->cy = uniform(&r, o->r, 1 - o->r);
            outline(o, theta);
            uint32_t i = 0;
            while (i < n && !covers(o, &out[i]))
                i++;
            if (i < n)
                continue;
            for (uint32_t c = 0; c < 3; c++)
                o->colour[c] = (float)below(&r, 256);
            n++;
            break;
        }
    }
    return n;
}

/* ---- drawing ---- */

/* Everything is drawn row by row, in float, so that a row's worth of memory is enough. */
typedef struct line {
    float pixels[MOST_SIZE * 3];
    uint16_t count[MOST_SIZE]; /* samples inside the object that is being drawn */
} line;

static void gradient(const shapes *s, float colours[GRID][GRID][3], uint32_t y, float *to)
{
    float row[GRID][3];
    const float *v = s->weights + (size_t)y * GRID;
    for (uint32_t i = 0; i < GRID; i++) {
        for (uint32_t c = 0; c < 3; c++)
            row[i][c] = v[0] * colours[0][i][c] + v[1] * colours[1][i][c] + v[2] * colours[2][i][c] + v[3] * colours[3][i][c];
    }
    for (uint32_t x = 0; x < s->cfg->size; x++, to += 3) {
        const float *h = s->weights + (size_t)x * GRID;
        for (uint32_t c = 0; c < 3; c++) {
            float value = h[0] * row[0][c] + h[1] * row[1][c] + h[2] * row[2][c] + h[3] * row[3][c];
            to[c] = value < 0 ? 0 : value > 255 ? 255 : value;
        }
    }
}

/* Where the shape's inside begins and ends on the line at y, in pairs; returns how many ends. */
static uint32_t crossings(const object *o, double y, double x[MOST_POINTS])
{
    uint32_t n = 0;
    if (o->n == 0) {
        double d = o->r * o->r - (y - o->cy) * (y - o->cy), inner = o->r * (1 - 0.35), e = inner * inner - (y - o->cy) * (y - o->cy);
        if (d <= 0)
            return 0;
        x[n++] = o->cx - sqrt(d);
        if (o->class == RING && e > 0) {
            x[n++] = o->cx - sqrt(e);
            x[n++] = o->cx + sqrt(e);
        }
        x[n++] = o->cx + sqrt(d);
        return n;
    }
    for (uint32_t i = 0, j = o->n - 1; i < o->n; j = i++) {
        if ((o->y[i] > y) == (o->y[j] > y))
            continue;
        double at = o->x[i] + (y - o->y[i]) * (o->x[j] - o->x[i]) / (o->y[j] - o->y[i]);
        uint32_t k = n++;
        for (; k > 0 && x[k - 1] > at; k--)
            x[k] = x[k - 1];
        x[k] = at;
    }
    return n;
}

/* Row y of an object: each pixel has SUB x SUB samples, and gets the object's colour by the share that is inside. */
static void draw(const object *o, uint32_t size, int32_t y, line *to)
{
    double fine = (double)size * SUB;
    int32_t most = (int32_t)size, left = (int32_t)floor(o->box[0] * size), right = (int32_t)ceil(o->box[2] * size);
    left = left < 0 ? 0 : left;
    right = right > most ? most : right;
    if (y + 1 <= o->box[1] * size || y >= o->box[3] * size)
        return;
    uint16_t *count = to->count;
    memset(count + left, 0, (size_t)(right - left) * sizeof *count);
    for (int32_t k = 0; k < SUB; k++) {
        double x[MOST_POINTS];
        uint32_t n = crossings(o, (y * SUB + k + 0.5) / fine, x);
        for (uint32_t i = 0; i + 1 < n; i += 2) {
            int32_t a = (int32_t)ceil(x[i] * fine - 0.5), b = (int32_t)ceil(x[i + 1] * fine - 0.5); /* samples a .. b - 1 are inside */
            a = a < left * SUB ? left * SUB : a;
            b = b > right * SUB ? right * SUB : b;
            for (; a < b && a % SUB; a++)
                count[a / SUB]++;
            for (; a + SUB <= b; a += SUB)
                count[a / SUB] = (uint16_t)(count[a / SUB] + SUB);
            for (; a < b; a++)
                count[a / SUB]++;
        }
    }
    float *pixel = to->pixels + (size_t)left * 3;
    for (int32_t i = left; i < right; i++, pixel += 3) {
        float w = (float)count[i] * (1.0f / (SUB * SUB));
        for (uint32_t c = 0; c < 3; c++)
            pixel[c] += w * (o->colour[c] - pixel[c]);
    }
}

/* The sum of eight bytes is close to normal: mean 1020, deviation sqrt(8 (256^2 - 1) / 12). All three channels get the same noise. */
static void finish(random_stream *r, const float *from, uint32_t size, uint8_t *out)
{
    const float scale = (float)(NOISE / 209.0215);
    for (uint32_t x = 0; x < size; x++, from += 3, out += 3) {
        uint64_t b = mix(r->key ^ (r->i++ * 0x9e3779b97f4a7c15u));
        b = (b & 0x00ff00ff00ff00ffu) + (b >> 8 & 0x00ff00ff00ff00ffu);
        float noise = ((float)(b * 0x0001000100010001u >> 48) - 1020.0f) * scale;
        for (uint32_t c = 0; c < 3; c++) {
            float v = from[c] + noise;
            out[c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

/* ---- the plugin ---- */

static double cubic(double t) /* Keys 1981, a = -1/2 */
{
    t = fabs(t);
    return t < 1 ? (1.5 * t - 2.5) * t * t + 1 : t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0;
}

static void destroy(void *self)
{
    shapes *s = self;
    if (!s)
        return;
    free(s->weights);
    free(s);
}

static sodet_status create(const void *cfg, void **self, sodet_err *err)
{
    *self = NULL;
    shapes *s = calloc(1, sizeof *s);
    const shapes_cfg *c = cfg;
    float *weights = calloc((size_t)c->size * GRID, sizeof *weights);
    if (!s || !weights) {
        free(s);
        free(weights);
        return SODET_FAIL(err, SODET_E_MEMORY, "shapes: no memory");
    }
    for (uint32_t x = 0; x < c->size; x++) {
        double at = ((double)x + 0.5) * GRID / c->size - 0.5, sum = 0;
        for (uint32_t k = 0; k < GRID; k++)
            sum += cubic(at - k);
        for (uint32_t k = 0; k < GRID; k++) /* what lies beyond the edge is left out */
            weights[x * GRID + k] = (float)(cubic(at - k) / sum);
    }
    s->cfg = c;
    s->weights = weights;
    *self = s;
    return SODET_OK;
}

static sodet_status list(void *self, uint64_t *n_samples, sodet_err *err)
{
    (void)err;
    *n_samples = ((const shapes *)self)->cfg->count;
    return SODET_OK;
}

static sodet_status describe(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const shapes *s = self;
    object objects[MOST_OBJECTS];
    uint32_t n = place(s, index, objects), size = s->cfg->size;
    char id[40];
    snprintf(id, sizeof id, "shapes-%lld-%06llu", (long long)s->cfg->seed, (unsigned long long)index);
    sodet_sample_set_id(out, id, (int64_t)index);
    sodet_sample_set_size(out, size, size);
    for (uint32_t i = 0; i < n; i++) {
        const double *b = objects[i].box;
        sodet_box box = {(float)(b[0] * size), (float)(b[1] * size), (float)(b[2] * size), (float)(b[3] * size)};
        sodet_status status = sodet_sample_add_object(out, class_names[objects[i].class], box, 0, -1, (int64_t)i + 1, err);
        if (status != SODET_OK)
            return status;
    }
    return SODET_OK;
}

static sodet_status pixels(const void *self, uint64_t index, sodet_sample *out, sodet_err *err)
{
    const shapes *s = self;
    object objects[MOST_OBJECTS];
    uint32_t size = s->cfg->size, n = place(s, index, objects);
    uint8_t *rgb;
    sodet_status status = sodet_sample_new_pixels(out, size, size, 3, &rgb, err);
    if (status != SODET_OK)
        return status;
    random_stream r = stream_of(s, index);
    r.key = mix(r.key); /* another stream than that of the objects */
    float colours[GRID][GRID][3];
    for (uint32_t i = 0; i < GRID * GRID * 3; i++)
        (&colours[0][0][0])[i] = (float)below(&r, 256);
    line row;
    for (uint32_t y = 0; y < size; y++, rgb += (size_t)size * 3) {
        gradient(s, colours, y, row.pixels);
        for (uint32_t i = 0; i < n; i++)
            draw(&objects[i], size, (int32_t)y, &row);
        finish(&r, row.pixels, size, rgb);
    }
    return SODET_OK;
}

static const char *const *classes(const void *self)
{
    (void)self;
    return class_names;
}

static const sodet_dataset_ops ops = {.struct_size = sizeof ops, .open = list, .describe = describe, .pixels = pixels, .classes = classes};
SODET_PLUGIN(SODET_KIND_DATASET, "shapes", "drawn pictures of six shapes, made from a seed", shapes_cfg, options, .create = create,
             .destroy = destroy, .ops = &ops);
