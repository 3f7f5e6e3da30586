#include "core/data/frame.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/data/pipeline.h"

struct sd_frames {
    sd_loader_config config;
    sd_worker worker;
    sd_frame *known; /* by width, then height */
    uint64_t n, capacity;
    pthread_mutex_t lock;
};

sodet_status sd_frames_open(const sd_loader_config *config, sd_frames **out, sodet_err *err)
{
    *out = NULL;
    sd_frames *f = sd_alloc(1, sizeof *f);
    if (!f)
        return SODET_FAIL(err, SODET_E_MEMORY, "no memory for the sizes of pictures");
    f->config = *config;
    pthread_mutex_init(&f->lock, NULL);
    sodet_status status = sd_worker_open(&f->worker, &f->config, err);
    if (status != SODET_OK) {
        sd_frames_close(f);
        return status;
    }
    *out = f;
    return SODET_OK;
}

void sd_frames_close(sd_frames *f)
{
    if (!f)
        return;
    sd_worker_close(&f->worker);
    pthread_mutex_destroy(&f->lock);
    sd_free(f->known);
    sd_free(f);
}

static bool before(const sd_frame *f, uint32_t width, uint32_t height)
{
    return f->width < width || (f->width == width && f->height < height);
}

static sodet_status get(sd_frames *f, uint32_t width, uint32_t height, sd_frame *out, sodet_err *err)
{
    uint64_t lo = 0, hi = f->n;
    while (lo < hi) {
        uint64_t mid = (lo + hi) / 2;
        if (before(&f->known[mid], width, height))
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < f->n && f->known[lo].width == width && f->known[lo].height == height) {
        *out = f->known[lo];
        return SODET_OK;
    }
    sd_frame fresh = {.width = width, .height = height, .canvas_width = width, .canvas_height = height};
    sodet_status status = sd_grow(&f->known, &f->capacity, f->n + 1, sizeof *f->known, err);
    if (status == SODET_OK)
        status = sd_worker_frame(&f->worker, width, height, fresh.map, err);
    if (status != SODET_OK)
        return status;
    sd_links_canvas(f->config.links, f->config.n_links, &f->config.input, &fresh.canvas_width, &fresh.canvas_height);
    memmove(f->known + lo + 1, f->known + lo, (f->n - lo) * sizeof *f->known);
    f->known[lo] = *out = fresh;
    f->n++;
    return SODET_OK;
}

sodet_status sd_frames_get(sd_frames *f, uint32_t width, uint32_t height, sd_frame *out, sodet_err *err)
{
    pthread_mutex_lock(&f->lock);
    sodet_status status = get(f, width, height, out, err);
    pthread_mutex_unlock(&f->lock);
    return status;
}

bool sd_frame_box(const sd_frame *f, const sodet_box *box, sodet_box *out)
{
    float x1 = fmaxf(box->x1, 0), y1 = fmaxf(box->y1, 0), x2 = fminf(box->x2, (float)f->width), y2 = fminf(box->y2, (float)f->height);
    if (!(x2 > x1 && y2 > y1))
        return false;
    *out = (sodet_box){x1, y1, x2, y2};
    sd_affine_box(out, f->map);
    return true;
}
