/* Fibers and their scheduling order.
 *
 * A thread that must wait does not return to a scheduler. It picks the next thread
 * and switches to it directly; lanes of its own simdgroup are preferred. The last
 * lane that arrives at a simd operation or a barrier continues without a switch. A
 * thread that has ended starts the next one on its own stack, so a kernel without
 * barriers never switches.
 *
 * An exchange between lanes is completed when no lane of the simdgroup can run. The
 * lanes that wait at the same call site (same return address), and no others, take
 * part. Divergent code and lanes that have ended need this. If lanes wait at several
 * sites, the site at the lower code address is first: lanes still inside a loop run
 * before those that have left it. */
#include "engine.h"

#include "../check/check.h"
#include "../count/tally.h"
#include "../msl/text.h"
#include "signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Thread_local sm_engine *sm_current;

uint32_t sm_engine_random(sm_engine *e)
{
    e->random = e->random * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = e->random;
    x ^= x >> 33;
    return (uint32_t)((x * 0xff51afd7ed558ccdu) >> 32);
}

static unsigned any_bit(sm_engine *e, uint32_t mask)
{
    if (!e->random) return (unsigned)__builtin_ctz(mask);
    unsigned skip = sm_engine_random(e) % (unsigned)__builtin_popcount(mask);
    while (skip--) mask &= mask - 1;
    return (unsigned)__builtin_ctz(mask);
}

void sm_engine_where(const sm_engine *e, unsigned thread, char text[96])
{
    const uint16_t *p = e->positions[thread];
    const unsigned *g = e->group.position;
    snprintf(text, 96, "thread (%u, %u, %u) of threadgroup (%u, %u, %u)", p[0], p[1], p[2], g[0], g[1], g[2]);
}

_Noreturn void sm_engine_stop(sm_engine *e, sm_status status)
{
    e->status = status;
    void *unused;
    sm_switch(&unused, e->main);
    __builtin_unreachable();
}

/* ---- who is next ---- */

/* Releases the lanes that wait at one call site, with the values that they exchanged. */
static void release_lanes(sm_engine *e, unsigned simdgroup)
{
    uint32_t waiting = e->waiting[simdgroup], mask = 0;
    unsigned base = simdgroup * SM_SIMD_WIDTH;
    const void *site = NULL;
    for (uint32_t m = waiting; m; m &= m - 1) {
        const void *s = e->at[base + (unsigned)__builtin_ctz(m)].site;
        if (!site || s < site) site = s;
    }
    sm_record *r = &e->records[simdgroup];
    for (uint32_t m = waiting; m; m &= m - 1) {
        unsigned lane = (unsigned)__builtin_ctz(m);
        if (e->at[base + lane].site != site) continue;
        mask |= 1u << lane;
        memcpy(r->slots[lane].bytes, e->given[base + lane], e->at[base + lane].size);
    }
    e->loaded[simdgroup] = e->stored[simdgroup] = false;
    r->mask = mask;
    r->done = 0;
    r->random = e->random ? sm_engine_random(e) : 0;
    e->waiting[simdgroup] &= ~mask;
    e->ready[simdgroup] |= mask;
    if (e->tally && !e->waiting[simdgroup] && !e->at_barrier[simdgroup]) sm_tally_meet(e->tally, simdgroup);
    unsigned first = base + (unsigned)__builtin_ctz(mask);
    if (e->checker && e->at[first].flags) sm_check_simd_barrier(e->checker, simdgroup, e->at[first].flags);
}

static void barrier_misused(sm_engine *e, unsigned first, unsigned other, unsigned waiting)
{
    const unsigned *g = e->group.position;
    if (other != SM_NO_THREAD)
        sm_set_message(
            &e->message,
            "%s: threadgroup_barrier: threads wait at different barriers, line %u and line %u, in threadgroup (%u, "
            "%u, %u)",
            e->label, e->at[first].line, e->at[other].line, g[0], g[1], g[2]);
    else
        sm_set_message(
            &e->message,
            "%s:%u: threadgroup_barrier reached by %u of %u threads of threadgroup (%u, %u, %u): %u ended before it",
            e->label, e->at[first].line, waiting, e->group.threads, g[0], g[1], g[2], e->ended);
    sm_engine_stop(e, SM_CHECKED);
}

/* Releases in each simdgroup the lanes at the lowest code address; the others wait for the next barrier. */
static void release_earliest(sm_engine *e)
{
    e->active = 0;
    for (unsigned s = 0; s < e->simdgroups; s++) {
        const void *site = NULL;
        uint32_t at = e->at_barrier[s], go = 0;
        for (uint32_t m = at; m; m &= m - 1) {
            uint32_t bit = m & -m;
            const void *here = e->at[s * SM_SIMD_WIDTH + (unsigned)__builtin_ctz(m)].site;
            if (here == site) go |= bit;
            if (site && here >= site) continue;
            site = here;
            go = bit;
        }
        e->ready[s] = go;
        e->at_barrier[s] = at & ~go;
        if (go) e->active |= 1u << s;
    }
}

/* Called when all threads that have not ended wait at a barrier. Metal requires that all threads of a threadgroup
 * reach the same one. GPUs count simdgroups and not lanes, and third-party kernels rely on it (a barrier within
 * "if (lane == 0)", threads that have returned). So this is an error with SM_CHECK, else it behaves as on a GPU. */
static void release_barrier(sm_engine *e)
{
    unsigned first = SM_NO_THREAD, other = SM_NO_THREAD, waiting = 0;
    for (unsigned s = 0; s < e->simdgroups; s++) {
        for (uint32_t m = e->at_barrier[s]; m; m &= m - 1) {
            unsigned t = s * SM_SIMD_WIDTH + (unsigned)__builtin_ctz(m);
            waiting++;
            if (first == SM_NO_THREAD) first = t;
            if (e->at[t].line != e->at[first].line && other == SM_NO_THREAD) other = t;
        }
    }
    if (e->checker) {
        if (other != SM_NO_THREAD || e->ended) barrier_misused(e, first, other, waiting);
        sm_check_barrier(e->checker, e->at[first].flags);
    }
    if (other != SM_NO_THREAD) {
        release_earliest(e);
        return;
    }
    for (unsigned s = 0; s < e->simdgroups; s++) {
        if (e->tally) sm_tally_meet(e->tally, s);
        e->ready[s] = e->at_barrier[s];
        e->at_barrier[s] = 0;
        e->loaded[s] = e->stored[s] = false;
    }
    e->active = e->simdgroups == 32 ? ~0u : (1u << e->simdgroups) - 1;
}

/* Returns the thread to run next and removes it from ready or unstarted; SM_NO_THREAD: all have ended. */
static unsigned pick(sm_engine *e, bool *begins)
{
    unsigned s = e->current / SM_SIMD_WIDTH;
    if (e->random && e->active) s = any_bit(e, e->active);
    for (;;) {
        if (!(e->active >> s & 1)) {
            if (!e->active) {
                if (e->ended == e->group.threads) return SM_NO_THREAD;
                release_barrier(e);
            }
            s = any_bit(e, e->active);
        }
        uint32_t can = e->ready[s] | e->unstarted[s];
        if (!can && e->waiting[s]) {
            release_lanes(e, s);
            can = e->ready[s];
        }
        if (!can) {
            e->active &= ~(1u << s);
            continue;
        }
        unsigned lane = any_bit(e, can);
        uint32_t bit = 1u << lane;
        *begins = (e->unstarted[s] & bit) != 0;
        e->unstarted[s] &= ~bit;
        e->ready[s] &= ~bit;
        e->current = s * SM_SIMD_WIDTH + lane;
        if (e->tally) sm_tally_thread(e->tally, e->current);
        return e->current;
    }
}

/* ---- fibers ---- */

static void fiber_main(void)
{
    sm_engine *e = sm_current;
    for (;;) {
        unsigned t = e->current;
        e->fiber_of[t] = (uint16_t)e->fiber;
        sm_thread thread = {{e->positions[t][0], e->positions[t][1], e->positions[t][2]}, t, &e->group};
        e->module->entry(&thread);
        e->ended++;
        bool begins = false;
        unsigned next = pick(e, &begins);
        if (next != SM_NO_THREAD && begins) continue;
        unsigned self = e->fiber;
        e->idle[e->idle_count++] = (uint16_t)self;
        if (next == SM_NO_THREAD) {
            sm_switch(&e->fibers[self].sp, e->main);
        } else {
            e->fiber = e->fiber_of[next];
            sm_switch(&e->fibers[self].sp, e->fibers[e->fiber].sp);
        }
        e->fiber = self;
    }
}

static void fiber_reset(sm_engine *e, unsigned index)
{
    sm_fiber *f = &e->fibers[index];
    /* Stack tops have different offsets in a page: else the hot lines of all stacks share a few cache sets. */
    uintptr_t top = (uintptr_t)(f->stack + SM_STACK - 64 - (index * 5 % 32) * 128);
    void **sp = (void **)(top & ~(uintptr_t)63);
    void (*function)(void) = fiber_main;
#if defined(__aarch64__)
    sp -= 20;
    memset(sp, 0, 160);
    memcpy(&sp[1], &function, sizeof function); /* x30 */
#else
    *--sp = NULL; /* as after a call: the stack pointer is 8 off a multiple of 16 */
    sp--;
    memcpy(sp, &function, sizeof function);
    sp -= 6;
    memset(sp, 0, 48);
#endif
    f->sp = sp;
    f->free = (void *)((uintptr_t)(f->arrays + SM_STACK - SM_SLACK - (index * 5 % 32) * 128) & ~(uintptr_t)63);
}

static size_t slot_length(void) { return 2 * ((size_t)SM_STACK + (size_t)sysconf(_SC_PAGESIZE)); }

static unsigned idle_fiber(sm_engine *e)
{
    if (e->idle_count) return e->idle[--e->idle_count];
    unsigned index = e->fibers_made++;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *slot = e->stacks + index * slot_length(); /* the page before each of the two stays inaccessible */
    e->fibers[index].stack = slot + page;
    e->fibers[index].arrays = slot + slot_length() - SM_STACK;
    mprotect(e->fibers[index].stack, SM_STACK, PROT_READ | PROT_WRITE);
    mprotect(e->fibers[index].arrays, SM_STACK, PROT_READ | PROT_WRITE);
    fiber_reset(e, index);
    return index;
}

static void out_of_time(sm_engine *e)
{
    char where[96];
    sm_engine_where(e, e->current, where);
    sm_set_message(&e->message, "%s:%u: the kernel did not end in time (SM_TIMEOUT); it was in %s", e->label,
                   e->at[e->current].line, where);
    sm_engine_stop(e, SM_TIMEOUT);
}

/* Call when the current thread is marked as waiting. Returns when it can continue. */
static void wait_turn(sm_engine *e)
{
    if (atomic_load_explicit(&e->overdue, memory_order_relaxed)) out_of_time(e);
    unsigned self = e->current, fiber = e->fiber;
    bool begins = false;
    unsigned next = pick(e, &begins);
    if (next == self) return;
    e->fiber = begins ? idle_fiber(e) : e->fiber_of[next];
    sm_switch(&e->fibers[fiber].sp, e->fibers[e->fiber].sp);
}

/* ---- what kernels call ---- */

static sm_record *rt_exchange_at(const void *value, unsigned size, unsigned line, unsigned flags, const void *site)
{
    sm_engine *e = sm_current;
    unsigned t = e->current, s = t / SM_SIMD_WIDTH;
    e->at[t].site = site;
    e->at[t].line = line;
    e->at[t].size = size;
    e->at[t].flags = flags;
    memcpy(e->given[t], value, size);
    e->waiting[s] |= 1u << t % SM_SIMD_WIDTH;
    wait_turn(e);
    sm_record *r = &e->records[s];
    r->lane = t % SM_SIMD_WIDTH;
    return r;
}

static sm_record *rt_exchange_from(const void *value, unsigned size, const void *site)
{
    return rt_exchange_at(value, size, 0, 0, site);
}

static void rt_simd_barrier_from(unsigned flags, unsigned line, const void *site)
{
    rt_exchange_at("", 0, line, flags, site);
}

static sm_record *rt_exchange(const void *value, unsigned size, unsigned line)
{
    return rt_exchange_at(value, size, line, 0, __builtin_return_address(0));
}

void sm_engine_meet(sm_engine *e, const void *site) { rt_exchange_at("", 0, e->at[e->current].line, 0, site); }

static void rt_access(const void *address, unsigned long size, int kind, const void *pc)
{
    sm_engine *e = sm_current;
    if (!e) return;
    if (e->lockstep) sm_engine_keep_step(e, address, kind & SM_ACCESS_WRITE, pc);
    if (e->checker) sm_check_access(address, size, kind, pc);
}

static void rt_simd_barrier(unsigned flags, unsigned line)
{
    rt_exchange_at("", 0, line, flags, __builtin_return_address(0));
}

static void rt_barrier_from(unsigned flags, unsigned line, const void *site)
{
    sm_engine *e = sm_current;
    unsigned t = e->current;
    e->at[t].site = site;
    e->at[t].line = line;
    e->at[t].flags = flags;
    e->at_barrier[t / SM_SIMD_WIDTH] |= 1u << t % SM_SIMD_WIDTH;
    wait_turn(e);
}

static void rt_barrier(unsigned flags, unsigned line) { rt_barrier_from(flags, line, __builtin_return_address(0)); }

static unsigned rt_lane(void) { return sm_current->current % SM_SIMD_WIDTH; }

static void **rt_arrays(void) { return &sm_current->fibers[sm_current->fiber].free; }

static unsigned rt_random(void) { return sm_engine_random(sm_current); }

const sm_runtime sm_runtime_table = {
    rt_exchange,          rt_barrier,     rt_simd_barrier, rt_lane,          rt_access,
    sm_check_arithmetic,  rt_random,      rt_arrays,       rt_exchange_from, rt_barrier_from,
    rt_simd_barrier_from, sm_count_access};

/* ---- one threadgroup ---- */

static void fill_positions(sm_engine *e)
{
    const unsigned *size = e->group.size;
    if (!memcmp(e->shape, size, sizeof e->shape)) return;
    memcpy(e->shape, size, sizeof e->shape);
    unsigned t = 0;
    for (unsigned z = 0; z < size[2]; z++)
        for (unsigned y = 0; y < size[1]; y++)
            for (unsigned x = 0; x < size[0]; x++, t++) {
                e->positions[t][0] = (uint16_t)x;
                e->positions[t][1] = (uint16_t)y;
                e->positions[t][2] = (uint16_t)z;
            }
}

bool sm_engine_run(sm_engine *e)
{
    unsigned threads = e->group.threads;
    fill_positions(e);
    e->simdgroups = (threads + SM_SIMD_WIDTH - 1) / SM_SIMD_WIDTH;
    for (unsigned s = 0; s < e->simdgroups; s++) {
        unsigned lanes = threads - s * SM_SIMD_WIDTH;
        e->unstarted[s] = lanes >= 32 ? ~0u : (1u << lanes) - 1;
        e->ready[s] = e->waiting[s] = e->at_barrier[s] = 0;
        e->loaded[s] = e->stored[s] = false;
    }
    e->active = e->simdgroups == 32 ? ~0u : (1u << e->simdgroups) - 1;
    e->ended = 0;
    e->current = 0;
    /* Not zero: a kernel that relies on zeros would fail on a GPU. */
    for (int i = 0; i < SM_BUFFERS; i++)
        if (e->local_length[i]) memset(e->local[i], 0xFD, e->local_length[i]);
    if (e->statics_length) memset(e->statics, 0xFD, e->statics_length);
    if (e->checker) sm_check_group(e->checker);
    if (e->tally) sm_tally_begin(e->tally, e->is_counted);
    bool begins;
    pick(e, &begins);
    e->fiber = idle_fiber(e);
    sm_current = e;
    atomic_store(&e->inside, true);
    sm_switch(&e->main, e->fibers[e->fiber].sp);
    atomic_store(&e->inside, false);
    sm_current = NULL;
    if (e->status == SM_OK && e->tally) sm_tally_end(e->tally);
    if (e->status == SM_OK) return true;
    /* The fibers were abandoned while running: all start again. */
    sm_signals_unblock();
    e->idle_count = 0;
    for (unsigned i = e->fibers_made; i-- > 0;) {
        fiber_reset(e, i);
        e->idle[e->idle_count++] = (uint16_t)i;
    }
    return false;
}

/* ---- the pool of engines ---- */

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static sm_engine *pool;

sm_engine *sm_engine_open(void)
{
    pthread_mutex_lock(&pool_lock);
    sm_engine *e = pool;
    if (e) pool = e->next;
    pthread_mutex_unlock(&pool_lock);
    if (e) {
        e->next = NULL;
        return e;
    }
    e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->stacks_length = slot_length() * SM_MAX_THREADS;
    e->stacks = mmap(NULL, e->stacks_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (e->stacks == MAP_FAILED) {
        free(e);
        return NULL;
    }
    return e;
}

void sm_engine_close(sm_engine *e)
{
    pthread_mutex_lock(&pool_lock);
    e->next = pool;
    pool = e;
    pthread_mutex_unlock(&pool_lock);
}
