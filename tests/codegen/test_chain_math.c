/* The functions of floats that the chain computes in vectors: every variant this
 * CPU can run, over all exponents and signs, at most 1 ulp from the rounded
 * double, special values exactly. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/chain_ctx.h"
#include "graph/scalar.h"
#include "test.h"

enum { N = CHAIN_MAX_BLOCK };

/* Floats in order as integers: neighbours differ by 1. */
static int64_t rank_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? -(int64_t)(bits & INT32_MAX) : bits;
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

typedef struct bench {
    chain_ctx *ctx;
    float a[N], b[N], out[N];
    mica__attr_value attr;
} bench;

/* Worst distance over the block; a NaN on one side only is infinitely far. */
static bool close_block(bench *t, mica__op op, chain_tile_fn *fn, int64_t ulps)
{
    const chain_op ip = {.a = 0, .b = 1, .dst = 2, .op = (uint16_t)op, .attr = &t->attr};
    t->ctx->n = N;
    t->ctx->ptr[0] = (char *)t->a;
    t->ctx->ptr[1] = (char *)t->b;
    t->ctx->ptr[2] = (char *)t->out;
    fn(&ip, t->ctx);
    for (int i = 0; i < N; i++) {
        const mica__number arg[3] = {{(double)t->a[i], 0}, {(double)t->b[i], 0}, {0, 0}};
        const float want = (float)mica__scalar_map(op, MICA_F32, MICA_F32, arg, &t->attr, NULL).f;
        const bool both_nan = isnan(want) && isnan(t->out[i]);
        const bool ok =
            both_nan || (!isnan(want) && !isnan(t->out[i]) && llabs(rank_of(want) - rank_of(t->out[i])) <= ulps);
        if (!EXPECT_MSG(ok, "%s(%a, %a) is %a, not %a", mica__op_get((uint16_t)op)->name, (double)t->a[i],
                        (double)t->b[i], (double)t->out[i], (double)want))
            return false;
    }
    return true;
}

static void sweep(bench *t, mica__op op, chain_tile_fn *fn)
{
    static const float special[] = {0.0f,   -0.0f,   1.0f,    -1.0f,  0.5f,    2.0f,  88.7f, 88.8f,
                                    -87.4f, -103.9f, -104.1f, 1e-45f, -1e-45f, 1e38f, -1e38f};
    for (size_t i = 0; i < N; i++) {
        const size_t k = i % (sizeof special / sizeof *special + 3);
        t->a[i] = k == 0 ? NAN : k == 1 ? INFINITY : k == 2 ? -INFINITY : special[k - 3];
        t->b[i] = i % 7 == 0 ? -2.5f : (float)(i % 11);
    }
    if (!close_block(t, op, fn, 1)) return;
    /* a prime step through all 2^32 patterns: every exponent, both signs */
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += (uint64_t)N * 10007) {
        for (uint32_t i = 0; i < N; i++) {
            t->a[i] = from_bits((uint32_t)bits + i * 10007u);
            t->b[i] = (float)((int)((bits >> 7) % 41) - 20) * 0.37f;
            if (op == MICA__OP_POW) t->a[i] = fabsf(t->a[i]); /* its vector part; the rest is the C library's */
        }
        if (!close_block(t, op, fn, 1)) return;
    }
}

TEST(within_one_ulp)
{
    size_t n_variant;
    const chain_variant *variant = mica__chain_variants(&n_variant);
    bench t = {.ctx = malloc(sizeof(chain_ctx)), .attr = {1.25}};
    CHECK(t.ctx != NULL);
    for (size_t v = 0; v < n_variant; v++)
        for (int op = 0; op < MICA__OP_COUNT; op++) {
            if (!variant[v].math[op]) continue;
            test_case("%s: %s", variant[v].table->name, mica__op_get((uint16_t)op)->name);
            sweep(&t, (mica__op)op, variant[v].math[op]);
        }
    free(t.ctx);
}
