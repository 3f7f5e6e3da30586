/* The calls of sodet/detector.h: a trained network and its pictures behind one lock. */
#include "sodet/detector.h"

#include <pthread.h>

#include "core/api/pictures.h"
#include "core/plugin/plugin.h"
#include "core/train/state.h"

struct sodet_detector {
    pthread_mutex_t lock;
    sd_config *cfg;
    sd_trained net;
    sd_pictures *pictures;
    float threshold;
};

/* ---- open, close ---- */
static sodet_status open_config(sodet_detector *d, const sodet_detector_options *o, const sd_checkpoint *c, sodet_err *err)
{
    sd_pool pool = {0};
    uint64_t n = 0;
    sd_override *list = sd_pool_alloc(&pool, ((size_t)o->n_overrides + 2) * sizeof *list);
    bool good = list != NULL;
    for (uint32_t i = 0; good && i < o->n_overrides; i++)
        list[n++] = (sd_override){o->overrides[i], NULL};
    if (good && o->devices) {
        list[n].text = sd_pool_printf(&pool, "run.devices=%s", o->devices);
        good = list[n++].text != NULL;
    }
    if (good && o->threads) {
        list[n].text = sd_pool_printf(&pool, "run.threads=%u", o->threads);
        good = list[n++].text != NULL;
    }
    sodet_status s =
        good ? sd_state_config(c, list, n, &d->cfg, err) : SODET_FAIL(err, SODET_E_MEMORY, "out of memory: the detector's configuration");
    sd_pool_clear(&pool);
    return s;
}

static sodet_status open_all(sodet_detector *d, const char *path, const sodet_detector_options *o, sodet_err *err)
{
    sd_checkpoint *c = NULL;
    sodet_status s = o->plugin_folder ? sd_plugin_add_folder(o->plugin_folder, err) : SODET_OK;
    if (s == SODET_OK)
        s = sd_trained_find(path, &c, err);
    if (s == SODET_OK)
        s = open_config(d, o, c, err);
    if (s == SODET_OK)
        s = sd_trained_open(d->cfg, c, &d->net, err);
    sd_checkpoint_close(c);
    return s == SODET_OK ? sd_pictures_open(d->cfg, &d->net, &d->pictures, err) : s;
}

sodet_status sodet_detector_open(const char *checkpoint, const sodet_detector_options *options, sodet_detector **out, sodet_err *err)
{
    *out = NULL;
    sodet_detector_options o;
    sodet_status s = sd_take_struct(&o, sizeof o, options, "detector options", "SODET_DETECTOR_OPTIONS_INIT", err);
    if (s == SODET_OK && !checkpoint)
        s = SODET_FAIL(err, SODET_E_INVALID, "no checkpoint was named");
    if (s == SODET_OK && !(o.threshold >= 0 && o.threshold <= 1))
        s = SODET_FAIL(err, SODET_E_INVALID, "threshold = %g: 0 to 1 is wanted", (double)o.threshold);
    if (s != SODET_OK)
        return s;
    sodet_detector *d = sd_alloc(1, sizeof *d);
    if (!d)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: a detector");
    pthread_mutex_init(&d->lock, NULL);
    d->threshold = o.threshold;
    s = open_all(d, checkpoint, &o, err);
    if (s != SODET_OK) {
        sodet_detector_close(d);
        return s;
    }
    *out = d;
    return SODET_OK;
}

void sodet_detector_close(sodet_detector *d)
{
    if (!d)
        return;
    sd_pictures_close(d->pictures);
    sd_trained_close(&d->net);
    sd_config_close(d->cfg);
    pthread_mutex_destroy(&d->lock);
    sd_free(d);
}

uint32_t sodet_detector_class_count(const sodet_detector *d)
{
    return d->net.classes.n;
}

const char *sodet_detector_class(const sodet_detector *d, uint32_t label)
{
    return label < d->net.classes.n ? d->net.classes.names[label] : NULL;
}

sodet_status sodet_detector_warm_up(sodet_detector *d, uint32_t width, uint32_t height, uint32_t n, sodet_err *err)
{
    pthread_mutex_lock(&d->lock);
    sodet_status s = sd_pictures_warm_up(d->pictures, width, height, n, err);
    pthread_mutex_unlock(&d->lock);
    return s;
}

/* ---- detect ---- */
void sodet_result_free(sodet_result *r)
{
    sd_free(r);
}

typedef struct results {
    const sodet_detector *d;
    sodet_result **out;
} results;

static sodet_status make_result(void *context, const sd_batch_item *item, const sodet_detection *from, uint64_t most, sodet_err *err)
{
    const results *to = context;
    const sodet_detector *d = to->d;
    uint32_t n = 0;
    sodet_result *r = sd_alloc(1, sizeof *r + (size_t)most * sizeof(sodet_found));
    if (!r)
        return SODET_FAIL(err, SODET_E_MEMORY, "out of memory: %llu detections", (unsigned long long)most);
    sodet_found *found = (sodet_found *)(void *)(r + 1);
    for (uint64_t i = 0; i < most; i++)
        if (from[i].score >= d->threshold)
            found[n++] = (sodet_found){.box = from[i].box,
                                       .score = from[i].score,
                                       .label = from[i].label,
                                       .name = sodet_detector_class(d, (uint32_t)from[i].label)};
    *r = (sodet_result){.struct_size = sizeof *r, .width = item->original_width, .height = item->original_height, .n = n, .found = found};
    to->out[item->sample] = r;
    return SODET_OK;
}

sodet_status sodet_detect_many(sodet_detector *d, const sodet_picture *const *pictures, uint32_t n, sodet_result **out, sodet_err *err)
{
    results to = {d, out};
    for (uint32_t i = 0; i < n; i++)
        out[i] = NULL;
    pthread_mutex_lock(&d->lock);
    sodet_status s = sd_pictures_run(d->pictures, pictures, n, make_result, &to, err);
    pthread_mutex_unlock(&d->lock);
    return s;
}

sodet_status sodet_detect(sodet_detector *d, const sodet_picture *picture, sodet_result **out, sodet_err *err)
{
    return sodet_detect_many(d, &picture, 1, out, err);
}

sodet_status sodet_detect_file(sodet_detector *d, const char *path, sodet_result **out, sodet_err *err)
{
    const sodet_picture p = {.struct_size = sizeof p, .path = path};
    return sodet_detect(d, &p, out, err);
}
