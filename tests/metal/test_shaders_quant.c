/* Products with matrices in block formats, and gathers of their rows, on softmetal against ref.
 *
 * runs: first */
#include "shader_run.h"

#include "quant/quant.h"

static util_tensor bytes_of(size_t n)
{
    const int64_t count = (int64_t)n;
    return util_tensor_new(util_spec(MICA_U8, 1, &count), UTIL_DENSE);
}

typedef struct quant_case {
    const char *name;
    int64_t block;
    bool exact;                 /* equal bits with quantised x */
} quant_case;

static const quant_case quants[] = {
    {"I2_S", 128, true},  {"HF_TERNARY", 1, true}, {"TQ2_0", 256, true},  {"TQ1_0", 256, true},  {"I2_S_ARM", 64, true},
    {"Q2_0", 64, true},   {"PQ2_0", 128, true},    {"PTQ1_0", 128, true}, {"Q1_0", 128, true},   {"Q1_0_G32", 32, true},
    {"Q8_0", 32, false},  {"Q4_0", 32, false},     {"Q4_1", 32, false},   {"Q5_0", 32, false},   {"Q5_1", 32, false},
    {"Q4_K", 256, false}, {"Q5_K", 256, false},    {"Q6_K", 256, false},  {"AFFINE", 64, false}, {"F32", 1, false},
    {"F16", 1, false},    {"BF16", 1, false},      {"MICA_T2", 1, true},  {"MICA_Q8", 1, false}, {"MICA_T1", 1, true},
};

/* Fills in[1 ...] with the matrix. Returns its number of operands. */
static uint32_t quant_matrix(const quant_case *q, int64_t rows, int64_t cols, int bits, util_tensor *in,
                             mica__attr_quant *attr)
{
    const bool hf = strcmp(q->name, "HF_TERNARY") == 0, affine = strcmp(q->name, "AFFINE") == 0;
    const mica__quant_id id = hf ? MICA__QUANT_HF_TERNARY : affine ? MICA__QUANT_AFFINE : mica__quant_find(q->name);
    *attr = (mica__attr_quant){.format = id, .rows = rows, .cols = cols};
    float *x = malloc((size_t)(rows * cols) * sizeof *x);
    if (!x) abort();
    for (int64_t i = 0; i < rows * cols; i++) {
        x[i] = (float)util_real(-1, 1);
        if (q->exact) x[i] = x[i] < -0.3f ? -0.71f : x[i] > 0.3f ? 0.71f : 0;
    }
    uint32_t n = 1;
    if (hf) {
        int8_t *codes = malloc((size_t)(rows * cols));
        if (!codes) abort();
        for (int64_t i = 0; i < rows * cols; i++) codes[i] = (int8_t)(x[i] < 0 ? -1 : x[i] > 0);
        in[1] = bytes_of((size_t)((rows + 3) / 4 * cols));
        mica__pack_hf_ternary(codes, rows, cols, (uint8_t *)in[1].t.data);
        in[2] = util_tensor_new(util_spec(MICA_BF16, 0, NULL), UTIL_DENSE);
        mica__set_f64(MICA_BF16, in[2].t.data, 0, 0.37);
        attr->scale_divides = bits & 1;
        free(codes);
        n = 2;
    } else if (affine) {
        const int64_t groups[] = {rows, cols / 64};
        attr->bits = bits;
        attr->group = 64;
        in[1] = bytes_of((size_t)(rows * cols / 8 * bits));
        in[2] = util_tensor_new(util_spec(MICA_F32, 2, groups), UTIL_DENSE);
        in[3] = util_tensor_new(util_spec(MICA_F32, 2, groups), UTIL_DENSE);
        mica__pack_affine(x, rows, cols, bits, 64, (uint8_t *)in[1].t.data, (float *)(void *)in[2].t.data,
                          (float *)(void *)in[3].t.data);
        n = 3;
    } else {
        size_t nbytes = 0;
        (void)mica__quant_nbytes(id, 2, (int64_t[]){rows, cols}, &nbytes);
        in[1] = bytes_of(nbytes);
        (void)EXPECT_MSG(mica__quant_pack(id, x, rows, cols, in[1].t.data) == MICA_OK, "%s", mica_last_error());
    }
    free(x);
    return n;
}

TEST(products_with_block_formats)
{
    NEED_SOFTMETAL();
    static const int64_t counts[] = {1, 6, 11};
    for (int i = 0; i < COUNT(quants); i++)
        for (int c = 0; c < 3; c++) {
            const int act = c == 0 ? i % 3 : c;
            const int64_t cols = quants[i].block == 1 ? 75 : quants[i].block * (quants[i].block < 128 ? 5 : 2),
                          rows = 13;
            const int64_t n = quants[i].block == 1 || c == 1 ? cols : cols - 5, count = counts[c];
            mica__attr_quant attr;
            util_tensor in[4] = {{{0}, 0, 0}};
            test_case("%s, %d rows, act %d", quants[i].name, (int)count, act);
            const uint32_t n_in = 1 + quant_matrix(&quants[i], rows, cols, 3 + c, in, &attr);
            attr.act = act;
            in[0] = util_new(MICA_F32, 2, (int64_t[]){count, n});
            /* ref's bits; but where blocks cancel, the sum of two floats may leave a rounding error */
            const bool exact = quants[i].exact && act != MICA_ACT_NONE;
            const double left = act == MICA_ACT_BLOCK256 ? 1e-13 : 0;
            shader_check(MICA__OP_QMATMUL, in, n_in, &attr, util_spec(MICA_F32, 2, (int64_t[]){count, rows}),
                         exact ? 0 : 1e-5, exact ? left : 2e-4);
            free_all(in, 4);
        }
}

/* Tiles of every size, with quantised and with float x. */
TEST(products_with_block_formats_in_every_shape)
{
    NEED_SOFTMETAL();
    mica__gpu_limits tuned = shader_device;
    tuned.cores = 1; /* larger tiles are used only if there are many */
    shader_gpu = &tuned;
    for (uint32_t i = 0; i < mica__gpu_knob_get(MICA__KNOB_QMATMUL).n; i++)
        for (int exact = 0; exact < 2; exact++) {
            const quant_case *q = &quants[exact ? 0 : 10]; /* I2_S, Q8_0 */
            const int64_t cols = 128, rows = 75, count = 70;
            mica__attr_quant attr;
            util_tensor in[4] = {{{0}, 0, 0}};
            test_case("%s, shape %d", q->name, (int)i);
            tuned.tuning.candidate[MICA__KNOB_QMATMUL] = (uint8_t)(i + 1);
            const uint32_t n_in = 1 + quant_matrix(q, rows, cols, 0, in, &attr);
            attr.act = exact ? MICA_ACT_TOKEN : MICA_ACT_NONE;
            in[0] = util_new(MICA_F32, 2, (int64_t[]){count, cols});
            shader_check(MICA__OP_QMATMUL, in, n_in, &attr, util_spec(MICA_F32, 2, (int64_t[]){count, rows}),
                         exact ? 0 : 1e-5, exact ? 0 : 2e-4);
            free_all(in, 4);
        }
    shader_gpu = &shader_device;
}

/* x is quantised by more threads than a row has elements, and by fewer. */
TEST(rows_are_rounded_in_every_shape)
{
    NEED_SOFTMETAL();
    mica__gpu_limits tuned = shader_device;
    shader_gpu = &tuned;
    for (uint32_t i = 0; i < mica__gpu_knob_get(MICA__KNOB_QUANT_ROUND).n; i++)
        for (int act = MICA_ACT_TOKEN; act <= MICA_ACT_BLOCK256; act++) {
            const int64_t cols = 768, rows = 5, count = 3;
            mica__attr_quant attr;
            util_tensor in[4] = {{{0}, 0, 0}};
            test_case("%s, act %d", mica__gpu_knob_get(MICA__KNOB_QUANT_ROUND).shape[i].name, act);
            tuned.tuning.candidate[MICA__KNOB_QUANT_ROUND] = (uint8_t)(i + 1);
            const uint32_t n_in = 1 + quant_matrix(&quants[0], rows, cols, 0, in, &attr);
            attr.act = act;
            in[0] = util_new(MICA_F32, 2, (int64_t[]){count, cols});
            shader_check(MICA__OP_QMATMUL, in, n_in, &attr, util_spec(MICA_F32, 2, (int64_t[]){count, rows}), 0,
                         act == MICA_ACT_BLOCK256 ? 1e-13 : 0);
            free_all(in, 4);
        }
    shader_gpu = &shader_device;
}

TEST(rows_of_block_formats)
{
    NEED_SOFTMETAL();
    for (int i = 0; i < COUNT(quants); i++) {
        const int64_t cols = quants[i].block == 1 ? 75 : 2 * quants[i].block, rows = 9, count = 4;
        mica__attr_quant attr;
        util_tensor in[4] = {{{0}, 0, 0}};
        test_case("%s", quants[i].name);
        const uint32_t n_in = 1 + quant_matrix(&quants[i], rows, cols, 2 + i % 5, in, &attr);
        in[0] = util_new(MICA_I64, 1, &count);
        for (int64_t k = 0; k < count; k++)
            mica__set_i64(MICA_I64, in[0].t.data, util_offset(&in[0].t, k), util_below(2 * rows) - rows);
        shader_check(MICA__OP_QROWS, in, n_in, &attr, util_spec(MICA_F32, 2, (int64_t[]){count, cols}), 0, 0);
        free_all(in, 4);
    }
}

TEST(x_that_is_not_finite)
{
    NEED_SOFTMETAL();
    for (int i = 0; i < COUNT(quants); i += 4)
        for (int act = i % 3; act < 3; act += 2) {
            const int64_t cols = quants[i].block == 1 ? 75 : 2 * quants[i].block, count = act == 1 ? 10 : 3;
            mica__attr_quant attr;
            util_tensor in[4] = {{{0}, 0, 0}};
            test_case("%s, act %d", quants[i].name, act);
            const uint32_t n_in = 1 + quant_matrix(&quants[i], 5, cols, 4, in, &attr);
            attr.act = act;
            in[0] = util_tensor_new(util_spec(MICA_F32, 2, (int64_t[]){count, cols}), UTIL_DENSE);
            mica__set_f64(MICA_F32, in[0].t.data, cols + 7, i % 4 ? NAN : INFINITY);
            for (int64_t k = 0; k < cols; k++) mica__set_f64(MICA_F32, in[0].t.data, k, 0);
            shader_check(MICA__OP_QMATMUL, in, n_in, &attr, util_spec(MICA_F32, 2, (int64_t[]){count, 5}), 1e-5, 2e-4);
            free_all(in, 4);
        }
}
