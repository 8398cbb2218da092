/* The tokenizer from inside. */
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
enum { MICA__PRE_PATTERNS = 6 };

typedef struct mica__token_text {
    const char *text;
    uint32_t length;
    float score;
    uint8_t type;
} mica__token_text;

struct mica__tokenizer {
    mica__arena arena;
    bool spm;              /* else byte-level BPE                         */
    bool whole_pieces;     /* ignore_merges                               */
    bool merge_by_rank;    /* tiktoken: the id of a token is its rank     */
    bool add_bos, add_space;
    int32_t bos, eos, unknown;
    mica__token_text *tokens;
    int32_t n_tokens;
    uint32_t *slots;       /* normal tokens by their bytes: id + 1        */
    size_t n_slots;
    uint64_t *pairs;       /* merges: (left, right) to rank               */
    uint32_t *pair_ranks;
    size_t n_pairs;        /* slots of them                               */
    int32_t *specials;     /* user and control tokens, the longest first  */
    int32_t n_specials;
    bool special_first[256];
    int32_t byte_token[256];
    mica__regex *patterns[MICA__PRE_PATTERNS];
    int n_patterns;
    uint64_t seed;
};

/* The normal token with these bytes, or -1. */
int32_t mica__vocabulary_find(const mica__tokenizer *t, const char *text, size_t length);
/* The rank of a merge, UINT32_MAX if it is none. */
uint32_t mica__merge_rank(const mica__tokenizer *t, int32_t left, int32_t right);

/* Symbols of a piece, joined as long as something can be. */
typedef struct mica__symbol {
    uint32_t start, length;
    int32_t id, before, after; /* -1 at the ends */
} mica__symbol;
typedef struct mica__merger {
    mica__symbol *symbols;
    size_t cap_symbols;
    struct mica__candidate *heap;
    size_t n_heap, cap_heap;
} mica__merger;
void mica__merger_free(mica__merger *m);
/* text is one piece; its tokens are appended. */
mica_status mica__merge_piece(const mica__tokenizer *t, mica__merger *m, const char *text, size_t length,
                              mica__tokens *out);
mica_status mica__tokens_add(mica__tokens *tokens, int32_t id);

#endif
