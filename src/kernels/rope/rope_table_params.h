/* The table of rotary positions on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_ROPE_TABLE_PARAMS_H
#define MICA_KERNELS_ROPE_TABLE_PARAMS_H

/* Function constants of rope_table.metal. */
#define MICA_ROPE_TABLE_POSITION_TYPE 0
#define MICA_ROPE_TABLE_FACTOR_TYPE 1
#define MICA_ROPE_TABLE_HAS_FACTORS 2

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
