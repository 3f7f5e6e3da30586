/* [run] precision on the CPU backend: what is refused and how, rounding, and precision = mixed, which goes by measured times. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig.h"

#include "kernels/kernels.h"

static void refusals(void)
{
    rig r;
    sodet_err err = SODET_ERR_INIT;
    CHECK_FAILS(rig_open_as(&r, "cpu", 1, "", SODET_PRECISION_FP16, &err), SODET_E_UNSUPPORTED, "precision = fp16");
    CHECK(strstr(err.text, "bf16 or mixed"));
    rig_close(&r);
    CHECK_FAILS(rig_open_as(&r, "ref", 1, "", SODET_PRECISION_BF16, &err), SODET_E_UNSUPPORTED, "write precision = fp32");
    rig_close(&r);
    err = (sodet_err)SODET_ERR_INIT;
    sodet_status s = rig_open_as(&r, "cpu", 1, "", SODET_PRECISION_BF16, &err);
    if (s != SODET_OK) { /* a processor without the instructions */
        CHECK_EQ(s, SODET_E_UNSUPPORTED);
        CHECK(strstr(err.text, "AVX512_BF16") && strstr(err.text, "precision = fp32"));
    }
    rig_close(&r);
}

static void rounding(void)
{
    static const struct {
        uint32_t bits, want;
    } cases[] = {{0x3f800000, 0x3f80},                       /* 1 */
                 {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, /* ties go to the even neighbour */
                 {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80}, {0xbf808001, 0xbf81}, {0x80000000, 0x8000}, {0x7f7fffff, 0x7f80},
                 {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x00000001, 0x0000}, {0x7f800001, 0x7fc0}, {0xffffffff, 0xffff}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float v;
        memcpy(&v, &cases[i].bits, sizeof v);
        CHECK_EQ(narrow_bits(v), cases[i].want);
    }
    for (uint32_t bits = 0; bits <= 0xffff; bits++) /* what is representable stays; a NaN stays one */
        if (isnan(narrow_value((uint16_t)bits)))
            CHECK(isnan(narrow_value(narrow_bits(narrow_value((uint16_t)bits)))));
        else if (narrow_bits(narrow_value((uint16_t)bits)) != bits)
            check_fail(__FILE__, __LINE__, "%04x does not stay", bits);
}

/* Two convolutions, the second of 1x1, and the gradient of the first one's weights. */
static sodet_graph *pair(void)
{
    sodet_graph *g = rig_graph(true);
    sodet_conv2d_attr three = {1, 1, 1, 1, 1, 1, 1, 1, 1, SODET_ACT_RELU, 0, 3, 3, 12, 12},
                      one = {1, 1, 1, 1, 1, 0, 0, 0, 0, SODET_ACT_NONE, 0, 1, 1, 12, 12};
    sodet_value x = rig_input(g, "x", 2, 24, 12, 12), dw;
    sodet_value y = sodet_apply(g, &sodet_op_conv2d, &three, (const sodet_value[]){x, rig_input(g, "w", 32, 24, 3, 3)}, 2);
    sodet_output(g, "z", sodet_apply(g, &sodet_op_conv2d, &one, (const sodet_value[]){y, rig_input(g, "v", 40, 32, 1, 1)}, 2));
    three.activation = 0;
    sodet_add_node(g, &sodet_op_conv2d, 2, &three, (const sodet_value[]){x, rig_input(g, "dy", 2, 32, 12, 12)}, 2, &dw, 1);
    sodet_output(g, "dw", dw);
    return g;
}

static void in_bf16(rig *r, sodet_graph *g, uint32_t mask)
{
    sodet_err err = SODET_ERR_INIT;
    rig_program p;
    uint32_t found = 0, at = 0;
    CHECK_OK(rig_make(r, g, &p, &err));
    CHECK_OK(rig_run(&p, &err));
    for (uint32_t i = 0; i < sodet_graph_node_count(g); i++)
        if (sodet_graph_node(g, i)->op == &sodet_op_conv2d) {
            const char *says = p.plan.describe(p.plan.handle, i);
            found |= (says && strstr(says, "bf16") ? 1u : 0) << at++;
        }
    CHECK_EQ(at, 3);
    CHECK_EQ(found, mask);
    rig_free(&p);
}

/* Replaces, in the file, the times of nodes whose key has `text`. */
static void set_times(const char *path, const char *text, double fp32, double bf16)
{
    char *bytes = NULL, *save = NULL;
    uint64_t n = 0;
    sodet_err err = SODET_ERR_INIT;
    sd_text out = {0};
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    uint32_t hits = 0;
    for (char *line = strtok_r(bytes, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *tab = strchr(line, '\t');
        if (tab && strstr(line, text)) {
            *tab = '\0';
            sd_text_printf(&out, "%s\t%g\t%g\n", line, fp32, bf16);
            hits++;
        } else {
            sd_text_printf(&out, "%s\n", line);
        }
    }
    CHECK(hits > 0);
    CHECK_OK(sd_file_write_atomic(path, out.text, out.length, &err));
    sd_free(bytes);
    sd_text_free(&out);
}

/* The table holds the times of one file: reading another makes it forget them. */
static void forget_times(const char *other, bool native)
{
    rig r;
    rig_program p;
    sodet_err err = SODET_ERR_INIT;
    char more[512];
    snprintf(more, sizeof more, "[backend.cpu]\nbf16 = %s\ntimes = %s\n", native ? "native" : "emulate", other);
    CHECK_OK(rig_open_as(&r, "cpu", 2, more, SODET_PRECISION_MIXED, &err));
    sodet_graph *g = rig_graph(true);
    sodet_output(g, "y", sodet_relu(g, rig_input(g, "x", 1, 8, 4, 4)));
    CHECK_OK(rig_make(&r, g, &p, &err));
    rig_free(&p);
    sd_graph_free(g);
    rig_close(&r);
}

/* Natively where the processor has the instructions; refusals() looks at the sentence of one that has not. */
static void mixed(const char *folder, bool native)
{
    rig r;
    sodet_err err = SODET_ERR_INIT;
    char path[300], more[512], other[320];
    snprintf(path, sizeof path, "%s/%s/times.tsv", folder, native ? "native" : "emulated");
    snprintf(other, sizeof other, "%s/other.tsv", folder);
    snprintf(more, sizeof more, "[backend.cpu]\nbf16 = %s\ntimes = %s\n", native ? "native" : "emulate", path);
    sodet_status s = rig_open_as(&r, "cpu", 2, more, SODET_PRECISION_MIXED, &err);
    if (native && s == SODET_E_UNSUPPORTED) {
        rig_close(&r);
        return;
    }
    CHECK_OK(s);
    sodet_graph *g = pair();
    rig ref;
    rig_open(&ref, "ref", 1);
    ref.coarse = true;
    rig_compare(&r, &ref, g, 1e-2, "mixed, as measured"); /* writes the file */
    CHECK(sd_path_exists(path));
    char *once = NULL, *again = NULL;
    uint64_t n_once = 0, n_again = 0;
    CHECK_OK(sd_file_read(path, 0, &once, &n_once, &err));
    rig_compare(&r, &ref, g, 1e-2, "mixed, as known");
    CHECK_OK(sd_file_read(path, 0, &again, &n_again, &err));
    CHECK(n_once == n_again && memcmp(once, again, n_once) == 0); /* nothing was measured again */
    sd_free(once);
    sd_free(again);
    /* The choice follows the times that are known. */
    static const struct {
        double three[2], one[2], gradient[2], conversion[2];
        uint32_t mask;
    } cases[] = {{{2, 1}, {2, 1}, {2, 1}, {1e-9, 1e-9}, 7},  {{1, 2}, {1, 2}, {1, 2}, {1e-9, 1e-9}, 0},
                 {{1, 2}, {2, 1}, {1, 2}, {1e-9, 1e-9}, 2},  {{2, 1}, {1, 2}, {1, 2}, {1e-9, 1e-9}, 1},
                 {{1, 2}, {1, 2}, {2, 1}, {1e-9, 1e-9}, 4},  {{2, 1}, {1, 2}, {2, 1}, {1e-9, 1e-9}, 5},
                 {{1, 2}, {20, 1}, {1, 2}, {1e-3, 1e-3}, 3}, {{2, 1}, {1, 2}, {2, 1}, {1, 1}, 0}}; /* conversions eat it all */
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_times(path, "> 2x32x12x12", cases[i].three[0], cases[i].three[1]);
        set_times(path, "> 2x40x12x12", cases[i].one[0], cases[i].one[1]);
        set_times(path, "> 32x24x3x3", cases[i].gradient[0], cases[i].gradient[1]);
        set_times(path, "conversion of an element", cases[i].conversion[0], cases[i].conversion[1]);
        forget_times(other, native);
        in_bf16(&r, g, cases[i].mask);
    }
    /* A file of another library is not believed: its times are replaced. */
    char *bytes = NULL;
    uint64_t n = 0;
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    memcpy(strstr(bytes, "oneDNN "), "twoDNN ", 7);
    CHECK_OK(sd_file_write_atomic(path, bytes, n, &err));
    sd_free(bytes);
    forget_times(other, native);
    rig_compare(&r, &ref, g, 1e-2, "mixed, of another library");
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    CHECK(strstr(bytes, "oneDNN ") && !strstr(bytes, "\t2\t1\n"));
    sd_free(bytes);
    /* Lines that are no times are measured again, one by one. */
    set_times(path, "> 2x32x12x12", -1, 2);
    forget_times(other, native);
    rig_compare(&r, &ref, g, 1e-2, "mixed, a damaged line");
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    CHECK(!strstr(bytes, "\t-1\t"));
    sd_free(bytes);
    sd_graph_free(g);
    /* A file that cannot be written is an error with the option's name. */
    rig_close(&r);
    snprintf(more, sizeof more, "[backend.cpu]\nbf16 = %s\ntimes = /proc/none/times.tsv\n", native ? "native" : "emulate");
    CHECK_OK(rig_open_as(&r, "cpu", 2, more, SODET_PRECISION_MIXED, &err));
    g = pair();
    rig_program p;
    CHECK_FAILS(rig_make(&r, g, &p, &err), SODET_E_IO, "[backend.cpu] times");
    sd_segments_free(&p.segments);
    sd_graph_free(g);
    rig_close(&r);
    rig_close(&ref);
}

int main(int argc, char **argv)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%s/sodet_precision_%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    CHECK_EQ(mkdir(folder, 0700), 0);
    (void)argc, (void)argv;
    refusals();
    rounding();
    mixed(folder, false);
    mixed(folder, true);
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_EQ(system(command), 0);
    return check_done(100);
}
