/* Rotary positions on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_ROPE_PARAMS_H
#define MICA_KERNELS_ROPE_PARAMS_H

/* Function constants of rope.metal. */
#define MICA_ROPE_DTYPE 0
#define MICA_ROPE_INTERLEAVED 1
#define MICA_ROPE_INVERSE 2

typedef struct mica_rope_params {
    mica_view x, table;          /* of the first element of each row             */
    int64_t step, table_step;
    uint32_t rows, n, dims, work; /* work: threads a row                          */
} mica_rope_params;
MICA_LAYOUT(mica_rope_params, 256);

#endif
