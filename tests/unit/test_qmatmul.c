/* Products with matrices in block formats: ref against a computation in double from the unpacked
 * values, cpu against ref. Formats of small integers agree to the last bit, for any number of
 * threads and rows of x.
 *
 * runs: arm */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mica.h"
#include "quant/quant.h"
#include "test.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define SHAPE(...) \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

static const struct {
    const char *name;
    int block;
    bool codes;
} formats[] = {
    {"F32", 1, false},    {"F16", 1, false},      {"BF16", 1, false},    {"Q8_0", 32, false},  {"Q6_K", 256, false},
    {"Q5_K", 256, false}, {"Q4_K", 256, false},   {"Q4_0", 32, false},   {"Q4_1", 32, false},  {"Q5_0", 32, false},
    {"Q5_1", 32, false},  {"TQ1_0", 256, true},   {"TQ2_0", 256, true},  {"I2_S", 128, true},  {"I2_S_ARM", 64, true},
    {"Q1_0", 128, true},  {"Q1_0_G32", 32, true}, {"Q2_0", 64, true},    {"PQ2_0", 128, true}, {"PTQ1_0", 128, true},
    {"MICA_T2", 1, true}, {"MICA_T1", 1, true},   {"MICA_Q8", 1, false},
};

static const char *const act_names[] = {"none", "token", "block256"};

static uint64_t state = 1;
static float uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / 8388608.0f - 1;
}

static mica_engine *open_engine(const char *backend, int threads, bool prepack)
{
    mica_engine *e = NULL;
    mica_engine_options o;
    mica_engine_options_init(&o);
    o.backend = backend;
    o.threads = threads;
    o.prepack = prepack;
    EXPECT_MSG(mica_open(&o, &e) == MICA_OK, "%s", mica_last_error());
    return e;
}

/* A matrix in caller memory. */
typedef struct matrix {
    const char *format;
    int64_t rows, cols;
    void *data;
    size_t nbytes;
    float scale;              /* HF_TERNARY, AFFINE: the scale, one element         */
    bool divides;
    float *values;            /* unpacked                                           */
} matrix;

static mica_quant wrapped(mica_scope *s, const matrix *m)
{
    const int64_t n = (int64_t)m->nbytes;
    mica_quant w = {.struct_size = sizeof w, .format = m->format, .rows = m->rows, .cols = m->cols};
    w.data = mica_wrap(s, MICA_U8, 1, &n, NULL, m->data, NULL, NULL);
    if (m->scale != 0) w.scales = mica_from_data(s, MICA_F32, 0, NULL, &m->scale);
    w.scale_divides = m->divides;
    return w;
}

static matrix packed(const char *format, int64_t rows, int64_t cols, bool one_scale)
{
    matrix m = {.format = format, .rows = rows, .cols = cols, .nbytes = mica_quant_nbytes(format, rows, cols)};
    const size_t n = (size_t)(rows * cols);
    m.data = malloc(m.nbytes + 1);
    m.values = malloc((n + 1) * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        m.values[i] = uniform();
        if (one_scale) m.values[i] = m.values[i] < -0.3f ? -0.75f : m.values[i] > 0.3f ? 0.75f : 0;
    }
    EXPECT_MSG(m.nbytes && mica_quant_pack(format, rows, cols, m.values, m.data, m.nbytes) == MICA_OK, "%s %s", format,
               mica_last_error());
    EXPECT(mica_quant_unpack(format, rows, cols, m.data, m.nbytes, m.values) == MICA_OK);
    return m;
}

static void matrix_free(matrix *m)
{
    free(m->data);
    free(m->values);
}

/* y (count, rows), from x (count, n). */
static bool product(mica_engine *e, const matrix *m, mica_act act, int64_t count, int64_t n, const float *x, float *y)
{
    mica_scope *s = mica_scope_begin(e);
    const mica_quant w = wrapped(s, m);
    mica_array *out = mica_quant_matmul(s, mica_from_data(s, MICA_F32, SHAPE(count, n), x), &w, act);
    const bool ok = EXPECT_MSG(mica_eval(s, &out, 1) == MICA_OK, "%s", mica_last_error()) &&
                    mica_copy_out(out, y, (size_t)(count * m->rows) * sizeof *y) == MICA_OK;
    mica_scope_end(s);
    return ok;
}

/* The quantised values of x in double; an independent implementation of the definition. */
static void rounded(mica_act act, int64_t n, const float *x, double *out)
{
    const int64_t step = act == MICA_ACT_BLOCK256 ? 256 : n;
    for (int64_t from = 0; from < n; from += step) {
        const int64_t to = from + step < n ? from + step : n;
        float most = 0;
        for (int64_t i = from; i < to; i++) most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
        const float size = act == MICA_ACT_TOKEN && fabsf(most) < 1e-5f ? 1e-5f : most;
        const float times = act == MICA_ACT_TOKEN ? 127 / fabsf(size) : size == 0 ? 0 : -127 / size;
        for (int64_t i = from; i < to; i++)
            out[i] = act == MICA_ACT_NONE ? (double)x[i] : times == 0 ? 0 : (double)rintf(x[i] * times) / (double)times;
    }
}

static void check_product(mica_engine *const *engines, const matrix *m, bool codes, mica_act act, int64_t count,
                          int64_t n)
{
    const size_t size = (size_t)(count * m->rows);
    float *x = malloc((size_t)(count * n + 1) * sizeof *x), *want = malloc(size * 4 + 4), *got = malloc(size * 4 + 4);
    double *r = malloc((size_t)(n + 1) * sizeof *r);
    for (int64_t i = 0; i < count * n; i++) x[i] = uniform() * (i % 7 == 0 ? 4.0f : 1.0f);
    if (!product(engines[0], m, act, count, n, x, want)) goto done;
    for (int64_t t = 0; t < count; t++) {
        rounded(act, n, x + t * n, r);
        for (int64_t i = 0; i < m->rows; i++) {
            double sum = 0, most = 0;
            for (int64_t c = 0; c < n; c++) {
                const double p = (double)m->values[i * m->cols + c] * r[c];
                sum += p;
                most += fabs(p);
            }
            if (!EXPECT_CLOSE(want[t * m->rows + i], sum, 1e-6, 1e-6 * most + 1e-30)) goto done;
            want[t * m->rows + i] += 0.0f; /* no -0 */
        }
    }
    for (int e = 1; engines[e]; e++) {
        if (!product(engines[e], m, act, count, n, x, got)) goto done;
        for (size_t i = 0; i < size; i++) {
            const double tolerance = codes && act != MICA_ACT_NONE ? 0 : 3e-6;
            if (!EXPECT_CLOSE(got[i], want[i], tolerance, tolerance * sqrt((double)n))) goto done;
        }
        /* each row computed alone */
        for (int64_t t = 0; t < count; t += 3) {
            float *one = malloc((size_t)m->rows * sizeof *one + 4);
            product(engines[e], m, act, 1, n, x + t * n, one);
            EXPECT(memcmp(one, got + t * m->rows, (size_t)m->rows * sizeof *one) == 0);
            free(one);
        }
    }
done:
    free(x);
    free(want);
    free(got);
    free(r);
}

TEST(every_format_and_activation)
{
    static const int64_t sizes[][2] = {{1, 1}, {5, 2}, {16, 3}, {33, 11}}; /* rows, blocks (columns of plain ones) */
    static const int64_t counts[] = {1, 2, 5, 13};
    mica_engine *engines[] = {open_engine("ref", 1, false), open_engine("cpu", 1, true), open_engine("cpu", 3, true),
                              open_engine("cpu", 2, false), NULL};
    for (size_t f = 0; f < COUNT(formats); f++)
        for (int act = 0; act < 3; act++) {
            test_case("%s, %s", formats[f].name, act_names[act]);
            for (size_t i = 0; i < COUNT(sizes); i++) {
                const int64_t blocks = formats[f].block > 64 && sizes[i][1] > 3 ? 3 : sizes[i][1];
                const int64_t cols = blocks * formats[f].block * (formats[f].block == 1 ? 7 : 1);
                matrix m = packed(formats[f].name, sizes[i][0], cols, i % 2 == 1 && formats[f].codes);
                check_product(engines, &m, formats[f].codes, (mica_act)act, counts[i], cols);
                if (formats[f].block > 32) check_product(engines, &m, formats[f].codes, (mica_act)act, 2, cols - 20);
                matrix_free(&m);
            }
        }
    for (int e = 0; engines[e]; e++) mica_close(engines[e]);
}

/* One matrix in all ternary containers: the same bits. */
TEST(containers_agree)
{
    enum { ROWS = 37, COLS = 768, TOKENS = 6 };
    static const char *const names[] = {"TQ1_0", "TQ2_0", "I2_S", "I2_S_ARM", "HF_TERNARY", "MICA_T2", "MICA_T1"};
    static float values[ROWS * COLS], x[TOKENS * COLS], first[TOKENS * ROWS], y[TOKENS * ROWS];
    static int8_t codes[ROWS * COLS];
    static uint8_t hf[(ROWS + 3) / 4 * COLS];
    for (int i = 0; i < ROWS * COLS; i++) codes[i] = (int8_t)(uniform() * 1.5f);
    codes[0] = 1;
    for (int i = 0; i < ROWS * COLS; i++) values[i] = (float)codes[i] * 1.171875f;
    for (int i = 0; i < TOKENS * COLS; i++) x[i] = uniform();
    /* no block is all zeros, so that every block has the scale */
    for (int i = 0; i < ROWS * COLS; i += 64) values[i] = 1.171875f, codes[i] = 1;
    mica__pack_hf_ternary(codes, ROWS, COLS, hf);
    mica_engine *engines[] = {open_engine("ref", 1, false), open_engine("cpu", 2, true), open_engine("cpu", 1, false)};
    for (int act = 1; act < 3; act++)
        for (size_t f = 0; f < COUNT(names); f++) {
            test_case("%s, %s", names[f], act_names[act]);
            const bool is_hf = strcmp(names[f], "HF_TERNARY") == 0;
            matrix m = {.format = names[f], .rows = ROWS, .cols = COLS, .nbytes = sizeof hf, .scale = 0};
            if (is_hf) m.data = hf, m.scale = 1.171875f;
            else {
                m.nbytes = mica_quant_nbytes(names[f], ROWS, COLS);
                m.data = malloc(m.nbytes);
                CHECK_INT(mica_quant_pack(names[f], ROWS, COLS, values, m.data, m.nbytes), MICA_OK);
            }
            for (size_t e = 0; e < COUNT(engines); e++) {
                if (!product(engines[e], &m, (mica_act)act, TOKENS, COLS, x, y)) return;
                if (e == 0 && f == 0) memcpy(first, y, sizeof first);
                EXPECT(memcmp(first, y, sizeof first) == 0);
            }
            if (!is_hf) free(m.data);
        }
    for (size_t e = 0; e < COUNT(engines); e++) mica_close(engines[e]);
}

/* A file may be at any address, so panels must be readable at any address. */
TEST(panels_at_odd_addresses)
{
    enum { ROWS = 37, COLS = 300, TOKENS = 7 };
    static float x[TOKENS * COLS], want[TOKENS * ROWS], y[TOKENS * ROWS];
    mica_engine *engines[] = {open_engine("cpu", 2, true), open_engine("cpu", 1, false)};
    for (int i = 0; i < TOKENS * COLS; i++) x[i] = uniform();
    for (int f = 0; f < 2; f++)
        for (size_t shift = 0; shift < 8; shift += 1 + shift / 2) {
            test_case("%s + %d", f ? "MICA_Q8" : "MICA_T2", (int)shift);
            matrix m = packed(f ? "MICA_Q8" : "MICA_T2", ROWS, COLS, true);
            char *moved = malloc(m.nbytes + shift);
            memcpy(moved + shift, m.data, m.nbytes);
            matrix at = m;
            at.data = moved + shift;
            for (size_t e = 0; e < COUNT(engines); e++) {
                CHECK(product(engines[0], &m, MICA_ACT_TOKEN, TOKENS, COLS, x, want));
                CHECK(product(engines[e], &at, MICA_ACT_TOKEN, TOKENS, COLS, x, y));
                EXPECT(memcmp(want, y, sizeof y) == 0);
            }
            mica_stats stats = {.struct_size = sizeof stats};
            mica_engine_stats(engines[0], &stats);
            EXPECT_MSG(shift || stats.bytes_packed == 0, "%d bytes were packed", (int)stats.bytes_packed);
            free(moved);
            matrix_free(&m);
        }
    for (size_t e = 0; e < COUNT(engines); e++) mica_close(engines[e]);
}

TEST(what_is_not_a_number)
{
    enum { ROWS = 3, COLS = 512 };
    mica_engine *engines[] = {open_engine("ref", 1, false), open_engine("cpu", 2, true)};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t f = 0; f < 2; f++)
        for (int act = 0; act < 3; act++)
            for (size_t b = 0; b < COUNT(bad); b++)
                for (size_t e = 0; e < COUNT(engines); e++) {
                    test_case("%s, %s, %g, %s", f ? "Q8_0" : "TQ2_0", act_names[act], (double)bad[b],
                              e ? "cpu" : "ref");
                    matrix m = packed(f ? "Q8_0" : "TQ2_0", ROWS, COLS, f == 0);
                    static float x[2 * COLS], y[2 * ROWS];
                    for (int i = 0; i < 2 * COLS; i++) x[i] = uniform();
                    x[COLS + 300] = bad[b];
                    if (product(engines[e], &m, (mica_act)act, 2, COLS, x, y))
                        for (int i = 0; i < 2 * ROWS; i++) EXPECT(i < ROWS ? isfinite(y[i]) : isnan(y[i]));
                    /* the scale of row 1 */
                    x[COLS + 300] = 1;
                    const size_t row = m.nbytes / ROWS, at = f ? 0 : 64;
                    ((uint8_t *)m.data)[row + at] = (uint8_t)(b == 0);
                    ((uint8_t *)m.data)[row + at + 1] = bad[b] < 0 ? 0xfc : 0x7c;
                    if (product(engines[e], &m, (mica_act)act, 2, COLS, x, y))
                        for (int i = 0; i < 2 * ROWS; i++) EXPECT(i % ROWS == 1 ? !isfinite(y[i]) : isfinite(y[i]));
                    matrix_free(&m);
                }
    for (size_t e = 0; e < COUNT(engines); e++) mica_close(engines[e]);
}

TEST(rows_by_number)
{
    enum { ROWS = 9, COLS = 256 };
    mica_engine *engines[] = {open_engine("ref", 1, false), open_engine("cpu", 2, true)};
    for (size_t f = 0; f < COUNT(formats); f++) {
        test_case("%s", formats[f].name);
        matrix m = packed(formats[f].name, ROWS, COLS, false);
        for (size_t e = 0; e < COUNT(engines); e++) {
            mica_scope *s = mica_scope_begin(engines[e]);
            const mica_quant w = wrapped(s, &m);
            mica_array *y = mica_quant_rows(s, &w, mica_from_data(s, MICA_I32, SHAPE(2, 2), (int32_t[]){8, 0, -1, 3}));
            static float got[4 * COLS];
            static const int rows[] = {8, 0, 8, 3};
            CHECK_MSG(mica_eval(s, &y, 1) == MICA_OK && mica_copy_out(y, got, sizeof got) == MICA_OK, "%s",
                      mica_last_error());
            EXPECT_INT(mica_array_ndim(y), 3);
            for (int i = 0; i < 4; i++)
                EXPECT(memcmp(got + i * COLS, m.values + rows[i] * COLS, COLS * sizeof *got) == 0);
            y = mica_quant_rows(s, &w, mica_from_data(s, MICA_I64, SHAPE(1), (int64_t[]){9}));
            EXPECT_INT(mica_eval(s, &y, 1), MICA_ERR_INDEX);
            mica_scope_end(s);
        }
        matrix_free(&m);
    }
    for (size_t e = 0; e < COUNT(engines); e++) mica_close(engines[e]);
}

/* MLX groups, with scales and biases in separate arrays; x is f16. */
TEST(affine_groups)
{
    enum { ROWS = 6, COLS = 128, GROUP = 32 };
    static float values[ROWS * COLS], scales[ROWS * COLS / GROUP], biases[ROWS * COLS / GROUP], x[COLS];
    static uint8_t data[ROWS * COLS];
    mica_engine *engines[] = {open_engine("ref", 1, false), open_engine("cpu", 2, true)};
    for (int bits = 2; bits <= 8; bits++) {
        if (bits == 7) continue;
        for (int i = 0; i < ROWS * COLS; i++) values[i] = uniform();
        for (int i = 0; i < COLS; i++) x[i] = mica_f16_to_f32(mica_f16_from_f32(uniform()));
        mica__pack_affine(values, ROWS, COLS, bits, GROUP, data, scales, biases);
        for (size_t e = 0; e < COUNT(engines); e++) {
            test_case("%d bits, %s", bits, e ? "cpu" : "ref");
            mica_scope *s = mica_scope_begin(engines[e]);
            const mica_quant w = {.struct_size = sizeof w,
                                  .format = "AFFINE",
                                  .rows = ROWS,
                                  .cols = COLS,
                                  .bits = bits,
                                  .group = GROUP,
                                  .data = mica_from_data(s, MICA_U8, SHAPE(ROWS * COLS * bits / 8), data),
                                  .scales = mica_from_data(s, MICA_F32, SHAPE(ROWS, COLS / GROUP), scales),
                                  .biases = mica_from_data(s, MICA_F32, SHAPE(ROWS, COLS / GROUP), biases)};
            mica_array *half = mica_cast(s, mica_from_data(s, MICA_F32, SHAPE(COLS), x), MICA_F16);
            mica_array *y = mica_quant_matmul(s, half, &w, MICA_ACT_NONE);
            float got[ROWS];
            CHECK_MSG(mica_eval(s, &y, 1) == MICA_OK && mica_copy_out(y, got, sizeof got) == MICA_OK, "%s",
                      mica_last_error());
            for (int r = 0; r < ROWS; r++) {
                double sum = 0;
                for (int c = 0; c < COLS; c++) {
                    unsigned q = 0;
                    for (int b = 0; b < bits; b++) {
                        const int bit = (r * COLS + c) * bits + b;
                        q |= (unsigned)(data[bit / 8] >> bit % 8 & 1) << b;
                    }
                    const int g = (r * COLS + c) / GROUP;
                    sum += ((double)scales[g] * q + (double)biases[g]) * (double)x[c];
                }
                EXPECT_CLOSE(got[r], sum, 1e-5, 1e-5);
            }
            mica_scope_end(s);
        }
    }
    for (size_t e = 0; e < COUNT(engines); e++) mica_close(engines[e]);
}

TEST(what_is_refused)
{
    mica_engine *e = open_engine("cpu", 1, true);
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_ones(s, MICA_F32, SHAPE(2, 256)), *data = mica_zeros(s, MICA_U8, SHAPE(66 * 3));
    const mica_quant good = {.struct_size = sizeof good, .format = "TQ2_0", .rows = 3, .cols = 256, .data = data};
    EXPECT_MSG(mica_quant_matmul(s, x, &good, MICA_ACT_TOKEN) != NULL, "%s", mica_last_error());
    mica_quant w;
#define REFUSED(change, status, text)                                                     \
    do {                                                                                  \
        w = good;                                                                         \
        change;                                                                           \
        EXPECT(mica_quant_matmul(s, x, &w, MICA_ACT_TOKEN) == NULL);                      \
        EXPECT_INT(mica_scope_status(s), status);                                         \
        EXPECT_MSG(strstr(mica_scope_error(s), text) != NULL, "%s", mica_scope_error(s)); \
        mica_scope_clear_error(s);                                                        \
    } while (0)
    REFUSED(w.format = "TQ3_0", MICA_ERR_ARGUMENT, "no format TQ3_0");
    REFUSED(w.format = NULL, MICA_ERR_ARGUMENT, "no format NULL");
    REFUSED(w.format = "IQ2_XS", MICA_ERR_UNSUPPORTED, "IQ2_XS cannot be read");
    REFUSED(w.rows = 4, MICA_ERR_SHAPE, "4 x 256 in format TQ2_0 has 264 bytes");
    REFUSED(w.cols = 300, MICA_ERR_ARGUMENT, "rows of 300");
    REFUSED(w.rows = -1, MICA_ERR_ARGUMENT, "-1 x 256");
    REFUSED(w.rows = INT64_MAX / 8, MICA_ERR_SIZE, "is too large");
    REFUSED((w.cols = 512, w.data = mica_zeros(s, MICA_U8, SHAPE(66 * 6))), MICA_ERR_SHAPE, "256 elements");
    REFUSED(w.data = NULL, MICA_ERR_ARGUMENT, "quant_matmul");
    REFUSED(w.data = mica_zeros(s, MICA_F32, SHAPE(66 * 3)), MICA_ERR_DTYPE, "f32 instead of bytes");
    REFUSED(w.format = "HF_TERNARY", MICA_ERR_ARGUMENT, "quant_matmul");
    REFUSED((w.format = "HF_TERNARY", w.data = mica_zeros(s, MICA_U8, SHAPE(256)), w.scales = data), MICA_ERR_ARGUMENT,
            "scales are U8");
    REFUSED((w.format = "HF_TERNARY", w.rows = INT64_MAX / 2, w.scales = x), MICA_ERR_SIZE, "is too large");
    REFUSED(w.struct_size = 3, MICA_ERR_ARGUMENT, "struct_size");
#undef REFUSED
    EXPECT(mica_quant_matmul(s, x, NULL, MICA_ACT_NONE) == NULL);
    mica_scope_clear_error(s);
    EXPECT(mica_quant_matmul(s, x, &good, (mica_act)7) == NULL);
    EXPECT(strstr(mica_scope_error(s), "act is 7") != NULL);
    mica_scope_clear_error(s);
    EXPECT(mica_quant_rows(s, &good, x) == NULL);
    mica_scope_clear_error(s);
    EXPECT_INT(mica_quant_nbytes("TQ2_0", 3, 256), 66 * 3);
    EXPECT_INT(mica_quant_nbytes("TQ2_0", 3, 250), 0);
    EXPECT_INT(mica_quant_nbytes("AFFINE", 3, 256), 0);
    EXPECT_INT(mica_quant_nbytes("nothing", 3, 256), 0);
    uint8_t blocks[66];
    float values[256] = {NAN};
    EXPECT_INT(mica_quant_pack("TQ2_0", 1, 256, values, blocks, 65), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_quant_pack("TQ2_0", 1, 256, values, blocks, 66), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_quant_pack("TQ2_0", 1, 256, NULL, blocks, 66), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_quant_unpack("TQ2_0", 1, 256, blocks, 64, values), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_quant_unpack("IQ2_XS", 1, 256, blocks, 74, values), MICA_ERR_UNSUPPORTED);
    mica_scope_end(s);
    mica_close(e);
}
