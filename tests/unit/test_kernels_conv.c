/* Convolution. The inner loops of every variant, and of one wider than this CPU has, are compared
 * with sums in double. The op is compared with the reference where it changes its algorithm: few
 * output channels, more taps or output channels than are handled at once, kernels larger than the
 * result, images that need no copy, and strides of every kind.
 *
 * runs: arm, wide-vectors */
#include "kernels_util.h"

#define SIMD_BYTES 64
#define CONV_ROWS 8
#define CONV_VARIANT wide_variant
#include "kernels/conv/conv_body.inc"

/* Exactly n elements, so that a sanitizer reports accesses past the end. */
static float *floats(int64_t n)
{
    float *x = malloc((size_t)(n ? n : 1) * sizeof *x);
    if (!x) abort();
    for (int64_t i = 0; i < n; i++) x[i] = (float)util_real(-1, 1);
    return x;
}

static void check_taps(const mica__conv_variant *v, int64_t m, int64_t taps, bool add)
{
    const int64_t length = 40 + v->strip;
    float *a = floats(m * taps), *b = floats(length), *out = floats(m * v->strip), *before = floats(m * v->strip);
    int64_t offset[70];
    for (int64_t k = 0; k < taps; k++) offset[k] = util_below(41);
    memcpy(out, before, (size_t)(m * v->strip) * sizeof *out);
    v->taps(m, taps, a, taps, b, offset, out, v->strip, add);
    for (int64_t i = 0; i < m * v->strip; i++) {
        double sum = add ? (double)before[i] : 0;
        for (int64_t k = 0; k < taps; k++)
            sum += (double)a[i / v->strip * taps + k] * (double)b[offset[k] + i % v->strip];
        CHECK_MSG(fabs((double)out[i] - sum) <= 1e-6 * (double)(taps + 1), "element %lld: %g, not %g", (long long)i,
                  (double)out[i], sum);
    }
    free(a);
    free(b);
    free(out);
    free(before);
}

static void check_line(const mica__conv_variant *v, int64_t n, int64_t taps)
{
    float *a = floats(taps), *b = floats(40 + n), *out = floats(n);
    int64_t offset[70];
    for (int64_t k = 0; k < taps; k++) offset[k] = util_below(41);
    v->line(n, taps, a, b, offset, out);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < taps; k++) sum += (double)a[k] * (double)b[offset[k] + i];
        CHECK_MSG(fabs((double)out[i] - sum) <= 1e-6 * (double)(taps + 1), "element %lld: %g, not %g", (long long)i,
                  (double)out[i], sum);
    }
    free(a);
    free(b);
    free(out);
}

static void check_dots(const mica__conv_variant *v, int64_t m, int64_t n, int64_t lines, int64_t length)
{
    const int64_t line = (length + v->lanes - 1) / v->lanes * v->lanes, row = lines * line;
    float *a = floats(m * row), *b = floats((lines + 4) * line + 8), *out = floats(m * n), *before = floats(m * n);
    const float *at[8];
    for (int64_t i = 0; i < m * row; i++) a[i] = i % line < length ? a[i] : 0;
    for (int64_t c = 0; c < n; c++) at[c] = b + util_below(9);
    memcpy(out, before, (size_t)(m * n) * sizeof *out);
    v->dots(m, n, lines, length, a, row, line, at, line, out, n);
    for (int64_t i = 0; i < m * n; i++) {
        double sum = (double)before[i];
        for (int64_t l = 0; l < lines; l++)
            for (int64_t k = 0; k < length; k++)
                sum += (double)a[i / n * row + l * line + k] * (double)at[i % n][l * line + k];
        CHECK_MSG(fabs((double)out[i] - sum) <= 1e-6 * (double)(lines * length + 1), "element %lld: %g, not %g",
                  (long long)i, (double)out[i], sum);
    }
    /* values past the end of a line have no effect, whatever they are */
    if (length < line) {
        for (int64_t i = 0; i < (lines + 4) * line + 8; i++) b[i] = NAN;
        for (int64_t l = 0; l < lines; l++)
            for (int64_t k = 0; k < length; k++) b[l * line + k] = 1;
        at[0] = b;
        out[0] = 0;
        v->dots(1, 1, lines, length, a, row, line, at, line, out, n);
        CHECK(isfinite((double)out[0]));
    }
    free(a);
    free(b);
    free(out);
    free(before);
}

static void check_variant(const mica__conv_variant *v, const char *name)
{
    test_case("%s", name);
    for (int64_t m = 1; m <= 20; m++)
        for (int64_t taps = 0; taps <= 70; taps += 7) check_taps(v, m, taps, taps % 2);
    for (int64_t n = v->lanes; n < 100; n++) check_line(v, n, n % 20);
    for (int64_t m = 1; m <= 9; m++)
        for (int64_t n = 1; n <= 7; n++)
            for (int64_t length = 1; length < 40; length += 6) check_dots(v, m, n, 1 + length % 3, length);
}

TEST(conv_variants)
{
    const char *name = NULL;
    const mica__conv_variant *v;
    for (size_t i = 0; (v = mica__conv_variant_at(i, &name)) != NULL; i++) check_variant(v, name);
    check_variant(&wide_variant, "64 bytes");
}

/* ------------------------------------------------------------------ whole -- */

typedef struct sizes {
    int64_t batch, groups, channels, outs, size[2], kernel[2]; /* channels and output channels of a group */
} sizes;

static void check_conv(mica_dtype dtype, mica__attr_conv attr, sizes z, util_layout layout)
{
    const int n = (int)attr.spatial;
    int64_t x[4] = {z.batch, z.groups * z.channels}, w[4] = {z.groups * z.outs, z.channels},
            out[4] = {z.batch, z.groups * z.outs};
    attr.groups = z.groups;
    for (int i = 0; i < n; i++) {
        x[2 + i] = z.size[i];
        w[2 + i] = z.kernel[i];
        if (attr.stride[i] == 0) attr.stride[i] = 1;
        if (attr.dilation[i] == 0) attr.dilation[i] = 1;
        if (attr.input_dilation[i] == 0) attr.input_dilation[i] = 1;
        const int64_t room = (z.size[i] - 1) * attr.input_dilation[i] + 1 + attr.pad_low[i] + attr.pad_high[i];
        const int64_t left = room - (z.kernel[i] - 1) * attr.dilation[i] - 1;
        if (z.size[i] < 1 || left < 0) return;
        out[2 + i] = left / attr.stride[i] + 1;
    }
    test_case(
        "%s %d axes, x %lld %lld %lld %lld, w %lld %lld %lld %lld, stride %lld %lld, dilation %lld %lld (of x %lld "
        "%lld), padding %lld %lld",
        mica_dtype_name(dtype), n, (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3], (long long)w[0],
        (long long)w[1], (long long)w[2], (long long)w[3], (long long)attr.stride[0], (long long)attr.stride[1],
        (long long)attr.dilation[0], (long long)attr.dilation[1], (long long)attr.input_dilation[0],
        (long long)attr.input_dilation[1], (long long)attr.pad_low[0], (long long)attr.pad_low[1]);
    util_tensor a = util_tensor_new(util_spec(dtype, n + 2, x), layout),
                b = util_tensor_new(util_spec(dtype, n + 2, w), layout);
    const mica__tensor in[2] = {a.t, b.t};
    const double terms = (double)(z.channels * z.kernel[0] * (n > 1 ? z.kernel[1] : 1));
    util_check(MICA__OP_CONV, in, 2, &attr, util_spec(dtype, n + 2, out), util_rtol(dtype),
               (dtype == MICA_F64 ? 1e-14 : 4e-7) * 4 * (terms + 1));
    util_free(&a);
    util_free(&b);
}

TEST(conv_any_shape)
{
    for (int i = 0; i < 300; i++) {
        mica__attr_conv attr = {.spatial = 1 + i % 2};
        sizes z = {1 + util_below(3), 1 + util_below(3), 1 + util_below(5), 1 + util_below(9), {0}, {0}};
        for (int d = 0; d < 2; d++) {
            z.size[d] = 1 + util_below(i % 5 ? 12 : 50);
            z.kernel[d] = 1 + util_below(i % 3 ? 4 : z.size[d]);
            attr.stride[d] = 1 + util_below(3);
            attr.dilation[d] = 1 + util_below(3);
            attr.input_dilation[d] = 1 + util_below(4) / 2;
            attr.pad_low[d] = util_below(6) - 1;
            attr.pad_high[d] = util_below(6) - 1;
        }
        check_conv(i % 4 ? MICA_F32 : util_floats[i / 4 % 4], attr, z, UTIL_ANY);
    }
}

/* One case for each algorithm. */
TEST(conv_ways)
{
    const mica__attr_conv plain = {.spatial = 2}, padded = {.spatial = 2, .pad_low = {1, 1}, .pad_high = {1, 1}},
                          line = {.spatial = 1};
    static const sizes rows[] = {
        {2, 1, 7, 6, {20, 20}, {1, 1}},     /* no copy of the images                */
        {1, 1, 3, 101, {9, 9}, {3, 3}},     /* more output channels than a task     */
        {1, 1, 130, 3, {5, 6}, {3, 3}},     /* more taps than are handled at once   */
        {1, 9, 1, 1, {40, 41}, {3, 3}},     /* depthwise, computed by lines         */
        {1, 5, 1, 3, {8, 70}, {5, 2}},      /* three output channels per input      */
        {3, 2, 2, 9, {30, 31}, {28, 29}},   /* kernel larger than the result        */
        {60, 1, 1, 9, {12, 12}, {11, 10}},  /* many such images                     */
        {2, 1, 0, 4, {5, 5}, {3, 3}},       /* no channels                          */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int t = 0; t < 4; t++) {
            check_conv(util_floats[t], plain, rows[i], UTIL_DENSE);
            check_conv(util_floats[t], padded, rows[i], UTIL_DENSE);
            check_conv(util_floats[t], line, rows[i], UTIL_DENSE);
        }
    /* more than the planes hold at once */
    check_conv(MICA_F32, padded, (sizes){40, 1, 4, 5, {120, 120}, {3, 3}}, UTIL_DENSE);
}
