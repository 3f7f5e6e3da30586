/* plugin/elf.h: what a shared object says about itself without being loaded. dlopen runs constructors, so magic and ABI are read
 * from the file first. */
#ifndef SD_PLUGIN_ELF_H
#define SD_PLUGIN_ELF_H

#include "core/base/base.h"

/* Copies the first n bytes of the data symbol `symbol` out of the file; the symbol's own size goes to *size (0: not recorded).
 * Errors: not a file, not ELF, another machine or word size, no shared object, no such symbol; each says what the file is. */
sodet_status sd_elf_read_symbol(const char *path, const char *symbol, void *out, size_t n, uint64_t *size, sodet_err *err);

#endif
