/* Functions and specialisations that differ only by address space. The C++ text has
 * one space, so they would be defined twice: the first is kept. Duplicates are found
 * by the text of the head without the words for spaces. If neither head has such a
 * word, the duplicate is left for the compiler to refuse. */
#include "msl_parse.h"

#include <stdlib.h>
#include <string.h>

static bool is_space(const parser *p, int i)
{
    return parse_is(p, i, "thread") || parse_is(p, i, "device") || parse_is(p, i, "threadgroup") ||
           parse_is(p, i, "constant");
}

/* Returns whether i is an address space word after a member function's parameters. */
bool parse_is_trailing_space(const parser *p, int i)
{
    bool inside = p->depth && p->scopes[p->depth - 1].kind == SCOPE_CLASS && !p->parens;
    if (!inside || !is_space(p, i)) return false;
    int before = i - 1;
    while (before > p->start && (parse_is(p, before, "const") || is_space(p, before))) before--;
    return parse_is(p, before, ")");
}

/* The hash of the head start..end-1; *spaces: it contains an address space. */
static sm_hash hash_head(const parser *p, int start, int end, bool *spaces)
{
    sm_hash hash;
    sm_hash_start(&hash);
    bool constant = false, trailing = false; /* after the parameters */
    for (int i = start; i < end; i++) {
        if (parse_is(p, i, ":")) break; /* a constructor's initialiser list */
        if (parse_token(p, i)->kind == MSL_DIRECTIVE) continue;
        *spaces |= is_space(p, i);
        trailing = parse_is(p, i, ")") || (trailing && (is_space(p, i) || parse_is(p, i, "const")));
        bool pointee = (parse_is(p, i, "constant") || parse_is(p, i, "const")) && !trailing;
        if (pointee && !constant) sm_hash_text(&hash, "const");
        constant = pointee || (constant && is_space(p, i));
        if (pointee || is_space(p, i)) continue;
        const msl_token *t = parse_token(p, i);
        sm_hash_add(&hash, p->unit->tokens.text + t->at, t->length);
        sm_hash_add(&hash, " ", 1);
    }
    return hash;
}

bool parse_is_member_function(const parser *p, int end)
{
    bool inside = p->depth && p->scopes[p->depth - 1].kind == SCOPE_CLASS;
    for (int i = p->start; inside && i < end; i++)
        if (parse_is(p, i, "(")) return true;
    return false;
}

bool parse_overload(parser *p, int end, bool *dropped)
{
    int scope_id = p->depth ? p->scopes[p->depth - 1].brace : -1;
    bool spaces = false;
    sm_hash hash = hash_head(p, p->start, end, &spaces);
    *dropped = false;
    for (int i = p->heads_count; i-- > 0;) {
        head_seen *h = &p->heads[i];
        if (h->scope != scope_id || h->hash.a != hash.a || h->hash.b != hash.b || !(spaces || h->spaces)) continue;
        *dropped = true;
        int last = parse_is(p, end, "{") ? parse_token(p, end)->match : end;
        if (last > end && parse_is(p, last + 1, ";")) last++;
        int first = p->start;
        p->start = last + 1;
        return parse_drop(p, first, last);
    }
    if (!sm_grow((void **)&p->heads, p->heads_count, &p->heads_room, sizeof *p->heads))
        return msl_error(p->unit, end, p->message, "out of memory");
    p->heads[p->heads_count++] = (head_seen){hash, scope_id, spaces};
    return true;
}
