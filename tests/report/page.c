/* The HTML report: well-formed for a strict parser, nothing fetched from anywhere, text escaped, the right figures; and metrics.jsonl as it
 * is read back.
 *   test_report_page [FILE.html]    only looks whether the file is well-formed and complete in itself */
#include <expat.h>
#include <unistd.h>

#include "check.h"
#include "core/report/html.h"
#include "core/report/markup.h"
#include "core/report/report.h"

/* ---- a page as a parser sees it ---- */
typedef struct seen {
    sd_text text; /* of all elements, in their order */
    int pictures, charts, scripts, fetched, cells;
} seen;

static void XMLCALL on_start(void *context, const XML_Char *name, const XML_Char **attributes)
{
    seen *s = context;
    s->pictures += !strcmp(name, "img");
    s->charts += !strcmp(name, "svg");
    s->scripts += !strcmp(name, "script");
    s->cells += !strcmp(name, "td");
    for (int i = 0; attributes[i]; i += 2) {
        bool points = !strcmp(attributes[i], "src") || !strcmp(attributes[i], "href");
        s->fetched += points && strncmp(attributes[i + 1], "data:", 5) != 0;
        s->scripts += !strncmp(attributes[i], "on", 2);
    }
    sd_text_append(&s->text, "\n", 1);
}

static void XMLCALL on_end(void *context, const XML_Char *name)
{
    (void)name;
    sd_text_append(&((seen *)context)->text, "\n", 1);
}

static void XMLCALL on_text(void *context, const XML_Char *text, int n)
{
    sd_text_append(&((seen *)context)->text, text, (uint64_t)n);
}

static seen look(const char *html, uint64_t n)
{
    seen s = {.pictures = 0};
    XML_Parser p = XML_ParserCreate("UTF-8");
    XML_SetUserData(p, &s);
    XML_SetElementHandler(p, on_start, on_end);
    XML_SetCharacterDataHandler(p, on_text);
    enum XML_Status status = XML_Parse(p, html, (int)n, 1);
    if (status != XML_STATUS_OK)
        printf("line %lu: %s\n", XML_GetCurrentLineNumber(p), XML_ErrorString(XML_GetErrorCode(p)));
    CHECK(status == XML_STATUS_OK);
    CHECK_EQ(s.scripts, 0);
    CHECK_EQ(s.fetched, 0);
    CHECK(!strstr(html, "url(") && !strstr(html, "@import"));
    XML_ParserFree(p);
    return s;
}

static void test_file(const char *path)
{
    sodet_err err = SODET_ERR_INIT;
    char *bytes = NULL;
    uint64_t n = 0;
    CHECK_OK(sd_file_read(path, 0, &bytes, &n, &err));
    if (bytes) {
        seen s = look(bytes, n);
        CHECK(s.cells >= 10);
        printf("pictures %d, charts %d\n", s.pictures, s.charts);
        sd_text_free(&s.text);
    }
    sd_free(bytes);
}

/* ---- pieces ---- */
static void is_text(const char *text, const char *want)
{
    sd_text t = {0};
    sd_html_text(&t, text);
    CHECK_STR(t.text, want);
    sd_text_free(&t);
}

static void test_pieces(void)
{
#define BAD "\xef\xbf\xbd"
    is_text("", "");
    is_text("<a href=\"x\">'&amp;", "&lt;a href=&quot;x&quot;&gt;&#39;&amp;amp;");
    is_text("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x88", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x88");
    is_text("tab\tline\nbell\x07", "tab\tline\nbell" BAD);
    is_text("\xe9", BAD);                         /* Latin-1 */
    is_text("\xc3", BAD);                         /* cut */
    is_text("\xc0\xbc", BAD BAD);                 /* an overlong '<' */
    is_text("\xed\xa0\x80.", BAD BAD BAD ".");    /* a surrogate */
    is_text("\xf5\x80\x80\x80", BAD BAD BAD BAD); /* beyond U+10FFFF */
    static const char *const rfc4648[][2] = {{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
                                             {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}};
    for (size_t i = 0; i < sizeof rfc4648 / sizeof rfc4648[0]; i++) {
        sd_text t = {0};
        sd_text_append(&t, "", 0);
        sd_base64(&t, rfc4648[i][0], strlen(rfc4648[i][0]));
        CHECK_STR(t.text, rfc4648[i][1]);
        sd_text_free(&t);
    }
    sd_text t = {0};
    sd_html_number(&t, "%.2f", 0.125);
    sd_html_number(&t, "%.2f", (double)NAN);
    CHECK_STR(t.text, "<td>0.12</td><td>\xe2\x80\x93</td>");
    sd_text_free(&t);

    /* The plot spans x 52..288 and y 26..166: 0, 2 and 1 over 0..4 and 0..2 * 1.05. */
    const sd_point points[] = {{0, 0, 0}, {2, 2, 0}, {4, 1, 0}};
    const sd_chart_line line = {.name = "<line>", .point = points, .n = 3, .marks = true};
    const sd_chart chart = {.title = "a & b", .x = "step", .width = 300, .height = 200, .line = &line, .n = 1};
    sd_html_chart(&t, &chart);
    CHECK(t.text && strstr(t.text, "points=\"52.0,166.0 170.0,32.7 288.0,99.3\""));
    CHECK(t.text && strstr(t.text, "a &amp; b"));
    sd_text_free(&t);
}

/* ---- metrics.jsonl ---- */
static const char jsonl[] =
    "{\"step\": 1, \"epoch\": 0.5, \"lr\": 0.01, \"loss\": 3.5, \"loss/cls\": 2, \"seconds\": 0.5}\n"
    "{\"step\": 2, \"epoch\": 1, \"lr\": 0.02, \"loss\": null, \"loss/cls\": 1, \"seconds\": 0.25}\n"
    "{\"step\": 2, \"epoch\": 1, \"eval\": {\"voc/mAP\": 0.625, \"voc/AP/a,b\": null}, \"best\": 0.625, \"seconds\": 4}\n"
    "{\"step\": 2, \"epoch\": 1, \"devices\": [{\"name\": \"cpu:0\", \"awaited\": 2}], \"efficiency\": 0.75}\n"
    "{\"step\": 3, \"epoch\": 1.5, \"lr\": 0.0"; /* the run was killed here */

static void test_metrics(sd_metrics *m)
{
    sodet_err err = SODET_ERR_INIT;
    char path[1200];
    snprintf(path, sizeof path, "%s/metrics.jsonl", check_scratch("report_page"));
    CHECK_OK(sd_file_write(path, jsonl, sizeof jsonl - 1, &err));
    CHECK_OK(sd_metrics_read(path, m, &err));
    CHECK_EQ(m->lines, 4);
    const sd_series *loss = sd_metrics_find(m, "loss"), *map = sd_metrics_find(m, "voc/mAP"), *seconds = sd_metrics_find(m, "seconds");
    const sd_series *took = sd_metrics_find(m, "eval/seconds"), *empty = sd_metrics_find(m, "voc/AP/a,b");
    CHECK(loss && map && seconds && took && empty && !sd_metrics_find(m, "eval") && !sd_metrics_find(m, "step"));
    if (loss && map && seconds && took && empty) {
        CHECK_EQ(loss->n, 1);
        CHECK_EQ(seconds->n, 2);
        CHECK_EQ(empty->n, 0);
        CHECK_NEAR(loss->point[0].value, 3.5, 0, 0);
        CHECK_NEAR(map->point[0].value, 0.625, 0, 0);
        CHECK_NEAR(map->point[0].step, 2, 0, 0);
        CHECK_NEAR(took->point[0].value, 4, 0, 0);
        CHECK(map->evaluation && !loss->evaluation);
    }
    sd_text t = {0};
    sd_metrics_csv(m, &t);
    CHECK_STR(t.text, "step,epoch,lr,loss,loss/cls,seconds,voc/mAP,\"voc/AP/a,b\",eval/best,eval/seconds,efficiency\n"
                      "1,0.5,0.01,3.5,2,0.5,,,,,\n"
                      "2,1,0.02,,1,0.25,,,,,\n"
                      "2,1,,,,,0.625,,0.625,4,\n"
                      "2,1,,,,,,,,,0.75\n");
    sd_text_free(&t);
    static const char exploded[] = "{\"step\": 1, \"loss\": 3}\n{\"step\": 2, \"loss\": 1e30}\n{\"step\": 3, \"loss\": 2}\n";
    char png[1210];
    snprintf(png, sizeof png, "%s.png", path);
    CHECK_OK(sd_file_write(path, exploded, sizeof exploded - 1, &err));
    alarm(60); /* its curve is drawn, however far it goes */
    CHECK_OK(sd_report_curve(path, "", png, &err));
    alarm(0);
    CHECK_OK(sd_file_write(path, "{\"step\": 1, loss}\n", 18, &err));
    sd_metrics broken;
    CHECK_FAILS(sd_metrics_read(path, &broken, &err), SODET_E_INVALID, "metrics.jsonl");
}

/* ---- the page ---- */
#define NASTY "<script>alert(\"x\")</script> & 'co' \x01\xff"
static void test_page(const sd_metrics *m)
{
    sodet_err err = SODET_ERR_INIT;
    static const char *const names[] = {NASTY, "dog"};
    static const sodet_object objects[] = {{.box = {0, 0, 10, 10}}, {.box = {20, 0, 30, 10}, .label = 1}};
    static const sodet_detection found[] = {{.box = {0, 0, 10, 10}, .score = 0.875f}, {.box = {20, 0, 30, 10}, .score = 0.75f}};
    static const uint64_t first[] = {0, 2};
    const sodet_eval_input in = {sizeof in, 2, names, 1, first, first, objects, NULL, NULL, found, NULL, 1};
    const sd_errors_options options = {.score = 0.5};
    sd_errors e;
    CHECK_OK(sd_errors_find(&in, &options, &e, &err));
    sodet_eval_sink sink = {.n = 0};
    sodet_emit_metric(&sink, "mAP", 0.4375);
    sodet_emit_metric(&sink, "AP/" NASTY, 0.8125);
    sodet_emit_metric(&sink, "AP/dog", (double)NAN);
    const sd_page_result result = {"voc", &sink};
    const sd_page_fact facts[] = {{"weights", NASTY}};
    float pixels[40 * 20 * 3];
    for (size_t i = 0; i < 40 * 20 * 3; i++)
        pixels[i] = (float)(i % 256);
    const sodet_image image = {.struct_size = sizeof image, .width = 40, .height = 20, .channels = 3, .pixels = pixels};
    const sd_shot_box boxes[] = {{.box = objects[0].box, .name = NASTY, .score = -1, .colour = {255, 0, 0}}};
    sd_page_picture picture = {.name = NASTY, .image = 0};
    CHECK_OK(sd_shot_make(&image, boxes, 1, 320, "x", &picture.truth, &err));
    CHECK_EQ(picture.truth.width, 320); /* eight times */
    CHECK_EQ(picture.truth.height, 160);
    CHECK_OK(sd_shot_make(&image, boxes, 1, 30, "x", &picture.found, &err));
    CHECK_EQ(picture.found.width, 30); /* three quarters */
    CHECK_EQ(picture.found.height, 15);
    const sd_page page = {.title = NASTY,
                          .facts = facts,
                          .n_facts = 1,
                          .metrics = m,
                          .headline = "voc/mAP",
                          .in = &in,
                          .errors = &e,
                          .results = &result,
                          .n_results = 1,
                          .data = "about " NASTY,
                          .pictures = &picture,
                          .n_pictures = 1,
                          .ini = "[run]\nname = " NASTY "\n",
                          .log = NASTY "\n"};
    sd_text html = {0};
    sd_page_write(&page, &html);
    CHECK(!html.failed);
    seen s = look(html.text, html.length);
    CHECK_EQ(s.pictures, 2);
    CHECK_EQ(s.charts, 5); /* loss, evaluation, lr, one curve for each class */
    CHECK(strstr(s.text.text, "<script>alert(\"x\")</script> & 'co' \xef\xbf\xbd\xef\xbf\xbd"));
    CHECK(strstr(s.text.text, "0.8125") && strstr(s.text.text, "0.4375"));
    CHECK(strstr(s.text.text, "1 missed, 1 wrong (<script>alert(\"x\")</script> & 'co' \xef\xbf\xbd\xef\xbf\xbd 0.75 class)"));
    /* The table of errors: one of class, which mended would make mAP 1. */
    CHECK(strstr(html.text, "<td>class</td><td class=\"words\">right place, wrong class</td><td>1</td><td>1</td><td>+0.5000</td>"));
    CHECK(strstr(html.text, "<td>missed</td>"));
    /* Confusions: row dog, column of the nasty one. */
    CHECK(strstr(html.text,
                 "<tr><th>dog</th><td style=\"background: rgba(200, 64, 44, 0.80)\">1</td><td class=\"right\"></td><td></td></tr>"));
    CHECK(strstr(s.text.text, "ECCV 2020"));
    sd_text_free(&s.text);
    sd_text_free(&html);

    /* Nothing but weights. */
    const sd_metrics none = {.n = 0};
    const sd_page bare = {.title = "bare", .metrics = &none, .data = "[data] val names no data set, so nothing was evaluated."};
    sd_page_write(&bare, &html);
    s = look(html.text, html.length);
    CHECK_EQ(s.charts, 0);
    CHECK(strstr(s.text.text, "no metrics.jsonl") && strstr(s.text.text, "nothing was evaluated"));
    sd_text_free(&s.text);
    sd_text_free(&html);
    sd_text_free(&picture.truth.jpeg);
    sd_text_free(&picture.found.jpeg);
    sd_eval_sink_clear(&sink);
    sd_errors_free(&e);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        test_file(argv[1]);
        return check_done(4);
    }
    sd_metrics m;
    test_pieces();
    test_metrics(&m);
    test_page(&m);
    sd_metrics_free(&m);
    CHECK(check_scratch_remove(check_scratch("report_page")));
    return check_done(60);
}
