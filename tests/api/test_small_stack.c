/* Every op and its gradient on a thread with a stack of 64 KB, on the cpu and the ref backend: the
 * programs of the parity and gradient tests, without their comparisons. Engines have one thread
 * where it matters, so that the thread with the small stack runs every kernel itself.
 *
 * runs: unsanitized */
#include "grad/cases_loop.h"
#include "grad/cases_map.h"
#include "grad/cases_move.h"
#include "grad/cases_nn.h"
#include "parity_programs.h"
#include "quant/quant.h"
#include "small_stack.h"

static const char *const stack_backends[] = {"cpu", "ref"};
enum { STACK_BACKENDS = 2 };

/* The rest of the 64 KB is for the calling program, and for C libraries that use more stack than this one. */
enum { STACK_MOST = 48 * 1024 };

static void run_small(void (*run)(void *), void *user)
{
    const size_t used = small_stack_run(SMALL_STACK, run, user);
    EXPECT_MSG(used <= STACK_MOST, "uses %zu bytes of stack, more than %d", used, STACK_MOST);
}

/* ------------------------------------------------------------------ ops ---- */

static void run_inputs(mica_engine *e, const parity_call *call, const parity_shape *row, parity_layout layout)
{
    parity_input in[PARITY_MAX_IN];
    static parity_result out;
    parity_inputs_make(call, row, layout, (uint64_t)call->c->op * 31 + (uint64_t)layout, in);
    parity_run(e, call, in, &out);
    EXPECT_MSG(out.status == MICA_OK || out.status == MICA_ERR_SHAPE, "%s", out.error);
    parity_result_free(&out);
    parity_inputs_free(call->c, in);
}

static void run_case(mica_engine *e, const parity_case *c, mica_dtype dtype)
{
    for (int variant = 0; variant < c->n_variant; variant++) {
        const parity_call call = {c, dtype, variant};
        for (int i = 0; i < c->n_shape; i++) {
            const parity_shape *row = c->n_in ? &c->shapes[i * c->n_in] : NULL;
            run_inputs(e, &call, row, PARITY_CONTIGUOUS);
            if (c->n_in > 0 && row[0].ndim > 0)
                run_inputs(e, &call, row, (parity_layout)(1 + (variant + i) % (PARITY_LAYOUTS - 1)));
        }
    }
}

static void run_dtypes(mica_engine *e, const parity_case *c)
{
    const uint32_t wanted = c->dtypes ? c->dtypes : parity_rule_dtypes(c->op);
    for (int d = 0; d < MICA__DTYPE_COUNT; d++) {
        if (!(wanted >> d & 1)) continue;
        test_case("%s: %s %s", mica_engine_backend(e), c->name, mica_dtype_name((mica_dtype)d));
        run_case(e, c, (mica_dtype)d);
    }
}

static void run_ops(void *backend)
{
    static const parity_case *const tables[] = {parity_cases_view, parity_cases_reduce, parity_cases_nn,
                                                parity_cases_index, parity_cases_loop};
    mica_engine *e = parity_engine(backend, MICA_PASS_ALL, 1);
    for (int op = 0; op < MICA__OP_COUNT; op++) {
        static parity_case c;
        if (parity_map_case((mica__op)op, &c)) run_dtypes(e, &c);
    }
    for (int t = 0; t < PARITY_COUNT(tables); t++)
        for (const parity_case *c = tables[t]; c->name; c++) run_dtypes(e, c);
    mica_close(e);
}

TEST(every_op_on_cpu) { run_small(run_ops, "cpu"); }
TEST(every_op_on_ref) { run_small(run_ops, "ref"); }

/* ------------------------------------------------------------- programs ---- */

static void run_programs(void *threads)
{
    static const parity_program *const tables[] = {parity_programs_map, parity_programs_nn, parity_programs_large};
    mica_engine *e = parity_engine("cpu", MICA_PASS_ALL, *(const int *)threads);
    for (int t = 0; t < PARITY_COUNT(tables); t++)
        for (const parity_program *p = tables[t]; p->c.name; p++) {
            const uint32_t dtypes = p->c.dtypes ? p->c.dtypes : 1u << MICA_F32 | 1u << MICA_BF16;
            test_case("%s, %d threads", p->c.name, *(const int *)threads);
            for (int d = 0; d < MICA__DTYPE_COUNT; d++)
                if (dtypes >> d & 1) run_case(e, &p->c, (mica_dtype)d);
        }
    mica_close(e);
}

TEST(programs_on_one_thread) { run_small(run_programs, &(int){1}); }
TEST(programs_on_three_threads) { run_small(run_programs, &(int){3}); }

/* ------------------------------------------------------------ gradients ---- */

static void run_gradient(mica_engine *e, const grad_case *c)
{
    static double values[GRAD_MAX_ELEMENTS];
    grad_rng rng = {(uint64_t)c->op * 1000 + 17};
    mica_scope *s = mica_scope_begin(e);
    mica_array *x[GRAD_MAX_IN], *g[GRAD_MAX_IN];
    for (int i = 0; i < c->n; i++) {
        grad_fill(&rng, c->in[i].low, c->in[i].high, grad_count(c->in[i].ndim, c->in[i].shape), values);
        x[i] = grad_array(s, MICA_F32, c->in[i].ndim, c->in[i].shape, values);
    }
    mica_array *loss = grad_dot(s, c->build(s, x), 1);
    EXPECT_MSG(mica_grad(s, loss, x, (size_t)c->n, g) == MICA_OK && mica_eval(s, g, (size_t)c->n) == MICA_OK, "%s",
               mica_last_error());
    mica_scope_end(s);
}

static void run_gradients(void *backend)
{
    static const struct {
        const grad_case *cases;
        size_t n;
    } tables[] = {{grad_cases_map, sizeof grad_cases_map / sizeof *grad_cases_map},
                  {grad_cases_move, sizeof grad_cases_move / sizeof *grad_cases_move},
                  {grad_cases_nn, sizeof grad_cases_nn / sizeof *grad_cases_nn},
                  {grad_cases_loop, sizeof grad_cases_loop / sizeof *grad_cases_loop}};
    mica_engine *e = parity_engine(backend, MICA_PASS_ALL, 1);
    for (int t = 0; t < PARITY_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t].n; i++) {
            test_case("%s: gradient of %s", (const char *)backend, tables[t].cases[i].name);
            run_gradient(e, &tables[t].cases[i]);
        }
    mica_close(e);
}

TEST(every_gradient_on_cpu) { run_small(run_gradients, "cpu"); }
TEST(every_gradient_on_ref) { run_small(run_gradients, "ref"); }

/* ---------------------------------------------------------- large sizes ---- */

typedef struct stack_size {
    int64_t n;
    mica_dtype dtype;
    bool gelu;
    int threads;
    size_t stack;
} stack_size;

static void run_product(void *user)
{
    const stack_size *size = user;
    mica_engine *e = parity_engine("cpu", MICA_PASS_ALL, size->threads);
    mica_scope *s = mica_scope_begin(e);
    const int64_t shape[] = {size->n, size->n};
    mica_array *a = mica_cast(s, mica_random_normal(s, MICA_F32, 2, shape, 1), size->dtype);
    mica_array *b = mica_cast(s, mica_random_normal(s, MICA_F32, 2, shape, 2), size->dtype);
    mica_array *given[] = {a, b};
    EXPECT(mica_eval(s, given, 2) == MICA_OK);
    mica_array *y = mica_matmul(s, a, b);
    if (size->gelu) y = mica_gelu(s, y);
    EXPECT_MSG(mica_eval(s, &y, 1) == MICA_OK, "%s", mica_last_error());
    mica_scope_end(s);
    mica_close(e);
}

TEST(large_products)
{
    static stack_size sizes[] = {{512, MICA_F32, true, 1, 144 * 1024},   {512, MICA_F32, true, 2, 144 * 1024},
                                 {512, MICA_F32, true, 1, SMALL_STACK},  {512, MICA_F32, true, 2, SMALL_STACK},
                                 {512, MICA_F16, true, 1, SMALL_STACK},  {512, MICA_BF16, true, 1, SMALL_STACK},
                                 {512, MICA_I8, false, 1, SMALL_STACK},  {1536, MICA_F32, false, 1, 192 * 1024},
                                 {1536, MICA_F32, false, 2, SMALL_STACK}};
    for (int i = 0; i < PARITY_COUNT(sizes); i++) {
        test_case("%s(%d, %d) %s, %d threads, stack %zu", sizes[i].gelu ? "gelu matmul" : "matmul", (int)sizes[i].n,
                  (int)sizes[i].n, mica_dtype_name(sizes[i].dtype), sizes[i].threads, sizes[i].stack);
        const size_t used = small_stack_run(sizes[i].stack, run_product, &sizes[i]);
        EXPECT_MSG(used <= STACK_MOST, "uses %zu bytes of stack, more than %d", used, STACK_MOST);
    }
}

/* -------------------------------------------------------- block formats ---- */

static void run_format(mica_engine *e, const char *format, int64_t tokens, mica_act act)
{
    enum { ROWS = 80, COLS = 768 };
    static float values[ROWS * COLS];
    static uint8_t blocks[ROWS * COLS * 8 + 1024];
    for (int i = 0; i < ROWS * COLS; i++) values[i] = (float)(i % 3 - 1);
    const size_t nbytes = mica_quant_nbytes(format, ROWS, COLS);
    CHECK(nbytes > 0 && nbytes <= sizeof blocks);
    mica_scope *s = mica_scope_begin(e);
    const int64_t bytes = (int64_t)nbytes, shape[] = {tokens, COLS};
    EXPECT_MSG(mica_quant_pack(format, ROWS, COLS, values, blocks, nbytes) == MICA_OK, "%s", mica_last_error());
    const mica_quant w = {.struct_size = sizeof w,
                          .format = format,
                          .rows = ROWS,
                          .cols = COLS,
                          .data = mica_from_data(s, MICA_U8, 1, &bytes, blocks)};
    mica_array *x = mica_random_normal(s, MICA_F32, 2, shape, 3);
    for (int again = 0; again < 2; again++) { /* the second round uses packed weights */
        mica_array *ids = mica_from_data(s, MICA_I32, 1, (int64_t[]){2}, (int32_t[]){1, 70});
        mica_array *y[] = {mica_gelu(s, mica_quant_matmul(s, x, &w, act)), mica_quant_rows(s, &w, ids)};
        EXPECT_MSG(mica_eval(s, y, 2) == MICA_OK, "%s", mica_last_error());
    }
    mica_scope_end(s);
}

static void run_formats(void *backend)
{
    static const int64_t tokens[] = {1, 3, 40, 200};
    mica_engine *e = parity_engine(backend, MICA_PASS_ALL, 1);
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *quant = mica__quant_get((mica__quant_id)id);
        if (!quant->pack || (quant->dtype >= 0 && !mica__is_float((mica_dtype)quant->dtype))) continue;
        test_case("%s: %s", (const char *)backend, quant->name);
        for (int i = 0; i < PARITY_COUNT(tokens); i++)
            for (int act = MICA_ACT_NONE; act <= MICA_ACT_BLOCK256; act++)
                run_format(e, quant->name, tokens[i], (mica_act)act);
    }
    mica_close(e);
}

TEST(block_formats)
{
    for (int i = 0; i < STACK_BACKENDS; i++) run_small(run_formats, (void *)(uintptr_t)stack_backends[i]);
}
