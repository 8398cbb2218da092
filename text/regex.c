/* A compiler to a list of instructions, and a backtracking machine that runs them.
 * It has a separate stack on the heap, so the C stack does not grow with the text. */
#include "text/regex.h"

#include <string.h>

#include "base/alloc.h"
#include "text/unicode.h"

enum { REGEX_CODE = 2000, REGEX_ITEMS = 1000, REGEX_NESTING = 50, REGEX_REPEAT = 64 };

typedef enum regex_op { RE_SET, RE_SPLIT, RE_JUMP, RE_LOOK, RE_NOT, RE_ATOMIC, RE_BEGIN, RE_END, RE_MATCH } regex_op;

/* One item of a character set: a range, a mask of categories, or white space. */
typedef struct set_item {
    uint32_t low, high, categories;
    bool space, inverse;
} set_item;

typedef struct regex_code {
    uint8_t op;
    bool inverse, fold;      /* RE_SET: negated; ignore case     */
    uint16_t first, n_items; /* RE_SET                           */
    uint16_t to, other; /* RE_SPLIT: try to, then other; RE_LOOK, RE_NOT, RE_ATOMIC: to is after the inner code */
} regex_code;

struct mica__regex {
    regex_code code[REGEX_CODE];
    set_item items[REGEX_ITEMS];
    int n_code, n_items;
};

typedef struct regex_parser {
    mica__regex *re;
    const char *text;
    size_t at, length;
    bool fold;
    int nesting;
} regex_parser;

/* --------------------------------------------------------------- parsing --- */

static mica_status regex_fail(const regex_parser *p, const char *why)
{
    return mica__fail(MICA_ERR_UNSUPPORTED, "regular expression '%.*s': %s at byte %zu",
                      p->length < 200 ? (int)p->length : 200, p->text, why, p->at);
}

static mica_status regex_emit(regex_parser *p, regex_code code)
{
    if (p->re->n_code >= REGEX_CODE) return regex_fail(p, "too long");
    p->re->code[p->re->n_code++] = code;
    return MICA_OK;
}

static bool regex_peek(const regex_parser *p, const char *text)
{
    const size_t n = strlen(text);
    return p->length - p->at >= n && memcmp(p->text + p->at, text, n) == 0;
}

static bool regex_accept(regex_parser *p, const char *text)
{
    if (!regex_peek(p, text)) return false;
    p->at += strlen(text);
    return true;
}

static mica_status add_item(regex_parser *p, set_item item)
{
    if (p->re->n_items >= REGEX_ITEMS) return regex_fail(p, "too many characters in classes");
    p->re->items[p->re->n_items++] = item;
    return MICA_OK;
}

/* "L", "Lu", "N", ...: a mask of categories, 0 for an unknown name. */
static uint32_t category_mask(const char *name, size_t n)
{
    static const char names[] = "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";
    uint32_t mask = 0;
    for (uint32_t i = 0; i < 30 && (n == 1 || n == 2); i++)
        if (names[2 * i] == name[0] && (n == 1 || names[2 * i + 1] == name[1])) mask |= 1u << i;
    return mask;
}

static mica_status parse_property(regex_parser *p, bool inverse)
{
    const bool braces = regex_accept(p, "{");
    inverse ^= braces && regex_accept(p, "^");
    const char *name = p->text + p->at;
    const char *close = braces ? memchr(name, '}', p->length - p->at) : NULL;
    const size_t n = close ? (size_t)(close - name) : p->at < p->length ? 1 : 0;
    const uint32_t mask = braces && !close ? 0 : category_mask(name, n);
    if (!mask) return regex_fail(p, "an unknown property");
    p->at += n + (braces ? 1 : 0);
    return add_item(p, (set_item){.low = 1, .categories = mask, .inverse = inverse});
}

static mica_status parse_hex(regex_parser *p, size_t digits, uint32_t *c)
{
    const bool braces = digits == 2 && regex_accept(p, "{");
    size_t n = 0;
    *c = 0;
    for (; p->at < p->length && n < (braces ? 6 : digits); n++, p->at++) {
        const char h = p->text[p->at];
        const int d = h >= '0' && h <= '9' ? h - '0' : (h | 32) >= 'a' && (h | 32) <= 'f' ? (h | 32) - 'a' + 10 : -1;
        if (d < 0) break;
        *c = *c * 16 + (uint32_t)d;
    }
    if (n == 0 || (!braces && n != digits) || (braces && !regex_accept(p, "}"))) return regex_fail(p, "a wrong number");
    if (*c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000)) return regex_fail(p, "a number that is not a character");
    return MICA_OK;
}

/* Called after a backslash. Stores a character in *c, or adds items and sets *single to false. */
static mica_status parse_escape(regex_parser *p, uint32_t *c, bool *single)
{
    *single = false;
    if (p->at >= p->length) return regex_fail(p, "nothing follows the backslash");
    const char e = p->text[p->at++];
    const set_item space = {.low = 1, .space = true};
    set_item item = space;
    switch (e) {
    case 's': return add_item(p, item);
    case 'S': item.inverse = true; return add_item(p, item);
    case 'd':
    case 'D': return add_item(p, (set_item){.low = 1, .categories = 1u << MICA__ND, .inverse = e == 'D'});
    case 'p':
    case 'P': return parse_property(p, e == 'P');
    case 'w':
        MICA_TRY(add_item(p, (set_item){'_', '_', 0, false, false}));
        return add_item(
            p,
            (set_item){.low = 1, .categories = category_mask("L", 1) | category_mask("M", 1) | category_mask("N", 1)});
    default: break;
    }
    *single = true;
    static const char from[] = "rntfv0", to[] = "\r\n\t\f\v";
    const char *found = strchr(from, e);
    if (e == 'x' || e == 'u') return parse_hex(p, e == 'x' ? 2 : 4, c);
    if (found && e) {
        if (e == '0' && p->at < p->length && p->text[p->at] >= '0' && p->text[p->at] <= '9')
            return regex_fail(p, "\\0 before a digit, which others read as an octal number");
        *c = (uint32_t)to[found - from];
        return MICA_OK;
    }
    if ((e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z') || (e >= '1' && e <= '9')) {
        p->at--;
        return regex_fail(p, "an unknown escape");
    }
    p->at--;
    p->at += mica__utf8_get(p->text + p->at, p->length - p->at, c);
    return MICA_OK;
}

static mica_status parse_one(regex_parser *p, uint32_t *c, bool *single)
{
    if (regex_accept(p, "\\")) return parse_escape(p, c, single);
    *single = true;
    p->at += mica__utf8_get(p->text + p->at, p->length - p->at, c);
    return MICA_OK;
}

/* Called after "[". */
static mica_status parse_class(regex_parser *p)
{
    regex_code set = {.op = RE_SET, .fold = p->fold, .first = (uint16_t)p->re->n_items};
    set.inverse = regex_accept(p, "^");
    for (bool first = true; first || !regex_peek(p, "]"); first = false) {
        uint32_t low, high;
        bool single;
        if (p->at >= p->length) return regex_fail(p, "a class has no end");
        if (regex_peek(p, "[:") || regex_peek(p, "[") || regex_peek(p, "&&"))
            return regex_fail(p, "a class in a class");
        MICA_TRY(parse_one(p, &low, &single));
        if (!single) continue;
        high = low;
        if (regex_peek(p, "-") && !regex_peek(p, "-]")) {
            if (++p->at >= p->length) return regex_fail(p, "a class has no end");
            MICA_TRY(parse_one(p, &high, &single));
            if (!single || high < low) return regex_fail(p, "a range that is reversed or ends in a class");
        }
        MICA_TRY(add_item(p, (set_item){low, high, 0, false, false}));
    }
    p->at++;
    set.n_items = (uint16_t)(p->re->n_items - set.first);
    return regex_emit(p, set);
}

static mica_status parse_alternatives(regex_parser *p);

/* Called after "(". */
static mica_status parse_group(regex_parser *p)
{
    const bool fold = p->fold;
    const int at = p->re->n_code;
    if (++p->nesting > REGEX_NESTING) return regex_fail(p, "nested too deeply");
    bool look = false;
    if (regex_accept(p, "?")) {
        if (regex_accept(p, "i:")) p->fold = true;
        else if (regex_peek(p, "!") || regex_peek(p, "=")) {
            look = true;
            MICA_TRY(regex_emit(p, (regex_code){.op = p->text[p->at++] == '!' ? RE_NOT : RE_LOOK}));
        } else if (!regex_accept(p, ":")) return regex_fail(p, "an unknown group");
    }
    MICA_TRY(parse_alternatives(p));
    if (!regex_accept(p, ")")) return regex_fail(p, "a group has no end");
    if (look) {
        MICA_TRY(regex_emit(p, (regex_code){.op = RE_MATCH}));
        p->re->code[at].to = (uint16_t)p->re->n_code;
    }
    p->fold = fold;
    p->nesting--;
    return MICA_OK;
}

static mica_status parse_atom(regex_parser *p)
{
    if (regex_accept(p, "[")) return parse_class(p);
    if (regex_accept(p, "(")) return parse_group(p);
    if (regex_accept(p, "^")) return regex_emit(p, (regex_code){.op = RE_BEGIN});
    if (regex_accept(p, "$")) return regex_emit(p, (regex_code){.op = RE_END});
    if (regex_peek(p, "*") || regex_peek(p, "+") || regex_peek(p, "?") || regex_peek(p, "{"))
        return regex_fail(p, "nothing to repeat");
    regex_code set = {.op = RE_SET, .fold = p->fold, .first = (uint16_t)p->re->n_items};
    uint32_t c;
    bool single;
    if (regex_accept(p, ".")) {
        set.inverse = true;
        MICA_TRY(add_item(p, (set_item){'\n', '\n', 0, false, false}));
    } else {
        MICA_TRY(parse_one(p, &c, &single));
        if (single) MICA_TRY(add_item(p, (set_item){c, c, 0, false, false}));
    }
    set.n_items = (uint16_t)(p->re->n_items - set.first);
    return regex_emit(p, set);
}

static bool parse_count(regex_parser *p, int *out)
{
    const size_t from = p->at;
    for (*out = 0; p->at < p->length && p->text[p->at] >= '0' && p->text[p->at] <= '9' && *out <= REGEX_REPEAT; p->at++)
        *out = *out * 10 + (p->text[p->at] - '0');
    return p->at > from;
}

/* ?, *, +, {..} as numbers; high -1: unlimited. Without a repetition both are 1. possessive: a + follows. */
static mica_status parse_repeat(regex_parser *p, int *low, int *high, bool *possessive)
{
    *low = *high = 1;
    *possessive = false;
    if (regex_accept(p, "?")) *low = 0;
    else if (regex_accept(p, "*")) *low = 0, *high = -1;
    else if (regex_accept(p, "+")) *high = -1;
    else if (regex_accept(p, "{")) {
        bool good = parse_count(p, low);
        *high = *low;
        if (good && regex_accept(p, ",") && !parse_count(p, high)) *high = -1;
        if (!good || !regex_accept(p, "}") || *low > REGEX_REPEAT || *high > REGEX_REPEAT ||
            (*high >= 0 && *high < *low))
            return regex_fail(p, "a wrong repetition");
    } else return MICA_OK;
    if (regex_peek(p, "?")) return regex_fail(p, "a lazy repetition");
    *possessive = regex_accept(p, "+");
    return MICA_OK;
}

/* Puts the code from `at` on into an atomic group: once it has matched, it is not tried in another way. */
static mica_status make_atomic(regex_parser *p, int at)
{
    mica__regex *re = p->re;
    MICA_TRY(regex_emit(p, (regex_code){.op = RE_MATCH})); /* makes room for one */
    memmove(re->code + at + 1, re->code + at, (size_t)(re->n_code - 1 - at) * sizeof *re->code);
    for (int i = at + 1; i < re->n_code; i++) {
        if (re->code[i].op == RE_SPLIT) re->code[i].other++;
        if (re->code[i].op != RE_SET && re->code[i].op != RE_MATCH) re->code[i].to++;
    }
    MICA_TRY(regex_emit(p, (regex_code){.op = RE_MATCH}));
    re->code[at] = (regex_code){.op = RE_ATOMIC, .to = (uint16_t)re->n_code};
    return MICA_OK;
}

/* Expands x{low,high} to low copies of x, followed by optional copies or a loop. */
static mica_status repeat_code(regex_parser *p, int at, int low, int high)
{
    mica__regex *re = p->re;
    const int size = re->n_code - at;
    if (low == 1 && high == 1) return MICA_OK;
    /* The code of the atom is removed from the end and emitted again for each copy. */
    regex_code body[256];
    if (size > (int)(sizeof body / sizeof body[0])) return regex_fail(p, "a repeated expression that is too long");
    memcpy(body, re->code + at, (size_t)size * sizeof *body);
    const int times = high < 0 ? low + 1 : high;
    re->n_code = at;
    for (int i = 0; i < times; i++) {
        const int split = re->n_code;
        const bool optional = i >= low;
        if (optional) MICA_TRY(regex_emit(p, (regex_code){.op = RE_SPLIT, .to = (uint16_t)(split + 1)}));
        const int shift = re->n_code - at;
        for (int k = 0; k < size; k++) {
            regex_code code = body[k];
            if (code.op == RE_SPLIT) code.other = (uint16_t)(code.other + shift);
            if (code.op != RE_SET && code.op != RE_MATCH) code.to = (uint16_t)(code.to + shift);
            MICA_TRY(regex_emit(p, code));
        }
        if (optional && high < 0) MICA_TRY(regex_emit(p, (regex_code){.op = RE_JUMP, .to = (uint16_t)split}));
        if (optional) re->code[split].other = (uint16_t)re->n_code; /* for {m,n}: set again below */
    }
    /* Skipping an optional copy skips all copies after it too. */
    if (high >= 0)
        for (int i = low, split = at + low * size; i < high; i++, split += size + 1)
            re->code[split].other = (uint16_t)re->n_code;
    return MICA_OK;
}

static mica_status parse_sequence(regex_parser *p)
{
    while (p->at < p->length && !regex_peek(p, "|") && !regex_peek(p, ")")) {
        int low, high;
        bool possessive;
        const int at = p->re->n_code;
        MICA_TRY(parse_atom(p));
        MICA_TRY(parse_repeat(p, &low, &high, &possessive));
        MICA_TRY(repeat_code(p, at, low, high));
        if (possessive) MICA_TRY(make_atomic(p, at));
    }
    return MICA_OK;
}

static mica_status parse_alternatives(regex_parser *p)
{
    /* a|b|c: split to a, else to what follows; jumps to the end are chained by `to` */
    int jumps = -1;
    for (;;) {
        const int at = p->re->n_code;
        /* reserve the split; in the last alternative it becomes a jump to the next instruction */
        MICA_TRY(regex_emit(p, (regex_code){.op = RE_SPLIT, .to = (uint16_t)(at + 1)}));
        MICA_TRY(parse_sequence(p));
        if (!regex_accept(p, "|")) {
            p->re->code[at] = (regex_code){.op = RE_JUMP, .to = (uint16_t)(at + 1)};
            break;
        }
        const int jump = p->re->n_code;
        MICA_TRY(regex_emit(p, (regex_code){.op = RE_JUMP, .to = (uint16_t)(jumps < 0 ? jump : jumps)}));
        jumps = jump;
        p->re->code[at].other = (uint16_t)p->re->n_code;
    }
    while (jumps >= 0) {
        const int next = p->re->code[jumps].to;
        p->re->code[jumps].to = (uint16_t)p->re->n_code;
        jumps = next == jumps ? -1 : next;
    }
    return MICA_OK;
}

mica_status mica__regex_new(mica__arena *arena, const char *pattern, size_t length, mica__regex **out)
{
    mica__regex *re = mica__arena_alloc(arena, sizeof *re);
    if (!re) return mica__fail_memory("a regular expression", sizeof *re);
    regex_parser p = {.re = re, .text = pattern, .length = length};
    MICA_TRY(parse_alternatives(&p));
    if (p.at < length) return regex_fail(&p, "a ')' without a '('");
    MICA_TRY(regex_emit(&p, (regex_code){.op = RE_MATCH}));
    *out = re;
    return MICA_OK;
}

/* -------------------------------------------------------------- matching --- */

/* Is c in the range, in any case? Of ASCII letters only; U+017F and U+212A are further cases of s and k. */
static bool in_folded_range(const set_item *item, uint32_t c)
{
    const uint32_t lower = c >= 'A' && c <= 'Z' ? c + 32 : c == 0x17f ? 's' : c == 0x212a ? 'k' : c;
    const uint32_t upper = lower >= 'a' && lower <= 'z' ? lower - 32 : lower;
    const uint32_t further = lower == 's' ? 0x17f : lower == 'k' ? 0x212a : lower;
    return (c >= item->low && c <= item->high) || (lower >= item->low && lower <= item->high) ||
           (upper >= item->low && upper <= item->high) || (further >= item->low && further <= item->high);
}

static bool in_set(const mica__regex *re, const regex_code *set, uint32_t c)
{
    bool found = false;
    for (int i = 0; i < set->n_items && !found; i++) {
        const set_item *item = &re->items[set->first + i];
        bool in;
        if (item->space) in = mica__unicode_space(c);
        else if (item->categories) in = item->categories >> mica__unicode_category(c) & 1;
        else if (set->fold) in = in_folded_range(item, c);
        else in = c >= item->low && c <= item->high;
        found = in != item->inverse;
    }
    return found != set->inverse;
}

typedef struct regex_run {
    const mica__regex *re;
    const char *text;
    size_t length, steps;
    mica__regex_stack *stack;
} regex_run;

static mica_status regex_push(regex_run *run, size_t *n, uint32_t pc, size_t at)
{
    if (*n == run->stack->cap) {
        const size_t cap = run->stack->cap ? 2 * run->stack->cap : 256;
        uint64_t *grown = mica__realloc(run->stack->entries, cap * sizeof *grown);
        if (!grown) return mica__fail_memory("a regular expression", cap * sizeof *grown);
        run->stack->entries = grown;
        run->stack->cap = cap;
    }
    run->stack->entries[(*n)++] = (uint64_t)at << 16 | pc;
    return MICA_OK;
}

/* Runs from pc at text position `at`. *end is the end of the match or SIZE_MAX. Stack entries below `base`
 * belong to the caller. */
static mica_status run_code(regex_run *run, uint32_t pc, size_t at, size_t base, int depth, size_t *end)
{
    size_t n = base;
    *end = SIZE_MAX;
    if (depth > 8)
        return mica__fail(MICA_ERR_UNSUPPORTED, "a regular expression has too many lookaheads or possessive "
                                                "repetitions in each other");
    for (;;) {
        const regex_code *code = &run->re->code[pc];
        bool failed = false;
        if (run->steps-- == 0) return mica__fail(MICA_ERR_UNSUPPORTED, "a regular expression takes too many steps");
        switch ((regex_op)code->op) {
        case RE_MATCH: *end = at; return MICA_OK;
        case RE_JUMP: pc = code->to; break;
        case RE_SPLIT:
            MICA_TRY(regex_push(run, &n, code->other, at));
            pc = code->to;
            break;
        case RE_BEGIN: failed = at != 0, pc++; break;
        case RE_END: failed = at != run->length, pc++; break;
        case RE_LOOK:
        case RE_NOT: {
            size_t inner;
            MICA_TRY(run_code(run, pc + 1, at, n, depth + 1, &inner));
            failed = (inner != SIZE_MAX) == (code->op == RE_NOT);
            pc = code->to;
            break;
        }
        case RE_ATOMIC: {
            size_t inner;
            MICA_TRY(run_code(run, pc + 1, at, n, depth + 1, &inner));
            failed = inner == SIZE_MAX;
            at = inner;
            pc = code->to;
            break;
        }
        case RE_SET: {
            uint32_t c;
            if (at >= run->length) failed = true;
            else {
                const size_t size = mica__utf8_get(run->text + at, run->length - at, &c);
                failed = !in_set(run->re, code, c);
                at += size;
                pc++;
            }
            break;
        }
        }
        if (!failed) continue;
        if (n == base) return MICA_OK;
        const uint64_t entry = run->stack->entries[--n];
        pc = (uint32_t)(entry & 0xffff);
        at = (size_t)(entry >> 16);
    }
}

mica_status mica__regex_match(const mica__regex *re, const char *text, size_t length, size_t at,
                              mica__regex_stack *stack, size_t *end)
{
    regex_run run = {.re = re, .text = text, .length = length, .stack = stack};
    run.steps = 100000 + 64 * (length - at);
    return run_code(&run, 0, at, 0, 0, end);
}

void mica__regex_stack_free(mica__regex_stack *stack)
{
    mica__free(stack->entries);
    *stack = (mica__regex_stack){0};
}
