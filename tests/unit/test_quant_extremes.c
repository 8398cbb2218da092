/* Packing of weights at the ends of the f32 range: subnormal, tiny, huge, infinite, NaN.
 *
 * The reciprocal of a subnormal scale is infinite, and an infinite value has no integer code. Run this program with
 * SANITIZE=undefined,float-cast-overflow too: a wrong conversion may give the expected code by chance. */
#include "quant/quant.h"

#include <math.h>

#include "quant_golden.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { COLS = 512, ROWS = 17 };

static float weights[ROWS * COLS], back[COLS];
static uint8_t packed[ROWS * COLS * 20];

static bool can_pack(const mica__quant *q) { return q->dtype < 0 && (q->pack || q->rows > 1); }
/* Its scales are f32: values as small as f32 has can be stored. */
static bool wide_scale(const mica__quant *q) { return q->tail || q->rows > 1; }

static mica_status pack(int id) { return mica__quant_pack((mica__quant_id)id, weights, ROWS, COLS, packed); }

static void unpack(int id, int row)
{
    const mica__quant_matrix m = {.id = (mica__quant_id)id, .rows = ROWS, .cols = COLS, .data = packed};
    mica__quant_unpack_row(&m, row, back);
}

/* From below the least subnormal of f32 to above the least f16. */
static const float tiny[] = {0x1p-149f,        0x1p-148f, 3e-43f,    1e-40f,           0x1p-129f, 0x1p-128f,
                             0x1.000008p-128f, 0x1p-127f, 0x1p-126f, 0x1.fffffep-122f, 0x1p-121f, 0x1p-118f,
                             1e-30f,           1e-12f,    0x1p-26f,  0x1p-25f,         0x1p-24f,  0x1p-18f};

TEST(tiny_weights)
{
    golden_stream(5, weights, COUNT(weights));
    static float unit[COUNT(weights)];
    memcpy(unit, weights, sizeof unit);
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        if (!can_pack(q)) continue;
        for (size_t t = 0; t < COUNT(tiny); t++) {
            test_case("%s, weights up to %g", q->name, (double)tiny[t]);
            float top = 0;
            for (size_t i = 0; i < COUNT(weights); i++) {
                weights[i] = unit[i] / 8 * tiny[t];
                top = fmaxf(top, fabsf(weights[i]));
            }
            CHECK_INT(pack(id), MICA_OK);
            for (int row = 0; row < ROWS; row++) {
                unpack(id, row);
                /* No value leaves the range by more than a step of f16, which K formats multiply by 63 times 31. */
                for (int i = 0; i < COLS; i++)
                    EXPECT_CLOSE(back[i], weights[row * COLS + i], 0,
                                 1.01 * (double)top + (wide_scale(q) ? 0 : 0x1p-13));
            }
        }
    }
}

/* Blocks of tiny weights next to ordinary blocks: the tiny blocks become zeros, the others do not change. */
TEST(tiny_blocks_among_ordinary_ones)
{
    static uint8_t alone[COUNT(packed)];
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        if (!can_pack(q) || wide_scale(q)) continue;
        test_case("%s", q->name);
        golden_stream(6, weights, COUNT(weights));
        for (size_t i = 0; i < COUNT(weights); i++)
            if (i / 256 % 2) weights[i] *= 1e-41f;
        CHECK_INT(pack(id), MICA_OK);
        for (int row = 0; row < ROWS; row++) {
            unpack(id, row);
            for (int i = 256; i < COLS; i++) EXPECT_CLOSE(back[i], 0, 0, 0);
        }
        memcpy(alone, packed, sizeof alone);
        for (size_t i = 0; i < COUNT(weights); i++)
            if (i / 256 % 2) weights[i] = 0;
        CHECK_INT(pack(id), MICA_OK);
        const size_t half = (size_t)(256 / q->block * q->bytes);
        for (size_t at = 0; at < ROWS * 2 * half; at += 2 * half) EXPECT(memcmp(packed + at, alone + at, half) == 0);
    }
}

/* An f32 scale can represent them: ternary weights are restored exactly, 8-bit weights within half a step. */
TEST(subnormal_scales_of_f32)
{
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        if (!can_pack(q) || !wide_scale(q)) continue;
        for (size_t t = 0; t < COUNT(tiny); t++) {
            test_case("%s, weights of %g", q->name, (double)tiny[t]);
            for (size_t i = 0; i < COUNT(weights); i++) weights[i] = (float)((int)(i * i + i / 8) % 3 - 1) * tiny[t];
            CHECK_INT(pack(id), MICA_OK);
            /* MICA_Q8 divides by 127 first: half a step, and the rounding of a subnormal scale times 127 */
            const double room = q->tail ? 0 : (double)tiny[t] / 250 + 64 * 0x1p-149;
            for (int row = 0; row < ROWS; row++) {
                unpack(id, row);
                for (int i = 0; i < COLS; i++) EXPECT_CLOSE(back[i], weights[row * COLS + i], 0, room);
            }
        }
    }
}

TEST(a_third_of_a_subnormal_scale_is_zero)
{
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        if (!q->tail) continue;
        test_case("%s", q->name);
        for (size_t i = 0; i < COUNT(weights); i++) weights[i] = i % 2 ? 1e-40f : 3e-41f;
        CHECK_INT(pack(id), MICA_OK);
        unpack(id, 1);
        for (int i = 0; i < COLS; i++) EXPECT_CLOSE(back[i], i % 2 ? 1e-40f : 0, 0, 0);
    }
}

TEST(huge_weights)
{
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        if (!can_pack(q)) continue;
        test_case("%s", q->name);
        for (size_t i = 0; i < COUNT(weights); i++) weights[i] = i % 3 == 0 ? 3.4e38f : i % 3 == 1 ? -3.4e38f : 1e-45f;
        if (!wide_scale(q)) {
            EXPECT_INT(pack(id), MICA_ERR_ARGUMENT);
            EXPECT(strstr(mica_last_error(), "overflows f16"));
            continue;
        }
        CHECK_INT(pack(id), MICA_OK);
        unpack(id, 3);
        for (int i = 0; i < COLS; i++) EXPECT_CLOSE(back[i], weights[3 * COLS + i], 1e-6, 0x1p-140);
    }
}

TEST(weights_that_are_not_finite)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        if (!can_pack(q)) continue;
        test_case("%s", q->name);
        golden_stream(5, weights, COUNT(weights));
        for (size_t k = 0; k < COUNT(odd); k++) {
            weights[1234] = odd[k];
            EXPECT_INT(pack(id), MICA_ERR_ARGUMENT);
            EXPECT(strstr(mica_last_error(), "element 1234") && strstr(mica_last_error(), q->name));
        }
    }
}

/* MLX's groups have no check of their own: what is not finite must not reach a conversion to an integer. */
TEST(affine_groups)
{
    static const float tops[] = {0x1p-149f, 1e-40f, 1e-20f, 1e-7f, 3.4e38f, INFINITY, NAN};
    static const int bits[] = {2, 3, 4, 5, 6, 8};
    static float scales[4], biases[4], x[2 * 64];
    static uint8_t codes[2 * 64];
    for (size_t t = 0; t < COUNT(tops); t++)
        for (size_t b = 0; b < COUNT(bits); b++) {
            test_case("%d bits, weights up to %g", bits[b], (double)tops[t]);
            golden_stream(9, x, COUNT(x));
            for (size_t i = 0; i < COUNT(x); i++) x[i] *= tops[t] / 8;
            mica__pack_affine(x, 2, 64, bits[b], 32, codes, scales, biases);
            if (!(tops[t] < 1e30f)) continue;
            for (int g = 0; g < 4; g++) EXPECT(isfinite(scales[g]) && isfinite(biases[g]));
        }
}
