/* cuda/library.h: a shared library that is of no use, made by the compiler that is there, and a child of the test that opens it: a library is
 * opened once for each process. */
#ifndef SODET_TEST_CUDA_LIBRARY_H
#define SODET_TEST_CUDA_LIBRARY_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char library_folder[] = "/tmp/sodet_library_XXXXXX";

static inline bool library_begin(void)
{
    if (!mkdtemp(library_folder))
        exit(1);
    return system("command -v cc >/dev/null") == 0;
}

/* `name` from C; "": a file that is none. `self` runs again with `argument`, finds it first and is expected to end with 0. */
static inline void library_try(const char *self, const char *name, const char *source, const char *argument)
{
    char command[4096];
    snprintf(command, sizeof command, "cd %s && rm -f %s && printf '%%s' '%s' >x.c && cc -w -shared -fPIC -o %s x.c", library_folder, name,
             source, name);
    if (!*source)
        snprintf(command, sizeof command, "echo nothing >%s/%s", library_folder, name);
    CHECK(system(command) == 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        setenv("LD_LIBRARY_PATH", library_folder, 1);
        execl(self, self, argument, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline bool library_end(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", library_folder);
    return system(command) == 0;
}

#endif
