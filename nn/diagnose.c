/* Finds why a step gave values that are not finite. The loss is built again outside of the compiled step, and every
 * named array is checked in the order of computation: parameters, data, watched arrays, loss, gradients. The first one
 * that is not finite is reported. (Gradients are computed from the last parameter to the first, so of these it is the
 * last.) If all are finite and only their norm is not, the largest gradient is reported. */
#include <stdio.h>
#include <stdlib.h>

#include "trainer.h"

typedef struct suspects {
    mica_scope *s;
    mica_array **flag; /* by array: is it finite? */
    char (*text)[NN_NAME + 64];
    size_t n, room;
    mica_array **peak; /* largest elements of the gradients; NULL: no memory */
} suspects;

/* name NULL: print the number; "": print neither. */
static void queue_finite_check(suspects *q, mica_array *x, const char *what, const char *name, size_t number)
{
    const mica_dtype dtype = x ? mica_array_dtype(x) : MICA_BOOL;
    if (q->n == q->room || (dtype != MICA_F16 && dtype != MICA_BF16 && dtype != MICA_F32 && dtype != MICA_F64)) return;
    q->flag[q->n] = mica_all(q->s, mica_isfinite(q->s, x), NULL, 0, false);
    char *text = q->text[q->n++];
    if (!name) snprintf(text, sizeof *q->text, "%s %zu", what, number);
    else if (name[0]) snprintf(text, sizeof *q->text, "%s '%s'", what, name);
    else snprintf(text, sizeof *q->text, "%s", what);
}

static void queue_gradient_checks(mica_trainer *t, suspects *q, mica_array *loss, mica_array *const *values)
{
    mica_array **room = calloc(2 * t->n_trained, sizeof *room), **grads = room + t->n_trained;
    for (size_t j = 0; j < t->n_trained && room; j++) room[j] = values[t->order[j]];
    if (room && loss && t->scale != 1) loss = mica_mul(q->s, loss, mica_scalar(q->s, t->scale));
    if (room && loss && mica_grad(q->s, loss, room, t->n_trained, grads) == MICA_OK)
        for (size_t j = t->n_trained; j-- > 0;) {
            queue_finite_check(q, grads[j], "the gradient of", mica_params_name(t->params, t->order[j]), 0);
            if (q->peak) q->peak[j] = mica_max(q->s, mica_abs(q->s, grads[j]), NULL, 0, false);
        }
    free(room);
}

/* Returns whether an array is not finite and describes it in text. */
static bool describe_first_not_finite(suspects *q, char *text, size_t room)
{
    if (mica_eval(q->s, q->flag, q->n) != MICA_OK) return true;
    for (size_t i = 0; i < q->n; i++) {
        double finite = 1;
        if (mica_item(q->flag[i], &finite) != MICA_OK || finite != 0) continue;
        snprintf(text, room, "; the first that is not finite: %s", q->text[i]);
        return true;
    }
    return false;
}

static void describe_largest_gradient(const mica_trainer *t, suspects *q, char *text, size_t room)
{
    double largest = -1, one = 0;
    size_t where = 0;
    if (!q->peak || mica_eval(q->s, q->peak, t->n_trained) != MICA_OK) return;
    for (size_t j = 0; j < t->n_trained; j++)
        if (mica_item(q->peak[j], &one) == MICA_OK && one > largest) largest = one, where = j;
    if (largest >= 0)
        snprintf(text, room, "; all numbers are finite, the largest gradient is that of '%s', up to %g",
                 mica_params_name(t->params, t->order[where]), largest);
}

void mica__trainer_diagnose(mica_trainer *t, mica_array *const *data, size_t n, mica_array *seed, char *text,
                            size_t room)
{
    text[0] = '\0';
    mica_watcher watcher = {0};
    suspects q = {.s = mica_scope_begin(t->engine)};
    mica_forward f;
    mica_forward_init(&f, q.s, NULL);
    f.training = true, f.seed = seed, f.watcher = &watcher;
    mica_array **values = calloc(t->n, sizeof *values), *loss = NULL;
    for (size_t i = 0; i < t->n && values; i++) values[i] = mica_params_at(t->params, i);
    if (q.s && values) loss = mica__trainer_loss_of(t, &f, values, data, n, NULL);
    q.room = t->n + n + watcher.n + 1 + t->n_trained;
    q.flag = calloc(q.room, sizeof *q.flag);
    q.text = calloc(q.room, sizeof *q.text);
    q.peak = calloc(t->n_trained + 1, sizeof *q.peak);
    if (loss && q.flag && q.text) {
        for (size_t i = 0; i < t->n; i++)
            queue_finite_check(&q, values[i], "the parameter", mica_params_name(t->params, i), 0);
        for (size_t i = 0; i < n; i++) queue_finite_check(&q, data[i], "data", NULL, i);
        for (size_t i = 0; i < watcher.n; i++)
            queue_finite_check(&q, watcher.seen[i].value, "the output of", watcher.seen[i].name, 0);
        queue_finite_check(&q, loss, "the loss itself; its inputs are finite", "", 0);
        queue_gradient_checks(t, &q, loss, values);
        if (!describe_first_not_finite(&q, text, room)) describe_largest_gradient(t, &q, text, room);
    }
    free(values);
    free(q.flag);
    free(q.text);
    free(q.peak);
    free(watcher.seen);
    mica_scope_end(q.s);
}
