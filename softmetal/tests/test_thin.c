/* End to end: an element-wise kernel, a reduction with barriers and simd_sum, and a tiled matmul, against double. */
#include "runner.h"

#include <math.h>
#include <stdlib.h>

static const char text[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct params { uint n; float scale; };\n"
    "kernel void scale_add(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],\n"
    "                      constant params &p [[buffer(2)]], uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    if (i < p.n) y[i] = p.scale * x[i] + y[i] * 0.5;\n"
    "}\n"
    "kernel void total(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &n "
    "[[buffer(2)]],\n"
    "                  uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]],\n"
    "                  uint size [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],\n"
    "                  uint s [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]])\n"
    "{\n"
    "    threadgroup float part[32];\n"
    "    float sum = 0;\n"
    "    for (uint i = t; i < n; i += size) sum += x[g * n + i];\n"
    "    sum = simd_sum(sum);\n"
    "    if (lane == 0) part[s] = sum;\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    if (s == 0) {\n"
    "        sum = lane < simds ? part[lane] : 0;\n"
    "        sum = simd_sum(sum);\n"
    "        if (lane == 0) y[g] = sum;\n"
    "    }\n"
    "}\n"
    "constant uint TILE = 16;\n"
    "kernel void matmul(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *c "
    "[[buffer(2)]],\n"
    "                   constant uint3 &size [[buffer(3)]], uint2 t [[thread_position_in_threadgroup]],\n"
    "                   uint2 g [[thread_position_in_grid]])\n"
    "{\n"
    "    threadgroup float s[16][16], r[TILE][TILE];\n"
    "    float sum = 0;\n"
    "    for (uint k = 0; k < size.z; k += TILE) {\n"
    "        s[t.y][t.x] = g.y < size.x && k + t.x < size.z ? a[g.y * size.z + k + t.x] : 0;\n"
    "        r[t.y][t.x] = g.x < size.y && k + t.y < size.z ? b[(k + t.y) * size.y + g.x] : 0;\n"
    "        threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "        for (uint i = 0; i < TILE; i++) sum += s[t.y][i] * r[i][t.x];\n"
    "        threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    }\n"
    "    if (g.y < size.x && g.x < size.y) c[g.y * size.y + g.x] = sum;\n"
    "}\n";

TEST(elementwise)
{
    if (!runner_usable()) return;
    enum { N = 1000 };
    float x[N], y[N], want[N];
    uint32_t state = 1;
    for (int i = 0; i < N; i++) {
        x[i] = runner_number(&state);
        y[i] = runner_number(&state);
        want[i] = 3.0f * x[i] + y[i] * 0.5f;
    }
    struct {
        uint32_t n;
        float scale;
    } params = {N, 3.0f};
    runner r = {0};
    if (runner_open(&r, text, "scale_add", NULL, 0)) {
        runner_buffer(&r, 0, x, sizeof x);
        runner_buffer(&r, 1, y, sizeof y);
        runner_buffer(&r, 2, &params, sizeof params);
        runner_run(&r, (uint32_t[3]){1024, 1, 1}, (uint32_t[3]){128, 1, 1});
        for (int i = 0; i < N; i++)
            if (!EXPECT_MSG(y[i] == want[i], "%d: %g, not %g", i, (double)y[i], (double)want[i])) break;
    }
    runner_close(&r);
}

TEST(reduction)
{
    if (!runner_usable()) return;
    enum { ROWS = 5, N = 777 };
    static float x[ROWS * N];
    float y[ROWS];
    uint32_t state = 2, n = N;
    for (int i = 0; i < ROWS * N; i++) x[i] = runner_number(&state);
    runner r = {0};
    if (runner_open(&r, text, "total", NULL, 0)) {
        for (uint32_t size = 32; size <= 1024; size *= 2) {
            runner_buffer(&r, 0, x, sizeof x);
            runner_buffer(&r, 1, y, sizeof y);
            runner_buffer(&r, 2, &n, sizeof n);
            runner_run(&r, (uint32_t[3]){ROWS * size, 1, 1}, (uint32_t[3]){size, 1, 1});
            for (int i = 0; i < ROWS; i++) {
                double want = 0;
                for (int k = 0; k < N; k++) want += (double)x[i * N + k];
                EXPECT_CLOSE(y[i], want, 1e-5, 1e-4);
            }
        }
    }
    runner_close(&r);
}

TEST(tiled_matmul)
{
    if (!runner_usable()) return;
    enum { M = 37, N = 50, K = 29 };
    static float a[M * K], b[K * N], c[M * N];
    uint32_t state = 3, size[4] = {M, N, K, 0};
    for (int i = 0; i < M * K; i++) a[i] = runner_number(&state);
    for (int i = 0; i < K * N; i++) b[i] = runner_number(&state);
    runner r = {0};
    if (runner_open(&r, text, "matmul", NULL, 0)) {
        runner_buffer(&r, 0, a, sizeof a);
        runner_buffer(&r, 1, b, sizeof b);
        runner_buffer(&r, 2, c, sizeof c);
        runner_buffer(&r, 3, size, sizeof size);
        runner_run(&r, (uint32_t[3]){64, 48, 1}, (uint32_t[3]){16, 16, 1});
        for (int i = 0; i < M * N; i++) {
            double want = 0;
            for (int k = 0; k < K; k++) want += (double)a[i / N * K + k] * (double)b[k * N + i % N];
            if (!EXPECT_CLOSE(c[i], want, 1e-5, 1e-5)) break;
        }
    }
    runner_close(&r);
}
