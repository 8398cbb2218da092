/* Traced functions: one plan for each combination of shapes and dtypes, found
 * without building a graph. */
#ifndef MICA_RUNTIME_FUNCTION_H
#define MICA_RUNTIME_FUNCTION_H

#include "runtime/run.h"

mica_status mica__function_new(mica_engine *e, mica_trace_fn fn, void *user, mica_function **out);
mica_engine *mica__function_engine(const mica_function *f);
mica_status mica__function_call(mica_scope *s, mica_function *f, mica_array *const *in, size_t n_in, mica_array **out,
                                size_t n_out);
void mica__function_free(mica_function *f);

#endif
