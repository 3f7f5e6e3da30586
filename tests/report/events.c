/* The file for TensorBoard, read by a reader of its own: framing, checksums, steps, tags and values; and what a resumed run keeps of it. */
#include "core/report/events.h"

#include "check.h"
#include "core/report/report.h"

/* CRC-32C by division of polynomials, most significant bit first: another way than the writer's. */
static uint32_t crc_of(const unsigned char *p, uint64_t n)
{
    uint64_t rest = 0xffffffff;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t mirrored = 0;
        for (int k = 0; k < 8; k++)
            mirrored |= (uint32_t)(p[i] >> k & 1) << (7 - k);
        rest ^= (uint64_t)mirrored << 24;
        for (int k = 0; k < 8; k++)
            rest = (rest << 1 ^ (rest >> 31 & 1 ? 0x1edc6f41u : 0)) & 0xffffffff;
    }
    uint32_t out = 0;
    for (int k = 0; k < 32; k++)
        out |= (uint32_t)(rest >> k & 1) << (31 - k);
    return ~out;
}

static uint64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static int checksum_is_right(const unsigned char *p, uint64_t n, const unsigned char *stored)
{
    uint32_t crc = crc_of(p, n);
    return ((crc >> 15 | crc << 17) + 0xa282ead8u) == (uint32_t)little(stored, 4);
}

static uint64_t varint(const unsigned char **p)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        v |= (uint64_t)(**p & 0x7f) << shift;
        if (*(*p)++ < 0x80)
            break;
    }
    return v;
}

typedef struct scalar {
    uint64_t step;
    char tag[80];
    float value;
    double wall;
} scalar;
typedef struct events {
    scalar scalars[64];
    int n, records, versions;
} events;

static void read_value(const unsigned char *p, uint64_t n, scalar *out)
{
    const unsigned char *end = p + n;
    while (p < end) {
        uint64_t key = varint(&p);
        if (key == 10) {
            uint64_t k = varint(&p);
            snprintf(out->tag, sizeof out->tag, "%.*s", (int)k, (const char *)p);
            p += k;
        } else {
            CHECK_EQ(key, 21); /* field 2, four bytes */
            uint32_t bits = (uint32_t)little(p, 4);
            memcpy(&out->value, &bits, 4);
            p += 4;
        }
    }
    CHECK(p == end);
}

static void read_event(const unsigned char *p, uint64_t n, events *out)
{
    const unsigned char *end = p + n;
    scalar base = {0};
    while (p < end) {
        uint64_t key = varint(&p), k;
        if (key == 9) { /* field 1, eight bytes */
            uint64_t bits = little(p, 8);
            memcpy(&base.wall, &bits, 8);
            p += 8;
        } else if (key == 16) {
            base.step = varint(&p);
        } else if (key == 26) {
            k = varint(&p);
            CHECK(k == 13 && memcmp(p, "brain.Event:2", 13) == 0);
            CHECK_EQ(out->records, 0);
            out->versions++;
            p += k;
        } else {
            CHECK_EQ(key, 42); /* field 5: the summary, whose fields are values */
            k = varint(&p);
            for (const unsigned char *stop = p + k; p < stop;) {
                CHECK_EQ(varint(&p), 10);
                uint64_t size = varint(&p);
                if (out->n < 64) {
                    out->scalars[out->n] = base;
                    read_value(p, size, &out->scalars[out->n++]);
                }
                p += size;
            }
        }
    }
    CHECK(p == end);
    CHECK(base.wall > 1.6e9 && base.wall < 1e10);
}

static events read_file(const char *path)
{
    events e = {.n = 0};
    sodet_err err = SODET_ERR_INIT;
    char *bytes = NULL;
    uint64_t n = 0, at = 0;
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    const unsigned char *p = (const unsigned char *)bytes;
    while (bytes && at + 16 <= n) {
        uint64_t size = little(p + at, 8);
        if (size > n - at - 16 || !checksum_is_right(p + at, 8, p + at + 8) || !checksum_is_right(p + at + 12, size, p + at + 12 + size))
            break;
        read_event(p + at + 12, size, &e);
        e.records++;
        at += 16 + size;
    }
    CHECK_EQ(at, n); /* nothing that is no record */
    sd_free(bytes);
    return e;
}

static const scalar *find(const events *e, uint64_t step, const char *tag)
{
    for (int i = 0; i < e->n; i++)
        if (e->scalars[i].step == step && strcmp(e->scalars[i].tag, tag) == 0)
            return &e->scalars[i];
    check_fail(__FILE__, __LINE__, "no %s of step %llu", tag, (unsigned long long)step);
    static const scalar none = {.value = NAN};
    return &none;
}

static void test_crc(void)
{
    static const unsigned char zeros[32];
    CHECK_EQ(sd_crc32c(zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
    CHECK_EQ(sd_crc32c("123456789", 9), 0xe3069283);
    CHECK_EQ(crc_of((const unsigned char *)"123456789", 9), 0xe3069283);
    CHECK_EQ(sd_crc32c("", 0), 0);
}

static void test_file(const char *folder)
{
    char path[1200], longest[300];
    sodet_err err = SODET_ERR_INIT;
    sd_events *e = NULL;
    snprintf(path, sizeof path, "%s/x.tfevents", folder);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CHECK_OK(sd_events_open(path, 0, &e, &err));
    CHECK_OK(sd_events_add(e, 1, (const sd_scalar[]){{"loss", 0.5}, {"loss/box", -3}}, 2, &err));
    CHECK_OK(sd_events_add(e, 300, (const sd_scalar[]){{"loss", 1e-30}}, 1, &err));
    CHECK_OK(sd_events_add(e, 5000000000, (const sd_scalar[]){{longest, (double)NAN}}, 1, &err));
    sd_events_close(e);
    events got = read_file(path);
    CHECK_EQ(got.records, 4);
    CHECK_EQ(got.versions, 1);
    CHECK_EQ(got.n, 4);
    CHECK_NEAR(find(&got, 1, "loss")->value, 0.5, 0, 0);
    CHECK_NEAR(find(&got, 1, "loss/box")->value, -3, 0, 0);
    CHECK_NEAR(find(&got, 300, "loss")->value, 1e-30, 1e-7, 0);
    CHECK(isnan(got.scalars[3].value) && got.scalars[3].step == 5000000000);

    /* A run that was killed while it wrote, and goes on from step 300. */
    char *bytes = NULL;
    uint64_t n = 0;
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    CHECK_OK(sd_file_write(path, bytes, n - 5, &err));
    CHECK_OK(sd_events_open(path, 1000, &e, &err));
    CHECK_OK(sd_events_add(e, 301, (const sd_scalar[]){{"loss", 7}}, 1, &err));
    sd_events_close(e);
    got = read_file(path);
    CHECK_EQ(got.records, 4);
    CHECK_NEAR(find(&got, 301, "loss")->value, 7, 0, 0);
    CHECK_OK(sd_events_open(path, 300, &e, &err));
    sd_events_close(e);
    got = read_file(path);
    CHECK_EQ(got.records, 3);
    CHECK_EQ(got.versions, 1);
    CHECK_EQ(got.scalars[got.n - 1].step, 300);
    /* What is no such file, or damaged from the beginning, is begun anew. */
    bytes[3] ^= 1;
    CHECK_OK(sd_file_write(path, bytes, n, &err));
    CHECK_OK(sd_events_open(path, 1000, &e, &err));
    sd_events_close(e);
    got = read_file(path);
    CHECK_EQ(got.records, 1);
    sd_free(bytes);
    CHECK_FAILS(sd_events_open("/nonexistent/x", 0, &e, &err), SODET_E_IO, "/nonexistent");
}

/* As a training writes them. */
static void test_report(const char *folder)
{
    static const char *const terms[] = {"cls", "box"};
    static const double first[] = {2, 1}, second[] = {4, 2};
    char path[1200];
    sodet_err err = SODET_ERR_INIT;
    sd_report *r = NULL;
    const sd_report_config config = {.folder = folder, .log_every = 2, .quiet = true, .events = true, .n_terms = 2, .terms = terms};
    CHECK_OK(sd_report_open(&config, &r, &err));
    sd_report_step step = {.step = 1, .steps = 10, .lr = 0.125, .loss = 3, .norm = 5, .terms = first, .images = 4, .positives = 6};
    sd_report_train(r, &step);
    step = (sd_report_step){.step = 2, .steps = 10, .lr = 0.25, .loss = 6, .norm = 7, .terms = second, .images = 4, .positives = 8};
    sd_report_train(r, &step);
    sd_report_evaluation(r, 2, 1, "\"voc/mAP\": 0.75, \"voc/AP/a \\\"b\\\"\": 0.5, \"voc/AP/c\": null", "voc/mAP", 0.75, 0.75, 1);
    CHECK_OK(sd_report_status(r, &err));
    sd_report_close(r);
    snprintf(path, sizeof path, "%s/" SD_EVENTS_NAME, folder);
    events got = read_file(path);
    CHECK_EQ(got.records, 3);
    CHECK_EQ(got.n, 10);
    CHECK_NEAR(find(&got, 2, "lr")->value, 0.25, 0, 0);
    CHECK_NEAR(find(&got, 2, "loss")->value, 4.5, 0, 0);
    CHECK_NEAR(find(&got, 2, "loss/cls")->value, 3, 0, 0);
    CHECK_NEAR(find(&got, 2, "loss/box")->value, 1.5, 0, 0);
    CHECK_NEAR(find(&got, 2, "grad_norm")->value, 7, 0, 0);
    CHECK_NEAR(find(&got, 2, "positives")->value, 7, 0, 0);
    CHECK_NEAR(find(&got, 2, "voc/mAP")->value, 0.75, 0, 0);
    CHECK_NEAR(find(&got, 2, "voc/AP/a \"b\"")->value, 0.5, 0, 0);
}

int main(void)
{
    const char *folder = check_scratch("report_events");
    CHECK(folder != NULL);
    test_crc();
    test_file(folder);
    test_report(folder);
    CHECK(check_scratch_remove(folder));
    return check_done(100);
}
