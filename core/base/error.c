#include "core/base/base.h"

#include <stdio.h>
#include <string.h>

const char sodet_core_anchor = 'S';

/* The text is one line however the caller's values look, and never ends inside a UTF-8 character. */
static void finish(sodet_err *err, int wanted)
{
    size_t n = strlen(err->text);
    if (wanted >= (int)sizeof err->text) {
        n = sizeof err->text - 4;
        while (n > 0 && ((unsigned char)err->text[n] & 0xc0u) == 0x80u)
            n--;
        memcpy(err->text + n, "...", 4);
    }
    for (char *p = err->text; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    }
}

static void set_place(sodet_err *err, const char *file, int32_t line)
{
    size_t n = file ? strlen(file) : 0;
    const char *tail = !file ? "" : n < sizeof err->file ? file : file + (n - sizeof err->file + 1);
    snprintf(err->file, sizeof err->file, "%s", tail);
    err->line = line;
}

sodet_status sodet_fail(sodet_err *err, sodet_status code, const char *file, int32_t line, const char *format, ...)
{
    if (!err)
        return code;
    char text[sizeof err->text]; /* the arguments may point into err->text */
    va_list list;
    va_start(list, format);
    int wanted = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    memcpy(err->text, text, sizeof text);
    finish(err, wanted);
    set_place(err, file, line);
    return err->code = code;
}

sodet_status sodet_fail_option(sodet_err *err, const char *option, const char *format, ...)
{
    if (!err)
        return SODET_E_INVALID;
    /* `option "x": ...` reads well by itself; the configuration takes it apart again to add file, line and value. */
    char text[sizeof err->text];
    int head = snprintf(text, sizeof text, "option \"%s\": ", option ? option : "?");
    size_t at = head < 0 ? 0 : (size_t)head < sizeof text ? (size_t)head : sizeof text - 1;
    va_list list;
    va_start(list, format);
    int wanted = vsnprintf(text + at, sizeof text - at, format, list);
    va_end(list);
    memcpy(err->text, text, sizeof text);
    finish(err, wanted < 0 ? 0 : wanted + (int)at);
    set_place(err, "option", 0);
    return err->code = SODET_E_INVALID;
}

sodet_status sd_fail_in(sodet_err *err, sodet_status code, const char *format, ...)
{
    if (!err)
        return code;
    char text[sizeof err->text], old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list list;
    va_start(list, format);
    int head = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (head > 0 && head < (int)sizeof old && strncmp(old, text, (size_t)head) == 0 && old[head] && strchr(":,/", old[head]))
        return err->code = code; /* it names the object, or something below it, by itself */
    int wanted = head < 0 || head >= (int)sizeof text
                     ? head
                     : head + snprintf(text + head, sizeof text - (size_t)head, "%s%s", *old ? ": " : "", old);
    memcpy(err->text, text, sizeof text);
    finish(err, wanted);
    return err->code = code;
}
