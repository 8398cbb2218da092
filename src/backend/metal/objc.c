/* See objc.h. */
#include "backend/metal/objc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"

mica__objc_table mica__objc;

static pthread_once_t objc_once = PTHREAD_ONCE_INIT;
static char objc_why[512]; /* why it cannot be loaded; empty: no failure */

/* ------------------------------------------------------------ libraries --- */

enum { OBJC_MAX_LIBRARIES = 4, OBJC_PATH = 1024 };

typedef struct objc_libraries {
    void *handle[OBJC_MAX_LIBRARIES];
    int n;
} objc_libraries;

static bool objc_open(objc_libraries *l, const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        const char *why = dlerror();
        snprintf(objc_why, sizeof objc_why, "%s", why ? why : path);
        return false;
    }
    l->handle[l->n++] = handle;
    return true;
}

#if defined(__APPLE__)
static bool objc_open_all(objc_libraries *l)
{
    /* Without CoreGraphics there is no default device. */
    return objc_open(l, "/usr/lib/libobjc.A.dylib") &&
           objc_open(l, "/System/Library/Frameworks/Metal.framework/Metal") &&
           objc_open(l, "/System/Library/Frameworks/Foundation.framework/Foundation") &&
           objc_open(l, "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics");
}
#else
static bool objc_open_beside(objc_libraries *l, const char *file, int parents)
{
    char path[OBJC_PATH];
    if (snprintf(path, sizeof path, "%s", file) >= (int)sizeof path) return false;
    for (int i = 0; i <= parents; i++) {
        char *slash = strrchr(path, '/');
        static const char name[] = "/libsoftmetal.so";
        if (!slash || (size_t)(slash - path) + sizeof name > sizeof path) return false;
        memcpy(slash, name, sizeof name);
        if (access(path, R_OK) == 0) return objc_open(l, path);
        *slash = 0;
    }
    return false;
}

/* Looks for libsoftmetal.so beside the library that contains mica, then beside the program and in
 * its parent folders (for tests). */
static bool objc_open_all(objc_libraries *l)
{
    Dl_info info;
    char path[OBJC_PATH];
    if (dladdr(&mica__objc, &info) && info.dli_fname && objc_open_beside(l, info.dli_fname, 0)) return true;
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        if (objc_open_beside(l, path, 3)) return true;
    }
    if (!objc_why[0]) snprintf(objc_why, sizeof objc_why, "this is not macOS, and there is no libsoftmetal.so");
    return false;
}
#endif

/* dlsym as a function pointer: ISO C has no cast from void * to one. */
static void (*objc_symbol(const objc_libraries *l, const char *name))(void)
{
    void (*function)(void) = NULL;
    for (int i = 0; i < l->n && !function; i++) {
        void *address = dlsym(l->handle[i], name);
        memcpy(&function, &address, sizeof function);
    }
    return function;
}

/* -------------------------------------------------------------- symbols --- */

static bool objc_need(const objc_libraries *l, const char *name, void (**out)(void))
{
    *out = objc_symbol(l, name);
    if (!*out) snprintf(objc_why, sizeof objc_why, "the Objective-C runtime or Metal lacks %s", name);
    return *out != NULL;
}

static bool objc_fill(const objc_libraries *l)
{
    mica__objc_table *t = &mica__objc;
    void (*f[7])(void);
    if (!objc_need(l, "objc_msgSend", &f[0]) || !objc_need(l, "objc_getClass", &f[1]) ||
        !objc_need(l, "sel_registerName", &f[2]) || !objc_need(l, "objc_autoreleasePoolPush", &f[3]) ||
        !objc_need(l, "objc_autoreleasePoolPop", &f[4]) || !objc_need(l, "objc_retain", &f[5]) ||
        !objc_need(l, "objc_release", &f[6]))
        return false;
    t->send = f[0];
    t->get_class = (mica__id(*)(const char *))f[1];
    mica__sel (*const selector)(const char *) = (mica__sel(*)(const char *))f[2];
    t->pool_push = (void *(*)(void))f[3];
    t->pool_pop = (void (*)(void *))f[4];
    t->retain = (mica__id(*)(mica__id))f[5];
    t->release = (void (*)(mica__id))f[6];
    void (*stret)(void) = objc_symbol(l, "objc_msgSend_stret");
    t->send_stret = stret ? stret : t->send;
    void (*device)(void);
    if (!objc_need(l, "MTLCreateSystemDefaultDevice", &device)) return false;
    t->default_device = (mica__id(*)(void))device;
    t->all_devices = (mica__id(*)(void))objc_symbol(l, "MTLCopyAllDevices");
#define X(field, text) t->sel.field = selector(text);
    MICA__SELECTORS(X)
#undef X
    return true;
}

static void objc_load_now(void)
{
    objc_libraries l = {.n = 0};
    const char *path = mica__env(MICA__ENV_METAL_LIB);
    if (!(path ? objc_open(&l, path) : objc_open_all(&l))) return;
    if (!objc_fill(&l)) return;
#if defined(__APPLE__)
    mica__objc.software = path != NULL;
#else
    mica__objc.software = true;
#endif
    objc_why[0] = 0;
}

const char *mica__objc_load(void)
{
    pthread_once(&objc_once, objc_load_now);
    return objc_why[0] ? objc_why : mica__objc.send ? NULL : "Metal was not loaded";
}

/* --------------------------------------------------------------- helpers --- */

mica__id mica__objc_string(const char *text)
{
    mica__id string = MICA__SEND0(mica__id, mica__objc.get_class("NSString"), alloc);
    return string ? MICA__SEND1(mica__id, string, initWithUTF8String, const char *, text) : NULL;
}

const char *mica__objc_error_text(mica__id error, char *buffer, size_t cap)
{
    mica__id text = error ? MICA__SEND0(mica__id, error, localizedDescription) : NULL;
    const char *utf8 = text ? MICA__SEND0(const char *, text, UTF8String) : NULL;
    snprintf(buffer, cap, "%s", utf8 ? utf8 : "unknown error");
    return buffer;
}
