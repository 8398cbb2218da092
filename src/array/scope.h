/* The scope: owns the arrays that are created in it and stores the first error. */
#ifndef MICA_ARRAY_SCOPE_H
#define MICA_ARRAY_SCOPE_H

#include "array/array.h"

struct mica_scope {
    uint64_t magic;                /* MICA__SCOPE_OPEN while open; checked at each call      */
    uint64_t id;
    struct mica_engine *engine;
    mica__memory *memory;          /* of the engine                                          */
    mica_array *nodes;             /* newest first                                           */
    mica__node_list spare;         /* blocks for new nodes; borrowed from the engine         */
    mica__error error;             /* the first error                                        */
    int reverses;                  /* number of nested reverse passes that are running       */
    unsigned process;              /* mica__fork_count() when it began                       */
    struct mica_scope *next;       /* engine's list of scope records                         */
};

#define MICA__SCOPE_OPEN 0x6d6963615f6f706eull   /* "mica_opn" */
#define MICA__SCOPE_ENDED 0x6d6963615f656e64ull  /* "mica_end" */

/* MICA_OK if the scope is open; else sets the thread's error. op names the caller. */
mica_status mica__scope_check(mica_scope *s, const char *op);

/* Sets the thread's error and, if it is the first, the scope's error. Returns NULL,
 * so that a constructor can `return mica__scope_fail(...)`. */
mica_array *mica__scope_fail(mica_scope *s, mica_status code, const char *fmt, ...) MICA_PRINTF(3, 4);
/* The same when the thread's error is already set. */
mica_array *mica__scope_failed(mica_scope *s, mica_status code);

/* Gives a new node (refs 1) to the scope: sets serial, scope and engine. If node is
 * NULL (out of memory), stores the thread's error in the scope. */
mica_array *mica__scope_own(mica_scope *s, mica_array *node);

/* Serial of the newest node of the process; later nodes have larger serials. */
uint64_t mica__serial_now(void);

#endif
