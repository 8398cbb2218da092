/* Built-in templates are written in Jinja, so one renderer serves both these and those of files. */
#include "text/chat.h"

#include <string.h>

#include "text/jinja.h"

static const struct {
    const char *name, *others, *parts, *jinja;
} chat_table[] = {
#define MICA_CHAT(name, others, parts, jinja) {name, others, parts, jinja},
#include "text/chat_templates.def"
#undef MICA_CHAT
};
enum { N_CHATS = sizeof chat_table / sizeof chat_table[0] };

const char *mica__chat_name(size_t i) { return i < N_CHATS ? chat_table[i].name : NULL; }

/* The index of the template with this name, -1 if there is none. */
static int find_chat(const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < N_CHATS; i++) {
        if (strcmp(chat_table[i].name, name) == 0) return i;
        for (const char *p = chat_table[i].others; *p;) {
            const size_t n = strcspn(p, " ");
            if (n == length && memcmp(p, name, n) == 0) return i;
            p += n + (p[n] == ' ');
        }
    }
    return -1;
}

/* True if the text contains each part of "a & b & c"; false for "". */
static bool has_parts(const char *text, const char *parts)
{
    for (const char *p = parts; *p;) {
        const char *end = strstr(p, " & ");
        const size_t n = end ? (size_t)(end - p) : strlen(p);
        bool found = false;
        for (const char *at = text; !found && (at = strchr(at, p[0])); at++) found = strncmp(at, p, n) == 0;
        if (!found) return false;
        p += n + (end ? 3 : 0);
    }
    return *parts != '\0';
}

mica_status mica__chat_resolve(mica_tokenizer *t)
{
    mica__arena arena;
    mica__jinja *jinja;
    mica__error error;
    if (!t->chat || find_chat(t->chat) >= 0) return MICA_OK;
    mica__arena_init(&arena);
    mica_status status = mica__jinja_parse(&arena, t->chat, strlen(t->chat), &jinja);
    if (status == MICA_OK) { /* unsupported filters and functions are found only by rendering */
        static const mica_chat_message hello = {"user", "Hello"};
        const mica__jinja_input input = {.messages = &hello, .n_messages = 1, .prompt = true, .bos = "", .eos = ""};
        const char *text;
        size_t length;
        status = mica__jinja_render(&arena, jinja, &input, &text, &length);
    }
    mica__error_capture(&error, status);
    mica__arena_free(&arena);
    if (status == MICA_OK) return MICA_OK;
    if (status == MICA_ERR_MEMORY) return mica__error_raise(&error);
    for (int i = 0; i < N_CHATS; i++) {
        if (!has_parts(t->chat, chat_table[i].parts)) continue;
        t->chat = chat_table[i].name;
        return mica__tokenizer_add_note(t, "'%s' is used instead: %s", t->chat, error.text);
    }
    return MICA_OK; /* mica__chat_render will return the error */
}

mica_status mica__chat_render(mica__arena *arena, const mica_tokenizer *t, const char *chat,
                              const mica_chat_message *messages, size_t n, bool prompt, const char **text,
                              size_t *length)
{
    mica__jinja_input input = {.messages = messages, .n_messages = n, .prompt = prompt};
    mica__jinja *jinja;
    const int known = find_chat(chat);
    const char *source = known >= 0 ? chat_table[known].jinja : chat;
    if (known < 0 && !strchr(chat, '{'))
        return mica__fail(MICA_ERR_UNSUPPORTED, "there is no chat template '%.60s'", chat);
    const int32_t bos = t ? t->role[MICA_TOKEN_BOS] : -1, eos = t ? t->role[MICA_TOKEN_EOS] : -1;
    if (bos >= 0) input.bos = t->tokens[bos].text, input.bos_length = t->tokens[bos].length;
    if (eos >= 0) input.eos = t->tokens[eos].text, input.eos_length = t->tokens[eos].length;
    MICA_TRY(mica__jinja_parse(arena, source, strlen(source), &jinja));
    return mica__jinja_render(arena, jinja, &input, text, length);
}
