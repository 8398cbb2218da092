/* SM_COUNT: kernels whose operations are known by hand. Each rule of count/rules.def has a kernel here; the counts of
 * all classes are compared, so an operation that is counted in the wrong class, or twice, fails. */
#include "runner.h"
#include "softmetal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 64, GROUP = 32, NO_RULE = SM_RULES };

static const char head[] = "#include <metal_stdlib>\nusing namespace metal;\n"
                           "struct args { float s; int n; uint m; };\n"
                           "kernel void k(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
                           "              device const int *c [[buffer(2)]], device int *d [[buffer(3)]],\n"
                           "              constant args &p [[buffer(4)]], uint i [[thread_position_in_grid]],\n"
                           "              uint j [[thread_index_in_threadgroup]])\n";

typedef struct args {
    float s;
    int n;
    unsigned m;
} args;

typedef struct count_case {
    const char *name, *body;
    double want[SM_COSTS]; /* by each thread */
    int rule;              /* the rule that the kernel is for, or NO_RULE */
} count_case;

#define RULE(id) SM_RULE_##id
#define ADDRESSES(n) [SM_COST_ADDRESS] = (n), [SM_COST_DEVICE_MEMORY] = (n)

static const count_case cases[] = {
    {"copy", "{ b[i] = a[i]; }", {ADDRESSES(2)}, RULE(GEP_INDEX)},
    {"multiply", "{ b[i] = a[i] * a[i]; }", {ADDRESSES(2), [SM_COST_FLOAT] = 1}, NO_RULE},
    {"multiply and add", "{ b[i] = a[i] * a[i] + 1.0f; }", {ADDRESSES(2), [SM_COST_FLOAT] = 1}, RULE(CONTRACT)},
    {"a product with two uses",
     "{ const float x = a[i] * a[i]; b[i] = x + 1.0f; d[i] = as_type<int>(x); }",
     {ADDRESSES(3), [SM_COST_FLOAT] = 2},
     NO_RULE},
    {"half operands",
     "{ b[i] = float(((device const half *)a)[i]) * p.s; }",
     {ADDRESSES(2), [SM_COST_FLOAT] = 1},
     RULE(HALF_WIDEN)},
    {"half fma",
     "{ device const half *h = (device const half *)a; const half x = h[i]; b[i] = float(fma(x, x, x)); }",
     {ADDRESSES(2), [SM_COST_FLOAT] = 1},
     NO_RULE},
    {"absolute value", "{ b[i] = -fabs(a[i]) + p.s; }", {ADDRESSES(2), [SM_COST_FLOAT] = 1}, RULE(MODIFIER)},
    {"values of a constant buffer",
     "{ b[i] = a[i] * (p.s * p.s + float(p.n) + exp(p.s)); }",
     {ADDRESSES(2), [SM_COST_FLOAT] = 1},
     RULE(PREAMBLE)},
    {"select", "{ b[i] = a[i] > p.s ? a[i] : 7.0f; }", {ADDRESSES(2), [SM_COST_SELECT] = 1}, RULE(COMPARE)},
    {"minimum", "{ b[i] = min(a[i], p.s); d[i] = max(c[i], 3); }", {ADDRESSES(4), [SM_COST_SELECT] = 2}, NO_RULE},
    {"int add and logic", "{ d[i] = (c[i] + p.n) ^ 0x5555; }", {ADDRESSES(2), [SM_COST_INT] = 2}, NO_RULE},
    {"int multiply", "{ d[i] = c[i] * c[i]; }", {ADDRESSES(2), [SM_COST_INT_MUL] = 1}, NO_RULE},
    {"int multiply and add", "{ d[i] = c[i] * c[i] + 7; }", {ADDRESSES(2), [SM_COST_INT_MUL] = 1}, RULE(MUL_ADD)},
    {"int multiply, high part", "{ d[i] = mulhi(c[i], p.n); }", {ADDRESSES(2), [SM_COST_INT_MUL_HIGH] = 1}, NO_RULE},
    {"long product of ints",
     "{ ((device long *)b)[i] = long(c[i]) * long(p.n); }",
     {ADDRESSES(2), [SM_COST_INT_MUL_HIGH] = 1},
     RULE(MUL_WIDE)},
    {"long product",
     "{ device const long *l = (device const long *)a; ((device long *)b)[i] = l[i] * l[i]; }",
     {ADDRESSES(2), [SM_COST_INT_MUL_64] = 1},
     NO_RULE},
    {"long sum",
     "{ device const long *l = (device const long *)a; ((device long *)b)[i] = l[i] + p.n; }",
     {ADDRESSES(2), [SM_COST_INT64] = 1},
     NO_RULE},
    {"shift and add",
     "{ d[i] = c[i] + (as_type<int>(a[i]) << 3); }",
     {ADDRESSES(3), [SM_COST_INT] = 1},
     RULE(SHIFT_ADD)},
    {"shift by 5 and add",
     "{ d[i] = c[i] + (as_type<int>(a[i]) << 5); }",
     {ADDRESSES(3), [SM_COST_INT] = 1, [SM_COST_SHIFT] = 1},
     NO_RULE},
    {"shift by a variable",
     "{ d[i] = c[i] << (as_type<int>(a[i]) & 31); }",
     {ADDRESSES(3), [SM_COST_INT] = 1, [SM_COST_SHIFT_VARIABLE] = 1},
     NO_RULE},
    {"bits of an int", "{ d[i] = c[i] >> 5 & 7; }", {ADDRESSES(2), [SM_COST_SHIFT] = 1}, RULE(BIT_EXTRACT)},
    {"extract_bits", "{ d[i] = extract_bits(c[i], 3u, 5u); }", {ADDRESSES(2), [SM_COST_SHIFT] = 1}, RULE(KNOWN_AMOUNT)},
    {"popcount and clz",
     "{ d[i] = popcount(c[i]) + clz(c[i]); }",
     {ADDRESSES(2), [SM_COST_INT] = 1, [SM_COST_SHIFT] = 2},
     NO_RULE},
    {"int to float and back",
     "{ b[i] = float(c[i]); d[i] = int(a[i]); }",
     {ADDRESSES(4), [SM_COST_CONVERT] = 2},
     NO_RULE},
    {"rounding",
     "{ b[i] = rint(a[i]) + floor(a[i]); }",
     {ADDRESSES(2), [SM_COST_CONVERT] = 2, [SM_COST_FLOAT] = 1},
     NO_RULE},
    {"int division",
     "{ d[i] = c[i] / (as_type<int>(a[i]) | 1); }",
     {ADDRESSES(3), [SM_COST_INT] = 1, [SM_COST_INT_DIVIDE] = 1},
     NO_RULE},
    {"int division by 7",
     "{ d[i] = int(uint(c[i]) / 7u); }",
     {ADDRESSES(2), [SM_COST_INT_MUL_HIGH] = 1, [SM_COST_SHIFT] = 1},
     RULE(DIVIDE_KNOWN)},
    {"exp2",
     "{ b[i] = exp2(a[i]) + log2(a[i]); }",
     {ADDRESSES(2), [SM_COST_EXP_LOG] = 2, [SM_COST_FLOAT] = 1},
     NO_RULE},
    {"exp", "{ b[i] = exp(a[i]); }", {ADDRESSES(2), [SM_COST_EXP_LOG] = 1, [SM_COST_FLOAT] = 1}, NO_RULE},
    {"division", "{ b[i] = p.s / a[i]; }", {ADDRESSES(2), [SM_COST_DIVIDE] = 1}, NO_RULE},
    {"reciprocal", "{ b[i] = 1.0f / a[i]; }", {ADDRESSES(2), [SM_COST_RECIPROCAL] = 1}, RULE(RECIPROCAL)},
    {"roots",
     "{ b[i] = rsqrt(a[i]) * sqrt(a[i]); }",
     {ADDRESSES(2), [SM_COST_RSQRT] = 1, [SM_COST_SQRT] = 1, [SM_COST_FLOAT] = 1},
     NO_RULE},
    {"precise functions",
     "{ b[i] = precise::sqrt(a[i]) * precise::sin(a[i]) * precise::divide(a[i], p.s) * sin(a[i]); }",
     {ADDRESSES(2), [SM_COST_SQRT_PRECISE] = 1, [SM_COST_TRIG_PRECISE] = 1, [SM_COST_DIVIDE_PRECISE] = 1,
      [SM_COST_TRIG] = 1, [SM_COST_FLOAT] = 3},
     RULE(PRECISE)},
    {"an element of a vector",
     "{ const float4 v = ((device const float4 *)a)[i]; b[i] = v.x + v.w; }", /* not neighbours: two loads */
     {[SM_COST_ADDRESS] = 2, [SM_COST_DEVICE_MEMORY] = 3, [SM_COST_FLOAT] = 1},
     RULE(GEP_CONSTANT)},
    {"a pointer that differs by thread",
     "{ device const float *q = a + i; b[i] = q[c[i] & 1]; }",
     {[SM_COST_ADDRESS] = 3, [SM_COST_ADDRESS_64] = 1, [SM_COST_DEVICE_MEMORY] = 3, [SM_COST_INT] = 1},
     RULE(GEP_BASE)},
    {"threadgroup memory",
     "{ threadgroup float t[32]; t[j] = a[i]; threadgroup_barrier(mem_flags::mem_threadgroup); b[i] = t[j ^ 1]; }",
     {[SM_COST_ADDRESS] = 4,
      [SM_COST_DEVICE_MEMORY] = 2,
      [SM_COST_LOCAL_MEMORY] = 2,
      [SM_COST_BARRIER] = 1,
      [SM_COST_INT] = 1},
     RULE(GEP_LOCAL)},
    {"vectors of four",
     "{ ((device float4 *)b)[i] = ((device const float4 *)a)[i] * p.s; }",
     {ADDRESSES(2), [SM_COST_FLOAT] = 4},
     RULE(NEIGHBOURS)},
    {"neighbours by index",
     "{ b[i] = a[4 * i] + a[4 * i + 1] + a[4 * i + 2] + a[4 * i + 3]; }",
     {ADDRESSES(2), [SM_COST_FLOAT] = 3},
     RULE(NEIGHBOURS)},
    {"halves of a word",
     "{ const half2 h = as_type<half2>(c[i] + p.n); b[i] = float(h.x) + float(h.y); }",
     {ADDRESSES(2), [SM_COST_INT] = 1, [SM_COST_FLOAT] = 1},
     RULE(PIECES)},
    {"ushort to int",
     "{ d[i] = int(((device const ushort *)a)[i]) + p.n; }",
     {ADDRESSES(2), [SM_COST_INT] = 1},
     RULE(EXTEND)},
    {"char to int",
     "{ d[i] = int(((device const char *)a)[i]) + p.n; }",
     {ADDRESSES(2), [SM_COST_INT] = 1, [SM_COST_SHIFT] = 1},
     RULE(SIGN_BYTE)},
    {"shuffle from a lane",
     "{ b[i] = simd_shuffle(a[i], 3); }",
     {ADDRESSES(2), [SM_COST_SHUFFLE] = 1},
     RULE(UNIFORM_SHUFFLE)},
    {"shuffle from any lane",
     "{ b[i] = simd_shuffle(a[i], ushort(c[i] & 31)); }",
     {ADDRESSES(3), [SM_COST_INT] = 1, [SM_COST_SHUFFLE_RANDOM] = 1},
     NO_RULE},
    {"shuffle of a vector",
     "{ ((device float2 *)b)[i] = simd_shuffle_xor(((device const float2 *)a)[i], 1); }",
     {ADDRESSES(2), [SM_COST_SHUFFLE] = 2},
     NO_RULE},
    {"reduction", "{ b[i] = simd_sum(a[i]); }", {ADDRESSES(2), [SM_COST_REDUCTION] = 1}, NO_RULE},
    {"ballot",
     "{ d[i] = simd_any(a[i] > 0.5f) ? 1 : 2; }",
     {ADDRESSES(2), [SM_COST_SHUFFLE] = 1, [SM_COST_SELECT] = 2},
     NO_RULE},
    {"atomic",
     "{ atomic_fetch_add_explicit((device atomic_int *)d + (i & 3), c[i], memory_order_relaxed); }",
     {[SM_COST_ADDRESS] = 2, [SM_COST_DEVICE_MEMORY] = 1, [SM_COST_INT] = 1, [SM_COST_ATOMIC] = 1},
     NO_RULE},
    {"loop",
     "{ float s = a[i]; for (int k = 0; k < p.n; k++) s = fma(s, s, 1.0f); b[i] = s; }",
     {ADDRESSES(2), [SM_COST_FLOAT] = 100, [SM_COST_INT] = 100, [SM_COST_SELECT] = 101},
     NO_RULE},
    {"8x8 matrix product",
     "{ simdgroup_float8x8 x, y, z; simdgroup_load(x, a, 8); simdgroup_load(y, a, 8);\n"
     "  simdgroup_multiply(z, x, y); simdgroup_store(z, b, 8); }",
     {[SM_COST_DEVICE_MEMORY] = 3, [SM_COST_MATRIX] = 1},
     NO_RULE},
};
enum { CASES = sizeof cases / sizeof *cases };

static const char *const class_names[] = {
#define X(id, name, cost, slots, pipe, title) name,
#include "count/classes.def"
#undef X
};

static float numbers[16 * THREADS], results[16 * THREADS];
static int integers[16 * THREADS], int_results[16 * THREADS];

static bool open_case(runner *r, const char *body)
{
    char *text = malloc(sizeof head + strlen(body) + 1);
    static args p = {0.5f, 100, 3};
    if (!EXPECT(text != NULL)) return false;
    memcpy(text, head, sizeof head - 1);
    strcpy(text + sizeof head - 1, body);
    const bool good = runner_open(r, text, "k", NULL, 0);
    free(text);
    for (int i = 0; i < 16 * THREADS; i++) {
        numbers[i] = (float)(i % 7) / 8;
        integers[i] = i * 37;
        results[i] = 0;
        int_results[i] = 0;
    }
    runner_buffer(r, 0, numbers, sizeof numbers);
    runner_buffer(r, 1, results, sizeof results);
    runner_buffer(r, 2, integers, sizeof integers);
    runner_buffer(r, 3, int_results, sizeof int_results);
    runner_buffer(r, 4, &p, sizeof p);
    return good;
}

static bool count_case_of(const char *body, sm_counts *counts)
{
    runner r = {0};
    sm_count("", 0);
    const bool good = open_case(&r, body) && runner_run(&r, (uint32_t[3]){THREADS, 1, 1}, (uint32_t[3]){GROUP, 1, 1}) &&
                      EXPECT(sm_kernel_counts(r.kernel, counts));
    sm_count(NULL, 0);
    runner_close(&r);
    return good;
}

TEST(operations_are_counted_by_class)
{
    if (!runner_usable()) return;
    for (int i = 0; i < CASES; i++) {
        sm_counts counts;
        test_case("%s", cases[i].name);
        if (!count_case_of(cases[i].body, &counts)) continue;
        for (int k = 0; k < SM_COSTS; k++) {
            const double got = counts.operations[k] / (double)THREADS, want = cases[i].want[k];
            EXPECT_MSG(got >= want && got <= want, "%s: %g operations a thread, not %g", class_names[k], got, want);
            EXPECT_MSG(counts.issued[k] * 32 >= got * (double)THREADS, "%s: %g simd instructions", class_names[k],
                       counts.issued[k]);
        }
        if (cases[i].rule != NO_RULE) EXPECT_MSG(counts.folds[cases[i].rule] > 0, "the rule was not applied");
        EXPECT_INT(counts.counted, THREADS / GROUP);
        EXPECT_INT(counts.groups, THREADS / GROUP);
    }
}

TEST(each_rule_has_a_kernel)
{
    static const char *const names[] = {
#define FOLD(id, name, text) name,
#include "count/rules.def"
    };
    for (int rule = 0; rule < SM_RULES; rule++) {
        bool found = false;
        for (int i = 0; i < CASES; i++) found |= cases[i].rule == rule;
        EXPECT_MSG(found, "no kernel for the rule %s", names[rule]);
    }
}

TEST(costs_add_up_and_overlap)
{
    if (!runner_usable()) return;
    sm_counts c;
    /* two addresses, two accesses, an addition and a shift by 5 of cost 4 in another address and load */
    if (!count_case_of("{ d[i] = c[i] + (as_type<int>(a[i]) << 5); }", &c)) return;
    EXPECT_CLOSE(c.sum, THREADS * (3 + 3 + 1 + 4), 0, 0);
    EXPECT_CLOSE(c.slots, THREADS * (3 + 3 + 1 + 1), 0, 0);
    EXPECT_CLOSE(c.pipe, THREADS * 4, 0, 0);
    EXPECT_CLOSE(c.overlap, c.slots, 0, 0);
    EXPECT_CLOSE(c.active_lanes, 32, 0, 0);
    if (!count_case_of("{ d[i] = int(float(c[i] * c[i] * c[i])) * c[i]; }", &c))
        return; /* three products, two conversions */
    EXPECT_CLOSE(c.slots, THREADS * (2 + 2 + 5), 0, 0);
    EXPECT_CLOSE(c.pipe, THREADS * 20, 0, 0);
    EXPECT_CLOSE(c.overlap, c.pipe, 0, 0);
}

TEST(inactive_lanes_cost_as_active_ones)
{
    if (!runner_usable()) return;
    sm_counts c;
    if (!count_case_of("{ if (j < 8) b[i] = exp2(a[i]); }", &c)) return;
    EXPECT_CLOSE(c.operations[SM_COST_EXP_LOG], 8 * 2, 0, 0); /* lanes of two simdgroups */
    EXPECT_CLOSE(c.issued[SM_COST_EXP_LOG], 2, 0, 0);
    /* the branch by 32 lanes; two addresses, two accesses and exp2 (4) by 8 */
    EXPECT_CLOSE(c.sum, THREADS * (1 + 4 + 4), 0, 0);
    EXPECT_CLOSE(c.active_lanes, (32 * 1 + 8 * 8) / 9.0, 1e-12, 0);
    /* both sides of a branch */
    if (!count_case_of("{ if (j & 1) b[i] = exp2(a[i]); else b[i + 64] = a[i] / p.s; }", &c)) return;
    EXPECT_CLOSE(c.issued[SM_COST_EXP_LOG], 2, 0, 0);
    EXPECT_CLOSE(c.operations[SM_COST_EXP_LOG], THREADS / 2, 0, 0);
    EXPECT_CLOSE(c.operations[SM_COST_DIVIDE], THREADS / 2, 0, 0);
    /* a loop of j rounds: as many as the lane with most, 31 */
    if (!count_case_of("{ float s = a[i]; for (uint k = 0; k < j; k++) s = fma(s, s, p.s); b[i] = s; }", &c)) return;
    EXPECT_CLOSE(c.operations[SM_COST_FLOAT], 2 * (31 * 32 / 2), 0, 0);
    EXPECT_CLOSE(c.issued[SM_COST_FLOAT], 2 * 31, 0, 0);
}

TEST(results_are_right_while_counting)
{
    if (!runner_usable()) return;
    sm_counts c;
    if (!count_case_of("{ b[i] = simd_sum(a[i]); if (j < 7) d[i] = simd_max(c[i]); }", &c)) return;
    float sum = 0;
    for (int i = 0; i < 32; i++) sum += numbers[i];
    EXPECT_CLOSE(results[5], sum, 1e-6, 0);
    EXPECT_INT(int_results[3], integers[6]);
    if (!count_case_of("{ simdgroup_float8x8 x, z; simdgroup_load(x, a, 8); simdgroup_multiply(z, x, x);\n"
                       "  simdgroup_store(z, b, 8); }",
                       &c))
        return;
    for (int row = 0; row < 8; row++)
        for (int col = 0; col < 8; col++) {
            float dot = 0;
            for (int k = 0; k < 8; k++) dot += numbers[8 * row + k] * numbers[8 * k + col];
            EXPECT_CLOSE(results[8 * row + col], dot, 1e-6, 0);
        }
    EXPECT_CLOSE(c.issued[SM_COST_MATRIX], 2, 0, 0);
}

TEST(functions_that_stay_calls_are_counted)
{
    if (!runner_usable()) return;
    static const char text[] = "#include <metal_stdlib>\nusing namespace metal;\n"
                               "__attribute__((noinline)) float square(device const float *p, float x)\n"
                               "{ return p[0] * x * x; }\n"
                               "kernel void k(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
                               "{ a[i] = square(a + i, 2.0f) + square(a + 32, a[i]); }\n";
    float x[64];
    runner r = {0};
    sm_counts c;
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    sm_count("", 0);
    setenv("SM_SEED", "7", 1); /* the order of threads does not matter */
    if (runner_open(&r, text, "k", NULL, 0)) {
        runner_buffer(&r, 0, x, sizeof x);
        EXPECT(runner_run(&r, (uint32_t[3]){32, 1, 1}, (uint32_t[3]){32, 1, 1}) && sm_kernel_counts(r.kernel, &c));
        EXPECT_CLOSE(c.operations[SM_COST_FLOAT], 32 * (2 + 2 + 1), 0, 0);
        EXPECT_CLOSE(c.issued[SM_COST_FLOAT], 5, 0, 0);
        EXPECT_CLOSE(c.loaded_bytes, 32 * 3 * 4, 0, 0); /* a[i] twice, a[32] */
        EXPECT_CLOSE(x[3], 3 * 4 + 32 * 3 * 3, 0, 0);
    }
    unsetenv("SM_SEED");
    sm_count(NULL, 0);
    runner_close(&r);
}

TEST(registers_limit_the_resident_threads)
{
    if (!runner_usable()) return;
    sm_counts few, many;
    if (!count_case_of("{ b[i] = a[i]; }", &few)) return;
    if (!count_case_of("{ float s[64]; for (int k = 0; k < 64; k++) s[k] = a[i + k];\n"
                       "  for (int n = 0; n < p.n; n++) for (int k = 0; k < 64; k++) s[k] = s[k] * s[k] + p.s;\n"
                       "  float t = 0; for (int k = 0; k < 64; k++) t += s[k]; b[i] = t; }",
                       &many))
        return;
    EXPECT_MSG(few.registers <= 8, "%u", few.registers);
    EXPECT_INT(few.resident_threads, 1024);
    EXPECT_MSG(many.registers >= 128 && many.registers < 144, "%u: 64 floats are 128", many.registers);
    EXPECT_MSG(many.resident_threads < 1024 && many.resident_threads % GROUP == 0, "%u", many.resident_threads);
    EXPECT_INT(many.thread_bytes, 0);
    if (!count_case_of("{ float s[8]; for (int k = 0; k < 8; k++) s[k] = a[i + k]; b[i] = s[c[i] & 7]; }", &many))
        return;
    EXPECT_INT(many.thread_bytes, 32);
}

TEST(a_precise_library_takes_precise_functions)
{
    if (!runner_usable()) return;
    static const char text[] = "#include <metal_stdlib>\nusing namespace metal;\n"
                               "kernel void k(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
                               "{ a[i] = fast::sqrt(a[i]) + sqrt(a[i]) / a[i]; }\n";
    const sm_options options = {.fast_math = false};
    float x[32];
    runner r = {0};
    sm_counts c;
    for (int i = 0; i < 32; i++) x[i] = 1;
    sm_count("", 0);
    r.library = sm_library_open(text, sizeof text - 1, &options, &r.message);
    if (EXPECT_MSG(r.library, "%s", r.message) && runner_build(&r, "k", NULL, 0)) {
        runner_buffer(&r, 0, x, sizeof x);
        EXPECT(runner_run(&r, (uint32_t[3]){32, 1, 1}, (uint32_t[3]){32, 1, 1}) && sm_kernel_counts(r.kernel, &c));
        EXPECT_CLOSE(c.operations[SM_COST_SQRT], 32, 0, 0);
        EXPECT_CLOSE(c.operations[SM_COST_SQRT_PRECISE], 32, 0, 0);
        EXPECT_CLOSE(c.operations[SM_COST_DIVIDE_PRECISE], 32, 0, 0);
        EXPECT_CLOSE(x[7], 2, 1e-6, 0);
    }
    sm_count(NULL, 0);
    runner_close(&r);
}

TEST(counting_and_checking_exclude_each_other)
{
    if (!runner_usable()) return;
    char *message = NULL;
    runner r = {0};
    if (!open_case(&r, "{ b[i] = a[i]; }")) return;
    sm_counts c;
    EXPECT(!sm_kernel_counts(r.kernel, &c)); /* not built for it */
    sm_count("", 0);
    setenv("SM_CHECK", "1", 1);
    sm_kernel *kernel = sm_kernel_build(r.library, "k", NULL, 0, &message);
    EXPECT(!kernel && message && strstr(message, "SM_COUNT cannot be combined with SM_CHECK"));
    unsetenv("SM_CHECK");
    sm_count(NULL, 0);
    free(message);
    runner_close(&r);
}
