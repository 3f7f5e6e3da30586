/* The fuzz target without a fuzzer: every file of the folders given, each once. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/base.h"

#include "fuzz/fuzz.h"

static unsigned long replay(const char *path, int depth)
{
    struct stat st;
    sodet_err err = SODET_ERR_INIT;
    if (stat(path, &st) != 0)
        return 0;
    if (S_ISDIR(st.st_mode)) {
        unsigned long n = 0;
        DIR *d = opendir(path);
        for (struct dirent *e = d && depth < 8 ? readdir(d) : NULL; e; e = readdir(d)) {
            char below[1200];
            snprintf(below, sizeof below, "%s/%s", path, e->d_name);
            n += e->d_name[0] == '.' ? 0 : replay(below, depth + 1);
        }
        if (d)
            closedir(d);
        return n;
    }
    char *bytes = NULL;
    uint64_t n = 0;
    if (st.st_size > 1 << 20 || sd_file_read(path, UINT64_MAX, &bytes, &n, &err) != SODET_OK)
        return 0;
    uint8_t *exact = malloc(n ? n : 1); /* without the 0 that sd_file_read puts behind: an overrun is seen */
    memcpy(exact, bytes, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    sd_free(bytes);
    return 1;
}

int main(int argc, char **argv)
{
    unsigned long n = 0;
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        n += replay(argv[i], 0);
    printf("%lu inputs\n", n);
    return n < 3; /* seeds are missing */
}
