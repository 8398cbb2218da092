/* SM_ZOMBIES, which must be set before the first object is created, and devices with other limits. */
#include "sm_kit.h"

#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void ask_for_zombies(void) { setenv("SM_ZOMBIES", "1", 1); }

TEST(a_released_object_says_so)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    id buffer = host_buffer(kit.device, 64);
    host_release(buffer);
    EXPECT_INT(kit_failures(&kit), 0);
    EXPECT_INT(ASK(unsigned long, buffer, "length"), 0);
    EXPECT_INT(kit_failures(&kit), 1);
    EXPECT_STR(kit.said, "length was sent to an object that had been released for the last time");
    host_release(buffer);
    EXPECT_INT(kit_failures(&kit), 1);
    id (*retain)(id), (*autorelease)(id);
    void *symbols[] = {host_symbol("objc_retain"), host_symbol("objc_autorelease")};
    memcpy(&retain, &symbols[0], sizeof retain);
    memcpy(&autorelease, &symbols[1], sizeof autorelease);
    EXPECT(retain(buffer) == buffer && autorelease(buffer) == buffer);
    EXPECT_INT(kit_failures(&kit), 2);
    EXPECT_STR(kit.said, "autorelease was sent to an object that had been released for the last time");
    id encoder = ASK(id, ASK(id, kit.queue, "commandBuffer"), "computeCommandEncoder");
    SEND(void, encoder, "setBuffer:offset:atIndex:", (id, unsigned long, unsigned long), buffer, 0ul, 0ul);
    EXPECT_INT(kit_failures(&kit), 1); /* no longer counts as a buffer */
    ASK(void, encoder, "endEncoding");
    kit_close(&kit);
}

TEST(buffers_that_end_at_a_page)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    const unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    setenv("SM_GUARD", "1", 1);
    id buffer = host_buffer(kit.device, 160);
    unsetenv("SM_GUARD");
    EXPECT_INT(((uintptr_t)host_contents(buffer) + 160) % page, 0);
    id commands = kit_submit(&kit, kit.queue, kit.add_one, buffer, NULL); /* 64 floats, but the buffer has 40 */
    ASK(void, commands, "waitUntilCompleted");
    EXPECT_INT(ASK(unsigned long, commands, "status"), 5);
    EXPECT_INT(ASK(long, ASK(id, commands, "error"), "code"), 3); /* page fault */
    EXPECT_MSG(strstr(host_error_text(ASK(id, commands, "error")), "program_source:5") != NULL, "%s",
               host_error_text(ASK(id, commands, "error")));
    commands = kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL); /* the device still works */
    ASK(void, commands, "waitUntilCompleted");
    EXPECT_INT(ASK(unsigned long, commands, "status"), 4);
    host_release(buffer);
    kit_close(&kit);
}

TEST(a_small_or_a_newer_device)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    setenv("SM_MEMORY", "100000", 1);
    setenv("SM_FAMILY", "9", 1);
    EXPECT_INT(ASK(unsigned long, kit.device, "recommendedMaxWorkingSetSize"), 100000);
    id most = host_buffer(kit.device, 90000);
    EXPECT(most != NULL && host_buffer(kit.device, 20000) == NULL);
    host_release(most);
    most = host_buffer(kit.device, 20000);
    EXPECT(most != NULL);
    host_release(most);
    EXPECT(SEND(BOOL, kit.device, "supportsFamily:", (long), 1009l) &&
           !SEND(BOOL, kit.device, "supportsFamily:", (long), 1010l));
    unsetenv("SM_MEMORY");
    unsetenv("SM_FAMILY");
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}

/* The calls of IOKit that a program on a Mac makes. */
TEST(the_registry_has_the_cores)
{
    id IOServiceMatching(const char *);
    uint32_t IOServiceGetMatchingService(uint32_t, id);
    id IORegistryEntryCreateCFProperty(uint32_t, id, const void *, uint32_t);
    int IOObjectRelease(uint32_t);
    void *pool = host.push();
    unsetenv("SM_CORES");
    EXPECT_INT(IOServiceGetMatchingService(0, IOServiceMatching("AGXAccelerator")), 0);
    setenv("SM_CORES", "40", 1);
    EXPECT_INT(IOServiceGetMatchingService(0, IOServiceMatching("IOPCIDevice")), 0);
    const uint32_t gpu = IOServiceGetMatchingService(0, IOServiceMatching("AGXAccelerator"));
    CHECK(gpu != 0);
    id key = host_string("gpu-core-count"), other = host_string("gpu-speed");
    id value = IORegistryEntryCreateCFProperty(gpu, key, NULL, 0);
    CHECK(value != NULL);
    EXPECT_INT(ASK(int, value, "intValue"), 40);
    EXPECT(IORegistryEntryCreateCFProperty(gpu, other, NULL, 0) == NULL);
    EXPECT_INT(IOObjectRelease(gpu), 0);
    host_release(value);
    host.pop(pool);
    unsetenv("SM_CORES");
}

TEST(fewer_threads)
{
    metal_kit kit;
    setenv("SM_MAXTHREADS", "256", 1);
    if (!kit_open(&kit)) return;
    EXPECT_INT(ASK(unsigned long, kit.add_one, "maxTotalThreadsPerThreadgroup"), 256);
    id commands = ASK(id, kit.queue, "commandBuffer"), encoder = ASK(id, commands, "computeCommandEncoder");
    kit_bind(encoder, kit.add_one, kit.a, NULL);
    kit_dispatch(encoder, KIT_N, 512);
    ASK(void, encoder, "endEncoding");
    EXPECT_INT(kit_finish(commands), 5);
    unsetenv("SM_MAXTHREADS");
    kit_failures(&kit);
    kit_close(&kit);
}

/* Set by the handler on its own thread; the test polls them. */
static _Atomic(id) handed, refused;
static void take_result(host_block *block, id object, id error)
{
    (void)block;
    if (object != NULL) handed = ASK(id, object, "retain");
    else refused = ASK(id, error, "retain");
}

TEST(results_by_handler)
{
    metal_kit kit;
    if (!kit_open(&kit)) return;
    host_block block = host_make_block((void (*)(void))take_result, NULL);
    static const char make[] = "newLibraryWithSource:options:completionHandler:";
    SEND(void, kit.device, make, (id, id, void *), host_string("nonsense"), NULL, &block);
    SEND(void, kit.device, make, (id, id, void *), host_string(kit_source), NULL, &block);
    while (handed == NULL || refused == NULL) usleep(100);
    EXPECT(strstr(host_error_text(refused), "program_source") != NULL);
    id function = SEND(id, handed, "newFunctionWithName:", (id), host_string("copy"));
    EXPECT(function != NULL);
    host_release(handed);
    host_release(refused);
    handed = NULL;
    SEND(void, kit.device, "newComputePipelineStateWithFunction:completionHandler:", (id, void *), function, &block);
    while (handed == NULL) usleep(100);
    EXPECT_INT(ASK(unsigned long, handed, "threadExecutionWidth"), 32);
    host_release(handed);
    host_release(function);
    ASK(void, kit_submit(&kit, kit.queue, kit.add_one, kit.a, NULL),
        "waitUntilCompleted"); /* earlier handlers have returned */
    EXPECT_INT(kit_failures(&kit), 0);
    kit_close(&kit);
}
