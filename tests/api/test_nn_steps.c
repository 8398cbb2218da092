/* What a trainer does besides its step: gradient accumulation over several batches, buffers, narrow
 * computation with a loss scale, and reporting where values stop being finite.
 *
 * runs: metal-unsanitized */
#include <math.h>

#include "nn_course.h"

/* ---------------------------------------------------- several batches ------ */

/* Accumulating four quarters of a batch gives the step of the whole batch. */
TEST(accumulated_gradients_are_the_mean)
{
    static const mica_optimiser_kind kinds[] = {MICA_SGD, MICA_ADAMW};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        test_case("%s", mica_optimiser_name(kinds[k]));
        course whole, parts;
        course_begin(&whole), course_begin(&parts);
        mica_optimiser_init(&whole.o.optimiser, kinds[k]);
        mica_optimiser_init(&parts.o.optimiser, kinds[k]);
        course_open(&whole), course_open(&parts);
        for (int step = 0; step < 3; step++) {
            mica_train_result want = {.struct_size = sizeof want}, got = {.struct_size = sizeof got},
                              one = {.struct_size = sizeof one};
            CHECK_OK(course_step(&whole, 0.1, &want));
            double sum = 0;
            for (int64_t i = 0; i < 4; i++) {
                mica_array *data[2];
                for (int d = 0; d < 2; d++)
                    data[d] = mica_slice_axis(parts.s, parts.data[d], 0, i * ROWS / 4, (i + 1) * ROWS / 4, 1);
                CHECK_OK(mica_eval(parts.s, data, 2));
                CHECK_OK(i < 3 ? mica_trainer_accumulate(parts.trainer, parts.s, data, 2, &one)
                               : mica_trainer_step(parts.trainer, parts.s, data, 2, 0.1, 0, &got));
                sum += i < 3 ? one.loss : 0;
            }
            EXPECT_CLOSE(got.loss, want.loss, 1e-5, 0);
            EXPECT_CLOSE(got.norm, want.norm, 1e-5, 0);
            EXPECT(sum > 0);
        }
        for (size_t i = 0; i < mica_params_count(whole.params); i++)
            EXPECT_MSG(close_arrays(mica_params_at(whole.params, i), mica_params_at(parts.params, i)), "%s differs",
                       mica_params_name(whole.params, i));
        EXPECT_INT(mica_trainer_steps(parts.trainer), 3);
        EXPECT_INT(stats_of(parts.engine).compiles, 2);
        course_end(&whole), course_end(&parts);
    }
}

TEST(gradients_that_wait_are_not_saved)
{
    course c;
    course_begin(&c);
    course_open(&c);
    CHECK_OK(mica_trainer_accumulate(c.trainer, c.s, c.data, 2, NULL));
    EXPECT_FAILS(mica_trainer_save(c.trainer, "/tmp/mica-nn-never", NULL, 0), MICA_ERR_STATE,
                 "1 batches were not applied");
    EXPECT(access("/tmp/mica-nn-never", F_OK) != 0);
    EXPECT_FAILS(mica_trainer_accumulate(NULL, c.s, c.data, 2, NULL), MICA_ERR_ARGUMENT, "no trainer");
    course_end(&c);
}

/* ------------------------------------------------------------- optimisers -- */

TEST(each_optimiser_learns)
{
    static const struct {
        mica_optimiser_kind kind;
        double momentum, rate;
        bool nesterov;
    } cases[] = {{MICA_SGD, 0, 0.5, false},   {MICA_SGD, 0.9, 0.1, false},  {MICA_SGD, 0.9, 0.1, true},
                 {MICA_ADAM, 0, 0.02, false}, {MICA_ADAMW, 0, 0.02, false}, {MICA_LION, 0, 0.005, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_case("%s %g", mica_optimiser_name(cases[i].kind), cases[i].momentum);
        course c;
        course_begin(&c);
        mica_optimiser_init(&c.o.optimiser, cases[i].kind);
        c.o.optimiser.momentum = cases[i].momentum, c.o.optimiser.nesterov = cases[i].nesterov;
        course_open(&c);
        mica_train_result r = {.struct_size = sizeof r};
        double first = 0;
        for (int step = 0; step < 300; step++) {
            CHECK_OK(course_step(&c, cases[i].rate, &r));
            if (step == 0) first = r.loss;
        }
        EXPECT_MSG(r.loss < first / 20, "from %g to %g", first, r.loss);
        course_end(&c);
    }
}

TEST(clipped_steps_are_small)
{
    for (int by_value = 0; by_value < 2; by_value++) {
        test_case("%s", by_value ? "value" : "norm");
        course c;
        course_begin(&c);
        c.factor = 1000;
        *(by_value ? &c.o.optimiser.clip_value : &c.o.optimiser.clip) = 1e-3;
        course_open(&c);
        mica_array *before = mica_keep(mica_params_at(c.params, 0));
        mica_train_result r = {.struct_size = sizeof r};
        CHECK_OK(course_step(&c, 1, &r));
        EXPECT(r.norm > 10); /* the norm before clipping */
        double most = 0, sum = 0;
        for (int64_t k = 0; k < mica_array_size(before); k++) {
            const double d = fabs((double)element(before, k) - (double)element(mica_params_at(c.params, 0), k));
            most = fmax(most, d), sum += d * d;
        }
        if (by_value) EXPECT_CLOSE(most, 1e-3, 1e-3, 0);
        else EXPECT(sqrt(sum) > 1e-4 && sqrt(sum) < 1.001e-3);
        mica_drop(before);
        course_end(&c);
    }
}

/* ---------------------------------------------------------------- buffers -- */

/* Running statistics are updated in training and used in evaluation. They are not parameters
 * of the optimiser. */
TEST(batch_norm_learns_its_statistics)
{
    course c;
    course_begin(&c);
    c.net[1] = mica_norm_layer(MICA_LAYER_BATCH_NORM, 8);
    course_open(&c);
    const int64_t mean = mica_params_index(c.params, "net.1.running_mean");
    const int64_t var = mica_params_index(c.params, "net.1.running_var");
    CHECK(mean >= 0 && var >= 0);
    mica_scope *s = c.s;
    mica_array *h = mica_linear(s, c.data[0], mica_params_get(s, c.params, "net.0.weight"),
                                mica_params_get(s, c.params, "net.0.bias"));
    mica_array *want[] = {
        mica_mul(s, mica_mean(s, h, (int[]){0}, 1, false), mica_scalar(s, 0.1)),
        mica_add(s, mica_mul(s, mica_var(s, h, (int[]){0}, 1, 1, false), mica_scalar(s, 0.1)), mica_scalar(s, 0.9))};
    CHECK_OK(mica_eval(s, want, 2));
    mica_train_result r = {.struct_size = sizeof r};
    CHECK_OK(course_step(&c, 0.1, &r));
    EXPECT(close_arrays(mica_params_at(c.params, (size_t)mean), want[0]));
    EXPECT(close_arrays(mica_params_at(c.params, (size_t)var), want[1]));
    double first, later;
    CHECK_OK(mica_trainer_loss(c.trainer, s, c.data, 2, &first));
    CHECK_OK(mica_trainer_accumulate(c.trainer, s, c.data, 2, &r)); /* also updates the statistics, and nothing else */
    CHECK_OK(mica_trainer_loss(c.trainer, s, c.data, 2, &later));
    EXPECT(first != later);
    for (int i = 0; i < 200; i++) CHECK_OK(course_step(&c, 0.1, &r));
    CHECK_OK(mica_trainer_loss(c.trainer, s, c.data, 2, &later));
    EXPECT_CLOSE(later, r.loss, 0.2, 0.01); /* always the same batch, so the same statistics */
    course_end(&c);
}

/* --------------------------------------------------------- mixed precision - */

TEST(narrow_computation_learns)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_BF16, MICA_F16};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        test_case("%s", mica_dtype_name(dtypes[i]));
        course c;
        course_begin(&c);
        mica_optimiser_init(&c.o.optimiser, MICA_ADAM);
        c.o.compute = dtypes[i];
        course_open(&c);
        mica_train_result r = {.struct_size = sizeof r};
        for (int step = 0; step < 300; step++) CHECK_OK(course_step(&c, 0.02, &r));
        EXPECT_MSG(r.loss < 0.01, "the loss is %g", r.loss);
        EXPECT(r.loss_scale == (dtypes[i] == MICA_F16 ? 65536 : 1));
        EXPECT_INT(mica_array_dtype(mica_params_at(c.params, 0)), MICA_F32); /* master copy */
        course_end(&c);
    }
}

/* Records the dtypes that the loss function gets. */
static mica_array *looking_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    (void)n;
    int *seen = user;
    mica_array *w = mica_param(f, "w"), *kept = mica_param(f, "kept"), *b = mica_param(f, "b");
    seen[0] = (int)mica_array_dtype(w), seen[1] = (int)mica_array_dtype(kept), seen[2] = (int)mica_array_dtype(b);
    mica_array *y = mica_linear(f->s, data[0], w, b);
    seen[3] = (int)mica_array_dtype(y);
    y = mica_linear(f->s, y, kept, NULL);
    seen[4] = (int)mica_array_dtype(y);
    return mica_mean(f->s, mica_square(f->s, y), NULL, 0, false);
}

TEST(a_policy_for_each_parameter)
{
    course c;
    int seen[5] = {0};
    course_begin(&c);
    CHECK_OK(mica_params_new(&c.params));
    CHECK_OK(mica_params_make(c.s, c.params, MICA_INIT_NORMAL, 1, SHAPE(4, IN), 1, "w"));
    CHECK_OK(mica_params_make(c.s, c.params, MICA_INIT_NORMAL, 1, SHAPE(4, 4), 1, "%s", "kept"));
    CHECK_OK(mica_params_make(c.s, c.params, MICA_INIT_NORMAL, 1, SHAPE(4), 1, "b"));
    CHECK_OK(mica_params_keep_precision(c.params, 1));
    EXPECT_FAILS(mica_params_keep_precision(c.params, 3), MICA_ERR_ARGUMENT, "3");
    c.o.loss = looking_loss, c.o.user = seen, c.o.compute = MICA_BF16;
    CHECK_OK(mica_trainer_open(c.engine, c.params, &c.o, &c.trainer));
    mica_train_result r = {.struct_size = sizeof r};
    CHECK_OK(course_step(&c, 0.1, &r));
    EXPECT_INT(seen[0], MICA_BF16);
    EXPECT_INT(seen[1], MICA_F32);
    EXPECT_INT(seen[2], MICA_F32); /* one axis */
    EXPECT_INT(seen[3], MICA_BF16); /* the layer multiplies and adds in the dtype of its matrix */
    EXPECT_INT(seen[4], MICA_F32);
    course_end(&c);
}

/* 65536 times a gradient above 1 overflows f16: the scale is halved until the gradients fit,
 * and the step is repeated on the same data. */
TEST(overflow_halves_the_scale)
{
    course c;
    course_begin(&c);
    c.o.compute = MICA_F16;
    c.o.loss_scale = 16777216;
    c.o.scale_every = 3;
    course_open(&c);
    mica_train_result r = {.struct_size = sizeof r};
    CHECK_OK(course_step(&c, 0.01, &r));
    EXPECT_MSG(r.overflows > 0, "no overflow at 2^24");
    EXPECT(r.loss_scale == ldexp(16777216, -r.overflows));
    EXPECT(isfinite(r.loss) && isfinite(r.norm));
    EXPECT_INT(mica_trainer_steps(c.trainer), 1);
    const double settled = r.loss_scale;
    for (int i = 1; i < 3; i++) {
        CHECK_OK(course_step(&c, 0.01, &r));
        EXPECT(r.loss_scale == settled && r.overflows == 0);
    }
    CHECK_OK(course_step(&c, 0.01, &r)); /* after three good steps it is doubled, overflows, and is halved again */
    EXPECT_INT(r.overflows, 1);
    EXPECT(r.loss_scale == settled);
    course_end(&c);
}

TEST(good_steps_double_the_scale)
{
    course c;
    course_begin(&c);
    c.o.compute = MICA_F16;
    c.o.loss_scale = 4;
    c.o.scale_every = 2;
    course_open(&c);
    mica_train_result r = {.struct_size = sizeof r};
    for (int i = 0; i < 8; i++) {
        CHECK_OK(course_step(&c, 0.01, &r));
        EXPECT(r.loss_scale == ldexp(4, i / 2));
    }
    course_end(&c);
}

/* Gradients of 1e-8 and less are 0 in f16: without a scale nothing is learnt. */
TEST(a_scale_saves_small_gradients)
{
    double loss[2];
    for (int scaled = 0; scaled < 2; scaled++) {
        course c;
        course_begin(&c);
        mica_optimiser_init(&c.o.optimiser, MICA_ADAM);
        c.o.optimiser.eps = 1e-12;
        c.factor = 1e-7;
        c.o.compute = MICA_F16;
        c.o.loss_scale = scaled ? 0 : 1; /* 0: the default; 1: no scale */
        course_open(&c);
        mica_train_result r = {.struct_size = sizeof r};
        for (int step = 0; step < 300; step++) CHECK_OK(course_step(&c, 0.02, &r));
        loss[scaled] = r.loss / c.factor;
        course_end(&c);
    }
    EXPECT_MSG(loss[1] < 0.01, "with a scale the loss is %g", loss[1]);
    EXPECT_MSG(loss[0] > 0.05, "without one it is %g", loss[0]);
}

/* ------------------------------------------------------------ not finite ---- */

static void expect_stop(course *c, const char *where)
{
    mica_train_result r = {.struct_size = sizeof r};
    mica_array *before = mica_params_at(c->params, 0);
    EXPECT_FAILS(course_step(c, 0.01, &r), MICA_ERR_STATE, where);
    EXPECT(strstr(mica_last_error(), "step 1: "));
    EXPECT(mica_params_at(c->params, 0) == before);
    EXPECT_INT(mica_trainer_steps(c->trainer), 1);
}

static mica_array *all_of(course *c, const mica_array *like, double value)
{
    mica_array *x = mica_full(c->s, MICA_F32, mica_array_ndim(like), mica_array_shape(like), value);
    EXPECT_OK(mica_eval(c->s, &x, 1));
    return x;
}

TEST(where_numbers_stop_being_finite)
{
    static const char *const where[] = {"the parameter 'net.2.weight'",
                                        "data 1",
                                        "the output of 'net.0'",
                                        "the gradient of 'net.0.bias'",
                                        "the largest gradient is that of 'net.0.bias'",
                                        "the loss itself"};
    for (int i = 0; i < 6; i++) {
        test_case("%s", where[i]);
        course c;
        course_begin(&c);
        if (i >= 2) c.net[1] = mica_activation_layer(MICA_ACTIVATION_NONE); /* tanh would be finite again */
        course_open(&c);
        mica_train_result r = {.struct_size = sizeof r};
        CHECK_OK(course_step(&c, 0.01, &r));
        const size_t last = (size_t)mica_params_index(c.params, "net.2.weight");
        if (i == 0) CHECK_OK(mica_params_set(c.params, last, all_of(&c, mica_params_at(c.params, last), NAN)));
        if (i == 1) c.data[1] = all_of(&c, c.data[1], INFINITY);
        if (i == 2) { /* finite inputs, infinite products */
            c.data[0] = all_of(&c, c.data[0], 3e38);
            CHECK_OK(mica_params_set(c.params, 0, all_of(&c, mica_params_at(c.params, 0), 2)));
        }
        if (i == 5) c.data[1] = all_of(&c, c.data[1], 1e30); /* the squared error overflows */
        if (i == 3 || i == 4) { /* inputs 0 and large weights: only the backward pass, or only the norm, overflows */
            c.data[0] = all_of(&c, c.data[0], 0);
            CHECK_OK(mica_params_set(c.params, 1, all_of(&c, mica_params_at(c.params, 1), 0)));
            CHECK_OK(mica_params_set(c.params, last, all_of(&c, mica_params_at(c.params, last), i == 3 ? 3e38 : 1e20)));
            c.data[1] = all_of(&c, c.data[1], 1e10);
        }
        expect_stop(&c, where[i]);
        course_end(&c);
    }
}

/* ------------------------------------------------------------------ errors -- */

TEST(options_that_make_no_trainer)
{
    course c;
    course_begin(&c);
    course_open(&c);
    mica_trainer *t;
    mica_trainer_options o = c.o;
    o.compute = MICA_I8;
    EXPECT_FAILS(mica_trainer_open(c.engine, c.params, &o, &t), MICA_ERR_DTYPE, "i8");
    o = c.o, o.loss_scale = -1;
    EXPECT_FAILS(mica_trainer_open(c.engine, c.params, &o, &t), MICA_ERR_ARGUMENT, "-1");
    o = c.o, o.scale_every = 0;
    EXPECT_FAILS(mica_trainer_open(c.engine, c.params, &o, &t), MICA_ERR_ARGUMENT, "every 0");
    o = c.o, o.optimiser.kind = (mica_optimiser_kind)9;
    EXPECT_FAILS(mica_trainer_open(c.engine, c.params, &o, &t), MICA_ERR_ARGUMENT, "kind 9");
    o = c.o, o.optimiser.momentum = 1;
    EXPECT_FAILS(mica_trainer_open(c.engine, c.params, &o, &t), MICA_ERR_ARGUMENT, "momentum is 1");
    o = c.o, o.optimiser.clip_value = NAN;
    EXPECT_FAILS(mica_trainer_open(c.engine, c.params, &o, &t), MICA_ERR_ARGUMENT, "clip_value");
    mica_params *buffers;
    CHECK_OK(mica_params_new(&buffers));
    CHECK_OK(mica_params_make_buffer(c.s, buffers, 1, SHAPE(3), "b%d", 1));
    EXPECT_FAILS(mica_trainer_open(c.engine, buffers, &c.o, &t), MICA_ERR_ARGUMENT, "trained");
    EXPECT(!t);
    mica_params_free(buffers);
    EXPECT_FAILS(mica_optimiser_check(NULL), MICA_ERR_ARGUMENT, "no options");
    mica_optimiser_kind kind;
    EXPECT(mica_optimiser_named("lion", &kind) && kind == MICA_LION);
    EXPECT(!mica_optimiser_named("lyon", &kind) && !mica_optimiser_name((mica_optimiser_kind)9));
    course_end(&c);
}

/* --------------------------------------------------------------- network ---- */

static mica_status run_net(mica_forward *f, mica_array *const *data, size_t n, mica_array **out, size_t n_out,
                           void *user)
{
    const course *c = user;
    if (n != 1 || n_out != 1) return mica_fail(MICA_ERR_ARGUMENT, "one in, one out");
    out[0] = mica_sequential(f, c->net, c->n, data[0], "net");
    return mica_scope_status(f->s);
}

/* Traced once; each run uses the current values of the parameters. */
TEST(a_network_that_is_run)
{
    course c;
    course_begin(&c);
    course_open(&c);
    mica_network *net;
    CHECK_OK(mica_network_open(c.engine, c.params, run_net, &c, &net));
    mica_array *y[2];
    CHECK_OK(mica_network_run(net, c.s, c.data, 1, &y[0], 1));
    CHECK_OK(course_step(&c, 0.1, NULL));
    CHECK_OK(mica_network_run(net, c.s, c.data, 1, &y[1], 1));
    EXPECT(!close_arrays(y[0], y[1]));
    EXPECT_INT(stats_of(c.engine).compiles, 2); /* the network and the step */
    mica_forward f;
    mica_forward_init(&f, c.s, c.params);
    mica_array *want = mica_sequential(&f, c.net, c.n, c.data[0], "net");
    CHECK_OK(mica_eval(c.s, &want, 1));
    EXPECT(close_arrays(y[1], want));
    EXPECT_FAILS(mica_network_run(net, c.s, c.data, 2, y, 1), MICA_ERR_ARGUMENT, "one in");
    EXPECT_FAILS(mica_network_run(NULL, c.s, c.data, 1, y, 1), MICA_ERR_ARGUMENT, "no network");
    mica_network_close(net);
    mica_network_close(NULL);
    EXPECT_FAILS(mica_network_open(c.engine, c.params, NULL, &c, &net), MICA_ERR_ARGUMENT, "function");
    EXPECT_FAILS(mica_network_open(c.engine, c.params, run_net, &c, NULL), MICA_ERR_ARGUMENT, "NULL");
    course_end(&c);
}
