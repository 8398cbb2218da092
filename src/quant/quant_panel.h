/* Formats of panels: 16 rows of a matrix side by side, as kernels read them. */
#ifndef MICA_QUANT_PANEL_H
#define MICA_QUANT_PANEL_H

#include "quant/quant.h"

/* Elements [from, from + n) of row r, from a multiple of 256: the integers, and
 * these times their scale (the matrix's own one where it has one). */
void mica__panel_codes(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, int8_t *codes);
void mica__panel_unpack(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, float scale, float *out);
/* Finite values of at most `top` in size. */
void mica__panel_pack(mica__quant_id id, const float *x, int64_t rows, int64_t cols, float top, void *out);
size_t mica__panel_first_bad(mica__quant_id id, const void *blocks, size_t n_blocks);

#endif
