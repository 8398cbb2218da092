/* See model.h. */
#include "lm/model.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/progress.h"

/* --------------------------------------------------------------- options --- */

/* clang-format off */
#define AT(field) offsetof(cli_model_args, field)
const cli_option cli_model_rows[] = {
    {"--device", NULL, CLI_TEXT, AT(device), .value = "cpu|metal|ref", .unset = "the fastest one available",
     .text = "the device that computes"},
    {"--threads", "-t", CLI_INT, AT(threads), 1, 256, "N", .unset = "the fast cores", .text = "CPU threads"},
    {"--ctx-size", "-c", CLI_INT, AT(context), 1, 2147483646, "N", .unset = "as many as needed",
     .aliases = "--ctx|--max-kv-size", .text = "context length: number of tokens that fit in the key-value cache"},
    {"--act-quant", NULL, CLI_CHOICE, AT(act), .value = "trained|none|token|block256",
     .text = "quantization of the activations that a layer's matrices multiply: as the model was trained, none, "
             "8 bits per token, or 8 bits per block of 256"},
    {"--kv", NULL, CLI_CHOICE, AT(kv), .value = "f16|f32|q8", .aliases = "--cache-type|--kv-type",
     .text = "number format of the key-value cache"},
    {"--memory-limit", NULL, CLI_BYTES, AT(memory_limit), .value = "BYTES", .unset = "no limit",
     .text = "maximum memory for weights and caches, such as 300M or 2G; exit code 4 if they need more"},
    {"--i2s-arm", NULL, CLI_FLAG, AT(i2_s_arm), .text = "read I2_S weights in the order of bitnet.cpp's ARM builds"},
    {"--no-mmap", NULL, CLI_FLAG, AT(no_mmap), .text = "read the model into memory instead of mapping the file"},
    {.name = NULL},
};
#undef AT

#define AT(field) offsetof(cli_sample_args, field)
const cli_option cli_sample_rows[] = {
    {"--temp", NULL, CLI_NUMBER, AT(temperature), 0, 1e6, "T", .unset = "the model's, or 0.8",
     .aliases = "--temperature",
     .text = "temperature: higher values flatten the distribution; 0 always takes the most likely token"},
    {"--top-k", NULL, CLI_INT, AT(top_k), 0, 1e9, "K", .unset = "the model's, or 40",
     .text = "top-k sampling: keep the K most likely tokens; 0 keeps all"},
    {"--top-p", NULL, CLI_NUMBER, AT(top_p), 0, 1, "P", .above = true, .unset = "the model's, or 0.95",
     .text = "nucleus sampling: keep the smallest set of tokens whose probability reaches P"},
    {"--min-p", NULL, CLI_NUMBER, AT(min_p), 0, 1, "P", .unset = "the model's, or 0.05",
     .text = "min-p sampling: keep tokens with at least P times the probability of the most likely token"},
    {"--repeat-penalty", NULL, CLI_NUMBER, AT(repeat_penalty), 1e-3, 1e3, "X", .unset = "the model's, or 1",
     .aliases = "--repetition-penalty", .text = "penalty for recent tokens: divide their scores by X; 1: no penalty"},
    {"--repeat-last", NULL, CLI_INT, AT(repeat_last), 0, 1e6, "N", .unset = "64",
     .aliases = "--repeat-last-n|--repetition-context-size",
     .text = "number of recent tokens that --repeat-penalty applies to"},
    {"--seed", "-s", CLI_INT, AT(seed), 0, 9007199254740992.0, "N", .unset = "random, printed at the end",
     .text = "seed of the random numbers: the same seed gives the same text"},
    {.name = NULL},
};
#undef AT
/* clang-format on */

/* --------------------------------------------------------------- opening --- */

static bool show_packing(uint64_t done, uint64_t total, void *user)
{
    return cli_progress_step(user, done, total, "preparing the model");
}

int cli_model_open(const char *command, const char *path, const cli_model_args *a, cli_model *m)
{
    *m = (cli_model){.command = command, .info = {.struct_size = sizeof m->info}};
    mica_engine_options engine;
    mica_engine_options_init(&engine);
    engine.backend = a->device;
    engine.threads = (int)a->threads;
    mica_lm_options options;
    mica_lm_options_init(&options);
    options.act = a->act - 1;
    options.memory_limit = a->memory_limit;
    options.i2_s_arm = a->i2_s_arm;
    options.no_mmap = a->no_mmap;
    options.lazy = a->lazy;
    options.progress = show_packing;
    cli_progress progress;
    options.user = &progress;
    cli_progress_begin(&progress);
    if (path && strcmp(path, "builtin") == 0) path = NULL;
    const double start = cli_seconds();
    mica_status status = mica_open(&engine, &m->engine);
    const bool opened = status == MICA_OK;
    if (opened) status = mica_lm_open(m->engine, path, &options, &m->lm);
    m->load_seconds = cli_seconds() - start;
    const bool stopped = cli_progress_end(&progress);
    if (status != MICA_OK || stopped) {
        const int code = stopped  ? CLI_INTERRUPTED
                         : opened ? cli_file_failed(command, status)
                                  : cli_engine_failed(command, status);
        cli_model_close(m);
        return code;
    }
    mica_lm_get_info(m->lm, &m->info);
    return CLI_OK;
}

void cli_model_close(cli_model *m)
{
    mica_lm_close(m->lm);
    mica_close(m->engine);
    *m = (cli_model){0};
}

int cli_model_session(const cli_model *m, const cli_model_args *a, int64_t needed, int64_t batch, mica_lm_session **out)
{
    mica_lm_session_options o;
    mica_lm_session_options_init(&o);
    o.context = a->context ? a->context : needed < m->info.context ? needed : m->info.context;
    o.batch = batch;
    o.kv = (mica_lm_kv)a->kv;
    const mica_status status = mica_lm_session_open(m->lm, &o, out);
    return status == MICA_OK ? CLI_OK : cli_file_failed(m->command, status);
}

static uint64_t random_seed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t mixed = mica_seed_split((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 32);
    return mixed & 0xffffffff; /* short enough to type */
}

int cli_sampler_open(const cli_model *m, const cli_sample_args *a, uint64_t *seed, mica_lm_sampler **out)
{
    mica_lm_sampler_options o;
    mica_lm_sampler_options_init(&o);
    mica_lm_suggested_sampling(m->lm, &o);
    if (a->temperature >= 0) o.temperature = a->temperature;
    if (a->top_p >= 0) o.top_p = a->top_p;
    if (a->min_p >= 0) o.min_p = a->min_p;
    if (a->repeat_penalty >= 0) o.repeat_penalty = a->repeat_penalty;
    if (a->top_k >= 0) o.top_k = a->top_k;
    if (a->repeat_last >= 0) o.repeat_last = a->repeat_last;
    o.seed = *seed = a->seed >= 0 ? (uint64_t)a->seed : random_seed();
    const mica_status status = mica_lm_sampler_open(&o, out);
    return status == MICA_OK ? CLI_OK : cli_file_failed(m->command, status);
}

/* ------------------------------------------------------------------ text --- */

bool cli_decode_token(cli_decoded *s, const mica_tokenizer *tokenizer, int32_t id)
{
    for (size_t need = 64;;) {
        if (s->cap - s->n <= need) {
            const size_t cap = 2 * (s->n + need) + 256;
            char *grown = realloc(s->text, cap);
            if (!grown) return false;
            s->text = grown;
            s->cap = cap;
        }
        need = mica_detokenize(tokenizer, &s->state, id, 0, s->text + s->n, s->cap - s->n - 1);
        if (need >= s->cap - s->n) continue;
        s->n += need;
        s->text[s->n] = '\0';
        return true;
    }
}

bool cli_print_decoded(const cli_decoded *s, size_t from)
{
    return fwrite(s->text + from, 1, s->n - from, stdout) == s->n - from && fflush(stdout) == 0;
}

int32_t *cli_encode(const char *command, const mica_tokenizer *t, const char *text, size_t length, int flags,
                    int64_t *n)
{
    size_t cap = length + 8, count = 0;
    int32_t *ids = NULL;
    if (!t) {
        fprintf(stderr, "%s: %s\n", command, mica_last_error());
        return NULL;
    }
    for (;;) {
        int32_t *grown = realloc(ids, cap * sizeof *ids);
        if (!grown) {
            free(ids);
            fprintf(stderr, "%s: no memory for %zu tokens\n", command, cap);
            return NULL;
        }
        ids = grown;
        if (mica_tokenizer_encode(t, text, length, flags, ids, cap, &count) != MICA_OK) {
            free(ids);
            fprintf(stderr, "%s: %s\n", command, mica_last_error());
            return NULL;
        }
        if (count <= cap) break;
        cap = count;
    }
    *n = (int64_t)count;
    return ids;
}

double cli_token_bytes(const cli_model *m, const cli_model_args *a, double length)
{
    static const double sizes[] = {2, 4, 1};
    const double values = 2.0 * (double)m->info.layers * (double)m->info.kv_heads * (double)m->info.head_dim;
    return (double)m->info.token_bytes + values * sizes[a->kv] * length;
}
