/* Everything that mica bench can measure, one line each. Names are what scripts,
 * SPEED.md and bench/peers.py know: append, do not rename. */
#include "bench.h"

#define MATMUL(n) \
    {"matmul_f32_" #n, "f32 " #n "x" #n " times " #n "x" #n, &bench_matmul, {n, 1, MICA_F32}, BENCH_EVAL, BENCH_F32, false}
#define LINEAR(batch)                                                                                   \
    {"linear_4096_b" #batch, "x(" #batch ",4096) times the transpose of w(4096,4096)", &bench_linear, \
     {4096, 4096, batch}, BENCH_EVAL, BENCH_F32, false}
#define ATTENTION(time, dims, is_long)                                                                       \
    {"attention_s" #time "_d" #dims, "8 heads, " #time " queries and keys of " #dims, &bench_attention,     \
     {8, time, dims, 0}, BENCH_EVAL, BENCH_F32, is_long},                                                    \
    {"attention_s" #time "_d" #dims "_causal", "the same, causal", &bench_attention, \
     {8, time, dims, 1}, BENCH_EVAL, BENCH_F32, is_long}
/* memory-bound ones: nothing but sizes */
#define SIMPLE(name, what, family, ...) {name, what, family, {__VA_ARGS__}, BENCH_EVAL, BENCH_F32, false}
#define TINY(name, what, nodes, mode) {name, what, &bench_tiny, {16, nodes}, mode, BENCH_F32, false}

const bench_case bench_cases[] = {
    MATMUL(32),
    MATMUL(64),
    MATMUL(128),
    MATMUL(256),
    MATMUL(512),
    MATMUL(1024),
    MATMUL(2048),
    {"matmul_f32_32x64", "64 products of f32 32x32 in one op", &bench_matmul, {32, 64, MICA_F32}, BENCH_EVAL, BENCH_F32, false},
    {"matmul_f32_64x64", "64 products of f32 64x64 in one op", &bench_matmul, {64, 64, MICA_F32}, BENCH_EVAL, BENCH_F32, false},
    {"matmul_f32_32_call", "f32 32x32 as a compiled function", &bench_matmul, {32, 1, MICA_F32}, BENCH_CALL, BENCH_F32, false},
    {"matmul_bf16_1024", "bf16 1024x1024", &bench_matmul, {1024, 1, MICA_BF16}, BENCH_EVAL, BENCH_BF16, false},
    {"matmul_f16_1024", "f16 1024x1024", &bench_matmul, {1024, 1, MICA_F16}, BENCH_EVAL, BENCH_F32, false},
    {"matmul_i8_1024", "i8 1024x1024, i32 sums", &bench_matmul_i8, {1024, 1}, BENCH_EVAL, BENCH_I8, false},

    LINEAR(1),
    LINEAR(4),
    LINEAR(32),
    LINEAR(128),

    SIMPLE("gelu_64k", "gelu_tanh(x*a+b)*c+d on 65,536 floats", &bench_gelu, 65536),
    SIMPLE("gelu_16m", "the same on 16,777,216 floats", &bench_gelu, 16777216),
    SIMPLE("chain_64k", "eight cheap ops on 65,536 floats", &bench_chain, 65536),
    SIMPLE("chain_16m", "the same on 16,777,216 floats", &bench_chain, 16777216),

    SIMPLE("softmax_1024x1024", "softmax of each row", &bench_softmax, 1024, 1024),
    SIMPLE("softmax_16384x1024", "softmax of each row", &bench_softmax, 16384, 1024),
    SIMPLE("layernorm_1024x1024", "layer norm with weight and bias", &bench_layernorm, 1024, 1024),
    SIMPLE("layernorm_16384x1024", "layer norm with weight and bias", &bench_layernorm, 16384, 1024),
    SIMPLE("rmsnorm_1024x1024", "rms norm with weight", &bench_rmsnorm, 1024, 1024),
    SIMPLE("rmsnorm_16384x1024", "rms norm with weight", &bench_rmsnorm, 16384, 1024),

    SIMPLE("sum_all_1024x1024", "sum of all elements", &bench_sum, 1024, 1024, -1),
    SIMPLE("sum_rows_1024x1024", "sum of each row", &bench_sum, 1024, 1024, 1),
    SIMPLE("sum_columns_1024x1024", "sum of each column", &bench_sum, 1024, 1024, 0),
    SIMPLE("sum_all_16384x4096", "sum of all elements", &bench_sum, 16384, 4096, -1),
    SIMPLE("sum_rows_16384x4096", "sum of each row", &bench_sum, 16384, 4096, 1),
    SIMPLE("sum_columns_16384x4096", "sum of each column", &bench_sum, 16384, 4096, 0),

    SIMPLE("transpose_2048", "a transposed copy of 2048x2048 floats", &bench_transpose, 2048, 2048),
    SIMPLE("embedding_32000x1024", "1,024 rows of a table of 32,000 x 1,024", &bench_take, 32000, 1024, 1024),
    SIMPLE("take_1m", "1,048,576 single floats out of 16,777,216", &bench_take, 16777216, 1, 1048576),
    SIMPLE("sort_1m", "1,048,576 floats", &bench_sort, 1048576),
    SIMPLE("random_normal_16m", "16,777,216 normal floats", &bench_random, 16777216),

    ATTENTION(128, 64, false),
    ATTENTION(512, 64, false),
    ATTENTION(1024, 64, false),
    ATTENTION(4096, 64, true),
    ATTENTION(128, 128, false),
    ATTENTION(512, 128, false),
    ATTENTION(1024, 128, false),
    ATTENTION(4096, 128, true),

    SIMPLE("conv_3x3_64_56", "64 to 64 channels, 3x3, on 56x56", &bench_conv, 64, 64, 56, 3, 1),
    SIMPLE("conv_1x1_256_56", "256 to 64 channels, 1x1, on 56x56", &bench_conv, 256, 64, 56, 1, 1),
    SIMPLE("conv_depthwise_128_56", "128 channels apart, 3x3, on 56x56", &bench_conv, 128, 128, 56, 3, 128),

    {"mlp_step", "training step 784-512-10, batch 128, SGD", &bench_mlp, {784, 512, 10, 128}, BENCH_EVAL, BENCH_F32, false},
    {"mlp_step_call", "the same as a compiled function", &bench_mlp, {784, 512, 10, 128}, BENCH_CALL, BENCH_F32, false},

    TINY("tiny_1000", "1,000 ops on 16 floats, built and evaluated again", 1000, BENCH_EVAL),
    TINY("tiny_1000_call", "the same as a compiled function", 1000, BENCH_CALL),
    TINY("tiny_1000_build", "building those nodes", 1000, BENCH_BUILD),
    TINY("tiny_1000_drop", "letting go of them", 1000, BENCH_DROP),
    TINY("tiny_1000_first", "the first evaluation: simplify, plan, run", 1000, BENCH_FIRST),
    TINY("tiny_10000_first", "the same with 10,000 ops", 10000, BENCH_FIRST),
};

const size_t n_bench_cases = sizeof bench_cases / sizeof bench_cases[0];
