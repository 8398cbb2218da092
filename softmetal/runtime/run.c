/* Runs a dispatch: checks it against the kernel, then workers fetch threadgroups
 * one by one. The calling thread is the first worker; the others are kept from one
 * dispatch to the next. A small dispatch wakes no other worker. */
#include "../check/check.h"
#include "../count/record.h"
#include "../count/tally.h"
#include "../msl/text.h"
#include "engine.h"
#include "kernel.h"
#include "signals.h"
#include "../settings/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_WORKERS = 64, WORTH_WAKING = 2048 /* threads in the grid */ };

typedef struct work {
    sm_kernel *kernel;
    const sm_dispatch *dispatch;
    uint32_t groups[3];
    uint64_t count, step, offset; /* number of threadgroups, and the order in which they run */
    atomic_ullong next;
    uint64_t seed;
    uint64_t sample; /* SM_COUNT: threadgroups to count */
    atomic_bool stop;
    pthread_mutex_t lock; /* guards the following fields */
    sm_status status;
    char *message;
} work;

/* ---- checks ---- */

static sm_status refuse(const work *w, char **message, const char *format, ...) SM_PRINTF(3);
static sm_status refuse(const work *w, char **message, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    sm_set_message(message, "kernel '%s': %s", w->kernel->name, text);
    return SM_INVALID;
}

static sm_status check_arguments(work *w, char **message)
{
    const sm_dispatch *d = w->dispatch;
    size_t local = w->kernel->statics_length;
    for (int i = 0; i < SM_BUFFERS; i++) {
        size_t length = d->threadgroup_bytes[i];
        if (length % 16)
            return refuse(w, message, "threadgroup memory %d: %zu bytes is not a multiple of 16", i, length);
        if (length > SM_MAX_THREADGROUP_BYTES || (local += length) > SM_MAX_THREADGROUP_BYTES)
            return refuse(w, message, "threadgroup memory of %zu bytes is above the limit of %d", local,
                          SM_MAX_THREADGROUP_BYTES);
    }
    for (int i = 0; i < w->kernel->module->arguments_count; i++) {
        const sm_module_argument *a = &w->kernel->module->arguments[i];
        if (!a->needed) continue;
        if (a->kind == 0 && (w->kernel->used >> a->index & 1) && !d->buffers[a->index].address)
            return refuse(w, message, "nothing is bound to buffer %d", a->index);
    }
    return SM_OK;
}

static sm_status check_grid(work *w, char **message)
{
    const sm_dispatch *d = w->dispatch;
    sm_kernel_facts facts;
    sm_kernel_describe(w->kernel, &facts);
    uint64_t threads = 1;
    w->count = 1;
    for (int i = 0; i < 3; i++) {
        if (!d->group[i]) return refuse(w, message, "a threadgroup size is 0");
        threads *= d->group[i];
        if (threads > (uint64_t)facts.max_threads)
            return refuse(w, message, "threadgroups of %u x %u x %u threads are above the limit of %d", d->group[0],
                          d->group[1], d->group[2], facts.max_threads);
        w->groups[i] = (uint32_t)(((uint64_t)d->threads[i] + d->group[i] - 1) / d->group[i]);
        if (w->groups[i] && w->count > UINT64_MAX / 4 / w->groups[i])
            return refuse(w, message, "too many threadgroups");
        w->count *= w->groups[i];
    }
    return SM_OK;
}

/* ---- workers ---- */

void *__tls_get_addr(size_t *index);

static bool prepare(sm_engine *e, work *w)
{
    const sm_dispatch *d = w->dispatch;
    e->module = w->kernel->module;
    e->kernel = w->kernel;
    e->dispatch = d;
    e->label = d->label ? d->label : w->kernel->name;
    e->status = SM_OK;
    e->message = NULL;
    size_t total = 0;
    for (int i = 0; i < SM_BUFFERS; i++) total += (d->threadgroup_bytes[i] + 255) / 128 * 128;
    if (total > e->local_room) {
        free(e->local_memory);
        e->local_memory = aligned_alloc(128, total);
        e->local_room = e->local_memory ? total : 0;
        if (!e->local_memory) return false;
    }
    size_t at = 0;
    for (int i = 0; i < SM_BUFFERS; i++) {
        e->local_length[i] = d->threadgroup_bytes[i];
        e->local[i] = e->local_length[i] ? e->local_memory + at : NULL;
        at += (e->local_length[i] + 255) / 128 * 128;
    }
    e->local_total = total;
    e->statics_length = w->kernel->statics_length;
    size_t index[2] = {w->kernel->tls_index, 0};
    e->statics = e->statics_length ? __tls_get_addr(index) : NULL;
    for (int i = 0; i < SM_BUFFERS; i++) e->buffers[i] = d->buffers[i].address;
    e->group.buffers = e->buffers;
    e->group.locals = (void *const *)e->local;
    e->checker = NULL;
    e->tally = NULL;
    if (w->kernel->count) {
        e->tally = sm_tally_open(e, w->kernel->count, d);
        if (!e->tally) return false;
    }
    e->lockstep = w->kernel->lockstep && (!w->kernel->checked || sm_setting_word(SM_SET_CHECK) == SM_CHECK_SIMDGROUP);
    if (w->kernel->checked) {
        e->checker = sm_check_open(e, d);
        if (!e->checker) return false;
    }
    return true;
}

static void place_group(sm_engine *e, const work *w, uint64_t number)
{
    const sm_dispatch *d = w->dispatch;
    sm_group *g = &e->group;
    g->threads = 1;
    for (int i = 0; i < 3; i++) {
        g->position[i] = (unsigned)(number % w->groups[i]);
        number /= w->groups[i];
        g->origin[i] = g->position[i] * d->group[i];
        unsigned left = d->threads[i] - g->origin[i];
        g->size[i] = left < d->group[i] ? left : d->group[i];
        g->full[i] = d->group[i];
        g->grid[i] = d->threads[i];
        g->groups[i] = w->groups[i];
        g->threads *= g->size[i];
    }
}

static void report(work *w, sm_status status, char *message)
{
    pthread_mutex_lock(&w->lock);
    bool first = w->status == SM_OK;
    if (first) {
        w->status = status;
        w->message = message;
    }
    pthread_mutex_unlock(&w->lock);
    if (!first) free(message);
    atomic_store(&w->stop, true);
}

static void finish_count(work *w, sm_engine *e)
{
    const uint32_t *g = w->dispatch->threads;
    const uint64_t threads = (uint64_t)g[0] * g[1] * g[2];
    char *message = NULL;
    if (w->status == SM_OK && !sm_tally_result(e->tally, w->count, threads, &w->kernel->counts))
        sm_set_message(&message, "SM_COUNT: out of memory");
    sm_tally_close(e->tally);
    e->tally = NULL;
    w->kernel->has_counts = w->status == SM_OK && !message;
    if (w->kernel->has_counts) sm_count_write(w->kernel, w->dispatch, &message);
    if (message) report(w, SM_MEMORY, message);
}

static void take_groups(work *w)
{
    sm_engine *e = sm_engine_open();
    char *message = NULL;
    if (!e || !sm_signals_enter(e, &message)) {
        report(w, SM_MEMORY, message);
        if (e) sm_engine_close(e);
        return;
    }
    if (!prepare(e, w)) {
        sm_set_message(&message, "out of memory");
        report(w, SM_MEMORY, message);
    }
    while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
        uint64_t i = atomic_fetch_add(&w->next, 1);
        if (i >= w->count) break;
        uint64_t number = (uint64_t)(((__uint128_t)i * w->step + w->offset) % w->count);
        e->random = w->seed ? (w->seed + number) * 0x9e3779b97f4a7c15u | 1 : 0;
        e->is_counted = e->tally && sm_count_is_sampled(number, w->count, w->sample);
        if (e->tally && !e->is_counted && w->dispatch->only_counted) continue;
        place_group(e, w, number);
        if (!sm_engine_run(e)) report(w, e->status, e->message);
    }
    sm_signals_leave(e);
    if (e->tally) finish_count(w, e);
    if (e->checker) sm_check_close(e->checker);
    e->checker = NULL;
    sm_engine_close(e);
}

static pthread_mutex_t crew_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t crew_call = PTHREAD_COND_INITIALIZER, crew_done = PTHREAD_COND_INITIALIZER;
static work *crew_work; /* only one dispatch at a time has helpers; a concurrent one runs on its calling thread alone */
static int crew_size, crew_wanted, crew_busy;

static void *helper(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&crew_lock);
    for (;;) {
        while (!crew_wanted) pthread_cond_wait(&crew_call, &crew_lock);
        crew_wanted--;
        crew_busy++;
        work *w = crew_work;
        pthread_mutex_unlock(&crew_lock);
        take_groups(w);
        pthread_mutex_lock(&crew_lock);
        if (--crew_busy == 0) pthread_cond_broadcast(&crew_done);
    }
    return NULL;
}

static void call_helpers(work *w, int count)
{
    pthread_mutex_lock(&crew_lock);
    bool mine = !crew_work;
    if (mine) {
        crew_work = w;
        while (crew_size < count) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, helper, NULL)) break;
            pthread_detach(thread);
            crew_size++;
        }
        crew_wanted = count < crew_size ? count : crew_size;
        pthread_cond_broadcast(&crew_call);
    }
    pthread_mutex_unlock(&crew_lock);
    take_groups(w);
    if (!mine) return;
    pthread_mutex_lock(&crew_lock);
    crew_wanted = 0; /* helpers that have not started yet are no longer needed */
    while (crew_busy) pthread_cond_wait(&crew_done, &crew_lock);
    crew_work = NULL;
    pthread_mutex_unlock(&crew_lock);
}

static int workers_now(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t n = sm_setting_integer(SM_SET_WORKERS, cores > 0 ? (uint64_t)cores : 1);
    return n > MAX_WORKERS ? MAX_WORKERS : (int)n;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) { return b ? greatest_divisor(b, a % b) : a; }

static sm_status check_settings(char **message)
{
    char problem[256];
    if (!sm_settings_problem(problem, sizeof problem)) return SM_OK;
    sm_set_message(message, "%s", problem);
    return SM_INVALID;
}

/* A counted kernel has one set of counters: one dispatch at a time, on one OS thread. */
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;

static void run_groups(work *w)
{
    const uint32_t *g = w->dispatch->group;
    const uint64_t threads = (uint64_t)g[0] * g[1] * g[2];
    if (w->kernel->count) {
        pthread_mutex_lock(&count_lock);
        w->sample = sm_count_sample(w->count, (uint32_t)threads);
        take_groups(w);
        pthread_mutex_unlock(&count_lock);
        return;
    }
    int workers = w->kernel->checked || threads * w->count < WORTH_WAKING ? 1 : workers_now();
    if ((uint64_t)workers > w->count) workers = (int)w->count;
    if (workers > 1) call_helpers(w, workers - 1);
    else take_groups(w);
}

sm_status sm_kernel_run(sm_kernel *kernel, const sm_dispatch *dispatch, char **message)
{
    char *unused = NULL;
    if (message) *message = NULL;
    else message = &unused;
    work w = {.kernel = kernel, .dispatch = dispatch, .step = 1};
    sm_status status = check_settings(message);
    if (status == SM_OK) status = check_arguments(&w, message);
    if (status == SM_OK) status = check_grid(&w, message);
    if (status == SM_OK && w.count) {
        pthread_mutex_init(&w.lock, NULL);
        w.seed = sm_setting_integer(SM_SET_SEED, 0);
        if (w.seed || kernel->fuzzed) w.seed = w.seed * 0x9e3779b97f4a7c15u | 1;
        if (w.seed) { /* a step coprime to the count visits each threadgroup once */
            w.offset = w.seed % w.count;
            w.step = (w.seed >> 7) % w.count | 1;
            while (greatest_divisor(w.step, w.count) != 1) w.step += 2;
        }
        run_groups(&w);
        status = w.status;
        *message = w.message;
        pthread_mutex_destroy(&w.lock);
    }
    free(unused);
    return status;
}

/* ---- memory with guard pages ---- */

static size_t mapped_length(size_t length, size_t page) { return (length + page - 1) / page * page + 2 * page; }

void *sm_memory_open(size_t length, bool flush)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!length || length > SIZE_MAX / 2) return NULL;
    size_t total = mapped_length(length, page);
    char *map = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return NULL;
    if (mprotect(map + page, total - 2 * page, PROT_READ | PROT_WRITE)) {
        munmap(map, total);
        return NULL;
    }
    if (sm_setting_word(SM_SET_CHECK) != SM_CHECK_OFF) memset(map + page, 0xFB, total - 2 * page);
    return flush ? map + total - page - (length + 15) / 16 * 16 : map + page;
}

void sm_memory_close(void *address, size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!address) return;
    char *map = (char *)((uintptr_t)address / page * page) - page;
    munmap(map, mapped_length(length, page));
}
