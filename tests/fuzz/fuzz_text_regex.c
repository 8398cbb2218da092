/* Regular expressions from any bytes, on any text: matching ends, stays within the text, and is
 * repeatable. The input is a pattern, a zero byte and a text. */
#include "text/regex.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    const size_t length = zero ? (size_t)(zero - data) : size, text_length = zero ? size - length - 1 : 0;
    /* each in a block of exactly its size */
    char *pattern = malloc(length ? length : 1), *text = malloc(text_length ? text_length : 1);
    if (!pattern || !text) abort();
    if (length) memcpy(pattern, data, length);
    if (text_length) memcpy(text, zero + 1, text_length);
    const int64_t live = mica__alloc_live();
    mica__arena arena;
    mica__regex *re;
    mica__regex_stack stack = {0};
    mica__arena_init(&arena);
    if (mica__regex_new(&arena, pattern, length, &re) == MICA_OK) {
        for (size_t at = 0; at <= text_length && at < 8; at++) {
            size_t end = 0, again = 1;
            const mica_status status = mica__regex_match(re, text, text_length, at, &stack, &end);
            must(status != MICA_OK || end == SIZE_MAX || (end >= at && end <= text_length), "a match is in the text");
            must(mica__regex_match(re, text, text_length, at, &stack, &again) == status, "the same twice");
            must(status != MICA_OK || end == again, "the same end twice");
        }
    } else {
        must(strstr(mica_last_error(), "regular expression") != NULL, "the error message states the problem");
    }
    mica__regex_stack_free(&stack);
    mica__arena_free(&arena);
    must(mica__alloc_live() == live, "nothing is left");
    free(pattern);
    free(text);
    return 0;
}
