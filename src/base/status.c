/* Statuses, the version, and the error message of the last failure. The message
 * is stored per thread, so that a call can fail without an object to store it in. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error_text[MICA__ERROR_TEXT];

const char *mica_version(void) { return MICA_VERSION_STRING; }

const char *mica_status_text(mica_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text) \
    case name: return text;
        MICA_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

const char *mica_last_error(void) { return last_error_text; }

mica_status mica__fail(mica_status code, const char *fmt, ...)
{
    /* Formatted into a copy first: an argument may be the old message. */
    char text[MICA__ERROR_TEXT];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0) text[0] = '\0';
    memcpy(last_error_text, text, strlen(text) + 1);
    return code;
}

void mica__error_capture(mica__error *error, mica_status status)
{
    error->status = status;
    memcpy(error->text, last_error_text, sizeof error->text);
    if (status == MICA_OK) error->text[0] = '\0';
}

mica_status mica__error_raise(const mica__error *error)
{
    if (error->status != MICA_OK) memcpy(last_error_text, error->text, sizeof error->text);
    return error->status;
}

mica_status mica__fail_memory(const char *what, size_t nbytes)
{
    return mica__fail(MICA_ERR_MEMORY, "out of memory: %s needs %zu bytes", what, nbytes);
}
