/* mica bench: liquid networks as compiled functions: a forward pass over a sequence, and a
 * training step with Adam. The peer is ncps on torch (peer_worker.py). */
#include <mica_liquid.h>

#include "bench/bench.h"

/* ----------- p = cell, units, batch, training; inputs 16, time 32, 8 motor neurons */

enum { LIQUID_INPUTS = 16, LIQUID_TIME = 32, LIQUID_MOTOR = 8, LIQUID_PARAMS = 20 };
/* BENCH_LTC_RANDOM + n: a random wiring without n percent of the synapses */
enum { BENCH_CFC, BENCH_LTC_FULL, BENCH_LTC_NCP, BENCH_LTC_RANDOM = 100 };

/* The network, and its wiring, which the caller frees. */
static mica_liquid network_of(const bench_case *c, mica_wiring **wiring)
{
    mica_liquid net;
    mica_wiring_options o;
    mica_liquid_init(&net, c->p[0] == BENCH_CFC ? MICA_LIQUID_CFC : MICA_LIQUID_LTC);
    net.inputs = LIQUID_INPUTS, net.units = c->p[1];
    *wiring = NULL;
    if (c->p[0] < BENCH_LTC_NCP) return net;
    mica_wiring_options_init(&o, c->p[0] == BENCH_LTC_NCP ? MICA_WIRING_AUTO_NCP : MICA_WIRING_RANDOM);
    o.units = c->p[1], o.outputs = LIQUID_MOTOR, o.inputs = LIQUID_INPUTS;
    if (o.kind == MICA_WIRING_RANDOM) o.sparsity = (double)(c->p[0] - BENCH_LTC_RANDOM) / 100;
    if (mica_wiring_new(&o, wiring) == MICA_OK) net.wiring = *wiring;
    return net;
}

static mica_params *params_of(mica_scope *s, const mica_liquid *net)
{
    mica_params *p;
    mica_status status = mica_params_new(&p);
    if (status == MICA_OK) status = mica_liquid_params(s, net, MICA_F32, 1, p);
    if (status != MICA_OK) mica_scope_fail(s, status, "%s", mica_last_error());
    return p;
}

/* in: x, parameters; training: the target, first and second moments, rates */
static void make_liquid(bench_state *b)
{
    mica_scope *s = b->inputs;
    mica_wiring *wiring;
    const mica_liquid net = network_of(b->c, &wiring);
    const int64_t batch = b->c->p[2], width = mica_liquid_outputs(&net);
    mica_params *p = params_of(s, &net);
    b->in[b->n_in++] = mica_random_normal(s, MICA_F32, 3, (const int64_t[]){batch, LIQUID_TIME, LIQUID_INPUTS}, 1);
    for (size_t i = 0; i < mica_params_count(p); i++) b->in[b->n_in++] = mica_params_at(p, i);
    if (b->c->p[3]) {
        float rates[4];
        mica_optimiser adam;
        mica_optimiser_init(&adam, MICA_ADAM);
        mica_optimiser_rates(&adam, 1e-3, 0, 1, rates);
        for (size_t i = 0; i < 2 * mica_params_count(p); i++) {
            const mica_array *of = mica_params_at(p, i % mica_params_count(p));
            b->in[b->n_in++] = mica_zeros(s, MICA_F32, mica_array_ndim(of), mica_array_shape(of));
        }
        b->in[b->n_in++] = mica_random_normal(s, MICA_F32, 3, (const int64_t[]){batch, LIQUID_TIME, width}, 2);
        b->in[b->n_in++] = mica_from_data(s, MICA_F32, 1, (const int64_t[]){4}, rates);
    }
    mica_params_free(p);
    mica_wiring_free(wiring);
}

static size_t build_step(mica_scope *s, mica_array *y, mica_array *const *in, size_t n, mica_array **out)
{
    mica_optimiser adam;
    mica_array *grads[LIQUID_PARAMS];
    mica_optimiser_init(&adam, MICA_ADAM);
    out[0] = mica_mse_loss(s, y, in[1 + 3 * n]);
    mica_status status = mica_grad(s, out[0], in + 1, n, grads);
    if (status == MICA_OK)
        status = mica_optimiser_step(s, &adam, in[2 + 3 * n], n, in + 1, grads, in + 1 + n, out + 1, out + 1 + n, NULL);
    return status == MICA_OK ? 1 + 3 * n : 1;
}

static size_t build_liquid(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out)
{
    mica_wiring *wiring;
    const mica_liquid net = network_of(c, &wiring);
    mica_params *p = params_of(s, &net);
    const size_t n = mica_params_count(p);
    mica_status status = MICA_OK;
    for (size_t i = 0; i < n && status == MICA_OK; i++) status = mica_params_set(p, i, in[1 + i]);
    mica_liquid_result r = {.struct_size = sizeof r};
    if (status == MICA_OK)
        status = mica_liquid_forward(s, &net, p,
                                     &(mica_liquid_data){.struct_size = sizeof(mica_liquid_data), .x = in[0]}, &r);
    mica_params_free(p);
    mica_wiring_free(wiring);
    out[0] = r.y;
    return c->p[3] && status == MICA_OK ? build_step(s, r.y, in, n, out) : 1;
}

static void count_liquid(const bench_case *c, bench_work *work)
{
    work->items = (double)(c->p[2] * LIQUID_TIME);
    work->item = "step";
    work->flops = 0;
}

const bench_family bench_liquid = {"liquid", make_liquid, build_liquid, count_liquid};
