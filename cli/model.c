/* See model.h. */
#include "model.h"
#include "progress.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cli_peak_memory(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return NAN;
#if defined(__APPLE__)
    return (double)usage.ru_maxrss;
#else
    return 1024 * (double)usage.ru_maxrss;
#endif
}

bool cli_is_software(const mica_engine *engine)
{
    mica_engine_info info = {.struct_size = sizeof info};
    return mica_engine_describe(engine, &info) == MICA_OK && info.is_software;
}

uint64_t cli_hash(const void *data, size_t nbytes)
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < nbytes; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* --------------------------------------------------------------- signals --- */

static volatile sig_atomic_t interrupt_seen;

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupt_seen = 1;
}

static bool listening;

static void listen_for_interrupt(void)
{
    struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    listening = true;
}

bool cli_interrupted(void)
{
    if (!listening) listen_for_interrupt();
    return interrupt_seen != 0;
}

void cli_forget_interrupt(void)
{
    interrupt_seen = 0;
    listen_for_interrupt();
}

/* --------------------------------------------------------------- opening --- */

int cli_model_failed(const char *command, mica_status status)
{
    fprintf(stderr, "%s: %s\n", command, mica_last_error());
    return cli_file_code(status);
}

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
    if (status == MICA_OK) status = mica_lm_open(m->engine, path, &options, &m->lm);
    m->load_seconds = cli_seconds() - start;
    const bool stopped = cli_progress_end(&progress);
    if (status != MICA_OK || stopped) {
        const int code = stopped ? CLI_INTERRUPTED : cli_model_failed(command, status);
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
    return status == MICA_OK ? CLI_OK : cli_model_failed(m->command, status);
}

static uint64_t chance(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t mixed = mica_seed_split((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 32);
    return mixed & 0xffffffff; /* short enough to be typed again */
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
    o.seed = *seed = a->seed >= 0 ? (uint64_t)a->seed : chance();
    const mica_status status = mica_lm_sampler_open(&o, out);
    return status == MICA_OK ? CLI_OK : cli_model_failed(m->command, status);
}

/* ------------------------------------------------------------------ text --- */

char *cli_read_file(const char *command, const char *path, size_t *length)
{
    char *text = NULL;
    if (mica_text_read(path, (uint64_t)CLI_TEXT_GIB << 30, &text, length) != MICA_OK)
        fprintf(stderr, "%s: %s\n", command, mica_last_error());
    return text;
}

bool cli_speak(cli_spoken *s, const mica_tokenizer *tokenizer, int32_t id)
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

bool cli_print_spoken(const cli_spoken *s, size_t from)
{
    return fwrite(s->text + from, 1, s->n - from, stdout) == s->n - from && fflush(stdout) == 0;
}

int32_t *cli_encode(const char *command, const mica_tokenizer *t, const char *text, size_t length, int flags,
                    int64_t *n)
{
    size_t cap = length + 8, count = 0;
    int32_t *ids = NULL;
    if (!t) return fprintf(stderr, "%s: %s\n", command, mica_last_error()), NULL;
    for (;;) {
        int32_t *grown = realloc(ids, cap * sizeof *ids);
        if (!grown) return free(ids), fprintf(stderr, "%s: no memory for %zu tokens\n", command, cap), NULL;
        ids = grown;
        if (mica_tokenizer_encode(t, text, length, flags, ids, cap, &count) != MICA_OK)
            return free(ids), fprintf(stderr, "%s: %s\n", command, mica_last_error()), NULL;
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
