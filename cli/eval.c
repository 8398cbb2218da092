/* mica eval ppl: how surprised a model is by a text. The text is read in windows
 * that overlap; each token is counted once, in the window where most comes before
 * it, and every window begins with the begin token if the model has one. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "progress.h"

typedef struct eval_options {
    cli_model_args model;
    int64_t window, stride, limit;
    bool json;
} eval_options;

static const cli_arg eval_args[] = {
    {"--window", "-w", CLI_INT, offsetof(eval_options, window), 2, 2147483646, "N",
     "tokens read together; 512, or the model's context"},
    {"--stride", "-s", CLI_INT, offsetof(eval_options, stride), 1, 2147483646, "N",
     "from one window to the next; half a window"},
    {"--limit", NULL, CLI_INT, offsetof(eval_options, limit), 2, 9e15, "N", "only the first N tokens of the text"},
    CLI_MODEL_ARGS(eval_options, model),
    {"--json", NULL, CLI_FLAG, offsetof(eval_options, json), 0, 0, NULL, "the result as JSON"},
};

static const cli_args eval_table = {"mica eval ppl",
                                    "MODEL FILE [options]",
                                    "Perplexity of a model on a text: exp of the mean loss of its tokens.",
                                    eval_args,
                                    sizeof eval_args / sizeof eval_args[0],
                                    2,
                                    2};

typedef struct eval_state {
    const eval_options *o;
    const char *file;
    cli_model m;
    mica_lm_session *session;
    int32_t *ids;               /* of the text                                            */
    int64_t n, window, stride;
    int64_t first;              /* 1: windows begin with the begin token, which is `begin` */
    int32_t begin;
    double sum, squares;        /* of losses                                              */
    int64_t counted;
} eval_state;

static void show_ppl(const eval_state *e, bool last)
{
    if (last) cli_clear_line();
    else
        cli_show_line("%" PRId64 " of %" PRId64 " tokens, perplexity so far %.4f", e->counted, e->n,
                      exp(e->sum / (double)e->counted));
}

/* Tokens from..to of the text, of which those before `known` were counted before. */
static mica_status score_window(eval_state *e, int64_t from, int64_t to, int64_t known, int32_t *ids, float *losses)
{
    const int64_t n = to - from + e->first;
    if (e->first) ids[0] = e->begin;
    memcpy(ids + e->first, e->ids + from, (size_t)(to - from) * sizeof *ids);
    mica_status status = mica_lm_session_rewind(e->session, 0);
    if (status == MICA_OK) status = mica_lm_score(e->session, ids, n, losses);
    if (status != MICA_OK) return status;
    /* losses[i] is that of ids[i + 1], which is token from + i + 1 - first */
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
    if (status != MICA_OK) return fprintf(stderr, "mica eval ppl: %s\n", mica_last_error()), CLI_FAILED;
    return stopped ? CLI_INTERRUPTED : CLI_OK;
}

static void print_ppl(const eval_state *e, double seconds)
{
    const double mean = e->sum / (double)e->counted;
    const double variance = fmax(e->squares / (double)e->counted - mean * mean, 0);
    const double error = sqrt(variance / (double)e->counted), rate = (double)e->counted / seconds;
    if (e->o->json) {
        printf("{\"perplexity\": ");
        cli_print_json_number(stdout, exp(mean));
        printf(", \"error\": ");
        cli_print_json_number(stdout, exp(mean) * error);
        printf(", \"loss\": ");
        cli_print_json_number(stdout, mean);
        printf(", \"tokens\": %" PRId64 ", \"window\": %" PRId64 ", \"stride\": %" PRId64 ", \"tokens_per_s\": ",
               e->counted, e->window, e->stride);
        cli_print_json_number(stdout, rate);
        printf(", \"device\": ");
        cli_print_json(stdout, mica_engine_device(e->m.engine), strlen(mica_engine_device(e->m.engine)));
        printf(", \"arch\": \"%s\", \"file\": ", e->m.info.arch);
        cli_print_json(stdout, e->file, strlen(e->file));
        printf("}\n");
        return;
    }
    printf("perplexity %.4f +/- %.4f (loss %.5f nats a token) over %" PRId64 " tokens, window %" PRId64
           ", stride %" PRId64 "\n",
           exp(mean), exp(mean) * error, mean, e->counted, e->window, e->stride);
    fprintf(stderr, "%.1f tokens/s\nDevice: %s\n", rate, mica_engine_device(e->m.engine));
}

static int read_eval_text(eval_state *e)
{
    size_t length;
    char *text = cli_read_file("mica eval ppl", e->file, &length);
    if (!text) return CLI_FAILED;
    e->ids = cli_encode(e->m.command, mica_lm_tokenizer(e->m.lm), text, length, 0, &e->n);
    mica_text_free(text);
    if (!e->ids) return CLI_MODEL;
    if (e->o->limit && e->n > e->o->limit) e->n = e->o->limit;
    if (e->n < 2)
        return fprintf(stderr, "mica eval ppl: %s has %" PRId64 " tokens, 2 are needed\n", e->file, e->n), CLI_FAILED;
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
        return fprintf(stderr, "mica eval ppl: a window of %" PRId64 " tokens; the model was trained for %" PRId64 "\n",
                       e->window, e->m.info.context),
               CLI_USAGE;
    e->stride = o->stride ? o->stride : (e->window + 1) / 2;
    if (e->stride > e->window - 1)
        return fprintf(stderr,
                       "mica eval ppl: a stride of %" PRId64 " leaves out tokens between windows of %" PRId64 "\n",
                       e->stride, e->window),
               CLI_USAGE;
    cli_model_args room = o->model;
    room.context = e->window;
    code = cli_model_session(&e->m, &room, e->window, 1, &e->session);
    if (code != CLI_OK) return code;
    const double start = cli_seconds();
    code = score_text(e);
    if (code == CLI_OK || (code == CLI_INTERRUPTED && e->counted)) print_ppl(e, cli_seconds() - start);
    return code;
}

static int eval_ppl(int argc, char **argv)
{
    eval_options o = {.window = 0};
    const char *places[CLI_MAX_PLACES];
    size_t n_places;
    const int parsed = cli_parse(&eval_table, argc, argv, &o, places, &n_places);
    if (parsed != CLI_OK) return parsed == CLI_HELP_SHOWN ? CLI_OK : parsed;
    eval_state e = {.o = &o, .file = places[1]};
    (void)cli_interrupted();
    int code = cli_model_open("mica eval ppl", places[0], &o.model, &e.m);
    if (code == CLI_OK) code = eval_model(&e);
    mica_lm_session_close(e.session);
    cli_model_close(&e.m);
    free(e.ids);
    return code;
}

int cli_eval(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "ppl") == 0) return eval_ppl(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return eval_ppl(argc, argv);
    fprintf(stderr, "mica eval: what? There is 'mica eval ppl MODEL FILE'\n");
    return CLI_USAGE;
}
