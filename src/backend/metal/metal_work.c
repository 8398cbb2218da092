/* See metal_work.h. */
#include "backend/metal/metal_work.h"

#include <string.h>

#include "backend/metal/metal_residency.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/common/common_params.h"
#include "plan/planner.h"

enum {
    COMMIT_NS = 4000000,        /* estimated time of a command buffer: keeps the GPU busy while more is
                                 * encoded, and is far below the watchdog's limit        */
    COMMIT_DISPATCHES = 256,
    FAULT_BYTES = 16384,        /* a whole page                                          */
    FAULTS = 480,               /* mica_fault records in it                              */
    DISPATCH_CONCURRENT = 1,    /* MTLDispatchTypeConcurrent                             */
    BARRIER_BUFFERS = 1         /* MTLBarrierScopeBuffers                                */
};

/* MTLCommandBufferError */
enum { COMMAND_TIMEOUT = 2, COMMAND_MEMORY = 8, COMMAND_REMOVED = 11 };

/* ---------------------------------------------------------------- engine --- */

mica_status mica__metal_engine_open(const mica__metal_device *device, mica__metal_engine **out)
{
    mica__metal_engine *e = mica__alloc_zero(1, sizeof *e);
    if (!e) return mica__fail_memory("metal: an engine", sizeof *e);
    e->device = device;
    e->queue = MICA__SEND0(mica__id, device->device, newCommandQueue);
    if (!e->queue) {
        mica__free(e);
        return mica__fail(MICA_ERR_DEVICE, "open: %s cannot create a command queue", device->limits.name);
    }
    const mica_status status = mica__metal_capture(e->queue, &e->captured);
    if (status != MICA_OK) {
        mica__objc.release(e->queue);
        mica__free(e);
        return status;
    }
    pthread_mutex_init(&e->lock, NULL);
    mica__residency_attach(device, e->queue);
    *out = e;
    return MICA_OK;
}

void mica__metal_engine_close(mica__metal_engine *e)
{
    if (!e) return;
    if (e->captured) mica__metal_capture_end();
    for (mica__metal_work *w = e->works, *next; w; w = next) {
        next = w->next;
        mica__objc.release(w->fence);
        mica__metal_profile_free(w->profile);
        mica__metal_buffer_release(atomic_load(&w->fault.device));
        if (w->fault.data) mica__free_pages(w->fault.data, FAULT_BYTES);
        mica__free(w);
    }
    mica__residency_detach(e->queue);
    mica__objc.release(e->queue);
    pthread_mutex_destroy(&e->lock);
    mica__free(e);
}

/* ------------------------------------------------------------------ work --- */

mica_status mica__metal_begin(mica__metal_engine *e, mica__metal_work **out)
{
    pthread_mutex_lock(&e->lock);
    mica__metal_work *w = e->works;
    if (w) e->works = w->next;
    pthread_mutex_unlock(&e->lock);
    if (!w) {
        w = mica__alloc_zero(1, sizeof *w);
        if (!w) return mica__fail_memory("metal: a run", sizeof *w);
        w->fence = MICA__SEND0(mica__id, e->device->device, newFence);
        if (!w->fence) {
            mica__free(w);
            return mica__fail(MICA_ERR_DEVICE, "metal: %s cannot create a fence", e->device->limits.name);
        }
    }
    w->engine = e;
    *out = w;
    return MICA_OK;
}

/* Opens an encoder if none is open. times not NULL: an encoder that times one step. */
static mica_status work_open(mica__metal_work *w, mica__step_times *times)
{
    if (w->encoder) return MICA_OK;
    if (!w->pool) w->pool = mica__objc.pool_push();
    if (!w->command) {
        w->command = mica__objc.retain(MICA__SEND0(mica__id, w->engine->queue, commandBuffer));
        w->cost_ns = 0;
        w->encoded = 0;
    }
    if (w->command)
        w->encoder = times ? mica__metal_profile_encoder(w->profile, w->engine->device, w->command, times)
                           : MICA__SEND1(mica__id, w->command, computeEncoder, unsigned long, DISPATCH_CONCURRENT);
    if (!w->encoder) {
        if (w->encoded == 0) {
            mica__objc.release(w->command);
            w->command = NULL;
        }
        return mica__fail(MICA_ERR_DEVICE, "metal: %s cannot create a command buffer", w->engine->device->limits.name);
    }
    if (w->fence_set) MICA__SEND1(void, w->encoder, waitForFence, mica__id, w->fence);
    else if (w->before) MICA__SEND1(void, w->encoder, waitForFence, mica__id, w->before);
    w->pipeline = NULL;
    w->has_dispatch = false;
    return MICA_OK;
}

static mica_status fail_command(const mica__metal_work *w, mica__id command)
{
    char text[300];
    mica__id error = MICA__SEND0(mica__id, command, error);
    const long code = error ? MICA__SEND0(long, error, code) : 0;
    mica__objc_error_text(error, text, sizeof text);
    const char *name = w->engine->device->limits.name;
    if (code == COMMAND_MEMORY) return mica__fail(MICA_ERR_MEMORY, "metal: %s is out of memory: %s", name, text);
    return mica__fail(MICA_ERR_DEVICE, "metal: %s %s: %s", name,
                      code == COMMAND_TIMEOUT   ? "was stopped because it took too long"
                      : code == COMMAND_REMOVED ? "was removed"
                                                : "failed",
                      text);
}

/* Waits for the first n committed command buffers, in order; returns the first failure. */
static mica_status work_wait(mica__metal_work *w, uint32_t n)
{
    mica_status status = MICA_OK;
    double seconds = 0;
    for (uint32_t i = 0; i < n; i++) {
        mica__id command = w->committed[i];
        MICA__SEND0(void, command, waitUntilCompleted);
        if (MICA__SEND0(unsigned long, command, status) != MICA__MTL_COMPLETED) {
            if (status == MICA_OK) status = fail_command(w, command);
        } else {
            seconds += MICA__SEND0(double, command, GPUEndTime) - MICA__SEND0(double, command, GPUStartTime);
        }
        mica__objc.release(command);
    }
    mica__metal_counters *c = &w->engine->counters;
    atomic_fetch_add_explicit(&c->commands, n, memory_order_relaxed);
    if (seconds > 0) atomic_fetch_add_explicit(&c->gpu_ns, (uint64_t)(seconds * 1e9), memory_order_relaxed);
    w->n_committed -= n;
    memmove(w->committed, w->committed + n, w->n_committed * sizeof *w->committed);
    return status;
}

static void work_close(mica__metal_work *w)
{
    if (!w->encoder) return;
    MICA__SEND1(void, w->encoder, updateFence, mica__id, w->fence);
    MICA__SEND0(void, w->encoder, endEncoding);
    w->fence_set = true;
    w->encoder = NULL;
}

static void work_commit(mica__metal_work *w)
{
    work_close(w);
    if (!w->command) return;
    mica__residency_commit();
    MICA__SEND0(void, w->command, commit);
    w->committed[w->n_committed++] = w->command;
    w->command = NULL;
}

/* Returns the first index error of a kernel, in the order of the plan, and clears all. */
static mica_status work_fault(mica__metal_work *w)
{
    mica_status status = MICA_OK;
    for (uint32_t i = 0; i < w->n_fault; i++) {
        mica_fault *fault = (mica_fault *)w->fault.data + i;
        if (status == MICA_OK) status = mica__gpu_fault_status((mica__op)w->fault_op[i], fault);
        *fault = (mica_fault){0};
    }
    w->n_fault = 0;
    return status;
}

void mica__metal_flush(mica__metal_work *w)
{
    work_commit(w);
    if (w->pool) mica__objc.pool_pop(w->pool);
    w->pool = NULL;
}

mica_status mica__metal_finish(mica__metal_work *w)
{
    if (!w->pool) w->pool = mica__objc.pool_push();
    work_commit(w);
    mica_status status = work_wait(w, w->n_committed);
    if (w->profile) mica__metal_profile_collect(w->profile, w->engine->device);
    if (status == MICA_OK) status = work_fault(w);
    w->n_fault = 0;
    if (w->pool) mica__objc.pool_pop(w->pool);
    w->pool = NULL;
    w->fence_set = false;
    w->before = NULL;
    return status;
}

mica_status mica__metal_end(mica__metal_work *w)
{
    const mica_status status = mica__metal_finish(w);
    mica__metal_engine *e = w->engine;
    pthread_mutex_lock(&e->lock);
    w->next = e->works;
    e->works = w;
    pthread_mutex_unlock(&e->lock);
    return status;
}

/* ---------------------------------------------------------------- encode --- */

/* Allocates the page of index errors, all clear, followed by the op of each. */
static mica_status open_faults(mica__metal_work *w)
{
    char *page = mica__alloc_pages(FAULT_BYTES);
    if (!page) return mica__fail_memory("metal: a page for index errors", FAULT_BYTES);
    memset(page, 0, FAULT_BYTES);
    w->fault.data = page;
    w->fault.nbytes = FAULT_BYTES;
    w->fault_op = (uint16_t *)(void *)(page + FAULTS * sizeof(mica_fault));
    return MICA_OK;
}

static mica_status bind_fault(mica__metal_work *w, uint16_t op, mica__id *buffer, unsigned long *offset)
{
    if (!w->fault.data) MICA_TRY(open_faults(w));
    const char *page = w->fault.data;
    w->fault_op[w->n_fault] = op;
    return mica__metal_buffer(w->engine->device, &w->fault, page, (int64_t)(w->n_fault++ * sizeof(mica_fault)), buffer,
                              offset);
}

/* A slot without a block is scratch that the kernel declares and this launch does not use. */
static mica_status bind_block(mica__metal_work *w, const mica__metal_slot *s, const mica__exec *exec, mica__id *buffer,
                              unsigned long *offset)
{
    const bool none = s->block == MICA__NO_BLOCK;
    return mica__metal_buffer(w->engine->device, none ? NULL : exec->home[s->block],
                              none ? NULL : exec->block[s->block], s->offset, buffer, offset);
}

static mica_status encode_one(mica__metal_work *w, const mica__metal_dispatch *d, const mica__exec *exec)
{
    mica__id encoder = w->encoder;
    if (d->barrier && w->has_dispatch) MICA__SEND1(void, encoder, memoryBarrier, unsigned long, BARRIER_BUFFERS);
    if (w->pipeline != d->pipeline) {
        MICA__SEND1(void, encoder, setPipeline, mica__id, d->pipeline->state);
        w->pipeline = d->pipeline;
    }
    for (uint32_t i = 0; i < d->n_slot; i++) {
        const mica__metal_slot *s = &d->slot[i];
        mica__id buffer;
        unsigned long offset;
        if (s->block == MICA__METAL_FAULT) MICA_TRY(bind_fault(w, d->op, &buffer, &offset));
        else MICA_TRY(bind_block(w, s, exec, &buffer, &offset));
        MICA__SEND3(void, encoder, setBuffer, mica__id, buffer, unsigned long, offset, unsigned long,
                    i < d->bytes_at ? i : i + 1ul);
    }
    if (d->bytes)
        MICA__SEND3(void, encoder, setBytes, const void *, d->bytes, unsigned long, d->n_bytes, unsigned long,
                    d->bytes_at);
    MICA__SEND2(void, encoder, dispatch, mica__mtl_size, d->groups, mica__mtl_size, d->threads);
    w->has_dispatch = true;
    w->encoded++;
    w->cost_ns += d->cost_ns;
    return MICA_OK;
}

static mica_status encode_all(mica__metal_work *w, const mica__metal_dispatch *d, uint32_t n, const mica__exec *exec)
{
    for (uint32_t i = 0; i < n; i++) {
        if (w->n_fault == FAULTS) MICA_TRY(mica__metal_finish(w)); /* a long scan */
        MICA_TRY(work_open(w, NULL));
        MICA_TRY(encode_one(w, &d[i], exec));
        if (w->cost_ns < COMMIT_NS && w->encoded < COMMIT_DISPATCHES) continue;
        work_commit(w);
        if (w->n_committed == MICA__METAL_COMMANDS) MICA_TRY(work_wait(w, 1));
    }
    return MICA_OK;
}

/* For devices without counters: the command buffer has only this step, and Metal returns its GPU time. */
static mica_status wait_timed(mica__metal_work *w, mica__step_time *time)
{
    const uint64_t before = atomic_load(&w->engine->counters.gpu_ns);
    MICA_TRY(mica__metal_finish(w));
    time->end_ns = mica__now_ns();
    time->start_ns = time->end_ns - (atomic_load(&w->engine->counters.gpu_ns) - before);
    return MICA_OK;
}

static mica_status encode_named(mica__metal_work *w, const mica__plan *plan, const mica__step *step,
                                const mica__metal_dispatch *d, uint32_t n, const mica__exec *exec)
{
    char name[64];
    mica__text text;
    mica_status status = MICA_OK;
    mica__text_init(&text, name, sizeof name);
    mica__step_name(plan, step, &text);
    mica__id label = mica__objc_string(name);
    if (label) {
        MICA__SEND1(void, w->encoder, setLabel, mica__id, label);
        MICA__SEND1(void, w->command, setLabel, mica__id, label);
        MICA__SEND1(void, w->encoder, pushDebugGroup, mica__id, label);
    }
    for (uint32_t i = 0; i < n && status == MICA_OK; i++) status = encode_one(w, &d[i], exec);
    if (label) MICA__SEND0(void, w->encoder, popDebugGroup);
    mica__objc.release(label);
    return status;
}

/* Encodes a step in a separate encoder with its name as the label; records its times if profiled. */
static mica_status encode_separately(mica__metal_work *w, const mica__plan *plan, const mica__step *step,
                                     const mica__metal_dispatch *d, uint32_t n, const mica__exec *exec)
{
    if (exec->times && !w->profile) {
        w->profile = mica__metal_profile_new(w->engine->device);
        if (!w->profile) return mica__fail_memory("metal: a profile", sizeof *w->profile);
    }
    work_close(w);
    const bool full = exec->times && w->profile->n == MICA__METAL_SAMPLED;
    const bool counted = exec->times && w->profile->samples, alone = exec->times && !counted;
    if (full || alone || w->n_fault + n > FAULTS || w->encoded + n > COMMIT_DISPATCHES) MICA_TRY(mica__metal_finish(w));
    MICA_TRY(work_open(w, exec->times));
    if (exec->times) {
        mica__step_time *time = &exec->times->time[exec->times->n - 1];
        time->on_device = true;
        time->start_ns = 0; /* set after the step has run */
    }
    MICA_TRY(encode_named(w, plan, step, d, n, exec));
    work_close(w);
    return alone ? wait_timed(w, &exec->times->time[exec->times->n - 1]) : MICA_OK;
}

mica_status mica__metal_encode(mica__metal_work *w, const mica__plan *plan, const mica__step *step,
                               const mica__metal_dispatch *d, uint32_t n, const mica__exec *exec)
{
    if (n == 0) return MICA_OK;
    const bool apart = (exec->times || w->engine->captured) && n <= FAULTS;
    return apart ? encode_separately(w, plan, step, d, n, exec) : encode_all(w, d, n, exec);
}
