/* Functions that the writers share, and the writer of safetensors. */
#include "io/model_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/json.h"

mica_status mica__out_nbytes(const char *path, const mica__out_tensor *t, size_t *nbytes)
{
    char quoted[MICA__QUOTE_TEXT], shape[MICA__SHAPE_TEXT];
    const char *name = mica__quote(quoted, t->name, strlen(t->name));
    if (t->ndim < 0 || t->ndim > MICA_MAX_DIMS)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: tensor %s has %d dimensions, not 0 to %d", path, name, t->ndim,
                          MICA_MAX_DIMS);
    if (mica__quant_nbytes(t->type, t->ndim, t->shape, nbytes) != MICA__FIT_OK)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: tensor %s of shape %s cannot be stored as %s", path, name,
                          mica__shape_text(shape, t->ndim, t->shape), mica__quant_name(t->type));
    return MICA_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

mica_status mica__out_unique(const char *path, const mica__out_file *out)
{
    const size_t n = out->n_tensors > out->n_meta ? out->n_tensors : out->n_meta;
    const char **names = mica__alloc_zero(n, sizeof *names);
    if (!names) return mica__fail_memory("writing", n * sizeof *names);
    const char *twice = NULL;
    for (int meta = 0; meta < 2 && !twice; meta++) {
        const size_t count = meta ? out->n_meta : out->n_tensors;
        for (size_t i = 0; i < count; i++) names[i] = meta ? out->meta[i].key : out->tensors[i].name;
        if (count > 1) qsort(names, count, sizeof *names, by_text);
        for (size_t i = 1; i < count && !twice; i++)
            if (strcmp(names[i], names[i - 1]) == 0) twice = names[i];
    }
    mica__free(names);
    return twice ? mica__fail(MICA_ERR_ARGUMENT, "%s: the name '%.80s' is used twice", path, twice) : MICA_OK;
}

mica_status mica__out_data(const mica__out_file *out, size_t i, size_t nbytes, mica__writer *w)
{
    const mica__out_tensor *t = &out->tensors[i];
    if (t->data || !nbytes) return mica__writer_put(w, t->data, nbytes);
    const uint64_t before = w->total;
    if (!out->produce) return mica__fail(MICA_ERR_ARGUMENT, "%s: tensor '%s' has no data", w->path, t->name);
    MICA_TRY(out->produce(out->user, i, w));
    MICA_TRY(mica__writer_put(w, NULL, 0)); /* a failure that produce ignored */
    if (w->total - before != nbytes)
        return mica__fail(MICA_ERR_INTERNAL, "%s: tensor '%s' has %zu bytes, %" PRIu64 " were written", w->path,
                          t->name, nbytes, w->total - before);
    return MICA_OK;
}

/* ----------------------------------------------------------- safetensors --- */

typedef struct text_buffer {
    char *data;
    size_t used, cap;
    bool failed;
} text_buffer;

static void add_bytes(text_buffer *b, const char *text, size_t n)
{
    if (b->failed) return;
    if (n > b->cap - b->used) {
        const size_t cap = 2 * (b->cap + n) + 256;
        char *grown = mica__realloc(b->data, cap);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->data = grown;
        b->cap = cap;
    }
    memcpy(b->data + b->used, text, n);
    b->used += n;
}

static void add_text(text_buffer *b, const char *text) { add_bytes(b, text, strlen(text)); }

static void add_number(text_buffer *b, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, v);
    add_text(b, text);
}

static void add_string(text_buffer *b, const char *text, size_t n)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    add_bytes(b, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        const char *found = text[i] ? strchr(from, text[i]) : NULL;
        char code[8];
        if (found) snprintf(code, sizeof code, "\\%c", to[found - from]), add_text(b, code);
        else if ((unsigned char)text[i] < 0x20) snprintf(code, sizeof code, "\\u%04x", text[i]), add_text(b, code);
        else add_bytes(b, text + i, 1);
    }
    add_bytes(b, "\"", 1);
}

static mica_status add_metadata(text_buffer *b, const char *path, const mica__out_file *out)
{
    if (out->n_meta) add_text(b, "\"__metadata__\":{");
    for (size_t i = 0; i < out->n_meta; i++) {
        const mica__meta *m = &out->meta[i];
        if (m->type != MICA__META_STRING)
            return mica__fail(MICA_ERR_UNSUPPORTED, "%s: metadata '%s' is not a string, as safetensors requires", path,
                              m->key);
        if (!mica__utf8_valid(m->key, strlen(m->key)) || !mica__utf8_valid(m->data, m->nbytes))
            return mica__fail(MICA_ERR_ARGUMENT, "%s: metadata '%s' is not UTF-8", path, m->key);
        if (i) add_text(b, ",");
        add_string(b, m->key, strlen(m->key));
        add_text(b, ":");
        add_string(b, m->data, m->nbytes);
    }
    if (out->n_meta) add_text(b, out->n_tensors ? "}," : "}");
    return MICA_OK;
}

static mica_status add_tensor(text_buffer *b, const char *path, const mica__out_tensor *t, uint64_t *at, size_t *nbytes)
{
    MICA_TRY(mica__out_nbytes(path, t, nbytes));
    const mica__quant *q = mica__quant_get(t->type);
    if (!q->safetensors)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: tensor '%s': safetensors has no type %s", path, t->name, q->name);
    if (!mica__utf8_valid(t->name, strlen(t->name)) || strcmp(t->name, "__metadata__") == 0)
        return mica__fail(MICA_ERR_ARGUMENT, "%s: tensor '%s' cannot have this name", path, t->name);
    add_string(b, t->name, strlen(t->name));
    add_text(b, ":{\"dtype\":\"");
    add_text(b, q->safetensors);
    add_text(b, "\",\"shape\":[");
    for (int i = 0; i < t->ndim; i++) {
        if (i) add_text(b, ",");
        add_number(b, (uint64_t)t->shape[i]);
    }
    add_text(b, "],\"data_offsets\":[");
    add_number(b, *at);
    add_text(b, ",");
    if (__builtin_add_overflow(*at, (uint64_t)*nbytes, at))
        return mica__fail(MICA_ERR_SIZE, "%s: the size of the tensors overflows", path);
    add_number(b, *at);
    add_text(b, "]}");
    return MICA_OK;
}

typedef struct out_order {
    const mica__out_tensor *tensor;
    size_t index, nbytes;
} out_order;

static int by_width(const void *a, const void *b)
{
    const mica__out_tensor *x = ((const out_order *)a)->tensor, *y = ((const out_order *)b)->tensor;
    if (x->type != y->type) return x->type > y->type ? -1 : 1;
    return strcmp(x->name, y->name);
}

static mica_status build_header(text_buffer *b, const char *path, const mica__out_file *out, out_order *order)
{
    uint64_t at = 0;
    for (size_t i = 0; i < out->n_tensors; i++) order[i] = (out_order){&out->tensors[i], i, 0};
    if (out->n_tensors > 1) qsort(order, out->n_tensors, sizeof *order, by_width);
    add_text(b, "{");
    MICA_TRY(add_metadata(b, path, out));
    for (size_t i = 0; i < out->n_tensors; i++) {
        if (i) add_text(b, ",");
        MICA_TRY(add_tensor(b, path, order[i].tensor, &at, &order[i].nbytes));
    }
    add_text(b, "}");
    while (!b->failed && b->used % 8) add_text(b, " ");
    return b->failed ? mica__fail_memory("the header of a safetensors file", b->cap) : MICA_OK;
}

static mica_status write_safetensors(mica__writer *w, const mica__out_file *out, const text_buffer *b,
                                     const out_order *order)
{
    const uint64_t length = b->used;
    uint8_t head[8];
    for (int i = 0; i < 8; i++) head[i] = (uint8_t)(length >> 8 * i);
    MICA_TRY(mica__writer_put(w, head, sizeof head));
    MICA_TRY(mica__writer_put(w, b->data, b->used));
    for (size_t i = 0; i < out->n_tensors; i++) MICA_TRY(mica__out_data(out, order[i].index, order[i].nbytes, w));
    return MICA_OK;
}

mica_status mica__safetensors_write(const char *path, const mica__out_file *out)
{
    MICA_TRY(mica__out_unique(path, out));
    text_buffer b = {0};
    mica__writer w = {.fd = -1};
    out_order *order = mica__alloc_zero(out->n_tensors, sizeof *order);
    mica_status status = order ? build_header(&b, path, out, order) : mica__fail_memory("writing", out->n_tensors);
    if (status == MICA_OK) status = mica__writer_open(&w, path);
    if (status == MICA_OK) {
        status = write_safetensors(&w, out, &b, order);
        if (status == MICA_OK) status = mica__writer_finish(&w);
        else mica__writer_abandon(&w);
    }
    mica__free(b.data);
    mica__free(order);
    return status;
}
