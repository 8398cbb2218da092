/* Block formats against the bytes and values of other programs, and against themselves: every code
 * survives a round trip, every row has the correct dot product.
 *
 * runs: arm, check */
#include "quant/quant.h"

#include <math.h>

#include "quant_golden.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Returns whether the format can be read; some are known by their size only. */
static bool readable(const mica__quant *q) { return q->pack || q->rows > 1; }

/* ---------------------------------------------------------------- golden --- */

static float golden_t(int i) { return (float)((i * i + 3 * i + (i >> 3)) % 3 - 1); }

static void packing_line(const char *line)
{
    static const struct {
        const char *head;
        mica__quant_id id;
        int n;
    } rows[] = {{"TQ1_0", MICA__QUANT_TQ1_0, 256},
                {"TQ2_0", MICA__QUANT_TQ2_0, 256},
                {"I2_S", MICA__QUANT_I2_S, 128},
                {"Q2_0", MICA__QUANT_Q2_0, 64},
                {"PTQ1_0", MICA__QUANT_PTQ1_0, 128}};
    for (size_t r = 0; r < COUNT(rows); r++) {
        if (strncmp(line, rows[r].head, strlen(rows[r].head)) != 0) continue;
        test_case("%s", rows[r].head);
        uint8_t want[256], got[256];
        const char *text = strchr(line, ':') + 1;
        const size_t n_want = golden_hex(&text, want, sizeof want);
        float x[256], back[256];
        for (int i = 0; i < rows[r].n; i++) x[i] = golden_t(i) * 0.5f;
        size_t n_got;
        CHECK_INT(mica__quant_nbytes(rows[r].id, 1, (int64_t[]){rows[r].n}, &n_got), MICA__FIT_OK);
        CHECK_INT(n_got, n_want);
        CHECK_INT(mica__quant_pack(rows[r].id, x, 1, rows[r].n, got), MICA_OK);
        EXPECT(memcmp(got, want, n_got) == 0);
        mica__quant_unpack_row(&(mica__quant_matrix){.id = rows[r].id, .rows = 1, .cols = rows[r].n, .data = want}, 0,
                               back);
        for (int i = 0; i < rows[r].n; i++) EXPECT_CLOSE(back[i], x[i], 0, 0);
    }
}

TEST(ternary_packings_have_the_golden_bytes)
{
    if (!golden_lines("tests/golden/ternary_packings.txt", packing_line)) SKIP("not run from the root of the project");
}

static void unpack_line(const char *line)
{
    static uint8_t blocks[2048];
    static float want[512], got[512];
    char name[16];
    if (sscanf(line, "unpack %15s", name) != 1) return;
    test_case("unpack %s", name);
    const mica__quant *q = mica__quant_get(mica__quant_find(name));
    CHECK(q && q->unpack);
    const char *text = strchr(line, ':') + 1;
    const size_t n = golden_hex(&text, blocks, sizeof blocks) / q->bytes;
    CHECK_INT(golden_hex(&text, (uint8_t *)want, sizeof want), n * q->block * 4);
    q->unpack(blocks, got, n);
    /* gguf sometimes multiplies in another order: one rounding more or less */
    for (size_t i = 0; i < n * q->block; i++) EXPECT_CLOSE(got[i], want[i], 2e-7, 1e-8);
}

static void pack_line(const char *line)
{
    static uint8_t want[2048], got[2048];
    static float x[512];
    char name[16];
    unsigned seed;
    int n;
    if (sscanf(line, "pack %15s %u %d", name, &seed, &n) != 3) return;
    test_case("pack %s", name);
    const mica__quant_id id = mica__quant_find(name);
    const char *text = strchr(line, ':') + 1;
    const size_t n_want = golden_hex(&text, want, sizeof want);
    golden_stream(seed, x, (size_t)n);
    CHECK_INT(mica__quant_pack(id, x, 1, n, got), MICA_OK);
    size_t differ = 0;
    for (size_t i = 0; i < n_want; i++) differ += got[i] != want[i];
    EXPECT_MSG(differ == 0, "%d of %d bytes differ", (int)differ, (int)n_want);
}

static void affine_line(const char *line)
{
    static uint8_t want[512], got[512];
    static float x[256], scales[8], biases[8], want_scales[8], want_biases[8], back[256];
    int bits, group, n;
    unsigned seed;
    if (sscanf(line, "affine %d %d %u %d", &bits, &group, &seed, &n) != 4) return;
    test_case("affine %d bits, group %d", bits, group);
    const char *text = strchr(line, ':') + 1;
    const size_t n_want = golden_hex(&text, want, sizeof want);
    const size_t groups = golden_hex(&text, (uint8_t *)want_scales, sizeof want_scales) / 4;
    golden_hex(&text, (uint8_t *)want_biases, sizeof want_biases);
    golden_stream(seed, x, (size_t)n);
    mica__pack_affine(x, 2, n / 2, bits, group, got, scales, biases);
    CHECK_INT(groups, n / group);
    for (size_t g = 0; g < groups; g++) {
        EXPECT_CLOSE(scales[g], want_scales[g], 0, 0);
        EXPECT_CLOSE(biases[g], want_biases[g], 0, 0);
    }
    EXPECT(memcmp(got, want, n_want) == 0);
    const mica__quant_matrix m = {.id = MICA__QUANT_AFFINE,
                                  .rows = 2,
                                  .cols = n / 2,
                                  .data = want,
                                  .bits = bits,
                                  .group = group,
                                  .scales = want_scales,
                                  .biases = want_biases,
                                  .scale_type = MICA__QUANT_F32};
    CHECK_INT(mica__quant_matrix_check(&m, "test"), MICA_OK);
    EXPECT_INT(mica__quant_matrix_nbytes(&m), n_want);
    for (int r = 0; r < 2; r++) mica__quant_unpack_row(&m, r, back + r * n / 2);
    /* within one step: the end of the range is not exact */
    for (int i = 0; i < n; i++) EXPECT_CLOSE(back[i], x[i], 0, fabs((double)scales[i / group]) + 1e-6);
}

TEST(blocks_of_gguf_and_mlx)
{
    if (!golden_lines("tests/golden/quant.txt", unpack_line)) SKIP("not run from the root of the project");
    golden_lines("tests/golden/quant.txt", pack_line);
    golden_lines("tests/golden/quant.txt", affine_line);
}

/* ----------------------------------------------------------- every code ---- */

/* Every value of a code, at every position of a block that also has the ends of the
 * range, is packed to the same bytes again. */
static void identity(const char *name, int low, int high, float d)
{
    test_case("%s", name);
    const mica__quant_id id = mica__quant_find(name);
    const mica__quant *q = mica__quant_get(id);
    CHECK(q != NULL);
    for (int code = low; code <= high; code++)
        for (int at = 0; at < q->block; at += q->block > 128 ? 11 : 1) {
            float x[256], back[256];
            uint8_t first[512], again[512];
            /* both ends in each 16 elements: some formats have a scale for each 16 */
            for (int i = 0; i < q->block; i++)
                x[i] = d * (float)(i % 16 == (at + 1) % 16 ? low : i % 16 == (at + 2) % 16 ? high : i == at ? code : 0);
            CHECK_INT(mica__quant_pack(id, x, 1, q->block, first), MICA_OK);
            mica__quant_unpack_row(&(mica__quant_matrix){.id = id, .rows = 1, .cols = q->block, .data = first}, 0,
                                   back);
            for (int i = 0; i < q->block; i++) CHECK_CLOSE(back[i], x[i], 1e-6, 0);
            CHECK_INT(mica__quant_pack(id, back, 1, q->block, again), MICA_OK);
            CHECK(memcmp(first, again, q->bytes) == 0);
        }
}

TEST(every_code_comes_back)
{
    identity("Q4_0", -8, 7, 0.25f);
    identity("Q5_0", -16, 15, 0.25f);
    identity("Q8_0", -127, 127, 0.25f);
    identity("Q4_1", 0, 15, 0.25f);
    identity("Q4_1", -8, 7, 0.5f);
    identity("Q5_1", -16, 15, 0.5f);
    identity("Q4_K", -5, 10, 63.0f / 64); /* its scales are 63rds */
    identity("Q5_K", -10, 21, 63.0f / 64);
    identity("Q6_K", -32, 31, 0.5f);
    identity("TQ1_0", -1, 1, 0.75f);
    identity("TQ2_0", -1, 1, 0.75f);
    identity("PTQ1_0", -1, 1, 0.75f);
    identity("Q2_0", -1, 1, 0.75f);
    identity("PQ2_0", -1, 1, 0.75f);
    identity("I2_S", -1, 1, 0.3f);
    identity("I2_S_ARM", -1, 1, 0.3f);
}

TEST(every_byte_of_trits)
{
    /* 3^5 bytes represent all groups of five trits, each in one way */
    bool seen[256] = {false};
    for (int v = 0; v < 243; v++) {
        float x[256] = {0};
        for (int n = 0, w = v; n < 5; n++, w /= 3) x[n * 32] = (float)(w % 3 - 1);
        x[255] = 1; /* the scale */
        uint8_t b[54];
        mica__pack_tq1_0(x, b, 1);
        EXPECT(!seen[b[0]]);
        seen[b[0]] = true;
        int8_t codes[256];
        float d;
        mica__codes_tq1_0(b, codes, &d, 1);
        EXPECT_CLOSE(d, 1, 0, 0);
        for (int i = 0; i < 256; i++) EXPECT_INT(codes[i], (int)x[i]);
    }
}

TEST(every_byte_of_two_bits)
{
    static const mica__quant_id ids[] = {MICA__QUANT_TQ2_0, MICA__QUANT_I2_S, MICA__QUANT_I2_S_ARM, MICA__QUANT_Q2_0};
    for (size_t f = 0; f < COUNT(ids); f++) {
        test_case("%s", mica__quant_name(ids[f]));
        const mica__quant *q = mica__quant_get(ids[f]);
        const int at = q->scale[0] == 0 ? 2 : 0; /* offset of the codes */
        for (int v = 0; v < 256; v++) {
            uint8_t b[80] = {0}, again[80] = {0};
            b[at + 3] = (uint8_t)v;
            int8_t codes[256];
            float d, x[256];
            q->codes(b, codes, &d, 1);
            int digits = 0, count = 0;
            for (int i = 0; i < q->block; i++) {
                EXPECT(codes[i] >= -1 && codes[i] <= 2);
                digits += codes[i] == 2;
                count += codes[i] != -1;
                x[i] = (float)codes[i];
            }
            EXPECT_INT(count <= 4, true);
            const bool ternary = digits == 0;
            if (ids[f] != MICA__QUANT_Q2_0) EXPECT_INT(mica__quant_first_bad_block(ids[f], b, 1), ternary);
            if (!ternary) continue;
            q->pack(x, again, 1); /* the largest magnitude is 1, because there are codes of -1 */
            EXPECT(memcmp(again + at, b + at, q->block / 4u) == 0);
        }
    }
}

/* Converts all f16 values and compares with the conversion of single values. */
TEST(every_f16)
{
    static uint16_t half[65537];
    static float got[65537];
    for (size_t i = 0; i < 65537; i++) half[i] = (uint16_t)i;
    mica__unpack_f16(half, got, 65537);
    for (size_t i = 0; i < 65537; i++) {
        const float want = mica_f16_to_f32((uint16_t)i);
        CHECK_MSG(memcmp(&got[i], &want, 4) == 0, "%#x: %g, not %g", (unsigned)i, (double)got[i], (double)want);
    }
}

TEST(one_bit)
{
    uint8_t b[18] = {0x00, 0x38, 0xa5, 0x01};
    float x[128];
    mica__unpack_q1_0(b, x, 1);
    for (int i = 0; i < 128; i++) EXPECT_CLOSE(x[i], b[2 + i / 8] >> i % 8 & 1 ? 0.5 : -0.5, 0, 0);
    uint8_t again[18];
    mica__pack_q1_0(x, again, 1);
    EXPECT(memcmp(b, again, sizeof b) == 0);
    mica__unpack_q1_0_g32(b, x, 1);
    for (int i = 0; i < 32; i++) EXPECT_CLOSE(x[i], b[2 + i / 8] >> i % 8 & 1 ? 0.5 : -0.5, 0, 0);
    mica__pack_q1_0_g32(x, again, 1);
    EXPECT(memcmp(b, again, 6) == 0);
}

/* The two layouts of I2_S store elements at different positions. */
TEST(i2_s_layouts_differ)
{
    float x[128], wrong[128];
    for (int i = 0; i < 128; i++) x[i] = golden_t(i);
    uint8_t b[64];
    CHECK_INT(mica__quant_pack(MICA__QUANT_I2_S, x, 1, 128, b), MICA_OK);
    mica__quant_unpack_row(&(mica__quant_matrix){.id = MICA__QUANT_I2_S_ARM, .rows = 1, .cols = 128, .data = b}, 0,
                           wrong);
    int differ = 0;
    for (int i = 0; i < 128; i++) differ += wrong[i] != x[i];
    EXPECT(differ > 40);
    /* bits 7:6 of byte 0 are element 0, bits 5:4 element 32 (official) or 16 (ARM) */
    EXPECT_INT((int)x[32], (b[0] >> 4 & 3) - 1);
    EXPECT_CLOSE(wrong[16], (b[0] >> 4 & 3) - 1, 0, 0);
}

/* ------------------------------------------------------------- HF ternary -- */

TEST(hf_ternary_golden)
{
    static const int8_t w[8][4] = {{-1, 0, 0, -1},  {0, 0, -1, 0},   {1, 0, 1, 1},   {0, 1, 1, 0},
                                   {-1, -1, 1, -1}, {-1, 1, -1, -1}, {-1, 0, 0, -1}, {0, 0, -1, 0}};
    static const uint8_t want[2][4] = {{8, 69, 105, 8}, {69, 105, 8, 69}};
    uint8_t got[2][4];
    mica__pack_hf_ternary(&w[0][0], 8, 4, &got[0][0]);
    EXPECT(memcmp(got, want, sizeof want) == 0);
    const uint16_t scale = mica_bf16_from_f32(1.5f);
    for (int divides = 0; divides < 2; divides++) {
        const mica__quant_matrix m = {.id = MICA__QUANT_HF_TERNARY,
                                      .rows = 8,
                                      .cols = 4,
                                      .data = want,
                                      .scales = &scale,
                                      .scale_type = MICA__QUANT_BF16,
                                      .scale_divides = divides};
        CHECK_INT(mica__quant_matrix_check(&m, "test"), MICA_OK);
        EXPECT_INT(mica__quant_matrix_nbytes(&m), 8);
        for (int r = 0; r < 8; r++) {
            float row[4], scales[4];
            int8_t codes[4];
            int64_t step;
            mica__quant_unpack_row(&m, r, row);
            CHECK(mica__quant_codes_row(&m, r, codes, scales, &step));
            for (int c = 0; c < 4; c++) {
                EXPECT_INT(codes[c], w[r][c]);
                EXPECT_CLOSE(row[c], (double)w[r][c] * (divides ? 1 / 1.5 : 1.5), 1e-7, 0);
                EXPECT_CLOSE(scales[c / step], divides ? 1 / 1.5 : 1.5, 1e-7, 0);
            }
        }
    }
}

TEST(hf_ternary_rows_that_are_no_multiple_of_four)
{
    for (int rows = 1; rows < 12; rows++) {
        int8_t w[12 * 3], codes[3];
        uint8_t b[9 * 3];
        float one = 1, scales[3];
        int64_t step;
        for (int i = 0; i < rows * 3; i++) w[i] = (int8_t)golden_t(i + rows);
        mica__pack_hf_ternary(w, rows, 3, b);
        const mica__quant_matrix m = {.id = MICA__QUANT_HF_TERNARY,
                                      .rows = rows,
                                      .cols = 3,
                                      .data = b,
                                      .scales = &one,
                                      .scale_type = MICA__QUANT_F32};
        for (int r = 0; r < rows; r++) {
            CHECK(mica__quant_codes_row(&m, r, codes, scales, &step));
            EXPECT(memcmp(codes, w + r * 3, 3) == 0);
        }
    }
}

TEST(absmean)
{
    const float x[8] = {0.5f, -0.5f, 1.5f, -2.5f, 0.1f, 0, 1, -1.9f}; /* mean of sizes: 1 */
    int8_t codes[8];
    EXPECT_CLOSE(mica__ternary_absmean(x, 8, codes), 1, 1e-7, 0);
    /* a half goes to even, that is to 0 */
    static const int8_t want[8] = {0, 0, 1, -1, 0, 0, 1, -1};
    EXPECT(memcmp(codes, want, 8) == 0);
    const float tiny[2] = {1e-9f, -1e-9f};
    EXPECT_CLOSE(mica__ternary_absmean(tiny, 2, codes), 1e-5f, 0, 0);
    EXPECT(codes[0] == 0 && codes[1] == 0);
    EXPECT(isnan(mica__ternary_absmean((float[]){NAN, 1}, 2, codes)));
}

/* ---------------------------------------------------------------- panels --- */

/* An independent computation of the position of each element; rows and columns are not whole blocks. */
TEST(panels_bit_by_bit)
{
    enum { ROWS = 21, COLS = 43 };
    static float x[ROWS * COLS], back[COLS];
    static uint8_t t2[2 * 3 * 64 + 64], q8[2 * 2 * 576];
    size_t nbytes;
    for (int i = 0; i < ROWS * COLS; i++) x[i] = golden_t(i) * 0.75f;
    CHECK_INT(mica__quant_nbytes(MICA__QUANT_MICA_T2, 2, (int64_t[]){ROWS, COLS}, &nbytes), MICA__FIT_OK);
    CHECK_INT(nbytes, sizeof t2);
    CHECK_INT(mica__quant_nbytes(MICA__QUANT_MICA_Q8, 2, (int64_t[]){ROWS, COLS}, &nbytes), MICA__FIT_OK);
    CHECK_INT(nbytes, sizeof q8);
    memset(t2, 0xee, sizeof t2);
    CHECK_INT(mica__quant_pack(MICA__QUANT_MICA_T2, x, ROWS, COLS, t2), MICA_OK);
    CHECK_INT(mica__quant_first_bad_block(MICA__QUANT_MICA_T2, t2, 6), 6);
    for (int r = 0; r < 32; r++)
        for (int c = 0; c < 48; c++) {
            const int byte = t2[(r / 16 * 3 + c / 16) * 64 + 4 * (r % 16) + c % 4];
            EXPECT_INT(byte >> 2 * (c % 16 / 4) & 3, r < ROWS && c < COLS ? (int)(x[r * COLS + c] / 0.75f) + 1 : 0);
        }
    float scale;
    memcpy(&scale, t2 + 6 * 64, 4);
    EXPECT_CLOSE(scale, 0.75, 0, 0);
    for (size_t i = 6 * 64 + 4; i < sizeof t2; i++) EXPECT_INT(t2[i], 0);
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)((i * 37 % 255 - 127) * (i % 5 + 1));
    CHECK_INT(mica__quant_pack(MICA__QUANT_MICA_Q8, x, ROWS, COLS, q8), MICA_OK);
    for (int r = 0; r < ROWS; r++) {
        const mica__quant_matrix m = {.id = MICA__QUANT_MICA_Q8, .rows = ROWS, .cols = COLS, .data = q8};
        mica__quant_unpack_row(&m, r, back);
        for (int c = 0; c < COLS; c++) {
            const uint8_t *b = q8 + (r / 16 * 2 + c / 32) * 576;
            memcpy(&scale, b + 512 + 4 * (r % 16), 4);
            const int code = (int8_t)b[c % 32 / 2 * 32 + 2 * (r % 16) + c % 2];
            EXPECT_CLOSE(back[c], (double)code * (double)scale, 1e-7, 0);
            EXPECT_CLOSE(back[c], x[r * COLS + c], 0, (double)scale * 0.5001);
        }
    }
    t2[70] = 0x0c; /* a field of 3 */
    EXPECT_INT(mica__quant_first_bad_block(MICA__QUANT_MICA_T2, t2, 6), 1);
    memcpy(q8 + 576 + 512 + 8, &(float){NAN}, 4);
    EXPECT_INT(mica__quant_first_bad_block(MICA__QUANT_MICA_Q8, q8, 4), 1);
}

/* --------------------------------------------------------- dot and error --- */

/* The error bound of a format: half a step between codes, plus the rounding of its scale. */
static double bound_of(const mica__quant *q, double top)
{
    static const struct {
        const char *name;
        double steps;
    } rows[] = {{"Q4_0", 16}, {"Q4_1", 15}, {"Q5_0", 32},  {"Q5_1", 31},  {"Q8_0", 254}, {"MICA_Q8", 254}, {"Q4_K", 15},
                {"Q5_K", 31}, {"Q6_K", 63}, {"F16", 2048}, {"BF16", 256}, {"F32", 1e30}, {"F64", 1e30}};
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(q->name, rows[i].name) == 0) return top * (1.4 * 2 / rows[i].steps);
    return 1.01 * top;
}

TEST(every_format_packs_and_has_a_dot)
{
    static float x[3 * 512], w[512], unpacked[512];
    static uint8_t packed[3 * 512 * 8 + 32];
    golden_stream(7, x, 3 * 512);
    golden_stream(8, w, 512);
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        test_case("%s", q->name);
        const mica__quant_matrix m = {.id = (mica__quant_id)id, .rows = 3, .cols = 512, .data = packed};
        if (!readable(q)) {
            EXPECT_INT(mica__quant_matrix_check(&m, "tensor 'a'"), MICA_ERR_UNSUPPORTED);
            EXPECT(strstr(mica_last_error(), q->name) && strstr(mica_last_error(), "tensor 'a'"));
            continue;
        }
        size_t nbytes;
        CHECK_INT(mica__quant_nbytes(m.id, 2, (int64_t[]){3, 512}, &nbytes), MICA__FIT_OK);
        memset(packed, 0xee, sizeof packed);
        CHECK_INT(mica__quant_pack(m.id, x, 3, 512, packed), MICA_OK);
        EXPECT_MSG(packed[nbytes] == 0xee, "wrote past the end");
        const size_t blocks = (nbytes - q->tail) / q->bytes;
        CHECK_INT(mica__quant_first_bad_block(m.id, packed, blocks), blocks);
        for (int r = 0; r < 3; r++) {
            mica__quant_unpack_row(&m, r, unpacked);
            double sum = 0;
            for (int c = 0; c < 512; c++) {
                EXPECT_CLOSE(unpacked[c], x[r * 512 + c], 0, bound_of(q, 8));
                sum += (double)unpacked[c] * (double)w[c];
            }
            EXPECT_CLOSE(mica__quant_dot(&m, r, w), sum, 1e-12, 1e-12);
            int8_t codes[512];
            float scales[16];
            int64_t step;
            if (!mica__quant_codes_row(&m, r, codes, scales, &step)) continue;
            double by_codes = 0;
            for (int c = 0; c < 512; c++) by_codes += codes[c] * (double)scales[c / step] * (double)w[c];
            EXPECT_CLOSE(by_codes, sum, 1e-5, 1e-4);
        }
    }
}

/* The search of the K formats is never worse than a plain grid: Q4_1 has the same codes
 * and exact minima. */
TEST(k_formats_beat_the_plain_grid)
{
    static float x[256 * 64], back[256 * 64];
    static uint8_t packed[256 * 64];
    golden_stream(3, x, COUNT(x));
    for (size_t i = 0; i < COUNT(x); i++) x[i] = x[i] * x[i] * x[i] / 64; /* many small values, as in weights */
    double error[2] = {0};
    static const mica__quant_id ids[2] = {MICA__QUANT_Q4_K, MICA__QUANT_Q4_1};
    for (int f = 0; f < 2; f++) {
        const mica__quant *q = mica__quant_get(ids[f]);
        q->pack(x, packed, COUNT(x) / q->block);
        q->unpack(packed, back, COUNT(x) / q->block);
        for (size_t i = 0; i < COUNT(x); i++) error[f] += pow((double)(x[i] - back[i]), 2);
    }
    EXPECT_MSG(error[0] < error[1], "Q4_K %g, Q4_1 %g", error[0], error[1]);
}

TEST(all_zeros)
{
    static const float zero[512];
    static uint8_t packed[512 * 20];
    float back[512];
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        if (!readable(q)) continue;
        test_case("%s", q->name);
        CHECK_INT(mica__quant_pack((mica__quant_id)id, zero, 1, 512, packed), MICA_OK);
        mica__quant_unpack_row(&(mica__quant_matrix){.id = (mica__quant_id)id, .rows = 1, .cols = 512, .data = packed},
                               0, back);
        for (int i = 0; i < 512; i++) EXPECT_CLOSE(back[i], 0, 0, 0);
    }
}

/* --------------------------------------------------------------- refusals -- */

TEST(values_that_cannot_be_packed)
{
    float x[256] = {1, 2};
    uint8_t packed[256 * 20];
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        if (!readable(q)) continue;
        test_case("%s", q->name);
        x[77] = NAN;
        if (q->dtype >= 0) {
            float back[256];
            CHECK_INT(mica__quant_pack((mica__quant_id)id, x, 1, 128, packed), MICA_OK);
            q->unpack(packed, back, 128);
            EXPECT(isnan(back[77]));
            continue;
        }
        EXPECT_INT(mica__quant_pack((mica__quant_id)id, x, 1, 256, packed), MICA_ERR_ARGUMENT);
        EXPECT(strstr(mica_last_error(), "element 77") && strstr(mica_last_error(), q->name));
        x[77] = -INFINITY;
        EXPECT_INT(mica__quant_pack((mica__quant_id)id, x, 1, 256, packed), MICA_ERR_ARGUMENT);
        x[77] = 3e38f; /* any f16 scale overflows */
        if (!q->tail && q->rows == 1) {
            EXPECT_INT(mica__quant_pack((mica__quant_id)id, x, 1, 256, packed), MICA_ERR_ARGUMENT);
            EXPECT(strstr(mica_last_error(), "overflows f16"));
        }
        x[77] = 0;
    }
}

TEST(sizes)
{
    static const struct {
        const char *name;
        int ndim;
        int64_t shape[4];
        mica__quant_fit fit;
        size_t nbytes;
    } rows[] = {
        {"F32", 0, {0}, MICA__FIT_OK, 4},
        {"F32", 2, {3, 5}, MICA__FIT_OK, 60},
        {"F32", 2, {0, INT64_MAX}, MICA__FIT_OK, 0},
        {"F32", 3, {INT64_MAX, INT64_MAX, 0}, MICA__FIT_OK, 0},
        {"F32", 2, {INT64_MAX, 2}, MICA__FIT_SIZE, 0},
        {"F32", 2, {(int64_t)1 << 32, (int64_t)1 << 32}, MICA__FIT_SIZE, 0},
        {"F32", 1, {(int64_t)1 << 62}, MICA__FIT_SIZE, 0},
        {"F32", 1, {-1}, MICA__FIT_SIZE, 0},
        {"U8", 1, {INT64_MAX}, MICA__FIT_OK, INT64_MAX},
        {"F4", 2, {3, 3}, MICA__FIT_ROW, 0},
        {"F4", 2, {2, 3}, MICA__FIT_OK, 3},
        {"F6_E2M3", 1, {8}, MICA__FIT_OK, 6},
        {"MICA_T2", 2, {1, 1}, MICA__FIT_OK, 128},
        {"MICA_T2", 2, {17, 33}, MICA__FIT_OK, 2 * 3 * 64 + 64},
        {"MICA_T2", 3, {2, 8, 16}, MICA__FIT_OK, 128},
        {"MICA_T2", 2, {0, 5}, MICA__FIT_OK, 64},
        {"MICA_T2", 2, {INT64_MAX, 1}, MICA__FIT_SIZE, 0},
        {"MICA_T2", 2, {1, INT64_MAX}, MICA__FIT_SIZE, 0},
        {"MICA_Q8", 1, {64}, MICA__FIT_OK, 1152},
        {"F6_E3M2", 1, {6}, MICA__FIT_ROW, 0},
        {"Q4_K", 2, {2, 256}, MICA__FIT_OK, 288},
        {"Q4_K", 2, {256, 2}, MICA__FIT_ROW, 0},
        {"Q4_K", 0, {0}, MICA__FIT_ROW, 0},
        {"I2_S", 2, {2560, 6912}, MICA__FIT_OK, 2560 * 6912 / 4 + 32},
        {"I2_S", 1, {64}, MICA__FIT_ROW, 0},
        {"I2_S_ARM", 1, {64}, MICA__FIT_OK, 48},
        {"Q8_0", 2, {INT64_MAX / 32, 32}, MICA__FIT_SIZE, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_case("%s, row %d", rows[i].name, (int)i);
        size_t nbytes;
        EXPECT_INT(mica__quant_nbytes(mica__quant_find(rows[i].name), rows[i].ndim, rows[i].shape, &nbytes),
                   rows[i].fit);
        if (rows[i].fit == MICA__FIT_OK) EXPECT_INT(nbytes, rows[i].nbytes);
    }
}

TEST(matrices_that_cannot_be_read)
{
    float s = 1;
    const mica__quant_matrix good = {.id = MICA__QUANT_AFFINE,
                                     .rows = 1,
                                     .cols = 64,
                                     .data = &s,
                                     .scales = &s,
                                     .biases = &s,
                                     .scale_type = MICA__QUANT_F32,
                                     .bits = 4,
                                     .group = 64};
    EXPECT_INT(mica__quant_matrix_check(&good, "w"), MICA_OK);
    mica__quant_matrix m = good;
    m.bits = 7;
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_UNSUPPORTED);
    m = good, m.group = 63;
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_UNSUPPORTED);
    m = good, m.cols = 65;
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_ARGUMENT);
    m = good, m.biases = NULL;
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_ARGUMENT);
    m = good, m.scale_type = MICA__QUANT_U8;
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_ARGUMENT);
    m = good, m.rows = INT64_MAX;
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_SIZE);
    m = good, m.data = NULL;
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_ARGUMENT);
    m = (mica__quant_matrix){.id = MICA__QUANT_Q4_K, .rows = 1, .cols = 172, .data = &s};
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_ARGUMENT);
    EXPECT_STR(mica_last_error(), "w: rows of 172 are not a multiple of the 256 elements of a Q4_K block");
    m.id = MICA__QUANT_I8;
    EXPECT_INT(mica__quant_matrix_check(&m, "w"), MICA_ERR_UNSUPPORTED);
}

/* The public view of the table. */
TEST(format_info)
{
    mica_format_info f = {.struct_size = sizeof f};
    EXPECT_INT(mica_format_count(), MICA__QUANT_COUNT + 2);
    EXPECT(!mica_format_at(mica_format_count(), &f) && !mica_format_find("Q9_9", &f) && !mica_format_find(NULL, &f));
    for (size_t i = 0; mica_format_at(i, &f); i++) {
        test_case("%s", f.name);
        mica_format_info g = {.struct_size = sizeof g}, next = {.struct_size = sizeof next};
        EXPECT_STR(mica__quant_name((mica__quant_id)i), f.name);
        EXPECT(mica_format_find(f.name, &g) && strcmp(g.name, f.name) == 0);
        EXPECT(f.about && *f.about);
        EXPECT(!f.output || f.packable);
        EXPECT(!f.packable || f.readable);
        EXPECT(!f.fallback || (mica_format_find(f.fallback, &next) && next.packable));
        EXPECT(f.kind == MICA_FORMAT_APART || f.readable == (mica_quant_nbytes(f.name, 16, 256) > 0));
        EXPECT(f.kind == MICA_FORMAT_APART || f.kind == MICA_FORMAT_PLAIN || f.gguf_type >= 0);
        if (i < MICA__QUANT_COUNT) EXPECT_INT(f.ternary && f.code_bits != 1, f.ternary);
    }
    CHECK(mica_format_find("q4_k", &f));
    EXPECT_STR(f.name, "Q4_K");
    EXPECT(f.kind == MICA_FORMAT_BLOCKS && f.readable && f.packable && !f.ternary && !f.one_scale);
    EXPECT_CLOSE(f.bits_per_weight, 4.5, 0, 0);
    EXPECT_INT(f.block_elements, 256);
    EXPECT_INT(f.block_bytes, 144);
    EXPECT_INT(f.gguf_type, 12);
    EXPECT_INT(f.gguf_file_type, 14);
    EXPECT_STR(f.fallback, "Q4_1");
    CHECK(mica_format_find("MICA_T2", &f));
    EXPECT(f.kind == MICA_FORMAT_PANELS && f.ternary && f.one_scale && f.block_rows == 16 && f.tail_bytes == 64);
    EXPECT_CLOSE(f.bits_per_weight, 2, 0, 0);
    CHECK(mica_format_find("f16", &f));
    EXPECT(f.kind == MICA_FORMAT_PLAIN && f.dtype == MICA_F16 && f.safetensors && f.gguf_type == 1);
}

TEST(lookups)
{
    EXPECT_INT(mica__quant_find_ggml(36, 0), MICA__QUANT_I2_S);
    EXPECT_INT(mica__quant_find_ggml(36, 1), MICA__QUANT_I2_S_ARM);
    EXPECT_INT(mica__quant_find_ggml(36, 2), MICA__QUANT_COUNT);
    EXPECT_INT(mica__quant_find_ggml(40, 0), MICA__QUANT_NVFP4);
    EXPECT_INT(mica__quant_find_ggml(40, 1), MICA__QUANT_Q1_0_G32);
    EXPECT_INT(mica__quant_find_ggml(42, 0), MICA__QUANT_Q2_0);
    EXPECT_INT(mica__quant_find_ggml(42, 1), MICA__QUANT_PQ2_0);
    EXPECT_INT(mica__quant_find_ggml(42, 2), MICA__QUANT_COUNT);
    EXPECT_INT(mica__quant_find_ggml(142, 0), MICA__QUANT_PQ2_0);
    EXPECT_INT(mica__quant_find_ggml(4, 0), MICA__QUANT_COUNT);
    EXPECT_INT(mica__quant_find_ggml(UINT32_MAX, 0), MICA__QUANT_COUNT);
    EXPECT_INT(mica__quant_find("nothing"), MICA__QUANT_COUNT);
    EXPECT_INT(mica__quant_find_safetensors("BF16", 4), MICA__QUANT_BF16);
    EXPECT_INT(mica__quant_find_safetensors("BF16", 3), MICA__QUANT_COUNT);
    EXPECT_INT(mica__quant_of_dtype(MICA_U16), MICA__QUANT_U16);
    EXPECT(mica__quant_get(MICA__QUANT_COUNT) == NULL);
    EXPECT_STR(mica__quant_name(MICA__QUANT_AFFINE), "AFFINE");
    EXPECT_STR(mica__quant_name(MICA__QUANT_HF_TERNARY), "HF_TERNARY");
    for (int id = 0; id < MICA__QUANT_COUNT; id++) {
        const mica__quant *q = mica__quant_get((mica__quant_id)id);
        EXPECT_INT(mica__quant_find(q->name), id);
        EXPECT((q->pack == NULL) == (q->unpack == NULL));
        EXPECT(q->block <= MICA__QUANT_BLOCK_MAX);
        if (q->dtype >= 0) EXPECT_INT(mica_dtype_size((mica_dtype)q->dtype), q->bytes);
    }
}
