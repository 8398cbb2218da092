/* Hand-made kernels, and memory for them of exactly the size that they access, so that the address
 * sanitizer reports a single element too many. */
#ifndef TESTS_KERNEL_KIT_H
#define TESTS_KERNEL_KIT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/ref/ref_kernel.h"
#include "codegen/chain_64.h"
#include "graph/scalar.h"
#include "kernel_scratch.h"
#include "test.h"

enum { KIT_MAX_INST = 64, KIT_MAX_ACCESS = 24 };

typedef struct kit {
    mica__kernel k;
    mica__kinst inst[KIT_MAX_INST];
    mica__access access[KIT_MAX_ACCESS];
    uint64_t seed;
    /* block i belongs to access i */
    char *memory[KIT_MAX_ACCESS];
    size_t nbytes[KIT_MAX_ACCESS];
    bool written[KIT_MAX_ACCESS];
} kit;

/* ---------------------------------------------------------------- random --- */

static inline uint64_t kit_random(kit *kt)
{
    uint64_t z = kt->seed += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static inline int64_t kit_below(kit *kt, int64_t n) { return (int64_t)(kit_random(kt) % (uint64_t)n); }

/* Random numbers; if special, also values where functions change and the ends of ranges. */
static inline mica__number kit_number(kit *kt, mica_dtype dtype, bool special)
{
    static const double odd[] = {0.0,       -0.0,         1.0,           -1.0,    0.5,    -0.5,     1.5,
                                 2.5,       -2.5,         3.0,           -7.0,    1e-3,   0x1p-14,  0x1p-24,
                                 0x1p-149,  0x1p-126,     65504.0,       65520.0, 3e38,   -3e38,    1e300,
                                 8388608.5, 2147483648.0, -2147483649.0, 9.3e18,  1.9e19, INFINITY, -INFINITY,
                                 NAN,       88.5,         -103.0,        255.5,   256.0,  -129.0};
    static const int64_t odd_i[] = {0,
                                    1,
                                    -1,
                                    2,
                                    7,
                                    -7,
                                    31,
                                    63,
                                    64,
                                    127,
                                    128,
                                    -128,
                                    255,
                                    256,
                                    32767,
                                    65535,
                                    INT32_MAX,
                                    INT32_MIN,
                                    (int64_t)UINT32_MAX,
                                    INT64_MAX,
                                    INT64_MIN,
                                    1ll << 53,
                                    (1ll << 53) + 1};
    mica__number x = {0.0, 0};
    const bool take = special && kit_below(kt, 3) == 0;
    if (mica__is_float(dtype)) {
        x.f = take ? odd[kit_below(kt, sizeof odd / sizeof odd[0])]
                   : ldexp((double)(kit_below(kt, 20001) - 10000), -(int)kit_below(kt, 14));
        x.f = mica__round_f64(dtype, x.f);
    } else {
        x.i = take ? odd_i[kit_below(kt, sizeof odd_i / sizeof odd_i[0])] : kit_below(kt, 41) - 20;
        if (!take && kit_below(kt, 4) == 0) x.i = (int64_t)kit_random(kt);
        x.i = mica__wrap_i64(dtype, x.i);
    }
    return x;
}

/* ------------------------------------------------------------- building ---- */

static inline void kit_init(kit *kt, int ndim, int n_fold, const int64_t *size)
{
    const uint64_t seed = kt->seed;
    memset(kt, 0, sizeof *kt);
    kt->seed = seed;
    kt->k.inst = kt->inst;
    kt->k.access = kt->access;
    kt->k.ndim = ndim;
    kt->k.n_fold = n_fold;
    for (int d = 0; d < ndim; d++) kt->k.size[d] = size[d];
    kt->k.fold = UINT32_MAX;
}

static inline mica__kinst *kit_add(kit *kt, mica__kcode code, mica_dtype dtype, uint32_t *number)
{
    mica__kinst *inst = &kt->inst[kt->k.n_inst];
    inst->code = code;
    inst->dtype = inst->in_dtype = dtype;
    *number = kt->k.n_inst++;
    return inst;
}

/* An access with these strides. Its memory extends from its lowest to its highest
 * element and is filled with random numbers. */
static inline uint32_t kit_access(kit *kt, mica_dtype dtype, const int64_t *strides, bool special)
{
    const uint32_t number = kt->k.n_access++;
    mica__access *a = &kt->access[number];
    int64_t low = 0, high = 0;
    bool empty = false;
    a->block = number;
    a->dtype = dtype;
    for (int d = 0; d < kt->k.ndim; d++) {
        const int64_t reach = (kt->k.size[d] - 1) * strides[d];
        a->strides[d] = strides[d];
        if (strides[d] == 0) continue; /* an empty folded loop still has results */
        if (kt->k.size[d] == 0) empty = true;
        if (reach < 0) low += reach;
        else high += reach;
    }
    const int64_t n = empty ? 0 : high - low + 1;
    a->offset = empty ? 0 : -low;
    kt->nbytes[number] = (size_t)n * mica_dtype_size(dtype);
    kt->memory[number] = malloc(kt->nbytes[number] ? kt->nbytes[number] : 1);
    for (int64_t i = 0; i < n; i++) mica__scalar_store(dtype, kt->memory[number], i, kit_number(kt, dtype, special));
    return number;
}

static inline uint32_t kit_load(kit *kt, mica_dtype dtype, const int64_t *strides, bool special)
{
    uint32_t v;
    mica__kinst *inst = kit_add(kt, MICA__K_LOAD, dtype, &v);
    inst->access = kit_access(kt, dtype, strides, special);
    return v;
}

static inline uint32_t kit_store(kit *kt, uint32_t value, const int64_t *strides)
{
    uint32_t v;
    mica__kinst *inst = kit_add(kt, MICA__K_STORE, kt->inst[value].dtype, &v);
    inst->access = kit_access(kt, inst->dtype, strides, false);
    inst->arg[0] = value;
    inst->n_arg = 1;
    kt->written[inst->access] = true;
    return inst->access;
}

static inline uint32_t kit_map(kit *kt, mica__op op, mica_dtype out, uint32_t a, uint32_t b, uint32_t c,
                               const void *attr)
{
    uint32_t v;
    mica__kinst *inst = kit_add(kt, MICA__K_MAP, out, &v);
    inst->op = op;
    inst->arg[0] = a, inst->arg[1] = b, inst->arg[2] = c;
    inst->n_arg = (uint32_t)mica__op_get((uint16_t)op)->n_in;
    inst->in_dtype = kt->inst[inst->arg[op == MICA__OP_WHERE ? 1 : 0]].dtype;
    inst->attr = attr;
    return v;
}

static inline uint32_t kit_const(kit *kt, mica_dtype dtype, mica__number value)
{
    uint32_t v;
    if (mica__is_float(dtype)) value.f = mica__round_f64(dtype, value.f);
    kit_add(kt, MICA__K_CONST, dtype, &v)->value = value;
    return v;
}

/* start + step * (offset + strides . index); accesses no memory. */
static inline uint32_t kit_iota(kit *kt, mica_dtype dtype, int64_t offset, const int64_t *strides)
{
    uint32_t v;
    mica__kinst *inst = kit_add(kt, MICA__K_IOTA, dtype, &v);
    inst->value = (mica__number){0.1, dtype == MICA_BOOL ? 0 : 5};
    inst->step = (mica__number){-0.7, 3};
    inst->access = kt->k.n_access++;
    mica__access *a = &kt->access[inst->access];
    *a = (mica__access){.block = MICA__NO_BLOCK, .dtype = dtype, .offset = offset};
    for (int d = 0; d < kt->k.ndim; d++) a->strides[d] = strides[d];
    return v;
}

static inline uint32_t kit_fold(kit *kt, mica__op op, mica_dtype out, uint32_t a)
{
    uint32_t v;
    mica__kinst *inst = kit_add(kt, MICA__K_FOLD, out, &v);
    inst->op = op;
    inst->in_dtype = kt->inst[a].dtype;
    inst->arg[0] = a;
    inst->n_arg = 1;
    kt->k.fold = v;
    return v;
}

static inline void kit_end(kit *kt)
{
    if (kt->k.fold == UINT32_MAX) kt->k.fold = kt->k.n_inst;
}

static inline void kit_row_major(const kit *kt, int n, int64_t *strides)
{
    int64_t s = 1;
    for (int d = kt->k.ndim; d-- > 0;) {
        strides[d] = d < n ? s : 0;
        if (d < n) s *= kt->k.size[d];
    }
}

static inline void kit_free(kit *kt)
{
    for (uint32_t i = 0; i < kt->k.n_access; i++) free(kt->memory[i]);
}

/* -------------------------------------------------------------- running ---- */

/* Units in the last place between two floats of a dtype; 0 for two NaN. */
static inline double kit_ulps(mica_dtype dtype, const void *a, const void *b, int64_t i)
{
    const double x = mica__get_f64(dtype, a, i), y = mica__get_f64(dtype, b, i);
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y) ? 0 : INFINITY;
    const size_t size = mica_dtype_size(dtype);
    int64_t bits[2];
    for (int j = 0; j < 2; j++) {
        uint64_t u = 0;
        memcpy(&u, (const char *)(j ? b : a) + (size_t)i * size, size); /* little-endian */
        const uint64_t sign = 1ull << (8 * size - 1);
        bits[j] = u & sign ? -(int64_t)(u & ~sign) : (int64_t)u;
    }
    const uint64_t a_bits = (uint64_t)bits[0], b_bits = (uint64_t)bits[1];
    return (double)(bits[0] > bits[1] ? a_bits - b_bits : b_bits - a_bits);
}

/* Compares the results with the reference: exactly if ulps is 0, else -0 equals 0. */
static inline bool kit_same(const kit *kt, char *const *want, double ulps, const char *what)
{
    for (uint32_t i = 0; i < kt->k.n_access; i++) {
        if (!kt->written[i]) continue;
        const mica_dtype dtype = kt->access[i].dtype;
        const int64_t n = (int64_t)(kt->nbytes[i] / mica_dtype_size(dtype));
        for (int64_t e = 0; e < n; e++) {
            const bool is_float = mica__is_float(dtype);
            const double off =
                is_float ? kit_ulps(dtype, kt->memory[i], want[i], e)
                         : (double)(mica__get_i64(dtype, kt->memory[i], e) != mica__get_i64(dtype, want[i], e));
            const bool ok = is_float ? off <= ulps : off == 0;
            if (!EXPECT_MSG(ok, "%s: element %lld of %s result a%u: %.17g, want %.17g (%g ulp)", what, (long long)e,
                            mica_dtype_name(dtype), i, mica__get_f64(dtype, kt->memory[i], e),
                            mica__get_f64(dtype, want[i], e), off))
                return false;
        }
    }
    return true;
}

/* Runs the kernel as a chain for one kind of CPU, with its tasks in order and in reverse
 * order. clean: the contents of the result memory before the run. */
static inline bool kit_check_variant(kit *kt, const chain_variant *variant, char *const *want, char *const *clean,
                                     const mica__index_fault *fault, double ulps, const char *what)
{
    mica__arena arena;
    mica__chain *chain = NULL;
    mica__arena_init(&arena);
    bool ok =
        EXPECT_MSG(mica__chain_build_for(variant, &kt->k, &arena, &chain) == MICA_OK && chain, "%s: not built", what);
    for (int backwards = 0; backwards < 2 && ok && (!backwards || mica__chain_tasks(chain) > 1); backwards++) {
        mica__chain_part *part = malloc(MICA__CHAIN_MAX_PARTS * sizeof *part);
        mica__index_fault seen = MICA__INDEX_FAULT_NONE;
        const mica__chain_run run = {.chain = chain, .block = kt->memory, .fault = &seen, .part = part};
        const int64_t n = mica__chain_tasks(chain);
        for (int64_t i = 0; i < n; i++) mica__chain_task(&run, backwards ? n - 1 - i : i);
        mica__chain_finish(&run);
        free(part);
        ok = kit_same(kt, want, ulps, what) &&
             EXPECT_MSG(seen.set == fault->set && seen.position == fault->position && seen.index == fault->index,
                        "%s: fault %d at %lld, want %d at %lld", what, seen.set, (long long)seen.position, fault->set,
                        (long long)fault->position);
        for (uint32_t i = 0; i < kt->k.n_access; i++)
            if (kt->written[i]) memcpy(kt->memory[i], clean[i], kt->nbytes[i]);
    }
    mica__arena_free(&arena);
    return ok;
}

/* Runs the kernel on the reference interpreter and as a chain: every variant that this CPU
 * supports, 64-byte vectors, and non-temporal stores. Returns false after a failure. */
static inline bool kit_check(kit *kt, double ulps, const char *what)
{
    char *want[KIT_MAX_ACCESS] = {NULL}, *clean[KIT_MAX_ACCESS] = {NULL};
    const int64_t outer = mica__kernel_outer(&kt->k);
    mica__index_fault fault = MICA__INDEX_FAULT_NONE;
    char where[160];
    bool ok = true;
    for (uint32_t i = 0; i < kt->k.n_access; i++) {
        want[i] = kt->memory[i];
        if (!kt->written[i]) continue;
        want[i] = malloc(kt->nbytes[i] + 1);
        clean[i] = malloc(kt->nbytes[i] + 1);
        memcpy(want[i], kt->memory[i], kt->nbytes[i]);
        memcpy(clean[i], kt->memory[i], kt->nbytes[i]); /* gaps between results must not change */
    }
    mica__ref_kernel(&kt->k, want, 0, outer, &fault);

    size_t n_variant;
    const chain_variant *variants = mica__chain_variants(&n_variant);
    for (size_t v = 0; v < n_variant && ok; v++) {
        snprintf(where, sizeof where, "%s, %s", what, variants[v].table->name);
        ok = kit_check_variant(kt, &variants[v], want, clean, &fault, ulps, where);
    }
    const chain_variant wide = chain_64_variant();
    snprintf(where, sizeof where, "%s, %s", what, wide.table->name);
    ok = ok && kit_check_variant(kt, &wide, want, clean, &fault, ulps, where);
    chain_variant stream = *mica__chain_best_variant();
    stream.stream_from = 256;
    snprintf(where, sizeof where, "%s, streamed", what);
    ok = ok && kit_check_variant(kt, &stream, want, clean, &fault, ulps, where);
    for (uint32_t i = 0; i < kt->k.n_access; i++) {
        if (kt->written[i]) free(want[i]);
        free(clean[i]);
    }
    return ok;
}

#endif
