/* Vocabularies from any bytes, by each reader. A vocabulary that is accepted encodes any text to
 * existing ids, which decode to valid UTF-8. If it is refused, the error message names the file. */
#include "text/tokenizer_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held, const char *what)
{
    if (held) return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

static void use(const mica_tokenizer *t)
{
    static const char text[] = " Hello<s> abc ab\n\n12345 caf\xc3\xa9\xff<|end|> \xe2\x96\x81 end";
    mica__tokens tokens = {0};
    char out[2000];
    for (int flags = 0; flags < 4; flags++) {
        if (mica__tokenizer_encode(t, text, sizeof text - 1, flags, &tokens) != MICA_OK) continue;
        for (size_t i = 0; i < tokens.n; i++)
            must(tokens.ids[i] >= 0 && tokens.ids[i] < t->n_tokens, "an id is a token");
    }
    const size_t n = mica__decode(t, tokens.ids, tokens.n, MICA_DECODE_SPECIAL, out, sizeof out);
    if (n <= sizeof out) must(mica__utf8_valid(out, n), "a text is UTF-8");
    for (int role = 0; role <= MICA_TOKEN_PADDING; role++) must(t->role[role] < t->n_tokens, "a role is a token");
    for (int i = 0; i < t->n_ends; i++) must(t->ends[i] >= 0 && t->ends[i] < t->n_tokens, "an end is a token");
    mica__tokens_free(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int reader = 0; reader < 4; reader++) {
        const int64_t live = mica__alloc_live();
        mica_tokenizer *t = NULL;
        const mica_status status = reader == 0   ? mica__tokenizer_from_json("fuzz", data, size, NULL, NULL, &t)
                                   : reader == 1 ? mica__tokenizer_from_sentencepiece("fuzz", data, size, &t)
                                   : reader == 2 ? mica__tokenizer_from_llama2c("fuzz", data, size, &t)
                                                 : mica__tokenizer_from_ranks("fuzz", data, size, "gpt-2", &t);
        must((status == MICA_OK) == (t != NULL), "a tokenizer comes with success");
        if (t) use(t);
        else
            must(strncmp(mica_last_error(), "fuzz: ", 6) == 0 || strstr(mica_last_error(), "regular expression") ||
                     status == MICA_ERR_MEMORY,
                 "an error message names the file");
        mica__tokenizer_free(t);
        must(mica__alloc_live() == live, "nothing is left");
    }
    return 0;
}
