/* How the C++ classes send messages: a typed call of objc_msgSend. An object of such a class is
 * never made in C++; its address is that of the Objective-C object, and it has no data. */
#ifndef SOFTMETAL_CPP_SEND_HPP
#define SOFTMETAL_CPP_SEND_HPP

#include <type_traits>

extern "C" {
void objc_msgSend(void);
#if defined(__x86_64__)
void objc_msgSend_stret(void);
void objc_msgSend_fpret(void);
#endif
const void *sel_registerName(const char *name);
void *objc_getClass(const char *name);
}

namespace softmetal {

template <class Result> constexpr bool is_large()
{
    if constexpr (std::is_void_v<Result>) return false;
    else return sizeof(Result) > 16;
}

template <class Result, class... Arguments> Result send(const void *object, const char *selector, Arguments... arguments)
{
    using method = Result (*)(const void *, const void *, Arguments...);
    void (*function)(void) = objc_msgSend;
#if defined(__x86_64__)
    if constexpr (is_large<Result>()) function = objc_msgSend_stret;
    else if constexpr (std::is_same_v<Result, long double>) function = objc_msgSend_fpret;
#endif
    return reinterpret_cast<method>(function)(object, sel_registerName(selector), arguments...);
}

template <class Class> Class *make(const char *name) { return send<Class *>(objc_getClass(name), "alloc"); }

} // namespace softmetal

#endif
