/* Behaviour that third-party kernels rely on although the specification does not guarantee
 * it, and constructs of their texts. Found by running MLX, ggml and tinygrad; the kernels
 * here are our own. */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "#include <metal_stdlib>\nusing namespace metal;\n"
#define ARGUMENTS                                                                                               \
    "device const float *x [[buffer(0)]], device float *y [[buffer(1)]], uint i [[thread_position_in_grid]],\n" \
    "uint t [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],\n"                        \
    "uint simd [[simdgroup_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]"
#define KERNEL HEAD "kernel void k(" ARGUMENTS ")\n"

/* Runs k over 128 numbers 0, 1, 2, ... in threadgroups of 64. */
static sm_status try(const char *text, const sm_constant *constants, int count, float y[128], char said[400])
{
    float x[128];
    for (int i = 0; i < 128; i++) {
        x[i] = (float)i;
        y[i] = -1;
    }
    *said = 0;
    runner r = {0};
    sm_status status = SM_INVALID;
    if (runner_open(&r, text, "k", constants, count)) {
        runner_buffer(&r, 0, x, sizeof x);
        runner_buffer(&r, 1, y, 128 * sizeof *y);
        status = runner_try(&r, (uint32_t[3]){128, 1, 1}, (uint32_t[3]){64, 1, 1});
        if (r.message) snprintf(said, 400, "%s", r.message);
    }
    runner_close(&r);
    return status;
}

static void expect(const char *text, const sm_constant *constants, int count, float (*want)(int))
{
    float y[128];
    char said[400];
    sm_status status = try(text, constants, count, y, said);
    if (!EXPECT_MSG(status == SM_OK, "%s", said)) return;
    for (int i = 0; i < 128; i++)
        if (!EXPECT_MSG(y[i] == want(i), "y[%d] = %g, not %g", i, (double)y[i], (double)want(i))) return;
}

static float same(int i) { return (float)i; }
static float firsts(int i) { return (float)(i / 64 * 64 * 2 + 32); } /* the sum over both simdgroups */
static float some_firsts(int i) { return (float)i + (i % 32 < 20 ? firsts(i) : 0); }

/* ---- barriers that not all threads reach ---- */

static const struct {
    const char *name, *text;
    float (*want)(int);
} barriers[] = {
    {"one lane of each simdgroup",
     KERNEL "{ threadgroup float s[2], sum[1];\n"
            "  if (lane == 0) {\n    s[simd] = x[i];\n    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
            "    if (simd == 0) sum[0] = s[0] + s[1];\n  }\n"
            "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  y[i] = sum[0]; }",
     firsts},
    {"lanes that skip a loop of barriers",
     KERNEL
     "{ threadgroup float s[2];\n  float sum = 0;\n"
     "  if (lane < 20) {\n    for (int n = 0; n < 2; n++) {\n      threadgroup_barrier(mem_flags::mem_threadgroup);\n"
     "      if (lane == 0) s[simd] = x[i];\n      threadgroup_barrier(mem_flags::mem_threadgroup);\n"
     "      sum = s[0] + s[1];\n    }\n  }\n"
     "  y[i] = sum + x[i]; }",
     some_firsts},
    {"threads that have left",
     KERNEL "{ threadgroup float s[64];\n  y[i] = x[i];\n  if (lane >= 12) return;\n  s[t] = x[i];\n"
            "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  y[i] = s[t ^ 1] + (int(t) - int(t ^ 1)); }",
     same},
    {"a simdgroup that has left",
     KERNEL "{ threadgroup float s[32];\n  y[i] = x[i];\n  if (simd == 1) return;\n  s[t] = x[i];\n"
            "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  y[i] = s[31 - t] + (2 * int(t) - 31); }",
     same},
};

TEST(barriers_count_simdgroups)
{
    if (!runner_usable()) return;
    for (size_t i = 0; i < sizeof barriers / sizeof *barriers; i++) {
        for (int seed = 0; seed < 3; seed++) {
            test_case("%s, seed %d", barriers[i].name, seed);
            setenv("SM_SEED", seed == 0 ? "" : seed == 1 ? "5" : "71", 1);
            expect(barriers[i].text, NULL, 0, barriers[i].want);
        }
        unsetenv("SM_SEED");
        setenv("SM_CHECK", "1", 1);
        float y[128];
        char said[400];
        test_case("%s, checked", barriers[i].name);
        sm_status status = try(barriers[i].text, NULL, 0, y, said);
        EXPECT_MSG(status == SM_CHECKED && strstr(said, "threadgroup_barrier"), "status %d: %s", status, said);
        unsetenv("SM_CHECK");
    }
}

/* ---- lanes that run in step ---- */

static float reversed(int i) { return (float)(i / 32 * 32 + 31 - i % 32); }
static float sums(int i) { return (float)(i / 32 * 32 * 32 + 496); } /* over each simdgroup */
static float weighted(int i) { return sums(i) * (float)(i % 32 + 1); }
static float next_ones(int i) { return (float)(i / 32 * 32 + (i + 16) % 32); }

/* Lanes of a simdgroup use threadgroup memory of each other without a barrier. */
static const struct {
    const char *name, *text;
    float (*want)(int);
} in_step[] = {
    {"a lane overwrites what the others have just read, as in attention of one query",
     KERNEL "{ threadgroup float s[64]; threadgroup float *own = s + 32 * simd;\n  own[lane] = x[i];\n"
            "  simdgroup_barrier(mem_flags::mem_threadgroup);\n"
            "  float sum = 0;\n  for (int j = 0; j < 32; j++) sum += own[j] * float(lane + 1);\n"
            "  if (lane == 0) {\n    own[0] = -1000;\n    own[1] = sum;\n  }\n  y[i] = sum; }",
     weighted},
    {"a lane reads what another has just written",
     KERNEL "{ threadgroup float s[64];\n  s[t] = x[i];\n  y[i] = s[32 * simd + 31 - lane]; }", reversed},
    {"a tree of sums",
     KERNEL "{ threadgroup float s[64]; threadgroup float *own = s + 32 * simd;\n  own[lane] = x[i];\n"
            "  for (uint n = 16; n > 0; n /= 2)\n    if (lane < n) own[lane] += own[lane + n];\n  y[i] = own[0]; }",
     sums},
    {"every lane clears, then each sets its own",
     KERNEL "{ threadgroup float s[64]; threadgroup float *own = s + 32 * simd;\n"
            "  for (int j = 0; j < 32; j++) own[j] = 0;\n  own[lane] = x[i];\n"
            "  simdgroup_barrier(mem_flags::mem_threadgroup);\n  y[i] = own[31 - lane]; }",
     reversed},
    {"halves of a simdgroup write one after the other",
     KERNEL "{ threadgroup float s[64]; threadgroup float *own = s + 32 * simd;\n"
            "  if (lane < 16) own[lane] = x[i];\n  else own[lane] = x[i];\n  y[i] = own[(lane + 16) % 32]; }",
     next_ones},
    {"structs, which are copied whole",
     HEAD "struct row { float e[12]; };\nkernel void k(" ARGUMENTS ")\n"
          "{ threadgroup row s[64];\n  row r;\n  for (int j = 0; j < 12; j++) r.e[j] = x[i] + float(j);\n  s[t] = r;\n"
          "  row q = s[32 * simd + 31 - lane];\n  s[t] = q;\n  float d = 0;\n"
          "  for (int j = 0; j < 12; j++) d += q.e[j] - float(j);\n  y[i] = d / 12; }",
     reversed},
};

TEST(lanes_of_a_simdgroup_run_in_step)
{
    if (!runner_usable()) return;
    static const char *const modes[][2] = {
        {"SM_SEED", ""}, {"SM_SEED", "5"}, {"SM_SEED", "71"}, {"SM_MATH", "fast"}, {"SM_CHECK", "simdgroup"}};
    for (size_t i = 0; i < sizeof in_step / sizeof *in_step; i++) {
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
            test_case("%s, %s=%s", in_step[i].name, modes[m][0], modes[m][1]);
            setenv(modes[m][0], modes[m][1], 1);
            expect(in_step[i].text, NULL, 0, in_step[i].want);
            unsetenv(modes[m][0]);
        }
        setenv("SM_CHECK", "1", 1);
        float y[128];
        char said[400];
        test_case("%s, checked", in_step[i].name);
        sm_status status = try(in_step[i].text, NULL, 0, y, said);
        EXPECT_MSG(status == SM_CHECKED && (strstr(said, ": race: ") || strstr(said, ": uninitialised: ")),
                   "status %d: %s", status, said);
        unsetenv("SM_CHECK");
    }
}

/* Sums in two levels whose threadgroup memory is used twice. Only the language forbids the first two; the third is a
 * race on every GPU, because nothing orders two simdgroups. */
#define TWO_LEVELS(between, second)                                                                               \
    KERNEL "{ threadgroup float s[32];\n  if (simd == 0) s[lane] = 0;\n"                                          \
           "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"                                                 \
           "  float sum = simd_sum(x[i]);\n  if (lane == 0) s[simd] = sum;\n"                                     \
           "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  sum = simd_sum(s[lane]);\n" between "  " second \
           "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"                                                 \
           "  y[i] = s[simd] == 1 ? sum : -1; }"
static float group_sums(int i) { return (float)(i / 64 * 64 * 64 + 2016); }

static const struct {
    const char *name, *text;
    float (*want)(int);
    bool accepted; /* by SM_CHECK=simdgroup */
} reused[] = {
    {"after a barrier without memory",
     TWO_LEVELS("  threadgroup_barrier(mem_flags::mem_none);\n", "if (lane == 0) s[simd] = 1;\n"), group_sums, true},
    {"by the simdgroup that has read it",
     KERNEL "{ threadgroup float s[2];\n  float sum = 0;\n  for (int n = 0; n < 2; n++) {\n"
            "    float part = simd_sum(x[i]);\n    if (lane == 31) s[simd] = part;\n    sum = s[simd];\n  }\n"
            "  y[i] = sum; }",
     sums, true},
    {"by another simdgroup", TWO_LEVELS("", "if (lane == 0) s[simd] = 1;\n"), group_sums, false},
};

TEST(checks_by_simdgroup)
{
    if (!runner_usable()) return;
    for (size_t i = 0; i < sizeof reused / sizeof *reused; i++) {
        for (int relaxed = 0; relaxed < 2; relaxed++) {
            test_case("threadgroup memory is reused %s, SM_CHECK=%s", reused[i].name, relaxed ? "simdgroup" : "1");
            setenv("SM_CHECK", relaxed ? "simdgroup" : "1", 1);
            if (relaxed && reused[i].accepted) {
                expect(reused[i].text, NULL, 0, reused[i].want);
            } else {
                float y[128];
                char said[400];
                sm_status status = try(reused[i].text, NULL, 0, y, said);
                EXPECT_MSG(status == SM_CHECKED && strstr(said, ": race: "), "status %d: %s", status, said);
            }
            unsetenv("SM_CHECK");
        }
    }
}

/* ---- a negative index into an array of a thread ---- */

TEST(arrays_use_a_second_stack)
{
    if (!runner_usable()) return;
    static const char text[] = KERNEL "{ float a[8] = {0};\n  int n = 64 - int(t) * 8;\n" /* mostly negative */
                                      "  for (int j = 0; j < 8; j++) a[j] = x[i];\n"
                                      "  for (int j = n < 8 ? n : 8; j < 0; j++) a[j] = 1e9f + float(j);\n"
                                      "  float s = 0;\n  for (int j = 0; j < 8; j++) s += a[j];\n  y[i] = s / 8; }";
    expect(text, NULL, 0, same);
    setenv("SM_CHECK", "1", 1);
    float y[128];
    char said[400];
    sm_status status = try(text, NULL, 0, y, said);
    EXPECT_MSG(status == SM_CHECKED && strstr(said, "index outside"), "status %d: %s", status, said);
    unsetenv("SM_CHECK");
}

TEST(large_arrays_are_refused_with_their_thread)
{
    if (!runner_usable()) return;
    static const char text[] =
        KERNEL "{ float a[40000];\n  for (int j = 0; j < 40000; j++) a[j] = x[(i + j) % 128];\n"
               "  float s = 0;\n  for (int j = 0; j < 40000; j++) s += a[(j * 7 + int(i)) % 40000];\n"
               "  y[i] = s; }";
    float y[128];
    char said[400];
    sm_status status = try(text, NULL, 0, y, said);
    EXPECT_MSG(status == SM_FAULT && strstr(said, "is full"), "status %d: %s", status, said);
}

/* ---- memory ---- */

static float ends(int i) { return i % 64 < 2 ? -1 : (float)i - 1; }

TEST(vectors_at_element_addresses)
{
    if (!runner_usable()) return;
    expect(KERNEL "{ if (t % 4 != 2 || t > 58) { if (t == 62) { y[i] = x[i] - 1; y[i + 1] = x[i]; } return; }\n"
                  "  device float4 *out = (device float4 *)(y + i);\n"
                  "  *out = *(device const float4 *)(x + i - 1); }",
           NULL, 0, ends);
    expect(KERNEL "{ threadgroup half s[72];\n  s[t + 1] = half(t); if (t < 8) s[t + 64] = half(63 + t);\n"
                  "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                  "  half4 v = *(threadgroup half4 *)(s + t + 1);\n  y[i] = float(v.x) + g * 64; }",
           NULL, 0, same);
}

/* Buffers that the built kernel does not use need not be bound. */
TEST(unused_buffers_need_no_binding)
{
    if (!runner_usable()) return;
    static const char body[] = "{ float b = add ? bias[i * size.x] : 0; y[i] = x[i] + b; }\n"
                               "template [[host_name(\"k\")]] kernel decltype(f<false>) f<false>;\n"
                               "template [[host_name(\"with\")]] kernel decltype(f<true>) f<true>;";
    char text[1200];
    snprintf(text, sizeof text, "%s%s%s", HEAD "template <bool add> [[kernel]] void f(" ARGUMENTS,
             ", device const float *bias [[buffer(2)]], constant uint2 &size [[buffer(3)]])\n", body);
    static const char *const modes[][2] = {{"SM_CHECK", "0"}, {"SM_CHECK", "1"}, {"SM_MATH", "fast"}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        test_case("%s=%s", modes[i][0], modes[i][1]);
        setenv(modes[i][0], modes[i][1], 1);
        expect(text, NULL, 0, same);
        char *message = NULL;
        sm_library *library = sm_library_open(text, strlen(text), NULL, &message);
        sm_kernel *with = library ? sm_kernel_build(library, "with", NULL, 0, &message) : NULL;
        if (EXPECT_MSG(with != NULL, "%s", message)) {
            sm_kernel_facts facts;
            sm_kernel_describe(with, &facts);
            EXPECT_INT(facts.buffers_used, 15);
            float x[4] = {0};
            sm_dispatch d = {.threads = {1, 1, 1}, .group = {1, 1, 1}};
            for (int k = 0; k < 3; k++) d.buffers[k] = (sm_buffer){x, sizeof x};
            sm_status status = sm_kernel_run(with, &d, &message);
            EXPECT_MSG(status == SM_INVALID && message && strstr(message, "buffer 3"), "status %d: %s", status,
                       message ? message : "");
        }
        free(message);
        sm_kernel_close(with);
        sm_library_close(library);
        unsetenv(modes[i][0]);
    }
}

TEST(threadgroup_memory_without_a_length)
{
    if (!runner_usable()) return;
    expect(HEAD "kernel void k(" ARGUMENTS ", threadgroup char *scratch [[threadgroup(0)]])\n{ y[i] = x[i]; }", NULL, 0,
           same);
    float y[128];
    char said[400];
    sm_status status = try(HEAD "kernel void k(" ARGUMENTS ", threadgroup char *scratch [[threadgroup(0)]])\n"
                                "{ scratch[t] = 1; y[i] = x[i]; }",
                           NULL, 0, y, said);
    EXPECT_MSG(status == SM_FAULT && strstr(said, "threadgroup memory"), "status %d: %s", status, said);
}

/* ---- half and bfloat ---- */

/* The exact sum is 1 + 2^-10 plus slightly less than half an ulp. Rounded to float first it would be exactly half an
 * ulp, and the second rounding would round up. */
TEST(fma_of_halves_rounds_once)
{
    if (!runner_usable()) return;
    expect(KERNEL "{ half one = half(x[i] - float(i) + 1.0f), unit = half(0x1p-10f);\n"
                  "  half a = one * half(0x1p-6f) * (1 + unit), b = one * half(0x1p-5f) * (1 - unit), c = one + unit;\n"
                  "  bool good = fma(a, b, c) == c && fma(-a, b, -c) == -c && fma(a, half(0x1p-5f), c) == c + unit;\n"
                  "  good = good && fma(one, one, half(-1)) == 0 && isinf(fma(one * 255, one * 255, half(HALF_MAX)));\n"
                  "  y[i] = good && all(fma(half2(one * 2), half2(3), half2(1)) == half2(7)) ? x[i] : -1; }",
           NULL, 0, same);
}

TEST(bfloat_is_a_number)
{
    if (!runner_usable()) return;
    expect(KERNEL "{ bfloat b = bfloat(float(t)), z = 0; bfloat4 v = 0, w = bfloat4(1); v = 2; v = t > 99 ? v : w;\n"
                  "  bfloat c = t < 64 ? b : 0; c = t > 64 ? 1 : c; if (!z && c >= 0) c += z;\n"
                  "  threadgroup bfloat4 s[1]; if (t == 0) s[0] = 0; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                  "  y[i] = float(int(c)) * float(v.x) + float(s[0].w) + g * 64; }",
           NULL, 0, same);
}

/* ---- classes ---- */

TEST(constructors_for_each_space)
{
    if (!runner_usable()) return;
    expect(HEAD "struct pair {\n  float a, b;\n"
                "  pair() = default;\n  pair() threadgroup = default;\n  pair() device = default;\n"
                "  pair() constant = default;\n"
                "  pair(float x) thread : a(x), b(1) {}\n  pair(float x) device : a(x), b(1) {}\n"
                "  float sum() const thread;\n  float sum() const device;\n};\n"
                "float pair::sum() const thread { return a + b; }\n"
                "kernel void k(" ARGUMENTS ")\n{ pair p(x[i]), q; q.a = p.sum(); y[i] = q.a - 1; }",
           NULL, 0, same);
}

TEST(limits_of_own_types)
{
    if (!runner_usable()) return;
    expect(HEAD
           "template <typename T> struct tagged { uint tag; T value; };\n"
           "template <typename T> struct metal::_numeric_limits_impl<tagged<T>> {\n"
           "  static constexpr tagged<T> max() { return tagged<T>{7, metal::numeric_limits<T>::max()}; }\n};\n"
           "static_assert(__is_valid_simdgroup_type<half3>::value && !__is_valid_simdgroup_type<long>::value, \"\");\n"
           "kernel void k(" ARGUMENTS ")\n"
           "{ tagged<int> m = numeric_limits<tagged<int>>::max();\n"
           "  y[i] = m.tag == 7 && m.value == INT_MAX ? x[i] : 0; }",
           NULL, 0, same);
}

/* ---- names ---- */

TEST(an_argument_without_its_constant)
{
    if (!runner_usable()) return;
    static const char text[] =
        HEAD "constant bool biased [[function_constant(0)]];\nconstant bool both = biased && true;\n"
             "kernel void k(" ARGUMENTS ", device const float *bias [[buffer(2), function_constant(biased)]])\n"
             "{ y[i] = x[i]; if (biased) y[i] += bias[i]; }\n"
             "kernel void derived(device const float *b [[buffer(0), function_constant(both)]], device float *o) {}";
    bool no = false;
    expect(text, &(sm_constant){NULL, 0, SM_BOOL, 1, &no}, 1, same);
    static const char *const names[] = {"k", "derived"}, *const said[] = {"'biased', which has", "'both', which has"};
    char *message = NULL;
    sm_library *library = sm_library_open(text, strlen(text), NULL, &message);
    for (int i = 0; library && i < 2; i++) {
        sm_kernel *kernel = sm_kernel_build(library, names[i], NULL, 0, &message);
        EXPECT_MSG(!kernel && message && strstr(message, said[i]), "%s", message);
        free(message);
        sm_kernel_close(kernel);
    }
    sm_library_close(library);
}

TEST(a_constant_without_a_value_can_be_hidden)
{
    if (!runner_usable()) return;
    static const char text[] =
        HEAD "constant int blocks [[function_constant(3)]];\nconstant bool twice [[function_constant(4)]];\n"
             "struct with { int blocks; };\n"
             "static float add(float blocks) { return blocks + 1; }\n"
             "kernel void other(device float *y) { for (int blocks = 0; blocks < 2; blocks++) y[blocks] = blocks; }\n"
             "kernel void uses(device float *y) { y[0] = blocks; }\n"
             "kernel void k(" ARGUMENTS ")\n"
             "{ with w = {2}; int blocks = w.blocks; y[i] = add(x[i]) + (twice ? 1 : -1) * blocks + 1; }";
    bool no = false;
    expect(text, &(sm_constant){NULL, 4, SM_BOOL, 1, &no}, 1, same);
    char *message = NULL;
    sm_library *library = sm_library_open(text, strlen(text), NULL, &message);
    sm_kernel *kernel = library ? sm_kernel_build(library, "uses", NULL, 0, &message) : NULL;
    EXPECT_MSG(library && !kernel && message && strstr(message, "'blocks'"), "%s", message ? message : "it was built");
    free(message);
    sm_kernel_close(kernel);
    sm_library_close(library);
}
