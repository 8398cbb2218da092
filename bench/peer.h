/* Shared by the peers in C. bench/peers.py starts a peer, writes lines "NAME SECONDS" to it, and reads one line of
 * JSON for each: fastest and median time, or why there is no result. Timing is as in `mica bench`: inputs are made
 * before the timer starts.
 *
 * A peer defines peer_make and includes this file once. */
#ifndef MICA_BENCH_PEER_H
#define MICA_BENCH_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct peer_work {
    void (*run)(const struct peer_work *w);
    long n, m, k;      /* sizes, as run reads them           */
    float *a, *b, *c;  /* from peer_floats, freed afterwards */
} peer_work;

/* Fills in w for a case of `mica bench`; false: this peer does not support it. */
static bool peer_make(const char *name, peer_work *w);

/* 64-byte aligned, on huge pages if available, filled with small numbers. */
static float *peer_floats(size_t n)
{
    const size_t nbytes = (n * sizeof(float) + 2097151) / 2097152 * 2097152;
    float *p = aligned_alloc(2097152, nbytes);
    if (!p) exit(1);
    for (size_t i = 0; i < n; i++) p[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
    return p;
}

/* Products that every BLAS has: run_matmul computes m products of n x n; run_linear computes x(m,k) times the
 * transpose of w(n,k). */
static inline bool peer_make_product(const char *name, peer_work *w, void (*run_matmul)(const peer_work *),
                                     void (*run_linear)(const peer_work *))
{
    long n, m = 1;
    char rest[2];
    if (sscanf(name, "matmul_f32_%ld%1s", &n, rest) == 1 ||
        (sscanf(name, "matmul_f32_%ldx%ld%1s", &n, &m, rest) == 2)) {
        const size_t floats = (size_t)(n * n * m);
        *w = (peer_work){run_matmul, n, m, n, peer_floats(floats), peer_floats(floats), peer_floats(floats)};
        return true;
    }
    if (sscanf(name, "linear_4096_b%ld", &m) != 1) return false;
    const size_t row = 4096, rows = (size_t)m;
    *w = (peer_work){
        run_linear, 4096, m, 4096, peer_floats(rows * row), peer_floats(row * row), peer_floats(rows * row)};
    return true;
}

static double peer_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int peer_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t peer_sample(const peer_work *w, double seconds, double *ns, size_t max)
{
    const double end = peer_now() + 1e9 * seconds;
    size_t n = 0;
    for (; n < max && (n < 3 || peer_now() < end); n++) {
        const double start = peer_now();
        w->run(w);
        ns[n] = peer_now() - start;
    }
    return n;
}

int main(int argc, char **argv)
{
    enum { MAX = 100000 };
    static double ns[MAX];
    char name[128];
    double seconds;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("{\"version\": \"%s\"}\n", PEER_VERSION(argc, argv));
    while (scanf("%127s %lf", name, &seconds) == 2) {
        peer_work w = {0};
        if (!peer_make(name, &w)) {
            printf("{\"absent\": \"not in this library\"}\n");
            continue;
        }
        peer_sample(&w, seconds / 5, ns, MAX);
        const size_t n = peer_sample(&w, seconds, ns, MAX);
        qsort(ns, n, sizeof *ns, peer_by_value);
        printf("{\"fastest_ns\": %.9g, \"median_ns\": %.9g, \"runs\": %zu}\n", ns[0], ns[n / 2], n);
        free(w.a);
        free(w.b);
        free(w.c);
    }
    return 0;
}

#endif
