/* Chat templates from any bytes: rendering ends, gives the same text twice, and an error message
 * names the line. */
#include "text/jinja.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held, const char *what)
{
    if (held) return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

static mica_status render(const uint8_t *data, size_t size, char **copy, size_t *length)
{
    static const mica_chat_message messages[] = {
        {"system", "Be brief."}, {"user", " caf\xc3\xa9 \xff? "}, {"assistant", "<think>x</think>\nyes"}, {"user", ""}};
    const mica__jinja_input input = {
        .messages = messages, .n_messages = 4, .prompt = size % 2, .bos = "<s>", .bos_length = 3};
    mica__arena arena;
    mica__jinja *jinja;
    const char *text;
    *copy = NULL;
    mica__arena_init(&arena);
    mica_status status = mica__jinja_parse(&arena, (const char *)data, size, &jinja);
    if (status == MICA_OK) status = mica__jinja_render(&arena, jinja, &input, &text, length);
    if (status == MICA_OK) {
        if (!(*copy = malloc(*length + 1))) abort();
        memcpy(*copy, text, *length + 1);
    }
    mica__arena_free(&arena);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t live = mica__alloc_live();
    char *once, *twice;
    size_t n = 0, m = 0;
    const mica_status status = render(data, size, &once, &n);
    if (status == MICA_OK) must(once[n] == '\0', "a text ends");
    else must(strncmp(mica_last_error(), "chat template, line ", 20) == 0, "an error message names the line");
    must(render(data, size, &twice, &m) == status, "the same status twice");
    must(n == m && (!once || memcmp(once, twice, n) == 0), "the same text twice");
    free(once);
    free(twice);
    must(mica__alloc_live() == live, "nothing is left");
    return 0;
}
