/* data/send.h: a batch's pictures into the inputs of a program (detect/model.h). */
#ifndef SD_DATA_SEND_H
#define SD_DATA_SEND_H

#include "core/data/loader.h"
#include "core/device/program.h"

/* Rows [first, first + n). Pixels that were made here are one input; else the pictures are packed into one, row behind row, with the tables of
 * what is to become of them. A device's thread. */
sodet_status sd_batch_send(const sd_batch *b, uint32_t first, uint32_t n, sd_program *p, sodet_err *err);

#endif
