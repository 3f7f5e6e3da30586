/* labels: valgrind */
/* What iniparser 4.1 would misread ends in the right value or in an error with line and remedy. Field cases O-43, O-44, O-45. */
#include "check.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config/config.h"

static const char *scratch;

static sodet_status open_bytes(const char *text, size_t n, sd_config **cfg, sodet_err *err)
{
    return sd_config_open_text(text, n, "x.ini", scratch, NULL, 0, cfg, err);
}

/* The text of [run] name in a file whose [run] section holds these lines. */
static void name_is(const char *lines, const char *expected)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    char text[7000];
    snprintf(text, sizeof text, "[run]\n%s", lines);
    sodet_status s = open_bytes(text, strlen(text), &cfg, &err);
    check_count();
    if (s != SODET_OK) {
        check_fail(__FILE__, __LINE__, "%s: %s", lines, err.text);
        return;
    }
    const char *got = sd_config_text(cfg, "run", "name");
    if (!got || strcmp(got, expected) != 0)
        check_fail(__FILE__, __LINE__, "%s: name is \"%s\", expected \"%s\"", lines, got ? got : "(none)", expected);
    sd_config_close(cfg);
}

/* A file with these bytes is refused with a text that holds all of these parts. */
static void refused_bytes(const char *text, size_t n, const char *part, const char *second)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    sodet_status s = open_bytes(text, n, &cfg, &err);
    check_count();
    if (s == SODET_OK) {
        check_fail(__FILE__, __LINE__, "%s: was accepted", text);
        sd_config_close(cfg);
    } else if (s != SODET_E_INVALID || !strstr(err.text, part) || (second && !strstr(err.text, second)) || cfg) {
        check_fail(__FILE__, __LINE__, "%s: status %d, \"%s\"; expected \"%s\" and \"%s\"", text, (int)s, err.text, part,
                   second ? second : "");
    }
}

static void refused(const char *text, const char *part, const char *second)
{
    refused_bytes(text, strlen(text), part, second);
}

static void traps(void)
{
    name_is("name = a", "a");
    name_is("name=a", "a");
    name_is("  name   =   a b  ", "a b");
    name_is("name = \"a;b\"", "a;b");
    name_is("name = 'a#b'", "a#b");
    name_is("name = \"  a  \"", "  a  ");
    name_is("name = a ; comment", "a");
    name_is("name = a\t# comment", "a");
    name_is("name = \"a\" # comment", "a");
    name_is("name = \"\"", "");
    name_is("name = ''  ; c", "");
    name_is("name =", "");
    name_is("name = # nothing", "");
    name_is("name = a=b", "a=b");
    name_is("name = = b", "= b");
    name_is("name = it's", "it's");
    name_is("name = say \"x\"", "say \"x\"");
    name_is("name = 'say \"x\"'", "say \"x\"");
    name_is("name = MiXed", "MiXed"); /* values keep their case */
    name_is("; a comment that ends in \\\nname = a", "a");
    name_is("name = C:\\dir\\file", "C:\\dir\\file");
    name_is("name = \xc3\xa4\xe6\xbc\xa2", "\xc3\xa4\xe6\xbc\xa2");

    refused("[run]\nname = caf\xe9", "x.ini:2: character 11 is the byte 0xe9", "save the file as UTF-8");
    refused("[run]\nname = \xed\xa0\x80", "x.ini:2:", "no UTF-8"); /* half of a pair */
    refused("[run]\nname = \xc0\xaf", "x.ini:2:", "no UTF-8");     /* longer than it need be */

    refused("[run]\nname = a;b", "x.ini:2: [run] name = a;b", "write name = \"a;b\"");
    refused("[run]\nname = a\"b#c", "x.ini:2:", "write name = 'a\"b#c'");
    refused("[run]\nname = a#b # c", "x.ini:2:", "write name = \"a#b\"");
    refused("[run]\nname = \"a", "x.ini:2:", "no \" closes");
    refused("[run]\nname = \"a\" b", "x.ini:2:", "behind the closing quote");
    refused("[run]\nname = \"a\"#b", "x.ini:2:", "after a blank");
    refused("[run]\nname = a \\\n b", "x.ini:2:", "on one line");
    refused("[run]\nName = a", "x.ini:2:", "write name");
    refused("[Run]\nname = a", "x.ini:1:", "write run");
    refused("[run]\nname = a\nname = b", "x.ini:3: [run] name = b", "already given in line 2");
    refused("[run]\nname = a\n[data]\n[run]\nseed = 1", "x.ini:4:", "already opened in line 1");
    refused("name = a", "x.ini:1:", "above the first [section]");
    refused("[run]\nname", "x.ini:2:", "neither [section] nor key = value");
    refused("[run]\nname: a", "x.ini:2:", "with = in the place of :");
    refused("[run]\n= a", "x.ini:2:", "has no name");
    refused("[run\nname = a", "x.ini:1:", "no ] closes");
    refused("[]\nname = a", "x.ini:1:", "has no name");
    refused("[run] name = a", "x.ini:1:", "its line for itself");
    refused("[run]\nna:me = a", "x.ini:2:", "':' cannot stand");
    refused("[run]\nmy name = a", "x.ini:2:", "cannot stand");
    refused_bytes("[run]\nname = a\0b", 16, "x.ini:2:", "control character 0x00");
    refused("[run]\rname = a\rseed = 1", "x.ini:1:", "LF or CR LF");
    refused_bytes("\xff\xfe[\0r\0", 6, "UTF-16", "UTF-8");
    char line[5100];
    int n = snprintf(line, sizeof line, "[run]\nname = ");
    memset(line + n, 'a', 1100);
    line[n + 1100] = '\0';
    refused(line, "x.ini:2:", "at most 1000");
    /* Longest line that is read, whole. */
    char value[1100], expected[1000];
    memset(expected, 'b', 990);
    expected[990] = '\0';
    snprintf(value, sizeof value, "name = %s", expected);
    name_is(value, expected);

    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    CHECK_FAILS(sd_config_open(scratch, NULL, 0, &cfg, &err), SODET_E_INVALID, "is a folder");
    CHECK_FAILS(sd_config_open("nowhere/x.ini", NULL, 0, &cfg, &err), SODET_E_INVALID, "nowhere/x.ini: cannot open");
    CHECK_OK(open_bytes("", 0, &cfg, &err));
    sd_config_close(cfg);
}

/* Every type: right values, and what a lenient reader would take. */
static void values(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    static const char text[] =
        "[run]\nseed = 010\ntimeout = 1.5m\n[input]\nsize = 300x200\nmean = 1 2,3\n[optimizer]\nlr = 1e-3\nnesterov = on\n"
        "betas = 0.8,0.99\ntype = adamw\n[data]\nclasses = cat, small dog , bird\nshuffle = OFF\n[eval]\nat = 5 10, 15\n";
    CHECK_OK(open_bytes(text, sizeof text - 1, &cfg, &err));
    if (!cfg)
        return;
    const sd_core_cfg *c = sd_config_core(cfg);
    CHECK_EQ(c->run.seed, 10); /* not octal */
    CHECK_NEAR(c->run.timeout, 90, 0, 0);
    CHECK_EQ(c->input.size.width, 300);
    CHECK_EQ(c->input.size.height, 200);
    CHECK_EQ(c->input.mean.n, 3);
    CHECK(c->input.mean.v[0] == 1 && c->input.mean.v[1] == 2 && c->input.mean.v[2] == 3);
    CHECK(c->optimizer.lr == 1e-3);
    CHECK_EQ(c->optimizer.nesterov, 1); /* iniparser does not know "on" */
    CHECK_EQ(c->optimizer.type, SD_OPTIMIZER_ADAMW);
    CHECK_NEAR(c->optimizer.betas.v[1], 0.99, 0, 0);
    CHECK_EQ(c->data.classes.n, 3);
    CHECK_STR(c->data.classes.v[1], "small dog");
    CHECK_EQ(c->data.shuffle, 0);
    CHECK_EQ(c->eval.at.n, 3);
    CHECK_EQ(c->eval.at.v[2], 15);
    CHECK_STR(c->run.name, "x");
    sd_config_close(cfg);

    static const struct {
        const char *line, *part;
    } bad[] = {
        {"[optimizer]\nlr = abc", "is no number"},
        {"[optimizer]\nlr = nan", "is no number"},
        {"[optimizer]\nlr = inf", "is no number"},
        {"[optimizer]\nlr = 1e", "behind the number"},
        {"[optimizer]\nlr = 0.1x", "\"x\" behind"},
        {"[optimizer]\nlr = 1,2", "behind the number"},
        {"[optimizer]\nlr = 50%", "\"%\" behind"},
        {"[optimizer]\nlr = 0x10", "number"},
        {"[optimizer]\nlr = -1", "outside [0, 1000]"},
        {"[optimizer]\nlr =", "no value"},
        {"[optimizer]\nnesterov = 1e-3", "neither yes nor no"},
        {"[optimizer]\nnesterov = maybe", "neither yes nor no"},
        {"[optimizer]\ntype = sdg", "did you mean sgd?"},
        {"[optimizer]\ntype = rmsprop", "none of sgd, adam, adamw"},
        {"[optimizer]\nbetas = 0.9", "has 1 elements, 2"},
        {"[optimizer]\nbetas = 0.9, 2", "element 2"},
        {"[data]\nworkers = 1,2,3", "behind the number"},
        {"[data]\nworkers = 2.5", "whole number"},
        {"[data]\nworkers = 1e1", "whole number"},
        {"[data]\nworkers = -1", "outside [1, 1024]"},
        {"[data]\nworkers = 99999999999999999999", "outside [1, 1024]"},
        {"[data]\ntrain = a,,b", "element 2 of the list is empty"},
        {"[data]\ntrain = a,", "element 2 of the list is empty"},
        {"[data]\ntrain = ,a", "element 1 of the list is empty"},
        {"[input]\nsize = 300x", "is no size"},
        {"[input]\nsize = 300x200x3", "is no size"},
        {"[input]\nsize = 4", "outside [8, 16384]"},
        {"[input]\nsize = -300", "is no size"},
        {"[run]\ntimeout = 3 weeks", "the units are"},
        {"[run]\ntimeout = fast", "is no number"},
        {"[schedule]\nmilestones = 3, 2", "must ascend"},
        {"[schedule]\ntype = step", "needs it"},
        {"[schedule]\nwarmup = linear", "needs a length"},
        {"[optimizer]\nlr_factors = head/*", "path:factor"},
        {"[eval]\nat = 1.5", "element 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(bad[i].line, bad[i].part, "x.ini");
    refused("[head]\nplugin = ssd\n[optimizer]\nlr = 5000\n", "x.ini:4: [optimizer] lr = 5000: outside [0, 1000]", NULL);
}

static void write_file(const char *name, const char *text)
{
    sodet_err err = SODET_ERR_INIT;
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    CHECK_OK(sd_make_folders(path, &err));
    *slash = '/';
    CHECK_OK(sd_file_write_atomic(path, text, strlen(text), &err));
}

static const char *in_scratch(const char *name)
{
    static char path[1200];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

static void layers(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    write_file("conf/model/a.ini",
               "[backbone]\nplugin = vgg16\nvariant = full\n[head]\nplugin = ssd\nsizes = 1, 2\n[optimizer]\nlr = 0.5\n");
    write_file("conf/schedule/s.ini", "[optimizer]\nlr = 0.25\nmomentum = 0.5\n[schedule]\ntotal = 7\n");
    write_file("conf/top.ini", "[optimizer]\nmomentum = 0.75\n[run]\nbase = model/a.ini, schedule/s.ini\n[head]\nplugin = "
                               "retinanet\n[backbone]\nplugin = vgg16\n");
    static const sd_override overrides[] = {{"schedule.total=9", NULL}, {"dataset.voc07.root=x", NULL}, {"optimizer.lr=0.125", "--lr"}};
    CHECK_OK(sd_config_open(in_scratch("conf/top.ini"), overrides, 3, &cfg, &err));
    if (!cfg)
        return;
    const sd_core_cfg *c = sd_config_core(cfg);
    CHECK_NEAR(c->optimizer.lr, 0.125, 0, 0);
    CHECK_NEAR(c->optimizer.momentum, 0.75, 0, 0); /* the file wins over its bases, wherever base stands in it */
    CHECK_NEAR(c->schedule.total, 9, 0, 0);
    CHECK_STR(c->run.name, "top");
    CHECK_STR(sd_config_text(cfg, "backbone", "variant"), "full"); /* the same plugin again drops nothing */
    CHECK(sd_config_text(cfg, "head", "sizes") == NULL);           /* another one does */
    CHECK_STR(sd_config_text(cfg, "dataset.voc07", "root"), "x");  /* split at the last dot */
    sd_text text = {0};
    sd_config_write(cfg, true, &text);
    CHECK(strstr(text.text, "; dropped with the former plugin: sizes = 1, 2 (") != NULL);
    CHECK(strstr(text.text, "conf/model/a.ini:6)") != NULL);
    CHECK(strstr(text.text, "command line (--lr)") != NULL);
    CHECK(strstr(text.text, "conf/schedule/s.ini:5") == NULL); /* total was overridden */
    CHECK(strstr(text.text, "default") != NULL);
    sd_text_free(&text);
    sd_config_close(cfg);

    /* Without places the text is an INI file that says the same. */
    CHECK_OK(sd_config_open(in_scratch("conf/top.ini"), overrides, 3, &cfg, &err));
    sd_text plain = {0}, again = {0};
    sd_config_write(cfg, false, &plain);
    sd_config_close(cfg);
    CHECK(strstr(plain.text, scratch) == NULL);
    CHECK_OK(sd_config_open_text(plain.text, plain.length, "top", NULL, NULL, 0, &cfg, &err));
    if (cfg) {
        sd_config_write(cfg, false, &again);
        CHECK_STR(again.text, plain.text);
        CHECK_NEAR(sd_config_core(cfg)->optimizer.lr, 0.125, 0, 0);
        sd_config_close(cfg);
    }
    sd_text_free(&plain);
    sd_text_free(&again);

    write_file("conf/loop.ini", "[run]\nbase = model/../loop2.ini\n");
    write_file("conf/loop2.ini", "[run]\nbase = loop.ini\n");
    CHECK_FAILS(sd_config_open(in_scratch("conf/loop.ini"), NULL, 0, &cfg, &err), SODET_E_INVALID, "names itself");
    write_file("conf/lost.ini", "[run]\nseed = 1\nbase = model/b.ini\n");
    CHECK_FAILS(sd_config_open(in_scratch("conf/lost.ini"), NULL, 0, &cfg, &err), SODET_E_INVALID, "lost.ini:3: [run] base = model/b.ini");
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"lr=3", "section.key=value"},
        {"optimizer.lr", "section.key=value"},
        {".lr=3", "section.key=value"},
        {"optimizer.=3", "section.key"},
        {"optimiser.lr=3", "did you mean [optimizer]?"},
        {"optimizer.lrr=3", "command line: [optimizer] lrr = 3: unknown key; did you mean lr?"},
        {"optimizer.lr=x", "command line: [optimizer] lr = x: is no number"},
        {"run.base=model/a.ini", "name them in"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sd_override o = {bad[i].text, NULL};
        CHECK_FAILS(sd_config_open(in_scratch("conf/top.ini"), &o, 1, &cfg, &err), SODET_E_INVALID, bad[i].part);
    }
    /* Two layers of one key: the later one counts. */
    static const sd_override twice[] = {{"optimizer.lr=1", NULL}, {"optimizer.lr=2", NULL}};
    CHECK_OK(sd_config_open(NULL, twice, 2, &cfg, &err));
    CHECK_NEAR(sd_config_core(cfg)->optimizer.lr, 2, 0, 0);
    CHECK_OK(sd_config_set(cfg, "run", "output", "made", &err));
    CHECK(sd_config_core(cfg)->run.output && sd_config_core(cfg)->run.output[0] == '/');
    CHECK_FAILS(sd_config_set(cfg, "optimizer", "lr", "x", &err), SODET_E_INVALID, "lr = x");
    sd_config_close(cfg);
}

typedef struct plug_cfg {
    double thresh;
    uint32_t mode;
    uint64_t cache;
    const char *root;
    sodet_uint_list sizes;
} plug_cfg;
static const char *const modes[] = {"fast", "exact", NULL};
static const sodet_opt plug_opts[] = {
    SODET_OPT_DOUBLE(plug_cfg, thresh, "0.5", 0, 1, "a threshold"), SODET_OPT_ENUM(plug_cfg, mode, "exact", modes, "a mode"),
    SODET_OPT_BYTES(plug_cfg, cache, "64MiB", 0, 1e12, "bytes"),    SODET_OPT_PATH(plug_cfg, root, SODET_OPT_REQUIRED, "a folder"),
    SODET_OPT_UINTS(plug_cfg, sizes, "1, 2", 2, 1, 9, "two sizes"),
};
static sodet_status plug_validate(const void *p, sodet_err *err)
{
    const plug_cfg *c = p;
    return c->thresh > 0.9 && c->mode == 0 ? sodet_fail_option(err, "thresh", "above 0.9 needs mode = exact") : SODET_OK;
}
static const sd_schema plug = {"dataset/plug", "a plugin", plug_opts, 5, sizeof plug_opts[0], sizeof(plug_cfg), plug_validate, 0};

static void filling(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    const void *p;
    static const char good[] = "[dataset.plug]\nroot = ../data\ncache = 2 GiB\n";
    CHECK_OK(open_bytes(good, sizeof good - 1, &cfg, &err));
    CHECK_OK(sd_config_fill(cfg, "dataset.plug", &plug, &p, &err));
    const plug_cfg *c = p;
    char expected[1200];
    snprintf(expected, sizeof expected, "%s", scratch);
    snprintf(strrchr(expected, '/'), 20, "/data");
    CHECK_STR(c->root, expected);
    CHECK(c->cache == 2ull << 30);
    CHECK(c->thresh == 0.5 && c->mode == 1);
    CHECK(c->sizes.n == 2 && c->sizes.v[1] == 2);
    const void *again;
    CHECK_OK(sd_config_fill(cfg, "dataset.plug", &plug, &again, &err));
    CHECK(again == p);
    CHECK_STR(sd_config_own_name(cfg, "dataset.plug"), "dataset.plug");
    CHECK_FAILS(sd_config_fail(cfg, &err, "dataset.plug", "root", "no such folder %d", 7), SODET_E_INVALID,
                "x.ini:2: [dataset.plug] root = ../data: no such folder 7");
    sd_text help = {0};
    sd_schema_help(&plug, &help);
    CHECK(strstr(help.text, "thresh = 0.5") && strstr(help.text, "0 to 1") && strstr(help.text, "fast | exact") &&
          strstr(help.text, "must be given"));
    sd_text_free(&help);
    sd_config_close(cfg);

    static const struct {
        const char *text, *part;
    } bad[] = {
        {"[dataset.plug]\nthresh = 0.1\n", "x.ini:1: [dataset.plug] root: must be given"},
        {"[dataset.plug]\nroot = x\nthresh = 1.5\n", "x.ini:3: [dataset.plug] thresh = 1.5: outside [0, 1]"},
        {"[dataset.plug]\nroot = x\nthres = 0.5\n",
         "x.ini:3: [dataset.plug] thres = 0.5: unknown key of dataset/plug; did you mean thresh?"},
        {"[dataset.plug]\nroot = x\nlr = 0.5\n", "it belongs into [optimizer]"},
        {"[dataset.plug]\nroot = x\nthresh = 0.95\nmode = fast\n", "x.ini:3: [dataset.plug] thresh = 0.95: above 0.9 needs mode = exact"},
        {"[dataset.plug]\nroot = x\nsizes = 1, 10\n", "x.ini:3: [dataset.plug] sizes = 1, 10: element 2, \"10\": outside [1, 9]"},
        {"[dataset.plug]\nroot = x\ncache = 5 GiBi\n", "the units are"},
        {"[dataset.plug]\nroot = x\ncache = 0.3\n", "no whole number of bytes"},
        {"[dataset.plug]\nroot = $HOME/x\n", "not expanded"},
        {"[dataset.plug]\nroot = ~other/x\n", "not expanded"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_OK(open_bytes(bad[i].text, strlen(bad[i].text), &cfg, &err));
        CHECK_FAILS(sd_config_fill(cfg, "dataset.plug", &plug, &p, &err), SODET_E_INVALID, bad[i].part);
        CHECK(p == NULL);
        sd_config_close(cfg);
    }
    /* A table with a fault says so, and is no error of the user's. */
    static const sodet_opt wrong[] = {{"thresh", "h", SODET_T_DOUBLE, 0, 0, "2", 0, 1, 0, NULL}};
    static const sd_schema faulty = {"dataset/plug", "", wrong, 1, sizeof wrong[0], sizeof(plug_cfg), NULL, 0};
    CHECK_OK(open_bytes("", 0, &cfg, &err));
    CHECK_FAILS(sd_config_fill(cfg, "dataset.plug", &faulty, &p, &err), SODET_E_INTERNAL, "fault of the table");
    static const sodet_opt outside[] = {{"thresh", "h", SODET_T_DOUBLE, 0, sizeof(plug_cfg), "1", 0, 1, 0, NULL}};
    static const sd_schema beyond = {"dataset/plug", "", outside, 1, sizeof outside[0], sizeof(plug_cfg), NULL, 0};
    CHECK_FAILS(sd_config_fill(cfg, "dataset.plug", &beyond, &p, &err), SODET_E_INTERNAL, "outside the struct");
    sd_config_close(cfg);
}

/* O-43: misspelt or misplaced keys. */
static void field_case_o43(void)
{
    refused("[optimizer]\n\nlearing_rate = 0.1", "x.ini:3: [optimizer] learing_rate", "did you mean lr in [optimizer]?");
    refused("[run]\nseed = 1\n[model]\nbatch_size = 8", "x.ini:3: [model]", "[backbone] [neck] [head] [loss]");
    refused("[run]\nseed = 1\n[trian]\nbatch = 8", "x.ini:3: [trian]", "did you mean [train]?");
    refused("[schedule]\nnum-epochs = 3", "x.ini:2: [schedule] num-epochs", "did you mean total in [schedule]?");
    refused("[schedule]\nlr_gamma =", "x.ini:2: [schedule] lr_gamma", "did you mean factor in [schedule]?");
    refused("[optimizer]\nbatch = 3", "x.ini:2:", "it belongs into [train]");
    refused("[datset.voc]\nroot = x", "x.ini:1:", "did you mean [dataset.voc]?");
    /* an unknown key in a plugin's section: filling() */
}

/* O-44: comments, quotes, CR LF, percent. */
static void field_case_o44(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    CHECK_OK(open_bytes("[schedule]\ntotal = 12 # short\n", 30, &cfg, &err));
    CHECK_NEAR(sd_config_core(cfg)->schedule.total, 12, 0, 0);
    sd_config_close(cfg);
    name_is("name = \"my; data #1\"", "my; data #1");
    refused("[run]\nname = run#3", "x.ini:2:", "write name = \"run#3\""); /* iniparser would read "run": the remedy is named */
    name_is("name = \"run#3\"", "run#3");
    name_is("name = ; nothing", "");
    refused("[optimizer]\nmomentum = 50%", "x.ini:2:", "a fraction is written 0.5");
    name_is("name = 100%d", "100%d");
    name_is("name = %s%n", "%s%n");
    static const char crlf[] = "\xef\xbb\xbf[run]\r\nname = a\r\nseed = 5 ; c\r\n\r\n[optimizer]\r\nlr = 0.5";
    CHECK_OK(open_bytes(crlf, sizeof crlf - 1, &cfg, &err));
    if (cfg) {
        CHECK_STR(sd_config_core(cfg)->run.name, "a");
        CHECK_EQ(sd_config_core(cfg)->run.seed, 5);
        CHECK_NEAR(sd_config_core(cfg)->optimizer.lr, 0.5, 0, 0); /* the last line has no end */
        sd_config_close(cfg);
    }
    refused("[my plugin]\nx = 1", "x.ini:1:", "' ' cannot stand in the name of a section");
    char large[5100];
    int n = snprintf(large, sizeof large, "[run]\nname = ");
    memset(large + n, 'x', 5000);
    large[n + 5000] = '\0';
    refused(large, "x.ini:2: the line has 5007 characters", "classes = @names.txt");
}

/* O-45: relative paths. The config lies in cfg/, the program starts elsewhere. */
static void field_case_o45(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_config *cfg;
    const void *p;
    char start[1200], link[1200], expected[1200], root[1200], real[PATH_MAX];
    CHECK(getcwd(start, sizeof start) != NULL);
    CHECK(realpath(scratch, real) != NULL);
    write_file("cfg/a.ini", "[dataset.plug]\nroot = ../data\n[run]\ninit = ./w.bin\n");
    write_file("cfg/data.txt", "");
    snprintf(expected, sizeof expected, "%.1000s/data", real);
    snprintf(link, sizeof link, "%.1000s/elsewhere.ini", real);
    unlink(link);
    CHECK(symlink("cfg/a.ini", link) == 0);
    snprintf(root, sizeof root, "%.1000s/cfg/a.ini", real);
    struct {
        const char *from, *path;
    } starts[] = {{"/", root}, {real, "cfg/a.ini"}, {root, "a.ini"}, {"/", link}, {real, "elsewhere.ini"}};
    for (size_t i = 0; i < 5; i++) {
        char folder[1200];
        snprintf(folder, sizeof folder, "%s", starts[i].from);
        if (i == 2)
            *strrchr(folder, '/') = '\0';
        CHECK(chdir(folder) == 0);
        CHECK_OK(sd_config_open(starts[i].path, NULL, 0, &cfg, &err));
        if (!cfg)
            continue;
        CHECK_OK(sd_config_fill(cfg, "dataset.plug", &plug, &p, &err));
        CHECK_STR(((const plug_cfg *)p)->root, expected);
        CHECK(strstr(sd_config_core(cfg)->run.init, "/cfg/w.bin") != NULL);
        char here[1200];
        CHECK(getcwd(here, sizeof here) && strcmp(here, folder) == 0); /* the program never changes folder */
        sd_config_close(cfg);
    }
    /* On the command line: the working directory. */
    CHECK(chdir(real) == 0);
    static const sd_override o[] = {{"dataset.plug.root=there/../x", NULL}};
    CHECK_OK(sd_config_open("cfg/a.ini", o, 1, &cfg, &err));
    CHECK_OK(sd_config_fill(cfg, "dataset.plug", &plug, &p, &err));
    snprintf(expected, sizeof expected, "%.1000s/there/../x", real); /* `there` may be a link: not shortened */
    CHECK_STR(((const plug_cfg *)p)->root, expected);
    sd_pool pool = {0};
    snprintf(expected, sizeof expected, "%.1000s/cfg/names.txt", real);
    CHECK_STR(sd_config_path(cfg, &pool, "run", "init", "names.txt"), expected);
    sd_config_close(cfg);
    /* ~ is the home folder; $HOME is refused with the remedy (in filling()). */
    CHECK(setenv("HOME", "/home/someone", 1) == 0);
    static const sd_override home[] = {{"dataset.plug.root=~/x", NULL}};
    CHECK_OK(sd_config_open("cfg/a.ini", home, 1, &cfg, &err));
    CHECK_OK(sd_config_fill(cfg, "dataset.plug", &plug, &p, &err));
    CHECK_STR(((const plug_cfg *)p)->root, "/home/someone/x");
    sd_pool_clear(&pool);
    sd_config_close(cfg);
    CHECK(chdir(start) == 0);
}

int main(void)
{
    static char folder[1024];
    snprintf(folder, sizeof folder, "%s", check_scratch("config"));
    scratch = folder;
    traps();
    values();
    layers();
    filling();
    field_case_o43();
    field_case_o44();
    field_case_o45();
    return check_done(200);
}
