/* Looks up categories by binary search over the starts of runs; encodes and decodes UTF-8. */
#include "text/unicode.h"

static const uint32_t unicode_runs[] = {
#include "text/unicode.def"
};

mica__category mica__unicode_category(uint32_t c)
{
    size_t low = 0, high = sizeof unicode_runs / sizeof unicode_runs[0];
    if (c > 0x10ffff) return MICA__CN;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (unicode_runs[middle] >> 5 <= c) low = middle;
        else high = middle;
    }
    return (mica__category)(unicode_runs[low] & 31);
}

bool mica__unicode_space(uint32_t c)
{
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

size_t mica__utf8_expected(unsigned char first)
{
    return first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 1;
}

size_t mica__utf8_get(const char *p, size_t room, uint32_t *c)
{
    const unsigned char *u = (const unsigned char *)p;
    const size_t n = mica__utf8_expected(u[0]);
    *c = u[0];
    if (n == 1) {
        if (u[0] >= 0x80) *c = 0xfffd;
        return 1;
    }
    uint32_t v = u[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (i >= room || (u[i] & 0xc0) != 0x80) {
            *c = 0xfffd;
            return 1;
        }
        v = v << 6 | (u[i] & 63);
    }
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000)) {
        *c = 0xfffd;
        return 1;
    }
    *c = v;
    return n;
}

size_t mica__utf8_set(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 63));
    out[0] = (char)((0xf00u >> n & 0xff) | c);
    return n;
}
