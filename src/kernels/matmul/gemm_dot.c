/* The table of variants (gemm_dot.def) and the choice among them. */
#include "kernels/matmul/gemm_dot.h"

#include "base/cpu.h"

#define MICA_DOT(kind, KIND, name, needs, mr, nr, cells, four)                                                         \
    void mica__dot_pack_a_##kind##_##name(const mica__gemm_view *view, mica_dtype other, int64_t k, int64_t depth,     \
                                          int64_t i, int64_t n, char *to, int32_t *add);                               \
    void mica__dot_pack_b_##kind##_##name(const mica__gemm_view *view, mica_dtype other, int64_t k, int64_t depth,     \
                                          int64_t i, int64_t n, char *to, int32_t *add);                               \
    void mica__dot_kernel_##kind##_##name(int64_t depth, const char *a, const char *b, void *c, int64_t row, bool add, \
                                          const int32_t *row_add, const int32_t *col_add);
#define MICA_LINES(name, needs)                                                                                        \
    void mica__lines_widen_##name(mica_dtype dtype, int64_t n, const char *from, void *to);                            \
    void mica__lines_spread_##name(mica_dtype dtype, int64_t n, const void *from, void *to);                           \
    void mica__lines_dot_##name(mica_dtype x_dtype, mica_dtype w_dtype, int64_t n, const void *x, const char *w,       \
                                void *sum);                                                                            \
    void mica__lines_dots_##name(mica_dtype x_dtype, mica_dtype w_dtype, int64_t n, const void *x, const char *w,      \
                                 int64_t step, void *sums);                                                            \
    void mica__lines_axpy_##name(mica_dtype dtype, int64_t n, const void *x, const char *w0, const char *w1, void *y); \
    void mica__lines_narrow_##name(mica_dtype dtype, int64_t n, const float *from, char *to);
#include "kernels/matmul/gemm_dot.def"
#undef MICA_DOT
#undef MICA_LINES

static const mica__dot_variant dot_table[] = {
#define MICA_LINES(name, needs)
#define MICA_DOT(kind, KIND, name, needs, mr, nr, cells, four) \
    {#kind " " #name,                                          \
     MICA__DOT_##KIND,                                         \
     needs,                                                    \
     mr,                                                       \
     nr,                                                       \
     cells,                                                    \
     (int64_t)(cells) * (four) / 4,                            \
     mica__dot_pack_a_##kind##_##name,                         \
     mica__dot_pack_b_##kind##_##name,                         \
     mica__dot_kernel_##kind##_##name},
#include "kernels/matmul/gemm_dot.def"
#undef MICA_DOT
#undef MICA_LINES
};

static const mica__lines lines_table[] = {
#define MICA_DOT(kind, KIND, name, needs, mr, nr, cells, four)
#define MICA_LINES(name, needs) \
    {#name,                     \
     needs,                     \
     mica__lines_widen_##name,  \
     mica__lines_spread_##name, \
     mica__lines_dot_##name,    \
     mica__lines_dots_##name,   \
     mica__lines_axpy_##name,   \
     mica__lines_narrow_##name},
#include "kernels/matmul/gemm_dot.def"
#undef MICA_DOT
#undef MICA_LINES
};

const mica__dot_variant *mica__dot_variants(size_t *n)
{
    *n = sizeof dot_table / sizeof *dot_table;
    return dot_table;
}
const mica__lines *mica__lines_variants(size_t *n)
{
    *n = sizeof lines_table / sizeof *lines_table;
    return lines_table;
}

const mica__dot_variant *mica__dot_best(mica__dot_kind kind)
{
    const unsigned have = mica__cpu_features();
    for (size_t i = sizeof dot_table / sizeof *dot_table; i-- > 0;)
        if (dot_table[i].kind == kind && (dot_table[i].needs & ~have) == 0) return &dot_table[i];
    return NULL;
}

const mica__lines *mica__lines_best(void)
{
    const unsigned have = mica__cpu_features();
    size_t i = sizeof lines_table / sizeof *lines_table - 1;
    while (i > 0 && (lines_table[i].needs & ~have) != 0) i--;
    return &lines_table[i];
}
