/* See packed.h. Each buffer has a short list of its copies. All copies are also in one
 * list of the memory object, so that they can be freed together. A bit of a 32-bit mask
 * records that a view was used before. Two views may share a bit; then the second is
 * packed at its first use, which is early but correct. */
#include "memory/packed.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

typedef struct mica__packed {
    mica__packed_key key;
    mica__buffer *owner, *copy;
    struct mica__packed *next;              /* list of one buffer */
    struct mica__packed *after, **before;   /* list of all copies */
} mica__packed;

bool mica__packed_init(mica__packed_set *set)
{
    atomic_init(&set->on, true);
    atomic_init(&set->count, 0);
    atomic_init(&set->nbytes, 0);
    set->first = NULL;
    return pthread_mutex_init(&set->lock, NULL) == 0;
}

void mica__packed_destroy(mica__packed_set *set) { pthread_mutex_destroy(&set->lock); }

static mica__packed *packed_find(const mica__buffer *buffer, const mica__packed_key *key)
{
    mica__packed *p = buffer->packed;
    while (p && memcmp(&p->key, key, sizeof *key) != 0) p = p->next;
    return p;
}

/* Under the lock. Returns true if the caller must make the copy now. */
static bool packed_claim(mica__buffer *buffer, const mica__packed_key *key, bool at_once)
{
    const uint32_t bit = 1u << mica__hash(key, sizeof *key, 0) % 32;
    const bool again = at_once || (buffer->packed_seen & bit);
    buffer->packed_seen |= bit;
    if (!again || buffer->packing) return false;
    buffer->packing = true;
    return true;
}

static void packed_add(mica__packed_set *set, mica__packed *p)
{
    p->next = p->owner->packed;
    p->owner->packed = p;
    p->after = set->first;
    p->before = &set->first;
    if (p->after) p->after->before = &p->after;
    set->first = p;
    atomic_fetch_add(&set->count, 1);
    atomic_fetch_add(&set->nbytes, p->copy->capacity);
}

static void packed_remove(mica__packed_set *set, mica__packed *p)
{
    *p->before = p->after;
    if (p->after) p->after->before = p->before;
    atomic_fetch_sub(&set->count, 1);
    atomic_fetch_sub(&set->nbytes, p->copy->capacity);
}

/* Frees a list linked by next, outside the lock. */
static uint64_t packed_free(mica__packed *list)
{
    uint64_t nbytes = 0;
    for (mica__packed *p = list, *next; p; p = next) {
        next = p->next;
        nbytes += p->copy->capacity;
        mica__buffer_drop(p->copy);
        mica__free(p);
    }
    return nbytes;
}

/* The copy's record and memory; NULL if there is no room. The last error is left
 * unchanged, because having no copy is not an error. */
static mica__packed *packed_new(mica__buffer *owner, const mica__packed_key *key, size_t nbytes)
{
    mica__error before;
    if (mica__memory_round(nbytes) > mica__memory_room(owner->memory)) return NULL;
    mica__packed *p = mica__alloc_zero(1, sizeof *p);
    if (!p) return NULL;
    mica__error_capture(&before, MICA_ERR_MEMORY);
    if (mica__buffer_new(owner->memory, nbytes, &p->copy) != MICA_OK) {
        mica__error_raise(&before);
        mica__free(p);
        return NULL;
    }
    p->key = *key;
    p->owner = owner;
    return p;
}

mica__buffer *mica__packed_get(mica__buffer *buffer, const mica__packed_key *key, const mica__packing *packing)
{
    mica__packed_set *set = mica__memory_packed(buffer->memory);
    if (!atomic_load_explicit(&set->on, memory_order_relaxed)) return NULL;
    pthread_mutex_lock(&set->lock);
    mica__packed *p = packed_find(buffer, key);
    mica__buffer *copy = p ? mica__buffer_keep(p->copy) : NULL;
    const bool mine = !copy && packed_claim(buffer, key, packing->at_once);
    pthread_mutex_unlock(&set->lock);
    if (!mine) return copy;

    p = packed_new(buffer, key, packing->nbytes);
    if (p) {
        packing->fill(packing->context, p->copy->data);
        if (buffer->file_pages) mica__pages_leave((const char *)buffer->data + key->offset, packing->replaces);
    }
    pthread_mutex_lock(&set->lock);
    buffer->packing = false;
    if (p) {
        packed_add(set, p);
        copy = mica__buffer_keep(p->copy);
    }
    pthread_mutex_unlock(&set->lock);
    return copy;
}

void mica__packed_release(mica__packed_set *set, mica__buffer *buffer)
{
    pthread_mutex_lock(&set->lock);
    mica__packed *list = buffer->packed;
    for (mica__packed *p = list; p; p = p->next) packed_remove(set, p);
    buffer->packed = NULL;
    pthread_mutex_unlock(&set->lock);
    packed_free(list);
}

uint64_t mica__packed_trim(mica__packed_set *set)
{
    mica__packed *list = NULL;
    pthread_mutex_lock(&set->lock);
    for (mica__packed *p; (p = set->first) != NULL;) {
        packed_remove(set, p);
        p->owner->packed = NULL; /* all copies are removed */
        p->next = list;
        list = p;
    }
    pthread_mutex_unlock(&set->lock);
    return packed_free(list);
}
