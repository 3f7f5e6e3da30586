/* inject.h: which of the program's calls fail (inject.c), and the server that tries one place after another (serve.c). */
#ifndef SODET_TESTS_INJECT_H
#define SODET_TESTS_INJECT_H

enum { INJECT_NONE, INJECT_MEMORY, INJECT_FILES, INJECT_KINDS };
/* From now on: of the calls of this kind the one with number `at` (from 1) fails; on: and all that follow. at = 0: none. */
void inject_begin(int kind, long at, int on);
void inject_end(void);
/* Calls so far, of this process and of those forked from it since inject_share. */
long inject_calls(int kind);
void inject_share(void);

#endif
