/* NCCL that cannot be used: not there, without its calls, or of another version. Each in a process of its own, since a library is opened
 * once. argv[1]: what is wrong; the test makes the library. */
#include "plugins/backend/cuda/nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char folder[] = "/tmp/sodet_nccl_XXXXXX";

static int look(const char *part)
{
    sodet_err err;
    const cuda_nccl *calls;
    CHECK_FAILS(cuda_nccl_load(&calls, &err), SODET_E_DEVICE, part);
    CHECK(calls == NULL);
    return check_done(1);
}

static void expect(const char *self, const char *source, const char *part)
{
    char command[1024];
    snprintf(command, sizeof command, "cd %s && rm -f libnccl.so.2", folder);
    CHECK(system(command) == 0);
    snprintf(command, sizeof command, "cd %s && printf '%%s' '%s' >x.c && cc -w -shared -fPIC -o libnccl.so.2 x.c", folder, source);
    if (*source)
        CHECK(system(command) == 0);
    else {
        snprintf(command, sizeof command, "echo nothing >%s/libnccl.so.2", folder);
        CHECK(system(command) == 0);
    }
    pid_t child = fork();
    if (!child) {
        setenv("LD_LIBRARY_PATH", folder, 1);
        execl(self, self, part, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return look(argv[1]);
    if (!mkdtemp(folder))
        return 1;
    if (system("command -v cc >/dev/null") != 0) {
        check_skip("no compiler");
        return check_done(0);
    }
    expect(argv[0], "", "cannot be opened");
    expect(argv[0], "int ncclGetVersion(int *v) { *v = 22809; return 0; }", "older than what sodet was built with");
#define X(call) "int nccl" #call "(int *v) { *v = 30100; return 0; }\n"
    expect(argv[0], CUDA_NCCL_CALLS(X), "version 30100");
#undef X
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? check_done(6) : 1;
}
