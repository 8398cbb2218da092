/* Panel formats: 16 rows of a matrix interleaved, in the order in which kernels read them. */
#ifndef MICA_QUANT_PANEL_H
#define MICA_QUANT_PANEL_H

#include "quant/quant.h"

/* Elements [from, from + n) of row r; from is a multiple of 256. codes: the integers;
 * unpack: the integers times their scale (`scale` if the matrix has one scale). */
void mica__panel_codes(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, int8_t *codes);
void mica__panel_unpack(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, float scale, float *out);
/* Packs finite values; `top` is their largest magnitude. */
void mica__panel_pack(mica__quant_id id, const float *x, int64_t rows, int64_t cols, float top, void *out);
size_t mica__panel_first_bad(mica__quant_id id, const void *blocks, size_t n_blocks);

#endif
