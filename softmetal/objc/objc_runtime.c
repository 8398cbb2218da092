/* Selectors, classes and the search for a method. */
#include "objc/objc_runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- selectors ------------------------------------------------------------------ */

enum { BUCKETS = 512 };
static _Atomic(SEL) buckets[BUCKETS];
static unsigned selector_count;
static pthread_mutex_t selector_lock = PTHREAD_MUTEX_INITIALIZER;

static SEL selector_in(SEL first, const char *name)
{
    while (first != NULL && strcmp(first->name, name) != 0) first = first->next;
    return first;
}

/* Selectors live as long as the process and are only ever added at the head of their
 * bucket, so that readers need no lock. */
SEL sel_registerName(const char *name)
{
    if (name == NULL) return NULL;
    unsigned hash = 2166136261u;
    for (const char *c = name; *c != 0; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    _Atomic(SEL) *bucket = &buckets[hash % BUCKETS];
    SEL found = selector_in(atomic_load(bucket), name);
    if (found != NULL) return found;
    pthread_mutex_lock(&selector_lock);
    found = selector_in(atomic_load(bucket), name);
    if (found == NULL) {
        const size_t length = strlen(name) + 1;
        sm_selector *fresh = malloc(sizeof *fresh + length);
        if (fresh != NULL) {
            char *copy = (char *)(fresh + 1);
            memcpy(copy, name, length);
            *fresh = (sm_selector){copy, selector_count++, atomic_load(bucket)};
            atomic_store(bucket, fresh);
            found = fresh;
        }
    }
    pthread_mutex_unlock(&selector_lock);
    return found;
}

SM_API SEL sel_getUid(const char *name) { return sel_registerName(name); }
const char *sel_getName(SEL selector) { return selector == NULL ? "<null selector>" : selector->name; }
SM_API BOOL sel_isEqual(SEL a, SEL b) { return a == b; }

/* ---- classes -------------------------------------------------------------------- */

static const sm_class *const all_classes[] = {
    &sm_ns_object,
#define SM_CLASS_LIST(variable) &variable,
#include "objc/classes.def"
#undef SM_CLASS_LIST
};

static id class_object(const sm_class *class)
{
    union {
        const sm_class *class;
        id object;
    } as = {class};
    return as.object;
}

id objc_getClass(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof all_classes / sizeof *all_classes; i++)
        if (all_classes[i]->public && strcmp(all_classes[i]->name, name) == 0) return class_object(all_classes[i]);
    return NULL;
}

SM_API id objc_lookUpClass(const char *name) { return objc_getClass(name); }

const char *class_getName(const sm_class *class) { return class == NULL ? "nil" : class->name; }
SM_API const sm_class *class_getSuperclass(const sm_class *class) { return class == NULL ? NULL : class->super; }
SM_API BOOL class_respondsToSelector(const sm_class *class, SEL selector)
{
    return class != NULL && sm_find_method(class, selector) != NULL;
}
SM_API sm_imp class_getMethodImplementation(const sm_class *class, SEL selector)
{
    return class == NULL ? NULL : sm_find_method(class, selector);
}
const sm_class *object_getClass(id object) { return object == NULL ? NULL : ((const sm_object *)object)->isa; }
const char *object_getClassName(id object) { return class_getName(object_getClass(object)); }

bool sm_is_a(id object, const sm_class *class)
{
    const sm_class *c = object_getClass(object);
    while (c != NULL && c != class) c = c->super;
    return c != NULL;
}

SM_API int sm_objects_alive(const char *name)
{
    int alive = 0;
    for (size_t i = 0; i < sizeof all_classes / sizeof *all_classes; i++)
        if (name == NULL || strcmp(all_classes[i]->name, name) == 0) alive += atomic_load(all_classes[i]->alive);
    return alive;
}

/* ---- methods -------------------------------------------------------------------- */

void sm_zero_method(void); /* trampoline.c */

static sm_imp search(const sm_class *class, SEL selector)
{
    for (; class != NULL; class = class->super)
        for (const sm_method *m = class->methods; m != NULL && m->selector != NULL; m++)
            if (strcmp(m->selector, selector->name) == 0) return m->function;
    return NULL;
}

sm_imp sm_find_method(const sm_class *class, SEL selector)
{
    if (selector == NULL) return NULL;
    if (selector->index >= SM_CACHED_SELECTORS || class->cache == NULL) return search(class, selector);
    sm_imp found = atomic_load_explicit(&class->cache[selector->index], memory_order_relaxed);
    if (found == NULL) {
        found = search(class, selector);
        if (found != NULL) atomic_store_explicit(&class->cache[selector->index], found, memory_order_relaxed);
    }
    return found;
}

static bool is_class(id object) { return ((const sm_object *)object)->isa->super == &sm_root_metaclass; }

sm_imp sm_objc_lookup(id receiver, SEL selector)
{
    if (receiver == NULL) return sm_zero_method;
    const sm_class *class = ((const sm_object *)receiver)->isa;
    const sm_imp found = sm_find_method(class, selector);
    if (found != NULL) return found;
    if (class == &sm_zombie)
        sm_failed("%s was sent to an object that had been released for the last time", sel_getName(selector));
    else
        sm_failed("%c[%s %s]: this selector is not known to softmetal", is_class(receiver) ? '+' : '-', class->name,
                  sel_getName(selector));
    return sm_zero_method;
}
