/* SYNAPSES: what neurons hear through conductances that open with their source.
 *
 *   x (n, sources), sigma, mu, drive, weight (rows, cols), and maybe source (rows, cols),
 *   i32: which x a synapse listens to; without it row k listens to x[k].
 *
 *   open[k, c] = sigmoid(sigma[k, c] (x[source[k, c]] - mu[k, c]))
 *   y (n, 2, cols):  sum over k of drive open, and of weight open
 *
 * SYNAPSES_GRAD: the same inputs and then the gradient of y. Its result is one row: the
 * elements of dx, dsigma, dmu, ddrive and dweight. Openings are computed again.
 *
 * Nothing of the size (n, rows, cols) is kept by either. An index that is not one of x
 * is MICA_ERR_INDEX.
 *
 * ref   everything in double.
 * cpu   f32 in f32, for operands whose last axis lies side by side; else ref. A gradient
 *       is cut by rows of synapses, whose results nobody else writes; where sources
 *       are listed by x, in parts that depend on the shape alone, summed afterwards.
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

enum { MICA__SYNAPSE_PARAMS = 4 };

/* What the kernels of a variant are given. Rows of x, ct and the parameters are as many
 * floats apart as said; elements of a row lie side by side. */
typedef struct mica__synapses {
    const float *x, *param[MICA__SYNAPSE_PARAMS]; /* sigma, mu, drive, weight            */
    const int32_t *source;      /* (rows, cols), row-major; NULL: row k listens to x[k]  */
    const float *ct;            /* gradient only: ct_row from one n to the next, ct_half
                                 * from drive's to weight's                              */
    int64_t x_row, param_row[MICA__SYNAPSE_PARAMS], ct_row, ct_half;
    int64_t sources, rows, cols;
    float *y;                   /* (n, 2, cols)                                          */
    float *dx;                  /* (n, sources)                                          */
} mica__synapses;

/* x number begin ... end - 1. */
typedef void mica__synapses_kernel(const mica__synapses *j, int64_t begin, int64_t end);
/* The same and rows first_row ... end_row - 1 of the synapses (all of them, if sources are
 * listed). Gradients of their parameters, (4, rows, cols), are set, not added to. */
typedef void mica__synapses_grad_kernel(const mica__synapses *j, int64_t begin, int64_t end, int64_t first_row,
                                        int64_t end_row, float *params);

#endif
