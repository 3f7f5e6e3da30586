/* Learning rates against PyTorch's sequences (optim.json, "lr"), and plateau's rules by hand. OneCycleLR is left out: sodet has no such
 * schedule. ExponentialLR is `step` with every = 1. */
#include "core/train/schedule.h"
#include "golden.h"

typedef struct row {
    const char *name;
    sd_schedule s;
    bool recipe; /* torchvision's: epochs for the schedule, iterations for the warm-up, 8 to an epoch */
} row;

static const double m58[] = {5, 8}, m610[] = {6, 10}, m812[] = {8, 12}, m23[] = {2, 3};
#define BASE .lr = 0.1, .factor = 0.1, .power = 1, .threshold = 1e-4
static const row rows[] = {
    {"MultiStepLR([5,8],0.1) 12 steps", {BASE, .kind = SD_SCHEDULE_MULTISTEP, .milestones = m58, .n_milestones = 2}, false},
    {"LinearLR(start_factor=0.001,total_iters=10) 15 steps",
     {BASE, .kind = SD_SCHEDULE_CONSTANT, .warmup_kind = SD_WARMUP_LINEAR, .warmup = 10, .warmup_factor = 0.001},
     false},
    {"CosineAnnealingLR(T_max=20,eta_min=0.0001) 20 steps", {BASE, .kind = SD_SCHEDULE_COSINE, .total = 20, .floor = 1e-4}, false},
    {"SequentialLR(LinearLR(0.01,total_iters=5), CosineAnnealingLR(15)) at 5, 20 steps",
     {BASE, .kind = SD_SCHEDULE_COSINE, .total = 20, .warmup_kind = SD_WARMUP_LINEAR, .warmup = 5, .warmup_factor = 0.01, .apart = true},
     false},
    {"SequentialLR(LinearLR(0.001,total_iters=5), MultiStepLR([6,10],0.1)) at 5, 18 steps",
     {BASE, .kind = SD_SCHEDULE_MULTISTEP, .milestones = m610, .n_milestones = 2, .warmup_kind = SD_WARMUP_LINEAR, .warmup = 5,
      .warmup_factor = 0.001, .apart = true},
     false},
    {"ChainedScheduler(LinearLR(0.001,total_iters=5), MultiStepLR([8,12],0.1)) 15 steps",
     {BASE, .kind = SD_SCHEDULE_MULTISTEP, .milestones = m812, .n_milestones = 2, .warmup_kind = SD_WARMUP_LINEAR, .warmup = 5,
      .warmup_factor = 0.001},
     false},
    {"ExponentialLR(0.9) 10 steps", {.lr = 0.1, .kind = SD_SCHEDULE_STEP, .factor = 0.9, .every = 1}, false},
    {"PolynomialLR(total_iters=10,power=2) 12 steps", {.lr = 0.1, .kind = SD_SCHEDULE_POLY, .total = 10, .power = 2}, false},
    {"ReduceLROnPlateau(min,factor=0.1,patience=2,threshold=1e-4 rel) metrics below",
     {BASE, .kind = SD_SCHEDULE_PLATEAU, .patience = 2, .lower_is_better = true},
     false},
    {"ReduceLROnPlateau(min,factor=0.5,patience=1,threshold=1e-4 rel,cooldown=2,min_lr=0.01) metrics below",
     {.lr = 0.1,
      .kind = SD_SCHEDULE_PLATEAU,
      .factor = 0.5,
      .patience = 1,
      .threshold = 1e-4,
      .cooldown = 2,
      .floor = 0.01,
      .lower_is_better = true},
     false},
    {"ReduceLROnPlateau(max,factor=0.1,patience=2,threshold=0.01 abs) metrics below",
     {.lr = 0.1, .kind = SD_SCHEDULE_PLATEAU, .factor = 0.1, .patience = 2, .threshold = 0.01, .threshold_absolute = true},
     false},
    {"torchvision references recipe: base 0.02, 8 iterations an epoch, 4 epochs, MultiStepLR([2,3]) by epoch; lr used at each iteration",
     {.lr = 0.02,
      .kind = SD_SCHEDULE_MULTISTEP,
      .factor = 0.1,
      .milestones = m23,
      .n_milestones = 2,
      .warmup_kind = SD_WARMUP_LINEAR,
      .warmup = 7,
      .warmup_factor = 1e-3},
     true},
};

static void sequences(const gold *root)
{
    gold_tally t = GOLD_TALLY("optim/lr");
    uint64_t n_metrics;
    double *metrics = gold_numbers(gold_get(root, "plateau_metrics"), &n_metrics), got[64];
    CHECK_EQ(gold_size(gold_get(root, "lr")), sizeof rows / sizeof *rows + 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const gold *want = gold_path(root, "lr", rows[i].name, NULL);
        uint64_t n = gold_size(want);
        sd_plateau p = {0};
        sodet_err err = SODET_ERR_INIT;
        CHECK_OK(sd_schedule_check(&rows[i].s, &err));
        CHECK(n <= 64 && (rows[i].s.kind != SD_SCHEDULE_PLATEAU || n == n_metrics + 1));
        for (uint64_t k = 0; k < n && k < 64; k++) {
            if (rows[i].s.kind == SD_SCHEDULE_PLATEAU && k > 0)
                sd_plateau_update(&rows[i].s, &p, metrics[k - 1]);
            got[k] = sd_schedule_at(&rows[i].s, rows[i].recipe ? (double)(k / 8) : (double)k, (double)k, &p);
        }
        gold_compare_list(&t, rows[i].name, want, got, n, 1e-14, 0);
    }
    gold_done(&t);
    free(metrics);
}

static void by_hand(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_schedule s;
    sd_schedule_init(&s);
    s.lr = 0.5;
    CHECK_EQ(sd_schedule_at(&s, 1e9, 1e9, NULL) == 0.5, 1);
    s.kind = SD_SCHEDULE_STEP;
    s.every = 3;
    CHECK_NEAR(sd_schedule_at(&s, 2.999, 0, NULL), 0.5, 1e-15, 0);
    CHECK_NEAR(sd_schedule_at(&s, 6, 0, NULL), 0.005, 1e-15, 0);
    s.kind = SD_SCHEDULE_CONSTANT;
    s.warmup_kind = SD_WARMUP_CONSTANT;
    s.warmup = 4;
    s.warmup_factor = 0.25;
    CHECK_NEAR(sd_schedule_at(&s, 3, 3, NULL), 0.125, 1e-15, 0);
    CHECK_NEAR(sd_schedule_at(&s, 4, 4, NULL), 0.5, 1e-15, 0);

    /* NaN is no improvement, neither first nor later. */
    sd_schedule_init(&s);
    s.kind = SD_SCHEDULE_PLATEAU;
    s.lr = 1;
    s.patience = 1;
    sd_plateau p = {0};
    sd_plateau_update(&s, &p, (double)NAN);
    CHECK(p.seen == 0 && p.bad == 1);
    sd_plateau_update(&s, &p, 0.5);
    CHECK(p.seen == 1 && p.bad == 0 && p.best == 0.5);
    sd_plateau_update(&s, &p, (double)NAN);
    sd_plateau_update(&s, &p, 0.5);
    CHECK_EQ(p.reductions, 1);
    CHECK_NEAR(sd_schedule_at(&s, 0, 0, &p), 0.1, 1e-15, 0);

    sd_schedule_init(&s);
    s.kind = SD_SCHEDULE_MULTISTEP;
    CHECK_FAILS(sd_schedule_check(&s, &err), SODET_E_INVALID, "needs `milestones`");
    static const double down[] = {4, 2};
    s.milestones = down;
    s.n_milestones = 2;
    CHECK_FAILS(sd_schedule_check(&s, &err), SODET_E_INVALID, "must ascend");
    s.kind = SD_SCHEDULE_POLY;
    CHECK_FAILS(sd_schedule_check(&s, &err), SODET_E_INVALID, "needs `total`");
    s.kind = SD_SCHEDULE_STEP;
    CHECK_FAILS(sd_schedule_check(&s, &err), SODET_E_INVALID, "needs `every`");
    s.lr = (double)NAN;
    CHECK_FAILS(sd_schedule_check(&s, &err), SODET_E_INVALID, "lr = nan");
}

int main(void)
{
    const gold *root = gold_open("optim.json");
    sequences(root);
    by_hand();
    gold_close(root);
    return check_done(50);
}
