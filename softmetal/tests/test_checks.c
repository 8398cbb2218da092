/* The checking modes. Each kernel with one error must be reported; correct kernels must pass. Mutants of a correct
 * kernel must be reported too: each barrier deleted, each memory flag changed, each bound moved by one. */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "#include <metal_stdlib>\nusing namespace metal;\n"

static bool starts(void)
{
    setenv("SM_CHECK", "1", 1);
    return runner_usable();
}

static void ends(void) { unsetenv("SM_CHECK"); }

/* Runs the kernel `k` of the text: buffers 0 and 1 have 256 floats, buffer 2 has 64 ints. Returns its status. */
static sm_status run(const char *text, uint32_t threads, uint32_t group, char message[400])
{
    static float x[256], y[256];
    static int32_t z[64];
    for (int i = 0; i < 256; i++) x[i] = (float)i;
    memset(y, 0, sizeof y);
    memset(z, 0, sizeof z);
    runner r = {0};
    sm_status status = SM_INVALID;
    message[0] = '\0';
    if (runner_open(&r, text, "k", NULL, 0)) {
        runner_buffer(&r, 0, x, sizeof x);
        runner_buffer(&r, 1, y, sizeof y);
        runner_buffer(&r, 2, z, sizeof z);
        status = runner_try(&r, (uint32_t[3]){threads, 1, 1}, (uint32_t[3]){group, 1, 1});
        if (r.message) snprintf(message, 400, "%s", r.message);
    }
    runner_close(&r);
    return status;
}

#define PARAMETERS                                                                                      \
    "kernel void k(device float *x [[buffer(0)]], device float *y [[buffer(1)]], device atomic_int *z " \
    "[[buffer(2)]],\n"                                                                                  \
    "  uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]], uint g "             \
    "[[threadgroup_position_in_grid]],\n"                                                               \
    "  uint lane [[thread_index_in_simdgroup]]) {\n"
/* A kernel's body begins in line 6. */

typedef struct wrong {
    const char *name, *body;
    sm_status status;
    const char *says, *line; /* parts of the message */
    uint32_t threads, group;
} wrong;

static const wrong wrongs[] = {
    {"missing barrier", "threadgroup float s[64];\ns[t] = x[i];\ny[i] = s[63 - t];", SM_CHECKED,
     "no thread has written", ":8:", 64, 64},
    {"missing second barrier",
     "threadgroup float s[64];\ns[t] = x[i];\nthreadgroup_barrier(mem_flags::mem_threadgroup);\n"
     "y[i] = s[63 - t];\ns[t] = 1;",
     SM_CHECKED, "race", ":10 ", 64, 64},
    {"two groups write one place", "y[t] = x[i];", SM_CHECKED, "another threadgroup", ":6:", 128, 64},
    {"group reads what another wrote", "y[i] = x[i];\nx[255 - i] = y[127 - i];", SM_CHECKED, "race", ":6:", 128, 64},
    {"wrong flag",
     "threadgroup float s[64];\ns[t] = x[i];\nthreadgroup_barrier(mem_flags::mem_device);\ny[i] = s[63 - t];",
     SM_CHECKED, "race", ":9:", 64, 64},
    {"no flag", "threadgroup float s[64];\ns[t] = x[i];\nthreadgroup_barrier(mem_flags::mem_none);\ny[i] = s[63 - t];",
     SM_CHECKED, "race", ":9:", 64, 64},
    {"device memory, threadgroup flag",
     "y[i] = x[i];\nthreadgroup_barrier(mem_flags::mem_threadgroup);\nx[i] = y[63 - i];", SM_CHECKED, "race", ":8:", 64,
     64},
    {"simdgroup barrier between simdgroups",
     "threadgroup float s[64];\ns[t] = x[i];\nsimdgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = s[63 - t];",
     SM_CHECKED, "no thread has written", ":9:", 64, 64},
    {"atomic and plain",
     "atomic_fetch_add_explicit(&z[0], 1, memory_order_relaxed);\nif (t == 1) ((device int *)z)[0] = 3;", SM_CHECKED,
     "race", ":7:", 64, 64},
    {"same value twice", "y[0] = 1;", SM_CHECKED, "race", ":6:", 64, 64},
    {"bytes of one word", "((device uchar *)y)[0] = 1;", SM_CHECKED, "race", ":6:", 64, 64},
    {"after the end", "y[i + 1] = x[i];", SM_FAULT, "out of bounds", ":6:", 256, 64},
    {"before the start", "y[i] = x[int(i) - 1];", SM_FAULT, "out of bounds", ":6:", 64, 64},
    {"last element of a vector", "y[i] = ((device float4 *)x)[i].w;", SM_FAULT, "out of bounds", ":6:", 128, 64},
    {"threadgroup overrun",
     "threadgroup float s[64];\nthreadgroup float *p = s;\np[t + 1] = x[i];\n"
     "threadgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = s[t];",
     SM_FAULT, "out of bounds", ":8:", 64, 64},
    {"index of an array",
     "threadgroup float s[8][8];\ns[t / 16][t % 16] = x[i];\n"
     "threadgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = s[0][0];",
     SM_CHECKED, "index outside", ":7:", 64, 64},
    {"uninitialised",
     "threadgroup float s[64];\nif (t != 5) s[t] = x[i];\nthreadgroup_barrier(mem_flags::mem_threadgroup);\n"
     "y[i] = s[t];",
     SM_CHECKED, "no thread has written", ":9:", 64, 64},
    {"threads that left", "if (t >= 40) return;\nthreadgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = 1;",
     SM_CHECKED, "reached by 40 of 64", ":7", 64, 64},
    {"different barriers",
     "if (t < 40) threadgroup_barrier(mem_flags::mem_device);\n"
     "else threadgroup_barrier(mem_flags::mem_device);\ny[i] = 1;",
     SM_CHECKED, "different barriers", "line 6 and line 7", 64, 64},
    {"division by zero", "y[i] = 100 / int(i);", SM_CHECKED, "division", ":6:", 64, 64},
    {"shift", "y[i] = 1 << int(i);", SM_CHECKED, "shift", ":6:", 64, 64},
    {"number too large", "y[i] = int(x[i] * 1e10f);", SM_CHECKED, "does not fit", ":6:", 64, 64},
};

TEST(what_is_wrong_is_found)
{
    if (!starts()) return;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const wrong *w = &wrongs[i];
        test_case("%s", w->name);
        char text[1200], message[400];
        snprintf(text, sizeof text, HEAD PARAMETERS "%s\n}\n", w->body);
        sm_status status = run(text, w->threads, w->group, message);
        EXPECT_MSG(status == w->status, "status %d: %s", status, message);
        EXPECT_MSG(strstr(message, w->says) && strstr(message, w->line), "\"%s\" does not contain \"%s\" and \"%s\"",
                   message, w->says, w->line);
    }
    ends();
}

static const char *const rights[] = {
    "threadgroup float s[64];\ns[t] = x[i];\nthreadgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = s[63 - t];",
    "for (int n = 0; n < 3; n++) { threadgroup float s[64]; s[t] = x[i]; "
    "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "y[i] += s[63 - t]; threadgroup_barrier(mem_flags::mem_threadgroup); }",
    "threadgroup float s[64];\ns[t] = x[i];\nsimdgroup_barrier(mem_flags::mem_threadgroup);\ny[i] = s[t ^ 1];",
    "y[i] = x[i];\nthreadgroup_barrier(mem_flags::mem_device);\nx[i] = y[63 - t + g * 64];",
    ("atomic_fetch_add_explicit(&z[g], 1, memory_order_relaxed);\nthreadgroup_barrier(mem_flags::mem_device);\n"
     "if (t == 0) y[g] = ((device int *)z)[g];"),
    "atomic_fetch_add_explicit(&z[0], int(t), memory_order_relaxed);",
    "if (t < 7) y[i] = simd_sum(x[i]); else y[i] = simd_max(x[i]);",
    "y[i] = x[0] + x[255];",
    "float a[9]; for (int k = 0; k < 9; k++) a[k] = x[k]; y[i] = a[t % 9];",
};

TEST(what_is_right_passes)
{
    if (!starts()) return;
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        for (int seed = 0; seed < 2; seed++) {
            test_case("kernel %zu, seed %d", i, seed);
            setenv("SM_SEED", seed ? "77" : "", 1);
            char text[1200], message[400];
            snprintf(text, sizeof text, HEAD PARAMETERS "%s\n}\n", rights[i]);
            sm_status status = run(text, 128, 64, message);
            EXPECT_MSG(status == SM_OK, "status %d: %s", status, message);
        }
    }
    unsetenv("SM_SEED");
    ends();
}

/* ---- mutants ---- */

static const char good[] =
    "kernel void k(device float *x [[buffer(0)]], device float *y [[buffer(1)]], device atomic_int *z [[buffer(2)]],\n"
    "  uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {\n"
    "  threadgroup float s[64], total[1];\n"
    "  float sum = 0;\n"
    "  for (uint r = 0; r < 2; r++) {\n"
    "    for (uint i = t; i < 64; i += 64) s[i] = x[g * 128 + r * 64 + i];\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    for (uint n = 32; n > 0; n /= 2) {\n"
    "      if (t < n) s[t] += s[t + n];\n"
    "      threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    }\n"
    "    if (t == 0) total[0] = s[0];\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    sum += total[0];\n"
    "  }\n"
    "  y[g * 128 + t] = sum;\n"
    "  threadgroup_barrier(mem_flags::mem_device);\n"
    "  y[g * 128 + 64 + t] = y[g * 128 + 63 - t];\n"
    "}\n";

static const struct {
    const char *from, *to;
} mutations[] = {
    {"threadgroup_barrier(mem_flags::mem_threadgroup);", ""},
    {"threadgroup_barrier(mem_flags::mem_device);", ""},
    {"mem_flags::mem_threadgroup", "mem_flags::mem_device"},
    {"mem_flags::mem_threadgroup", "mem_flags::mem_none"},
    {"mem_flags::mem_device", "mem_flags::mem_threadgroup"},
    {"t < n", "t <= n"},
    {"s[t + n]", "s[t + n + 1]"},
    {"i < 64", "i <= 64 + t"},
    {"[g * 128 + 64 + t]", "[g * 128 + 129 + t]"},
    {"t == 0", "t <= 1"},
    {"s[64]", "s[63]"},
};

TEST(mutants_are_flagged)
{
    if (!starts()) return;
    char text[2400], message[400];
    snprintf(text, sizeof text, HEAD "%s", good);
    sm_status status = run(text, 128, 64, message);
    EXPECT_MSG(status == SM_OK, "the kernel itself: %s", message);
    for (size_t m = 0; m < sizeof mutations / sizeof *mutations; m++) {
        const char *at = good;
        for (int number = 1; (at = strstr(at, mutations[m].from)); number++, at++) {
            test_case("'%s' number %d becomes '%s'", mutations[m].from, number, mutations[m].to);
            snprintf(text, sizeof text, HEAD "%.*s%s%s", (int)(at - good), good, mutations[m].to,
                     at + strlen(mutations[m].from));
            status = run(text, 128, 64, message);
            EXPECT_MSG(status == SM_CHECKED || status == SM_FAULT, "not flagged: status %d", status);
        }
    }
    ends();
}

/* ---- dispatches of one encoder ---- */

static const char dispatches[] =
    HEAD "kernel void fill(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = i; }\n"
         "kernel void add(device float *x [[buffer(0)]], device float *y [[buffer(1)]], uint i "
         "[[thread_position_in_grid]])\n"
         "{ y[i] += x[i]; }\n";

typedef enum between { NOTHING, ALL, THERE, ELSEWHERE } between;

/* Fills a, then adds a (apart: c) to b, with `what` as the barrier in between. Returns the status of the second. */
static sm_status two_dispatches(between what, bool apart, char message[400])
{
    static float a[64], b[64], c[64];
    runner r = {0};
    sm_status status = SM_INVALID;
    const uint32_t size[3] = {64, 1, 1};
    sm_scope *scope = sm_scope_open();
    message[0] = '\0';
    sm_library *library = sm_library_open(dispatches, strlen(dispatches), NULL, &r.message);
    sm_kernel *fill = library ? sm_kernel_build(library, "fill", NULL, 0, &r.message) : NULL;
    sm_kernel *add = library ? sm_kernel_build(library, "add", NULL, 0, &r.message) : NULL;
    if (EXPECT_MSG(scope && fill && add, "%s", r.message)) {
        sm_dispatch d = {.buffers = {{a, sizeof a}}, .threads = {64, 1, 1}, .group = {32, 1, 1}, .scope = scope};
        EXPECT_INT(sm_kernel_run(fill, &d, NULL), SM_OK);
        if (what == ALL) sm_scope_barrier(scope, NULL, 0);
        if (what == THERE) sm_scope_barrier(scope, a, sizeof a);
        if (what == ELSEWHERE) sm_scope_barrier(scope, b, sizeof b);
        sm_dispatch e = {.buffers = {{apart ? c : a, sizeof a}, {b, sizeof b}}, .scope = scope, .label = "second"};
        memcpy(e.threads, size, sizeof size);
        memcpy(e.group, size, sizeof size);
        char *text = NULL;
        status = sm_kernel_run(add, &e, &text);
        if (text) snprintf(message, 400, "%s", text);
        free(text);
    }
    sm_kernel_close(fill);
    sm_kernel_close(add);
    sm_library_close(library);
    sm_scope_close(scope);
    free(r.message);
    return status;
}

TEST(hazards_between_dispatches)
{
    if (!starts()) return;
    char message[400];
    EXPECT_INT(two_dispatches(NOTHING, false, message), SM_CHECKED);
    EXPECT_MSG(strstr(message, "hazard") && strstr(message, "'fill'") && strstr(message, "buffer 0"), "%s", message);
    EXPECT_INT(two_dispatches(ELSEWHERE, false, message), SM_CHECKED);
    EXPECT_INT(two_dispatches(ALL, false, message), SM_OK);
    EXPECT_INT(two_dispatches(THERE, false, message), SM_OK);
    EXPECT_INT(two_dispatches(NOTHING, true, message), SM_OK);
    ends();
}

/* ---- without SM_CHECK ---- */

TEST(guard_pages)
{
    if (!runner_usable()) return;
    char message[400];
    for (int round = 0; round < 3; round++) { /* the device is usable afterwards */
        sm_status status = run(HEAD PARAMETERS "y[i + 1] = x[i];\n}\n", 256, 64, message);
        EXPECT_MSG(status == SM_FAULT, "status %d: %s", status, message);
        EXPECT_MSG(strstr(message, "program_source:6") && strstr(message, "after the end of buffer 1"), "%s", message);
        EXPECT_INT(run(HEAD PARAMETERS "y[i] = x[i];\n}\n", 256, 64, message), SM_OK);
    }
}

TEST(faults)
{
    if (!runner_usable()) return;
    char message[400];
#if defined(__x86_64__) /* ARM divides by zero without a fault, as GPUs do */
    EXPECT_INT(run(HEAD PARAMETERS "y[i] = 100 / (int(i) / 1000);\n}\n", 256, 64, message), SM_FAULT);
    EXPECT_MSG(strstr(message, "division by zero") && strstr(message, ":6"), "%s", message);
#endif
    EXPECT_INT(run(HEAD "float deep(thread float *p, int n) { float a[4096]; a[n] = *p; return n ? deep(a + n, n - 1) "
                        "+ a[n] : *p; }\n" PARAMETERS "float q = x[i]; y[i] = deep(&q, 100);\n}\n",
                   32, 32, message),
               SM_FAULT);
    EXPECT_MSG(strstr(message, "stack"), "%s", message);
}

TEST(endless_kernels)
{
    if (!runner_usable()) return;
    char message[400];
    setenv("SM_TIMEOUT", "0.3", 1);
    static const char *const bodies[] = {
        "while (atomic_load_explicit(&z[0], memory_order_relaxed) == 0) {}\n",
        "for (;;) threadgroup_barrier(mem_flags::mem_device);\n",
        "while (simd_sum(x[0]) == 0) {}\n",
    };
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
        char text[1000];
        snprintf(text, sizeof text, HEAD PARAMETERS "%s}\n", bodies[k]);
        sm_status status = run(text, 64, 32, message);
        EXPECT_MSG(status == SM_TIMEOUT && strstr(message, "SM_TIMEOUT"), "%zu: status %d: %s", k, status, message);
    }
    unsetenv("SM_TIMEOUT");
}

/* With a missing barrier between simdgroups, different schedules give different results. */
TEST(schedules)
{
    if (!runner_usable()) return;
    static const char text[] =
        HEAD "kernel void k(device float *x [[buffer(0)]], device float *y [[buffer(1)]], uint t "
             "[[thread_index_in_threadgroup]]) {\n"
             "  threadgroup float s[256]; s[t] = 0; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
             "  s[t] = t; y[t] = s[(t + 81) % 256]; }\n";
    float first[256], y[256], x[64] = {0};
    int different = 0;
    runner r = {0};
    if (runner_open(&r, text, "k", NULL, 0)) {
        for (int seed = 1; seed <= 6; seed++) {
            char number[16];
            snprintf(number, sizeof number, "%d", seed);
            setenv("SM_SEED", number, 1);
            runner_buffer(&r, 0, x, sizeof x);
            runner_buffer(&r, 1, y, sizeof y);
            runner_run(&r, (uint32_t[3]){256, 1, 1}, (uint32_t[3]){256, 1, 1});
            if (seed == 1) memcpy(first, y, sizeof y);
            different += memcmp(first, y, sizeof y) != 0;
        }
    }
    runner_close(&r);
    unsetenv("SM_SEED");
    EXPECT_MSG(different >= 4, "only %d of 5 seeds differ", different);
}

TEST(thread_limit)
{
    if (!runner_usable()) return;
    char message[400];
    setenv("SM_MAXTHREADS", "128", 1);
    EXPECT_INT(run(HEAD PARAMETERS "y[i] = x[i];\n}\n", 256, 256, message), SM_INVALID);
    EXPECT_MSG(strstr(message, "above the limit of 128"), "%s", message);
    EXPECT_INT(run(HEAD PARAMETERS "y[i] = x[i];\n}\n", 256, 128, message), SM_OK);
    unsetenv("SM_MAXTHREADS");
}

/* Math functions return results with allowed errors, which differ from seed to seed. */
TEST(math_fuzz)
{
    if (!runner_usable()) return;
    static const char text[] = HEAD "kernel void k(device float *x [[buffer(0)]], device float *y [[buffer(1)]], uint "
                                    "i [[thread_position_in_grid]]) {\n"
                                    "  y[i] = exp(x[i]) + simd_sum(sin(x[i])); }\n";
    float x[64], exact[64], y[64], first[64];
    for (int i = 0; i < 64; i++) x[i] = (float)i * 0.03f;
    int moved = 0, differ = 0;
    for (int seed = 0; seed < 4; seed++) {
        runner r = {0};
        char number[16];
        snprintf(number, sizeof number, "%d", seed);
        setenv("SM_SEED", number, 1);
        if (seed) setenv("SM_MATH", "fuzz", 1);
        if (runner_open(&r, text, "k", NULL, 0)) {
            runner_buffer(&r, 0, x, sizeof x);
            runner_buffer(&r, 1, y, sizeof y);
            runner_run(&r, (uint32_t[3]){64, 1, 1}, (uint32_t[3]){64, 1, 1});
        }
        runner_close(&r);
        if (!seed) memcpy(exact, y, sizeof y);
        if (seed == 1) memcpy(first, y, sizeof y);
        for (int i = 0; i < 64; i++) {
            moved += y[i] != exact[i];
            if (seed > 1) differ += y[i] != first[i];
            EXPECT_CLOSE(y[i], exact[i], 1e-3, 5e-3);
        }
    }
    EXPECT_MSG(moved > 100 && differ > 60, "%d values moved, %d differ between seeds", moved, differ);
    unsetenv("SM_SEED");
    unsetenv("SM_MATH");
}

/* SM_COVER records the branch that ran and the branch that did not. */
TEST(blocks_that_ran_are_recorded)
{
    if (!runner_usable()) return;
    char path[64], message[400], line[1200], word[16];
    snprintf(path, sizeof path, "/tmp/softmetal-cover-%d", (int)getpid());
    setenv("SM_COVER", path, 1);
    EXPECT_INT(run(HEAD PARAMETERS
                   "if (x[i] >= 0) y[i] = 1; else atomic_fetch_add_explicit(z, 1, memory_order_relaxed);\n}\n",
                   64, 32, message),
               SM_OK);
    unsetenv("SM_COVER");
    FILE *file = fopen(path, "r");
    CHECK_MSG(file, "nothing was written to %s", path);
    int modules = 0, ran = 0, missed = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%15s", word) != 1) continue;
        modules += strcmp(word, "module") == 0;
        ran += strcmp(word, "1") == 0;
        missed += strcmp(word, "0") == 0;
    }
    fclose(file);
    remove(path);
    EXPECT_INT(modules, 1);
    EXPECT_MSG(ran > 0 && missed > 0, "%d blocks ran, %d did not", ran, missed);
}
