/* The macros of the Metal headers. A #include of a Metal header reads only this file, so
 * that #ifdef works in MSL text; types and functions are precompiled (shim.h). */
#ifndef SOFTMETAL_MACROS_H
#define SOFTMETAL_MACROS_H

#define METAL_FUNC inline __attribute__((__always_inline__))
#define METAL_INTERNAL inline __attribute__((__always_inline__))
#define METAL_CONST __attribute__((__const__))
#define METAL_PURE __attribute__((__pure__))

/* Internal names of Apple's headers that third-party kernels use (internals.h). */
#define __METAL_MAYBE_FAST_MATH__ 0
#define __METAL_FAST_MATH__ 0
#define __METAL_PRECISE_MATH__ 0
#define __METAL_MEMORY_SCOPE_SYSTEM__ 4

/* Has an effect with SM_CHECK only (internals.h). */
#if defined(NDEBUG)
#define assert(condition) ((void)0)
#elif !defined(assert)
#define assert(condition) sm_assert(bool(condition), "the assertion '" #condition "' failed", __FILE__, __LINE__)
#endif

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VALH __builtin_inff16()
#define MAXFLOAT 0x1.fffffep127f
#define MAXHALF 65504.0f16

#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_10_EXP 38
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MIN_EXP (-125)
#define FLT_RADIX 2
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_EPSILON 0x1.0p-23f
#define FLT_DENORM_MIN 0x1.0p-149f

#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define HALF_MAX_10_EXP 4
#define HALF_MAX_EXP 16
#define HALF_MIN_10_EXP (-4)
#define HALF_MIN_EXP (-13)
#define HALF_RADIX 2
#define HALF_MAX 65504.0f16
#define HALF_MIN 0x1.0p-14f16
#define HALF_EPSILON 0x1.0p-10f16
#define HALF_DENORM_MIN 0x1.0p-24f16

#define CHAR_BIT 8
#define CHAR_MAX 127
#define CHAR_MIN (-127 - 1)
#define SCHAR_MAX 127
#define SCHAR_MIN (-127 - 1)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32767 - 1)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul

#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_E_H 2.71828182845904523536f16
#define M_LOG2E_H 1.44269504088896340736f16
#define M_LOG10E_H 0.43429448190325182765f16
#define M_LN2_H 0.69314718055994530942f16
#define M_LN10_H 2.30258509299404568402f16
#define M_PI_H 3.14159265358979323846f16
#define M_PI_2_H 1.57079632679489661923f16
#define M_PI_4_H 0.78539816339744830962f16
#define M_1_PI_H 0.31830988618379067154f16
#define M_2_PI_H 0.63661977236758134308f16
#define M_2_SQRTPI_H 1.12837916709551257390f16
#define M_SQRT2_H 1.41421356237309504880f16
#define M_SQRT1_2_H 0.70710678118654752440f16

#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN 2147483647

#endif
