/* SYNAPSES: the input of neurons through conductances that depend on the source neuron.
 *
 *   open = sigmoid(sigma (x[source] - mu))
 *   y (n, 2, cols):  for each column the sum of drive open, and of weight open
 *
 * Block (dense): x (n, rows); sigma, mu, drive, weight (rows, cols). Synapse (k, c) reads
 * x[k] and adds to column c.
 *
 * Lists (sparse): x (n, sources); sigma, mu, drive, weight (synapses). source (synapses) of
 * i32 is the index in x that each synapse reads. first (cols + 1) of i32: column c has the
 * synapses first[c] ... first[c + 1] - 1. The cost is proportional to the number of
 * synapses. A source outside x is MICA_ERR_INDEX, and so is a first that does not ascend
 * from 0 to the number of synapses.
 *
 * SYNAPSES_GRAD: the same inputs, followed by the gradient of y. Its result is one row: the
 * elements of dx, dsigma, dmu, ddrive and dweight. It computes the openings again.
 *
 * Neither op stores an array of size (n, synapses).
 *
 * ref   computes in double.
 * cpu   f32 in f32 arithmetic if the last axis of each operand is contiguous; otherwise ref.
 *       The gradient of a block is split into tasks by rows of synapses, so that tasks write
 *       separate results. The gradient of lists is split by x into parts that depend on the
 *       shape only; their results are summed afterwards.
 * gpu   f32, f16 and bf16 of any strides, in f32 arithmetic. */
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

/* Validates `source` and `first` of SYNAPSES or SYNAPSES_GRAD with lists. */
mica_status mica__synapses_check(const mica__launch *launch);
mica_status mica__synapses_bad_source(int64_t source, int64_t sources);
mica_status mica__synapses_bad_first(int64_t column, int64_t first, int64_t synapses);

enum { MICA__SYNAPSE_PARAMS = 4 };

/* The arguments of a variant's kernels. x_row, ct_row and param_row are row strides in floats;
 * the elements of a row are contiguous. */
typedef struct mica__synapses {
    const float *x, *param[MICA__SYNAPSE_PARAMS]; /* sigma, mu, drive, weight            */
    const int32_t *source, *first; /* NULL: a block                                      */
    const float *ct;            /* gradient of y: ct_row is the stride of n, ct_half the
                                 * stride from the drive sum to the weight sum           */
    int64_t x_row, param_row[MICA__SYNAPSE_PARAMS], ct_row, ct_half;
    int64_t sources, rows, cols;
    int64_t synapses;
    float *y;                   /* (n, 2, cols)                                          */
    float *dx;                  /* (n, sources)                                          */
} mica__synapses;

/* Computes x number begin ... end - 1. */
typedef void mica__synapses_kernel(const mica__synapses *j, int64_t begin, int64_t end);
/* Computes all x for rows first_row ... end_row - 1 of a block. Overwrites the gradients of
 * their parameters, (4, rows, cols). */
typedef void mica__synapses_grad_kernel(const mica__synapses *j, int64_t n, int64_t first_row, int64_t end_row,
                                        float *params);
/* Computes x number begin ... end - 1 for all synapses of lists. Overwrites the gradients of
 * their parameters, (4, synapses). */
typedef void mica__synapses_lists_grad_kernel(const mica__synapses *j, int64_t begin, int64_t end, float *params);

#endif
