/* report/events.h: scalars in a file that TensorBoard shows. The container is TensorFlow's record file (tensorflow/core/lib/io/
 * record_writer.h): of each record its length (8 bytes, little-endian), the masked CRC of these, the bytes, the masked CRC of those. A record
 * is a protobuf `Event` (tensorflow/core/util/event.proto): 1 wall_time double, 2 step int64, 3 file_version string (of the first alone),
 * 5 summary: repeated 1 value: 1 tag string, 2 simple_value float (summary.proto). */
#ifndef SD_REPORT_EVENTS_H
#define SD_REPORT_EVENTS_H

#include "core/base/base.h"

/* TensorBoard looks for names with "tfevents" in them. */
#define SD_EVENTS_NAME "events.out.tfevents.sodet"

typedef struct sd_scalar {
    const char *tag;
    double value;
} sd_scalar;
typedef struct sd_events sd_events;
/* Goes on behind what is there, without the events of steps after `last` and without a record that was cut; begins the file if need be. */
sodet_status sd_events_open(const char *path, uint64_t last, sd_events **out, sodet_err *err);
/* One event, and out to the file. */
sodet_status sd_events_add(sd_events *e, uint64_t step, const sd_scalar *scalars, uint64_t n, sodet_err *err);
void sd_events_close(sd_events *e); /* accepts NULL */

/* CRC-32C (Castagnoli), as iSCSI has it (RFC 3720, B.4). */
uint32_t sd_crc32c(const void *bytes, uint64_t n);

#endif
