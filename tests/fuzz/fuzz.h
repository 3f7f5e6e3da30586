/* fuzz.h: what the fuzz targets share. A target is one C file with fuzz_one and fuzz_seeds. Under clang's libFuzzer (preset fuzz,
 * scripts/check_fuzz) it is driven by it; everywhere else replay.c runs it over its seeds and over what was found before, as a test. */
#ifndef SODET_TESTS_FUZZ_H
#define SODET_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input. It may be refused or taken; it must not crash, leak, hang, or take more memory than the rules allow. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The input as a file that is read by its path; the same one every time. */
const char *fuzz_file(const uint8_t *bytes, size_t n);
/* A fresh folder in memory where there is one; it stays for the whole run. */
const char *fuzz_folder(void);
void fuzz_write(const char *folder, const char *name, const uint8_t *bytes, size_t n);
/* What an error says is looked at too: a status other than OK has a text, and the text ends. */
void fuzz_said(int status, const char *text);

#endif
