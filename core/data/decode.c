#include "core/data/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sd_pixels_free(sd_pixels *p)
{
    sd_free(p->rgb);
    *p = (sd_pixels){0};
}

sodet_status sd_pixels_size(sd_pixels *p, uint32_t width, uint32_t height, const char *name, sodet_err *err)
{
    uint64_t need = (uint64_t)width * height * 3;
    if (need > p->capacity) { /* not sd_grow: the old picture need not be copied */
        sd_free(p->rgb);
        *p = (sd_pixels){.rgb = sd_alloc(need, 1)};
        if (!p->rgb)
            return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for a picture of %ux%u", name, width, height);
        p->capacity = need;
    }
    p->width = width;
    p->height = height;
    return SODET_OK;
}

sodet_status sd_decode_too_large(const char *name, uint64_t width, uint64_t height, uint64_t max_pixels, sodet_err *err)
{
    return SODET_FAIL(err, SODET_E_INVALID,
                      "%s: claims %llux%llu pixels, more than the limit of %llu; raise [data] max_pixels if that is right", name,
                      (unsigned long long)width, (unsigned long long)height, (unsigned long long)max_pixels);
}

/* EXIF orientation o of a w x h picture: where pixel (x, y) of the upright one lies in the stored one. */
static void turn(const sd_pixels *in, sd_pixels *out, uint32_t o)
{
    uint32_t w = out->width, h = out->height, sw = in->width, sh = in->height;
    for (uint32_t y = 0; y < h; y++) {
        uint8_t *to = out->rgb + (size_t)y * w * 3;
        for (uint32_t x = 0; x < w; x++, to += 3) {
            uint32_t sx = x, sy = y;
            switch (o) {
            case 2:
                sx = sw - 1 - x;
                break;
            case 3:
                sx = sw - 1 - x;
                sy = sh - 1 - y;
                break;
            case 4:
                sy = sh - 1 - y;
                break;
            case 5:
                sx = y;
                sy = x;
                break;
            case 6:
                sx = y;
                sy = sh - 1 - x;
                break;
            case 7:
                sx = sw - 1 - y;
                sy = sh - 1 - x;
                break;
            default:
                sx = sw - 1 - y;
                sy = x;
                break; /* 8 */
            }
            memcpy(to, in->rgb + ((size_t)sy * sw + sx) * 3, 3);
        }
    }
}

static bool is_jpeg(const uint8_t *bytes, uint64_t n)
{
    return n >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

static bool is_png(const uint8_t *bytes, uint64_t n)
{
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return n >= 8 && memcmp(bytes, png, 8) == 0;
}

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

sodet_status sd_decode_size(const char *name, const uint8_t *bytes, uint64_t n, uint32_t *width, uint32_t *height, uint32_t *orientation,
                            sodet_err *err)
{
    *width = *height = 0;
    *orientation = 1;
    if (n == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: the file is empty", name);
    if (is_jpeg(bytes, n)) {
        sd_jpeg_head head;
        if (!sd_jpeg_look(bytes, n, false, &head))
            return SODET_FAIL(err, SODET_E_INVALID, "%s: a damaged JPEG: it has no frame header", name);
        *width = head.width;
        *height = head.height;
        *orientation = head.orientation;
    } else if (is_png(bytes, n)) {
        if (n >= 24) { /* the first chunk is IHDR, which begins with width and height */
            *width = u32(bytes + 16);
            *height = u32(bytes + 20);
        }
    } else {
        return sd_other_size(name, bytes, n, width, height, err);
    }
    if (*width == 0 || *height == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: a damaged picture: its header says %ux%u", name, *width, *height);
    return SODET_OK;
}

sodet_status sd_decode(const char *name, const uint8_t *bytes, uint64_t n, const sd_decode_options *options, sd_pixels *out,
                       sd_pixels *turned, sodet_err *err)
{
    uint64_t limit = options->max_pixels ? options->max_pixels : (uint64_t)1 << 28;
    uint32_t orientation = 1;
    sodet_status status;
    if (n == 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: the file is empty", name);
    if (is_jpeg(bytes, n))
        status = sd_decode_jpeg(name, bytes, n, limit, out, &orientation, err);
    else if (is_png(bytes, n))
        status = sd_decode_png(name, bytes, n, limit, out, err);
    else
        status = sd_decode_other(name, bytes, n, limit, out, err);
    out->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    if (status != SODET_OK || orientation < 2 || orientation > 8 || options->ignore_orientation)
        return status;
    bool across = orientation >= 5;
    status = sd_pixels_size(turned, across ? out->height : out->width, across ? out->width : out->height, name, err);
    if (status != SODET_OK)
        return status;
    turn(out, turned, orientation);
    turned->orientation = out->orientation;
    sd_pixels swap = *out;
    *out = *turned;
    *turned = swap;
    return SODET_OK;
}

/* ---- which pictures a device's decoder gets ---- */

/* Scans of a progressive JPEG, as far as SD_JPEG_SCANS. */
static uint32_t count_scans(const uint8_t *bytes, uint64_t n)
{
    uint32_t scans = 0;
    for (const uint8_t *p = bytes, *end = bytes + n; scans <= SD_JPEG_SCANS && (p = memchr(p, 0xff, (size_t)(end - p))) != NULL; p++)
        scans += p + 1 < end && p[1] == 0xda;
    return scans;
}

static bool has_end(const uint8_t *bytes, uint64_t n)
{
    for (uint64_t i = n; i >= 2; i--)
        if (bytes[i - 1] == 0xd9 && bytes[i - 2] == 0xff)
            return true;
    return false;
}

/* Luma by samples of chroma, which has one: 4:4:4, 4:2:2, 4:2:0, 4:4:0, 4:1:1, 4:1:0 (CUDA documentation, nvJPEG). */
static bool sampling_is_known(const sd_jpeg_head *h)
{
    static const uint8_t luma[] = {0x11, 0x21, 0x22, 0x12, 0x41, 0x42};
    return h->components == 1 ? h->sampling[0] == 0x11
                              : (h->sampling[1] == 0x11 && h->sampling[2] == 0x11 && memchr(luma, h->sampling[0], sizeof luma));
}

const char *sd_decode_by_host(const uint8_t *bytes, uint64_t n, bool ignore_orientation, uint32_t *width, uint32_t *height)
{
    enum { BASELINE = 0xc0, PROGRESSIVE = 0xc2 };
    sd_jpeg_head h;
    if (!is_jpeg(bytes, n))
        return "is no JPEG";
    if (!sd_jpeg_look(bytes, n, true, &h) || !h.width || !h.height || !has_end(bytes + h.data, n - h.data))
        return "is damaged or cut short";
    if (h.orientation != 1 && !ignore_orientation)
        return "is turned upright by its EXIF tag";
    if (h.components == 4)
        return "is CMYK or YCCK";
    if (h.bits != 8 || (h.frame != BASELINE && h.frame != PROGRESSIVE))
        return "is a JPEG neither baseline nor progressive, of 8 bits";
    if ((h.components != 1 && h.components != 3) || (h.components == 3 && (h.untransformed || memcmp(h.id, "RGB", 3) == 0)))
        return "is a JPEG of other colours than grey and Y Cb Cr";
    if (!sampling_is_known(&h))
        return "is a JPEG of a rare sampling";
    if (!h.tables)
        return "is a JPEG without Huffman tables of its own";
    if (h.frame == PROGRESSIVE && count_scans(bytes, n) > SD_JPEG_SCANS)
        return "is a JPEG of very many scans";
    *width = h.width;
    *height = h.height;
    return NULL;
}

sodet_status sd_decode_read(const char *path, uint8_t **bytes, uint64_t *capacity, uint64_t *size, sodet_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    if (fd < 0)
        return SODET_FAIL(err, SODET_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat st;
    sodet_status status = SODET_OK;
    uint64_t n = 0;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        status = SODET_FAIL(err, SODET_E_IO, "%s: not a regular file; a picture is expected here", path);
    else
        status = sd_grow(bytes, capacity, (uint64_t)st.st_size + 1, 1, err);
    while (status == SODET_OK && n < (uint64_t)st.st_size) {
        ssize_t got = read(fd, *bytes + n, (size_t)((uint64_t)st.st_size - n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = SODET_FAIL(err, SODET_E_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (got <= 0)
            break;
        n += (uint64_t)got;
    }
    close(fd);
    *size = n;
    return status;
}

sodet_status sd_decode_file(const char *path, const sd_decode_options *options, uint8_t **bytes, uint64_t *capacity, sd_pixels *out,
                            sd_pixels *turned, sodet_err *err)
{
    uint64_t n;
    sodet_status status = sd_decode_read(path, bytes, capacity, &n, err);
    return status == SODET_OK ? sd_decode(path, *bytes, n, options, out, turned, err) : status;
}
