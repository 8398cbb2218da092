/* See metal_cores.h. Reads the property "gpu-core-count" of the service "AGXAccelerator" with IOKit, which is
 * loaded at run time like Metal; softmetal has the same functions. Strings and numbers of CoreFoundation are
 * also objects of Foundation. A process without permission gets no service. */
#include "backend/metal/metal_cores.h"

#include <dlfcn.h>
#include <string.h>

#include "backend/metal/objc.h"

typedef struct iokit_calls {
    mica__id (*matching)(const char *name);
    uint32_t (*service)(uint32_t port, mica__id matching);
    mica__id (*property)(uint32_t entry, mica__id key, const void *allocator, uint32_t options);
    int (*release)(uint32_t object);
} iokit_calls;

static bool iokit_symbol(const char *name, void *function, size_t size)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &address, size);
    return address != NULL;
}

static bool iokit_load(iokit_calls *io)
{
#if defined(__APPLE__)
    if (!dlopen("/System/Library/Frameworks/IOKit.framework/IOKit", RTLD_LAZY | RTLD_GLOBAL)) return false;
#endif
    return iokit_symbol("IOServiceMatching", &io->matching, sizeof io->matching) &&
           iokit_symbol("IOServiceGetMatchingService", &io->service, sizeof io->service) &&
           iokit_symbol("IORegistryEntryCreateCFProperty", &io->property, sizeof io->property) &&
           iokit_symbol("IOObjectRelease", &io->release, sizeof io->release);
}

uint32_t mica__metal_cores(void)
{
    iokit_calls io;
    uint32_t cores = 0;
    if (!iokit_load(&io)) return 0;
    const uint32_t gpu = io.service(0, io.matching("AGXAccelerator"));
    if (!gpu) return 0;
    mica__id key = mica__objc_string("gpu-core-count"), value = key ? io.property(gpu, key, NULL, 0) : NULL;
    if (value && MICA__RESPONDS(value, unsignedIntValue)) cores = MICA__SEND0(uint32_t, value, unsignedIntValue);
    mica__objc.release(value);
    mica__objc.release(key);
    io.release(gpu);
    return cores;
}
