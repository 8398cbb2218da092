/* Opens a model to convert, and reads its rows as f32. Some formats store one scale after all blocks of a tensor. They
 * are read through a copy of a few rows with that scale appended, so that one public function reads every format. */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <mica_lm.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void mica__source_note(const mica__source *source, const char *format, ...)
{
    char text[480];
    va_list args;
    if (!source->options->note) return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    source->options->note(text, source->options->user);
}

mica_status mica__source_add(mica__source *source, const char *name, mica__source_tensor **out)
{
    if (strlen(name) >= SOURCE_NAME)
        return mica_fail(MICA_ERR_UNSUPPORTED, "tensor '%.80s...': a name of %zu bytes is too long", name,
                         strlen(name));
    if (source->n_tensors == source->cap_tensors) {
        const size_t cap = source->cap_tensors ? 2 * source->cap_tensors : 256;
        mica__source_tensor *grown = realloc(source->tensors, cap * sizeof *grown);
        if (!grown) return mica_fail(MICA_ERR_MEMORY, "out of memory: %zu tensors of a model", cap);
        source->tensors = grown;
        source->cap_tensors = cap;
    }
    *out = &source->tensors[source->n_tensors++];
    **out = (mica__source_tensor){.dtype = -1, .rows = 1, .cols = 1};
    snprintf((*out)->name, SOURCE_NAME, "%s", name);
    return MICA_OK;
}

/* ------------------------------------------------------------------ rows --- */

/* Formats whose scales are separate tensors. */
static bool has_separate_scales(const mica__source_tensor *t)
{
    mica_format_info f = {.struct_size = sizeof f};
    return mica_format_find(t->format, &f) && f.kind == MICA_FORMAT_APART;
}

/* Formats without a fixed block size have size 0 here. */
bool mica__source_readable(const mica__source_tensor *t)
{
    return has_separate_scales(t) || mica_quant_nbytes(t->format, 1, t->cols) > 0;
}

size_t mica__source_tail(const char *format)
{
    mica_format_info f = {.struct_size = sizeof f};
    return mica_format_find(format, &f) ? (size_t)f.tail_bytes : 0;
}

bool mica__source_panels(const char *format)
{
    mica_format_info f = {.struct_size = sizeof f};
    return mica_format_find(format, &f) && f.kind == MICA_FORMAT_PANELS;
}

size_t mica__source_scratch(const mica__source_tensor *t, int64_t n)
{
    return has_separate_scales(t) ? 0 : mica_quant_nbytes(t->format, n, t->cols);
}

/* Row r of the output is this row of the input. The input stores a head of d rows as two halves, the output as
 * pairs. */
static int64_t source_row(const mica__source_tensor *t, int64_t r)
{
    if (!t->heads) return r;
    const int64_t dim = t->rows / t->heads, in_head = r % dim;
    return r - in_head + in_head % 2 * (dim / 2) + in_head / 2;
}

static void hf_ternary_row(const mica__source_tensor *t, int64_t r, float *out)
{
    const int64_t quarter = (t->rows + 3) / 4;
    const uint8_t *b = t->data + r % quarter * t->cols;
    const int shift = (int)(2 * (r / quarter));
    for (int64_t c = 0; c < t->cols; c++) out[c] = (float)((b[c] >> shift & 3) - 1) * t->scale;
}

/* Codes are a bit stream, low bits first, in little-endian 32-bit words, so it can be read by bytes. */
static mica_status affine_row(const mica__source_tensor *t, int64_t r, float *out)
{
    const uint8_t *b = t->data + (size_t)r * (size_t)(t->cols / 8 * t->bits);
    const size_t size = mica_quant_nbytes(t->scale_format, 1, 1), groups = (size_t)(t->cols / t->group);
    float scale = 0, bias = 0;
    for (int64_t c = 0; c < t->cols; c++) {
        const size_t bit = (size_t)c * (size_t)t->bits, at = ((size_t)r * groups + (size_t)(c / t->group)) * size;
        if (c % t->group == 0) {
            mica_status status = mica_quant_unpack(t->scale_format, 1, 1, t->scales + at, size, &scale);
            if (status == MICA_OK) status = mica_quant_unpack(t->scale_format, 1, 1, t->biases + at, size, &bias);
            if (status != MICA_OK) return status;
        }
        unsigned q = b[bit / 8] >> bit % 8;
        if (bit % 8 + (size_t)t->bits > 8) q |= (unsigned)b[bit / 8 + 1] << (8 - bit % 8);
        out[c] = scale * (float)(q & ((1u << t->bits) - 1)) + bias;
    }
    return MICA_OK;
}

static mica_status format_rows(const mica__source_tensor *t, int64_t first, int64_t n, float *out, uint8_t *scratch)
{
    const size_t tail = mica__source_tail(t->format), nbytes = mica_quant_nbytes(t->format, n, t->cols);
    const int64_t high = mica__source_panels(t->format) ? SOURCE_PANEL : 1;
    const uint8_t *from = t->data + (size_t)(first / high) * (mica_quant_nbytes(t->format, high, t->cols) - tail);
    if (tail) {
        memcpy(scratch, from, nbytes - tail);
        memcpy(scratch + nbytes - tail, t->data + t->nbytes - tail, tail);
        from = scratch;
    }
    return mica_quant_unpack(t->format, n, t->cols, from, nbytes, out);
}

mica_status mica__source_rows(const mica__source_tensor *t, int64_t first, int64_t n, float *out, void *scratch)
{
    if (strcmp(t->format, "HF_TERNARY") == 0) {
        for (int64_t i = 0; i < n; i++) hf_ternary_row(t, source_row(t, first + i), out + i * t->cols);
        return MICA_OK;
    }
    const bool affine = strcmp(t->format, "AFFINE") == 0;
    if (!t->heads && !affine) return format_rows(t, first, n, out, scratch);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = source_row(t, first + i);
        const mica_status status =
            affine ? affine_row(t, row, out + i * t->cols) : format_rows(t, row, 1, out + i * t->cols, scratch);
        if (status != MICA_OK) return status;
    }
    return MICA_OK;
}

/* --------------------------------------------------------------- opening --- */

/* Adds every tensor under its own name. */
static mica_status plain_tensors(mica__source *source)
{
    mica_tensor_info info = {.struct_size = sizeof info};
    for (size_t i = 0; mica_file_tensor(source->file, i, &info); i++) {
        mica__source_tensor *t;
        const mica_status status = mica__source_add(source, *info.name ? info.name : "array", &t);
        if (status != MICA_OK) return status;
        t->from = info.name;
        t->ndim = info.ndim;
        memcpy(t->shape, info.shape, sizeof t->shape);
        t->cols = info.ndim ? info.shape[info.ndim - 1] : 1;
        for (int d = 0; d + 1 < info.ndim; d++)
            t->rows *= info.shape[d]; /* cannot overflow: the byte size was
                                                                           * checked */
        t->format = info.format;
        t->dtype = info.dtype;
        t->data = info.data;
        t->nbytes = info.nbytes;
    }
    return MICA_OK;
}

/* Maps a file that mica_file_open does not recognise. O_NONBLOCK: opening a pipe must not block. */
static bool map_checkpoint(mica__source *source, const char *path)
{
    struct stat s;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    void *map = MAP_FAILED;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 28 && (uintmax_t)s.st_size < SIZE_MAX / 2)
        map = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED && mica__llama2c_looks_like(map, (size_t)s.st_size)) {
        source->map = map;
        source->map_size = (size_t)s.st_size;
        source->map_fd = fd;
        return true;
    }
    if (map != MAP_FAILED) (void)munmap(map, (size_t)s.st_size);
    (void)close(fd);
    return false;
}

mica_status mica__source_check(const mica__source *source)
{
    struct stat s;
    if (source->file) return mica_file_unchanged(source->file);
    if (fstat(source->map_fd, &s) == 0 && (uintmax_t)s.st_size == source->map_size) return MICA_OK;
    return mica_fail(MICA_ERR_FILE, "the checkpoint was changed while it was in use: it had %zu bytes",
                     source->map_size);
}

/* npy arrays in Fortran order cannot be read row by row. */
static mica_status check_order(const mica__source *source, const char *path)
{
    if (strncmp(mica_file_kind(source->file), "np", 2) != 0) return MICA_OK;
    mica_tensor_info info = {.struct_size = sizeof info};
    for (size_t i = 0; mica_file_tensor(source->file, i, &info); i++)
        if (info.fortran)
            return mica_fail(MICA_ERR_UNSUPPORTED, "%s: array '%s' is in Fortran order, which is not converted", path,
                             info.name);
    return MICA_OK;
}

mica_status mica__source_open(const char *path, const mica_quantize_options *options, bool gguf, mica__source *out)
{
    *out = (mica__source){.options = options, .gguf = gguf};
    if (map_checkpoint(out, path)) return mica__llama2c_tensors(out, path);
    mica_file_options o;
    mica_file_options_init(&o);
    o.i2_s_arm = options->i2_s_arm;
    mica_status status = mica_file_open(path, &o, &out->file);
    if (status == MICA_OK) status = check_order(out, path);
    if (status != MICA_OK) return status;
    const bool has_config = mica_file_items(out->file, "config.architectures") > 0 ||
                            mica_file_string(out->file, "config.model_type", &(const char *){0}, &(size_t){0});
    if (gguf && has_config) {
        out->hugging_face = true;
        return mica__hf_tensors(out);
    }
    if (gguf && strcmp(mica_file_kind(out->file), "gguf") != 0)
        mica__source_note(out,
                          "%s has no config.json in its folder: names are kept, and the output has no metadata of the "
                          "model (give the folder, not the file)",
                          path);
    return plain_tensors(out);
}

void mica__source_close(mica__source *source)
{
    mica_file_close(source->file);
    if (source->map) {
        (void)munmap((void *)(uintptr_t)source->map, source->map_size);
        (void)close(source->map_fd);
    }
    free(source->tensors);
    free(source->rope_freqs);
    *source = (mica__source){0};
}

/* ------------------------------------------------------------ metadata ----- */

static mica_status copy_meta(const mica_file *file, const char *prefix, mica_writer *w)
{
    mica_meta_info m = {.struct_size = sizeof m};
    mica_status status = MICA_OK;
    for (size_t i = 0; status == MICA_OK && mica_file_meta(file, i, &m); i++)
        if (strncmp(m.key, prefix, strlen(prefix)) == 0) status = mica_writer_meta(w, &m);
    return status;
}

/* Copies the metadata that safetensors can hold. Arrays and values from a folder's JSON files are left out. */
static mica_status copy_texts(const mica__source *source, mica_writer *w)
{
    mica_meta_info m = {.struct_size = sizeof m};
    size_t left_out = 0;
    mica_status status = MICA_OK;
    for (size_t i = 0; status == MICA_OK && mica_file_meta(source->file, i, &m); i++) {
        const bool beside = strncmp(m.key, "config.", 7) == 0 || strncmp(m.key, "generation_config.", 18) == 0 ||
                            strncmp(m.key, "tokenizer_config.", 17) == 0;
        if (beside || m.array) left_out++;
        else status = mica_writer_meta(w, &m);
    }
    if (left_out)
        mica__source_note(source,
                          "%zu entries of metadata cannot be stored in safetensors: copy the JSON files of the "
                          "folder, or write GGUF",
                          left_out);
    return status;
}

/* Embeddings often have more rows than there are tokens; GGUF needs one token per row. */
static mica_status pad_tokens(const mica_file *file, int64_t vocab, mica_writer *w)
{
    enum { UNUSED_TOKEN = 5, NAME = 24 };
    const int64_t have = (int64_t)mica_file_items(file, "tokenizer.ggml.tokens");
    if (have <= 0 || have >= vocab) return MICA_OK;
    const size_t n = (size_t)vocab;
    const char **texts = calloc(n, sizeof *texts);
    size_t *lengths = calloc(n, sizeof *lengths), at = 0;
    char(*names)[NAME] = calloc(n - (size_t)have, sizeof *names);
    int32_t *types = calloc(n, sizeof *types);
    float *scores = calloc(n, sizeof *scores);
    mica_status status = texts && lengths && names && types && scores
                             ? MICA_OK
                             : mica_fail(MICA_ERR_MEMORY, "out of memory: %zu tokens", n);
    for (int64_t i = 0; i < vocab && status == MICA_OK; i++) {
        int64_t type = 1;
        double score = 0;
        if (i < have) {
            (void)mica_file_next_string(file, "tokenizer.ggml.tokens", &at, &texts[i], &lengths[i]);
            (void)mica_file_item_i64(file, "tokenizer.ggml.token_type", (uint64_t)i, &type);
            (void)mica_file_item_f64(file, "tokenizer.ggml.scores", (uint64_t)i, &score);
        } else {
            texts[i] = names[i - have];
            lengths[i] = (size_t)snprintf(names[i - have], NAME, "[PAD%lld]", (long long)i);
            type = UNUSED_TOKEN;
        }
        types[i] = (int32_t)type;
        scores[i] = (float)score;
    }
    if (status == MICA_OK) (void)mica_writer_strings(w, "tokenizer.ggml.tokens", n, texts, lengths);
    if (status == MICA_OK) (void)mica_writer_array(w, "tokenizer.ggml.scores", MICA_F32, n, scores);
    if (status == MICA_OK) status = mica_writer_array(w, "tokenizer.ggml.token_type", MICA_I32, n, types);
    free(texts);
    free(lengths);
    free(names);
    free(types);
    free(scores);
    return status;
}

/* Saves the tokenizer to a temporary GGUF file and copies its metadata. */
static mica_status write_source_tokenizer(const char *path, const char *out, int64_t vocab, mica_writer *w)
{
    const size_t cap = strlen(out) + 64;
    char *temporary = malloc(cap);
    mica_tokenizer *t = NULL;
    mica_file *file = NULL;
    if (!temporary) return mica_fail(MICA_ERR_MEMORY, "out of memory: a path");
    snprintf(temporary, cap, "%s.%ld-0.tmp.gguf", out, (long)getpid()); /* later runs clean up files of this name */
    mica_status status = mica_tokenizer_open(path, NULL, &t);
    if (status == MICA_OK) status = mica_tokenizer_save(t, temporary);
    if (status == MICA_OK) {
        status = mica_file_open(temporary, NULL, &file);
        if (status == MICA_OK) status = copy_meta(file, "tokenizer.", w);
        if (status == MICA_OK) status = pad_tokens(file, vocab, w);
        mica_file_close(file);
        (void)unlink(temporary);
    }
    mica_tokenizer_close(t);
    free(temporary);
    return status;
}

mica_status mica__source_meta(const mica__source *source, const char *in, const char *out, mica_writer *w)
{
    if (!source->gguf) return copy_texts(source, w);
    if (source->file && !source->hugging_face) return copy_meta(source->file, "", w);
    mica_status status = source->file ? mica__hf_meta(source, w) : mica__llama2c_meta(source, in, w);
    const char *tokenizer = source->options->tokenizer ? source->options->tokenizer : source->file ? in : NULL;
    if (status != MICA_OK) return status;
    int64_t vocab = 0;
    for (size_t i = 0; i < source->n_tensors; i++)
        if (strcmp(source->tensors[i].name, "token_embd.weight") == 0) vocab = source->tensors[i].rows;
    status = tokenizer ? write_source_tokenizer(tokenizer, out, vocab, w) : MICA_ERR_FILE;
    if (status == MICA_OK || status == MICA_ERR_MEMORY || source->options->tokenizer) return status;
    mica__source_note(source, "no tokenizer is written: %s",
                      tokenizer ? mica_last_error() : "the checkpoint has no tokenizer; name its tokenizer.bin");
    return MICA_OK;
}
