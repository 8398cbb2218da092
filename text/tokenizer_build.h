/* Internals of the tokenizer, and the functions that its readers share. */
#ifndef MICA_TEXT_TOKENIZER_BUILD_H
#define MICA_TEXT_TOKENIZER_BUILD_H

#include "base/arena.h"
#include "text/regex.h"
#include "text/tokenizer.h"

enum {
    MICA__TOKEN_NORMAL = 1,
    MICA__TOKEN_UNKNOWN,
    MICA__TOKEN_CONTROL,
    MICA__TOKEN_USER,
    MICA__TOKEN_UNUSED,
    MICA__TOKEN_BYTE
};
enum { MICA__PRE_PATTERNS = 8, MICA__TOKEN_ENDS = 32, MICA__TOKEN_NOTES = 8, MICA__VOCABULARY_MAX = 10000000 };

typedef struct mica__token_text {
    const char *text;
    uint32_t length;
    float score;
    uint8_t type;
    bool strip_left, strip_right; /* white space beside a special token belongs to it */
} mica__token_text;

/* Which pair of neighbours is merged first. */
typedef enum mica__merge_order {
    MICA__BY_MERGES, /* lowest rank in the list of merges         */
    MICA__BY_SCORES, /* highest score of the resulting token      */
    MICA__BY_IDS     /* tiktoken: lowest id of the resulting token */
} mica__merge_order;

typedef enum mica__space_prefix { MICA__PREFIX_NONE, MICA__PREFIX_ALL, MICA__PREFIX_FIRST } mica__space_prefix;

/* A pattern cuts a piece into its matches and the gaps between them. */
typedef struct mica__pre_pattern {
    mica__regex *regex;
    const char *text;             /* source of the regex                                            */
    bool drop_matches, drop_gaps; /* "Removed"                                                      */
    bool mapped;                  /* matched against the printable characters of byte-level BPE     */
} mica__pre_pattern;

struct mica_tokenizer {
    mica__arena arena;
    const char *what;         /* where it came from, for messages                   */
    mica__merge_order order;
    bool characters;          /* symbols are characters, with bytes as a fallback   */
    bool spaces;              /* U+2581 stands for a space                          */
    bool whole_pieces;        /* ignore_merges                                      */
    bool nfc;                 /* text is normalised to NFC before encoding          */
    bool add_bos;
    bool strip_space;         /* decoding drops the space that encoding put first   */
    mica__space_prefix prefix;
    bool prefix_once;         /* no prefix if the text begins with a space          */
    int32_t role[MICA_TOKEN_PADDING + 1];
    int32_t ends[MICA__TOKEN_ENDS];
    int n_ends;
    mica__token_text *tokens;
    int32_t n_tokens, cap_tokens;
    uint32_t *slots;          /* hash table of normal tokens by text: id + 1        */
    size_t n_slots;
    uint64_t *pairs;          /* hash table of merges: (left, right) to rank        */
    uint32_t *pair_ranks;
    size_t n_pairs;           /* slots of that table, a power of two                */
    int32_t *specials;        /* user and control tokens, the longest first         */
    int32_t n_specials;
    bool special_first[256];
    int32_t byte_token[256];
    const char *pre;          /* name of the patterns, "" if they have none         */
    mica__pre_pattern patterns[MICA__PRE_PATTERNS];
    int n_patterns;
    const char *chat;         /* the template of the file, NULL if it has none      */
    const char *notes[MICA__TOKEN_NOTES];
    int n_notes;
    uint64_t seed;
};

/* --------------------------------------------------------------- building -- */

mica_status mica__tokenizer_new(const char *what, mica_tokenizer **out);
/* Returns status. *out is t for MICA_OK; otherwise t is freed, *out is NULL, and the error message is kept. */
mica_status mica__tokenizer_finish(mica_tokenizer *t, mica_status status, mica_tokenizer **out);
/* Adds a token; the text is copied. */
mica_status mica__tokenizer_add(mica_tokenizer *t, const char *text, size_t length, float score, int type);
/* Builds the lookup tables after the last token: specials, bytes, texts. */
mica_status mica__tokenizer_index(mica_tokenizer *t);
/* Sets the patterns of a named pre-tokenizer. */
mica_status mica__tokenizer_set_pre(mica_tokenizer *t, const char *name, size_t length);
mica_status mica__tokenizer_add_pattern(mica_tokenizer *t, const char *pattern, size_t length, mica__pre_pattern how);
/* The first pattern of a named pre-tokenizer, and the name of the patterns of t; "" if there is none. */
const char *mica__pre_pattern_text(const char *name);
const char *mica__pre_name_of(const mica_tokenizer *t);
/* Allocates the table for `count` merges. Then add each; of duplicates the first counts. */
mica_status mica__tokenizer_reserve_merges(mica_tokenizer *t, size_t count);
void mica__tokenizer_add_merge(mica_tokenizer *t, int32_t left, int32_t right, uint32_t rank);
/* Adds a token that ends generation. */
void mica__tokenizer_add_end(mica_tokenizer *t, int32_t id);
/* Call after the roles are set. Adds end-of-turn and end tokens with well-known names. */
void mica__tokenizer_add_known_ends(mica_tokenizer *t);
mica_status mica__tokenizer_add_note(mica_tokenizer *t, const char *fmt, ...) MICA_PRINTF(2, 3);
/* Copies text into the arena of t, NUL-terminated. */
mica_status mica__tokenizer_copy(mica_tokenizer *t, const char *text, size_t length, const char **out);

/* Decodes a byte-level token name to bytes; out has room for length bytes. Returns SIZE_MAX
 * if a character stands for no byte. Encoding writes at most 2 bytes per byte. */
size_t mica__bytes_decode(const char *text, size_t length, char *out);
size_t mica__bytes_encode(const char *bytes, size_t length, char *out);

/* ---------------------------------------------------------------- looking -- */

/* The normal token with these bytes, or -1. */
int32_t mica__vocabulary_find(const mica_tokenizer *t, const char *text, size_t length);
/* The rank of a merge, UINT32_MAX if there is no such merge. */
uint32_t mica__merge_rank(const mica_tokenizer *t, int32_t left, int32_t right);

/* A symbol of a piece during merging; symbols form a linked list. */
typedef struct mica__symbol {
    uint32_t start, length;
    int32_t id, before, after; /* before, after: neighbours, -1 at the ends */
} mica__symbol;
typedef struct mica__merger {
    mica__symbol *symbols;
    size_t cap_symbols;
    struct mica__candidate *heap;
    size_t n_heap, cap_heap;
} mica__merger;
void mica__merger_free(mica__merger *m);
/* Merges one piece and appends its tokens. */
mica_status mica__merge_piece(const mica_tokenizer *t, mica__merger *m, const char *text, size_t length,
                              mica__tokens *out);
mica_status mica__tokens_add(mica__tokens *tokens, int32_t id);

#endif
