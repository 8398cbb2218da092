/* Helpers for the tests of the public interface: open engines, make small arrays, read values back,
 * check failed calls, capture printed output. */
#ifndef MICA_TEST_API_H
#define MICA_TEST_API_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mica.h"
#include "on_device.h"
#include "test.h"

#define UNUSED __attribute__((unused))
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Two arguments: the number of axes and their sizes. */
#define SHAPE(...) \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
/* A list of arrays and its length. */
#define ARRAYS(...) (mica_array *[]){__VA_ARGS__}, sizeof((mica_array *[]){__VA_ARGS__}) / sizeof(mica_array *)

#define EXPECT_OK(call) EXPECT_MSG((call) == MICA_OK, "%s: %s", #call, mica_last_error())
#define CHECK_OK(call) CHECK_MSG((call) == MICA_OK, "%s: %s", #call, mica_last_error())

/* The call returns this status, and its error message contains part. */
#define EXPECT_FAILS(call, want, part) expect_fails(__FILE__, __LINE__, #call, call, want, part)

static UNUSED bool expect_fails(const char *file, int line, const char *call, mica_status got, mica_status want,
                                const char *part)
{
    if (got != want)
        return test_fail(file, line, "%s gives %d \"%s\", not %d \"%s\" (%s)", call, (int)got, mica_status_text(got),
                         (int)want, mica_status_text(want), mica_last_error());
    if (!strstr(mica_last_error(), part))
        return test_fail(file, line, "%s: the error message is \"%s\", without \"%s\"", call, mica_last_error(), part);
    return true;
}

/* -------------------------------------------------------------- engines ---- */

static const char *const backends[] UNUSED = {"cpu", "ref"};

static UNUSED mica_engine_options options_for(const char *backend, int threads)
{
    mica_engine_options o;
    mica_engine_options_init(&o);
    o.backend = device_for(backend);
    o.threads = threads;
    return o;
}

static UNUSED mica_engine *open_with(const mica_engine_options *o)
{
    mica_engine *e = NULL;
    EXPECT_OK(mica_open(o, &e));
    if (!e) abort(); /* no test can run without an engine */
    return e;
}

static UNUSED mica_engine *open_engine(const char *backend)
{
    const mica_engine_options o = options_for(backend, 2);
    return open_with(&o);
}

static UNUSED mica_stats stats_of(const mica_engine *e)
{
    mica_stats s = {.struct_size = sizeof s};
    mica_engine_stats(e, &s);
    return s;
}

/* --------------------------------------------------------------- arrays ---- */

/* f32 (n): first, first + 1, ... */
static UNUSED mica_array *count_up(mica_scope *s, int64_t n, float first)
{
    float *values = malloc(((size_t)n + 1) * sizeof *values);
    for (int64_t i = 0; i < n; i++) values[i] = first + (float)i;
    mica_array *a = mica_from_data(s, MICA_F32, 1, &n, values);
    free(values);
    return a;
}

static UNUSED mica_array *count_up_2d(mica_scope *s, int64_t rows, int64_t cols)
{
    return mica_reshape(s, count_up(s, rows * cols, 0), SHAPE(rows, cols));
}

static UNUSED double item_of(mica_array *a)
{
    double value = -12345;
    EXPECT_OK(mica_item(a, &value));
    return value;
}

/* Element i, counted in row-major order, of an evaluated f32 array. */
static UNUSED float element(mica_array *a, int64_t i)
{
    const char *data = mica_data(a);
    if (!data || mica_array_dtype(a) != MICA_F32 || i >= mica_array_size(a)) return -12345;
    const int64_t *shape = mica_array_shape(a), *strides = mica_array_strides(a);
    int64_t at = 0;
    for (int d = mica_array_ndim(a) - 1; d >= 0; i /= shape[d], d--) at += i % shape[d] * strides[d];
    float value;
    memcpy(&value, data + at * (int64_t)sizeof value, sizeof value);
    return value;
}

/* Compares the f32 elements of a, in row-major order, with these values. */
#define EXPECT_VALUES(a, ...) \
    expect_values(__FILE__, __LINE__, #a, a, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static UNUSED bool expect_values(const char *file, int line, const char *what, mica_array *a, const double *want,
                                 size_t n)
{
    if (!a || !mica_array_is_ready(a)) return test_fail(file, line, "%s is not ready: %s", what, mica_last_error());
    if (mica_array_size(a) != (int64_t)n)
        return test_fail(file, line, "%s has %lld elements, not %zu", what, (long long)mica_array_size(a), n);
    for (size_t i = 0; i < n; i++)
        if (!test_close((double)element(a, (int64_t)i), want[i], 1e-5, 1e-6))
            return test_fail(file, line, "element %zu of %s is %g, not %g", i, what, (double)element(a, (int64_t)i),
                             want[i]);
    return true;
}

/* Both are evaluated, have the same shape and close f32 elements. */
static UNUSED bool close_arrays(mica_array *a, mica_array *b)
{
    if (mica_array_ndim(a) != mica_array_ndim(b) || mica_array_size(a) != mica_array_size(b)) return false;
    for (int d = 0; d < mica_array_ndim(a); d++)
        if (mica_array_shape(a)[d] != mica_array_shape(b)[d]) return false;
    for (int64_t i = 0; i < mica_array_size(a); i++)
        if (!test_close((double)element(a, i), (double)element(b, i), 1e-5, 1e-6)) return false;
    return true;
}

/* ----------------------------------------------------- foreign memory ------ */

/* Counts how often memory was released, and releases of other addresses (strangers). */
typedef struct released {
    void *data;
    int times, strangers;
} released;

static UNUSED void count_release(void *data, void *user)
{
    released *r = user;
    r->times++;
    r->strangers += data != r->data;
}

/* --------------------------------------------------- what is printed ------- */

typedef struct silence {
    int out, err;
    FILE *file;
} silence;

/* Redirects stdout and stderr of the process to a file. */
static UNUSED silence listen_begin(void)
{
    fflush(NULL);
    silence q = {dup(STDOUT_FILENO), dup(STDERR_FILENO), tmpfile()};
    if (!q.file) abort();
    dup2(fileno(q.file), STDOUT_FILENO);
    dup2(fileno(q.file), STDERR_FILENO);
    return q;
}

/* Ends the redirection. Returns the printed text, to be freed. */
static UNUSED char *listen_end(silence q)
{
    fflush(NULL);
    dup2(q.out, STDOUT_FILENO);
    dup2(q.err, STDERR_FILENO);
    close(q.out);
    close(q.err);
    const long n = fseek(q.file, 0, SEEK_END) == 0 ? ftell(q.file) : 0;
    char *text = calloc(1, (size_t)n + 1);
    rewind(q.file);
    if (fread(text, 1, (size_t)n, q.file) != (size_t)n) text[0] = '\0';
    fclose(q.file);
    return text;
}

/* ------------------------------------------------- names of the header ----- */

/* A whole file, to be freed; NULL if it cannot be read. */
static UNUSED char *file_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    const long n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    char *text = calloc(1, (size_t)n + 1);
    rewind(f);
    if (fread(text, 1, (size_t)n, f) != (size_t)n) text[0] = '\0';
    fclose(f);
    return text;
}

/* Several files concatenated; NULL if one cannot be read. */
static UNUSED char *files_text(const char *const *paths, size_t n)
{
    char *all = calloc(1, 1);
    for (size_t i = 0; i < n; i++) {
        char *text = file_text(paths[i]);
        if (!text) {
            free(all);
            return NULL;
        }
        all = realloc(all, strlen(all) + strlen(text) + 1);
        strcat(all, text);
        free(text);
    }
    return all;
}

static UNUSED bool in_name(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns whether the text contains this word. */
static UNUSED bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !in_name(at[-1])) && !in_name(at[n])) return true;
    return false;
}

/* Calls seen() for each function that a header declares. Returns their number. */
static UNUSED int each_public_function(const char *path, void (*seen)(const char *name, void *user), void *user)
{
    char *header = file_text(path);
    int n = 0;
    for (char *at = header ? strstr(header, "\nMICA_API") : NULL; at; at = strstr(at + 1, "\nMICA_API")) {
        char *paren = strchr(at, '('), *from = paren;
        if (!paren) break;
        while (from > at && in_name(from[-1])) from--;
        *paren = '\0';
        seen(from, user);
        *paren = '(';
        n++;
    }
    free(header);
    return n;
}

#endif
