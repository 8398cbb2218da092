/* Ternary panels with vpmaddubsw (ternary.h). */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#include "simd/vector.h"

/* Inline assembly: six rows of x in 12 accumulators leave four registers, and GCC would load all six splats first. */
SIMD_INLINE void ternary_token_avx2(vu *sum, const vu *rows, const int8_t *cell)
{
    typedef uint32_t cell32 __attribute__((aligned(1), may_alias));
    vu x, product;
    __asm__("vpbroadcastd %6, %2\n\t"
            "vpmaddubsw %2, %4, %3\n\t"
            "vpmaddubsw %2, %5, %2\n\t"
            "vpaddw %3, %0, %0\n\t"
            "vpaddw %2, %1, %1"
            : "+x"(sum[0]), "+x"(sum[1]), "=&x"(x), "=&x"(product)
            : "x"(rows[0]), "x"(rows[1]), "m"(*(const cell32 *)(const void *)cell));
}
#define TERNARY_TOKEN(sum, rows, cell) ternary_token_avx2(sum, rows, cell)
#define TERNARY_PAIRS
#define TERNARY_GROUP 6
#define TERNARY_AHEAD 512
#define TERNARY_NAME(what) mica__ternary_##what##_avx2
#include "kernels/qmatmul/ternary_body.inc"
#else
typedef int ternary_avx2_is_for_another_cpu;
#endif
