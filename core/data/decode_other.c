/* data/decode_other.c: BMP, TGA and PNM by stb_image, for whom truncation is not an error: what can be checked is checked here first. */
#include "core/data/decode.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_ONLY_TGA
#define STBI_ONLY_PNM
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#pragma GCC diagnostic ignored "-Wunused-function" /* what the macros above leave declared; gcc looks at the end of the file */
#include <stb/stb_image.h>

static uint64_t le(const uint8_t *p, uint32_t n)
{
    uint64_t v = 0;
    while (n--)
        v = v << 8 | p[n];
    return v;
}

static bool is_pnm(const uint8_t *b, uint64_t n)
{
    return n >= 2 && b[0] == 'P' && (b[1] == '5' || b[1] == '6');
}

/* Where the pixels of a PNM begin: behind three numbers and one blank, with comments to the lines' ends between them. digits: of the longest
 * number. */
static uint64_t pnm_pixels(const uint8_t *b, uint64_t n, uint64_t *digits)
{
    uint64_t at = 2;
    *digits = 0;
    for (uint32_t numbers = 0; numbers < 3 && at < n;) {
        if (b[at] == '#')
            while (at < n && b[at] != '\n' && b[at] != '\r')
                at++;
        else if (b[at] >= '0' && b[at] <= '9') {
            const uint64_t first = at;
            while (at < n && b[at] >= '0' && b[at] <= '9')
                at++;
            *digits = at - first > *digits ? at - first : *digits;
            numbers++;
        } else
            at++;
    }
    return at + 1;
}

/* Bytes that an uncompressed file of this kind needs at least; 0: unknown. */
static uint64_t least_bytes(const uint8_t *b, uint64_t n, uint64_t width, uint64_t height)
{
    uint64_t digits;
    if (n >= 34 && b[0] == 'B' && b[1] == 'M') {
        uint64_t header = le(b + 14, 4), bits = header == 12 ? le(b + 24, 2) : le(b + 28, 2);
        uint64_t compression = header == 12 ? 0 : le(b + 30, 4);
        return compression == 0 || compression == 3 ? le(b + 10, 4) + (width * bits + 31) / 32 * 4 * (height - 1) + (width * bits + 7) / 8
                                                    : 0;
    }
    if (is_pnm(b, n))
        return pnm_pixels(b, n, &digits) + width * height * (b[1] == '6' ? 3 : 1);
    if (n >= 18 && b[0] != 'P' && b[0] != 'B') {
        uint64_t map = b[1] == 1 ? le(b + 5, 2) * ((le(b + 7, 1) + 7) / 8) : 0, type = b[2];
        return type == 1 || type == 2 || type == 3 ? 18u + b[0] + map + width * height * ((uint64_t)(b[16] + 7) / 8) : 0;
    }
    return 0;
}

static const char *kind(const uint8_t *b, uint64_t n)
{
    if (n >= 4 && memcmp(b, "GIF8", 4) == 0)
        return "a GIF";
    if (n >= 12 && memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "WEBP", 4) == 0)
        return "a WebP";
    if (n >= 4 && (memcmp(b, "II*\0", 4) == 0 || memcmp(b, "MM\0*", 4) == 0))
        return "a TIFF";
    if (n >= 12 && memcmp(b + 4, "ftyp", 4) == 0)
        return "a HEIF, AVIF or video file";
    if (n >= 2 && b[0] == 'B' && b[1] == 'M')
        return "a damaged or unsupported BMP";
    return "no picture that is known here";
}

sodet_status sd_other_size(const char *name, const uint8_t *bytes, uint64_t n, uint32_t *width, uint32_t *height, sodet_err *err)
{
    int w = 0, h = 0, channels = 0;
    uint64_t digits = 0;
    if (is_pnm(bytes, n) && (pnm_pixels(bytes, n, &digits), digits > 9)) /* stb_image multiplies an int by ten until it overflows */
        return SODET_FAIL(err, SODET_E_INVALID, "%s: a PGM or PPM whose header has a number of %llu digits; at most 9 are expected", name,
                          (unsigned long long)digits);
    if (n > INT_MAX || !stbi_info_from_memory(bytes, (int)n, &w, &h, &channels) || w <= 0 || h <= 0)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: %s; JPEG, PNG, BMP, TGA, PGM and PPM are read", name, kind(bytes, n));
    *width = (uint32_t)w;
    *height = (uint32_t)h;
    return SODET_OK;
}

sodet_status sd_decode_other(const char *name, const uint8_t *bytes, uint64_t n, uint64_t max_pixels, sd_pixels *out, sodet_err *err)
{
    uint32_t w, h;
    int width, height, channels;
    sodet_status status = sd_other_size(name, bytes, n, &w, &h, err);
    if (status != SODET_OK)
        return status;
    if ((uint64_t)w * h > max_pixels)
        return sd_decode_too_large(name, w, h, max_pixels, err);
    if (stbi_is_16_bit_from_memory(bytes, (int)n)) /* stb_image takes their bytes in the wrong order, and reads past their end */
        return SODET_FAIL(err, SODET_E_UNSUPPORTED, "%s: a PGM or PPM of 16 bits; write it with 8 bits, or as PNG", name);
    uint64_t least = least_bytes(bytes, n, w, h);
    if (n < least)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: cut off: it has %llu bytes, and %ux%u pixels need %llu", name, (unsigned long long)n,
                          w, h, (unsigned long long)least);
    uint8_t *rgb = stbi_load_from_memory(bytes, (int)n, &width, &height, &channels, 3);
    const char *why = rgb ? "" : stbi_failure_reason();
    if (!rgb && why && strcmp(why, "outofmem") == 0)
        return SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory for stb_image", name);
    if (!rgb)
        return SODET_FAIL(err, SODET_E_INVALID, "%s: %s (stb_image refuses its data)", name, kind(bytes, n));
    status = sd_pixels_size(out, (uint32_t)width, (uint32_t)height, name, err);
    if (status == SODET_OK)
        memcpy(out->rgb, rgb, (size_t)width * (size_t)height * 3);
    stbi_image_free(rgb);
    return status;
}
