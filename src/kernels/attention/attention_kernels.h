/* The inner loops of attention, one variant for each kind of CPU (attention.def).
 *
 * Queries lie across the lanes of vectors: a panel is one to three vectors of
 * queries, its scores are a matrix (keys, queries). So keys are read where they
 * are, each element once for all queries of the panel; maxima, sums and masks
 * are element-wise; and the weights are, as they lie, an operand of the product
 * with the values, whose columns lie across the lanes there.
 *
 * Scores carry the factor log2(e), which the packed queries have: weights are
 * powers of two. */
#ifndef MICA_KERNELS_ATTENTION_KERNELS_H
#define MICA_KERNELS_ATTENTION_KERNELS_H

#include "kernels/walk.h"

enum {
    MICA__ATTENTION_VECTORS = 3,    /* of a panel, at most                          */
    MICA__ATTENTION_PANEL = 48,     /* queries of a panel of any variant, at most   */
    MICA__ATTENTION_STRIP = 32,     /* columns of a strip of any variant, at most   */
    MICA__ATTENTION_ROWS = 4,       /* queries that a stream takes at once          */
    MICA__ATTENTION_WHOLE = 16      /* floats of a vector of any variant, at most   */
};

typedef struct mica__attention_variant {
    int lanes, strip, keys;         /* floats of a vector, columns of a strip, keys of a block */
    /* score (keys, width) = k (keys, dims), rows k_row apart, times q (dims, width),
     * width = vectors * lanes; plus what is there if `add`. top (width), unless
     * NULL, is raised to the largest of each query; NaN does not count. */
    void (*scores)(int vectors, int64_t keys, int64_t dims, const float *k, int64_t k_row, const float *q, float *score,
                   bool add, float *top);
    /* Hides keys first+seen[query] ... of each query, adds the mask (keys, width)
     * unless NULL, which hides where it is -inf, and raises top. */
    void (*hide)(int vectors, int64_t keys, float *score, const float *mask, const int32_t *seen, float *top);
    /* score = 2^(score - top), added to sum (width); a top of -inf counts as 0. */
    void (*weights)(int vectors, int64_t keys, float *score, const float *top, float *sum);
    /* out (width, strips * strip), rows `row` apart, = the transposed weights times
     * v, strips of (keys, strip) that lie v_strip apart; plus what is there if `add`. */
    void (*values)(int vectors, int64_t keys, const float *score, int64_t strips, const float *v, int64_t v_strip,
                   float *out, int64_t row, bool add);
    /* to = from * factor, n of them. */
    void (*scale)(int64_t n, const float *from, float factor, float *to);
    bool (*finite)(int64_t n, const float *x);
    /* A row of n values to its place in strips that lie v_strip apart; 0 beyond n. */
    void (*split)(int64_t n, const float *from, float *to, int64_t v_strip);
    /* n elements that lie next to each other, f32, f16, bf16 or i8, as floats. */
    void (*widen)(mica_dtype dtype, int64_t n, const char *from, float *to);
    /* The other way, rounded to nearest even. */
    void (*narrow)(mica_dtype dtype, int64_t n, const float *from, char *to);

    /* For few queries, which lie along memory: rows = 1 ... ATTENTION_ROWS of them.
     * Sizes are multiples of ATTENTION_WHOLE. */
    /* score (rows, keys), rows `row` apart, = q (rows, dims) times the keys, of any dtype. */
    void (*dots)(mica_dtype dtype, int rows, int64_t keys, int64_t dims, const char *k, int64_t k_row, const float *q,
                 float *score, int64_t row);
    /* out (rows, columns) += weights (rows, keys), rows `row` apart, times v. */
    void (*mix)(mica_dtype dtype, int rows, int64_t keys, int64_t columns, const float *weight, int64_t row,
                const char *v, int64_t v_row, float *out);
    /* The largest of x and top; NaN does not count. */
    float (*top)(int64_t n, const float *x, float top);
    /* x = 2^(x - top); returns the sum. */
    float (*weigh)(int64_t n, float *x, float top);

    /* For gradients; panels are whole here: width = ATTENTION_VECTORS * lanes. */
    /* weight (keys, width) with these sums, and slope, the gradients of the normalised
     * weights: makes them the normalised weights and the gradients of the scores. */
    void (*slopes)(int64_t keys, float *weight, float *slope, const float *sum);
    /* out (keys, strips * strip), rows `row` apart, = score times b (strips, panels * width,
     * strip); score is panels of (keys, width), `panel` apart. Plus what is there if `add`. */
    void (*fold)(int64_t keys, int64_t panels, const float *score, int64_t panel, int64_t strips, const float *b,
                 float *out, int64_t row, bool add);
} mica__attention_variant;

#define MICA_ATTENTION(name, needs) extern const mica__attention_variant mica__attention_##name;
#include "kernels/attention/attention.def"
#undef MICA_ATTENTION

/* The best one for this CPU (MICA_CPU considered). */
const mica__attention_variant *mica__attention_best(void);
/* Number i of those that this CPU can run, for tests; NULL beyond the last. */
const mica__attention_variant *mica__attention_variant_at(size_t i, const char **name);

#endif
