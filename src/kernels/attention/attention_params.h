/* Attention on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_ATTENTION_PARAMS_H
#define MICA_KERNELS_ATTENTION_PARAMS_H

/* An operand of up to four axes, counted from its lowest element. */
typedef struct mica_head_view {
    int64_t start, stride[4];
} mica_head_view;
MICA_LAYOUT(mica_head_view, 40);

typedef struct mica_attention_params {
    mica_head_view q, k, v, mask; /* (B, H or G, T or S, D or E); mask (B, H, T, S) */
    mica_head_view k_scale, v_scale; /* (B, G, S)                                   */
    mica_head_view c;             /* of gradients: that of the result               */
    float scale;
    uint32_t heads, groups, times, keys, dims, size;
    uint32_t parts, each;         /* of the keys, for few queries                   */
    uint32_t rows;                /* B * H * T                                      */
    uint32_t tile, unused;        /* queries of a tile, for many                    */
} mica_attention_params;
MICA_LAYOUT(mica_attention_params, 328);

#endif
