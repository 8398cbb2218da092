/* The table of rotary positions on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_ROPE_TABLE_PARAMS_H
#define MICA_KERNELS_ROPE_TABLE_PARAMS_H

/* Doubles are their bits. */
typedef struct mica_rope_table_params {
    mica_view positions;
    int64_t factor_start, factor_step;
    uint64_t scale, magnitude;
    uint32_t count, pairs;
    uint64_t power[256];         /* base^(-2i / dims)                            */
} mica_rope_table_params;
MICA_LAYOUT(mica_rope_table_params, 2200);

#endif
