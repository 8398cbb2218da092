/* The device side: decides which pass of which command buffer runs next, and when.
 *
 * One thread is the device. Another thread calls handlers, because a program may commit while
 * it holds a lock that its handler takes. Both start with the first command buffer.
 * One lock guards all mutable state; one condition variable signals each change.
 *
 * Command buffers of one queue start in the order in which they were enqueued, those of
 * different queues in any order. A pass that waits for an event blocks. SM_EXEC chooses:
 *   async    (default) the device runs concurrently with the program, as a GPU does
 *   early    commit returns when everything that can run has run
 *   late     nothing runs before a thread waits for it or reads its status
 *   shuffle  the next pass is chosen at random among those that Metal allows: any queue, and
 *            within a queue any pass that no earlier one blocks (a fence, an event, a buffer
 *            whose hazards Metal tracks); whether to wait for a demand is random too
 * Late and shuffle run all work after 50 ms without a demand (SM_LATE=seconds), because
 * a program may wait for its handler. */
#include "metal/metal.h"
#include "settings/settings.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

sm_string sm_command_domain = SM_STRING("MTLCommandBufferErrorDomain");
SM_API sm_string *const MTLCommandBufferErrorDomain = &sm_command_domain;

static double late_seconds, stall_seconds;

/* In the order of the words of SM_EXEC (settings.def). */
typedef enum sm_exec { SM_EXEC_ASYNC, SM_EXEC_EARLY, SM_EXEC_LATE, SM_EXEC_SHUFFLE } sm_exec;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static pthread_t handler_thread;
static mtl_command_buffer *first; /* enqueued, not completed; in order of enqueuing */
static bool demanded, idle = true;
static sm_exec mode; /* read from the environment at each commit, so that a program may change it in between */
static uint64_t changes, next_serial = 1;
static double progress; /* time of the last commit or run */

/* ---- time, lock, chance --------------------------------------------------------------------- */

double sm_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *device_main(void *nothing);

static void start(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_t device_thread;
    if (pthread_create(&handler_thread, NULL, sm_handler_main, NULL) != 0 ||
        pthread_create(&device_thread, NULL, device_main, NULL) != 0) {
        sm_failed("the threads of the device cannot start: %s", strerror(errno));
        return;
    }
    pthread_detach(handler_thread);
    pthread_detach(device_thread);
}

void sm_lock(void)
{
    pthread_once(&started, start);
    pthread_mutex_lock(&lock);
}
void sm_unlock(void) { pthread_mutex_unlock(&lock); }

void sm_wake(void)
{
    changes++;
    pthread_cond_broadcast(&changed);
}

bool sm_wait_change(double deadline)
{
    if (deadline <= 0) return pthread_cond_wait(&changed, &lock) == 0;
    struct timespec until = {(time_t)deadline, (long)((deadline - (double)(time_t)deadline) * 1e9)};
    return pthread_cond_timedwait(&changed, &lock, &until) != ETIMEDOUT;
}

void sm_demand(void)
{
    if (demanded || first == NULL) return;
    demanded = true;
    sm_wake();
}

bool sm_on_handler_thread(void) { return pthread_equal(pthread_self(), handler_thread) != 0; }

bool sm_shuffled(void)
{
    sm_lock();
    const bool shuffled = mode == SM_EXEC_SHUFFLE;
    sm_unlock();
    return shuffled;
}

static uint64_t random_state;

/* Call with the lock held, in the thread that commits. */
static void read_settings(void)
{
    mode = (sm_exec)sm_setting_word(SM_SET_EXEC);
    late_seconds = sm_setting_seconds(SM_SET_LATE, 0.05);
    stall_seconds = sm_setting_seconds(SM_SET_STALL, 60);
    progress = sm_now();
    if (random_state == 0) random_state = sm_setting_integer(SM_SET_SEED, 1) * 2 + 1;
}

/* Called by the device thread only, which starts after the seed was read. */
uint64_t sm_random(void)
{
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t z = random_state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- command buffers ----------------------------------------------------------------------------- */

void sm_enqueue(mtl_command_buffer *buffer)
{
    sm_lock();
    mtl_command_buffer **end = &first;
    while (*end != NULL) end = &(*end)->next;
    *end = objc_retain(buffer);
    buffer->status = MTL_ENQUEUED;
    buffer->serial = next_serial++;
    sm_unlock();
}

void sm_submit(mtl_command_buffer *buffer)
{
    if (buffer->status == MTL_NOT_ENQUEUED) sm_enqueue(buffer);
    sm_lock();
    buffer->status = MTL_COMMITTED;
    buffer->kernel_start = sm_now();
    read_settings();
    idle = false;
    sm_wake();
    if (mode == SM_EXEC_EARLY)
        while (!idle) sm_wait_change(0);
    sm_unlock();
}

/* Returns whether a pass waits for a fence that no encoder updates: the wait has no effect, which is hardly meant. */
static bool waits_in_vain(const mtl_command_buffer *buffer)
{
    for (size_t i = 0; i < buffer->count; i++)
        for (size_t f = 0; f < buffer->passes[i].fences_count; f++) {
            const mtl_pass_fence *fence = &buffer->passes[i].fences[f];
            if (!fence->update && !atomic_load(&fence->fence->updated)) return true;
        }
    return false;
}

/* Returns the error that prevents the buffer from running; NULL: none. */
static char *refusal(const mtl_command_buffer *buffer, mtl_command_error *code)
{
    char text[256];
    if (buffer->is_faulty) {
        *code = buffer->fault;
        snprintf(text, sizeof text, "command buffer error %d, injected by SM_FAULT", (int)buffer->fault);
        return strdup(text);
    }
    *code = MTL_ERROR_INVALID_RESOURCE;
    if (buffer->invalid != NULL) return strdup(buffer->invalid);
    if (waits_in_vain(buffer)) return strdup("waitForFence: no encoder updates the fence (updateFence:)");
    for (size_t i = 0; i < buffer->used_count; i++)
        if (!sm_buffer_alive(buffer->used[i].serial)) {
            snprintf(text, sizeof text,
                     "buffer number %llu was released before the command buffer that uses it completed "
                     "(unretained references)",
                     (unsigned long long)buffer->used[i].serial);
            return strdup(text);
        }
    return NULL;
}

/* Call with the lock held. It is unlocked while the objects that the buffer kept are released,
 * which may call the program. Releases the buffer. */
static void complete(mtl_command_buffer *buffer)
{
    sm_unlock();
    objc_release(buffer->kept);
    buffer->kept = NULL;
    sm_lock();
    mtl_command_buffer **link = &first;
    while (*link != buffer) link = &(*link)->next;
    *link = buffer->next;
    buffer->next = NULL;
    buffer->end = buffer->kernel_end = sm_now();
    if (buffer->problem != NULL) {
        const char *label = sm_label_text(&buffer->base);
        sm_failed("command buffer %llu%s%s: %s", (unsigned long long)buffer->serial, *label == 0 ? "" : " ", label,
                  buffer->problem);
        buffer->error = sm_error_new(&sm_command_domain, buffer->problem_code, buffer->problem);
        free(buffer->problem);
        buffer->problem = NULL;
        /* A failed buffer still signals its events, so that no thread waits for ever. */
        for (size_t i = 0; i < buffer->count; i++)
            if (!buffer->passes[i].ran && buffer->passes[i].kind == MTL_PASS_SIGNAL &&
                buffer->passes[i].event->value < buffer->passes[i].value) {
                buffer->passes[i].event->value = buffer->passes[i].value;
                sm_event_notify(buffer->passes[i].event);
            }
    }
    buffer->status = buffer->error == NULL ? MTL_COMPLETED : MTL_FAILED;
    buffer->queue->open--;
    buffer->counted = false;
    demanded = false; /* a thread that waits for another buffer demands again */
    for (size_t i = 0; i < buffer->completed_count; i++) {
        sm_call_handler(buffer->completed[i], buffer);
        buffer->completed[i] = NULL;
    }
    buffer->completed_count = 0;
    sm_call_handled(buffer);
    objc_release(buffer);
    sm_wake();
}

/* Call with the lock held. */
static void schedule(mtl_command_buffer *buffer)
{
    if (buffer->status != MTL_COMMITTED) return;
    buffer->status = MTL_SCHEDULED;
    buffer->start = sm_now();
    for (size_t i = 0; i < buffer->scheduled_count; i++) {
        sm_call_handler(buffer->scheduled[i], buffer);
        buffer->scheduled[i] = NULL;
    }
    buffer->scheduled_count = 0;
    sm_wake();
}

/* Call with the lock held. It is unlocked while the pass runs. */
static void step(mtl_command_buffer *buffer, mtl_pass *pass)
{
    if (buffer->status == MTL_COMMITTED) {
        buffer->problem = refusal(buffer, &buffer->problem_code);
        schedule(buffer);
    }
    if (buffer->problem == NULL && pass != NULL) {
        pass->ran = true;
        buffer->done++;
        if (pass->kind == MTL_PASS_SIGNAL) {
            pass->event->value = pass->value;
            sm_event_notify(pass->event);
            sm_wake();
        } else if (pass->kind != MTL_PASS_WAIT) {
            sm_unlock();
            void *pool = objc_autoreleasePoolPush();
            char *problem = sm_run_pass(pass, &buffer->problem_code);
            objc_autoreleasePoolPop(pool);
            sm_lock();
            buffer->problem = problem;
        }
    }
    if (buffer->problem != NULL) buffer->done = buffer->count; /* skip the remaining passes */
}

/* ---- what may run ----------------------------------------------------------------------------------- */

static bool is_head(const mtl_command_buffer *buffer)
{
    const mtl_command_buffer *b = first;
    while (b->queue != buffer->queue) b = b->next;
    return b == buffer;
}

/* Returns whether the later pass of a queue must wait for the earlier one. */
static bool holds_back(const mtl_pass *earlier, const mtl_pass *later)
{
    if (earlier->event != NULL || later->event != NULL) return true;
    for (size_t i = 0; i < earlier->fences_count; i++)
        for (size_t j = 0; j < later->fences_count; j++)
            if (earlier->fences[i].fence == later->fences[j].fence &&
                earlier->fences[i].update != later->fences[j].update)
                return true;
    for (size_t i = 0; i < earlier->tracked_count; i++)
        for (size_t j = 0; j < later->tracked_count; j++)
            if (earlier->tracked[i] == later->tracked[j]) return true;
    return false;
}

static bool pass_is_free(const mtl_command_buffer *owner, const mtl_pass *pass)
{
    if (pass->kind == MTL_PASS_WAIT && pass->event->value < pass->value) return false;
    for (const mtl_command_buffer *b = first; b != NULL; b = b->next) {
        if (b->queue != owner->queue) continue;
        if (b->status < MTL_COMMITTED) return false; /* enqueued but not committed: its passes are unknown */
        for (size_t i = 0; i < b->count; i++) {
            if (&b->passes[i] == pass) return true;
            if (!b->passes[i].ran && b->done < b->count && holds_back(&b->passes[i], pass)) return false;
        }
    }
    return true;
}

/* The next pass in order, if the buffer is the first of its queue. */
static bool next_in_order(const mtl_command_buffer *buffer, mtl_pass **pass)
{
    *pass = NULL;
    if (!is_head(buffer) || buffer->status < MTL_COMMITTED) return false;
    if (buffer->done == buffer->count ||
        (buffer->status == MTL_COMMITTED && (buffer->is_faulty || buffer->invalid != NULL)))
        return true;
    for (size_t i = 0; *pass == NULL; i++)
        if (!buffer->passes[i].ran) *pass = &buffer->passes[i];
    return (*pass)->kind != MTL_PASS_WAIT || (*pass)->event->value >= (*pass)->value;
}

typedef struct choice {
    mtl_command_buffer *buffer;
    mtl_pass *pass; /* NULL: no pass left, only completion */
} choice;

static void draw(choice *chosen, uint64_t *candidates, mtl_command_buffer *buffer, mtl_pass *pass)
{
    if (sm_random() % ++*candidates == 0) *chosen = (choice){buffer, pass};
}

static choice choose(void)
{
    choice chosen = {NULL, NULL};
    uint64_t candidates = 0;
    for (mtl_command_buffer *b = first; b != NULL; b = b->next) {
        mtl_pass *pass;
        if (next_in_order(b, &pass)) {
            if (mode != SM_EXEC_SHUFFLE) return (choice){b, pass};
            draw(&chosen, &candidates, b, pass);
        }
        if (mode != SM_EXEC_SHUFFLE || b->status < MTL_COMMITTED || b->is_faulty || b->invalid != NULL) continue;
        for (size_t i = 0; i < b->count && b->done < b->count; i++)
            if (!b->passes[i].ran && pass_is_free(b, &b->passes[i])) draw(&chosen, &candidates, b, &b->passes[i]);
    }
    return chosen;
}

/* Returns a committed buffer if nothing has run for long: it waits for an event that is never signalled. */
static mtl_command_buffer *stalled(void)
{
    mtl_command_buffer *b = first;
    while (b != NULL && b->status < MTL_COMMITTED) b = b->next;
    return sm_now() - progress > stall_seconds ? b : NULL;
}

static bool wait_for_demand(void) { return mode == SM_EXEC_LATE || (mode == SM_EXEC_SHUFFLE && sm_random() % 2 == 0); }

static void *device_main(void *nothing)
{
    sm_lock();
    for (;;) {
        choice next = choose();
        if (next.buffer != NULL && !demanded && wait_for_demand()) {
            const double until = sm_now() + late_seconds;
            while (!demanded && sm_wait_change(until)) {
            }
            next = choose();
        }
        if (next.buffer != NULL) {
            step(next.buffer, next.pass);
            progress = sm_now();
            if (next.buffer->done == next.buffer->count && is_head(next.buffer)) complete(next.buffer);
            continue;
        }
        mtl_command_buffer *stuck = stalled();
        if (stuck != NULL) {
            stuck->problem = strdup("the event that it waits for was never signalled (SM_STALL)");
            stuck->problem_code = MTL_ERROR_TIMEOUT;
            complete(stuck);
            continue;
        }
        idle = true;
        sm_wake();
        const uint64_t seen = changes;
        while (changes == seen)
            if (!sm_wait_change(first == NULL ? 0 : progress + stall_seconds + 0.01)) break;
        idle = false;
    }
    return nothing;
}
