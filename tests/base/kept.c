/* Tables of measurements: where they lie, nowhere and no memory told apart; what was written is read again, and a file of another kind is not. */
#include "core/base/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "check.h"

static sodet_err err = SODET_ERR_INIT;

static void in_folders(const char *cache, const char *home, const char *set, const char *expected)
{
    sd_pool pool = {0};
    char *path = NULL;
    cache ? setenv("XDG_CACHE_HOME", cache, 1) : unsetenv("XDG_CACHE_HOME");
    home ? setenv("HOME", home, 1) : unsetenv("HOME");
    CHECK_OK(sd_kept_path(set, "times.tsv", &pool, &path, &err));
    if (expected)
        CHECK_STR(path, expected);
    else
        CHECK(path == NULL);
    sd_pool_clear(&pool);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they have their own ideas of address space */
static sodet_status path_with_little_memory(const char *set, sd_pool *pool, char **path, sodet_err *e)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    struct rlimit before;
    CHECK(f && fscanf(f, "%lu", &pages) == 1 && getrlimit(RLIMIT_AS, &before) == 0);
    if (f)
        fclose(f);
    const struct rlimit little = {.rlim_cur = pages * 4096 + (64 << 20), .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    const sodet_status s = sd_kept_path(set, "times.tsv", pool, path, e);
    setrlimit(RLIMIT_AS, &before);
    return s;
}

/* A name too long for what this process may still have. */
static void without_memory(void)
{
    enum { LENGTH = 256 << 20 };
    char *set = malloc(LENGTH), *path = set;
    sd_pool pool = {0};
    CHECK(set != NULL);
    memset(set, 'a', LENGTH - 1);
    set[LENGTH - 1] = '\0';
    CHECK_FAILS(path_with_little_memory(set, &pool, &path, &err), SODET_E_MEMORY, "no memory");
    CHECK(path == NULL);
    sd_pool_clear(&pool);
    free(set);
}
#else
static void without_memory(void)
{
}
#endif

static void kept(const char *folder)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/a/b/times.tsv", folder);
    sd_kept one = SD_KEPT_INIT("cpu"), two = SD_KEPT_INIT("cpu"), other = SD_KEPT_INIT("cpu");
    CHECK_OK(sd_kept_read(&one, path, "sodet kind 1", &err));
    CHECK_OK(sd_kept_set(&one, "conv", "0.5", &err));
    CHECK_OK(sd_kept_set(&one, "conv", "0.25", &err));
    CHECK_OK(sd_kept_write(&one, "sodet kind 1", &err));
    CHECK_OK(sd_kept_read(&two, path, "sodet kind 1", &err));
    CHECK_STR(sd_kept_find(&two, "conv"), "0.25");
    CHECK(sd_kept_find(&two, "pool") == NULL);
    CHECK_OK(sd_kept_read(&other, path, "sodet kind 2", &err));
    CHECK(sd_kept_find(&other, "conv") == NULL);
    snprintf(path, sizeof path, "%s/notes.txt", folder); /* a file of the user's is not written over */
    CHECK_OK(sd_file_write_atomic(path, "my notes\n", 9, &err));
    CHECK_FAILS(sd_kept_read(&other, path, "sodet kind 1", &err), SODET_E_INVALID, "first line");
    CHECK_OK(sd_kept_read(&one, "/nowhere/at/all", "sodet kind 1", &err)); /* and what came from the other file goes */
    CHECK_OK(sd_kept_read(&two, "/nowhere/at/all", "sodet kind 1", &err));
    CHECK_OK(sd_kept_read(&other, "/nowhere/at/all", "sodet kind 1", &err));
    CHECK(sd_kept_find(&two, "conv") == NULL);
    for (int i = 0; i < 3; i++)
        sd_free((i == 0 ? &one : i == 1 ? &two : &other)->path);
}

int main(void)
{
    const char *folder = check_scratch("kept");
    CHECK(folder != NULL);
    in_folders("/c", "/h", "here.tsv", "here.tsv");
    in_folders("/c", "/h", "", "/c/sodet/times.tsv");
    in_folders("c", "/h", NULL, "/h/.cache/sodet/times.tsv");
    in_folders("", "/h", NULL, "/h/.cache/sodet/times.tsv");
    in_folders(NULL, "h", NULL, NULL);
    in_folders(NULL, NULL, "", NULL);
    without_memory();
    if (folder) {
        kept(folder);
        CHECK(check_scratch_remove(folder));
    }
    return check_done(27);
}
