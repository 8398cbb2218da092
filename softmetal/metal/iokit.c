/* The one question of IOKit that programs ask about a GPU: how many cores has it? Metal itself does not
 * say. It is the property "gpu-core-count" of the service "AGXAccelerator"; here SM_CORES, and no
 * such service without it: software has none. */
#include "objc/objc_runtime.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_SERVICE = 1 };

static int iokit_cores(void)
{
    const char *text = getenv("SM_CORES");
    return text ? atoi(text) : 0;
}

/* A dictionary on a Mac; whoever has one only hands it on. */
SM_API id IOServiceMatching(const char *name) { return sm_string_new(name, strlen(name)); }

/* Takes the dictionary. */
SM_API uint32_t IOServiceGetMatchingService(uint32_t port, id matching)
{
    (void)port;
    const bool found = matching && strcmp(sm_string_bytes(matching), "AGXAccelerator") == 0 && iokit_cores() > 0;
    objc_release(matching);
    return found ? GPU_SERVICE : 0;
}

SM_API id IORegistryEntryCreateCFProperty(uint32_t entry, id key, const void *allocator, uint32_t options)
{
    (void)allocator, (void)options;
    if (entry != GPU_SERVICE || !key || strcmp(sm_string_bytes(key), "gpu-core-count") != 0) return NULL;
    sm_number *number = sm_new(&sm_ns_number);
    if (number) number->integer = iokit_cores(), number->real = iokit_cores();
    return number;
}

SM_API int IOObjectRelease(uint32_t object) { return object == GPU_SERVICE ? 0 : 1; }
