/* The JSON files beside a model as metadata. Members of objects become keys with dots, lists of
 * one scalar type become arrays, items of other lists become keys with numbers. null is absent.
 * Everything is copied, so the files are closed afterwards. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "io/json.h"
#include "io/model_build.h"

enum { FOLDER_JSON_MAX = 64 << 20, FOLDER_JSON_KEYS = 1000000 };

typedef struct flat_json {
    mica__file *file;
    mica__json j;
    size_t length;                     /* of the key of the value being read */
    char key[MICA__FILE_MAX_NAME + 1];
} flat_json;

/* --------------------------------------------------------------- entries --- */

static mica_status flat_add(flat_json *f, mica__meta_type type, mica__meta_type item, uint64_t count, const void *data,
                            size_t nbytes)
{
    mica__meta *m;
    const char *key;
    MICA_TRY(mica__build_name(f->file, "metadata key", f->key, f->length, &key));
    MICA_TRY(mica__build_meta(f->file, &m));
    *m = (mica__meta){.key = key, .type = type, .item = item, .count = count, .data = data, .nbytes = nbytes};
    return MICA_OK;
}

static mica_status flat_copy(flat_json *f, mica__meta_type type, const void *data, size_t nbytes)
{
    const void *copy = mica__arena_copy(&f->file->arena, data, nbytes);
    if (!copy) return mica__fail_memory("metadata", nbytes);
    return flat_add(f, type, 0, 1, copy, nbytes);
}

static mica_status push_part(flat_json *f, const char *text, size_t length)
{
    if (length + 1 > MICA__FILE_MAX_NAME - f->length) return mica__json_fail(&f->j, "the joined keys are too long");
    if (length && memchr(text, 0, length)) return mica__json_fail(&f->j, "a key contains a zero byte");
    if (f->length) f->key[f->length++] = '.';
    memcpy(f->key + f->length, text, length);
    f->length += length;
    return MICA_OK;
}

/* ----------------------------------------------------------------- lists --- */

/* The type of the items of a list, their number and their size in bytes.
 * item MICA__META_ARRAY: the items do not have one scalar type. */
typedef struct flat_list {
    mica__meta_type item;
    uint64_t count;
    size_t nbytes;
} flat_list;

static mica__meta_type token_type(const mica__json *j, mica__json_token token)
{
    int64_t whole;
    switch (token) {
    case MICA__JSON_STRING: return MICA__META_STRING;
    case MICA__JSON_TRUE:
    case MICA__JSON_FALSE: return MICA__META_BOOL;
    case MICA__JSON_NUMBER: return mica__json_is_i64(j, &whole) ? MICA__META_I64 : MICA__META_F64;
    default: return MICA__META_ARRAY;
    }
}

static flat_list look_ahead(mica__json *j)
{
    flat_list list = {.item = MICA__META_I64};
    for (mica__json_token t; (t = mica__json_next(j)) != MICA__JSON_ARRAY_END && t != MICA__JSON_ERROR; list.count++) {
        const mica__meta_type type = token_type(j, t);
        const bool numbers = (type == MICA__META_I64 || type == MICA__META_F64) &&
                             (list.item == MICA__META_I64 || list.item == MICA__META_F64);
        if (list.count == 0) list.item = type;
        else if (numbers && type != list.item) list.item = MICA__META_F64;
        else if (type != list.item) list.item = MICA__META_ARRAY;
        if (list.item == MICA__META_ARRAY) break;
        list.nbytes += type == MICA__META_STRING ? 8 + j->length : mica__meta_size(type);
    }
    return list;
}

/* Stores the value of the last token at p; *n becomes its size in bytes. */
static mica_status store_item(mica__json *j, mica__json_token token, mica__meta_type type, uint8_t *p, size_t *n)
{
    int64_t whole = 0;
    double real = 0;
    switch (type) {
    case MICA__META_STRING:
        for (int i = 0; i < 8; i++) p[i] = (uint8_t)((uint64_t)j->length >> 8 * i);
        if (j->length) memcpy(p + 8, j->string, j->length);
        *n = 8 + j->length;
        return MICA_OK;
    case MICA__META_BOOL: *p = token == MICA__JSON_TRUE, *n = 1; return MICA_OK;
    case MICA__META_I64:
        (void)mica__json_is_i64(j, &whole);
        memcpy(p, &whole, *n = 8);
        return MICA_OK;
    default:
        MICA_TRY(mica__json_f64(j, &real));
        memcpy(p, &real, *n = 8);
        return MICA_OK;
    }
}

static mica_status flat_value(flat_json *f, mica__json_token token);

static mica_status flat_numbered(flat_json *f)
{
    const size_t length = f->length;
    mica__json_token t;
    for (uint64_t i = 0; (t = mica__json_next(&f->j)) != MICA__JSON_ARRAY_END && t != MICA__JSON_ERROR; i++) {
        char number[24];
        const int n = snprintf(number, sizeof number, "%llu", (unsigned long long)i);
        MICA_TRY(push_part(f, number, (size_t)n));
        MICA_TRY(flat_value(f, t));
        f->length = length;
    }
    return mica__json_status(&f->j);
}

static mica_status flat_list_value(flat_json *f)
{
    mica__json *j = &f->j;
    const mica__json_mark mark = mica__json_save(j);
    const flat_list list = look_ahead(j);
    MICA_TRY(mica__json_status(j));
    mica__json_restore(j, mark);
    if (list.item == MICA__META_ARRAY) return flat_numbered(f);
    uint8_t *data = mica__arena_alloc(&f->file->arena, list.nbytes);
    if (!data) return mica__fail_memory("metadata", list.nbytes);
    size_t at = 0, n = 0;
    for (mica__json_token t; (t = mica__json_next(j)) != MICA__JSON_ARRAY_END && t != MICA__JSON_ERROR; at += n)
        MICA_TRY(store_item(j, t, list.item, data + at, &n));
    MICA_TRY(mica__json_status(j));
    return flat_add(f, MICA__META_ARRAY, list.item, list.count, data, list.nbytes);
}

/* ---------------------------------------------------------------- values --- */

static mica_status flat_object(flat_json *f)
{
    const size_t length = f->length;
    while (mica__json_next(&f->j) == MICA__JSON_KEY) {
        MICA_TRY(push_part(f, f->j.string, f->j.length));
        MICA_TRY(flat_value(f, mica__json_next(&f->j)));
        f->length = length;
    }
    return mica__json_status(&f->j);
}

static mica_status flat_value(flat_json *f, mica__json_token token)
{
    uint8_t value[8];
    size_t n;
    switch (token) {
    case MICA__JSON_OBJECT: return flat_object(f);
    case MICA__JSON_ARRAY: return flat_list_value(f);
    case MICA__JSON_STRING: return flat_copy(f, MICA__META_STRING, f->j.string, f->j.length);
    case MICA__JSON_NUMBER:
    case MICA__JSON_TRUE:
    case MICA__JSON_FALSE: {
        const mica__meta_type type = token_type(&f->j, token);
        MICA_TRY(store_item(&f->j, token, type, value, &n));
        return flat_copy(f, type, value, n);
    }
    default: return mica__json_status(&f->j); /* null, or a failure */
    }
}

mica_status mica__json_meta(mica__file *file, const char *what, const char *prefix, const void *text, size_t size)
{
    flat_json *f = mica__alloc(sizeof *f);
    if (!f) return mica__fail_memory("the metadata of a model", sizeof *f);
    f->file = file;
    f->length = strlen(prefix);
    memcpy(f->key, prefix, f->length);
    mica__json_begin(&f->j, what, text, size, 0, MICA__JSON_DEPTH, FOLDER_JSON_KEYS);
    mica_status status = mica__json_expect(&f->j, MICA__JSON_OBJECT, "it must be an object");
    if (status == MICA_OK) status = flat_object(f);
    if (status == MICA_OK) status = mica__json_expect(&f->j, MICA__JSON_END, "something follows the end");
    mica__json_end(&f->j);
    mica__free(f);
    return status;
}

/* ---------------------------------------------------------------- folder --- */

/* Reads a file of the folder; map->from_file is false if it does not exist. */
static mica_status map_beside(const char *folder, const char *name, char *path, size_t cap, mica__map *map)
{
    struct stat s;
    mica__map_wrap(NULL, 0, map);
    snprintf(path, cap, "%s/%s", folder, name);
    if (stat(path, &s) != 0 && (errno == ENOENT || errno == ENOTDIR)) return MICA_OK;
    MICA_TRY(mica__map_read(path, map));
    if (map->span.size <= FOLDER_JSON_MAX) return MICA_OK;
    const size_t size = map->span.size;
    mica__map_close(map);
    return mica__fail(MICA_ERR_FORMAT, "%s: %zu bytes; at most %d are allowed", path, size, FOLDER_JSON_MAX);
}

/* Newer folders have the chat template in a separate file, which then has priority. */
static mica_status folder_template(mica__file *file, const char *folder, char *path, size_t cap)
{
    static const char key[] = "tokenizer_config.chat_template";
    mica__map map;
    MICA_TRY(map_beside(folder, "chat_template.jinja", path, cap, &map));
    if (!map.from_file) return MICA_OK;
    mica__meta *m = NULL;
    for (size_t i = 0; i < file->n_meta && !m; i++)
        if (strcmp(file->meta[i].key, key) == 0) m = &file->meta[i];
    mica_status status = m ? MICA_OK : mica__build_meta(file, &m);
    const void *copy = mica__arena_copy(&file->arena, map.span.data, map.span.size);
    if (status == MICA_OK && !copy) status = mica__fail_memory("metadata", map.span.size);
    if (status == MICA_OK)
        *m = (mica__meta){.key = key, .type = MICA__META_STRING, .count = 1, .data = copy, .nbytes = map.span.size};
    mica__map_close(&map);
    return status;
}

mica_status mica__folder_meta(mica__file *file, const char *folder)
{
    static const char *const names[] = {"config", "generation_config", "tokenizer_config"};
    const size_t cap = strlen(folder) + 40;
    char *path = mica__alloc(cap);
    if (!path) return mica__fail_memory("a path", cap);
    mica_status status = MICA_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && status == MICA_OK; i++) {
        char name[32];
        mica__map map;
        snprintf(name, sizeof name, "%s.json", names[i]);
        status = map_beside(folder, name, path, cap, &map);
        if (status == MICA_OK && map.from_file)
            status = mica__json_meta(file, path, names[i], map.span.data, map.span.size);
        mica__map_close(&map);
    }
    if (status == MICA_OK) status = folder_template(file, folder, path, cap);
    mica__free(path);
    return status == MICA_OK ? mica__build_tables(file) : status;
}
