#include "core/report/build.h"

#include <expat.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
/* jpeglib.h needs stdio.h before it */
#include <jpeglib.h>
/* The version that the backend `cpu` is built against; nothing else of it is used here. */
#if __has_include(<oneapi/dnnl/dnnl_version.h>)
#include <oneapi/dnnl/dnnl_version.h>
#endif

#include "core/base/base.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

#if defined(__x86_64__)
#define ADD(feature)                                                                                                                       \
    do {                                                                                                                                   \
        if (__builtin_cpu_supports(feature)) {                                                                                             \
            size_t used = strlen(out);                                                                                                     \
            snprintf(out + used, size - used, " %s", feature);                                                                             \
        }                                                                                                                                  \
    } while (0)
static void instruction_sets(char *out, size_t size)
{
    snprintf(out, size, "x86-64:");
    __builtin_cpu_init();
    ADD("sse4.2");
    ADD("avx");
    ADD("avx2");
    ADD("fma");
    ADD("avx512f");
    ADD("avx512bw");
    ADD("avx512vl");
    ADD("avx512vnni");
}
#else
static void instruction_sets(char *out, size_t size)
{
    snprintf(out, size, "generic");
}
#endif

void sd_build_info_get(sd_build_info *out)
{
    memset(out, 0, sizeof *out);
    out->version = SODET_VERSION;
    out->build = SODET_BUILD;
    out->recipes = sd_recipe_folder();
#if defined(__clang__)
    out->compiler = "clang " __clang_version__;
#else
    out->compiler = "gcc " __VERSION__;
#endif
    XML_Expat_Version e = XML_ExpatVersionInfo();
#ifdef LIBJPEG_TURBO_VERSION
    const char *jpeg = "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION);
#else
    const char *jpeg = "libjpeg " TEXT(JPEG_LIB_VERSION);
#endif
    snprintf(out->libraries, sizeof out->libraries, "%s, libpng %s, expat %d.%d.%d, iniparser", jpeg, png_get_libpng_ver(NULL), e.major,
             e.minor, e.micro);
#ifdef DNNL_VERSION_MAJOR
    size_t used = strlen(out->libraries);
    snprintf(out->libraries + used, sizeof out->libraries - used, ", oneDNN %d.%d.%d (backend cpu)", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
             DNNL_VERSION_PATCH);
#endif
#ifdef SODET_CUDA_VERSIONS /* what CMake built the backend with; nothing of it is known here */
    const size_t all = strlen(out->libraries);
    snprintf(out->libraries + all, sizeof out->libraries - all, ", %s (backend cuda)", SODET_CUDA_VERSIONS);
#endif
    instruction_sets(out->isa, sizeof out->isa);
}
