/* nvJPEG that cannot be used: not there, without its calls, or of another CUDA; and one that can. argv[1]: what is to be said of it. */
#include "plugins/backend/cuda/nvjpeg.h"

#include "library.h"

static int look(const char *part)
{
    sodet_err err = SODET_ERR_INIT;
    const cuda_nvjpeg *calls;
    const sodet_status s = cuda_nvjpeg_load(&calls, &err);
    if (!*part) {
        CHECK_OK(s);
        CHECK(calls && calls->DecodeBatched);
    } else {
        CHECK(s == SODET_E_DEVICE && strstr(err.text, part) != NULL);
        CHECK(calls == NULL && strstr(err.text, "decode = host") != NULL);
    }
    return check_done(1);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return look(argv[1]);
    if (!library_begin()) {
        check_skip("no compiler");
        return check_done(0);
    }
    char name[40], source[2000], version[80];
    int n = snprintf(source, sizeof source, "int nvjpegGetProperty(int part, int *value) { *value = part ? 4 : MAJOR; return 0; }\n");
#define X(call)                                                                                                                            \
    if (strcmp(#call, "GetProperty") != 0)                                                                                                 \
        n += snprintf(source + n, sizeof source - (size_t)n, "int nvjpeg%s(void) { return 6; }\n", #call);
    CUDA_NVJPEG_CALLS(X)
#undef X
    snprintf(name, sizeof name, "libnvjpeg.so.%d", CUDART_VERSION / 1000);
    library_try(argv[0], name, "", "cannot be opened");
    library_try(argv[0], name, "int nvjpegGetProperty(int part, int *value) { return 0; }", "has no nvjpeg");
    for (int major = CUDART_VERSION / 1000 - 1; major <= CUDART_VERSION / 1000; major++) {
        char text[2048];
        snprintf(text, sizeof text, "enum { MAJOR = %d };\n%s", major, source);
        snprintf(version, sizeof version, "says that it is version %d", major);
        library_try(argv[0], name, text, major == CUDART_VERSION / 1000 ? "" : version);
    }
    return library_end() ? check_done(8) : 1;
}
