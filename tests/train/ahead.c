/* A host that waits for nothing: a kernel of the first step never ends, and two steps are put on the virtual GPU all the same. Whatever
 * in a step waited for the device would hang. labels: big */
#include "runs.h"

#include "core/train/run.h"

static void plan(void)
{
    setenv("HC_FAIL", "kernel:40:hang", 1);
}

static void put_two(void *context)
{
    (void)context;
    alarm(20);
    sodet_err err = SODET_ERR_INIT;
    const sd_override lines[] = {{"run.devices=cuda_host", NULL}, {"run.output=ahead", NULL}, {"train.batch=3", NULL}};
    sd_config *cfg = NULL;
    sd_run r;
    CHECK_OK(sd_config_open_text(runs_tiny, strlen(runs_tiny), "test.ini", NULL, lines, 3, &cfg, &err));
    CHECK_OK(sd_run_open(&r, cfg, true, &err));
    CHECK(r.ahead);
    for (uint32_t i = 0; i < 2 && !check_failures(); i++) {
        sd_flight *f = &r.flights[i];
        f->step = (sd_step){.step = i, .lr = 0.01};
        CHECK_OK(sd_run_next(&r, f->batches, &err));
        CHECK_OK(sd_stepper_begin_step(r.stepper, f->batches, &f->step, i == 0, &err));
        printf("step %u is on the device\n", i);
    }
    fflush(NULL);
    _exit(check_failures() ? 1 : 0); /* the device never ends */
}

int main(int argc, char **argv)
{
    runs_begin("ahead");
    if (argc > 2 && strcmp(argv[1], "--on") == 0) {
        runs_start(0, "", RUNS("run.devices=cuda_host"), &(runs_job){.work = put_two, .before = plan});
        const runs_outcome *o = runs_finish(0);
        CHECK_EQ(o->signal, 0);
        CHECK_EQ(o->exit_code, 0);
        return runs_done(2);
    }
    /* Elsewhere steps are waited for. */
    sodet_err err = SODET_ERR_INIT;
    const sd_override lines[] = {{"run.devices=ref", NULL}, {"run.output=ref", NULL}};
    sd_config *cfg = NULL;
    sd_run r;
    CHECK_OK(sd_config_open_text(runs_tiny, strlen(runs_tiny), "test.ini", NULL, lines, 2, &cfg, &err));
    CHECK_OK(sd_run_open(&r, cfg, true, &err));
    CHECK(!r.ahead);
    sd_run_close(&r);
    sd_config_close(cfg);
    return runs_done(4);
}
