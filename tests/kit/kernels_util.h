/* Operands for kernel tests, and runs of a kernel family on ref and on cpu with several thread
 * counts. Tensors are random and have random strides. Each buffer has exactly the bytes that its
 * tensor reaches, so a sanitizer reports every access outside of it. */
#ifndef MICA_TEST_KERNELS_UTIL_H
#define MICA_TEST_KERNELS_UTIL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/walk.h"
#include "kernel_scratch.h"
#include "test.h"

static uint64_t util_state = 0x9e3779b97f4a7c15u;

static inline uint64_t util_random(void)
{
    util_state += 0x9e3779b97f4a7c15u;
    uint64_t z = util_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int64_t util_below(int64_t n) { return (int64_t)(util_random() % (uint64_t)n); }
static inline double util_real(double low, double high)
{
    return low + (high - low) * (double)(util_random() >> 11) * 0x1p-53;
}

/* Sizes around the edges of vectors, strips, tiles and blocks. */
static inline int64_t util_size(void)
{
    static const int64_t sizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 17, 33, 64, 65};
    return sizes[util_below((int64_t)(sizeof sizes / sizeof *sizes))];
}

static inline mica__spec util_spec(mica_dtype dtype, int ndim, const int64_t *shape)
{
    mica__spec spec = {.dtype = (int32_t)dtype, .ndim = ndim};
    for (int d = 0; d < ndim; d++) spec.shape[d] = shape[d];
    return spec;
}

typedef enum util_layout { UTIL_DENSE, UTIL_ANY } util_layout;

typedef struct util_tensor {
    mica__tensor t;
    char *memory;
    size_t nbytes;
} util_tensor;

/* Axes in random order, some with negative strides, with gaps, or with stride 0;
 * UTIL_DENSE: row-major. */
static inline util_tensor util_tensor_new(mica__spec spec, util_layout layout)
{
    util_tensor u = {.t = {.spec = spec}};
    mica__row_major(&spec, u.t.strides);
    if (layout == UTIL_ANY && util_below(3) > 0) {
        int order[MICA_MAX_DIMS];
        int64_t span = 1;
        for (int d = 0; d < spec.ndim; d++) order[d] = d;
        for (int d = spec.ndim - 1; d > 0; d--) {
            const int other = (int)util_below(d + 1), swap = order[d];
            order[d] = order[other];
            order[other] = swap;
        }
        for (int i = 0; i < spec.ndim; i++) {
            const int d = order[i];
            const int64_t gap = 1 + (util_below(4) == 0);
            u.t.strides[d] = util_below(8) == 0 ? 0 : (util_below(4) == 0 ? -1 : 1) * span * gap;
            if (u.t.strides[d] != 0) span *= mica__max_i64(1, spec.shape[d]) * gap;
        }
    }
    if (mica__spec_size(&spec) == 0) return u;
    int64_t low = 0, high = 0;
    for (int d = 0; d < spec.ndim; d++) {
        const int64_t reach = (spec.shape[d] - 1) * u.t.strides[d];
        if (reach < 0) low += reach;
        else high += reach;
    }
    const size_t size = mica_dtype_size((mica_dtype)spec.dtype);
    u.nbytes = (size_t)(high - low + 1) * size;
    u.memory = malloc(u.nbytes);
    if (!u.memory) abort();
    u.t.data = u.memory - low * (int64_t)size;
    for (int64_t i = 0; i < high - low + 1; i++) {
        if (mica__is_float((mica_dtype)spec.dtype))
            mica__set_f64((mica_dtype)spec.dtype, u.memory, i, util_real(-2, 2));
        else
            mica__set_i64((mica_dtype)spec.dtype, u.memory, i,
                          spec.dtype == MICA_BOOL ? util_below(2) : (int64_t)util_random());
    }
    return u;
}

static inline util_tensor util_new(mica_dtype dtype, int ndim, const int64_t *shape)
{
    return util_tensor_new(util_spec(dtype, ndim, shape), UTIL_ANY);
}

static inline void util_free(util_tensor *u)
{
    free(u->memory);
    u->memory = NULL;
}

/* Element number `flat` in row-major order, by its offset. */
static inline int64_t util_offset(const mica__tensor *t, int64_t flat)
{
    return mica__offset_at(t->spec.ndim, t->spec.shape, t->strides, flat);
}

static inline double util_f64(const mica__tensor *t, int64_t flat)
{
    return mica__get_f64((mica_dtype)t->spec.dtype, t->data, util_offset(t, flat));
}

static inline void util_set_all(util_tensor *u, double (*value)(int64_t flat))
{
    for (int64_t i = 0; i < mica__spec_size(&u->t.spec); i++)
        mica__set_f64((mica_dtype)u->t.spec.dtype, u->t.data, util_offset(&u->t, i), value(i));
}

/* Pools are kept for the whole program and freed at its end. */
static mica__pool *util_pools[9];

static inline void util_free_pools(void)
{
    for (int i = 0; i < 9; i++) mica__pool_free(util_pools[i]);
}

static inline mica__pool *util_pool(int threads)
{
    static bool registered;
    if (!registered) registered = atexit(util_free_pools) == 0;
    if (threads > 1 && !util_pools[threads] && mica__pool_new(threads, &util_pools[threads]) != MICA_OK) abort();
    return util_pools[threads];
}

/* Counts how often each element of the result was passed to the epilogue. */
typedef struct util_count {
    _Atomic int *seen;
    int64_t n;
    atomic_bool outside;
} util_count;

static inline void util_count_run(const mica__epilogue *epilogue, int64_t begin, int64_t end)
{
    util_count *count = (util_count *)(uintptr_t)epilogue->context;
    if (begin < 0 || end > count->n || begin > end) {
        atomic_store(&count->outside, true);
        return;
    }
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&count->seen[i], 1);
}

/* Runs op into a new dense tensor: threads 0 is ref, else cpu. */
static inline util_tensor util_run(mica__op op, int threads, const mica__tensor *in, uint32_t n_in, const void *attr,
                                   mica__spec spec, mica_status want)
{
    const mica__family *family = mica__family_get(op);
    util_tensor out = util_tensor_new(spec, UTIL_DENSE);
    if (out.memory) memset(out.memory, 0x5a, out.nbytes);
    const size_t scratch = family->workspace ? family->workspace(in, n_in, attr, &spec) : 0;
    void *workspace = NULL;
    if (scratch && posix_memalign(&workspace, 64, scratch)) abort();
    const int64_t n = mica__spec_size(&spec);
    util_count count = {.seen = calloc((size_t)n + 1, sizeof(int)), .n = n};
    const mica__epilogue epilogue = {util_count_run, &count};
    bool taken = false;
    const mica__launch launch = {.in = in,
                                 .n_in = n_in,
                                 .out = &out.t,
                                 .attr = attr,
                                 .workspace = workspace,
                                 .pool = util_pool(threads),
                                 .epilogue = family->takes_epilogue && threads ? &epilogue : NULL,
                                 .epilogue_taken = &taken};
    const mica_status status = threads ? family->cpu(&launch) : family->ref(&launch);
    (void)EXPECT_MSG(status == want, "status %d: %s", (int)status, mica_last_error());
    (void)EXPECT(!atomic_load(&count.outside));
    for (int64_t i = 0; i < n; i++)
        if (!EXPECT_MSG(atomic_load(&count.seen[i]) == (taken ? 1 : 0), "element %lld: epilogue ran %d times",
                        (long long)i, atomic_load(&count.seen[i])))
            break;
    free(count.seen);
    free(workspace);
    return out;
}

/* Compares cpu with ref within a tolerance, and cpu with itself for 1, 2, 3, 8 threads:
 * equal bits. NaN must match NaN. */
static inline void util_check(mica__op op, const mica__tensor *in, uint32_t n_in, const void *attr, mica__spec spec,
                              double rtol, double atol)
{
    static const int threads[] = {2, 3, 8};
    const mica_dtype dtype = (mica_dtype)spec.dtype;
    util_tensor want = util_run(op, 0, in, n_in, attr, spec, MICA_OK),
                got = util_run(op, 1, in, n_in, attr, spec, MICA_OK);
    for (int64_t i = 0; i < mica__spec_size(&spec); i++) {
        const double a = util_f64(&got.t, i), b = util_f64(&want.t, i);
        if (mica__is_float(dtype) ? (a != a && b != b) || test_close(a, b, rtol, atol)
                                  : mica__get_i64(dtype, got.t.data, i) == mica__get_i64(dtype, want.t.data, i))
            continue;
        (void)EXPECT_MSG(false, "element %lld of %lld: cpu %.9g, ref %.9g", (long long)i,
                         (long long)mica__spec_size(&spec), a, b);
        break;
    }
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        util_tensor again = util_run(op, threads[t], in, n_in, attr, spec, MICA_OK);
        (void)EXPECT_MSG(got.nbytes == 0 || memcmp(again.memory, got.memory, got.nbytes) == 0,
                         "%d threads give other bits", threads[t]);
        util_free(&again);
    }
    util_free(&want);
    util_free(&got);
}

/* A small multiple of the error of one rounding to the dtype. */
static inline double util_rtol(mica_dtype dtype)
{
    switch (dtype) {
    case MICA_F16: return 2e-3;
    case MICA_BF16: return 1.6e-2;
    case MICA_F32: return 4e-6;
    default: return 1e-12;
    }
}

static const mica_dtype util_floats[] = {MICA_F32, MICA_F16, MICA_BF16, MICA_F64};

#endif
