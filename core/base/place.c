#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/base.h"

static char library[PATH_MAX], recipes[PATH_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void)
{
    static const char here = 0; /* an address in libsodet.so */
    char from_library[PATH_MAX + sizeof SODET_CONF_FROM_LIBRARY];
    Dl_info where;
    strcpy(recipes, SODET_CONF_INSTALL);
    if (!dladdr(&here, &where) || !where.dli_fname || !realpath(where.dli_fname, library)) {
        library[0] = '\0';
        return;
    }
    *strrchr(library, '/') = '\0';
    snprintf(from_library, sizeof from_library, "%s/" SODET_CONF_FROM_LIBRARY, library);
    if (!realpath(from_library, recipes))
        strcpy(recipes, SODET_CONF_INSTALL);
}

const char *sd_library_folder(void)
{
    pthread_once(&once, find);
    return library;
}

const char *sd_recipe_folder(void)
{
    pthread_once(&once, find);
    return recipes;
}
