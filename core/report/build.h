/* report/build.h: what this library was built from, for `sodet --version` and for the head of a log. */
#ifndef SD_REPORT_BUILD_H
#define SD_REPORT_BUILD_H

typedef struct sd_build_info {
    const char *version, *build, *compiler, *recipes;
    char libraries[300]; /* "libjpeg-turbo 2.1.5, libpng 1.6.39, expat 2.5.0, iniparser 4.1" */
    char isa[200];       /* "x86-64: avx2 fma avx512f avx512_bf16" of this machine */
} sd_build_info;
void sd_build_info_get(sd_build_info *out);

#endif
