/* The inner loops of attention, one variant for each kind of CPU (attention.def).
 *
 * Queries are in the lanes of vectors: a panel is one to three vectors of queries,
 * and its scores are a matrix (keys, queries). Therefore keys are read without
 * packing, each element once for all queries of the panel; maxima, sums and masks
 * are element-wise; and the weights are an operand of the product with the values
 * without a transpose. In that product the columns of the values are in lanes.
 *
 * The packed queries include the factor log2(e), so that weights are powers of two. */
#ifndef MICA_KERNELS_ATTENTION_KERNELS_H
#define MICA_KERNELS_ATTENTION_KERNELS_H

#include "kernels/walk.h"

enum {
    MICA__ATTENTION_VECTORS = 3,    /* of a panel, at most                          */
    MICA__ATTENTION_PANEL = 48,     /* queries of a panel of any variant, at most   */
    MICA__ATTENTION_STRIP = 32,     /* columns of a strip of any variant, at most   */
    MICA__ATTENTION_ROWS = 4,       /* queries of a call of dots or mix, at most    */
    MICA__ATTENTION_WHOLE = 16      /* floats of a vector of any variant, at most   */
};

typedef struct mica__attention_variant {
    int lanes, strip, keys;         /* floats of a vector, columns of a strip, keys of a block */
    /* score (keys, width) = k (keys, dims), with row stride k_row, times q (dims, width),
     * width = vectors * lanes. add: adds the product to score. top (width), unless NULL,
     * is raised to the largest score of each query; NaN is ignored. */
    void (*scores)(int vectors, int64_t keys, int64_t dims, const float *k, int64_t k_row, const float *q, float *score,
                   bool add, float *top);
    /* Hides the keys of each query from seen[query] on, adds the mask (keys, width) unless
     * NULL (-inf hides), and raises top. */
    void (*hide)(int vectors, int64_t keys, float *score, const float *mask, const int32_t *seen, float *top);
    /* score = 2^(score - top), also added to sum (width); a top of -inf counts as 0. */
    void (*weights)(int vectors, int64_t keys, float *score, const float *top, float *sum);
    /* out (width, strips * strip), with row stride `row`, = the transposed weights times v,
     * which is strips of (keys, strip) with stride v_strip. add: adds the product to out. */
    void (*values)(int vectors, int64_t keys, const float *score, int64_t strips, const float *v, int64_t v_strip,
                   float *out, int64_t row, bool add);
    /* to = from * factor, n of them. */
    void (*scale)(int64_t n, const float *from, float factor, float *to);
    bool (*finite)(int64_t n, const float *x);
    /* Copies a row of n values into strips with stride v_strip; padding is 0. */
    void (*split)(int64_t n, const float *from, float *to, int64_t v_strip);
    /* Converts n contiguous elements, f32, f16, bf16 or i8, to floats. */
    void (*widen)(mica_dtype dtype, int64_t n, const char *from, float *to);
    /* Converts n floats to contiguous elements, rounded to nearest even. */
    void (*narrow)(mica_dtype dtype, int64_t n, const float *from, char *to);

    /* For few queries, which are contiguous rows: rows = 1 ... ATTENTION_ROWS of them.
     * Sizes are multiples of ATTENTION_WHOLE. */
    /* score (rows, keys), with row stride `row`, = q (rows, dims) times the keys, of any dtype. */
    void (*dots)(mica_dtype dtype, int rows, int64_t keys, int64_t dims, const char *k, int64_t k_row, const float *q,
                 float *score, int64_t row);
    /* out (rows, columns) += weights (rows, keys), with row stride `row`, times v. */
    void (*mix)(mica_dtype dtype, int rows, int64_t keys, int64_t columns, const float *weight, int64_t row,
                const char *v, int64_t v_row, float *out);
    /* The largest of x and top; NaN is ignored. */
    float (*top)(int64_t n, const float *x, float top);
    /* x = 2^(x - top); returns the sum. */
    float (*weigh)(int64_t n, float *x, float top);

    /* For gradients; panels are full here: width = ATTENTION_VECTORS * lanes. */
    /* weight (keys, width): weights with these sums; becomes the normalised weights.
     * slope: gradients of the normalised weights; becomes the gradients of the scores. */
    void (*slopes)(int64_t keys, float *weight, float *slope, const float *sum);
    /* out (keys, strips * strip), with row stride `row`, = score times b (strips, panels * width,
     * strip); score is panels of (keys, width) with stride `panel`. add: adds the product to out. */
    void (*fold)(int64_t keys, int64_t panels, const float *score, int64_t panel, int64_t strips, const float *b,
                 float *out, int64_t row, bool add);
} mica__attention_variant;

#define MICA_ATTENTION(name, needs) extern const mica__attention_variant mica__attention_##name;
#include "kernels/attention/attention.def"
#undef MICA_ATTENTION

/* The best variant for this CPU (respects MICA_CPU). */
const mica__attention_variant *mica__attention_best(void);
/* Variant i of those that this CPU can run, for tests; NULL after the last. */
const mica__attention_variant *mica__attention_variant_at(size_t i, const char **name);

#endif
