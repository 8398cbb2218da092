/* See unique.h. */
#include "unique.h"

#include <stdlib.h>

static size_t pages_of(size_t length) { return (length + UNIQUE_PAGE - 1) / UNIQUE_PAGE; }

bool unique_open(unique_bytes *u, size_t length)
{
    *u = (unique_bytes){calloc(pages_of(length) + 1, sizeof *u->pages), length, NULL};
    return u->pages != NULL;
}

void unique_close(unique_bytes *u)
{
    for (size_t i = 0; u->pages && i < pages_of(u->length); i++) free(u->pages[i]);
    free(u->pages);
    *u = (unique_bytes){0};
}

static void set_bits(uint64_t *bits, size_t first, size_t count)
{
    while (count) {
        const size_t at = first % 64, n = count < 64 - at ? count : 64 - at;
        bits[first / 64] |= (n == 64 ? ~(uint64_t)0 : (((uint64_t)1 << n) - 1)) << at;
        first += n;
        count -= n;
    }
}

bool unique_add(unique_bytes *u, size_t offset, size_t length)
{
    while (length) {
        const size_t at = offset % UNIQUE_PAGE, n = length < UNIQUE_PAGE - at ? length : UNIQUE_PAGE - at;
        unique_page **page = &u->pages[offset / UNIQUE_PAGE];
        if (!*page) *page = calloc(1, sizeof **page);
        if (!*page) return false;
        set_bits((*page)->now, at, n);
        if (!(*page)->listed) {
            (*page)->listed = true;
            (*page)->next = u->touched;
            u->touched = *page;
        }
        offset += n;
        length -= n;
    }
    return true;
}

void unique_group_end(unique_bytes *u)
{
    for (unique_page *p = u->touched; p; p = p->next) {
        for (size_t i = 0; i < UNIQUE_PAGE / 64; i++) {
            p->many[i] |= p->seen[i] & p->now[i];
            p->seen[i] |= p->now[i];
            p->now[i] = 0;
        }
        p->listed = false;
    }
    u->touched = NULL;
}

double unique_total(const unique_bytes *u, double scale)
{
    double once = 0, many = 0;
    for (size_t k = 0; u->pages && k < pages_of(u->length); k++) {
        const unique_page *p = u->pages[k];
        for (size_t i = 0; p && i < UNIQUE_PAGE / 64; i++) {
            once += __builtin_popcountll(p->seen[i] & ~p->many[i]);
            many += __builtin_popcountll(p->many[i]);
        }
    }
    const double total = once * scale + many;
    return total < (double)u->length ? total : (double)u->length;
}
