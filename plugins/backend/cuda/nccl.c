#include "plugins/backend/cuda/nccl.h"

#include <dlfcn.h>
#include <pthread.h>

static cuda_nccl calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int loaded;

#ifdef SODET_CUDA_HOST
static sodet_status find_calls(sodet_err *err)
{
    (void)err;
#define X(call) calls.call = nccl##call;
    CUDA_NCCL_CALLS(X)
#undef X
    return SODET_OK;
}
#else
static sodet_status find_calls(sodet_err *err)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return SODET_FAIL(
            err, SODET_E_DEVICE,
            "several CUDA devices reduce by NCCL, which cannot be opened: %s; install NCCL 2 (libnccl2, or the wheel nvidia-nccl "
            "with its folder in LD_LIBRARY_PATH), or use one device",
            dlerror());
    const char *missing = NULL;
#define X(call)                                                                                                                            \
    *(void **)(void *)&calls.call = dlsym(library, "nccl" #call);                                                                          \
    if (!calls.call)                                                                                                                       \
        missing = "nccl" #call;
    CUDA_NCCL_CALLS(X)
#undef X
    if (missing)
        return SODET_FAIL(err, SODET_E_DEVICE,
                          "libnccl.so.2 has no %s: it is older than what sodet was built with, %d.%d; install that one", missing,
                          NCCL_MAJOR, NCCL_MINOR);
    return SODET_OK;
}
#endif

sodet_status cuda_nccl_load(const cuda_nccl **out, sodet_err *err)
{
    *out = NULL;
    pthread_mutex_lock(&lock);
    sodet_status s = loaded ? SODET_OK : find_calls(err);
    int version = 0;
    if (s == SODET_OK && !loaded && (calls.GetVersion(&version) != ncclSuccess || version / 10000 != NCCL_MAJOR))
        s = SODET_FAIL(err, SODET_E_DEVICE, "libnccl.so.2 says that it is version %d; sodet was built with %d", version, NCCL_VERSION_CODE);
    loaded = s == SODET_OK;
    pthread_mutex_unlock(&lock);
    if (s == SODET_OK)
        *out = &calls;
    return s;
}
