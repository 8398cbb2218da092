/* Kernel families that compute: matmul, conv, attention, norms, softmax, rope. The fast variant is
 * compared with the reference on many shapes and layouts, and both with results computed by hand.
 *
 * runs: arm */
#include "kernels_util.h"

TEST(matmul_known)
{
    static const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
    static const double want[] = {58, 64, 139, 154};
    const mica__tensor in[2] = {{(char *)(uintptr_t)a, util_spec(MICA_F32, 2, (int64_t[]){2, 3}), {3, 1}},
                                {(char *)(uintptr_t)b, util_spec(MICA_F32, 2, (int64_t[]){3, 2}), {2, 1}}};
    for (int threads = 0; threads < 2; threads++) {
        util_tensor out =
            util_run(MICA__OP_MATMUL, threads, in, 2, NULL, util_spec(MICA_F32, 2, (int64_t[]){2, 2}), MICA_OK);
        for (int i = 0; i < 4; i++) EXPECT_CLOSE(util_f64(&out.t, i), want[i], 0, 0);
        util_free(&out);
    }
}

static void check_matmul(mica_dtype dtype, int batches, const int64_t *batch, int64_t m, int64_t k, int64_t n)
{
    int64_t a[MICA_MAX_DIMS], b[MICA_MAX_DIMS], c[MICA_MAX_DIMS];
    for (int d = 0; d < batches; d++) a[d] = b[d] = c[d] = batch[d];
    a[batches] = c[batches] = m;
    a[batches + 1] = b[batches] = k;
    b[batches + 1] = c[batches + 1] = n;
    test_case("%s batch axes %d, (%lld, %lld) x (%lld, %lld)", mica_dtype_name(dtype), batches, (long long)m,
              (long long)k, (long long)k, (long long)n);
    util_tensor x = util_new(dtype, batches + 2, a), y = util_new(dtype, batches + 2, b);
    const mica__tensor in[2] = {x.t, y.t};
    util_check(MICA__OP_MATMUL, in, 2, NULL, util_spec(dtype, batches + 2, c), util_rtol(dtype),
               4e-6 * sqrt((double)k + 1));
    util_free(&x);
    util_free(&y);
}

TEST(matmul_shapes)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 17, 33, 64, 65};
    enum { N = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) check_matmul(MICA_F32, 0, NULL, sizes[i], sizes[(i + j) % N], sizes[j]);
    for (int i = 0; i < 60; i++) {
        const mica_dtype dtype = (mica_dtype)(1 + i % 12);
        const int64_t batch[2] = {util_below(4), 1 + util_below(3)};
        check_matmul(dtype, i % 3, batch, util_size(), util_size(), util_size());
    }
    check_matmul(MICA_F32, 0, NULL, 3, 700, 300);   /* thin, several blocks of k   */
    check_matmul(MICA_F32, 0, NULL, 300, 700, 2);
    check_matmul(MICA_F32, 0, NULL, 130, 600, 260); /* several tiles each way      */
    check_matmul(MICA_BF16, 0, NULL, 70, 300, 130);
    check_matmul(MICA_I32, 6, (int64_t[]){1, 2, 1, 2, 1, 2}, 3, 4, 5);
}

static void check_conv(mica_dtype dtype, mica__attr_conv attr, int64_t batch, int64_t channels, int64_t outs,
                       const int64_t *size, const int64_t *kernel)
{
    const int ndim = (int)attr.spatial + 2;
    int64_t x[4] = {batch, channels}, w[4] = {outs, channels / attr.groups}, y[4] = {batch, outs};
    for (int i = 0; i < attr.spatial; i++) {
        x[i + 2] = size[i];
        w[i + 2] = kernel[i];
        const int64_t room =
            (size[i] ? (size[i] - 1) * attr.input_dilation[i] + 1 : 0) + attr.pad_low[i] + attr.pad_high[i];
        const int64_t span = (kernel[i] - 1) * attr.dilation[i] + 1;
        if (span > room) return; /* no result */
        y[i + 2] = (room - span) / attr.stride[i] + 1;
    }
    test_case(
        "%s %dd, batch %lld, groups %lld, channels %lld to %lld, stride %lld, dilation %lld / %lld, pad %lld %lld",
        mica_dtype_name(dtype), (int)attr.spatial, (long long)batch, (long long)attr.groups, (long long)channels,
        (long long)outs, (long long)attr.stride[0], (long long)attr.dilation[0], (long long)attr.input_dilation[0],
        (long long)attr.pad_low[0], (long long)attr.pad_high[0]);
    util_tensor a = util_new(dtype, ndim, x), b = util_new(dtype, ndim, w);
    const mica__tensor in[2] = {a.t, b.t};
    util_check(MICA__OP_CONV, in, 2, &attr, util_spec(dtype, ndim, y), util_rtol(dtype), 3e-5);
    util_free(&a);
    util_free(&b);
}

TEST(conv_shapes)
{
    for (int i = 0; i < 160; i++) {
        mica__attr_conv attr = {.spatial = 1 + i % 2, .groups = 1 + (i % 5 == 0) + (i % 7 == 0)};
        int64_t size[2], kernel[2];
        for (int d = 0; d < attr.spatial; d++) {
            attr.stride[d] = 1 + util_below(3);
            attr.pad_low[d] = util_below(6) - 2;
            attr.pad_high[d] = util_below(6) - 2;
            attr.dilation[d] = 1 + util_below(3);
            attr.input_dilation[d] = util_below(2) ? 1 : 1 + util_below(3);
            size[d] = 1 + util_below(20);
            kernel[d] = 1 + util_below(4);
        }
        check_conv(i % 4 ? MICA_F32 : util_floats[util_below(4)], attr, util_below(3),
                   attr.groups * (1 + util_below(5)), attr.groups * (1 + util_below(7)), size, kernel);
    }
    const mica__attr_conv plain = {.spatial = 2,
                                   .groups = 1,
                                   .stride = {1, 1},
                                   .pad_low = {1, 1},
                                   .pad_high = {1, 1},
                                   .dilation = {1, 1},
                                   .input_dilation = {1, 1}};
    mica__attr_conv depthwise = plain;
    depthwise.groups = 6;
    check_conv(MICA_F32, plain, 2, 40, 70, (int64_t[]){13, 17}, (int64_t[]){3, 3}); /* several tiles and blocks */
    check_conv(MICA_F32, depthwise, 2, 6, 6, (int64_t[]){5, 300}, (int64_t[]){3, 3});
    check_conv(MICA_F32, plain, 1, 0, 5, (int64_t[]){4, 4}, (int64_t[]){3, 3});
}

static void check_attention(mica_dtype dtype, mica__attr_attention attr, const int64_t s[7], mica_dtype mask_type)
{
    /* B, H, G, T, S, D, E */
    const mica__spec out = util_spec(dtype, 4, (int64_t[]){s[0], s[1], s[3], s[6]});
    test_case("%s B %lld H %lld G %lld T %lld S %lld D %lld E %lld, causal %d, mask %s", mica_dtype_name(dtype),
              (long long)s[0], (long long)s[1], (long long)s[2], (long long)s[3], (long long)s[4], (long long)s[5],
              (long long)s[6], (int)attr.causal, attr.has_mask ? mica_dtype_name(mask_type) : "none");
    util_tensor q = util_new(dtype, 4, (int64_t[]){s[0], s[1], s[3], s[5]}),
                k = util_new(dtype, 4, (int64_t[]){s[0], s[2], s[4], s[5]});
    util_tensor v = util_new(dtype, 4, (int64_t[]){s[0], s[2], s[4], s[6]});
    util_tensor mask = util_new(mask_type, 4, (int64_t[]){s[0], s[1], s[3], s[4]});
    for (int64_t i = 0; mask_type != MICA_BOOL && i < mica__spec_size(&mask.t.spec); i += 3)
        mica__set_f64(mask_type, mask.t.data, util_offset(&mask.t, i), -INFINITY);
    const mica__tensor in[4] = {q.t, k.t, v.t, mask.t};
    util_check(MICA__OP_ATTENTION, in, attr.has_mask ? 4 : 3, &attr, out, 3 * util_rtol(dtype), 5 * util_rtol(dtype));
    util_free(&q);
    util_free(&k);
    util_free(&v);
    util_free(&mask);
}

TEST(attention_shapes)
{
    for (int i = 0; i < 80; i++) {
        const int64_t groups = 1 + util_below(2), s[7] = {1 + util_below(2),
                                                          groups * (1 + util_below(3)),
                                                          groups,
                                                          util_size(),
                                                          util_size(),
                                                          util_size(),
                                                          util_size()};
        const mica_dtype dtype = i % 3 ? MICA_F32 : util_floats[i / 3 % 4];
        const mica__attr_attention attr = {.scale = util_real(0.05, 0.5), .causal = i % 2, .has_mask = i / 2 % 2};
        check_attention(dtype, attr, s, i / 4 % 2 ? MICA_BOOL : dtype);
    }
    const mica__attr_attention causal = {.scale = 0.2, .causal = 1}, masked = {.scale = 0.1, .has_mask = 1},
                               plain = {.scale = 0.1};
    check_attention(MICA_F32, causal, (int64_t[]){1, 2, 1, 40, 10, 8, 8}, MICA_BOOL); /* the first 30 have no keys  */
    check_attention(MICA_F32, masked, (int64_t[]){1, 1, 1, 70, 200, 300, 150},
                    MICA_F32); /* blocks in every direction */
    check_attention(MICA_F32, plain, (int64_t[]){1, 2, 2, 3, 0, 4, 5}, MICA_BOOL);
    check_attention(MICA_F32, plain, (int64_t[]){0, 2, 2, 3, 4, 4, 5}, MICA_BOOL);
    check_attention(MICA_F32, plain, (int64_t[]){1, 2, 2, 3, 4, 0, 5}, MICA_BOOL);
}

/* Masked keys have no effect, whatever they contain; a row without keys is 0. */
TEST(attention_hidden_nan)
{
    const int64_t q_shape[4] = {1, 1, 5, 4}, k_shape[4] = {1, 1, 7, 4}, m_shape[4] = {1, 1, 5, 7};
    util_tensor q = util_tensor_new(util_spec(MICA_F32, 4, q_shape), UTIL_DENSE);
    util_tensor k = util_tensor_new(util_spec(MICA_F32, 4, k_shape), UTIL_DENSE);
    util_tensor v = util_tensor_new(util_spec(MICA_F32, 4, k_shape), UTIL_DENSE);
    util_tensor mask = util_tensor_new(util_spec(MICA_BOOL, 4, m_shape), UTIL_DENSE);
    for (int64_t i = 0; i < 35; i++) mica__set_i64(MICA_BOOL, mask.memory, i, i / 7 < 4 && i % 7 != 2);
    for (int64_t i = 8; i < 12; i++) { /* key 2 */
        mica__set_f64(MICA_F32, k.memory, i, NAN);
        mica__set_f64(MICA_F32, v.memory, i, i % 2 ? NAN : INFINITY);
    }
    const mica__attr_attention attr = {.scale = 0.5, .has_mask = 1};
    const mica__tensor in[4] = {q.t, k.t, v.t, mask.t};
    const mica__spec spec = util_spec(MICA_F32, 4, q_shape);
    util_check(MICA__OP_ATTENTION, in, 4, &attr, spec, 1e-5, 1e-5);
    util_tensor out = util_run(MICA__OP_ATTENTION, 1, in, 4, &attr, spec, MICA_OK);
    for (int64_t i = 0; i < 20; i++) {
        (void)EXPECT(isfinite(util_f64(&out.t, i)));
        if (i >= 16) EXPECT_CLOSE(util_f64(&out.t, i), 0, 0, 0);
    }
    util_free(&out);
    util_free(&q);
    util_free(&k);
    util_free(&v);
    util_free(&mask);
}

static void check_rows(mica__op op, const void *attr, double atol)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 4, 5, 17, 33, 64, 65, 255, 256, 257, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int t = 0; t < 4; t++) {
            const mica_dtype dtype = util_floats[t];
            const int64_t shape[4] = {util_below(4), 1, 3, lengths[i]};
            const int skip = (int)util_below(4);
            test_case("%s rows of %lld, %d axes", mica_dtype_name(dtype), (long long)lengths[i], 4 - skip);
            util_tensor x = util_new(dtype, 4 - skip, shape + skip);
            util_check(op, &x.t, 1, attr, x.t.spec, util_rtol(dtype), atol);
            util_free(&x);
        }
}

TEST(softmax_rows_match) { check_rows(MICA__OP_SOFTMAX, NULL, 1e-7); }
TEST(log_softmax_rows_match) { check_rows(MICA__OP_LOG_SOFTMAX, NULL, 2e-6); }
TEST(layer_norm_rows_match) { check_rows(MICA__OP_LAYER_NORM, &(mica__attr_norm){.eps = 1e-5}, 3e-6); }
TEST(rms_norm_rows_match) { check_rows(MICA__OP_RMS_NORM, &(mica__attr_norm){.eps = 1e-5}, 1e-6); }

/* Rows across memory: the same element of neighbouring rows is contiguous. */
TEST(rows_across_memory)
{
    static const struct {
        mica__op op;
        uint32_t n_in;
        double atol;
    } ops[] = {{MICA__OP_SOFTMAX, 1, 1e-7},  {MICA__OP_LOG_SOFTMAX, 1, 2e-6}, {MICA__OP_LAYER_NORM, 1, 3e-6},
               {MICA__OP_RMS_NORM, 1, 1e-6}, {MICA__OP_LOGSUMEXP, 1, 2e-6},   {MICA__OP_LOGSUMEXP, 2, 2e-6}};
    static const int64_t shapes[][2] = {{40, 130}, {17, 1024}, {70, 3}, {3, 9000}, {2, 17000}};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int t = 0; t < 3; t++) {
                const int64_t rows = shapes[i][0], n = shapes[i][1];
                const mica_dtype dtype = util_floats[t];
                test_case("%s of %s: %lld rows of %lld", mica__op_get((uint16_t)ops[o].op)->name,
                          mica_dtype_name(dtype), (long long)rows, (long long)n);
                util_tensor x = util_tensor_new(util_spec(dtype, 2, (int64_t[]){rows, n}), UTIL_DENSE);
                util_tensor origin = util_new(dtype, 1, &rows);
                x.t.strides[0] = 1;
                x.t.strides[1] = rows;
                const mica__tensor in[2] = {x.t, origin.t};
                const bool folds = ops[o].op == MICA__OP_LOGSUMEXP;
                util_check(ops[o].op, in, ops[o].n_in, &(mica__attr_norm){.eps = 1e-5},
                           folds ? util_spec(dtype, 1, &rows) : x.t.spec, util_rtol(dtype), ops[o].atol);
                util_free(&x);
                util_free(&origin);
            }
}

static double value_large(int64_t i) { return i % 3 ? 1000.0 + (double)(i % 5) : -1000.0; }
static double value_lowest(int64_t i)
{
    return i < 7 ? -INFINITY : i == 9 ? -INFINITY : i == 15 ? NAN : i == 22 ? INFINITY : 1.0;
}
static double value_offset(int64_t i) { return 10000.0 + (double)(i * i % 11) / 16; }
static double value_equal(int64_t i) { return i < 0 ? 0 : 3.7; }

TEST(rows_special)
{
    static double (*const values[])(int64_t) = {value_large, value_lowest, value_offset, value_equal};
    static const mica__op ops[] = {MICA__OP_SOFTMAX, MICA__OP_LOG_SOFTMAX, MICA__OP_LAYER_NORM, MICA__OP_RMS_NORM};
    const mica__attr_norm attr = {0};
    for (int v = 0; v < 4; v++)
        for (int o = 0; o < 4; o++) {
            test_case("values %d, op %d", v, o);
            util_tensor x = util_tensor_new(util_spec(MICA_F32, 2, (int64_t[]){4, 7}), UTIL_DENSE);
            util_set_all(&x, values[v]);
            if (o == 2 && v == 3) { /* 0 / 0, but not the square root of a negative number */
                const mica__attr_norm some = {.eps = 1e-12};
                util_check(ops[o], &x.t, 1, &some, x.t.spec, 1e-5, 1e-5);
            } else util_check(ops[o], &x.t, 1, &attr, x.t.spec, 1e-5, 2e-5);
            util_free(&x);
        }
    /* As torch: a row of -inf only is NaN. */
    util_tensor x = util_tensor_new(util_spec(MICA_F32, 2, (int64_t[]){4, 7}), UTIL_DENSE);
    util_set_all(&x, value_lowest);
    util_tensor out = util_run(MICA__OP_SOFTMAX, 1, &x.t, 1, NULL, x.t.spec, MICA_OK);
    CHECK(isnan(util_f64(&out.t, 0)));
    CHECK_CLOSE(util_f64(&out.t, 7), 1.0 / 6, 1e-6, 0); /* six ones and a -inf */
    CHECK(isnan(util_f64(&out.t, 14)));
    CHECK(isnan(util_f64(&out.t, 22)));
    util_free(&out);
    util_free(&x);
}

/* A table for positions of these axes. Random numbers are enough to compare cpu with ref. */
static util_tensor rope_table(int ndim, const int64_t *positions, int64_t dims)
{
    int64_t shape[MICA_MAX_DIMS] = {0};
    for (int d = 0; d < ndim; d++) shape[d] = positions[d];
    shape[ndim] = dims;
    return util_new(MICA_F64, ndim + 1, shape);
}

TEST(rope_shapes)
{
    for (int i = 0; i < 60; i++) {
        const mica_dtype dtype = util_floats[i % 4];
        const int64_t dims = 2 * util_below(5),
                      shape[4] = {util_below(3), 1 + util_below(3), 1 + util_below(9), dims + util_below(3)};
        const mica__attr_rope attr = {.dims = dims, .interleaved = i / 2 % 2, .inverse = i / 4 % 2};
        const int skip = i % 4;
        test_case("%s dims %lld of %lld, %d axes", mica_dtype_name(dtype), (long long)dims, (long long)shape[3],
                  4 - skip);
        util_tensor x = util_new(dtype, 4 - skip, shape + skip), table = rope_table(3 - skip, shape + skip, dims);
        const mica__tensor in[2] = {x.t, table.t};
        util_check(MICA__OP_ROPE, in, 2, &attr, x.t.spec, 0, 0);
        util_free(&x);
        util_free(&table);
    }
    /* Long contiguous rows, angles shared by an axis of size 1. */
    for (int i = 0; i < 8; i++) {
        const int64_t dims = 30 + 2 * i, shape[3] = {3, 5, dims + i % 3};
        const mica__attr_rope attr = {.dims = dims, .interleaved = i / 4, .inverse = i & 1};
        util_tensor x = util_tensor_new(util_spec(util_floats[i % 4 == 3 ? 1 : 0], 3, shape), UTIL_DENSE);
        const int64_t at[3] = {i % 2 ? 1 : 3, i / 2 % 2 ? 5 : 1, dims};
        util_tensor table = util_tensor_new(util_spec(MICA_F64, 3, at), i < 6 ? UTIL_DENSE : UTIL_ANY);
        test_case("dims %lld, positions (%lld, %lld)", (long long)dims, (long long)at[0], (long long)at[1]);
        const mica__tensor in[2] = {x.t, table.t};
        util_check(MICA__OP_ROPE, in, 2, &attr, x.t.spec, 0, 0);
        util_free(&x);
        util_free(&table);
    }
}

TEST(rope_tables)
{
    for (int i = 0; i < 24; i++) {
        const int64_t dims = 2 * util_below(40), shape[2] = {util_below(4), util_size()};
        const mica__attr_rope_table attr = {dims, 10000, util_real(0.5, 2), i & 1 ? 1 : 1.25};
        static const mica_dtype dtypes[] = {MICA_F32, MICA_I32, MICA_I64, MICA_F16};
        test_case("%s (%lld, %lld), %lld dims", mica_dtype_name(dtypes[i % 4]), (long long)shape[0],
                  (long long)shape[1], (long long)dims);
        util_tensor at = util_new(dtypes[i % 4], 2, shape), factors = util_new(MICA_F32, 1, (int64_t[]){dims / 2});
        const mica__tensor in[2] = {at.t, factors.t};
        const mica__spec out = util_spec(MICA_F64, 3, (int64_t[]){shape[0], shape[1], dims});
        util_check(MICA__OP_ROPE_TABLE, in, i / 2 % 2 ? 2 : 1, &attr, out, 0, 0);
        util_free(&at);
        util_free(&factors);
    }
    /* A quarter turn with magnitude 2: (1, 2) becomes (-4, 2). */
    util_tensor x = util_tensor_new(util_spec(MICA_F64, 1, (int64_t[]){2}), UTIL_DENSE);
    util_tensor at = util_new(MICA_F32, 0, NULL), factor = util_new(MICA_F32, 1, (int64_t[]){1});
    mica__set_f64(MICA_F64, x.memory, 0, 1);
    mica__set_f64(MICA_F64, x.memory, 1, 2);
    mica__set_f64(MICA_F32, at.memory, 0, 3);
    mica__set_f64(MICA_F32, factor.memory, 0, 3);
    const mica__attr_rope_table turns = {.dims = 2, .base = 10000, .scale = acos(0), .magnitude = 2};
    const mica__attr_rope turn = {.dims = 2};
    util_tensor table =
        util_run(MICA__OP_ROPE_TABLE, 0, (mica__tensor[]){at.t, factor.t}, 2, &turns, x.t.spec, MICA_OK);
    util_tensor out = util_run(MICA__OP_ROPE, 0, (mica__tensor[]){x.t, table.t}, 2, &turn, x.t.spec, MICA_OK);
    CHECK_CLOSE(util_f64(&out.t, 0), -4, 1e-15, 1e-15);
    CHECK_CLOSE(util_f64(&out.t, 1), 2, 1e-15, 1e-15);
    util_free(&out);
    util_free(&table);
    util_free(&x);
    util_free(&at);
    util_free(&factor);
}
