/* Lazy evaluation: what is computed and when, what is shared, what is copied.
 *
 * runs: metal, check, check@metal */
#include "api.h"
#include "base/alloc.h"

/* Each op is one kernel, so that the kernel counter counts ops. */
static mica_engine *open_unfused(void)
{
    mica_engine_options o = options_for("cpu", 1);
    o.passes = MICA_PASS_ALL & ~(uint32_t)MICA_PASS_FUSE;
    return open_with(&o);
}

static uint64_t kernels(const mica_engine *e) { return stats_of(e).kernels; }

TEST(nothing_runs_before_eval)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = count_up_2d(s, 4, 5);
        mica_array *y = mica_softmax(s, mica_matmul(s, mica_exp(s, x), mica_transpose(s, x)), -1);
        mica_array *z = mica_random_normal(s, MICA_F32, SHAPE(100, 100), 1);
        mica_array *grad = NULL;
        CHECK_OK(mica_grad(s, mica_sum(s, y, NULL, 0, false), &x, 1, &grad));
        EXPECT(!mica_array_is_ready(y) && !mica_array_is_ready(z) && !mica_array_is_ready(grad));
        EXPECT_INT(stats_of(e).kernels, 0);
        EXPECT_INT(stats_of(e).evals, 0);
        EXPECT_INT(stats_of(e).plan_misses, 0);
        CHECK_OK(mica_eval(s, ARRAYS(y, grad)));
        EXPECT(mica_array_is_ready(y) && mica_array_is_ready(grad));
        EXPECT(stats_of(e).kernels > 0);
        EXPECT_INT(stats_of(e).evals, 1);
        EXPECT(!mica_array_is_ready(z));
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(a_shared_subgraph_runs_once)
{
    mica_engine *e = open_unfused();
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 10, 1);
    mica_array *h = mica_log(s, x);                    /* 1 */
    mica_array *a = mica_sin(s, h), *b = mica_cos(s, h); /* 2 */
    mica_array *y = mica_mul(s, a, mica_add(s, a, b)); /* 2 */
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT_INT(kernels(e), 5);
    mica_scope_end(s);
    mica_close(e);
}

TEST(unreferenced_results_never_run)
{
    mica_engine *e = open_unfused();
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 10, 1), *h = mica_log(s, x), *y = mica_sin(s, h);
    mica_array *dead = mica_exp(s, mica_cos(s, h));
    for (int i = 0; i < 100; i++) mica_matmul(s, dead, dead);
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT_INT(kernels(e), 2);
    EXPECT(!mica_array_is_ready(dead));
    mica_scope_end(s);
    mica_close(e);
}

TEST(several_results_are_computed_together)
{
    mica_engine *e = open_unfused();
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 4, 1), *h = mica_square(s, x);
    mica_array *a = mica_neg(s, h), *b = mica_sqrt(s, h);
    /* an input, an intermediate, two results, one of them twice */
    CHECK_OK(mica_eval(s, ARRAYS(a, b, h, a, x)));
    EXPECT_INT(kernels(e), 3);
    EXPECT_INT(stats_of(e).evals, 1);
    EXPECT_VALUES(a, -1, -4, -9, -16);
    EXPECT_VALUES(b, 1, 2, 3, 4);
    EXPECT_VALUES(h, 1, 4, 9, 16);
    mica_scope_end(s);
    mica_close(e);
}

TEST(what_is_ready_is_a_leaf)
{
    mica_engine *e = open_unfused();
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 4, 1), *h = mica_square(s, x), *y = mica_neg(s, h);
    CHECK_OK(mica_eval(s, &h, 1));
    EXPECT_INT(kernels(e), 1);
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT_INT(kernels(e), 2);
    EXPECT_VALUES(y, -1, -4, -9, -16);
    mica_scope_end(s);
    mica_close(e);
}

TEST(evaluating_ready_arrays_is_free)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 4, 1), *y = mica_neg(s, x);
    CHECK_OK(mica_eval(s, ARRAYS(x, y)));
    const mica_stats before = stats_of(e);
    const uint64_t allocations = mica__alloc_count();
    CHECK_OK(mica_eval(s, ARRAYS(x, y)));
    CHECK_OK(mica_eval(s, NULL, 0));
    EXPECT_INT(mica__alloc_count(), allocations);
    const mica_stats after = stats_of(e);
    EXPECT(memcmp(&before, &after, sizeof before) == 0);
    mica_scope_end(s);
    mica_close(e);
}

TEST(shapes_without_elements_and_without_axes)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_array *none = mica_from_data(s, MICA_F32, SHAPE(3, 0), NULL);
        mica_array *one = mica_from_data(s, MICA_F32, 0, NULL, &(float){3});
        mica_array *sum = mica_sum(s, none, NULL, 0, false), *y = mica_mul(s, mica_exp(s, none), one);
        mica_array *product = mica_matmul(s, none, mica_transpose(s, none)), *three = mica_add(s, one, one);
        CHECK_OK(mica_eval(s, ARRAYS(sum, y, product, three)));
        EXPECT_VALUES(sum, 0);
        EXPECT_VALUES(product, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        EXPECT_VALUES(three, 6);
        EXPECT_INT(mica_array_size(y), 0);
        EXPECT_OK(mica_copy_out(y, NULL, 0));
        mica_array *nowhere = mica_wrap(s, MICA_F32, SHAPE(2, 0), NULL, NULL, NULL, NULL);
        mica_array *view = mica_flip(s, mica_transpose(s, nowhere), 1), *computed = mica_exp(s, view);
        mica_array *joined = mica_concat(s, ARRAYS(computed, mica_ones(s, MICA_F32, SHAPE(1, 2))), 0);
        CHECK_OK(mica_eval(s, ARRAYS(view, computed, joined)));
        EXPECT_VALUES(joined, 1, 1);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* ---------------------------------------------------------------- views ---- */

/* No kernel ran, nothing was copied and no memory was allocated. Each of the n
 * conversions shared memory. */
static void only_shared(const mica_stats *before, const mica_stats *after, uint64_t n)
{
    EXPECT_INT(after->kernels, before->kernels);
    EXPECT_INT(after->copies, before->copies);
    EXPECT_INT(after->bytes_copied, before->bytes_copied);
    EXPECT_INT(after->bytes_in_use, before->bytes_in_use);
    EXPECT_INT(after->bytes_peak, before->bytes_peak);
    EXPECT_INT(after->conversions, before->conversions + n);
    EXPECT_INT(after->conversions_zero_copy, before->conversions_zero_copy + n);
}

TEST(views_of_a_leaf_share_its_memory)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        float data[24];
        for (int i = 0; i < 24; i++) data[i] = (float)i;
        mica_array *x = mica_from_data(s, MICA_F32, SHAPE(2, 3, 4), data);
        const float *base = mica_data_f32(x);
        const int64_t *own = mica_array_strides(x);
        EXPECT(own && own[0] == 12 && own[1] == 4 && own[2] == 1);
        const struct {
            const char *name;
            mica_array *view;
            int64_t offset, strides[4];
        } cases[] = {
            {"transpose", mica_transpose(s, x), 0, {12, 1, 4}},
            {"permute", mica_permute(s, x, (int[]){2, 0, 1}), 0, {1, 12, 4}},
            {"slice",
             mica_slice(s, x, (int64_t[]){1, 0, MICA_AUTO}, (int64_t[]){2, MICA_AUTO, -1}, (int64_t[]){1, 2, 1}),
             12,
             {12, 8, 1}},
            {"slice, step -2", mica_slice_axis(s, x, 2, MICA_AUTO, MICA_AUTO, -2), 3, {12, 4, -2}},
            {"flip", mica_flip(s, x, 1), 8, {12, -4, 1}},
            {"reshape", mica_reshape(s, x, SHAPE(6, -1)), 0, {4, 1}},
            {"flatten", mica_flatten(s, x), 0, {1}},
            {"broadcast", mica_broadcast_to(s, mica_slice_axis(s, x, 0, 1, 2, 1), SHAPE(5, 3, 4)), 12, {0, 4, 1}},
            {"squeeze", mica_squeeze(s, mica_slice_axis(s, x, 1, 2, 3, 1), 1), 8, {12, 1}},
            {"expand", mica_expand_dims(s, mica_transpose(s, x), 3), 0, {12, 1, 4}},
            {"contiguous", mica_contiguous(s, mica_flip(s, mica_flip(s, x, 0), 0)), 0, {12, 4, 1}},
            {"stop_gradient", mica_stop_gradient(s, x), 0, {12, 4, 1}},
            {"chain", mica_flip(s, mica_transpose(s, mica_slice_axis(s, x, 0, 1, 2, 1)), 2), 20, {12, 1, -4}},
        };
        for (size_t i = 0; i < COUNT(cases); i++) {
            test_case("%s: %s", backends[b], cases[i].name);
            mica_array *v = cases[i].view;
            mica_engine_reset_peak(e);
            const mica_stats before = stats_of(e);
            CHECK_OK(mica_eval(s, &v, 1));
            const mica_stats after = stats_of(e);
            only_shared(&before, &after, 1);
            EXPECT_MSG((const float *)mica_data(v) == base + cases[i].offset, "offset %td, not %lld",
                       (const float *)mica_data(v) - base, (long long)cases[i].offset);
            for (int d = 0; d < mica_array_ndim(v); d++)
                if (mica_array_shape(v)[d] != 1) EXPECT_INT(mica_array_strides(v)[d], cases[i].strides[d]);
        }
        mica_scope_end(s);
        mica_close(e);
    }
}

TEST(a_view_of_wrapped_memory_sees_it_change)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    float data[6] = {0, 1, 2, 3, 4, 5};
    mica_array *x = mica_wrap(s, MICA_F32, SHAPE(2, 3), NULL, data, NULL, NULL);
    mica_array *t = mica_transpose(s, x);
    CHECK_OK(mica_eval(s, &t, 1));
    EXPECT(mica_data(t) == (const void *)data && mica_data(x) == (const void *)data);
    data[1] = 100;
    EXPECT_VALUES(t, 0, 3, 100, 4, 2, 5);
    EXPECT_INT(stats_of(e).copies, 0);
    EXPECT_INT(stats_of(e).bytes_in_use, 0);
    mica_scope_end(s);
    mica_close(e);
}

TEST(a_reshape_that_strides_cannot_express_copies)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = count_up_2d(s, 2, 3), *y = mica_flatten(s, mica_transpose(s, x));
        CHECK_OK(mica_eval(s, &y, 1));
        EXPECT_INT(kernels(e), 1);
        EXPECT_VALUES(y, 0, 3, 1, 4, 2, 5);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* If only a small view of a large result is evaluated, the large result is freed. */
TEST(a_small_view_of_a_result_does_not_keep_it)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_random_normal(s, MICA_F32, SHAPE(1000, 100), 3);
    mica_array *y = mica_slice_axis(s, mica_matmul(s, x, mica_transpose(s, x)), 0, 5, 6, 1);
    CHECK_OK(mica_eval(s, &y, 1));
    EXPECT(stats_of(e).bytes_in_use < 8192);
    mica_scope_end(s);
    mica_close(e);
}

/* Capability A5: three conversions with a copy and seven without: 70 %. */
TEST(statistic_of_conversions_without_a_copy)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    float data[6] = {0, 1, 2, 3, 4, 5}, back[6];
    mica_array *x = mica_from_data(s, MICA_F32, SHAPE(2, 3), data);               /* copied  1 */
    mica_array *w = mica_wrap(s, MICA_F32, SHAPE(2, 3), NULL, data, NULL, NULL);  /* shared  1 */
    mica_array *t = mica_transpose(s, w), *f = mica_flip(s, x, 0);
    CHECK_OK(mica_eval(s, ARRAYS(t, f)));                                         /* shared  3 */
    EXPECT(mica_data_f32(x) && mica_data_f32(w) && mica_data(t) && mica_data(f)); /* shared  7 */
    CHECK_OK(mica_copy_out(t, back, sizeof back));                                /* copied  2 */
    CHECK_OK(mica_copy_out(x, back, sizeof back));                                /* copied  3 */
    const mica_stats stats = stats_of(e);
    EXPECT_INT(stats.conversions, 10);
    EXPECT_INT(stats.conversions_zero_copy, 7);
    EXPECT_CLOSE((double)stats.conversions_zero_copy / (double)stats.conversions, 0.7, 0, 1e-12);
    EXPECT_INT(stats.copies, 3);
    EXPECT_INT(stats.bytes_copied, 3 * sizeof data);
    mica_scope_end(s);
    mica_close(e);
}

/* ------------------------------------------------------------- pointers ---- */

TEST(pointers_out)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
#define ONE_DTYPE(name, value, bytes, text)                                               \
    do {                                                                                  \
        mica_array *a = mica_full_i64(s, name, SHAPE(3), 1);                              \
        EXPECT(!mica_data_##text(a));                                                     \
        EXPECT_STR(mica_last_error(), "mica_data_" #text ": the array is not evaluated"); \
        EXPECT(!mica_array_strides(a));                                                   \
        CHECK_OK(mica_eval(s, &a, 1));                                                    \
        EXPECT(mica_data_##text(a) && (const void *)mica_data_##text(a) == mica_data(a)); \
        EXPECT_INT(mica_array_nbytes(a), 3 * bytes);                                      \
        EXPECT(name == MICA_F32 ? !mica_data_f64(a) : !mica_data_f32(a));                 \
        EXPECT(strstr(mica_last_error(), "the array is " #text));                         \
    } while (0);
    ONE_DTYPE(MICA_BOOL, 0, 1, bool)
    ONE_DTYPE(MICA_U8, 1, 1, u8)
    ONE_DTYPE(MICA_I8, 2, 1, i8)
    ONE_DTYPE(MICA_U16, 3, 2, u16)
    ONE_DTYPE(MICA_I16, 4, 2, i16)
    ONE_DTYPE(MICA_U32, 5, 4, u32)
    ONE_DTYPE(MICA_I32, 6, 4, i32)
    ONE_DTYPE(MICA_U64, 7, 8, u64)
    ONE_DTYPE(MICA_I64, 8, 8, i64)
    ONE_DTYPE(MICA_F16, 9, 2, f16)
    ONE_DTYPE(MICA_BF16, 10, 2, bf16)
    ONE_DTYPE(MICA_F32, 11, 4, f32)
    ONE_DTYPE(MICA_F64, 12, 8, f64)
    mica_array *x = count_up_2d(s, 2, 3), *t = mica_transpose(s, x);
    CHECK_OK(mica_eval(s, &t, 1));
    EXPECT(mica_data(t) && !mica_data_f32(t));
    EXPECT(strstr(mica_last_error(), "(3, 2)") && strstr(mica_last_error(), "(1, 3)"));
    float out[6];
    CHECK_OK(mica_copy_out(t, out, sizeof out));
    EXPECT(out[1] == 3 && out[2] == 1);
    mica_scope_end(s);
    mica_close(e);
}

TEST(an_engine_says_what_it_runs_on)
{
    for (size_t i = 0; i < COUNT(backends); i++) {
        const char *backend = device_for(backends[i]);
        test_case("%s", backend);
        mica_engine *e = open_engine(backends[i]);
        mica_engine_info info = {.struct_size = sizeof info};
        CHECK_OK(mica_engine_describe(e, &info));
        EXPECT_STR(info.backend, backend);
        EXPECT_STR(info.device, mica_engine_device(e));
        EXPECT_INT(info.threads, 2);
        EXPECT_INT(info.is_gpu, strcmp(backend, "metal") == 0);
        EXPECT_INT(info.is_reference, strcmp(backend, "ref") == 0);
        EXPECT(info.is_gpu || !info.is_software);
        EXPECT(info.unified_memory);
        if (strcmp(backend, "cpu") == 0) EXPECT_STR(info.device, "CPU");
        if (strcmp(backend, "ref") == 0) EXPECT_STR(info.device, "CPU (reference backend)");
        mica_close(e);
    }
}
