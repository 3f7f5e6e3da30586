/* base/folder.h: reading a folder's entries without taking an error for the end. */
#ifndef SD_FOLDER_H
#define SD_FOLDER_H

#include <dirent.h>

#include "core/base/base.h"

/* The next entry; NULL at the end. folder: for the message. */
sodet_status sd_folder_next(DIR *d, const char *folder, struct dirent **entry, sodet_err *err);

#endif
