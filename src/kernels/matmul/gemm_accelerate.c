/* See gemm_accelerate.h. */
#include "kernels/matmul/gemm_accelerate.h"

#if defined(__APPLE__)
#include <dlfcn.h>
#include <pthread.h>

#include "base/env.h"

static mica__sgemm_fn accelerate_sgemm;

static void find_accelerate(void)
{
    const char *wish = mica__env(MICA__ENV_ACCELERATE);
    if (wish && wish[0] == '0') return;
    void *library = dlopen("/System/Library/Frameworks/Accelerate.framework/Accelerate", RTLD_LAZY | RTLD_LOCAL);
    if (library) *(void **)&accelerate_sgemm = dlsym(library, "cblas_sgemm");
}

mica__sgemm_fn mica__accelerate_sgemm(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_accelerate);
    return accelerate_sgemm;
}
#else
mica__sgemm_fn mica__accelerate_sgemm(void) { return NULL; }
#endif

enum { SGEMM_ORDER_ROWS = 101, SGEMM_PLAIN = 111, SGEMM_TRANSPOSED = 112 };
enum { SGEMM_LEAST = 1 << 18 }; /* multiply-adds; below, the call costs more than it saves */

/* One operand, (rows, cols) as the product reads it, with steps of a row and of a
 * column: is it rows without gaps in them, or columns? ld: from one to the next. */
static bool sgemm_layout(int64_t rows, int64_t cols, int64_t row_step, int64_t col_step, int *trans, int *ld)
{
    const bool plain = col_step == 1 && row_step >= cols, transposed = row_step == 1 && col_step >= rows;
    const int64_t step = plain ? row_step : col_step;
    if ((!plain && !transposed) || step > INT32_MAX) return false;
    *trans = plain ? SGEMM_PLAIN : SGEMM_TRANSPOSED;
    *ld = (int)step;
    return true;
}

bool mica__gemm_by_sgemm(mica__sgemm_fn sgemm, const mica__gemm_view *a, const mica__gemm_view *b, int64_t m, int64_t n,
                         int64_t k, float *c)
{
    int trans_a, trans_b, lda, ldb;
    if (!sgemm || m < 2 || n < 2 || k < 1 || m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) return false;
    if (m * n < SGEMM_LEAST / k) return false;
    if (!sgemm_layout(m, k, a->i_step, a->k_step, &trans_a, &lda)) return false;
    if (!sgemm_layout(k, n, b->k_step, b->i_step, &trans_b, &ldb)) return false;
    sgemm(SGEMM_ORDER_ROWS, trans_a, trans_b, (int)m, (int)n, (int)k, 1.0f, (const float *)(const void *)a->data, lda,
          (const float *)(const void *)b->data, ldb, 0.0f, c, (int)n);
    return true;
}
