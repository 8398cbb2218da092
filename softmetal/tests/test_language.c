/* The constructs that the translation accepts: forms of kernels, arguments, constants, instantiations. Everything else
 * is an error with its line. */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "#include <metal_stdlib>\nusing namespace metal;\n"

/* Builds and runs the kernel. Buffer 0 has 64 floats 0, 1, 2, ...; y has 64 results. */
static bool run(const char *text, const char *kernel, const sm_constant *constants, int count, float *y)
{
    float x[64];
    for (int i = 0; i < 64; i++) {
        x[i] = (float)i;
        y[i] = -1;
    }
    runner r = {0};
    bool good = runner_open(&r, text, kernel, constants, count);
    if (good) {
        runner_buffer(&r, 0, x, sizeof x);
        runner_buffer(&r, 1, y, 64 * sizeof *y);
        sm_kernel_facts facts;
        sm_kernel_describe(r.kernel, &facts);
        r.dispatch.threadgroup_bytes[0] = 256;
        good = runner_run(&r, (uint32_t[3]){64, 1, 1}, (uint32_t[3]){32, 1, 1});
    }
    runner_close(&r);
    return good;
}

static void expect(const char *text, const char *kernel, const sm_constant *constants, int count, float (*want)(int))
{
    float y[64];
    if (!run(text, kernel, constants, count, y)) return;
    for (int i = 0; i < 64; i++)
        if (!EXPECT_CLOSE(y[i], want(i), 0, 0)) return;
}

static float twice(int i) { return 2 * (float)i; }
static float thrice(int i) { return 3 * (float)i; }
static float same(int i) { return (float)i; }

static const char *const forms[] = {
    HEAD "kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], uint i "
         "[[thread_position_in_grid]])\n"
         "{ y[i] = 2 * x[i]; }",
    HEAD "[[kernel]] void k(const device float *x [[buffer(0)]], device float *y [[buffer(1)]],\n"
         "  ushort2 i [[thread_position_in_grid]]) { y[i.x] = 2 * x[i.x]; }",
    HEAD "[[kernel, max_total_threads_per_threadgroup(64)]] void k(device float *x, device float *y,\n"
         "  uint3 i [[thread_position_in_grid]]) { y[i.x] = 2 * x[i.x]; }",
    HEAD "kernel void k(device float *y [[ buffer(1) ]], constant float *x [[ buffer(0) ]],\n"
         "  uint g [[threadgroup_position_in_grid]], uint n [[threads_per_threadgroup]], uint t "
         "[[thread_position_in_threadgroup]])\n"
         "{ y[g * n + t] = 2 * x[g * n + t]; }",
    HEAD "template <typename T, int N> [[kernel]] void f(device const T *x [[buffer(0)]], device T *y [[buffer(1)]],\n"
         "  uint i [[thread_position_in_grid]]) { y[i] = N * x[i]; }\n"
         "template [[host_name(\"k\")]] [[kernel]] decltype(f<float, 2>) f<float, 2>;",
    HEAD "template <typename T> kernel void f(device const T *x [[buffer(0)]], device T *y [[buffer(1)]],\n"
         "  uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; }\n"
         "#define make(n, T) template [[host_name(n)]] kernel void f<T>(device const T *, device T *, uint);\n"
         "make(\"k\" \"\", float)",
    HEAD "template <typename T> kernel void f(device const T *x [[buffer(0)]], device T *y [[buffer(1)]],\n"
         "  uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; }\n"
         "template [[host_name(\"k\")]] [[kernel]] void f(device const float *x [[buffer(0)]], device float *y "
         "[[buffer(1)]],\n"
         "  uint i [[thread_position_in_grid]]);",
    HEAD "namespace deep { namespace er { template <typename T> [[kernel]] void f(device const T *x [[buffer(0)]],\n"
         "  device T *y [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; } } }\n"
         "template [[host_name(\"k\")]] [[kernel]] decltype(deep::er::f<float>) deep::er::f<float>;",
    HEAD "kernel void k(device float *x, device float *y, threadgroup float *s [[threadgroup(0)]],\n"
         "  uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]])\n"
         "{ s[t] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = s[t] + s[31 - t] * 0 + x[i]; }",
    HEAD "struct two { float a[2]; };\n"
         "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]], uint t "
         "[[thread_index_in_simdgroup]])\n"
         "{ threadgroup two s[32]; threadgroup two &r = s[t]; threadgroup float *p = r.a; const threadgroup float *q = "
         "&p[1];\n"
         "  p[0] = x[i]; p[1] = x[i]; y[i] = *q + s[t].a[0]; }",
    HEAD "inline float twice(float a) { return a + a; } inline float twice(float4 a) { return twice(a.x); }\n"
         "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]]) { y[i] = "
         "twice(float4(x[i])); }",
    HEAD "template <typename T> T load(device T *p) { return *p; } template <typename T> T load(threadgroup T *p) { "
         "return *p; }\n"
         "template <typename T> T load(thread T *p) { return *p; }\n"
         "struct c { float v; float get() const thread { return v; } float get() const device { return v; }\n"
         "  c(float a) thread : v(a) {} c(float a) device : v(a) {} };\n"
         "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
         "{ c v(load(&x[i])); y[i] = v.get() * 2; }",
    HEAD "#define UNROLL _Pragma(\"clang loop unroll(full)\")\nconstant constexpr int n = 2;\n"
         "constant float table[3] = {0, 1, 1};\n"
         "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
         "{ float s = 0;\n#pragma unroll(n)\n for (int j = 0; j < n; j++) s += table[j + 1] * x[i]; UNROLL for (int j "
         "= 0; j < 1; j++)\n"
         "  s += 0.0; y[i] = s; }",
    HEAD "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
         "{ half h = 2.0h; bfloat b = 2.0bf; auto v = 0x1p1; y[i] = x[i] * (h + float(b) + v) / 3; }",
    HEAD
    "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
    "{ float4 big = numeric_limits<float4>::max(); int3 low = numeric_limits<int3>::lowest();\n"
    "  bool good = all(big == float4(FLT_MAX)) && all(low == int3(INT_MIN)) && !numeric_limits<int2>::is_signed == 0;\n"
    "  good = good && all(isinf(numeric_limits<half2>::infinity())) && !numeric_limits<uint2>::is_signed;\n"
    "  y[i] = good ? 2 * x[i] : -1; }",
    HEAD "static float total(initializer_list<float> list) { float s = 0; for (float v : list) s += v; return s; }\n"
         "static float middle(array<float, 3> a) { return a[1]; }\n"
         "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
         "{ float s = 0; for (float v : {0.5f, 0.25f, 0.25f}) s += v;\n"
         "  array<float2, 2> pairs{float2(1, 2), float2(3, 4)}; for (auto v : pairs) s += v.x;\n"
         "  array<array<float, 2>, 2> nested = {{{1, 2}, {3, 4}}}; nested[0] = {5, 6};\n"
         "  s += total({1.0f, 2.0f}) - nested[0][1] + middle({1, 2, 3}) - 2; y[i] = x[i] * (s - nested[1][0] + 3); }",
    HEAD "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
         "{ quad_vote v = quad_ballot(i % 4 == 2), all = quad_active_threads_mask();\n"
         "  quad_vote::vote_t bits = quad_vote::vote_t(v);\n"
         "  y[i] = bits == 4 && v.any() && !v.all() && all.all() && !quad_vote(0).any() ? 2 * x[i] : -1; }",
    HEAD
    "kernel void k(device float *x, device float *y, threadgroup float4 *s [[threadgroup(0)]],\n"
    "  uint i [[thread_position_in_grid]], uint t [[thread_index_in_simdgroup]])\n"
    "{ volatile threadgroup float4 *v = s + t % 16; volatile float2 own; own = float2(1, 2); own.y += 1;\n"
    "  if (t < 16) { v[0] = float4(x[i]); v[0] += float4(0, 1, 2, 3); v[0] *= 2.0f; v[0][3] -= 1; v[0].x += 0; }\n"
    "  simdgroup_barrier(mem_flags::mem_threadgroup);\n"
    "  float4 a = v[0]; float4 b = v[0] + a; y[i] = x[i] * (own.y - own.x) + (b.y - 2 * a.y) + (a.w - v[0].x - 5); }",
    HEAD "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
         "{ int a = int(i) - 100; bool good = sign(a) == -1 && sign(0) == 0 && sign(7u) == 1u && sign(-3.0f) == -1;\n"
         "  y[i] = good && all(sign(int3(-2, 0, 5)) == int3(-1, 0, 1)) ? 2 * x[i] : -1; }",
    HEAD "template <typename T, int N> T last(array<T, N> a) { return a[N - 1]; }\n"
         "template <typename T, uint N> T first(thread const array<T, N> &a) { return a[N - N]; }\n"
         "template <typename T, short N> T both(thread T (&a)[N], array<T, N> b) { return a[N - 1] + b[0]; }\n"
         "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
         "{ array<float, 3> a = {1, 2, 3}; float b[3] = {4, 5, 6};\n"
         "  y[i] = x[i] * (both(b, a) - last(a) - first(a) - 1); }",
    HEAD "#include <metal_tensor>\n#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
         "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
         "{ assert(i < 1000); y[i] = 2 * x[i]; }",
    HEAD
    "enum { A = 1 }; constant int B = 0;\n"
    "kernel void k(device float *y [[buffer(A)]], device float *x [[buffer(B)]], uint i [[thread_position_in_grid]])\n"
    "{ y[i] = x[i] * 2; }",
};

TEST(forms_of_kernels)
{
    if (!runner_usable()) return;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        test_case("form %zu", i);
        expect(forms[i], "k", NULL, 0, twice);
    }
}

static const char constants[] =
    HEAD "constant bool third [[function_constant(0)]];\n"
         "constant float factor [[function_constant(1)]];\n"
         "constant uint2 pair [[function_constant(2)]];\n"
         "constant bool both = third && factor > 1;\n"
         "constant int given = is_function_constant_defined(factor) ? 1 : 0;\n"
         "kernel void k(device float *x [[buffer(0)]], device float *y [[buffer(1)]],\n"
         "  device float *z [[buffer(2), function_constant(third)]], uint i [[thread_position_in_grid]])\n"
         "{ y[i] = third ? 3 * x[i] : 2 * x[i]; if (third) z[i] = x[i]; }\n"
         "kernel void scaled(device float *x [[buffer(0)]], device float *y [[buffer(1)]], uint i "
         "[[thread_position_in_grid]])\n"
         "{ if (is_function_constant_defined(factor)) y[i] = factor * x[i]; else y[i] = x[i]; }\n"
         "kernel void derived(device float *x [[buffer(0)]], device float *y [[buffer(1)]], uint i "
         "[[thread_position_in_grid]])\n"
         "{ y[i] = both ? 3 * x[i] : x[i] * given * pair.y; }\n";

TEST(function_constants)
{
    if (!runner_usable()) return;
    bool no = false, yes = true;
    float three = 3;
    uint32_t pair[2] = {7, 2};
    sm_constant is_false = {"third", 0, SM_BOOL, 1, &no}, is_true = {NULL, 0, SM_BOOL, 1, &yes};
    expect(constants, "k", &is_false, 1, twice);
    expect(constants, "scaled", NULL, 0, same);
    expect(constants, "scaled", &(sm_constant){NULL, 1, SM_FLOAT, 0, &three}, 1, thrice);
    sm_constant all[3] = {is_true, {"factor", 1, SM_FLOAT, 1, &three}, {"pair", 2, SM_UINT, 2, pair}};
    expect(constants, "derived", all, 3, thrice);
    all[0] = is_false;
    expect(constants, "derived", all, 3, twice);

    char *message = NULL;
    sm_library *library = sm_library_open(constants, strlen(constants), NULL, &message);
    if (!EXPECT_MSG(library, "%s", message)) return;
    const sm_function_constant *list;
    EXPECT_INT(sm_library_constants(library, &list), 3);
    EXPECT_STR(list[2].name, "pair");
    EXPECT_INT(list[2].width, 2);
    EXPECT_INT(list[1].line, 4);
    EXPECT(!sm_kernel_build(library, "derived", all, 1, &message));
    EXPECT_MSG(message && strstr(message, "has no value"), "%s", message);
    free(message);
    EXPECT(!sm_kernel_build(library, "k", &(sm_constant){"third", 0, SM_INT, 1, pair}, 1, &message));
    EXPECT_MSG(message && strstr(message, "'third' (index 0, line 3) is bool"), "%s", message);
    free(message);
    sm_library_close(library);
}

/* An argument that a function constant removes need not be bound; otherwise it must be. */
TEST(conditional_arguments)
{
    if (!runner_usable()) return;
    float x[64] = {0}, y[64];
    for (int third = 0; third < 2; third++) {
        bool value = third != 0;
        runner r = {0};
        if (runner_open(&r, constants, "k", &(sm_constant){"third", 0, SM_BOOL, 1, &value}, 1)) {
            runner_buffer(&r, 0, x, sizeof x);
            runner_buffer(&r, 1, y, sizeof y);
            sm_status status = runner_try(&r, (uint32_t[3]){64, 1, 1}, (uint32_t[3]){32, 1, 1});
            EXPECT_INT(status, third ? SM_INVALID : SM_OK);
            if (third) EXPECT_MSG(r.message && strstr(r.message, "nothing is bound to buffer 2"), "%s", r.message);
        }
        runner_close(&r);
    }
}

TEST(facts)
{
    if (!runner_usable()) return;
    static const char text[] =
        HEAD "struct p { float a; };\n"
             "[[kernel, max_total_threads_per_threadgroup(96)]] void f(device float *a [[buffer(3)]], constant p &b,\n"
             "   device const int *c, threadgroup float *d [[threadgroup(1)]], uint i [[thread_position_in_grid]]) {\n"
             "   threadgroup float s[10], r[6]; s[i % 10] = r[i % 6] = d[i] = a[i] = b.a + c[i];\n"
             "   threadgroup_barrier(mem_flags::mem_threadgroup); a[1] = s[2] + r[i % 5]; }\n"
             "template <typename T> kernel void unused(device T *x) {}\n"
             "kernel void other(device float *x [[buffer(30)]]) { x[0] = 1; }\n";
    char *message = NULL;
    sm_library *library = sm_library_open(text, strlen(text), NULL, &message);
    if (!EXPECT_MSG(library, "%s", message)) return;
    EXPECT_INT(sm_library_kernels(library), 2);
    EXPECT_STR(sm_library_kernel(library, 1), "other");
    EXPECT(!sm_library_kernel(library, 2));
    sm_function f;
    EXPECT(!sm_library_function(library, "unused", &f));
    if (EXPECT(sm_library_function(library, "f", &f)) && EXPECT_INT(f.arguments_count, 4)) {
        static const sm_argument want[] = {{SM_ARGUMENT_BUFFER, 3, true, false, false, "a", 4},
                                           {SM_ARGUMENT_BUFFER, 0, false, true, true, "b", 4},
                                           {SM_ARGUMENT_BUFFER, 1, false, false, false, "c", 5},
                                           {SM_ARGUMENT_THREADGROUP, 1, false, false, false, "d", 5}};
        for (int i = 0; i < 4; i++) {
            const sm_argument *a = &f.arguments[i];
            EXPECT_STR(a->name, want[i].name);
            EXPECT_MSG(a->kind == want[i].kind && a->index == want[i].index && a->writable == want[i].writable &&
                           a->constant == want[i].constant && a->reference == want[i].reference &&
                           a->line == want[i].line,
                       "argument %s: kind %d, index %d, writable %d, constant %d, reference %d, line %d", a->name,
                       a->kind, a->index, a->writable, a->constant, a->reference, a->line);
        }
        EXPECT_INT(f.max_total_threads, 96);
    }
    sm_kernel *kernel = sm_kernel_build(library, "f", NULL, 0, &message);
    if (EXPECT_MSG(kernel, "%s", message)) {
        sm_kernel_facts facts;
        sm_kernel_describe(kernel, &facts);
        EXPECT_INT(facts.max_threads, 96);
        EXPECT_INT(facts.simd_width, 32);
        EXPECT_MSG(facts.threadgroup_bytes >= 64 && facts.threadgroup_bytes <= 96, "%zu bytes",
                   facts.threadgroup_bytes);
        EXPECT_INT(facts.buffers_used, 1 | 2 | 8);
    }
    sm_kernel_close(kernel);
    sm_library_close(library);
}

/* ---- texts that must be refused ---- */

static const struct {
    const char *text, *says;
} refused[] = {
    {"kernel void k(device float *x [[buffer(0)]]) {\n  x[0] = y;\n}", "program_source:4:"},
    {"kernel void k(device float *x [[buffer(0)]], uint i) { x[0] = i; }", ":3: error: parameter 'i'"},
    {"kernel void k(device float *x [[bufer(0)]]) { }", "unknown attribute [[bufer]]"},
    {"kernel void k(texture2d<float> t [[texture(0)]]) { }", "unknown attribute [[texture]]"},
    {"kernel void k(float *x [[buffer(0)]]) { }", "address space"},
    {"kernel void k(device float *x [[buffer(31)]]) { }", "31"},
    {"kernel void k(device float *x [[buffer(0)]]) { x[0] = 1; }\nkernel void k(device int *x [[buffer(0)]]) { }",
     "second kernel"},
    {"kernel int k(device float *x [[buffer(0)]]) { return 1; }\n", ""},
    {"struct s { threadgroup float x; };", "threadgroup"},
    {"threadgroup float x[2];\nkernel void k(device float *y [[buffer(0)]]) { y[0] = x[0]; }", "threadgroup"},
    {"kernel void k(device float *x [[buffer(0)]]) { threadgroup float s = 1; x[0] = s; }", "initial value"},
    {"kernel void k(device float *x [[buffer(0)]]) { threadgroup float s, *p; x[0] = s; }", "one declaration"},
    {"[[fancy]] float f(float x) { return x; }", "unknown attribute [[fancy]]"},
    {"constant int n [[function_constant(0)]];\nconstant int m [[function_constant(0)]];", "declared twice"},
    {"constant atomic_int n [[function_constant(0)]];", "cannot have the type"},
    {"int n [[function_constant(0)]];", "must be"},
    {"template [[host_name(\"k\")]] [[kernel]] decltype(g<float>) g<float>;", "not a kernel"},
    {"kernel void k(device float *x [[buffer(0)]]) { x[0] = 1; ", "never closed"},
    {"#include <vector>\n", "vector"},
    {"kernel void k(device float *x [[buffer(0)]]) { x[0] = x[1].xy; }", "error"},
    {"kernel void k(device float4 *x [[buffer(0)]]) { x[0].xx = float2(1); }", "twice"},
    {"kernel void k(device bfloat *x [[buffer(0)]]) { x[0] = 1.0f; }", "error"},
    {"kernel void k(device float4 *x [[buffer(0)]], device half4 *y [[buffer(1)]]) { x[0] = y[0]; }", "error"},
    {"kernel void k(device atomic_float *x [[buffer(0)]]) { atomic_fetch_min_explicit(x, 1, memory_order_relaxed); }",
     "int and uint"},
    {"kernel void k(device atomic_int *x [[buffer(0)]]) { atomic_store_explicit(x, 1, memory_order_seq_cst); }",
     "error"},
    {"kernel void k(device float *x [[buffer(0)]]) { x[0] = 1.0L; }", "long double"},
    {"kernel void k(device float *x [[buffer(0)]]) { x[0] = dot(int3(1), int3(2)); }", "'dot'"},
    {"#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\nusing namespace mpp::tensor_ops;",
     ":4: error: mpp (Metal Performance Primitives) is not supported"},
    {"#include <metal_tensor>\nstatic void use(tensor<device half, dextents<int, 2>> x) { }",
     "tensors (metal_tensor) are not supported"},
    {"kernel void k(device float *x [[buffer(1)]], device float *y [[buffer(1)]]) { x[0] = y[0]; }",
     "another parameter"},
    {"kernel void k(device float *x [[buffer(0)]], int i [[thread_position_in_grid]]) { x[i] = 1; }", "uint or ushort"},
    {"kernel void k(device float *x [[buffer(0)]], uint2 i [[thread_index_in_simdgroup]]) { x[i.x] = 1; }",
     "one number"},
    {"kernel void k(device atomic<long> *x [[buffer(0)]]) { atomic_fetch_add_explicit(x, 1L, memory_order_relaxed); }",
     "int, uint and float"},
    {"#include <metal_raytracing>\n", "metal_raytracing"},
    {"[[mesh]] void m(uint i [[thread_index_in_threadgroup]]) { }", ":3: error: unknown attribute [[mesh]]"},
    {"[[visible]] float f(float x) { return x; }", ":3: error: unknown attribute [[visible]]"},
    {"vertex float4 v(uint i [[vertex_id]]) { return float4(i); }", ":3: error: unknown attribute [[vertex_id]]"},
    {"fragment float4 f() { return float4(1); }", ":3:1: error: unknown type name 'fragment'"},
    {"struct a { device float *p [[id(0)]]; };", ":3: error: unknown attribute [[id]]"},
    {"struct b { half4 c; };\nkernel void k(imageblock<b> i) { }", ":4: error: parameter 'i'"},
    {"struct c { command_buffer b; };", ":3:12: error: unknown type name 'command_buffer'"},
};

TEST(what_is_unknown_is_an_error)
{
    if (!runner_usable()) return;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        test_case("%s", refused[i].text);
        char text[600], *message = NULL;
        snprintf(text, sizeof text, HEAD "%s\n", refused[i].text);
        sm_library *library = sm_library_open(text, strlen(text), NULL, &message);
        sm_kernel *kernel = library ? sm_kernel_build(library, "k", NULL, 0, &message) : NULL;
        EXPECT_MSG(!kernel, "was accepted");
        EXPECT_MSG(message && strstr(message, refused[i].says), "message: %s", message ? message : "none");
        sm_kernel_close(kernel);
        sm_library_close(library);
        free(message);
    }
}

/* ---- constants outside functions ---- */

/* Their initial values may need a constructor or a function, which runs when the kernel is loaded. */
static const char program_scope[] = HEAD
    "constant float3x3 rows = float3x3(1, 2, 3, 4, 5, 6, 7, 8, 9);\n"
    "constant float3x3 columns = float3x3(float3(1, 2, 3), float3(4, 5, 6), float3(7, 8, 9));\n"
    "constant constexpr float4x4 diagonal = float4x4(2.0f);\n"
    "constant half2x2 small = half2x2(1, 2, 3, 4);\n"
    "constant float2x4 wide = float2x4(float4(1), float4(2));\n"
    "constant float4 vectors[2] = {float4(1, 2, 3, 4), float4(5)};\n"
    "constant array<float2, 2> pairs = {{float2(1, 2), float2(3, 4)}};\n"
    "struct made { float a; float3 b; made(float x) : a(x), b(x * 2) {} };\n"
    "constant made one = made(3);\n"
    "constant made several[2] = {made(1), made(2)};\n"
    "struct parts { float3x3 m; half2 h; };\n"
    "constant parts both = {float3x3(3.0f), half2(1, 2)};\n"
    "constant float negative = -diagonal[1][1];\n"
    "constant float3x3 turned = transpose(rows);\n"
    "constant float3 product = rows * float3(1, 0, 0);\n"
    "constant float root = sqrt(float(several[1].b.x));\n"
    "static float table_sum(int n) { float t[8]; for (int i = 0; i < 8; i++) t[i] = i; float s = 0;\n"
    "  for (int i = 0; i < n; i++) s += t[(i * 3) % 8]; return s; }\n"
    "constant float summed = table_sum(8);\n"
    "kernel void k(device float *x [[buffer(0)]], device float *y [[buffer(1)]], uint i "
    "[[thread_position_in_grid]])\n"
    "{ uint z = uint(x[0]);\n"
    "  bool good = all(rows * float3(1) == float3(12, 15, 18)) && columns[z + 1][2] == 6 && diagonal[2][2] == 2;\n"
    "  good = good && diagonal[2][z] == 0 && small[z + 1][0] == 3.0h && wide[1][z + 3] == 2 && vectors[z].z == 3;\n"
    "  good = good && pairs[z + 1].y == 4 && one.b.x == 6 && several[z + 1].a == 2 && both.m[z + 1][1] == 3;\n"
    "  good = good && both.h.y == 2.0h && negative == -2 && turned[0][1] == 4 && product.y == 2 && root == 2;\n"
    "  y[i] = good && summed == 28 ? 2 * x[i] : -1; }";

TEST(program_scope_constants_with_constructors)
{
    if (!runner_usable()) return;
    static const char *const modes[][2] = {{"SM_CHECK", "0"}, {"SM_CHECK", "1"}, {"SM_MATH", "fast"}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        test_case("%s=%s", modes[i][0], modes[i][1]);
        setenv(modes[i][0], modes[i][1], 1);
        expect(program_scope, "k", NULL, 0, twice);
        unsetenv(modes[i][0]);
    }
    static const char lanes[] = HEAD "constant float sum = simd_sum(1.0f);\n"
                                     "kernel void k(device float *y [[buffer(0)]]) { y[0] = sum; }";
    char *message = NULL;
    sm_library *library = sm_library_open(lanes, strlen(lanes), NULL, &message);
    sm_kernel *kernel = library ? sm_kernel_build(library, "k", NULL, 0, &message) : NULL;
    EXPECT_MSG(!kernel && message && strstr(message, "is not a constant"), "%s", message ? message : "was accepted");
    sm_kernel_close(kernel);
    sm_library_close(library);
    free(message);
}

/* A false assertion is an error with SM_CHECK, and has no effect without it. */
TEST(assertions)
{
    if (!runner_usable()) return;
    static const char text[] = HEAD "kernel void k(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
                                    "{\n  assert(i < 5);\n  x[i] = 1;\n}";
    for (int check = 0; check < 2; check++) {
        runner r = {0};
        float x[32] = {0};
        setenv("SM_CHECK", check ? "1" : "0", 1);
        if (runner_open(&r, text, "k", NULL, 0)) {
            runner_buffer(&r, 0, x, sizeof x);
            sm_status status = runner_try(&r, (uint32_t[3]){32, 1, 1}, (uint32_t[3]){32, 1, 1});
            EXPECT_INT(status, check ? SM_CHECKED : SM_OK);
            if (check)
                EXPECT_MSG(strstr(r.message, "program_source:5:1: k: the assertion 'i < 5' failed"), "%s", r.message);
        }
        runner_close(&r);
        unsetenv("SM_CHECK");
    }
}

/* A name that the version of the language does not have is refused. */
TEST(names_of_newer_versions)
{
    if (!runner_usable()) return;
    static const struct {
        const char *body, *says;
        int refused, accepted; /* versions */
    } cases[] = {
        {"kernel void k(device bfloat *x [[buffer(0)]]) { x[0] = bfloat(1.0f); }",
         ":3: error: bfloat needs Metal 3.1; the library is compiled for 3.0", 0x30000, 0x30001},
        {"kernel void k(device float *x [[buffer(0)]]) { bfloat2 b = bfloat2(1); x[0] = float(b.x); }",
         "bfloat2 needs Metal 3.1", 0x20004, 0x30002},
        {"kernel void k(device atomic_float *x [[buffer(0)]]) { atomic_store_explicit(x, 1, memory_order_relaxed); }",
         "atomic_float needs Metal 3.0; the library is compiled for 2.4", 0x20004, 0x30000},
        {"#ifdef __HAVE_BFLOAT__\ntypedef bfloat own;\n#else\n#error no bfloat\n#endif\n", "no bfloat", 0x30000, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400], *message = NULL;
        snprintf(text, sizeof text, HEAD "%s\n", cases[i].body);
        test_case("%s", cases[i].says);
        sm_library *library =
            sm_library_open(text, strlen(text), &(sm_options){.language_version = cases[i].refused}, &message);
        EXPECT_MSG(!library && message && strstr(message, cases[i].says), "%s", message ? message : "was accepted");
        sm_library_close(library);
        free(message);
        library = sm_library_open(text, strlen(text), &(sm_options){.language_version = cases[i].accepted}, &message);
        EXPECT_MSG(library, "%s", message);
        sm_library_close(library);
        free(message);
    }
}

TEST(defines_and_versions)
{
    if (!runner_usable()) return;
    static const char text[] =
        HEAD "kernel void k(device float *x, device float *y, uint i [[thread_position_in_grid]])\n"
             "{ y[i] = FACTOR * x[i] * (__METAL_VERSION__ == 300); }\n";
    sm_define define = {"FACTOR", "2"};
    sm_options options = {
        .defines = &define, .defines_count = 1, .fast_math = true, .language_version = 0x30000, .file = "own.metal"};
    runner r = {0};
    float x[64], y[64];
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    r.library = sm_library_open(text, strlen(text), &options, &r.message);
    if (EXPECT_MSG(r.library, "%s", r.message) && runner_build(&r, "k", NULL, 0)) {
        runner_buffer(&r, 0, x, sizeof x);
        runner_buffer(&r, 1, y, sizeof y);
        runner_run(&r, (uint32_t[3]){64, 1, 1}, (uint32_t[3]){32, 1, 1});
        for (int i = 0; i < 64; i++) EXPECT_CLOSE(y[i], 2 * i, 0, 0);
    }
    runner_close(&r);
    sm_library *library = sm_library_open(text, strlen(text), &(sm_options){.file = "own.metal"}, &r.message);
    EXPECT_MSG(!library && strstr(r.message, "own.metal:4:") && strstr(r.message, "FACTOR"), "%s", r.message);
    free(r.message);
    sm_library_close(library);
}
