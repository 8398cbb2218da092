/* The inner loops of attention for CPUs with NEON: see attention_body.inc. */
#if defined(__aarch64__)
#define SIMD_BYTES 16
#define ATTENTION_KEYS 8
#define ATTENTION_KEYS_ONE 8
#define ATTENTION_ROWS 6
#define ATTENTION_ROWS_FEW 4
#define ATTENTION_COLUMNS 4
#define ATTENTION_VARIANT mica__attention_neon
#include "kernels/attention/attention_body.inc"
#else
typedef int attention_neon_is_for_another_cpu;
#endif
