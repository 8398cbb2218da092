/* Binary archives, and the capture descriptor.
 *
 * An archive is the list of the pipelines that were added, by hash of text, name and
 * constants; the code itself is in the core's disk cache. So a program's handling of
 * archives can be tested: hit, miss, a broken file, a file of another version. */
#include "metal/metal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sm_string sm_archive_domain = SM_STRING("MTLBinaryArchiveDomain");
SM_API sm_string *const MTLBinaryArchiveDomain = &sm_archive_domain;

enum { ARCHIVE_INVALID_FILE = 1, ARCHIVE_UNEXPECTED = 2, ARCHIVE_COMPILE = 3 };
static const char archive_head[] = "softmetal archive 1\n";
static const sm_method archive_no_methods[] = {SM_METHODS_END};

typedef struct mtl_archive_descriptor {
    sm_object object;
    id url;
} mtl_archive_descriptor;

typedef struct mtl_archive {
    mtl_labelled base;
    uint64_t *hashes;
    size_t count, capacity;
} mtl_archive;

static void archive_descriptor_destroy(id object) { objc_release(((mtl_archive_descriptor *)object)->url); }
static id archive_descriptor_url(mtl_archive_descriptor *self, SEL s) { return self->url; }
static void archive_descriptor_set_url(mtl_archive_descriptor *self, SEL s, id url) { sm_set(&self->url, url); }
static id archive_descriptor_copy(const mtl_archive_descriptor *self, SEL s)
{
    mtl_archive_descriptor *copy = sm_copy(self);
    if (copy != NULL) objc_retain(copy->url);
    return copy;
}
static const sm_method archive_descriptor_methods[] = {
    SM_METHOD("url", archive_descriptor_url),
    SM_METHOD("setUrl:", archive_descriptor_set_url),
    SM_COPY_METHODS(archive_descriptor_copy),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_archive_descriptor, "MTLBinaryArchiveDescriptor", &sm_ns_object, mtl_archive_descriptor,
         archive_descriptor_destroy, archive_descriptor_methods, archive_no_methods, "NSCopying", true);

static bool archive_add(mtl_archive *self, uint64_t hash)
{
    for (size_t i = 0; i < self->count; i++)
        if (self->hashes[i] == hash) return true;
    if (self->count == self->capacity) {
        const size_t capacity = self->capacity == 0 ? 16 : self->capacity * 2;
        uint64_t *hashes = realloc(self->hashes, capacity * sizeof *hashes);
        if (hashes == NULL) return false;
        self->hashes = hashes;
        self->capacity = capacity;
    }
    self->hashes[self->count++] = hash;
    return true;
}

static bool archive_read(mtl_archive *self, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    char head[sizeof archive_head] = "";
    bool ok = fgets(head, sizeof head, file) != NULL && strcmp(head, archive_head) == 0;
    unsigned long long hash;
    int got = 0;
    while (ok && (got = fscanf(file, "%16llx\n", &hash)) == 1) ok = archive_add(self, hash);
    ok = ok && got == EOF && ferror(file) == 0;
    fclose(file);
    return ok;
}

id sm_device_archive(id self, SEL s, id descriptor, id *error)
{
    if (error != NULL) *error = NULL;
    if (!sm_is_a(descriptor, &sm_mtl_archive_descriptor)) {
        sm_failed("%s: the descriptor is nil or not an MTLBinaryArchiveDescriptor", sel_getName(s));
        return NULL;
    }
    mtl_archive *archive = sm_new(&sm_mtl_archive);
    const char *path = sm_url_path(((mtl_archive_descriptor *)descriptor)->url);
    if (archive == NULL || path == NULL || archive_read(archive, path)) return archive;
    objc_release(archive);
    sm_set_error(error, &sm_archive_domain, ARCHIVE_INVALID_FILE, "the file does not exist or is not an archive");
    return NULL;
}

static void archive_destroy(id object)
{
    free(((mtl_archive *)object)->hashes);
    sm_labelled_destroy(object);
}

static BOOL archive_add_pipeline(mtl_archive *self, SEL s, id descriptor, id *error)
{
    if (error != NULL) *error = NULL;
    id function = sm_pipeline_descriptor_function(descriptor);
    if (!sm_is_a(function, &sm_mtl_function)) {
        sm_failed("-[MTLBinaryArchive %s]: no descriptor, or one without a function", sel_getName(s));
        sm_set_error(error, &sm_archive_domain, ARCHIVE_UNEXPECTED, "no descriptor, or one without a function");
        return 0;
    }
    id pipeline = sm_device_pipeline(&sm_the_device, s, function, error); /* also writes it to the disk cache */
    if (pipeline == NULL) return 0;
    objc_release(pipeline);
    return archive_add(self, sm_function_hash(function));
}

static BOOL archive_write(mtl_archive *self, SEL s, id url, id *error)
{
    if (error != NULL) *error = NULL;
    const char *path = sm_url_path(url);
    FILE *file = path == NULL ? NULL : fopen(path, "wb");
    bool ok = file != NULL && fputs(archive_head, file) >= 0;
    for (size_t i = 0; ok && i < self->count; i++)
        ok = fprintf(file, "%016llx\n", (unsigned long long)self->hashes[i]) > 0;
    if (file != NULL && fclose(file) != 0) ok = false;
    if (!ok)
        sm_set_error(error, &sm_archive_domain, ARCHIVE_INVALID_FILE, path == NULL ? "no file URL" : strerror(errno));
    return ok;
}

bool sm_archives_have(id archives, const mtl_function *function)
{
    if (!sm_is_a(archives, &sm_ns_array)) return false;
    const sm_array *list = archives;
    const uint64_t hash = sm_function_hash(function);
    for (unsigned long a = 0; a < list->count; a++) {
        if (!sm_is_a(list->items[a], &sm_mtl_archive)) continue;
        const mtl_archive *archive = list->items[a];
        for (size_t i = 0; i < archive->count; i++)
            if (archive->hashes[i] == hash) return true;
    }
    return false;
}

static const sm_method archive_methods[] = {
    SM_LABEL_METHODS,
    SM_METHOD("addComputePipelineFunctionsWithDescriptor:error:", archive_add_pipeline),
    SM_METHOD("serializeToURL:error:", archive_write),
    SM_METHOD("device", sm_device_of),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_archive, "MTLBinaryArchive", &sm_ns_object, mtl_archive, archive_destroy, archive_methods,
         archive_no_methods, "MTLBinaryArchive", false);

/* ---- capture -------------------------------------------------------------------------------- */

typedef struct mtl_capture_descriptor {
    sm_object object;
    id what, url;
    long destination;
} mtl_capture_descriptor;

static id capture_what(mtl_capture_descriptor *self, SEL s) { return self->what; }
static void capture_set_what(mtl_capture_descriptor *self, SEL s, id what) { sm_set(&self->what, what); }
static id capture_url(mtl_capture_descriptor *self, SEL s) { return self->url; }
static void capture_set_url(mtl_capture_descriptor *self, SEL s, id url) { sm_set(&self->url, url); }
static long capture_destination(mtl_capture_descriptor *self, SEL s) { return self->destination; }
static void capture_set_destination(mtl_capture_descriptor *self, SEL s, long v) { self->destination = v; }
static void capture_descriptor_destroy(id object)
{
    objc_release(((mtl_capture_descriptor *)object)->what);
    objc_release(((mtl_capture_descriptor *)object)->url);
}
static id capture_descriptor_copy(const mtl_capture_descriptor *self, SEL s)
{
    mtl_capture_descriptor *copy = sm_copy(self);
    if (copy == NULL) return NULL;
    objc_retain(copy->what);
    objc_retain(copy->url);
    return copy;
}
static const sm_method capture_descriptor_methods[] = {
    SM_COPY_METHODS(capture_descriptor_copy),
    SM_METHOD("captureObject", capture_what),
    SM_METHOD("setCaptureObject:", capture_set_what),
    SM_METHOD("outputURL", capture_url),
    SM_METHOD("setOutputURL:", capture_set_url),
    SM_METHOD("destination", capture_destination),
    SM_METHOD("setDestination:", capture_set_destination),
    SM_METHODS_END,
};
SM_CLASS(sm_mtl_capture_descriptor, "MTLCaptureDescriptor", &sm_ns_object, mtl_capture_descriptor,
         capture_descriptor_destroy, capture_descriptor_methods, archive_no_methods, "NSCopying", true);

bool sm_capture_asked(id given, sm_capture_request *request)
{
    const mtl_capture_descriptor *descriptor = given;
    if (!sm_is_a(given, &sm_mtl_capture_descriptor)) return false;
    *request = (sm_capture_request){descriptor->what, sm_url_path(descriptor->url), descriptor->destination};
    return true;
}
