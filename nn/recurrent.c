/* LSTM and GRU over a whole sequence as one plan. Products with the inputs are one product for all steps. The
 * recurrence is a scan whose step is one product and one fused chain. Gates are in the order of PyTorch. */
#include "mica_nn.h"

typedef struct recurrence {
    const char *name;
    int64_t gates;
    mica_array *w_state; /* (gates units, units) */
    mica_array *b_state; /* GRU only: it is added inside the reset gate */
} recurrence;

/* Gate i of (batch, gates units). */
static mica_array *gate_of(mica_scope *s, mica_array *all, int64_t i, int64_t units)
{
    return mica_slice_axis(s, all, -1, i * units, (i + 1) * units, 1);
}

/* carry: h, c; x: contribution of the inputs to the gates i, f, g, o. */
static mica_status lstm_step(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                             mica_array **y_out, void *user)
{
    const recurrence *r = user;
    const int64_t units = mica_array_shape(carry[0])[1];
    mica_array *all = mica_add(s, x[0], mica_linear(s, carry[0], r->w_state, NULL));
    mica_array *in = mica_sigmoid(s, gate_of(s, all, 0, units)), *keep = mica_sigmoid(s, gate_of(s, all, 1, units));
    mica_array *new_one = mica_tanh(s, gate_of(s, all, 2, units)), *out = mica_sigmoid(s, gate_of(s, all, 3, units));
    mica_array *c = mica_add(s, mica_mul(s, keep, carry[1]), mica_mul(s, in, new_one));
    carry_out[0] = y_out[0] = mica_mul(s, out, mica_tanh(s, c));
    carry_out[1] = y_out[1] = c; /* a state that is also a result is not recomputed for gradients */
    return mica_scope_status(s);
}

/* carry: h; x: contribution of the inputs to the gates r, z, n. */
static mica_status gru_step(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                            mica_array **y_out, void *user)
{
    const recurrence *r = user;
    const int64_t units = mica_array_shape(carry[0])[1];
    mica_array *all = mica_linear(s, carry[0], r->w_state, r->b_state), *gate[2];
    for (int64_t i = 0; i < 2; i++)
        gate[i] = mica_sigmoid(s, mica_add(s, gate_of(s, x[0], i, units), gate_of(s, all, i, units)));
    mica_array *n =
        mica_tanh(s, mica_add(s, gate_of(s, x[0], 2, units), mica_mul(s, gate[0], gate_of(s, all, 2, units))));
    carry_out[0] = y_out[0] = mica_add(s, n, mica_mul(s, gate[1], mica_sub(s, carry[0], n)));
    return mica_scope_status(s);
}

/* Checks that x (time, batch, in) matches the weights; if not, sets the scope's error. */
static bool sizes_fit(mica_scope *s, const char *name, int64_t gates, const mica_array *x,
                      const mica_recurrent_weights *w)
{
    if (!x || !w->w_in || !w->w_state) {
        mica_scope_fail(s, MICA_ERR_ARGUMENT, "%s: no x, or no weights", name);
        return false;
    }
    const bool axes = mica_array_ndim(x) == 3 && mica_array_ndim(w->w_in) == 2 && mica_array_ndim(w->w_state) == 2;
    const int64_t units = axes ? mica_array_shape(w->w_state)[1] : 0;
    if (axes && units > 0 && mica_array_shape(w->w_in)[0] == gates * units &&
        mica_array_shape(w->w_state)[0] == gates * units && mica_array_shape(w->w_in)[1] == mica_array_shape(x)[2])
        return true;
    mica_scope_fail(
        s, MICA_ERR_SHAPE,
        "%s: x has %d axes (time, batch, in) with %lld values a step; w_in and w_state are not (%lld units, "
        "in) and (%lld units, units) for it",
        name, mica_array_ndim(x), (long long)(mica_array_ndim(x) > 0 ? mica_array_shape(x)[mica_array_ndim(x) - 1] : 0),
        (long long)gates, (long long)gates);
    return false;
}

static mica_array *state_or_zeros(mica_scope *s, mica_array *state, mica_dtype dtype, int64_t batch, int64_t units)
{
    return state ? state : mica_zeros(s, dtype, 2, (const int64_t[]){batch, units});
}

/* States are f32 even if products are narrower. */
static mica_dtype state_dtype(const mica_array *x)
{
    const mica_dtype dtype = mica_array_dtype(x);
    return dtype == MICA_F16 || dtype == MICA_BF16 ? MICA_F32 : dtype;
}

static mica_status run_recurrence(mica_scope *s, recurrence *r, mica_scan_fn step, mica_array *x, mica_array *b_in,
                                  mica_array *w_in, mica_array **carry, size_t n_carry, bool reverse, mica_array **y)
{
    const int64_t time = mica_array_shape(x)[0], batch = mica_array_shape(x)[1], in = mica_array_shape(x)[2];
    const int64_t units = mica_array_shape(r->w_state)[1];
    const mica_dtype dtype = state_dtype(x);
    mica_array *rows = mica_linear(s, mica_reshape(s, x, 2, (const int64_t[]){time * batch, in}), w_in, b_in);
    mica_array *gates = mica_reshape(s, mica_cast(s, rows, dtype), 3, (const int64_t[]){time, batch, r->gates * units});
    for (size_t i = 0; i < n_carry; i++) carry[i] = state_or_zeros(s, carry[i], dtype, batch, units);
    if (mica_scope_status(s) != MICA_OK) return mica_scope_status(s);
    mica_scan_options o;
    mica_scan_options_init(&o);
    o.n_carry = o.n_y = n_carry, o.n_x = 1;
    o.reverse = reverse;
    mica_array *last[2] = {NULL, NULL}, *all[2] = {NULL, NULL};
    const mica_status status = mica_scan(s, step, r, &o, carry, &gates, last, all);
    for (size_t i = 0; i < n_carry; i++) carry[i] = last[i];
    *y = all[0];
    return status;
}

static mica_array *sum_of_biases(mica_scope *s, const mica_recurrent_weights *w)
{
    return w->b_in && w->b_state ? mica_add(s, w->b_in, w->b_state) : w->b_in ? w->b_in : w->b_state;
}

static bool read_weights(mica_scope *s, const char *name, const mica_recurrent_weights *given,
                         mica_recurrent_weights *w)
{
    *w = (mica_recurrent_weights){.struct_size = sizeof *w};
    if (mica_struct_read(name, w, sizeof *w, given) == MICA_OK) return true;
    mica_scope_fail(s, MICA_ERR_ARGUMENT, "%s", mica_last_error());
    return false;
}

mica_status mica_lstm(mica_scope *s, mica_array *x, const mica_recurrent_weights *given, bool reverse, mica_array **h,
                      mica_array **c, mica_array **y)
{
    if (!h || !c || !y) return mica_fail(MICA_ERR_ARGUMENT, "lstm: no place for y, h or c");
    *y = NULL;
    mica_recurrent_weights all, *w = &all;
    if (!read_weights(s, "lstm", given, w)) return MICA_ERR_ARGUMENT;
    if (!sizes_fit(s, "lstm", 4, x, w)) return mica_scope_status(s);
    recurrence r = {"lstm", 4, w->w_state, NULL};
    mica_array *carry[] = {*h, *c};
    const mica_status status = run_recurrence(s, &r, lstm_step, x, sum_of_biases(s, w), w->w_in, carry, 2, reverse, y);
    *h = carry[0];
    *c = carry[1];
    return status;
}

mica_status mica_gru(mica_scope *s, mica_array *x, const mica_recurrent_weights *given, bool reverse, mica_array **h,
                     mica_array **y)
{
    if (!h || !y) return mica_fail(MICA_ERR_ARGUMENT, "gru: no place for y or h");
    *y = NULL;
    mica_recurrent_weights all, *w = &all;
    if (!read_weights(s, "gru", given, w)) return MICA_ERR_ARGUMENT;
    if (!sizes_fit(s, "gru", 3, x, w)) return mica_scope_status(s);
    recurrence r = {"gru", 3, w->w_state, w->b_state};
    return run_recurrence(s, &r, gru_step, x, w->b_in, w->w_in, h, 1, reverse, y);
}
