/* The inner loops of attention for CPUs with AVX-512: see attention_body.inc. */
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#define ATTENTION_KEYS 8
#define ATTENTION_KEYS_ONE 16
#define ATTENTION_ROWS 12
#define ATTENTION_ROWS_FEW 8
#define ATTENTION_COLUMNS 2
#define ATTENTION_VARIANT mica__attention_avx512
#include "kernels/attention/attention_body.inc"
#else
typedef int attention_avx512_is_for_another_cpu;
#endif
