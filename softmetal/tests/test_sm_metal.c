/* Correct use of every Metal object that a compute program needs. */
#include "sm_kit.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(the_device_says_what_it_is)
{
    CHECK(host_open());
    void *pool = host.push();
    id all = host.all_devices();
    EXPECT_INT(ASK(unsigned long, all, "count"), 1);
    id device = ASK(id, all, "firstObject");
    EXPECT(strstr(host_text(ASK(id, device, "name")), "software") != NULL);
    EXPECT(SEND(BOOL, device, "supportsFamily:", (long), 1007l) &&
           !SEND(BOOL, device, "supportsFamily:", (long), 1009l));
    EXPECT(SEND(BOOL, device, "supportsFamily:", (long), 5001l));
    EXPECT(ASK(BOOL, device, "hasUnifiedMemory") && !ASK(BOOL, device, "isLowPower"));
    const mtl_size most = ASK_STRUCT(mtl_size, device, "maxThreadsPerThreadgroup");
    EXPECT(most.width == 1024 && most.height == 1024 && most.depth == 1024);
    EXPECT_INT(ASK(unsigned long, device, "maxThreadgroupMemoryLength"), 32768);
    EXPECT(ASK(unsigned long, device, "maxBufferLength") > 1 << 20);
    EXPECT(ASK(unsigned long, device, "recommendedMaxWorkingSetSize") > 1 << 20);
    EXPECT(ASK(uint64_t, device, "registryID") != 0);
    EXPECT_STR(host_text(ASK(id, ASK(id, device, "architecture"), "name")), "softmetal");
    host_release(all);
    host.pop(pool);
    EXPECT_INT(host.failures(NULL, 0), 0);
}

TEST(buffers)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    const unsigned long before = ASK(unsigned long, kit.device, "currentAllocatedSize");
    id big = host_buffer(kit.device, 1 << 20);
    EXPECT_INT(ASK(unsigned long, kit.device, "currentAllocatedSize"), before + (1 << 20));
    EXPECT_INT(ASK(unsigned long, big, "length"), 1 << 20);
    EXPECT_INT((uintptr_t)host_contents(big) % 4096, 0);
    EXPECT_INT(ASK(unsigned long, big, "storageMode"), 0);
    SEND(void, big, "setLabel:", (id), host_string("weights"));
    EXPECT_STR(host_text(ASK(id, big, "label")), "weights");
    host_release(big);
    EXPECT_INT(ASK(unsigned long, kit.device, "currentAllocatedSize"), before);
    const float values[4] = {1, 2, 3, 4};
    id small = SEND(id, kit.device, "newBufferWithBytes:length:options:", (const void *, unsigned long, unsigned long),
                    values, sizeof values, 0x100ul);
    EXPECT(memcmp(host_contents(small), values, sizeof values) == 0);
    EXPECT_INT(ASK(unsigned long, small, "hazardTrackingMode"), 1);
    host_release(small);
    id private = SEND(id, kit.device, "newBufferWithLength:options:", (unsigned long, unsigned long), 64ul, 32ul);
    EXPECT_INT(kit_failures(&kit), 0);
    EXPECT(host_contents(private) == NULL);
    EXPECT_INT(kit_failures(&kit), 1);
    host_release(private);
    EXPECT(host_buffer(kit.device, 0) == NULL);
    EXPECT_INT(kit_failures(&kit), 1);
    EXPECT(host_buffer(kit.device, (size_t)1 << 60) == NULL); /* out of memory: nil, and not an error of the program */
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

static int freed;
static void note_freed(host_block *block, void *pointer, unsigned long length)
{
    freed += pointer == block->context[0] && length == 4096;
}

TEST(memory_of_the_host_without_a_copy)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    float *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < KIT_N; i++) memory[i] = (float)i;
    host_block block = host_make_block((void (*)(void))note_freed, memory);
    static const char wrap[] = "newBufferWithBytesNoCopy:length:options:deallocator:";
    id buffer = SEND(id, kit.device, wrap, (void *, unsigned long, unsigned long, void *), memory, 4096ul, 0ul, &block);
    CHECK(buffer != NULL);
    EXPECT(host_contents(buffer) == memory);
    id commands = kit_submit(&kit, kit.queue, kit.add_one, buffer, NULL);
    ASK(void, commands, "waitUntilCompleted");
    EXPECT(memory[5] == 6);
    host_release(buffer);
    EXPECT_INT(freed, 1);
    EXPECT_INT(kit_failures(&kit), 0);
    EXPECT(SEND(id, kit.device, wrap, (void *, unsigned long, unsigned long, void *), memory + 1, 4096ul, 0ul, NULL) ==
           NULL);
    EXPECT(SEND(id, kit.device, wrap, (void *, unsigned long, unsigned long, void *), memory, 100ul, 0ul, NULL) ==
           NULL);
    EXPECT_INT(kit_failures(&kit), 2);
    munmap(memory, 4096);
    kit_close(&kit);
}

TEST(heaps)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id descriptor = ASK(id, host.class("MTLHeapDescriptor"), "new");
    SEND(void, descriptor, "setSize:", (unsigned long), 4096ul);
    SEND(void, descriptor, "setStorageMode:", (unsigned long), 0ul);
    id heap = SEND(id, kit.device, "newHeapWithDescriptor:", (id), descriptor);
    CHECK(heap != NULL);
    const ns_range need = SEND(ns_range, kit.device,
                               "heapBufferSizeAndAlignWithLength:options:", (unsigned long, unsigned long), 100ul, 0ul);
    EXPECT(need.location == 256 && need.length == 256);
    static const char cut[] = "newBufferWithLength:options:";
    id one = SEND(id, heap, cut, (unsigned long, unsigned long), 1000ul, 0ul);
    id two = SEND(id, heap, cut, (unsigned long, unsigned long), 2000ul, 0ul);
    EXPECT(one != NULL && two != NULL && (char *)host_contents(two) == (char *)host_contents(one) + 1024);
    EXPECT(SEND(id, heap, cut, (unsigned long, unsigned long), 2000ul, 0ul) == NULL);
    EXPECT_INT(ASK(unsigned long, heap, "usedSize"), 1024 + 2048);
    EXPECT_INT(SEND(unsigned long, heap, "maxAvailableSizeWithAlignment:", (unsigned long), 256ul), 1024);
    EXPECT_INT(ASK(unsigned long, one, "hazardTrackingMode"), 1);
    EXPECT(ASK(id, one, "heap") == heap);
    host_release(one);
    one = SEND(id, heap, cut, (unsigned long, unsigned long), 1024ul, 0ul); /* the freed range is reused */
    EXPECT(one != NULL && ASK(unsigned long, one, "heapOffset") == 0);
    EXPECT(ASK(id, heap, "label") == NULL);
    host_release(one);
    host_release(two);
    EXPECT_INT(ASK(unsigned long, heap, "usedSize"), 0);
    host_release(heap);
    SEND(void, descriptor, "setType:", (long), 1l);
    heap = SEND(id, kit.device, "newHeapWithDescriptor:", (id), descriptor);
    one = SEND(id, heap, "newBufferWithLength:options:offset:", (unsigned long, unsigned long, unsigned long), 512ul,
               0ul, 1024ul);
    EXPECT(one != NULL && ASK(unsigned long, one, "heapOffset") == 1024);
    host_release(heap); /* the buffer retains it */
    memset(host_contents(one), 1, 512);
    host_release(one);
    host_release(descriptor);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(functions_by_descriptor)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    const int before = host.alive(NULL);
    void *pool = host.push();
    id error = NULL, wanted = ASK(id, host.class("MTLFunctionDescriptor"), "functionDescriptor");
    static const char make[] = "newFunctionWithDescriptor:error:";
    SEND(void, wanted, "setName:", (id), host_string("nothing"));
    EXPECT(SEND(id, kit.library, make, (id, id *), wanted, &error) == NULL);
    EXPECT_MSG(strstr(host_error_text(error), "nothing") != NULL, "%s", host_error_text(error));

    const float three = 3;
    const bool yes = true;
    id values = ASK(id, host.class("MTLFunctionConstantValues"), "new");
    static const char set[] = "setConstantValue:type:atIndex:";
    SEND(void, values, set, (const void *, unsigned long, unsigned long), &three, 3ul, 0ul);
    SEND(void, values, "setConstantValue:type:withName:", (const void *, unsigned long, id), &yes, 53ul,
         host_string("negate"));
    SEND(void, wanted, "setName:", (id), host_string("scale"));
    SEND(void, wanted, "setConstantValues:", (id), values);
    id plain = SEND(id, kit.library, make, (id, id *), wanted, &error);
    CHECK_MSG(plain != NULL, "%s", host_error_text(error));
    EXPECT_STR(host_text(ASK(id, plain, "name")), "scale");
    SEND(void, wanted, "setSpecializedName:", (id), host_string("scale by -3"));
    id named = SEND(id, kit.library, make, (id, id *), wanted, &error);
    CHECK_MSG(named != NULL, "%s", host_error_text(error));
    EXPECT_STR(host_text(ASK(id, named, "name")), "scale by -3");
    id pipeline = SEND(id, kit.device, "newComputePipelineStateWithFunction:error:", (id, id *), named, &error);
    EXPECT_MSG(pipeline != NULL, "%s", host_error_text(error));
    SEND(void, wanted, "setConstantValues:", (id), NULL);
    id without = SEND(id, kit.library, make, (id, id *), wanted, &error);
    EXPECT(without != NULL);
    EXPECT_INT(kit_failures(&kit), 0);
    EXPECT(SEND(id, kit.library, make, (id, id *), NULL, &error) == NULL);
    EXPECT_INT(kit_failures(&kit), 1);
    host_release(without);
    host_release(pipeline);
    host_release(named);
    host_release(plain);
    host_release(values);
    host.pop(pool);
    EXPECT_INT(host.alive(NULL), before);
    kit_close(&kit);
}

TEST(all_devices_with_an_observer)
{
    CHECK(host_open());
    id (*all)(id *, const void *);
    void (*forget)(id);
    void *symbol = host_symbol("MTLCopyAllDevicesWithObserver");
    memcpy(&all, &symbol, sizeof symbol);
    symbol = host_symbol("MTLRemoveDeviceObserver");
    memcpy(&forget, &symbol, sizeof symbol);
    id observer = host.class("NSObject"), devices = all(&observer, NULL);
    EXPECT(observer == NULL);
    EXPECT_INT(ASK(unsigned long, devices, "count"), 1);
    forget(observer);
    host_release(devices);
}

TEST(bytes_constants_and_threadgroup_memory)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id values = ASK(id, host.class("MTLFunctionConstantValues"), "new");
    const float three = 3;
    const bool yes = true;
    static const char set[] = "setConstantValue:type:atIndex:";
    SEND(void, values, set, (const void *, unsigned long, unsigned long), &three, 3ul, 0ul);
    SEND(void, values, "setConstantValue:type:withName:", (const void *, unsigned long, id), &yes, 53ul,
         host_string("negate"));
    id error = NULL;
    id function = SEND(id, kit.library, "newFunctionWithName:constantValues:error:", (id, id, id *),
                       host_string("scale"), values, &error);
    CHECK_MSG(function != NULL, "%s", host_error_text(error));
    host_release(values);
    id known = ASK(id, function, "functionConstantsDictionary");
    EXPECT_INT(ASK(unsigned long, known, "count"), 2);
    id factor = SEND(id, known, "objectForKey:", (id), host_string("factor"));
    EXPECT_INT(ASK(unsigned long, factor, "type"), 3);
    id descriptor = ASK(id, host.class("MTLComputePipelineDescriptor"), "new");
    SEND(void, descriptor, "setComputeFunction:", (id), function);
    SEND(void, descriptor, "setLabel:", (id), host_string("scaled"));
    SEND(void, descriptor, "setMaxTotalThreadsPerThreadgroup:", (unsigned long), 128ul);
    id pipeline = SEND(id, kit.device, "newComputePipelineStateWithDescriptor:options:reflection:error:",
                       (id, unsigned long, id *, id *), descriptor, 0ul, NULL, &error);
    CHECK_MSG(pipeline != NULL, "%s", host_error_text(error));
    EXPECT_STR(host_text(ASK(id, pipeline, "label")), "scaled");
    EXPECT_INT(ASK(unsigned long, pipeline, "maxTotalThreadsPerThreadgroup"), 128);

    id commands = ASK(id, kit.queue, "commandBuffer"), encoder = ASK(id, commands, "computeCommandEncoder");
    float by = 2;
    kit_bind(encoder, pipeline, kit.a, NULL);
    SEND(void, encoder, "setBytes:length:atIndex:", (const void *, unsigned long, unsigned long), &by, sizeof by, 1ul);
    by = 100; /* has no effect: setBytes has copied it */
    kit_dispatch(encoder, KIT_N, 64);
    SEND(void, encoder, "setComputePipelineState:", (id), kit.turn);
    SEND(void, encoder, "setThreadgroupMemoryLength:atIndex:", (unsigned long, unsigned long), KIT_N * sizeof(float),
         0ul);
    kit_dispatch(encoder, KIT_N, KIT_N);
    ASK(void, encoder, "endEncoding");
    EXPECT_INT(kit_finish(commands), 4);
    int wrong = 0;
    for (int i = 0; i < KIT_N; i++) wrong += !(kit.in[i] == -6 * (float)(KIT_N - 1 - i));
    EXPECT_INT(wrong, 0);
    host_release(descriptor);
    host_release(function);
    host_release(pipeline);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(compile_options_and_errors)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id options = ASK(id, host.class("MTLCompileOptions"), "new");
    EXPECT(ASK(BOOL, options, "fastMathEnabled"));
    SEND(void, options, "setFastMathEnabled:", (BOOL), 0);
    SEND(void, options, "setLanguageVersion:", (unsigned long), 0x30000ul);
    id number = SEND(id, host.class("NSNumber"), "numberWithInt:", (int), 7);
    SEND(void, options, "setPreprocessorMacros:", (id),
         SEND(id, host.class("NSDictionary"), "dictionaryWithObject:forKey:", (id, id), number, host_string("SEVEN")));
    static const char make[] = "newLibraryWithSource:options:error:";
    id error = NULL;
    id text = host_string("kernel void f(device int *a [[buffer(0)]]) { a[0] = SEVEN; }\n");
    id library = SEND(id, kit.device, make, (id, id, id *), text, options, &error);
    CHECK_MSG(library != NULL, "%s", host_error_text(error));
    EXPECT_STR(host_text(ASK(id, ASK(id, library, "functionNames"), "firstObject")), "f");
    EXPECT(SEND(id, library, "newFunctionWithName:", (id), host_string("g")) == NULL);
    host_release(library);
    host_release(options);

    EXPECT(host_library(kit.device, "kernel void f(device int *a [[buffer(0)]])\n{\n    a[0] = nothing;\n}\n",
                        &error) == NULL);
    EXPECT_STR(host_text(ASK(id, error, "domain")), "MTLLibraryErrorDomain");
    EXPECT_INT(ASK(long, error, "code"), 3);
    EXPECT_MSG(strstr(host_error_text(error), "program_source:3:") != NULL &&
                   strstr(host_error_text(error), "nothing") != NULL,
               "%s", host_error_text(error));
    id values = ASK(id, host.class("MTLFunctionConstantValues"), "new");
    EXPECT(SEND(id, kit.library, "newFunctionWithName:constantValues:error:", (id, id, id *), host_string("g"), values,
                &error) == NULL);
    EXPECT_INT(ASK(long, error, "code"), 5);
    host_release(values);
    EXPECT(SEND(id, kit.device, "newLibraryWithURL:error:", (id, id *), NULL, &error) == NULL);
    EXPECT(strstr(host_error_text(error), "newLibraryWithSource") != NULL);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

/* The number of wrong remainders of fmod(a, 0.1f), compiled with the options. */
static int wrong_remainders(metal_kit *kit, id options)
{
    static const char source[] =
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void k(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i] = fmod(a[i], 0.1f); }";
    id error = NULL, library = SEND(id, kit->device, "newLibraryWithSource:options:error:", (id, id, id *),
                                    host_string(source), options, &error);
    id pipeline = library == NULL ? NULL : host_pipeline(kit->device, library, "k", &error);
    if (!EXPECT_MSG(pipeline != NULL, "%s", host_error_text(error))) return -1;
    for (int i = 0; i < KIT_N; i++) kit->in[i] = (float)(i + 1) * 0.1f;
    ASK(void, kit_submit(kit, kit->queue, pipeline, kit->a, NULL), "waitUntilCompleted");
    int wrong = 0;
    for (int i = 0; i < KIT_N; i++) wrong += kit->in[i] != fmodf((float)(i + 1) * 0.1f, 0.1f);
    host_release(pipeline);
    host_release(library);
    return wrong;
}

/* setMathMode: is about arithmetic. Functions are fast until mathFloatingPointFunctions, or the older fastMathEnabled,
 * says otherwise. Fast functions are inexact if SM_MATH asks for it. */
TEST(fast_functions_are_an_option_of_their_own)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    static const struct {
        const char *name, *math;
        long mode, functions, fast_math; /* -1: not set */
        bool exact;
    } cases[] = {
        {"the default", "fuzz", -1, -1, -1, false},
        {"safe mode", "fuzz", 0, -1, -1, false},
        {"safe mode, precise functions", "fuzz", 0, 1, -1, true},
        {"precise functions alone", "fuzz", -1, 1, -1, true},
        {"fastMathEnabled", "fuzz", -1, -1, 0, true},
        {"fastMathEnabled, then fast functions", "fuzz", -1, 0, 0, false},
        {"fast functions, but no errors asked for", "precise", 0, 0, -1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_case("%s", cases[i].name);
        setenv("SM_MATH", cases[i].math, 1);
        id options = ASK(id, host.class("MTLCompileOptions"), "new");
        if (cases[i].fast_math >= 0) SEND(void, options, "setFastMathEnabled:", (BOOL), (BOOL)cases[i].fast_math);
        if (cases[i].mode >= 0) SEND(void, options, "setMathMode:", (long), cases[i].mode);
        if (cases[i].functions >= 0) SEND(void, options, "setMathFloatingPointFunctions:", (long), cases[i].functions);
        const int wrong = wrong_remainders(&kit, options);
        EXPECT_MSG(cases[i].exact ? wrong == 0 : wrong > 0, "%d of %d remainders are wrong", wrong, KIT_N);
        host_release(options);
    }
    unsetenv("SM_MATH");
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(blits_and_indirect_dispatch)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id commands = ASK(id, kit.queue, "commandBuffer"), blit = ASK(id, commands, "blitCommandEncoder");
    SEND(void, blit, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",
         (id, unsigned long, id, unsigned long, unsigned long), kit.a, 0ul, kit.b, 4ul, 8ul);
    const ns_range tail = {128, 128};
    SEND(void, blit, "fillBuffer:range:value:", (id, ns_range, unsigned char), kit.b, tail, 0);
    ASK(void, blit, "endEncoding");
    EXPECT_INT(kit_finish(commands), 4);
    EXPECT(kit.out[0] == -1 && kit.out[1] == 0 && kit.out[2] == 1 && kit.out[3] == -1 && kit.out[31] == -1 &&
           kit.out[32] == 0);
    const uint32_t groups[3] = {2, 1, 1};
    memcpy(kit.out, groups, sizeof groups);
    commands = ASK(id, kit.queue, "commandBuffer");
    id encoder = ASK(id, commands, "computeCommandEncoder");
    kit_bind(encoder, kit.add_one, kit.a, NULL);
    const mtl_size eight = {8, 1, 1};
    SEND(void, encoder, "dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:",
         (id, unsigned long, mtl_size), kit.b, 0ul, eight);
    ASK(void, encoder, "endEncoding");
    EXPECT_INT(kit_finish(commands), 4);
    EXPECT(kit.in[15] == 16 && kit.in[16] == 16);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(timestamps_of_passes)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    EXPECT(SEND(BOOL, kit.device, "supportsCounterSampling:", (unsigned long), 0ul));
    EXPECT(!SEND(BOOL, kit.device, "supportsCounterSampling:", (unsigned long), 2ul));
    id set = ASK(id, ASK(id, kit.device, "counterSets"), "firstObject");
    EXPECT_STR(host_text(ASK(id, set, "name")), "timestamp");
    id descriptor = ASK(id, host.class("MTLCounterSampleBufferDescriptor"), "new");
    SEND(void, descriptor, "setCounterSet:", (id), set);
    SEND(void, descriptor, "setSampleCount:", (unsigned long), 4ul);
    id error = NULL;
    id samples = SEND(id, kit.device, "newCounterSampleBufferWithDescriptor:error:", (id, id *), descriptor, &error);
    CHECK_MSG(samples != NULL, "%s", host_error_text(error));
    id pass = ASK(id, host.class("MTLComputePassDescriptor"), "computePassDescriptor");
    id slot = SEND(id, ASK(id, pass, "sampleBufferAttachments"), "objectAtIndexedSubscript:", (unsigned long), 0ul);
    SEND(void, slot, "setSampleBuffer:", (id), samples);
    SEND(void, slot, "setStartOfEncoderSampleIndex:", (unsigned long), 1ul);
    SEND(void, slot, "setEndOfEncoderSampleIndex:", (unsigned long), 2ul);
    id commands = ASK(id, kit.queue, "commandBuffer");
    id encoder = SEND(id, commands, "computeCommandEncoderWithDescriptor:", (id), pass);
    kit_bind(encoder, kit.add_one, kit.a, NULL);
    kit_dispatch(encoder, KIT_N, 32);
    ASK(void, encoder, "endEncoding");
    EXPECT_INT(kit_finish(commands), 4);
    const ns_range all = {0, 4};
    id data = SEND(id, samples, "resolveCounterRange:", (ns_range), all);
    CHECK(ASK(unsigned long, data, "length") == 32);
    const uint64_t *times = ASK(const uint64_t *, data, "bytes");
    EXPECT(times[0] == UINT64_MAX && times[3] == UINT64_MAX && times[1] > 0 && times[2] > times[1]);
    host_release(descriptor);
    host_release(samples);
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

TEST(residency_archives_capture)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id error = NULL;
    id descriptor = ASK(id, host.class("MTLResidencySetDescriptor"), "new");
    id set = SEND(id, kit.device, "newResidencySetWithDescriptor:error:", (id, id *), descriptor, &error);
    SEND(void, set, "addAllocation:", (id), kit.a);
    SEND(void, set, "addAllocation:", (id), kit.a);
    SEND(void, set, "addAllocation:", (id), kit.b);
    EXPECT_INT(ASK(unsigned long, set, "allocatedSize"), 0);
    ASK(void, set, "commit");
    EXPECT_INT(ASK(unsigned long, set, "allocatedSize"), 2 * KIT_N * sizeof(float));
    EXPECT_INT(ASK(unsigned long, set, "allocationCount"), 2);
    EXPECT(SEND(BOOL, set, "containsAllocation:", (id), kit.b));
    SEND(void, set, "removeAllocation:", (id), kit.b);
    EXPECT(!SEND(BOOL, set, "containsAllocation:", (id), kit.b));
    ASK(void, set, "requestResidency");
    SEND(void, kit.queue, "addResidencySet:", (id), set);
    SEND(void, kit.queue, "removeResidencySet:", (id), set);
    host_release(set);
    host_release(descriptor);

    char path[] = "/tmp/softmetal_archive_XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    id url = SEND(id, host.class("NSURL"), "fileURLWithPath:", (id), host_string(path));
    id how = ASK(id, host.class("MTLBinaryArchiveDescriptor"), "new");
    id archive = SEND(id, kit.device, "newBinaryArchiveWithDescriptor:error:", (id, id *), how, &error);
    id function = SEND(id, kit.library, "newFunctionWithName:", (id), host_string("copy"));
    id pipeline_descriptor = ASK(id, host.class("MTLComputePipelineDescriptor"), "new");
    SEND(void, pipeline_descriptor, "setComputeFunction:", (id), function);
    EXPECT(SEND(BOOL, archive, "addComputePipelineFunctionsWithDescriptor:error:", (id, id *), pipeline_descriptor,
                &error));
    EXPECT(SEND(BOOL, archive, "serializeToURL:error:", (id, id *), url, &error));
    host_release(archive);
    SEND(void, how, "setUrl:", (id), url);
    archive = SEND(id, kit.device, "newBinaryArchiveWithDescriptor:error:", (id, id *), how, &error);
    CHECK_MSG(archive != NULL, "%s", host_error_text(error));
    SEND(void, pipeline_descriptor, "setBinaryArchives:", (id),
         SEND(id, host.class("NSArray"), "arrayWithObject:", (id), archive));
    static const char make[] = "newComputePipelineStateWithDescriptor:options:reflection:error:";
    id hit = SEND(id, kit.device, make, (id, unsigned long, id *, id *), pipeline_descriptor, 4ul, NULL, &error);
    EXPECT(hit != NULL);
    id other = SEND(id, kit.library, "newFunctionWithName:", (id), host_string("turn"));
    SEND(void, pipeline_descriptor, "setComputeFunction:", (id), other);
    EXPECT(SEND(id, kit.device, make, (id, unsigned long, id *, id *), pipeline_descriptor, 4ul, NULL, &error) == NULL);
    FILE *broken = fopen(path, "wb");
    fputs("nonsense", broken);
    fclose(broken);
    EXPECT(SEND(id, kit.device, "newBinaryArchiveWithDescriptor:error:", (id, id *), how, &error) == NULL);
    EXPECT_INT(ASK(long, error, "code"), 1);
    unlink(path);
    id all[] = {archive, hit, function, other, pipeline_descriptor, how};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) host_release(all[i]);

    id manager = ASK(id, host.class("MTLCaptureManager"), "sharedCaptureManager");
    EXPECT(!SEND(BOOL, manager, "supportsDestination:", (long), 2l));
    EXPECT(!SEND(BOOL, manager, "startCaptureWithDescriptor:error:", (id, id *), NULL, &error));
    EXPECT_INT(kit_failures(&kit), 1); /* no descriptor */
    kit_close(&kit);
}

/* A capture of a queue records what was committed on it between start and stop, and nothing of other queues. */
TEST(a_capture)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    char folder[] = "/tmp/softmetal-capture-XXXXXX", path[64], text[4096] = "";
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run.gputrace", folder);
    id error = NULL, manager = ASK(id, host.class("MTLCaptureManager"), "sharedCaptureManager");
    id how = ASK(id, host.class("MTLCaptureDescriptor"), "new"), other = ASK(id, kit.device, "newCommandQueue");
    SEND(void, how, "setCaptureObject:", (id), kit.queue);
    SEND(void, how, "setDestination:", (long), 2l);
    SEND(void, how, "setOutputURL:", (id), SEND(id, host.class("NSURL"), "fileURLWithPath:", (id), host_string(path)));
    EXPECT(!SEND(BOOL, manager, "startCaptureWithDescriptor:error:", (id, id *), how, &error));
    EXPECT(strstr(host_error_text(error), "METAL_CAPTURE_ENABLED") != NULL);
    setenv("METAL_CAPTURE_ENABLED", "1", 1);
    EXPECT(SEND(BOOL, manager, "supportsDestination:", (long), 2l));
    EXPECT(SEND(BOOL, manager, "startCaptureWithDescriptor:error:", (id, id *), how, &error));
    EXPECT(ASK(BOOL, manager, "isCapturing"));
    EXPECT(!SEND(BOOL, manager, "startCaptureWithDescriptor:error:", (id, id *), how, &error));
    EXPECT_INT(ASK(long, error, "code"), 2);
    ASK(void, kit_submit(&kit, kit.queue, kit.copy, kit.a, kit.b), "waitUntilCompleted");
    ASK(void, kit_submit(&kit, other, kit.add_one, kit.a, kit.b), "waitUntilCompleted");
    ASK(void, manager, "stopCapture");
    EXPECT(!ASK(BOOL, manager, "isCapturing"));
    EXPECT(!SEND(BOOL, manager, "startCaptureWithDescriptor:error:", (id, id *), how, &error)); /* path exists */
    EXPECT_INT(kit_failures(&kit), 0);
    ASK(void, manager, "stopCapture");
    EXPECT_INT(kit_failures(&kit), 1);
    unsetenv("METAL_CAPTURE_ENABLED");
    snprintf(path, sizeof path, "%s/run.gputrace/softmetal.txt", folder);
    FILE *file = fopen(path, "r");
    if (EXPECT(file != NULL)) {
        (void)!fread(text, 1, sizeof text - 1, file);
        fclose(file);
    }
    EXPECT_MSG(strstr(text, "no GPU") && strstr(text, "dispatch copy") && !strstr(text, "add_one"), "%s", text);
    host_release(how);
    host_release(other);
    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    rmdir(folder);
    kit_close(&kit);
}
