/* labels: valgrind */
/* Matching: hand-worked tables in every dialect, torchvision's matches (tests/golden/losses.json), and random cases against a table
 * that is written down whole. */
#include "sodet/anchors.h"

#include "core/base/base.h"
#include "golden.h"

static sodet_err err = SODET_ERR_INIT;

static const sodet_match_options caffe = {
    .struct_size = sizeof caffe, .positive = 0.5, .negative = 0.5, .floor = 1e-6, .claim = SODET_CLAIM_GREEDY};
static const sodet_match_options last = {.struct_size = sizeof last, .positive = 0.5, .negative = 0.5, .claim = SODET_CLAIM_BEST};
static const sodet_match_options plain = {.struct_size = sizeof plain, .positive = 0.5, .negative = 0.4, .claim = SODET_CLAIM_NONE};
static const sodet_match_options low = {.struct_size = sizeof low, .positive = 0.5, .negative = 0.4, .claim = SODET_CLAIM_LOW};

static void expect(const sodet_match_options *o, const sodet_anchors *a, const sodet_boxes *t, const int32_t *want, int line)
{
    int32_t got[64];
    sodet_status s = sodet_match(o, a, t, got, &err);
    check_count();
    if (s != SODET_OK)
        check_fail(__FILE__, line, "status %d: %s", (int)s, err.text);
    for (uint64_t k = 0; s == SODET_OK && k < a->n; k++) {
        check_count();
        if (got[k] != want[k])
            check_fail(__FILE__, line, "anchor %d: %d, expected %d", (int)k, (int)got[k], (int)want[k]);
    }
}
#define EXPECT(o, a, t, ...) expect(o, a, t, (const int32_t[]){__VA_ARGS__}, __LINE__)

/* Anchors 10 wide in a row of 10-pixel cells, so that IoUs are simple fractions: an offset of d gives (10 - d) / (10 + d). */
static void by_hand(void)
{
    float box[4][4] = {{5, 5, 10, 10}, {15, 5, 10, 10}, {25, 5, 10, 10}, {35, 5, 10, 10}};
    sodet_anchors a = {.struct_size = sizeof a, .n = 4, .box = box[0], .height = 10, .width = 40};

    /* IoU with anchor 0: (10 - 3) / 13 = 0.538; with anchor 1: 3 / 17 = 0.176 */
    sodet_box one[] = {{3, 0, 13, 10}};
    sodet_boxes t = {.struct_size = sizeof t, .n = 1, .box = one};
    EXPECT(&caffe, &a, &t, 0, -1, -1, -1);
    EXPECT(&last, &a, &t, 0, -1, -1, -1);
    EXPECT(&plain, &a, &t, 0, -1, -1, -1);

    /* half way between two anchors: 5 / 15 with both. Forced: the lower. Low quality: both. No claim: neither. */
    one[0] = (sodet_box){5, 0, 15, 10};
    EXPECT(&caffe, &a, &t, 0, -1, -1, -1);
    EXPECT(&last, &a, &t, 0, -1, -1, -1);
    EXPECT(&plain, &a, &t, -1, -1, -1, -1);
    EXPECT(&low, &a, &t, 0, 0, -1, -1);

    /* exactly at the thresholds: the box is half of anchor 0 (IoU 0.5) and none of the others */
    one[0] = (sodet_box){0, 0, 5, 10};
    sodet_match_options strict = caffe;
    strict.strict = 1;
    strict.claim = SODET_CLAIM_NONE;
    EXPECT(&plain, &a, &t, 0, -1, -1, -1);
    strict.negative = 0.4;
    EXPECT(&strict, &a, &t, -2, -1, -1, -1);
    strict.negative = 0.5; /* one bound: what is not positive is background */
    EXPECT(&strict, &a, &t, -1, -1, -1, -1);

    /* the ignored band: 7 / 13 = 0.538 positive, 0.4 <= 4.2 / 10 < 0.5 ignored */
    one[0] = (sodet_box){20, 0, 24.2f, 10};
    EXPECT(&plain, &a, &t, -1, -1, -2, -1);
    EXPECT(&low, &a, &t, -1, -1, 0, -1);
    sodet_match_options half = low; /* Detectron: a claim below `negative` falls back to background */
    half.floor = 0.4;
    EXPECT(&half, &a, &t, -1, -1, 0, -1);
    one[0] = (sodet_box){20, 0, 23.9f, 10};
    EXPECT(&half, &a, &t, -1, -1, -1, -1);
    EXPECT(&low, &a, &t, -1, -1, 0, -1);

    /* nothing overlaps: no anchor is forced */
    one[0] = (sodet_box){100, 100, 110, 110};
    EXPECT(&caffe, &a, &t, -1, -1, -1, -1);
    EXPECT(&last, &a, &t, -1, -1, -1, -1);
    EXPECT(&low, &a, &t, -1, -1, -1, -1);

    /* no boxes */
    t.n = 0;
    EXPECT(&caffe, &a, &t, -1, -1, -1, -1);
    sodet_match_options empty = plain;
    empty.ignore_empty = 1;
    EXPECT(&empty, &a, &t, -2, -2, -2, -2);

    /* two equal boxes: greedy gives the second one the next best anchor, the loop of ssd.pytorch gives both the same */
    sodet_box same[] = {{1, 0, 11, 10}, {1, 0, 11, 10}};
    t = (sodet_boxes){.struct_size = sizeof t, .n = 2, .box = same};
    EXPECT(&caffe, &a, &t, 0, 1, -1, -1);
    EXPECT(&last, &a, &t, 1, -1, -1, -1);
    EXPECT(&low, &a, &t, 0, -1, -1, -1);

    /* every IoU is 1 / 3; the first wants anchor 0, the second 0 or 1, the third 1: the lower anchor is given away first, so the second
     * box is the lower of those that then want anchor 1 */
    sodet_box three[] = {{0, 5, 10, 15}, {5, 0, 15, 10}, {10, 5, 20, 15}};
    t = (sodet_boxes){.struct_size = sizeof t, .n = 3, .box = three};
    EXPECT(&caffe, &a, &t, 0, 1, -1, -1);

    /* flags: difficult and crowd boxes used, dropped, or their surroundings ignored */
    sodet_box two[] = {{0, 0, 10, 10}, {20, 0, 40, 10}};
    uint32_t flags[] = {0, SODET_BOX_CROWD};
    t = (sodet_boxes){.struct_size = sizeof t, .n = 2, .box = two, .flags = flags};
    sodet_match_options o = plain;
    EXPECT(&o, &a, &t, 0, -1, 1, 1);
    o.crowd = SODET_TRUTH_DROP;
    EXPECT(&o, &a, &t, 0, -1, -1, -1);
    o.crowd = SODET_TRUTH_IGNORE;
    EXPECT(&o, &a, &t, 0, -1, -2, -2);
    flags[1] = SODET_BOX_DIFFICULT;
    EXPECT(&o, &a, &t, 0, -1, 1, 1);
    o.difficult = SODET_TRUTH_DROP;
    EXPECT(&o, &a, &t, 0, -1, -1, -1);

    /* the border: zgcr drops what is not strictly inside, fizyr what has its centre outside */
    o = plain;
    a.width = 35;
    o.border = SODET_BORDER_INSIDE;
    EXPECT(&o, &a, &t, -2, -2, -2, -2); /* all touch the upper edge */
    o.border = SODET_BORDER_CENTRE;
    EXPECT(&o, &a, &t, 0, -1, 1, -2);

    sodet_box bad[] = {{5, 0, 5, 10}};
    int32_t index[4];
    t = (sodet_boxes){.struct_size = sizeof t, .n = 1, .box = bad};
    CHECK_FAILS(sodet_match(&plain, &a, &t, index, &err), SODET_E_INVALID, "x1 < x2");
    bad[0] = (sodet_box){0, 0, NAN, 10};
    CHECK_FAILS(sodet_match(&plain, &a, &t, index, &err), SODET_E_INVALID, "x1 < x2");
    o.negative = 0.6;
    CHECK_FAILS(sodet_match(&o, &a, &t, index, &err), SODET_E_INVALID, "negative <= positive");
}

/* Field case O-18. A table of IoUs cannot be made of boxes exactly, so boxes are searched for whose table orders the same way:
 *     .61 .48 .05 .20 / .45 .30 .01 .40 / .52 .90 .25 .10   rows: objects, columns: priors
 * What decides is the order 2-1 > 0-0 > 1-0 > 1-3, all of objects 0 and 2 wanting what is listed. */
static void o_18_two_objects_one_prior(void)
{
    float box[4][4] = {{10, 10, 20, 20}, {22, 10, 20, 20}, {48, 10, 20, 20}, {10, 24, 20, 20}};
    sodet_anchors a = {.struct_size = sizeof a, .n = 4, .box = box[0], .height = 60, .width = 60};
    /* object 0: IoU .6 with prior 0; object 1: best prior 0 as well (below .5), next prior 3; object 2: prior 1 */
    sodet_box objects[] = {{0, 0, 24, 21}, {0, 5, 20, 33}, {13, 0, 32, 20}};
    sodet_boxes t = {.struct_size = sizeof t, .n = 3, .box = objects};
    float iou[3][4];
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            sodet_box p = {box[k][0] - 10, box[k][1] - 10, box[k][0] + 10, box[k][1] + 10};
            iou[i][k] = sodet_box_iou(&objects[i], &p);
        }
    }
    CHECK(iou[2][1] > iou[0][0] && iou[0][0] > iou[1][3]);
    int32_t index[4];
    CHECK_OK(sodet_match(&caffe, &a, &t, index, &err));
    CHECK_EQ(index[1], 2);
    CHECK_EQ(index[0], 0);
    CHECK_EQ(index[3], 1);
    CHECK_EQ(index[2], -1);
    /* the conflict itself: objects 0 and 1 both want prior 0, and only claims count */
    objects[1] = (sodet_box){0, 0, 20, 30}; /* prior 0: 2/3, prior 3: 16 / 34 */
    objects[0] = (sodet_box){0, 0, 20, 24}; /* prior 0: 20 / 24 */
    sodet_match_options high = caffe;
    high.positive = high.negative = 0.9;
    CHECK_OK(sodet_match(&high, &a, &t, index, &err));
    CHECK_EQ(index[0], 0);
    CHECK_EQ(index[3], 1); /* object 1 gets its second choice */
    sodet_match_options faulty = high;
    faulty.claim = SODET_CLAIM_BEST;
    CHECK_OK(sodet_match(&faulty, &a, &t, index, &err));
    CHECK_EQ(index[0], 1); /* what ssd.pytorch does: object 0 is left without a prior */
    CHECK_EQ(index[3], -1);
}

/* ---- torchvision ---- */
static void ssd300(sodet_anchors *a)
{
    static const double sizes[] = {0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05}, steps[] = {8, 16, 32, 64, 100, 300}, ratios[] = {2, 3};
    static const uint32_t counts[] = {4, 6, 6, 6, 4, 4};
    static const sodet_shape2d levels[] = {{38, 38, 8}, {19, 19, 16}, {10, 10, 32}, {5, 5, 64}, {3, 3, 107}, {1, 1, 0}};
    const sodet_ssd_boxes b = {.struct_size = sizeof b,
                               .sizes = {7, sizes},
                               .ratios = {2, ratios},
                               .counts = {6, counts},
                               .steps = {6, steps},
                               .offset = 0.5,
                               .unit = SODET_SIZE_FRACTION,
                               .clip = SODET_CLIP_SIZE};
    CHECK_OK(sodet_ssd_boxes_make(&b, levels, 6, (sodet_shape2d){300, 300, 0}, a, &err));
}

static void retina320(sodet_anchors *a, uint32_t height, uint32_t width)
{
    static const double ratios[] = {0.5, 1, 2};
    sodet_shape2d levels[5];
    for (uint32_t l = 0; l < 5; l++)
        levels[l] = (sodet_shape2d){(height + (8u << l) - 1) / (8u << l), (width + (8u << l) - 1) / (8u << l), 8u << l};
    const sodet_retina_boxes b = {.struct_size = sizeof b,
                                  .ratios = {3, ratios},
                                  .octaves = 3,
                                  .base = 4,
                                  .round = SODET_ROUND_CORNERS,
                                  .centre = SODET_CENTRE_CORNER,
                                  .divide = 1};
    CHECK_OK(sodet_retina_boxes_make(&b, levels, 5, (sodet_shape2d){height, width, 0}, a, &err));
}

static void one_image(gold_tally *t, const char *what, const sodet_match_options *o, const sodet_anchors *a, const gold *boxes,
                      const gold *match)
{
    sodet_box truth[16];
    sodet_boxes b = {.struct_size = sizeof b, .n = (uint32_t)gold_size(boxes), .box = truth};
    for (uint32_t i = 0; i < b.n; i++)
        truth[i] = (sodet_box){(float)gold_number(gold_at(gold_at(boxes, i), 0)), (float)gold_number(gold_at(gold_at(boxes, i), 1)),
                               (float)gold_number(gold_at(gold_at(boxes, i), 2)), (float)gold_number(gold_at(gold_at(boxes, i), 3))};
    int32_t *index = malloc(a->n * sizeof *index), *want = malloc(a->n * sizeof *want);
    CHECK_OK(sodet_match(o, a, &b, index, &err));
    for (uint64_t k = 0; k < a->n; k++)
        want[k] = -1;
    const gold *fg = gold_get(match, "fg");
    for (uint64_t i = 0; i < gold_size(fg); i++)
        want[(uint64_t)gold_number(gold_at(gold_at(fg, i), 0))] = (int32_t)gold_number(gold_at(gold_at(fg, i), 1));
    uint64_t wrong = 0, between = 0;
    double sum = 0;
    for (uint64_t k = 0; k < a->n; k++) {
        wrong += (index[k] >= 0 || want[k] >= 0) && index[k] != want[k];
        between += index[k] == SODET_INDEX_IGNORE;
        sum += index[k] == SODET_INDEX_IGNORE ? (double)k : 0;
    }
    char name[96];
    snprintf(name, sizeof name, "%s: positives (%d differ)", what, (int)wrong);
    gold_count(t, name, wrong == 0);
    snprintf(name, sizeof name, "%s: ignored (%d, %g)", what, (int)between, sum);
    const gold *indices = gold_try(match, "between_sum_of_indices");
    gold_count(t, name, (double)between == gold_number(gold_get(match, "n_between")) && sum == (indices ? gold_number(indices) : 0));
    free(index);
    free(want);
}

static void against_torchvision(void)
{
    const gold *root = gold_open("losses.json");
    gold_tally t = GOLD_TALLY("match");
    sodet_anchors ssd = {.struct_size = sizeof ssd}, retina = {.struct_size = sizeof retina};
    ssd300(&ssd);
    retina320(&retina, 320, 320);
    /* T has ties: torchvision's own float and double runs differ on ssd/T, where only its picture without ties is compared */
    static const char *const sets[] = {"A", "B", "T"};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t kind = 0; kind < 2; kind++) {
            char key[32], what[64];
            snprintf(key, sizeof key, "%s/%s", kind ? "retinanet" : "ssd", sets[i]);
            for (uint64_t image = 0; image < 2; image++) {
                if (kind == 0 && i == 2)
                    continue;
                snprintf(what, sizeof what, "%s image %d", key, (int)image);
                const gold *boxes = gold_get(gold_at(gold_path(root, "sets", sets[i], NULL), image), "boxes");
                one_image(&t, what, kind ? &low : &last, kind ? &retina : &ssd, boxes, gold_at(gold_path(root, key, "match", NULL), image));
            }
        }
    }
    gold_done(&t);
    free(ssd.box);
    free(retina.box);
    gold_close(root);
}

/* ---- the whole table ---- */
static void written_out(const sodet_match_options *o, const sodet_anchors *a, const sodet_boxes *t, int32_t *index)
{
    float *table = malloc((size_t)a->n * (t->n + 1) * sizeof *table);
    float row_max[64] = {0};
    for (uint64_t k = 0; k < a->n; k++) {
        const float *b = a->box + 4 * k;
        sodet_box p = {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
        float best = 0;
        int32_t who = -1;
        for (uint32_t i = 0; i < t->n; i++) {
            float v = sodet_box_iou(&t->box[i], &p);
            table[i * a->n + k] = v;
            row_max[i] = v > row_max[i] ? v : row_max[i];
            if (v > best) {
                best = v;
                who = (int32_t)i;
            }
        }
        index[k] = best >= (float)o->positive ? who : best >= (float)o->negative ? -2 : -1;
    }
    if (o->claim == SODET_CLAIM_GREEDY) {
        for (uint32_t turn = 0; turn < t->n; turn++) {
            float best = (float)o->floor;
            int64_t where = -1, who = -1;
            for (uint64_t k = 0; k < a->n; k++) {
                for (uint32_t i = 0; i < t->n; i++) {
                    if (table[i * a->n + k] > best) {
                        best = table[i * a->n + k];
                        where = (int64_t)k;
                        who = i;
                    }
                }
            }
            if (where < 0)
                break;
            index[where] = (int32_t)who;
            for (uint64_t k = 0; k < a->n; k++)
                table[(uint64_t)who * a->n + k] = 0;
            for (uint32_t i = 0; i < t->n; i++)
                table[i * a->n + (uint64_t)where] = 0;
        }
    } else if (o->claim != SODET_CLAIM_NONE) {
        for (uint32_t i = 0; i < t->n; i++) {
            for (uint64_t k = 0; k < a->n && row_max[i] > (float)o->floor; k++) {
                if (table[i * a->n + k] != row_max[i])
                    continue;
                int32_t own = 0;
                for (uint32_t j = 1; j < t->n; j++)
                    own = table[j * a->n + k] > table[(uint64_t)own * a->n + k] ? (int32_t)j : own;
                index[k] = o->claim == SODET_CLAIM_LOW ? own : (int32_t)i;
                if (o->claim == SODET_CLAIM_BEST)
                    break;
            }
        }
    }
    free(table);
}

static void at_random(void)
{
    const uint64_t seed = 20240611;
    printf("seed %llu\n", (unsigned long long)seed);
    const sodet_match_options *all[] = {&caffe, &last, &plain, &low};
    for (uint64_t round = 0; round < 120; round++) {
        sodet_stream r = sd_stream(seed, 0, round, 0);
        const bool few = round % 2; /* few different boxes: almost every choice is a tie */
        const uint32_t places = few ? 4 : 60, sizes = few ? 2 : 10;
        uint32_t n = 1 + sodet_stream_below(&r, few ? 40 : 1500), boxes = sodet_stream_below(&r, few ? 20 : 40);
        float *box = malloc(n * 4 * sizeof *box);
        int32_t *got = malloc(n * sizeof *got), *want = malloc(n * sizeof *want);
        for (uint32_t k = 0; k < n; k++) { /* whole numbers, so that ties are many */
            box[4 * k] = (float)sodet_stream_below(&r, places);
            box[4 * k + 1] = (float)sodet_stream_below(&r, places);
            box[4 * k + 2] = (float)(2 + 2 * sodet_stream_below(&r, sizes));
            box[4 * k + 3] = (float)(2 + 2 * sodet_stream_below(&r, sizes));
        }
        sodet_box truth[40];
        for (uint32_t i = 0; i < boxes; i++) {
            float x = (float)sodet_stream_below(&r, places), y = (float)sodet_stream_below(&r, places);
            truth[i] =
                (sodet_box){x, y, x + 1 + (float)sodet_stream_below(&r, 2 * sizes), y + 1 + (float)sodet_stream_below(&r, 2 * sizes)};
        }
        sodet_anchors a = {.struct_size = sizeof a, .n = n, .box = box, .height = 60, .width = 60};
        sodet_boxes t = {.struct_size = sizeof t, .n = boxes, .box = truth};
        for (uint32_t d = 0; d < 4; d++) {
            CHECK_OK(sodet_match(all[d], &a, &t, got, &err));
            written_out(all[d], &a, &t, want);
            uint32_t wrong = 0;
            for (uint32_t k = 0; k < n; k++)
                wrong += got[k] != want[k];
            check_count();
            if (wrong)
                check_fail(__FILE__, __LINE__, "round %d, dialect %u: %u of %u anchors differ", (int)round, d, wrong, n);
        }
        free(box);
        free(got);
        free(want);
    }
}

static void time_of(const char *what, const sodet_match_options *o, const sodet_anchors *a, float wide, float high)
{
    sodet_stream r = sd_stream(7, 0, 0, 0);
    sodet_box truth[30];
    for (uint32_t i = 0; i < 30; i++) {
        float x = (float)sodet_stream_uniform(&r, 0, 0.8) * wide, y = (float)sodet_stream_uniform(&r, 0, 0.8) * high;
        truth[i] = (sodet_box){x, y, x + (0.03f + (float)sodet_stream_uniform(&r, 0, 0.17)) * wide,
                               y + (0.03f + (float)sodet_stream_uniform(&r, 0, 0.17)) * high};
    }
    sodet_boxes t = {.struct_size = sizeof t, .n = 30, .box = truth};
    int32_t *index = malloc(a->n * sizeof *index);
    double best = 1e9;
    for (uint32_t turn = 0; turn < 20; turn++) {
        double start = sd_now();
        CHECK_OK(sodet_match(o, a, &t, index, &err));
        best = fmin(best, sd_now() - start);
    }
    printf("%s: %.3f ms for %d anchors and 30 boxes\n", what, best * 1e3, (int)a->n);
    free(index);
}

int main(void)
{
    by_hand();
    o_18_two_objects_one_prior();
    against_torchvision();
    at_random();
    sodet_anchors a = {.struct_size = sizeof a};
    ssd300(&a);
    time_of("SSD300, greedy", &caffe, &a, 300, 300);
    retina320(&a, 800, 1344);
    time_of("RetinaNet 800x1344, low quality", &low, &a, 1344, 800);
    time_of("RetinaNet 800x1344, thresholds alone", &plain, &a, 1344, 800);
    free(a.box);
    return check_done(600);
}
