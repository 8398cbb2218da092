/* Which bytes of device memory a dispatch touches: a bit for each byte, by page. */
#ifndef SOFTMETAL_COUNT_UNIQUE_H
#define SOFTMETAL_COUNT_UNIQUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNIQUE_PAGE = 4096 };

typedef struct unique_page {
    uint64_t seen[UNIQUE_PAGE / 64]; /* by any threadgroup */
    uint64_t many[UNIQUE_PAGE / 64]; /* by more than one */
    uint64_t now[UNIQUE_PAGE / 64];  /* by the current one */
    struct unique_page *next;        /* pages that the current one touched */
    bool listed;
} unique_page;

typedef struct unique_bytes {
    unique_page **pages;
    size_t length; /* bytes */
    unique_page *touched;
} unique_bytes;

bool unique_open(unique_bytes *u, size_t length);
void unique_close(unique_bytes *u);
/* false: out of memory */
bool unique_add(unique_bytes *u, size_t offset, size_t length);
void unique_group_end(unique_bytes *u);
/* Bytes that one threadgroup touched times scale, and the others once; at most the length. */
double unique_total(const unique_bytes *u, double scale);

#endif
