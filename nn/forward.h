/* Shared by the files of a forward pass: formatted names, and the arrays that are watched to diagnose a failed
 * step. */
#ifndef MICA_NN_FORWARD_H
#define MICA_NN_FORWARD_H

#include <stdarg.h>

#include "mica_nn.h"

enum { NN_NAME = 256 };

/* Formats a name. false: it is empty or too long; name then holds what fits. */
bool mica__nn_name(char name[NN_NAME], const char *format, va_list args);

bool mica__params_is_full(const mica_params *params, size_t i);

/* Returns a set with the same names and other values, for tracing a graph; the caller frees it. NULL: the scope has
 * the error. */
mica_params *mica__params_view(mica_scope *s, const mica_params *params, mica_array *const *values);

/* Casts an f32 x to the dtype of w if w is f16 or bf16 (mixed precision). */
mica_array *mica__as_weight(mica_scope *s, mica_array *x, const mica_array *w);

/* Arrays in the order in which they were watched. */
typedef struct mica_watcher {
    size_t n, room;
    struct {
        char name[NN_NAME];
        mica_array *value;
    } *seen;
} mica_watcher;

#endif
