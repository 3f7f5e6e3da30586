/* data/send.h: a batch's pictures into the inputs of a program (detect/model.h). */
#ifndef SD_DATA_SEND_H
#define SD_DATA_SEND_H

#include "core/data/loader.h"
#include "core/device/program.h"

/* Rows [first, first + n). Pixels that were made here are one input; else the pictures are packed into one, row behind row, with the tables of
 * what is to become of them; JPEGs among them are decoded by the device. A device's thread. Errors about a picture name it. */
sodet_status sd_batch_send(const sd_batch *b, uint32_t first, uint32_t n, sd_program *p, sodet_err *err);
/* Before the first batch: whether every device of the pool decodes JPEGs, if that is asked for, and what it lacks. */
sodet_status sd_send_ready(sd_device_pool *pool, bool jpegs, sodet_err *err);
/* What host and devices have decoded, as a sentence; "": nothing to say. */
const char *sd_send_told(const sd_loader_stats *stats, char *out, size_t size);

#endif
