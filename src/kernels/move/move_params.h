/* Pad, concat and unwindow on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_MOVE_PARAMS_H
#define MICA_KERNELS_MOVE_PARAMS_H

/* Function constants of move.metal. */
#define MICA_MOVE_ELEMENT_BYTES 0
#define MICA_MOVE_DTYPE 1

/* Element i of one view becomes element i of the other. */
typedef struct mica_copy_params {
    mica_view from, to;
    uint32_t count, unused;
} mica_copy_params;
MICA_LAYOUT(mica_copy_params, 232);

typedef struct mica_pad_params {
    int64_t start, stride[8];    /* of x                                         */
    int64_t low[8], every[8];
    uint32_t from[8], to[8];     /* sizes                                        */
    uint64_t value;
    uint32_t ndim, count;
} mica_pad_params;
MICA_LAYOUT(mica_pad_params, 280);

typedef struct mica_unwindow_params {
    mica_view x;                 /* without the axis of windows and the last axis */
    int64_t axis_step, window_step;
    int64_t stride, dilation;
    uint32_t windows, size;      /* how many windows, of how many elements       */
    uint32_t full, inner;        /* of the result: size of the axis, and of those after it */
    uint32_t count, unused;
} mica_unwindow_params;
MICA_LAYOUT(mica_unwindow_params, 168);

#endif
