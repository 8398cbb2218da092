/* simdgroup_matrix<T, 8, 8>: each lane holds two elements of a row. For lane l the row is
 * (l/4 & 4) + (l/2) % 4; the columns are (l/4 & 2) * 2 + (l % 2) * 2 and the next one.
 * Kernels written for hardware confirmed this layout. A product is one exchange, in which
 * the first lane multiplies. */

namespace metal {

/* Tells the count about the accesses of one lane: two elements, `step` apart. */
template <class U> SM_X inline void sm_count_matrix(const U *at, ulong step, uint size, int kind)
{
#if defined(SM_COUNTED)
    if (step == 1) {
        sm_rt->count_access(at, 2 * size, kind, SM_SITE_MATRIX);
    } else {
        sm_rt->count_access(at, size, kind, SM_SITE_MATRIX);
        sm_rt->count_access(at + step, size, kind, SM_SITE_MATRIX);
    }
#endif
}

template <class T, int C, int R> struct simdgroup_matrix {
    static_assert(C == 8 && R == 8, "simdgroup matrices are 8 x 8");
    static_assert(is_floating_point<T>::value, "simdgroup matrices are of float, half or bfloat");
    typedef vec<T, 2> storage_type;
    storage_type sm_elements;
    simdgroup_matrix() = default;
    explicit simdgroup_matrix(T diagonal)
    {
        uint l = sm_rt->lane(), row = sm_row(l), column = sm_column(l);
        sm_elements = vec<T, 2>(row == column ? diagonal : T(0.0f), row == column + 1 ? diagonal : T(0.0f));
    }
    SM_X static uint sm_row(uint l) { return (l / 4 & 4) + l / 2 % 4; }
    SM_X static uint sm_column(uint l) { return (l / 4 & 2) * 2 + l % 2 * 2; }
    SM_X storage_type &thread_elements() { return sm_elements; }
    SM_X const storage_type &thread_elements() const { return sm_elements; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int C = 8, int R = C>
SM_X inline simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(sm_same_t<T> x)
{
    simdgroup_matrix<T, C, R> m;
    m.sm_elements = vec<T, 2>(x);
    return m;
}
template <class T, int C = 8, int R = C>
SM_X inline simdgroup_matrix<T, C, R> make_diagonal_simdgroup_matrix(sm_same_t<T> x)
{
    return simdgroup_matrix<T, C, R>(x);
}

/* The two elements of a lane. */
template <class T> struct sm_two {
    T x, y;
};

/* An instruction of the whole simdgroup: all lanes must execute it. */
template <class T, class U> SM_LANE_OP inline sm_two<T> sm_matrix_load(const U *p, ulong stride, bool transposed)
{
    uint l = sm_exchange_value(uchar(0))->lane;
    uint row = simdgroup_matrix<T, 8, 8>::sm_row(l), column = simdgroup_matrix<T, 8, 8>::sm_column(l);
    const ulong step = transposed ? stride : 1;
    const U *at = transposed ? p + column * stride + row : p + row * stride + column;
    sm_count_matrix(at, step, sizeof(T), SM_ACCESS_READ);
    return sm_two<T>{at[0], at[step]};
}
template <class T, class U> SM_LANE_OP inline void sm_matrix_store(T x, T y, U *p, ulong stride, bool transposed)
{
    uint l = sm_exchange_value(uchar(0))->lane;
    uint row = simdgroup_matrix<T, 8, 8>::sm_row(l), column = simdgroup_matrix<T, 8, 8>::sm_column(l);
    const ulong step = transposed ? stride : 1;
    U *at = transposed ? p + column * stride + row : p + row * stride + column;
    sm_count_matrix(at, step, sizeof(T), SM_ACCESS_WRITE);
    at[0] = x;
    at[step] = y;
}
template <class T, class U>
SM_X inline void simdgroup_load(simdgroup_matrix<T, 8, 8> &m, const U *from, ulong stride = 8,
                                ulong2 origin = ulong2(0), bool transposed = false)
{
    static_assert(is_same<T, remove_cv_t<U>>::value, "simdgroup_load: memory and matrix have different types");
    const sm_two<T> e = sm_matrix_load<T, U>(from + origin.y * stride + origin.x, stride, transposed);
    m.sm_elements = vec<T, 2>(e.x, e.y);
}
template <class T, class U>
SM_X inline void simdgroup_store(simdgroup_matrix<T, 8, 8> m, U *to, ulong stride = 8, ulong2 origin = ulong2(0),
                                 bool transposed = false)
{
    static_assert(is_same<T, U>::value, "simdgroup_store: memory and matrix have different types");
    sm_matrix_store<T, U>(m.sm_elements.x, m.sm_elements.y, to + origin.y * stride + origin.x, stride, transposed);
}

template <class A, class B, class C> struct sm_operands {
    vec<A, 2> a;
    vec<B, 2> b;
    vec<C, 2> c;
};
template <class D, class A, class B, class C>
SM_LANE_OP inline sm_two<D> sm_matrix_product(A ax, A ay, B bx, B by, C cx, C cy)
{
    typedef sm_operands<A, B, C> operands;
    typedef simdgroup_matrix<D, 8, 8> M;
    sm_record *r = sm_exchange_value(operands{vec<A, 2>(ax, ay), vec<B, 2>(bx, by), vec<C, 2>(cx, cy)});
    if (!r->done) {
        r->done = 1;
        float x[8][8], y[8][8], z[8][8];
        for (uint l = 0; l < 32; l++) {
            operands o = sm_lane_value<operands>(r, l);
            uint row = M::sm_row(l), column = M::sm_column(l);
            for (uint i = 0; i < 2; i++) {
                x[row][column + i] = float(o.a[i]);
                y[row][column + i] = float(o.b[i]);
                z[row][column + i] = float(o.c[i]);
            }
        }
        for (uint i = 0; i < 8; i++)
            for (uint k = 0; k < 8; k++)
                for (uint j = 0; j < 8; j++) z[i][j] += x[i][k] * y[k][j];
        for (uint l = 0; l < 32; l++) {
            uint row = M::sm_row(l), column = M::sm_column(l);
            sm_result<vec<D, 2>>(r, l) = vec<D, 2>(D(z[row][column]), D(z[row][column + 1]));
        }
    }
    return sm_result<sm_two<D>>(r, r->lane);
}
template <class D, class A, class B, class C>
SM_X inline void sm_multiply(simdgroup_matrix<D, 8, 8> &d, const simdgroup_matrix<A, 8, 8> &a,
                             const simdgroup_matrix<B, 8, 8> &b, const simdgroup_matrix<C, 8, 8> &c)
{
    const sm_two<D> e = sm_matrix_product<D>(a.sm_elements.x, a.sm_elements.y, b.sm_elements.x, b.sm_elements.y,
                                             c.sm_elements.x, c.sm_elements.y);
    d.sm_elements = vec<D, 2>(e.x, e.y);
}
template <class D, class A, class B, class C>
SM_X inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8> &d, const simdgroup_matrix<A, 8, 8> &a,
                                               const simdgroup_matrix<B, 8, 8> &b, const simdgroup_matrix<C, 8, 8> &c)
{
    sm_multiply(d, a, b, c);
}
template <class D, class A, class B>
SM_X inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8> &d, const simdgroup_matrix<A, 8, 8> &a,
                                    const simdgroup_matrix<B, 8, 8> &b)
{
    sm_multiply(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0.0f)));
}
template <class T>
SM_X inline simdgroup_matrix<T, 8, 8> operator*(const simdgroup_matrix<T, 8, 8> &a, const simdgroup_matrix<T, 8, 8> &b)
{
    simdgroup_matrix<T, 8, 8> d;
    simdgroup_multiply(d, a, b);
    return d;
}

} // namespace metal

using metal::simdgroup_bfloat8x8;
using metal::simdgroup_float8x8;
using metal::simdgroup_half8x8;
