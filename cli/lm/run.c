/* mica run: generates text after a prompt. stdout gets only the text, as it is
 * generated; stderr gets the figures afterwards. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/progress.h"
#include "lm/model.h"
#include "machine/peaks.h"

enum { DEFAULT_TOKENS = 256, TOKENS_UNSET = -2, FEED_PIECE = 512 };

typedef struct run_options {
    cli_model_args model;
    cli_sample_args sample;
    const char *model_path, *prompt, *file;
    int64_t n;
    bool json, no_peaks, special, from_stdin;
} run_options;

/* clang-format off */
#define AT(field) offsetof(run_options, field)
static const cli_option run_rows[] = {
    {"--prompt", "-p", CLI_TEXT, AT(prompt), .value = "TEXT", .unset = "an empty prompt", .text = "the prompt"},
    {"--file", "-f", CLI_PATH, AT(file), .value = "FILE", .text = "read the prompt from a file"},
    {"--model", "-m", CLI_PATH, AT(model_path), .value = "MODEL", .text = "the model; the same as the argument MODEL"},
    {"--tokens", "-n", CLI_INT, AT(n), -1, 2147483646, "N", .unset = "256, or less if the context ends",
     .aliases = "--n-predict|--predict|--max-tokens",
     .text = "generate at most N tokens; -1: until the context is full"},
    {"--special", NULL, CLI_FLAG, AT(special), .aliases = "--parse-special",
     .text = "read names such as <|eot_id|> in the prompt as control tokens, not as text"},
    {"--no-peaks", NULL, CLI_FLAG, AT(no_peaks),
     .text = "do not compare with the memory bandwidth of this machine, which is measured once and then cached"},
    {"--json", NULL, CLI_FLAG, AT(json), .text = "print text and figures as one JSON object"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

static int run_run(const cli_call *call);

const cli_command cli_run_command = {
    .name = "mica run",
    .summary = "generate text from a prompt with a language model",
    .usage = "[MODEL] [-p TEXT | -f FILE | -] [options]",
    .text = "Prints the text that the model generates after the prompt on stdout, and figures on stderr. The prompt "
            "is not printed.",
    .arguments = (const cli_argument[]){{"MODEL", "a GGUF file, a folder with config.json and safetensors files, or "
                                                  "builtin; without it, the built-in model"},
                                        {"-", "read the prompt from stdin"},
                                        {NULL, NULL}},
    .most_args = 2,
    .examples = "mica run -p \"First Citizen:\" -n 100\nmica run model.gguf -f prompt.txt --temp 0",
    .groups = (const cli_group[]){{"Options", run_rows, 0},
                                  {"Sampling", cli_sample_rows, offsetof(run_options, sample)},
                                  {"Model and device", cli_model_rows, offsetof(run_options, model)},
                                  {NULL, NULL, 0}},
    .options_size = sizeof(run_options),
    .defaults = &(const run_options){.sample = CLI_SAMPLE_UNSET, .n = TOKENS_UNSET},
    .run = run_run,
};

typedef struct run_state {
    const run_options *o;
    cli_model m;
    mica_lm_session *session;
    mica_lm_sampler *sampler;
    const mica_tokenizer *tokenizer;
    int32_t *prompt;
    int64_t n_prompt, n_made, wanted;
    uint64_t seed;
    double prompt_seconds, made_seconds;
    double peak_memory;         /* bytes, before the bandwidth is measured                */
    cli_decoded said;
    bool failed_write, interrupted;
} run_state;

/* ---------------------------------------------------------------- output --- */

/* Adds a token to the text and prints it; id -1: the bytes held back. JSON is printed at the end. */
static bool put_token(run_state *r, int32_t id)
{
    const size_t before = r->said.n;
    return cli_decode_token(&r->said, r->tokenizer, id) && (r->o->json || cli_print_decoded(&r->said, before));
}

static bool take_token(int32_t token, void *user)
{
    run_state *r = user;
    if (!put_token(r, token)) {
        r->failed_write = true;
        return false;
    }
    if (cli_interrupted()) r->interrupted = true;
    return !r->interrupted;
}

/* --------------------------------------------------------------- figures --- */

static double rate(int64_t n, double seconds) { return n > 0 && seconds > 0 ? (double)n / seconds : NAN; }

static uint64_t logits_hash(const run_state *r)
{
    const float *logits = mica_lm_session_logits(r->session);
    return logits ? cli_hash(logits, (size_t)r->m.info.vocab * sizeof *logits) : 0;
}

/* before "12.3" after, or before "unavailable" */
static void print_run_figure(const char *before, double value, const char *after)
{
    if (isnan(value)) fprintf(stderr, "%sunavailable", before);
    else fprintf(stderr, "%s%.*f%s", before, value < 10 ? 2 : 1, value, after);
}

/* The bandwidth of generation compared with the memory of the machine. */
typedef struct run_bandwidth {
    double token_bytes, tokens_per_s;
    double gbs;     /* read by generation, GB/s    */
    double dram;    /* measured DRAM read, GB/s; NaN: unavailable */
    bool in_cache;  /* the bytes of a token stay in a cache */
    double percent; /* of dram; NaN: unavailable, or in cache */
} run_bandwidth;

static run_bandwidth compare_bandwidth(const run_state *r)
{
    const double length = (double)r->n_prompt + 0.5 * (double)r->n_made;
    run_bandwidth b = {.token_bytes = cli_token_bytes(&r->m, &r->o->model, length), .dram = NAN, .percent = NAN};
    /* the first token is sampled from the prompt's logits, so n tokens need n - 1 steps */
    b.tokens_per_s = rate(r->n_made - 1, r->made_seconds);
    b.gbs = b.tokens_per_s * b.token_bytes * 1e-9;
    mica_peaks peaks = {.struct_size = sizeof peaks};
    if (r->o->no_peaks || r->interrupted || !cli_machine_peaks(r->m.engine, &peaks)) return b;
    b.dram = peaks.dram_read_all;
    b.percent = cli_dram_percent(b.token_bytes, b.gbs, &peaks, &b.in_cache);
    return b;
}

static void print_run(const run_state *r, const run_bandwidth *b)
{
    fprintf(stderr, "\nPrompt: %" PRId64 " tokens", r->n_prompt);
    print_run_figure(", ", rate(r->n_prompt, r->prompt_seconds), " tokens-per-sec");
    fprintf(stderr, "\nGeneration: %" PRId64 " tokens", r->n_made);
    print_run_figure(", ", b->tokens_per_s, " tokens-per-sec");
    print_run_figure("\nRead: ", b->token_bytes * 1e-6, " MB per token");
    print_run_figure(", ", b->gbs, " GB/s");
    if (b->in_cache) fprintf(stderr, ", in cache");
    else print_run_figure(", share of the measured DRAM bandwidth ", b->percent, " %");
    print_run_figure(b->in_cache ? " (DRAM " : " (", b->dram, " GB/s");
    fprintf(stderr, ")\nDevice: %s\n", mica_engine_device(r->m.engine)); /* names a software GPU as such */
    print_run_figure("Load: ", r->m.load_seconds, " s\n");
    print_run_figure("Peak memory: ", r->peak_memory * 1e-6, " MB\n");
    fprintf(stderr, "Seed: %" PRIu64 "\nLogits: %016" PRIx64 "\n", r->seed, logits_hash(r));
}

static void print_run_json(const run_state *r, const run_bandwidth *b)
{
    char hash[17];
    cli_json j = {.to = stdout};
    snprintf(hash, sizeof hash, "%016" PRIx64, logits_hash(r));
    cli_json_object(&j, NULL, CLI_JSON_INLINE);
    cli_json_bytes(&j, "text", r->said.text ? r->said.text : "", r->said.n);
    cli_json_text(&j, "device", mica_engine_device(r->m.engine));
    cli_json_text(&j, "arch", r->m.info.arch);
    cli_json_int(&j, "threads", mica_engine_threads(r->m.engine));
    cli_json_int(&j, "prompt_tokens", r->n_prompt);
    cli_json_int(&j, "generated_tokens", r->n_made);
    cli_json_number(&j, "prompt_tokens_per_s", rate(r->n_prompt, r->prompt_seconds));
    cli_json_number(&j, "generated_tokens_per_s", b->tokens_per_s);
    cli_json_number(&j, "bytes_per_token", b->token_bytes);
    cli_json_number(&j, "gbs", b->gbs);
    cli_json_number(&j, "dram_gbs", b->dram);
    cli_json_number(&j, "dram_percent", b->percent);
    cli_json_bool(&j, "in_cache", b->in_cache);
    cli_json_number(&j, "load_s", r->m.load_seconds);
    cli_json_number(&j, "peak_memory_bytes", r->peak_memory);
    cli_json_uint(&j, "seed", r->seed);
    cli_json_text(&j, "logits_hash", hash);
    cli_json_bool(&j, "interrupted", r->interrupted);
    cli_json_end(&j);
}

/* ------------------------------------------------------------------- run --- */

static int read_prompt(run_state *r)
{
    const run_options *o = r->o;
    char *owned = NULL;
    const char *text = o->prompt ? o->prompt : "";
    size_t length = strlen(text);
    if (o->file || o->from_stdin) {
        owned = cli_read_file("mica run", o->from_stdin ? "-" : o->file, &length);
        if (!owned) return CLI_FILE;
        text = owned;
    }
    const int flags = MICA_ENCODE_BOS | (o->special ? MICA_ENCODE_SPECIAL : 0);
    r->prompt = cli_encode(r->m.command, r->tokenizer, text, length, flags, &r->n_prompt);
    if (r->prompt && r->n_prompt == 0) { /* an empty prompt, and the model has no begin token */
        free(r->prompt);
        r->prompt = cli_encode(r->m.command, r->tokenizer, "\n", 1, flags, &r->n_prompt);
    }
    mica_text_free(owned);
    if (!r->prompt) return CLI_FILE;
    if (r->n_prompt) return CLI_OK;
    return cli_fail(CLI_USAGE, "mica run: the prompt is empty");
}

/* Checks that the prompt and the tokens fit in the context. A given --tokens is never reduced silently. */
static int plan_tokens(run_state *r)
{
    const run_options *o = r->o;
    const int64_t n = o->n == TOKENS_UNSET ? DEFAULT_TOKENS : o->n;
    const int64_t room = o->model.context ? o->model.context : r->m.info.context;
    const int64_t left = room - r->n_prompt;
    if (left < 1 || (n > left && o->n != TOKENS_UNSET)) {
        fprintf(stderr,
                "mica run: a prompt of %" PRId64 " tokens and %" PRId64 " more do not fit in a context of %" PRId64
                "\n",
                r->n_prompt, n < 0 ? 1 : n, room);
        return CLI_FAILED;
    }
    r->wanted = n < 0 || n > left ? left : n;
    return CLI_OK;
}

static mica_status feed_prompt(run_state *r)
{
    const float *logits = NULL;
    const double start = cli_seconds();
    mica_status status = MICA_OK;
    for (int64_t at = 0; at < r->n_prompt && status == MICA_OK; at += FEED_PIECE) {
        if (cli_interrupted()) {
            r->interrupted = true;
            break;
        }
        const int64_t left = r->n_prompt - at, n = left < FEED_PIECE ? left : FEED_PIECE;
        cli_show_line("reading the prompt: %" PRId64 " of %" PRId64 " tokens", at, r->n_prompt);
        status = mica_lm_feed(r->session, r->prompt + at, n, n == left ? &logits : NULL);
    }
    cli_clear_line();
    r->prompt_seconds = cli_seconds() - start;
    return status;
}

static int write_text(run_state *r)
{
    for (int64_t i = 0; i < r->n_prompt; i++) mica_lm_sampler_accept(r->sampler, r->prompt[i]);
    mica_status status = feed_prompt(r);
    const double start = cli_seconds();
    if (status == MICA_OK && !r->interrupted)
        status = mica_lm_generate(r->session, r->sampler, NULL, 0, r->wanted, take_token, r, &r->n_made);
    r->made_seconds = cli_seconds() - start;
    if (!r->failed_write && !put_token(r, -1)) r->failed_write = true;
    if (status != MICA_OK) return cli_fail(CLI_FAILED, "mica run: %s", mica_last_error());
    if (r->failed_write) return cli_fail(CLI_FAILED, "mica run: cannot write the text");
    return r->interrupted ? CLI_INTERRUPTED : CLI_OK;
}

static int run_model(run_state *r)
{
    int code = cli_model_open("mica run", r->o->model_path, &r->o->model, &r->m);
    if (code != CLI_OK) return code;
    r->tokenizer = mica_lm_tokenizer(r->m.lm);
    if (!r->tokenizer) return cli_fail(CLI_FILE, "mica run: %s", mica_last_error());
    code = read_prompt(r);
    if (code == CLI_OK) code = plan_tokens(r);
    if (code == CLI_OK) code = cli_model_session(&r->m, &r->o->model, r->n_prompt + r->wanted, 1, &r->session);
    if (code == CLI_OK) code = cli_sampler_open(&r->m, &r->o->sample, &r->seed, &r->sampler);
    if (code != CLI_OK) return code;
    code = write_text(r);
    if (code != CLI_OK && code != CLI_INTERRUPTED) return code;
    r->peak_memory = cli_peak_memory();
    const run_bandwidth b = compare_bandwidth(r);
    if (r->o->json) print_run_json(r, &b);
    else print_run(r, &b);
    return code;
}

static int run_run(const cli_call *call)
{
    run_options *o = call->options;
    for (size_t i = 0; i < call->n_args; i++) {
        if (strcmp(call->args[i], "-") == 0) o->from_stdin = true;
        else if (!o->model_path) o->model_path = call->args[i];
        else return cli_fail(CLI_USAGE, "mica run: one model at a time, not also '%s'", call->args[i]);
    }
    if ((o->prompt != NULL) + (o->file != NULL) + o->from_stdin > 1)
        return cli_fail(CLI_USAGE, "mica run: give one prompt: -p, -f or -");
    run_state r = {.o = o};
    cli_signals_watch();
    const int code = run_model(&r);
    cli_signals_release();
    mica_lm_sampler_close(r.sampler);
    mica_lm_session_close(r.session);
    cli_model_close(&r.m);
    free(r.prompt);
    free(r.said.text);
    return code;
}
