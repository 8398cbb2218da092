/* Families that move, sort and accumulate. They are exact for every dtype, so cpu and ref must
 * agree to the bit with each other and with the loops in this file.
 *
 * runs: arm */
#include <stdio.h>

#include "kernels_util.h"

static const mica_dtype all_dtypes[] = {MICA_BOOL, MICA_U8,  MICA_I8,  MICA_U16,  MICA_I16, MICA_U32, MICA_I32,
                                        MICA_U64,  MICA_I64, MICA_F16, MICA_BF16, MICA_F32, MICA_F64};
enum { N_DTYPES = sizeof all_dtypes / sizeof *all_dtypes };

/* Random bits, including NaN with payloads, infinities and -0. */
static util_tensor bits_new(mica_dtype dtype, int ndim, const int64_t *shape)
{
    util_tensor u = util_new(dtype, ndim, shape);
    for (size_t i = 0; dtype != MICA_BOOL && i < u.nbytes; i++)
        u.memory[i] = (char)(util_below(4) ? util_random() : util_below(2) ? 0xff : 0);
    return u;
}

/* Checks that ref and cpu, with any number of threads, give the same bytes. */
static util_tensor check_bits(mica__op op, const mica__tensor *in, uint32_t n_in, const void *attr, mica__spec spec)
{
    static const int threads[] = {1, 2, 3, 8};
    util_tensor want = util_run(op, 0, in, n_in, attr, spec, MICA_OK);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        util_tensor got = util_run(op, threads[t], in, n_in, attr, spec, MICA_OK);
        (void)EXPECT_MSG(got.nbytes == 0 || memcmp(got.memory, want.memory, got.nbytes) == 0,
                         "cpu with %d threads differs", threads[t]);
        util_free(&got);
    }
    return want;
}

static int random_shape(int most, int64_t *shape)
{
    const int ndim = (int)util_below(most + 1);
    for (int d = 0; d < ndim; d++) shape[d] = util_below(12) == 0 ? 0 : 1 + util_below(5);
    return ndim;
}

TEST(pad_moves_bytes)
{
    for (int i = 0; i < 300; i++) {
        const mica_dtype dtype = all_dtypes[i % N_DTYPES];
        int64_t shape[MICA_MAX_DIMS];
        const int ndim = random_shape(i % 10 == 0 ? 8 : 4, shape);
        mica__attr_pad attr = {.value = {.f = -1.5, .i = 7}};
        mica__spec out = util_spec(dtype, ndim, shape);
        for (int d = 0; d < ndim; d++) {
            attr.interior[d] = util_below(3) ? 0 : util_below(3);
            attr.low[d] = util_below(5) - 2;
            attr.high[d] = util_below(5) - 2;
            const int64_t room = shape[d] + (shape[d] ? shape[d] - 1 : 0) * attr.interior[d];
            if (room + attr.low[d] + attr.high[d] < 0) attr.high[d] = -room - attr.low[d];
            out.shape[d] = room + attr.low[d] + attr.high[d];
        }
        test_case("%d %s, %d axes", i, mica_dtype_name(dtype), ndim);
        util_tensor x = bits_new(dtype, ndim, shape), y = check_bits(MICA__OP_PAD, &x.t, 1, &attr, out);
        util_free(&x);
        util_free(&y);
    }
}

TEST(pad_known)
{
    static const int64_t data[] = {INT64_MIN, INT64_MAX};
    static const int64_t want[] = {-7, INT64_MIN, -7, INT64_MAX, -7, -7};
    const mica__tensor x = {(char *)(uintptr_t)data, util_spec(MICA_I64, 1, (int64_t[]){2}), {1}};
    const mica__attr_pad attr = {.low = {1}, .high = {2}, .interior = {1}, .value = {.i = -7}};
    util_tensor y = check_bits(MICA__OP_PAD, &x, 1, &attr, util_spec(MICA_I64, 1, (int64_t[]){6}));
    (void)EXPECT(memcmp(y.memory, want, sizeof want) == 0);
    util_free(&y);
}

TEST(concat_moves_bytes)
{
    for (int i = 0; i < 200; i++) {
        const mica_dtype dtype = all_dtypes[i % N_DTYPES];
        int64_t shape[MICA_MAX_DIMS];
        int ndim = random_shape(i % 10 == 0 ? 8 : 4, shape);
        if (ndim == 0) shape[ndim++] = 3;
        const mica__attr_axis attr = {util_below(ndim)};
        mica__spec out = util_spec(dtype, ndim, shape);
        out.shape[attr.axis] = 0;
        util_tensor x[5];
        mica__tensor in[5];
        const uint32_t n = 1 + (uint32_t)util_below(5);
        for (uint32_t p = 0; p < n; p++) {
            shape[attr.axis] = util_below(5);
            out.shape[attr.axis] += shape[attr.axis];
            x[p] = bits_new(dtype, ndim, shape);
            in[p] = x[p].t;
        }
        test_case("%d %s, %u parts along %d of %d", i, mica_dtype_name(dtype), n, (int)attr.axis, ndim);
        util_tensor y = check_bits(MICA__OP_CONCAT, in, n, &attr, out);
        for (uint32_t p = 0; p < n; p++) util_free(&x[p]);
        util_free(&y);
    }
}

TEST(unwindow_sums)
{
    for (int i = 0; i < 150; i++) {
        const mica_dtype dtype = all_dtypes[i % N_DTYPES];
        int64_t shape[MICA_MAX_DIMS];
        int ndim = random_shape(3, shape);
        if (ndim == 0) shape[ndim++] = 3;
        mica__attr_window attr = {.axis = util_below(ndim),
                                  .size = 1 + util_below(4),
                                  .stride = 1 + util_below(3),
                                  .dilation = 1 + util_below(3)};
        attr.full = (attr.size - 1) * attr.dilation + 1 + util_below(8);
        mica__spec out = util_spec(dtype, ndim, shape);
        out.shape[attr.axis] = attr.full;
        shape[attr.axis] = (attr.full - (attr.size - 1) * attr.dilation - 1) / attr.stride + 1;
        shape[ndim++] = attr.size;
        test_case("%d %s size %lld stride %lld dilation %lld of %lld", i, mica_dtype_name(dtype), (long long)attr.size,
                  (long long)attr.stride, (long long)attr.dilation, (long long)attr.full);
        util_tensor x = util_new(dtype, ndim, shape);
        util_tensor y = check_bits(MICA__OP_UNWINDOW, &x.t, 1, &attr, out);
        /* The sum of all elements does not change. */
        double in_sum = 0, out_sum = 0;
        for (int64_t e = 0; e < mica__spec_size(&x.t.spec); e++) in_sum += util_f64(&x.t, e);
        for (int64_t e = 0; e < mica__spec_size(&out); e++) out_sum += util_f64(&y.t, e);
        if (dtype >= MICA_F32) EXPECT_CLOSE(out_sum, in_sum, 1e-5, 1e-4);
        util_free(&x);
        util_free(&y);
    }
}

static util_tensor index_new(int64_t n)
{
    int64_t shape[3];
    const int ndim = random_shape(2, shape);
    util_tensor u = util_new(MICA_I64, ndim, shape);
    for (size_t i = 0; i < u.nbytes / 8; i++) mica__set_i64(MICA_I64, u.memory, (int64_t)i, util_below(2 * n) - n);
    return u;
}

TEST(take_and_scatter)
{
    for (int i = 0; i < 300; i++) {
        const mica_dtype dtype = all_dtypes[i % N_DTYPES];
        int64_t shape[MICA_MAX_DIMS];
        int ndim = random_shape(i % 10 == 0 ? 6 : 3, shape);
        if (ndim == 0) shape[ndim++] = 3;
        const int64_t axis = util_below(ndim);
        if (shape[axis] == 0) shape[axis] = 2;
        if (i % 7 == 0 && ndim < 4) shape[ndim - 1] = 300; /* several pieces */
        util_tensor x = bits_new(dtype, ndim, shape), at = index_new(shape[axis]);
        mica__spec taken = {.dtype = (int32_t)dtype};
        for (int d = 0; d < axis; d++) taken.shape[taken.ndim++] = shape[d];
        for (int d = 0; d < at.t.spec.ndim; d++) taken.shape[taken.ndim++] = at.t.spec.shape[d];
        for (int64_t d = axis + 1; d < ndim; d++) taken.shape[taken.ndim++] = shape[d];
        util_tensor updates = i % 2 ? util_tensor_new(taken, UTIL_ANY) : util_tensor_new(taken, UTIL_DENSE);
        test_case("%d %s axis %d of %d, indices with %d axes", i, mica_dtype_name(dtype), (int)axis, ndim,
                  at.t.spec.ndim);
        const mica__tensor in[3] = {x.t, at.t, updates.t};
        util_tensor y = check_bits(MICA__OP_TAKE, in, 2, &(mica__attr_take){.axis = axis}, taken);
        util_tensor z = check_bits(MICA__OP_SCATTER, in, 3, &(mica__attr_scatter){.axis = axis}, x.t.spec);
        /* Without NaN: a sum of two NaN may keep either payload. */
        util_tensor plain = util_new(dtype, ndim, shape);
        const mica__tensor add[3] = {plain.t, at.t, updates.t};
        util_tensor w = check_bits(MICA__OP_SCATTER, add, 3, &(mica__attr_scatter){.axis = axis, .add = 1}, x.t.spec);
        util_free(&w);
        util_free(&plain);
        util_free(&z);
        util_free(&y);
        util_free(&updates);
        util_free(&at);
        util_free(&x);
    }
}

/* Many indices into rows of any length, as for embeddings. */
TEST(take_many_rows)
{
    static const int64_t widths[] = {1, 2, 3, 5, 17, 64};
    const int64_t count = 300, rows = 90;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int t = 0; t < N_DTYPES; t++) {
            test_case("%s rows of %lld", mica_dtype_name(all_dtypes[t]), (long long)widths[w]);
            util_tensor x = bits_new(all_dtypes[t], 2, (int64_t[]){rows, widths[w]});
            util_tensor at = util_tensor_new(util_spec(MICA_I64, 1, &count), UTIL_DENSE);
            for (int64_t i = 0; i < count; i++) mica__set_i64(MICA_I64, at.memory, i, util_below(2 * rows) - rows);
            const mica__tensor in[2] = {x.t, at.t};
            util_tensor y = check_bits(MICA__OP_TAKE, in, 2, &(mica__attr_take){.axis = 0},
                                       util_spec(all_dtypes[t], 2, (int64_t[]){count, widths[w]}));
            util_free(&y);
            util_free(&at);
            util_free(&x);
        }
}

TEST(scatter_order)
{
    /* without add the last update counts; adds round one by one: 2^24 + 1 + 1 is 2^24 */
    static const float base[] = {16777216, 0}, updates[] = {1, 1, 5};
    static const int64_t at[] = {0, -2, 1};
    const mica__tensor in[3] = {{(char *)(uintptr_t)base, util_spec(MICA_F32, 1, (int64_t[]){2}), {1}},
                                {(char *)(uintptr_t)at, util_spec(MICA_I64, 1, (int64_t[]){3}), {1}},
                                {(char *)(uintptr_t)updates, util_spec(MICA_F32, 1, (int64_t[]){3}), {1}}};
    util_tensor add = check_bits(MICA__OP_SCATTER, in, 3, &(mica__attr_scatter){.add = 1}, in[0].spec);
    util_tensor set = check_bits(MICA__OP_SCATTER, in, 3, &(mica__attr_scatter){.axis = 0}, in[0].spec);
    EXPECT_CLOSE(util_f64(&add.t, 0), 16777216, 0, 0);
    EXPECT_CLOSE(util_f64(&add.t, 1), 5, 0, 0);
    EXPECT_CLOSE(util_f64(&set.t, 0), 1, 0, 0);
    util_free(&add);
    util_free(&set);
}

TEST(index_out_of_range)
{
    enum { COUNT = 100000 }; /* enough for many tasks */
    util_tensor x = util_new(MICA_F32, 2, (int64_t[]){5, 2}), updates = util_new(MICA_F32, 2, (int64_t[]){COUNT, 2});
    util_tensor at = util_tensor_new(util_spec(MICA_I64, 1, (int64_t[]){COUNT}), UTIL_DENSE);
    const mica__tensor in[3] = {x.t, at.t, updates.t};
    for (int threads = 0; threads <= 8; threads += 4)
        for (int bad = 0; bad < 4; bad++) {
            static const int64_t values[] = {5, -6, INT64_MIN, INT64_MAX};
            test_case("%lld with %d threads", (long long)values[bad], threads);
            for (int64_t i = 0; i < COUNT; i++) mica__set_i64(MICA_I64, at.memory, i, i % 10 - 5);
            for (int64_t i = 3 * COUNT / 4; i < COUNT; i++) mica__set_i64(MICA_I64, at.memory, i, values[bad]);
            mica__set_i64(MICA_I64, at.memory, 777, values[bad]);
            char want[200];
            snprintf(want, sizeof want, "take: index %lld at position 777 is outside -5 ... 4", (long long)values[bad]);
            util_tensor y =
                util_run(MICA__OP_TAKE, threads, in, 2, &(mica__attr_take){.axis = 0}, updates.t.spec, MICA_ERR_INDEX);
            EXPECT_STR(mica_last_error(), want);
            util_tensor z =
                util_run(MICA__OP_SCATTER, threads, in, 3, &(mica__attr_scatter){.axis = 0}, x.t.spec, MICA_ERR_INDEX);
            snprintf(want, sizeof want, "scatter: index %lld at position 777 is outside -5 ... 4",
                     (long long)values[bad]);
            EXPECT_STR(mica_last_error(), want);
            util_free(&y);
            util_free(&z);
        }
    test_case("an axis of 0");
    const mica__tensor empty[2] = {{NULL, util_spec(MICA_F32, 1, (int64_t[]){0}), {1}}, at.t};
    util_tensor y = util_run(MICA__OP_TAKE, 1, empty, 2, &(mica__attr_take){.axis = 0},
                             util_spec(MICA_F32, 1, (int64_t[]){COUNT}), MICA_ERR_INDEX);
    util_free(&y);
    util_free(&at);
    util_free(&updates);
    util_free(&x);
}

/* Returns whether a is sorted before b: by value, NaN last. */
static bool before(mica_dtype dtype, const mica__tensor *x, int64_t a, int64_t b)
{
    if (mica__is_float(dtype)) {
        const double v = mica__get_f64(dtype, x->data, a), w = mica__get_f64(dtype, x->data, b);
        return isnan(w) ? !isnan(v) : v < w;
    }
    const int64_t v = mica__get_i64(dtype, x->data, a), w = mica__get_i64(dtype, x->data, b);
    return dtype == MICA_U64 ? (uint64_t)v < (uint64_t)w : v < w;
}

static void check_sorted(mica_dtype dtype, int64_t rows, int64_t n, int64_t k, bool descending)
{
    test_case("%s %lld rows of %lld, first %lld, %s", mica_dtype_name(dtype), (long long)rows, (long long)n,
              (long long)k, descending ? "descending" : "ascending");
    util_tensor x = bits_new(dtype, 2, (int64_t[]){rows, n});
    if (util_below(2)) /* few values, many equals */
        for (size_t i = 0; i < x.nbytes / mica_dtype_size(dtype); i++)
            mica__set_i64(dtype, x.memory, (int64_t)i, util_below(4) - 1);
    const mica__attr_sort attr = {.descending = descending, .k = k};
    const mica__spec spec = util_spec(MICA_I64, 2, (int64_t[]){rows, k});
    util_tensor y = check_bits(MICA__OP_ARGSORT, &x.t, 1, &attr, spec);
    util_tensor z = check_bits(MICA__OP_SORT, &x.t, 1, &attr, x.t.spec);
    const int64_t step = x.t.strides[1];
    const size_t size = mica_dtype_size(dtype);
    for (int64_t row = 0; row < rows; row++) {
        const mica__tensor line = {mica__element(&x.t, row * x.t.strides[0]), x.t.spec, {0}};
        bool used[2048] = {false};
        for (int64_t i = 0; i < k; i++) {
            const int64_t at = mica__get_i64(MICA_I64, y.memory, row * k + i);
            CHECK_MSG(at >= 0 && at < n && !used[at], "row %lld, place %lld: index %lld", (long long)row, (long long)i,
                      (long long)at);
            used[at] = true;
            CHECK(memcmp(z.memory + (row * n + i) * (int64_t)size, line.data + at * step * (int64_t)size, size) == 0);
            if (i == 0) continue;
            const int64_t last = mica__get_i64(MICA_I64, y.memory, row * k + i - 1);
            const bool less = before(dtype, &line, last * step, at * step),
                       more = before(dtype, &line, at * step, last * step);
            CHECK_MSG(descending ? more || (!less && last < at) : less || (!more && last < at),
                      "row %lld, places %lld and before", (long long)row, (long long)i);
        }
        for (int64_t i = 0; i < n && k > 0; i++) { /* no omitted element may sort before the last one */
            const int64_t last = mica__get_i64(MICA_I64, y.memory, row * k + k - 1);
            if (!used[i])
                CHECK(!(descending ? before(dtype, &line, last * step, i * step)
                                   : before(dtype, &line, i * step, last * step)));
        }
    }
    util_free(&x);
    util_free(&y);
    util_free(&z);
}

TEST(sort_and_argsort)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 5, 16, 17, 33, 64, 65, 257, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int t = 0; t < N_DTYPES; t++) {
            const int64_t n = lengths[i], k = t % 3 == 0 ? n : t % 3 == 1 ? mica__min_i64(n, 5) : util_below(n + 1);
            check_sorted(all_dtypes[t], 1 + util_below(n > 100 ? 3 : 20), n, k, t % 2);
        }
    check_sorted(MICA_F32, 40, 130, 32, true);
    check_sorted(MICA_F32, 0, 3, 3, false);
}

TEST(argmax_and_argmin)
{
    for (int i = 0; i < 260; i++) {
        const mica_dtype dtype = all_dtypes[i % N_DTYPES];
        const int64_t rows = util_below(6), n = util_size();
        test_case("%d %s rows of %lld", i, mica_dtype_name(dtype), (long long)n);
        util_tensor x = i % 2 ? bits_new(dtype, 2, (int64_t[]){rows, n}) : util_new(dtype, 2, (int64_t[]){rows, n});
        util_tensor high = check_bits(MICA__OP_ARGMAX, &x.t, 1, NULL, util_spec(MICA_I64, 1, &rows));
        util_tensor low = check_bits(MICA__OP_ARGMIN, &x.t, 1, NULL, util_spec(MICA_I64, 1, &rows));
        for (int64_t row = 0; row < rows; row++) {
            int64_t best[2] = {0, 0};
            const mica__tensor line = {mica__element(&x.t, row * x.t.strides[0]), x.t.spec, {0}};
            const int64_t step = x.t.strides[1];
            for (int64_t j = 1; j < n; j++) {
                const bool nan = mica__is_float(dtype) && isnan(mica__get_f64(dtype, line.data, j * step));
                const bool have = mica__is_float(dtype) && isnan(mica__get_f64(dtype, line.data, best[1] * step));
                if (before(dtype, &line, best[0] * step, j * step)) best[0] = j;
                if (nan ? !have : !have && before(dtype, &line, j * step, best[1] * step)) best[1] = j;
            }
            CHECK_INT(mica__get_i64(MICA_I64, high.memory, row), best[0]);
            CHECK_INT(mica__get_i64(MICA_I64, low.memory, row), best[1]);
        }
        util_free(&x);
        util_free(&high);
        util_free(&low);
    }
}

/* Rows of several chunks: the first of equal elements, or the first NaN, at any position. */
TEST(argmax_of_long_rows)
{
    static const int64_t places[] = {0, 1, 2047, 2048, 2049, 4096, 6143, 6144, 6499};
    enum { N = 6500, PLACES = sizeof places / sizeof *places };
    const int64_t shape[2] = {1, N}, one = 1;
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < PLACES; i++) {
            test_case("kind %d at %lld", kind, (long long)places[i]);
            util_tensor x = util_tensor_new(util_spec(MICA_F32, 2, shape), UTIL_DENSE);
            float *f = (float *)(void *)x.memory;
            for (int64_t j = 0; j < N; j++) f[j] = kind == 3 ? -INFINITY : -0.0f;
            f[places[i]] = kind == 0 ? 3.0f : kind == 1 ? NAN : kind == 2 ? -3.0f : -INFINITY;
            f[N - 1] = kind == 3 ? f[N - 1] : f[places[i]]; /* the same once more */
            util_tensor high = check_bits(MICA__OP_ARGMAX, &x.t, 1, NULL, util_spec(MICA_I64, 1, &one));
            util_tensor low = check_bits(MICA__OP_ARGMIN, &x.t, 1, NULL, util_spec(MICA_I64, 1, &one));
            const int64_t other = places[i] == 0 ? 1 : 0; /* where the rest begins */
            CHECK_INT(mica__get_i64(MICA_I64, high.memory, 0), kind < 2 ? places[i] : kind == 2 ? other : 0);
            CHECK_INT(mica__get_i64(MICA_I64, low.memory, 0), kind == 1 || kind == 2 ? places[i]
                                                              : kind == 0            ? other
                                                                                     : 0);
            util_free(&x);
            util_free(&high);
            util_free(&low);
        }
}

/* Sums of integers over rows longer than one load, forwards and backwards. */
TEST(cumulative_long_rows)
{
    enum { N = 1000 };
    const int64_t shape[2] = {2, N};
    for (int reverse = 0; reverse < 2; reverse++)
        for (int t = 0; t < 2; t++) {
            const mica_dtype dtype = t ? MICA_I32 : MICA_F32, wide = t ? MICA_I64 : MICA_F32;
            test_case("%s, reverse %d", mica_dtype_name(dtype), reverse);
            util_tensor x = util_tensor_new(util_spec(dtype, 2, shape), UTIL_DENSE);
            for (int64_t j = 0; j < 2 * N; j++)
                if (t) mica__set_i64(dtype, x.memory, j, j % N);
                else mica__set_f64(dtype, x.memory, j, (double)(j % N));
            util_tensor y = check_bits(MICA__OP_CUMSUM, &x.t, 1, &(mica__attr_cumulative){.reverse = reverse},
                                       util_spec(wide, 2, shape));
            for (int64_t j = 0; j < 2 * N; j++) {
                const int64_t at = j % N, below = at * (at + 1) / 2, all = N * (N - 1) / 2;
                CHECK_INT(mica__get_i64(wide, y.memory, j), reverse ? all - below + at : below);
            }
            util_free(&x);
            util_free(&y);
        }
}

TEST(cumulative_rows_match)
{
    static const mica__op ops[] = {MICA__OP_CUMSUM, MICA__OP_CUMPROD, MICA__OP_CUMMAX};
    for (int i = 0; i < 240; i++) {
        const mica_dtype dtype = all_dtypes[i % N_DTYPES];
        const mica__op op = ops[i % 3];
        const mica__attr_cumulative attr = {.reverse = i / 3 % 2, .exclusive = i / 6 % 2};
        const int64_t shape[2] = {util_below(4), util_below(10) ? util_size() : 0}, n = shape[1];
        const mica_dtype wide = op == MICA__OP_CUMMAX || mica__is_float(dtype) ? dtype
                                : mica__dtype_kind(dtype) == MICA__KIND_UINT   ? MICA_U64
                                                                               : MICA_I64;
        test_case("%d %s op %d, reverse %d, exclusive %d", i, mica_dtype_name(dtype), i % 3, (int)attr.reverse,
                  (int)attr.exclusive);
        util_tensor x = util_new(dtype, 2, shape), y = check_bits(op, &x.t, 1, &attr, util_spec(wide, 2, shape));
        for (int64_t e = 0; e < shape[0] * n; e++) {
            const int64_t at = e % n, row = e - at;
            double f = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : -INFINITY;
            uint64_t u = i % 3 == 1;
            bool any = false;
            for (int64_t s = 0; s < n; s++) {
                const int64_t j = attr.reverse ? n - 1 - s : s; /* in the order of the definition */
                if (attr.reverse ? j < at : j > at) break;
                if (attr.exclusive && j == at) break;
                const double v = util_f64(&x.t, row + j);
                const uint64_t w = (uint64_t)mica__get_i64(dtype, x.t.data, util_offset(&x.t, row + j));
                f = i % 3 == 0 ? f + v : i % 3 == 1 ? f * v : fmax(f, v);
                const bool larger = !any || (dtype == MICA_U64 ? w > u : (int64_t)w > (int64_t)u);
                u = i % 3 == 0 ? u + w : i % 3 == 1 ? u * w : larger ? w : u;
                any = true;
            }
            if (mica__is_float(dtype)) EXPECT_CLOSE(util_f64(&y.t, e), mica__round_f64(dtype, f), 0, 0);
            else if (any || i % 3 < 2) EXPECT_INT(mica__get_i64(wide, y.memory, e), mica__wrap_i64(wide, (int64_t)u));
        }
        util_free(&x);
        util_free(&y);
    }
}

/* Conversions of whole rows equal those of single values. */
TEST(rows_of_halves)
{
    static uint16_t bits[65536], back[65536];
    static float got[65536];
    for (uint32_t i = 0; i < 65536; i++) bits[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        const mica_dtype dtype = t ? MICA_BF16 : MICA_F16;
        test_case("%s", mica_dtype_name(dtype));
        mica__load_f32(dtype, 65536, got, (const char *)bits, 1);
        mica__store_f32(dtype, 65536, (char *)back, 1, got);
        for (uint32_t i = 0; i < 65536; i++) {
            const float want = t ? mica_bf16_to_f32(bits[i]) : mica_f16_to_f32(bits[i]);
            CHECK_MSG(memcmp(&want, &got[i], sizeof want) == 0, "%04x: %g, not %g", i, (double)got[i], (double)want);
            CHECK_INT(back[i], t ? mica_bf16_from_f32(want) : mica_f16_from_f32(want));
        }
    }
}
