/* Calls Metal as a C program does: loads libsoftmetal and casts objc_msgSend to the type
 * of each call. Only host_open is specific to softmetal. */
#ifndef SOFTMETAL_TEST_HOST_H
#define SOFTMETAL_TEST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *id;
typedef const void *SEL;
typedef signed char BOOL;
typedef struct mtl_size {
    unsigned long width, height, depth;
} mtl_size;
typedef struct ns_range {
    unsigned long location, length;
} ns_range;

typedef struct host_block {
    void *isa;
    int32_t flags, reserved;
    void (*invoke)(void);
    const void *descriptor;
    void *context[4];
} host_block;

extern struct host {
    void (*send)(void), (*send_stret)(void); /* send_stret: x86-64 only */
    SEL (*selector)(const char *);
    id (*class)(const char *);
    void *(*push)(void);
    void (*pop)(void *);
    id (*default_device)(void);
    id (*all_devices)(void);
    long (*failures)(char *, size_t);
    int (*alive)(const char *);
    int (*inject)(const char *);
    char *(*lint)(const char *, size_t, const char *);
    void *stack_block, *global_block;
} host;

/* Loads the library of this build, once; false: it does not exist. */
bool host_open(void);
/* A symbol of the library. */
void *host_symbol(const char *name);

#define HOST_TYPES(...) , __VA_ARGS__
/* SEND(id, device, "newBufferWithLength:options:", (unsigned long, unsigned long), 64ul, 0ul) */
#define SEND(result, object, name, types, ...) \
    (((result(*)(id, SEL HOST_TYPES types))host.send)((object), host.selector(name), __VA_ARGS__))
#define ASK(result, object, name) (((result(*)(id, SEL))host.send)((object), host.selector(name)))
#if defined(__x86_64__)
#define ASK_STRUCT(result, object, name) (((result(*)(id, SEL))host.send_stret)((object), host.selector(name)))
#else
#define ASK_STRUCT ASK
#endif

id host_string(const char *text);            /* autoreleased */
const char *host_text(id string);            /* "" for nil */
const char *host_error_text(id error);       /* its localizedDescription */
id host_library(id device, const char *source, id *error);
id host_pipeline(id device, id library, const char *name, id *error);
id host_buffer(id device, size_t bytes);     /* shared storage */
void *host_contents(id buffer);
void host_release(id object);
/* A block on the caller's stack: invoke(block, argument[, value]). */
host_block host_make_block(void (*invoke)(void), void *context);

#endif
