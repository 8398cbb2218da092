/* The pages of shadow.h and their hash table. */
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

static size_t slot_of(const sm_shadow *s, uintptr_t number)
{
    size_t i = (size_t)((uint64_t)number * 0x9e3779b97f4a7c15u >> 20) & (s->room - 1);
    while (s->table[i] && s->table[i]->number != number) i = (i + 1) & (s->room - 1);
    return i;
}

static bool make_room(sm_shadow *s)
{
    if (s->count * 2 < s->room) return true;
    sm_shadow larger = {.room = s->room ? s->room * 2 : 64, .count = s->count};
    larger.table = calloc(larger.room, sizeof *larger.table);
    if (!larger.table) return false;
    for (size_t i = 0; i < s->room; i++)
        if (s->table[i]) larger.table[slot_of(&larger, s->table[i]->number)] = s->table[i];
    free(s->table);
    *s = larger;
    return true;
}

static bool refine(sm_shadow_page *p, int shift)
{
    size_t count = (size_t)1 << (SHADOW_BITS - shift);
    sm_cell *cells = malloc(count * sizeof *cells);
    if (!cells) return false;
    for (size_t i = 0; i < count; i++) cells[i] = p->cells[i >> (p->shift - shift)];
    free(p->cells);
    p->cells = cells;
    p->shift = shift;
    return true;
}

sm_shadow_page *sm_shadow_page_of(sm_shadow *s, uintptr_t address, size_t size)
{
    uintptr_t number = address >> SHADOW_BITS;
    sm_shadow_page *p = s->last;
    if (!p || p->number != number) {
        if (!make_room(s)) return NULL;
        size_t i = slot_of(s, number);
        p = s->table[i];
        if (!p) {
            p = malloc(sizeof *p);
            if (!p) return NULL;
            *p = (sm_shadow_page){number, 2, calloc((size_t)1 << (SHADOW_BITS - 2), sizeof *p->cells)};
            if (!p->cells) {
                free(p);
                return NULL;
            }
            s->table[i] = p;
            s->count++;
        }
        s->last = p;
    }
    int shift = p->shift;
    while (shift && ((address | size) & (((uintptr_t)1 << shift) - 1))) shift--;
    return shift == p->shift || refine(p, shift) ? p : NULL;
}

void sm_shadow_clear(sm_shadow *s, uintptr_t address, size_t size)
{
    for (size_t i = 0; i < s->room; i++) {
        sm_shadow_page *p = s->table[i];
        if (!p) continue;
        for (size_t k = 0; k < (size_t)1 << (SHADOW_BITS - p->shift); k++) {
            uintptr_t at = (p->number << SHADOW_BITS) + (k << p->shift);
            if (at >= address && at - address < size) p->cells[k] = (sm_cell){0};
        }
    }
}

void sm_shadow_free(sm_shadow *s)
{
    for (size_t i = 0; i < s->room; i++) {
        if (!s->table[i]) continue;
        free(s->table[i]->cells);
        free(s->table[i]);
    }
    free(s->table);
    *s = (sm_shadow){0};
}
