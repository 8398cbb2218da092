#include "host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host host;
static void *library;

void *host_symbol(const char *name) { return dlsym(library, name); }

/* dlsym returns an object pointer; C has no cast from that to a function pointer. */
static void take(const char *name, void *slot)
{
    void *symbol = host_symbol(name);
    memcpy(slot, &symbol, sizeof symbol);
}

bool host_open(void)
{
    if (library != NULL) return true;
    char path[4096];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof path, "%s/libsoftmetal.so", build == NULL ? "build" : build);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return false;
    }
    take("objc_msgSend", &host.send);
    take("objc_msgSend_stret", &host.send_stret);
    take("sel_registerName", &host.selector);
    take("objc_getClass", &host.class);
    take("objc_autoreleasePoolPush", &host.push);
    take("objc_autoreleasePoolPop", &host.pop);
    take("MTLCreateSystemDefaultDevice", &host.default_device);
    take("MTLCopyAllDevices", &host.all_devices);
    take("sm_failures", &host.failures);
    take("sm_objects_alive", &host.alive);
    take("sm_inject", &host.inject);
    take("sm_lint", &host.lint);
    host.stack_block = host_symbol("_NSConcreteStackBlock");
    host.global_block = host_symbol("_NSConcreteGlobalBlock");
    return true;
}

id host_string(const char *text)
{
    return SEND(id, host.class("NSString"), "stringWithUTF8String:", (const char *), text);
}

const char *host_text(id string) { return string == NULL ? "" : ASK(const char *, string, "UTF8String"); }
const char *host_error_text(id error)
{
    return host_text(error == NULL ? NULL : ASK(id, error, "localizedDescription"));
}

id host_library(id device, const char *source, id *error)
{
    return SEND(id, device, "newLibraryWithSource:options:error:", (id, id, id *), host_string(source), NULL, error);
}

id host_pipeline(id device, id from, const char *name, id *error)
{
    id function = SEND(id, from, "newFunctionWithName:", (id), host_string(name));
    id pipeline = SEND(id, device, "newComputePipelineStateWithFunction:error:", (id, id *), function, error);
    host_release(function);
    return pipeline;
}

id host_buffer(id device, size_t bytes)
{
    return SEND(id, device, "newBufferWithLength:options:", (unsigned long, unsigned long), bytes, 0);
}

void *host_contents(id buffer) { return ASK(void *, buffer, "contents"); }
void host_release(id object) { ASK(void, object, "release"); }

host_block host_make_block(void (*invoke)(void), void *context)
{
    static const unsigned long descriptor[2] = {0, sizeof(host_block)};
    return (host_block){host.stack_block, 0, 0, invoke, descriptor, {context, NULL, NULL, NULL}};
}
