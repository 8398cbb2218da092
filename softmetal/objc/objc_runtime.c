/* Selectors, classes and method lookup. */
#include "objc/objc_runtime.h"
#include "settings/settings.h"

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
 * bucket, so readers need no lock. */
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

/* SM_WITHOUT is a comma-separated list of classes and selectors to hide, as on an older system. */
static bool is_without(const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = sm_setting_text(SM_SET_WITHOUT); at != NULL && *at != 0; at += strspn(at, ",")) {
        const size_t n = strcspn(at, ",");
        if (n == length && memcmp(at, name, n) == 0) return true;
        at += n;
    }
    return false;
}

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
    if (name == NULL || is_without(name)) return NULL;
    for (size_t i = 0; i < sizeof all_classes / sizeof *all_classes; i++)
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

void sm_zero_method(void), sm_zero_struct(void), sm_zero_real(void); /* objc_trampoline.c */

static sm_imp search(const sm_class *class, SEL selector)
{
    if (is_without(selector->name)) return NULL;
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

bool sm_is_class(id object) { return ((const sm_object *)object)->isa->super == &sm_root_metaclass; }

static sm_imp find_or_report(id receiver, SEL selector, sm_imp otherwise)
{
    const sm_class *class = ((const sm_object *)receiver)->isa;
    const sm_imp found = sm_find_method(class, selector);
    if (found != NULL) return found;
    if (class == &sm_zombie)
        sm_failed("%s was sent to an object that had been released for the last time", sel_getName(selector));
    else
        sm_failed("%c[%s %s]: unrecognized selector: not implemented by softmetal", sm_is_class(receiver) ? '+' : '-',
                  class->name, sel_getName(selector));
    return otherwise;
}

sm_imp sm_objc_lookup(id receiver, SEL selector)
{
    return receiver == NULL ? sm_zero_method : find_or_report(receiver, selector, sm_zero_method);
}

#if defined(__x86_64__)
sm_imp sm_objc_lookup_real(id receiver, SEL selector)
{
    return receiver == NULL ? sm_zero_real : find_or_report(receiver, selector, sm_zero_real);
}
sm_imp sm_objc_lookup_struct(id receiver, SEL selector)
{
    if (receiver != NULL) return find_or_report(receiver, selector, sm_zero_struct);
    sm_failed("%s was sent to nil: its struct result is unchanged", sel_getName(selector));
    return sm_zero_struct;
}
#endif

/* ---- lists -------------------------------------------------------------------------- */

/* Both lists must be freed. They end with NULL, which is not counted. */
SM_API const sm_class **objc_copyClassList(unsigned *count)
{
    const size_t classes = sizeof all_classes / sizeof *all_classes;
    const sm_class **list = calloc(classes + 1, sizeof *list);
    if (list != NULL) memcpy(list, all_classes, sizeof all_classes);
    if (count != NULL) *count = list == NULL ? 0 : (unsigned)classes;
    return list;
}

/* The methods of the class itself, without those of its superclass. */
SM_API const sm_method **class_copyMethodList(const sm_class *class, unsigned *count)
{
    unsigned methods = 0;
    while (class != NULL && class->methods != NULL && class->methods[methods].selector != NULL) methods++;
    const sm_method **list = methods == 0 ? NULL : calloc(methods + 1, sizeof *list);
    for (unsigned i = 0; list != NULL && i < methods; i++) list[i] = &class->methods[i];
    if (count != NULL) *count = list == NULL ? 0 : methods;
    return list;
}

SM_API SEL method_getName(const sm_method *method)
{
    return method == NULL ? NULL : sel_registerName(method->selector);
}
SM_API sm_imp method_getImplementation(const sm_method *method) { return method == NULL ? NULL : method->function; }

/* Returns whether the name is in the list of protocols. */
static bool names_protocol(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (; list != NULL && length > 0; list = strchr(list, ' '), list += list != NULL)
        if (strncmp(list, name, length) == 0 && (list[length] == 0 || list[length] == ' ')) return true;
    return false;
}

bool sm_class_conforms(const sm_class *class, const char *protocol)
{
    for (; class != NULL; class = class->super)
        if (names_protocol(class->protocols, protocol)) return true;
    return strcmp(protocol, "NSObject") == 0;
}

bool sm_is_protocol(const char *name)
{
    for (size_t i = 0; i < sizeof all_classes / sizeof *all_classes; i++)
        if (names_protocol(all_classes[i]->protocols, name)) return true;
    return false;
}
