/* Normalization form C (text/nfc.c) and general categories (text/unicode.c) against utf8proc. Bytes that are not UTF-8
 * stay in mica and are refused by utf8proc: the text between them is compared piece by piece. */
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "differential.h"
#include "text/nfc.h"
#include "text/unicode.h"

enum { NOT_UTF8, NEWER_UNICODE, HANGUL_11A7, N_REASONS };
static const differ_reason reasons[] = {
    [NOT_UTF8] = {"not UTF-8",
                  "mica keeps the bytes and normalizes the text between them, because a tokenizer must encode "
                  "any bytes; utf8proc refuses the text. The pieces between them are equal"},
    [NEWER_UNICODE] = {"newer Unicode", "the text has a character that Unicode 14, which mica's tables have, does not "
                                        "assign and the version of utf8proc does"},
    [HANGUL_11A7] = {"U+11A7",
                     "utf8proc 2.8 drops U+11A7 after a Hangul syllable; it is not a trailing consonant, and mica "
                     "and Python keep it"},
};

/* ------------------------------------------------------------- comparing --- */

/* Appends the NFC of valid UTF-8 by utf8proc. */
static void put_peer(differ_bytes *out, const uint8_t *text, size_t n)
{
    utf8proc_uint8_t *normal = NULL;
    if (n == 0) return;
    const utf8proc_ssize_t size = utf8proc_map(text, (utf8proc_ssize_t)n, &normal, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (size < 0) abort();
    differ_put(out, normal, (size_t)size);
    free(normal);
}

/* utf8proc's categories in mica's order (text/unicode.h). */
static mica__category peer_category(uint32_t c)
{
    static const mica__category of[] = {
        [UTF8PROC_CATEGORY_CN] = MICA__CN, [UTF8PROC_CATEGORY_LU] = MICA__LU, [UTF8PROC_CATEGORY_LL] = MICA__LL,
        [UTF8PROC_CATEGORY_LT] = MICA__LT, [UTF8PROC_CATEGORY_LM] = MICA__LM, [UTF8PROC_CATEGORY_LO] = MICA__LO,
        [UTF8PROC_CATEGORY_MN] = MICA__MN, [UTF8PROC_CATEGORY_MC] = MICA__MC, [UTF8PROC_CATEGORY_ME] = MICA__ME,
        [UTF8PROC_CATEGORY_ND] = MICA__ND, [UTF8PROC_CATEGORY_NL] = MICA__NL, [UTF8PROC_CATEGORY_NO] = MICA__NO,
        [UTF8PROC_CATEGORY_PC] = MICA__PC, [UTF8PROC_CATEGORY_PD] = MICA__PD, [UTF8PROC_CATEGORY_PS] = MICA__PS,
        [UTF8PROC_CATEGORY_PE] = MICA__PE, [UTF8PROC_CATEGORY_PI] = MICA__PI, [UTF8PROC_CATEGORY_PF] = MICA__PF,
        [UTF8PROC_CATEGORY_PO] = MICA__PO, [UTF8PROC_CATEGORY_SM] = MICA__SM, [UTF8PROC_CATEGORY_SC] = MICA__SC,
        [UTF8PROC_CATEGORY_SK] = MICA__SK, [UTF8PROC_CATEGORY_SO] = MICA__SO, [UTF8PROC_CATEGORY_ZS] = MICA__ZS,
        [UTF8PROC_CATEGORY_ZL] = MICA__ZL, [UTF8PROC_CATEGORY_ZP] = MICA__ZP, [UTF8PROC_CATEGORY_CC] = MICA__CC,
        [UTF8PROC_CATEGORY_CF] = MICA__CF, [UTF8PROC_CATEGORY_CS] = MICA__CS, [UTF8PROC_CATEGORY_CO] = MICA__CO};
    return of[utf8proc_category((utf8proc_int32_t)c)];
}

typedef struct peer_facts {
    bool invalid, newer, u11a7;
    uint32_t wrong; /* a character whose categories differ; 0: none */
} peer_facts;

/* The expected text, with bytes that are not UTF-8 as they are. */
static peer_facts read_peer(differ_bytes *out, const uint8_t *text, size_t n)
{
    peer_facts facts = {0};
    size_t from = 0, at = 0;
    while (at < n) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t size = utf8proc_iterate(text + at, (utf8proc_ssize_t)(n - at), &c);
        if (size > 0) {
            const mica__category ours = mica__unicode_category((uint32_t)c), theirs = peer_category((uint32_t)c);
            if (ours != theirs && ours == MICA__CN) facts.newer = true;
            else if (ours != theirs) facts.wrong = (uint32_t)c;
            facts.u11a7 |= c == 0x11a7;
            at += (size_t)size;
            continue;
        }
        put_peer(out, text + from, at - from);
        differ_byte(out, text[at]);
        from = ++at;
        facts.invalid = true;
    }
    put_peer(out, text + from, n - from);
    return facts;
}

static void compare(differ *d, const uint8_t *data, size_t size)
{
    static differ_bytes theirs;
    char *changed = NULL;
    size_t n = 0;
    theirs.n = 0;
    const peer_facts facts = read_peer(&theirs, data, size);
    if (mica__nfc((const char *)data, size, &changed, &n) != MICA_OK) {
        differ_fail(d, "mica refuses a text: %s", mica_last_error());
        return;
    }
    const uint8_t *ours = changed ? (const uint8_t *)changed : data;
    if (!changed) n = size;
    const bool same = n == theirs.n && (n == 0 || memcmp(ours, theirs.data, n) == 0);
    if (facts.newer) differ_listed(d, NEWER_UNICODE);
    else if (facts.wrong) differ_fail(d, "the categories of U+%04X differ", (unsigned)facts.wrong);
    else if (!same && facts.u11a7) differ_listed(d, HANGUL_11A7);
    else if (!same) differ_fail(d, "byte %zu of the normal form differs", differ_first(ours, n, theirs.data, theirs.n));
    else if (facts.invalid) differ_listed(d, NOT_UTF8);
    else differ_agree(d, true);
    mica__free(changed);
}

/* ------------------------------------------------------------ generating --- */

/* Ranges in which characters decompose, compose, or have a class; a range is chosen with equal probability. */
static const struct {
    uint32_t first, last;
} ranges[] = {{0x20, 0x7e},       {0xa0, 0xff},       {0x100, 0x24f},     {0x300, 0x345},     {0x300, 0x36f},
              {0x370, 0x3ff},     {0x400, 0x4ff},     {0x591, 0x5c7},     {0x5d0, 0x5ea},     {0x610, 0x6d5},
              {0x711, 0x74a},     {0x900, 0x97f},     {0x980, 0x9fe},     {0xa01, 0xa75},     {0xb01, 0xb77},
              {0xb82, 0xbfa},     {0xc00, 0xcf2},     {0xd00, 0xdf4},     {0xe31, 0xecd},     {0xf00, 0xfda},
              {0x1000, 0x109f},   {0x1100, 0x1112},   {0x1161, 0x1175},   {0x11a7, 0x11c2},   {0x1100, 0x11ff},
              {0x135d, 0x135f},   {0x1a17, 0x1ac0},   {0x1b00, 0x1b7c},   {0x1cd0, 0x1cfa},   {0x1dc0, 0x1dff},
              {0x1e00, 0x1eff},   {0x1f00, 0x1fff},   {0x2000, 0x206f},   {0x20d0, 0x20f0},   {0x2100, 0x219b},
              {0x21ae, 0x22ed},   {0x2329, 0x232a},   {0x2adc, 0x2add},   {0x3041, 0x30ff},   {0x302a, 0x302f},
              {0xa66f, 0xa6f1},   {0xac00, 0xd7a3},   {0xac00, 0xad00},   {0xf900, 0xfad9},   {0xfb1d, 0xfb4f},
              {0xfe20, 0xfe2f},   {0x10a0d, 0x10a3f}, {0x11046, 0x110ba}, {0x11100, 0x1114f}, {0x11300, 0x11374},
              {0x114b0, 0x114c3}, {0x115af, 0x115c0}, {0x11930, 0x1193e}, {0x1d15e, 0x1d1c0}, {0x1e000, 0x1e02a},
              {0x1e130, 0x1e2ef}, {0x1e8d0, 0x1e94a}, {0x2f800, 0x2fa1d}, {0x0, 0x10ffff}};

static uint32_t any_character(uint64_t *r, unsigned range)
{
    uint32_t c;
    do c = ranges[range].first + differ_below(r, ranges[range].last - ranges[range].first + 1);
    while (c >= 0xd800 && c < 0xe000);
    return c;
}

static void generate(uint64_t *r, differ_bytes *out)
{
    enum { N_RANGES = sizeof ranges / sizeof ranges[0], RUN = 2048 };
    if (differ_one_in(r, 1000)) { /* a run of all characters: together these cover Unicode */
        const uint32_t from = RUN * differ_below(r, 0x110000 / RUN);
        for (uint32_t c = from; c < from + RUN; c++)
            if (c < 0xd800 || c >= 0xe000) differ_utf8(out, c);
        return;
    }
    /* few ranges a text, so that characters of one script meet; marks often */
    unsigned used[4];
    for (int i = 0; i < 4; i++) used[i] = differ_below(r, N_RANGES);
    for (unsigned n = 1 + differ_below(r, differ_one_in(r, 20) ? 120 : 14); n > 0; n--) {
        const unsigned range = differ_one_in(r, 4) ? 3 + differ_below(r, 2) : DIFFER_PICK(r, used);
        differ_utf8(out, any_character(r, range));
        if (differ_one_in(r, 400)) differ_byte(out, 0x80 + differ_below(r, 128));
    }
}

int main(int argc, char **argv)
{
    char peer[64];
    snprintf(peer, sizeof peer, "utf8proc %s, Unicode %s", utf8proc_version(), utf8proc_unicode_version());
    const differ_program program = {.name = "nfc",
                                    .peer = peer,
                                    .reasons = reasons,
                                    .n_reasons = N_REASONS,
                                    .generate = generate,
                                    .compare = compare};
    return differ_main(&program, argc, argv);
}
