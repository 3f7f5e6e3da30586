/* NCCL that cannot be used: not there, without its calls, or of another version. argv[1]: what is to be said of it. */
#include "plugins/backend/cuda/nccl.h"

#include "library.h"

static int look(const char *part)
{
    sodet_err err;
    const cuda_nccl *calls;
    CHECK_FAILS(cuda_nccl_load(&calls, &err), SODET_E_DEVICE, part);
    CHECK(calls == NULL);
    return check_done(1);
}

int main(int argc, char **argv)
{
    static const char name[] = "libnccl.so.2";
    if (argc > 1)
        return look(argv[1]);
    if (!library_begin()) {
        check_skip("no compiler");
        return check_done(0);
    }
    library_try(argv[0], name, "", "cannot be opened");
    library_try(argv[0], name, "int ncclGetVersion(int *v) { *v = 22809; return 0; }", "older than what sodet was built with");
#define X(call) "int nccl" #call "(int *v) { *v = 30100; return 0; }\n"
    library_try(argv[0], name, CUDA_NCCL_CALLS(X), "version 30100");
#undef X
    return library_end() ? check_done(6) : 1;
}
