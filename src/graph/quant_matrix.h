/* The matrix of QMATMUL and QROWS, from attributes and operands. */
#ifndef MICA_GRAPH_QUANT_MATRIX_H
#define MICA_GRAPH_QUANT_MATRIX_H

#include "graph/attrs.h"
#include "quant/quant.h"

/* The matrix without addresses, for checks before memory exists. scales: the dtype
 * of the scales, or -1. */
static inline mica__quant_matrix mica__quant_matrix_of(const mica__attr_quant *a, int scales)
{
    return (mica__quant_matrix){.id = (mica__quant_id)a->format,
                                .rows = a->rows,
                                .cols = a->cols,
                                .scale_type = scales < 0 ? MICA__QUANT_COUNT : mica__quant_of_dtype((mica_dtype)scales),
                                .scale_divides = a->scale_divides != 0,
                                .bits = (int)a->bits,
                                .group = (int)a->group};
}

/* Number of arrays (scales, biases) that a format has besides its data. */
static inline int mica__quant_extras(mica__quant_id id)
{
    return id == MICA__QUANT_AFFINE ? 2 : id == MICA__QUANT_HF_TERNARY ? 1 : 0;
}

#endif
