/* Makes the JPEG files beside it:  cc make.c -ljpeg -o /tmp/make && /tmp/make .
 *   cmyk.jpg, cmyk-adobe.jpg    8x8, C = 0, M = Y = 255, K = 0 (red); without and with Adobe's marker and inverted values
 *   ycck-adobe.jpg              the same as YCCK
 *   grey.jpg                    8x8 of 128
 *   orientation-1.jpg ... -8    EXIF orientation tag; all show the same when turned upright: see upright() */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

/* What is to be seen: 40 x 24, the left upper quarter red, the right lower quarter blue, the rest white. */
enum { W = 40, H = 24 };
static void upright(int x, int y, unsigned char p[3])
{
    int red = x < W / 2 && y < H / 2, blue = x >= W / 2 && y >= H / 2;
    p[0] = blue ? 0 : 255;
    p[1] = red || blue ? 0 : 255;
    p[2] = red ? 0 : 255;
}

static void put(const char *folder, const char *name, int w, int h, int n, J_COLOR_SPACE in, J_COLOR_SPACE out, int adobe, int orientation,
                const unsigned char *pixels)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    FILE *f = fopen(path, "wb");
    if (!f)
        exit(1);
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, f);
    c.image_width = w;
    c.image_height = h;
    c.input_components = n;
    c.in_color_space = in;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, out);
    jpeg_set_quality(&c, 95, TRUE);
    c.write_Adobe_marker = adobe;
    for (int i = 0; i < n; i++)
        c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = 1;
    jpeg_start_compress(&c, TRUE);
    if (orientation) {
        unsigned char exif[] = {'E', 'x',  'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                                1,   0x12, 0,   3,   0, 0, 0,   1,   0, 0,  0, 0, 0, 0, 0, 0};
        exif[25] = (unsigned char)orientation;
        jpeg_write_marker(&c, JPEG_APP0 + 1, exif, sizeof exif);
    }
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = (JSAMPROW)pixels + (size_t)c.next_scanline * w * n;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    fclose(f);
}

int main(int argc, char **argv)
{
    const char *to = argc > 1 ? argv[1] : ".";
    unsigned char p[W * H * 4];
    for (int i = 0; i < 64; i++)
        memcpy(p + 4 * i, (unsigned char[]){0, 255, 255, 0}, 4);
    put(to, "cmyk.jpg", 8, 8, 4, JCS_CMYK, JCS_CMYK, 0, 0, p);
    for (int i = 0; i < 64; i++)
        memcpy(p + 4 * i, (unsigned char[]){255, 0, 0, 255}, 4);
    put(to, "cmyk-adobe.jpg", 8, 8, 4, JCS_CMYK, JCS_CMYK, 1, 0, p);
    put(to, "ycck-adobe.jpg", 8, 8, 4, JCS_CMYK, JCS_YCCK, 1, 0, p);
    memset(p, 128, 64);
    put(to, "grey.jpg", 8, 8, 1, JCS_GRAYSCALE, JCS_GRAYSCALE, 0, 0, p);
    for (int o = 1; o <= 8; o++) {
        /* Row 0 and column 0 of the stored picture, as the EXIF standard's table has it, for each orientation:
         * 1 top left, 2 top right, 3 bottom right, 4 bottom left, 5 left top, 6 right top, 7 right bottom, 8 left bottom. */
        int w = o < 5 ? W : H, h = o < 5 ? H : W;
        for (int r = 0; r < h; r++) {
            for (int c = 0; c < w; c++) {
                int x = o == 1 || o == 4 ? c : o == 2 || o == 3 ? W - 1 - c : o == 5 || o == 8 ? r : W - 1 - r;
                int y = o == 1 || o == 2 ? r : o == 3 || o == 4 ? H - 1 - r : o == 5 || o == 6 ? c : H - 1 - c;
                upright(x, y, p + (size_t)(r * w + c) * 3);
            }
        }
        char name[40];
        snprintf(name, sizeof name, "orientation-%d.jpg", o);
        put(to, name, w, h, 3, JCS_RGB, JCS_YCbCr, 0, o, p);
    }
    return 0;
}
