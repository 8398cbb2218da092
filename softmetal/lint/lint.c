/* The lint: token rules, then clang over the text with Metal's address spaces as clang's
 * own (lint_header.h). Of clang's errors only those about address spaces and about
 * arrays without a known length are reported. */
#include "lint/lint.h"
#include "msl/build.h"
#include "softmetal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kind under which the disk cache marks texts without errors. Change it whenever the selection of clang's errors
 * below changes. The header is part of the text. */
static const char lint_kind[] = "lint 5";

extern const char sm_lint_header_start[], sm_lint_header_end[];

void lint_report(sm_text *out, const msl_tokens *tokens, int token, const char *format, ...)
{
    const msl_token *at = &tokens->list[token];
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    sm_text_print(out, "%s:%d: error: %s\n", at->file < 0 ? "program_source" : tokens->files[at->file], at->line, text);
}

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Searches the header for a whole word. */
bool lint_is_library(const msl_tokens *tokens, int token)
{
    const size_t length = tokens->list[token].length;
    const char *word = tokens->text + tokens->list[token].at, *at = sm_lint_header_start;
    while ((at = memmem(at, (size_t)(sm_lint_header_end - at), word, length)) != NULL) {
        if (!in_word(at[length]) && (at == sm_lint_header_start || !in_word(at[-1]))) return true;
        at++;
    }
    return false;
}

/* ---- clang's complaints ------------------------------------------------------------------ */

static bool mentions(const char *line, size_t length, const char *words)
{
    const size_t n = strlen(words);
    for (size_t i = 0; i + n <= length; i++)
        if (memcmp(line + i, words, n) == 0) return true;
    return false;
}

static bool mentions_any(const char *line, size_t length, const char *const *words)
{
    for (; *words != NULL; words++)
        if (mentions(line, length, *words)) return true;
    return false;
}

/* Errors about things that MSL allows or that the header causes: copies of a whole struct
 * between spaces, function constants without a value. */
static bool harmless(const char *line, size_t length)
{
    static const char *const words[] = {"constructor for init",
                                        "no viable overloaded '='",
                                        "no matching conversion", /* caused by a member for one space */
                                        "explicit instantiation",
                                        "default initialization",
                                        "constructor of",
                                        "function type may not be qualified",  /* members for one space */
                                        "parameter may not be qualified",      /* arrays, which are pointers */
                                        "must be initialized by a constant expression",
                                        NULL};
    return mentions_any(line, length, words);
}

/* Returns whether the line names a type that points into a space. clang names a space by its number or by the macro
 * of the header. A value read from a space does not count. */
static bool has_pointer(const char *line, size_t length)
{
    static const char *const spaces[] = {"device ", "constant ", "threadgroup ", "address_space(", NULL};
    for (size_t i = 0; i < length; i++) {
        if (line[i] != '\'') continue;
        size_t end = i + 1;
        while (end < length && line[end] != '\'') end++;
        const bool points = memchr(line + i, '*', end - i) != NULL || memchr(line + i, '&', end - i) != NULL ||
                            memchr(line + i, '[', end - i) != NULL;
        if (points && mentions_any(line + i, end - i, spaces)) return true;
        i = end;
    }
    return false;
}

/* The warnings about arrays that are turned into errors count too (check_types). */
static bool counts_alone(const char *line, size_t length)
{
    static const char *const plain[] = {"address space",       "read-only",
                                        "const-qualified",     "variable length",
                                        "zero size arrays",    "flexible array",
                                        "vector element",      "requires template arguments",
                                        "call to 'lint_make'", NULL};
    static const char *const refusals[] = {"cannot init", "assigning", "bind",    "cast",
                                           "conver",      "operand",   "pointer", NULL};
    if (mentions_any(line, length, plain)) return true;
    return has_pointer(line, length) && mentions_any(line, length, refusals);
}

/* Replaces clang's long type names by the words of Metal that the text uses. */
static void add_translated(sm_text *out, const char *line, size_t length)
{
    static const struct {
        const char *clang, *metal;
    } words[] = {{"__attribute__((address_space(1)))", "device"},
                 {"__attribute__((address_space(2)))", "constant"},
                 {"__attribute__((address_space(3)))", "threadgroup"},
                 {"right hand operand to ->* has non-pointer-to-member type", "a cast to another address space of"},
                 {"no matching function for call to 'lint_make'", "a vector of too few or too many values"}};
    for (size_t i = 0; i < length;) {
        size_t w = 0, n = 0;
        for (; w < sizeof words / sizeof *words; w++) {
            n = strlen(words[w].clang);
            if (i + n <= length && memcmp(line + i, words[w].clang, n) == 0) break;
        }
        if (w < sizeof words / sizeof *words) sm_text_add(out, words[w].metal, strlen(words[w].metal)), i += n;
        else sm_text_add(out, line + i++, 1);
    }
    sm_text_add(out, "\n", 1);
}

static bool note_counts(const char *line, size_t length)
{
    return mentions(line, length, "address space") ||
           (mentions(line, length, "no known conversion") && has_pointer(line, length)) ||
           mentions(line, length, "lint_lanes");
}

/* An error and its notes are one report: it counts if any of its lines is about spaces. */
static void keep_spaces(const char *said, sm_text *out)
{
    const char *error = NULL;
    size_t error_length = 0;
    bool counts = false;
    for (const char *line = said; *line != 0;) {
        const size_t length = strcspn(line, "\n");
        if (mentions(line, length, " error: ")) {
            if (error != NULL && counts) add_translated(out, error, error_length);
            error = line;
            error_length = length;
            counts = counts_alone(line, length) && !harmless(line, length);
        } else if (error != NULL && note_counts(line, length) && !harmless(error, error_length)) counts = true;
        line += length + (line[length] == '\n');
    }
    if (error != NULL && counts) add_translated(out, error, error_length);
}

/* Returns whether this ( begins a cast to a pointer with a space. Not after a token that may be a unary operator:
 * it would then bind first. */
static bool is_cast(const msl_tokens *tokens, int open)
{
    static const char *const unary[] = {"*", "&", "-", "!", "~"};
    for (size_t i = 0; open > 0 && i < sizeof unary / sizeof *unary; i++)
        if (msl_is(tokens, open - 1, unary[i])) return false;
    const int close = tokens->list[open].match;
    bool named = false;
    if (!msl_is(tokens, open, "(") || close < open + 3 || !msl_is(tokens, close - 1, "*")) return false;
    for (int i = open + 1; i < close; i++) {
        named |= msl_is(tokens, i, "device") || msl_is(tokens, i, "constant") || msl_is(tokens, i, "threadgroup");
        if (tokens->list[i].kind != MSL_NAME && !msl_is(tokens, i, "*") && !msl_is(tokens, i, "::")) return false;
    }
    return named && (tokens->list[close + 1].kind == MSL_NAME || msl_is(tokens, close + 1, "(") ||
                     msl_is(tokens, close + 1, "&"));
}

/* Returns whether a variable in threadgroup memory begins here. In C++ it must be static to have a space. */
static bool is_shared(const msl_tokens *tokens, int i)
{
    static const char *const before[] = {";", "{", "}", ")", NULL}, *const ends[] = {"=", ";", ",", "[", NULL};
    static const char *const qualifiers[] = {"const", "volatile", "alignas", NULL};
    const lint l = {.tokens = tokens};
    int end = i;
    if (i < 1 || !is_any(&l, i - 1, before) || (is(&l, i - 1, ")") && is(&l, i, "threadgroup"))) return false;
    for (; is_any(&l, end, qualifiers); end++)
        if (opens(&l, end + 1)) end = match(&l, end + 1);
    if (!is(&l, end, "threadgroup")) return false;
    const int type = end;
    for (end++; !is_end(&l, end) && (is_attribute(&l, end) || !is_any(&l, end, ends)); end++) {
        const int angle = lint_angle_end(&l, end, tokens->count - 1);
        if (angle > 0) end = angle;
        else if (opens(&l, end)) end = match(&l, end);
        else if (is(&l, end, "*") || is(&l, end, "&")) return false;
    }
    return end > type + 2 && is_name(&l, end - 1);
}

/* The ; of a function constant: it has a value, though not at compile time. */
static bool is_given_later(const msl_tokens *tokens, int i)
{
    const int open = msl_is(tokens, i, ";") && i > 0 && msl_is(tokens, i - 1, "]") ? tokens->list[i - 1].match : -1;
    return open >= 0 && msl_is(tokens, open + 1, "[") && msl_is(tokens, open + 2, "function_constant");
}

/* Writes the text for clang. C++ lets a cast change the space; ->* has a similar precedence and can be refused. */
static void add_source(sm_text *text, const msl_tokens *tokens, size_t length)
{
    size_t from = 0;
    for (int i = 0; i < tokens->count; i++) {
        if (is_shared(tokens, i)) {
            sm_text_add(text, tokens->text + from, tokens->list[i].at - from);
            sm_text_add(text, "static ", 7);
            from = tokens->list[i].at;
        }
        if (is_given_later(tokens, i)) {
            sm_text_add(text, tokens->text + from, tokens->list[i].at - from);
            sm_text_add(text, " = lint_given()", 15);
            from = tokens->list[i].at;
        }
        if (!is_cast(tokens, i)) continue;
        const int close = tokens->list[i].match;
        const size_t at = tokens->list[i].at, end = tokens->list[close].at;
        sm_text_add(text, tokens->text + from, at - from);
        sm_text_add(text, "lint_to<", 8);
        sm_text_add(text, tokens->text + at + 1, end - at - 1);
        sm_text_add(text, ">() ->* ", 8);
        from = end + 1;
        i = close;
    }
    sm_text_add(text, tokens->text + from, length - from);
}

static void check_types(const msl_tokens *tokens, size_t length, sm_text *out)
{
    static const char *const flags[] = {"-std=gnu++14",
                                        "-fsyntax-only",
                                        "-Wno-everything",
                                        "-ferror-limit=0",
                                        "-nostdinc",
                                        "-fno-caret-diagnostics",
                                        "-fno-color-diagnostics",
                                        "-fno-spell-checking",
                                        "-Werror=vla",
                                        "-Werror=zero-length-array",
                                        "-Werror=c99-extensions",
                                        NULL};
    sm_text text = {0};
    sm_text_add(&text, sm_lint_header_start, (size_t)(sm_lint_header_end - sm_lint_header_start));
    add_source(&text, tokens, length);
    char *message = NULL;
    const size_t before = out->length;
    if (!text.failed && !sm_build_marked(lint_kind, &text)) {
        if (!sm_build_syntax(flags, &text, &message) && message != NULL) keep_spaces(message, out);
        if (out->length == before) sm_build_mark(lint_kind, &text);
    }
    free(message);
    sm_text_free(&text);
}

/* ---- the whole ---------------------------------------------------------------------------- */

char *sm_lint_library(const char *source, size_t length, const sm_options *options)
{
    char *message = NULL;
    sm_text text = {0}, complaints = {0};
    msl_tokens tokens = {0};
    const bool broken = !msl_preprocess(source, length, options, &text, &message) ||
                        !msl_lex(&tokens, text.bytes, text.length, &message);
    if (broken) sm_text_print(&complaints, "%s\n", message == NULL ? "out of memory" : message);
    else {
        lint_rules(&tokens, &complaints);
        check_types(&tokens, text.length, &complaints);
    }
    free(message);
    msl_tokens_free(&tokens);
    sm_text_free(&text);
    if (complaints.length > 0) return complaints.bytes;
    sm_text_free(&complaints);
    return NULL;
}

char *sm_lint(const char *source, size_t length, const char *file)
{
    return sm_lint_library(source, length, &(sm_options){.fast_math = true, .file = file});
}

/* Included files are searched in the folder of the file, then in the folders. */
char *sm_lint_file(const char *path, const char *const *folders)
{
    sm_text text = {0}, include = {0};
    char *complaints = NULL;
    const char *slash = strrchr(path, '/');
    sm_text_print(&include, "%.*s", slash == NULL ? 1 : (int)(slash - path + 1), slash == NULL ? "." : path);
    for (; folders != NULL && *folders != NULL; folders++)
        sm_text_print(&include, ":%s", *folders + (strncmp(*folders, "-I", 2) == 0 ? 2 : 0));
    if (!include.failed && sm_text_read(&text, path)) {
        const sm_options options = {.fast_math = true, .file = path, .include = include.bytes};
        complaints = sm_lint_library(text.bytes == NULL ? "" : text.bytes, text.length, &options);
    } else sm_set_message(&complaints, "%s: error: the file cannot be read\n", path);
    sm_text_free(&text);
    sm_text_free(&include);
    return complaints;
}
