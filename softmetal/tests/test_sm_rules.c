/* Wrong use of Metal objects: the command buffer fails with an error message, and the device still works. */
#include "sm_kit.h"

typedef struct rule {
    const char *text; /* what the error must contain */
    void (*encode)(metal_kit *kit, id encoder);
} rule;

static void no_pipeline(metal_kit *kit, id encoder)
{
    (void)kit;
    kit_dispatch(encoder, 8, 8);
}
static void no_buffer(metal_kit *kit, id encoder)
{
    kit_bind(encoder, kit->copy, kit->a, NULL);
    kit_dispatch(encoder, 8, 8);
}
static void nil_buffer(metal_kit *kit, id encoder)
{
    kit_bind(encoder, kit->copy, kit->a, kit->b);
    SEND(void, encoder, "setBuffer:offset:atIndex:", (id, unsigned long, unsigned long), NULL, 0ul, 1ul);
    kit_dispatch(encoder, 8, 8);
}
static void far_offset(metal_kit *kit, id encoder)
{
    kit_bind(encoder, kit->add_one, kit->a, NULL);
    SEND(void, encoder, "setBufferOffset:atIndex:", (unsigned long, unsigned long), KIT_N * 4ul, 0ul);
}
static void offset_of_nothing(metal_kit *kit, id encoder)
{
    (void)kit;
    SEND(void, encoder, "setBufferOffset:atIndex:", (unsigned long, unsigned long), 4ul, 3ul);
}
static void high_index(metal_kit *kit, id encoder)
{
    SEND(void, encoder, "setBuffer:offset:atIndex:", (id, unsigned long, unsigned long), kit->a, 0ul, 31ul);
}
static void no_buffer_object(metal_kit *kit, id encoder)
{
    SEND(void, encoder, "setBuffer:offset:atIndex:", (id, unsigned long, unsigned long), kit->device, 0ul, 0ul);
}
static void wide_group(metal_kit *kit, id encoder)
{
    kit_bind(encoder, kit->add_one, kit->a, NULL);
    kit_dispatch(encoder, KIT_N, 2048);
}
static void empty_grid(metal_kit *kit, id encoder)
{
    kit_bind(encoder, kit->add_one, kit->a, NULL);
    kit_dispatch(encoder, 0, 32);
}
static void many_bytes(metal_kit *kit, id encoder)
{
    static const char bytes[5000];
    (void)kit;
    SEND(void, encoder, "setBytes:length:atIndex:", (const void *, unsigned long, unsigned long), bytes, sizeof bytes,
         0ul);
}
static void odd_threadgroup(metal_kit *kit, id encoder)
{
    (void)kit;
    SEND(void, encoder, "setThreadgroupMemoryLength:atIndex:", (unsigned long, unsigned long), 100ul, 0ul);
}
static void no_threadgroup(metal_kit *kit, id encoder)
{
    kit_bind(encoder, kit->turn, kit->a, NULL);
    kit_dispatch(encoder, 8, 8);
}
static void not_a_pipeline(metal_kit *kit, id encoder)
{
    SEND(void, encoder, "setComputePipelineState:", (id), kit->library);
}
static void sample_inside(metal_kit *kit, id encoder)
{
    (void)kit;
    SEND(void, encoder, "sampleCountersInBuffer:atSampleIndex:withBarrier:", (id, unsigned long, BOOL), NULL, 0ul, 0);
}
static void after_end(metal_kit *kit, id encoder)
{
    ASK(void, encoder, "endEncoding");
    kit_bind(encoder, kit->add_one, kit->a, NULL);
}

static void odd_constant(metal_kit *kit, id encoder)
{
    kit_bind(encoder, kit->scale, kit->a, kit->b);
    SEND(void, encoder, "setBufferOffset:atIndex:", (unsigned long, unsigned long), 2ul, 1ul);
    kit_dispatch(encoder, 8, 8);
}
static void lonely_fence(metal_kit *kit, id encoder)
{
    id fence = ASK(id, kit->device, "newFence");
    SEND(void, encoder, "waitForFence:", (id), fence);
    host_release(fence);
}

static const rule rules[] = {
    {"no pipeline is set", no_pipeline},
    {"no buffer at index 1, the argument 'b' of kernel copy", no_buffer},
    {"no buffer at index 1", nil_buffer},
    {"bytes 256 to 257 of a buffer of 256", far_offset},
    {"no buffer is bound at index 3", offset_of_nothing},
    {"index 31, must be below 31", high_index},
    {"nil or not an MTLBuffer", no_buffer_object},
    {"2048 x 1 x 1 threads; kernel add_one allows", wide_group},
    {"a size is 0", empty_grid},
    {"5000 bytes", many_bytes},
    {"100 bytes at index 0; must be a multiple of 16", odd_threadgroup},
    {"threadgroup memory without a length at index 0, the argument 't'", no_threadgroup},
    {"the offset of a constant buffer is not a multiple of 4 at index 1, the argument 'by'", odd_constant},
    {"no encoder updates the fence", lonely_fence},
    {"nil or not a pipeline", not_a_pipeline},
    {"stage boundaries only", sample_inside},
    {"the encoder has ended", after_end},
};

TEST(a_broken_rule_fails_the_command_buffer)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        test_case("%s", rules[i].text);
        id commands = ASK(id, kit.queue, "commandBuffer"), encoder = ASK(id, commands, "computeCommandEncoder");
        rules[i].encode(&kit, encoder);
        if (rules[i].encode != after_end) ASK(void, encoder, "endEncoding");
        EXPECT_INT(kit_finish(commands), 5);
        id error = ASK(id, commands, "error");
        EXPECT_STR(host_text(ASK(id, error, "domain")), "MTLCommandBufferErrorDomain");
        EXPECT_INT(ASK(long, error, "code"), 9);
        EXPECT_MSG(strstr(host_error_text(error), rules[i].text) != NULL, "%s", host_error_text(error));
        EXPECT(kit_failures(&kit) >= 1);
    }
    test_case("afterwards");
    id good = kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL);
    ASK(void, good, "waitUntilCompleted");
    EXPECT_INT(ASK(unsigned long, good, "status"), 4);
    EXPECT(kit.in[3] == 4);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

/* Metal accepts a length of 0, which hosts send for a kernel variant that uses no such memory. A kernel that uses it
 * nevertheless fails when it runs. */
TEST(threadgroup_memory_of_length_zero)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id error = NULL;
    id library = host_library(kit.device,
                              "#include <metal_stdlib>\nusing namespace metal;\n"
                              "kernel void k(device float *a [[buffer(0)]], threadgroup float *t [[threadgroup(0)]],\n"
                              "              uint i [[thread_position_in_grid]])\n"
                              "{ if (a[0] > 99.0f) t[i] = 1.0f; a[i] += 1.0f; }\n",
                              &error);
    id pipeline = library == NULL ? NULL : host_pipeline(kit.device, library, "k", &error);
    if (!EXPECT_MSG(pipeline != NULL, "%s", host_error_text(error))) return;
    for (int used = 0; used < 2; used++) {
        test_case("the memory is %s", used ? "used" : "not used");
        kit.in[0] = used ? 100.0f : 0.0f;
        id commands = ASK(id, kit.queue, "commandBuffer"), encoder = ASK(id, commands, "computeCommandEncoder");
        kit_bind(encoder, pipeline, kit.a, NULL);
        SEND(void, encoder, "setThreadgroupMemoryLength:atIndex:", (unsigned long, unsigned long), 0ul, 0ul);
        kit_dispatch(encoder, 8, 8);
        ASK(void, encoder, "endEncoding");
        const unsigned long status = kit_finish(commands);
        const char *text = host_error_text(ASK(id, commands, "error"));
        EXPECT_MSG(status == (used ? 5 : 4), "status %lu: %s", status, text);
        if (used) EXPECT_MSG(strstr(text, "threadgroup memory") != NULL, "%s", text);
        else EXPECT(kit.in[7] == 8.0f);
    }
    kit_failures(&kit);
    host_release(pipeline);
    host_release(library);
    kit_close(&kit);
}

TEST(blits_have_rules_too)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    static const char copy[] = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:";
    for (int i = 0; i < 3; i++) {
        test_case("%d", i);
        id commands = ASK(id, kit.queue, "commandBuffer"), blit = ASK(id, commands, "blitCommandEncoder");
        if (i == 0)
            SEND(void, blit, copy, (id, unsigned long, id, unsigned long, unsigned long), kit.a, 0ul, kit.b, 8ul,
                 256ul);
        if (i == 1)
            SEND(void, blit, copy, (id, unsigned long, id, unsigned long, unsigned long), kit.a, 0ul, kit.a, 8ul, 16ul);
        if (i == 2)
            SEND(void, blit, "fillBuffer:range:value:", (id, ns_range, unsigned char), kit.a, ((ns_range){0, 0}), 1);
        ASK(void, blit, "endEncoding");
        EXPECT_INT(kit_finish(commands), 5);
        EXPECT(kit_failures(&kit) >= 1);
    }
    kit_close(&kit);
}

TEST(the_life_of_a_command_buffer)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    test_case("an encoder that was not ended");
    id commands = ASK(id, kit.queue, "commandBuffer"), encoder = ASK(id, commands, "computeCommandEncoder");
    EXPECT(ASK(id, commands, "blitCommandEncoder") == NULL);
    EXPECT_INT(kit_finish(commands), 5);
    ASK(void, encoder, "endEncoding");
    EXPECT(kit_failures(&kit) >= 2);
    test_case("committed twice");
    commands = kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL);
    ASK(void, commands, "commit");
    ASK(void, commands, "waitUntilCompleted");
    EXPECT_INT(ASK(unsigned long, commands, "status"), 4);
    EXPECT(kit.in[0] == 1);
    EXPECT_INT(kit_failures(&kit), 1);
    test_case("waited for without commit");
    commands = ASK(id, kit.queue, "commandBuffer");
    ASK(void, commands, "waitUntilCompleted");
    EXPECT_INT(kit_failures(&kit), 1);
    EXPECT_INT(ASK(unsigned long, commands, "status"), 0);
    ASK(void, commands, "enqueue");
    EXPECT_INT(ASK(unsigned long, commands, "status"), 1);
    EXPECT_INT(kit_finish(commands), 4);
    EXPECT(ASK(id, commands, "computeCommandEncoder") == NULL);
    EXPECT_INT(kit_failures(&kit), 1);
    test_case("a buffer released before its command buffer, with unretained references");
    id lost = host_buffer(kit.device, 256);
    commands = ASK(id, kit.queue, "commandBufferWithUnretainedReferences");
    EXPECT(!ASK(BOOL, commands, "retainedReferences"));
    encoder = ASK(id, commands, "computeCommandEncoder");
    kit_bind(encoder, kit.add_one, lost, NULL);
    kit_dispatch(encoder, 8, 8);
    ASK(void, encoder, "endEncoding");
    host_release(lost);
    EXPECT_INT(kit_finish(commands), 5);
    EXPECT(strstr(host_error_text(ASK(id, commands, "error")), "released before") != NULL);
    kit_failures(&kit);
    test_case("and with retained ones it lives");
    id kept = host_buffer(kit.device, 256);
    commands = ASK(id, kit.queue, "commandBuffer");
    encoder = ASK(id, commands, "computeCommandEncoder");
    kit_bind(encoder, kit.add_one, kept, NULL);
    kit_dispatch(encoder, 8, 8);
    ASK(void, encoder, "endEncoding");
    host_release(kept);
    EXPECT_INT(kit_finish(commands), 4);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}
