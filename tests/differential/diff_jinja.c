/* Chat templates (text/jinja*.c) against jinja2. Each process of this program has a Python process that runs jinja2
 * (jinja_peer.py). An input is a template with one chat; a template is compiled once and rendered with CHATS chats.
 *
 * Equal texts, or an error on both sides. A template that mica refuses as unsupported is not given to jinja2. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "differential.h"
#include "io/json.h"
#include "jinja_reasons.h"
#include "jinja_templates.h"

#define PEER                                                                          \
    "for p in python3 /usr/bin/python3; do \"$p\" -c 'import jinja2' 2>/dev/null && " \
    "exec \"$p\" tests/differential/jinja_peer.py"

enum { CHATS = 64 };

static FILE *to_peer, *from_peer;

static void put_number(size_t n)
{
    const uint8_t bytes[4] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24)};
    if (fwrite(bytes, 1, 4, to_peer) != 4) exit(4);
}

static void put_text(const char *text, size_t n)
{
    put_number(n);
    if (fwrite(text, 1, n, to_peer) != n) exit(4);
}

static size_t get_number(void)
{
    uint8_t b[4];
    if (fread(b, 1, 4, from_peer) != 4) exit(4);
    return (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
}

static void send_contexts(void)
{
    const jinja_context *contexts = jinja_contexts();
    put_number(JINJA_CONTEXTS);
    for (int i = 0; i < JINJA_CONTEXTS; i++) {
        const mica__jinja_input *in = &contexts[i].input;
        put_number(in->prompt);
        put_number(in->bos != NULL);
        if (in->bos) put_text(in->bos, in->bos_length);
        put_number(in->eos != NULL);
        if (in->eos) put_text(in->eos, in->eos_length);
        put_number(in->n_messages);
        for (size_t k = 0; k < in->n_messages; k++) {
            put_text(in->messages[k].role, strlen(in->messages[k].role));
            put_text(in->messages[k].content, strlen(in->messages[k].content));
        }
    }
}

/* Starts the Python process. */
static void begin(void)
{
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) abort();
    const pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        dup2(to[0], 0), dup2(from[1], 1);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execl("/bin/sh", "sh", "-c", PEER "; done; exit 3", (char *)NULL);
        _exit(3);
    }
    close(to[0]), close(from[1]);
    to_peer = fdopen(to[1], "wb");
    from_peer = fdopen(from[0], "rb");
    if (!to_peer || !from_peer) abort();
    send_contexts();
}

/* ------------------------------------------------------------- comparing --- */

typedef struct rendering {
    mica_status status;
    char *text; /* or the error message */
    size_t n;
} rendering;

/* Renders with mica. *chats: how many; a template that meets the limit of steps or memory, which takes long, is rendered
 * no further. True if jinja2 is to be asked too: not if every chat is unsupported. */
static bool render_ours(const char *template, size_t n, unsigned first, rendering *out, unsigned *chats)
{
    static mica__arena tree, values;
    mica__jinja *jinja;
    bool ask = false;
    mica__arena_reset(&tree);
    const mica_status parsed = mica__jinja_parse(&tree, template, n, &jinja);
    for (unsigned i = 0; i < CHATS; i++) {
        const char *text = NULL;
        size_t length = 0;
        out[i].status = parsed;
        mica__arena_reset(&values);
        if (parsed == MICA_OK)
            out[i].status = mica__jinja_render(&values, jinja, &jinja_contexts()[(first + i) % JINJA_CONTEXTS].input,
                                               &text, &length);
        if (out[i].status != MICA_OK) text = mica_last_error(), length = strlen(text);
        out[i].text = malloc(length + 1);
        if (!out[i].text) abort();
        memcpy(out[i].text, text, length);
        out[i].text[length] = '\0';
        out[i].n = length;
        *chats = i + 1;
        if (out[i].status != MICA_ERR_UNSUPPORTED) ask = true;
        else if (strstr(text, "steps") || strstr(text, " MB")) break;
    }
    return ask;
}

/* The error message after "chat template, line N: ". */
static const char *message_of(const rendering *ours)
{
    const char *colon = strstr(ours->text, ": ");
    return colon ? colon + 2 : ours->text;
}

static void judge(differ *d, const rendering *ours, char kind, const differ_bytes *theirs, const jinja_facts *facts)
{
    const char *peer = (const char *)theirs->data;
    const bool same = ours->n == theirs->n && memcmp(ours->text, peer, ours->n) == 0;
    int why = -1;
    if (ours->status == MICA_OK && kind == 'O' && same) differ_agree(d, true);
    else if (ours->status == MICA_ERR_ARGUMENT && kind == 'R' && strncmp(message_of(ours), peer, 300) == 0)
        differ_agree(d, true);
    else if (ours->status != MICA_OK && ours->status != MICA_ERR_ARGUMENT && kind == 'E') differ_agree(d, false);
    else if ((why = jinja_reason(ours->status, ours->text, kind, peer, facts)) >= 0) differ_listed(d, why);
    else differ_fail(d, "mica (%d): '%.300s', jinja2 (%c): '%.300s'", (int)ours->status, ours->text, kind, peer);
}

static void compare_template(differ *d, const differ_bytes *template)
{
    static differ_bytes theirs;
    rendering ours[CHATS];
    const unsigned first = (unsigned)(template->n * 37) % JINJA_CONTEXTS;
    const char *text = (const char *)template->data;
    unsigned chats = 0;
    const bool ask = render_ours(text, template->n, first, ours, &chats);
    if (ask) {
        put_text(text, template->n);
        put_number(first), put_number(chats);
        if (fflush(to_peer) != 0) exit(4);
    }
    for (unsigned i = 0; i < chats; i++) {
        const jinja_context *chat = &jinja_contexts()[(first + i) % JINJA_CONTEXTS];
        const jinja_facts facts = {text, template->n, chat};
        char kind = 'E';
        theirs.n = 0;
        if (ask) {
            const int c = getc(from_peer);
            const size_t n = get_number();
            char part[4096];
            for (size_t left = n, k; left > 0; left -= k) {
                k = fread(part, 1, left < sizeof part ? left : sizeof part, from_peer);
                if (k == 0) exit(4);
                differ_put(&theirs, part, k);
            }
            kind = (char)c;
        }
        differ_byte(&theirs, 0);
        theirs.n--;
        if (ask) judge(d, &ours[i], kind, &theirs, &facts);
        else differ_listed(d, jinja_reason(MICA_ERR_UNSUPPORTED, ours[i].text, 'E', "", &facts));
        free(ours[i].text);
    }
}

/* Bytes that are not UTF-8 become '?': Python cannot read them. */
static void compare(differ *d, const uint8_t *data, size_t size)
{
    static differ_bytes template;
    template.n = 0;
    differ_put(&template, data, size);
    for (size_t i = 0; !mica__utf8_valid(template.data, template.n) && i < template.n; i++)
        if (template.data[i] >= 0x80 && !mica__utf8_valid(template.data, i + 1) &&
            !(i + 1 < template.n && mica__utf8_valid(template.data, i + 2)) &&
            !(i + 2 < template.n && mica__utf8_valid(template.data, i + 3)) &&
            !(i + 3 < template.n && mica__utf8_valid(template.data, i + 4)))
            template.data[i] = '?';
    differ_byte(&template, 0);
    template.n--;
    compare_template(d, &template);
}

int main(int argc, char **argv)
{
    char peer[64] = "";
    FILE *version = popen(PEER " --version; done; exit 3", "r");
    if (!version || !fgets(peer, sizeof peer, version)) {
        printf("there is no python3 with jinja2\n0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    pclose(version);
    peer[strcspn(peer, "\n")] = '\0';
    const differ_program program = {.name = "jinja",
                                    .peer = peer,
                                    .corpus = "text_jinja",
                                    .reasons = jinja_reasons,
                                    .n_reasons = N_JINJA_REASONS,
                                    .begin = begin,
                                    .generate = jinja_generate,
                                    .compare = compare};
    return differ_main(&program, argc, argv);
}
