/* NSNumber, NSData (also the result of dispatch_data_create), NSURL, NSProcessInfo. */
#include "objc/objc_runtime.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- NSNumber --------------------------------------------------------------------- */

static id number_new(bool is_real, long long integer, double real)
{
    sm_number *self = sm_new(&sm_ns_number);
    if (self == NULL) return NULL;
    self->is_real = is_real;
    self->integer = integer;
    self->real = real;
    return objc_autorelease(self);
}

static id number_bool(id c, SEL s, BOOL value) { return number_new(false, value != 0, value != 0); }
static id number_int(id c, SEL s, int value) { return number_new(false, value, value); }
static id number_uint(id c, SEL s, unsigned value) { return number_new(false, value, value); }
static id number_long(id c, SEL s, long long v) { return number_new(false, v, (double)v); }
static id number_ulong(id c, SEL s, unsigned long long v) { return number_new(false, (long long)v, (double)v); }
static id number_float(id c, SEL s, float v) { return number_new(true, (long long)v, (double)v); }
static id number_double(id c, SEL s, double v) { return number_new(true, (long long)v, v); }

static BOOL number_as_bool(sm_number *n, SEL s) { return n->is_real ? n->real < 0 || n->real > 0 : n->integer != 0; }
static int number_as_int(sm_number *n, SEL s) { return (int)n->integer; }
static long long number_as_long(sm_number *n, SEL s) { return n->integer; }
static float number_as_float(sm_number *n, SEL s) { return (float)n->real; }
static double number_as_double(sm_number *n, SEL s) { return n->real; }
static id number_text(sm_number *n, SEL s)
{
    return objc_autorelease(n->is_real ? sm_string_format("%.17g", n->real) : sm_string_format("%lld", n->integer));
}

static const sm_method number_methods[] = {
    SM_COPY_METHODS(sm_copy_self),
    SM_METHOD("boolValue", number_as_bool),
    SM_METHOD("intValue", number_as_int),
    SM_METHOD("unsignedIntValue", number_as_int),
    SM_METHOD("integerValue", number_as_long),
    SM_METHOD("unsignedIntegerValue", number_as_long),
    SM_METHOD("longLongValue", number_as_long),
    SM_METHOD("unsignedLongLongValue", number_as_long),
    SM_METHOD("floatValue", number_as_float),
    SM_METHOD("doubleValue", number_as_double),
    SM_METHOD("stringValue", number_text),
    SM_METHOD("description", number_text),
    SM_METHODS_END,
};
static const sm_method number_class_methods[] = {
    SM_METHOD("numberWithBool:", number_bool),
    SM_METHOD("numberWithInt:", number_int),
    SM_METHOD("numberWithUnsignedInt:", number_uint),
    SM_METHOD("numberWithInteger:", number_long),
    SM_METHOD("numberWithLongLong:", number_long),
    SM_METHOD("numberWithUnsignedInteger:", number_ulong),
    SM_METHOD("numberWithUnsignedLongLong:", number_ulong),
    SM_METHOD("numberWithFloat:", number_float),
    SM_METHOD("numberWithDouble:", number_double),
    SM_METHODS_END,
};
SM_CLASS(sm_ns_number, "NSNumber", &sm_ns_object, sm_number, NULL, number_methods, number_class_methods, "NSCopying",
         true);

/* ---- NSData ----------------------------------------------------------------------- */

static sm_data *data_new(const void *bytes, unsigned long length)
{
    sm_data *self = sm_new(&sm_ns_data);
    if (self == NULL) return NULL;
    self->bytes = malloc(length + 1);
    self->length = length;
    if (self->bytes != NULL) {
        if (length > 0) memcpy(self->bytes, bytes, length);
        return self;
    }
    objc_release(self);
    return NULL;
}

static void data_destroy(id self) { free(((sm_data *)self)->bytes); }
static id data_with(id c, SEL s, const void *b, unsigned long n) { return objc_autorelease(data_new(b, n)); }
static const void *data_bytes(sm_data *self, SEL s) { return self->bytes; }
static unsigned long data_length(sm_data *self, SEL s) { return self->length; }

static const sm_method data_methods[] = {SM_METHOD("bytes", data_bytes), SM_METHOD("length", data_length),
                                         SM_COPY_METHODS(sm_copy_self), SM_METHODS_END};
static const sm_method data_class_methods[] = {SM_METHOD("dataWithBytes:length:", data_with), SM_METHODS_END};
SM_CLASS(sm_ns_data, "NSData", &sm_ns_object, sm_data, data_destroy, data_methods, data_class_methods, "NSCopying",
         true);

/* The destructor is a block, or a constant for "free" or "munmap". The data is copied,
 * so only a block is called, and at once. */
SM_API id dispatch_data_create(const void *bytes, size_t length, id queue, const sm_block *destructor)
{
    sm_data *data = data_new(bytes, length);
    if (destructor != NULL && destructor->invoke != NULL) ((void (*)(const sm_block *))destructor->invoke)(destructor);
    return data;
}
SM_API void dispatch_release(id object) { objc_release(object); }

/* ---- NSURL ------------------------------------------------------------------------ */

const char *sm_url_path(id url) { return sm_is_a(url, &sm_ns_url) ? sm_string_bytes(((sm_url *)url)->path) : NULL; }

static id url_with_path(id class, SEL s, id path)
{
    if (sm_string_bytes(path) == NULL) {
        sm_failed("+[NSURL %s]: the path is not a string", sel_getName(s));
        return NULL;
    }
    sm_url *self = sm_new(&sm_ns_url);
    if (self != NULL) self->path = objc_retain(path);
    return objc_autorelease(self);
}

static id url_with_string(id class, SEL s, id text)
{
    const char *bytes = sm_string_bytes(text);
    static const char scheme[] = "file://";
    if (bytes == NULL || strncmp(bytes, scheme, sizeof scheme - 1) != 0) {
        sm_failed("+[NSURL URLWithString:]: \"%s\"; only file:// is supported", bytes == NULL ? "nil" : bytes);
        return NULL;
    }
    bytes += sizeof scheme - 1;
    return url_with_path(class, s, objc_autorelease(sm_string_new(bytes, strlen(bytes))));
}

static void url_destroy(id self) { objc_release(((sm_url *)self)->path); }
static id url_path(sm_url *self, SEL s) { return self->path; }
static id url_text(sm_url *self, SEL s)
{
    return objc_autorelease(sm_string_format("file://%s", sm_string_bytes(self->path)));
}
static const char *url_file(sm_url *self, SEL s) { return sm_string_bytes(self->path); }

static const sm_method url_methods[] = {
    SM_METHOD("path", url_path),
    SM_METHOD("absoluteString", url_text),
    SM_METHOD("fileSystemRepresentation", url_file),
    SM_COPY_METHODS(sm_copy_self),
    SM_METHODS_END,
};
static const sm_method url_class_methods[] = {
    SM_METHOD("fileURLWithPath:", url_with_path),
    SM_METHOD("URLWithString:", url_with_string),
    SM_METHODS_END,
};
SM_CLASS(sm_ns_url, "NSURL", &sm_ns_object, sm_url, url_destroy, url_methods, url_class_methods, "NSCopying", true);

/* ---- NSProcessInfo ---------------------------------------------------------------- */

typedef struct os_version {
    long major, minor, patch;
} os_version;

/* This library implements the API of macOS 15. */
static const os_version version = {15, 0, 0};
static sm_string version_text = SM_STRING("Version 15.0 (softmetal)");
static sm_object process_info = {&sm_ns_process_info, -1};

static id process_shared(id c, SEL s) { return &process_info; }
static os_version process_version(id self, SEL s) { return version; }
static id process_version_text(id self, SEL s) { return &version_text; }
static BOOL process_at_least(id self, SEL s, os_version asked)
{
    if (asked.major != version.major) return asked.major < version.major;
    if (asked.minor != version.minor) return asked.minor < version.minor;
    return asked.patch <= version.patch;
}
static long process_zero(id self, SEL s) { return 0; }
static unsigned long process_cores(id self, SEL s) { return (unsigned long)sysconf(_SC_NPROCESSORS_ONLN); }
static unsigned long long process_memory(id self, SEL s)
{
    return (unsigned long long)sysconf(_SC_PHYS_PAGES) * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static const sm_method process_methods[] = {
    SM_METHOD("operatingSystemVersion", process_version),
    SM_METHOD("operatingSystemVersionString", process_version_text),
    SM_METHOD("isOperatingSystemAtLeastVersion:", process_at_least),
    SM_METHOD("thermalState", process_zero),
    SM_METHOD("isLowPowerModeEnabled", process_zero),
    SM_METHOD("processorCount", process_cores),
    SM_METHOD("activeProcessorCount", process_cores),
    SM_METHOD("physicalMemory", process_memory),
    SM_METHODS_END,
};
static const sm_method process_class_methods[] = {SM_METHOD("processInfo", process_shared), SM_METHODS_END};
SM_CLASS(sm_ns_process_info, "NSProcessInfo", &sm_ns_object, sm_object, NULL, process_methods, process_class_methods,
         NULL, true);
