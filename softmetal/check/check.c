/* The checker of races, bounds and uninitialised memory. It does not depend on the
 * order in which threads happened to run: two accesses to a byte, one of them a
 * write, conflict unless a barrier orders them, whichever ran first.
 *
 * Ordered are: the accesses of one thread; accesses before and after a threadgroup_barrier
 * with the flag of that memory, by threads of one threadgroup; the same for
 * simdgroup_barrier and simdgroups. Each barrier advances an epoch. Device and threadgroup
 * memory have separate epochs, so a wrong flag is found like a missing barrier.
 * Different threadgroups are never ordered. Atomics do not conflict with each other.
 * Dispatches of a concurrent encoder (sm_scope) are ordered by its barriers only.
 *
 * SM_CHECK=simdgroup accepts what GPUs guarantee beyond the language, for kernels of others: accesses of one simdgroup
 * to threadgroup memory are ordered as in the code, because its lanes run in step (runtime/lockstep.c); and a
 * threadgroup_barrier with any flag orders the reads before it with the writes after it, because a read has returned
 * its value when its thread arrives. */
#include "check.h"

#include "../msl/text.h"
#include "../runtime/engine.h"
#include "../runtime/lines.h"
#include "../settings/settings.h"
#include "shadow.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE, LOCAL, KINDS };

struct sm_scope {
    pthread_mutex_t lock; /* one dispatch at a time */
    sm_shadow shadow;
    uint32_t dispatches; /* dispatch numbers used so far */
    uint32_t first;      /* first dispatch after the last barrier */
    char **labels;
    int labels_room;
};

/* Memory that a kernel may access and that other threads see. */
typedef struct range {
    uintptr_t start;
    size_t length;
    int kind, index;
} range;

struct sm_checker {
    sm_engine *engine;
    range ranges[2 * SM_BUFFERS + 1];
    int ranges_count;
    const sm_dispatch *dispatch;
    sm_shadow own, *shadow;
    uint32_t number, first;
    uint32_t group;
    bool in_step; /* SM_CHECK=simdgroup */
    uint32_t barriers; /* of the threadgroup, with any flags */
    uint32_t epoch[KINDS];
    uint16_t simd_epoch[KINDS][SM_SIMDGROUPS];
};

/* ---- scopes ---- */

sm_scope *sm_scope_open(void)
{
    sm_scope *s = calloc(1, sizeof *s);
    if (s) {
        pthread_mutex_init(&s->lock, NULL);
        s->first = 1;
    }
    return s;
}

void sm_scope_barrier(sm_scope *s, const void *address, size_t length)
{
    pthread_mutex_lock(&s->lock);
    if (address) sm_shadow_clear(&s->shadow, (uintptr_t)address, length);
    else s->first = s->dispatches + 1;
    pthread_mutex_unlock(&s->lock);
}

void sm_scope_close(sm_scope *s)
{
    if (!s) return;
    sm_shadow_free(&s->shadow);
    for (uint32_t i = 0; i < s->dispatches; i++) free(s->labels[i]);
    free(s->labels);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void add_range(sm_checker *c, int kind, int index, const void *start, size_t length)
{
    if (start && length) c->ranges[c->ranges_count++] = (range){(uintptr_t)start, length, kind, index};
}

sm_checker *sm_check_open(sm_engine *engine, const sm_dispatch *dispatch)
{
    sm_checker *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (sm_checker){.engine = engine, .dispatch = dispatch, .number = 1, .first = 1, .group = 0};
    c->shadow = &c->own;
    c->in_step = sm_setting_word(SM_SET_CHECK) == SM_CHECK_SIMDGROUP;
    add_range(c, LOCAL, -1, engine->statics, engine->statics_length);
    for (int i = 0; i < SM_BUFFERS; i++) {
        add_range(c, DEVICE, i, dispatch->buffers[i].address, dispatch->buffers[i].length);
        add_range(c, LOCAL, i, engine->local[i], engine->local_length[i]);
    }
    sm_scope *s = dispatch->scope;
    if (!s) return c;
    pthread_mutex_lock(&s->lock); /* unlocked by sm_check_close */
    if (!sm_grow((void **)&s->labels, (int)s->dispatches, &s->labels_room, sizeof *s->labels)) {
        pthread_mutex_unlock(&s->lock);
        free(c);
        return NULL;
    }
    s->labels[s->dispatches++] = strdup(engine->label);
    c->number = s->dispatches;
    c->first = s->first;
    c->shadow = &s->shadow;
    return c;
}

void sm_check_close(sm_checker *c)
{
    if (c->dispatch->scope) pthread_mutex_unlock(&c->dispatch->scope->lock);
    sm_shadow_free(&c->own);
    free(c);
}

/* ---- time ---- */

void sm_check_group(sm_checker *c)
{
    c->group++;
    c->barriers = 0;
    memset(c->epoch, 0, sizeof c->epoch);
    memset(c->simd_epoch, 0, sizeof c->simd_epoch);
}

void sm_check_barrier(sm_checker *c, unsigned flags)
{
    c->barriers++;
    for (int kind = 0; kind < KINDS; kind++) {
        if (!(flags & (kind == DEVICE ? SM_FLAG_DEVICE : SM_FLAG_THREADGROUP))) continue;
        c->epoch[kind]++;
        memset(c->simd_epoch[kind], 0, sizeof c->simd_epoch[kind]);
    }
}

void sm_check_simd_barrier(sm_checker *c, unsigned simdgroup, unsigned flags)
{
    if (flags & SM_FLAG_DEVICE) c->simd_epoch[DEVICE][simdgroup]++;
    if (flags & SM_FLAG_THREADGROUP) c->simd_epoch[LOCAL][simdgroup]++;
}

/* ---- reports ---- */

typedef struct place {
    int kind;  /* DEVICE or LOCAL */
    int index; /* index of the buffer or of threadgroup memory; -1: a threadgroup variable */
    size_t offset;
} place;

static void print_place(const place *p, char text[80])
{
    if (p->kind == DEVICE) snprintf(text, 80, "buffer %d at byte %zu", p->index, p->offset);
    else if (p->index >= 0) snprintf(text, 80, "threadgroup memory %d at byte %zu", p->index, p->offset);
    else snprintf(text, 80, "a threadgroup variable (byte %zu of them)", p->offset);
}

typedef struct access_of {
    sm_checker *checker;
    const void *pc;
    uintptr_t address;
    size_t size;
    bool write, atomic;
    place where;
} access_of;

static void print_line(const access_of *a, const void *pc, char text[160])
{
    sm_line_of(a->checker->engine->kernel, pc, text, 160);
    if (!*text) snprintf(text, 160, "%s", a->checker->engine->label);
}

static _Noreturn void report_conflict(const access_of *a, const sm_stamp *old, bool old_writes)
{
    sm_checker *c = a->checker;
    sm_engine *e = c->engine;
    char here[160], there[160], where[80], who[96], other[96];
    print_line(a, a->pc, here);
    print_place(&a->where, where);
    sm_engine_where(e, e->current, who);
    const char *doing = a->write ? "writes to" : "reads", *did = old_writes ? "written" : "read";
    uint32_t dispatch = old->dispatch != c->number ? old->dispatch : old->other;
    if (old->dispatch != c->number || (old->other >= c->first && old->other != c->number)) {
        sm_set_message(
            &e->message,
            "%s: %s: hazard: %s %s %s, which dispatch %u ('%s') of this encoder has %s without a barrier in between",
            here, e->label, who, doing, where, dispatch, c->dispatch->scope->labels[dispatch - 1], did);
        sm_engine_stop(e, SM_CHECKED);
    }
    print_line(a, (const void *)(e->kernel->base + old->pc), there);
    if (old->group != c->group || old->who == STAMP_GROUPS) snprintf(other, sizeof other, "another threadgroup");
    else if (old->who != STAMP_THREAD) snprintf(other, sizeof other, "other threads of the threadgroup");
    else snprintf(other, sizeof other, "thread %u of the threadgroup", old->thread);
    sm_set_message(&e->message, "%s: %s: race: %s %s %s, %s by %s at %s without a barrier for that memory", here,
                   e->label, who, doing, where, did, other, there);
    sm_engine_stop(e, SM_CHECKED);
}

static _Noreturn void report_uninitialised(const access_of *a)
{
    sm_engine *e = a->checker->engine;
    char here[160], where[80], who[96];
    print_line(a, a->pc, here);
    print_place(&a->where, where);
    sm_engine_where(e, e->current, who);
    sm_set_message(&e->message,
                   "%s: %s: uninitialised: %s reads %s, which no thread has written yet (a barrier may be missing)",
                   here, e->label, who, where);
    sm_engine_stop(e, SM_CHECKED);
}

static _Noreturn void report_out_of_bounds(const access_of *a)
{
    sm_engine *e = a->checker->engine;
    char here[160], who[96], near[120];
    print_line(a, a->pc, here);
    sm_engine_where(e, e->current, who);
    const char *close = sm_buffer_near(e, (const void *)a->address, near, sizeof near);
    for (int i = -1; i < SM_BUFFERS && !*close; i++) {
        uintptr_t start = (uintptr_t)(i < 0 ? e->statics : e->local[i]);
        size_t length = i < 0 ? e->statics_length : e->local_length[i];
        if (start && a->address + a->size > start + length && a->address - start < length + 65536)
            snprintf(near, sizeof near, ", %zu bytes after the end of threadgroup %s",
                     (size_t)(a->address - start - length), i < 0 ? "variables" : "memory");
    }
    sm_set_message(&e->message, "%s: %s: out of bounds: %s %s %zu bytes outside its buffers%s", here, e->label, who,
                   a->write ? "writes" : "reads", a->size, close);
    sm_engine_stop(e, SM_FAULT);
}

/* ---- rules ---- */

/* Returns whether the access of the stamp is unordered with the current access. */
static bool unordered(const access_of *a, const sm_stamp *old)
{
    const sm_checker *c = a->checker;
    unsigned thread = c->engine->current, kind = (unsigned)a->where.kind;
    if (!old->dispatch || old->dispatch < c->first) return false;
    if (kind == LOCAL && (old->dispatch != c->number || old->group != c->group)) return false;
    if (old->dispatch != c->number || (old->other >= c->first && old->other != c->number)) return true;
    if (old->who == STAMP_GROUPS || old->group != c->group) return true;
    if (old->who == STAMP_THREAD && old->thread == thread) return false;
    if (old->epoch < c->epoch[kind]) return false;
    bool one_simdgroup = old->who <= STAMP_SIMDGROUP && old->thread / SM_SIMD_WIDTH == thread / SM_SIMD_WIDTH;
    if (c->in_step && kind == LOCAL && one_simdgroup) return false;
    return !one_simdgroup || old->simd_epoch >= c->simd_epoch[kind][thread / SM_SIMD_WIDTH];
}

/* Returns the stamp with the current access added. */
static sm_stamp joined(const access_of *a, const sm_stamp *old)
{
    const sm_checker *c = a->checker;
    unsigned thread = c->engine->current, s = thread / SM_SIMD_WIDTH;
    sm_stamp now = {.dispatch = c->number, .group = c->group, .epoch = c->epoch[a->where.kind]};
    now.pc = (uint32_t)((uintptr_t)a->pc - c->engine->kernel->base);
    now.barriers = c->barriers;
    now.simd_epoch = c->simd_epoch[a->where.kind][s];
    now.thread = thread & 1023;
    now.atomic = a->atomic;
    if (old->dispatch >= c->first && old->dispatch != c->number) now.other = old->dispatch;
    else if (old->dispatch == c->number) now.other = old->other;
    if (!unordered(a, old) || old->dispatch != c->number) return now;
    if (old->who == STAMP_GROUPS || old->group != c->group) now.who = STAMP_GROUPS;
    else if (old->who == STAMP_GROUP || old->thread / SM_SIMD_WIDTH != s) now.who = STAMP_GROUP;
    else now.who = STAMP_SIMDGROUP;
    now.atomic = now.atomic && old->atomic;
    return now;
}

/* Returns whether the reads of the stamp had returned their values before the threads met at a barrier. */
static bool has_returned(const sm_checker *c, const sm_stamp *read)
{
    return c->in_step && read->dispatch == c->number && read->group == c->group && read->who != STAMP_GROUPS &&
           read->barriers < c->barriers;
}

static void touch(access_of *a, sm_cell *cell)
{
    const sm_checker *c = a->checker;
    bool mine = cell->write.dispatch == c->number && cell->write.group == c->group;
    if (!a->write && a->where.kind == LOCAL && !mine) report_uninitialised(a);
    if (!(a->atomic && cell->write.atomic) && unordered(a, &cell->write)) report_conflict(a, &cell->write, true);
    if (a->write && !(a->atomic && cell->read.atomic) && unordered(a, &cell->read) && !has_returned(c, &cell->read))
        report_conflict(a, &cell->read, false);
    if (!a->write) cell->read = joined(a, &cell->read);
    else if (a->atomic && cell->write.atomic) cell->write = joined(a, &cell->write);
    else cell->write = joined(a, &(sm_stamp){0});
}

static bool within(uintptr_t address, size_t size, const void *start, size_t length)
{
    return address >= (uintptr_t)start && address - (uintptr_t)start < length &&
           size <= length - (address - (uintptr_t)start);
}

/* Finds the memory of the access. false: memory that needs no check. */
static bool find_place(access_of *a)
{
    sm_engine *e = a->checker->engine;
    if (within(a->address, a->size, e->stacks, e->stacks_length)) return false;
    for (int i = 0; i < a->checker->ranges_count; i++) {
        const range *r = &a->checker->ranges[i];
        if (!within(a->address, a->size, (const void *)r->start, r->length)) continue;
        a->where = (place){r->kind, r->index, a->address - r->start};
        return true;
    }
    if (within(a->address, a->size, e, sizeof *e)) return false; /* values that lanes exchange */
    if (within(a->address, a->size, (const void *)e->kernel->start, e->kernel->end - e->kernel->start)) return false;
    if (within(a->address, a->size, &sm_runtime_table, sizeof sm_runtime_table)) return false;
    report_out_of_bounds(a);
}

void sm_check_access(const void *address, unsigned long size, int kind, const void *pc)
{
    sm_engine *e = sm_current;
    if (!e || !e->checker || !size) return;
    access_of a = {e->checker, pc, (uintptr_t)address, size, kind & SM_ACCESS_WRITE, kind & SM_ACCESS_ATOMIC,
                   {0, 0, 0}};
    if (!find_place(&a)) return;
    while (a.size) {
        uintptr_t left = ((uintptr_t)1 << SHADOW_BITS) - (a.address & (((uintptr_t)1 << SHADOW_BITS) - 1));
        size_t part = a.size < left ? a.size : (size_t)left;
        sm_shadow_page *page = sm_shadow_page_of(e->checker->shadow, a.address, part);
        if (!page) {
            sm_set_message(&e->message, "out of memory");
            sm_engine_stop(e, SM_MEMORY);
        }
        uintptr_t at = a.address & (((uintptr_t)1 << SHADOW_BITS) - 1);
        for (size_t i = at >> page->shift; i <= (at + part - 1) >> page->shift; i++) touch(&a, &page->cells[i]);
        a.address += part;
        a.where.offset += part;
        a.size -= part;
    }
}

void sm_check_arithmetic(const char *what, const char *file, unsigned line, unsigned column)
{
    sm_engine *e = sm_current;
    if (!e) return;
    char who[96];
    sm_engine_where(e, e->current, who);
    sm_set_message(&e->message, "%s:%u:%u: %s: %s in %s", file ? file : "?", line, column, e->label, what, who);
    sm_engine_stop(e, SM_CHECKED);
}
