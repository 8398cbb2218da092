/* UPDATE on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_UPDATE_PARAMS_H
#define MICA_KERNELS_UPDATE_PARAMS_H

/* Function constants of update.metal. */
#define MICA_UPDATE_FROM_TYPE 0
#define MICA_UPDATE_TO_TYPE 1
#define MICA_UPDATE_START_TYPE 2
#define MICA_UPDATE_ELEMENT_BYTES 3

typedef struct mica_update_params {
    mica_view values, state;     /* both with the shape of the values            */
    int64_t step;                /* of the state along the axis                  */
    uint32_t n, size, count, unused; /* of the axis: values, state; all values   */
} mica_update_params;
MICA_LAYOUT(mica_update_params, 248);

#endif
