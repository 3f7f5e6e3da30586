/* labels: threads */
/* A shared object with kernels is loaded, works, and is unloaded; it shows nothing of the rig but what tests ask for. */
#include <dlfcn.h>
#include <stdlib.h>

#include "check.h"

int main(void)
{
    setenv("HC_DEVICES", "2", 1);
    for (int round = 0; round < 2; round++) {
        void *module = dlopen(MODULE, RTLD_NOW | RTLD_LOCAL);
        CHECK(module != NULL);
        if (!module) {
            fprintf(stderr, "%s\n", dlerror());
            break;
        }
        union {
            void *symbol;
            double (*call)(int, int *);
        } sum = {dlsym(module, "module_sum")};
        const unsigned long *reports = dlsym(module, "hc_reports");
        CHECK(sum.symbol && reports && dlsym(module, "hc_configure"));
        CHECK(!dlsym(module, "cudaMalloc") && !dlsym(module, "ncclAllReduce") && !dlsym(module, "hc_report"));
        for (int device = 0; device < 2; device++) {
            int error = 1;
            CHECK_NEAR(sum.call(device, &error), 500500.0, 0, 0);
            CHECK_EQ(error, 0);
        }
        CHECK_EQ(*reports, 0);
        CHECK_EQ(dlclose(module), 0);
    }
    return check_done(12);
}
