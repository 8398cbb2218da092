/* Runs one pass of a command buffer on the core. */
#include "metal/metal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mtl_command_error code_of(sm_status status)
{
    switch (status) {
    case SM_OK: return MTL_ERROR_NONE;
    case SM_FAULT: return MTL_ERROR_PAGE_FAULT;
    case SM_TIMEOUT: return MTL_ERROR_TIMEOUT;
    case SM_MEMORY: return MTL_ERROR_OUT_OF_MEMORY;
    case SM_INVALID:
    case SM_CHECKED: break;
    }
    return MTL_ERROR_INVALID_RESOURCE;
}

static char *run_dispatch(const mtl_command *command, sm_scope *scope, mtl_command_error *code)
{
    sm_dispatch dispatch = command->as.run.dispatch;
    if (command->kind == MTL_COMMAND_INDIRECT) {
        uint32_t groups[3];
        memcpy(groups, command->as.run.indirect, sizeof groups);
        for (int i = 0; i < 3; i++) {
            if (groups[i] == 0) return NULL; /* an empty grid, as on a GPU */
            if (groups[i] > UINT32_MAX / dispatch.group[i]) {
                *code = MTL_ERROR_INVALID_RESOURCE;
                return strdup("an indirect dispatch of more than 2^32 - 1 threads in one direction");
            }
            dispatch.threads[i] = groups[i] * dispatch.group[i];
        }
    }
    dispatch.scope = scope;
    char *message = NULL;
    const sm_status status = sm_kernel_run(command->as.run.pipeline->kernel, &dispatch, &message);
    if (status == SM_OK) {
        free(message);
        return NULL;
    }
    *code = code_of(status);
    return message == NULL ? strdup("the kernel failed without a message") : message;
}

static char *run_command(const mtl_command *command, sm_scope *scope, mtl_command_error *code)
{
    switch (command->kind) {
    case MTL_COMMAND_DISPATCH:
    case MTL_COMMAND_INDIRECT: return run_dispatch(command, scope, code);
    case MTL_COMMAND_COPY: memcpy(command->as.move.to, command->as.move.from, command->as.move.length); break;
    case MTL_COMMAND_FILL: memset(command->as.move.to, command->as.move.value, command->as.move.length); break;
    case MTL_COMMAND_BARRIER:
        if (scope != NULL) sm_scope_barrier(scope, command->as.barrier.address, command->as.barrier.length);
        break;
    }
    return NULL;
}

/* Between two barriers of a concurrent encoder any order is valid; shuffling exposes
 * programs that rely on one. */
static void shuffle(const mtl_command **commands, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        const size_t j = sm_random() % i;
        const mtl_command *other = commands[j];
        commands[j] = commands[i - 1];
        commands[i - 1] = other;
    }
}

static char *run_concurrent(const mtl_pass *pass, mtl_command_error *code)
{
    char *problem = NULL;
    sm_scope *scope = sm_scope_open();
    const mtl_command **order = malloc((pass->count + 1) * sizeof *order);
    if (order == NULL) {
        sm_scope_close(scope);
        *code = MTL_ERROR_OUT_OF_MEMORY;
        return strdup("out of memory");
    }
    const bool shuffled = sm_shuffled();
    size_t first = 0;
    for (size_t i = 0; i <= pass->count; i++) {
        if (i < pass->count) order[i] = &pass->commands[i];
        if (i < pass->count && order[i]->kind != MTL_COMMAND_BARRIER) continue;
        if (shuffled) shuffle(order + first, i - first);
        first = i + 1;
    }
    for (size_t i = 0; i < pass->count && problem == NULL; i++) problem = run_command(order[i], scope, code);
    free(order);
    sm_scope_close(scope);
    return problem;
}

static void take_sample(const mtl_pass *pass, unsigned long index)
{
    if (pass->samples != NULL && index < pass->samples->count)
        pass->samples->values[index] = (uint64_t)(sm_now() * 1e9);
}

char *sm_run_pass(mtl_pass *pass, mtl_command_error *code)
{
    char *problem = NULL;
    take_sample(pass, pass->sample_start);
    if (pass->concurrent) problem = run_concurrent(pass, code);
    else
        for (size_t i = 0; i < pass->count && problem == NULL; i++)
            problem = run_command(&pass->commands[i], NULL, code);
    take_sample(pass, pass->sample_end);
    return problem;
}
