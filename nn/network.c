/* A network for inference only. Its graph is traced once for each combination of shapes. Parameters are inputs of the
 * graph, so that their values may change between runs. */
#include <stdlib.h>

#include "forward.h"

struct mica_network {
    mica_params *params;
    mica_network_fn fn;
    void *user;
    mica_function *call;
    mica_array **in;
    size_t room;
};

mica_params *mica__params_view(mica_scope *s, const mica_params *params, mica_array *const *values)
{
    mica_params *view;
    mica_status status = mica_params_new(&view);
    for (size_t i = 0; i < mica_params_count(params) && status == MICA_OK; i++) {
        const char *name = mica_params_name(params, i);
        status = mica_params_is_trained(params, i) ? mica_params_add(view, name, values[i])
                                                   : mica_params_add_buffer(view, name, values[i]);
    }
    if (status == MICA_OK) return view;
    mica_scope_fail(s, status, "%s", mica_last_error());
    mica_params_free(view);
    return NULL;
}

/* in: data, parameters */
static mica_status build_network(mica_scope *s, mica_array *const *in, size_t n_in, mica_array **out, size_t n_out,
                                 void *user)
{
    mica_network *net = user;
    const size_t n_data = n_in - mica_params_count(net->params);
    mica_forward f;
    mica_forward_init(&f, s, mica__params_view(s, net->params, in + n_data));
    if (!f.params) return mica_scope_status(s);
    const mica_status status = net->fn(&f, in, n_data, out, n_out, net->user);
    mica_params_free(f.params);
    return status == MICA_OK ? mica_scope_status(s) : status;
}

mica_status mica_network_open(mica_engine *engine, mica_params *params, mica_network_fn fn, void *user,
                              mica_network **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "network: out is NULL");
    *out = NULL;
    if (!engine || !params || !fn) return mica_fail(MICA_ERR_ARGUMENT, "network: no engine, parameters or function");
    mica_network *net = calloc(1, sizeof *net);
    if (!net) return mica_fail(MICA_ERR_MEMORY, "out of memory: a network");
    *net = (mica_network){.params = params, .fn = fn, .user = user};
    const mica_status status = mica_compile(engine, build_network, net, &net->call);
    if (status == MICA_OK) *out = net;
    else mica_network_close(net);
    return status;
}

void mica_network_close(mica_network *network)
{
    if (!network) return;
    mica_function_free(network->call);
    free(network->in);
    free(network);
}

mica_status mica_network_run(mica_network *network, mica_scope *s, mica_array *const *data, size_t n, mica_array **out,
                             size_t n_out)
{
    if (!network || !out || (n > 0 && !data))
        return mica_fail(MICA_ERR_ARGUMENT, "network_run: no network, no data or no place for results");
    const size_t n_params = mica_params_count(network->params), want = n + n_params;
    if (want > network->room) {
        mica_array **in = realloc(network->in, want * sizeof *in);
        if (!in) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu inputs of a network", want);
        network->in = in;
        network->room = want;
    }
    for (size_t i = 0; i < n; i++) network->in[i] = data[i];
    for (size_t i = 0; i < n_params; i++) network->in[n + i] = mica_params_at(network->params, i);
    return mica_call(s, network->call, network->in, want, out, n_out);
}
