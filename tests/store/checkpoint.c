/* Checkpoints: what is written is read again; equal content is equal bytes; whatever is not a whole checkpoint is refused by a sentence. */
#include <unistd.h>

#include "core/store/checkpoint.h"
#include "golden.h"

static char folder[1000];

static const char *at(const char *name)
{
    static char path[4][1200];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n);
    if (f)
        fclose(f);
}

static char *read_file(const char *path, uint64_t *n)
{
    char *bytes = NULL;
    sodet_err err = SODET_ERR_INIT;
    CHECK_OK(sd_file_read(path, 0, &bytes, n, &err));
    return bytes;
}

static float weight[2 * 3 * 1 * 2];
static double moment[5] = {1e-300, -0.0, 3, 1.0 / 3, 1e300};
static int32_t counts[3] = {-1, 0, INT32_MAX};
static int64_t seen[1] = {INT64_MIN};
static uint8_t flags[7] = {0, 1, 2, 3, 254, 255, 9};

static const sd_tensor all[] = {
    {.name = "z/weight", .type = SD_F32, .rank = 4, .dims = {2, 3, 1, 2}, .data = weight},
    {.name = "flags", .type = SD_U8, .rank = 1, .dims = {7}, .data = flags},
    {.name = "seen", .type = SD_I64, .rank = 0, .data = seen},
    {.name = "a \"quoted\"/\xc3\xa9", .type = SD_F64, .rank = 1, .dims = {5}, .data = moment},
    {.name = "counts", .type = SD_I32, .rank = 2, .dims = {1, 3}, .data = counts},
    {.name = "empty", .type = SD_F32, .rank = 2, .dims = {0, 4}, .data = weight},
};
enum { N = sizeof all / sizeof *all };
static const sd_meta table[] = {{"kind", "test"}, {"ini", "[run]\nname = \"x\\y\"\t; \xe2\x82\xac\x01"}, {"", "empty key"}, {"zz", ""}};

static sodet_status fetch(void *context, uint64_t index, void *to, sodet_err *err)
{
    (void)context;
    (void)err;
    memcpy(to, all[index].data, sd_tensor_bytes(&all[index]));
    return SODET_OK;
}

static void round_trip(void)
{
    sodet_err err = SODET_ERR_INIT;
    gold_fill(weight, 12, "store.weight", 1);
    CHECK_OK(sd_checkpoint_write(at("a"), all, N, table, 4, NULL, NULL, &err));
    sd_checkpoint *c = NULL;
    CHECK_OK(sd_checkpoint_open(at("a"), 0, &c, &err));
    if (!c)
        return;
    CHECK_EQ(sd_checkpoint_count(c), N);
    CHECK_EQ(sd_checkpoint_meta_count(c), 6);
    for (int i = 0; i < 4; i++)
        CHECK_STR(sd_checkpoint_meta(c, table[i].key), table[i].value);
    CHECK_STR(sd_checkpoint_meta(c, "format"), "sodet/1");
    CHECK(!sd_checkpoint_meta(c, "absent"));
    CHECK(!sd_checkpoint_find(c, "absent"));
    for (int i = 0; i < N; i++) {
        char got[200] = {0};
        const sd_tensor *t = sd_checkpoint_find(c, all[i].name);
        CHECK(t && t->type == all[i].type && t->rank == all[i].rank && memcmp(t->dims, all[i].dims, sizeof t->dims) == 0);
        if (!t)
            continue;
        CHECK_OK(sd_checkpoint_read(c, t, got, &err));
        CHECK(memcmp(got, all[i].data, sd_tensor_bytes(t)) == 0);
    }
    CHECK_STR(sd_checkpoint_tensor(c, 0)->name, all[3].name); /* wider first, then by name */
    CHECK_STR(sd_checkpoint_tensor(c, 1)->name, "seen");
    CHECK_STR(sd_checkpoint_tensor(c, 2)->name, "counts");
    sd_checkpoint_close(c);

    /* The order in which the caller lists things, and whether they are fetched, leaves no trace. */
    sd_tensor other[N];
    sd_meta reversed[4];
    for (int i = 0; i < N; i++)
        other[i] = all[N - 1 - i];
    for (int i = 0; i < 4; i++)
        reversed[i] = table[3 - i];
    CHECK_OK(sd_checkpoint_write(at("b"), other, N, reversed, 4, NULL, NULL, &err));
    for (int i = 0; i < N; i++) {
        other[i] = all[i];
        other[i].data = NULL;
    }
    CHECK_OK(sd_checkpoint_write(at("c"), other, N, table, 4, fetch, NULL, &err));
    uint64_t n[3];
    char *bytes[3] = {read_file(at("a"), &n[0]), read_file(at("b"), &n[1]), read_file(at("c"), &n[2])};
    CHECK(n[0] == n[1] && memcmp(bytes[0], bytes[1], n[0]) == 0);
    CHECK(n[0] == n[2] && memcmp(bytes[0], bytes[2], n[0]) == 0);
    CHECK_EQ(sd_checkpoint_bytes(all, N, table, 4), n[0]);
    CHECK(access(at("a.tmp"), F_OK) != 0);
    for (int i = 0; i < 3; i++)
        sd_free(bytes[i]);
    CHECK_FAILS(sd_checkpoint_write(at("d"), (sd_tensor[]){all[0], all[0]}, 2, NULL, 0, NULL, NULL, &err), SODET_E_INTERNAL, "two tensors");
    CHECK_FAILS(sd_checkpoint_write(at("d"), all, 1, (sd_meta[]){{"k", "1"}, {"k", "2"}}, 2, NULL, NULL, &err), SODET_E_INTERNAL,
                "two entries");
}

/* A file whose format is no longer sodet's counts as another tool's where such are read, and carries no checksum then: nobody could tell.
 * As one of ours nothing is taken. */
static void harmless(sd_checkpoint *c, uint64_t bit)
{
    sodet_err err = SODET_ERR_INIT;
    const char *format = sd_checkpoint_meta(c, "format");
    bool same = !format || strncmp(format, "sodet/", 6) != 0;
    for (int i = 0; i < N && same; i++) {
        char got[200] = {0};
        const sd_tensor *t = sd_checkpoint_find(c, all[i].name);
        same = t && sd_checkpoint_read(c, t, got, &err) == SODET_OK && memcmp(got, all[i].data, sd_tensor_bytes(t)) == 0;
    }
    if (!same)
        check_fail(__FILE__, __LINE__, "bit %d of byte %d flipped: accepted", (int)(bit % 8), (int)(bit / 8));
}

/* Refused by a sentence that names the file and a remedy, or of no consequence. */
static void refused(const char *path, uint64_t bit)
{
    for (uint32_t how = SD_CHECKPOINT_OWN; how <= SD_CHECKPOINT_FOREIGN; how++) {
        sodet_err err = SODET_ERR_INIT;
        sd_checkpoint *c;
        check_count();
        if (sd_checkpoint_open(path, how, &c, &err) == SODET_OK)
            harmless(c, bit);
        else if (strncmp(err.text, path, strlen(path)) != 0 || (!strchr(err.text, ';') && !strstr(err.text, "by `sodet import`")))
            check_fail(__FILE__, __LINE__, "bit or cut %d: \"%s\" names no remedy", (int)bit, err.text);
        sd_checkpoint_close(c);
    }
}

/* Every cut and every flipped bit is seen, and none of it is read past its end; the message names the file and a remedy. */
static void damage(void)
{
    sodet_err err = SODET_ERR_INIT;
    uint64_t n;
    char *bytes = read_file(at("a"), &n);
    sd_checkpoint *c;
    unsigned accepted = 0;
    for (uint64_t cut = 0; cut < n; cut++) {
        write_file(at("cut"), bytes, cut);
        accepted += sd_checkpoint_open(at("cut"), 0, &c, &err) == SODET_OK;
        sd_checkpoint_close(c);
        CHECK(err.text[0] && strstr(err.text, "cut"));
        refused(at("cut"), cut);
    }
    CHECK_EQ(accepted, 0);
    for (uint64_t bit = 0; bit < n * 8; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << (bit % 8)));
        write_file(at("flip"), bytes, n);
        refused(at("flip"), bit);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << (bit % 8)));
    }
    char *longer = malloc(n + 8);
    CHECK(longer != NULL);
    if (longer) {
        memcpy(longer, bytes, n);
        memset(longer + n, 0, 8);
        write_file(at("long"), longer, n + 8);
        CHECK_FAILS(sd_checkpoint_open(at("long"), 0, &c, &err), SODET_E_INVALID, "8 bytes follow the last tensor");
    }
    free(longer);
    sd_free(bytes);
    write_file(at("cut"), "", 0);
    CHECK_FAILS(sd_checkpoint_open(at("cut"), 0, &c, &err), SODET_E_INVALID, "is empty");
}

static void put_safetensors(const char *path, const char *header, size_t data)
{
    char file[2000] = {0};
    uint64_t n = strlen(header);
    memcpy(file, &n, 8);
    memcpy(file + 8, header, n);
    write_file(path, file, 8 + n + data);
}

static void foreign(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_checkpoint *c;
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } files[] = {
        {"PK\x03\x04 and the rest of a zip archive", 30, "not what torch.save writes"},
        {"\x80\x02}q\x01(X and the rest of a pickle", 30, "a Python pickle"},
        {"{\"a\": 1, \"b\": 2, \"c\": 3}", 20, "a text file"},
        {"\x7f"
         "ELF and the rest of a program..",
         30, "an ELF file"},
        {"version https://git-lfs.github.com/spec/v1", 40, "Git LFS"},
        {"0123456789abcdef0123", 20, "neither a checkpoint nor"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file(at("f"), files[i].bytes, files[i].n);
        CHECK_FAILS(sd_checkpoint_open(at("f"), SD_CHECKPOINT_FOREIGN, &c, &err), SODET_E_INVALID, files[i].says);
    }
    CHECK_FAILS(sd_checkpoint_open(folder, 0, &c, &err), SODET_E_INVALID, "is a folder");
    CHECK_FAILS(sd_checkpoint_open(at("nothing"), 0, &c, &err), SODET_E_IO, "No such file");

    static const struct {
        const char *header;
        size_t data;
        const char *says; /* NULL: good */
    } headers[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, NULL},
        {"{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}   ", 4, NULL},
        {"{}", 0, NULL},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, "cut off"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9, "1 bytes follow"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "disagree"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, "begins at byte 4"},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, "has type F8_E4M3"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "negative"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "too many"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "needs dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2,
         "two tensors"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2,
         "\"b\" begins"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}} x", 1, "line 1"},
        {"{\"__metadata__\":{\"format\":\"sodet/2\"}}", 0, "format sodet/2"},
        {"{\"__metadata__\":{\"format\":\"sodet/1\"}}", 0, "no checksum"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        put_safetensors(at("h"), headers[i].header, headers[i].data);
        sodet_status s = sd_checkpoint_open(at("h"), SD_CHECKPOINT_FOREIGN, &c, &err);
        sd_checkpoint_close(c);
        CHECK((s == SODET_OK) == !headers[i].says);
        if (headers[i].says && !strstr(err.text, headers[i].says))
            check_fail(__FILE__, __LINE__, "header %d: \"%s\", expected \"%s\"", (int)i, err.text, headers[i].says);
    }
    put_safetensors(at("h"), headers[0].header, headers[0].data);
    CHECK_FAILS(sd_checkpoint_open(at("h"), 0, &c, &err), SODET_E_INVALID, "another tool");
}

static void strict(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_checkpoint *c = NULL;
    float w[12] = {0};
    int32_t k[3] = {0};
    CHECK_OK(sd_checkpoint_open(at("a"), 0, &c, &err));
    if (!c)
        return;
    sd_tensor want[] = {all[0], all[4]};
    want[0].data = w;
    want[1].data = k;
    CHECK_OK(sd_checkpoint_load(c, want, 2, NULL, NULL, NULL, &err));
    CHECK(memcmp(w, weight, sizeof w) == 0 && memcmp(k, counts, sizeof k) == 0);
    CHECK_FAILS(sd_checkpoint_load(c, want, 2, "", NULL, NULL, &err), SODET_E_INVALID, "has no place here, and 3 more");
    CHECK_OK(sd_checkpoint_load(c, want, 2, "z/", NULL, NULL, &err));
    memset(w, 0, sizeof w);
    want[1].type = SD_F32;
    CHECK_FAILS(sd_checkpoint_load(c, want, 2, NULL, NULL, NULL, &err), SODET_E_INVALID, "\"counts\" is i32 in it, f32 here");
    want[1] = all[4];
    want[1].dims[1] = 4;
    CHECK_FAILS(sd_checkpoint_load(c, want, 2, NULL, NULL, NULL, &err), SODET_E_INVALID, "\"counts\" is [1, 3] in it, [1, 4] here");
    want[1].name = "gone";
    CHECK_FAILS(sd_checkpoint_load(c, want, 2, NULL, NULL, NULL, &err), SODET_E_INVALID, "\"gone\" is not in it");
    CHECK(w[0] == 0 && w[11] == 0); /* nothing was written before all was known to fit */
    sd_checkpoint_close(c);
}

static void probe(void)
{
    sodet_err err = SODET_ERR_INIT;
    CHECK_OK(sd_checkpoint_probe(at("new/deep"), 1000, &err));
    CHECK_FAILS(sd_checkpoint_probe(at("new"), UINT64_MAX / 2, &err), SODET_E_IO, "are free");
    CHECK_FAILS(sd_checkpoint_probe("/proc/nowhere", 1, &err), SODET_E_IO, "/proc/nowhere");
}

int main(void)
{
    const char *scratch = check_scratch("store");
    snprintf(folder, sizeof folder, "%s", scratch ? scratch : "");
    round_trip();
    damage();
    foreign();
    strict();
    probe();
    return check_done(900);
}
