/* The variants of narrow products that this CPU may lack, with their one special instruction
 * written out in C. Packing, the shift of bytes to the sign that the instruction needs, tiles and
 * edges are the library's code at the shape of AVX-512 (64-byte vectors, 8 x 32). Only the
 * instruction itself is not tested.
 *
 * runs: arm, wide-vectors */
#define SIMD_BYTES 64
#include "gemm_dot_check.h"
#include "kernels/matmul/gemm_dot_cells.h"

/* Declared in the same way as gemm_dot.def declares the library's variants. */
#define DECLARE(name)                                                                                                \
    static void mica__dot_pack_a_##name(const mica__gemm_view *view, mica_dtype other, int64_t k, int64_t depth,     \
                                        int64_t i, int64_t n, char *to, int32_t *add);                               \
    static void mica__dot_pack_b_##name(const mica__gemm_view *view, mica_dtype other, int64_t k, int64_t depth,     \
                                        int64_t i, int64_t n, char *to, int32_t *add);                               \
    static void mica__dot_kernel_##name(int64_t depth, const char *a, const char *b, void *c, int64_t row, bool add, \
                                        const int32_t *row_add, const int32_t *col_add);
#define VARIANT(name, kind, mr, cells, four)                                        \
    static const mica__dot_variant variant_##name = {"emulated " #name,             \
                                                     kind,                          \
                                                     0,                             \
                                                     mr,                            \
                                                     32,                            \
                                                     cells,                         \
                                                     (int64_t)(cells) * (four) / 4, \
                                                     mica__dot_pack_a_##name,       \
                                                     mica__dot_pack_b_##name,       \
                                                     mica__dot_kernel_##name}

DECLARE(wide_winograd)
DECLARE(wide_half)
DECLARE(vnni)
DECLARE(dot_bf16)
DECLARE(paired_i8)
DECLARE(paired_bf16)

/* Four products of bytes. */
static void step_bytes(uint32_t *sum, const uint8_t *a, const uint8_t *b, bool a_signed)
{
    for (int i = 0; i < 4; i++) *sum += (uint32_t)((a_signed ? (int8_t)a[i] : a[i]) * (int8_t)b[i]);
}

static void step_bf16(float *sum, const uint8_t *a, const uint8_t *b)
{
    uint16_t x[2], y[2];
    memcpy(x, a, 4);
    memcpy(y, b, 4);
    *sum += mica_bf16_to_f32(x[1]) * mica_bf16_to_f32(y[1]);
    *sum += mica_bf16_to_f32(x[0]) * mica_bf16_to_f32(y[0]);
}

SIMD_INLINE vu dot_vnni(vu sum, vu a, vu b)
{
    for (int i = 0; i < SIMD_LANES; i++) {
        const uint32_t x = a[i], y = b[i];
        uint32_t s = sum[i];
        step_bytes(&s, (const uint8_t *)&x, (const uint8_t *)&y, false);
        sum[i] = s;
    }
    return sum;
}

SIMD_INLINE vf dot_bf16(vf sum, vu a, vu b)
{
    for (int i = 0; i < SIMD_LANES; i++) {
        const uint32_t x = a[i], y = b[i];
        float s = sum[i];
        step_bf16(&s, (const uint8_t *)&x, (const uint8_t *)&y);
        sum[i] = s;
    }
    return sum;
}

/* Two rows of a by two columns of b, eight bytes of each. */
static u32x4 mmla(u32x4 sum, u32x4 a, u32x4 b, bool is_float)
{
    uint8_t x[16], y[16];
    memcpy(x, &a, 16);
    memcpy(y, &b, 16);
    for (int i = 0; i < 4; i++) {
        uint32_t bits = sum[i];
        float f;
        memcpy(&f, &bits, 4);
        for (int part = 0; part < 8; part += 4)
            if (is_float) step_bf16(&f, x + i / 2 * 8 + part, y + i % 2 * 8 + part);
            else step_bytes(&bits, x + i / 2 * 8 + part, y + i % 2 * 8 + part, true);
        if (is_float) memcpy(&bits, &f, 4);
        sum[i] = bits;
    }
    return sum;
}

#define DOT_CELL DOT_WINOGRAD
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_NAME(what) mica__dot_##what##_wide_winograd
#include "kernels/matmul/gemm_dot_body.inc"

#define DOT_CELL DOT_F32
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_STEP(sum, a, b) vf_mul_add((vf)(a), (vf)(b), sum)
#define DOT_NAME(what) mica__dot_##what##_wide_half
#include "kernels/matmul/gemm_dot_body.inc"

#define DOT_CELL DOT_BYTES
#define DOT_A_UNSIGNED 1
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_STEP(sum, a, b) dot_vnni(sum, a, b)
#define DOT_NAME(what) mica__dot_##what##_vnni
#include "kernels/matmul/gemm_dot_body.inc"

#define DOT_CELL DOT_BF16
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_STEP(sum, a, b) dot_bf16(sum, a, b)
#define DOT_NAME(what) mica__dot_##what##_dot_bf16
#include "kernels/matmul/gemm_dot_body.inc"

#define DOT_CELL DOT_BYTES
#define DOT_PAIRED
#define DOT_A_UNSIGNED 0
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_STEP(sum, a, b) mmla(sum, a, b, false)
#define DOT_NAME(what) mica__dot_##what##_paired_i8
#include "kernels/matmul/gemm_dot_body.inc"

#define DOT_CELL DOT_BF16
#define DOT_PAIRED
#define DOT_MR 8
#define DOT_VECS 2
#define DOT_CELLS 128
#define DOT_STEP(sum, a, b) mmla(sum, a, b, true)
#define DOT_NAME(what) mica__dot_##what##_paired_bf16
#include "kernels/matmul/gemm_dot_body.inc"

VARIANT(wide_winograd, MICA__DOT_INT, 8, 128, 8);
VARIANT(wide_half, MICA__DOT_HALF, 8, 128, 4);
VARIANT(vnni, MICA__DOT_INT, 8, 128, 16);
VARIANT(dot_bf16, MICA__DOT_BF16, 8, 128, 8);
VARIANT(paired_i8, MICA__DOT_INT, 8, 128, 16);
VARIANT(paired_bf16, MICA__DOT_BF16, 8, 128, 8);

static const int64_t emulated_shapes[][3] = {{1, 1, 1}, {9, 20, 33}, {16, 600, 32}, {3, 7, 70}};

TEST(integers_are_exact)
{
    const mica__dot_variant *const all[] = {&variant_wide_winograd, &variant_vnni, &variant_paired_i8};
    for (size_t v = 0; v < COUNT_OF(all); v++) {
        for (size_t s = 0; s < COUNT_OF(emulated_shapes); s++) check_int_variant(all[v], emulated_shapes[s]);
        check_int_extremes(all[v]);
    }
}

TEST(floats_are_close)
{
    const mica__dot_variant *const all[] = {&variant_wide_half, &variant_dot_bf16, &variant_paired_bf16};
    for (size_t v = 0; v < COUNT_OF(all); v++)
        for (size_t s = 0; s < COUNT_OF(emulated_shapes); s++) check_float_variant(all[v], emulated_shapes[s]);
}
