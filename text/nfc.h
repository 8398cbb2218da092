/* Unicode's normal form C: characters in as few code points as there are. */
#ifndef MICA_TEXT_NFC_H
#define MICA_TEXT_NFC_H

#include "base/status.h"

/* *out NULL: the text is in normal form as it is; else to be freed. Bytes that are
 * no UTF-8 stay what they are. */
mica_status mica__nfc(const char *text, size_t length, char **out, size_t *n);

#endif
