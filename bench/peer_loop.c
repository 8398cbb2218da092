/* The fused loop as a C compiler optimises it when everything is known: one thread, built for this machine only
 * (tools/peers.sh). It is the limit for kernels that are composed at run time. */
static const char *loop_compiler(int threads);
#include <math.h>
#define PEER_VERSION(argc, argv) loop_compiler((argc) > 1 ? atoi((argv)[1]) : 1)
#include "peer.h"

static int loop_threads;

static const char *loop_compiler(int threads)
{
    loop_threads = threads;
    return __VERSION__;
}

/* e^x to about 1 ulp, in a form that vectorises: x = n ln 2 + r, a polynomial in r, and n added to the exponent. */
static inline float exp_poly(float x)
{
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float n = rintf(x * 0x1.715476p+0f);
    const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const int32_t bits = ((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* tanh(u) = 1 - 2 / (e^2u + 1), so gelu_tanh(x) = x - x / (e^2u + 1) */
static void run_gelu(const peer_work *w)
{
    const float *restrict x = w->a;
    float *restrict y = w->c;
    for (long i = 0; i < w->n; i++) {
        const float t = x[i] * 1.1f + 0.1f;
        const float e = exp_poly(2.0f * 0.7978845608f * (t + 0.044715f * t * t * t));
        y[i] = (t - t / (e + 1.0f)) * 0.9f - 0.2f;
    }
}

static bool peer_make(const char *name, peer_work *w)
{
    if (loop_threads > 1) return false;
    const long n = strcmp(name, "gelu_64k") == 0 ? 65536 : strcmp(name, "gelu_16m") == 0 ? 16777216 : 0;
    if (n == 0) return false;
    *w = (peer_work){run_gelu, n, 0, 0, peer_floats((size_t)n), NULL, peer_floats((size_t)n)};
    return true;
}
