/* A whole program: device, library, pipeline, buffers, one dispatch, the result. */
#include "host.h"
#include "test.h"

#include <string.h>

static const char source[] = "#include <metal_stdlib>\n"
                             "using namespace metal;\n"
                             "kernel void twice(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
                             "                  uint i [[thread_position_in_grid]])\n"
                             "{\n"
                             "    b[i] = 2.0f * a[i];\n"
                             "}\n";

TEST(an_elementwise_kernel_runs)
{
    CHECK(host_open());
    void *pool = host.push();
    id device = host.default_device();
    CHECK(device != NULL);
    id error = NULL;
    id library = host_library(device, source, &error);
    CHECK_MSG(library != NULL, "%s", host_error_text(error));
    id pipeline = host_pipeline(device, library, "twice", &error);
    CHECK_MSG(pipeline != NULL, "%s", host_error_text(error));
    EXPECT_INT(ASK(unsigned long, pipeline, "threadExecutionWidth"), 32);

    enum { N = 1000 };
    id a = host_buffer(device, N * sizeof(float)), b = host_buffer(device, N * sizeof(float));
    CHECK(a != NULL && b != NULL);
    float *in = host_contents(a), *out = host_contents(b);
    for (int i = 0; i < N; i++) in[i] = (float)i;

    id queue = ASK(id, device, "newCommandQueue");
    id commands = ASK(id, queue, "commandBuffer");
    id encoder = ASK(id, commands, "computeCommandEncoder");
    SEND(void, encoder, "setComputePipelineState:", (id), pipeline);
    SEND(void, encoder, "setBuffer:offset:atIndex:", (id, unsigned long, unsigned long), a, 0, 0);
    SEND(void, encoder, "setBuffer:offset:atIndex:", (id, unsigned long, unsigned long), b, 0, 1);
    const mtl_size grid = {N, 1, 1}, group = {64, 1, 1};
    SEND(void, encoder, "dispatchThreads:threadsPerThreadgroup:", (mtl_size, mtl_size), grid, group);
    ASK(void, encoder, "endEncoding");
    ASK(void, commands, "commit");
    ASK(void, commands, "waitUntilCompleted");
    EXPECT_STR(host_error_text(ASK(id, commands, "error")), "");
    EXPECT_INT(ASK(unsigned long, commands, "status"), 4);
    EXPECT(ASK(double, commands, "GPUEndTime") >= ASK(double, commands, "GPUStartTime"));
    int wrong = 0;
    for (int i = 0; i < N; i++) wrong += !(out[i] == 2.0f * (float)i);
    EXPECT_INT(wrong, 0);

    host_release(queue);
    host_release(a);
    host_release(b);
    host_release(pipeline);
    host_release(library);
    host_release(device);
    host.pop(pool);
    char text[512];
    EXPECT_INT(host.failures(text, sizeof text), 0);
    EXPECT_STR(text, "");
    EXPECT_INT(host.alive("MTLBuffer"), 0);
    EXPECT_INT(host.alive("MTLComputeCommandEncoder"), 0);
}
