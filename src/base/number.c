/* Numbers as text, with a decimal point in any locale. strtod and printf round correctly but
 * use the decimal separator of the locale. So strtod gets digits and an exponent without a point,
 * and in the output of printf any run of bytes other than digits, signs and letters becomes '.'. */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"

/* No double, and no midpoint between two doubles, has more than 768 significant digits. */
enum { DECIMAL_DIGITS = 800, EXPONENT_TEXT = 8, EXPONENT_FAR = 9999 };

typedef struct decimal {
    char text[DECIMAL_DIGITS + EXPONENT_TEXT]; /* digits from the first nonzero one */
    size_t n;
    int64_t exponent;                          /* power of ten                      */
} decimal;

static bool decimal_digit(const char *at, const char *end) { return at < end && *at >= '0' && *at <= '9'; }

static void decimal_add(decimal *d, char digit, bool fraction)
{
    if (d->n < DECIMAL_DIGITS) {
        if (d->n > 0 || digit != '0') d->text[d->n++] = digit;
        d->exponent -= fraction;
        return;
    }
    d->exponent += !fraction;
    if (digit != '0') d->text[DECIMAL_DIGITS - 1] |= 1; /* sticky bit: a dropped nonzero digit breaks a tie */
}

/* Returns the position after the last digit; NULL if there is no digit. */
static const char *decimal_mantissa(decimal *d, const char *at, const char *end)
{
    bool fraction = false, any = false;
    for (; decimal_digit(at, end) || (at < end && *at == '.' && !fraction); at++)
        if (*at == '.') fraction = true;
        else decimal_add(d, *at, fraction), any = true;
    return any ? at : NULL;
}

static const char *decimal_exponent(decimal *d, const char *at, const char *end)
{
    const bool negative = at < end && *at == '-';
    int64_t value = 0;
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (!decimal_digit(at, end)) return NULL;
    for (; decimal_digit(at, end); at++)
        if (value < INT64_MAX / 100) value = 10 * value + (*at - '0'); /* larger: the same result */
    d->exponent += negative ? -value : value;
    return at;
}

static bool number_word(const char *at, const char *end, double *out)
{
    if (end - at != 3) return false;
    if (memcmp(at, "inf", 3) == 0) *out = (double)INFINITY;
    else if (memcmp(at, "nan", 3) == 0) *out = (double)NAN;
    else return false;
    return true;
}

static bool number_decimal(const char *at, const char *end, double *out)
{
    decimal d;
    d.n = 0, d.exponent = 0; /* its text need not be cleared */
    at = decimal_mantissa(&d, at, end);
    if (at && at < end && (*at == 'e' || *at == 'E')) at = decimal_exponent(&d, at + 1, end);
    if (at != end) return false;
    if (d.n == 0) {
        *out = 0;
        return true;
    }
    /* with 800 digits any larger exponent gives infinity or zero too */
    const int64_t e = mica__min_i64(d.exponent < 0 ? -d.exponent : d.exponent, EXPONENT_FAR);
    char *to = d.text + d.n;
    *to++ = 'e';
    *to++ = d.exponent < 0 ? '-' : '+';
    for (int64_t place = 1000; place > 0; place /= 10) *to++ = (char)('0' + e / place % 10);
    *to = '\0';
    *out = strtod(d.text, NULL);
    return isfinite(*out);
}

bool mica_number_parse(const char *text, size_t length, double *out)
{
    if (!text || !out || length == 0) return false;
    const char *at = text, *end = text + length;
    const bool negative = *at == '-';
    double value;
    if (*at == '-' || *at == '+') at++;
    if (!number_word(at, end, &value) && !number_decimal(at, end, &value)) return false;
    *out = negative ? -value : value;
    return true;
}

static const char *number_print(double value, bool single, char at[MICA_NUMBER_TEXT])
{
    char text[2 * MICA_NUMBER_TEXT], *to = at;
    if (isnan(value)) return memcpy(at, "nan", sizeof "nan");
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        const double back = strtod(text, NULL);
        if (single ? (float)back == (float)value : back == value) break;
    }
    bool point = false;
    for (const char *c = text; *c; c++) {
        const bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || *c == '-' || *c == '+';
        if (plain || !point) *to++ = plain ? *c : '.'; /* a point may have several bytes */
        point = !plain;
    }
    *to = '\0';
    return at;
}

const char *mica__number_print_f32(float value, char at[MICA_NUMBER_TEXT])
{
    return number_print((double)value, true, at);
}

const char *mica_number_print(double value, char *buffer, size_t cap)
{
    char text[MICA_NUMBER_TEXT];
    const size_t need = strlen(number_print(value, false, text)) + 1;
    if (buffer && need <= cap) return memcpy(buffer, text, need);
    if (buffer && cap > 0) buffer[0] = '\0';
    (void)mica__fail(MICA_ERR_ARGUMENT, "number_print: %s needs %zu bytes, the buffer has %zu", text, need,
                     buffer ? cap : 0);
    return NULL;
}
