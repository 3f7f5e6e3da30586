/* The factor on the loss: when it moves, what a run of overflows ends in, and where `auto` turns it on. */
#include "core/train/scale.h"

#include "check.h"
#include "sodet/backend.h"

static sd_core_cfg config(uint32_t scaling, uint32_t precision)
{
    sd_core_cfg c = {0};
    c.optimizer.loss_scaling = scaling;
    c.optimizer.loss_scale = 1024;
    c.optimizer.loss_scale_window = 3;
    c.optimizer.loss_scale_skips = 4;
    c.run.precision = precision;
    return c;
}

static void test_auto(void)
{
    static const uint32_t precisions[] = {SODET_PRECISION_FP32, SODET_PRECISION_BF16, SODET_PRECISION_FP16, SODET_PRECISION_MIXED};
    for (uint32_t i = 0; i < 4; i++) {
        sd_core_cfg c = config(SD_SCALING_AUTO, precisions[i]);
        CHECK(sd_loss_scaled(&c) == (precisions[i] == SODET_PRECISION_FP16));
        c.optimizer.loss_scaling = SD_SCALING_NONE;
        CHECK(!sd_loss_scaled(&c));
        c.optimizer.loss_scaling = SD_SCALING_STATIC;
        CHECK(sd_loss_scaled(&c));
    }
    sd_core_cfg none = config(SD_SCALING_NONE, SODET_PRECISION_FP16);
    sd_loss_scale s = {0};
    CHECK(sd_loss_scale_begin(&none, &s) == 1 && s.factor == 0);
}

/* '.': finite, 'x': overflowed. The factor after each step, as a power of two. */
static void follow(uint32_t scaling, const char *steps, const int *power)
{
    sd_core_cfg c = config(scaling, SODET_PRECISION_FP16);
    sd_loss_scale s = {0};
    uint64_t skipped = 0;
    CHECK(sd_loss_scale_begin(&c, &s) == 1024);
    for (; *steps; steps++, power++) {
        sodet_err err = SODET_ERR_INIT;
        skipped += *steps == 'x';
        CHECK_OK(sd_loss_scale_step(&c, &s, *steps == '.', &err));
        CHECK_NEAR(sd_loss_scale_begin(&c, &s), (double)(1 << *power), 0, 0);
        CHECK(s.skipped == skipped);
    }
}

static void test_moves(void)
{
    follow(SD_SCALING_DYNAMIC, "..x...x.xx....", (const int[]){10, 10, 9, 9, 9, 10, 9, 9, 8, 7, 7, 7, 8, 8});
    follow(SD_SCALING_STATIC, "...x...", (const int[]){10, 10, 10, 10, 10, 10, 10});
}

static void test_ends(void)
{
    sd_core_cfg c = config(SD_SCALING_DYNAMIC, SODET_PRECISION_FP16);
    sd_loss_scale s = {0};
    sodet_err err = SODET_ERR_INIT;
    sd_loss_scale_begin(&c, &s);
    for (int round = 0; round < 2; round++) { /* a good step in between begins the count anew */
        for (int i = 0; i < 3; i++)
            CHECK_OK(sd_loss_scale_step(&c, &s, false, &err));
        if (!round)
            CHECK_OK(sd_loss_scale_step(&c, &s, true, &err));
    }
    CHECK(sd_loss_scale_step(&c, &s, false, &err) == SODET_E_INVALID);
    CHECK(strstr(err.text, "4 steps in a row") && strstr(err.text, "bf16"));
    /* The factor neither grows nor falls without end. */
    c.optimizer.loss_scale_skips = UINT32_MAX;
    for (int i = 0; i < 200; i++)
        CHECK_OK(sd_loss_scale_step(&c, &s, false, &err));
    CHECK(s.factor >= 1.0 / 2048);
    for (int i = 0; i < 600; i++)
        CHECK_OK(sd_loss_scale_step(&c, &s, true, &err));
    CHECK(s.factor == 16777216);
}

int main(void)
{
    test_auto();
    test_moves();
    test_ends();
    return check_done(50);
}
