/* Numbers as text: what is a number and what is not, reading to the nearest double, writing back to
 * the same bits, and a decimal point even if the locale of the program has a comma. */
#include <float.h>
#include <math.h>
#include <mica_liquid.h>

#include "comma_locale.h"
#include "files.h"

static bool parse(const char *text, double *out) { return mica_number_parse(text, strlen(text), out); }

/* Equal, and of the same sign: -0 is not 0. */
static bool same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

TEST(what_is_a_number)
{
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"0", 0},
                {"-0", -0.0},
                {"7", 7},
                {"+7", 7},
                {"-2.5", -2.5},
                {".5", 0.5},
                {"5.", 5},
                {"007.50", 7.5},
                {"0.1", 0.1},
                {"1e3", 1000},
                {"1E+3", 1000},
                {"-2.5e-3", -0.0025},
                {"1e22", 1e22},
                {"1e23", 1e23},
                {"9007199254740993", 9007199254740992.0}, /* half-way, to the even one */
                {"9007199254740993.0000000001", 9007199254740994.0},
                {"1.7976931348623157e308", DBL_MAX},
                {"1.7976931348623158e308", DBL_MAX}, /* nearer to it than to the next power of two */
                {"2.2250738585072011e-308", 2.2250738585072011e-308},
                {"4.9406564584124654e-324", 4.9406564584124654e-324},
                {"2.4703282292062327e-324", 0}, /* below half of the smallest subnormal */
                {"1e-999", 0},
                {"-1e-99999999999999999999", -0.0},
                {"0e99999999999999999999", 0},
                {"0.000e+1", 0},
                {"inf", INFINITY},
                {"+inf", INFINITY},
                {"-inf", -INFINITY}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        double v = 99;
        EXPECT_MSG(parse(rows[i].text, &v) && same(v, rows[i].value), "%s is %a", rows[i].text, v);
    }
    double v = 0;
    EXPECT(parse("nan", &v) && isnan(v));
    v = 0;
    EXPECT(parse("-nan", &v) && isnan(v));
    EXPECT(mica_number_parse("12345", 2, &v) && v == 12); /* the text need not be NUL-terminated */
}

TEST(texts_that_are_not_numbers)
{
    static const char *const rows[] = {"",       " ",     "x",    "-",     "+",        ".",
                                       "-.",     "e5",    ".e5",  "1e",    "1e+",      "1e5x",
                                       "1 ",     " 1",    "1,5",  "1.2.3", "--1",      "+-1",
                                       "0x10",   "0x1p3", "1f",   "1e999", "-1e999",   "1e999999999999999999999",
                                       "1_0",    "Inf",   "INF",  "in",    "infinity", "NaN",
                                       "nan(1)", "- 1",   "1e5.0"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        double v = 99;
        EXPECT_MSG(!parse(rows[i], &v) && v == 99, "'%s' is %a", rows[i], v);
    }
    double v = 99;
    EXPECT(!mica_number_parse("1\0", 2, &v) && v == 99);
}

/* More digits than are stored: the rest decides only ties. */
TEST(numbers_of_many_digits)
{
    enum { LONG = 100000 };
    char *text = malloc(LONG + 64);
    double v;
    CHECK(text);
    memset(text, '0', LONG);
    text[0] = '1';
    snprintf(text + LONG, 64, "e-%d", LONG - 1);
    EXPECT(parse(text, &v) && v == 1);
    /* 1 + 2^-53 is halfway between 1 and the next double; a digit far to the right breaks the tie */
    static const char half[] = "1.00000000000000011102230246251565404236316680908203125";
    for (int far = 0; far < 2; far++) {
        memset(text, '0', LONG);
        memcpy(text, half, sizeof half - 1);
        text[LONG - 1] = far ? '1' : '0';
        text[LONG] = '\0';
        EXPECT_MSG(parse(text, &v) && same(v, far ? 1 + DBL_EPSILON : 1), "%d: %a", far, v);
    }
    memset(text, '0', LONG);
    text[1] = '.';
    snprintf(text + LONG, 64, "25e%d", LONG);
    EXPECT(parse(text, &v) && v == 25);
    snprintf(text + LONG, 64, "e-%d", 5);
    EXPECT(parse(text, &v) && same(v, 0));
    memset(text, '9', LONG);
    text[LONG] = '\0';
    EXPECT(!parse(text, &v));
    free(text);
}

static bool back(double value)
{
    char text[MICA_NUMBER_TEXT];
    double v = 99;
    return mica_number_print(value, text, sizeof text) == text && parse(text, &v) && same(v, value);
}

TEST(numbers_come_back)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0"},
                {-0.0, "-0"},
                {0.1, "0.1"},
                {0.1 + 0.2, "0.30000000000000004"},
                {100, "100"},
                {1e6, "1e+06"},
                {1.5e6, "1.5e+06"},
                {1234567, "1234567"},
                {1e-5, "1e-05"},
                {-1 / 3.0, "-0.3333333333333333"},
                {DBL_MAX, "1.7976931348623157e+308"},
                {-DBL_MIN, "-2.2250738585072014e-308"},
                {INFINITY, "inf"},
                {-INFINITY, "-inf"},
                {NAN, "nan"},
                {-NAN, "nan"}};
    char text[MICA_NUMBER_TEXT], tight[5];
    for (size_t i = 0; i < COUNT(rows); i++)
        EXPECT_STR(mica_number_print(rows[i].value, text, sizeof text), rows[i].text);
    uint64_t bits = 0;
    for (int i = 0; i < 20000; i++) {
        double v;
        bits = mica_seed_split(bits, (uint64_t)i);
        memcpy(&v, &bits, sizeof v);
        if (!isnan(v) && !EXPECT_MSG(back(v), "%a", v)) break;
        const double few = (double)(int32_t)bits / 1000;
        if (!EXPECT_MSG(back(few), "%a", few)) break;
    }
    for (double v = 1; v > 0; v /= 2) EXPECT_MSG(back(v) && back(-v), "%a", v); /* to the smallest */
    EXPECT_STR(mica_number_print(-0.5, tight, sizeof tight), "-0.5");
    EXPECT(!mica_number_print(-0.25, tight, sizeof tight) && tight[0] == '\0');
    EXPECT_STR(mica_last_error(), "number_print: -0.25 needs 6 bytes, the buffer has 5");
}

/* A program with another decimal point reads and writes the same. */
TEST(numbers_have_a_point_in_any_locale)
{
    mica_wiring *w;
    CHECK_OK(mica_wiring_parse("random:9,2,0.5", 3, &w));
    const size_t length = mica_wiring_svg(w, NULL, 0);
    char *svg = malloc(length + 1), *other = malloc(length + 1), text[MICA_NUMBER_TEXT];
    CHECK(svg && other);
    mica_wiring_svg(w, svg, length + 1);
    EXPECT(strstr(svg, "0.8") && strstr(svg, ".4\""));
    if (!comma_locale()) {
        free(svg), free(other), mica_wiring_free(w);
        SKIP("there is no locale with a decimal comma");
    }
    double v = 0;
    EXPECT(parse("-2.5e-3", &v) && same(v, -0.0025) && parse(".5", &v) && v == 0.5);
    EXPECT(!parse("1,5", &v));
    EXPECT_STR(mica_number_print(-0.0025, text, sizeof text), "-0.0025");
    EXPECT_STR(mica_number_print(1.5e300, text, sizeof text), "1.5e+300");
    EXPECT(back(0.1 + 0.2) && back(-DBL_MIN) && back(1e22));
    mica_wiring *again;
    CHECK_OK(mica_wiring_parse("random:9,2,0.5", 3, &again));
    EXPECT_INT(mica_wiring_svg(again, other, length + 1), length);
    EXPECT_STR(other, svg);

    mica_writer *out;
    mica_file *file;
    const char *found;
    size_t n;
    CHECK_OK(mica_writer_open(file_path("n.safetensors"), "safetensors", &out));
    (void)mica_writer_f64(out, "f", MICA_F32, (double)0.1f);
    (void)mica_writer_f64(out, "d", MICA_F64, 0.30000000000000004);
    CHECK_OK(mica_writer_finish(out, NULL, NULL));
    setlocale(LC_NUMERIC, "C");
    CHECK_OK(mica_file_open(file_path("n.safetensors"), NULL, &file));
    EXPECT(mica_file_string(file, "f", &found, &n) && n == 3 && memcmp(found, "0.1", n) == 0);
    EXPECT(mica_file_string(file, "d", &found, &n) && n == 19 && memcmp(found, "0.30000000000000004", n) == 0);
    mica_file_close(file);
    remove(file_path("n.safetensors"));
    mica_wiring_free(w);
    mica_wiring_free(again);
    free(svg);
    free(other);
}
