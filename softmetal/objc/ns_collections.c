/* NSArray and NSDictionary with their mutable forms. Dictionaries here are small, so
 * they are two parallel arrays that are searched linearly. */
#include "objc/objc_runtime.h"

#include <stdlib.h>
#include <string.h>

/* ---- NSArray --------------------------------------------------------------------- */

bool sm_array_add(sm_array *array, id item)
{
    if (item == NULL) return false;
    if (array->count == array->capacity) {
        const unsigned long capacity = array->capacity == 0 ? 8 : array->capacity * 2;
        id *items = realloc(array->items, capacity * sizeof *items);
        if (items == NULL) return false;
        array->items = items;
        array->capacity = capacity;
    }
    array->items[array->count++] = objc_retain(item);
    return true;
}

void sm_array_remove(sm_array *array, unsigned long index)
{
    id item = array->items[index];
    memmove(array->items + index, array->items + index + 1, (array->count - index - 1) * sizeof *array->items);
    array->count--;
    objc_release(item);
}

static bool array_fill(sm_array *array, const id *items, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        if (!sm_array_add(array, items[i])) return false;
    return true;
}

sm_array *sm_array_new(const sm_class *class, const id *items, unsigned long count)
{
    sm_array *array = sm_new(class);
    if (array == NULL || array_fill(array, items, count)) return array;
    objc_release(array);
    return NULL;
}

static void array_destroy(id object)
{
    sm_array *self = object;
    while (self->count > 0) sm_array_remove(self, self->count - 1);
    free(self->items);
}

static unsigned long array_count(sm_array *self, SEL s) { return self->count; }

static id array_at(sm_array *self, SEL s, unsigned long index)
{
    if (index < self->count) return self->items[index];
    sm_failed("-[NSArray %s]: index %lu, but there are %lu objects", sel_getName(s), index, self->count);
    return NULL;
}

static id array_first(sm_array *self, SEL s) { return self->count == 0 ? NULL : self->items[0]; }
static id array_last(sm_array *self, SEL s) { return self->count == 0 ? NULL : self->items[self->count - 1]; }

static id array_init_with(sm_array *self, SEL s, const id *items, unsigned long count)
{
    if (array_fill(self, items, count)) return self;
    sm_failed("-[NSArray %s]: an object is nil", sel_getName(s));
    objc_release(self);
    return NULL;
}

static id array_init_capacity(id self, SEL s, unsigned long capacity) { return self; }

static id array_with_objects(const sm_class *class, SEL s, const id *items, unsigned long count)
{
    return objc_autorelease(array_init_with(sm_new(class), s, items, count));
}
static id array_with_object(const sm_class *class, SEL s, id item) { return array_with_objects(class, s, &item, 1); }
static id array_empty(const sm_class *class, SEL s) { return objc_autorelease(sm_array_new(class, NULL, 0)); }
static id array_with_capacity(const sm_class *class, SEL s, unsigned long n) { return array_empty(class, s); }

static void array_add(sm_array *self, SEL s, id item)
{
    if (!sm_array_add(self, item)) sm_failed("-[NSMutableArray addObject:]: the object is nil, or out of memory");
}

static void array_remove_all(sm_array *self, SEL s)
{
    while (self->count > 0) sm_array_remove(self, self->count - 1);
}

static id array_copy(sm_array *self, SEL s)
{
    if (!sm_is_a(self, &sm_ns_mutable_array)) return sm_copy_self(self, s);
    return sm_array_new(&sm_ns_array, self->items, self->count);
}
static id array_mutable_copy(sm_array *self, SEL s)
{
    return sm_array_new(&sm_ns_mutable_array, self->items, self->count);
}

static const sm_method array_methods[] = {
    SM_COPY_METHODS(array_copy),
    SM_METHOD("mutableCopy", array_mutable_copy),
    SM_METHOD("count", array_count),
    SM_METHOD("objectAtIndex:", array_at),
    SM_METHOD("objectAtIndexedSubscript:", array_at),
    SM_METHOD("firstObject", array_first),
    SM_METHOD("lastObject", array_last),
    SM_METHOD("initWithObjects:count:", array_init_with),
    SM_METHODS_END,
};
static const sm_method array_class_methods[] = {
    SM_METHOD("array", array_empty),
    SM_METHOD("arrayWithObject:", array_with_object),
    SM_METHOD("arrayWithObjects:count:", array_with_objects),
    SM_METHODS_END,
};
static const sm_method mutable_array_methods[] = {
    SM_METHOD("initWithCapacity:", array_init_capacity),
    SM_METHOD("addObject:", array_add),
    SM_METHOD("removeAllObjects", array_remove_all),
    SM_METHODS_END,
};
static const sm_method mutable_array_class_methods[] = {
    SM_METHOD("array", array_empty),
    SM_METHOD("arrayWithCapacity:", array_with_capacity),
    SM_METHOD("arrayWithObject:", array_with_object),
    SM_METHOD("arrayWithObjects:count:", array_with_objects),
    SM_METHODS_END,
};

SM_CLASS(sm_ns_array, "NSArray", &sm_ns_object, sm_array, array_destroy, array_methods, array_class_methods,
         "NSCopying NSMutableCopying", true);
SM_CLASS(sm_ns_mutable_array, "NSMutableArray", &sm_ns_array, sm_array, NULL, mutable_array_methods,
         mutable_array_class_methods, NULL, true);

/* ---- NSDictionary ----------------------------------------------------------------- */

sm_dictionary *sm_dictionary_new(const sm_class *class)
{
    sm_dictionary *self = sm_new(class);
    if (self == NULL) return NULL;
    self->keys = sm_array_new(&sm_ns_array, NULL, 0);
    self->values = sm_array_new(&sm_ns_array, NULL, 0);
    if (self->keys != NULL && self->values != NULL) return self;
    objc_release(self);
    return NULL;
}

static long key_index(const sm_dictionary *self, id key)
{
    const char *wanted = sm_string_bytes(key);
    for (unsigned long i = 0; i < self->keys->count; i++) {
        const char *bytes = sm_string_bytes(self->keys->items[i]);
        if (self->keys->items[i] == key || (wanted != NULL && bytes != NULL && strcmp(wanted, bytes) == 0))
            return (long)i;
    }
    return -1;
}

id sm_dictionary_get(const sm_dictionary *self, id key)
{
    const long at = self->keys == NULL ? -1 : key_index(self, key);
    return at < 0 ? NULL : self->values->items[at];
}

bool sm_dictionary_set(sm_dictionary *self, id key, id value)
{
    if (key == NULL || value == NULL) return false;
    const long at = key_index(self, key);
    if (at >= 0) {
        sm_set(&self->values->items[at], value);
        return true;
    }
    if (!sm_array_add(self->values, value)) return false;
    if (sm_array_add(self->keys, key)) return true;
    sm_array_remove(self->values, self->values->count - 1);
    return false;
}

static void dictionary_destroy(id object)
{
    sm_dictionary *self = object;
    objc_release(self->keys);
    objc_release(self->values);
}

static id dictionary_init(sm_dictionary *self, SEL s)
{
    id made = sm_dictionary_new(object_getClass(self));
    objc_release(self);
    return made;
}

static id dictionary_init_with(sm_dictionary *self, SEL s, const id *values, const id *keys, unsigned long count)
{
    sm_dictionary *made = dictionary_init(self, s);
    for (unsigned long i = 0; made != NULL && i < count; i++)
        if (!sm_dictionary_set(made, keys[i], values[i])) {
            sm_failed("-[NSDictionary %s]: a key or an object is nil", sel_getName(s));
            objc_release(made);
            return NULL;
        }
    return made;
}

static id dictionary_empty(const sm_class *class, SEL s) { return objc_autorelease(sm_dictionary_new(class)); }
static id dictionary_with(const sm_class *class, SEL s, const id *values, const id *keys, unsigned long count)
{
    return objc_autorelease(dictionary_init_with(sm_new(class), s, values, keys, count));
}
static id dictionary_with_one(const sm_class *class, SEL s, id value, id key)
{
    return dictionary_with(class, s, &value, &key, 1);
}
static unsigned long dictionary_count(sm_dictionary *self, SEL s) { return self->keys->count; }
static id dictionary_get(sm_dictionary *self, SEL s, id key) { return sm_dictionary_get(self, key); }
static id dictionary_keys(sm_dictionary *self, SEL s)
{
    return objc_autorelease(sm_array_new(&sm_ns_array, self->keys->items, self->keys->count));
}
static void dictionary_put(sm_dictionary *self, SEL s, id value, id key)
{
    if (!sm_dictionary_set(self, key, value))
        sm_failed("-[NSMutableDictionary %s]: the key or the object is nil", sel_getName(s));
}

static id dictionary_as(const sm_dictionary *self, const sm_class *class)
{
    sm_dictionary *made = sm_dictionary_new(class);
    for (unsigned long i = 0; made != NULL && i < self->keys->count; i++)
        if (!sm_dictionary_set(made, self->keys->items[i], self->values->items[i])) {
            objc_release(made);
            return NULL;
        }
    return made;
}
static id dictionary_copy(sm_dictionary *self, SEL s)
{
    if (!sm_is_a(self, &sm_ns_mutable_dictionary)) return sm_copy_self(self, s);
    return dictionary_as(self, &sm_ns_dictionary);
}
static id dictionary_mutable_copy(sm_dictionary *self, SEL s) { return dictionary_as(self, &sm_ns_mutable_dictionary); }

static const sm_method dictionary_methods[] = {
    SM_COPY_METHODS(dictionary_copy),
    SM_METHOD("mutableCopy", dictionary_mutable_copy),
    SM_METHOD("init", dictionary_init),
    SM_METHOD("initWithObjects:forKeys:count:", dictionary_init_with),
    SM_METHOD("count", dictionary_count),
    SM_METHOD("objectForKey:", dictionary_get),
    SM_METHOD("objectForKeyedSubscript:", dictionary_get),
    SM_METHOD("allKeys", dictionary_keys),
    SM_METHODS_END,
};
static const sm_method dictionary_class_methods[] = {
    SM_METHOD("dictionary", dictionary_empty),
    SM_METHOD("dictionaryWithObject:forKey:", dictionary_with_one),
    SM_METHOD("dictionaryWithObjects:forKeys:count:", dictionary_with),
    SM_METHODS_END,
};
static const sm_method mutable_dictionary_methods[] = {
    SM_METHOD("setObject:forKey:", dictionary_put),
    SM_METHOD("setObject:forKeyedSubscript:", dictionary_put),
    SM_METHODS_END,
};

SM_CLASS(sm_ns_dictionary, "NSDictionary", &sm_ns_object, sm_dictionary, dictionary_destroy, dictionary_methods,
         dictionary_class_methods, "NSCopying NSMutableCopying", true);
SM_CLASS(sm_ns_mutable_dictionary, "NSMutableDictionary", &sm_ns_dictionary, sm_dictionary, NULL,
         mutable_dictionary_methods, dictionary_class_methods, NULL, true);
