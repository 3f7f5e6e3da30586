/* child.h: tests that run themselves again, to see what a fault makes a program say. */
#ifndef HC_TEST_CHILD_H
#define HC_TEST_CHILD_H

#include <stddef.h>

/* Runs this program with up to four arguments (NULL ends them), collects its standard error, and returns its exit status, or 128 + the
 * signal that ended it. */
int child_run(const char *const arguments[4], char *text, size_t size);
/* Starts it without waiting; child_end collects. */
typedef struct child {
    int process, from;
} child;
child child_start(const char *const arguments[4]);
int child_end(child c, char *text, size_t size);

#endif
