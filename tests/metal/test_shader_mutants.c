/* Mutation test of the shaders: would a missing barrier or a bound that is off by one be noticed?
 * Each barrier is deleted, or gets the wrong memory flags. Its kernel then runs under softmetal's
 * checker on a shape that needs the barrier, and a race must be reported. Each comparison with a
 * size in the parameters is changed to accept one more: the checker must report an error, or the
 * result must differ.
 *
 * runs: unsanitized, first */
#include "shader_run.h"

#include "base/hash.h"
#include "quant/quant.h"

static uint64_t last_result; /* a hash */

/* Runs op into a new tensor. */
static void run(mica__op op, util_tensor *in, uint32_t n_in, const void *attr, mica__spec spec)
{
    util_tensor out = util_tensor_new(spec, UTIL_DENSE);
    shader_launch launch = {.op = op, .in = in, .n_in = n_in, .out = &out, .attr = attr};
    const char *why = NULL;
    (void)EXPECT_MSG(shader_run(&launch, &why) || shader_mutant_status != SM_OK, "%s", why ? why : "not run");
    last_result = mica__hash(out.memory, out.nbytes, 0);
    for (uint32_t i = 0; i < n_in; i++) util_free(&in[i]);
    util_free(&out);
}

static util_tensor dense(mica_dtype dtype, int ndim, const int64_t *shape)
{
    return util_tensor_new(util_spec(dtype, ndim, shape), UTIL_DENSE);
}

#define SHAPE(...) \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

static void run_softmax(void)
{
    run(MICA__OP_SOFTMAX, (util_tensor[]){dense(MICA_F32, SHAPE(2, 300))}, 1, NULL, util_spec(MICA_F32, SHAPE(2, 300)));
}

static void run_norm(void)
{
    const mica__attr_norm attr = {.eps = 1e-5};
    run(MICA__OP_LAYER_NORM, (util_tensor[]){dense(MICA_F32, SHAPE(2, 300))}, 1, &attr,
        util_spec(MICA_F32, SHAPE(2, 300)));
}

static void run_argmax(void)
{
    run(MICA__OP_ARGMAX, (util_tensor[]){dense(MICA_F32, SHAPE(2, 900))}, 1, NULL, util_spec(MICA_I64, SHAPE(2)));
}

static void run_cumsum(void)
{
    const mica__attr_cumulative attr = {0};
    run(MICA__OP_CUMSUM, (util_tensor[]){dense(MICA_F32, SHAPE(1, 600))}, 1, &attr, util_spec(MICA_F32, SHAPE(1, 600)));
}

static void run_sort(void)
{
    const mica__attr_sort attr = {.k = 130};
    run(MICA__OP_SORT, (util_tensor[]){dense(MICA_F32, SHAPE(1, 130))}, 1, &attr, util_spec(MICA_F32, SHAPE(1, 130)));
}

static void run_sort_blocks(void)
{
    const mica__attr_sort attr = {.k = 5}; /* the first of each block of 2048, then the first of these */
    run(MICA__OP_SORT, (util_tensor[]){dense(MICA_F32, SHAPE(1, 4100))}, 1, &attr, util_spec(MICA_F32, SHAPE(1, 5)));
}

static void run_matmul(void)
{
    run(MICA__OP_MATMUL, (util_tensor[]){dense(MICA_F32, SHAPE(10, 40)), dense(MICA_F32, SHAPE(40, 33))}, 2, NULL,
        util_spec(MICA_F32, SHAPE(10, 33)));
}

static void run_vectors(void)
{
    run(MICA__OP_MATMUL, (util_tensor[]){dense(MICA_F32, SHAPE(1, 40)), dense(MICA_F32, SHAPE(40, 33))}, 2, NULL,
        util_spec(MICA_F32, SHAPE(1, 33)));
}

static void run_conv(void)
{
    const mica__attr_conv attr = {.spatial = 1,
                                  .groups = 1,
                                  .stride = {1},
                                  .pad_low = {1},
                                  .pad_high = {1},
                                  .dilation = {1},
                                  .input_dilation = {1}};
    run(MICA__OP_CONV, (util_tensor[]){dense(MICA_F32, SHAPE(1, 8, 12)), dense(MICA_F32, SHAPE(9, 8, 3))}, 2, &attr,
        util_spec(MICA_F32, SHAPE(1, 9, 12)));
}

static void run_attention(int64_t queries)
{
    const mica__attr_attention attr = {.scale = 1};
    util_tensor in[] = {dense(MICA_F32, SHAPE(1, 1, queries, 72)), dense(MICA_F32, SHAPE(1, 1, 70, 72)),
                        dense(MICA_F32, SHAPE(1, 1, 70, 72))};
    run(MICA__OP_ATTENTION, in, 3, &attr, util_spec(MICA_F32, SHAPE(1, 1, queries, 72)));
}

static void run_few_queries(void) { run_attention(2); }
static void run_many_queries(void) { run_attention(12); }

static void run_gradients(void)
{
    const mica__attr_attention attr = {.scale = 1};
    util_tensor in[] = {dense(MICA_F32, SHAPE(1, 1, 3, 8)), dense(MICA_F32, SHAPE(1, 1, 9, 8)),
                        dense(MICA_F32, SHAPE(1, 1, 9, 8)), dense(MICA_F32, SHAPE(1, 1, 3, 8))};
    run(MICA__OP_ATTENTION_GRAD, in, 4, &attr, util_spec(MICA_F32, SHAPE(24 + 72 + 72)));
}

static void run_take(void)
{
    const mica__attr_take attr = {.axis = 0};
    util_tensor in[] = {dense(MICA_F32, SHAPE(5)), dense(MICA_I64, SHAPE(70))};
    memset(in[1].memory, 0, in[1].nbytes);
    run(MICA__OP_TAKE, in, 2, &attr, util_spec(MICA_F32, SHAPE(70)));
}

static void run_quant(mica__quant_id id, int64_t count, mica_act act)
{
    const mica__attr_quant attr = {.format = id, .rows = 20, .cols = 640, .act = act};
    size_t nbytes = 0;
    (void)mica__quant_nbytes(id, SHAPE(20, 640), &nbytes);
    util_tensor in[] = {dense(MICA_F32, SHAPE(count, 640)), dense(MICA_U8, SHAPE((int64_t)nbytes))};
    float x[20 * 640] = {0};
    (void)EXPECT(mica__quant_pack(id, x, 20, 640, in[1].memory) == MICA_OK);
    run(MICA__OP_QMATMUL, in, 2, &attr, util_spec(MICA_F32, SHAPE(count, 20)));
}

static void run_t2(void) { run_quant(MICA__QUANT_MICA_T2, 2, MICA_ACT_TOKEN); }
static void run_q8(void) { run_quant(MICA__QUANT_MICA_Q8, 2, MICA_ACT_NONE); }
static void run_quant_tile(void) { run_quant(MICA__QUANT_Q8_0, 10, MICA_ACT_NONE); }

static void run_synapses(void)
{
    const int64_t rows = 33, cols = 40; /* enough lanes for several simdgroups to share the rows */
    util_tensor in[5] = {dense(MICA_F32, SHAPE(20, rows))};
    for (int i = 1; i < 5; i++) in[i] = dense(MICA_F32, SHAPE(rows, cols));
    run(MICA__OP_SYNAPSES, in, 5, NULL, util_spec(MICA_F32, SHAPE(20, 2, cols)));
}

/* Lists; several simdgroups share the columns. */
static void run_synapse_lists(void)
{
    const int64_t n = 40, sources = 12, cols = 30, synapses = 300, size = n * sources + 4 * synapses;
    util_tensor in[8] = {dense(MICA_F32, SHAPE(n, sources))};
    for (int i = 1; i < 5; i++) in[i] = dense(MICA_F32, SHAPE(synapses));
    in[5] = dense(MICA_I32, SHAPE(synapses));
    in[6] = dense(MICA_I32, SHAPE(cols + 1));
    for (int64_t i = 0; i < synapses; i++) mica__set_i64(MICA_I32, in[5].t.data, i, i * 5 % sources);
    for (int64_t c = 0; c <= cols; c++) mica__set_i64(MICA_I32, in[6].t.data, c, c * 10);
    in[7] = dense(MICA_F32, SHAPE(n, 2, cols));
    run(MICA__OP_SYNAPSES_GRAD, in, 8, NULL, util_spec(MICA_F32, SHAPE(size)));
}

/* The run that needs the barriers of a function ("": of any other function) of a file, and the
 * shader that contains the file. */
static const struct {
    const char *file, *function, *shader;
    void (*run)(void);
} cases[] = {
    {"common.metal", "row_sum", "norm", run_norm},
    {"common.metal", "row_max", "softmax", run_softmax},
    {"common.metal", "row_pair_sum", "norm", run_norm},
    {"common.metal", "group_min", "index", run_take},
    {"argreduce.metal", "", "argreduce", run_argmax},
    {"cumulative.metal", "", "cumulative", run_cumsum},
    {"sort.metal", "", "sort", run_sort},
    {"sort.metal", "", "sort", run_sort_blocks},
    {"matmul.metal", "matmul_tile", "matmul", run_matmul},
    {"matmul.metal", "matmul_beside", "matmul", run_vectors},
    {"conv.metal", "", "conv", run_conv},
    {"attention.metal", "attention_rows", "attention", run_few_queries},
    {"attention.metal", "attention_tile", "attention", run_many_queries},
    {"attention_grad.metal", "", "attention_grad", run_gradients},
    {"synapses.metal", "simds_sum", "synapses", run_synapses},
    {"synapses.metal", "synapses_lists_backward_x", "synapses", run_synapse_lists},
    {"quant_codes.metal", "quant_panels", "quant_codes", run_t2},
    {"quant_values.metal", "quant_panel8", "quant_values", run_q8},
    {"quant_tile.metal", "quant_tile", "quant_tile", run_quant_tile},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Runs the case with this text and always the same inputs. */
static sm_status run_case(int number, const char *text)
{
    shader_forget();
    util_state = 1;
    shader_mutant = text;
    shader_mutant_name = cases[number].shader;
    shader_mutant_status = SM_OK;
    cases[number].run();
    shader_mutant = NULL;
    shader_forget();
    return shader_mutant_status;
}

/* The name of the function that a line begins, if it does. */
static void function_of(const char *line, char function[64])
{
    (void)sscanf(line, "kernel void %63[a-z0-9_]", function);
    (void)sscanf(line, "inline %*s %63[a-z0-9_]", function);
}

/* Every barrier of a case. */
static void barriers_of(int number, void (*change)(char *at))
{
    static char text[1 << 18];
    char file[64] = "", function[64] = "", whole[64];
    int line = 0, n = 0;
    snprintf(whole, sizeof whole, "%s.metal", cases[number].shader);
    snprintf(text, sizeof text, "%s", shader_whole(whole));
    for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
        char saved[80];
        line++;
        if (sscanf(p, "#line %d \"%63[^\"]\"", &line, file) == 2) line--;
        function_of(p, function);
        char *at = strstr(p, "_barrier(mem_flags::");
        if (!at || at > end || strcmp(file, cases[number].file) != 0) continue;
        if (cases[number].function[0] && strcmp(function, cases[number].function) != 0) continue;
        n++;
        while (at > p && at[-1] != ' ') at--;
        memcpy(saved, at, sizeof saved);
        change(at);
        test_case("%s:%d in %s", file, line, function);
        (void)EXPECT_MSG(run_case(number, text) == SM_CHECKED, "not detected");
        memcpy(at, saved, sizeof saved);
    }
    (void)EXPECT_MSG(n > 0, "no barrier in %s %s", cases[number].file, cases[number].function);
}

static void all_barriers(void (*change)(char *at))
{
    setenv("SM_CHECK", "1", 1);
    unsetenv("SM_COVER"); /* the coverage of mutants does not count */
    for (int c = 0; c < CASES; c++) barriers_of(c, change);
}

/* Fails if a shader has a barrier that no case covers. */
TEST(every_barrier_has_a_case)
{
    int here = 0, known = 0;
    const char *name;
    for (size_t i = 0; (name = mica__shader_name(i)); i++) {
        char file[64] = "", function[64] = "";
        if (strcmp(strrchr(name, '.'), ".metal") != 0) continue;
        for (const char *p = shader_whole(name), *end; (end = strchr(p, '\n')); p = end + 1) {
            (void)sscanf(p, "#line %*d \"%63[^\"]\"", file);
            function_of(p, function);
            const char *at = strstr(p, "_barrier(mem_flags::");
            if (!at || at > end || strcmp(file, name) != 0) continue;
            bool found = false;
            for (int c = 0; c < CASES; c++)
                found |= strcmp(cases[c].file, file) == 0 &&
                         (!cases[c].function[0] || strcmp(cases[c].function, function) == 0);
            (void)EXPECT_MSG(found, "no case for the barriers in %s of %s", function, file);
            here++;
            known += found;
        }
    }
    (void)EXPECT(here > 40);
    (void)EXPECT_INT(known, here);
}

static void delete_it(char *at)
{
    for (; *at != ';'; at++) *at = ' ';
}

/* Spaces fill up the shorter name, so that the length of the text does not change. */
static void other_memory(char *at)
{
    char *kind = strstr(at, "mem_threadgroup");
    memcpy(kind, "mem_device     ", 15);
}

TEST(every_deleted_barrier_is_noticed)
{
    NEED_SOFTMETAL();
    all_barriers(delete_it);
}

TEST(every_barrier_of_the_wrong_memory_is_noticed)
{
    NEED_SOFTMETAL();
    all_barriers(other_memory);
}

/* ---------------------------------------------------------------- bounds ---- */

/* Places where an off-by-one change is not an error, or has no effect. */
static const struct {
    const char *file, *text, *why;
} harmless[] = {
    {"cumulative.metal", "for (uint first = 0; first < p.n;", "a turn in which no thread has an element"},
    {"attention.metal", "for (uint d0 = 0; d0 < p.dims;", "a turn that adds products of zeros"},
    {"quant_tile.metal", "for (uint k0 = 0; k0 < p.cols;", "a turn that adds products of zeros"},
    {"index.metal", "for (uint i = at; i < p.count && bad == ~0u;", "view_at counts around: the first index, again"},
};

static bool is_harmless(const char *file, const char *line)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(harmless[i].file, file) == 0 && strncmp(line, harmless[i].text, strlen(harmless[i].text)) == 0)
            return true;
    return false;
}

/* Returns whether a case of this shader detects the changed text. */
static bool is_noticed(const char *shader, const char *text, const uint64_t right[CASES])
{
    for (int c = 0; c < CASES; c++)
        if (strcmp(cases[c].shader, shader) == 0 && (run_case(c, text) != SM_OK || last_result != right[c]))
            return true;
    return false;
}

/* The next comparison with a size in a line; NULL: none. */
static char *bound_in(char *p, const char *end)
{
    for (; p + 6 < end; p++)
        if (strncmp(p, " < p.", 5) == 0 || strncmp(p, " >= p.", 6) == 0) return p;
    return NULL;
}

/* Without MICA_TEST_DENSE only one in SAMPLE: each needs one or two kernels to be compiled. */
enum { SAMPLE = 20 };

/* The comparisons in one shader's own file. Those that no case needs are not counted. */
static void bounds_of(const char *shader, const uint64_t right[CASES], int *counted)
{
    static char text[1 << 18];
    const bool all = getenv("MICA_TEST_DENSE") != NULL;
    char file[64] = "", whole[64];
    int line = 0, n = 0;
    snprintf(whole, sizeof whole, "%s.metal", shader);
    snprintf(text, sizeof text, "%s", shader_whole(whole));
    for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
        line++;
        if (sscanf(p, "#line %d \"%63[^\"]\"", &line, file) == 2) line--;
        if (strcmp(file, whole) != 0) continue;
        for (char *at = p; (at = bound_in(at, end)); at += 5) {
            char *sign = at + (at[1] == '<' ? 2 : 3);
            if (!all && n++ % SAMPLE != 0) continue;
            test_case("%s:%d, column %d", file, line, (int)(at - p));
            if (at[1] == '<') at[2] = '=';
            else at[2] = ' ';
            const bool shifted = is_noticed(shader, text, right);
            at[2] = at[1] == '<' ? ' ' : '=';
            *sign = '-'; /* a negated unsigned number removes the bound */
            const bool removed = shifted || is_noticed(shader, text, right);
            *sign = ' ';
            *counted += removed;
            const char *code = p + strspn(p, " ");
            (void)EXPECT_MSG(shifted || !removed || is_harmless(file, code), "not detected: %.100s", code);
        }
    }
}

TEST(every_shifted_bound_is_noticed)
{
    NEED_SOFTMETAL();
    uint64_t right[CASES];
    int counted = 0;
    setenv("SM_CHECK", "1", 1);
    unsetenv("SM_COVER");
    for (int c = 0; c < CASES; c++) {
        (void)EXPECT_INT(run_case(c, NULL), SM_OK);
        right[c] = last_result;
    }
    for (int c = 0; c < CASES; c++) {
        bool first = true;
        for (int before = 0; before < c; before++) first &= strcmp(cases[before].shader, cases[c].shader) != 0;
        if (first) bounds_of(cases[c].shader, right, &counted);
    }
    (void)EXPECT_MSG(counted > 5, "%d bounds at work", counted);
}
