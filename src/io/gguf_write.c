/* Writer of GGUF version 3. Offsets and padding are those that the reader requires, so a
 * file of version 3 that is read and written again has the same bytes. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "io/model_build.h"
#include "io/model_write.h"

static mica_status put_u32(mica__writer *w, uint32_t v)
{
    const uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    return mica__writer_put(w, b, 4);
}

static mica_status put_u64(mica__writer *w, uint64_t v)
{
    MICA_TRY(put_u32(w, (uint32_t)v));
    return put_u32(w, (uint32_t)(v >> 32));
}

static mica_status put_string(mica__writer *w, const char *text, size_t length)
{
    MICA_TRY(put_u64(w, length));
    return mica__writer_put(w, text, length);
}

/* Checks that the size of a value agrees with its type and count: the writer must not copy
 * memory past the end of the caller's value into a file. */
static mica_status check_meta(const char *path, const mica__meta *m)
{
    const size_t length = strlen(m->key);
    bool good = (unsigned)m->type < MICA__META_COUNT && length > 0 && length <= MICA__FILE_MAX_NAME;
    if (good && m->type == MICA__META_ARRAY) {
        size_t at = 0, n;
        uint64_t items = 0, nbytes;
        const char *text;
        const size_t size = mica__meta_size(m->item);
        if (m->item == MICA__META_STRING) {
            while (items < m->count && mica__meta_next_string(m, &at, &text, &n)) items++;
            good = items == m->count && at == m->nbytes;
        } else {
            good = size && !__builtin_mul_overflow(m->count, (uint64_t)size, &nbytes) && nbytes == m->nbytes;
        }
    } else if (good && m->type != MICA__META_STRING) {
        good = m->nbytes == mica__meta_size(m->type);
    }
    return good ? MICA_OK : mica__fail(MICA_ERR_ARGUMENT, "%s: metadata '%s' cannot be written", path, m->key);
}

static mica_status put_meta(mica__writer *w, const char *path, const mica__meta *m)
{
    MICA_TRY(check_meta(path, m));
    MICA_TRY(put_string(w, m->key, strlen(m->key)));
    MICA_TRY(put_u32(w, (uint32_t)m->type));
    if (m->type == MICA__META_ARRAY) {
        MICA_TRY(put_u32(w, (uint32_t)m->item));
        MICA_TRY(put_u64(w, m->count));
    } else if (m->type == MICA__META_STRING) {
        MICA_TRY(put_u64(w, m->nbytes));
    }
    return mica__writer_put(w, m->data, m->nbytes);
}

static mica_status put_info(mica__writer *w, const char *path, const mica__out_tensor *t, uint64_t alignment,
                            uint64_t *at)
{
    size_t nbytes;
    MICA_TRY(mica__out_nbytes(path, t, &nbytes));
    const mica__quant *q = mica__quant_get(t->type);
    const size_t length = strlen(t->name);
    if (q->gguf < 0)
        return mica__fail(MICA_ERR_UNSUPPORTED, "%s: tensor '%s': GGUF has no type %s", path, t->name, q->name);
    if (t->ndim > 4 || length == 0 || length > 64)
        return mica__fail(MICA_ERR_UNSUPPORTED,
                          "%s: tensor '%s': %d dimensions and a name of %zu bytes; GGUF has up to 4 and 64", path,
                          t->name, t->ndim, length);
    MICA_TRY(put_string(w, t->name, length));
    MICA_TRY(put_u32(w, (uint32_t)t->ndim));
    for (int i = t->ndim; i-- > 0;) MICA_TRY(put_u64(w, (uint64_t)t->shape[i]));
    MICA_TRY(put_u32(w, (uint32_t)q->gguf));
    MICA_TRY(put_u64(w, *at));
    *at += nbytes;
    *at += (alignment - *at % alignment) % alignment;
    return *at <= INT64_MAX ? MICA_OK : mica__fail(MICA_ERR_SIZE, "%s: the size of the tensors overflows", path);
}

static mica_status find_alignment(const char *path, const mica__out_file *out, uint64_t *alignment)
{
    *alignment = 32;
    for (size_t i = 0; i < out->n_meta; i++) {
        const mica__meta *m = &out->meta[i];
        if (strcmp(m->key, "general.alignment") != 0) continue;
        if (m->type == MICA__META_U32 && m->nbytes == 4) *alignment = mica__load_u32(m->data);
        if (m->type != MICA__META_U32 || !*alignment || (*alignment & (*alignment - 1)) || *alignment > 1 << 20)
            return mica__fail(MICA_ERR_ARGUMENT, "%s: general.alignment is not a u32 with a power of two", path);
    }
    return MICA_OK;
}

static mica_status write_gguf(mica__writer *w, const char *path, const mica__out_file *out)
{
    uint64_t alignment, at = 0;
    MICA_TRY(find_alignment(path, out, &alignment));
    MICA_TRY(mica__writer_put(w, "GGUF", 4));
    MICA_TRY(put_u32(w, 3));
    MICA_TRY(put_u64(w, out->n_tensors));
    MICA_TRY(put_u64(w, out->n_meta));
    for (size_t i = 0; i < out->n_meta; i++) MICA_TRY(put_meta(w, path, &out->meta[i]));
    for (size_t i = 0; i < out->n_tensors; i++) MICA_TRY(put_info(w, path, &out->tensors[i], alignment, &at));
    if (out->n_tensors) MICA_TRY(mica__writer_align(w, (size_t)alignment));
    for (size_t i = 0; i < out->n_tensors; i++) {
        size_t nbytes;
        MICA_TRY(mica__out_nbytes(path, &out->tensors[i], &nbytes));
        MICA_TRY(mica__out_data(out, i, nbytes, w));
        MICA_TRY(mica__writer_align(w, (size_t)alignment));
    }
    return MICA_OK;
}

mica_status mica__gguf_write(const char *path, const mica__out_file *out)
{
    mica__writer w;
    MICA_TRY(mica__out_unique(path, out));
    MICA_TRY(mica__writer_open(&w, path));
    const mica_status status = write_gguf(&w, path, out);
    if (status == MICA_OK) return mica__writer_finish(&w);
    mica__writer_abandon(&w);
    return status;
}
