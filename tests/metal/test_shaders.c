/* The hand-written kernels on softmetal, each against its family's ref: small odd shapes, any
 * strides, special values.
 *
 * runs: first */
#include "shader_run.h"

TEST(nothing_that_apples_compiler_refuses)
{
    NEED_SOFTMETAL();
    CHECK(shader_sm.lint);
    const char *name;
    for (size_t i = 0; (name = mica__shader_name(i)); i++) {
        const char *end = strrchr(name, '.'), *text;
        if (strcmp(end, ".metal") != 0 || !(text = shader_whole(name))) continue;
        test_case("%s", name);
        char *complaints = shader_sm.lint(text, strlen(text), name);
        (void)EXPECT_MSG(!complaints, "%s", complaints);
        free(complaints);
    }
}

TEST(softmax_and_its_kin)
{
    NEED_SOFTMETAL();
    static const mica__op ops[] = {MICA__OP_SOFTMAX, MICA__OP_LOG_SOFTMAX, MICA__OP_LOGSUMEXP};
    static const int64_t sizes[][2] = {{1, 1}, {3, 7}, {5, 33}, {2, 300}};
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 4; i++)
            for (int o = 0; o < 3; o++) {
                test_case("%s of (%d, %d) %s", mica__op_get((uint16_t)ops[o])->name, (int)sizes[i][0], (int)sizes[i][1],
                          mica_dtype_name(floats[t]));
                util_tensor in[2] = {util_new(floats[t], 2, sizes[i]), util_new(floats[t], 1, sizes[i])};
                mica__spec spec = util_spec(floats[t], o == 2 ? 1 : 2, sizes[i]);
                shader_check(ops[o], in, o == 2 ? 1 + (uint32_t)(i % 2) : 1, NULL, spec, util_rtol(floats[t]),
                             util_rtol(floats[t]));
                util_free(&in[0]);
                util_free(&in[1]);
            }
}

TEST(softmax_of_what_is_not_finite)
{
    NEED_SOFTMETAL();
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    for (int o = 0; o < 3; o++)
        for (int all = 0; all < 2; all++) {
            test_case("%g, %s", odd[o], all ? "all" : "one");
            util_tensor x = util_tensor_new(util_spec(MICA_F32, 2, (int64_t[]){2, 40}), UTIL_DENSE);
            for (int64_t i = 0; i < (all ? 40 : 1); i++) mica__set_f64(MICA_F32, x.t.data, i, odd[o]);
            shader_check(MICA__OP_SOFTMAX, &x, 1, NULL, x.t.spec, 4e-6, 1e-7);
            shader_check(MICA__OP_LOGSUMEXP, &x, 1, NULL, util_spec(MICA_F32, 1, (int64_t[]){2}), 4e-6, 1e-6);
            util_free(&x);
        }
}

/* As few threads as a kernel with many registers may have. */
TEST(rows_on_a_small_device)
{
    NEED_SOFTMETAL();
    mica__gpu_limits small = shader_device;
    small.max_threads = 64;
    shader_gpu = &small;
    const mica__attr_norm norm = {.eps = 1e-5};
    const int64_t shape[] = {3, 700};
    util_tensor x = util_new(MICA_F32, 2, shape);
    shader_check(MICA__OP_SOFTMAX, &x, 1, NULL, x.t.spec, 4e-6, 1e-7);
    shader_check(MICA__OP_LAYER_NORM, &x, 1, &norm, x.t.spec, 4e-6, 3e-6);
    shader_check(MICA__OP_ARGMAX, &x, 1, NULL, util_spec(MICA_I64, 1, shape), 0, 0);
    util_free(&x);
    shader_gpu = &shader_device;
}

TEST(norms)
{
    NEED_SOFTMETAL();
    static const int64_t sizes[][2] = {{1, 1}, {3, 7}, {5, 33}, {2, 300}};
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 4; i++)
            for (int o = 0; o < 2; o++) {
                const mica__attr_norm attr = {.eps = 1e-5, .wide = i % 2};
                test_case("%d, %d x %d, %s", o, (int)sizes[i][0], (int)sizes[i][1], mica_dtype_name(floats[t]));
                util_tensor x = util_new(floats[t], 2, sizes[i]);
                if (i == 1) x.t.strides[1] = 0; /* equal numbers: their layer norm is 0 */
                shader_check(o ? MICA__OP_LAYER_NORM : MICA__OP_RMS_NORM, &x, 1, &attr,
                             util_spec(attr.wide ? MICA_F32 : floats[t], 2, sizes[i]), util_rtol(floats[t]), 3e-6);
                util_free(&x);
            }
}

/* --------------------------------------------------------------- matmul ---- */

static void check_matmul(mica_dtype a, mica_dtype b, mica_dtype out, int64_t batch, int64_t m, int64_t n, int64_t k)
{
    const mica__attr_cast attr = {.dtype = out};
    test_case("%s x %s into %s, %d x (%d, %d, %d)", mica_dtype_name(a), mica_dtype_name(b), mica_dtype_name(out),
              (int)batch, (int)m, (int)n, (int)k);
    util_tensor in[2] = {util_new(a, 3, (int64_t[]){batch, m, k}), util_new(b, 3, (int64_t[]){batch, k, n})};
    shader_check(MICA__OP_MATMUL, in, 2, &attr, util_spec(out, 3, (int64_t[]){batch, m, n}), util_rtol(out),
                 (double)k * 2e-6);
    util_free(&in[0]);
    util_free(&in[1]);
}

TEST(matmul_of_floats)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < 3; t++) {
        check_matmul(floats[t], floats[t], floats[t], 1, 1, 1, 1);
        check_matmul(floats[t], floats[t], floats[t], 2, 1, 40, 33);
        check_matmul(floats[t], floats[t], floats[t], 1, 45, 3, 70);
        check_matmul(floats[t], floats[t], floats[t], 2, 33, 35, 19);
        check_matmul(floats[t], floats[t], floats[t], 1, 64, 64, 32);
        check_matmul(floats[t], floats[t], MICA_F32, 3, 9, 17, 5);
        check_matmul(floats[t], floats[t], floats[t], 2, 9, 17, 0);
    }
    check_matmul(MICA_F16, MICA_F32, MICA_F32, 1, 12, 13, 14);
    for (int i = 0; i < 12; i++)
        check_matmul(MICA_F32, MICA_F32, MICA_F32, 1 + util_below(3), util_size(), util_size(), util_size());
}

/* Tiles of 64 are used only if there are many of them. */
TEST(matmul_in_large_tiles)
{
    NEED_SOFTMETAL();
    mica__gpu_limits one_core = shader_device;
    one_core.cores = 1;
    shader_gpu = &one_core;
    check_matmul(MICA_F32, MICA_F32, MICA_F32, 1, 70, 67, 37);
    check_matmul(MICA_F32, MICA_F32, MICA_F32, 2, 64, 128, 32);
    check_matmul(MICA_F16, MICA_F16, MICA_F16, 1, 129, 65, 40);
    shader_gpu = &shader_device;
}

/* Every choice of a tuner. */
TEST(matmul_in_every_shape)
{
    NEED_SOFTMETAL();
    mica__gpu_limits tuned = shader_device;
    shader_gpu = &tuned;
    for (int k = MICA__KNOB_MATMUL_F32; k <= MICA__KNOB_MATVEC_BESIDE; k++) {
        const mica__gpu_knob_info info = mica__gpu_knob_get((mica__gpu_knob)k);
        const mica_dtype dtype = k == MICA__KNOB_MATMUL_F16 ? MICA_F16 : MICA_F32;
        for (uint32_t i = 0; i < info.n; i++) {
            tuned.tuning.candidate[k] = (uint8_t)(i + 1);
            check_matmul(dtype, dtype, dtype, 1, k <= MICA__KNOB_MATMUL_F16 ? 45 : 3, 67, 37);
        }
    }
    shader_gpu = &shader_device;
}

TEST(matmul_in_parts_of_k)
{
    NEED_SOFTMETAL();
    check_matmul(MICA_F32, MICA_F32, MICA_F32, 1, 16, 16, 1040);
    check_matmul(MICA_F16, MICA_F16, MICA_F16, 1, 9, 20, 1111);
}

TEST(matmul_of_integers)
{
    NEED_SOFTMETAL();
    check_matmul(MICA_I8, MICA_I8, MICA_I32, 2, 5, 6, 33);
    check_matmul(MICA_I64, MICA_I64, MICA_I64, 1, 3, 9, 10);
    check_matmul(MICA_U16, MICA_U16, MICA_U16, 1, 12, 9, 10);
}
