/* The inner loops of attention for any CPU: vectors of four floats: see attention_body.inc. */
#define SIMD_BYTES 16
#define ATTENTION_KEYS 4
#define ATTENTION_KEYS_ONE 8
#define ATTENTION_ROWS 6
#define ATTENTION_ROWS_FEW 4
#define ATTENTION_COLUMNS 2
#define ATTENTION_VARIANT mica__attention_portable
#include "kernels/attention/attention_body.inc"
