/* SM_COUNT: bytes, lines, banks and samples of kernels whose accesses are known by hand; the record, and the command
 * softmetal-count. */
#include "runner.h"
#include "softmetal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1024 };

static const char text[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "constant int width [[function_constant(0)]];\n"
    "constant float scale [[function_constant(1)]];\n"
    "kernel void stream(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
    "                   uint i [[thread_position_in_grid]]) { b[i] = a[i]; }\n"
    "kernel void stride(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
    "                   uint i [[thread_position_in_grid]]) { b[i] = a[i * 32]; }\n"
    "kernel void same(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
    "                 uint i [[thread_position_in_grid]]) { b[i] = a[i / 32]; }\n"
    "kernel void shifted(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
    "                    uint i [[thread_position_in_grid]]) { b[i] = a[i + 1]; }\n"
    "kernel void fours(device const float4 *a [[buffer(0)]], device float4 *b [[buffer(1)]],\n"
    "                  uint i [[thread_position_in_grid]]) { b[i] = a[i] + 1.0f; }\n"
    "kernel void banks(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
    "                  uint i [[thread_position_in_grid]], uint j [[thread_index_in_threadgroup]])\n"
    "{\n"
    "    threadgroup float t[32 * 33];\n"
    "    t[width * j] = a[i];\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    b[i] = t[width * (31 - j)] * scale;\n"
    "}\n"
    "kernel void passed(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
    "                   threadgroup float4 *t [[threadgroup(0)]], constant float *table [[buffer(2)]],\n"
    "                   uint i [[thread_position_in_grid]], uint j [[thread_index_in_threadgroup]])\n"
    "{\n"
    "    t[j] = float4(a[i]);\n"
    "    simdgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    b[i] = t[j ^ 1].x + table[i & 3];\n"
    "}\n"
    "kernel void rows(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
    "                 uint g [[threadgroup_position_in_grid]], uint i [[thread_position_in_grid]],\n"
    "                 uint j [[thread_index_in_threadgroup]])\n"
    "{\n"
    "    float s = 0;\n"
    "    for (uint k = 0; k < 4; k++) s += a[j + 64 * k] * a[i];\n"
    "    s = simd_sum(s);\n"
    "    if (j % 32 == 0) b[i / 32] = s;\n"
    "}\n";

static float in[64 * N], out[4 * N];

static bool count_kernel(const char *name, const sm_constant *constants, int n, uint32_t threads, uint32_t group,
                         unsigned long groups, sm_counts *counts)
{
    runner r = {0};
    for (int i = 0; i < 64 * N; i++) in[i] = (float)(i % 13);
    memset(out, 0, sizeof out);
    sm_count("", groups);
    bool good = runner_open(&r, text, name, constants, n);
    runner_buffer(&r, 0, in, sizeof in);
    runner_buffer(&r, 1, out, sizeof out);
    runner_buffer(&r, 2, in, 16);
    if (strcmp(name, "passed") == 0) r.dispatch.threadgroup_bytes[0] = 32 * 16;
    good = good && runner_run(&r, (uint32_t[3]){threads, 1, 1}, (uint32_t[3]){group, 1, 1}) &&
           EXPECT(sm_kernel_counts(r.kernel, counts));
    sm_count(NULL, 0);
    runner_close(&r);
    return good;
}

TEST(lines_of_a_simd_access)
{
    if (!runner_usable()) return;
    static const struct line_case {
        const char *kernel;
        double lines, ideal, read; /* lines of 32 threads that load and store; different bytes that all of them read */
    } cases[] = {
        {"stream", 1 + 1, 1 + 1, 4 * N},  {"stride", 32 + 1, 1 + 1, 4 * N}, {"same", 1 + 1, 1 + 1, 4 * N / 32},
        {"shifted", 2 + 1, 1 + 1, 4 * N}, {"fours", 4 + 4, 4 + 4, 16 * N},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sm_counts c;
        test_case("%s", cases[i].kernel);
        if (!count_kernel(cases[i].kernel, NULL, 0, N, 64, 0, &c)) continue;
        const double size = strcmp(cases[i].kernel, "fours") == 0 ? 16 : 4;
        EXPECT_CLOSE(c.loaded_bytes, size * (double)N, 0, 0);
        EXPECT_CLOSE(c.stored_bytes, size * (double)N, 0, 0);
        EXPECT_CLOSE(c.device_accesses, 2 * N / 32, 0, 0);
        EXPECT_CLOSE(c.lines_touched, cases[i].lines * (double)N / 32, 0, 0);
        EXPECT_CLOSE(c.lines_ideal, cases[i].ideal * (double)N / 32, 0, 0);
        EXPECT_CLOSE(c.read_bytes, cases[i].read, 0, 0);
        EXPECT_CLOSE(c.written_bytes, size * (double)N, 0, 0);
        EXPECT_CLOSE(c.local_accesses, 0, 0, 0);
    }
}

TEST(banks_of_threadgroup_memory)
{
    if (!runner_usable()) return;
    static const struct bank_case {
        int width;
        double cycles; /* of one simd access */
    } cases[] = {{1, 1}, {2, 2}, {4, 4}, {32, 32}, {33, 1}, {0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sm_counts c;
        const float scale = 0.5f;
        const sm_constant constants[] = {{NULL, 0, SM_INT, 1, &cases[i].width}, {"scale", 0, SM_FLOAT, 1, &scale}};
        test_case("%d words apart", cases[i].width);
        if (!count_kernel("banks", constants, 2, 64, 32, 0, &c)) continue;
        EXPECT_CLOSE(c.local_accesses, 2 * 2, 0, 0);
        EXPECT_CLOSE(c.local_bytes, 2 * 2 * 128, 0, 0);
        EXPECT_CLOSE(c.local_cycles, 2 * 2 * cases[i].cycles, 0, 0);
        EXPECT_CLOSE(c.local_ideal, 2 * 2, 0, 0);
        EXPECT_CLOSE(c.issued[SM_COST_BARRIER], 2, 0, 0);
        EXPECT_INT(c.threadgroup_bytes, 32 * 33 * 4);
        if (cases[i].width) EXPECT_CLOSE(out[3], in[31 - 3] / 2, 0, 0);
    }
}

TEST(threadgroup_arguments_and_constant_tables)
{
    if (!runner_usable()) return;
    sm_counts c;
    if (!count_kernel("passed", NULL, 0, 64, 32, 0, &c)) return;
    EXPECT_CLOSE(c.local_accesses, 4, 0, 0);
    EXPECT_CLOSE(c.local_bytes, 2 * (512 + 128), 0, 0);
    EXPECT_CLOSE(c.local_cycles, 2 * (4 + 4), 0, 0); /* 128 words; then 32 of them, 16 bytes apart */
    EXPECT_CLOSE(c.local_ideal, 2 * (4 + 1), 0, 0);
    EXPECT_INT(c.threadgroup_bytes, 512);
    EXPECT_CLOSE(c.constant_accesses, 2, 0, 0);
    EXPECT_CLOSE(c.constant_bytes, 256, 0, 0);
    EXPECT_CLOSE(c.loaded_bytes, 256, 0, 0); /* the table is not device memory */
    EXPECT_CLOSE(out[5], in[4] + in[1], 0, 0);
}

TEST(a_sample_has_the_counts_of_the_whole)
{
    if (!runner_usable()) return;
    sm_counts whole, part;
    if (!count_kernel("rows", NULL, 0, N, 64, N, &whole)) return;
    const float last = out[N / 32 - 1];
    if (!count_kernel("rows", NULL, 0, N, 64, 3, &part)) return;
    EXPECT_INT(whole.counted, N / 64);
    EXPECT_INT(part.counted, 3);
    EXPECT_INT(part.groups, N / 64);
    EXPECT_CLOSE(out[N / 32 - 1], last, 0, 0); /* the others ran, too */
    for (int k = 0; k < SM_COSTS; k++) EXPECT_CLOSE(part.operations[k], whole.operations[k], 1e-12, 0);
    EXPECT_CLOSE(part.sum, whole.sum, 1e-12, 0);
    EXPECT_CLOSE(part.loaded_bytes, whole.loaded_bytes, 1e-12, 0);
    EXPECT_CLOSE(part.lines_touched, whole.lines_touched, 1e-12, 0);
    EXPECT_CLOSE(part.written_bytes, whole.written_bytes, 1e-12, 0);
    EXPECT_CLOSE(part.active_lanes, whole.active_lanes, 1e-12, 0);
    /* All read the first 1 KB, the others 256 bytes more each. Of a sample this is an estimate: what one threadgroup
     * reads is scaled, what several read is not. */
    EXPECT_CLOSE(whole.read_bytes, 4 * N, 0, 0);
    EXPECT_CLOSE(part.read_bytes, whole.read_bytes, 0.3, 0);
}

TEST(the_edge_of_a_grid_is_counted)
{
    if (!runner_usable()) return;
    sm_counts c;
    if (!count_kernel("stream", NULL, 0, 100, 64, 0, &c)) return;
    EXPECT_CLOSE(c.operations[SM_COST_DEVICE_MEMORY], 200, 0, 0);
    EXPECT_CLOSE(c.issued[SM_COST_DEVICE_MEMORY], 8, 0, 0); /* of four simdgroups, the last with four threads */
    EXPECT_CLOSE(c.active_lanes, 25, 1e-12, 0);
    EXPECT_CLOSE(c.loaded_bytes, 400, 0, 0);
}

TEST(each_dispatch_is_a_line_of_the_file)
{
    if (!runner_usable()) return;
    char path[] = "/tmp/softmetal-count-XXXXXX", line[8192] = "";
    const int file = mkstemp(path), two = 2;
    const float scale = 0.25f;
    const sm_constant constants[] = {{NULL, 0, SM_INT, 1, &two}, {"scale", 0, SM_FLOAT, 1, &scale}};
    CHECK(file >= 0);
    setenv("SM_COUNT", path, 1);
    setenv("SM_COUNT_GROUPS", "4", 1);
    runner r = {0};
    const bool opened = runner_open(&r, text, "banks", constants, 2);
    runner_buffer(&r, 0, in, sizeof in);
    runner_buffer(&r, 1, out, sizeof out);
    if (opened) {
        EXPECT(runner_run(&r, (uint32_t[3]){N, 1, 1}, (uint32_t[3]){32, 1, 1}));
        EXPECT(runner_run(&r, (uint32_t[3]){32, 1, 1}, (uint32_t[3]){32, 1, 1}));
    }
    unsetenv("SM_COUNT");
    unsetenv("SM_COUNT_GROUPS");
    runner_close(&r);
    FILE *lines = fdopen(file, "r");
    CHECK(lines != NULL);
    EXPECT(fgets(line, sizeof line, lines) && strncmp(line, "{\"kernel\":\"banks\",", 18) == 0);
    EXPECT(strstr(line, "\"constants\":{\"width\":2,\"scale\":0.25},\"grid\":[1024,1,1],\"threads\":[32,1,1]"));
    EXPECT(strstr(line, "\"groups\":32,\"sampled\":\"4 of 32\",\"operations\":{\"float\":1024,"));
    EXPECT(strstr(line, "\"bank_conflicts\":64,") && strstr(line, "\"barriers\":32,"));
    EXPECT(fgets(line, sizeof line, lines) && strstr(line, "\"groups\":1,\"sampled\":null,"));
    EXPECT(!fgets(line, sizeof line, lines));
    fclose(lines);
    unlink(path);
}

TEST(a_file_that_cannot_be_written_is_an_error)
{
    if (!runner_usable()) return;
    runner r = {0};
    setenv("SM_COUNT", "/nonexistent/folder/file", 1);
    const bool opened = runner_open(&r, text, "stream", NULL, 0);
    runner_buffer(&r, 0, in, sizeof in);
    runner_buffer(&r, 1, out, sizeof out);
    if (opened) EXPECT(runner_try(&r, (uint32_t[3]){32, 1, 1}, (uint32_t[3]){32, 1, 1}) != SM_OK);
    EXPECT(r.message && strstr(r.message, "SM_COUNT=/nonexistent/folder/file: not written"));
    unsetenv("SM_COUNT");
    runner_close(&r);
}

/* ---- the command ---- */

/* Runs build/softmetal-count, which is two folders above this program; its exit code, or -1. */
static int run_command(const char *arguments, const char *source, char *printed, size_t size)
{
    char self[512], path[] = "/tmp/softmetal-count-XXXXXX", line[2048];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return -1;
    self[n] = '\0';
    char *build = strstr(self, "/softmetal/tests/");
    const int file = mkstemp(path);
    if (!build || file < 0) return -1;
    *build = '\0';
    snprintf(line, sizeof line, "%s/softmetal-count", self);
    const bool exists = access(line, X_OK) == 0;
    const bool written = write(file, source, strlen(source)) == (ssize_t)strlen(source);
    close(file);
    snprintf(line, sizeof line, "%s/softmetal-count %s %s 2>&1", self, path, arguments);
    FILE *pipe = exists && written ? popen(line, "r") : NULL;
    const size_t got = pipe ? fread(printed, 1, size - 1, pipe) : 0;
    printed[got] = '\0';
    const int status = pipe ? pclose(pipe) : -1;
    unlink(path);
    const int code = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code == 126 ? -1 : code; /* of another machine: the tests run under qemu */
}

TEST(the_command_counts_a_kernel_of_a_file)
{
    if (!runner_usable()) return;
    static const char source[] = "#include <metal_stdlib>\nusing namespace metal;\n"
                                 "struct args { uint n; float s; };\n"
                                 "constant int rows [[function_constant(3)]];\n"
                                 "kernel void k(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
                                 "              constant args &p [[buffer(2)]], uint i [[thread_position_in_grid]])\n"
                                 "{ float s = 0; for (uint k = 0; k < p.n; k++) s += a[i] * p.s; b[i] = s * rows; }\n";
    char said[16384];
    const char *const good = "k --grid 256 --threads 64 --buffer 0=1K:random --buffer 1=1024 "
                             "--bytes 2=uint:10,float:0.5 --constant 3=int:4";
    if (run_command(good, source, said, sizeof said) < 0) {
        test_skip("softmetal-count is not built, or cannot run here");
        return;
    }
    EXPECT_MSG(strstr(said, "k: grid 256 x 1 x 1, threadgroups of 64 x 1 x 1\n"), "%s", said);
    EXPECT_MSG(strstr(said, "device memory: ") && strstr(said, "lane cycles: sum "), "%s", said);
    char json[512];
    snprintf(json, sizeof json, "%s --json --groups 2", good);
    EXPECT_INT(run_command(json, source, said, sizeof said), 0);
    EXPECT_MSG(strstr(said, "\"constants\":{\"rows\":4}") && strstr(said, "\"sampled\":\"2 of 4\""), "%s", said);
    EXPECT_MSG(strstr(said, "\"stored_bytes\":1024"), "%s", said);
    EXPECT_INT(run_command("k --grid 256 --threads 64 --buffer 0=1K", "kernel void k(device float *a) { a[0] = x; }\n",
                           said, sizeof said),
               1);
    EXPECT_MSG(strstr(said, ":1:") && strstr(said, "error: use of undeclared identifier 'x'"), "%s", said);
    EXPECT_INT(run_command("none --grid 1 --threads 1", source, said, sizeof said), 1);
    EXPECT_MSG(strstr(said, "the library has no kernel 'none'"), "%s", said);
    EXPECT_INT(run_command("k --grid 256 --threads 64 --constant 3=int:4", source, said, sizeof said), 1);
    EXPECT_MSG(strstr(said, "nothing is bound to buffer"), "%s", said);
}

TEST(a_wrong_command_line_is_refused)
{
    if (!runner_usable()) return;
    static const struct wrong_row {
        const char *arguments, *expected;
    } rows[] = {
        {"k --grid 1", "--grid and --threads are needed"},
        {"--grid 1 --threads 1", "a file and a kernel are needed"},
        {"k --grid 0 --threads 1", "--grid 0: it is X,Y,Z"},
        {"k --grid 1 --threads 1 --buffer 40=4", "it begins with N="},
        {"k --grid 1 --threads 1 --buffer 0=x", "N=SIZE[:zero|random|iota|FILE]"},
        {"k --grid 1 --threads 1 --buffer 0=4:/nonexistent", "cannot read '/nonexistent'"},
        {"k --grid 1 --threads 1 --buffer 0=4 --bytes 0=00", "buffer 0 is given twice"},
        {"k --grid 1 --threads 1 --bytes 0=abc", "an odd number of hex digits"},
        {"k --grid 1 --threads 1 --bytes 0=double:1", "is not a type of MSL"},
        {"k --grid 1 --threads 1 --constant 0=int:x", "not a value of int"},
        {"k --grid 1 --threads 1 --nonsense 1", "unknown option '--nonsense'"},
    };
    char said[4096];
    if (run_command("--help", "", said, sizeof said) < 0) {
        test_skip("softmetal-count is not built, or cannot run here");
        return;
    }
    EXPECT(strstr(said, "usage: softmetal-count"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_case("%s", rows[i].arguments);
        EXPECT_INT(run_command(rows[i].arguments, "", said, sizeof said), 2);
        EXPECT_MSG(strstr(said, rows[i].expected), "%s", said);
    }
}
