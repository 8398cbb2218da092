/* Parses templates into trees: tags cut the text, and statements are parsed recursively. */
#include <string.h>

#include "text/jinja_parser.h"
#include "text/unicode.h"

/* ------------------------------------------------------------ statements --- */

/* Skips the closing mark and the white space after it that the tag removes. */
static mica_status end_tag(mica__jparser *p)
{
    if (p->kind != MICA__JT_END) return mica__jp_fail_missing(p, "the end of the tag");
    const char mark = p->text[p->at];
    const bool block = p->closing[0] != '}';
    if (mark == '-' || mark == '+') p->at++;
    p->at += 2;
    const size_t from = p->at;
    if (mark == '-') p->at += mica__jp_spaces(p);
    else if (block && mark != '+') { /* trim_blocks */
        if (mica__jp_has_text(p, "\n")) p->at++;
    }
    for (size_t i = from; i < p->at; i++) p->line += p->text[i] == '\n';
    p->line_start = p->at > from && p->text[p->at - 1] == '\n';
    return MICA_OK;
}

/* Bytes of the white space character that ends before `end`; 0 if there is none. */
static size_t space_before(const mica__jparser *p, size_t from, size_t end)
{
    size_t at = end;
    uint32_t c;
    if (end == from) return 0;
    do at--;
    while (at > from && end - at < 4 && ((unsigned char)p->text[at] & 0xc0) == 0x80);
    return mica__utf8_get(p->text + at, end - at, &c) == end - at && mica__jinja_space(c) ? end - at : 0;
}

/* Adds a node for the text up to the next tag, unless white space control leaves it empty. */
static mica_status parse_text(mica__jparser *p, mica__jnode ***last)
{
    const size_t from = p->at;
    size_t end = from;
    while (end < p->length &&
           !(p->text[end] == '{' && end + 1 < p->length && strchr("{%#", p->text[end + 1]) && p->text[end + 1]))
        end++;
    p->at = end;
    size_t keep = end;
    if (end < p->length) {
        const char mark = end + 2 < p->length ? p->text[end + 2] : ' ';
        if (mark == '-') {
            for (size_t n; (n = space_before(p, from, keep)) > 0;) keep -= n;
        } else if (p->text[end + 1] != '{' && mark != '+') { /* lstrip_blocks */
            size_t line = end;
            for (size_t n; (n = space_before(p, from, line)) > 0 && p->text[line - 1] != '\n';) line -= n;
            if (line > from ? p->text[line - 1] == '\n' : p->line_start) keep = line;
        }
    }
    const int begins = p->line;
    for (size_t i = from; i < end; i++) p->line += p->text[i] == '\n';
    if (keep == from) return MICA_OK;
    MICA_TRY(mica__jp_node(p, MICA__J_TEXT, *last));
    (**last)->line = begins;
    (**last)->text = p->text + from;
    (**last)->length = keep - from;
    *last = &(**last)->next;
    return MICA_OK;
}

static mica_status parse_comment(mica__jparser *p)
{
    const int line = p->line;
    p->at += 2;
    if (p->at < p->length && (p->text[p->at] == '-' || p->text[p->at] == '+')) p->at++;
    const size_t from = p->at;
    for (; p->at < p->length && !mica__jp_has_text(p, "#}"); p->at++) p->line += p->text[p->at] == '\n';
    if (p->at >= p->length) return mica__jinja_fail(MICA_ERR_FORMAT, line, "a comment has no end");
    if (p->at > from && (p->text[p->at - 1] == '-' || p->text[p->at - 1] == '+')) p->at--;
    p->kind = MICA__JT_END;
    p->closing = "#}";
    return end_tag(p);
}

static mica_status parse_body(mica__jparser *p, const char *ends, mica__jnode **first);

/* Called, like the other parse functions of tags, after the name of the tag. */
static mica_status parse_for(mica__jparser *p, mica__jnode *node)
{
    for (mica__jnode **last = &node->list;; last = &(*last)->next) {
        MICA_TRY(mica__jp_node(p, MICA__J_NAME, last));
        MICA_TRY(mica__jp_expect_name(p, &(*last)->text, &(*last)->length));
        if (!mica__jp_is_op(p, ",")) break;
        MICA_TRY(mica__jp_lex(p));
    }
    if (!mica__jp_is_name(p, "in")) return mica__jp_fail_missing(p, "in");
    MICA_TRY(mica__jp_lex(p));
    MICA_TRY(mica__jp_logic(p, 0, &node->a));
    if (mica__jp_is_name(p, "if")) {
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(mica__jp_expression(p, &node->b));
    }
    if (mica__jp_is_name(p, "recursive")) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "a recursive for");
    MICA_TRY(end_tag(p));
    p->loops++;
    MICA_TRY(parse_body(p, "else endfor", &node->body));
    p->loops--;
    const bool other = mica__jp_is_name(p, "else");
    MICA_TRY(mica__jp_lex(p));
    if (!other) return end_tag(p);
    MICA_TRY(end_tag(p));
    MICA_TRY(parse_body(p, "endfor", &node->other));
    MICA_TRY(mica__jp_lex(p));
    return end_tag(p);
}

static mica_status parse_cond(mica__jparser *p, mica__jnode *node)
{
    MICA_TRY(mica__jp_logic(p, 0, &node->a)); /* no "a if b" in the condition */
    MICA_TRY(end_tag(p));
    MICA_TRY(parse_body(p, "elif else endif", &node->body));
    /* a chain of elif is a list, not a nesting */
    while (mica__jp_is_name(p, "elif")) {
        node->number = 1; /* other is an elif */
        MICA_TRY(mica__jp_node(p, MICA__J_COND, &node->other));
        node = node->other;
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(mica__jp_logic(p, 0, &node->a));
        MICA_TRY(end_tag(p));
        MICA_TRY(parse_body(p, "elif else endif", &node->body));
    }
    if (mica__jp_is_name(p, "else")) {
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(end_tag(p));
        MICA_TRY(parse_body(p, "endif", &node->other));
    }
    MICA_TRY(mica__jp_lex(p));
    return end_tag(p);
}

static mica_status parse_set(mica__jparser *p, mica__jnode *node)
{
    MICA_TRY(mica__jp_node(p, MICA__J_NAME, &node->list));
    mica__jnode *name = node->list;
    MICA_TRY(mica__jp_expect_name(p, &name->text, &name->length));
    if (mica__jp_is_op(p, ".")) {
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(mica__jp_expect_name(p, &node->text, &node->length));
    }
    for (mica__jnode *last = name; mica__jp_is_op(p, ","); last = last->next) {
        MICA_TRY(mica__jp_lex(p));
        MICA_TRY(mica__jp_node(p, MICA__J_NAME, &last->next));
        MICA_TRY(mica__jp_expect_name(p, &last->next->text, &last->next->length));
    }
    if (p->kind == MICA__JT_END && !node->text && !name->next) { /* a block */
        MICA_TRY(end_tag(p));
        MICA_TRY(parse_body(p, "endset", &node->body));
        MICA_TRY(mica__jp_lex(p));
        return end_tag(p);
    }
    MICA_TRY(mica__jp_expect(p, "="));
    MICA_TRY(mica__jp_expression(p, &node->a));
    if (mica__jp_is_op(p, ","))
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "a set of several values without brackets");
    return end_tag(p);
}

static mica_status parse_generation(mica__jparser *p, mica__jnode *node)
{
    MICA_TRY(end_tag(p));
    const int loops = p->loops;
    p->loops = 0; /* as in a macro */
    MICA_TRY(parse_body(p, "endgeneration", &node->body));
    p->loops = loops;
    MICA_TRY(mica__jp_lex(p));
    return end_tag(p);
}

static mica_status parse_macro(mica__jparser *p, mica__jnode *node)
{
    int n = 0;
    MICA_TRY(mica__jp_expect_name(p, &node->text, &node->length));
    MICA_TRY(mica__jp_expect(p, "("));
    for (mica__jnode **last = &node->list; !mica__jp_is_op(p, ")"); last = &(*last)->next) {
        MICA_TRY(mica__jp_node(p, MICA__J_NAME, last));
        MICA_TRY(mica__jp_expect_name(p, &(*last)->text, &(*last)->length));
        if (++n > MICA__JINJA_ARGS) return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "too many arguments");
        for (const mica__jnode *before = node->list; before != *last; before = before->next)
            if (before->length == (*last)->length && memcmp(before->text, (*last)->text, before->length) == 0)
                return mica__jinja_fail(MICA_ERR_FORMAT, p->line, "a macro with two arguments of one name");
        if (mica__jp_is_op(p, "=")) {
            MICA_TRY(mica__jp_lex(p));
            MICA_TRY(mica__jp_expression(p, &(*last)->a));
        }
        if (!mica__jp_is_op(p, ",")) break;
        MICA_TRY(mica__jp_lex(p));
    }
    MICA_TRY(mica__jp_expect(p, ")"));
    MICA_TRY(end_tag(p));
    const int loops = p->loops;
    p->loops = 0; /* a break in the macro does not leave a loop around it */
    MICA_TRY(parse_body(p, "endmacro", &node->body));
    p->loops = loops;
    MICA_TRY(mica__jp_lex(p));
    return end_tag(p);
}

static mica_status parse_jump(mica__jparser *p, mica__jnode *node)
{
    return p->loops ? end_tag(p) : mica__jinja_fail(MICA_ERR_FORMAT, node->line, "break or continue outside of a for");
}

static mica_status parse_statement(mica__jparser *p, mica__jnode **out)
{
    static const struct {
        const char *name;
        mica__jop op;
        mica_status (*parse)(mica__jparser *, mica__jnode *);
    } tags[] = {{"for", MICA__J_FOR, parse_for},
                {"if", MICA__J_COND, parse_cond},
                {"set", MICA__J_SET, parse_set},
                {"macro", MICA__J_MACRO, parse_macro},
                {"generation", MICA__J_BLOCK, parse_generation},
                {"break", MICA__J_BREAK, parse_jump},
                {"continue", MICA__J_CONTINUE, parse_jump}};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!mica__jp_is_name(p, tags[i].name)) continue;
        MICA_TRY(mica__jp_node(p, tags[i].op, out));
        MICA_TRY(mica__jp_lex(p));
        return tags[i].parse(p, *out);
    }
    if (p->kind != MICA__JT_NAME) return mica__jp_fail_missing(p, "the name of a tag");
    return mica__jinja_fail(MICA_ERR_UNSUPPORTED, p->line, "the tag '%.*s' is unknown or not allowed here",
                            p->n < 60 ? (int)p->n : 60, p->token);
}

static bool is_one_of(const mica__jparser *p, const char *names)
{
    for (const char *at = names; *at;) {
        const size_t n = strcspn(at, " ");
        if (p->kind == MICA__JT_NAME && n == p->n && memcmp(at, p->token, n) == 0) return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

/* Parses statements up to a tag whose name is in ends; that name is then the current token. "": to the end. */
static mica_status parse_body(mica__jparser *p, const char *ends, mica__jnode **first)
{
    mica__jnode **last = first;
    const int line = p->line;
    MICA_TRY(mica__jp_enter(p));
    for (;;) {
        MICA_TRY(parse_text(p, &last));
        if (p->at >= p->length) break;
        const char kind = p->text[p->at + 1];
        if (kind == '#') {
            MICA_TRY(parse_comment(p));
            continue;
        }
        p->closing = kind == '%' ? "%}" : "}}";
        p->brackets = 0;
        p->at += 2;
        if (p->at < p->length && (p->text[p->at] == '-' || (p->text[p->at] == '+' && kind == '%'))) p->at++;
        MICA_TRY(mica__jp_lex(p));
        if (kind == '%' && is_one_of(p, ends)) {
            p->nesting--;
            return MICA_OK;
        }
        if (kind == '%') MICA_TRY(parse_statement(p, last));
        else {
            MICA_TRY(mica__jp_node(p, MICA__J_PRINT, last));
            MICA_TRY(mica__jp_expression(p, &(*last)->a));
            MICA_TRY(end_tag(p));
        }
        last = &(*last)->next;
    }
    p->nesting--;
    if (*ends) return mica__jinja_fail(MICA_ERR_FORMAT, line, "the block that begins here has no end (%s)", ends);
    return MICA_OK;
}

/* Jinja reads every line break of a template, also \r\n and \r, as \n. */
static mica_status unify_line_breaks(mica__arena *arena, const char **text, size_t *length)
{
    if (*length == 0 || !memchr(*text, '\r', *length)) return MICA_OK;
    char *copy = mica__arena_alloc(arena, *length);
    size_t n = 0;
    if (!copy) return mica__fail_memory("a chat template", *length);
    for (size_t i = 0; i < *length; i++)
        if ((*text)[i] != '\r') copy[n++] = (*text)[i];
        else if (i + 1 == *length || (*text)[i + 1] != '\n') copy[n++] = '\n';
    *text = copy;
    *length = n;
    return MICA_OK;
}

mica_status mica__jinja_parse(mica__arena *arena, const char *text, size_t length, mica__jinja **out)
{
    *out = NULL;
    if (length > MICA__JINJA_TEXT)
        return mica__fail(MICA_ERR_UNSUPPORTED, "a chat template of %zu bytes; the limit is %d", length,
                          MICA__JINJA_TEXT);
    mica__jinja *jinja = mica__arena_alloc(arena, sizeof *jinja);
    if (!jinja) return mica__fail_memory("a chat template", sizeof *jinja);
    MICA_TRY(unify_line_breaks(arena, &text, &length));
    if (length && text[length - 1] == '\n') length--; /* it is not part of a template */
    mica__jparser p = {.arena = arena, .text = text, .length = length, .line = 1, .line_start = true};
    MICA_TRY(parse_body(&p, "", &jinja->body));
    *out = jinja;
    return MICA_OK;
}
