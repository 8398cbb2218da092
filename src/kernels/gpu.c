/* Functions with which a lowering writes its dispatches (gpu.h). */
#include "kernels/gpu.h"

#include <string.h>

#include "base/checked.h"
#include "kernels/common/common_params.h"

#define X(name, code) _Static_assert(MICA_##name == (code), #name);
MICA_SHADER_DTYPES(X)
#undef X

mica__gpu_dispatch *mica__gpu_add(mica__gpu_list *list, const char *shader, const char *kernel)
{
    if (list->n == list->capacity && !list->failed) {
        const uint32_t capacity = list->capacity ? 2 * list->capacity : 2;
        mica__gpu_dispatch *more = mica__arena_array(list->arena, capacity, sizeof *more);
        if (more && list->n) memcpy(more, list->dispatch, list->n * sizeof *more);
        if (more) list->dispatch = more, list->capacity = capacity;
        else list->failed = true;
    }
    mica__gpu_dispatch *d = list->failed ? &list->spare : &list->dispatch[list->n++];
    *d = (mica__gpu_dispatch){.shader = shader, .kernel = kernel, .groups = {1, 1, 1}, .threads = {1, 1, 1}};
    return d;
}

/* A binding over the limit is counted but not written; the consumer of the list refuses it. */
static void gpu_bind(mica__gpu_dispatch *d, mica__gpu_binding binding)
{
    if (d->n_binding < MICA__GPU_MAX_BINDINGS) d->binding[d->n_binding] = binding;
    d->n_binding++;
}

void mica__gpu_bind_in(mica__gpu_dispatch *d, uint32_t operand, int64_t offset)
{
    gpu_bind(d, (mica__gpu_binding){MICA__GPU_IN, operand, offset});
}

void mica__gpu_bind_out(mica__gpu_dispatch *d, int64_t offset)
{
    gpu_bind(d, (mica__gpu_binding){MICA__GPU_OUT, 0, offset});
}

void mica__gpu_bind_workspace(mica__gpu_dispatch *d, int64_t offset)
{
    gpu_bind(d, (mica__gpu_binding){MICA__GPU_WORKSPACE, 0, offset});
}

void mica__gpu_bind_fault(mica__gpu_dispatch *d) { gpu_bind(d, (mica__gpu_binding){MICA__GPU_FAULT, 0, 0}); }

void mica__gpu_params(mica__gpu_list *list, mica__gpu_dispatch *d, const void *params, size_t nbytes)
{
    d->params = nbytes <= MICA__GPU_MAX_PARAMS ? mica__arena_copy(list->arena, params, nbytes) : NULL;
    d->params_bytes = nbytes;
    if (!d->params) list->failed = true;
}

static void gpu_constant(mica__gpu_dispatch *d, uint32_t index, mica__gpu_type type, uint32_t bits)
{
    if (d->n_constant < MICA__GPU_MAX_CONSTANTS) d->constant[d->n_constant] = (mica__gpu_constant){index, type, bits};
    d->n_constant++;
}

void mica__gpu_constant_bool(mica__gpu_dispatch *d, uint32_t index, bool value)
{
    gpu_constant(d, index, MICA__GPU_BOOL, value);
}

void mica__gpu_constant_int(mica__gpu_dispatch *d, uint32_t index, int32_t value)
{
    gpu_constant(d, index, MICA__GPU_INT, (uint32_t)value);
}

void mica__gpu_constant_uint(mica__gpu_dispatch *d, uint32_t index, uint32_t value)
{
    gpu_constant(d, index, MICA__GPU_UINT, value);
}

void mica__gpu_constant_float(mica__gpu_dispatch *d, uint32_t index, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    gpu_constant(d, index, MICA__GPU_FLOAT, bits);
}

void mica__gpu_grid(mica__gpu_dispatch *d, uint32_t groups_x, uint32_t groups_y, uint32_t groups_z, uint32_t threads_x,
                    uint32_t threads_y, uint32_t threads_z)
{
    d->groups[0] = groups_x, d->groups[1] = groups_y, d->groups[2] = groups_z;
    d->threads[0] = threads_x, d->threads[1] = threads_y, d->threads[2] = threads_z;
}

int64_t mica__gpu_workspace(mica__gpu_list *list, size_t nbytes)
{
    const size_t at = list->workspace;
    if (!mica__add_size(at, nbytes, &list->workspace) || !mica__add_size(list->workspace, 255, &list->workspace)) {
        list->failed = true;
        list->workspace = 0;
        return 0;
    }
    list->workspace -= list->workspace % 256;
    return (int64_t)at;
}

mica_status mica__gpu_refuse(mica__gpu_list *list, const char *why)
{
    list->n = 0;
    list->workspace = 0;
    list->refused = why;
    return MICA_OK;
}
