/* api/pictures.h: a trained network on pictures that come as they come: a program's memory, a pipe, a path. A picture takes the way of a
 * validation sample: a data set of one slot, the worker with its chain of transforms, normalisation into a row of a batch, inference.
 * One thread at a time. */
#ifndef SD_API_PICTURES_H
#define SD_API_PICTURES_H

#include "core/api/trained.h"
#include "sodet/detector.h"

typedef struct sd_pictures sd_pictures;
/* cfg and net must outlive it. */
sodet_status sd_pictures_open(sd_config *cfg, const sd_trained *net, sd_pictures **out, sodet_err *err);
void sd_pictures_close(sd_pictures *p); /* accepts NULL */

/* Pictures of one shape go through the network together. put has them in their order, item->sample being the place in `pictures`; it is not
 * called for one that cannot be read: the others are done, and the first such is what is returned. An error of put, or of the network,
 * ends the call. */
sodet_status sd_pictures_run(sd_pictures *p, const sodet_picture *const *pictures, uint32_t n, sd_infer_put *put, void *context,
                             sodet_err *err);
/* What n pictures of width x height would need is made, and used once on blank ones. 0 x 0: the size of [input]; n 0: 1. */
sodet_status sd_pictures_warm_up(sd_pictures *p, uint32_t width, uint32_t height, uint32_t n, sodet_err *err);

/* A struct that begins with its size, of an older or newer header, over zeros; from NULL: all zero. init: the macro that begins one. */
sodet_status sd_take_struct(void *to, size_t size, const void *from, const char *what, const char *init, sodet_err *err);

#endif
