/* labels: valgrind */
/* Anchors of every dialect against torchvision's (tests/golden/anchors.json) and the sums and counts of the systems' own rules. */
#include "sodet/anchors.h"

#include "golden.h"

static const double tv_sizes[] = {0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05};
static const double steps300[] = {8, 16, 32, 64, 100, 300}, ratios23[] = {2, 3};
static const uint32_t counts300[] = {4, 6, 6, 6, 4, 4};
static const sodet_shape2d levels300[] = {{38, 38, 8}, {19, 19, 16}, {10, 10, 32}, {5, 5, 64}, {3, 3, 107}, {1, 1, 0}};
static const sodet_shape2d image300 = {300, 300, 0};
static sodet_err err = SODET_ERR_INIT;

static float *corners(const sodet_anchors *a)
{
    float *out = malloc(a->n * 4 * sizeof *out);
    for (uint64_t k = 0; out && k < a->n; k++) {
        const float *b = a->box + 4 * k;
        out[4 * k] = b[0] - b[2] / 2;
        out[4 * k + 1] = b[1] - b[3] / 2;
        out[4 * k + 2] = b[0] + b[2] / 2;
        out[4 * k + 3] = b[1] + b[3] / 2;
    }
    return out;
}

static void compare(gold_tally *t, const char *key, const gold *record, const sodet_anchors *a)
{
    float *got = corners(a);
    gold_compare(t, key, record, got, a->n * 4, 1e-6);
    double first = 0;
    for (uint64_t i = 0; i < 8; i++) { /* samples alone could miss a level */
        double *want = gold_numbers(gold_at(gold_get(record, "first8"), i), NULL);
        for (uint32_t c = 0; want && c < 4; c++)
            first = fmax(first, fabs((double)got[4 * i + c] - want[c]));
        free(want);
    }
    CHECK_NEAR(first, 0, 0, 1e-4);
    double *column = gold_numbers(gold_get(record, "column_sums"), NULL);
    for (uint32_t c = 0; column && c < 4; c++) {
        double sum = 0;
        for (uint64_t k = 0; k < a->n; k++)
            sum += (double)got[4 * k + c];
        CHECK_NEAR(sum, column[c], 1e-7, 0.5);
    }
    free(column);
    free(got);
}

static void against_torchvision(void)
{
    const gold *root = gold_open("anchors.json");
    gold_tally t = GOLD_TALLY("anchors");
    sodet_anchors a = {.struct_size = sizeof a};

    sodet_ssd_boxes ssd = {.struct_size = sizeof ssd,
                           .sizes = {7, tv_sizes},
                           .ratios = {2, ratios23},
                           .counts = {6, counts300},
                           .steps = {6, steps300},
                           .offset = 0.5,
                           .unit = SODET_SIZE_FRACTION,
                           .clip = SODET_CLIP_SIZE};
    CHECK_OK(sodet_ssd_boxes_make(&ssd, levels300, 6, image300, &a, &err));
    CHECK_EQ(a.n, 8732);
    compare(&t, "ssd300", gold_get(root, "ssd300"), &a);

    static const double ratios[] = {0.5, 1, 2};
    sodet_retina_boxes tv = {.struct_size = sizeof tv,
                             .ratios = {3, ratios},
                             .octaves = 3,
                             .base = 4,
                             .order = SODET_ANCHOR_SIZE_FASTEST,
                             .round = SODET_ROUND_CORNERS,
                             .centre = SODET_CENTRE_CORNER,
                             .divide = 1};
    static const sodet_shape2d at320[] = {{40, 40, 8}, {20, 20, 16}, {10, 10, 32}, {5, 5, 64}, {3, 3, 128}};
    CHECK_OK(sodet_retina_boxes_make(&tv, at320, 5, (sodet_shape2d){320, 320, 0}, &a, &err));
    CHECK_EQ(a.n, 19206);
    compare(&t, "retinanet_320x320", gold_get(root, "retinanet_320x320"), &a);
    static const sodet_shape2d at800[] = {{100, 168, 8}, {50, 84, 16}, {25, 42, 32}, {13, 21, 64}, {7, 11, 128}};
    CHECK_OK(sodet_retina_boxes_make(&tv, at800, 5, (sodet_shape2d){800, 1344, 0}, &a, &err));
    compare(&t, "retinanet_800x1344", gold_get(root, "retinanet_800x1344"), &a);
    gold_done(&t);
    sodet_anchors_resize(&a, 0, &err);
    free(a.box);
    gold_close(root);
}

/* Sums of cx and w over all boxes, relative to the side: the table of golden values that the systems' own rules give. */
typedef struct sums {
    double cx, cy, w, h;
} sums;
static sums sum_of(const sodet_anchors *a, double side)
{
    sums s = {0};
    for (uint64_t k = 0; k < a->n; k++) {
        s.cx += (double)a->box[4 * k] / side;
        s.cy += (double)a->box[4 * k + 1] / side;
        s.w += (double)a->box[4 * k + 2] / side;
        s.h += (double)a->box[4 * k + 3] / side;
    }
    return s;
}

static void check_sums(const sodet_ssd_boxes *spec, const sodet_shape2d *levels, uint32_t n_levels, uint32_t side, uint64_t n, double cx,
                       double cx_clamped, double w, double w_clamped)
{
    sodet_ssd_boxes b = *spec;
    sodet_anchors a = {.struct_size = sizeof a};
    CHECK_OK(sodet_ssd_boxes_make(&b, levels, n_levels, (sodet_shape2d){side, side, 0}, &a, &err));
    CHECK_EQ(a.n, n);
    sums s = sum_of(&a, side);
    CHECK_NEAR(s.cx, cx, 0, 1e-4);
    CHECK_NEAR(s.cy, cx, 0, 1e-4);
    CHECK_NEAR(s.w, w, 0, 1e-4);
    CHECK_NEAR(s.h, w, 0, 1e-4);
    b.clip = SODET_CLIP_CENTRE;
    CHECK_OK(sodet_ssd_boxes_make(&b, levels, n_levels, (sodet_shape2d){side, side, 0}, &a, &err));
    s = sum_of(&a, side);
    CHECK_NEAR(s.cx, cx_clamped, 0, 1e-4);
    CHECK_NEAR(s.w, w_clamped, 0, 1e-4);
    b.clip = SODET_CLIP_SIZE; /* sizes as before, centres as without */
    CHECK_OK(sodet_ssd_boxes_make(&b, levels, n_levels, (sodet_shape2d){side, side, 0}, &a, &err));
    s = sum_of(&a, side);
    CHECK_NEAR(s.cx, cx, 0, 1e-4);
    CHECK_NEAR(s.w, w_clamped, 0, 1e-4);
    free(a.box);
}

static void ssd_sums(void)
{
    static const double voc300[] = {30, 60, 111, 162, 213, 264, 315}, coco300[] = {21, 45, 99, 153, 207, 261, 315};
    sodet_ssd_boxes b = {.struct_size = sizeof b,
                         .sizes = {7, voc300},
                         .ratios = {2, ratios23},
                         .counts = {6, counts300},
                         .steps = {6, steps300},
                         .offset = 0.5};
    check_sums(&b, levels300, 6, 300, 8732, 4443.9467, 4443.1467, 1510.4293, 1510.1480);
    b.sizes.v = coco300;
    check_sums(&b, levels300, 6, 300, 8732, 4443.9467, 4443.1467, 1172.1980, 1171.9677);

    static const double voc512[] = {35.84, 76.8, 153.6, 230.4, 307.2, 384.0, 460.8, 537.6};
    static const double coco512[] = {20.48, 51.2, 133.12, 215.04, 296.96, 378.88, 460.8, 542.72};
    static const double gluon512[] = {51.2, 76.8, 153.6, 230.4, 307.2, 384.0, 460.8, 537.6};
    static const uint32_t counts512[] = {4, 6, 6, 6, 6, 4, 4};
    static const sodet_shape2d levels512[] = {{64, 64, 8}, {32, 32, 16}, {16, 16, 32}, {8, 8, 64}, {4, 4, 128}, {2, 2, 256}, {1, 1, 512}};
    sodet_ssd_boxes c = {.struct_size = sizeof c, .sizes = {8, voc512}, .ratios = {2, ratios23}, .counts = {7, counts512}, .offset = 0.5};
    check_sums(&c, levels512, 7, 512, 24564, 12282, 12282, 3146.1417, 3144.9986);
    c.sizes.v = coco512;
    check_sums(&c, levels512, 7, 512, 24564, 12282, 12282, 2192.4711, 2191.9388);
    c.sizes.v = gluon512;
    check_sums(&c, levels512, 7, 512, 24564, 12282, 12282, 3611.6299, 3610.4868);

    static const double resnet_voc[] = {51.2, 102.4, 189.4, 276.4, 363.52, 450.6, 492};
    static const double resnet_coco[] = {51.2, 133.12, 215.04, 296.96, 378.88, 460.8, 542.72};
    static const sodet_shape2d levels_resnet[] = {{32, 32, 16}, {16, 16, 32}, {8, 8, 64}, {4, 4, 128}, {2, 2, 256}, {1, 1, 512}};
    sodet_ssd_boxes r = {
        .struct_size = sizeof r, .sizes = {7, resnet_voc}, .ratios = {2, ratios23}, .counts = {6, counts300}, .offset = 0.5};
    check_sums(&r, levels_resnet, 6, 512, 6132, 3066, 3066, 1041.8029, 1041.5419);
    r.sizes.v = resnet_coco;
    check_sums(&r, levels_resnet, 6, 512, 6132, 3066, 3066, 1185.5375, 1185.0052);

    static const uint32_t counts_paper[] = {4, 6, 6, 6, 6, 4};
    static const sodet_shape2d levels_paper[] = {{37, 37, 8}, {18, 18, 16}, {9, 9, 33}, {4, 4, 75}, {2, 2, 150}, {1, 1, 0}};
    sodet_ssd_boxes p = {.struct_size = sizeof p,
                         .sizes = {7, coco300},
                         .ratios = {2, ratios23},
                         .counts = {6, counts_paper},
                         .steps = {6, steps300},
                         .offset = 0.5};
    check_sums(&p, levels_paper, 6, 300, 8030, 3918.8533, 3918.8533, 1029.3737, 1028.3628);
}

static void ssd_details(void)
{
    static const double voc300[] = {30, 60, 111, 162, 213, 264, 315};
    sodet_ssd_boxes b = {.struct_size = sizeof b,
                         .sizes = {7, voc300},
                         .ratios = {2, ratios23},
                         .counts = {6, counts300},
                         .steps = {6, steps300},
                         .offset = 0.5};
    sodet_anchors a = {.struct_size = sizeof a};
    CHECK_OK(sodet_ssd_boxes_make(&b, levels300, 6, image300, &a, &err));
    static const float first[4][4] = {
        {4, 4, 30, 30}, {4, 4, 42.426407f, 42.426407f}, {4, 4, 42.426407f, 21.213203f}, {4, 4, 21.213203f, 42.426407f}};
    CHECK(check_worst(a.box, first[0], 16) < 1e-6);
    CHECK_NEAR(a.box[4 * 8731 + 2], 0.622254 * 300, 1e-5, 0); /* 264 / sqrt 2 x 264 sqrt 2: taller than the picture */
    CHECK_NEAR(a.box[4 * 8731 + 3], 1.244508 * 300, 1e-5, 0);
    CHECK_NEAR(a.box[4 * (5776 + 2166 + 9 * 6)], 304, 0, 0); /* last column of the 10x10 map: outside the picture */

    b.clip = SODET_CLIP_CORNERS;
    CHECK_OK(sodet_ssd_boxes_make(&b, levels300, 6, image300, &a, &err));
    CHECK_NEAR(a.box[0], 9.5, 0, 0); /* (0, 0, 19, 19) */
    CHECK_NEAR(a.box[2], 19, 0, 0);
    b.clip = SODET_CLIP_NONE;

    b.order = SODET_BOX_ORDER_SHAPE;
    CHECK_OK(sodet_ssd_boxes_make(&b, levels300, 6, image300, &a, &err));
    CHECK_NEAR(a.box[4], 12, 0, 0); /* the next cell, the same shape */
    CHECK_NEAR(a.box[6], 30, 0, 0);
    CHECK_NEAR(a.box[4 * 1444 + 2], 42.426407, 1e-6, 0);

    /* Caffe: 35.84 becomes 35, and the second square sqrt(35 * 76). */
    static const double odd[] = {35.84, 76.8};
    static const sodet_shape2d one[] = {{1, 1, 0}};
    static const uint32_t two = 2;
    sodet_ssd_boxes c = {.struct_size = sizeof c, .sizes = {2, odd}, .counts = {1, &two}, .offset = 0.5, .truncate = 1};
    CHECK_OK(sodet_ssd_boxes_make(&c, one, 1, image300, &a, &err));
    CHECK_NEAR(a.box[2], 35, 0, 0);
    CHECK_NEAR(a.box[6], sqrt(35 * 76), 1e-6, 0);
    CHECK_NEAR(a.box[0], 150, 0, 0); /* a global level's centre */

    static const uint32_t three = 3; /* an odd count has no second square */
    c.counts = (sodet_uint_list){1, &three};

    c.ratios = (sodet_double_list){1, ratios23};
    CHECK_OK(sodet_ssd_boxes_make(&c, one, 1, image300, &a, &err));
    CHECK_EQ(a.n, 3);
    CHECK_NEAR(a.box[6], 35 * sqrt(2), 1e-6, 0);
    free(a.box);
}

static void d2l(void)
{
    static const double sizes[] = {0.2, 0.37, 0.54, 0.71, 0.88}, second[] = {0.272, 0.447, 0.619, 0.79, 0.961}, ratio = 2;
    static const uint32_t four = 4;
    sodet_ssd_boxes b = {.struct_size = sizeof b,
                         .sizes = {5, sizes},
                         .second = {5, second},
                         .ratios = {1, &ratio},
                         .counts = {1, &four},
                         .offset = 0.5,
                         .unit = SODET_SIZE_FRACTION};
    static const sodet_shape2d square[] = {{32, 32, 8}, {16, 16, 16}, {8, 8, 32}, {4, 4, 64}, {1, 1, 0}};
    static const sodet_shape2d wide[] = {{16, 32, 8}, {8, 16, 16}, {4, 8, 32}, {2, 4, 64}, {1, 1, 0}};
    sodet_anchors a = {.struct_size = sizeof a};
    CHECK_OK(sodet_ssd_boxes_make(&b, square, 5, (sodet_shape2d){256, 256, 0}, &a, &err));
    CHECK_EQ(a.n, 5444);
    CHECK_NEAR(a.box[4 * 5440], 128, 0, 0);
    CHECK_NEAR(a.box[4 * 5441 + 2], 0.961 * 256, 1e-6, 0);
    /* field case O-20: an input that is not square */
    CHECK_OK(sodet_ssd_boxes_make(&b, wide, 5, (sodet_shape2d){128, 256, 0}, &a, &err));
    CHECK_EQ(a.n, 2724);
    CHECK_NEAR(a.box[2], a.box[3], 0, 0);
    CHECK_NEAR(a.box[4 * 2720], 128, 0, 0);
    CHECK_NEAR(a.box[4 * 2720 + 1], 64, 0, 0);
    static const double size = 64;
    static const uint32_t one = 1;
    sodet_ssd_boxes px = {.struct_size = sizeof px, .sizes = {1, &size}, .counts = {1, &one}, .offset = 0.5};
    static const sodet_shape2d only[] = {{8, 16, 32}};
    CHECK_OK(sodet_ssd_boxes_make(&px, only, 1, (sodet_shape2d){256, 512, 0}, &a, &err));
    CHECK_NEAR(a.box[2] / 512, 0.125, 0, 0);
    CHECK_NEAR(a.box[3] / 256, 0.25, 0, 0);
    free(a.box);
}

static void retina(void)
{
    static const double ratios[] = {0.5, 1, 2};
    static const uint32_t totals[][7] = {/* height, width, cells of P3..P7 in one side each are ceil(previous / 2) */
                                         {600, 600, 67995},    {640, 640, 76725},    {667, 667, 84762},   {800, 800, 120087},
                                         {1000, 1000, 188442}, {1024, 1024, 196416}, {800, 1333, 200700}, {800, 1344, 201600},
                                         {300, 300, 17451},    {256, 512, 24552}};
    sodet_anchors a = {.struct_size = sizeof a};
    sodet_retina_boxes z = {.struct_size = sizeof z,
                            .ratios = {3, ratios},
                            .octaves = 3,
                            .base = 4,
                            .ratio_means = SODET_RATIO_WIDTH_BY_HEIGHT,
                            .centre = SODET_CENTRE_HALF};
    for (uint32_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        sodet_shape2d level[5];
        for (uint32_t l = 0; l < 5; l++) {
            uint32_t s = 8u << l;
            level[l] = (sodet_shape2d){(totals[i][0] + s - 1) / s, (totals[i][1] + s - 1) / s, s};
        }
        CHECK_OK(sodet_retina_boxes_make(&z, level, 5, (sodet_shape2d){totals[i][0], totals[i][1], 0}, &a, &err));
        CHECK_EQ(a.n, totals[i][2]);
    }
    static const sodet_shape2d one[] = {{2, 2, 8}};
    const sodet_shape2d image = {16, 16, 0};
    /* zgcr: ratio by ratio, w / h = ratio, the scale fastest, centres (i + 1/2) 8 */
    CHECK_OK(sodet_retina_boxes_make(&z, one, 1, image, &a, &err));
    CHECK_NEAR(a.box[0], 4, 0, 0);
    CHECK_NEAR(a.box[2], 32 * sqrt(0.5), 1e-6, 0);
    CHECK_NEAR(a.box[3], 32 / sqrt(0.5), 1e-6, 0);
    CHECK_NEAR(a.box[4 + 2], 32 * cbrt(2) * sqrt(0.5), 1e-6, 0);
    CHECK_NEAR(a.box[4 * 9], 12, 0, 0);
    /* Detectron2: size by size, h / w = ratio fastest, centres i 8 */
    sodet_retina_boxes d2 = {.struct_size = sizeof d2,
                             .ratios = {3, ratios},
                             .octaves = 3,
                             .base = 4,
                             .order = SODET_ANCHOR_RATIO_FASTEST,
                             .centre = SODET_CENTRE_CORNER};
    CHECK_OK(sodet_retina_boxes_make(&d2, one, 1, image, &a, &err));
    CHECK_NEAR(a.box[0], 0, 0, 0);
    CHECK_NEAR(a.box[2], 32 / sqrt(0.5), 1e-6, 0);
    CHECK_NEAR(a.box[4 + 2], 32, 0, 0);
    CHECK_NEAR(a.box[4 * 3 + 2], 32 * cbrt(2) / sqrt(0.5), 1e-6, 0);
    /* fizyr: as zgcr with h / w */
    z.ratio_means = SODET_RATIO_HEIGHT_BY_WIDTH;
    CHECK_OK(sodet_retina_boxes_make(&z, one, 1, image, &a, &err));
    CHECK_NEAR(a.box[3], 32 * sqrt(0.5), 1e-6, 0);
    /* Detectron: w = round(sqrt(64 / 0.5)) = 11, h = round(11 * 0.5) = 6 (5.5 to even), times 4; centre 3.5 */
    d2.round = SODET_ROUND_CELL;
    d2.centre = SODET_CENTRE_PIXEL;
    CHECK_OK(sodet_retina_boxes_make(&d2, one, 1, image, &a, &err));
    CHECK_NEAR(a.box[0], 3.5, 0, 0);
    CHECK_NEAR(a.box[2], 44, 1e-6, 0);
    CHECK_NEAR(a.box[3], 24, 1e-6, 0);
    free(a.box);
}

static void refusals(void)
{
    static const double sizes[] = {30, 60, 111};
    sodet_anchors a = {.struct_size = sizeof a};
    sodet_ssd_boxes b = {.struct_size = sizeof b, .sizes = {3, sizes}, .ratios = {1, ratios23}, .offset = 0.5};
    CHECK_FAILS(sodet_ssd_boxes_make(&b, levels300, 6, image300, &a, &err), SODET_E_INVALID,
                "sizes has 3 values for 6 levels: give 6, or 7");
    b.sizes.n = 0;

    b.counts = (sodet_uint_list){6, counts300};
    CHECK_FAILS(sodet_ssd_boxes_make(&b, levels300, 6, image300, &a, &err), SODET_E_INVALID,
                "per_cell is 6 on level 1, which takes 2 ratios");
    b.counts.n = 0;
    CHECK_OK(sodet_ssd_boxes_make(&b, levels300, 6, image300, &a, &err));
    CHECK_EQ(a.n, 4 * (38 * 38 + 19 * 19 + 100 + 25 + 9 + 1));
    CHECK_NEAR(a.box[2], 30, 1e-6, 0); /* 10 %, then 20 % */
    CHECK_NEAR(a.box[4 * 4 * 1444 + 2], 60, 1e-6, 0);
    static const sodet_shape2d none[] = {{0, 4, 8}};
    CHECK_FAILS(sodet_ssd_boxes_make(&b, none, 1, image300, &a, &err), SODET_E_INVALID, "too small for this network");
    sodet_retina_boxes r = {.struct_size = sizeof r};
    CHECK_FAILS(sodet_retina_boxes_make(&r, levels300, 6, image300, &a, &err), SODET_E_INVALID, "octaves is 0");
    free(a.box);
}

int main(void)
{
    against_torchvision();
    ssd_sums();
    ssd_details();
    d2l();
    retina();
    refusals();
    return check_done(90);
}
