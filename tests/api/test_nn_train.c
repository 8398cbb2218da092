/* AdamW against a computation in double, schedules, the decoder's gradients against finite
 * differences, and a trainer that learns, repeats itself to the bit, and does not grow in memory.
 *
 * runs: metal-unsanitized */
#include <math.h>

#include "api.h"
#include "mica_nn.h"

/* ----------------------------------------------------------------- AdamW ---- */

/* Three parameters: a matrix, which decays, and two vectors, which do not. */
enum { N_PARAMS = 3, WIDE = 12 };

TEST(adamw_by_hand)
{
    static const int size[N_PARAMS] = {12, 3, 5}, axes[N_PARAMS] = {2, 1, 1};
    static const int64_t shape[N_PARAMS][2] = {{3, 4}, {3}, {5}};
    mica_engine *e = open_engine("ref");
    mica_scope *s = mica_scope_begin(e);
    mica_optimiser o;
    mica_optimiser_init(&o, MICA_ADAMW);
    double p[N_PARAMS][WIDE], m[N_PARAMS][WIDE] = {0}, v[N_PARAMS][WIDE] = {0};
    for (int i = 0; i < N_PARAMS; i++)
        for (int k = 0; k < size[i]; k++) p[i][k] = sin(i * 10 + k);
    for (int t = 1; t <= 4; t++) {
        test_case("step %d", t);
        const double rate = 0.01 * t, decay = t < 4 ? 0.1 : 0, far = t == 2 ? 0.01 : 1; /* step 2 is not clipped */
        double g[N_PARAMS][WIDE], norm = 0;
        float rates[4];
        mica_array *in[2][N_PARAMS], *state[2 * N_PARAMS], *out[3 * N_PARAMS + 1];
        for (int i = 0; i < N_PARAMS; i++) {
            for (int k = 0; k < size[i]; k++) g[i][k] = far * cos(t * 100 + i * 10 + k), norm += g[i][k] * g[i][k];
            in[0][i] = mica_from_data(s, MICA_F64, axes[i], shape[i], p[i]);
            in[1][i] = mica_from_data(s, MICA_F64, axes[i], shape[i], g[i]);
            state[i] = mica_from_data(s, MICA_F64, axes[i], shape[i], m[i]);
            state[N_PARAMS + i] = mica_from_data(s, MICA_F64, axes[i], shape[i], v[i]);
        }
        norm = sqrt(norm);
        mica_optimiser_rates(&o, rate, decay, t, rates);
        mica_array *r = mica_from_data(s, MICA_F32, SHAPE(4), rates);
        CHECK_OK(mica_optimiser_step(s, &o, r, N_PARAMS, in[0], in[1], state, out, out + N_PARAMS, &out[3 * N_PARAMS]));
        CHECK_OK(mica_eval(s, out, 3 * N_PARAMS + 1));
        EXPECT_CLOSE(item_of(out[3 * N_PARAMS]), norm, 1e-12, 0);
        EXPECT_INT(norm > 1, t != 2);
        for (int i = 0; i < N_PARAMS; i++)
            for (int k = 0; k < size[i]; k++) {
                const double grad = g[i][k] * fmin(1, 1 / norm);
                m[i][k] = 0.9 * m[i][k] + 0.1 * grad;
                v[i][k] = 0.95 * v[i][k] + 0.05 * grad * grad;
                const double m_hat = m[i][k] / (1 - pow(0.9, t)), v_hat = v[i][k] / (1 - pow(0.95, t));
                p[i][k] = p[i][k] - (i == 0 ? rate * decay * p[i][k] : 0) - rate * m_hat / (sqrt(v_hat) + 1e-8);
                /* learning rates are passed as f32 */
                EXPECT_CLOSE(mica_data_f64(out[i])[k], p[i][k], 1e-6, 1e-8);
                EXPECT_CLOSE(mica_data_f64(out[N_PARAMS + i])[k], m[i][k], 1e-12, 1e-15);
                EXPECT_CLOSE(mica_data_f64(out[2 * N_PARAMS + i])[k], v[i][k], 1e-12, 1e-15);
            }
    }
    mica_scope_end(s);
    mica_close(e);
}

TEST(schedules)
{
    static const struct {
        mica_schedule_kind kind;
        int64_t step;
        double rate, decay;
    } cases[] = {
        {MICA_SCHEDULE_CONSTANT, 0, 0.1, 0.1},      {MICA_SCHEDULE_CONSTANT, 4, 0.5, 0.1},
        {MICA_SCHEDULE_CONSTANT, 99, 1, 0.1},       {MICA_SCHEDULE_LINEAR, 9, 1, 0.1},
        {MICA_SCHEDULE_LINEAR, 10, 1, 0.1},         {MICA_SCHEDULE_LINEAR, 60, 0.5, 0.1},
        {MICA_SCHEDULE_LINEAR, 109, 0.01, 0.1},     {MICA_SCHEDULE_COSINE, 60, 0.5, 0.1},
        {MICA_SCHEDULE_COSINE, 35, 0.8535534, 0.1}, {MICA_SCHEDULE_TWO_STAGE, 4, 0.5, 0.1},
        {MICA_SCHEDULE_TWO_STAGE, 54, 0.56, 0.1},   {MICA_SCHEDULE_TWO_STAGE, 55, 0.55 * 0.6, 0},
        {MICA_SCHEDULE_STEP, 4, 0.5, 0.1},          {MICA_SCHEDULE_STEP, 10, 1, 0.1},
        {MICA_SCHEDULE_STEP, 39, 1, 0.1},           {MICA_SCHEDULE_STEP, 40, 0.25, 0.1},
        {MICA_SCHEDULE_STEP, 109, 0.015625, 0.1},   {MICA_SCHEDULE_COSINE, 110, 0, 0.1},
        {MICA_SCHEDULE_TWO_STAGE, 109, 0.006, 0},   {MICA_SCHEDULE_TWO_STAGE, 500, 0, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("kind %d, step %d", (int)cases[i].kind, (int)cases[i].step);
        const mica_schedule c = {.struct_size = sizeof c,
                                 .kind = cases[i].kind,
                                 .steps = 110,
                                 .warmup = 10,
                                 .peak = 1,
                                 .peak2 = 0.6,
                                 .decay = 0.1,
                                 .every = 30,
                                 .factor = 0.25};
        double rate = -1, decay = -1;
        mica_schedule_at(&c, cases[i].step, &rate, &decay);
        EXPECT_CLOSE(rate, cases[i].rate, 1e-6, 1e-12);
        EXPECT_CLOSE(decay, cases[i].decay, 0, 0);
    }
}

/* --------------------------------------------------------------- decoder ---- */

static mica_decoder_shape small_shape(bool ternary)
{
    mica_decoder_shape shape;
    mica_decoder_shape_init(&shape);
    shape.vocab = 11, shape.dim = 16, shape.layers = 2, shape.heads = 4, shape.kv_heads = 2, shape.ffn = 24;
    shape.ternary = ternary;
    return shape;
}

enum { BATCH = 2, TIME = 6 };

static void small_data(mica_scope *s, mica_array *data[2])
{
    int32_t ids[BATCH * (TIME + 1)];
    for (int i = 0; i < BATCH * (TIME + 1); i++) ids[i] = (i * i + 3 * i) % 11;
    mica_array *all = mica_from_data(s, MICA_I32, SHAPE(BATCH, TIME + 1), ids);
    data[0] = mica_slice_axis(s, all, 1, 0, TIME, 1);
    data[1] = mica_slice_axis(s, all, 1, 1, TIME + 1, 1);
}

TEST(invalid_shapes)
{
    mica_decoder_shape shape = small_shape(true);
    EXPECT_OK(mica_decoder_shape_check(&shape));
    shape.heads = 3;
    EXPECT_FAILS(mica_decoder_shape_check(&shape), MICA_ERR_ARGUMENT, "3 heads");
    shape = small_shape(true);
    shape.kv_heads = 3;
    EXPECT_FAILS(mica_decoder_shape_check(&shape), MICA_ERR_ARGUMENT, "3 kv_heads");
    shape = small_shape(true);
    shape.vocab = 0;
    EXPECT_FAILS(mica_decoder_shape_check(&shape), MICA_ERR_ARGUMENT, "vocab is 0");
    shape = small_shape(true);
    shape.dropout = 1;
    EXPECT_FAILS(mica_decoder_shape_check(&shape), MICA_ERR_ARGUMENT, "dropout");
    EXPECT_FAILS(mica_decoder_shape_check(NULL), MICA_ERR_ARGUMENT, "no shape");
}

TEST(parameters_have_the_names_of_files)
{
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    const mica_decoder_shape shape = small_shape(true);
    mica_params *p;
    CHECK_OK(mica_decoder_params(s, &shape, 1, &p));
    EXPECT_INT(mica_params_count(p), 2 + 2 * 11);
    EXPECT_INT(mica_params_elements(p), 11 * 16 + 16 + 2 * (16 * 16 * 2 + 2 * 8 * 16 + 3 * 16 * 24 + 3 * 16 + 24));
    EXPECT(mica_params_index(p, "blk.1.ffn_sub_norm.weight") > 0);
    EXPECT(mica_decoder_is_ternary("blk.1.ffn_gate.weight"));
    EXPECT(mica_decoder_is_ternary("blk.10.attn_output.weight"));
    EXPECT(!mica_decoder_is_ternary("blk.1.ffn_sub_norm.weight"));
    EXPECT(!mica_decoder_is_ternary("token_embd.weight"));
    EXPECT(!mica_decoder_is_ternary("blk.1.ffn_gate.scale"));
    mica_params_free(p);
    mica_scope_end(s);
    mica_close(e);
}

/* The set with its values in double. */
static mica_params *in_double(mica_scope *s, const mica_params *p)
{
    mica_params *wide = NULL;
    EXPECT_OK(mica_params_new(&wide));
    for (size_t i = 0; i < mica_params_count(p); i++) {
        /* larger than initial values, so that gradients are not near 0 */
        mica_array *x = mica_mul(s, mica_cast(s, mica_params_at(p, i), MICA_F64), mica_scalar(s, 3));
        EXPECT_OK(mica_eval(s, &x, 1));
        EXPECT_OK(mica_params_add(wide, mica_params_name(p, i), x));
    }
    return wide;
}

/* The loss with element k of parameter i moved by d. */
static double moved_loss(mica_engine *e, mica_decoder_shape *shape, mica_params *p, size_t i, int64_t k, double d)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *old = mica_keep(mica_params_at(p, i)), *data[2];
    const int64_t n = mica_array_size(old);
    double *values = malloc((size_t)n * sizeof *values), loss = NAN;
    EXPECT_OK(mica_copy_out(old, values, (size_t)n * sizeof *values));
    values[k] += d;
    EXPECT_OK(mica_params_set(p, i, mica_from_data(s, MICA_F64, mica_array_ndim(old), mica_array_shape(old), values)));
    small_data(s, data);
    mica_forward f;
    mica_forward_init(&f, s, p);
    mica_array *y = mica_decoder_loss(&f, data, 2, shape);
    if (EXPECT_OK(mica_eval(s, &y, 1))) loss = item_of(y);
    EXPECT_OK(mica_params_set(p, i, old));
    mica_drop(old);
    free(values);
    mica_scope_end(s);
    return loss;
}

TEST(gradients_of_the_network_against_differences)
{
    mica_engine *e = open_engine("ref");
    mica_scope *s = mica_scope_begin(e);
    mica_decoder_shape shape = small_shape(false);
    mica_params *narrow;
    CHECK_OK(mica_decoder_params(s, &shape, 1, &narrow));
    mica_params *p = in_double(s, narrow);
    const size_t n = mica_params_count(p);
    mica_array *wrt[64], *grads[64], *data[2];
    for (size_t i = 0; i < n; i++) wrt[i] = mica_params_at(p, i);
    small_data(s, data);
    mica_forward f;
    mica_forward_init(&f, s, p);
    f.training = true;
    mica_array *loss = mica_decoder_loss(&f, data, 2, &shape);
    CHECK_OK(mica_grad(s, loss, wrt, n, grads));
    for (size_t i = 0; i < n; i++) grads[i] = mica_contiguous(s, grads[i]);
    CHECK_OK(mica_eval(s, grads, n));
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 1; k < mica_array_size(wrt[i]); k += mica_array_size(wrt[i]) / 2) {
            test_case("%s[%d]", mica_params_name(p, i), (int)k);
            const double h = 1e-5;
            const double want = (moved_loss(e, &shape, p, i, k, h) - moved_loss(e, &shape, p, i, k, -h)) / (2 * h);
            EXPECT_CLOSE(mica_data_f64(grads[i])[k], want, 1e-5, 1e-9);
        }
    mica_params_free(p);
    mica_params_free(narrow);
    mica_scope_end(s);
    mica_close(e);
}

/* A position affects only the logits of later positions. */
TEST(logits_are_causal)
{
    for (int ternary = 0; ternary < 2; ternary++) {
        test_case("ternary %d", ternary);
        mica_engine *e = open_engine("cpu");
        mica_scope *s = mica_scope_begin(e);
        const mica_decoder_shape shape = small_shape(ternary);
        mica_params *p;
        CHECK_OK(mica_decoder_params(s, &shape, 1, &p));
        const int32_t a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 2, 3, 4, 9, 6};
        mica_forward f;
        mica_forward_init(&f, s, p);
        mica_array *out[] = {mica_decoder_logits(&f, &shape, mica_from_data(s, MICA_I32, SHAPE(1, 6), a)),
                             mica_decoder_logits(&f, &shape, mica_from_data(s, MICA_I32, SHAPE(1, 6), b))};
        CHECK_OK(mica_eval(s, out, 2));
        for (int i = 0; i < 4 * 11; i++) EXPECT_CLOSE(mica_data_f32(out[0])[i], mica_data_f32(out[1])[i], 0, 1e-6);
        float apart = 0;
        for (int i = 4 * 11; i < 6 * 11; i++) apart += fabsf(mica_data_f32(out[0])[i] - mica_data_f32(out[1])[i]);
        EXPECT(apart > 0.01f);
        mica_params_free(p);
        mica_scope_end(s);
        mica_close(e);
    }
}

/* --------------------------------------------------------------- trainer ---- */

typedef struct lesson {
    mica_engine *engine;
    mica_scope *scope;
    mica_decoder_shape shape;
    mica_params *params;
    mica_trainer *trainer;
    mica_array *data[2];
} lesson;

static lesson lesson_begin(int threads, bool ternary, double dropout)
{
    lesson l = {.shape = small_shape(ternary)};
    const mica_engine_options o = options_for("cpu", threads);
    l.engine = open_with(&o);
    l.scope = mica_scope_begin(l.engine);
    l.shape.dropout = dropout;
    l.shape.dim = 32;
    EXPECT_OK(mica_decoder_params(l.scope, &l.shape, 7, &l.params));
    small_data(l.scope, l.data);
    EXPECT_OK(mica_eval(l.scope, l.data, 2));
    return l;
}

/* The trainer keeps a pointer to l->shape: the struct must not move after this. */
static void lesson_open(lesson *l)
{
    mica_trainer_options o;
    mica_trainer_options_init(&o);
    o.loss = mica_decoder_loss;
    o.user = &l->shape;
    o.seed = 5;
    EXPECT_OK(mica_trainer_open(l->engine, l->params, &o, &l->trainer));
}

static void lesson_end(lesson *l)
{
    mica_trainer_close(l->trainer);
    mica_params_free(l->params);
    mica_scope_end(l->scope);
    mica_close(l->engine);
}

static mica_status one_step(lesson *l, double rate, mica_train_result *r)
{
    mica_scope *s = mica_scope_begin(l->engine);
    const mica_status status = mica_trainer_step(l->trainer, s, l->data, 2, rate, 0, r);
    mica_scope_end(s);
    return status;
}

/* Twelve labels, some after the same context: the loss must reach what can be memorised. */
TEST(a_few_tokens_are_learnt_by_heart)
{
    for (int ternary = 0; ternary < 2; ternary++) {
        test_case("ternary %d", ternary);
        lesson l = lesson_begin(2, ternary, 0);
        lesson_open(&l);
        mica_train_result r = {.struct_size = sizeof r};
        double first = 0, loss = -1;
        for (int i = 0; i < 300; i++) {
            CHECK_OK(one_step(&l, 0.01 * (1 - i / 300.0), &r));
            if (i == 0) first = r.loss;
        }
        EXPECT_CLOSE(first, log(11), 0.1, 0);
        EXPECT_MSG(r.loss < 0.05, "the loss is %g", r.loss);
        CHECK_OK(mica_trainer_loss(l.trainer, l.scope, l.data, 2, &loss));
        EXPECT_CLOSE(loss, r.loss, 0.5, 0.01);
        EXPECT_INT(mica_trainer_steps(l.trainer), 300);
        lesson_end(&l);
    }
}

TEST(steps_are_the_same_bits_for_any_threads)
{
    double losses[3][20];
    for (int run = 0; run < 3; run++) {
        lesson l = lesson_begin(run == 2 ? 3 : 1, true, 0.2);
        lesson_open(&l);
        for (int i = 0; i < 20; i++) {
            mica_train_result r = {.struct_size = sizeof r};
            CHECK_OK(one_step(&l, 0.01, &r));
            losses[run][i] = r.loss;
        }
        lesson_end(&l);
    }
    EXPECT(memcmp(losses[0], losses[1], sizeof losses[0]) == 0);
    EXPECT(memcmp(losses[0], losses[2], sizeof losses[0]) == 0);
}

TEST(steps_plan_once_and_grow_nothing)
{
    lesson l = lesson_begin(1, true, 0);
    lesson_open(&l);
    mica_stats at5 = {0};
    for (int i = 0; i < 12; i++) {
        CHECK_OK(one_step(&l, 0.01, NULL));
        if (i == 5) at5 = stats_of(l.engine);
    }
    const mica_stats after = stats_of(l.engine);
    EXPECT_INT(after.compiles, 1);
    EXPECT_INT(after.plan_misses, at5.plan_misses);
    EXPECT_INT(after.bytes_allocated, at5.bytes_allocated);
    EXPECT_INT(after.bytes_in_use, at5.bytes_in_use);
    lesson_end(&l);
}

/* A loss of NaN leaves the parameters unchanged. */
TEST(nan_stops_before_it_spreads)
{
    lesson l = lesson_begin(1, true, 0);
    lesson_open(&l);
    mica_train_result r = {.struct_size = sizeof r};
    CHECK_OK(one_step(&l, 0.01, &r));
    mica_array *bad = mica_full(l.scope, MICA_F32, SHAPE(32), NAN);
    CHECK_OK(mica_eval(l.scope, &bad, 1));
    const int64_t norm = mica_params_index(l.params, "output_norm.weight");
    mica_array *good = mica_keep(mica_params_at(l.params, (size_t)norm)), *other = mica_params_at(l.params, 0);
    CHECK_OK(mica_params_set(l.params, (size_t)norm, bad));
    EXPECT_FAILS(one_step(&l, 0.01, &r), MICA_ERR_STATE, "finite: the parameter 'output_norm.weight'");
    EXPECT(isnan(r.loss));
    EXPECT(mica_params_at(l.params, 0) == other);
    EXPECT_INT(mica_trainer_steps(l.trainer), 1);
    CHECK_OK(mica_params_set(l.params, (size_t)norm, good));
    CHECK_OK(one_step(&l, 0.01, &r));
    mica_drop(good);
    lesson_end(&l);
}

TEST(bad_trainers)
{
    lesson l = lesson_begin(1, true, 0);
    mica_trainer_options o;
    mica_trainer_options_init(&o);
    EXPECT_FAILS(mica_trainer_open(l.engine, l.params, &o, &l.trainer), MICA_ERR_ARGUMENT, "no loss");
    EXPECT(!l.trainer);
    lesson_open(&l);
    EXPECT_FAILS(mica_trainer_step(NULL, l.scope, l.data, 2, 0, 0, NULL), MICA_ERR_ARGUMENT, "no trainer");
    EXPECT_FAILS(mica_trainer_step(l.trainer, l.scope, l.data, 1, 0, 0, NULL), MICA_ERR_ARGUMENT, "decoder_loss: 1");
    mica_trainer_close(NULL);
    lesson_end(&l);
}
