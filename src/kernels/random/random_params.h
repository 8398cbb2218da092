/* Random numbers on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_RANDOM_PARAMS_H
#define MICA_KERNELS_RANDOM_PARAMS_H

/* Function constants of random.metal. */
#define MICA_RANDOM_DTYPE 0
#define MICA_RANDOM_DIST 1
#define MICA_RANDOM_SEEDED 2

/* mica__dist: X(name, code). */
#define MICA_RANDOM_DISTS(X) X(BITS, 0) X(UNIFORM, 1) X(NORMAL, 2) X(TRUNCATED_NORMAL, 3) X(GUMBEL, 4) X(INTEGER, 5)

typedef struct mica_random_params {
    uint64_t seed;
    int64_t low;
    uint64_t range;              /* of integers                                  */
    float a, b;                  /* bounds of floats                             */
    float least, most;           /* of 16-bit floats                             */
    float below, middle, above;  /* normal: probability below a, between, above b */
    int32_t side;
    uint32_t count;
    uint32_t open;               /* `most` is excluded                           */
    float far_end, far_square, far_log_end, far_inside, far_beyond; /* mica__normal_far */
    uint32_t unused;
} mica_random_params;
MICA_LAYOUT(mica_random_params, 88);

#endif
