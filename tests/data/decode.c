/* Pictures of all kinds, odd and broken ones, to RGB bytes. O-12 orientation, O-13 cut files, O-14 channel counts, O-15 giant claims. */
#include "core/data/decode.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "sodet/files.h"

#include "check.h"

static sodet_err err = SODET_ERR_INIT;
static sd_pixels picture, turned;
static uint8_t *bytes;
static uint64_t capacity;

static sodet_status decode(const char *path, bool upright)
{
    const sd_decode_options options = {.ignore_orientation = !upright};
    return sd_decode_file(path, &options, &bytes, &capacity, &picture, &turned, &err);
}

static sodet_status decode_bytes(const char *name, const void *b, uint64_t n, uint64_t max_pixels)
{
    const sd_decode_options options = {.max_pixels = max_pixels};
    return sd_decode(name, b, n, &options, &picture, &turned, &err);
}

static void mean(double out[3])
{
    double sum[3] = {0};
    size_t n = (size_t)picture.width * picture.height;
    for (size_t i = 0; i < n * 3; i++)
        sum[i % 3] += picture.rgb[i];
    for (int c = 0; c < 3; c++)
        out[c] = sum[c] / (double)n;
}

static const uint8_t *at(uint32_t x, uint32_t y)
{
    return picture.rgb + ((size_t)y * picture.width + x) * 3;
}

static bool is(const uint8_t *p, int r, int g, int b, int slack)
{
    return abs(p[0] - r) <= slack && abs(p[1] - g) <= slack && abs(p[2] - b) <= slack;
}

static void o_12_orientation(void)
{
    for (int o = 1; o <= 8; o++) {
        char name[80];
        snprintf(name, sizeof name, "tests/data/pictures/orientation-%d.jpg", o);
        CHECK_OK(decode(check_source(name), true));
        CHECK(picture.width == 40 && picture.height == 24);
        CHECK(is(at(5, 5), 255, 0, 0, 12) && is(at(35, 5), 255, 255, 255, 12) && is(at(5, 20), 255, 255, 255, 12) &&
              is(at(35, 20), 0, 0, 255, 12));
        CHECK_OK(decode(check_source(name), false));
        CHECK(o < 5 ? picture.width == 40 : picture.width == 24);
    }
}

static void o_14_channels(void)
{
    static const struct {
        const char *name;
        int r, g, b;
    } rows[] = {{"grey", 128, 128, 128}, {"cmyk", 255, 0, 0}, {"cmyk-adobe", 255, 0, 0}, {"ycck-adobe", 255, 0, 0}};
    for (uint32_t i = 0; i < 4; i++) {
        char name[80];
        snprintf(name, sizeof name, "tests/data/pictures/%s.jpg", rows[i].name);
        CHECK_OK(decode(check_source(name), true));
        CHECK(picture.width == 8 && picture.height == 8 && is(at(3, 3), rows[i].r, rows[i].g, rows[i].b, 8));
    }
    /* PNM, BMP and TGA by hand. */
    CHECK_OK(decode_bytes("a.pgm", "P5\n2 1\n255\n\x80\x01", 13, 0));
    CHECK(picture.width == 2 && picture.height == 1 && is(at(0, 0), 128, 128, 128, 0) && is(at(1, 0), 1, 1, 1, 0));
    CHECK_OK(decode_bytes("a.ppm", "P6\n1 1\n255\n\xc8\x64\x32", 14, 0));
    CHECK(is(at(0, 0), 200, 100, 50, 0));
    static const uint8_t tga[] = {0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 32, 8, 50, 100, 200, 0}; /* BGRA, alpha 0 */
    CHECK_OK(decode_bytes("a.tga", tga, sizeof tga, 0));
    CHECK(is(at(0, 0), 200, 100, 50, 0));
}

static void o_15_giants(void)
{
    static const uint8_t bomb[18] = {0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 90, 0, 90, 32, 8}; /* TGA, 23040 x 23040 x 4 */
    const clock_t start = clock(); /* the processor's time: a busy machine does not count */
    CHECK_FAILS(decode_bytes("bomb.jpg", bomb, sizeof bomb, 0), SODET_E_INVALID, "bomb.jpg: claims 23040x23040");
    CHECK((double)(clock() - start) < 0.1 * CLOCKS_PER_SEC);
    CHECK_OK(decode_bytes("a.ppm", "P6 #3 3\n1 #2\n1\r255\n\xc8\x64\x32", 22, 0));
    CHECK_FAILS(decode_bytes("a.ppm", "P6 #3 3\n1 #2\n1\r255\n\xc8\x64", 21, 0), SODET_E_INVALID,
                "a.ppm: cut off: it has 21 bytes, and 1x1 pixels need 22");
    CHECK_FAILS(decode_bytes("a.pgm", "P5\n2 1\n65535\n\1\2\3\4", 18, 0), SODET_E_UNSUPPORTED,
                "a.pgm: a PGM or PPM of 16 bits; write it with 8 bits");
    CHECK_FAILS(decode_bytes("a.pgm", "P5\n0000000001 1\n255\n\1", 21, 0), SODET_E_INVALID, "a number of 10 digits; at most 9");
    CHECK_OK(decode_bytes("a.pgm", "P5\n000000001 1\n255\n\1", 20, 0));
    CHECK_FAILS(decode_bytes("a.ppm", "P6\n1000 1000\n255\n", 17, 999999), SODET_E_INVALID, "limit of 999999");
    CHECK_FAILS(decode_bytes("a.ppm", "P6\n1000 1000\n255\n", 17, 1000000), SODET_E_INVALID, "a.ppm");
}

static void refusals(void)
{
    CHECK_FAILS(decode_bytes("e.jpg", "", 0, 0), SODET_E_INVALID, "e.jpg: the file is empty");
    CHECK_FAILS(decode_bytes("t.jpg", "hello, world", 12, 0), SODET_E_INVALID, "t.jpg: no picture that is known here");
    CHECK_FAILS(decode_bytes("g.gif", "GIF89a\1\0\1\0\0\0\0", 13, 0), SODET_E_INVALID, "g.gif: a GIF; JPEG, PNG");
    CHECK_FAILS(decode("/nonexistent/x.jpg", true), SODET_E_IO, "/nonexistent/x.jpg");
    CHECK_FAILS(decode("/", true), SODET_E_IO, "not a regular file");
    /* O-13: every way of cutting a JPEG and a PNG short is an error that names it, never half a picture. */
    const char *folder = check_scratch("decode");
    char path[600];
    snprintf(path, sizeof path, "%s/whole.png", folder);
    static uint8_t rgb[40 * 30 * 3];
    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)sd_mix64(i);
    CHECK_OK(sd_png_write(path, rgb, 40, 30, &err));
    CHECK_OK(decode(path, true));
    CHECK(picture.width == 40 && picture.height == 30 && memcmp(picture.rgb, rgb, sizeof rgb) == 0);
    const char *const whole[] = {path, check_source("tests/data/pictures/orientation-1.jpg")};
    for (uint32_t k = 0; k < 2; k++) {
        char *file = NULL;
        uint64_t n = 0;
        CHECK_OK(sd_file_read(whole[k], 0, &file, &n, &err));
        uint32_t passed = 0;
        for (uint64_t cut = 3; cut + 12 < n; cut += 1 + n / 200) {
            err = (sodet_err)SODET_ERR_INIT;
            sodet_status status = decode_bytes("cut.file", file, cut, 0);
            passed += status == SODET_OK;
            CHECK(status == SODET_OK || strstr(err.text, "cut.file"));
        }
        CHECK_EQ(passed, 0);
        if (k == 1) { /* a cut JPEG that somebody closed properly */
            file[n - 60] = (char)0xff;
            file[n - 59] = (char)0xd9;
            CHECK_FAILS(decode_bytes("closed.jpg", file, n - 58, 0), SODET_E_INVALID,
                        "closed.jpg: a damaged or unsupported JPEG: Corrupt JPEG data");
        }
        /* Flipped bytes: any answer but a crash. */
        for (uint64_t i = 0; i < 3000; i++) {
            uint64_t where = sd_mix64(i) % n;
            char keep = file[where];
            file[where] = (char)sd_mix64(i + 77);
            decode_bytes("bent.file", file, n, 1 << 20);
            file[where] = keep;
        }
        sd_free(file);
    }
}

/* What is read differently from Pillow on purpose: its result is "ok", ours a sentence. */
static const char *const refused_here[] = {
    /* stb_image knows no run lengths, no palettes upside down, and none behind 16 or 24 bits */
    "bmp/bmpsuite-pillow-good/pal4rle.bmp", "bmp/bmpsuite-pillow-good/pal8rle.bmp", "bmp/bmpsuite-pillow-good/pal8topdown.bmp",
    "bmp/bmpsuite-pillow-good/rgb16-565pal.bmp", "bmp/bmpsuite-pillow-good/rgb24pal.bmp",
    /* cut off; Pillow makes up the rest */
    "jpeg/jpeg-decoder-reftest/partial_progressive.jpg",
    /* Apple's own kind of PNG, which libpng refuses */
    "png/pngsuite-stb/iphone/iphone_basi0g01.png", "png/pngsuite-stb/iphone/iphone_basi0g02.png",
    "png/pngsuite-stb/iphone/iphone_basi3p02.png", "png/pngsuite-stb/iphone/iphone_bgwn6a08.png",
    "png/pngsuite-stb/iphone/iphone_bgyn6a16.png", "png/pngsuite-stb/iphone/iphone_tbyn3p08.png",
    "png/pngsuite-stb/iphone/iphone_z06n2c08.png", NULL};

static long peak_kilobytes(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0; /* a sanitizer keeps what was freed */
#endif
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* No file makes more memory be taken than the limit of pixels stands for, whatever it claims: picture, its turned copy, and the file. */
static void within_the_limit(void)
{
    enum { PIXELS = 1 << 22, OTHERS = 48 << 10 /* the file itself, libraries' own; kilobytes */ };
    const char *folder = check_shared("data/odd-images");
    sodet_lines *names = NULL;
    if (!folder) {
        check_skip("data/odd-images is not there");
        return;
    }
    char root[4096];
    snprintf(root, sizeof root, "%s", folder);
    CHECK_OK(sodet_lines_of_folder(root, NULL, &names, &err));
    const long before = peak_kilobytes();
    const sd_decode_options options = {.max_pixels = PIXELS};
    uint32_t limited = 0;
    for (uint64_t i = 0; i < sodet_lines_count(names); i++) {
        char path[5000];
        snprintf(path, sizeof path, "%s/%s", root, sodet_lines_at(names, i));
        if (sd_decode_file(path, &options, &bytes, &capacity, &picture, &turned, &err) != SODET_OK) {
            CHECK(strstr(err.text, sodet_lines_at(names, i)) != NULL);
            limited += strstr(err.text, "more than the limit of 4194304") != NULL;
        }
    }
    CHECK(sodet_lines_count(names) >= 400 && limited >= 3);
    CHECK(peak_kilobytes() - before < 2 * 3 * PIXELS / 1024 + OTHERS);
    printf("odd-images: %ld MB at most for pictures of %d million pixels, %u refused for more\n", (peak_kilobytes() - before) / 1024,
           PIXELS / 1000000, limited);
    sodet_lines_free(names);
}

/* Sizes and means of Pillow's decode, file by file. */
static void odd_images(void)
{
    const char *manifest = check_shared("data/odd-images/manifest.tsv");
    if (!manifest) {
        check_skip("data/odd-images is not there");
        return;
    }
    char *text = NULL;
    uint64_t n = 0;
    CHECK_OK(sd_file_read(manifest, 0, &text, &n, &err));
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(manifest, '/') - manifest), manifest);
    uint32_t read = 0, refused = 0, differ = 0;
    char *line = strchr(text, '\n') + 1;
    while (*line) {
        char *fields[12] = {0}, *end = strchr(line, '\n');
        if (end)
            *end = 0;
        char *p = line;
        for (uint32_t i = 0; i < 12 && p; i++) {
            fields[i] = p;
            p = strchr(p, '\t');
            if (p)
                *p++ = 0;
        }
        line = end ? end + 1 : line + strlen(line);
        char path[5000];
        snprintf(path, sizeof path, "%s/%s", folder, fields[0]);
        bool good = fields[10] && strncmp(fields[10], "ok", 2) == 0 && strncmp(fields[0], "broken/", 7) != 0;
        double start = sd_now();
        sodet_status status = decode(path, false);
        CHECK(sd_now() - start < 3);
        if (status != SODET_OK) {
            refused++;
            CHECK(strstr(err.text, fields[0]) != NULL);
            bool known = !good;
            for (uint32_t i = 0; refused_here[i]; i++)
                known = known || strcmp(refused_here[i], fields[0]) == 0;
            check_count();
            if (!known)
                check_fail(__FILE__, __LINE__, "refused, although Pillow reads it: %s", strstr(err.text, fields[0]));
            continue;
        }
        read++;
        if (!good) {
            if (strncmp(fields[10], "ok", 2) != 0)
                printf("read although Pillow did not: %s\n", fields[0]);
            continue;
        }
        double got[3], want[3] = {0};
        mean(got);
        CHECK_EQ(picture.width, atoi(fields[4 - 0]));
        CHECK_EQ(picture.height, atoi(fields[5 - 0]));
        if (sscanf(fields[11], "%lf,%lf,%lf", &want[0], &want[1], &want[2]) == 3 &&
            !(fabs(got[0] - want[0]) < 1.5 && fabs(got[1] - want[1]) < 1.5 && fabs(got[2] - want[2]) < 1.5)) {
            differ++;
            printf("differs: %s (%s): %.1f %.1f %.1f, Pillow has %s\n", fields[0], fields[6], got[0], got[1], got[2], fields[11]);
        }
    }
    printf("odd-images: %u read, %u refused, %u differ from Pillow by more than 1.5 levels\n", read, refused, differ);
    CHECK_EQ(differ, 0);
    CHECK(read >= 395);
    sd_free(text);
    /* Eight files of one photograph: upright they are the same, but for JPEG's losses. */
    double want[64] = {0};
    for (int o = 1; o <= 8; o++) {
        char path[5000];
        snprintf(path, sizeof path, "%s/exif-orientation/recurser/Landscape_%d.jpg", folder, o);
        CHECK_OK(decode(path, true));
        CHECK(picture.width == 1800 && picture.height == 1200);
        double got[64] = {0};
        for (uint32_t y = 0; y < picture.height; y += 3) {
            for (uint32_t x = 0; x < picture.width; x += 3)
                got[y * 8 / picture.height * 8 + x * 8 / picture.width] += at(x, y)[1] / (50.0 * 75);
        }
        for (int i = 0; i < 64; i++) {
            want[i] = o == 1 ? got[i] : want[i];
            CHECK_NEAR(got[i], want[i], 0, 8); /* turned otherwise they differ by up to 90 */
        }
    }
}

int main(void)
{
    within_the_limit(); /* first: a peak stays */
    o_12_orientation();
    o_14_channels();
    o_15_giants();
    refusals();
    odd_images();
    sd_pixels_free(&picture);
    sd_pixels_free(&turned);
    sd_free(bytes);
    return check_done(300);
}
