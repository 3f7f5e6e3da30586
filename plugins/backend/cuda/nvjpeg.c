#include "plugins/backend/cuda/nvjpeg.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "core/base/base.h"

enum { MAJOR = CUDART_VERSION / 1000 }; /* nvJPEG has that of its CUDA */

static cuda_nvjpeg calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int loaded;

#ifdef SODET_CUDA_HOST
static sodet_status find_calls(sodet_err *err)
{
    (void)err;
#define X(call) calls.call = nvjpeg##call;
    CUDA_NVJPEG_CALLS(X)
#undef X
    return SODET_OK;
}
#else
static sodet_status find_calls(sodet_err *err)
{
    char name[32];
    snprintf(name, sizeof name, "libnvjpeg.so.%d", MAJOR);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return SODET_FAIL(
            err, SODET_E_DEVICE,
            "[data] decode = device: the library cannot be opened: %s; install nvJPEG %d (libnvjpeg of the CUDA toolkit, or the "
            "wheel nvidia-nvjpeg with its folder in LD_LIBRARY_PATH), or write decode = host",
            dlerror(), MAJOR);
    const char *missing = NULL;
#define X(call)                                                                                                                            \
    *(void **)(void *)&calls.call = dlsym(library, "nvjpeg" #call);                                                                        \
    if (!calls.call)                                                                                                                       \
        missing = "nvjpeg" #call;
    CUDA_NVJPEG_CALLS(X)
#undef X
    if (missing)
        return SODET_FAIL(err, SODET_E_DEVICE,
                          "[data] decode = device: %s has no %s: it is no nvJPEG of CUDA %d; install that one, or write decode = host",
                          name, missing, MAJOR);
    return SODET_OK;
}
#endif

sodet_status cuda_nvjpeg_load(const cuda_nvjpeg **out, sodet_err *err)
{
    *out = NULL;
    pthread_mutex_lock(&lock);
    sodet_status s = loaded ? SODET_OK : find_calls(err);
    int version[3] = {0};
    const libraryPropertyType parts[3] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
    for (int i = 0; s == SODET_OK && !loaded && i < 3; i++)
        if (calls.GetProperty(parts[i], &version[i]) != NVJPEG_STATUS_SUCCESS || version[0] != MAJOR)
            s = SODET_FAIL(
                err, SODET_E_DEVICE,
                "[data] decode = device: the library says that it is version %d; sodet was built with CUDA %d: install nvJPEG %d, "
                "or write decode = host",
                version[0], MAJOR, MAJOR);
    if (s == SODET_OK && !loaded)
        sd_log(SD_LOG_INFO, "JPEGs are decoded by nvJPEG %d.%d.%d", version[0], version[1], version[2]);
    loaded = s == SODET_OK;
    pthread_mutex_unlock(&lock);
    if (s == SODET_OK)
        *out = &calls;
    return s;
}
