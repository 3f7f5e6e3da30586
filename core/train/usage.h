/* train/usage.h: what the devices of a run did with the time of its steps.
 *
 * A device computes while one of its programs is under way and is not waiting for a collective. Shares are of the time of the steps
 * (evaluations and checkpoints are outside) and means over the devices:
 *   efficiency  it computed. The others add up to what is missing to 1:
 *   exposed     it waited for a sum over the devices that was being made; `hidden`, beside these, is sums that were made while it computed
 *   awaited     it waited for a device that had not come to the sum yet
 *   data        the loader had no batch
 *   rest        everything else: copies to and from the device, the host's own work, waiting at the end of a step
 * So efficiency is that of n devices against n times one that never waits, as fast as each is now. It needs no run on one device, and
 * does not see what devices take from each other while they compute: the cores and the memory that replicas of a CPU share, say. */
#ifndef SD_TRAIN_USAGE_H
#define SD_TRAIN_USAGE_H

#include "core/base/json.h"
#include "core/train/stepper.h"

typedef struct sd_usage_shares {
    double seconds, images; /* of the steps; a second */
    bool known;             /* what follows, but `data`: the backend tells how long its devices took */
    double efficiency, exposed, hidden, awaited, data, rest;
    uint32_t slowest; /* device that the others waited for most: it waited least */
} sd_usage_shares;

typedef struct sd_usage_device {
    uint64_t images;
    sodet_device_times times, since;
} sd_usage_device;

typedef struct sd_usage {
    sd_device_pool *pool;
    const sd_stepper *stepper;
    uint32_t n;
    bool counts; /* between begin and end */
    double seconds, data;
    sd_usage_device *device; /* [n] */
} sd_usage;

sodet_status sd_usage_open(sd_device_pool *pool, const sd_stepper *stepper, sd_usage *out, sodet_err *err);
void sd_usage_close(sd_usage *u); /* accepts a zeroed one */
/* Between the two all time of the devices is that of steps; an end without a begin does nothing. */
sodet_status sd_usage_begin(sd_usage *u, sodet_err *err);
sodet_status sd_usage_end(sd_usage *u, sodet_err *err);
/* A step that took so long, of it waiting for data. */
void sd_usage_step(sd_usage *u, double seconds, double data);

sd_usage_shares sd_usage_sum(const sd_usage *u);
double sd_usage_rate(const sd_usage *u, uint32_t device); /* pictures a second */
/* One line, or two where there are several devices; no newline at the end. */
void sd_usage_text(const sd_usage *u, sd_text *out);
/* "devices": [{"name", "images_per_second", "computing", "collective", "exposed", "awaited" (seconds)}], "efficiency", "reduction_exposed",
 * "reduction_hidden", "waiting", "waiting_for_data", "rest" (shares). */
void sd_usage_json(const sd_usage *u, sd_text *out);

#endif
