/* The blocks of the formats as structs with the fields in file order. All fields are
 * bytes, so that blocks need no alignment: an f16 is two bytes, read by a helper. */
#ifndef MICA_QUANT_BLOCKS_H
#define MICA_QUANT_BLOCKS_H

#include <math.h>

#include "quant/quant.h"

#define MICA_BLOCK_CHECK(type, size) _Static_assert(sizeof(type) == (size) && _Alignof(type) == 1, #type)

typedef struct mica__f16 {
    uint8_t byte[2];
} mica__f16;

typedef struct mica__block_q4_0 {
    mica__f16 d;
    uint8_t qs[16];  /* low 4 bits: element i, high: i + 16; value (q - 8) d */
} mica__block_q4_0;
MICA_BLOCK_CHECK(mica__block_q4_0, 18);

typedef struct mica__block_q4_1 {
    mica__f16 d, m;
    uint8_t qs[16];  /* value q d + m */
} mica__block_q4_1;
MICA_BLOCK_CHECK(mica__block_q4_1, 20);

typedef struct mica__block_q5_0 {
    mica__f16 d;
    uint8_t qh[4];   /* bit i: the fifth bit of element i */
    uint8_t qs[16];
} mica__block_q5_0;
MICA_BLOCK_CHECK(mica__block_q5_0, 22);

typedef struct mica__block_q5_1 {
    mica__f16 d, m;
    uint8_t qh[4];
    uint8_t qs[16];
} mica__block_q5_1;
MICA_BLOCK_CHECK(mica__block_q5_1, 24);

typedef struct mica__block_q8_0 {
    mica__f16 d;
    int8_t qs[32];
} mica__block_q8_0;
MICA_BLOCK_CHECK(mica__block_q8_0, 34);

typedef struct mica__block_q4_k {
    mica__f16 d, dmin;
    uint8_t scales[12]; /* 8 scales and 8 minima of 6 bits   */
    uint8_t qs[128];    /* low bits: sub-block 2k, high: 2k + 1 */
} mica__block_q4_k;
MICA_BLOCK_CHECK(mica__block_q4_k, 144);

typedef struct mica__block_q5_k {
    mica__f16 d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];     /* bit j of byte l: element l of sub-block j */
    uint8_t qs[128];
} mica__block_q5_k;
MICA_BLOCK_CHECK(mica__block_q5_k, 176);

typedef struct mica__block_q6_k {
    uint8_t ql[128], qh[64];
    int8_t scales[16];
    mica__f16 d;
} mica__block_q6_k;
MICA_BLOCK_CHECK(mica__block_q6_k, 210);

typedef struct mica__block_tq1_0 {
    uint8_t qs[48], qh[4]; /* five trits per byte, four in qh */
    mica__f16 d;
} mica__block_tq1_0;
MICA_BLOCK_CHECK(mica__block_tq1_0, 54);

typedef struct mica__block_tq2_0 {
    uint8_t qs[64];
    mica__f16 d;
} mica__block_tq2_0;
MICA_BLOCK_CHECK(mica__block_tq2_0, 66);

typedef struct mica__block_ptq1_0 {
    uint8_t qs[24], qh[2];
    mica__f16 d;
} mica__block_ptq1_0;
MICA_BLOCK_CHECK(mica__block_ptq1_0, 28);

typedef struct mica__block_q1_0 {
    mica__f16 d;
    uint8_t qs[16];
} mica__block_q1_0;
MICA_BLOCK_CHECK(mica__block_q1_0, 18);

typedef struct mica__block_q1_0_g32 {
    mica__f16 d;
    uint8_t qs[4];
} mica__block_q1_0_g32;
MICA_BLOCK_CHECK(mica__block_q1_0_g32, 6);

typedef struct mica__block_q2_0 {
    mica__f16 d;
    uint8_t qs[16];
} mica__block_q2_0;
MICA_BLOCK_CHECK(mica__block_q2_0, 18);

typedef struct mica__block_pq2_0 {
    mica__f16 d;
    uint8_t qs[32];
} mica__block_pq2_0;
MICA_BLOCK_CHECK(mica__block_pq2_0, 34);

typedef struct mica__block_i2_s {
    uint8_t qs[32]; /* the scale follows the last block of the tensor */
} mica__block_i2_s;
MICA_BLOCK_CHECK(mica__block_i2_s, 32);

typedef struct mica__block_i2_s_arm {
    uint8_t qs[16];
} mica__block_i2_s_arm;
MICA_BLOCK_CHECK(mica__block_i2_s_arm, 16);

/* How codes of ternary and one-bit blocks are stored. */
enum { MICA__CODES_BITS = 1, MICA__CODES_TWO_BITS = 2, MICA__CODES_TRITS = 3 };

/* The layout of ternary and one-bit blocks. */
typedef struct mica__ternary_layout {
    uint8_t kind; /* MICA__CODES_BITS, ...                                        */
    int block, bytes, scale, codes;  /* scale, codes: offsets of the f16 scale (-1: none) and codes */
    /* two-bit codes: of each `span` elements, byte j holds j, j + stride, ...    */
    int span, stride;
    bool high_first;                 /* element j is in the highest bits          */
    /* trits: lengths of two runs of bytes with five trits, and one with four     */
    int run[3];
} mica__ternary_layout;

/* The layout of blocks of 32 elements with 4-bit parts. */
typedef struct mica__small_layout {
    int bytes, bits, min, high, low; /* min, high, low: offsets; -1: absent       */
} mica__small_layout;

/* NULL if the format has no such layout. */
const mica__ternary_layout *mica__ternary_layout_of(mica__quant_id id);
const mica__small_layout *mica__small_layout_of(mica__quant_id id);

/* 1 / d, or 0 if that is not finite: |d| is at most 2^-128. A block with such a scale packs to codes of value 0; as an
 * f16 the scale rounds to 0 anyway. */
static inline float mica__inverse(float d) { return fabsf(d) > 0x1p-128f ? 1 / d : 0; }
/* x / d for formats with f32 scales, where a subnormal d keeps its values; inverse is mica__inverse(d). */
static inline float mica__in_units(float x, float d, float inverse)
{
    return inverse != 0 || d == 0 ? x * inverse : x / d;
}

/* Extracts two bits of each of n bytes, from bit `shift` on, as -1 ... 2. */
void mica__two_bits(const uint8_t *b, int64_t n, int shift, int8_t *codes);

static inline float mica__f16_get(mica__f16 h) { return mica_f16_to_f32((uint16_t)(h.byte[0] | h.byte[1] << 8)); }
static inline mica__f16 mica__f16_make(float x)
{
    const uint16_t bits = mica_f16_from_f32(x);
    return (mica__f16){{(uint8_t)(bits & 255), (uint8_t)(bits >> 8)}};
}

#endif
