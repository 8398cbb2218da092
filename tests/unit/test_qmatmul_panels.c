/* The kernels of ternary and byte panels: every variant that this CPU can run, and one with 64-byte
 * vectors that runs on every CPU, against plain sums.
 *
 * runs: arm, wide-vectors */
#include <math.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "kernel_scratch.h"
#include "test.h"

#define SIMD_BYTES 64
#include "simd/vector.h"

/* vpdpbusd, in C. */
SIMD_INLINE vu emulated_dot(vu sum, vu w, vu x)
{
    for (int l = 0; l < SIMD_LANES; l++)
        for (int i = 0; i < 4; i++)
            sum[l] += (uint32_t)((int32_t)(w[l] >> 8 * i & 255) * (int32_t)(int8_t)(x[l] >> 8 * i & 255));
    return sum;
}
#define TERNARY_DOT(sum, w, x) emulated_dot(sum, w, x)
#define TERNARY_GROUP 12
#define TERNARY_AHEAD 512
#define TERNARY_NAME(what) wide_ternary_##what
#include "kernels/qmatmul/ternary_body.inc"

#define P8_NAME(what) wide_p8_##what
#include "kernels/qmatmul/panel8_body.inc"

static const mica__ternary_variant wide_ternary = {.name = "64 bytes",
                                                   .group = 12,
                                                   .cell = 4,
                                                   .one = wide_ternary_one,
                                                   .many = wide_ternary_many,
                                                   .scale = wide_ternary_scale,
                                                   .finish = wide_ternary_finish,
                                                   .write = wide_ternary_write,
                                                   .round = wide_ternary_round,
                                                   .largest = wide_ternary_largest};
static const mica__p8_variant wide_p8 = {"64 bytes", 0, wide_p8_tile, wide_p8_round, wide_p8_dots};

static uint64_t state = 7;
static uint32_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}
static float uniform(void) { return (float)next() / 0x1p30f - 1; }

/* -------------------------------------------------------------- ternary ---- */

enum { UNITS = 40, COLS = UNITS * MICA__UNIT_COLS, TOKENS = 30 };

static uint8_t panel[2 * UNITS * MICA__UNIT_BYTES]; /* two of them */
static int8_t q[TOKENS][COLS + 256], cells[TOKENS * (COLS + 256)];

static int code_of(int row, int col)
{
    const int u = col / 16 + row / 16 * UNITS, f = col % 16 / 4, j = col % 4;
    return panel[u * MICA__UNIT_BYTES + 4 * (row % 16) + j] >> 2 * f & 3;
}

/* x in the layout of ternary.h. */
static void lay_out(int tokens, int group, int cell)
{
    for (int c = 0; c < COLS + 128; c += cell)
        for (int t = 0; t < tokens; t++) {
            const int first = t / group * group, g = tokens - first < group ? tokens - first : group;
            const int block = c / 256,
                      at = block * 256 * tokens + first * 256 + (c % 256 / cell * g + t - first) * cell;
            for (int i = 0; i < cell; i++) cells[at + i] = q[t][c + i];
        }
}

static void check_ternary(const mica__ternary_variant *v, int top, bool extreme)
{
    for (size_t i = 0; i < sizeof panel; i++) {
        panel[i] = 0;
        for (int f = 0; f < 4; f++)
            panel[i] = (uint8_t)(panel[i] | (extreme ? (unsigned)top : next() % (unsigned)(top + 1)) << 2 * f);
    }
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < COLS; c++) q[t][c] = (int8_t)(extreme ? (t % 2 ? -127 : 127) : (int)(next() % 255) - 127);
    static const int tokens[] = {1, 2, 3, 5, 6, 7, 12, 13, 30};
    for (size_t k = 0; k < sizeof tokens / sizeof *tokens; k++) {
        const int n = tokens[k];
        lay_out(n, v->group, v->cell);
        const mica__ternary_x x = {cells, n};
        /* from any unit within a block, or from a block's start to any end */
        for (int from = 0; from < UNITS; from += from < 18 ? 1 : 7) {
            const int left = UNITS - from, in_block = 16 - from % 16;
            const int units = from % 16 == 0 ? 1 + (int)(next() % (unsigned)left) : in_block < left ? in_block : left;
            const int panels = n == 1 ? 1 : 2;
            int32_t sums[2 * TOKENS * 16];
            if (n == 1) v->one(units, panel + from * MICA__UNIT_BYTES, q[0] + from * MICA__UNIT_COLS, top, sums);
            else v->many(from, units, panel, UNITS * MICA__UNIT_BYTES, panels, false, &x, top, sums);
            for (int t = 0; t < n; t++)
                for (int r = 0; r < 16 * panels; r++) {
                    int32_t want = 0;
                    const int32_t got = sums[(r / 16 * n + t) * 16 + r % 16];
                    for (int c = from * 16; c < (from + units) * 16; c++) want += code_of(r, c) * q[t][c];
                    CHECK_MSG(got == want, "%d tokens, units %d + %d, token %d, row %d: %d, not %d", n, from, units, t,
                              r, got, want);
                }
        }
    }
}

static void check_scale(const mica__ternary_variant *v)
{
    int32_t sums[3 * 16], less[3];
    float w[16], d[3], a[3], y[3 * 16];
    double out[3 * 16], want[3 * 16];
    for (int i = 0; i < 48; i++) sums[i] = (int32_t)(next() % 200000) - 100000, out[i] = want[i] = (double)uniform();
    for (int i = 0; i < 16; i++) w[i] = uniform();
    for (int t = 0; t < 3; t++) less[t] = (int32_t)(next() % 1000), d[t] = uniform(), a[t] = uniform();
    v->scale(3, sums, less, 1, w, d, 1, out);
    v->finish(3, out, a, y);
    float at_once[3 * 20];
    v->write(3, sums, less, w, d, 1, a, at_once, 20);
    for (int i = 0; i < 48; i++) {
        const double alone = (double)(sums[i] - less[i / 16]) * (double)w[i % 16] * (double)d[i / 16];
        EXPECT(at_once[i / 16 * 20 + i % 16] == (float)(alone * (double)a[i / 16]));
        want[i] += (double)(sums[i] - less[i / 16]) * (double)w[i % 16] * (double)d[i / 16];
        EXPECT(out[i] == want[i]);
        EXPECT(y[i] == (float)(want[i] * (double)a[i / 16]));
    }
}

static void check_round(const mica__ternary_variant *v)
{
    float x[192];
    int8_t codes[192];
    for (int i = 0; i < 192; i++) x[i] = uniform() * 3;
    x[100] = -3.5f;
    x[1] = 0.5f / 36, x[2] = 1.5f / 36, x[3] = -0.5f / 36; /* halves */
    EXPECT(v->largest(192, x) == 3.5f);
    v->round(192, x, 36, codes);
    for (int i = 0; i < 192; i++) EXPECT_INT(codes[i], (int)rintf(x[i] * 36));
    x[77] = NAN;
    EXPECT(isnan(v->largest(192, x)));
    x[77] = -INFINITY;
    EXPECT(isinf(v->largest(192, x)));
}

TEST(ternary_variants)
{
    size_t n;
    const mica__ternary_variant *list = mica__ternary_variants(&n);
    for (size_t i = 0; i <= n; i++) {
        const mica__ternary_variant *v = i < n ? &list[i] : &wide_ternary;
        test_case("%s", v->name);
        if (v->needs & ~mica__cpu_features()) {
            test_skip("this CPU lacks what %s needs", v->name);
            continue;
        }
        check_ternary(v, 2, false);
        check_ternary(v, 3, false);
        check_ternary(v, 2, true);
        check_ternary(v, 3, true);
        check_scale(v);
        check_round(v);
    }
}

TEST(ternary_packing)
{
    enum { ROWS = 21, WIDE = 100 };
    static int8_t codes[ROWS * WIDE], scratch[4096];
    static uint8_t hf[(ROWS + 3) / 4 * WIDE], to[7 * MICA__UNIT_BYTES];
    for (int i = 0; i < ROWS * WIDE; i++) codes[i] = (int8_t)((int)(next() % 3) - 1);
    mica__pack_hf_ternary(codes, ROWS, WIDE, hf);
    const float scale = 0.5f;
    const mica__quant_matrix m = {.id = MICA__QUANT_HF_TERNARY,
                                  .rows = ROWS,
                                  .cols = WIDE,
                                  .data = hf,
                                  .scales = &scale,
                                  .scale_type = MICA__QUANT_F32};
    CHECK(mica__ternary_scratch(WIDE) <= sizeof scratch && mica__ternary_units(WIDE) == 7);
    for (int p = 0; p < 2; p++) {
        float scales[16];
        mica__ternary_panel(&m, p, to, scales, scratch);
        for (int r = 0; r < 16; r++)
            for (int c = 0; c < 112; c++) {
                const int got = to[c / 16 * 64 + 4 * r + c % 4] >> 2 * (c % 16 / 4) & 3, row = 16 * p + r;
                EXPECT_INT(got, row < ROWS && c < WIDE ? codes[row * WIDE + c] + 1 : 0);
            }
        EXPECT(scales[0] == scale);
    }
}

/* ---------------------------------------------------------------- bytes ---- */

static void check_bytes(const mica__p8_variant *v, mica__quant_id id)
{
    enum { ROWS = 19, WIDE = 512, COUNT = 4 };
    static float values[ROWS * WIDE], back[WIDE], x[COUNT * WIDE], y[COUNT * 16];
    static char blocks[ROWS * WIDE * 2], records[WIDE / 32 * 1024], memory[COUNT][WIDE * 4];
    for (int i = 0; i < ROWS * WIDE; i++) values[i] = uniform();
    for (int i = 0; i < COUNT * WIDE; i++) x[i] = uniform();
    CHECK_INT(mica__quant_pack(id, values, ROWS, WIDE, blocks), MICA_OK);
    const mica__quant_matrix m = {.id = id, .rows = ROWS, .cols = WIDE, .data = blocks};
    const mica__p8_format f = mica__p8_format_of(id);
    mica__p8_x rows[COUNT];
    for (int t = 0; t < COUNT; t++) {
        rows[t] = mica__p8_x_at(memory[t], WIDE);
        v->round(WIDE, x + t * WIDE, 32767, 32, 0, false, &rows[t]);
    }
    for (int p = 0; p < 2; p++)
        for (int n = 1; n <= COUNT; n++) {
            mica__p8_pack(&m, p, records);
            v->tile(f, WIDE / 32, records, rows, n, y);
            for (int r = 0; r < 16; r++)
                for (int t = 0; t < n; t++) {
                    double want = 0, size = 0;
                    if (16 * p + r < ROWS) mica__quant_unpack_row(&m, 16 * p + r, back);
                    for (int c = 0; c < WIDE && 16 * p + r < ROWS; c++) {
                        const double xc = (double)rows[t].q[c] * (double)rows[t].d[c / 32];
                        CHECK_CLOSE(xc, x[t * WIDE + c], 0, 1.6e-5);
                        want += xc * (double)back[c];
                        size += fabs(xc * (double)back[c]);
                    }
                    CHECK_CLOSE(y[t * 16 + r], want, 0, 1e-6 * size);
                }
        }
}

/* Any numbers of rows and tokens; each sum computed alone has the same bits. */
static void check_dots(const mica__p8_variant *v)
{
    enum { N = 1472, ROWS = 8, COUNT = 8 };
    static float w[3][ROWS * N], x[COUNT * N], got[COUNT * ROWS];
    static uint16_t half[2][ROWS * N];
    for (int i = 0; i < ROWS * N; i++) {
        w[0][i] = uniform();
        half[0][i] = mica_f16_from_f32(w[0][i]);
        half[1][i] = mica_bf16_from_f32(w[0][i]);
        w[1][i] = mica_f16_to_f32(half[0][i]);
        w[2][i] = mica_bf16_to_f32(half[1][i]);
    }
    for (int i = 0; i < COUNT * N; i++) x[i] = uniform();
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16};
    for (int f = 0; f < 3; f++)
        for (int rows = 1; rows <= ROWS; rows++)
            for (int tokens = 1; tokens <= COUNT; tokens++) {
                const char *from = f ? (const char *)half[f - 1] : (const char *)w[0];
                const int64_t size = f ? 2 : 4;
                v->dots(dtypes[f], rows, tokens, N, from, N * size, x, N, got, ROWS);
                for (int r = 0; r < rows; r++)
                    for (int t = 0; t < tokens; t++) {
                        double want = 0;
                        float one;
                        for (int c = 0; c < N; c++) want += (double)w[f][r * N + c] * (double)x[t * N + c];
                        CHECK_CLOSE(got[t * ROWS + r], want, 1e-5, 1e-5);
                        v->dots(dtypes[f], 1, 1, N, from + r * N * size, N * size, x + t * N, N, &one, 1);
                        CHECK(memcmp(&one, &got[t * ROWS + r], sizeof one) == 0);
                    }
            }
}

TEST(byte_variants)
{
    static const mica__quant_id ids[] = {MICA__QUANT_Q8_0, MICA__QUANT_Q4_0, MICA__QUANT_Q6_K, MICA__QUANT_Q4_K,
                                         MICA__QUANT_Q5_K, MICA__QUANT_Q4_1, MICA__QUANT_Q5_0, MICA__QUANT_Q5_1};
    size_t n;
    const mica__p8_variant *list = mica__p8_variants(&n);
    for (size_t i = 0; i <= n; i++) {
        const mica__p8_variant *v = i < n ? &list[i] : &wide_p8;
        test_case("%s", v->name);
        if (v->needs & ~mica__cpu_features()) {
            test_skip("this CPU lacks what %s needs", v->name);
            continue;
        }
        for (size_t f = 0; f < sizeof ids / sizeof *ids; f++) check_bytes(v, ids[f]);
        check_dots(v);
    }
}

/* Formats without bytes report 0 scales. */
TEST(other_formats_are_no_bytes)
{
    EXPECT_INT(mica__p8_format_of(MICA__QUANT_TQ2_0).scales, 0);
    EXPECT_INT(mica__p8_format_of(MICA__QUANT_F16).scales, 0);
    EXPECT_INT(mica__p8_format_of(MICA__QUANT_AFFINE).scales, 0);
}
