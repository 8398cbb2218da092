/* mica run: a prompt, and what the model writes after it. Only its text goes to
 * stdout, as it comes; figures follow on stderr. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "progress.h"

typedef struct run_options {
    cli_model_args model;
    cli_sample_args sample;
    const char *model_path, *prompt, *file;
    int64_t n;
    bool json, no_peaks, special, from_stdin;
} run_options;

static const cli_arg run_args[] = {
    {"--prompt", "-p", CLI_TEXT, offsetof(run_options, prompt), 0, 0, "TEXT", "what to go on from"},
    {"--file", "-f", CLI_TEXT, offsetof(run_options, file), 0, 0, "FILE", "the same, from a file"},
    {"--model", "-m", CLI_TEXT, offsetof(run_options, model_path), 0, 0, "MODEL", "as the first argument"},
    {"--tokens", "-n", CLI_INT, offsetof(run_options, n), -1, 2147483646, "N",
     "at most; -1: until the context is full"},
    CLI_SAMPLE_ARGS(run_options, sample),
    CLI_MODEL_ARGS(run_options, model),
    {"--special", NULL, CLI_FLAG, offsetof(run_options, special), 0, 0, NULL, "<|names|> in the prompt are tokens"},
    {"--no-peaks", NULL, CLI_FLAG, offsetof(run_options, no_peaks), 0, 0, NULL,
     "do not measure the memory of this machine (two seconds) at the end"},
    {"--json", NULL, CLI_FLAG, offsetof(run_options, json), 0, 0, NULL, "text and figures as one JSON object"},
};

static const cli_args run_table = {
    "mica run",
    "[MODEL] [-p TEXT | -f FILE | -] [options]",
    "Writes what the model says after the prompt. MODEL is a GGUF file, or a folder with\n"
    "config.json and safetensors; without it, or as \"builtin\", the model inside.",
    run_args,
    sizeof run_args / sizeof run_args[0],
    0,
    2};

enum { DEFAULT_TOKENS = 256, FEED_PIECE = 512 };

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
    cli_spoken said;
    bool failed_write, interrupted;
} run_state;

/* ---------------------------------------------------------------- output --- */

/* id -1: what was held back. JSON has all of it at the end. */
static bool put_token(run_state *r, int32_t id)
{
    const size_t before = r->said.n;
    return cli_speak(&r->said, r->tokenizer, id) && (r->o->json || cli_print_spoken(&r->said, before));
}

static bool take_token(int32_t token, void *user)
{
    run_state *r = user;
    if (!put_token(r, token)) return r->failed_write = true, false;
    if (cli_interrupted()) r->interrupted = true;
    return !r->interrupted;
}

/* --------------------------------------------------------------- figures --- */

/* GB/s that the memory reads, as measured now; NaN: unavailable. */
static double measured_bandwidth(const run_state *r)
{
    mica_peaks peaks = {.struct_size = sizeof peaks};
    if (r->o->no_peaks || r->interrupted || mica_measure_peaks(r->m.engine, &peaks) != MICA_OK) return NAN;
    return peaks.dram_read_all;
}

static double rate(int64_t n, double seconds) { return n > 0 && seconds > 0 ? (double)n / seconds : NAN; }

static uint64_t logits_hash(const run_state *r)
{
    const float *logits = mica_lm_session_logits(r->session);
    return logits ? cli_hash(logits, (size_t)r->m.info.vocab * sizeof *logits) : 0;
}

/* " 12.3" or " unavailable" */
static void print_run_figure(const char *before, double value, const char *after)
{
    if (isnan(value)) fprintf(stderr, "%sunavailable", before);
    else fprintf(stderr, "%s%.*f%s", before, value < 10 ? 2 : 1, value, after);
}

static void print_run(const run_state *r, double token_bytes, double bandwidth)
{
    /* the first token comes from the prompt's logits: one step fewer than tokens */
    const double made = rate(r->n_made - 1, r->made_seconds), gbs = made * token_bytes * 1e-9;
    fprintf(stderr, "\nPrompt: %" PRId64 " tokens", r->n_prompt);
    print_run_figure(", ", rate(r->n_prompt, r->prompt_seconds), " tokens-per-sec");
    fprintf(stderr, "\nGeneration: %" PRId64 " tokens", r->n_made);
    print_run_figure(", ", made, " tokens-per-sec");
    print_run_figure("\nRead: ", token_bytes * 1e-6, " MB a token");
    print_run_figure(", ", gbs, " GB/s");
    print_run_figure(", share of the measured DRAM bandwidth ", 100 * gbs / bandwidth, " %");
    print_run_figure(" (", bandwidth, " GB/s)\n");
    if (isnan(bandwidth)) fprintf(stderr, ")\n");
    fprintf(stderr, "Device: %s\n", mica_engine_device(r->m.engine)); /* software that stands for a GPU says so */
    print_run_figure("Load: ", r->m.load_seconds, " s\n");
    print_run_figure("Peak memory: ", r->peak_memory * 1e-6, " MB\n");
    fprintf(stderr, "Seed: %" PRIu64 "\nLogits: %016" PRIx64 "\n", r->seed, logits_hash(r));
}

static void run_json_field(const char *name, double value)
{
    printf(", \"%s\": ", name);
    cli_print_json_number(stdout, value);
}

static void print_run_json(const run_state *r, double token_bytes, double bandwidth)
{
    const double made = rate(r->n_made - 1, r->made_seconds);
    printf("{\"text\": ");
    cli_print_json(stdout, r->said.text ? r->said.text : "", r->said.n);
    printf(", \"device\": ");
    cli_print_json(stdout, mica_engine_device(r->m.engine), strlen(mica_engine_device(r->m.engine)));
    printf(", \"arch\": \"%s\", \"threads\": %d, \"prompt_tokens\": %" PRId64 ", \"generated_tokens\": %" PRId64,
           r->m.info.arch, mica_engine_threads(r->m.engine), r->n_prompt, r->n_made);
    run_json_field("prompt_tokens_per_s", rate(r->n_prompt, r->prompt_seconds));
    run_json_field("generated_tokens_per_s", made);
    run_json_field("bytes_per_token", token_bytes);
    run_json_field("gbs", made * token_bytes * 1e-9);
    run_json_field("dram_gbs", bandwidth);
    run_json_field("dram_percent", 100 * made * token_bytes * 1e-9 / bandwidth);
    run_json_field("load_s", r->m.load_seconds);
    run_json_field("peak_memory_bytes", r->peak_memory);
    printf(", \"seed\": %" PRIu64 ", \"logits_hash\": \"%016" PRIx64 "\", \"interrupted\": %s}\n", r->seed,
           logits_hash(r), r->interrupted ? "true" : "false");
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
        if (!owned) return CLI_FAILED;
        text = owned;
    }
    const int flags = MICA_ENCODE_BOS | (o->special ? MICA_ENCODE_SPECIAL : 0);
    r->prompt = cli_encode(r->m.command, r->tokenizer, text, length, flags, &r->n_prompt);
    if (r->prompt && r->n_prompt == 0) { /* nothing, and the model has no token that begins a text */
        free(r->prompt);
        r->prompt = cli_encode(r->m.command, r->tokenizer, "\n", 1, flags, &r->n_prompt);
    }
    mica_text_free(owned);
    if (!r->prompt) return CLI_MODEL;
    if (r->n_prompt) return CLI_OK;
    return fprintf(stderr, "mica run: the prompt is empty\n"), CLI_USAGE;
}

/* Is there room for all that was asked for? Never cut silently. */
static int plan_tokens(run_state *r)
{
    const run_options *o = r->o;
    const int64_t room = o->model.context ? o->model.context : r->m.info.context;
    const int64_t left = room - r->n_prompt;
    if (left < 1 || (o->n > left && o->n != DEFAULT_TOKENS)) {
        fprintf(stderr,
                "mica run: a prompt of %" PRId64 " tokens and %" PRId64 " more do not fit in a context of %" PRId64
                "\n",
                r->n_prompt, o->n < 0 ? 1 : o->n, room);
        return CLI_FAILED;
    }
    r->wanted = o->n < 0 || o->n > left ? left : o->n;
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
    if (status != MICA_OK) return fprintf(stderr, "mica run: %s\n", mica_last_error()), CLI_FAILED;
    if (r->failed_write) return fprintf(stderr, "mica run: cannot write the text\n"), CLI_FAILED;
    return r->interrupted ? CLI_INTERRUPTED : CLI_OK;
}

static int run_model(run_state *r)
{
    (void)cli_interrupted();
    int code = cli_model_open("mica run", r->o->model_path, &r->o->model, &r->m);
    if (code != CLI_OK) return code;
    r->tokenizer = mica_lm_tokenizer(r->m.lm);
    if (!r->tokenizer) return fprintf(stderr, "mica run: %s\n", mica_last_error()), CLI_MODEL;
    code = read_prompt(r);
    if (code == CLI_OK) code = plan_tokens(r);
    if (code == CLI_OK) code = cli_model_session(&r->m, &r->o->model, r->n_prompt + r->wanted, 1, &r->session);
    if (code == CLI_OK) code = cli_sampler_open(&r->m, &r->o->sample, &r->seed, &r->sampler);
    if (code != CLI_OK) return code;
    code = write_text(r);
    if (code != CLI_OK && code != CLI_INTERRUPTED) return code;
    const double length = (double)r->n_prompt + 0.5 * (double)r->n_made;
    r->peak_memory = cli_peak_memory();
    const double bytes = cli_token_bytes(&r->m, &r->o->model, length), bandwidth = measured_bandwidth(r);
    if (r->o->json) print_run_json(r, bytes, bandwidth);
    else print_run(r, bytes, bandwidth);
    return code;
}

int cli_run(int argc, char **argv)
{
    run_options o = {.sample = CLI_SAMPLE_ARGS_NONE, .n = DEFAULT_TOKENS};
    const char *places[CLI_MAX_PLACES];
    size_t n_places;
    const int parsed = cli_parse(&run_table, argc, argv, &o, places, &n_places);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    for (size_t i = 0; i < n_places; i++) {
        if (strcmp(places[i], "-") == 0) o.from_stdin = true;
        else if (!o.model_path) o.model_path = places[i];
        else return fprintf(stderr, "mica run: one model at a time, not also '%s'\n", places[i]), CLI_USAGE;
    }
    if ((o.prompt != NULL) + (o.file != NULL) + o.from_stdin > 1)
        return fprintf(stderr, "mica run: one of -p, -f and -, not several\n"), CLI_USAGE;
    run_state r = {.o = &o};
    const int code = run_model(&r);
    mica_lm_sampler_close(r.sampler);
    mica_lm_session_close(r.session);
    cli_model_close(&r.m);
    free(r.prompt);
    free(r.said.text);
    return code;
}
