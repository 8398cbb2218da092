/* The thread that calls handlers of the program: of command buffers, of events, and of
 * work that was requested with a completion handler. Calls run in the order of queuing. */
#include "metal/metal.h"

#include <stdlib.h>

typedef struct call {
    struct call *next;
    enum { CALL_ONE, CALL_VALUE, CALL_RESULT, CALL_HANDLED } kind;
    sm_block *block;
    id argument, error;
    uint64_t value;
} call;

static call *calls, **calls_end = &calls;

/* Call with the lock held. Takes over a reference to the block. */
static bool add_call(call made)
{
    call *c = malloc(sizeof *c);
    if (c == NULL) {
        sm_failed("a handler is not called: out of memory");
        _Block_release(made.block);
        return false;
    }
    *c = made;
    objc_retain(c->argument);
    objc_retain(c->error);
    *calls_end = c;
    calls_end = &c->next;
    sm_wake();
    return true;
}

void sm_call_handler(sm_block *block, mtl_command_buffer *buffer)
{
    add_call((call){.kind = CALL_ONE, .block = block, .argument = buffer});
}

void sm_call_handled(mtl_command_buffer *buffer)
{
    if (!add_call((call){.kind = CALL_HANDLED, .argument = buffer})) buffer->handled = true;
}

void sm_call_notice(sm_block *block, mtl_event *event, uint64_t value)
{
    add_call((call){.kind = CALL_VALUE, .block = block, .argument = event, .value = value});
}

void sm_hand_over(const sm_block *handler, id object, id error)
{
    if (handler == NULL) {
        sm_failed("a completion handler is nil");
        return;
    }
    sm_block *block = _Block_copy(handler);
    sm_lock();
    if (block != NULL) add_call((call){.kind = CALL_RESULT, .block = block, .argument = object, .error = error});
    sm_unlock();
}

static void invoke(const call *c)
{
    void *pool = objc_autoreleasePoolPush();
    if (c->kind == CALL_ONE) ((void (*)(sm_block *, id))c->block->invoke)(c->block, c->argument);
    if (c->kind == CALL_VALUE) ((void (*)(sm_block *, id, uint64_t))c->block->invoke)(c->block, c->argument, c->value);
    if (c->kind == CALL_RESULT) ((void (*)(sm_block *, id, id))c->block->invoke)(c->block, c->argument, c->error);
    objc_autoreleasePoolPop(pool);
    _Block_release(c->block);
    if (c->kind == CALL_HANDLED) return;
    objc_release(c->argument);
    objc_release(c->error);
}

void *sm_handler_main(void *nothing)
{
    sm_lock();
    for (;;) {
        while (calls == NULL) sm_wait_change(0);
        call *c = calls;
        calls = c->next;
        if (calls == NULL) calls_end = &calls;
        sm_unlock();
        invoke(c);
        sm_lock();
        if (c->kind == CALL_HANDLED) {
            /* Released before the waiting thread wakes, which may count objects next. A completed command buffer
             * holds no object of the program, so its release runs no code that needs the lock. */
            ((mtl_command_buffer *)c->argument)->handled = true;
            objc_release(c->argument);
            sm_wake();
        }
        free(c);
    }
    return nothing;
}
