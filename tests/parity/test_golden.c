/* Every op against values from NumPy and PyTorch (tests/golden), on each backend, with and without
 * the passes, with four layouts of the inputs. Gradients are checked through mica_vjp. Every
 * function of mica.h that takes a scope needs a golden case, or an oracle in the table of ops
 * (test_oracle.c).
 *
 * runs: metal, arm, check, check@metal */
#include "golden_file.h"
#include "golden_ops.h"
#include "on_device.h"
#include "op_facts.h"

/* ---------------------------------------------------------- input layout -- */

typedef enum golden_layout {
    LAYOUT_PLAIN,                /* row-major, copied in                                */
    LAYOUT_AGAIN,                /* the same, so that the plan comes from the cache     */
    LAYOUT_PERMUTED,             /* axes in reverse order in memory, mica_permute back  */
    LAYOUT_STEPPED,              /* every second element, odd axes backwards, by slice  */
    LAYOUT_WRAPPED,              /* the caller's memory, with gaps and negative strides */
    LAYOUT_COUNT
} golden_layout;

static const char *const layout_names[LAYOUT_COUNT] = {"plain", "again", "permuted", "stepped", "wrapped"};

static int n_released;

static void release_memory(void *data, void *user)
{
    (void)data;
    n_released++;
    free(user);
}

/* Elements of a (row-major) to dst + offset, with the strides given in elements. */
static void spread(const golden_array *a, char *dst, int64_t offset, const int64_t *strides)
{
    const size_t size = mica_dtype_size(a->dtype);
    int64_t index[MICA_MAX_DIMS] = {0};
    for (size_t i = 0; i < a->n; i++) {
        int64_t at = offset;
        for (int d = 0; d < a->ndim; d++) at += index[d] * strides[d];
        memcpy(dst + (size_t)at * size, (const char *)a->data + i * size, size);
        for (int d = a->ndim - 1; d >= 0 && ++index[d] == a->shape[d]; d--) index[d] = 0;
    }
}

static mica_array *permuted(mica_scope *s, const golden_array *a)
{
    int64_t shape[MICA_MAX_DIMS], strides[MICA_MAX_DIMS], step = 1;
    int axes[MICA_MAX_DIMS];
    for (int d = 0; d < a->ndim; d++) {
        axes[d] = a->ndim - 1 - d;
        shape[d] = a->shape[a->ndim - 1 - d];
        strides[d] = step;
        step *= a->shape[d];
    }
    char *memory = golden_alloc(a->n, mica_dtype_size(a->dtype));
    spread(a, memory, 0, strides);
    mica_array *x = mica_permute(s, mica_from_data(s, a->dtype, a->ndim, shape, memory), axes);
    free(memory);
    return x;
}

/* A row-major box in which the array is elements 1, 3, 5 ... of each axis, in reverse on
 * odd axes. The elements in between are NaN, -1 or true. */
static char *stepped_box(const golden_array *a, int64_t *box, int64_t *strides, int64_t *offset)
{
    int64_t step = 1;
    *offset = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        box[d] = 2 * a->shape[d] + 1;
        strides[d] = d % 2 ? -2 * step : 2 * step;
        *offset += (d % 2 ? 2 * a->shape[d] - 1 : 1) * step;
        step *= box[d];
    }
    if (a->n == 0) *offset = 0;
    const size_t nbytes = (size_t)step * mica_dtype_size(a->dtype);
    char *memory = golden_alloc(nbytes, 1);
    memset(memory, a->dtype == MICA_BOOL ? 1 : 0xff, nbytes);
    spread(a, memory, *offset, strides);
    return memory;
}

static mica_array *stepped(mica_scope *s, const golden_array *a)
{
    int64_t box[MICA_MAX_DIMS], strides[MICA_MAX_DIMS], offset;
    int64_t start[MICA_MAX_DIMS], stop[MICA_MAX_DIMS], step[MICA_MAX_DIMS];
    char *memory = stepped_box(a, box, strides, &offset);
    for (int d = 0; d < a->ndim; d++) {
        const bool empty = a->shape[d] == 0;
        start[d] = empty ? 0 : d % 2 ? -2 : 1;
        stop[d] = empty ? 0 : MICA_AUTO;
        step[d] = d % 2 ? -2 : 2;
    }
    mica_array *x = mica_slice(s, mica_from_data(s, a->dtype, a->ndim, box, memory), start, stop, step);
    free(memory);
    return x;
}

static mica_array *wrapped(mica_scope *s, const golden_array *a)
{
    int64_t box[MICA_MAX_DIMS], strides[MICA_MAX_DIMS], offset;
    char *memory = stepped_box(a, box, strides, &offset);
    const char *first = memory + (size_t)offset * mica_dtype_size(a->dtype);
    return mica_wrap(s, a->dtype, a->ndim, a->shape, strides, first, release_memory, memory);
}

static mica_array *make_input(mica_scope *s, const golden_array *a, golden_layout layout)
{
    if (a->kind == GOLDEN_NULL) return NULL;
    if (a->kind == GOLDEN_SCALAR) return mica_scalar(s, a->scalar);
    switch (layout) {
    case LAYOUT_PERMUTED: return permuted(s, a);
    case LAYOUT_STEPPED: return stepped(s, a);
    case LAYOUT_WRAPPED: return wrapped(s, a);
    default: return mica_from_data(s, a->dtype, a->ndim, a->shape, a->data);
    }
}

/* ------------------------------------------------------------- comparing -- */

typedef struct golden_view {
    const golden_case *c;
    const char *layout;
} golden_view;

static bool float_matches(const golden_case *c, double got, double want, double rtol, double atol)
{
    if (isnan(want)) return c->nan_free || isnan(got);
    if (c->signed_zero && got == 0 && want == 0) return !signbit(got) == !signbit(want);
    return test_close(got, want, rtol, atol);
}

static bool same_values(golden_view v, const char *what, size_t k, const golden_array *want, const void *got,
                        double rtol, double atol)
{
    const size_t size = mica_dtype_size(want->dtype);
    for (size_t i = 0; i < want->n; i++) {
        if (golden_is_float(want->dtype)) {
            const double g = golden_get_float(want->dtype, got, i), w = golden_get_float(want->dtype, want->data, i);
            if (float_matches(v.c, g, w, rtol, atol)) continue;
            return EXPECT_MSG(false,
                              "%s: %s %zu, element %zu of %zu: %.17g, not %.17g (off by %.3g, rtol %.3g, atol %.3g)",
                              v.layout, what, k, i, want->n, g, w, fabs(g - w), rtol, atol);
        }
        if (memcmp((const char *)got + i * size, (const char *)want->data + i * size, size) == 0) continue;
        char g[24], w[24];
        golden_print_int(g, want->dtype, got, i);
        golden_print_int(w, want->dtype, want->data, i);
        return EXPECT_MSG(false, "%s: %s %zu, element %zu of %zu: %s, not %s", v.layout, what, k, i, want->n, g, w);
    }
    return true;
}

static bool same_array(golden_view v, const char *what, size_t k, const golden_array *want, mica_array *got,
                       double rtol, double atol)
{
    if (!EXPECT_MSG(mica_array_dtype(got) == want->dtype, "%s: %s %zu is %s, not %s", v.layout, what, k,
                    mica_dtype_name(mica_array_dtype(got)), mica_dtype_name(want->dtype)))
        return false;
    if (!EXPECT_MSG(mica_array_ndim(got) == want->ndim, "%s: %s %zu has %d dimensions, not %d", v.layout, what, k,
                    mica_array_ndim(got), want->ndim))
        return false;
    const int64_t *shape = mica_array_shape(got);
    for (int d = 0; d < want->ndim; d++)
        if (!EXPECT_MSG(shape[d] == want->shape[d], "%s: %s %zu: axis %d has size %" PRId64 ", not %" PRId64, v.layout,
                        what, k, d, shape[d], want->shape[d]))
            return false;
    const size_t nbytes = want->n * mica_dtype_size(want->dtype);
    void *values = golden_alloc(nbytes, 1);
    const bool ok = EXPECT_MSG(mica_copy_out(got, values, nbytes) == MICA_OK, "%s: %s %zu: %s", v.layout, what, k,
                               mica_last_error()) &&
                    same_values(v, what, k, want, values, rtol, atol);
    free(values);
    return ok;
}

/* --------------------------------------------------------------- running -- */

typedef struct golden_results {
    mica_array *out[GOLDEN_MAX_ARRAYS], *grad[GOLDEN_MAX_ARRAYS], *grad2[GOLDEN_MAX_ARRAYS];
} golden_results;

static bool build_gradients(mica_scope *s, golden_view v, mica_array *const *in, golden_results *r)
{
    const golden_case *c = v.c;
    mica_array *cot[GOLDEN_MAX_ARRAYS], *cot2[GOLDEN_MAX_ARRAYS], *wrt[GOLDEN_MAX_ARRAYS];
    for (size_t i = 0; i < c->n_wrt; i++) wrt[i] = in[c->wrt[i]];
    for (size_t i = 0; i < c->cot.n; i++) cot[i] = make_input(s, &c->cot.items[i], LAYOUT_PLAIN);
    if (!EXPECT_MSG(mica_vjp(s, r->out, cot, c->cot.n, wrt, c->n_wrt, r->grad) == MICA_OK, "%s: vjp: %s", v.layout,
                    mica_last_error()))
        return false;
    if (c->cot2.n == 0) return true;
    for (size_t i = 0; i < c->cot2.n; i++) cot2[i] = make_input(s, &c->cot2.items[i], LAYOUT_PLAIN);
    return EXPECT_MSG(mica_vjp(s, r->grad, cot2, c->n_wrt, wrt, c->n_wrt, r->grad2) == MICA_OK, "%s: vjp of vjp: %s",
                      v.layout, mica_last_error());
}

static bool same_list(golden_view v, const char *what, const golden_list *want, mica_array *const *got, double rtol,
                      double atol)
{
    for (size_t i = 0; i < want->n; i++)
        if (!same_array(v, what, i, &want->items[i], got[i], rtol, atol)) return false;
    return true;
}

static bool run_in_scope(mica_scope *s, const golden_op *op, golden_view v, golden_layout layout)
{
    const golden_case *c = v.c;
    mica_array *in[GOLDEN_MAX_ARRAYS] = {NULL}, *all[3 * GOLDEN_MAX_ARRAYS];
    golden_results r = {{NULL}, {NULL}, {NULL}};
    for (size_t i = 0; i < c->in.n; i++) in[i] = make_input(s, &c->in.items[i], layout);
    op->build(s, c, in, r.out);

    if (c->status) {
        const mica_status got = mica_eval(s, r.out, 1);
        return EXPECT_MSG((int)got == c->status, "%s: %s, not %s (%s)", v.layout, mica_status_text(got),
                          mica_status_text((mica_status)c->status), mica_last_error());
    }
    if (!EXPECT_MSG(mica_scope_status(s) == MICA_OK, "%s: %s", v.layout, mica_scope_error(s))) return false;
    if (c->n_wrt && !build_gradients(s, v, in, &r)) return false;

    size_t n = 0;
    for (size_t i = 0; i < c->out.n; i++) all[n++] = r.out[i];
    for (size_t i = 0; i < c->grad.n; i++) all[n++] = r.grad[i];
    for (size_t i = 0; i < c->grad2.n; i++) all[n++] = r.grad2[i];
    if (!EXPECT_MSG(mica_eval(s, all, n) == MICA_OK, "%s: eval: %s", v.layout, mica_last_error())) return false;
    return same_list(v, "result", &c->out, r.out, c->rtol, c->atol) &&
           same_list(v, "gradient", &c->grad, r.grad, c->grad_rtol, c->grad_atol) &&
           same_list(v, "second gradient", &c->grad2, r.grad2, c->grad_rtol, c->grad_atol);
}

/* On the software GPU compiling takes most of the time: only one case in sixteen, in one layout. */
static bool sampled(void) { return on_metal() && !getenv("MICA_TEST_DENSE"); }

/* Only inputs of rank 0, or no inputs: all layouts are equal. */
static bool has_one_layout(const golden_case *c)
{
    for (size_t i = 0; i < c->in.n; i++)
        if (c->in.items[i].kind == GOLDEN_ARRAY && c->in.items[i].ndim > 0) return false;
    return true;
}

static void run_case(mica_engine *engine, const golden_op *op, const golden_case *c)
{
    const int n_layouts = sampled() ? 1 : has_one_layout(c) ? LAYOUT_AGAIN + 1 : LAYOUT_COUNT;
    for (int layout = 0; layout < n_layouts; layout++) {
        const golden_view v = {c, layout_names[layout]};
        mica_scope *s = mica_scope_begin(engine);
        CHECK_MSG(s, "no scope: %s", mica_last_error());
        int n_wrapped = 0;
        for (size_t i = 0; i < c->in.n; i++)
            n_wrapped += layout == LAYOUT_WRAPPED && c->in.items[i].kind == GOLDEN_ARRAY;
        n_released = 0;
        const bool ok = run_in_scope(s, op, v, (golden_layout)layout);
        mica_scope_end(s);
        CHECK_MSG(n_released == n_wrapped, "%d of %d wrapped inputs were released", n_released, n_wrapped);
        if (!ok) return;
    }
}

static const char *tests_dir(void)
{
    const char *dir = getenv("MICA_TEST_DIR");
    if (dir) return dir;
#ifdef MICA_TEST_DIR
    return MICA_TEST_DIR;
#else
    /* Tests are compiled and run from the project's root. */
    static char path[1024];
    snprintf(path, sizeof path, "%s", __FILE__);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash) *slash = 0;
    }
    return path;
#endif
}

typedef struct golden_config {
    const char *name, *backend;
    uint32_t passes;
} golden_config;

static const golden_config configs[] = {
    {"ref", "ref", MICA_PASS_ALL},
    {"cpu", "cpu", MICA_PASS_ALL},
    {"ref without passes", "ref", 0},
    {"cpu without passes", "cpu", 0},
};

static void run_file_on(const golden_config *config, const char *name, const char *text)
{
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = device_for(config->backend);
    options.passes = config->passes;
    mica_engine *engine;
    CHECK_MSG(mica_open(&options, &engine) == MICA_OK, "backend %s: %s", config->backend, mica_last_error());

    const size_t length = strlen(text);
    golden_file file = {golden_alloc(length + 1, 1), NULL, name, 0};
    memcpy(file.text, text, length + 1);
    file.next = file.text;
    golden_case *c = golden_alloc(1, sizeof *c);
    for (int i = 0; golden_next(&file, c); i++) {
        const golden_op *op = golden_op_named(c->op);
        if (!sampled() || i % 16 == 0) {
            test_case("%s: %s", config->name, c->name);
            if (EXPECT_MSG(op, "no builder for op %s", c->op)) run_case(engine, op, c);
        }
        golden_free_case(c);
    }
    free(c);
    free(file.text);
    mica_close(engine);
}

static void run_file(const char *name)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/golden/%s.txt", tests_dir(), name);
    char *text = golden_slurp(path);
    CHECK_MSG(text, "cannot read %s", path);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        if (!on_metal() || (configs[i].passes && strcmp(configs[i].backend, "cpu") == 0))
            run_file_on(&configs[i], path, text);
    free(text);
}

/* clang-format off */
#define GOLDEN_FILES(X)                                                                                          \
    X(unary) X(binary) X(integer) X(ternary) X(broadcast) X(dtype) X(create) X(random) X(view) X(reduce)     \
    X(index) X(sort) X(nn) X(grad) X(large) X(model) X(layers)
/* clang-format on */

#define FILE_TEST(name) \
    TEST(golden_##name) { run_file(#name); }
GOLDEN_FILES(FILE_TEST)

/* -------------------------------------------------------------- coverage -- */

/* Calls that take a scope and are not ops; scalars are inputs of other cases. */
static const char *const no_op[] = {
    "scalar", "eval", "eval_async",     "prepare", "plan_query", "plan_text",
    "grad",   "vjp",  "value_and_grad", "call",    "file_array",
};

/* Returns whether list contains the word. */
static bool has_word(const char *list, const char *word, size_t length)
{
    for (const char *p = list; *p;) {
        const size_t n = strcspn(p, " ");
        if (n == length && strncmp(p, word, n) == 0) return true;
        p += n + (p[n] != 0);
    }
    return false;
}

static int cases_of(const char *call, size_t length)
{
    int n = 0;
    for (size_t i = 0; i < GOLDEN_N_OPS; i++)
        if (has_word(golden_ops[i].covers, call, length)) n += golden_ops[i].n_cases;
    return n;
}

static void count_cases(void)
{
    static const char *const files[] = {
#define FILE_NAME(name) #name,
        GOLDEN_FILES(FILE_NAME)
#undef FILE_NAME
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[1200];
        snprintf(path, sizeof path, "%s/golden/%s.txt", tests_dir(), files[i]);
        char *text = golden_slurp(path);
        CHECK_MSG(text, "cannot read %s", path);
        for (const char *p = text; (p = strstr(p, "\nop ")) != NULL;) {
            char name[32];
            p += 4;
            const size_t length = strcspn(p, "\n");
            snprintf(name, sizeof name, "%.*s", (int)length, p);
            golden_op *op = golden_op_named(name);
            if (EXPECT_MSG(op, "%s: no builder for op %s", path, name)) op->n_cases++;
        }
        free(text);
    }
}

TEST(golden_covers_the_header)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/../include/mica.h", tests_dir());
    char *header = golden_slurp(path);
    CHECK_MSG(header, "cannot read %s", path);
    count_cases();
    int n_calls = 0;
    /* Each call whose first argument is a scope, and not the only one. */
    for (const char *p = header; (p = strstr(p, "MICA_API")) != NULL;) {
        p += strlen("MICA_API");
        const char *paren = strchr(p, '('), *end = strchr(p, ';');
        if (!paren || !end || paren > end || strncmp(paren, "(mica_scope *s,", 15) != 0) continue;
        const char *name = paren;
        while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z') || (name[-1] >= '0' && name[-1] <= '9')) name--;
        name += strlen("mica_");
        const size_t length = (size_t)(paren - name);
        bool exempt = false;
        for (size_t i = 0; i < sizeof no_op / sizeof no_op[0]; i++) exempt = exempt || has_word(no_op[i], name, length);
        if (exempt) continue;
        n_calls++;
        test_case("mica_%.*s", (int)length, name);
        char call[64];
        snprintf(call, sizeof call, "%.*s", (int)length, name);
        const op_facts *facts = op_facts_named(call);
        (void)EXPECT_MSG(cases_of(name, length) > 0 || (facts && op_has_oracle(facts)),
                         "mica_%s has no golden case and no oracle", call);
    }
    free(header);
    test_case("calls");
    (void)EXPECT_MSG(n_calls > 100, "only %d calls found in %s", n_calls, path);
}
