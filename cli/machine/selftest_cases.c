/* See selftest.h and selftest_cases.def. */
#include "machine/selftest.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- inputs ---- */

static uint32_t input_seed(const selftest_run *t, int input)
{
    uint32_t h = 0x811c9dc5u + (uint32_t)input;
    for (const char *p = t->name; *p; p++) h = (h ^ (unsigned char)*p) * 0x01000193u;
    return h;
}

static uint32_t next_number(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u; }
/* A multiple of 2^-15 in [-1, 1), exact in f32. */
static float next_unit(uint32_t *seed) { return (float)(next_number(seed) >> 16) * (1.0f / 32768.0f) - 1.0f; }

/* Makes input i from data, which is freed. */
static mica_array *given(selftest_run *t, int i, mica_dtype dtype, int ndim, const int64_t *shape, void *data)
{
    mica_array *x = data ? mica_from_data(t->s, dtype, ndim, shape, data)
                         : mica_scope_fail(t->s, MICA_ERR_MEMORY, "selftest: no memory for an input of %s", t->name);
    free(data);
    return t->input[i] = x;
}

static mica_array *selftest_floats(selftest_run *t, int input, mica_dtype dtype, int64_t rows, int64_t cols)
{
    const int64_t n = rows * cols;
    uint32_t seed = input_seed(t, input);
    char *data = malloc((size_t)n * mica_dtype_size(dtype));
    for (int64_t i = 0; data && i < n; i++) {
        const float x = next_unit(&seed);
        const uint16_t half = dtype == MICA_F16 ? mica_f16_from_f32(x) : mica_bf16_from_f32(x);
        if (dtype == MICA_F32) memcpy(data + 4 * i, &x, 4);
        else memcpy(data + 2 * i, &half, 2);
    }
    return given(t, input, dtype, 2, (int64_t[]){rows, cols}, data);
}

static mica_array *selftest_integers(selftest_run *t, int input, mica_dtype dtype, int64_t rows, int64_t cols,
                                     uint32_t below)
{
    const int64_t n = rows * cols;
    uint32_t seed = input_seed(t, input);
    char *data = malloc((size_t)n * mica_dtype_size(dtype));
    for (int64_t i = 0; data && i < n; i++) {
        const int64_t wide = (next_number(&seed) >> 8) % below;
        const int32_t narrow = (int32_t)wide;
        if (dtype == MICA_I64) memcpy(data + 8 * i, &wide, 8);
        else memcpy(data + 4 * i, &narrow, 4);
    }
    return given(t, input, dtype, 2, (int64_t[]){rows, cols}, data);
}

/* ---------------------------------------------------------------- parts ---- */

/* Each function over ranges where it is steep and where it is flat. */
static mica_array *selftest_functions(mica_scope *s, mica_array *x)
{
    mica_array *wide = mica_mul(s, x, mica_scalar(s, 9)), *above = mica_add(s, mica_abs(s, wide), mica_scalar(s, 0.01));
    mica_array *parts[] = {mica_exp(s, wide),      mica_tanh(s, wide),      mica_erf(s, wide),
                           mica_sigmoid(s, wide),  mica_sin(s, wide),       mica_cos(s, wide),
                           mica_log(s, above),     mica_sqrt(s, above),     mica_pow(s, above, x),
                           mica_softplus(s, wide), mica_gelu_tanh(s, wide), mica_expm1(s, x)};
    return mica_concat(s, parts, sizeof parts / sizeof parts[0], 0);
}

/* x (n, cols) times a (rows, cols) matrix in a block format. */
static mica_array *selftest_quant(selftest_run *t, const char *format, int64_t rows, int64_t cols, int64_t n,
                                  mica_act act)
{
    const size_t nbytes = mica_quant_nbytes(format, rows, cols);
    uint32_t seed = input_seed(t, 0);
    float *values = malloc((size_t)(rows * cols) * sizeof *values);
    void *bytes = malloc(nbytes + 1);
    for (int64_t i = 0; values && i < rows * cols; i++) values[i] = next_unit(&seed);
    if (values && bytes && mica_quant_pack(format, rows, cols, values, bytes, nbytes) != MICA_OK) {
        mica_scope_fail(t->s, MICA_ERR_INTERNAL, "selftest: %s", mica_last_error());
        free(bytes);
        bytes = NULL;
    }
    free(values);
    const mica_quant w = {.struct_size = sizeof w,
                          .format = format,
                          .rows = rows,
                          .cols = cols,
                          .data = given(t, 0, MICA_U8, 1, (int64_t[]){(int64_t)nbytes}, bytes)};
    return mica_quant_matmul(t->s, selftest_floats(t, 1, MICA_F32, n, cols), &w, act);
}

enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, DIMS = 16 };

static mica_array *heads_of(selftest_run *t, int input, mica_dtype dtype, int64_t heads, int64_t time)
{
    mica_array *x = selftest_floats(t, input, dtype, BATCH * heads * time, DIMS);
    return mica_reshape(t->s, x, 4, (int64_t[]){BATCH, heads, time, DIMS});
}

static mica_array *selftest_attention(selftest_run *t, mica_dtype dtype, int64_t time, bool causal)
{
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = causal;
    mica_array *q = heads_of(t, 0, dtype, HEADS, time), *k = heads_of(t, 1, dtype, KV_HEADS, time);
    return mica_attention(t->s, q, k, heads_of(t, 2, dtype, KV_HEADS, time), NULL, &o);
}

/* Attention over the first 21 of 30 cached keys. */
static mica_array *selftest_cached(selftest_run *t, int64_t queries)
{
    mica_attention_options o;
    mica_attention_options_init(&o);
    o.causal = true;
    mica_array *q = heads_of(t, 0, MICA_F32, HEADS, queries), *k = heads_of(t, 1, MICA_F16, KV_HEADS, 30);
    mica_array *v = heads_of(t, 2, MICA_F16, KV_HEADS, 30),
               *length = mica_from_data(t->s, MICA_I64, 0, NULL, (int64_t[]){21});
    return mica_attention_cached(t->s, q, k, v, length, &o);
}

/* ---------------------------------------------------------------- cases ---- */

#define F(i, dtype, rows, cols) selftest_floats(t, i, MICA_##dtype, rows, cols)
#define N(i, dtype, rows, cols, n) selftest_integers(t, i, MICA_##dtype, rows, cols, n)
#define R(x, ndim, ...) mica_reshape(s, x, ndim, (int64_t[]){__VA_ARGS__})

#define SELFTEST(name, tolerance, ...)                        \
    static mica_array *selftest_build_##name(selftest_run *t) \
    {                                                         \
        mica_scope *s = t->s;                                 \
        (void)s;                                              \
        return __VA_ARGS__;                                   \
    }
#include "machine/selftest_cases.def"
#undef SELFTEST

const selftest_case selftest_cases[] = {
#define SELFTEST(name, tolerance, ...) {#name, tolerance, selftest_build_##name},
#include "machine/selftest_cases.def"
#undef SELFTEST
};
const size_t selftest_n_cases = sizeof selftest_cases / sizeof selftest_cases[0];
