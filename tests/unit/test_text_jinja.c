/* Chat templates against the output of Jinja2 (tests/golden/jinja.txt), the built-in templates
 * against their model cards, and malicious templates. */
#include "text/chat.h"
#include "text/jinja.h"

#include "io_files.h"

#define CAFE "caf\xc3\xa9 \xf0\x9f\x9a\x80 <b>&'x'</b>"
static const mica_chat_message chat_one[] = {{"user", "Hello"}};
static const mica_chat_message chat_system[] = {
    {"system", "Be brief."}, {"user", "  What is 2+2? "}, {"assistant", "4"}, {"user", "And \"3+3\"?\n"}};
static const mica_chat_message chat_talk[] = {{"user", "Hi"}, {"assistant", " Hello there "}, {"user", CAFE}};
static const struct {
    const char *name;
    const mica_chat_message *messages;
    size_t n;
} chats[] = {{"one", chat_one, 1}, {"system", chat_system, 4}, {"talk", chat_talk, 3}, {"none", chat_one, 0}};

static mica_status render(const char *template, size_t n, const mica_chat_message *messages, size_t n_messages,
                          bool prompt, char *out, size_t cap, size_t *length)
{
    mica__arena arena;
    mica__jinja *jinja;
    const char *text;
    const mica__jinja_input input = {.messages = messages,
                                     .n_messages = n_messages,
                                     .prompt = prompt,
                                     .bos = "<s>",
                                     .bos_length = 3,
                                     .eos = "</s>",
                                     .eos_length = 4};
    mica__arena_init(&arena);
    mica_status status = mica__jinja_parse(&arena, template, n, &jinja);
    if (status == MICA_OK) status = mica__jinja_render(&arena, jinja, &input, &text, length);
    if (status == MICA_OK) snprintf(out, cap, "%s", text);
    mica__arena_free(&arena);
    return status;
}

/* Checks one case of the file. Returns the text after it. */
static char *golden_case(char *at)
{
    static char out[1 << 16];
    char name[40], chat[20];
    int prompt, used = 0;
    if (sscanf(at, "==== %39s %19s %d\n%n", name, chat, &prompt, &used) < 3) return NULL;
    char *template = strchr(at, '\n') + 1, *mid = strstr(template, "\n----\n"),
         *end = mid ? strstr(mid, "\n====\n") : NULL;
    if (!end) return NULL;
    char *want = mid + 6;
    *mid = *end = '\0';
    test_case("%s, %s, %d", name, chat, prompt);
    size_t k = 0, length;
    while (k < COUNT(chats) && strcmp(chats[k].name, chat) != 0) k++;
    const mica_status status =
        render(template, strlen(template), chats[k].messages, chats[k].n, prompt, out, sizeof out, &length);
    if (want[0] == '!') {
        EXPECT_INT(status, MICA_ERR_ARGUMENT);
        EXPECT_MSG(strstr(mica_last_error(), want + 1), "%s", mica_last_error());
    } else if (EXPECT_MSG(status == MICA_OK, "%s", mica_last_error())) EXPECT_STR(out, want);
    return end + 6;
}

TEST(equals_jinja2)
{
    size_t n;
    int count = 0;
    char *text = (char *)io_read("tests/golden/jinja.txt", &n);
    CHECK(text != NULL);
    text = realloc(text, n + 1);
    text[n] = '\0';
    for (char *at = text; at && *at; count++) at = golden_case(at);
    EXPECT_MSG(count > 100, "%d cases", count);
    free(text);
}

/* -------------------------------------------------------------- the table -- */

static void named(const char *name, const mica_chat_message *messages, size_t n, const char *want)
{
    char text[1000];
    size_t length;
    test_case("%s", name);
    CHECK_MSG(mica_chat_render(NULL, name, messages, n, true, text, sizeof text, &length) == MICA_OK, "%s",
              mica_last_error());
    EXPECT_STR(text, want);
    EXPECT_INT(length, strlen(want));
}

TEST(built_in_templates)
{
    static const mica_chat_message m[] = {{"system", "S"}, {"user", "U "}, {"assistant", "A"}, {"user", "V"}};
    named("bitnet", m, 4, "System: S<|eot_id|>User: U<|eot_id|>Assistant: A<|eot_id|>User: V<|eot_id|>Assistant: ");
    named("llama3", m, 2,
          "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU<|eot_"
          "id|>"
          "<|start_header_id|>assistant<|end_header_id|>\n\n");
    named("chatml", m, 2, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU <|im_end|>\n<|im_start|>assistant\n");
    named("qwen", m + 3, 1, "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n");
    named("falcon3", m, 4, "<|system|>\nS\n<|user|>\nU \n<|assistant|>\nA\n<|user|>\nV\n<|assistant|>\n");
    named("mistral", m, 4, "[INST] S\n\nU  [/INST] A[INST] V [/INST]");
    named("gemma", m, 4,
          "<start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>user\n"
          "V<end_of_turn>\n<start_of_turn>model\n");
    named("phi-3", m, 2, "<|system|>\nS<|end|>\n<|user|>\nU <|end|>\n<|assistant|>\n");
    named("zephyr", m, 2, "<|system|>\nS\n<|user|>\nU \n<|assistant|>\n");
    named("plain", m, 2, "S\nU ");
    for (size_t i = 0; mica_chat_name(i); i++) {
        char text[200];
        size_t length;
        test_case("%s without messages", mica_chat_name(i));
        EXPECT_INT(mica_chat_render(NULL, mica_chat_name(i), NULL, 0, false, text, sizeof text, &length), MICA_OK);
        EXPECT_INT(length, 0);
    }
}

TEST(render_arguments)
{
    char text[8] = "xxxxxxx";
    size_t n;
    EXPECT_INT(mica_chat_render(NULL, "chatml", chat_one, 1, true, text, 5, &n), MICA_OK);
    EXPECT_STR(text, "<|im");
    EXPECT_INT(n, 55);
    EXPECT_INT(mica_chat_render(NULL, "chatml", chat_one, 1, true, NULL, 0, &n), MICA_OK);
    EXPECT_INT(n, 55);
    EXPECT_INT(mica_chat_render(NULL, "chatml", NULL, 1, true, text, 8, &n), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_chat_render(NULL, "chatml", chat_one, 1, true, NULL, 8, &n), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_chat_render(NULL, "chatml", chat_one, 1, true, text, 8, NULL), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_chat_render(NULL, "chatml", &(mica_chat_message){"user", NULL}, 1, true, text, 8, &n),
               MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_chat_render(NULL, NULL, chat_one, 1, true, text, 8, &n), MICA_ERR_UNSUPPORTED);
    EXPECT_INT(mica_chat_render(NULL, "no-such", chat_one, 1, true, text, 8, &n), MICA_ERR_UNSUPPORTED);
    EXPECT(strstr(mica_last_error(), "'no-such'"));
}

/* ---------------------------------------------------------------- errors --- */

static void refused(const char *template, mica_status want, const char *part)
{
    char out[100];
    size_t length;
    const int64_t live = mica__alloc_live();
    test_case("%.60s", template);
    const mica_status got = render(template, strlen(template), chat_system, 4, true, out, sizeof out, &length);
    EXPECT_MSG(got == want, "%d: %s", (int)got, got ? mica_last_error() : out);
    EXPECT_MSG(strstr(mica_last_error(), part), "no \"%s\" in \"%s\"", part, mica_last_error());
    EXPECT_INT(mica__alloc_live(), live);
}

TEST(refused_by_name_and_line)
{
    refused("\n\n{{ x | nonsense }}", MICA_ERR_UNSUPPORTED, "line 3: the filter 'nonsense'");
    refused("{{ x is nonsense }}", MICA_ERR_UNSUPPORTED, "line 1: the test 'nonsense'");
    refused("a\n{% call f() %}{% endcall %}", MICA_ERR_UNSUPPORTED, "line 2: the tag 'call'");
    refused("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", MICA_ERR_FORMAT, "no names for");
    refused("{% macro f(a) %}{% break %}{% endmacro %}", MICA_ERR_FORMAT, "outside of a for");
    refused("{{ messages | map('nope') }}", MICA_ERR_UNSUPPORTED, "the filter 'nope'");
    refused("{{ messages | map }}", MICA_ERR_UNSUPPORTED, "map needs");
    refused("{{ messages | selectattr('role', 'nope') }}", MICA_ERR_UNSUPPORTED, "the test 'nope'");
    refused("{{ messages | selectattr }}", MICA_ERR_FORMAT, "needs a name");
    refused("{{ messages | select(1) }}", MICA_ERR_FORMAT, "names as strings");
    refused("{{ range(0, 5, 0) }}", MICA_ERR_FORMAT, "range needs bounds that do not overflow");
    refused("{{ range(0, -9223372036854775807 - 1, -1) }}", MICA_ERR_FORMAT, "range needs bounds that do not overflow");
    refused("{{ range(1, 2, 3, 4) }}", MICA_ERR_UNSUPPORTED, "one to three numbers");
    refused("{% include 'x' %}", MICA_ERR_UNSUPPORTED, "'include'");
    refused("{% import 'os' %}", MICA_ERR_UNSUPPORTED, "'import'");
    refused("{{ strftime_now('%d') }}", MICA_ERR_UNSUPPORTED, "the function 'strftime_now'");
    refused("{{ ''.__class__.__mro__[1].__subclasses__() }}", MICA_ERR_FORMAT, "something undefined");
    refused("{{ ''.format('x') }}", MICA_ERR_UNSUPPORTED, "the method 'format' of a string");
    refused("{{ messages.append(1) }}", MICA_ERR_UNSUPPORTED, "the method 'append' of a list");
    refused("{{ messages }}", MICA_ERR_UNSUPPORTED, "a list as text");
    refused("{{ 1.5 }}", MICA_ERR_UNSUPPORTED, "fraction");
    refused("{{ 1 / 2 }}", MICA_ERR_UNSUPPORTED, "fraction");
    refused("{{ nothing.role }}", MICA_ERR_FORMAT, "an item of something undefined");
    refused("{{ 'a' + 1 }}", MICA_ERR_FORMAT, "a string + a number");
    refused("{{ 'a' + nothing }}", MICA_ERR_FORMAT, "a string + something undefined");
    refused("{{ 1 // 0 }}", MICA_ERR_FORMAT, "division by zero");
    refused("{{ 9223372036854775807 + 1 }}", MICA_ERR_UNSUPPORTED, "64 bits");
    refused("{{ 99999999999999999999 }}", MICA_ERR_UNSUPPORTED, "too large");
    refused("{{ -(-9223372036854775807 - 1) }}", MICA_ERR_UNSUPPORTED, "64 bits");
    refused("{{ 1", MICA_ERR_FORMAT, "a tag has no end");
    refused("{{ 'a", MICA_ERR_FORMAT, "a string has no end");
    refused("{{ 'a\\", MICA_ERR_FORMAT, "a string has no end");
    refused("{# a", MICA_ERR_FORMAT, "a comment has no end");
    refused("{% if a %}", MICA_ERR_FORMAT, "the block that begins here has no end");
    refused("{% for x in y %}{% else %}", MICA_ERR_FORMAT, "no end");
    refused("{% endif %}", MICA_ERR_UNSUPPORTED, "'endif'");
    refused("{% %}", MICA_ERR_FORMAT, "the name of a tag");
    refused("{{ }}", MICA_ERR_FORMAT, "an expression is missing");
    refused("{{ a[ }}", MICA_ERR_FORMAT, "missing");
    refused("{{ a[] }}", MICA_ERR_FORMAT, "missing");
    refused("{{ (1 }}", MICA_ERR_FORMAT, "missing");
    refused("{{ {1 2} }}", MICA_ERR_FORMAT, "missing");
    refused("{{ a b }}", MICA_ERR_FORMAT, "the end of the tag");
    refused("{% break %}", MICA_ERR_FORMAT, "outside of a for");
    refused("{% set messages.x = 1 %}", MICA_ERR_FORMAT, "cannot be set");
    refused("{% for a, b in messages %}{% endfor %}", MICA_ERR_FORMAT, "2 names for a dict");
    refused("{% for a in 5 %}{% endfor %}", MICA_ERR_FORMAT, "a for over a number");
    refused("{{ messages | join }}", MICA_ERR_UNSUPPORTED, "a dict as text");
    refused("{{ range(1000000000) }}", MICA_ERR_UNSUPPORTED, "100000");
    refused("{{ 'abc'[::2] }}", MICA_ERR_UNSUPPORTED, "a slice");
    refused("{{ 'a'.replace('', 'b') }}", MICA_ERR_UNSUPPORTED, "replace of an empty string");
    refused("{{ namespace(1) }}", MICA_ERR_UNSUPPORTED, "names");
    refused("{{ 'a' 'b' }}", MICA_ERR_UNSUPPORTED, "two adjacent strings");
    refused("{{ 'a' * 3 }}", MICA_ERR_UNSUPPORTED, "a string * a number");
    refused("{% macro f(a, a) %}{% endmacro %}", MICA_ERR_FORMAT, "two arguments of one name");
    refused("{% if 1 if 2 %}{% endif %}", MICA_ERR_FORMAT, "the end of the tag is missing before 'if'");
    refused("{{ 01 }}", MICA_ERR_FORMAT, "begins with 0");
    refused("{{ messages.0 }}", MICA_ERR_UNSUPPORTED, "an index after a point");
    refused("{{ messages | map(attribute='a.b') }}", MICA_ERR_UNSUPPORTED, "an attribute that is no name");
    refused("{{ messages | selectattr('0') }}", MICA_ERR_UNSUPPORTED, "an attribute that is no name");
    refused("{{ namespace(a=1, a=2) }}", MICA_ERR_FORMAT, "the argument 'a' is given twice");
    refused("{{ [] | tojson(indent=1, 2) }}", MICA_ERR_FORMAT, "without a name follows");
    refused("{{ 1 is odd(1) }}", MICA_ERR_FORMAT, "the test 'odd' has 1 arguments; it takes 0");
    refused("{{ 'a'.split(',', []) }}", MICA_ERR_FORMAT, "the maxsplit of split of a list");
    refused("{{ raise_exception() }}", MICA_ERR_FORMAT, "needs one message");
    refused("{{ {[1]: 2} }}", MICA_ERR_UNSUPPORTED, "a dict with a key that is a list");
    refused("{{ '\\x41' }}", MICA_ERR_UNSUPPORTED, "an escape");
    refused("{{ messages | first.role }}", MICA_ERR_FORMAT, "the end of the tag is missing before '.'");
    refused("{{ messages | list[0] }}", MICA_ERR_FORMAT, "the end of the tag is missing before '['");
    refused("{{ 'a' | upper(1) }}", MICA_ERR_FORMAT, "'upper' has 1 arguments; it takes 0");
    refused("{{ 'a'.startswith('a', 1) }}", MICA_ERR_FORMAT, "'startswith' has 2 arguments");
    refused("{{ 'a' | join(by='-') }}", MICA_ERR_FORMAT, "'join' has no argument 'by'");
    refused("{{ [] | tojson(sort_keys=true) }}", MICA_ERR_UNSUPPORTED, "other than indent");
    refused("{{ [] | tojson(2) }}", MICA_ERR_UNSUPPORTED, "other than indent");
    refused("{{ 'a' is odd }}", MICA_ERR_FORMAT, "the test 'odd' of a string");
    refused("{{ 1 is odd is true }}", MICA_ERR_FORMAT, "two tests in a row");
    refused("{{ '1.5' | int }}", MICA_ERR_UNSUPPORTED, "no integer");
    refused("{{ +'a' }}", MICA_ERR_FORMAT, "a sign before a string");
    refused("{{ [1] in {} }}", MICA_ERR_FORMAT, "a list in a dict");
    refused("{{ raise_exception('enough') }}", MICA_ERR_ARGUMENT, "line 1: enough");
}

/* Time and memory have limits for any template. */
TEST(templates_that_mean_harm)
{
    refused("{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}",
            MICA_ERR_UNSUPPORTED, "line 1: it takes ");
    refused("{% set n = namespace(x='aaaaaaaa') %}{% for a in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
            MICA_ERR_UNSUPPORTED, "64 MB");
    refused("{% set n = namespace(x='aaaaaaaa') %}{% for a in range(20) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
            "{% for a in range(9999) %}{{ 'b' in n.x }}{% endfor %}",
            MICA_ERR_UNSUPPORTED, "steps");
    refused("{% set n = namespace(x='aaaaaaaa') %}{% for a in range(20) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
            "{% for a in range(9999) %}{{ n.x }}{% endfor %}",
            MICA_ERR_UNSUPPORTED, "MB");
    refused("{% set n = namespace(x='aaaaaaaa') %}{% for a in range(17) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
            "{{ (n.x ~ 'b') in (n.x ~ n.x) }}",
            MICA_ERR_UNSUPPORTED, "steps");
    refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", MICA_ERR_UNSUPPORTED,
            "macros call each other too deeply");
    refused("{% macro f(n) %}{% for i in range(99) %}{{ f(n) if n else 0 }}{% endfor %}{% endmacro %}{{ f(1) }}",
            MICA_ERR_UNSUPPORTED, "too deeply");
    refused("{% set a = range(99) | list %}{% set b = [a, a, a, a, a, a, a, a, a, a, a, a] %}{% set c = [b, b, b, b, "
            "b, b, b, b, b] %}"
            "{% set d = [c, c, c, c, c, c, c, c, c] %}{% set e = [d, d, d, d, d, d, d, d, d] %}{% set f = [e, e, e, e, "
            "e, e, e] %}"
            "{{ [f, f, f, f, f, f, f, f] == [f, f, f, f, f, f, f, f] }}",
            MICA_ERR_UNSUPPORTED, "steps");
    static char deep[20000];
    for (int i = 0; i < 9000; i++) deep[3 + i] = '(';
    memcpy(deep, "{{ ", 3);
    refused(deep, MICA_ERR_UNSUPPORTED, "nested too deeply");
    for (int i = 0; i < 9000; i++) deep[3 + i] = "not "[i % 4];
    refused(deep, MICA_ERR_FORMAT, "a tag has no end");
    for (int i = 0; i < 9000; i++) deep[3 + i] = i % 2 ? '+' : '1';
    memcpy(deep + 9000, "+1 }}", 6);
    refused(deep, MICA_ERR_UNSUPPORTED, "too long");
    for (int i = 0; i < 9000; i++) deep[3 + i] = '-';
    refused(deep, MICA_ERR_UNSUPPORTED, "nested too deeply");
}

TEST(each_allocation_fails_once)
{
    static const char template[] =
        "{% for m in messages %}{{ m.role | upper + m.content }}{% endfor %}{{ messages | tojson }}";
    char out[1000];
    for (uint64_t n = 1;; n++) {
        const int64_t live = mica__alloc_live();
        size_t length;
        mica__alloc_fail_at(n);
        const mica_status status = render(template, strlen(template), chat_system, 4, true, out, sizeof out, &length);
        mica__alloc_fail_at(0);
        EXPECT_INT(mica__alloc_live(), live);
        if (status == MICA_OK) break;
        EXPECT_INT(status, MICA_ERR_MEMORY);
        CHECK(n < 100);
    }
}
