/* A language model inside a program: opens it, reads a prompt, prints the continuation.
 *
 *     08_language_model [MODEL [PROMPT]]        without MODEL: the built-in model */
#include <mica_lm.h>
#include <stdio.h>
#include <string.h>

static bool print_token(int32_t token, void *user)
{
    static mica_detokenizer state;
    char text[256];
    fwrite(text, 1, mica_detokenize(user, &state, token, 0, text, sizeof text), stdout);
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    const char *prompt = argc > 2 ? argv[2] : "Once upon a time";
    mica_engine *engine = NULL;
    mica_lm *lm = NULL;
    mica_lm_session *session = NULL;
    mica_lm_sampler *sampler = NULL;
    int32_t ids[256];
    size_t n = 0;

    mica_status status = mica_open(NULL, &engine);
    if (status == MICA_OK) status = mica_lm_open(engine, argc > 1 ? argv[1] : NULL, NULL, &lm);
    const bool none = status == MICA_ERR_UNSUPPORTED && argc == 1; /* the library was built without a model */
    if (status == MICA_OK) status = mica_lm_session_open(lm, NULL, &session);
    if (status == MICA_OK) status = mica_lm_sampler_open(NULL, &sampler);
    mica_tokenizer *tokenizer = status == MICA_OK ? (mica_tokenizer *)mica_lm_tokenizer(lm) : NULL;
    if (tokenizer) status = mica_tokenizer_encode(tokenizer, prompt, strlen(prompt), MICA_ENCODE_BOS, ids, 256, &n);
    if (tokenizer && status == MICA_OK && n <= 256)
        status = mica_lm_generate(session, sampler, ids, (int64_t)n, 64, print_token, tokenizer, NULL);
    if (status != MICA_OK || !tokenizer) fprintf(stderr, "%s\n", mica_last_error());
    putchar('\n');

    mica_lm_sampler_close(sampler);
    mica_lm_session_close(session);
    mica_lm_close(lm);
    mica_close(engine);
    return none ? 77 : status == MICA_OK && tokenizer ? 0 : 1;
}
