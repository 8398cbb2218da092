/* See metal_archive.h. */
#include "backend/metal/metal_archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/env.h"
#include "base/hash.h"

enum { ARCHIVE_PATH = 1024, FAIL_ON_MISS = 4 /* MTLPipelineOptionFailOnBinaryArchiveMiss */ };

/* MICA_CACHE, or where the system keeps what can be made again. Software has a cache of
 * its own, so for it only the former. */
bool mica__archive_folder(const mica__metal_device *device, char *buffer, size_t cap)
{
    const char *set = mica__env(MICA__ENV_CACHE), *home = getenv("HOME");
    int length = -1;
    if (!device->archives || (set && strcmp(set, "off") == 0)) return false;
    if (set) length = snprintf(buffer, cap, "%s", set);
    else if (!device->limits.software && home) length = snprintf(buffer, cap, "%s/Library/Caches/mica", home);
    return length > 0 && (size_t)length < cap;
}

/* What of the machine decides whether code made here runs there. */
static uint64_t archive_machine(const mica__metal_device *device)
{
    struct utsname system;
    uint64_t hash = mica__hash(device->limits.name, strlen(device->limits.name), 0);
    if (uname(&system) == 0) { /* macOS: version has the build of the kernel */
        hash = mica__hash(system.release, strlen(system.release), hash);
        hash = mica__hash(system.version, strlen(system.version), hash);
    }
    return mica__hash(MICA_VERSION_STRING, strlen(MICA_VERSION_STRING), hash);
}

static bool archive_path(const mica__metal_device *device, uint64_t hash, char path[ARCHIVE_PATH])
{
    char folder[ARCHIVE_PATH - 64];
    if (!mica__archive_folder(device, folder, sizeof folder)) return false;
    const uint64_t name = hash ^ mica__hash_u64(archive_machine(device));
    snprintf(path, ARCHIVE_PATH, "%s/%016" PRIx64 ".metalarchive", folder, name);
    return true;
}

static mica__id new_object(const char *name)
{
    mica__id class = mica__objc.get_class(name), object = class ? MICA__SEND0(mica__id, class, alloc) : NULL;
    return object ? MICA__SEND0(mica__id, object, init) : NULL;
}

/* Autoreleased; NULL without memory. */
static mica__id file_url(const char *path)
{
    mica__id text = mica__objc_string(path);
    mica__id url = text ? MICA__SEND1(mica__id, mica__objc.get_class("NSURL"), fileURLWithPath, mica__id, text) : NULL;
    mica__objc.release(text);
    return url;
}

/* An archive from a file, or an empty one. */
static mica__id open_archive(const mica__metal_device *device, const char *path)
{
    mica__id error = NULL, archive = NULL, url = path ? file_url(path) : NULL;
    mica__id descriptor = new_object("MTLBinaryArchiveDescriptor");
    if (descriptor && (url || !path)) {
        if (url) MICA__SEND1(void, descriptor, setUrl, mica__id, url);
        archive = MICA__SEND2(mica__id, device->device, newBinaryArchive, mica__id, descriptor, mica__id *, &error);
    }
    mica__objc.release(descriptor);
    return archive;
}

static mica__id pipeline_descriptor(mica__id function, mica__id archive)
{
    mica__id descriptor = new_object("MTLComputePipelineDescriptor");
    if (!descriptor) return NULL;
    MICA__SEND1(void, descriptor, setComputeFunction, mica__id, function);
    if (archive)
        MICA__SEND1(void, descriptor, setBinaryArchives, mica__id,
                    MICA__SEND1(mica__id, mica__objc.get_class("NSArray"), arrayWithObject, mica__id, archive));
    return descriptor;
}

mica__id mica__archive_load(const mica__metal_device *device, uint64_t hash, mica__id function)
{
    char path[ARCHIVE_PATH];
    mica__id error = NULL, state = NULL;
    if (!archive_path(device, hash, path) || access(path, R_OK) != 0) return NULL;
    mica__id archive = open_archive(device, path), descriptor = archive ? pipeline_descriptor(function, archive) : NULL;
    if (descriptor)
        state = MICA__SEND4(mica__id, device->device, newPipelineWithDescriptor, mica__id, descriptor, unsigned long,
                            FAIL_ON_MISS, mica__id *, NULL, mica__id *, &error);
    mica__objc.release(descriptor);
    mica__objc.release(archive);
    if (!state) (void)unlink(path); /* of no use: the next store writes it anew */
    return state;
}

/* The folder, and the one it is in. */
static void make_folders(const char *path)
{
    char folder[ARCHIVE_PATH];
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

void mica__archive_store(const mica__metal_device *device, uint64_t hash, mica__id function)
{
    char path[ARCHIVE_PATH], temporary[ARCHIVE_PATH + 32];
    mica__id error = NULL;
    if (!archive_path(device, hash, path)) return;
    make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    mica__id archive = open_archive(device, NULL), descriptor = archive ? pipeline_descriptor(function, NULL) : NULL;
    mica__id url = descriptor ? file_url(temporary) : NULL;
    if (url && MICA__SEND2(bool, archive, addComputePipeline, mica__id, descriptor, mica__id *, &error) &&
        MICA__SEND2(bool, archive, serializeToURL, mica__id, url, mica__id *, &error) && rename(temporary, path) != 0)
        (void)unlink(temporary);
    mica__objc.release(descriptor);
    mica__objc.release(archive);
}
