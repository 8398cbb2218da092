/* NSObject: reference counts, autorelease pools, and the methods that every object has.
 *
 * A pool is a position in a list of objects that belongs to the thread; popping it releases
 * the objects that were added after it. An object that is autoreleased without a pool is
 * released when the thread ends, as in Apple's runtime.
 *
 * SM_ZOMBIES=1 keeps the memory of released objects and changes their class, so that
 * a message to one of them fails with an error message and is not undefined behaviour. */
#include "objc/objc_runtime.h"
#include "settings/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- references ------------------------------------------------------------------ */

id sm_new(const sm_class *class)
{
    sm_object *object = calloc(1, class->size);
    if (object == NULL) return NULL;
    object->isa = class;
    atomic_init(&object->references, 1);
    atomic_fetch_add_explicit(class->alive, 1, memory_order_relaxed);
    return object;
}

static bool is_zombie(id object, const char *call)
{
    if (((const sm_object *)object)->isa != &sm_zombie) return false;
    sm_failed("%s was sent to an object that had been released for the last time", call);
    return true;
}

id objc_retain(id object)
{
    sm_object *o = object;
    if (o != NULL && is_zombie(o, "retain")) return object;
    if (o != NULL && atomic_load_explicit(&o->references, memory_order_relaxed) >= 0)
        atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
    return object;
}

static bool keep_zombies(void)
{
    static _Atomic int keep = -1;
    int now = atomic_load(&keep);
    if (now < 0) {
        now = sm_setting_flag(SM_SET_ZOMBIES);
        atomic_store(&keep, now);
    }
    return now != 0;
}

/* Kept in a list, so that leak checkers do not report them. */
static void make_zombie(sm_object *object)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static sm_object **zombies;
    static size_t count;
    pthread_mutex_lock(&lock);
    sm_object **more = realloc(zombies, (count + 1) * sizeof *more);
    if (more != NULL) zombies = more, zombies[count++] = object;
    pthread_mutex_unlock(&lock);
    object->isa = &sm_zombie;
    atomic_store(&object->references, 1);
}

void objc_release(id object)
{
    sm_object *o = object;
    if (o == NULL || atomic_load_explicit(&o->references, memory_order_relaxed) < 0) return;
    if (is_zombie(o, "release")) return;
    if (atomic_fetch_sub_explicit(&o->references, 1, memory_order_acq_rel) != 1) return;
    const sm_class *class = o->isa;
    for (const sm_class *c = class; c != NULL; c = c->super)
        if (c->destroy != NULL) c->destroy(object);
    atomic_fetch_sub_explicit(class->alive, 1, memory_order_relaxed);
    if (keep_zombies()) make_zombie(o);
    else free(object);
}

void sm_set(id *slot, id object)
{
    id before = *slot;
    *slot = objc_retain(object);
    objc_release(before);
}

id sm_copy(const void *object)
{
    const sm_class *class = ((const sm_object *)object)->isa;
    sm_object *copy = sm_new(class);
    if (copy != NULL) memcpy(copy + 1, (const sm_object *)object + 1, class->size - sizeof *copy);
    return copy;
}

id sm_copy_self(id self, SEL selector) { return objc_retain(self); }

void sm_set_copy(id *slot, id object)
{
    const SEL selector = sel_registerName("copy");
    const sm_imp copy = object == NULL ? NULL : sm_find_method(object_getClass(object), selector);
    id copied = copy == NULL ? objc_retain(object) : ((id(*)(id, SEL))copy)(object, selector);
    objc_release(*slot);
    *slot = copied;
}

/* ---- autorelease pools ------------------------------------------------------------ */

typedef struct pool {
    id *items;
    size_t count, capacity;
} pool;

static pthread_key_t pool_key;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

static void pool_drain(pool *p, size_t mark)
{
    while (p->count > mark) objc_release(p->items[--p->count]); /* may add objects, which are released too */
}

static void pool_end(void *thread_pool)
{
    pool *p = thread_pool;
    /* An object that is released now may autorelease others, so the list must still be set. */
    pthread_setspecific(pool_key, p);
    pool_drain(p, 0);
    pthread_setspecific(pool_key, NULL);
    free(p->items);
    free(p);
}

static void pool_prepare(void) { pthread_key_create(&pool_key, pool_end); }

static pool *pool_of_thread(void)
{
    pthread_once(&pool_once, pool_prepare);
    pool *p = pthread_getspecific(pool_key);
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        if (p != NULL) pthread_setspecific(pool_key, p);
    }
    return p;
}

id objc_autorelease(id object)
{
    if (object == NULL || atomic_load(&((sm_object *)object)->references) < 0) return object;
    if (is_zombie(object, "autorelease")) return object;
    pool *p = pool_of_thread();
    if (p != NULL && p->count == p->capacity) {
        const size_t capacity = p->capacity == 0 ? 64 : p->capacity * 2;
        id *items = realloc(p->items, capacity * sizeof *items);
        if (items != NULL) p->items = items, p->capacity = capacity;
    }
    if (p == NULL || p->count == p->capacity) sm_failed("autorelease: out of memory; the object is never released");
    else p->items[p->count++] = object;
    return object;
}

/* The mark is the count plus one, so that it is never NULL. */
void *objc_autoreleasePoolPush(void)
{
    pool *p = pool_of_thread();
    return (void *)((uintptr_t)(p == NULL ? 0 : p->count) + 1);
}

void objc_autoreleasePoolPop(void *mark)
{
    pool *p = pool_of_thread();
    const size_t count = (size_t)(uintptr_t)mark - 1;
    if (p == NULL || mark == NULL || count > p->count) {
        sm_failed("objc_autoreleasePoolPop: the pool is not open on this thread; pop pools in reverse order");
        return;
    }
    pool_drain(p, count);
}

SM_API id objc_retainAutorelease(id object) { return objc_autorelease(objc_retain(object)); }
SM_API id objc_autoreleaseReturnValue(id object) { return objc_autorelease(object); }
SM_API id objc_retainAutoreleaseReturnValue(id object) { return objc_retainAutorelease(object); }
SM_API id objc_retainAutoreleasedReturnValue(id object) { return objc_retain(object); }
typedef struct pool_object {
    sm_object object;
    void *mark;
} pool_object;

static id pool_object_init(pool_object *self, SEL selector)
{
    self->mark = objc_autoreleasePoolPush();
    return self;
}

static void pool_object_destroy(id object)
{
    pool_object *self = object;
    if (self->mark != NULL) objc_autoreleasePoolPop(self->mark);
}

static void pool_object_drain(id self, SEL selector) { objc_release(self); }

static const sm_method pool_methods[] = {SM_METHOD("init", pool_object_init), SM_METHOD("drain", pool_object_drain),
                                         SM_METHODS_END};
static const sm_method no_methods[] = {SM_METHODS_END};

/* ---- what every object answers ---------------------------------------------------- */

static id object_retain(id self, SEL s) { return objc_retain(self); }
static void object_release(id self, SEL s) { objc_release(self); }
static id object_autorelease(id self, SEL s) { return objc_autorelease(self); }
static id object_self(id self, SEL s) { return self; }
static const sm_class *object_class(id self, SEL s) { return object_getClass(self); }
static const sm_class *object_superclass(id self, SEL s) { return object_getClass(self)->super; }
static unsigned long object_hash(id self, SEL s) { return (unsigned long)(uintptr_t)self; }
static BOOL object_is_equal(id self, SEL s, id other) { return self == other; }
static BOOL object_responds(id self, SEL s, SEL asked) { return sm_find_method(object_getClass(self), asked) != NULL; }
static BOOL object_is_kind(id self, SEL s, const sm_class *class) { return sm_is_a(self, class); }
static BOOL object_is_member(id self, SEL s, const sm_class *class) { return object_getClass(self) == class; }
static unsigned long object_retain_count(id self, SEL s)
{
    const int count = atomic_load(&((sm_object *)self)->references);
    return count < 0 ? ~0ul : (unsigned long)count;
}
static id object_description(id self, SEL s)
{
    return objc_autorelease(sm_string_format("<%s: %p>", object_getClassName(self), self));
}

typedef struct protocol {
    sm_object object;
    const char *name;
} protocol;

static BOOL object_conforms(id self, SEL s, const protocol *asked)
{
    return asked != NULL && sm_class_conforms(object_getClass(self), asked->name);
}

/* A class conforms to the protocols of its instances. */
static BOOL class_conforms(const sm_class *self, SEL s, const protocol *asked)
{
    return asked != NULL && sm_class_conforms(self, asked->name);
}

/* A protocol by name, if a class implements it. Its only use is conformsToProtocol:. */
SM_API id objc_getProtocol(const char *name)
{
    static protocol known[64];
    if (name == NULL || !sm_is_protocol(name)) return NULL;
    static int count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    protocol *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count && found == NULL; i++)
        if (strcmp(known[i].name, name) == 0) found = &known[i];
    if (found == NULL && count < (int)(sizeof known / sizeof *known)) {
        char *copy = strdup(name);
        if (copy != NULL) {
            found = &known[count++];
            found->object.isa = &sm_protocol;
            atomic_init(&found->object.references, -1);
            found->name = copy;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

const sm_method sm_object_methods[] = {
    SM_METHOD("retain", object_retain),
    SM_METHOD("release", object_release),
    SM_METHOD("autorelease", object_autorelease),
    SM_METHOD("retainCount", object_retain_count),
    SM_METHOD("init", object_self),
    SM_METHOD("self", object_self),
    SM_METHOD("class", object_class),
    SM_METHOD("superclass", object_superclass),
    SM_METHOD("hash", object_hash),
    SM_METHOD("isEqual:", object_is_equal),
    SM_METHOD("respondsToSelector:", object_responds),
    SM_METHOD("isKindOfClass:", object_is_kind),
    SM_METHOD("isMemberOfClass:", object_is_member),
    SM_METHOD("conformsToProtocol:", object_conforms),
    SM_METHOD("description", object_description),
    SM_METHOD("debugDescription", object_description),
    SM_METHODS_END,
};

static id class_alloc(const sm_class *self, SEL s)
{
    if (self->public) return sm_new(self);
    sm_failed("+[%s %s]: objects of this class are created by the device", self->name, sel_getName(s));
    return NULL;
}

static id class_new(const sm_class *self, SEL s)
{
    id object = class_alloc(self, s);
    SEL init = sel_registerName("init");
    return object == NULL ? NULL : ((id(*)(id, SEL))sm_objc_lookup(object, init))(object, init);
}

SM_API id objc_alloc(const sm_class *class)
{
    return class == NULL ? NULL : class_alloc(class, sel_registerName("alloc"));
}

static const sm_class *class_superclass(const sm_class *self, SEL s) { return self->super; }
static id class_description(const sm_class *self, SEL s)
{
    return objc_autorelease(sm_string_format("%s", self->name));
}
static BOOL class_is_subclass(const sm_class *self, SEL s, const sm_class *of)
{
    for (; self != NULL && self != of; self = self->super) continue;
    return self != NULL;
}

static BOOL class_instances_respond(const sm_class *self, SEL s, SEL asked)
{
    return sm_find_method(self, asked) != NULL;
}

static const sm_method class_methods[] = {
    SM_METHOD("alloc", class_alloc),
    SM_METHOD("new", class_new),
    SM_METHOD("class", object_self),
    SM_METHOD("superclass", class_superclass),
    SM_METHOD("description", class_description),
    SM_METHOD("isSubclassOfClass:", class_is_subclass),
    SM_METHOD("conformsToProtocol:", class_conforms),
    SM_METHOD("instancesRespondToSelector:", class_instances_respond),
    SM_METHODS_END,
};

/* The class methods of NSObject are in the root metaclass. Its superclass is NSObject
 * itself, so a class responds to every message that an object responds to. */
static _Atomic(sm_imp) root_meta_cache[SM_CACHED_SELECTORS], metaclass_cache[SM_CACHED_SELECTORS];
const sm_class sm_metaclass = {
    {&sm_metaclass, -1}, "metaclass", &sm_root_metaclass, NULL, sizeof(sm_class), NULL, NULL, false,
    metaclass_cache,     NULL};
const sm_class sm_root_metaclass = {{&sm_metaclass, -1}, "NSObject", &sm_ns_object, class_methods,
                                    sizeof(sm_class),    NULL,       NULL,          false,
                                    root_meta_cache,     NULL};

SM_CLASS(sm_ns_object, "NSObject", NULL, sm_object, NULL, sm_object_methods, no_methods, "NSObject", true);
SM_CLASS(sm_ns_autorelease_pool, "NSAutoreleasePool", &sm_ns_object, pool_object, pool_object_destroy, pool_methods,
         no_methods, NULL, true);
SM_CLASS(sm_protocol, "Protocol", &sm_ns_object, protocol, NULL, no_methods, no_methods, NULL, false);
/* It has no superclass, so every message to it is unknown. */
SM_CLASS(sm_zombie, "zombie", NULL, sm_object, NULL, no_methods, no_methods, NULL, false);
