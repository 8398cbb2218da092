/* See gemm_accelerate.h. */
#include "kernels/matmul/gemm_accelerate.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/checked.h"
#include "base/env.h"
#include "base/status.h"
#include "base/text.h"

#if defined(__APPLE__)
#define SGEMM_LIBRARY "/System/Library/Frameworks/Accelerate.framework/Accelerate"
#else
#define SGEMM_LIBRARY NULL
#endif

static mica__sgemm_fn accelerate_sgemm;
static char accelerate_note[256];

static void find_accelerate(void)
{
    mica__text note;
    mica__text_init(&note, accelerate_note, sizeof accelerate_note);
    const char *wish = mica__env(MICA__ENV_ACCELERATE), *path = wish ? wish : SGEMM_LIBRARY;
    if (!path) {
        mica__text_add(&note, "not used: no Accelerate on this system");
        return;
    }
    if (strcmp(path, "0") == 0) {
        mica__text_add(&note, "not used: switched off");
        return;
    }
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library) *(void **)&accelerate_sgemm = dlsym(library, "cblas_sgemm");
    if (accelerate_sgemm) mica__text_add(&note, "large f32, f16 and bf16 products by cblas_sgemm of %s", path);
    else if (library) mica__text_add(&note, "not used: %s has no cblas_sgemm", path);
    else mica__text_add(&note, "not used: %s", dlerror());
}

static void accelerate_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_accelerate);
}

mica__sgemm_fn mica__accelerate_sgemm(void)
{
    accelerate_once();
    return accelerate_sgemm;
}

const char *mica__accelerate_note(void)
{
    accelerate_once();
    return accelerate_note;
}

mica_status mica__accelerate_check(void)
{
    const char *wish = mica__env(MICA__ENV_ACCELERATE);
    if (!wish || strcmp(wish, "0") == 0 || mica__accelerate_sgemm()) return MICA_OK;
    return mica__fail(MICA_ERR_ARGUMENT, "open: MICA_ACCELERATE is \"%s\": %s", wish, mica__accelerate_note());
}

enum { SGEMM_ORDER_ROWS = 101, SGEMM_PLAIN = 111, SGEMM_TRANSPOSED = 112 };
enum { SGEMM_LEAST = 1 << 18 }; /* multiply-adds; below, the call costs more than it saves */

/* Is the product large enough for sgemm to be faster, and do its sizes fit an int? */
static bool sgemm_pays(int64_t m, int64_t n, int64_t k)
{
    if (m < 2 || n < 2 || k < 1 || m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) return false;
    return m * n >= SGEMM_LEAST / k;
}

/* Is an operand (rows, cols) with these strides a BLAS layout: contiguous rows, or contiguous
 * columns (transposed)? ld: the stride of these rows or columns. */
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
    if (!sgemm || !sgemm_pays(m, n, k)) return false;
    if (!sgemm_layout(m, k, a->i_step, a->k_step, &trans_a, &lda)) return false;
    if (!sgemm_layout(k, n, b->k_step, b->i_step, &trans_b, &ldb)) return false;
    sgemm(SGEMM_ORDER_ROWS, trans_a, trans_b, (int)m, (int)n, (int)k, 1.0f, (const float *)(const void *)a->data, lda,
          (const float *)(const void *)b->data, ldb, 0.0f, c, (int)n);
    return true;
}

/* ------------------------------------------------------------------- widened -- */

size_t mica__sgemm_scratch(mica_dtype out, int64_t m, int64_t n, int64_t k)
{
    if (!sgemm_pays(m, n, k)) return 0;
    const size_t rows = (size_t)m + (size_t)n, sums = out == MICA_F32 ? 0 : (size_t)m * (size_t)n;
    size_t floats, bytes;
    if (!mica__mul_size(rows, (size_t)k, &floats) || !mica__add_size(floats, sums, &floats) ||
        !mica__mul_size(floats, sizeof(float), &bytes))
        return 0;
    return bytes;
}

typedef struct widen_job {
    const mica__gemm_view *view;
    int64_t k;
    float *wide;                /* widening: the result, contiguous lines along k        */
    char *narrow;               /* narrowing: the result, lines of this dtype            */
    mica_dtype dtype;
} widen_job;

static void widen_lines(const void *context, int64_t begin, int64_t end)
{
    const widen_job *job = context;
    const mica__gemm_view *v = job->view;
    const int64_t size = (int64_t)mica_dtype_size(v->dtype);
    for (int64_t i = begin; i < end; i++)
        mica__load_f32(v->dtype, job->k, job->wide + i * job->k, v->data + i * v->i_step * size, v->k_step);
}

static void narrow_lines(const void *context, int64_t begin, int64_t end)
{
    const widen_job *job = context;
    const int64_t size = (int64_t)mica_dtype_size(job->dtype);
    for (int64_t i = begin; i < end; i++)
        mica__store_f32(job->dtype, job->k, job->narrow + i * job->k * size, 1, job->wide + i * job->k);
}

void mica__gemm_by_wide_sgemm(mica__sgemm_fn sgemm, mica__pool *pool, const mica__gemm_view *a,
                              const mica__gemm_view *b, int64_t m, int64_t n, int64_t k, char *c, mica_dtype out,
                              void *scratch)
{
    float *const wide_a = scratch, *const wide_b = wide_a + m * k;
    float *const sums = out == MICA_F32 ? (float *)(void *)c : wide_b + n * k;
    mica__run_rows(pool, m, k, widen_lines, &(widen_job){.view = a, .k = k, .wide = wide_a});
    mica__run_rows(pool, n, k, widen_lines, &(widen_job){.view = b, .k = k, .wide = wide_b});
    sgemm(SGEMM_ORDER_ROWS, SGEMM_PLAIN, SGEMM_TRANSPOSED, (int)m, (int)n, (int)k, 1.0f, wide_a, (int)k, wide_b, (int)k,
          0.0f, sums, (int)n);
    if (out != MICA_F32)
        mica__run_rows(pool, m, n, narrow_lines, &(widen_job){.k = n, .wide = sums, .narrow = c, .dtype = out});
}
