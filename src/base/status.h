/* The status of a call and its error message.
 *
 * The message is written once, where the cause is known; callers forward the
 * status with MICA_TRY. Work that fails on another thread copies its message into
 * an error record. The thread that waits for it raises the error again. */
#ifndef MICA_BASE_STATUS_H
#define MICA_BASE_STATUS_H

#include "mica.h"

enum { MICA__ERROR_TEXT = 480 };

/* An error that can be stored and passed between threads. */
typedef struct mica__error {
    mica_status status;
    char text[MICA__ERROR_TEXT];
} mica__error;

/* Stores the text as this thread's last error; returns the code. */
mica_status mica__fail(mica_status code, const char *fmt, ...) MICA_PRINTF(2, 3);

/* Copies this thread's last error into a record; and back, on another thread. */
void mica__error_capture(mica__error *error, mica_status status);
mica_status mica__error_raise(const mica__error *error);

/* The common message for out of memory: what was allocated, and its size. */
mica_status mica__fail_memory(const char *what, size_t nbytes);

#define MICA_TRY(expr)                                  \
    do {                                                \
        const mica_status try_status_ = (expr);         \
        if (try_status_ != MICA_OK) return try_status_; \
    } while (0)

#endif
