/* The lint: texts that Apple's compiler refuses must be refused, with the line and the
 * reason; texts that it accepts must pass, and so must every shader of this project. */
#include "host.h"
#include "softmetal.h"
#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "#include <metal_stdlib>\nusing namespace metal;\n"

/* All in one text: @ is the number of the row, so that names differ. */
static const struct {
    const char *text;
    int line; /* of the complaint, within the text */
    const char *why;
} wrong[] = {
    {"kernel void k@(device float *a [[buffer(0)]]) { double x = a[0]; a[0] = x; }", 1, "no double"},
    {"inline int f@(int n) { return n < 2 ? 1 : n * f@(n - 1); }", 1, "recursion"},
    {"inline int g@(int n);\ninline int f@(int n) { return g@(n); }\ninline int g@(int n) { return f@(n); }", 2,
     "recursion"},
    {"kernel void k@(float *a [[buffer(0)]]) { a[0] = 1; }", 1, "a pointer without an address space in a parameter"},
    {"inline void f@(int &x) { x = 1; }", 1, "a reference without an address space in a parameter"},
    {"inline void f@(device float *a) {\n    float *p = a;\n    p[0] = 1;\n}", 2, "a pointer without an address space"},
    {"inline void f@(device float *a) {\n    auto &r = a[0];\n    r = 1;\n}", 2,
     "a reference without an address space"},
    {"inline float f@(device float *a) { return *(float *)a; }", 1, "in a cast"},
    {"inline float f@(device float *a) { return *reinterpret_cast<float *>(a); }", 1, "in a cast"},
    {"typedef float *pointer@;", 1, "in a type's name"},
    {"using pointer@ = float *;", 1, "in a type's name"},
    {"struct s@ { float *p; };", 1, "in a member"},
    {"float *f@(device float *a);", 1, "in a result"},
    {"float table@[4] = {1, 2, 3, 4};", 1, "not constant"},
    {"constexpr float x@ = 1;", 1, "not constant"},
    {"inline void f@() {\n    threadgroup float t[4];\n    t[0] = 1;\n}", 2, "outside a kernel"},
    {"kernel void k@(thread float *a) { a[0] = 1; }", 1, "must be device, constant or threadgroup"},
    {"kernel void k@(device float **a [[buffer(0)]]) { a[0][0] = 1; }", 1, "a pointer to a pointer"},
    {"inline int f@() {\n    static int count = 0;\n    return ++count;\n}", 2, "static"},
    {"inline int f@(int x) {\n    auto g = [&](int y) { return x + y; };\n    return g(1);\n}", 2, "lambda"},
    {"struct a@ { uint x : 3; };", 1, "bit-field"},
    {"struct a@ { virtual int f(); };", 1, "virtual"},
    {"inline int f@(int x) { goto end; end: return x; }", 1, "goto"},
    {"inline int f@(int x) { __asm__(\"\"); return x; }", 1, "assembler"},
    {"inline float f@(float x) { return std::exp(x); }", 1, "std::"},
    {"inline int f@(int x) { throw x; }", 1, "exceptions"},
    {"inline void f@(device float *a) {\n    threadgroup float *t = a;\n    t[0] = 1;\n}", 2, "threadgroup"},
    {"inline void g@(threadgroup float *t) { t[0] = 1; }\ninline void f@(device float *a) { g@(a); }", 2, "g@"},
    {"inline void f@(constant float *c) { c[0] = 1; }", 1, "read-only"},
    {"inline void f@(constant float *c) {\n    device float *d = (device float *)c;\n    d[0] = 1;\n}", 2,
     "a cast to another address space of 'const constant float *'"},
    {"inline float f@(device uchar *p) { return ((threadgroup const float *)p)[1]; }", 1, "a cast to another"},
    {"inline void f@(device float *a) {\n    thread float *p = a;\n    p[0] = 1;\n}", 2, "device"},
    {"inline void f@() {\n    float x = 1;\n    device float *p = &x;\n    p[0] = 2;\n}", 3, "device"},
    {"inline void g@(thread float &x) { x = 1; }\ninline void f@(device float *a) { g@(a[0]); }", 2, "g@"},
    {"inline void f@(device float *a, threadgroup float *t, bool c) {\n    device float *p = c ? a : t;\n    p[0] = "
     "1;\n}",
     2, "threadgroup"},
    {"template <typename T> inline void g@(threadgroup T *t) { t[0] = T(1); }\n"
     "kernel void k@(device float *a [[buffer(0)]]) { g@<float>(a); }",
     2, "g@"},
};

static const char *const right[] = {
    /* as others write */
    "template <typename A, typename B> struct two@ { A a; B b; };\n"
    "template <typename T> inline void f@(thread two@<T, int>& p, device two@<T, T>* q) { q->a = p.a; }",
    "struct c@ { float r; c@(float x) thread : r(x) {} c@(float x) device : r(x) {} };\n"
    "constexpr c@ operator+(c@ a, c@ b) { return c@(a.r + b.r); }\n"
    "inline bool operator<(c@ a, c@ b) { return a.r < b.r; }",
    "using bits@ = union { float f; uint u; };\nstruct base@ { int x; };\nstruct more@ : base@ { int y; };",
    "template <int N> struct n@ { static constant constexpr short v = N == 1 ? 2 : 4; };\n"
    "template <int N> inline int g@(int x) { if constexpr (N > 1) return x; return 0; }",
    "template <bool A, bool B> inline metal::enable_if_t<A & B, int> h@(int x) { return x; }",
    "kernel void k@(device float *a [[buffer(0)]], constant float &s [[buffer(1)]], uint i "
    "[[thread_position_in_grid]])\n"
    "{\n    for (uint j = 0; j < i * 2; j++) a[i] = a[i] * s + float(j) * 2.0f;\n}",
    "constant float table@[2] = {1, 2};\nconstant uint n@ [[function_constant(0)]];\nconstant bool odd@ = n@ % 2 == 1;",
    "struct pair@ { float a, b; };\ninline pair@ make@(float x, float y) { return pair@{x * y, x - y}; }\n"
    "kernel void k@(device pair@ *p [[buffer(0)]], constant pair@ &q [[buffer(1)]])\n"
    "{\n    pair@ x = p[0];\n    x.a *= q.b;\n    p[1] = x;\n    pair@ y = q;\n    p[2] = y;\n}",
    "kernel void k@(device float *a [[buffer(0)]], threadgroup float *s [[threadgroup(0)]],\n"
    "               uint i [[thread_index_in_threadgroup]])\n"
    "{\n    threadgroup float t[32];\n    t[i] = a[i];\n    s[i] = t[i];\n    "
    "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    thread float x = 0;\n    thread float *p = &x;\n    *p = t[31 - i];\n    a[i] = x;\n}",
    "inline float f@(float x) { return exp(x); }\ninline float f@(float x, int n) { return f@(x) * n; }",
    "template <typename T> inline T twice@(device const T *p, uint i) { return p[i] * T(2); }\n"
    "kernel void k@(device half *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i] = twice@<half>(a, i); }",
    "kernel void k@(device atomic_uint *c [[buffer(0)]]) { atomic_fetch_add_explicit(c, 1u, memory_order_relaxed); }",
    "kernel void k@(device const float *a [[buffer(0)]], device float *b [[buffer(1)]])\n"
    "{\n    simdgroup_matrix<float, 8, 8> m, n(0.0f);\n    simdgroup_load(m, a, 8);\n"
    "    simdgroup_multiply_accumulate(n, m, m, n);\n    simdgroup_store(n, b, 8);\n}",
    "kernel void k@(device uchar *a [[buffer(0)]])\n{\n    device float4 *v = (device float4 *)a;\n"
    "    v[0] = float4(1, 2, 3, 4) * v[1].wzyx;\n}",
    "kernel void k@(device uchar *a [[buffer(0)]], constant uchar *c [[buffer(1)]])\n"
    "{\n    threadgroup uint t[8];\n    ((threadgroup float *)t)[1] = ((device const float *)(a + 4))[0] * ((constant "
    "float *)c)[2];\n"
    "    *(device float *)&a[8] = ((threadgroup const float *)t)[0] + (float)a[1];\n}",
    "typedef struct p@ { uint n; float x[4]; } p@;\nenum : uint { A@ = 1, B@ = 2 };\n"
    "kernel void k@(constant p@ &q [[buffer(0)]], device float *o [[buffer(1)]]) { o[0] = q.x[A@] * float(q.n); }",
};

/* The row's text with its number for each @, a line end after it; returns its lines. */
static int put_row(char *to, size_t size, const char *text, size_t row)
{
    int lines = 1;
    size_t at = 0;
    for (; *text != 0 && at + 8 < size; text++) {
        lines += *text == '\n';
        if (*text == '@') at += (size_t)snprintf(to + at, size - at, "%zu", row);
        else to[at++] = *text;
    }
    to[at++] = '\n';
    to[at] = 0;
    return lines;
}

enum { TEXT_SIZE = 32768, ROWS = 64 };

/* Is there a line of the complaints that begins so and contains that? */
static bool complained(const char *said, const char *begins, const char *why)
{
    for (const char *line = said; line != NULL && *line != 0; line = strchr(line, '\n'), line += line != NULL) {
        const char *end = strchr(line, '\n'), *found = strstr(line, why);
        if (strncmp(line, begins, strlen(begins)) == 0 && found != NULL && (end == NULL || found < end)) return true;
    }
    return false;
}

TEST(what_apples_compiler_refuses)
{
    CHECK(host_open());
    static char text[TEXT_SIZE];
    int first[ROWS], lines = 2;
    strcpy(text, HEAD);
    const size_t count = sizeof wrong / sizeof *wrong;
    for (size_t i = 0; i < count; i++) {
        first[i] = lines + 1;
        lines += put_row(text + strlen(text), sizeof text - strlen(text), wrong[i].text, i);
    }
    char *said = host.lint(text, strlen(text), "x.metal");
    CHECK(said != NULL);
    for (size_t i = 0; i < count; i++) {
        test_case("%s", wrong[i].text);
        char at[32], why[128];
        snprintf(at, sizeof at, "x.metal:%d:", first[i] + wrong[i].line - 1);
        put_row(why, sizeof why, wrong[i].why, i);
        why[strlen(why) - 1] = 0;
        EXPECT_MSG(complained(said, at, why), "no '%s' at %s in:\n%s", why, at, said);
    }
    free(said);
}

TEST(what_it_accepts)
{
    CHECK(host_open());
    static char text[TEXT_SIZE];
    strcpy(text, HEAD);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        put_row(text + strlen(text), sizeof text - strlen(text), right[i], i);
    char *said = host.lint(text, strlen(text), "x.metal");
    EXPECT_MSG(said == NULL, "%s", said);
    free(said);
}

TEST(every_shader_of_this_project)
{
    glob_t files = {0}, folders = {0};
    if (glob("src/*/*/*.metal", 0, NULL, &files) != 0) SKIP("there are no shaders here");
    glob("src/kernels/*/", 0, NULL, &folders);
    glob("src/codegen/", GLOB_APPEND, NULL, &folders);
    const char *flags[41] = {NULL};
    char places[40][256];
    for (size_t i = 0; i < folders.gl_pathc && i < 40; i++) {
        snprintf(places[i], sizeof places[i], "-I%s", folders.gl_pathv[i]);
        flags[i] = places[i];
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        test_case("%s", files.gl_pathv[i]);
        char *said = sm_lint_file(files.gl_pathv[i], flags);
        EXPECT_MSG(said == NULL, "%s", said);
        free(said);
    }
    globfree(&files);
    globfree(&folders);
}

TEST(a_file_that_is_not_there)
{
    char *said = sm_lint_file("/no/such/file.metal", NULL);
    EXPECT_MSG(said != NULL && strstr(said, "cannot be read") != NULL, "%s", said == NULL ? "nothing was said" : said);
    free(said);
}

TEST(sm_lint_refuses_libraries)
{
    CHECK(host_open());
    void *pool = host.push();
    id device = host.default_device(), error = NULL;
    setenv("SM_LINT", "1", 1);
    EXPECT(host_library(device, "kernel void k(device float *a [[buffer(0)]]) { double x = a[0]; a[0] = x; }\n",
                        &error) == NULL);
    EXPECT_MSG(strstr(host_error_text(error), "no double") != NULL, "%s", host_error_text(error));
    id library = host_library(device, "kernel void k(device float *a [[buffer(0)]]) { a[0] = 1; }\n", &error);
    EXPECT_MSG(library != NULL, "%s", host_error_text(error));
    unsetenv("SM_LINT");
    host_release(library);
    host.pop(pool);
}
