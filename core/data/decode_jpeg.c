/* data/decode_jpeg.c: libjpeg-turbo with an error handler that returns instead of ending the process. Sizes, the number of scans (a few
 * kilobytes of progressive data can claim thousands) and damaged data are refused. */
#include "core/data/decode.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>

typedef struct handler {
    struct jpeg_error_mgr base;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
} handler;

static void fail(j_common_ptr c)
{
    handler *h = (handler *)(void *)c->err;
    h->base.format_message(c, h->text);
    longjmp(h->back, 1);
}

/* Warnings that mean missing or garbled picture data are errors; odd but complete files pass. */
static void message(j_common_ptr c, int level)
{
    if (level >= 0)
        return;
    switch (c->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
        fail(c);
        break;
    default:
        break;
    }
}

static void silent(j_common_ptr c)
{
    (void)c;
}

static void watch(j_common_ptr c)
{
    if (c->is_decompressor && ((j_decompress_ptr)c)->input_scan_number > SD_JPEG_SCANS) {
        handler *h = (handler *)(void *)c->err;
        snprintf(h->text, sizeof h->text, "more than %d scans", SD_JPEG_SCANS);
        longjmp(h->back, 1);
    }
}

static uint32_t u16(const uint8_t *p, bool little)
{
    return little ? (uint32_t)(p[0] | p[1] << 8) : (uint32_t)(p[0] << 8 | p[1]);
}

/* Tag 0x0112 of the first directory of an EXIF block (CIPA DC-008, 4.6.2 and 4.6.5.1); 1 if there is none. */
static uint32_t exif_orientation(const uint8_t *p, size_t n)
{
    if (n < 14 || memcmp(p, "Exif\0\0", 6) != 0)
        return 1;
    p += 6;
    n -= 6;
    bool little = p[0] == 'I';
    if ((p[0] != 'I' && p[0] != 'M') || p[1] != p[0] || u16(p + 2, little) != 42)
        return 1;
    size_t at = little ? u16(p + 4, true) | (size_t)u16(p + 6, true) << 16 : (size_t)u16(p + 4, false) << 16 | u16(p + 6, false);
    if (at > n || n - at < 2)
        return 1;
    uint32_t entries = u16(p + at, little);
    at += 2;
    for (uint32_t i = 0; i < entries && n - at >= 12; i++, at += 12) {
        if (u16(p + at, little) == 0x0112 && u16(p + at + 2, little) == 3) {
            uint32_t o = u16(p + at + 8, little);
            return o >= 1 && o <= 8 ? o : 1;
        }
    }
    return 1;
}

/* Adobe Technical Note 5116: "Adobe", version, two flags, transform; 0: none. */
static bool adobe_untransformed(const uint8_t *p, size_t n)
{
    return n >= 12 && memcmp(p, "Adobe", 5) == 0 && p[11] == 0;
}

static bool frame_header(const uint8_t *p, size_t n, uint32_t marker, sd_jpeg_head *out)
{
    if (n < 6)
        return false;
    out->frame = marker;
    out->bits = p[0];
    out->height = u16(p + 1, false);
    out->width = u16(p + 3, false);
    out->components = p[5];
    for (size_t c = 0; c < 4 && c < out->components && 6 + 3 * c + 3 <= n; c++) {
        out->id[c] = p[6 + 3 * c];
        out->sampling[c] = p[7 + 3 * c];
    }
    return true;
}

/* Walks the segments (ITU-T T.81, annex B); frame headers are SOF0..SOF15 without DHT, JPG and DAC. */
bool sd_jpeg_look(const uint8_t *bytes, uint64_t n, bool whole, sd_jpeg_head *out)
{
    enum { APP1 = 0xe1, APP14 = 0xee, SOF = 0xc0, DHT = 0xc4, JPG = 0xc8, DAC = 0xcc, SOS = 0xda };
    *out = (sd_jpeg_head){.orientation = 1};
    for (uint64_t at = 2; n >= 4 && at <= n - 4;) {
        uint32_t marker = bytes[at + 1];
        if (bytes[at] != 0xff || marker == 0xff) { /* what does not belong between markers is skipped, as libjpeg does; fill */
            at++;
            continue;
        }
        if (marker <= 1 || (marker >= 0xd0 && marker <= 0xd7)) { /* no length behind these */
            at += 2;
            continue;
        }
        uint32_t length = u16(bytes + at + 2, false);
        if (length < 2) { /* nonsense that libjpeg passes over in markers it has no use for */
            at += 4;
            continue;
        }
        if (n - at - 2 < length)
            return false;
        if (marker == SOS) {
            out->data = at;
            return out->frame != 0;
        }
        const uint8_t *p = bytes + at + 4;
        if (marker == APP1 && out->orientation == 1)
            out->orientation = exif_orientation(p, length - 2);
        if (marker == APP14)
            out->untransformed = adobe_untransformed(p, length - 2);
        out->tables |= marker == DHT;
        if ((marker & 0xf0) == SOF && marker != DHT && marker != JPG && marker != DAC) {
            if (!frame_header(p, length - 2, marker, out))
                return false;
            if (!whole)
                return true;
        }
        at += 2 + (uint64_t)length;
    }
    return false;
}

/* CMYK in place of a row of RGB: four bytes in, three out, front to back. Adobe writes all four inverted. */
static void cmyk_row(const uint8_t *in, uint8_t *out, uint32_t width, bool inverted)
{
    for (uint32_t x = 0; x < width; x++, in += 4, out += 3) {
        for (uint32_t c = 0; c < 3; c++) {
            uint32_t ink = inverted ? in[c] : 255u - in[c], black = inverted ? in[3] : 255u - in[3];
            out[c] = (uint8_t)((ink * black + 127) / 255);
        }
    }
}

sodet_status sd_decode_jpeg(const char *name, const uint8_t *bytes, uint64_t n, uint64_t max_pixels, sd_pixels *out, uint32_t *orientation,
                            sodet_err *err)
{
    struct jpeg_decompress_struct c;
    handler h;
    uint8_t *volatile row = NULL; /* CMYK alone */
    volatile sodet_status status = SODET_OK;
    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&h.base);
    h.base.error_exit = fail;
    h.base.emit_message = message;
    h.base.output_message = silent;
    if (setjmp(h.back)) {
        status = h.base.msg_code == JERR_OUT_OF_MEMORY
                     ? SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for libjpeg", name)
                     : SODET_FAIL(err, SODET_E_INVALID, "%s: a damaged or unsupported JPEG: %s", name, h.text);
        goto done;
    }
    jpeg_create_decompress(&c);
    h.progress = (struct jpeg_progress_mgr){.progress_monitor = watch};
    c.progress = &h.progress;
    jpeg_mem_src(&c, bytes, (unsigned long)n);
    jpeg_save_markers(&c, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&c, TRUE);
    if ((uint64_t)c.image_width * c.image_height > max_pixels) {
        status = sd_decode_too_large(name, c.image_width, c.image_height, max_pixels, err);
        goto done;
    }
    for (jpeg_saved_marker_ptr m = c.marker_list; m; m = m->next) {
        uint32_t o = exif_orientation(m->data, m->data_length);
        if (o != 1) {
            *orientation = o;
            break;
        }
    }
    bool four = c.num_components == 4;
    c.out_color_space = four ? JCS_CMYK : JCS_RGB;
    status = sd_pixels_size(out, c.image_width, c.image_height, name, err);
    if (status != SODET_OK)
        goto done;
    if (four) {
        row = sd_alloc(c.image_width, 4);
        if (!row) {
            status = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for a row", name);
            goto done;
        }
    }
    jpeg_start_decompress(&c);
    while (c.output_scanline < c.output_height) {
        uint8_t *to = out->rgb + (size_t)c.output_scanline * out->width * 3;
        JSAMPROW rows[1] = {four ? row : to};
        jpeg_read_scanlines(&c, rows, 1);
        if (four)
            cmyk_row(row, to, out->width, c.saw_Adobe_marker);
    }
    jpeg_finish_decompress(&c);
done:
    jpeg_destroy_decompress(&c);
    sd_free(row);
    return status;
}

/* libjpeg's own destination in memory frees a buffer twice and leaks another where it cannot grow (jdatadst.c, empty_mem_output_buffer). */
typedef struct sink {
    struct jpeg_destination_mgr base;
    sd_text *out;
    JOCTET bytes[4096];
} sink;

static void sink_begin(j_compress_ptr c)
{
    sink *s = (sink *)(void *)c->dest;
    s->base.next_output_byte = s->bytes;
    s->base.free_in_buffer = sizeof s->bytes;
}

static boolean sink_full(j_compress_ptr c)
{
    sink *s = (sink *)(void *)c->dest;
    sd_text_append(s->out, s->bytes, sizeof s->bytes);
    sink_begin(c);
    return TRUE;
}

static void sink_end(j_compress_ptr c)
{
    sink *s = (sink *)(void *)c->dest;
    sd_text_append(s->out, s->bytes, sizeof s->bytes - s->base.free_in_buffer);
}

sodet_status sd_jpeg_encode(const char *name, const uint8_t *rgb, uint32_t width, uint32_t height, int quality, sd_text *out,
                            sodet_err *err)
{
    struct jpeg_compress_struct c;
    handler h;
    sink to = {.base = {.init_destination = sink_begin, .empty_output_buffer = sink_full, .term_destination = sink_end}, .out = out};
    volatile sodet_status status = SODET_OK;
    memset(&c, 0, sizeof c);
    memset(&h, 0, sizeof h);
    c.err = jpeg_std_error(&h.base);
    h.base.error_exit = fail;
    h.base.output_message = silent;
    if (setjmp(h.back)) {
        status = SODET_FAIL(err, h.base.msg_code == JERR_OUT_OF_MEMORY ? SODET_E_MEMORY : SODET_E_INVALID,
                            "%s: libjpeg cannot write it: %s", name, h.text);
    } else {
        jpeg_create_compress(&c);
        c.dest = &to.base;
        c.image_width = width;
        c.image_height = height;
        c.input_components = 3;
        c.in_color_space = JCS_RGB;
        jpeg_set_defaults(&c);
        jpeg_set_quality(&c, quality, TRUE);
        jpeg_start_compress(&c, TRUE);
        while (c.next_scanline < height) {
            JSAMPROW row = (JSAMPROW)(uintptr_t)(rgb + (size_t)c.next_scanline * width * 3);
            jpeg_write_scanlines(&c, &row, 1);
        }
        jpeg_finish_compress(&c);
        if (out->failed)
            status = SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for the file's bytes", name);
    }
    jpeg_destroy_compress(&c);
    return status;
}
