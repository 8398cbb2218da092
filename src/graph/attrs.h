/* Attributes of ops: what a node needs besides its inputs. Each struct starts
 * zeroed and has no padding that matters, so attributes are compared, hashed
 * and copied as bytes. Column attr of ops.def names the struct of an op; a struct
 * listed in MICA__ATTRS needs a printer in print.c. */
#ifndef MICA_GRAPH_ATTRS_H
#define MICA_GRAPH_ATTRS_H

#include "array/array.h"

/* A number of any dtype. Floats use f; other dtypes use i (u64: its bits). */
typedef struct mica__number {
    double f;
    int64_t i;
} mica__number;

/* FULL */
typedef struct mica__attr_full {
    mica__spec spec;
    mica__number value;
} mica__attr_full;

/* IOTA: start + index * step along axis, in double for floats (rounded once),
 * in i64 for integers. */
typedef struct mica__attr_iota {
    mica__spec spec;
    int64_t axis;
    mica__number start, step;
} mica__attr_iota;

/* CAST. MATMUL has it only if its operands are narrower than the result
 * (pass_narrow.c). */
typedef struct mica__attr_cast {
    int64_t dtype;
} mica__attr_cast;

/* Ops with one number: LEAKY_RELU (slope), ELU (alpha) */
typedef struct mica__attr_value {
    double value;
} mica__attr_value;
typedef mica__attr_value mica__attr_slope, mica__attr_alpha;

/* The public op that an index check was built for: error messages at run time name it. */
typedef enum mica__index_caller {
    MICA__CALLER_NONE,           /* the op itself */
    MICA__CALLER_TAKE,
    MICA__CALLER_EMBEDDING,
    MICA__CALLER_TAKE_ALONG_AXIS,
    MICA__CALLER_GATHER,
    MICA__CALLER_SCATTER,
    MICA__CALLER_SCATTER_ADD,
    MICA__CALLER_CROSS_ENTROPY,
    MICA__CALLER_QUANT_ROWS,
    MICA__CALLER_RANDOM_CATEGORICAL,
    MICA__CALLER_COUNT
} mica__index_caller;

/* CHECK_INDEX: i64 or u64. Valid indices are -size ... size-1. The result is i64. */
typedef struct mica__attr_index {
    int64_t size, caller;
} mica__attr_index;

/* RESHAPE, BROADCAST: the result's shape. Broadcast aligns on the right. */
typedef struct mica__attr_shape {
    int64_t ndim;
    int64_t shape[MICA_MAX_DIMS];
} mica__attr_shape;

/* PERMUTE: out axis d is in axis axes[d]. */
typedef struct mica__attr_permute {
    int64_t axes[MICA_MAX_DIMS];
} mica__attr_permute;

/* SLICE: out[i] = in[start + i * step]; size elements, all in range. step != 0. */
typedef struct mica__attr_slice {
    int64_t start[MICA_MAX_DIMS], step[MICA_MAX_DIMS], size[MICA_MAX_DIMS];
} mica__attr_slice;

/* WINDOW: an axis of n becomes (n - (size-1)*dilation - 1) / stride + 1 window
 * positions. A new last axis holds the size elements of each window.
 * UNWINDOW is the transpose: it sums windows back into an axis of length full. */
typedef struct mica__attr_window {
    int64_t axis, size, stride, dilation;
    int64_t full;
} mica__attr_window;

/* PAD: low and high elements before and after an axis (negative: cropped), interior
 * elements between neighbours. */
typedef struct mica__attr_pad {
    int64_t low[MICA_MAX_DIMS], high[MICA_MAX_DIMS], interior[MICA_MAX_DIMS];
    mica__number value;
} mica__attr_pad;

/* CONCAT, UPDATE */
typedef struct mica__attr_axis {
    int64_t axis;
} mica__attr_axis;

/* TAKE */
typedef struct mica__attr_take {
    int64_t axis, caller;
} mica__attr_take;

/* SUM ... ALL: bit d of axes is set if axis d is reduced. keep: it stays with size 1. */
typedef struct mica__attr_reduce {
    int64_t axes;
    int64_t keep;
} mica__attr_reduce;

/* CUMSUM, CUMPROD, CUMMAX over the last axis. exclusive: the element itself is
 * left out (the first result is 0, or 1 for CUMPROD). */
typedef struct mica__attr_cumulative {
    int64_t reverse, exclusive;
} mica__attr_cumulative;

/* LAYER_NORM, RMS_NORM over the last axis, without weights. wide: f16 and bf16 give
 * f32, so that weights are applied before the only rounding. */
typedef struct mica__attr_norm {
    double eps;
    int64_t wide;
} mica__attr_norm;

/* QMATMUL: x f32 (..., cols), where the padding of the last block may be missing, then
 * the matrix. QROWS: ids i64, then the matrix. A matrix is its data, then scales and
 * biases if its format has them. */
typedef struct mica__attr_quant {
    int64_t format;              /* mica__quant_id                               */
    int64_t rows, cols;
    int64_t act;                 /* QMATMUL: mica_act                            */
    int64_t scale_divides, bits, group;
} mica__attr_quant;

/* CONV: x (N, C, size...), w (O, C/groups, kernel...); spatial = 1 or 2.
 * input_dilation inserts zeros between elements of x (transposed convolution).
 * Padding may be negative. */
typedef struct mica__attr_conv {
    int64_t spatial, groups;
    int64_t stride[2], pad_low[2], pad_high[2], dilation[2], input_dilation[2];
} mica__attr_conv;

/* ATTENTION: q k v and, if has_mask, a mask of shape (B, H, T, S), bool or of
 * q's dtype. causal: query t sees keys s <= t + S - T.
 * ATTENTION_GRAD: the same, then the gradient of the result.
 * ATTENTION_CACHED: q k v, then the number of valid keys of the S (an integer). If k
 * and v are i8, the scales of their rows follow, (B, G, S) each. */
typedef struct mica__attr_attention {
    double scale;
    int64_t causal, has_mask;
} mica__attr_attention;

/* ROPE_TABLE: positions (...) and optional factors (dims / 2). The result is f64
 * (..., dims): cosines of the angles, then sines, times the magnitude.
 * Angle of pair i: position * scale * base^(-2i/dims) / factor[i]. */
typedef struct mica__attr_rope_table {
    int64_t dims;
    double base, scale, magnitude;
} mica__attr_rope_table;

/* ROPE: x (..., D) and a table of x's shape, except that its last axis has dims elements.
 * Its other axes broadcast. inverse: rotate in the opposite direction. */
typedef struct mica__attr_rope {
    int64_t dims, interleaved, inverse;
} mica__attr_rope;

/* SCATTER along axis: upd has x's shape with axis replaced by the shape of idx
 * (i64), like the result of TAKE. */
typedef struct mica__attr_scatter {
    int64_t axis, add, caller;
} mica__attr_scatter;

/* SORT, ARGSORT over the last axis; stable. ARGSORT returns the first k indices. */
typedef struct mica__attr_sort {
    int64_t descending, k;
} mica__attr_sort;

/* RANDOM: the seed is the attribute plus the one u64 element of the input, if there is
 * an input. Seeds of callers are inputs: a new seed needs no new plan. */
typedef enum mica__dist {
    MICA__DIST_BITS,             /* u32, u64                                     */
    MICA__DIST_UNIFORM,          /* floats in [a, b)                             */
    MICA__DIST_NORMAL,           /* mean 0, variance 1                           */
    MICA__DIST_TRUNCATED_NORMAL, /* between a and b                              */
    MICA__DIST_GUMBEL,           /* -log(-log(u))                                */
    MICA__DIST_INTEGER           /* integers in [low, high)                      */
} mica__dist;

typedef struct mica__attr_random {
    mica__spec spec;
    int64_t dist;
    uint64_t seed;
    double a, b;
    int64_t low, high;
} mica__attr_random;

/* SCAN: inputs are carries, xs, then the arrays that the body uses from outside
 * (captured). The body's parameters are in the same order: PARAM nodes for the
 * carries and for one slice of each x, then the captured nodes themselves,
 * not placeholders. A walk of the body from its results must therefore stop at
 * every node in param. The results are carries and ys. */
typedef struct mica__body {
    mica_array **param;          /* holds references                             */
    size_t n_param;
    mica_array **out;            /* holds references                             */
    size_t n_out;
    int depth;                   /* nesting depth of scans; 1: no scan inside            */
} mica__body;

typedef struct mica__attr_scan {
    mica__spec spec;
    int64_t n_carry, n_x, n_y, n_captured;
    int64_t length, reverse;
    mica__body *body;            /* owned by the node                            */
} mica__attr_scan;

/* PART: result number index of a scan. */
typedef struct mica__attr_part {
    mica__spec spec;
    int64_t index;
} mica__attr_part;

/* PARAM */
typedef struct mica__attr_param {
    mica__spec spec;
    int64_t index;
} mica__attr_param;

/* CUSTOM_GRAD: inputs are y and the inputs named by the caller. */
typedef struct mica__attr_custom {
    mica_vjp_fn fn;
    void *user;
    mica_release_fn release;
} mica__attr_custom;

/* Sizes of the structs by the name in column attr. */
/* clang-format off */
#define MICA__ATTRS(X)                                                                                              \
    X(param) X(full) X(iota) X(cast) X(slope) X(alpha) X(index) X(shape) X(permute) X(slice) X(window) X(pad)       \
    X(axis) X(take) X(reduce) X(cumulative) X(norm) X(quant) X(conv) X(attention) X(rope_table) X(rope) X(scatter)  \
    X(sort) X(random) X(scan) X(part)
/* clang-format on */
enum {
    MICA__ATTR_SIZE_none = 0,
#define X(attr) MICA__ATTR_SIZE_##attr = sizeof(mica__attr_##attr),
    MICA__ATTRS(X)
#undef X
};

#endif
