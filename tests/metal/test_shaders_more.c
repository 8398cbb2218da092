/* The hand-written kernels on softmetal against ref: moves, indexing, sorting, random numbers,
 * rotations, convolutions.
 *
 * A kernel is compiled for each combination of types and flags, which takes most of the time. So
 * one type is tested in all combinations, and the other types in turn.
 *
 * runs: first */
#include "shader_run.h"

#include "kernels/common/gpu_view.h"
#include "kernels/conv/conv.h"

static const mica_dtype all_types[] = {MICA_BOOL, MICA_U8,  MICA_I8,  MICA_U16,  MICA_I16, MICA_U32, MICA_I32,
                                       MICA_U64,  MICA_I64, MICA_F16, MICA_BF16, MICA_F32, MICA_F64};

/* ----------------------------------------------------------------- moves --- */

TEST(moves)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < COUNT(all_types); t++) {
        const mica_dtype dtype = all_types[t];
        test_case("%s", mica_dtype_name(dtype));
        util_tensor x = util_new(dtype, 2, (int64_t[]){3, 5}),
                    two[2] = {util_new(dtype, 2, (int64_t[]){3, 5}), util_new(dtype, 2, (int64_t[]){2, 5})};
        const mica__attr_pad pad = {.low = {1, -1}, .high = {2, 3}, .interior = {1, 0}, .value = {1.5, 1}};
        const mica__attr_axis axis = {0};
        shader_check(MICA__OP_PAD, &x, 1, &pad, util_spec(dtype, 2, (int64_t[]){1 + 5 + 2, 5 - 1 + 3}), 0, 0);
        shader_check(MICA__OP_CONCAT, two, 2, &axis, util_spec(dtype, 2, (int64_t[]){5, 5}), 0, 0);
        free_all(two, 2);
        util_free(&x);
        if (dtype == MICA_F64) continue;
        const mica__attr_window w = {.axis = 1, .size = 3, .stride = 2, .dilation = 1, .full = 8};
        x = util_new(dtype, 4, (int64_t[]){2, 3, 4, 3});
        shader_check(MICA__OP_UNWINDOW, &x, 1, &w, util_spec(dtype, 3, (int64_t[]){2, 8, 4}), 1e-7, 1e-7);
        util_free(&x);
    }
}

TEST(take_and_scatter)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < COUNT(all_types); t++)
        for (int64_t axis = 0; axis < 2; axis++)
            for (int add = 0; add < 2; add++) {
                const mica_dtype dtype = all_types[t];
                const int64_t n = axis ? 4 : 7, count = 6, shape[] = {axis ? 7 : count, axis ? count : 4};
                if ((add && dtype == MICA_F64) || (dtype != MICA_F32 && add != t % 2)) continue;
                test_case("%s, axis %d, add %d", mica_dtype_name(dtype), (int)axis, add);
                util_tensor in[3] = {util_new(dtype, 2, (int64_t[]){7, 4}), util_new(MICA_I64, 1, &count),
                                     util_new(dtype, 2, shape)};
                for (int64_t k = 0; k < count; k++)
                    mica__set_i64(MICA_I64, in[1].t.data, util_offset(&in[1].t, k), util_below(2 * n) - n);
                const mica__attr_take take = {.axis = axis};
                const mica__attr_scatter scatter = {.axis = axis, .add = add};
                if (!add) shader_check(MICA__OP_TAKE, in, 2, &take, util_spec(dtype, 2, shape), 0, 0);
                shader_check(MICA__OP_SCATTER, in, 3, &scatter, in[0].t.spec, 0, 0);
                free_all(in, 3);
            }
}

TEST(an_index_outside)
{
    NEED_SOFTMETAL();
    const int64_t count = 70;
    util_tensor in[2] = {util_new(MICA_F32, 1, (int64_t[]){5}),
                         util_tensor_new(util_spec(MICA_I64, 1, &count), UTIL_DENSE)};
    util_tensor out = util_tensor_new(util_spec(MICA_F32, 1, &count), UTIL_DENSE);
    for (int64_t i = 0; i < count; i++) mica__set_i64(MICA_I64, in[1].t.data, i, i == 66 ? 5 : i == 35 ? -6 : 4);
    const mica__attr_take attr = {.axis = 0};
    shader_launch l = {.op = MICA__OP_TAKE, .in = in, .n_in = 2, .out = &out, .attr = &attr};
    const char *why = NULL;
    (void)EXPECT(shader_run(&l, &why));
    (void)EXPECT(mica__gpu_fault_status(l.op, &l.fault) == MICA_ERR_INDEX);
    (void)EXPECT_STR(mica_last_error(), "take: index -6 at position 35 is outside -5 ... 4");
    free_all(in, 2);
    util_free(&out);
}

/* The state is both an operand and the result. */
TEST(update)
{
    NEED_SOFTMETAL();
    for (int from = 0; from < COUNT(all_types); from++)
        for (int to = 0; to < COUNT(all_types); to++) {
            if (from != to && (all_types[from] == MICA_F64 || all_types[to] == MICA_F64)) continue;
            if (from != to && (from + 3 * to) % 5) continue; /* a few pairs only: each is a kernel */
            const int64_t shape[] = {2, 6, 3}, part[] = {2, 2, 3};
            const mica__attr_axis attr = {1};
            test_case("%s to %s", mica_dtype_name(all_types[from]), mica_dtype_name(all_types[to]));
            util_tensor state = util_tensor_new(util_spec(all_types[to], 3, shape), UTIL_DENSE),
                        copy = util_tensor_new(util_spec(all_types[to], 3, shape), UTIL_DENSE);
            memcpy(copy.memory, state.memory, state.nbytes);
            util_tensor in[3] = {state, util_new(all_types[from], 3, part), integer(MICA_I32, 3)};
            if (mica__is_float(all_types[from]))
                mica__set_f64(all_types[from], in[1].t.data, util_offset(&in[1].t, 4), from % 2 ? NAN : -1e9);
            const mica__tensor tensors[3] = {copy.t, in[1].t, in[2].t};
            const mica__launch ref = {.in = tensors, .n_in = 3, .out = &copy.t, .attr = &attr};
            (void)EXPECT(mica__family_get(MICA__OP_UPDATE)->ref(&ref) == MICA_OK);
            shader_launch l = {.op = MICA__OP_UPDATE, .in = in, .n_in = 3, .out = &state, .attr = &attr};
            const char *why = NULL;
            (void)EXPECT_MSG(shader_run(&l, &why), "%s", why ? why : "");
            (void)EXPECT_INT(l.fault.set, 0);
            bool same = true;
            for (int64_t i = 0; i < 36; i++) {
                const double a = util_f64(&state.t, i), b = util_f64(&copy.t, i);
                same = same && (a == b || (a != a && b != b));
            }
            (void)EXPECT(same);
            mica__set_i64(MICA_I32, in[2].t.data, 0, 5);
            (void)EXPECT(shader_run(&l, &why));
            (void)EXPECT(mica__gpu_fault_status(l.op, &l.fault) == MICA_ERR_INDEX);
            (void)EXPECT_STR(mica_last_error(), "update: positions 5 to 6 of an axis of 6 of the state");
            free_all(in, 3);
            util_free(&copy);
        }
}

/* ---------------------------------------------------------------- orders --- */

TEST(argmax_and_argmin)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < COUNT(all_types); t++)
        for (int o = 0; o < 2; o++)
            for (int big = 0; big < 2; big++) {
                const int64_t shape[] = {5, big ? 400 : 9};
                test_case("%s %d %d", mica_dtype_name(all_types[t]), o, big);
                util_tensor x = util_new(all_types[t], 2, shape);
                if (mica__is_float(all_types[t]) && o) mica__set_f64(all_types[t], x.t.data, util_offset(&x.t, 5), NAN);
                shader_check(o ? MICA__OP_ARGMAX : MICA__OP_ARGMIN, &x, 1, NULL, util_spec(MICA_I64, 1, shape), 0, 0);
                util_free(&x);
            }
}

TEST(cumulative)
{
    NEED_SOFTMETAL();
    static const mica__op ops[] = {MICA__OP_CUMSUM, MICA__OP_CUMPROD, MICA__OP_CUMMAX};
    static const int64_t sizes[] = {1, 20, 300};
    for (int t = 0; t < COUNT(all_types) - 1; t++)
        for (int o = 0; o < 3; o++)
            for (int i = 0; i < 3; i++) {
                if (all_types[t] != MICA_F32 && i != (t + o) % 3) continue;
                const int64_t shape[] = {3, sizes[(i + t) % 3]};
                const mica__attr_cumulative attr = {.reverse = (i + o) % 2, .exclusive = i % 2};
                const mica_dtype dtype = all_types[t], result = o == 2 || mica__is_float(dtype)              ? dtype
                                                                : mica__dtype_kind(dtype) == MICA__KIND_UINT ? MICA_U64
                                                                                                             : MICA_I64;
                test_case("%s %d %d", mica_dtype_name(dtype), o, i);
                util_tensor x = util_new(dtype, 2, shape);
                if (mica__is_float(dtype)) mica__set_f64(dtype, x.t.data, util_offset(&x.t, 0), -0.0);
                shader_check(ops[o], &x, 1, &attr, util_spec(result, 2, shape), o == 2 ? 0 : util_rtol(dtype),
                             o == 2 ? 0 : 1e-6);
                util_free(&x);
            }
}

TEST(cumulative_in_every_shape)
{
    NEED_SOFTMETAL();
    mica__gpu_limits tuned = shader_device;
    shader_gpu = &tuned;
    for (uint32_t i = 0; i < mica__gpu_knob_get(MICA__KNOB_CUMULATIVE).n; i++) {
        const mica__attr_cumulative attr = {.exclusive = 1};
        const int64_t shape[] = {2, 300};
        tuned.tuning.candidate[MICA__KNOB_CUMULATIVE] = (uint8_t)(i + 1);
        test_case("%s", mica__gpu_knob_get(MICA__KNOB_CUMULATIVE).shape[i].name);
        util_tensor x = util_new(MICA_F32, 2, shape);
        shader_check(MICA__OP_CUMSUM, &x, 1, &attr, x.t.spec, util_rtol(MICA_F32), 1e-6);
        util_free(&x);
    }
    shader_gpu = &shader_device;
}

TEST(sort_and_argsort)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < COUNT(all_types); t++)
        for (int o = 0; o < 4; o++) {
            if (all_types[t] != MICA_F32 && o != t % 4) continue;
            const int64_t shape[] = {2, o == 3 ? 70 : 9}, k = o == 2 ? 3 : shape[1];
            const mica__attr_sort attr = {.descending = o % 2, .k = k};
            test_case("%s %d", mica_dtype_name(all_types[t]), o);
            util_tensor x = util_new(all_types[t], 2, shape);
            if (mica__is_float(all_types[t])) {
                mica__set_f64(all_types[t], x.t.data, util_offset(&x.t, 5), NAN);
                mica__set_f64(all_types[t], x.t.data, util_offset(&x.t, 2), -0.0);
                mica__set_f64(all_types[t], x.t.data, util_offset(&x.t, 3), 0.0);
            }
            if (o < 2) shader_check(MICA__OP_SORT, &x, 1, &attr, x.t.spec, 0, 0);
            shader_check(MICA__OP_ARGSORT, &x, 1, &attr, util_spec(MICA_I64, 2, (int64_t[]){2, k}), 0, 0);
            util_free(&x);
        }
}

TEST(long_rows_are_sorted_in_blocks)
{
    NEED_SOFTMETAL();
    static const int64_t ks[] = {5, 5000};
    for (int i = 0; i < 2; i++) {
        const int64_t n = 5000, k = ks[i];
        const mica__attr_sort attr = {.descending = i, .k = k};
        test_case("%d of 5000", (int)k);
        util_tensor x = util_tensor_new(util_spec(MICA_U8, 1, &n), UTIL_DENSE);
        shader_check(MICA__OP_ARGSORT, &x, 1, &attr, util_spec(MICA_I64, 1, &k), 0, 0);
        util_free(&x);
    }
}

TEST(sort_in_every_shape)
{
    NEED_SOFTMETAL();
    mica__gpu_limits tuned = shader_device;
    shader_gpu = &tuned;
    for (uint32_t i = 0; i < mica__gpu_knob_get(MICA__KNOB_SORT).n; i++)
        for (int64_t k = 5; k <= 2100; k += 2095) {
            const int64_t n = 2100;
            const mica__attr_sort attr = {.descending = k > 5, .k = k};
            tuned.tuning.candidate[MICA__KNOB_SORT] = (uint8_t)(i + 1);
            test_case("%s, %d", mica__gpu_knob_get(MICA__KNOB_SORT).shape[i].name, (int)k);
            util_tensor x = util_tensor_new(util_spec(MICA_U8, 1, &n), UTIL_DENSE);
            shader_check(MICA__OP_ARGSORT, &x, 1, &attr, util_spec(MICA_I64, 1, &k), 0, 0);
            util_free(&x);
        }
    shader_gpu = &shader_device;
}

/* ----------------------------------------------------------------- rest ---- */

TEST(random_numbers)
{
    NEED_SOFTMETAL();
    static const struct {
        mica__dist dist;
        mica_dtype dtype;
        double a, b;
    } cases[] = {{MICA__DIST_BITS, MICA_U32, 0, 0},
                 {MICA__DIST_BITS, MICA_U64, 0, 0},
                 {MICA__DIST_UNIFORM, MICA_F32, -1.5, 3},
                 {MICA__DIST_UNIFORM, MICA_F16, 0.1, 0.11},
                 {MICA__DIST_NORMAL, MICA_F32, 0, 0},
                 {MICA__DIST_NORMAL, MICA_BF16, 0, 0},
                 {MICA__DIST_TRUNCATED_NORMAL, MICA_F32, -0.5, 2},
                 {MICA__DIST_TRUNCATED_NORMAL, MICA_F32, 1, 1.1},
                 {MICA__DIST_TRUNCATED_NORMAL, MICA_F16, -3, -0.3000001},
                 {MICA__DIST_GUMBEL, MICA_F32, 0, 0},
                 {MICA__DIST_INTEGER, MICA_I32, -7, 13},
                 {MICA__DIST_INTEGER, MICA_U8, 0, 200},
                 {MICA__DIST_INTEGER, MICA_I64, -7000000000, 13}};
    for (int i = 0; i < COUNT(cases); i++) {
        const int64_t n = 301;
        mica__attr_random attr = {.spec = util_spec(cases[i].dtype, 1, &n), .dist = cases[i].dist, .seed = 77};
        attr.a = cases[i].a;
        attr.b = cases[i].b;
        attr.low = (int64_t)cases[i].a;
        attr.high = (int64_t)cases[i].b;
        test_case("dist %d of %s", (int)cases[i].dist, mica_dtype_name(cases[i].dtype));
        util_tensor seed = integer(MICA_U64, 0x123456789);
        shader_check(MICA__OP_RANDOM, &seed, (uint32_t)(i % 2), &attr, attr.spec, 0, 0);
        util_free(&seed);
    }
}

TEST(rope)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 8; i++) {
            const mica__attr_rope attr = {.dims = 6, .interleaved = i & 1, .inverse = i >> 1 & 1};
            test_case("%s %d", mica_dtype_name(floats[t]), i);
            util_tensor in[2] = {util_new(floats[t], 3, (int64_t[]){2, 5, 9}),
                                 util_new(MICA_F64, 3, (int64_t[]){i & 4 ? 2 : 1, 5, 6})};
            shader_check(MICA__OP_ROPE, in, 2, &attr, in[0].t.spec,
                         floats[t] == MICA_F32 ? 1.3e-7 : util_rtol(floats[t]), 0);
            free_all(in, 2);
        }
}

/* The distance of two doubles in ulp; a NaN is far from every number. */
static int64_t ulps_between(double a, double b)
{
    int64_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    for (int i = 0; i < 2; i++)
        if (bits[i] < 0) bits[i] = INT64_MIN - bits[i];
    if (isnan(a) || isnan(b)) return INT64_MAX;
    return bits[0] > bits[1] ? bits[0] - bits[1] : bits[1] - bits[0];
}

/* f64 computed with integers: equal to the CPU or within 1 or 2 ulp, for angles from tiny to many turns. Of two
 * million numbers (n = 20000) 2390 differed by 1 ulp and none by more; multiplied by a magnitude, 1733 of two
 * million differed by 1 or 2 ulp. */
TEST(rope_tables)
{
    NEED_SOFTMETAL();
    static const mica_dtype types[] = {MICA_I32, MICA_F32, MICA_F64, MICA_U64, MICA_F16};
    for (int t = 0; t < COUNT(types); t++)
        for (int factors = 0; factors < 2; factors++) {
            const mica__attr_rope_table attr = {
                .dims = 20, .base = 10000, .scale = factors ? 0.25 : 1, .magnitude = factors ? 1.19 : 1};
            const int64_t n = 40, pairs = 10;
            test_case("%s, %s", mica_dtype_name(types[t]), factors ? "factors" : "none");
            util_tensor in[2] = {util_tensor_new(util_spec(types[t], 1, &n), UTIL_DENSE),
                                 util_new(MICA_F32, 1, &pairs)};
            for (int64_t i = 0; i < n; i++) {
                const double big = i < 8 ? (double)i : exp(util_real(0, types[t] == MICA_F16 ? 10 : 20));
                mica__set_f64(types[t], in[0].t.data, i,
                              t % 2 == 0 && i % 3 == 0         ? -big
                              : t != 0 && t != 3 && i % 5 == 4 ? big * 1e-7
                                                               : floor(big));
            }
            for (int64_t i = 0; i < pairs; i++)
                mica__set_f64(MICA_F32, in[1].t.data, util_offset(&in[1].t, i), util_real(1, 9));
            const mica__spec spec = util_spec(MICA_F64, 2, (int64_t[]){n, 2 * pairs});
            const mica__tensor tensors[2] = {in[0].t, in[1].t};
            util_tensor want = util_run(MICA__OP_ROPE_TABLE, 0, tensors, 1 + (uint32_t)factors, &attr, spec, MICA_OK),
                        got = util_tensor_new(spec, UTIL_DENSE);
            shader_launch launch = {
                .op = MICA__OP_ROPE_TABLE, .in = in, .n_in = 1 + (uint32_t)factors, .out = &got, .attr = &attr};
            const char *why = NULL;
            int64_t most = 0;
            (void)EXPECT(shader_run(&launch, &why));
            for (int64_t i = 0; i < mica__spec_size(&spec); i++) {
                const int64_t steps = ulps_between(util_f64(&got.t, i), util_f64(&want.t, i));
                most = steps > most ? steps : most;
            }
            (void)EXPECT_MSG(most <= (factors ? 2 : 1), "%lld units in the last place", (long long)most);
            util_free(&want);
            util_free(&got);
            free_all(in, 2);
        }
}

TEST(convolutions)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 6; i++) {
            mica__attr_conv a = {.spatial = 1 + i % 2, .groups = i == 3 ? 2 : 1};
            const int64_t kernel[] = {3, 2};
            int64_t out[4] = {2, 6, 0, 0};
            for (int d = 0; d < a.spatial; d++) {
                a.stride[d] = 1 + (i + d) % 2;
                a.pad_low[d] = i % 3;
                a.pad_high[d] = i == 5 ? -1 : 1;
                a.dilation[d] = 1 + i % 2;
                a.input_dilation[d] = i == 4 ? 2 : 1;
                const int64_t size = (9 - d - 1) * a.input_dilation[d] + 1 + a.pad_low[d] + a.pad_high[d];
                out[2 + d] = (size - (kernel[d] - 1) * a.dilation[d] - 1) / a.stride[d] + 1;
            }
            test_case("%s %d", mica_dtype_name(floats[t]), i);
            util_tensor in[2] = {util_new(floats[t], 2 + (int)a.spatial, (int64_t[]){2, 4, 9, 8}),
                                 util_new(floats[t], 2 + (int)a.spatial, (int64_t[]){6, 4 / a.groups, 3, 2})};
            shader_check(MICA__OP_CONV, in, 2, &a, util_spec(floats[t], 2 + (int)a.spatial, out), util_rtol(floats[t]),
                         1e-4);
            free_all(in, 2);
        }
}
