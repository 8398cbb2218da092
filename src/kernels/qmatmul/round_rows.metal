/* Rows rounded to 8 bits with one scale each, as in BitNet training: 127 / max(|x|, 1e-5), ties to even. QMATMUL rounds
 * x with it; a norm may do so for it. Rows of codes are `pitch` apart and zero-padded. A scale is NaN if an element of
 * the row is not finite. */
#ifndef MICA_ROUND_ROWS_METAL
#define MICA_ROUND_ROWS_METAL

#include "common.metal"

/* The largest finite |x| so far, and whether any element was not finite. */
struct row_range {
    float most, odd;
};

inline row_range range_with(row_range r, float v)
{
    const float size = fabs(v);
    if (!(size < INFINITY)) r.odd = 1;
    else r.most = max(r.most, size);
    return r;
}

/* Reduces over the threads of a row; all get the result. */
inline row_range range_of_row(row_range r, threadgroup float *scratch, uint simd, uint lane, uint simds)
{
    const float odd = row_max(r.odd, scratch, simd, lane, simds);
    return row_range{max(row_max(r.most, scratch, simd, lane, simds), 1e-5f), odd};
}

inline char round_code(row_range r, float v)
{
    return r.odd != 0 ? char(0) : char(clamp(rint(v * (127.0f / r.most)), -128.0f, 127.0f));
}
inline float round_scale(row_range r) { return r.odd != 0 ? NAN : r.most / 127.0f; }

#endif
