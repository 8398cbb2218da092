/* The affine format of MLX; used by quant.c. */
#ifndef MICA_QUANT_AFFINE_H
#define MICA_QUANT_AFFINE_H

#include "quant/quant.h"

mica_status mica__affine_check(const mica__quant_matrix *m, const char *what);
/* Unpacks elements [from, from + n) of row r. */
void mica__affine_unpack(const mica__quant_matrix *m, int64_t r, int64_t from, int64_t n, float *out);

#endif
