/* The scope: owner of the arrays made through it and keeper of the first
 * failure. */
#ifndef MICA_ARRAY_SCOPE_H
#define MICA_ARRAY_SCOPE_H

#include "array/array.h"

struct mica_scope {
    uint64_t magic;                /* MICA__SCOPE_OPEN while open; checked at each call      */
    uint64_t id;
    struct mica_engine *engine;
    mica__memory *memory;          /* of the engine                                          */
    mica_array *nodes;             /* newest first                                           */
    mica__node_list spare;         /* blocks for new ones; the engine's, lent                */
    mica__error error;             /* the first failure                                      */
    int reverses;                  /* reverse passes under way, each inside the one before   */
    unsigned process;              /* mica__fork_count() when it began                       */
    struct mica_scope *next;       /* engine's list of scope records                         */
};

#define MICA__SCOPE_OPEN 0x6d6963615f6f706eull   /* "mica_opn" */
#define MICA__SCOPE_ENDED 0x6d6963615f656e64ull  /* "mica_end" */

/* Usable? Sets the thread's error if not (NULL, ended). op names the caller. */
mica_status mica__scope_check(mica_scope *s, const char *op);

/* Record a failure: sets the thread's error and, if it is the first, the
 * scope's. Returns NULL so that a constructor can `return mica__scope_fail(...)`. */
mica_array *mica__scope_fail(mica_scope *s, mica_status code, const char *fmt, ...) MICA_PRINTF(3, 4);
/* The same for a failure that already set the thread's error. */
mica_array *mica__scope_failed(mica_scope *s, mica_status code);

/* Hand a new node (refs 1) over to the scope: sets serial, scope and engine.
 * NULL (there was no memory for one) becomes the scope's failure. */
mica_array *mica__scope_own(mica_scope *s, mica_array *node);

/* Serial of the newest node anywhere: nodes made later have larger ones. */
uint64_t mica__serial_now(void);

#endif
