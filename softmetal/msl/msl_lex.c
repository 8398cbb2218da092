/* Splits preprocessed MSL into tokens. Line markers (# 12 "file") give the file and line
 * of each token. Brackets are matched here, once, so that the parser can skip a
 * whole (...) or {...}. */
#include "msl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
    msl_tokens *tokens;
    const char *text;
    size_t length, at;
    int line, file;
    char **message;
    int *open; /* stack of unclosed brackets */
    int depth, open_room;
} lexer;

static int peek(const lexer *x, size_t ahead)
{
    return x->at + ahead < x->length ? (unsigned char)x->text[x->at + ahead] : 0;
}

static bool lex_error(lexer *x, const char *what)
{
    const char *file = x->file >= 0 ? x->tokens->files[x->file] : "program_source";
    sm_set_message(x->message, "%s:%d: error: %s", file, x->line, what);
    return false;
}

static bool add_token(lexer *x, msl_kind kind, size_t start)
{
    msl_tokens *t = x->tokens;
    if (!sm_grow((void **)&t->list, t->count, &t->room, sizeof *t->list)) return lex_error(x, "out of memory");
    t->list[t->count++] = (msl_token){kind, (uint32_t)start, (uint32_t)(x->at - start), x->line, x->file, -1};
    return true;
}

/* # 12 "file" 1 3: the next line is line 12 of that file. */
static bool line_marker(lexer *x, const char *p, const char *end)
{
    int line = 0;
    while (p < end && isdigit((unsigned char)*p)) line = line * 10 + (*p++ - '0');
    while (p < end && *p == ' ') p++;
    if (p < end && *p == '"') {
        const char *name = ++p;
        while (p < end && *p != '"') p++;
        size_t length = (size_t)(p - name);
        msl_tokens *t = x->tokens;
        int i = 0;
        while (i < t->files_count && (strlen(t->files[i]) != length || memcmp(t->files[i], name, length))) i++;
        if (i == t->files_count) {
            char *copy = malloc(length + 1);
            if (!copy || !sm_grow((void **)&t->files, t->files_count, &t->files_room, sizeof *t->files)) {
                free(copy);
                return lex_error(x, "out of memory");
            }
            memcpy(copy, name, length);
            copy[length] = '\0';
            t->files[t->files_count++] = copy;
        }
        x->file = i;
    }
    x->line = line - 1; /* the newline that ends the marker adds one */
    return true;
}

static bool directive(lexer *x)
{
    size_t start = x->at;
    while (x->at < x->length && x->text[x->at] != '\n') x->at++;
    const char *p = x->text + start + 1, *end = x->text + x->at;
    while (p < end && *p == ' ') p++;
    if (p < end && isdigit((unsigned char)*p)) return line_marker(x, p, end);
    return add_token(x, MSL_DIRECTIVE, start);
}

static bool quoted(lexer *x)
{
    size_t start = x->at;
    char quote = x->text[x->at++];
    while (x->at < x->length && x->text[x->at] != quote && x->text[x->at] != '\n')
        x->at += x->text[x->at] == '\\' ? 2 : 1;
    if (x->at >= x->length || x->text[x->at] != quote) return lex_error(x, "unterminated string");
    x->at++;
    return add_token(x, MSL_STRING, start);
}

static bool number(lexer *x)
{
    size_t start = x->at;
    bool hex = peek(x, 0) == '0' && (peek(x, 1) == 'x' || peek(x, 1) == 'X');
    for (; x->at < x->length; x->at++) {
        int c = peek(x, 0), before = x->at > start ? (unsigned char)x->text[x->at - 1] : 0;
        bool sign = (c == '+' || c == '-') && (hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E');
        if (!isalnum(c) && c != '.' && c != '_' && !sign && !(c == '\'' && isalnum(peek(x, 1)))) break;
    }
    return add_token(x, MSL_NUMBER, start);
}

static bool bracket(lexer *x, int c)
{
    msl_tokens *t = x->tokens;
    int index = t->count - 1;
    if (strchr("([{", c)) {
        if (!sm_grow((void **)&x->open, x->depth, &x->open_room, sizeof *x->open)) return lex_error(x, "out of memory");
        x->open[x->depth++] = index;
        return true;
    }
    const char *pair = strchr(")(][}{", c);
    if (!x->depth || t->text[t->list[x->open[x->depth - 1]].at] != pair[1]) return lex_error(x, "unbalanced brackets");
    int other = x->open[--x->depth];
    t->list[other].match = index;
    t->list[index].match = other;
    return true;
}

static bool punctuation(lexer *x)
{
    /* Only pairs that the parser compares must be one token; >> stays two, for template lists. */
    static const char *const pairs[] = {"::", "->", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=",
                                        "*=", "/=", "%=", "&=", "|=", "^=", "<<", "++", "--"};
    size_t start = x->at, length = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (peek(x, 0) == pairs[i][0] && peek(x, 1) == pairs[i][1]) length = 2;
    x->at += length;
    int c = (unsigned char)x->text[start];
    if (!add_token(x, MSL_PUNCT, start)) return false;
    return length == 2 || !strchr("()[]{}", c) || bracket(x, c);
}

static bool one(lexer *x, bool *fresh)
{
    int c = peek(x, 0);
    if (c == '\n') {
        x->line++;
        x->at++;
        *fresh = true;
        return true;
    }
    if (isspace(c)) {
        x->at++;
        return true;
    }
    bool first = *fresh;
    *fresh = false;
    if (c == '#' && first) return directive(x);
    if (c == '"' || c == '\'') return quoted(x);
    if (isdigit(c) || (c == '.' && isdigit(peek(x, 1)))) return number(x);
    if (isalpha(c) || c == '_' || c == '$') {
        size_t start = x->at;
        while (isalnum(peek(x, 0)) || peek(x, 0) == '_' || peek(x, 0) == '$') x->at++;
        return add_token(x, MSL_NAME, start);
    }
    if (c < 32 || c > 126) return lex_error(x, "a character that is not part of the language");
    return punctuation(x);
}

bool msl_lex(msl_tokens *tokens, const char *text, size_t length, char **message)
{
    lexer x = {.tokens = tokens, .text = text, .length = length, .line = 1, .file = -1, .message = message};
    tokens->text = text;
    bool fresh = true, good = length < UINT32_MAX || lex_error(&x, "the text is too long");
    while (good && x.at < length) good = one(&x, &fresh);
    if (good && x.depth) {
        x.line = tokens->list[x.open[x.depth - 1]].line;
        x.file = tokens->list[x.open[x.depth - 1]].file;
        good = lex_error(&x, "a bracket that is never closed");
    }
    free(x.open);
    return good && add_token(&x, MSL_END, length);
}

void msl_tokens_free(msl_tokens *tokens)
{
    for (int i = 0; i < tokens->files_count; i++) free(tokens->files[i]);
    free(tokens->files);
    free(tokens->list);
    *tokens = (msl_tokens){0};
}

bool msl_is(const msl_tokens *tokens, int index, const char *word)
{
    if (index < 0 || index >= tokens->count) return false;
    const msl_token *t = &tokens->list[index];
    return t->length == strlen(word) && !memcmp(tokens->text + t->at, word, t->length);
}
