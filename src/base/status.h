/* The status of a call and the sentence that goes with it.
 *
 * The text is written once, on the thread and at the place where the cause is
 * known; callers forward the code with MICA_TRY. Work that fails on another
 * thread copies its text into an error record and raises it again on the
 * thread that waits. */
#ifndef MICA_BASE_STATUS_H
#define MICA_BASE_STATUS_H

#include "mica.h"

enum { MICA__ERROR_TEXT = 480 };

/* A failure that can be stored and carried between threads. */
typedef struct mica__error {
    mica_status status;
    char text[MICA__ERROR_TEXT];
} mica__error;

/* Record the text as this thread's last error; returns the code. */
mica_status mica__fail(mica_status code, const char *fmt, ...) MICA_PRINTF(2, 3);

/* This thread's last error, into a record; and back, on another thread. */
void mica__error_capture(mica__error *error, mica_status status);
mica_status mica__error_raise(const mica__error *error);

/* Out of memory has one wording: what was wanted, and how much. */
mica_status mica__fail_memory(const char *what, size_t nbytes);

#define MICA_TRY(expr)                                  \
    do {                                                \
        const mica_status try_status_ = (expr);         \
        if (try_status_ != MICA_OK) return try_status_; \
    } while (0)

#endif
