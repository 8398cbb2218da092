/* Element types: the table, promotion, and conversions against a reference that uses only the value
 * of each bit of a format.
 *
 * runs: check */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "array/dtype.h"
#include "test.h"

TEST(sizes_and_names)
{
    size_t count = 0;
#define ROW(id, value, bytes, text)        \
    count++;                               \
    CHECK_INT(id, value);                  \
    CHECK_INT(mica_dtype_size(id), bytes); \
    CHECK_STR(mica_dtype_name(id), text);  \
    CHECK(mica__dtype_valid(id));
    MICA_DTYPE_LIST(ROW)
#undef ROW
    CHECK_INT(count, MICA__DTYPE_COUNT);
    static const int bad[] = {-1, 13, 1000};
    for (int i = 0; i < 3; i++) {
        CHECK_INT(mica_dtype_size((mica_dtype)bad[i]), 0);
        CHECK_STR(mica_dtype_name((mica_dtype)bad[i]), "unknown dtype");
        CHECK(!mica__dtype_valid((mica_dtype)bad[i]));
    }
}

TEST(kinds)
{
    static const mica__kind want[MICA__DTYPE_COUNT] = {
        MICA__KIND_BOOL,  MICA__KIND_UINT,  MICA__KIND_INT,  MICA__KIND_UINT, MICA__KIND_INT,
        MICA__KIND_UINT,  MICA__KIND_INT,   MICA__KIND_UINT, MICA__KIND_INT,  MICA__KIND_FLOAT,
        MICA__KIND_FLOAT, MICA__KIND_FLOAT, MICA__KIND_FLOAT};
    for (int i = 0; i < MICA__DTYPE_COUNT; i++) {
        const mica_dtype d = (mica_dtype)i;
        CHECK_INT(mica__dtype_kind(d), want[i]);
        CHECK_INT(mica__is_bool(d), want[i] == MICA__KIND_BOOL);
        CHECK_INT(mica__is_int(d), want[i] == MICA__KIND_UINT || want[i] == MICA__KIND_INT);
        CHECK_INT(mica__is_float(d), want[i] == MICA__KIND_FLOAT);
    }
}

/* --------------------------------------------------------------- promote --- */

TEST(promotion_table)
{
    /* One row for each dtype: with bool, u8, i8, u16, i16, u32, i32, u64, i64,
     * f16, bf16, f32, f64. */
    static const char *const table[MICA__DTYPE_COUNT] = {
        "bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64",
        "u8 u8 i16 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64",
        "i8 i16 i8 i32 i16 i64 i32 i64 i64 f16 bf16 f32 f64",
        "u16 u16 i32 u16 i32 u32 i32 u64 i64 f16 bf16 f32 f64",
        "i16 i16 i16 i32 i16 i64 i32 i64 i64 f16 bf16 f32 f64",
        "u32 u32 i64 u32 i64 u32 i64 u64 i64 f16 bf16 f32 f64",
        "i32 i32 i32 i32 i32 i64 i32 i64 i64 f16 bf16 f32 f64",
        "u64 u64 i64 u64 i64 u64 i64 u64 i64 f16 bf16 f32 f64",
        "i64 i64 i64 i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64",
        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64",
        "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64",
        "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64",
        "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64"};
    for (int a = 0; a < MICA__DTYPE_COUNT; a++) {
        char row[100], *next = NULL;
        strcpy(row, table[a]);
        char *word = strtok_r(row, " ", &next);
        for (int b = 0; b < MICA__DTYPE_COUNT; b++, word = strtok_r(NULL, " ", &next)) {
            test_case("%s with %s", mica_dtype_name((mica_dtype)a), mica_dtype_name((mica_dtype)b));
            CHECK(word);
            CHECK_STR(mica_dtype_name(mica_dtype_promote((mica_dtype)a, (mica_dtype)b)), word);
        }
        CHECK(!word);
    }
}

TEST(promotion_does_not_depend_on_the_order)
{
    for (int a = 0; a < MICA__DTYPE_COUNT; a++) {
        CHECK_INT(mica_dtype_promote((mica_dtype)a, (mica_dtype)a), a);
        for (int b = 0; b < MICA__DTYPE_COUNT; b++) {
            const mica_dtype ab = mica_dtype_promote((mica_dtype)a, (mica_dtype)b);
            CHECK_INT(ab, mica_dtype_promote((mica_dtype)b, (mica_dtype)a));
            CHECK_INT(mica_dtype_promote(ab, (mica_dtype)a), ab);
            for (int c = 0; c < MICA__DTYPE_COUNT; c++) {
                const mica_dtype bc = mica_dtype_promote((mica_dtype)b, (mica_dtype)c);
                CHECK_MSG(mica_dtype_promote(ab, (mica_dtype)c) == mica_dtype_promote((mica_dtype)a, bc),
                          "%d with %d with %d", a, b, c);
            }
        }
    }
}

TEST(promotion_of_no_dtype)
{
    CHECK_INT(mica_dtype_promote((mica_dtype)99, MICA_I8), MICA_I8);
    CHECK_INT(mica_dtype_promote(MICA_BF16, (mica_dtype)-1), MICA_BF16);
    CHECK_INT(mica_dtype_promote((mica_dtype)99, (mica_dtype)-1), MICA_F32);
}

/* -------------------------------------------------------- half precision --- */

typedef struct format {
    const char *name;
    int exponent_bits, mantissa_bits;
    uint16_t (*from_f32)(float);
    uint16_t (*from_f64)(double);
    float (*to_f32)(uint16_t);
} format;

static const format formats[] = {
    {"f16", 5, 10, mica_f16_from_f32, mica__f16_from_f64, mica_f16_to_f32},
    {"bf16", 8, 7, mica_bf16_from_f32, mica__bf16_from_f64, mica_bf16_to_f32},
};

static uint16_t infinity_of(const format *f) { return (uint16_t)(((1 << f->exponent_bits) - 1) << f->mantissa_bits); }

/* The value of the bits. The pattern of infinity counts as the number that would
 * follow the largest one, as in rounding. */
static double worth(const format *f, uint16_t bits)
{
    const int exponent = (bits & 0x7fff) >> f->mantissa_bits, mantissa = bits & ((1 << f->mantissa_bits) - 1);
    const int bias = (1 << (f->exponent_bits - 1)) - 1;
    const double value = exponent ? ldexp(1.0 + ldexp(mantissa, -f->mantissa_bits), exponent - bias)
                                  : ldexp(mantissa, 1 - bias - f->mantissa_bits);
    return bits & 0x8000 ? -value : value;
}

static uint64_t bits_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

TEST(all_patterns_to_f32_and_back)
{
    for (size_t k = 0; k < 2; k++) {
        const format *f = &formats[k];
        test_case("%s", f->name);
        for (int i = 0; i < 65536; i++) {
            const uint16_t p = (uint16_t)i, magnitude = p & 0x7fff;
            const float value = f->to_f32(p);
            CHECK_MSG(!signbit(value) == !(p & 0x8000), "sign of %04x", p);
            if (magnitude > infinity_of(f)) {
                CHECK_MSG(isnan(value), "%04x is a NaN", p);
                const uint16_t quiet = (uint16_t)(p | 1 << (f->mantissa_bits - 1));
                CHECK_MSG(f->from_f32(value) == quiet, "NaN %04x came back as %04x", p, f->from_f32(value));
                CHECK_MSG(f->from_f64((double)value) == quiet, "NaN %04x by way of f64", p);
                continue;
            }
            if (magnitude == infinity_of(f)) CHECK_MSG(isinf(value), "%04x is an infinity", p);
            else CHECK_MSG(bits_of_f64((double)value) == bits_of_f64(worth(f, p)), "value of %04x", p);
            CHECK_MSG(f->from_f32(value) == p, "%04x came back as %04x", p, f->from_f32(value));
            CHECK_MSG(f->from_f64((double)value) == p, "%04x by way of f64", p);
        }
    }
}

/* Between two neighbours the result changes at one place: the midpoint, which rounds to
 * the even neighbour. Tests all midpoints, and the values next to them, as f32 and as
 * f64. */
TEST(all_rounding_boundaries)
{
    for (size_t k = 0; k < 2; k++) {
        const format *f = &formats[k];
        test_case("%s", f->name);
        int rounded_twice = 0;
        for (int i = 0; i < 2 * infinity_of(f); i++) {
            const uint16_t sign = (uint16_t)(i % 2 << 15), low = (uint16_t)(sign | i / 2), high = (uint16_t)(low + 1);
            const double middle = (worth(f, low) + worth(f, high)) / 2, away = sign ? -INFINITY : INFINITY;
            const uint16_t even = low & 1 ? high : low;
            const float middle_f32 = (float)middle;
            CHECK_MSG((double)middle_f32 == middle, "the middle after %04x is an f32", low);

            CHECK_MSG(f->from_f32(middle_f32) == even, "f32 tie after %04x", low);
            CHECK_MSG(f->from_f32(nextafterf(middle_f32, 0)) == low, "f32 below the tie after %04x", low);
            CHECK_MSG(f->from_f32(nextafterf(middle_f32, (float)away)) == high, "f32 above the tie after %04x", low);

            CHECK_MSG(f->from_f64(middle) == even, "f64 tie after %04x", low);
            CHECK_MSG(f->from_f64(nextafter(middle, 0)) == low, "f64 below the tie after %04x", low);
            CHECK_MSG(f->from_f64(nextafter(middle, away)) == high, "f64 above the tie after %04x", low);
            rounded_twice += f->from_f32((float)nextafter(middle, away)) != high;
        }
        /* Shows that the last check is meaningful: rounding through f32 fails for half of them. */
        CHECK_INT(rounded_twice, infinity_of(f));
    }
}

TEST(ends_of_the_half_formats)
{
    for (size_t k = 0; k < 2; k++) {
        const format *f = &formats[k];
        const uint16_t inf = infinity_of(f);
        CHECK_INT(f->from_f32(INFINITY), inf);
        CHECK_INT(f->from_f32(-INFINITY), inf | 0x8000);
        CHECK_INT(f->from_f64(INFINITY), inf);
        CHECK_INT(f->from_f64(-DBL_MAX), inf | 0x8000);
        CHECK_INT(f->from_f32(FLT_MAX), inf);
        CHECK_INT(f->from_f32(-0.0f), 0x8000);
        CHECK_INT(f->from_f64(-0.0), 0x8000);
        CHECK_INT(f->from_f64(DBL_TRUE_MIN), 0);
        CHECK_INT(f->from_f64(-DBL_MIN), 0x8000);
        CHECK_INT(f->from_f32(-FLT_TRUE_MIN), 0x8000);
        CHECK((f->from_f64(-NAN) & 0x7fff) > inf);
    }
}

/* A NaN whose payload is only in the discarded bits stays a NaN. */
TEST(narrow_payloads)
{
    for (size_t k = 0; k < 2; k++) {
        const format *f = &formats[k];
        const uint16_t quiet = (uint16_t)(infinity_of(f) | 1 << (f->mantissa_bits - 1));
        const uint32_t b32[2] = {0x7f800001u, 0xff800001u};
        const uint64_t b64[2] = {0x7ff0000000000001u, 0xfff0000000000001u};
        for (int sign = 0; sign < 2; sign++) {
            float f32;
            double f64;
            memcpy(&f32, &b32[sign], 4);
            memcpy(&f64, &b64[sign], 8);
            CHECK_INT(f->from_f32(f32), quiet | sign << 15);
            CHECK_INT(f->from_f64(f64), quiet | sign << 15);
        }
    }
}

/* ------------------------------------------------------- single elements --- */

TEST(float_to_integer_truncates_and_saturates)
{
    static const struct {
        mica_dtype dtype;
        double low, high; /* the ends of the range; both exact but for 64 bits */
        int64_t low_bits, high_bits;
    } range[] = {
        {MICA_U8, 0, 255, 0, 255},
        {MICA_I8, -128, 127, -128, 127},
        {MICA_U16, 0, 65535, 0, 65535},
        {MICA_I16, -32768, 32767, -32768, 32767},
        {MICA_U32, 0, 4294967295.0, 0, 4294967295},
        {MICA_I32, -2147483648.0, 2147483647.0, INT32_MIN, INT32_MAX},
        {MICA_U64, 0, 0x1p64, 0, -1},
        {MICA_I64, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
        const mica_dtype d = range[i].dtype;
        test_case("%s", mica_dtype_name(d));
        const double low = range[i].low, high = range[i].high;
        CHECK_INT(mica__f64_to_int(d, low), range[i].low_bits);
        CHECK_INT(mica__f64_to_int(d, high), range[i].high_bits);
        CHECK_INT(mica__f64_to_int(d, low - 1), range[i].low_bits);
        CHECK_INT(mica__f64_to_int(d, high + 1), range[i].high_bits);
        CHECK_INT(mica__f64_to_int(d, nextafter(low, -INFINITY)), range[i].low_bits);
        CHECK_INT(mica__f64_to_int(d, nextafter(high, INFINITY)), range[i].high_bits);
        CHECK_INT(mica__f64_to_int(d, -INFINITY), range[i].low_bits);
        CHECK_INT(mica__f64_to_int(d, INFINITY), range[i].high_bits);
        CHECK_INT(mica__f64_to_int(d, NAN), 0);
        CHECK_INT(mica__f64_to_int(d, 100.99), 100);
        CHECK_INT(mica__f64_to_int(d, -0.99), 0);
        CHECK_INT(mica__f64_to_int(d, -100.99), low < 0 ? -100 : 0);
        char element[9] = {0};
        mica__set_f64(d, element + 1, 0, 100.99); /* not aligned */
        CHECK_INT(mica__get_i64(d, element + 1, 0), 100);
    }
    CHECK_INT(mica__f64_to_int(MICA_U64, 0x1.fffffffffffffp63), (int64_t)0xfffffffffffff800u);
    CHECK_INT(mica__f64_to_int(MICA_I64, 0x1.fffffffffffffp62), 0x7ffffffffffffc00);
    CHECK_INT(mica__f64_to_int(MICA_BOOL, 0.0), 0);
    CHECK_INT(mica__f64_to_int(MICA_BOOL, -0.0), 0);
    CHECK_INT(mica__f64_to_int(MICA_BOOL, 1e-300), 1);
    CHECK_INT(mica__f64_to_int(MICA_BOOL, NAN), 1);
}

TEST(integers_wrap)
{
    CHECK_INT(mica__wrap_i64(MICA_U8, -1), 255);
    CHECK_INT(mica__wrap_i64(MICA_I8, 200), -56);
    CHECK_INT(mica__wrap_i64(MICA_U16, 65536 + 7), 7);
    CHECK_INT(mica__wrap_i64(MICA_I16, 40000), 40000 - 65536);
    CHECK_INT(mica__wrap_i64(MICA_U32, -1), 4294967295);
    CHECK_INT(mica__wrap_i64(MICA_I32, 1ll << 31), INT32_MIN);
    CHECK_INT(mica__wrap_i64(MICA_U64, -5), -5);
    CHECK_INT(mica__wrap_i64(MICA_I64, INT64_MIN), INT64_MIN);
    CHECK_INT(mica__wrap_i64(MICA_BOOL, 256), 1);
    CHECK_INT(mica__wrap_i64(MICA_BOOL, 0), 0);
}

TEST(elements_are_stored_where_they_belong)
{
    for (int i = 0; i < MICA__DTYPE_COUNT; i++) {
        const mica_dtype d = (mica_dtype)i;
        const size_t size = mica_dtype_size(d);
        test_case("%s", mica_dtype_name(d));
        unsigned char data[5 * 8], want[5 * 8];
        memset(data, 0xee, sizeof data);
        memset(want, 0xee, sizeof want);
        mica__set_f64(d, data, 2, 1);
        CHECK(mica__get_f64(d, data, 2) == 1);
        CHECK_INT(mica__get_i64(d, data, 2), 1);
        memcpy(want + 2 * size, data + 2 * size, size);
        CHECK(memcmp(data, want, sizeof data) == 0);
        mica__set_i64(d, data, 2, 0);
        CHECK(mica__get_f64(d, data, 2) == 0);
        memset(want + 2 * size, 0, size);
        CHECK(memcmp(data, want, sizeof data) == 0);
        CHECK(mica__round_f64(d, 1) == 1);
    }
    unsigned char two = 2;
    CHECK_INT(mica__get_i64(MICA_BOOL, &two, 0), 1);
    CHECK(mica__get_f64(MICA_BOOL, &two, 0) == 1);
}

TEST(reading_64_bits)
{
    uint64_t u = UINT64_MAX;
    int64_t i = INT64_MIN;
    CHECK(mica__get_f64(MICA_U64, &u, 0) == 0x1p64);
    CHECK_INT(mica__get_i64(MICA_U64, &u, 0), -1);
    CHECK(mica__get_f64(MICA_I64, &i, 0) == -0x1p63);
    CHECK_INT(mica__get_i64(MICA_I64, &i, 0), INT64_MIN);
    double f = 1e300;
    CHECK_INT(mica__get_i64(MICA_F64, &f, 0), INT64_MAX);
}

TEST(rounding_of_doubles)
{
    CHECK(mica__round_f64(MICA_F16, 65519.999) == 65504);
    CHECK(isinf(mica__round_f64(MICA_F16, 65520)));
    CHECK(mica__round_f64(MICA_BF16, 1.00390625) == 1);
    CHECK(mica__round_f64(MICA_BF16, 1.0039062500001) == 1.0078125);
    CHECK(mica__round_f64(MICA_F32, 0.1) == (double)0.1f);
    CHECK(mica__round_f64(MICA_F64, 0.1) == 0.1);
    CHECK(mica__round_f64(MICA_I8, -3.7) == -3);
    CHECK(mica__round_f64(MICA_U64, 1e30) == 0x1p64);
    CHECK(mica__round_f64(MICA_BOOL, 0.2) == 1);
}

/* Rounds u to this number of binary digits, to nearest even. Not by a C cast, because
 * valgrind rounds casts to float twice. */
static double round_digits(uint64_t u, int digits)
{
    int length = 64;
    while (length > 0 && !(u >> (length - 1))) length--;
    if (length <= digits) return (double)u;
    const uint64_t last = 1ull << (length - digits), rest = u % last;
    uint64_t quotient = u / last;
    if (rest > last / 2 || (rest == last / 2 && quotient % 2)) quotient++;
    return ldexp((double)quotient, length - digits);
}

TEST(integers_to_floats_round_once)
{
    static const struct {
        mica_dtype dtype;
        int digits;
    } to[] = {{MICA_F16, 11}, {MICA_BF16, 8}, {MICA_F32, 24}, {MICA_F64, 53}};
    uint64_t random = 1;
    for (int step = 0; step < 100000; step++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        const size_t k = (size_t)(step % 4);
        uint64_t u = random >> (random >> 58);
        if (step % 3 == 0) { /* at a tie, or next to one */
            const int top = 63 - step % 10;
            u = 1ull << top | (random >> 35 & 1) << (top - to[k].digits + 1) | 1ull << (top - to[k].digits);
            u += random >> 33 & 1;
            u -= random >> 34 & 1;
        }
        const int64_t i = (int64_t)u;
        const uint64_t magnitude = i < 0 ? 0 - u : u;
        double want = round_digits(u, to[k].digits), want_signed = round_digits(magnitude, to[k].digits);
        if (to[k].dtype == MICA_F16 && want > 65504) want = INFINITY;
        if (to[k].dtype == MICA_F16 && want_signed > 65504) want_signed = INFINITY;
        if (i < 0) want_signed = -want_signed;

        char out[8];
        mica__convert_element(to[k].dtype, out, 0, MICA_U64, &u, 0);
        CHECK_MSG(mica__get_f64(to[k].dtype, out, 0) == want, "u64 %llx to %s", (unsigned long long)u,
                  mica_dtype_name(to[k].dtype));
        mica__convert_element(to[k].dtype, out, 0, MICA_I64, &i, 0);
        CHECK_MSG(mica__get_f64(to[k].dtype, out, 0) == want_signed, "i64 %lld to %s", (long long)i,
                  mica_dtype_name(to[k].dtype));
        mica__set_i64(to[k].dtype, out, 0, i);
        CHECK(mica__get_f64(to[k].dtype, out, 0) == want_signed);
    }
}

TEST(every_pair_of_dtypes_converts)
{
    for (int from = 0; from < MICA__DTYPE_COUNT; from++) {
        for (int to = 0; to < MICA__DTYPE_COUNT; to++) {
            test_case("%s to %s", mica_dtype_name((mica_dtype)from), mica_dtype_name((mica_dtype)to));
            static const double values[] = {0, 1, 2, 100, -1, -100, 1.5, -1.5};
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                char in[16], out[16];
                mica__set_f64((mica_dtype)from, in, 1, values[v]);
                mica__convert_element((mica_dtype)to, out, 1, (mica_dtype)from, in, 1);
                const double x = mica__get_f64((mica_dtype)from, in, 1), y = mica__get_f64((mica_dtype)to, out, 1);
                const bool ints = !mica__is_float((mica_dtype)from) && mica__is_int((mica_dtype)to);
                if (ints && from != MICA_U64)
                    CHECK_INT(mica__get_i64((mica_dtype)to, out, 1), mica__wrap_i64((mica_dtype)to, (int64_t)x));
                else CHECK_MSG(y == mica__round_f64((mica_dtype)to, x), "%g became %g", x, y);
            }
        }
    }
}
