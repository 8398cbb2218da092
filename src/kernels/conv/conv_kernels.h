/* The inner loops of convolution in f32, one variant for each kind of CPU (conv.def).
 *
 * They are matrix products whose second operand is not stored: its rows are overlapping
 * parts of the planes (conv_planes.h). */
#ifndef MICA_KERNELS_CONV_KERNELS_H
#define MICA_KERNELS_CONV_KERNELS_H

#include "kernels/walk.h"

enum { MICA__CONV_STRIP = 32, MICA__CONV_LANES = 16 }; /* of any variant, at most */

typedef struct mica__conv_variant {
    int lanes;              /* floats of a vector                          */
    int strip;              /* positions that one call of taps computes    */
    /* out (m, strip), with row stride `row`, = sum over k of a[i * a_row + k] * b[offset[k] + j],
     * k in order. add: adds the sum to out. */
    void (*taps)(int64_t m, int64_t taps, const float *a, int64_t a_row, const float *b, const int64_t *offset,
                 float *out, int64_t row, bool add);
    /* The same for one row of out with n >= lanes positions; does not add. */
    void (*line)(int64_t n, int64_t taps, const float *a, const float *b, const int64_t *offset, float *out);
    /* out (m, n), with row stride `row`, += sum over i < lines, k < length of
     * a[r * a_row + i * a_line + k] * b[c][i * b_line + k]. Lines of a are padded to whole
     * vectors; elements after the end of a line of b are read but not used. */
    void (*dots)(int64_t m, int64_t n, int64_t lines, int64_t length, const float *a, int64_t a_row, int64_t a_line,
                 const float *const *b, int64_t b_line, float *out, int64_t row);
} mica__conv_variant;

#define MICA_CONV(name, needs) extern const mica__conv_variant mica__conv_##name;
#include "kernels/conv/conv.def"
#undef MICA_CONV

/* The best variant for this CPU (respects MICA_CPU). */
const mica__conv_variant *mica__conv_best(void);
/* Variant i of those that this CPU can run, for tests; NULL after the last. */
const mica__conv_variant *mica__conv_variant_at(size_t i, const char **name);

#endif
