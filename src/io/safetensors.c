/* Reader of safetensors: a length, a JSON header, the data.
 *
 * Everything that the specification requires is checked before any data is read: the header fits
 * into the file, names are unique, tensors follow each other from the first byte to the last
 * without overlaps or gaps, and each has the size of its shape and dtype. Sizes are integers in
 * plain digits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "io/model_build.h"

static const uint64_t header_limit = 100000000; /* the specification's */

/* "__metadata__": an object whose values are strings. */
static mica_status read_metadata(mica__file *file, mica__json *j)
{
    MICA_TRY(mica__json_expect(j, MICA__JSON_OBJECT, "__metadata__ must be an object"));
    mica__json_token token;
    while ((token = mica__json_next(j)) == MICA__JSON_KEY) {
        mica__meta *m;
        MICA_TRY(mica__build_meta(file, &m));
        MICA_TRY(mica__build_name(file, "metadata key", j->string, j->length, &m->key));
        MICA_TRY(mica__json_expect(j, MICA__JSON_STRING, "values of __metadata__ must be strings"));
        const char *copy = mica__arena_copy(&file->arena, j->string, j->length);
        if (!copy) return mica__fail_memory("metadata", j->length);
        m->type = MICA__META_STRING;
        m->data = copy;
        m->nbytes = j->length;
    }
    return mica__json_status(j);
}

/* Integers of an array, at most cap of them. */
static mica_status read_sizes(mica__json *j, int64_t *out, int cap, int *n, const char *wanted)
{
    MICA_TRY(mica__json_expect(j, MICA__JSON_ARRAY, wanted));
    mica__json_token token;
    for (*n = 0; (token = mica__json_next(j)) == MICA__JSON_NUMBER; ++*n) {
        if (*n == cap) return mica__json_fail(j, wanted);
        MICA_TRY(mica__json_i64(j, &out[*n]));
    }
    return token == MICA__JSON_ARRAY_END || token == MICA__JSON_ERROR ? mica__json_status(j)
                                                                      : mica__json_fail(j, wanted);
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...}. offset and nbytes hold the begin and the
 * end until place_tensors. */
static mica_status read_entry(mica__file *file, mica__json *j, mica__stored *t)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    int seen = 0, n;
    int64_t range[2];
    MICA_TRY(mica__json_expect(j, MICA__JSON_OBJECT, "a tensor must be an object"));
    while (mica__json_next(j) == MICA__JSON_KEY) {
        if (mica__json_is(j, "dtype")) {
            MICA_TRY(mica__json_expect(j, MICA__JSON_STRING, "dtype must be a string"));
            t->type = mica__quant_find_safetensors(j->string, j->length);
            char quoted[MICA__QUOTE_TEXT];
            if (t->type == MICA__QUANT_COUNT)
                return mica__build_fail_tensor(file, t->name, "dtype %s is not known",
                                               mica__quote(quoted, j->string, j->length));
            seen |= DTYPE;
        } else if (mica__json_is(j, "shape")) {
            MICA_TRY(read_sizes(j, t->shape, MICA_MAX_DIMS, &t->ndim, "shape must be an array of at most 8 sizes"));
            seen |= SHAPE;
        } else if (mica__json_is(j, "data_offsets")) {
            MICA_TRY(read_sizes(j, range, 2, &n, "data_offsets must be an array of two sizes"));
            if (n != 2) return mica__json_fail(j, "data_offsets must be an array of two sizes");
            t->offset = (uint64_t)range[0];
            t->nbytes = (size_t)range[1];
            seen |= OFFSETS;
        } else {
            MICA_TRY(mica__json_skip(j));
        }
    }
    MICA_TRY(mica__json_status(j));
    if (seen == (DTYPE | SHAPE | OFFSETS)) return MICA_OK;
    return mica__build_fail_tensor(file, t->name, "has no %s",
                                   !(seen & DTYPE)   ? "dtype"
                                   : !(seen & SHAPE) ? "shape"
                                                     : "data_offsets");
}

static mica_status read_header(mica__file *file, mica__json *j)
{
    MICA_TRY(mica__json_expect(j, MICA__JSON_OBJECT, "the header must be an object"));
    while (mica__json_next(j) == MICA__JSON_KEY) {
        if (mica__json_is(j, "__metadata__")) {
            MICA_TRY(read_metadata(file, j));
            continue;
        }
        mica__stored *t;
        MICA_TRY(mica__build_tensor(file, &t));
        MICA_TRY(mica__build_name(file, "tensor name", j->string, j->length, &t->name));
        MICA_TRY(read_entry(file, j, t));
    }
    MICA_TRY(mica__json_status(j));
    return mica__json_expect(j, MICA__JSON_END, "something follows the header's object");
}

static int by_offset(const void *a, const void *b)
{
    const mica__stored *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static mica_status place_tensors(mica__file *file, int map, uint64_t data_at)
{
    const mica__span span = file->maps[map].span;
    const uint64_t room = span.size - data_at;
    uint64_t at = 0;
    if (file->n_tensors > 1) qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_offset);
    for (size_t i = 0; i < file->n_tensors; i++) {
        mica__stored *t = &file->tensors[i];
        const uint64_t begin = t->offset, end = t->nbytes;
        if (end < begin || end > room)
            return mica__build_fail_tensor(
                file, t->name, "data_offsets %" PRIu64 " to %" PRIu64 " are not in the %" PRIu64 " bytes of data",
                begin, end, room);
        if (begin != at)
            return mica__build_fail_tensor(file, t->name, "data begin at %" PRIu64 ", %s at %" PRIu64, begin,
                                           begin < at ? "inside the tensor before, which ends" : "after a gap", at);
        size_t nbytes;
        MICA_TRY(mica__build_nbytes(file, t, &nbytes));
        if (nbytes != end - begin)
            return mica__build_fail_tensor(
                file, t->name, "its shape needs %zu bytes, data_offsets %" PRIu64 " to %" PRIu64 " hold %" PRIu64,
                nbytes, begin, end, end - begin);
        t->map = map;
        t->offset = data_at + begin;
        t->nbytes = nbytes;
        t->data = span.data + t->offset;
        mica__build_strides(t);
        at = end;
    }
    if (at != room)
        return mica__build_fail(file, "%" PRIu64 " bytes follow the last tensor, which ends at %" PRIu64, room - at,
                                data_at + at);
    return MICA_OK;
}

mica_status mica__safetensors_read(mica__file *file, int map)
{
    const mica__span span = file->maps[map].span;
    if (span.size < 8) return mica__build_fail(file, "%zu bytes are too few for a safetensors file", span.size);
    const uint64_t length = mica__load_u64(span.data);
    if (length > header_limit)
        return mica__build_fail(file, "a header of %" PRIu64 " bytes; at most %" PRIu64 " are allowed", length,
                                header_limit);
    if (length > span.size - 8)
        return mica__build_fail(file, "a header of %" PRIu64 " bytes in a file of %zu", length, span.size);
    if (length == 0 || span.data[8] != '{') return mica__build_fail(file, "the header does not begin with {");
    mica__json j;
    /* Depth 4: the header, a tensor, its shape, and one for unknown keys. */
    mica__json_begin(&j, file->path, span.data + 8, (size_t)length, 8, 4, 2 * (size_t)MICA__FILE_MAX_TENSORS);
    mica_status status = read_header(file, &j);
    mica__json_end(&j);
    if (status == MICA_OK) status = place_tensors(file, map, 8 + length);
    return status;
}
