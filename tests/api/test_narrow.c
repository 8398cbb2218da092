/* Matrix products of narrow operands through mica.h: matmul(cast(a), cast(b)) reads a and b without
 * widening them in memory. It gives the same bits as ref, with the pass on and off and any number
 * of threads, and fuses the ops that follow into the same kernel. */
#include "api.h"

/* The sizes of a product (batch 0: no batch axis) and the layout of b. */
typedef struct product {
    int64_t batch, m, k, n;
    bool transposed, sliced;
} product;

static const product products[] = {
    {0, 1, 64, 40, true, false},    {0, 1, 65, 600, false, false}, {0, 3, 33, 7, true, false},
    {0, 40, 17, 1, false, false},   {0, 5, 1, 9, false, false},    {0, 32, 128, 48, true, false},
    {0, 33, 131, 67, false, false}, {3, 9, 20, 11, true, false},   {2, 1, 30, 30, false, false},
    {0, 12, 40, 24, false, true},   {2, 20, 1100, 18, true, true}, {0, 4, 0, 6, false, false},
};

static const mica_dtype bytes[][2] = {{MICA_I8, MICA_I8}, {MICA_U8, MICA_I8}, {MICA_I8, MICA_U8}, {MICA_U8, MICA_U8}};

/* Integers cover all values of the dtype; floats are small. */
static mica_array *operand(mica_scope *s, mica_dtype dtype, const product *p, bool is_b)
{
    int64_t shape[3] = {p->batch, is_b ? p->k : p->m, is_b ? p->n : p->k};
    const int skip = p->batch == 0, ndim = 3 - skip;
    if (is_b && p->transposed) shape[1] = p->n, shape[2] = p->k;
    if (is_b && p->sliced) shape[2] *= 2;
    mica_array *x = dtype <= MICA_I8
                        ? mica_random_randint(s, dtype, ndim, shape + skip, dtype == MICA_U8 ? 0 : -128,
                                              dtype == MICA_U8 ? 256 : 128, 5 + is_b)
                        : mica_cast(s, mica_random_uniform(s, MICA_F32, ndim, shape + skip, -1, 1, 7), dtype);
    return x;
}

/* The views between the cast of b and the product. */
static mica_array *as_b(mica_scope *s, const product *p, mica_array *x)
{
    if (p->sliced) x = mica_slice_axis(s, x, -1, 0, MICA_AUTO, 2);
    return p->transposed ? mica_transpose(s, x) : x;
}

typedef struct outcome {
    char *bytes;
    size_t nbytes;
    uint64_t kernels;
} outcome;

/* The product of evaluated operands; with epilogue it is scaled and shifted. */
static outcome run_product(const char *backend, uint32_t passes, int threads, const product *p, mica_dtype a,
                           mica_dtype b, mica_dtype wide, bool epilogue)
{
    mica_engine_options o = options_for(backend, threads);
    o.passes = passes;
    mica_engine *e = open_with(&o);
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = operand(s, a, p, false), *w = operand(s, b, p, true);
    EXPECT_OK(mica_eval(s, ARRAYS(x, w)));
    const uint64_t before = stats_of(e).kernels;
    mica_array *y = mica_matmul(s, mica_cast(s, x, wide), as_b(s, p, mica_cast(s, w, wide)));
    if (epilogue) {
        y = mica_mul(s, mica_cast(s, y, MICA_F32), mica_scalar(s, 0.25));
        y = mica_relu(s, mica_sub(s, y, mica_scalar(s, 3)));
    }
    EXPECT_OK(mica_eval(s, &y, 1));
    outcome out = {.nbytes = y ? mica_array_nbytes(y) : 0, .kernels = stats_of(e).kernels - before};
    out.bytes = malloc(out.nbytes + 1);
    if (y) EXPECT_OK(mica_copy_out(y, out.bytes, out.nbytes));
    mica_scope_end(s);
    mica_close(e);
    return out;
}

static void expect_same(const char *what, const outcome *got, const outcome *want)
{
    EXPECT_MSG(got->nbytes == want->nbytes && memcmp(got->bytes, want->bytes, want->nbytes) == 0, "%s differs", what);
}

TEST(integers_are_the_same_bits)
{
    const uint32_t off = MICA_PASS_ALL & ~(uint32_t)MICA_PASS_NARROW;
    for (size_t i = 0; i < COUNT(products); i++)
        for (size_t d = 0; d < COUNT(bytes); d++)
            for (int epilogue = 0; epilogue < 2; epilogue++) {
                const product *p = &products[i];
                const mica_dtype a = bytes[d][0], b = bytes[d][1], wide = d == 3 ? MICA_U32 : MICA_I32;
                test_case("%lld x (%lld, %lld, %lld), %s and %s%s", (long long)p->batch, (long long)p->m,
                          (long long)p->k, (long long)p->n, mica_dtype_name(a), mica_dtype_name(b),
                          epilogue ? ", scaled" : "");
                outcome want = run_product("ref", MICA_PASS_ALL, 1, p, a, b, wide, epilogue);
                outcome on = run_product("cpu", MICA_PASS_ALL, 1, p, a, b, wide, epilogue);
                outcome threads = run_product("cpu", MICA_PASS_ALL, 3, p, a, b, wide, epilogue);
                outcome without = run_product("cpu", off, 1, p, a, b, wide, epilogue);
                expect_same("cpu", &on, &want);
                expect_same("cpu with three threads", &threads, &want);
                expect_same("cpu without the pass", &without, &want);
                /* casts and the following ops are part of the same kernel */
                EXPECT_INT(on.kernels, 1);
                EXPECT_MSG(without.kernels > 1, "%d kernels without the pass", (int)without.kernels);
                free(want.bytes);
                free(on.bytes);
                free(threads.bytes);
                free(without.bytes);
            }
}

/* f16, bf16 and f32 operands in any combination, f32 results: as close to ref as an f32 sum. */
TEST(floats_are_close)
{
    static const mica_dtype pairs[][2] = {{MICA_BF16, MICA_BF16},
                                          {MICA_F16, MICA_F16},
                                          {MICA_F32, MICA_BF16},
                                          {MICA_F16, MICA_F32},
                                          {MICA_F16, MICA_BF16}};
    for (size_t i = 0; i < COUNT(products); i++)
        for (size_t d = 0; d < COUNT(pairs); d++) {
            const product *p = &products[i];
            test_case("%lld x (%lld, %lld, %lld), %s and %s", (long long)p->batch, (long long)p->m, (long long)p->k,
                      (long long)p->n, mica_dtype_name(pairs[d][0]), mica_dtype_name(pairs[d][1]));
            outcome want = run_product("ref", MICA_PASS_ALL, 1, p, pairs[d][0], pairs[d][1], MICA_F32, false);
            outcome on = run_product("cpu", MICA_PASS_ALL, 2, p, pairs[d][0], pairs[d][1], MICA_F32, false);
            EXPECT_INT(on.kernels, 1);
            EXPECT_INT(on.nbytes, want.nbytes);
            for (size_t k = 0; k + 4 <= want.nbytes && on.nbytes == want.nbytes; k += 4) {
                float x, y;
                memcpy(&x, on.bytes + k, 4);
                memcpy(&y, want.bytes + k, 4);
                CHECK_CLOSE((double)x, (double)y, 0, (double)(p->k + 2) * (double)p->k * 6e-8);
            }
            free(want.bytes);
            free(on.bytes);
        }
}

/* A cast with other users is still computed; other products do not change. */
TEST(other_users_of_a_cast)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    const int8_t values[4] = {-128, 127, 3, -4};
    mica_array *x = mica_from_data(s, MICA_I8, SHAPE(2, 2), values), *wide = mica_cast(s, x, MICA_I32);
    mica_array *square = mica_matmul(s, wide, wide), *sum = mica_sum(s, wide, NULL, 0, false);
    mica_array *mixed = mica_matmul(s, wide, mica_mul(s, wide, wide));
    EXPECT_OK(mica_eval(s, ARRAYS(square, sum, mixed)));
    int32_t got[4], want[4] = {-128 * -128 + 127 * 3, -128 * 127 + 127 * -4, 3 * -128 + -4 * 3, 3 * 127 + 16};
    EXPECT_OK(mica_copy_out(square, got, sizeof got));
    for (int i = 0; i < 4; i++) EXPECT_INT(got[i], want[i]);
    EXPECT_INT(item_of(sum), -2);
    EXPECT_OK(mica_copy_out(mixed, got, sizeof got));
    EXPECT_INT(got[0], -128 * 16384 + 127 * 9);
    EXPECT_INT(got[3], 3 * 16129 + -4 * 16);
    mica_scope_end(s);
    mica_close(e);
}
