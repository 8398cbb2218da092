/* See parity_run.h. */
#include "parity_run.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

mica_engine *parity_engine(const char *backend, uint32_t passes, int threads)
{
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.backend = backend;
    options.passes = passes;
    options.threads = threads;
    mica_engine *e;
    if (mica_open(&options, &e) == MICA_OK) return e;
    printf("parity: %s\n", mica_last_error());
    abort();
}

static void take_result(mica_array *y, parity_result *out)
{
    out->dtype = mica_array_dtype(y);
    out->ndim = mica_array_ndim(y);
    for (int d = 0; d < out->ndim; d++) out->shape[d] = mica_array_shape(y)[d];
    out->n = mica_array_size(y);
    out->data = parity_alloc(mica_array_nbytes(y));
    out->status = mica_copy_out(y, out->data, mica_array_nbytes(y));
}

void parity_run(mica_engine *e, const parity_call *call, const parity_input *in, parity_result *out)
{
    *out = (parity_result){0};
    mica_scope *s = mica_scope_begin(e);
    if (!s) abort();
    mica_array *x[PARITY_MAX_IN];
    for (int i = 0; i < call->c->n_in; i++) x[i] = parity_input_wrap(s, &in[i]);
    mica_array *y = call->c->build(s, x, call);
    if (!y && mica_scope_status(s) == MICA_OK) out->skipped = true;
    else out->status = mica_eval(s, &y, 1);
    if (out->status == MICA_OK && !out->skipped) take_result(y, out);
    if (out->status != MICA_OK) snprintf(out->error, sizeof out->error, "%s", mica_last_error());
    mica_scope_end(s);
}

static parity_layout layout_of(parity_layout first, int input)
{
    return (parity_layout)(((int)first + 3 * input) % PARITY_LAYOUTS);
}

static mica_dtype dtype_of(const parity_call *call, int input)
{
    const int fixed = call->c->in[input].dtype;
    return fixed == PARITY_CASE_DTYPE ? call->dtype : (mica_dtype)(fixed - 1);
}

void parity_inputs_make(const parity_call *call, const parity_shape *row, parity_layout layout, uint64_t seed,
                        parity_input *in)
{
    for (int i = 0; i < call->c->n_in; i++)
        parity_input_make(&in[i], dtype_of(call, i), row[i].ndim, row[i].size,
                          layout == PARITY_CONTIGUOUS ? PARITY_CONTIGUOUS : layout_of(layout, i),
                          &call->c->in[i].domain, seed + (uint64_t)i * 7919);
}

void parity_inputs_free(const parity_case *c, parity_input *in)
{
    for (int i = 0; i < c->n_in; i++) parity_input_free(&in[i]);
}

int64_t parity_terms(const parity_case *c, const parity_input *in, const parity_result *out)
{
    if (c->terms) return c->terms;
    int64_t n = 1;
    for (int d = 0; c->n_in > 0 && d < in[0].ndim; d++) n *= in[0].shape[d];
    return out->n ? n / out->n + 1 : 1;
}

void parity_inputs_text(const parity_case *c, const parity_shape *row, parity_layout layout, char text[256])
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < c->n_in && at < 256; i++) {
        char shape[MICA__SHAPE_TEXT];
        mica__shape_text(shape, row[i].ndim, row[i].size);
        const parity_layout used = layout == PARITY_CONTIGUOUS ? layout : layout_of(layout, i);
        at += (size_t)snprintf(text + at, 256 - at, "%s%s %s", i ? "; " : "", shape, parity_layout_names[used]);
    }
}
