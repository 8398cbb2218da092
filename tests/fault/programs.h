/* Small programs that together call every function of mica.h, written like user code: build, check
 * once, read the result, clean up. Each program adds its results to a digest. If a run succeeds in
 * spite of a fault, its digest is compared with that of a run without faults. */
#ifndef MICA_TEST_FAULT_PROGRAMS_H
#define MICA_TEST_FAULT_PROGRAMS_H

#include "api.h"
#include "op_facts.h"

typedef struct task {
    mica_engine *e;
    mica_scope *s;
    double digest;
    int wraps, releases;        /* counts: foreign memory passed in, and released */
} task;

static void give_back(void *data, void *user)
{
    (void)data;
    ((task *)user)->releases++;
}

static mica_array *lend(task *t, const float *data, int ndim, const int64_t *shape)
{
    t->wraps++;
    return mica_wrap(t->s, MICA_F32, ndim, shape, NULL, data, give_back, t);
}

/* A number for the elements of an evaluated array, whatever its dtype. */
static double digest_of(mica_array *a)
{
    double sum = (double)mica_array_ndim(a) + (double)mica_array_size(a);
    const int64_t size = mica_array_size(a);
    const size_t nbytes = mica_array_nbytes(a);
    unsigned char *bytes = malloc(nbytes + 1);
    if (mica_copy_out(a, bytes, nbytes) == MICA_OK)
        for (size_t i = 0; i < nbytes; i++) sum += (double)bytes[i] * (double)(i % 13 + 1);
    free(bytes);
    return size ? sum : 1;
}

static mica_status finish(task *t, mica_array *const *arrays, size_t n)
{
    const mica_status status = mica_eval(t->s, arrays, n);
    for (size_t i = 0; i < n && status == MICA_OK; i++) t->digest += digest_of(arrays[i]);
    return status;
}

#define FINISH(t, ...) finish(t, ARRAYS(__VA_ARGS__))

static const float numbers[64] = {1,    2,   3,     4,    5, 6, 7, 8, .1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f,
                                  9,    8,   7,     6,    5, 4, 3, 2, 1,   0,   -1,  -2,  -3,  -4,  -5,  -6,
                                  2,    2,   2,     2,    3, 3, 3, 3, 4,   4,   4,   4,   5,   5,   5,   5,
                                  -.5f, .5f, -.25f, .25f, 1, 2, 1, 2, 3,   4,   3,   4,   5,   6,   5,   6};

static mica_array *matrix(task *t, int64_t rows, int64_t cols) { return lend(t, numbers, SHAPE(rows, cols)); }

static mica_array *image(task *t, int64_t channels, int64_t height, int64_t width)
{
    return lend(t, numbers, SHAPE(1, channels, height, width));
}

/* ------------------------------------------------------- engine, arrays ----- */

static mica_status program_engine(task *t)
{
    char text[64];
    mica_stats stats = {.struct_size = sizeof stats};
    t->digest += mica_engine_threads(t->e) + (double)strlen(mica_engine_backend(t->e)) +
                 (double)strlen(mica_engine_device(t->e)) + (double)strlen(mica_version());
    mica_doctor_text(text, sizeof text);
    mica_engine_stats(t->e, &stats);
    mica_engine_info info = {.struct_size = sizeof info}, copy = {.struct_size = sizeof copy};
    mica_format_info format = {.struct_size = sizeof format};
    if (mica_engine_describe(t->e, &info) != MICA_OK ||
        mica_struct_read("copy", &copy, sizeof copy, &info) != MICA_OK ||
        mica_struct_write("copy", &info, &copy, sizeof copy) != MICA_OK)
        return MICA_ERR_INTERNAL; /* these calls allocate nothing */
    if (mica_format_find("q4_k", &format) && mica_format_at(mica_format_count() - 1, &format))
        t->digest += copy.threads;
    mica_engine_reset_peak(t->e);
    mica_scope *inner = mica_scope_begin(t->e);
    if (!inner) return MICA_ERR_MEMORY;
    mica_array *a = mica_from_data(inner, MICA_F32, SHAPE(8), numbers);
    mica_array *kept = mica_keep(mica_neg(inner, a));
    mica_status status = mica_prepare(inner, &kept, 1);
    mica_engine_profile(t->e, true);
    if (status == MICA_OK) status = mica_eval(inner, &kept, 1);
    mica_engine_profile(t->e, false);
    mica_profile_step step = {.struct_size = sizeof step};
    if (status == MICA_OK && mica_engine_profile_count(t->e) > 0) status = mica_engine_profile_step(t->e, 0, &step);
    if (status != MICA_OK && !strlen(mica_last_error())) status = MICA_ERR_INTERNAL; /* a message is required */
    if (status != MICA_OK && mica_scope_status(inner) != MICA_OK && !strlen(mica_scope_error(inner)))
        status = MICA_ERR_INTERNAL;
    mica_scope_clear_error(inner);
    if (status == MICA_OK) mica_scope_fail(inner, mica_fail(MICA_ERR_STATE, "of the caller"), "again");
    mica_scope_end(inner);
    if (status == MICA_OK) t->digest += digest_of(kept);
    mica_drop(kept);
    mica_engine_trim(t->e);
    t->digest += (double)strlen(mica_status_text(MICA_OK));
    t->digest += (double)(mica_dtype_size(mica_dtype_promote(MICA_U8, MICA_I8)) + strlen(mica_dtype_name(MICA_F32)));
    t->digest += mica_f16_to_f32(mica_f16_from_f32(1)) + mica_bf16_to_f32(mica_bf16_from_f32(2));
    char number[MICA_NUMBER_TEXT];
    double parsed;
    if (mica_number_parse(mica_number_print(0.1, number, sizeof number), strlen("0.1"), &parsed)) t->digest += parsed;
    return status;
}

static mica_status program_inspect(task *t)
{
    mica_scope *s = t->s;
    static const mica_dtype dtypes[] = {MICA_BOOL, MICA_U8,  MICA_I8,  MICA_U16,  MICA_I16, MICA_U32, MICA_I32,
                                        MICA_U64,  MICA_I64, MICA_F16, MICA_BF16, MICA_F32, MICA_F64};
    mica_array *a[COUNT(dtypes)], *x = matrix(t, 2, 3);
    for (size_t i = 0; i < COUNT(dtypes); i++) a[i] = mica_cast(s, x, dtypes[i]);
    const mica_status status = finish(t, a, COUNT(a));
    if (status != MICA_OK) return status;
    const bool all = mica_data_bool(a[0]) && mica_data_u8(a[1]) && mica_data_i8(a[2]) && mica_data_u16(a[3]) &&
                     mica_data_i16(a[4]) && mica_data_u32(a[5]) && mica_data_i32(a[6]) && mica_data_u64(a[7]) &&
                     mica_data_i64(a[8]) && mica_data_f16(a[9]) && mica_data_bf16(a[10]) && mica_data_f32(a[11]) &&
                     mica_data_f64(a[12]) && mica_data(x);
    double value = 0;
    mica_array *sum = mica_sum(s, x, NULL, 0, false);
    const mica_status last = mica_eval(s, &sum, 1);
    if (last == MICA_OK && mica_item(sum, &value) != MICA_OK) return MICA_ERR_INTERNAL;
    t->digest += all + (double)mica_array_dtype(x) + (double)mica_array_ndim(x) + (double)mica_array_shape(x)[0] +
                 (double)mica_array_strides(x)[0] + (double)mica_array_size(x) + (double)mica_array_nbytes(x) +
                 mica_array_is_ready(x) + value;
    return last;
}

static mica_status program_creation(task *t)
{
    mica_scope *s = t->s;
    mica_array *data = mica_from_data(s, MICA_I32, SHAPE(2, 2), (int32_t[]){1, 2, 3, 4});
    mica_array *wrapped = lend(t, numbers, SHAPE(3, 4));
    return FINISH(t, mica_add(s, data, mica_scalar(s, 2)), mica_neg(s, wrapped), mica_zeros(s, MICA_F32, SHAPE(3)),
                  mica_ones(s, MICA_I8, SHAPE(3)), mica_full(s, MICA_F16, SHAPE(3), 1.5),
                  mica_full_i64(s, MICA_I64, SHAPE(2), 7), mica_arange(s, MICA_F32, 0, 3, 0.5),
                  mica_linspace(s, MICA_F64, 0, 1, 5), mica_eye(s, MICA_F32, 3, 4, 1), mica_tri(s, MICA_F32, 3, 3, 0));
}

static mica_status program_random(task *t)
{
    mica_scope *s = t->s;
    const uint64_t seed = mica_seed_split(1, 2);
    return FINISH(t, mica_random_bits(s, MICA_U32, SHAPE(5), seed),
                  mica_random_uniform(s, MICA_F32, SHAPE(5), 0, 1, seed),
                  mica_random_normal(s, MICA_F32, SHAPE(5), seed),
                  mica_random_truncated_normal(s, MICA_F32, SHAPE(5), -1, 1, seed),
                  mica_random_bernoulli(s, SHAPE(5), 0.5, seed), mica_random_randint(s, MICA_I32, SHAPE(5), 0, 9, seed),
                  mica_random_categorical(s, matrix(t, 2, 4), seed), mica_random_permutation(s, 6, seed));
}

static mica_status program_views(task *t)
{
    mica_scope *s = t->s;
    mica_array *x = matrix(t, 2, 6);
    return FINISH(t, mica_reshape(s, x, SHAPE(3, -1)), mica_flatten(s, mica_transpose(s, x)), mica_expand_dims(s, x, 1),
                  mica_squeeze(s, mica_slice_axis(s, x, 0, 1, 2, 1), 0), mica_permute(s, x, (int[]){1, 0}),
                  mica_flip(s, x, 1), mica_slice(s, x, (int64_t[]){0, 5}, (int64_t[]){2, 0}, (int64_t[]){1, -2}),
                  mica_broadcast_to(s, x, SHAPE(2, 2, 6)), mica_contiguous(s, mica_transpose(s, x)),
                  mica_stop_gradient(s, x));
}

/* ---------------------------------------------------------- element-wise ---- */

/* These two call every constructor of op_facts.h. */

static mica_status program_unary(task *t)
{
    size_t n, made = 0;
    const op_facts *facts = op_facts_all(&n);
    mica_array *x = lend(t, numbers + 8, SHAPE(8)), *whole = mica_cast(t->s, x, MICA_I32), *out[OP_FACTS_MAX + 3];
    for (size_t i = 0; i < n; i++)
        if (facts[i].n_in == 1) out[made++] = facts[i].make1(t->s, op_takes_integers_only(&facts[i]) ? whole : x);
    out[made++] = mica_cast(t->s, x, MICA_F64);
    return finish(t, out, made);
}

static mica_status program_binary(task *t)
{
    mica_array *a = mica_cast(t->s, matrix(t, 2, 3), MICA_I32),
               *b = mica_from_data(t->s, MICA_I32, SHAPE(3), (int32_t[]){1, 2, 3});
    size_t n, made = 0;
    const op_facts *facts = op_facts_all(&n);
    mica_array *f = matrix(t, 2, 3), *out[OP_FACTS_MAX + 3];
    for (size_t i = 0; i < n; i++)
        if (facts[i].n_in == 2) out[made++] = facts[i].make2(t->s, a, b);
    out[made++] = mica_where(t->s, mica_less(t->s, f, b), f, mica_scalar(t->s, 0.5));
    out[made++] = mica_clip(t->s, f, mica_scalar(t->s, 2), mica_scalar(t->s, 4));
    out[made++] = mica_fma(t->s, f, f, mica_cast(t->s, b, MICA_F32));
    return finish(t, out, made);
}

/* ------------------------------------------------------------- reductions --- */

static mica_status program_reduce(task *t)
{
    mica_scope *s = t->s;
    mica_array *x = matrix(t, 3, 4);
    const int last[] = {-1};
    return FINISH(t, mica_sum(s, x, last, 1, false), mica_mean(s, x, NULL, 0, true), mica_prod(s, x, last, 1, false),
                  mica_max(s, x, last, 1, false), mica_min(s, x, NULL, 0, false), mica_any(s, x, last, 1, false),
                  mica_all(s, x, last, 1, false), mica_var(s, x, last, 1, 1, false), mica_std(s, x, NULL, 0, 0, false),
                  mica_norm(s, x, 3, last, 1, false), mica_logsumexp(s, x, (int[]){0}, 1, false),
                  mica_argmax(s, x, 0, false), mica_argmin(s, x, 1, true), mica_cumsum(s, x, 0), mica_cumprod(s, x, 1),
                  mica_cummax(s, x, 0));
}

/* -------------------------------------------------------- neural networks --- */

static mica_status program_nn(task *t)
{
    mica_scope *s = t->s;
    mica_array *x = matrix(t, 3, 4), *w = lend(t, numbers, SHAPE(4)), *q = lend(t, numbers, SHAPE(1, 2, 3, 4));
    mica_attention_options a;
    mica_attention_options_init(&a);
    a.causal = true;
    mica_rope_options r;
    mica_rope_options_init(&r);
    r.interleaved = true;
    r.factors = lend(t, numbers, SHAPE(2));
    mica_array *labels = mica_from_data(s, MICA_I32, SHAPE(3), (int32_t[]){0, 3, 1});
    return FINISH(t, mica_softmax(s, x, 0), mica_log_softmax(s, x, -1), mica_layer_norm(s, x, w, w, 1e-5),
                  mica_rms_norm(s, x, w, 1e-5),
                  mica_gelu(s, mica_add(s, mica_matmul(s, x, mica_transpose(s, x)), x ? mica_scalar(s, 1) : NULL)),
                  mica_rope(s, q, NULL, &r), mica_attention(s, q, q, q, NULL, &a), mica_cross_entropy(s, x, labels),
                  mica_synapses(s, mica_transpose(s, x), NULL, NULL, x, x, x, x));
}

static mica_status program_quant(task *t)
{
    mica_scope *s = t->s;
    static const uint8_t codes[20 * 8] = {0x12, 0x54, 0x81, 0x26, 0x09, 0x68};
    const mica_quant w = {.struct_size = sizeof w,
                          .format = "HF_TERNARY",
                          .rows = 80,
                          .cols = 8,
                          .data = mica_from_data(s, MICA_U8, SHAPE(20, 8), codes),
                          .scales = mica_scalar(s, 0.5)};
    mica_array *x = lend(t, numbers, SHAPE(1, 8)), *y = mica_quant_matmul(s, x, &w, MICA_ACT_TOKEN), *grad = NULL;
    mica_status status = mica_grad(s, mica_sum(s, y, NULL, 0, false), &x, 1, &grad);
    uint8_t blocks[34];
    float values[32] = {1, 2, 3};
    const size_t nbytes = mica_quant_nbytes("Q8_0", 1, 32);
    if (status == MICA_OK) status = mica_quant_pack("Q8_0", 1, 32, values, blocks, nbytes);
    if (status == MICA_OK) status = mica_quant_unpack("Q8_0", 1, 32, blocks, nbytes, values);
    if (status != MICA_OK) return status;
    t->digest += (double)values[2];
    return FINISH(t, mica_relu2(s, y), grad, mica_quant_matmul(s, x, &w, MICA_ACT_NONE),
                  mica_quant_rows(s, &w, mica_arange(s, MICA_I64, 0, 3, 1)));
}

static mica_status program_state(task *t)
{
    mica_scope *s = t->s;
    mica_array *q = lend(t, numbers, SHAPE(1, 2, 3, 4)), *at = mica_from_data(s, MICA_I32, 0, NULL, &(int32_t){2});
    mica_array *k = mica_update(s, mica_state(s, MICA_F16, SHAPE(1, 2, 5, 4)), q, at, 2);
    mica_array *v = mica_update(s, mica_state(s, MICA_F32, SHAPE(1, 2, 5, 4)), q, at, 2);
    mica_array *old = mica_sum(s, k, NULL, 0, false);
    k = mica_update(s, k, mica_mul(s, q, mica_scalar(s, 2)), mica_sub(s, at, at), 2);
    mica_attention_options o;
    mica_attention_options_init(&o);
    mica_array *codes = NULL;
    if (mica_rows_to_i8(s, q, &codes, &o.k_scale) != MICA_OK) return mica_scope_status(s);
    o.v_scale = o.k_scale;
    return FINISH(t, mica_attention_cached(s, q, k, v, mica_add(s, at, at), NULL), old, k,
                  mica_attention_cached(s, q, codes, codes, at, &o));
}

static mica_status program_conv(task *t)
{
    mica_scope *s = t->s;
    mica_conv_options c;
    mica_conv_options_init(&c);
    c.padding[0] = c.padding[1] = 1;
    c.stride[0] = 2;
    mica_pool_options p;
    mica_pool_options_init(&p);
    p.kernel[0] = p.kernel[1] = 2;
    mica_array *x = image(t, 2, 4, 4), *line = lend(t, numbers, SHAPE(1, 2, 8));
    mica_array *w2 = lend(t, numbers, SHAPE(3, 2, 2, 2)), *w1 = lend(t, numbers, SHAPE(3, 2, 3));
    mica_array *t2 = lend(t, numbers, SHAPE(2, 3, 2, 2)), *t1 = lend(t, numbers, SHAPE(2, 3, 3));
    return FINISH(t, mica_conv1d(s, line, w1, &c), mica_conv2d(s, x, w2, &c), mica_conv_transpose1d(s, line, t1, NULL),
                  mica_conv_transpose2d(s, x, t2, &c), mica_max_pool1d(s, line, &p), mica_max_pool2d(s, x, &p),
                  mica_avg_pool1d(s, line, &p), mica_avg_pool2d(s, x, &p));
}

/* ------------------------------------------------------ joining, indexing --- */

static mica_status program_index(task *t)
{
    mica_scope *s = t->s;
    mica_array *x = matrix(t, 3, 4), *i = mica_from_data(s, MICA_I64, SHAPE(2), (int64_t[]){2, 0});
    mica_array *at = mica_reshape(s, i, SHAPE(2, 1)), *parts[2] = {NULL, NULL}, *values = NULL, *places = NULL;
    mica_status status = mica_split(s, x, 1, (int64_t[]){1, 3}, 2, parts);
    if (status == MICA_OK) status = mica_topk(s, x, 2, 1, &values, &places);
    if (status != MICA_OK) return status;
    mica_array *rows[] = {x, parts[1] ? x : NULL, x};
    return FINISH(t, mica_concat(s, rows, 3, 0), mica_stack(s, rows, 3, 1), parts[0], parts[1], values, places,
                  mica_pad(s, x, (int64_t[]){1, 0}, (int64_t[]){0, 2}, 9), mica_tile(s, x, (int64_t[]){1, 2}),
                  mica_repeat(s, x, 2, 0), mica_roll(s, x, 1, 1), mica_take(s, x, i, 0),
                  mica_take_along_axis(s, x, mica_argsort(s, x, 1, false), 1), mica_gather(s, x, at),
                  mica_scatter(s, x, at, matrix(t, 2, 4)), mica_scatter_add(s, x, at, matrix(t, 2, 4)),
                  mica_embedding(s, x, i), mica_one_hot(s, i, 4, MICA_F32), mica_sort(s, x, 1, true),
                  mica_argsort(s, x, 0, true));
}

/* --------------------------------------------------------------- running ---- */

static mica_status program_plan(task *t)
{
    mica_scope *s = t->s;
    mica_array *x = matrix(t, 4, 4), *y = mica_sum(s, mica_exp(s, mica_matmul(s, x, x)), (int[]){0}, 1, false);
    mica_plan_info info = {.struct_size = sizeof info};
    char text[100];
    mica_status status = mica_plan_query(s, &y, 1, &info);
    for (int what = MICA_DUMP_GRAPH; what <= MICA_DUMP_MSL && status == MICA_OK; what++) {
        size_t length = 0;
        status = mica_plan_text(s, &y, 1, (mica_dump)what, text, sizeof text, &length);
        if (status == MICA_OK) t->digest += (double)length;
    }
    t->digest += status == MICA_OK ? (double)info.kernels : 0;
    return status == MICA_OK ? FINISH(t, y) : status;
}

static mica_status program_async(task *t)
{
    mica_scope *s = t->s;
    mica_array *x = matrix(t, 4, 4), *y = mica_exp(s, x), *z = mica_keep(mica_neg(s, y));
    mica_event *first = NULL, *second = NULL;
    mica_status status = mica_eval_async(s, ARRAYS(y, z), &first);
    mica_array *sum = mica_add(s, y, z);
    if (status == MICA_OK) status = mica_eval_async(s, &sum, 1, &second);
    if (status == MICA_OK) status = mica_wait(second);
    if (status == MICA_OK) status = mica_wait(first);
    mica_event_free(second);
    mica_event_free(first);
    if (status == MICA_OK) t->digest += digest_of(sum) + digest_of(z);
    mica_drop(z);
    return status;
}

/* Exceeds the limits of the memory cache and the plan cache, which evict. */
static mica_status program_churn(task *t)
{
    mica_status status = MICA_OK;
    for (int64_t n = 1; n < 6 && status == MICA_OK; n++) {
        mica_scope *s = mica_scope_begin(t->e);
        if (!s) return MICA_ERR_MEMORY;
        mica_array *x = mica_full(s, MICA_F32, SHAPE(n, 300), 2),
                   *y = mica_cumsum(s, mica_matmul(s, x, mica_transpose(s, x)), 0);
        status = mica_eval(s, &y, 1);
        if (status == MICA_OK) t->digest += digest_of(y);
        mica_scope_end(s);
    }
    return status;
}

/* ------------------------------------------------------------- gradients ---- */

static mica_array *mlp_loss(mica_scope *s, mica_array *const *p, size_t n, void *user)
{
    mica_array *x = user;
    (void)n;
    mica_array *h = mica_tanh(s, mica_add(s, mica_matmul(s, x, p[0]), p[1]));
    return mica_mean(s, mica_square(s, mica_sub(s, h, mica_stop_gradient(s, mica_softmax(s, h, -1)))), NULL, 0, false);
}

static mica_status program_grad(task *t)
{
    mica_scope *s = t->s;
    mica_array *x = matrix(t, 3, 4), *params[] = {matrix(t, 4, 2), lend(t, numbers, SHAPE(2))}, *value = NULL,
               *grads[2], *second[2];
    mica_status status = mica_value_and_grad(s, mlp_loss, x, params, 2, &value, grads);
    if (status != MICA_OK) return status;
    /* the gradient of the gradient */
    mica_array *norm = mica_sum(s, mica_square(s, grads[0]), NULL, 0, false);
    status = mica_grad(s, norm, params, 2, second);
    if (status != MICA_OK) return status;
    mica_array *ct = mica_ones(s, MICA_F32, SHAPE(2, 4)), *y = mica_transpose(s, params[0]), *back = NULL;
    status = mica_vjp(s, &y, &ct, 1, params, 1, &back);
    return status == MICA_OK ? FINISH(t, value, grads[0], grads[1], second[0], second[1], back) : status;
}

static mica_status program_grad_families(task *t)
{
    mica_scope *s = t->s;
    mica_pool_options p;
    mica_pool_options_init(&p);
    p.kernel[0] = p.kernel[1] = 2;
    mica_array *x = matrix(t, 3, 4), *img = image(t, 1, 4, 4), *w = lend(t, numbers, SHAPE(2, 1, 2, 2));
    mica_array *q = lend(t, numbers, SHAPE(1, 1, 3, 4)), *i = mica_from_data(s, MICA_I64, SHAPE(2), (int64_t[]){2, 0});
    mica_array *terms[] = {
        mica_layer_norm(s, x, NULL, NULL, 1e-5),
        mica_cumprod(s, x, 1),
        mica_sort(s, x, 1, false),
        mica_take(s, x, i, 0),
        mica_prod(s, x, NULL, 0, false),
        mica_logsumexp(s, x, NULL, 0, false),
        mica_max_pool2d(s, mica_conv2d(s, img, w, NULL), &p),
        mica_avg_pool2d(s, img, &p),
        mica_attention(s, q, mica_rope(s, q, NULL, NULL), q, NULL, NULL),
        mica_synapses(s, mica_transpose(s, x), NULL, NULL, x, x, x, x),
        mica_concat(s, ARRAYS(x, x), 0),
        mica_pad(s, x, (int64_t[]){1, 1}, (int64_t[]){0, 0}, 0),
        mica_max(s, x, NULL, 0, false),
        mica_log_softmax(s, x, 0),
        mica_cummax(s, x, 0),
        mica_scatter_add(s, x, mica_reshape(s, i, SHAPE(2, 1)), matrix(t, 2, 4)),
    };
    mica_array *loss = mica_scalar(s, 0), *wrt[] = {x, img, w, q}, *grads[4];
    for (size_t k = 0; k < COUNT(terms); k++) loss = mica_add(s, loss, mica_sum(s, terms[k], NULL, 0, false));
    const mica_status status = mica_grad(s, loss, wrt, 4, grads);
    return status == MICA_OK ? finish(t, grads, 4) : status;
}

static mica_status double_vjp(mica_scope *s, mica_array *ct, mica_array *const *in, size_t n, mica_array **grads,
                              void *user)
{
    (void)user;
    for (size_t i = 0; i < n; i++) grads[i] = mica_mul(s, mica_add(s, ct, ct), in[i]);
    return MICA_OK;
}

static mica_status program_custom(task *t)
{
    mica_scope *s = t->s;
    mica_array *x = matrix(t, 2, 4), *grads[1];
    t->wraps++; /* its user pointer is released like foreign memory */
    mica_array *y = mica_custom_grad(s, mica_square(s, x), &x, 1, double_vjp, t, give_back);
    mica_array *h = mica_tanh(s, mica_matmul(s, y, mica_transpose(s, y)));
    mica_array *c = mica_checkpoint(s, mica_exp(s, mica_sin(s, h)), ARRAYS(y));
    const mica_status status = mica_grad(s, mica_sum(s, mica_mul(s, c, c), NULL, 0, false), &x, 1, grads);
    return status == MICA_OK ? FINISH(t, grads[0], c) : status;
}

/* ---------------------------------------------------- loops and functions --- */

static mica_status inner_step(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                              mica_array **y, void *user)
{
    (void)y;
    co[0] = mica_add(s, mica_mul(s, c[0], user), x[0]);
    return MICA_OK;
}

static mica_status outer_step(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                              mica_array **y, void *user)
{
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = 1;
    mica_array *start = mica_sum(s, c[0], NULL, 0, false), *last = NULL;
    const mica_status status = mica_scan(s, inner_step, start, &o, &start, x, &last, NULL);
    co[0] = mica_tanh(s, mica_add(s, mica_mul(s, c[0], user), last));
    y[0] = mica_sub(s, co[0], x[0]);
    return status;
}

static mica_status program_scan(task *t)
{
    mica_scope *s = t->s;
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    o.reverse = true;
    mica_array *x = matrix(t, 3, 4), *w = lend(t, numbers + 8, SHAPE(4)), *c = lend(t, numbers, SHAPE(4));
    mica_array *last = NULL, *ys = NULL;
    mica_status status = mica_scan(s, outer_step, w, &o, &c, &x, &last, &ys);
    return status == MICA_OK ? FINISH(t, last, ys) : status;
}

static mica_status plain_step(mica_scope *s, mica_array *const *c, mica_array *const *x, mica_array **co,
                              mica_array **y, void *user)
{
    co[0] = mica_tanh(s, mica_add(s, mica_mul(s, c[0], user), x[0]));
    y[0] = mica_square(s, co[0]);
    return MICA_OK;
}

static mica_status program_scan_grad(task *t)
{
    mica_scope *s = t->s;
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_x = o.n_y = 1;
    mica_array *x = matrix(t, 3, 4), *w = lend(t, numbers + 8, SHAPE(4)), *c = lend(t, numbers, SHAPE(4));
    mica_array *last = NULL, *ys = NULL, *wrt[] = {x, w, c}, *grads[3];
    mica_status status = mica_scan(s, plain_step, w, &o, &c, &x, &last, &ys);
    if (status == MICA_OK) status = mica_grad(s, mica_sum(s, mica_add(s, ys, last), NULL, 0, false), wrt, 3, grads);
    return status == MICA_OK ? finish(t, grads, 3) : status;
}

static mica_status traced(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out, void *user)
{
    (void)n_in, (void)n_out;
    out[0] = mica_gelu(s, mica_add(s, mica_matmul(s, in[0], in[1]), user));
    out[1] = mica_transpose(s, in[0]);
    return mica_scope_status(s);
}

static mica_status program_compile(task *t)
{
    mica_scope *s = t->s;
    mica_function *f = NULL;
    mica_array *x = matrix(t, 3, 4), *y = mica_transpose(s, matrix(t, 2, 4)), *bias = lend(t, numbers, SHAPE(2)),
               *out[2];
    mica_status status = mica_compile(t->e, traced, bias, &f);
    for (int i = 0; i < 2 && status == MICA_OK; i++) {
        status = mica_call(s, f, ARRAYS(i ? mica_neg(s, x) : x, y), out, 2);
        if (status == MICA_OK) t->digest += digest_of(out[0]) + digest_of(out[1]);
    }
    if (status == MICA_OK)
        status = mica_call(s, f, ARRAYS(y, x), out, 2) == MICA_OK ? MICA_ERR_INTERNAL : mica_scope_status(s);
    mica_function_free(f);
    return status;
}

static mica_status program_measure(task *t)
{
    double ratio = 0;
    const mica_status status = mica_measure_two_threads(t->e, &ratio);
    return status;
}

/* Tuning without a cache folder; tests/metal/test_tune.c has the rest. */
static mica_status program_tune(task *t)
{
    mica_tune_options o;
    (void)t;
    mica_tune_options_init(&o);
    setenv("MICA_CACHE", "off", 1);
    mica_status status = mica_tune(&o, NULL, 0);
    if (status == MICA_ERR_UNSUPPORTED) status = mica_tune_forget();
    unsetenv("MICA_CACHE");
    return status == MICA_ERR_UNSUPPORTED ? MICA_OK : status;
}

#include "programs_file.h"

static const struct {
    const char *name;
    mica_status (*run)(task *t);
} programs[] = {
    {"engine", program_engine},   {"inspect", program_inspect}, {"creation", program_creation},
    {"random", program_random},   {"views", program_views},     {"unary", program_unary},
    {"binary", program_binary},   {"reduce", program_reduce},   {"nn", program_nn},
    {"quant", program_quant},     {"state", program_state},     {"conv", program_conv},
    {"index", program_index},     {"plan", program_plan},       {"async", program_async},
    {"churn", program_churn},     {"grad", program_grad},       {"families", program_grad_families},
    {"custom", program_custom},   {"scan", program_scan},       {"scan grad", program_scan_grad},
    {"compile", program_compile}, {"measure", program_measure}, {"tune", program_tune},
    {"file", program_file},
};

#endif
