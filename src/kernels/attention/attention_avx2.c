/* The inner loops of attention for CPUs with AVX2 and FMA: see attention_body.inc. */
#if defined(__AVX2__)
#define SIMD_BYTES 32
#define ATTENTION_KEYS 4
#define ATTENTION_KEYS_ONE 8
#define ATTENTION_ROWS 6
#define ATTENTION_ROWS_FEW 4
#define ATTENTION_COLUMNS 2
#define ATTENTION_VARIANT mica__attention_avx2
#include "kernels/attention/attention_body.inc"
#else
typedef int attention_avx2_is_for_another_cpu;
#endif
