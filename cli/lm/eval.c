/* mica eval ppl: measures the perplexity of a model on a text. The text is read in
 * overlapping windows. Each token is counted once, in the first window that has it, where the
 * most tokens precede it. Every window begins with the begin token if the model has one. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/progress.h"
#include "lm/model.h"

typedef struct eval_options {
    cli_model_args model;
    int64_t window, stride, limit;
    bool json;
} eval_options;

/* clang-format off */
#define AT(field) offsetof(eval_options, field)
static const cli_option eval_rows[] = {
    {"--window", "-w", CLI_INT, AT(window), 2, 2147483646, "N", .unset = "512, or the model's context if that is less",
     .text = "tokens per window"},
    {"--stride", "-s", CLI_INT, AT(stride), 1, 2147483646, "N", .unset = "half a window",
     .text = "tokens from the start of one window to the next"},
    {"--limit", NULL, CLI_INT, AT(limit), 2, 9e15, "N", .unset = "all",
     .text = "read only the first N tokens of the text"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print the result as JSON"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_ppl(const cli_call *call);

static const cli_command ppl_command = {
    .name = "mica eval ppl",
    .summary = "measure the perplexity of a language model on a text",
    .usage = "MODEL FILE [options]",
    .text = "Perplexity is exp of the mean loss per token of the text.",
    .arguments = (const cli_argument[]){{"MODEL", "a GGUF file, a folder with config.json and safetensors files, or "
                                                  "builtin"},
                                        {"FILE", "the text; - is stdin"},
                                        {NULL, NULL}},
    .least_args = 2,
    .most_args = 2,
    .groups = (const cli_group[]){{"Options", eval_rows, 0},
                                  {"Model and device", cli_model_rows, offsetof(eval_options, model)},
                                  {NULL, NULL, 0}},
    .options_size = sizeof(eval_options),
    .run = run_ppl,
};

const cli_command cli_eval_command = {
    .name = "mica eval",
    .summary = "evaluate a language model",
    .usage = "ppl MODEL FILE [options]",
    .subcommands = (const cli_command *const[]){&ppl_command, NULL},
};

typedef struct eval_state {
    const eval_options *o;
    const char *file;
    cli_model m;
    mica_lm_session *session;
    int32_t *ids;               /* of the text                                            */
    int64_t n, window, stride;
    int64_t first;              /* 1: windows begin with the token `begin`; 0: they do not */
    int32_t begin;
    double sum, squares;        /* of the losses, in nats                                 */
    int64_t counted;
} eval_state;

static void show_ppl(const eval_state *e, bool last)
{
    if (last) cli_clear_line();
    else
        cli_show_line("%" PRId64 " of %" PRId64 " tokens, perplexity so far %.4f", e->counted, e->n,
                      exp(e->sum / (double)e->counted));
}

/* Scores tokens from..to of the text; tokens before `known` are context and not counted again. */
static mica_status score_window(eval_state *e, int64_t from, int64_t to, int64_t known, int32_t *ids, float *losses)
{
    const int64_t n = to - from + e->first;
    if (e->first) ids[0] = e->begin;
    memcpy(ids + e->first, e->ids + from, (size_t)(to - from) * sizeof *ids);
    mica_status status = mica_lm_session_rewind(e->session, 0);
    if (status == MICA_OK) status = mica_lm_score(e->session, ids, n, losses);
    if (status != MICA_OK) return status;
    /* losses[i] is the loss of ids[i + 1], which is token from + i + 1 - first */
    for (int64_t i = 0; i < n - 1; i++) {
        if (from + i + 1 - e->first < known) continue;
        const double loss = (double)losses[i];
        e->sum += loss;
        e->squares += loss * loss;
        e->counted++;
    }
    return MICA_OK;
}

static int score_text(eval_state *e)
{
    const int64_t body = e->window - e->first;
    int32_t *ids = malloc((size_t)e->window * sizeof *ids);
    float *losses = malloc((size_t)e->window * sizeof *losses);
    mica_status status = ids && losses ? MICA_OK : mica_fail(MICA_ERR_MEMORY, "no memory for a window");
    int64_t known = 0;
    bool stopped = false;
    for (int64_t from = 0; known < e->n && status == MICA_OK && !stopped; from += e->stride) {
        const int64_t to = from + body < e->n ? from + body : e->n;
        if (to - from + e->first > 1) status = score_window(e, from, to, known, ids, losses);
        known = to;
        if (status == MICA_OK && e->counted) show_ppl(e, false);
        stopped = cli_interrupted();
    }
    show_ppl(e, true);
    free(ids);
    free(losses);
    if (status != MICA_OK) return cli_fail(CLI_FAILED, "mica eval ppl: %s", mica_last_error());
    return stopped ? CLI_INTERRUPTED : CLI_OK;
}

static void print_ppl(const eval_state *e, double seconds)
{
    const double mean = e->sum / (double)e->counted;
    const double variance = fmax(e->squares / (double)e->counted - mean * mean, 0);
    const double error = sqrt(variance / (double)e->counted), rate = (double)e->counted / seconds;
    if (e->o->json) {
        cli_json j = {.to = stdout};
        cli_json_object(&j, NULL, CLI_JSON_INLINE);
        cli_json_number(&j, "perplexity", exp(mean));
        cli_json_number(&j, "error", exp(mean) * error);
        cli_json_number(&j, "loss", mean);
        cli_json_int(&j, "tokens", e->counted);
        cli_json_int(&j, "window", e->window);
        cli_json_int(&j, "stride", e->stride);
        cli_json_number(&j, "tokens_per_s", rate);
        cli_json_text(&j, "device", mica_engine_device(e->m.engine));
        cli_json_text(&j, "arch", e->m.info.arch);
        cli_json_text(&j, "file", e->file);
        cli_json_end(&j);
        return;
    }
    printf("perplexity %.4f +/- %.4f (loss %.5f nats per token) over %" PRId64 " tokens, window %" PRId64
           ", stride %" PRId64 "\n",
           exp(mean), exp(mean) * error, mean, e->counted, e->window, e->stride);
    fprintf(stderr, "%.1f tokens/s\nDevice: %s\n", rate, mica_engine_device(e->m.engine));
}

static int read_eval_text(eval_state *e)
{
    size_t length;
    char *text = cli_read_file("mica eval ppl", e->file, &length);
    if (!text) return CLI_FILE;
    e->ids = cli_encode(e->m.command, mica_lm_tokenizer(e->m.lm), text, length, 0, &e->n);
    mica_text_free(text);
    if (!e->ids) return CLI_FILE;
    if (e->o->limit && e->n > e->o->limit) e->n = e->o->limit;
    if (e->n < 2) return cli_fail(CLI_FILE, "mica eval ppl: %s has %" PRId64 " tokens; it needs 2", e->file, e->n);
    return CLI_OK;
}

static int eval_model(eval_state *e)
{
    const eval_options *o = e->o;
    int code = read_eval_text(e);
    if (code != CLI_OK) return code;
    const mica_tokenizer *t = mica_lm_tokenizer(e->m.lm);
    e->begin = mica_tokenizer_adds_bos(t) ? mica_tokenizer_role(t, MICA_TOKEN_BOS) : -1;
    e->first = e->begin >= 0;
    e->window = o->window ? o->window : e->m.info.context < 512 ? e->m.info.context : 512;
    if (e->window > e->m.info.context)
        return cli_fail(CLI_USAGE, "mica eval ppl: --window %" PRId64 " exceeds the context of the model, %" PRId64,
                        e->window, e->m.info.context);
    e->stride = o->stride ? o->stride : (e->window + 1) / 2;
    if (e->stride > e->window - 1)
        return cli_fail(CLI_USAGE,
                        "mica eval ppl: --stride %" PRId64 " must be less than the window of %" PRId64 " tokens",
                        e->stride, e->window);
    cli_model_args room = o->model;
    room.context = e->window;
    code = cli_model_session(&e->m, &room, e->window, 1, &e->session);
    if (code != CLI_OK) return code;
    const double start = cli_seconds();
    code = score_text(e);
    if (code == CLI_OK || (code == CLI_INTERRUPTED && e->counted)) print_ppl(e, cli_seconds() - start);
    return code;
}

static int run_ppl(const cli_call *call)
{
    const eval_options *o = call->options;
    eval_state e = {.o = o, .file = call->args[1]};
    cli_signals_watch();
    int code = cli_model_open("mica eval ppl", call->args[0], &o->model, &e.m);
    if (code == CLI_OK) code = eval_model(&e);
    cli_signals_release();
    mica_lm_session_close(e.session);
    cli_model_close(&e.m);
    free(e.ids);
    return code;
}
