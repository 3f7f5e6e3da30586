/* data/frame.h: where pictures come to lie in the network's input, for those who want boxes as the network sees them and no pixels. The
 * links are run on a blank picture of each size that is asked for, once. */
#ifndef SD_DATA_FRAME_H
#define SD_DATA_FRAME_H

#include "core/data/loader.h"

typedef struct sd_frame {
    uint32_t width, height;               /* of the picture, upright */
    uint32_t canvas_width, canvas_height; /* of the network's input */
    double map[6];                        /* picture to input: x' = m0 x + m1 y + m2, y' = m3 x + m4 y + m5 */
} sd_frame;
typedef struct sd_frames sd_frames;

/* dataset, links, input, seed and the like of a loader (sd_split_loader), which must outlive the frames; the links should know no chance. */
sodet_status sd_frames_open(const sd_loader_config *config, sd_frames **out, sodet_err *err);
void sd_frames_close(sd_frames *f); /* accepts NULL */
/* Any thread. */
sodet_status sd_frames_get(sd_frames *f, uint32_t width, uint32_t height, sd_frame *out, sodet_err *err);
/* The box clipped to the picture, then in the input; false: nothing of it is in the picture. */
bool sd_frame_box(const sd_frame *f, const sodet_box *box, sodet_box *out);

#endif
