/* Unicode normalization form C (NFC): characters composed into as few code points as possible. */
#ifndef MICA_TEXT_NFC_H
#define MICA_TEXT_NFC_H

#include "base/status.h"

/* *out is NULL if the text needs no change; otherwise the caller frees it with mica__free.
 * Bytes that are not valid UTF-8 are kept. */
mica_status mica__nfc(const char *text, size_t length, char **out, size_t *n);

#endif
