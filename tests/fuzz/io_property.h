/* Properties that must hold for every model file that was read successfully, whatever its bytes. */
#ifndef MICA_FUZZ_IO_PROPERTY_H
#define MICA_FUZZ_IO_PROPERTY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/model_file.h"

static inline void must(bool held, const char *what)
{
    if (held) return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

/* All bytes can be read, sizes are consistent, and each tensor is found by its name. */
static inline void check_file(const mica__file *file)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < mica__file_count(file); i++) {
        const mica__stored *t = mica__file_tensor(file, i);
        size_t nbytes;
        must(mica__quant_nbytes(t->type, t->ndim, t->shape, &nbytes) == MICA__FIT_OK && nbytes == t->nbytes,
             "a tensor has the bytes of its shape");
        must(mica__file_find(file, t->name) == t, "a name finds its tensor");
        for (size_t k = 0; k < t->nbytes; k++) sum += ((const uint8_t *)t->data)[k]; /* for ASan */
        const mica__quant_matrix m = {
            .id = t->type, .rows = 1, .cols = t->ndim ? t->shape[t->ndim - 1] : 1, .data = t->data};
        float row[1024];
        if (t->nbytes && m.cols <= 1024 && !mica__quant_get(t->type)->tail &&
            mica__quant_matrix_check(&m, "fuzz") == MICA_OK)
            mica__quant_unpack_row(&m, 0, row);
    }
    for (size_t i = 0; i < mica__file_meta_count(file); i++) {
        const mica__meta *m = mica__file_meta(file, i);
        must(mica__file_meta_find(file, m->key) == m, "a key finds its entry");
        for (size_t k = 0; k < m->nbytes; k++) sum += ((const uint8_t *)m->data)[k];
        const char *text;
        size_t at = 0, length, n = 0;
        while (mica__meta_next_string(m, &at, &text, &length)) n++;
        if (m->type == MICA__META_ARRAY && m->item == MICA__META_STRING)
            must(n == m->count && at == m->nbytes, "an array has its strings");
        int64_t whole;
        double real;
        (void)mica__meta_item_i64(m, 0, &whole);
        (void)mica__meta_item_f64(m, m->count, &real);
    }
    static volatile uint32_t sink;
    sink = sink + sum;
}

/* Reads bytes as a file; a failure must have an error message and leak nothing. */
static inline void read_bytes(const uint8_t *data, size_t size)
{
    const int64_t live = mica__alloc_live();
    for (int check = 0; check < 2; check++) {
        mica__file *file = NULL;
        const mica_status status = mica__file_from_memory(
            "fuzz", data, size, &(mica__file_options){.check = check, .inflate_limit = 1 << 20}, &file);
        must((status == MICA_OK) == (file != NULL), "a file comes with success");
        if (file) check_file(file);
        else
            must(strncmp(mica_last_error(), "fuzz: ", 6) == 0 || status == MICA_ERR_MEMORY,
                 "an error message names the file");
        mica__file_close(file);
    }
    must(mica__alloc_live() == live, "nothing is left");
}

#endif
