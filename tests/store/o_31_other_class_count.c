/* O-31 Other class count when fine-tuning: what fits is loaded, what does not is listed with both shapes; a strict load refuses;
 * nothing at all is an error. SSD300's heads, 21 classes (4 boxes: 84, 6 boxes: 126) to 3 (12, 18). */
#include "core/store/checkpoint.h"
#include "check.h"

/* What the entry about `name` (ours, or the file's) says. */
static const sd_load_entry *entry(const sd_load_report *r, const char *name)
{
    for (uint64_t i = 0; i < r->n; i++)
        if ((r->entries[i].name && strcmp(r->entries[i].name, name) == 0) ||
            (!r->entries[i].name && strcmp(r->entries[i].source, name) == 0))
            return &r->entries[i];
    return NULL;
}

int main(void)
{
    const char *folder = check_scratch("o31");
    char path[1200];
    snprintf(path, sizeof path, "%s/voc", folder ? folder : "");
    sodet_err err = SODET_ERR_INIT;
    float big[126 * 2] = {1}, box[16 * 2] = {2}, conv[8] = {3};
    sd_tensor old[] = {
        {.name = "backbone/conv1/weight", .type = SD_F32, .rank = 1, .dims = {8}, .data = conv},
        {.name = "head/0/cls/weight", .type = SD_F32, .rank = 2, .dims = {84, 2}, .data = big},
        {.name = "head/0/box/weight", .type = SD_F32, .rank = 2, .dims = {16, 2}, .data = box},
        {.name = "head/1/cls/weight", .type = SD_F32, .rank = 2, .dims = {126, 2}, .data = big},
    };
    CHECK_OK(sd_checkpoint_write(path, old, 4, NULL, 0, NULL, NULL, &err));
    float w[8] = {0}, c0[24], b0[32] = {0}, c1[36];
    for (int i = 0; i < 24; i++)
        c0[i] = -5;
    c1[35] = -5;
    sd_tensor fresh[] = {old[0], old[1], old[2], old[3]};
    fresh[0].data = w;
    fresh[1].data = c0, fresh[1].dims[0] = 12;
    fresh[2].data = b0;
    fresh[3].data = c1, fresh[3].dims[0] = 18;
    sd_checkpoint *c = NULL;
    CHECK_OK(sd_checkpoint_open(path, 0, &c, &err));
    if (!c)
        return check_done(9);
    CHECK_FAILS(sd_checkpoint_load(c, fresh, 4, "", NULL, NULL, &err), SODET_E_INVALID,
                "\"head/0/cls/weight\" is [84, 2] in it, [12, 2] here, and 1 more");
    sd_load_report r;
    CHECK_OK(sd_checkpoint_load_partial(c, fresh, 4, &(sd_load_rule){0}, NULL, NULL, &r, &err));
    CHECK(r.taken == 2 && r.skipped == 2 && w[0] == 3 && b0[0] == 2 && c0[0] == -5 && c0[23] == -5 && c1[35] == -5);
    CHECK_EQ(entry(&r, "head/1/cls/weight")->state, SD_SKIP_SHAPE);
    CHECK_STR(entry(&r, "head/1/cls/weight")->why, "[126, 2] in the file, [18, 2] here");
    sd_text t = {0};
    sd_load_report_print(&r, true, &t);
    CHECK_STR(t.text, "skipped  head/0/cls/weight: [84, 2] in the file, [12, 2] here\n"
                      "skipped  head/1/cls/weight: [126, 2] in the file, [18, 2] here\n");
    sd_text_free(&t);
    sd_load_report_free(&r);
    CHECK_FAILS(sd_checkpoint_load_partial(c, &fresh[1], 1, &(sd_load_rule){0}, NULL, NULL, &r, &err), SODET_E_INVALID,
                "nothing in it fits");
    sd_load_report_free(&r);
    sd_checkpoint_close(c);
    return check_done(9);
}
