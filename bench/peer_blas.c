/* OpenBLAS, through the CBLAS interface. Threads: OPENBLAS_NUM_THREADS. */
#include <cblas.h>

#define PEER_VERSION(argc, argv) ((void)(argc), (void)(argv), openblas_get_config())
#include "peer.h"

static void run_matmul(const peer_work *w)
{
    const int n = (int)w->n;
    for (long i = 0; i < w->m; i++) {
        const size_t at = (size_t)i * (size_t)n * (size_t)n;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, w->a + at, n, w->b + at, n, 0, w->c + at, n);
    }
}

/* x(m,k) times the transpose of w(n,k); one row is a matrix times a vector. */
static void run_linear(const peer_work *w)
{
    const int n = (int)w->n, m = (int)w->m, k = (int)w->k;
    if (m == 1) cblas_sgemv(CblasRowMajor, CblasNoTrans, n, k, 1, w->b, k, w->a, 1, 0, w->c, 1);
    else cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, w->a, k, w->b, k, 0, w->c, n);
}

static bool peer_make(const char *name, peer_work *w) { return peer_make_product(name, w, run_matmul, run_linear); }
