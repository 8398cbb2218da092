/* See metal_cache.h. */
#include "backend/metal/metal_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/env.h"
#include "base/hash.h"

enum { CACHE_NAME = 64 };

/* MICA_CACHE, or the cache folder of the user. A software device has a separate cache, so it
 * uses MICA_CACHE only. */
static bool cache_folder(const mica__metal_device *device, char *buffer, size_t cap)
{
    const char *set = mica__env(MICA__ENV_CACHE), *home = getenv("HOME");
    int length = -1;
    if (set && strcmp(set, "off") == 0) return false;
    if (set) length = snprintf(buffer, cap, "%s", set);
    else if (!device->limits.software && home) length = snprintf(buffer, cap, "%s/Library/Caches/mica", home);
    return length > 0 && (size_t)length < cap;
}

/* A hash of what cached files depend on: device, system and version of mica. */
static uint64_t cache_machine(const mica__metal_device *device)
{
    struct utsname system;
    uint64_t hash = mica__hash(device->limits.name, strlen(device->limits.name), 0);
    if (uname(&system) == 0) { /* macOS: version contains the build of the kernel */
        hash = mica__hash(system.release, strlen(system.release), hash);
        hash = mica__hash(system.version, strlen(system.version), hash);
    }
    return mica__hash(MICA_VERSION_STRING, strlen(MICA_VERSION_STRING), hash);
}

bool mica__cache_path(const mica__metal_device *device, uint64_t hash, const char *suffix, char path[MICA__CACHE_PATH])
{
    char folder[MICA__CACHE_PATH - CACHE_NAME];
    if (!cache_folder(device, folder, sizeof folder)) return false;
    snprintf(path, MICA__CACHE_PATH, "%s/%016" PRIx64 "%s", folder, hash ^ mica__hash_u64(cache_machine(device)),
             suffix);
    return true;
}

void mica__cache_make_folders(const char *path)
{
    char folder[MICA__CACHE_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    char *last = strrchr(folder, '/');
    if (!last) return;
    *last = 0;
    char *before = strrchr(folder, '/');
    if (before && before != folder) {
        *before = 0;
        (void)mkdir(folder, 0755);
        *before = '/';
    }
    (void)mkdir(folder, 0755);
}
