/* SYNAPSES: what neurons hear through conductances that open with their source.
 *
 *   open = sigmoid(sigma (x[source] - mu))
 *   y (n, 2, cols):  for each column the sum of drive open, and of weight open
 *
 * A block of them: x (n, rows); sigma, mu, drive, weight (rows, cols), and synapse (k, c)
 * is heard by column c and listens to x[k].
 *
 * Lists, which cost what there is and nothing for what is not: x (n, sources); sigma, mu,
 * drive, weight (synapses), source (synapses) of i32 says what each listens to, and
 * first (cols + 1) of i32 that column c has first[c] ... first[c + 1] - 1. A source that is
 * not one of x, and a first that does not ascend from 0 to the number of synapses, are
 * MICA_ERR_INDEX.
 *
 * SYNAPSES_GRAD: the same inputs and then the gradient of y. Its result is one row: the
 * elements of dx, dsigma, dmu, ddrive and dweight. Openings are computed again.
 *
 * Nothing of the size (n, synapses) is kept by either.
 *
 * ref   everything in double.
 * cpu   f32 in f32, for operands whose last axis lies side by side; else ref. The gradient
 *       of a block is cut by rows of synapses, whose results nobody else writes; that
 *       of lists by x, in parts that depend on the shape alone, summed afterwards.
 * gpu   f32, f16 and bf16 of any strides, in f32. */
#ifndef MICA_KERNELS_SYNAPSES_H
#define MICA_KERNELS_SYNAPSES_H

#include "kernels/launch.h"

mica_status mica__synapses_ref(const mica__launch *launch);
mica_status mica__synapses_cpu(const mica__launch *launch);
mica_status mica__synapses_grad_ref(const mica__launch *launch);
mica_status mica__synapses_grad_cpu(const mica__launch *launch);
mica_status mica__synapses_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
mica_status mica__synapses_grad_gpu(const mica__gpu_launch *launch, mica__gpu_list *list);
size_t mica__synapses_grad_workspace(const mica__tensor *in, uint32_t n_in, const void *attr, const mica__spec *out);

/* Lists of SYNAPSES or SYNAPSES_GRAD: sources, and where lists begin. */
mica_status mica__synapses_check(const mica__launch *launch);
mica_status mica__synapses_bad_source(int64_t source, int64_t sources);
mica_status mica__synapses_bad_first(int64_t column, int64_t first, int64_t synapses);

enum { MICA__SYNAPSE_PARAMS = 4 };

/* What the kernels of a variant are given. Rows of x, ct and a block's parameters are as
 * many floats apart as said; elements of a row lie side by side. */
typedef struct mica__synapses {
    const float *x, *param[MICA__SYNAPSE_PARAMS]; /* sigma, mu, drive, weight            */
    const int32_t *source, *first; /* NULL: a block                                      */
    const float *ct;            /* gradient only: ct_row from one n to the next, ct_half
                                 * from drive's to weight's                              */
    int64_t x_row, param_row[MICA__SYNAPSE_PARAMS], ct_row, ct_half;
    int64_t sources, rows, cols;
    int64_t synapses;
    float *y;                   /* (n, 2, cols)                                          */
    float *dx;                  /* (n, sources)                                          */
} mica__synapses;

/* x number begin ... end - 1. */
typedef void mica__synapses_kernel(const mica__synapses *j, int64_t begin, int64_t end);
/* All x, and rows first_row ... end_row - 1 of a block. Gradients of their parameters,
 * (4, rows, cols), are set, not added to. */
typedef void mica__synapses_grad_kernel(const mica__synapses *j, int64_t n, int64_t first_row, int64_t end_row,
                                        float *params);
/* x number begin ... end - 1 and all synapses of lists. Gradients of their parameters,
 * (4, synapses), are set. */
typedef void mica__synapses_lists_grad_kernel(const mica__synapses *j, int64_t begin, int64_t end, float *params);

#endif
