/* Properties: a getter returns the value that was set. Calls that only record exist.
 * Wrong calls report an error. */
#include "sm_kit.h"

typedef enum kind { FLAG, WORD, OBJECT } kind;

static const struct {
    const char *class, *get, *set;
    kind kind;
    long initial;
} properties[] = {
    {"MTLCompileOptions", "fastMathEnabled", "setFastMathEnabled:", FLAG, 1},
    {"MTLCompileOptions", "preserveInvariance", "setPreserveInvariance:", FLAG, 0},
    {"MTLCompileOptions", "mathMode", "setMathMode:", WORD, 2},
    {"MTLCompileOptions", "mathFloatingPointFunctions", "setMathFloatingPointFunctions:", WORD, 0},
    {"MTLCompileOptions", "languageVersion", "setLanguageVersion:", WORD, 0},
    {"MTLCompileOptions", "optimizationLevel", "setOptimizationLevel:", WORD, 0},
    {"MTLCompileOptions", "preprocessorMacros", "setPreprocessorMacros:", OBJECT, 0},
    {"MTLComputePipelineDescriptor", "label", "setLabel:", OBJECT, 0},
    {"MTLComputePipelineDescriptor", "computeFunction", "setComputeFunction:", OBJECT, 0},
    {"MTLComputePipelineDescriptor", "binaryArchives", "setBinaryArchives:", OBJECT, 0},
    {"MTLComputePipelineDescriptor", "threadGroupSizeIsMultipleOfThreadExecutionWidth",
     "setThreadGroupSizeIsMultipleOfThreadExecutionWidth:", FLAG, 0},
    {"MTLComputePipelineDescriptor", "supportIndirectCommandBuffers", "setSupportIndirectCommandBuffers:", FLAG, 0},
    {"MTLComputePipelineDescriptor", "maxTotalThreadsPerThreadgroup", "setMaxTotalThreadsPerThreadgroup:", WORD, 0},
    {"MTLHeapDescriptor", "size", "setSize:", WORD, 0},
    {"MTLHeapDescriptor", "storageMode", "setStorageMode:", WORD, 2},
    {"MTLHeapDescriptor", "cpuCacheMode", "setCpuCacheMode:", WORD, 0},
    {"MTLHeapDescriptor", "hazardTrackingMode", "setHazardTrackingMode:", WORD, 0},
    {"MTLHeapDescriptor", "resourceOptions", "setResourceOptions:", WORD, 32},
    {"MTLHeapDescriptor", "type", "setType:", WORD, 0},
    {"MTLCommandBufferDescriptor", "retainedReferences", "setRetainedReferences:", FLAG, 1},
    {"MTLCommandBufferDescriptor", "errorOptions", "setErrorOptions:", WORD, 0},
    {"MTLComputePassDescriptor", "dispatchType", "setDispatchType:", WORD, 0},
    {"MTLCounterSampleBufferDescriptor", "counterSet", "setCounterSet:", OBJECT, 0},
    {"MTLCounterSampleBufferDescriptor", "storageMode", "setStorageMode:", WORD, 0},
    {"MTLCounterSampleBufferDescriptor", "sampleCount", "setSampleCount:", WORD, 0},
    {"MTLCounterSampleBufferDescriptor", "label", "setLabel:", OBJECT, 0},
    {"MTLResidencySetDescriptor", "initialCapacity", "setInitialCapacity:", WORD, 0},
    {"MTLResidencySetDescriptor", "label", "setLabel:", OBJECT, 0},
    {"MTLFunctionDescriptor", "name", "setName:", OBJECT, 0},
    {"MTLFunctionDescriptor", "specializedName", "setSpecializedName:", OBJECT, 0},
    {"MTLFunctionDescriptor", "constantValues", "setConstantValues:", OBJECT, 0},
    {"MTLFunctionDescriptor", "binaryArchives", "setBinaryArchives:", OBJECT, 0},
    {"MTLFunctionDescriptor", "options", "setOptions:", WORD, 0},
    {"MTLCompileOptions", "enableLogging", "setEnableLogging:", FLAG, 0},
    {"MTLBinaryArchiveDescriptor", "url", "setUrl:", OBJECT, 0},
    {"MTLCaptureDescriptor", "captureObject", "setCaptureObject:", OBJECT, 0},
    {"MTLCaptureDescriptor", "outputURL", "setOutputURL:", OBJECT, 0},
    {"MTLCaptureDescriptor", "destination", "setDestination:", WORD, 0},
};

TEST(what_is_set_is_what_is_read)
{
    CHECK(host_open());
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        test_case("%s %s", properties[i].class, properties[i].get);
        void *pool = host.push();
        const int before = host.alive(NULL);
        id object = ASK(id, host.class(properties[i].class), "new"), value = host_string("value");
        const char *get = properties[i].get, *set = properties[i].set;
        if (properties[i].kind == FLAG) {
            EXPECT_INT(ASK(BOOL, object, get), properties[i].initial);
            SEND(void, object, set, (BOOL), !properties[i].initial);
            EXPECT_INT(ASK(BOOL, object, get), !properties[i].initial);
        } else if (properties[i].kind == WORD) {
            EXPECT_INT(ASK(unsigned long, object, get), properties[i].initial);
            SEND(void, object, set, (unsigned long), 1ul);
            EXPECT_INT(ASK(unsigned long, object, get), 1);
        } else {
            EXPECT(ASK(id, object, get) == NULL);
            SEND(void, object, set, (id), value);
            EXPECT(ASK(id, object, get) == value);
            EXPECT_INT(ASK(unsigned long, value, "retainCount"), 2);
        }
        host_release(object);
        host.pop(pool);
        EXPECT_INT(host.alive(NULL), before);
        EXPECT_INT(host.failures(NULL, 0), 0);
    }
}

TEST(labels)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id commands = ASK(id, kit.queue, "commandBuffer"), encoder = ASK(id, commands, "computeCommandEncoder");
    id fence = ASK(id, kit.device, "newFence"), event = ASK(id, kit.device, "newSharedEvent");
    id objects[] = {kit.queue, commands, encoder, fence, event, kit.library, kit.a};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        SEND(void, objects[i], "setLabel:", (id), host_string("a name"));
        EXPECT_STR(host_text(ASK(id, objects[i], "label")), "a name");
        EXPECT(ASK(id, objects[i], "device") == kit.device);
    }
    ASK(void, encoder, "endEncoding");
    EXPECT_INT(kit_finish(commands), 4);
    host_release(fence);
    host_release(event);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(every_way_to_bind_and_dispatch)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id how = ASK(id, host.class("MTLHeapDescriptor"), "new");
    SEND(void, how, "setSize:", (unsigned long), 1024ul);
    id heap = SEND(id, kit.device, "newHeapWithDescriptor:", (id), how);
    id descriptor = ASK(id, host.class("MTLCommandBufferDescriptor"), "new");
    SEND(void, descriptor, "setRetainedReferences:", (BOOL), 0);
    id commands = SEND(id, kit.queue, "commandBufferWithDescriptor:", (id), descriptor);
    EXPECT(ASK(id, commands, "commandQueue") == kit.queue && !ASK(BOOL, commands, "retainedReferences"));
    SEND(void, commands, "pushDebugGroup:", (id), host_string("group"));
    id encoder = SEND(id, commands, "computeCommandEncoderWithDispatchType:", (unsigned long), 1ul);
    EXPECT_INT(ASK(unsigned long, encoder, "dispatchType"), 1);
    SEND(void, encoder, "pushDebugGroup:", (id), host_string("inner"));
    SEND(void, encoder, "insertDebugSignpost:", (id), host_string("here"));
    id both[] = {kit.a, kit.b};
    const unsigned long offsets[] = {0, 128};
    SEND(void, encoder, "setComputePipelineState:", (id), kit.copy);
    SEND(void, encoder, "setBuffers:offsets:withRange:", (const id *, const unsigned long *, ns_range), both, offsets,
         ((ns_range){0, 2}));
    SEND(void, encoder, "useResource:usage:", (id, unsigned long), kit.a, 1ul);
    SEND(void, encoder, "useResources:count:usage:", (const id *, unsigned long, unsigned long), both, 2ul, 3ul);
    SEND(void, encoder, "useHeap:", (id), heap);
    SEND(void, encoder, "useHeaps:count:", (const id *, unsigned long), &heap, 1ul);
    const mtl_size groups = {2, 1, 1}, group = {8, 1, 1};
    SEND(void, encoder, "dispatchThreadgroups:threadsPerThreadgroup:", (mtl_size, mtl_size), groups, group);
    SEND(void, encoder, "memoryBarrierWithResources:count:", (const id *, unsigned long), both, 2ul);
    SEND(void, encoder, "setBufferOffset:atIndex:", (unsigned long, unsigned long), 64ul, 0ul);
    SEND(void, encoder, "setBufferOffset:atIndex:", (unsigned long, unsigned long), 192ul, 1ul);
    SEND(void, encoder, "dispatchThreadgroups:threadsPerThreadgroup:", (mtl_size, mtl_size), groups, group);
    ASK(void, encoder, "popDebugGroup");
    ASK(void, encoder, "endEncoding");
    ASK(void, commands, "popDebugGroup");
    EXPECT_INT(kit_finish(commands), 4);
    EXPECT(kit.out[31] == -1 && kit.out[32] == 0 && kit.out[47] == 15 && kit.out[48] == 16 && kit.out[63] == 31);
    EXPECT_INT(kit_failures(&kit), 0);
    SEND(void, encoder, "useHeap:", (id), heap); /* after endEncoding: an error */
    EXPECT_INT(kit_failures(&kit), 1);
    host_release(heap);
    host_release(how);
    host_release(descriptor);
    kit_close(&kit);
}

TEST(sets_of_residency)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id descriptor = ASK(id, host.class("MTLResidencySetDescriptor"), "new"), error = NULL;
    static const char make[] = "newResidencySetWithDescriptor:error:";
    id sets[] = {SEND(id, kit.device, make, (id, id *), descriptor, &error),
                 SEND(id, kit.device, make, (id, id *), descriptor, &error)};
    id both[] = {kit.a, kit.b};
    SEND(void, sets[0], "addAllocations:count:", (const id *, unsigned long), both, 2ul);
    EXPECT_INT(ASK(unsigned long, ASK(id, sets[0], "allAllocations"), "count"), 2);
    SEND(void, sets[0], "removeAllocations:count:", (const id *, unsigned long), both, 2ul);
    EXPECT_INT(ASK(unsigned long, sets[0], "allocationCount"), 0);
    SEND(void, sets[0], "addAllocation:", (id), kit.a);
    ASK(void, sets[0], "removeAllAllocations");
    EXPECT_INT(ASK(unsigned long, sets[0], "allocationCount"), 0);
    ASK(void, sets[0], "endResidency");
    SEND(void, kit.queue, "addResidencySets:count:", (const id *, unsigned long), sets, 2ul);
    SEND(void, kit.queue, "removeResidencySets:count:", (const id *, unsigned long), sets, 2ul);
    EXPECT_INT(kit_failures(&kit), 0);
    SEND(void, kit.queue, "removeResidencySet:", (id), sets[0]);
    SEND(void, sets[0], "addAllocation:", (id), kit.queue);
    EXPECT(SEND(id, kit.device, make, (id, id *), NULL, &error) == NULL);
    EXPECT_INT(kit_failures(&kit), 3);
    host_release(sets[0]);
    host_release(sets[1]);
    host_release(descriptor);
    kit_close(&kit);
}

TEST(constants_by_range_and_again)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id values = ASK(id, host.class("MTLFunctionConstantValues"), "new");
    const float two[] = {2, 4};
    static const char set[] = "setConstantValue:type:atIndex:";
    SEND(void, values, "setConstantValues:type:withRange:", (const void *, unsigned long, ns_range), two, 3ul,
         ((ns_range){0, 1}));
    SEND(void, values, set, (const void *, unsigned long, unsigned long), &two[1], 3ul, 0ul); /* replaces it */
    id error = NULL, function = SEND(id, kit.library, "newFunctionWithName:constantValues:error:", (id, id, id *),
                                     host_string("scale"), values, &error);
    EXPECT_STR(host_text(ASK(id, function, "name")), "scale");
    EXPECT_INT(ASK(unsigned long, function, "functionType"), 3);
    ASK(void, values, "reset"); /* the function has its own copy */
    id pipeline = SEND(id, kit.device,
                       "newComputePipelineStateWithFunction:options:reflection:error:", (id, unsigned long, id *, id *),
                       function, 0ul, NULL, &error);
    CHECK_MSG(pipeline != NULL, "%s", host_error_text(error));
    id commands = ASK(id, kit.queue, "commandBuffer"), encoder = ASK(id, commands, "computeCommandEncoder");
    kit_bind(encoder, pipeline, kit.a, NULL);
    const float one = 1;
    SEND(void, encoder, "setBytes:length:atIndex:", (const void *, unsigned long, unsigned long), &one, 4ul, 1ul);
    kit_dispatch(encoder, KIT_N, 32);
    ASK(void, encoder, "endEncoding");
    EXPECT_INT(kit_finish(commands), 4);
    EXPECT(kit.in[3] == 12);
    EXPECT_INT(kit_failures(&kit), 0);
    SEND(void, values, set, (const void *, unsigned long, unsigned long), &one, 999ul, 0ul);
    SEND(void, values, set, (const void *, unsigned long, unsigned long), NULL, 3ul, 0ul);
    EXPECT_INT(kit_failures(&kit), 2);
    host_release(values);
    host_release(function);
    host_release(pipeline);
    kit_close(&kit);
}

/* Calls with nil or an object of another class: an error message and nil, no crash. */
TEST(nil_where_an_object_belongs)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id error = NULL;
    static const char *const with_descriptor[] = {"newHeapWithDescriptor:",
                                                  "newCommandQueueWithMaxCommandBufferCount:"};
    static const char *const with_error[] = {
        "newResidencySetWithDescriptor:error:", "newCounterSampleBufferWithDescriptor:error:",
        "newBinaryArchiveWithDescriptor:error:", "newComputePipelineStateWithFunction:error:"};
    for (size_t i = 0; i < 2; i++) {
        test_case("%s", with_descriptor[i]);
        EXPECT(SEND(id, kit.device, with_descriptor[i], (id), NULL) == NULL);
        EXPECT_INT(kit_failures(&kit), 1);
    }
    for (size_t i = 0; i < 4; i++) {
        test_case("%s", with_error[i]);
        EXPECT(SEND(id, kit.device, with_error[i], (id, id *), NULL, &error) == NULL);
        EXPECT(SEND(id, kit.device, with_error[i], (id, id *), kit.queue, NULL) == NULL);
        EXPECT_INT(kit_failures(&kit), 2);
    }
    test_case("others");
    EXPECT(SEND(id, kit.device, "newLibraryWithSource:options:error:", (id, id, id *), kit.queue, NULL, &error) ==
           NULL);
    EXPECT(SEND(id, kit.device, "newLibraryWithSource:options:error:", (id, id, id *), host_string(""), kit.queue,
                &error) == NULL);
    EXPECT(SEND(id, kit.device, "newBufferWithBytes:length:options:", (void *, unsigned long, unsigned long), NULL, 4ul,
                0ul) == NULL);
    EXPECT(SEND(id, kit.queue, "commandBufferWithDescriptor:", (id), kit.queue) == NULL);
    EXPECT(SEND(id, host.class("NSURL"), "URLWithString:", (id), host_string("https://x")) == NULL);
    EXPECT_INT(kit_failures(&kit), 5);
    id commands = ASK(id, kit.queue, "commandBuffer");
    EXPECT(SEND(id, commands, "computeCommandEncoderWithDescriptor:", (id), NULL) == NULL);
    SEND(void, commands, "addCompletedHandler:", (void *), NULL);
    SEND(void, commands, "encodeWaitForEvent:value:", (id, uint64_t), kit.queue, (uint64_t)1);
    EXPECT_INT(kit_failures(&kit), 3);
    id encoder = ASK(id, commands, "computeCommandEncoder");
    SEND(void, encoder, "updateFence:", (id), kit.queue);
    ASK(void, encoder, "endEncoding");
    EXPECT_INT(kit_finish(commands), 5);
    kit_failures(&kit);
    EXPECT(ASK(id, ASK(id, kit.a, "class"), "alloc") == NULL); /* buffers are created by the device */
    EXPECT_INT(kit_failures(&kit), 1);
    kit_close(&kit);
}
