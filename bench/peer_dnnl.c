/* oneDNN, through its plain matrix products. Threads: OMP_NUM_THREADS. */
#include <dnnl.h>

static const char *dnnl_text(void);
#define PEER_VERSION(argc, argv) ((void)(argc), (void)(argv), dnnl_text())
#include "peer.h"

static const char *dnnl_text(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

static void run_matmul(const peer_work *w)
{
    for (long i = 0; i < w->m; i++) {
        const long at = i * w->n * w->n;
        dnnl_sgemm('N', 'N', w->n, w->n, w->n, 1, w->a + at, w->n, w->b + at, w->n, 0, w->c + at, w->n);
    }
}

static void run_linear(const peer_work *w)
{
    dnnl_sgemm('N', 'T', w->m, w->n, w->k, 1, w->a, w->k, w->b, w->k, 0, w->c, w->n);
}

static void run_matmul_i8(const peer_work *w)
{
    const int32_t zero = 0;
    dnnl_gemm_s8s8s32('N', 'N', 'F', w->n, w->n, w->n, 1, (const int8_t *)w->a, w->n, 0, (const int8_t *)w->b, w->n, 0,
                      0, (int32_t *)w->c, w->n, &zero);
}

static void run_linear_i8(const peer_work *w)
{
    const int32_t zero = 0;
    dnnl_gemm_s8s8s32('N', 'T', 'F', w->m, w->n, w->k, 1, (const int8_t *)w->a, w->k, 0, (const int8_t *)w->b, w->k, 0,
                      0, (int32_t *)w->c, w->n, &zero);
}

static bool peer_make(const char *name, peer_work *w)
{
    const size_t n = 1024, row = 4096;
    long m;
    if (strcmp(name, "matmul_i8_1024") == 0) {
        *w = (peer_work){run_matmul_i8,     1024, 1, 1024, peer_floats(n * n / 4), peer_floats(n * n / 4),
                         peer_floats(n * n)};
        return true;
    }
    if (sscanf(name, "linear_i8_4096_b%ld", &m) != 1) return peer_make_product(name, w, run_matmul, run_linear);
    *w = (peer_work){run_linear_i8,
                     4096,
                     m,
                     4096,
                     peer_floats((size_t)m * row / 4),
                     peer_floats(row * row / 4),
                     peer_floats((size_t)m * row)};
    return true;
}
