/* Reads the golden files of tests/golden. Owns the text format, which tests/golden/golden_format.py
 * describes; does not depend on ops. A file that violates the format ends the test, and the message
 * names the line. The functions are static in a header because a test program is one file. */
#ifndef MICA_TESTS_GOLDEN_FILE_H
#define MICA_TESTS_GOLDEN_FILE_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica.h"
#include "test.h"

enum { GOLDEN_MAX_ARRAYS = 8, GOLDEN_MAX_ATTRS = 8, GOLDEN_MAX_VALUES = 8 };

typedef enum golden_kind { GOLDEN_NULL, GOLDEN_SCALAR, GOLDEN_ARRAY } golden_kind;

typedef struct golden_array {
    golden_kind kind;
    double scalar;               /* GOLDEN_SCALAR                              */
    mica_dtype dtype;
    int ndim;
    int64_t shape[MICA_MAX_DIMS];
    size_t n;                    /* elements                                   */
    void *data;                  /* row-major, malloc                          */
} golden_array;

typedef struct golden_list {
    golden_array items[GOLDEN_MAX_ARRAYS];
    size_t n;
} golden_list;

typedef struct golden_attr {
    char key[20];
    int n;
    int64_t i[GOLDEN_MAX_VALUES];
    double f[GOLDEN_MAX_VALUES]; /* the same as doubles                        */
} golden_attr;

typedef struct golden_case {
    char name[96], op[32];
    golden_attr attrs[GOLDEN_MAX_ATTRS];
    int n_attrs;
    golden_list in, out, cot, grad, cot2, grad2;
    int wrt[GOLDEN_MAX_ARRAYS];
    size_t n_wrt;
    double rtol, atol, grad_rtol, grad_atol;
    bool signed_zero, nan_free;
    int status;                  /* 0: must work                               */
} golden_case;

typedef struct golden_file {
    char *text, *next;           /* next: where reading goes on                */
    const char *name;
    int line;
} golden_file;

/* ---------------------------------------------------------- attributes ---- */

static const golden_attr *golden_find(const golden_case *c, const char *key)
{
    for (int i = 0; i < c->n_attrs; i++)
        if (strcmp(c->attrs[i].key, key) == 0) return &c->attrs[i];
    return NULL;
}

static int64_t golden_int(const golden_case *c, const char *key, int64_t otherwise)
{
    const golden_attr *a = golden_find(c, key);
    return a && a->n > 0 ? a->i[0] : otherwise;
}

static double golden_float(const golden_case *c, const char *key, double otherwise)
{
    const golden_attr *a = golden_find(c, key);
    return a && a->n > 0 ? a->f[0] : otherwise;
}

/* NULL when there is no such attribute. */
static const int64_t *golden_ints(const golden_case *c, const char *key, int *n)
{
    const golden_attr *a = golden_find(c, key);
    if (n) *n = a ? a->n : 0;
    return a ? a->i : NULL;
}

/* -------------------------------------------------------------- values ---- */

/* Row-major bytes in a block of exactly their size, so that ASan reports an over-read. */
static void *golden_alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) {
        puts("golden: out of memory");
        abort();
    }
    return p;
}

static void golden_store(golden_array *a, size_t i, uint64_t bits)
{
    const uint8_t b1 = (uint8_t)bits;
    const uint16_t b2 = (uint16_t)bits;
    const uint32_t b4 = (uint32_t)bits;
    switch (mica_dtype_size(a->dtype)) {
    case 1: memcpy((char *)a->data + i, &b1, 1); break;
    case 2: memcpy((char *)a->data + 2 * i, &b2, 2); break;
    case 4: memcpy((char *)a->data + 4 * i, &b4, 4); break;
    default: memcpy((char *)a->data + 8 * i, &bits, 8); break;
    }
}

static bool golden_is_float(mica_dtype d) { return d >= MICA_F16; }

/* The element of a float array. */
static double golden_get_float(mica_dtype dtype, const void *data, size_t i)
{
    uint16_t h;
    float f;
    double d;
    switch (dtype) {
    case MICA_F16: memcpy(&h, (const char *)data + 2 * i, 2); return (double)mica_f16_to_f32(h);
    case MICA_BF16: memcpy(&h, (const char *)data + 2 * i, 2); return (double)mica_bf16_to_f32(h);
    case MICA_F32: memcpy(&f, (const char *)data + 4 * i, 4); return (double)f;
    default: memcpy(&d, (const char *)data + 8 * i, 8); return d;
    }
}

/* The element of an integer or bool array, in decimal. */
static void golden_print_int(char text[24], mica_dtype dtype, const void *data, size_t i)
{
    const size_t size = mica_dtype_size(dtype);
    uint64_t u = 0;
    for (size_t b = 0; b < size; b++) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        u |= (uint64_t)((const uint8_t *)data)[i * size + b] << (8 * b);
#else
        u = u << 8 | ((const uint8_t *)data)[i * size + b];
#endif
    }
    const bool is_signed = dtype == MICA_I8 || dtype == MICA_I16 || dtype == MICA_I32 || dtype == MICA_I64;
    if (is_signed && size < 8 && u >> (8 * size - 1)) u |= ~UINT64_C(0) << (8 * size);
    if (is_signed) snprintf(text, 24, "%" PRId64, (int64_t)u);
    else snprintf(text, 24, "%" PRIu64, u);
}

/* -------------------------------------------------------------- reading --- */

static void golden_bad(const golden_file *f, const char *what)
{
    printf("%s:%d: %s\n", f->name, f->line, what);
    abort();
}

static bool golden_dtype(const char *word, mica_dtype *out)
{
    for (int d = 0; d <= MICA_F64; d++) {
        if (strcmp(mica_dtype_name((mica_dtype)d), word) != 0) continue;
        *out = (mica_dtype)d;
        return true;
    }
    return false;
}

/* The next word of a line; "" at its end. */
static char *golden_word(char **line)
{
    char *p = *line + strspn(*line, " ");
    char *end = p + strcspn(p, " ");
    *line = *end ? end + 1 : end;
    *end = 0;
    return p;
}

static uint64_t golden_hex(const golden_file *f, const char *digits, size_t n, size_t width)
{
    uint64_t bits = 0;
    if (n > width) golden_bad(f, "too many hex digits");
    for (size_t i = 0; i < width; i++) {
        const char c = i < n ? digits[i] : '0';
        if (!strchr("0123456789abcdef", c) || !c) golden_bad(f, "not a hex digit");
        bits = bits << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return bits;
}

static void golden_read_floats(const golden_file *f, golden_array *a, char *line)
{
    const size_t width = 2 * mica_dtype_size(a->dtype), length = strlen(line);
    if (length == a->n * width && !strchr(line, ' ')) {
        for (size_t i = 0; i < a->n; i++) golden_store(a, i, golden_hex(f, line + i * width, width, width));
        return;
    }
    for (size_t i = 0; i < a->n; i++) {
        const char *word = golden_word(&line);
        if (!*word) golden_bad(f, "too few elements");
        golden_store(a, i, golden_hex(f, word, strlen(word), width));
    }
    if (*golden_word(&line)) golden_bad(f, "too many elements");
}

static void golden_read_ints(const golden_file *f, golden_array *a, char *line)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *word = golden_word(&line);
        if (!*word) golden_bad(f, "too few elements");
        const uint64_t bits = *word == '-' ? (uint64_t)strtoll(word, NULL, 10) : strtoull(word, NULL, 10);
        golden_store(a, i, bits);
    }
    if (*golden_word(&line)) golden_bad(f, "too many elements");
}

/* The finaliser of splitmix64. */
static uint64_t golden_mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The bits of a number that the float dtype holds exactly. */
static uint64_t golden_float_bits(mica_dtype dtype, double value)
{
    const float f = (float)value;
    uint32_t u4;
    uint64_t u8;
    memcpy(&u4, &f, 4);
    memcpy(&u8, &value, 8);
    switch (dtype) {
    case MICA_F16: return mica_f16_from_f32(f);
    case MICA_BF16: return mica_bf16_from_f32(f);
    case MICA_F32: return u4;
    default: return u8;
    }
}

/* An array made by rule: seed, low, high, shift. */
static void golden_generate(golden_array *a, char *line)
{
    const uint64_t seed = strtoull(golden_word(&line), NULL, 10);
    const int64_t low = strtoll(golden_word(&line), NULL, 10), high = strtoll(golden_word(&line), NULL, 10);
    const int shift = atoi(golden_word(&line));
    for (size_t i = 0; i < a->n; i++) {
        const int64_t value = low + (int64_t)(golden_mix(seed + i) % (uint64_t)(high - low));
        golden_store(a, i,
                     golden_is_float(a->dtype) ? golden_float_bits(a->dtype, ldexp((double)value, -shift))
                                               : (uint64_t)value);
    }
}

static void golden_read_array(const golden_file *f, golden_list *list, char *line)
{
    if (list->n == GOLDEN_MAX_ARRAYS) golden_bad(f, "too many arrays");
    golden_array *a = &list->items[list->n++];
    const char *word = golden_word(&line);
    if (strcmp(word, "null") == 0) return;
    if (strcmp(word, "scalar") == 0) {
        a->kind = GOLDEN_SCALAR;
        a->scalar = strtod(golden_word(&line), NULL);
        return;
    }
    a->kind = GOLDEN_ARRAY;
    if (!golden_dtype(word, &a->dtype)) golden_bad(f, "no such dtype");
    a->n = 1;
    while (word = golden_word(&line), *word && strcmp(word, ":") != 0 && strcmp(word, "gen") != 0) {
        if (a->ndim == MICA_MAX_DIMS) golden_bad(f, "too many dimensions");
        a->shape[a->ndim] = strtoll(word, NULL, 10);
        a->n *= (size_t)a->shape[a->ndim++];
    }
    a->data = golden_alloc(a->n, mica_dtype_size(a->dtype));
    if (a->n == 0) return;
    if (strcmp(word, "gen") == 0) golden_generate(a, line);
    else if (golden_is_float(a->dtype)) golden_read_floats(f, a, line);
    else golden_read_ints(f, a, line);
}

static void golden_read_attr(const golden_file *f, golden_case *c, char *line, bool is_float)
{
    if (c->n_attrs == GOLDEN_MAX_ATTRS) golden_bad(f, "too many attributes");
    golden_attr *a = &c->attrs[c->n_attrs++];
    snprintf(a->key, sizeof a->key, "%s", golden_word(&line));
    for (const char *word; word = golden_word(&line), *word; a->n++) {
        if (a->n == GOLDEN_MAX_VALUES) golden_bad(f, "too many values");
        a->f[a->n] = strtod(word, NULL);
        a->i[a->n] = is_float ? 0 : strtoll(word, NULL, 10);
    }
}

static void golden_read_tol(char *line, double *rtol, double *atol)
{
    *rtol = strtod(golden_word(&line), NULL);
    *atol = strtod(golden_word(&line), NULL);
}

static void golden_free_case(golden_case *c)
{
    golden_list *lists[] = {&c->in, &c->out, &c->cot, &c->grad, &c->cot2, &c->grad2};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (size_t j = 0; j < lists[i]->n; j++) free(lists[i]->items[j].data);
    memset(c, 0, sizeof *c);
}

/* One line of a case; false at its end. */
static bool golden_read_line(const golden_file *f, golden_case *c, char *line)
{
    const char *key = golden_word(&line);
    if (strcmp(key, "end") == 0) return false;
    if (strcmp(key, "op") == 0) snprintf(c->op, sizeof c->op, "%s", line);
    else if (strcmp(key, "i") == 0) golden_read_attr(f, c, line, false);
    else if (strcmp(key, "f") == 0) golden_read_attr(f, c, line, true);
    else if (strcmp(key, "in") == 0) golden_read_array(f, &c->in, line);
    else if (strcmp(key, "out") == 0) golden_read_array(f, &c->out, line);
    else if (strcmp(key, "cot") == 0) golden_read_array(f, &c->cot, line);
    else if (strcmp(key, "grad") == 0) golden_read_array(f, &c->grad, line);
    else if (strcmp(key, "cot2") == 0) golden_read_array(f, &c->cot2, line);
    else if (strcmp(key, "grad2") == 0) golden_read_array(f, &c->grad2, line);
    else if (strcmp(key, "tol") == 0) golden_read_tol(line, &c->rtol, &c->atol);
    else if (strcmp(key, "gtol") == 0) golden_read_tol(line, &c->grad_rtol, &c->grad_atol);
    else if (strcmp(key, "signed_zero") == 0) c->signed_zero = true;
    else if (strcmp(key, "nan_free") == 0) c->nan_free = true;
    else if (strcmp(key, "status") == 0) c->status = atoi(line);
    else if (strcmp(key, "wrt") == 0) {
        for (const char *word; word = golden_word(&line), *word;) {
            if (c->n_wrt == GOLDEN_MAX_ARRAYS) golden_bad(f, "too many wrt");
            c->wrt[c->n_wrt++] = atoi(word);
        }
    } else golden_bad(f, "unknown key");
    return true;
}

/* The next case into *c, whose arrays golden_free_case frees; false at the end. */
static bool golden_next(golden_file *f, golden_case *c)
{
    memset(c, 0, sizeof *c);
    c->grad_rtol = -1.0;
    while (*f->next) {
        char *line = f->next, *end = line + strcspn(line, "\n");
        f->next = *end ? end + 1 : end;
        f->line++;
        *end = 0;
        if (*line == '#') continue;
        if (strncmp(line, "case ", 5) == 0) {
            if (c->name[0]) golden_bad(f, "case in a case");
            snprintf(c->name, sizeof c->name, "%s", line + 5);
        } else if (!c->name[0]) golden_bad(f, "not in a case");
        else if (!golden_read_line(f, c, line)) {
            if (c->grad_rtol < 0) c->grad_rtol = c->rtol, c->grad_atol = c->atol;
            if (c->cot.n && (c->cot.n != c->out.n || c->grad.n != c->n_wrt)) golden_bad(f, "incomplete gradient case");
            if (c->cot2.n && (c->cot2.n != c->n_wrt || c->grad2.n != c->n_wrt))
                golden_bad(f, "incomplete second order");
            return true;
        }
    }
    if (c->name[0]) golden_bad(f, "the file ends in a case");
    return false;
}

/* The text of a file, NUL-terminated; NULL if it cannot be read. */
static char *golden_slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    size_t n = 0, cap = 1 << 16;
    char *text = golden_alloc(cap, 1);
    for (size_t got; (got = fread(text + n, 1, cap - n - 1, file)) > 0;) {
        n += got;
        if (cap - n > 1) continue;
        char *grown = golden_alloc(cap *= 2, 1);
        memcpy(grown, text, n);
        free(text);
        text = grown;
    }
    text[n] = 0;
    fclose(file);
    return text;
}

#endif
