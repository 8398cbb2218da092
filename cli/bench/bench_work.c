/* mica bench: inputs, graphs and counted work of single ops. The meaning of p[] is
 * stated at each family. */
#include "bench/bench.h"

static void normal(bench_state *b, mica_dtype dtype, int ndim, const int64_t *shape)
{
    mica_array *x = mica_random_normal(b->inputs, MICA_F32, ndim, shape, 100 + b->n_in);
    b->in[b->n_in++] = mica_cast(b->inputs, x, dtype);
}

static void count_nothing_more(const bench_case *c, bench_work *work) { (void)c, (void)work; }

/* ------------------------------------------------- products: p = n, batch, dtype */

static void make_matmul(bench_state *b)
{
    const int64_t n = b->c->p[0], batch = b->c->p[1], shape[] = {batch, n, n};
    for (int i = 0; i < 2; i++) normal(b, (mica_dtype)b->c->p[2], batch > 1 ? 3 : 2, shape + (batch == 1));
}

static size_t build_matmul(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    out[0] = mica_matmul(s, in[0], in[1]);
    return 1;
}

static void count_matmul(const bench_case *c, bench_work *work)
{
    const double n = (double)c->p[0];
    work->flops = 2 * n * n * n * (double)c->p[1];
}

const bench_family bench_matmul = {"matmul", make_matmul, build_matmul, count_matmul};

static void bytes(bench_state *b, const int64_t *shape)
{
    b->in[b->n_in] = mica_random_randint(b->inputs, MICA_I8, 2, shape, -127, 128, b->n_in);
    b->n_in++;
}

static void make_matmul_i8(bench_state *b)
{
    const int64_t n = b->c->p[0], shape[] = {n, n};
    for (int i = 0; i < 2; i++) bytes(b, shape);
}

/* Accumulates in i32: i8 sums would overflow. */
static mica_array *matmul_i8(mica_scope *s, mica_array *x, mica_array *y)
{
    return mica_matmul(s, mica_cast(s, x, MICA_I32), mica_cast(s, y, MICA_I32));
}

static size_t build_matmul_i8(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    out[0] = matmul_i8(s, in[0], in[1]);
    return 1;
}

const bench_family bench_matmul_i8 = {"matmul", make_matmul_i8, build_matmul_i8, count_matmul};

/* ------------------- linear layer: p = in, out, batch, dtype (f32 if not given) */

static void make_linear(bench_state *b)
{
    const int64_t *p = b->c->p, shapes[][2] = {{p[2], p[0]}, {p[1], p[0]}};
    for (int i = 0; i < 2; i++)
        if (p[3] == MICA_I8) bytes(b, shapes[i]);
        else normal(b, p[3] ? (mica_dtype)p[3] : MICA_F32, 2, shapes[i]);
}

/* Weights are (out, in), as in checkpoints. */
static size_t build_linear(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    mica_array *w = mica_transpose(s, in[1]);
    out[0] = c->p[3] == MICA_I8 ? matmul_i8(s, in[0], w) : mica_matmul(s, in[0], w);
    return 1;
}

static void count_linear(const bench_case *c, bench_work *work)
{
    work->flops = 2.0 * (double)c->p[0] * (double)c->p[1] * (double)c->p[2];
    work->writes = false;
}

const bench_family bench_linear = {"linear", make_linear, build_linear, count_linear};

/* ------------- block formats: p = rows, cols, batch; ternary codes, or a format */

static void make_ternary(bench_state *b)
{
    const int64_t *p = b->c->p, shape[] = {p[2], p[1]}, codes[] = {p[0] / 4, p[1]};
    mica_scope *s = b->inputs;
    normal(b, MICA_F32, 2, shape);
    /* four codes per byte; code 3 is not ternary, so its low bit is cleared */
    mica_array *w = mica_random_randint(s, MICA_U8, 2, codes, 0, 256, 1);
    mica_array *upper = mica_bitwise_and(s, mica_shift_right(s, w, mica_full_i64(s, MICA_U8, 0, NULL, 1)),
                                         mica_full_i64(s, MICA_U8, 0, NULL, 0x55));
    b->in[b->n_in++] = mica_bitwise_and(s, w, mica_bitwise_not(s, upper));
    b->in[b->n_in++] = mica_full(s, MICA_F32, 0, NULL, 0.5);
}

static size_t build_ternary(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    const mica_quant w = {.struct_size = sizeof w,
                          .format = "HF_TERNARY",
                          .rows = c->p[0],
                          .cols = c->p[1],
                          .data = in[1],
                          .scales = in[2]};
    out[0] = mica_quant_matmul(s, in[0], &w, MICA_ACT_TOKEN);
    return 1;
}

const bench_family bench_ternary = {"quant", make_ternary, build_ternary, count_linear};

/* p[3] is the type id in GGUF files. */
static const char *block_format(const int64_t *p)
{
    mica_format_info f = {.struct_size = sizeof f};
    for (size_t i = 0; mica_format_at(i, &f); i++)
        if (f.gguf_type == p[3]) return f.name;
    return "";
}

/* Random bytes below 64: the values of scales do not change the time. */
static void make_blocks(bench_state *b)
{
    const int64_t *p = b->c->p, shape[] = {p[2], p[1]};
    const int64_t n = (int64_t)mica_quant_nbytes(block_format(p), p[0], p[1]);
    normal(b, MICA_F32, 2, shape);
    b->in[b->n_in++] = mica_random_randint(b->inputs, MICA_U8, 1, &n, 0, 64, 1);
}

static size_t build_blocks(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    const mica_quant w = {
        .struct_size = sizeof w, .format = block_format(c->p), .rows = c->p[0], .cols = c->p[1], .data = in[1]};
    out[0] = mica_quant_matmul(s, in[0], &w, MICA_ACT_NONE);
    return 1;
}

const bench_family bench_blocks = {"quant", make_blocks, build_blocks, count_linear};

/* ------------------------------------------------ element-wise: p = elements */

static void make_vector(bench_state *b) { normal(b, MICA_F32, 1, b->c->p); }

/* gelu(x*a+b)*c+d */
static size_t build_gelu(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    mica_array *y = mica_add(s, mica_mul(s, in[0], mica_scalar(s, 1.1)), mica_scalar(s, 0.1));
    y = mica_gelu_tanh(s, y);
    out[0] = mica_add(s, mica_mul(s, y, mica_scalar(s, 0.9)), mica_scalar(s, -0.2));
    return 1;
}

const bench_family bench_gelu = {"fused", make_vector, build_gelu, count_nothing_more};

static void make_three_vectors(bench_state *b)
{
    for (int i = 0; i < 3; i++) make_vector(b);
}

/* Eight element-wise ops that fusion turns into one pass over memory. */
static size_t build_chain(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    mica_array *y = mica_add(s, mica_mul(s, in[0], in[1]), in[2]);
    y = mica_sub(s, mica_maximum(s, y, in[0]), mica_minimum(s, y, in[1]));
    out[0] = mica_sqrt(s, mica_abs(s, mica_mul(s, y, in[2])));
    return 1;
}

const bench_family bench_chain = {"fused", make_three_vectors, build_chain, count_nothing_more};

/* p = elements, dtype */
static void make_three_typed(bench_state *b)
{
    for (uint64_t i = 0; i < 3; i++) {
        mica_array *x = mica_random_uniform(b->inputs, MICA_F32, 1, b->c->p, -10, 10, 200 + i);
        b->in[b->n_in++] = mica_cast(b->inputs, x, (mica_dtype)b->c->p[1]);
    }
}

/* Eight ops that every numeric dtype supports. */
static size_t build_typed_chain(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    mica_array *y = mica_add(s, mica_mul(s, in[0], in[1]), in[2]);
    y = mica_sub(s, mica_maximum(s, y, in[0]), mica_minimum(s, y, in[1]));
    out[0] = mica_add(s, mica_abs(s, mica_mul(s, y, in[2])), in[1]);
    return 1;
}

const bench_family bench_typed_chain = {"fused", make_three_typed, build_typed_chain, count_nothing_more};

static void make_nothing(bench_state *b) { (void)b; }

static size_t build_random(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)in;
    out[0] = mica_random_normal(s, MICA_F32, 1, c->p, 7);
    return 1;
}

const bench_family bench_random = {"random", make_nothing, build_random, count_nothing_more};

/* --------------------------------------- rows of a matrix: p = rows, columns, axis */

static void make_matrix(bench_state *b) { normal(b, MICA_F32, 2, b->c->p); }

static void make_matrix_and_weights(bench_state *b)
{
    make_matrix(b);
    for (int i = 0; i < 2; i++) normal(b, MICA_F32, 1, b->c->p + 1);
}

static size_t build_softmax(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    out[0] = mica_softmax(s, in[0], -1);
    return 1;
}

static size_t build_layernorm(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    out[0] = mica_layer_norm(s, in[0], in[1], in[2], 1e-5);
    return 1;
}

static size_t build_rmsnorm(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    out[0] = mica_rms_norm(s, in[0], in[1], 1e-5);
    return 1;
}

const bench_family bench_softmax = {"norm", make_matrix, build_softmax, count_nothing_more};
const bench_family bench_layernorm = {"norm", make_matrix_and_weights, build_layernorm, count_nothing_more};
const bench_family bench_rmsnorm = {"norm", make_matrix_and_weights, build_rmsnorm, count_nothing_more};

/* axis -1: over all axes */
static size_t build_sum(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    const int axis = (int)c->p[2];
    out[0] = mica_sum(s, in[0], axis < 0 ? NULL : &axis, axis < 0 ? 0 : 1, false);
    return 1;
}

static void count_sum(const bench_case *c, bench_work *work)
{
    work->flops = work->items = (double)c->p[0] * (double)c->p[1];
    work->writes = false;
}

const bench_family bench_sum = {"reduce", make_matrix, build_sum, count_sum};

static size_t build_transpose(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    out[0] = mica_contiguous(s, mica_transpose(s, in[0]));
    return 1;
}

const bench_family bench_transpose = {"move", make_matrix, build_transpose, count_nothing_more};

/* ------------------------------------------ rows by index: p = rows, columns, ids */

static void make_take(bench_state *b)
{
    make_matrix(b);
    b->in[b->n_in++] = mica_random_randint(b->inputs, MICA_I32, 1, b->c->p + 2, 0, b->c->p[0], 3);
}

static size_t build_take(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    out[0] = mica_embedding(s, in[0], in[1]);
    return 1;
}

/* Counts only the rows of the table that are read; `touched` counts whole cache lines. */
static void count_take(const bench_case *c, bench_work *work)
{
    const double row = 4.0 * (double)c->p[1];
    work->items = (double)c->p[2];
    work->item = "row";
    work->bytes = work->items * (row + row + 4);
    work->touched = work->items * ((row < 64 ? 64 : row) + row + 4);
}

const bench_family bench_take = {"move", make_take, build_take, count_take};

static size_t build_sort(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    (void)c;
    out[0] = mica_sort(s, in[0], 0, false);
    return 1;
}

const bench_family bench_sort = {"sort", make_vector, build_sort, count_nothing_more};

/* --- attention: p = heads, time, dims, causal?, keys (0: as many as queries), gradients? */

static void make_attention(bench_state *b)
{
    const int64_t *p = b->c->p, q[] = {1, p[0], p[1], p[2]}, k[] = {1, p[0], p[4] ? p[4] : p[1], p[2]};
    for (int i = 0; i < 3; i++) normal(b, MICA_F32, 4, i ? k : q);
}

/* Only the gradients of the sum of y are outputs; y itself need not be computed. */
static size_t build_gradients(mica_scope *s, mica_array *y, mica_array *const *in, size_t n, mica_array **out)
{
    return mica_grad(s, mica_sum(s, y, NULL, 0, false), in, n, out) == MICA_OK ? n : 0;
}

static size_t build_attention(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    mica_attention_options options;
    mica_attention_options_init(&options);
    options.causal = c->p[3] != 0;
    mica_array *y = mica_attention(s, in[0], in[1], in[2], NULL, &options);
    if (c->p[5]) return build_gradients(s, y, in, 3, out);
    out[0] = y;
    return 1;
}

/* Forward has two products, scores and values; the gradients have five, including the
 * scores. Causal: only the pairs that the mask allows are counted. */
static void count_attention(const bench_case *c, bench_work *work)
{
    const double time = (double)c->p[1], keys = c->p[4] ? (double)c->p[4] : time;
    const double pairs = c->p[3] ? time * (time + 1) / 2 : time * keys;
    work->flops = (c->p[5] ? 10 : 4) * pairs * (double)c->p[0] * (double)c->p[2];
}

const bench_family bench_attention = {"attention", make_attention, build_attention, count_attention};

/* ---- convolution: p = channels, out channels, size, kernel, groups, gradients? */

static void make_conv(bench_state *b)
{
    const int64_t *p = b->c->p;
    normal(b, MICA_F32, 4, (int64_t[]){1, p[0], p[2], p[2]});
    normal(b, MICA_F32, 4, (int64_t[]){p[1], p[0] / p[4], p[3], p[3]});
}

static size_t build_conv(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    mica_conv_options options;
    mica_conv_options_init(&options);
    options.padding[0] = options.padding[1] = c->p[3] / 2;
    options.groups = c->p[4];
    mica_array *y = mica_conv2d(s, in[0], in[1], &options);
    if (c->p[5]) return build_gradients(s, y, in, 2, out);
    out[0] = y;
    return 1;
}

/* The padding counts as if it were multiplied, which is the convention. Each of the two
 * gradients is as much work as the forward pass. */
static void count_conv(const bench_case *c, bench_work *work)
{
    const double size = (double)c->p[2], kernel = (double)c->p[3];
    work->flops = (c->p[5] ? 4 : 2) * size * size * kernel * kernel * (double)c->p[1] * (double)(c->p[0] / c->p[4]);
}

const bench_family bench_conv = {"conv", make_conv, build_conv, count_conv};
