/* labels: valgrind */
/* Partial loads: name maps, patterns, transposition, 16-bit sources, raw values with an index. */
#include "core/store/checkpoint.h"
#include "check.h"

static char folder[1000];

static const char *at(const char *name)
{
    static char path[4][1200];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void put_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n);
    if (f)
        fclose(f);
}

static void globs(void)
{
    CHECK(sd_glob("*", "") && sd_glob("*", "a/b") && sd_glob("head/*/weight", "head/cls/0/weight") && sd_glob("a*b*c", "aXbbYc"));
    CHECK(!sd_glob("head/*", "head") && !sd_glob("", "a") && !sd_glob("a*b", "ab2") && sd_glob("a.b", "a.b") && !sd_glob("a.b", "a/b"));
}

static void maps(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_name_map *map;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"a -> b\nc d\n", "m:2: \"c d\""},
        {"a -> b c", "one name on each side"},
        {"a -> *", "more stars"},
        {"a -> b [turn]", "in brackets stand"},
        {"a -> b [transpose 0 0]", "in brackets stand"},
        {"a -> b [transpose 0 2]", "in brackets stand"},
        {"a -> b [reshape] c", "nothing may follow"},
        {"# nothing\n\n", "without a line"},
        {" -> b", "one name on each side"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_FAILS(sd_name_map_parse(bad[i].text, "m", &map, &err), SODET_E_INVALID, bad[i].says);
}

/* What the entry about `name` (ours, or the file's) says. */
static const sd_load_entry *entry(const sd_load_report *r, const char *name)
{
    for (uint64_t i = 0; i < r->n; i++)
        if ((r->entries[i].name && strcmp(r->entries[i].name, name) == 0) ||
            (!r->entries[i].name && strcmp(r->entries[i].source, name) == 0))
            return &r->entries[i];
    return NULL;
}

static void mapped(void)
{
    sodet_err err = SODET_ERR_INIT;
    double d[3] = {1.0 / 3, -2, 1e-300};
    float m[6] = {1, 2, 3, 4, 5, 6}, hwio[8] = {0, 1, 2, 3, 4, 5, 6, 7}, v[2] = {7, 8};
    uint16_t half[6] = {0x3c00, 0xc000, 0x0001, 0x7c00, 0x8000, 0x3555}, brain[2] = {0x3f80, 0xc040};
    int64_t count[1] = {3};
    sd_tensor theirs[] = {
        {.name = "net.fc.weight", .type = SD_F32, .rank = 2, .dims = {2, 3}, .data = m},
        {.name = "net.layer1.10.conv2.kernel", .type = SD_F32, .rank = 4, .dims = {1, 2, 2, 2}, .data = hwio},
        {.name = "net.layer1.10.bn2.num_batches_tracked", .type = SD_I64, .rank = 0, .data = count},
        {.name = "net.scale", .type = SD_F32, .rank = 4, .dims = {1, 2, 1, 1}, .data = v},
        {.name = "net.half", .type = SD_F16, .rank = 1, .dims = {6}, .data = half},
        {.name = "net.brain", .type = SD_BF16, .rank = 1, .dims = {2}, .data = brain},
        {.name = "net.extra", .type = SD_F32, .rank = 1, .dims = {2}, .data = v},
        {.name = "other.thing", .type = SD_F32, .rank = 1, .dims = {2}, .data = v},
        {.name = "net.double", .type = SD_F64, .rank = 1, .dims = {3}, .data = d},
    };
    CHECK_OK(sd_checkpoint_write(at("theirs"), theirs, 9, NULL, 0, NULL, NULL, &err));
    float fc[6], conv[8], scale[2], halves[6], brains[2], singles[3], fresh[1] = {42};
    sd_tensor ours[] = {
        {.name = "head/fc/weight", .type = SD_F32, .rank = 2, .dims = {3, 2}, .data = fc},
        {.name = "backbone/layer1/10/conv2/weight", .type = SD_F32, .rank = 4, .dims = {2, 2, 1, 2}, .data = conv},
        {.name = "scale", .type = SD_F32, .rank = 1, .dims = {2}, .data = scale},
        {.name = "half", .type = SD_F32, .rank = 1, .dims = {6}, .data = halves},
        {.name = "brain", .type = SD_F32, .rank = 1, .dims = {2}, .data = brains},
        {.name = "double", .type = SD_F32, .rank = 1, .dims = {3}, .data = singles},
        {.name = "fresh", .type = SD_F32, .rank = 1, .dims = {1}, .data = fresh},
    };
    sd_name_map *map = NULL;
    CHECK_OK(sd_name_map_parse("# theirs -> ours\r\n"
                               "fc.weight -> head/fc/weight [transpose]\n"
                               "layer*.*.conv*.kernel -> backbone/layer*/*/conv*/weight [transpose 3 2 0 1] # HWIO\n"
                               "*.num_batches_tracked -> -\n"
                               "scale -> scale [reshape]\n"
                               "extra -> nowhere\n"
                               "* -> *\n",
                               "map.txt", &map, &err));
    sd_checkpoint *c = NULL;
    CHECK_OK(sd_checkpoint_open(at("theirs"), 0, &c, &err));
    if (!map || !c)
        return;
    sd_load_report r;
    sd_load_rule rule = {.map = map, .prefix = "net."};
    CHECK_OK(sd_checkpoint_load_partial(c, ours, 7, &rule, NULL, NULL, &r, &err));
    CHECK(r.taken == 6 && r.skipped == 1 && r.n == 10);
    static const float turned[] = {1, 4, 2, 5, 3, 6}, oihw[] = {0, 4, 2, 6, 1, 5, 3, 7};
    CHECK(memcmp(fc, turned, sizeof fc) == 0 && memcmp(conv, oihw, sizeof conv) == 0);
    CHECK(scale[0] == 7 && scale[1] == 8 && fresh[0] == 42);
    CHECK(halves[0] == 1 && halves[1] == -2 && halves[2] == 0x1p-24f && isinf(halves[3]) && halves[4] == 0 && signbit(halves[4]));
    CHECK_NEAR(halves[5], 1.0 / 3, 1e-3, 0);
    CHECK(singles[0] == 1.0f / 3 && singles[1] == -2 && singles[2] == 0);
    CHECK(brains[0] == 1 && brains[1] == -3);
    CHECK_EQ(entry(&r, "fresh")->state, SD_SKIP_MISSING);
    CHECK_STR(entry(&r, "net.layer1.10.bn2.num_batches_tracked")->why, "left out by map.txt:4");
    CHECK_STR(entry(&r, "net.extra")->why, "nothing here has this name");
    CHECK_STR(entry(&r, "other.thing")->why, "does not begin with \"net.\"");
    sd_text t = {0};
    sd_load_report_print(&r, false, &t);
    CHECK(t.text && strstr(t.text, "taken    head/fc/weight <- net.fc.weight\n") && strstr(t.text, "skipped  fresh: not in the file\n"));
    sd_text_free(&t);
    sd_load_report_free(&r);

    rule.exact = true;
    CHECK_FAILS(sd_checkpoint_load_partial(c, ours, 7, &rule, NULL, NULL, &r, &err), SODET_E_INVALID, "\"fresh\": not in the file; 1 of 7");
    sd_load_report_free(&r);
    const char *no_fresh[] = {"fresh"};
    rule.exclude = no_fresh;
    rule.n_exclude = 1;
    CHECK_OK(sd_checkpoint_load_partial(c, ours, 7, &rule, NULL, NULL, &r, &err));
    CHECK_EQ(entry(&r, "fresh")->state, SD_SKIP_PATTERN);
    sd_load_report_free(&r);
    sd_name_map_free(map);

    CHECK_OK(sd_name_map_parse("* -> one", "map.txt", &map, &err));
    rule = (sd_load_rule){.map = map};
    CHECK_FAILS(sd_checkpoint_load_partial(c, ours, 1, &rule, NULL, NULL, &r, &err), SODET_E_INVALID, "would become \"one\"");
    sd_load_report_free(&r);
    sd_name_map_free(map);
    sd_checkpoint_close(c);
}

static void raw(void)
{
    sodet_err err = SODET_ERR_INIT;
    float values[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got[6];
    sd_checkpoint *c = NULL;
    put_file(at("v.f32"), values, sizeof values);
    const char good[] = "name\tshape\toffset_floats\tcount\r\na\t2,3\t0\t6\r\nb\t4\t6\t4\n";
    put_file(at("v.tsv"), good, sizeof good - 1);
    CHECK_OK(sd_checkpoint_open_raw(at("v.f32"), at("v.tsv"), &c, &err));
    if (c) {
        const sd_tensor *b = sd_checkpoint_find(c, "b");
        CHECK(b && b->rank == 1 && b->dims[0] == 4 && b->type == SD_F32);
        if (b)
            CHECK_OK(sd_checkpoint_read(c, b, got, &err));
        CHECK(got[0] == 6 && got[3] == 9);
    }
    sd_checkpoint_close(c);
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"a\t2,3\t0\t5\n", "shape [2, 3] and count 5"},
        {"a\t2,3\t6\t6\n", "ends at value 12"},
        {"a\t2,x\t0\t6\n", "not a shape"},
        {"a\t6\t0\n", "3 fields"},
        {"a\t6\t0\t6\t1\n", "is not `name"},
        {"a\t2\t0\t2\na\t2\t0\t2\n", "two tensors"},
        {"", "names no tensor"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_file(at("bad.tsv"), bad[i].text, strlen(bad[i].text));
        CHECK_FAILS(sd_checkpoint_open_raw(at("v.f32"), at("bad.tsv"), &c, &err), SODET_E_INVALID, bad[i].says);
    }
    put_file(at("odd.f32"), values, 7);
    CHECK_FAILS(sd_checkpoint_open_raw(at("odd.f32"), at("v.tsv"), &c, &err), SODET_E_INVALID, "not whole float32");

    const char *values_path = check_shared("data/weights/tinyssd-d2l/raw/net_50.f32"),
               *index = check_shared("data/weights/tinyssd-d2l/raw/net_50.tsv");
    if (!values_path || !index) {
        check_skip("the trained TinySSD weights are not there");
        return;
    }
    CHECK_OK(sd_checkpoint_open_raw(values_path, index, &c, &err));
    if (!c)
        return;
    uint64_t total = 0;
    for (uint64_t i = 0; i < sd_checkpoint_count(c); i++)
        total += sd_tensor_count(sd_checkpoint_tensor(c, i));
    CHECK_EQ(total * 4, 4049440);
    CHECK(sd_checkpoint_find(c, "blk_1.0.weight") != NULL);
    sd_checkpoint_close(c);
}

int main(void)
{
    const char *scratch = check_scratch("partial");
    snprintf(folder, sizeof folder, "%s", scratch ? scratch : "");
    globs();
    maps();
    mapped();
    raw();
    return check_done(50);
}
