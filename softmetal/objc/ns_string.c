/* NSString and NSError. A string is stored as UTF-8. Its length in UTF-16 units is computed on each call. */
#include "objc/objc_runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- NSString -------------------------------------------------------------------- */

enum { ENCODING_ASCII = 1, ENCODING_UTF8 = 4 };

static bool string_fill(sm_string *string, const char *bytes, size_t length)
{
    string->owned = malloc(length + 1);
    if (string->owned == NULL) return false;
    memcpy(string->owned, bytes, length);
    string->owned[length] = 0;
    string->bytes = string->owned;
    return true;
}

sm_string *sm_string_new(const char *bytes, size_t length)
{
    sm_string *string = sm_new(&sm_ns_string);
    if (string == NULL || string_fill(string, bytes, length)) return string;
    objc_release(string);
    return NULL;
}

sm_string *sm_string_format(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = NULL;
    const int length = vasprintf(&text, format, list);
    va_end(list);
    if (length < 0) return NULL;
    sm_string *string = sm_string_new(text, (size_t)length);
    free(text);
    return string;
}

const char *sm_string_bytes(id string) { return sm_is_a(string, &sm_ns_string) ? ((sm_string *)string)->bytes : NULL; }

static void string_destroy(id self) { free(((sm_string *)self)->owned); }

static id string_or_nil(sm_string *self, const char *bytes, size_t length)
{
    if (bytes != NULL && string_fill(self, bytes, length)) return self;
    objc_release(self);
    return NULL;
}

static id string_init(sm_string *self, SEL s) { return string_or_nil(self, "", 0); }

static id string_init_utf8(sm_string *self, SEL s, const char *bytes)
{
    if (bytes == NULL) sm_failed("-[NSString initWithUTF8String:]: the text is NULL");
    return string_or_nil(self, bytes, bytes == NULL ? 0 : strlen(bytes));
}

static id string_init_bytes(sm_string *self, SEL s, const char *bytes, unsigned long length, unsigned long encoding)
{
    if (encoding == ENCODING_ASCII || encoding == ENCODING_UTF8) return string_or_nil(self, bytes, length);
    sm_failed("-[NSString %s]: encoding %lu; only ASCII (1) and UTF-8 (4) are supported", sel_getName(s), encoding);
    objc_release(self);
    return NULL;
}

static id string_init_no_copy(sm_string *self, SEL s, char *bytes, unsigned long length, unsigned long encoding,
                              BOOL take)
{
    id string = string_init_bytes(self, s, bytes, length, encoding);
    if (take && string != NULL) free(bytes);
    return string;
}

static id string_with_utf8(id class, SEL s, const char *bytes)
{
    if (bytes == NULL) sm_failed("+[NSString stringWithUTF8String:]: the text is NULL");
    return bytes == NULL ? NULL : objc_autorelease(sm_string_new(bytes, strlen(bytes)));
}

static id string_with_c_string(id class, SEL s, const char *bytes, unsigned long encoding)
{
    return string_with_utf8(class, s, bytes);
}

static id string_empty(id class, SEL s) { return string_with_utf8(class, s, ""); }
static const char *string_utf8(sm_string *self, SEL s) { return self->bytes; }
static const char *string_c(sm_string *self, SEL s, unsigned long encoding) { return self->bytes; }
static unsigned long string_bytes_in(sm_string *self, SEL s, unsigned long encoding) { return strlen(self->bytes); }

/* A UTF-8 sequence of four bytes is two UTF-16 units. */
static unsigned long string_length(sm_string *self, SEL s)
{
    unsigned long units = 0;
    for (const unsigned char *c = (const unsigned char *)self->bytes; *c != 0; c++)
        units += (*c & 0xc0) == 0x80 ? 0u : *c >= 0xf0 ? 2u : 1u;
    return units;
}

static BOOL string_is_equal(sm_string *self, SEL s, id other)
{
    const char *bytes = sm_string_bytes(other);
    return bytes != NULL && strcmp(self->bytes, bytes) == 0;
}

static unsigned long string_hash(sm_string *self, SEL s)
{
    unsigned long hash = 5381;
    for (const char *c = self->bytes; *c != 0; c++) hash = hash * 33 + (unsigned char)*c;
    return hash;
}

static BOOL string_has_prefix(sm_string *self, SEL s, id other)
{
    const char *bytes = sm_string_bytes(other);
    return bytes != NULL && strncmp(self->bytes, bytes, strlen(bytes)) == 0;
}

static BOOL string_contains(sm_string *self, SEL s, id other)
{
    const char *bytes = sm_string_bytes(other);
    return bytes != NULL && strstr(self->bytes, bytes) != NULL;
}

static id string_self(id self, SEL s) { return self; }

static const sm_method string_methods[] = {
    SM_METHOD("init", string_init),
    SM_METHOD("initWithUTF8String:", string_init_utf8),
    SM_METHOD("initWithBytes:length:encoding:", string_init_bytes),
    SM_METHOD("initWithBytesNoCopy:length:encoding:freeWhenDone:", string_init_no_copy),
    SM_METHOD("UTF8String", string_utf8),
    SM_METHOD("cStringUsingEncoding:", string_c),
    SM_METHOD("length", string_length),
    SM_METHOD("lengthOfBytesUsingEncoding:", string_bytes_in),
    SM_METHOD("isEqualToString:", string_is_equal),
    SM_METHOD("isEqual:", string_is_equal),
    SM_METHOD("hash", string_hash),
    SM_METHOD("hasPrefix:", string_has_prefix),
    SM_METHOD("containsString:", string_contains),
    SM_COPY_METHODS(sm_copy_self),
    SM_METHOD("description", string_self),
    SM_METHODS_END,
};
static const sm_method string_class_methods[] = {
    SM_METHOD("string", string_empty),
    SM_METHOD("stringWithUTF8String:", string_with_utf8),
    SM_METHOD("stringWithCString:encoding:", string_with_c_string),
    SM_METHODS_END,
};

SM_CLASS(sm_ns_string, "NSString", &sm_ns_object, sm_string, string_destroy, string_methods, string_class_methods,
         "NSCopying", true);

/* ---- NSError --------------------------------------------------------------------- */

static sm_string description_key = SM_STRING("NSLocalizedDescription");
SM_API sm_string *const NSLocalizedDescriptionKey = &description_key;
sm_string sm_posix_domain = SM_STRING("NSPOSIXErrorDomain");
SM_API sm_string *const NSPOSIXErrorDomain = &sm_posix_domain;

sm_error *sm_error_new(sm_string *domain, long code, const char *text)
{
    sm_error *error = sm_new(&sm_ns_error);
    if (error == NULL) return NULL;
    error->domain = objc_retain(domain);
    error->code = code;
    error->text = sm_string_new(text, strlen(text));
    return error;
}

void sm_set_error(id *error, sm_string *domain, long code, const char *text)
{
    if (error != NULL) *error = objc_autorelease(sm_error_new(domain, code, text));
}

static void error_destroy(id object)
{
    sm_error *self = object;
    objc_release(self->domain);
    objc_release(self->text);
}

static id error_domain(sm_error *self, SEL s) { return self->domain; }
static long error_code(sm_error *self, SEL s) { return self->code; }
static id error_text(sm_error *self, SEL s) { return self->text; }
static id error_reason(sm_error *self, SEL s) { return NULL; }
static id error_info(sm_error *self, SEL s)
{
    sm_dictionary *info = sm_dictionary_new(&sm_ns_dictionary);
    if (info != NULL && self->text != NULL) sm_dictionary_set(info, &description_key, self->text);
    return objc_autorelease(info);
}
static id error_description(sm_error *self, SEL s)
{
    return objc_autorelease(sm_string_format("Error Domain=%s Code=%ld \"%s\"", sm_string_bytes(self->domain),
                                             self->code, sm_string_bytes(self->text)));
}

static id error_with(id class, SEL s, id domain, long code, sm_dictionary *info)
{
    const char *text = info == NULL ? NULL : sm_string_bytes(sm_dictionary_get(info, &description_key));
    return objc_autorelease(sm_error_new(domain, code, text == NULL ? "" : text));
}

static const sm_method error_methods[] = {
    SM_METHOD("domain", error_domain),
    SM_METHOD("code", error_code),
    SM_METHOD("localizedDescription", error_text),
    SM_METHOD("localizedFailureReason", error_reason),
    SM_METHOD("localizedRecoverySuggestion", error_reason),
    SM_METHOD("userInfo", error_info),
    SM_METHOD("description", error_description),
    SM_COPY_METHODS(sm_copy_self),
    SM_METHODS_END,
};
static const sm_method error_class_methods[] = {SM_METHOD("errorWithDomain:code:userInfo:", error_with),
                                                SM_METHODS_END};

SM_CLASS(sm_ns_error, "NSError", &sm_ns_object, sm_error, error_destroy, error_methods, error_class_methods,
         "NSCopying", true);
