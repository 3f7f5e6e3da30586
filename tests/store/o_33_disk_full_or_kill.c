/* O-33 Disk full or kill while saving: after the first save there is a whole checkpoint at every moment, whatever happens.
 * Arguments: kills, seed (50 1); scripts/check_kills --writer gives others. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/store/checkpoint.h"
#include "check.h"

enum { VALUES = 1 << 18 }; /* a megabyte: long enough to be hit in the middle */
static float values[VALUES];
static char path[1200], temporary[1210];

/* Generation g holds g everywhere. */
static sodet_status save(float g, sodet_err *err)
{
    for (int i = 0; i < VALUES; i++)
        values[i] = g;
    sd_tensor t = {.name = "w", .type = SD_F32, .rank = 1, .dims = {VALUES}, .data = values};
    return sd_checkpoint_write(path, &t, 1, &(sd_meta){"kind", "test"}, 1, NULL, NULL, err);
}

/* The generation that the file holds, or -1. */
static float load(void)
{
    sodet_err err = SODET_ERR_INIT;
    sd_checkpoint *c = NULL;
    static float got[VALUES];
    sd_tensor t = {.name = "w", .type = SD_F32, .rank = 1, .dims = {VALUES}, .data = got};
    CHECK_OK(sd_checkpoint_open(path, 0, &c, &err));
    if (!c)
        return -1;
    CHECK_OK(sd_checkpoint_load(c, &t, 1, "", NULL, NULL, &err));
    sd_checkpoint_close(c);
    for (int i = 1; i < VALUES; i++)
        if (got[i] != got[0])
            return -1;
    return got[0];
}

static void disk_full(void)
{
    sodet_err err = SODET_ERR_INIT;
    struct rlimit old, small;
    CHECK_OK(save(1, &err));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    for (rlim_t limit = 0; limit < VALUES * 4; limit += 300000) {
        small = (struct rlimit){limit, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &small);
        CHECK_FAILS(save(2, &err), SODET_E_IO, path);
        setrlimit(RLIMIT_FSIZE, &old);
        CHECK(strstr(err.text, "no file may have more than") && strstr(err.text, "ulimit -f") && strstr(err.text, "untouched"));
        CHECK(access(temporary, F_OK) != 0);
        CHECK_EQ(load(), 1);
    }
    errno = ENOSPC; /* as a file system that is full says it */
    CHECK_FAILS(sd_fail_write(&err, path, "no room", 1000), SODET_E_IO, "1000 bytes are needed");
    CHECK(strstr(err.text, "are free; make room or write elsewhere") && strstr(err.text, "untouched"));
    CHECK_OK(save(3, &err));
    CHECK_EQ(load(), 3);
}

static void killed(int kills, uint64_t seed)
{
    sodet_err err = SODET_ERR_INIT;
    CHECK_OK(save(1, &err));
    unsigned inside = 0;
    float most = 0;
    for (int round = 0; round < kills; round++) {
        pid_t child = fork();
        if (child == 0) {
            for (float g = 2;; g++)
                if (save(g, NULL) != SODET_OK)
                    _exit(1);
        }
        CHECK(child > 0);
        usleep((useconds_t)(1000 + sd_mix64((seed << 32) + (uint64_t)round) % 12000));
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status));
        inside += access(temporary, F_OK) == 0;
        float g = load();
        CHECK(g >= 1);
        most = g > most ? g : most;
    }
    printf("%d kills of a writer, %u of them inside a save; %.0f saves before the longest-lived was killed\n", kills, inside, (double)most);
    CHECK(inside * 10 > (unsigned)kills);
    CHECK_OK(save(7, &err)); /* what the killed ones left is no obstacle */
    CHECK_EQ(load(), 7);
    CHECK(access(temporary, F_OK) != 0);
}

static void read_only_folder(const char *folder)
{
    sodet_err err = SODET_ERR_INIT;
    if (geteuid() == 0) { /* root may write anywhere: a folder in which nobody can stands in for it */
        CHECK_FAILS(sd_checkpoint_probe("/proc/self", 1, &err), SODET_E_IO, "cannot write in this folder");
        return;
    }
    CHECK(chmod(folder, 0500) == 0);
    CHECK_FAILS(sd_checkpoint_probe(folder, 1, &err), SODET_E_IO, "cannot write in this folder");
    CHECK_FAILS(save(9, &err), SODET_E_IO, "cannot create");
    CHECK(chmod(folder, 0700) == 0);
    CHECK_EQ(load(), 7);
}

int main(int argc, char **argv)
{
    const char *folder = check_scratch("o33");
    snprintf(path, sizeof path, "%s/last.sodet", folder ? folder : "");
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    disk_full();
    killed(argc > 1 ? atoi(argv[1]) : 50, argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    read_only_folder(folder);
    return check_done(150);
}
