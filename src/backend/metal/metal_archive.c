/* See metal_archive.h. */
#include "backend/metal/metal_archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

mica__id mica__pipeline_descriptor(mica__id function, const char *label, mica__id archive)
{
    mica__id descriptor = new_object("MTLComputePipelineDescriptor"), text = label ? mica__objc_string(label) : NULL;
    if (descriptor && text) MICA__SEND1(void, descriptor, setLabel, mica__id, text);
    mica__objc.release(text);
    if (!descriptor) return NULL;
    MICA__SEND1(void, descriptor, setComputeFunction, mica__id, function);
    if (archive)
        MICA__SEND1(void, descriptor, setBinaryArchives, mica__id,
                    MICA__SEND1(mica__id, mica__objc.get_class("NSArray"), arrayWithObject, mica__id, archive));
    return descriptor;
}

/* The compile time is stored as text in a file beside the archive. It is used for statistics
 * only and may be missing. */
static void time_path(const char path[MICA__CACHE_PATH], char beside[MICA__CACHE_PATH + 8])
{
    snprintf(beside, MICA__CACHE_PATH + 8, "%s.ns", path);
}

static uint64_t time_read(const char path[MICA__CACHE_PATH])
{
    char beside[MICA__CACHE_PATH + 8], text[32] = "";
    time_path(path, beside);
    FILE *file = fopen(beside, "r");
    if (!file) return 0;
    const bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return read ? strtoull(text, NULL, 10) : 0;
}

static void time_write(const char path[MICA__CACHE_PATH], uint64_t compile_ns)
{
    char beside[MICA__CACHE_PATH + 8];
    time_path(path, beside);
    FILE *file = fopen(beside, "w");
    if (!file) return;
    fprintf(file, "%" PRIu64 "\n", compile_ns);
    fclose(file);
}

mica__id mica__archive_load(const mica__metal_device *device, uint64_t hash, mica__id function, const char *label,
                            uint64_t *compile_ns)
{
    char path[MICA__CACHE_PATH];
    mica__id error = NULL, state = NULL;
    if (!archive_path(device, hash, path) || access(path, R_OK) != 0) return NULL;
    mica__id archive = open_archive(device, path);
    mica__id descriptor = archive ? mica__pipeline_descriptor(function, label, archive) : NULL;
    if (descriptor)
        state = MICA__SEND4(mica__id, device->device, newPipelineWithDescriptor, mica__id, descriptor, unsigned long,
                            FAIL_ON_MISS, mica__id *, NULL, mica__id *, &error);
    mica__objc.release(descriptor);
    mica__objc.release(archive);
    if (!state) (void)unlink(path); /* not usable: the next store replaces it */
    else *compile_ns = time_read(path);
    return state;
}

void mica__archive_store(const mica__metal_device *device, uint64_t hash, mica__id function, uint64_t compile_ns)
{
    char path[MICA__CACHE_PATH], temporary[MICA__CACHE_PATH + 32];
    mica__id error = NULL;
    if (!archive_path(device, hash, path)) return;
    mica__cache_make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    mica__id archive = open_archive(device, NULL);
    mica__id descriptor = archive ? mica__pipeline_descriptor(function, NULL, NULL) : NULL;
    mica__id url = descriptor ? file_url(temporary) : NULL;
    if (url && MICA__SEND2(bool, archive, addComputePipeline, mica__id, descriptor, mica__id *, &error) &&
        MICA__SEND2(bool, archive, serializeToURL, mica__id, url, mica__id *, &error)) {
        if (rename(temporary, path) == 0) time_write(path, compile_ns);
        else (void)unlink(temporary);
    }
    mica__objc.release(descriptor);
    mica__objc.release(archive);
}
