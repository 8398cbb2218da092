/* See metal_archive.h. */
#include "backend/metal/metal_archive.h"

#include <stdio.h>
#include <unistd.h>

#include "backend/metal/metal_cache.h"

enum { FAIL_ON_MISS = 4 /* MTLPipelineOptionFailOnBinaryArchiveMiss */ };

static bool archive_path(const mica__metal_device *device, uint64_t hash, char path[MICA__CACHE_PATH])
{
    return device->archives && mica__cache_path(device, hash, ".metalarchive", path);
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
    char path[MICA__CACHE_PATH];
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

void mica__archive_store(const mica__metal_device *device, uint64_t hash, mica__id function)
{
    char path[MICA__CACHE_PATH], temporary[MICA__CACHE_PATH + 32];
    mica__id error = NULL;
    if (!archive_path(device, hash, path)) return;
    mica__cache_make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    mica__id archive = open_archive(device, NULL), descriptor = archive ? pipeline_descriptor(function, NULL) : NULL;
    mica__id url = descriptor ? file_url(temporary) : NULL;
    if (url && MICA__SEND2(bool, archive, addComputePipeline, mica__id, descriptor, mica__id *, &error) &&
        MICA__SEND2(bool, archive, serializeToURL, mica__id, url, mica__id *, &error) && rename(temporary, path) != 0)
        (void)unlink(temporary);
    mica__objc.release(descriptor);
    mica__objc.release(archive);
}
