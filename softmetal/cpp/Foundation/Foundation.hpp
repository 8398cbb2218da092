/* The part of Foundation that Metal programs in C++ use, with the names of metal-cpp: a program
 * written for metal-cpp compiles against these headers and is linked with libsoftmetal.
 * Methods are declared as programs need them; each is one message (send.hpp). */
#ifndef SOFTMETAL_CPP_FOUNDATION_HPP
#define SOFTMETAL_CPP_FOUNDATION_HPP

#include "../send.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace NS {

using Integer = std::intptr_t;
using UInteger = std::uintptr_t;
using TimeInterval = double;

struct Range {
    UInteger location, length;
    Range(UInteger at, UInteger count) : location(at), length(count) {}
    static Range Make(UInteger at, UInteger count) { return Range(at, count); }
};

enum StringEncoding : UInteger { ASCIIStringEncoding = 1, UTF8StringEncoding = 4 };

class String;

/* The methods of every object; Class is the type that retain returns. */
template <class Class, class Base> class Referencing : public Base {
public:
    Class *retain() { return softmetal::send<Class *>(this, "retain"); }
    void release() { softmetal::send<void>(this, "release"); }
    Class *autorelease() { return softmetal::send<Class *>(this, "autorelease"); }
    UInteger retainCount() const { return softmetal::send<UInteger>(this, "retainCount"); }
};

class Nothing {
public:
    Nothing() = delete;
    Nothing(const Nothing &) = delete;
    Nothing &operator=(const Nothing &) = delete;
    ~Nothing() = delete;
};

class Object : public Referencing<Object, Nothing> {
public:
    UInteger hash() const { return softmetal::send<UInteger>(this, "hash"); }
    bool isEqual(const Object *other) const { return softmetal::send<bool>(this, "isEqual:", other); }
    String *description() const { return softmetal::send<String *>(this, "description"); }
};

class AutoreleasePool : public Referencing<AutoreleasePool, Object> {
public:
    static AutoreleasePool *alloc() { return softmetal::make<AutoreleasePool>("NSAutoreleasePool"); }
    AutoreleasePool *init() { return softmetal::send<AutoreleasePool *>(this, "init"); }
    void drain() { softmetal::send<void>(this, "drain"); }
};

class String : public Referencing<String, Object> {
public:
    static String *string(const char *text, StringEncoding encoding)
    {
        return softmetal::send<String *>(objc_getClass("NSString"), "stringWithCString:encoding:", text, encoding);
    }
    static String *alloc() { return softmetal::make<String>("NSString"); }
    String *init(const char *text) { return softmetal::send<String *>(this, "initWithUTF8String:", text); }
    const char *utf8String() const { return softmetal::send<const char *>(this, "UTF8String"); }
    const char *cString(StringEncoding encoding) const
    {
        return softmetal::send<const char *>(this, "cStringUsingEncoding:", encoding);
    }
    UInteger length() const { return softmetal::send<UInteger>(this, "length"); }
    bool isEqualToString(const String *other) const
    {
        return softmetal::send<bool>(this, "isEqualToString:", other);
    }
};

class Error : public Referencing<Error, Object> {
public:
    Integer code() const { return softmetal::send<Integer>(this, "code"); }
    String *domain() const { return softmetal::send<String *>(this, "domain"); }
    String *localizedDescription() const { return softmetal::send<String *>(this, "localizedDescription"); }
};

class Array : public Referencing<Array, Object> {
public:
    UInteger count() const { return softmetal::send<UInteger>(this, "count"); }
    template <class T = Object> T *object(UInteger index) const
    {
        return softmetal::send<T *>(this, "objectAtIndex:", index);
    }
};

class Number : public Referencing<Number, Object> {
public:
    static Number *number(int value)
    {
        return softmetal::send<Number *>(objc_getClass("NSNumber"), "numberWithInt:", value);
    }
    int intValue() const { return softmetal::send<int>(this, "intValue"); }
};

class Dictionary : public Referencing<Dictionary, Object> {
public:
    static Dictionary *dictionary(const Object *value, const Object *key)
    {
        return softmetal::send<Dictionary *>(objc_getClass("NSDictionary"), "dictionaryWithObject:forKey:", value, key);
    }
    UInteger count() const { return softmetal::send<UInteger>(this, "count"); }
};

/* Owns one reference. */
template <class Class> class SharedPtr {
    Class *object = nullptr;

public:
    SharedPtr() = default;
    SharedPtr(std::nullptr_t) {}
    explicit SharedPtr(Class *owned) : object(owned) {}
    SharedPtr(const SharedPtr &other) : object(other.object)
    {
        if (object) object->retain();
    }
    SharedPtr(SharedPtr &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
    ~SharedPtr() { reset(); }
    SharedPtr &operator=(SharedPtr other)
    {
        std::swap(object, other.object);
        return *this;
    }
    void reset()
    {
        if (object) object->release();
        object = nullptr;
    }
    Class *get() const { return object; }
    Class *operator->() const { return object; }
    explicit operator bool() const { return object != nullptr; }
};
template <class Class> SharedPtr<Class> TransferPtr(Class *object) { return SharedPtr<Class>(object); }
template <class Class> SharedPtr<Class> RetainPtr(Class *object)
{
    return SharedPtr<Class>(object ? object->retain() : nullptr);
}

} // namespace NS

#endif
