/* Common setup of the tests of Metal objects: a device, a queue, four pipelines, two buffers. */
#ifndef SOFTMETAL_TEST_SM_KIT_H
#define SOFTMETAL_TEST_SM_KIT_H

#include "host.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { KIT_N = 64 }; /* floats of a buffer */

static const char kit_source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "constant float factor [[function_constant(0)]];\n"
    "constant bool negate [[function_constant(1)]];\n"
    "kernel void add_one(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i] += 1.0f; }\n"
    "kernel void copy(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
    "                 uint i [[thread_position_in_grid]]) { b[i] = a[i]; }\n"
    "kernel void scale(device float *a [[buffer(0)]], constant float &by [[buffer(1)]],\n"
    "                  uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    float x = a[i] * by * (is_function_constant_defined(factor) ? factor : 1.0f);\n"
    "    a[i] = is_function_constant_defined(negate) && negate ? -x : x;\n"
    "}\n"
    "kernel void turn(device float *a [[buffer(0)]], threadgroup float *t [[threadgroup(0)]],\n"
    "                 uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]])\n"
    "{\n"
    "    t[i] = a[i];\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    a[i] = t[n - 1 - i];\n"
    "}\n";

typedef struct metal_kit {
    void *pool;
    id device, queue, library, add_one, copy, scale, turn, a, b;
    float *in, *out;
    char said[2048];
} metal_kit;

static inline bool kit_open(metal_kit *kit)
{
    memset(kit, 0, sizeof *kit);
    if (!EXPECT(host_open())) return false;
    host.inject(NULL);
    host.failures(NULL, 0);
    kit->pool = host.push();
    kit->device = host.default_device();
    kit->queue = ASK(id, kit->device, "newCommandQueue");
    id error = NULL;
    kit->library = host_library(kit->device, kit_source, &error);
    if (!EXPECT_MSG(kit->library != NULL, "%s", host_error_text(error))) return false;
    kit->add_one = host_pipeline(kit->device, kit->library, "add_one", &error);
    kit->copy = host_pipeline(kit->device, kit->library, "copy", &error);
    kit->scale = host_pipeline(kit->device, kit->library, "scale", &error);
    kit->turn = host_pipeline(kit->device, kit->library, "turn", &error);
    kit->a = host_buffer(kit->device, KIT_N * sizeof(float));
    kit->b = host_buffer(kit->device, KIT_N * sizeof(float));
    if (!EXPECT_MSG(kit->add_one && kit->copy && kit->scale && kit->turn && kit->a && kit->b, "%s",
                    host_error_text(error)))
        return false;
    kit->in = host_contents(kit->a);
    kit->out = host_contents(kit->b);
    for (int i = 0; i < KIT_N; i++) kit->in[i] = (float)i, kit->out[i] = -1;
    return true;
}

/* Releases everything; an object that is still alive after that is a leak. */
static inline void kit_close(metal_kit *kit)
{
    id all[] = {kit->a, kit->b, kit->add_one, kit->copy, kit->scale, kit->turn, kit->library, kit->queue, kit->device};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) host_release(all[i]);
    host.pop(kit->pool);
    EXPECT_INT(host.alive(NULL), 0);
}

static inline void kit_bind(id encoder, id pipeline, id a, id b)
{
    SEND(void, encoder, "setComputePipelineState:", (id), pipeline);
    SEND(void, encoder, "setBuffer:offset:atIndex:", (id, unsigned long, unsigned long), a, 0ul, 0ul);
    if (b != NULL) SEND(void, encoder, "setBuffer:offset:atIndex:", (id, unsigned long, unsigned long), b, 0ul, 1ul);
}

static inline void kit_dispatch(id encoder, unsigned long threads, unsigned long group)
{
    const mtl_size grid = {threads, 1, 1}, size = {group, 1, 1};
    SEND(void, encoder, "dispatchThreads:threadsPerThreadgroup:", (mtl_size, mtl_size), grid, size);
}

static inline unsigned long kit_finish(id commands)
{
    ASK(void, commands, "commit");
    ASK(void, commands, "waitUntilCompleted");
    return ASK(unsigned long, commands, "status");
}

/* Commits a command buffer with one dispatch of the pipeline. */
static inline id kit_submit(metal_kit *kit, id queue, id pipeline, id a, id b)
{
    id commands = ASK(id, queue, "commandBuffer"), encoder = ASK(id, commands, "computeCommandEncoder");
    (void)kit;
    kit_bind(encoder, pipeline, a, b);
    kit_dispatch(encoder, KIT_N, 32);
    ASK(void, encoder, "endEncoding");
    ASK(void, commands, "commit");
    return commands;
}

static inline long kit_failures(metal_kit *kit) { return host.failures(kit->said, sizeof kit->said); }

#endif
