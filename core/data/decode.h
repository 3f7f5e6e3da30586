/* data/decode.h: files of bytes to pictures of RGB bytes. JPEG by libjpeg-turbo, PNG by libpng, BMP, TGA and PNM by stb_image.
 *
 * Whatever the file holds, the result has three channels of 8 bits: grey is repeated, alpha dropped, 16 bits become their upper 8,
 * CMYK and YCCK are converted (R = C K / 255 with Adobe's inverted values). A damaged or cut file is an error, not half a picture.
 * The picture is turned upright by its EXIF orientation, unless asked not to. Sizes are checked before memory is taken. */
#ifndef SD_DATA_DECODE_H
#define SD_DATA_DECODE_H

#include "core/base/base.h"

typedef struct sd_pixels { /* zero-initialise; the buffer grows and is used again */
    uint32_t width, height;
    uint32_t orientation; /* the file's EXIF tag: 1 where it has none */
    uint8_t *rgb;         /* [height][width][3] */
    uint64_t capacity;
} sd_pixels;
void sd_pixels_free(sd_pixels *p);
sodet_status sd_pixels_size(sd_pixels *p, uint32_t width, uint32_t height, const char *name, sodet_err *err);

typedef struct sd_decode_options {
    uint64_t max_pixels; /* 0: 2^28 */
    bool ignore_orientation;
} sd_decode_options;

/* name: the file's, for messages. turned: scratch for pictures that have to be turned. */
sodet_status sd_decode(const char *name, const uint8_t *bytes, uint64_t n, const sd_decode_options *options, sd_pixels *out,
                       sd_pixels *turned, sodet_err *err);
/* A picture's file into *bytes (grows, used again). */
sodet_status sd_decode_read(const char *path, uint8_t **bytes, uint64_t *capacity, uint64_t *n, sodet_err *err);
/* The same, then decoded. */
sodet_status sd_decode_file(const char *path, const sd_decode_options *options, uint8_t **bytes, uint64_t *capacity, sd_pixels *out,
                            sd_pixels *turned, sodet_err *err);

/* Width, height and EXIF orientation (1 where there is none) from the header alone; `bytes` may end behind it. */
sodet_status sd_decode_size(const char *name, const uint8_t *bytes, uint64_t n, uint32_t *width, uint32_t *height, uint32_t *orientation,
                            sodet_err *err);

/* Why a picture stays with the host where a device decodes JPEGs: a phrase that follows "it is" or "it"; NULL: it is one for the device, of
 * *width x *height. That takes baseline and progressive JPEGs of 8 bits, grey or Y Cb Cr, of a sampling that nvJPEG lists, upright, and with
 * an end: libjpeg has the word on all others, whether it reads or refuses them. Only headers are looked at. */
const char *sd_decode_by_host(const uint8_t *bytes, uint64_t n, bool ignore_orientation, uint32_t *width, uint32_t *height);

/* ---- one file each: decode_jpeg.c, decode_png.c, decode_other.c ---- */
sodet_status sd_decode_jpeg(const char *name, const uint8_t *bytes, uint64_t n, uint64_t max_pixels, sd_pixels *out, uint32_t *orientation,
                            sodet_err *err);
sodet_status sd_decode_png(const char *name, const uint8_t *bytes, uint64_t n, uint64_t max_pixels, sd_pixels *out, sodet_err *err);
sodet_status sd_decode_other(const char *name, const uint8_t *bytes, uint64_t n, uint64_t max_pixels, sd_pixels *out, sodet_err *err);
typedef struct sd_jpeg_head {
    uint32_t width, height, orientation;
    uint32_t frame, bits, components; /* marker of the frame header: 0xc0 baseline, 0xc2 progressive */
    uint8_t id[4], sampling[4];       /* of each component; sampling: 16 horizontal + vertical */
    bool untransformed;               /* Adobe's segment says that colours are stored as they are */
    bool tables;                      /* for Huffman's code */
    uint64_t data;                    /* where the first scan begins; 0: not seen */
} sd_jpeg_head;
/* whole: on to the first scan, else to the frame header alone. false: that is not there. */
bool sd_jpeg_look(const uint8_t *bytes, uint64_t n, bool whole, sd_jpeg_head *out);
enum { SD_JPEG_SCANS = 500 }; /* of more than that no JPEG is decoded: a few kilobytes of progressive data can claim thousands */
sodet_status sd_other_size(const char *name, const uint8_t *bytes, uint64_t n, uint32_t *width, uint32_t *height, sodet_err *err);
sodet_status sd_decode_too_large(const char *name, uint64_t width, uint64_t height, uint64_t max_pixels, sodet_err *err); /* the error */

/* A JPEG of RGB bytes, appended to `out`; quality 1..100; name: for messages. */
sodet_status sd_jpeg_encode(const char *name, const uint8_t *rgb, uint32_t width, uint32_t height, int quality, sd_text *out,
                            sodet_err *err);
/* A PNG of RGB bytes, written whole or not at all. */
sodet_status sd_png_write(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height, sodet_err *err);

#endif
