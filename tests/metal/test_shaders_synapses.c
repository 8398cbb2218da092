/* SYNAPSES and their gradients on softmetal against ref: blocks and lists, any strides, every shape.
 *
 * runs: first */
#include "shader_run.h"

enum { MOST_INPUTS = 8 };

static void set_int(util_tensor *t, int64_t i, int64_t value)
{
    mica__set_i64(MICA_I32, t->t.data, util_offset(&t->t, i), value);
}

/* Sources, and the first synapse of each column's list; every third column has none. */
static void synapse_lists(util_tensor *source, util_tensor *first, int64_t sources, int64_t synapses, int64_t cols)
{
    *source = util_new(MICA_I32, 1, &synapses);
    *first = util_tensor_new(util_spec(MICA_I32, 1, (int64_t[]){cols + 1}), UTIL_DENSE);
    if (cols % 2) { /* backwards */
        first->t.data = (char *)first->t.data + cols * 4;
        first->t.strides[0] = -1;
    }
    for (int64_t i = 0; i < synapses; i++) set_int(source, i, util_below(sources));
    int64_t at = 0;
    for (int64_t c = 0; c <= cols; c++) {
        set_int(first, c, at);
        at = c + 1 == cols ? synapses : c % 3 == 1 ? at : synapses * (c + 1) / (cols + 1);
    }
}

/* Inputs: x, four parameters, optional lists, optional gradient of the result. Returns their number. */
static uint32_t synapse_inputs(util_tensor *in, mica_dtype dtype, int64_t n, int64_t sources, int64_t rows,
                               int64_t cols, bool listed, bool gradient)
{
    uint32_t count = 5;
    const int64_t synapses = rows * cols;
    in[0] = util_new(dtype, 2, (int64_t[]){n, sources});
    for (int i = 1; i < 5; i++)
        in[i] = listed ? util_new(dtype, 1, &synapses) : util_new(dtype, 2, (int64_t[]){rows, cols});
    if (listed) {
        synapse_lists(&in[5], &in[6], sources, synapses, cols);
        count = 7;
    }
    if (gradient) in[count++] = util_new(dtype, 3, (int64_t[]){n, 2, cols});
    return count;
}

static const int64_t synapse_sizes[][4] = {{1, 1, 1, 1},   {3, 5, 5, 7},   {9, 33, 33, 40},
                                           {70, 6, 6, 19}, {5, 40, 3, 37}, {33, 150, 2, 70}};

static void check_synapses(mica_dtype dtype, const int64_t *size, bool listed)
{
    const int64_t n = size[0], sources = size[1], rows = listed ? size[2] : sources, cols = size[3];
    const int64_t gradients = n * sources + 4 * rows * cols;
    for (int gradient = 0; gradient < 2; gradient++) {
        util_tensor in[MOST_INPUTS] = {{{0}, 0, 0}};
        test_case("(%d, %d) x (%d, %d), %s%s%s", (int)n, (int)sources, (int)rows, (int)cols, mica_dtype_name(dtype),
                  listed ? ", lists" : "", gradient ? ", gradient" : "");
        const uint32_t count = synapse_inputs(in, dtype, n, sources, rows, cols, listed, gradient);
        shader_check(gradient ? MICA__OP_SYNAPSES_GRAD : MICA__OP_SYNAPSES, in, count, NULL,
                     gradient ? util_spec(dtype, 1, &gradients) : util_spec(dtype, 3, (int64_t[]){n, 2, cols}),
                     util_rtol(dtype), (double)(gradient ? n + cols * rows : rows) * 4e-7);
        free_all(in, MOST_INPUTS);
    }
}

TEST(synapses_are_refs)
{
    NEED_SOFTMETAL();
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < COUNT(synapse_sizes); i++)
            for (int listed = 0; listed < 2; listed++)
                if ((t == 0 && (listed || synapse_sizes[i][1] < 100)) || i == 1 + t)
                    check_synapses(floats[t], synapse_sizes[i], listed);
}

/* Any number of x and of simdgroups that share the work. */
TEST(synapses_in_every_shape)
{
    NEED_SOFTMETAL();
    mica__gpu_limits tuned = shader_device;
    shader_gpu = &tuned;
    for (uint32_t i = 0; i < mica__gpu_knob_get(MICA__KNOB_SYNAPSES).n; i++) {
        tuned.tuning.candidate[MICA__KNOB_SYNAPSES] = (uint8_t)(i + 1);
        check_synapses(MICA_F32, synapse_sizes[2], i % 2);
    }
    shader_gpu = &shader_device;
}

/* An invalid source and an invalid list are errors with the message of the CPU, and no memory
 * out of bounds is read. */
TEST(synapses_in_lists_that_are_wrong)
{
    NEED_SOFTMETAL();
    static const struct {
        int operand, at, value;
        const char *text;
    } wrongs[] = {
        {5, 7, -1, "synapses: source -1 of 4"},
        {5, 9, 4, "synapses: source 4 of 4"},
        {6, 0, 1, "synapses: first[0] is 1; they ascend from 0 to 10"},
        {6, 2, -5, "synapses: first[2] is -5; they ascend from 0 to 10"},
        {6, 4, 2000000000, "synapses: first[5] is 10; they ascend from 0 to 10"},
        {6, 5, 9, "synapses: first[5] is 9; they ascend from 0 to 10"},
    };
    for (int i = 0; i < 2 * COUNT(wrongs); i++) {
        const bool gradient = i % 2;
        const int64_t sizes = 3 * 4 + 4 * 2 * 5;
        util_tensor in[MOST_INPUTS] = {{{0}, 0, 0}};
        test_case("%s%s", wrongs[i / 2].text, gradient ? ", gradient" : "");
        const uint32_t count = synapse_inputs(in, MICA_F32, 3, 4, 2, 5, true, gradient);
        set_int(&in[wrongs[i / 2].operand], wrongs[i / 2].at, wrongs[i / 2].value);
        util_tensor out = util_tensor_new(
            gradient ? util_spec(MICA_F32, 1, &sizes) : util_spec(MICA_F32, 3, (int64_t[]){3, 2, 5}), UTIL_DENSE);
        shader_launch l = {
            .op = gradient ? MICA__OP_SYNAPSES_GRAD : MICA__OP_SYNAPSES, .in = in, .n_in = count, .out = &out};
        const char *why = NULL;
        (void)EXPECT(shader_run(&l, &why));
        (void)EXPECT(mica__gpu_fault_status(l.op, &l.fault) == MICA_ERR_INDEX);
        (void)EXPECT_STR(mica_last_error(), wrongs[i / 2].text);
        free_all(in, MOST_INPUTS);
        util_free(&out);
    }
}

/* A value that is not finite affects only the results that depend on it. */
TEST(synapses_of_what_is_not_finite)
{
    NEED_SOFTMETAL();
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    for (int o = 0; o < 3; o++)
        for (int operand = 0; operand < 5; operand++) {
            util_tensor in[MOST_INPUTS] = {{{0}, 0, 0}};
            test_case("%g in operand %d", odd[o], operand);
            const uint32_t count = synapse_inputs(in, MICA_F32, 3, 6, 4, 5, true, false);
            mica__set_f64(MICA_F32, in[operand].t.data, util_offset(&in[operand].t, 7), odd[o]);
            shader_check(MICA__OP_SYNAPSES, in, count, NULL, util_spec(MICA_F32, 3, (int64_t[]){3, 2, 5}), 4e-6, 4e-6);
            free_all(in, MOST_INPUTS);
        }
}
