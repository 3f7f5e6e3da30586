#include "core/cli/version.h"

#include "core/plugin/plugin.h"
#include "core/report/build.h"

void sd_version_print(FILE *out)
{
    sd_build_info b;
    sd_build_info_get(&b);
    fprintf(out, "sodet %s (%s build, %s)\n", b.version, b.build, b.compiler);
    fprintf(out, "plugin ABI %u.%u\n", SODET_ABI_MAJOR, SODET_ABI_MINOR);
    fprintf(out, "libraries: %s\n", b.libraries);
    fprintf(out, "processor: %s\n", b.isa);
    fprintf(out, "plugins:");
    for (const char *const *f = sd_plugin_folders(); *f; f++)
        fprintf(out, " %s", *f);
    fprintf(out, "\nrecipes: %s\n", b.recipes);
}
