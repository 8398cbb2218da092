/* Converts a model to other number formats, in pieces of a few megabytes.
 *
 * First each tensor gets its type and everything is declared. Then the writer requests one tensor after the other;
 * rows are converted from the input format to f32 to the output format. As many pieces are converted at once as there
 * are threads, and written in order. A tensor that keeps its format is copied as bytes. Pieces depend on the tensor
 * alone, so the file is the same for any number of threads.
 *
 * Ternary types: weights that are already ternary keep their codes (also with one scale per block, if the type
 * supports that). Others become ternary as in BitNet: scale = mean |w| of the tensor, at least 1e-5; codes = w /
 * scale, rounded to nearest even and clamped to -1, 0, 1. That needs two passes over the rows. */
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source.h"

enum { PIECE = 4 << 20, TYPE_NAME = 16, MOST_WORKERS = 16, FAILURE_TEXT = 480 };

typedef struct ternary_scan {
    double sum;
    float top;       /* the largest magnitude                  */
    bool one_scale;  /* all magnitudes are 0 or top            */
    bool by_block;   /* the same within each block of the type */
} ternary_scan;

/* A piece of a tensor and the memory to convert it. */
typedef struct quant_worker {
    const mica__source_tensor *t;
    const char *type;
    int64_t first, n;             /* range of rows                    */
    float ternary_scale;          /* 0: values are packed unchanged   */
    int64_t block;                /* block size of a scan             */
    ternary_scan scan;
    float *rows;                  /* the piece as f32, followed by its blocks */
    uint8_t *blocks, *scratch;
    mica_status status;
    char failure[FAILURE_TEXT];
} quant_worker;

typedef struct quant_job {
    mica__source source;
    const mica_quantize_options *options;
    bool gguf;
    char type[TYPE_NAME];
    regex_t *rules;               /* compiled, n_compiled of them */
    size_t n_compiled;
    char (*types)[TYPE_NAME];     /* by tensor                    */
    bool *ternary;                /* by tensor: make its values ternary if they are not */
    uint64_t done, total;
    quant_worker worker[MOST_WORKERS];
    int n_workers;
} quant_job;

/* ----------------------------------------------------------------- types --- */

/* Lists the valid types for an error message. */
static void list_types(char *text, size_t size)
{
    mica_format_info f = {.struct_size = sizeof f};
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; mica_format_at(i, &f); i++) {
        if (!f.output) continue;
        if (n && n + 1 < size) text[n++] = ' ';
        for (const char *p = f.name; *p && n + 1 < size; p++) text[n++] = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
        text[n < size ? n : size - 1] = '\0';
    }
}

static mica_status type_name(const char *text, char out[TYPE_NAME])
{
    mica_format_info f = {.struct_size = sizeof f};
    const bool known = mica_format_find(text, &f) && f.output;
    snprintf(out, TYPE_NAME, "%.15s", known ? f.name : "");
    if (known) return MICA_OK;
    char types[256];
    list_types(types, sizeof types);
    return mica_fail(MICA_ERR_ARGUMENT, "quantize: '%s' is not a type; the types are %s", text ? text : "(NULL)",
                     types);
}

static mica_format_info type_info(const char *type)
{
    mica_format_info f = {.struct_size = sizeof f};
    if (!mica_format_find(type, &f)) f = (mica_format_info){.struct_size = sizeof f, .gguf_file_type = -1, .dtype = -1};
    return f;
}

/* Is it an output type without blocks: F32, F16 or BF16? */
static bool plain_type(const char *type)
{
    const mica_format_info f = type_info(type);
    return f.output && f.kind == MICA_FORMAT_PLAIN;
}

static mica_status compile_rules(quant_job *job)
{
    const mica_quantize_options *o = job->options;
    char type[TYPE_NAME], text[128];
    job->rules = calloc(o->n_rules + 1, sizeof *job->rules);
    if (!job->rules) return mica_fail(MICA_ERR_MEMORY, "quantize: out of memory");
    for (; job->n_compiled < o->n_rules; job->n_compiled++) {
        const mica_tensor_rule *rule = &o->rules[job->n_compiled];
        const mica_status status = type_name(rule->type, type);
        if (status != MICA_OK) return status;
        const int code =
            regcomp(&job->rules[job->n_compiled], rule->pattern ? rule->pattern : "(", REG_EXTENDED | REG_NOSUB);
        if (code == 0) continue;
        (void)regerror(code, &job->rules[job->n_compiled], text, sizeof text);
        return mica_fail(MICA_ERR_ARGUMENT, "quantize: the pattern '%.100s' is not a regular expression: %s",
                         rule->pattern ? rule->pattern : "(NULL)", text);
    }
    return MICA_OK;
}

/* Returns the type that a rule gives a tensor; NULL: no rule matches. */
static const char *type_from_rules(const quant_job *job, const mica__source_tensor *t)
{
    for (size_t i = job->n_compiled; i-- > 0;)
        if (regexec(&job->rules[i], t->name, 0, NULL, 0) == 0 ||
            (t->from && *t->from && regexec(&job->rules[i], t->from, 0, NULL, 0) == 0))
            return job->options->rules[i].type;
    return NULL;
}

/* Stored as F16 instead of a block type unless a rule states otherwise: they were not trained to be ternary, and
 * BitNet's ternary layers are small compared with them. */
static bool embedding_or_head(const char *name)
{
    return strcmp(name, "token_embd.weight") == 0 || strcmp(name, "output.weight") == 0 ||
           strcmp(name, "model.embed_tokens.weight") == 0 || strcmp(name, "lm_head.weight") == 0;
}

static bool is_vector(const mica__source_tensor *t)
{
    int wide = 0;
    for (int d = 0; d < t->ndim; d++) wide += t->shape[d] != 1;
    return t->ndim < 2 || wide < 2;
}

/* Uses the fallback type if the rows do not fill the blocks of the type, and adds a note. */
static mica_status fit_type(quant_job *job, const mica__source_tensor *t, char type[TYPE_NAME])
{
    char wanted[TYPE_NAME];
    snprintf(wanted, sizeof wanted, "%s", type);
    while (mica_quant_nbytes(type, t->rows, t->cols) == 0 && t->rows && t->cols) {
        const char *next = type_info(type).fallback;
        if (!next) return mica_fail(MICA_ERR_SIZE, "quantize: tensor '%s': %s", t->name, mica_last_error());
        snprintf(type, TYPE_NAME, "%s", next);
    }
    if (strcmp(wanted, type) != 0)
        mica__source_note(&job->source, "%s is stored as %s: its rows of %lld do not fill the blocks of %s", t->name,
                          type, (long long)t->cols, wanted);
    return MICA_OK;
}

static mica_status choose_out_type(quant_job *job, size_t i)
{
    const mica__source_tensor *t = &job->source.tensors[i];
    const char *ruled = type_from_rules(job, t);
    char *type = job->types[i];
    snprintf(type, TYPE_NAME, "%s", ruled ? "" : job->type);
    if (ruled) (void)type_name(ruled, type);
    if (!mica__source_readable(t)) {
        snprintf(type, TYPE_NAME, "%.15s", t->format);
        if (t->dtype < 0) mica__source_note(&job->source, "%s stays %s: its values cannot be read", t->name, t->format);
        return MICA_OK;
    }
    if (is_vector(t)) {
        if (ruled && !plain_type(type))
            mica__source_note(&job->source, "%s is stored as F32: it has one dimension", t->name);
        if (!ruled || !plain_type(type)) snprintf(type, TYPE_NAME, "F32");
        return MICA_OK;
    }
    if (!ruled && embedding_or_head(t->name) && !plain_type(type)) snprintf(type, TYPE_NAME, "F16");
    job->ternary[i] = type_info(type).ternary;
    return fit_type(job, t, type);
}

/* ---------------------------------------------------------------- values --- */

static int64_t piece_rows(const mica__source_tensor *t)
{
    const int64_t n = PIECE / 4 / (t->cols > 0 ? t->cols : 1) / SOURCE_PANEL * SOURCE_PANEL;
    return n < SOURCE_PANEL ? SOURCE_PANEL : n < t->rows ? n : t->rows;
}

static void scan_block(ternary_scan *s, const float *x, int64_t n)
{
    float top = 0;
    for (int64_t i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        s->sum += (double)size;
        top = size > top ? size : top;
    }
    for (int64_t i = 0; i < n; i++) s->by_block &= x[i] == 0 || fabsf(x[i]) == top;
    if (top == 0) return;
    s->one_scale &= s->top == 0 || s->top == top;
    s->top = top > s->top ? top : s->top;
}

/* Stores the result of a thread and its error message. */
static void *store_worker_result(quant_worker *w, mica_status status)
{
    w->status = status;
    if (status != MICA_OK) snprintf(w->failure, sizeof w->failure, "%s", mica_last_error());
    return NULL;
}

static void *scan_piece(void *worker)
{
    quant_worker *w = worker;
    const mica_status status = mica__source_rows(w->t, w->first, w->n, w->rows, w->scratch);
    w->scan = (ternary_scan){.one_scale = true, .by_block = true};
    for (int64_t at = 0; at < w->n * w->t->cols && status == MICA_OK; at += w->block)
        scan_block(&w->scan, w->rows + at, w->block);
    return store_worker_result(w, status);
}

/* Runs the first n workers, each on a thread; worker 0 on the calling one. */
static mica_status run_workers(quant_job *job, int n, void *(*work)(void *))
{
    pthread_t threads[MOST_WORKERS];
    bool started[MOST_WORKERS] = {false};
    const mica_status unchanged = mica__source_check(&job->source);
    if (unchanged != MICA_OK) return unchanged;
    for (int i = 1; i < n; i++) started[i] = pthread_create(&threads[i], NULL, work, &job->worker[i]) == 0;
    for (int i = 0; i < n; i++)
        if (!started[i]) work(&job->worker[i]);
    for (int i = 1; i < n; i++)
        if (started[i]) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++)
        if (job->worker[i].status != MICA_OK) return mica_fail(job->worker[i].status, "%s", job->worker[i].failure);
    return MICA_OK;
}

/* Assigns the next pieces, from row r on; returns their number. */
static int assign_pieces(quant_job *job, const quant_worker *like, int64_t r)
{
    const int64_t rows = like->t->rows, step = piece_rows(like->t);
    int n = 0;
    for (; n < job->n_workers && r < rows; n++, r += step) {
        quant_worker *w = &job->worker[n];
        w->t = like->t;
        w->type = like->type;
        w->ternary_scale = like->ternary_scale;
        w->block = like->block;
        w->first = r;
        w->n = step < rows - r ? step : rows - r;
    }
    return n;
}

static mica_status scan_tensor(quant_job *job, const mica__source_tensor *t, int64_t block, ternary_scan *s)
{
    const quant_worker like = {.t = t, .block = block};
    *s = (ternary_scan){.one_scale = true, .by_block = true};
    for (int64_t r = 0; r < t->rows;) {
        const int n = assign_pieces(job, &like, r);
        const mica_status status = run_workers(job, n, scan_piece);
        if (status != MICA_OK) return status;
        for (int i = 0; i < n; i++) {
            const ternary_scan *piece = &job->worker[i].scan;
            r += job->worker[i].n;
            s->sum += piece->sum;
            s->by_block &= piece->by_block;
            if (piece->top == 0) continue;
            s->one_scale &= piece->one_scale && (s->top == 0 || s->top == piece->top);
            s->top = piece->top > s->top ? piece->top : s->top;
        }
    }
    s->one_scale &= s->by_block;
    return MICA_OK;
}

static void make_ternary(float *x, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++) {
        const float r = nearbyintf(x[i] / scale);
        x[i] = r >= 1 ? scale : r <= -1 ? -scale : r == r ? 0 : r; /* NaN stays NaN and is refused later */
    }
}

/* Number of elements of a row that share a scale in a ternary type. */
static int64_t block_of(const char *type, int64_t cols)
{
    const mica_format_info f = type_info(type);
    return f.ternary && !f.one_scale ? f.block_elements : cols;
}

static mica_status check_f16(const mica__source_tensor *t, const char *type, const float *x, int64_t n, int64_t at)
{
    if (strcmp(type, "F16") != 0) return MICA_OK;
    for (int64_t i = 0; i < n; i++)
        if (fabsf(x[i]) >= 65520 && isfinite(x[i]))
            return mica_fail(MICA_ERR_ARGUMENT, "tensor '%s': element %lld is %g, which f16 cannot represent; use bf16",
                             t->name, (long long)(at + i), (double)x[i]);
    return MICA_OK;
}

/* ---------------------------------------------------------------- writing --- */

static bool report(quant_job *job, const mica__source_tensor *t, uint64_t more)
{
    job->done += more;
    return !job->options->progress || job->options->progress(job->done, job->total, t->name, job->options->user);
}

static mica_status put_bytes(quant_job *job, const mica__source_tensor *t, mica_writer *w, const uint8_t *data,
                             uint64_t nbytes)
{
    while (nbytes) {
        const size_t n = nbytes < PIECE ? (size_t)nbytes : PIECE;
        const mica_status status = mica_writer_put(w, data, n);
        if (status != MICA_OK) return status;
        if (!report(job, t, n)) return mica_fail(MICA_ERR_STATE, "quantize: stopped");
        data += n;
        nbytes -= n;
    }
    return MICA_OK;
}

/* Adds the name of the tensor to a packing error. */
static void *convert_piece(void *worker)
{
    quant_worker *w = worker;
    const mica__source_tensor *t = w->t;
    const int64_t n = w->n * t->cols;
    char text[FAILURE_TEXT];
    mica_status status = mica__source_rows(t, w->first, w->n, w->rows, w->scratch);
    if (status == MICA_OK && w->ternary_scale > 0) make_ternary(w->rows, n, w->ternary_scale);
    if (status == MICA_OK) status = check_f16(t, w->type, w->rows, n, w->first * t->cols);
    if (status != MICA_OK) return store_worker_result(w, status);
    const size_t nbytes = mica_quant_nbytes(w->type, w->n, t->cols);
    status = mica_quant_pack(w->type, w->n, t->cols, w->rows, w->blocks, nbytes);
    if (status == MICA_OK) return store_worker_result(w, status);
    snprintf(text, sizeof text, "%s", mica_last_error());
    return store_worker_result(w, mica_fail(status, "tensor '%s': %s", t->name, text));
}

static mica_status put_rows(quant_job *job, const mica__source_tensor *t, const char *type, float ternary_scale,
                            float tensor_scale, mica_writer *w)
{
    const quant_worker like = {.t = t, .type = type, .ternary_scale = ternary_scale};
    const size_t tail = mica__source_tail(type);
    for (int64_t r = 0; r < t->rows;) {
        const int n = assign_pieces(job, &like, r);
        mica_status status = run_workers(job, n, convert_piece);
        for (int i = 0; i < n && status == MICA_OK; i++) {
            const quant_worker *piece = &job->worker[i];
            r += piece->n;
            status = put_bytes(job, t, w, piece->blocks, mica_quant_nbytes(type, piece->n, t->cols) - tail);
        }
        if (status != MICA_OK) return status;
    }
    uint8_t end[64] = {0}; /* no format has a longer tail */
    memcpy(end, &tensor_scale, sizeof tensor_scale);
    return tail ? put_bytes(job, t, w, end, tail) : MICA_OK;
}

static mica_status put_tensor(mica_writer *w, size_t i, void *user)
{
    quant_job *job = user;
    const mica__source_tensor *t = &job->source.tensors[i];
    const char *type = job->types[i];
    float ternary_scale = 0, tensor_scale = 0;
    const mica_status unchanged = mica__source_check(&job->source);
    if (unchanged != MICA_OK) return unchanged;
    if (strcmp(type, t->format) == 0 && !t->heads && (!job->ternary[i] || type_info(type).ternary))
        return put_bytes(job, t, w, t->data, t->nbytes);
    if (job->ternary[i]) {
        ternary_scan s;
        const mica_format_info f = type_info(type);
        const bool one = f.one_scale || !f.ternary;
        const mica_status status = scan_tensor(job, t, block_of(type, t->cols), &s);
        if (status != MICA_OK) return status;
        if (one ? !s.one_scale : !s.by_block) {
            const double n = (double)t->rows * (double)t->cols, mean = s.sum / (n > 0 ? n : 1);
            ternary_scale = mean > 1e-5 || mean != mean ? (float)mean : 1e-5f;
        }
        tensor_scale = ternary_scale > 0 ? ternary_scale : s.top;
        if (ternary_scale != ternary_scale) return mica_fail(MICA_ERR_ARGUMENT, "tensor '%s' has NaN values", t->name);
    }
    return put_rows(job, t, type, ternary_scale, tensor_scale, w);
}

/* ------------------------------------------------------------------- all --- */

/* Allocates room for the largest piece of any tensor. */
static mica_status allocate_pieces(quant_job *job)
{
    size_t rows = 1, blocks = 1, scratch = 1;
    int64_t pieces = 1; /* of the tensor with the most pieces */
    for (size_t i = 0; i < job->source.n_tensors; i++) {
        const mica__source_tensor *t = &job->source.tensors[i];
        const int64_t n = piece_rows(t);
        if (!mica__source_readable(t)) continue;
        const size_t values = (size_t)(n * t->cols) * sizeof(float), out = mica_quant_nbytes(job->types[i], n, t->cols);
        rows = values > rows ? values : rows;
        blocks = out > blocks ? out : blocks;
        scratch = mica__source_scratch(t, n) > scratch ? mica__source_scratch(t, n) : scratch;
        pieces = n && (t->rows + n - 1) / n > pieces ? (t->rows + n - 1) / n : pieces;
    }
    const long cores = job->options->threads ? job->options->threads : sysconf(_SC_NPROCESSORS_ONLN);
    job->n_workers = cores < 1 ? 1 : cores < MOST_WORKERS ? (int)cores : MOST_WORKERS;
    if (job->n_workers > pieces) job->n_workers = (int)pieces;
    for (int i = 0; i < job->n_workers; i++) {
        quant_worker *w = &job->worker[i];
        w->rows = malloc(rows);
        w->blocks = malloc(blocks);
        w->scratch = malloc(scratch);
        if (!w->rows || !w->blocks || !w->scratch)
            return mica_fail(MICA_ERR_MEMORY, "quantize: out of memory: %zu bytes for pieces of tensors",
                             rows + blocks + scratch);
    }
    return MICA_OK;
}

static mica_status declare(quant_job *job, const char *in, const char *out, mica_writer *w)
{
    mica_status status = mica__source_meta(&job->source, in, out, w);
    if (status == MICA_OK && job->gguf) {
        const int file_type = type_info(job->type).gguf_file_type;
        if (file_type >= 0) (void)mica_writer_i64(w, "general.file_type", MICA_U32, file_type);
        for (size_t i = 0; i < job->source.n_tensors; i++) /* blocks are whole cache lines */
            if (mica__source_panels(job->types[i])) (void)mica_writer_i64(w, "general.alignment", MICA_U32, 64);
        status = mica_writer_i64(w, "general.quantization_version", MICA_U32, 2);
    }
    for (size_t i = 0; i < job->source.n_tensors && status == MICA_OK; i++) {
        const mica__source_tensor *t = &job->source.tensors[i];
        status = mica_writer_tensor(w, t->name, job->types[i], t->ndim, t->shape, NULL);
        job->total += mica__source_readable(t) ? mica_quant_nbytes(job->types[i], t->rows, t->cols) : t->nbytes;
    }
    return status;
}

static mica_status run_job(quant_job *job, const char *in, const char *out)
{
    mica_writer *w = NULL;
    mica_status status = compile_rules(job);
    if (status == MICA_OK) status = mica__source_open(in, job->options, job->gguf, &job->source);
    if (status != MICA_OK) return status;
    job->types = calloc(job->source.n_tensors + 1, sizeof *job->types);
    job->ternary = calloc(job->source.n_tensors + 1, sizeof *job->ternary);
    if (!job->types || !job->ternary) return mica_fail(MICA_ERR_MEMORY, "quantize: out of memory");
    for (size_t i = 0; i < job->source.n_tensors && status == MICA_OK; i++) status = choose_out_type(job, i);
    if (status == MICA_OK) status = allocate_pieces(job);
    if (status == MICA_OK) status = mica_writer_open(out, NULL, &w);
    if (status == MICA_OK) status = declare(job, in, out, w);
    if (status != MICA_OK) {
        mica_writer_abandon(w);
        return status;
    }
    return mica_writer_finish(w, put_tensor, job);
}

void mica_quantize_options_init(mica_quantize_options *options)
{
    if (options) *options = (mica_quantize_options){.struct_size = sizeof *options};
}

mica_status mica_quantize(const char *in, const char *out, const mica_quantize_options *options)
{
    mica_quantize_options o;
    mica_quantize_options_init(&o);
    if (!in || !out || !options)
        return mica_fail(MICA_ERR_ARGUMENT, "quantize: %s is NULL", !in ? "in" : !out ? "out" : "options");
    const mica_status read = mica_struct_read("quantize: mica_quantize_options", &o, sizeof o, options);
    if (read != MICA_OK) return read;
    if (o.threads < 0) return mica_fail(MICA_ERR_ARGUMENT, "quantize: threads is %d; it must be 0 or above", o.threads);
    if (o.n_rules && !o.rules)
        return mica_fail(MICA_ERR_ARGUMENT, "quantize: rules is NULL, n_rules is %zu", o.n_rules);
    quant_job *job = calloc(1, sizeof *job);
    if (!job) return mica_fail(MICA_ERR_MEMORY, "quantize: out of memory");
    job->options = &o;
    const char *dot = strrchr(out, '.');
    job->gguf = dot && strcmp(dot, ".gguf") == 0;
    mica_status status = type_name(o.type, job->type);
    if (status == MICA_OK) status = run_job(job, in, out);
    for (size_t i = 0; i < job->n_compiled; i++) regfree(&job->rules[i]);
    free(job->rules);
    free(job->types);
    free(job->ternary);
    for (int i = 0; i < job->n_workers; i++) {
        free(job->worker[i].rows);
        free(job->worker[i].blocks);
        free(job->worker[i].scratch);
    }
    mica__source_close(&job->source);
    free(job);
    return status;
}
