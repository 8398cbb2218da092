/* The one IOKit property that programs read about a GPU: its number of cores. Metal itself has no call for
 * it. It is the property "gpu-core-count" of the service "AGXAccelerator". Here SM_CORES is its value;
 * without SM_CORES the service does not exist. */
#include "objc/objc_runtime.h"
#include "settings/settings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_SERVICE = 1 };

static int iokit_cores(void) { return (int)sm_setting_integer(SM_SET_CORES, 0); }

/* A dictionary on a Mac; programs only pass it on. */
SM_API id IOServiceMatching(const char *name) { return sm_string_new(name, strlen(name)); }

/* Releases the dictionary. */
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
