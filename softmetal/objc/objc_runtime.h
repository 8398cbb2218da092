/* A small Objective-C runtime for programs that drive Metal from C: typed calls of
 * objc_msgSend with selectors from sel_registerName, classes from objc_getClass.
 *
 * Classes are static data: a name, the superclass, a table of methods. No class is
 * added at run time. An object is a C struct that begins with sm_object; a method
 * is a C function (self, selector, arguments...). A class is an object too; its
 * class (the metaclass) holds the class methods.
 *
 * An error never aborts: sm_failed writes one line on stderr, counts it and keeps its
 * text (softmetal.h), and the call returns nil or zero. */
#ifndef SOFTMETAL_OBJC_RUNTIME_H
#define SOFTMETAL_OBJC_RUNTIME_H

/* Every method gets self and its selector, and few need both. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef SM_API
#define SM_API __attribute__((visibility("default")))
#endif
#define SM_PRINTF(at) __attribute__((format(printf, at, (at) + 1)))

typedef void *id;
typedef struct sm_selector sm_selector;
typedef const sm_selector *SEL;
typedef signed char BOOL; /* as Apple's on x86-64; arm64 passes its bool the same way */
typedef void (*sm_imp)(void);

struct sm_selector {
    const char *name;
    unsigned index; /* in the order of registration */
    SEL next;       /* next selector with the same hash */
};

enum { SM_CACHED_SELECTORS = 1024 };

typedef struct sm_method {
    const char *selector;
    sm_imp function;
} sm_method;

typedef struct sm_class sm_class;

typedef struct sm_object {
    const sm_class *isa;
    atomic_int references; /* negative: static data, never released */
} sm_object;

struct sm_class {
    sm_object object;
    const char *name;
    const sm_class *super;
    const sm_method *methods; /* the last entry has a NULL selector */
    size_t size;              /* bytes of an instance */
    void (*destroy)(id self); /* releases what an instance holds, not the instance itself */
    const char *protocols;    /* names of the implemented protocols, separated by spaces, or NULL */
    bool public;              /* objc_getClass finds it, and alloc may be sent to it */
    _Atomic(sm_imp) *cache;   /* indexed by selector */
    atomic_int *alive;        /* number of live instances; NULL for a metaclass */
};

#define SM_METHOD(selector, function) {selector, (sm_imp)(void (*)(void))(function)}
#define SM_METHODS_END {NULL, NULL}

/* Defines VARIABLE, the class, and its metaclass. */
#define SM_CLASS(variable, class_name, above, type, destroy_function, instance_methods, class_methods, protocol_names, \
                 is_public)                                                                                            \
    static _Atomic(sm_imp) variable##_cache[SM_CACHED_SELECTORS], variable##_meta_cache[SM_CACHED_SELECTORS];          \
    static atomic_int variable##_alive;                                                                                \
    static const sm_class variable##_meta = {                                                                          \
        {&sm_metaclass, -1},   class_name, &sm_root_metaclass, class_methods, sizeof(sm_class), NULL, NULL, false,     \
        variable##_meta_cache, NULL};                                                                                  \
    const sm_class variable = {{&variable##_meta, -1}, class_name,     above,     instance_methods, sizeof(type),      \
                               destroy_function,       protocol_names, is_public, variable##_cache, &variable##_alive}

extern const sm_class sm_metaclass;      /* the class of every metaclass */
extern const sm_class sm_root_metaclass; /* class methods every class has */
extern const sm_class sm_ns_object;

#define SM_CLASS_LIST(variable) extern const sm_class variable;
#include "objc/classes.def"
#undef SM_CLASS_LIST

/* ---- objc_runtime.c ---------------------------------------------------------------- */

SM_API SEL sel_registerName(const char *name);
SM_API const char *sel_getName(SEL selector);
SM_API id objc_getClass(const char *name);
SM_API const char *class_getName(const sm_class *class);
SM_API const sm_class *object_getClass(id object);
SM_API const char *object_getClassName(id object);
/* objc_trampoline.c. It has no callable prototype: take its address and cast it. */
SM_API void objc_msgSend(void);

/* NULL: the class does not implement the selector. */
sm_imp sm_find_method(const sm_class *class, SEL selector);
/* Returns the method that objc_msgSend jumps to; never NULL. */
sm_imp sm_objc_lookup(id receiver, SEL selector);
/* The same for struct results, where the ABI needs a separate objc_msgSend (x86-64). */
sm_imp sm_objc_lookup_struct(id receiver, SEL selector);
/* The same for results of type long double (x86-64). */
sm_imp sm_objc_lookup_real(id receiver, SEL selector);
bool sm_is_class(id object);
/* Returns whether instances of the class implement the protocol. */
bool sm_class_conforms(const sm_class *class, const char *protocol);
bool sm_is_protocol(const char *name);
/* Returns whether the object is an instance of the class or of a subclass; false for nil. */
bool sm_is_a(id object, const sm_class *class);

/* ---- objc_object.c ------------------------------------------------------------------ */

/* A zeroed instance with one reference, or NULL (out of memory). */
id sm_new(const sm_class *class);
SM_API id objc_retain(id object);
SM_API void objc_release(id object);
SM_API id objc_autorelease(id object);
SM_API void *objc_autoreleasePoolPush(void);
SM_API void objc_autoreleasePoolPop(void *pool);
/* Stores the object in *slot, retained, and releases the previous object. */
void sm_set(id *slot, id object);
/* The same with a copy of the object, for classes that can be copied. */
void sm_set_copy(id *slot, id object);
/* A new object of the class with the same fields, or NULL. The caller retains the objects in them. */
id sm_copy(const void *object);
/* The copy method of immutable objects: returns self. */
id sm_copy_self(id self, SEL selector);
#define SM_COPY_METHODS(function) SM_METHOD("copy", function), SM_METHOD("copyWithZone:", function)
extern const sm_method sm_object_methods[];

/* ---- objc_block.c ------------------------------------------------------------------- */

typedef struct sm_block {
    void *isa;
    int32_t flags;
    int32_t reserved;
    void (*invoke)(void); /* to be cast; the first argument is the block */
    const struct sm_block_descriptor {
        unsigned long reserved, size;
        void (*copy)(void *to, const void *from); /* these two exist only if their flag is set */
        void (*dispose)(const void *block);
    } *descriptor;
} sm_block;

SM_API void *_Block_copy(const void *block);
SM_API void _Block_release(const void *block);
SM_API void _Block_object_assign(void *field, const void *value, int what);
SM_API void _Block_object_dispose(const void *value, int what);

/* ---- objc_failures.c ---------------------------------------------------------------- */

void sm_failed(const char *format, ...) SM_PRINTF(1);

/* ---- foundation ---------------------------------------------------------------- */

typedef struct sm_string {
    sm_object object;
    const char *bytes; /* UTF-8, NUL-terminated */
    char *owned;       /* equals bytes if they must be freed, else NULL */
} sm_string;

/* A string that is never released. */
#define SM_STRING(text) {{&sm_ns_string, -1}, text, NULL}

/* +1; NULL when out of memory. */
sm_string *sm_string_new(const char *bytes, size_t length);
sm_string *sm_string_format(const char *format, ...) SM_PRINTF(1);
/* NULL for nil and for an object that is not a string. */
const char *sm_string_bytes(id string);

typedef struct sm_error {
    sm_object object;
    sm_string *domain;
    long code;
    sm_string *text;
} sm_error;

/* Returns +1. */
sm_error *sm_error_new(sm_string *domain, long code, const char *text);
/* Stores an autoreleased error in *error if error is not NULL. */
void sm_set_error(id *error, sm_string *domain, long code, const char *text);

typedef struct sm_array {
    sm_object object;
    id *items;
    unsigned long count, capacity;
} sm_array;

sm_array *sm_array_new(const sm_class *class, const id *items, unsigned long count); /* +1 */
bool sm_array_add(sm_array *array, id item);
void sm_array_remove(sm_array *array, unsigned long index);

/* Keys are compared with isEqual: if they are NSString, else by address. */
typedef struct sm_dictionary {
    sm_object object;
    sm_array *keys, *values;
} sm_dictionary;

sm_dictionary *sm_dictionary_new(const sm_class *class); /* +1 */
bool sm_dictionary_set(sm_dictionary *dictionary, id key, id value);
id sm_dictionary_get(const sm_dictionary *dictionary, id key);

typedef struct sm_number {
    sm_object object;
    bool is_real;
    long long integer;
    double real;
} sm_number;

typedef struct sm_data {
    sm_object object;
    void *bytes;
    unsigned long length;
} sm_data;

typedef struct sm_url {
    sm_object object;
    sm_string *path;
} sm_url;

/* The path of a file URL, or NULL. */
const char *sm_url_path(id url);

extern sm_string sm_posix_domain;

#endif
