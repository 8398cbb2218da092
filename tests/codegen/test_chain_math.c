/* The float functions that the chain computes in registers, against the definition in double: every
 * variant that this CPU can run, and vectors of 64 bytes without instructions for them. The inputs
 * cover all exponents and signs; the bound is 2 ulp. Special values are checked one by one. -v
 * prints the error of each function next to that of SLEEF. MICA_TEST_DENSE=1, as in make test-long,
 * tests 17 times as many numbers.
 *
 * runs: arm, wide-vectors */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/chain_64.h"
#include "graph/scalar.h"
#include "op_facts.h"
#include "test.h"

enum { N = CHAIN_MAX_BLOCK, MOST_TABLES = 8 };

/* ------------------------------------------------------------- distance ---- */

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The difference in ulp of the float nearest to want. NaN, infinities and the sign of 0
 * must match exactly. */
static double ulps(float got, double want)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0.0 : INFINITY;
    if (isinf(want)) return (double)got == want ? 0.0 : INFINITY;
    if (got == 0.0f && !signbit(got) != !signbit(want)) return INFINITY;
    int exponent;
    const double size = fabs(want) < 0x1p-126 ? 0x1p-126 : fabs(want);
    /* 2^128, the first value beyond the floats: infinity represents it */
    const double reached = isinf(got) ? copysign(0x1p128, (double)got) : (double)got;
    if (size >= 0x1p128) return fabs(reached - copysign(0x1p128, want)) / 0x1p104;
    frexp(size, &exponent);
    return fabs(reached - want) / ldexp(1.0, exponent - 24);
}

static double defined(mica__op op, float a, float b, const mica__attr_value *attr)
{
    const mica__number arg[3] = {{(double)a, 0}, {(double)b, 0}, {0, 0}};
    /* the passes may replace pow(a, 2) by a product, so it is rounded like one */
    if (op == MICA__OP_POW && b == 2.0f) return (double)(a * a);
    return mica__scalar_map(op, MICA_F64, MICA_F64, arg, attr, NULL).f;
}

/* --------------------------------------------------------------- blocks ---- */

typedef struct math_test {
    const chain_table *table[MOST_TABLES];
    size_t n_table;
    chain_ctx *ctx;
    mica__attr_value attr;
    float a[N], b[N], out[N];
    double want[N], worst[MOST_TABLES];
    float at[MOST_TABLES], with[MOST_TABLES];
} math_test;

static bool math_begin(math_test *t)
{
    memset(t, 0, sizeof *t);
    size_t n;
    const chain_variant *variant = mica__chain_variants(&n);
    for (size_t i = 0; i < n && i + 1 < MOST_TABLES; i++) t->table[t->n_table++] = variant[i].table;
    t->table[t->n_table++] = &mica__chain_test64;
    t->attr.value = 1.2345;
    t->ctx = calloc(1, sizeof *t->ctx);
    return t->ctx != NULL;
}

static bool is_binary(mica__op op) { return mica__op_get((uint16_t)op)->n_in == 2; }

static void run_table(math_test *t, const chain_table *table, mica__op op)
{
    const chain_op program[] = {
        {.fn = table->load, .a = 0},
        {.fn = is_binary(op) ? table->binary[op] : table->unary[op], .b = 1, .attr = &t->attr},
        {.fn = table->store, .dst = 2},
        {.fn = table->done},
    };
    t->ctx->n = table->block;
    for (int64_t k = 0; k < N; k += table->block) {
        t->ctx->ptr[0] = (char *)(t->a + k);
        t->ctx->ptr[1] = (char *)(t->b + k);
        t->ctx->ptr[2] = (char *)(t->out + k);
        t->ctx->left = 1;
        table->run(program, t->ctx);
    }
}

/* Runs N numbers through every table and keeps the largest error of each. */
static void measure_block(math_test *t, mica__op op)
{
    for (int i = 0; i < N; i++) t->want[i] = defined(op, t->a[i], t->b[i], &t->attr);
    for (size_t v = 0; v < t->n_table; v++) {
        run_table(t, t->table[v], op);
        for (int i = 0; i < N; i++) {
            const double far = ulps(t->out[i], t->want[i]);
            if (far <= t->worst[v]) continue;
            t->worst[v] = far;
            t->at[v] = t->a[i];
            t->with[v] = t->b[i];
        }
    }
}

static void math_end(math_test *t, mica__op op, const char *what)
{
    for (size_t v = 0; v < t->n_table; v++) {
        test_case("%s, %s: %s, %.3f ulp at (%a, %a)", mica__op_get((uint16_t)op)->name, what, t->table[v]->name,
                  t->worst[v], (double)t->at[v], (double)t->with[v]);
        EXPECT_MSG(t->worst[v] <= 2.0, "%s on %s is off by %.3f ulp at (%a, %a), want %a",
                   mica__op_get((uint16_t)op)->name, t->table[v]->name, t->worst[v], (double)t->at[v],
                   (double)t->with[v], defined(op, t->at[v], t->with[v], &t->attr));
        t->worst[v] = 0.0;
    }
}

/* ----------------------------------------------------------------- tests --- */

typedef struct function_case {
    mica__op op;
    uint32_t step;              /* between tested bit patterns; prime                    */
    const char *sleef;
} function_case;

static function_case functions[OP_FACTS_MAX];
static int n_functions;

/* Lists the ops whose vector form is a function or has an attribute. */
__attribute__((constructor)) static void list_functions(void)
{
    size_t n;
    const op_facts *facts = op_facts_all(&n);
    for (size_t i = 0; i < n; i++) {
        if (facts[i].op == MICA__OP_COUNT) continue;
        const mica__op_place place = mica__op_get((uint16_t)facts[i].op)->place;
        if (place != MICA__PLACE_FUNCTION && place != MICA__PLACE_LOOP && place != MICA__PLACE_VALUE) continue;
        const op_test *test = &facts[i].test;
        functions[n_functions++] = (function_case){facts[i].op, test->step ? test->step : 2503, test->sleef};
    }
}

/* The second operand of a block: any magnitude, sometimes close to the first. */
static float second_operand(mica__op op, uint64_t bits, float a)
{
    const float some = (float)((int)((bits >> 7) % 41) - 20) * 0.37f;
    if (op == MICA__OP_POW) return some;
    const uint32_t other = (uint32_t)(bits * 2654435761u);
    return other % 3 == 0 ? from_bits(other) : a * some;
}

TEST(within_two_ulp)
{
    math_test t;
    CHECK(math_begin(&t));
    const uint32_t apart = getenv("MICA_TEST_DENSE") ? 1 : 17;
    for (int f = 0; f < n_functions; f++) {
        const mica__op op = functions[f].op;
        const uint32_t step = functions[f].step * apart;
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += (uint64_t)N * step) {
            for (uint32_t i = 0; i < N; i++) {
                t.a[i] = from_bits((uint32_t)bits + i * step);
                t.b[i] = second_operand(op, bits + i / 16, t.a[i]);
            }
            measure_block(&t, op);
        }
        math_end(&t, op, "all exponents");
    }
    free(t.ctx);
}

TEST(where_they_are_steep)
{
    /* values that are usual in networks, and the ends of the ranges */
    static const float range[][2] = {
        {-1.5f, 1.5f}, {-12.0f, 12.0f}, {-15.0f, -8.0f}, {80.0f, 92.0f}, {-112.0f, -80.0f}};
    math_test t;
    CHECK(math_begin(&t));
    for (int f = 0; f < n_functions; f++) {
        const mica__op op = functions[f].op;
        for (size_t r = 0; r < sizeof range / sizeof *range; r++)
            for (int k = 0; k < 100000; k += N) {
                for (int i = 0; i < N; i++) {
                    const float far = (float)(k + i) / 100000.0f;
                    t.a[i] = range[r][0] + (range[r][1] - range[r][0]) * far;
                    t.b[i] = is_binary(op) ? (float)((k + i) % 97) * 0.11f - 5.0f : 0.0f;
                }
                measure_block(&t, op);
            }
        math_end(&t, op, "ranges");
    }
    free(t.ctx);
}

TEST(special_values)
{
    static const float special[] = {0.0f,
                                    -0.0f,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    1.0f,
                                    -1.0f,
                                    2.0f,
                                    -2.0f,
                                    3.0f,
                                    -3.0f,
                                    0.5f,
                                    -0.5f,
                                    1e-45f,
                                    -1e-45f,
                                    0x1p-126f,
                                    -0x1p-126f,
                                    0x1.fffffep127f,
                                    -0x1.fffffep127f,
                                    88.7228f,
                                    88.7229f,
                                    -87.3366f,
                                    -103.972f,
                                    -103.973f,
                                    -104.0f,
                                    89.4159f,
                                    89.416f,
                                    1e9f,
                                    -1e9f,
                                    0x1p23f,
                                    0x1.000002p23f,
                                    0x1.fffffep-1f,
                                    0x1p-12f,
                                    8191.99f,
                                    8192.0f};
    enum { N_SPECIAL = sizeof special / sizeof *special };
    math_test t;
    CHECK(math_begin(&t));
    for (int f = 0; f < n_functions; f++) {
        for (int k = 0; k < N_SPECIAL * N_SPECIAL; k += N) {
            for (int i = 0; i < N; i++) {
                t.a[i] = special[(k + i) % N_SPECIAL];
                t.b[i] = special[(k + i) / N_SPECIAL % N_SPECIAL];
            }
            measure_block(&t, functions[f].op);
        }
        math_end(&t, functions[f].op, "special values");
    }
    free(t.ctx);
}

/* a * b + c rounded once, whichever operand is in a register. */
TEST(fma_is_exact)
{
    math_test t;
    CHECK(math_begin(&t));
    for (size_t v = 0; v < t.n_table; v++) {
        const chain_table *table = t.table[v];
        if (!table->fma_factor) continue;
        test_case("%s", table->name);
        for (int i = 0; i < N; i++) {
            t.a[i] = 1.0f + (float)i * 0x1p-23f;
            t.b[i] = -1.0f + (float)(3 * i) * 0x1p-24f;
            t.want[i] = 0.0;
        }
        for (int term = 0; term < 2; term++) {
            const chain_op program[] = {
                {.fn = table->load, .a = 0},
                {.fn = term ? table->fma_term : table->fma_factor, .a = (uint16_t)term, .b = 1},
                {.fn = table->store, .dst = 2},
                {.fn = table->done},
            };
            t.ctx->n = table->block;
            t.ctx->left = 1;
            t.ctx->ptr[0] = (char *)t.a, t.ctx->ptr[1] = (char *)t.b, t.ctx->ptr[2] = (char *)t.out;
            table->run(program, t.ctx);
            for (int i = 0; i < table->block; i++) {
                const float want = term ? fmaf(t.b[i], t.b[i], t.a[i]) : fmaf(t.a[i], t.a[i], t.b[i]);
                CHECK_MSG(t.out[i] == want, "lane %d is %a, not %a", i, (double)t.out[i], (double)want);
            }
        }
    }
    free(t.ctx);
}

/* ----------------------------------------------------------------- SLEEF --- */

typedef float sleef_1(float);
typedef float sleef_2(float, float);

static double worst_of_sleef(mica__op op, void *symbol)
{
    double worst = 0.0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 29989) {
        const float a = from_bits((uint32_t)bits), b = second_operand(op, bits, a);
        float got;
        if (is_binary(op)) {
            sleef_2 *f;
            memcpy(&f, &symbol, sizeof f);
            got = f(a, b);
        } else {
            sleef_1 *f;
            memcpy(&f, &symbol, sizeof f);
            got = f(a);
        }
        const double far = ulps(got, defined(op, a, b, NULL));
        if (far > worst) worst = far;
    }
    return worst;
}

/* The test above checks our functions to 2 ulp; this one prints the errors of SLEEF on
 * the same numbers. It fails if SLEEF lacks a function, or if an error is too small to be real. */
TEST(beside_sleef)
{
    void *library = dlopen("libsleef.so.3", RTLD_NOW);
    if (!library) SKIP("SLEEF is not installed");
    for (int f = 0; f < n_functions; f++) {
        if (!functions[f].sleef) continue;
        char name[64];
        snprintf(name, sizeof name, "Sleef_%s", functions[f].sleef);
        void *symbol = dlsym(library, name);
        if (!EXPECT_MSG(symbol != NULL, "SLEEF has no %s", name)) continue;
        const double worst = worst_of_sleef(functions[f].op, symbol);
        test_case("%s: %.3f ulp", name, worst);
        EXPECT(worst >= 0.25);
    }
    dlclose(library);
}
