/* See tally.h. */
#include "tally.h"

#include "../msl/text.h"
#include "../runtime/engine.h"
#include "../runtime/kernel.h"
#include "classify.h"
#include "unique.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 128, BANKS = 32, WORD_BYTES = 4, PIECE = 16 /* bytes of a lane in one simd access */ };

/* One simd instruction. */
typedef struct simd_access {
    uint32_t mask;
    unsigned size;
    int kind;
    uintptr_t at[SM_SIMD_WIDTH];
} simd_access;

typedef struct access_list { /* of one site, since the lanes met */
    simd_access *list;
    int count, room;
} access_list;

struct sm_tally {
    sm_engine *engine;
    const sm_count_module *module;
    const sm_dispatch *dispatch;
    bool is_counted, failed;
    unsigned *counters;   /* [SM_MAX_THREADS][blocks] */
    unsigned *executions; /* [SM_MAX_THREADS][sites]: of a site, by a thread since the lanes met */
    access_list *accesses; /* [SM_SIMDGROUPS][sites] */
    uint64_t *by_threads, *by_simd; /* [blocks] */
    unique_bytes unique[SM_BUFFERS][2]; /* read, written */
    sm_counts sums;
    uint64_t groups, threads;
};

/* ---- dispatches ---- */

static bool open_unique(sm_tally *t)
{
    bool good = true;
    for (int i = 0; i < SM_BUFFERS; i++)
        for (int k = 0; k < 2 && t->dispatch->buffers[i].address; k++)
            good = good && unique_open(&t->unique[i][k], t->dispatch->buffers[i].length);
    return good;
}

sm_tally *sm_tally_open(sm_engine *engine, const sm_count_module *module, const sm_dispatch *dispatch)
{
    sm_tally *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->engine = engine;
    t->module = module;
    t->dispatch = dispatch;
    t->counters = calloc((size_t)SM_MAX_THREADS * module->blocks, sizeof *t->counters);
    t->executions = calloc((size_t)SM_MAX_THREADS * module->sites, sizeof *t->executions);
    t->accesses = calloc((size_t)SM_SIMDGROUPS * module->sites, sizeof *t->accesses);
    t->by_threads = calloc(module->blocks, sizeof *t->by_threads);
    t->by_simd = calloc(module->blocks, sizeof *t->by_simd);
    if (t->counters && t->executions && t->accesses && t->by_threads && t->by_simd && open_unique(t)) return t;
    sm_tally_close(t);
    return NULL;
}

void sm_tally_close(sm_tally *t)
{
    if (!t) return;
    for (int i = 0; i < SM_BUFFERS; i++)
        for (int k = 0; k < 2; k++) unique_close(&t->unique[i][k]);
    for (size_t i = 0; t->accesses && i < (size_t)SM_SIMDGROUPS * t->module->sites; i++) free(t->accesses[i].list);
    free(t->counters);
    free(t->executions);
    free(t->accesses);
    free(t->by_threads);
    free(t->by_simd);
    free(t);
}

void sm_tally_thread(sm_tally *t, unsigned thread)
{
    *t->module->thread = t->counters + (size_t)thread * t->module->blocks;
}

/* ---- accesses ---- */

static void add_access(sm_tally *t, uintptr_t address, unsigned size, int kind, unsigned site)
{
    const unsigned thread = t->engine->current, lane = thread % SM_SIMD_WIDTH;
    access_list *a = &t->accesses[(size_t)(thread / SM_SIMD_WIDTH) * t->module->sites + site];
    const int n = (int)t->executions[(size_t)thread * t->module->sites + site]++;
    if (n == a->count) {
        if (!sm_grow((void **)&a->list, a->count, &a->room, sizeof *a->list)) {
            t->failed = true;
            return;
        }
        a->list[a->count++] = (simd_access){.size = size, .kind = kind};
    }
    if (n >= a->count) return; /* out of memory before */
    a->list[n].mask |= 1u << lane;
    a->list[n].at[lane] = address;
}

void sm_count_access(const void *address, unsigned size, int kind, unsigned site)
{
    sm_tally *t = sm_current->tally;
    if (!t || !t->is_counted || site >= t->module->sites) return;
    for (unsigned at = 0; at < size; at += PIECE)
        add_access(t, (uintptr_t)address + at, size - at < PIECE ? size - at : PIECE, kind, site);
}

/* Bytes of the simd access, as intervals in rising order. */
typedef struct spans {
    uintptr_t start[SM_SIMD_WIDTH], end[SM_SIMD_WIDTH];
    int count;
} spans;

static void find_spans(const simd_access *a, spans *s)
{
    uintptr_t sorted[SM_SIMD_WIDTH];
    int n = 0;
    for (uint32_t m = a->mask; m; m &= m - 1) {
        const uintptr_t address = a->at[__builtin_ctz(m)];
        int k = n++;
        for (; k > 0 && sorted[k - 1] > address; k--) sorted[k] = sorted[k - 1];
        sorted[k] = address;
    }
    s->count = 0;
    for (int i = 0; i < n; i++) {
        if (s->count && sorted[i] <= s->end[s->count - 1]) {
            if (sorted[i] + a->size > s->end[s->count - 1]) s->end[s->count - 1] = sorted[i] + a->size;
        } else {
            s->start[s->count] = sorted[i];
            s->end[s->count++] = sorted[i] + a->size;
        }
    }
}

static void touch_device(sm_tally *t, int buffer, const simd_access *a, const spans *s)
{
    const sm_buffer *b = &t->dispatch->buffers[buffer];
    const double bytes = (double)__builtin_popcount(a->mask) * a->size;
    const bool writes = a->kind & SM_ACCESS_WRITE, reads = !writes || (a->kind & SM_ACCESS_ATOMIC);
    size_t lines = 0, different = 0;
    uintptr_t last = UINTPTR_MAX;
    for (int i = 0; i < s->count; i++) {
        const uintptr_t first = s->start[i] / LINE, end = (s->end[i] - 1) / LINE;
        lines += end - first + (first == last ? 0 : 1);
        last = end;
        different += s->end[i] - s->start[i];
        const size_t offset = s->start[i] - (uintptr_t)b->address, left = b->length - offset;
        const size_t length = s->end[i] - s->start[i] < left ? s->end[i] - s->start[i] : left;
        for (int k = 0; k < 2; k++)
            if ((k ? writes : reads) && !unique_add(&t->unique[buffer][k], offset, length)) t->failed = true;
    }
    if (reads) t->sums.loaded_bytes += bytes;
    if (writes) t->sums.stored_bytes += bytes;
    t->sums.device_accesses++;
    t->sums.lines_touched += (double)lines;
    t->sums.lines_ideal += (double)((different + LINE - 1) / LINE);
}

static void touch_local(sm_tally *t, uintptr_t base, const simd_access *a, const spans *s)
{
    unsigned words[BANKS] = {0}, most = 0, all = 0;
    uintptr_t last = UINTPTR_MAX;
    for (int i = 0; i < s->count; i++) {
        for (uintptr_t w = (s->start[i] - base) / WORD_BYTES; w <= (s->end[i] - 1 - base) / WORD_BYTES; w++) {
            if (w == last) continue;
            last = w;
            all++;
            if (++words[w % BANKS] > most) most = words[w % BANKS];
        }
    }
    t->sums.local_accesses++;
    t->sums.local_bytes += (double)__builtin_popcount(a->mask) * a->size;
    t->sums.local_cycles += most;
    t->sums.local_ideal += (all + BANKS - 1) / BANKS;
}

static bool within(uintptr_t address, const void *start, size_t length)
{
    return start && address >= (uintptr_t)start && address - (uintptr_t)start < length;
}

static void touch(sm_tally *t, const simd_access *a)
{
    spans s;
    find_spans(a, &s);
    const uintptr_t first = s.start[0];
    const sm_engine *e = t->engine;
    if (within(first, e->statics, e->statics_length)) {
        touch_local(t, (uintptr_t)e->statics, a, &s);
        return;
    }
    for (int i = 0; i < SM_BUFFERS; i++) {
        if (within(first, t->dispatch->buffers[i].address, t->dispatch->buffers[i].length)) {
            if (e->kernel->constants >> i & 1) break;
            touch_device(t, i, a, &s);
            return;
        }
        if (within(first, e->local[i], e->local_length[i])) {
            touch_local(t, (uintptr_t)e->local[i], a, &s);
            return;
        }
    }
    if (within(first, e->stacks, e->stacks_length)) return; /* a thread's array behind a pointer */
    t->sums.constant_accesses++;
    t->sums.constant_bytes += (double)__builtin_popcount(a->mask) * a->size;
}

/* ---- lanes meet ---- */

void sm_tally_meet(sm_tally *t, unsigned simdgroup)
{
    if (!t->is_counted) return;
    const size_t blocks = t->module->blocks, sites = t->module->sites, first = (size_t)simdgroup * SM_SIMD_WIDTH;
    unsigned *counters = t->counters + first * blocks;
    for (size_t b = 0; b < blocks; b++) {
        unsigned most = 0;
        for (size_t lane = 0; lane < SM_SIMD_WIDTH; lane++) {
            const unsigned n = counters[lane * blocks + b];
            t->by_threads[b] += n;
            if (n > most) most = n;
        }
        t->by_simd[b] += most;
    }
    memset(counters, 0, SM_SIMD_WIDTH * blocks * sizeof *counters);
    memset(t->executions + first * sites, 0, SM_SIMD_WIDTH * sites * sizeof *t->executions);
    for (size_t site = 0; site < sites; site++) {
        access_list *a = &t->accesses[(size_t)simdgroup * sites + site];
        for (int i = 0; i < a->count; i++) touch(t, &a->list[i]);
        a->count = 0;
    }
}

void sm_tally_begin(sm_tally *t, bool is_counted)
{
    t->is_counted = is_counted;
    if (!is_counted) return;
    t->groups++;
    t->threads += t->engine->group.threads;
    memset(t->counters, 0, (size_t)SM_MAX_THREADS * t->module->blocks * sizeof *t->counters);
}

void sm_tally_end(sm_tally *t)
{
    if (!t->is_counted) return;
    for (unsigned s = 0; s < t->engine->simdgroups; s++) sm_tally_meet(t, s);
    for (int i = 0; i < SM_BUFFERS; i++)
        for (int k = 0; k < 2; k++) unique_group_end(&t->unique[i][k]);
}

/* ---- the result ---- */

static const struct class_row {
    double cost, slots, pipe;
} classes[] = {
#define X(id, name, cost, slots, pipe, title) {cost, slots, pipe},
#include "classes.def"
#undef X
};

static void add_blocks(const sm_tally *t, double scale, sm_counts *c)
{
    double active = 0;
    for (size_t b = 0; b < t->module->blocks; b++) {
        for (int k = 0; k < SM_COSTS; k++) {
            const double n = t->module->operations[b * SM_COSTS + (size_t)k];
            const double threads = n * (double)t->by_threads[b] * scale, simd = n * (double)t->by_simd[b] * scale;
            c->operations[k] += threads;
            c->issued[k] += simd;
            active += threads * classes[k].cost;
            c->sum += simd * classes[k].cost * (double)SM_SIMD_WIDTH;
            c->slots += simd * classes[k].slots * (double)SM_SIMD_WIDTH;
            c->pipe += simd * classes[k].pipe * (double)SM_SIMD_WIDTH;
        }
    }
    c->overlap = c->slots > c->pipe ? c->slots : c->pipe;
    c->active_lanes = c->sum > 0 ? (double)SM_SIMD_WIDTH * active / c->sum : 0;
}

/* Mesa's table for this GPU, and about 60 KB of threadgroup memory a core. A threadgroup is resident as a whole. */
static unsigned resident_threads(unsigned registers, uint64_t local, unsigned threads)
{
    static const unsigned table[][2] = {{104, 1024}, {112, 896}, {128, 832}, {136, 768}, {144, 704},
                                        {160, 640},  {184, 576}, {208, 512}, {232, 448}, {256, 384}};
    enum { ROWS = sizeof table / sizeof *table, LOCAL_BYTES = 60 * 1024 };
    int row = 0;
    while (row < ROWS - 1 && registers > table[row][0]) row++;
    uint64_t groups = table[row][1] / threads;
    if (local && LOCAL_BYTES / local < groups) groups = LOCAL_BYTES / local;
    return groups ? (unsigned)groups * threads : table[row][1];
}

bool sm_tally_result(const sm_tally *t, uint64_t groups, uint64_t threads, sm_counts *c)
{
    const double scale = t->threads ? (double)threads / (double)t->threads : 0;
    *c = t->sums;
    double *const scaled[] = {&c->loaded_bytes, &c->stored_bytes,      &c->device_accesses, &c->lines_touched,
                              &c->lines_ideal,  &c->constant_accesses, &c->constant_bytes,  &c->local_accesses,
                              &c->local_bytes,  &c->local_cycles,      &c->local_ideal};
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++) *scaled[i] *= scale;
    add_blocks(t, scale, c);
    for (int i = 0; i < SM_BUFFERS; i++) {
        c->read_bytes += unique_total(&t->unique[i][0], scale);
        c->written_bytes += unique_total(&t->unique[i][1], scale);
    }
    c->registers = t->module->registers;
    c->thread_bytes = t->module->thread_bytes;
    c->threadgroup_bytes = t->engine->statics_length;
    for (int i = 0; i < SM_BUFFERS; i++) c->threadgroup_bytes += t->dispatch->threadgroup_bytes[i];
    const uint32_t *g = t->dispatch->group;
    c->resident_threads = resident_threads(c->registers, c->threadgroup_bytes, g[0] * g[1] * g[2]);
    c->groups = groups;
    c->counted = t->groups;
    for (int i = 0; i < SM_RULES; i++) c->folds[i] = t->module->applied[i];
    return !t->failed;
}
