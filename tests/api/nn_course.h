/* A small network for tests of trainers: rows of data, squared error as the loss, and options that
 * a test may change before the trainer is opened. */
#ifndef MICA_TEST_NN_COURSE_H
#define MICA_TEST_NN_COURSE_H

#include "api.h"
#include "mica_nn.h"

enum { ROWS = 32, IN = 4, OUT = 3 };

typedef struct course {
    mica_engine *engine;
    mica_scope *s;
    mica_params *params;
    mica_trainer *trainer;
    mica_trainer_options o;
    mica_layer net[8];
    size_t n;
    double factor; /* multiplies the loss */
    mica_array *data[2];
} course;

/* The squared error between the outputs of the network and the targets. */
static UNUSED mica_array *course_loss(mica_forward *f, mica_array *const *data, size_t n, void *user)
{
    (void)n;
    const course *c = user;
    mica_array *loss = mica_mse_loss(f->s, mica_sequential(f, c->net, c->n, data[0], "net"), data[1]);
    return c->factor == 1 ? loss : mica_mul(f->s, loss, mica_scalar(f->s, c->factor));
}

/* A course of two linear layers with tanh between them; options may be changed before
 * course_open. The struct must not move in memory. */
static UNUSED void course_begin(course *c)
{
    *c = (course){.engine = open_engine("cpu"), .factor = 1};
    c->s = mica_scope_begin(c->engine);
    c->n = mica_mlp((int64_t[]){IN, 8, OUT}, 3, MICA_ACTIVATION_TANH, 0, c->net, COUNT(c->net));
    mica_trainer_options_init(&c->o);
    mica_optimiser_init(&c->o.optimiser, MICA_SGD);
    c->o.loss = course_loss;
    c->o.user = c;
    c->o.seed = 11;
    c->data[0] = mica_random_normal(c->s, MICA_F32, SHAPE(ROWS, IN), 1);
    c->data[1] = mica_sin(c->s, mica_slice_axis(c->s, c->data[0], 1, 0, OUT, 1));
    EXPECT_OK(mica_eval(c->s, c->data, 2));
}

static UNUSED void course_open(course *c)
{
    EXPECT_OK(mica_params_new(&c->params));
    EXPECT_OK(mica_sequential_params(c->s, c->params, c->net, c->n, 5, "net"));
    EXPECT_OK(mica_trainer_open(c->engine, c->params, &c->o, &c->trainer));
}

static UNUSED void course_end(course *c)
{
    mica_trainer_close(c->trainer);
    mica_params_free(c->params);
    mica_scope_end(c->s);
    mica_close(c->engine);
}

static UNUSED mica_status course_step(course *c, double rate, mica_train_result *r)
{
    mica_scope *s = mica_scope_begin(c->engine);
    const mica_status status = mica_trainer_step(c->trainer, s, c->data, 2, rate, 0, r);
    mica_scope_end(s);
    return status;
}

#endif
