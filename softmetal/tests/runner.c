/* See runner.h. */
#include "runner.h"

#include <stdlib.h>
#include <string.h>

bool runner_usable(void)
{
    const char *why = sm_unavailable();
    if (why) test_skip("%s", why);
    return !why;
}

bool runner_build(runner *r, const char *kernel, const sm_constant *constants, int count)
{
    sm_kernel_close(r->kernel);
    free(r->message);
    r->kernel = sm_kernel_build(r->library, kernel, constants, count, &r->message);
    return EXPECT_MSG(r->kernel, "%s: %s", kernel, r->message);
}

bool runner_open(runner *r, const char *source, const char *kernel, const sm_constant *constants, int count)
{
    r->library = sm_library_open(source, strlen(source), NULL, &r->message);
    return EXPECT_MSG(r->library, "%s", r->message) && runner_build(r, kernel, constants, count);
}

void runner_buffer(runner *r, int index, void *bytes, size_t length)
{
    sm_buffer *b = &r->dispatch.buffers[index];
    if (b->address) sm_memory_close(b->address, b->length);
    *b = (sm_buffer){sm_memory_open(length, true), length};
    r->given[index] = bytes;
    if (b->address) memcpy(b->address, bytes, length);
}

sm_status runner_try(runner *r, const uint32_t threads[3], const uint32_t group[3])
{
    memcpy(r->dispatch.threads, threads, sizeof r->dispatch.threads);
    memcpy(r->dispatch.group, group, sizeof r->dispatch.group);
    free(r->message);
    sm_status status = sm_kernel_run(r->kernel, &r->dispatch, &r->message);
    for (int i = 0; i < SM_BUFFERS; i++)
        if (r->dispatch.buffers[i].address)
            memcpy(r->given[i], r->dispatch.buffers[i].address, r->dispatch.buffers[i].length);
    return status;
}

bool runner_run(runner *r, const uint32_t threads[3], const uint32_t group[3])
{
    sm_status status = runner_try(r, threads, group);
    return EXPECT_MSG(status == SM_OK, "status %d: %s", status, r->message ? r->message : "no message");
}

void runner_unbind(runner *r)
{
    for (int i = 0; i < SM_BUFFERS; i++) {
        sm_memory_close(r->dispatch.buffers[i].address, r->dispatch.buffers[i].length);
        r->dispatch.buffers[i] = (sm_buffer){0};
    }
}

void runner_close(runner *r)
{
    runner_unbind(r);
    sm_kernel_close(r->kernel);
    sm_library_close(r->library);
    free(r->message);
    *r = (runner){0};
}

float runner_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state / 2147483648.0f;
}
