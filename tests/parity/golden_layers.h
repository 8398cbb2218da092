/* Builders of the golden cases of mica_nn.h; see golden_ops.h, which has the table. */
#ifndef MICA_TESTS_GOLDEN_LAYERS_H
#define MICA_TESTS_GOLDEN_LAYERS_H

#include "golden_file.h"
#include "mica_nn.h"

BUILDER(linear)
{
    (void)c;
    out[0] = mica_linear(s, in[0], in[1], in[2]);
}

BUILDER(activate) { out[0] = mica_activate(s, (mica_activation)golden_int(c, "activation", -1), in[0]); }

BUILDER(lstm)
{
    const bool biases = golden_int(c, "biases", 0) != 0;
    const mica_recurrent_weights w = {sizeof w, in[3], in[4], biases ? in[5] : NULL, biases ? in[6] : NULL};
    out[1] = in[1], out[2] = in[2];
    (void)mica_lstm(s, in[0], &w, golden_int(c, "reverse", 0) != 0, &out[1], &out[2], &out[0]);
}

BUILDER(gru)
{
    const bool biases = golden_int(c, "biases", 0) != 0;
    const mica_recurrent_weights w = {sizeof w, in[2], in[3], biases ? in[4] : NULL, biases ? in[5] : NULL};
    out[1] = in[1];
    (void)mica_gru(s, in[0], &w, golden_int(c, "reverse", 0) != 0, &out[1], &out[0]);
}

BUILDER(batch_norm)
{
    mica_batch_norm_options o;
    mica_batch_norm_options_init(&o);
    o.eps = golden_float(c, "eps", 0);
    o.momentum = golden_float(c, "momentum", 0);
    o.training = golden_int(c, "training", 0) != 0;
    out[1] = in[3], out[2] = in[4];
    out[0] = mica_batch_norm(s, in[0], in[1], in[2], &out[1], &out[2], &o);
}

BUILDER(multi_head)
{
    mica_heads_options o;
    mica_heads_options_init(&o);
    o.heads = golden_int(c, "heads", 0);
    o.kv_heads = golden_int(c, "kv_heads", 0);
    o.causal = golden_int(c, "causal", 0) != 0;
    o.rope_base = golden_float(c, "rope_base", 0);
    out[0] = mica_multi_head(s, in[0], in[1], in[2], NULL, &o);
}

BUILDER(mse_loss)
{
    (void)c;
    out[0] = mica_mse_loss(s, in[0], in[1]);
}

BUILDER(mae_loss)
{
    (void)c;
    out[0] = mica_mae_loss(s, in[0], in[1]);
}

BUILDER(huber_loss) { out[0] = mica_huber_loss(s, in[0], in[1], golden_float(c, "delta", 0)); }

BUILDER(bce_loss)
{
    (void)c;
    out[0] = mica_bce_loss(s, in[0], in[1]);
}

BUILDER(cross_entropy_loss) { out[0] = mica_cross_entropy_loss(s, in[0], in[1], golden_float(c, "smoothing", 0)); }

/* A parameter and the gradients of its steps. */
BUILDER(optimise)
{
    mica_optimiser o;
    mica_optimiser_init(&o, (mica_optimiser_kind)golden_int(c, "kind", -1));
    o.momentum = golden_float(c, "momentum", 0);
    o.nesterov = golden_int(c, "nesterov", 0) != 0;
    o.beta1 = golden_float(c, "beta1", 0);
    o.beta2 = golden_float(c, "beta2", 0);
    o.clip = 0;
    mica_array *p = in[0], *state[2];
    for (int i = 0; i < 2; i++) state[i] = mica_zeros(s, MICA_F64, mica_array_ndim(p), mica_array_shape(p));
    for (size_t t = 1; t < c->in.n; t++) {
        float rates[4];
        mica_optimiser_rates(&o, golden_float(c, "rate", 0), golden_float(c, "decay", 0), (int64_t)t, rates);
        mica_array *r = mica_from_data(s, MICA_F32, 1, (int64_t[]){4}, rates), *p1, *state1[2];
        if (mica_optimiser_step(s, &o, r, 1, &p, &in[t], state, &p1, state1, NULL) != MICA_OK) return;
        p = p1;
        memcpy(state, state1, mica_optimiser_slots(&o) * sizeof *state);
    }
    out[0] = p;
}

BUILDER(clip_gradients)
{
    out[2] = mica_global_norm(s, 2, in);
    mica_clip_gradients(s, out[2], golden_float(c, "norm", 0), golden_float(c, "value", 0), 2, in, out);
}

/* clang-format off */
#define GOLDEN_LAYERS(X)                                                                                         \
    X(linear) X(activate) X(lstm) X(gru) X(batch_norm) X(multi_head) X(mse_loss) X(mae_loss) X(huber_loss)       \
    X(bce_loss) X(cross_entropy_loss) X(optimise) X(clip_gradients)
/* clang-format on */

#endif
