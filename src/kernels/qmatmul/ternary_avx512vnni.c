/* Ternary panels with vpdpbusd, the rows of a panel in one register (ternary.h). */
#if defined(__AVX512VNNI__)
#define SIMD_BYTES 64
#include "simd/vector.h"

/* Inline assembly: GCC 12 copies the accumulator before each use of the intrinsic. */
SIMD_INLINE vu ternary_vnni(vu sum, vu w, vu x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
}
/* Uses the broadcast memory operand of the instruction. */
SIMD_INLINE void ternary_token_vnni(vu *sum, const vu *rows, const int8_t *cell)
{
    typedef uint32_t cell32 __attribute__((aligned(1), may_alias));
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(*sum) : "v"(*rows), "m"(*(const cell32 *)(const void *)cell));
}
#define TERNARY_TOKEN(sum, rows, cell) ternary_token_vnni(sum, rows, cell)
#define TERNARY_DOT(sum, w, x) ternary_vnni(sum, w, x)
#define TERNARY_GROUP 12
#define TERNARY_AHEAD 512
#define TERNARY_NAME(what) mica__ternary_##what##_vnni
#include "kernels/qmatmul/ternary_body.inc"
#else
typedef int ternary_avx512vnni_is_for_another_cpu;
#endif
