/* What the files of a forward pass share: names made as printf does, and the arrays
 * that are looked at when a step has failed. */
#ifndef MICA_NN_FORWARD_H
#define MICA_NN_FORWARD_H

#include <stdarg.h>

#include "mica_nn.h"

enum { NN_NAME = 256 };

/* false: it is longer than that, or there is none; name has what fits. */
bool mica__nn_name(char name[NN_NAME], const char *format, va_list args);

bool mica__params_is_full(const mica_params *params, size_t i);

/* The set's names with other values: what a graph is traced with; to be freed. NULL:
 * the scope has the cause. */
mica_params *mica__params_view(mica_scope *s, const mica_params *params, mica_array *const *values);

/* x in the dtype of w if w is f16 or bf16 and x f32: what mixed precision multiplies. */
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
