/* matrix<T, C, R>: C columns of R elements. */

template <class T, int C, int R> struct matrix {
    vec<T, R> columns[C];
    matrix() = default;
    SM_X explicit constexpr matrix(T diagonal) : columns{}
    {
        for (int i = 0; i < C; i++) {
            sm_flat<T, R> f = {};
            if (i < R) f.e[i] = diagonal;
            columns[i] = vec<T, R>(f);
        }
    }
    template <class... A, class = metal::enable_if_t<(sizeof...(A) > 1 && (sm_width<A>::value + ...) == C * R)>>
    SM_X constexpr matrix(A... a) : columns{}
    {
        sm_flat<T, C * R> f = sm_flatten<T, C * R>(a...);
        for (int i = 0; i < C; i++) {
            sm_flat<T, R> column = {};
            for (int k = 0; k < R; k++) column.e[k] = f.e[i * R + k];
            columns[i] = vec<T, R>(column);
        }
    }
    template <class U> SM_X explicit constexpr matrix(const matrix<U, C, R> &m) : columns{}
    {
        for (int i = 0; i < C; i++) columns[i] = vec<T, R>(m[i]);
    }
    SM_X vec<T, R> &operator[](int i) { return columns[i]; }
    SM_X constexpr const vec<T, R> &operator[](int i) const { return columns[i]; }
    SM_X friend matrix operator+(matrix a, matrix b)
    {
        for (int i = 0; i < C; i++) a[i] += b[i];
        return a;
    }
    SM_X friend matrix operator-(matrix a, matrix b)
    {
        for (int i = 0; i < C; i++) a[i] -= b[i];
        return a;
    }
    SM_X friend matrix operator-(matrix a)
    {
        for (int i = 0; i < C; i++) a[i] = -a[i];
        return a;
    }
    SM_X friend matrix operator*(matrix a, T s)
    {
        for (int i = 0; i < C; i++) a[i] *= s;
        return a;
    }
    SM_X friend matrix operator*(T s, matrix a) { return a * s; }
    SM_X friend vec<T, R> operator*(const matrix &m, vec<T, C> v)
    {
        vec<T, R> r = m[0] * v[0];
        for (int i = 1; i < C; i++) r += m[i] * v[i];
        return r;
    }
    SM_X friend vec<T, C> operator*(vec<T, R> v, const matrix &m)
    {
        vec<T, C> r;
        for (int i = 0; i < C; i++) {
            T s = v[0] * m[i][0];
            for (int k = 1; k < R; k++) s += v[k] * m[i][k];
            r[i] = s;
        }
        return r;
    }
    SM_X friend matrix &operator+=(matrix &a, matrix b) { return a = a + b; }
    SM_X friend matrix &operator-=(matrix &a, matrix b) { return a = a - b; }
    SM_X friend matrix &operator*=(matrix &a, T s) { return a = a * s; }
};
template <class T, int C, int R, int D>
SM_X inline matrix<T, D, R> operator*(const matrix<T, C, R> &a, const matrix<T, D, C> &b)
{
    matrix<T, D, R> r;
    for (int i = 0; i < D; i++) r[i] = a * b[i];
    return r;
}

#define SM_NAMES(T, C, R)               \
    typedef matrix<T, C, R> T##C##x##R; \
    namespace metal {                   \
    using ::T##C##x##R;                 \
    }
#define SM_NAMES_OF(T)                                                                                          \
    SM_NAMES(T, 2, 2)                                                                                           \
    SM_NAMES(T, 2, 3) SM_NAMES(T, 2, 4) SM_NAMES(T, 3, 2) SM_NAMES(T, 3, 3) SM_NAMES(T, 3, 4) SM_NAMES(T, 4, 2) \
        SM_NAMES(T, 4, 3) SM_NAMES(T, 4, 4)
SM_NAMES_OF(float)
SM_NAMES_OF(half)
#undef SM_NAMES_OF
#undef SM_NAMES
namespace metal {
using ::matrix;
}
