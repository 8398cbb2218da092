/* Attention on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_ATTENTION_PARAMS_H
#define MICA_KERNELS_ATTENTION_PARAMS_H

/* Function constants of attention_grad.metal. */
#define MICA_ATTENTION_GRAD_Q_TYPE 0
#define MICA_ATTENTION_GRAD_K_TYPE 1
#define MICA_ATTENTION_GRAD_V_TYPE 2
#define MICA_ATTENTION_GRAD_OUT_TYPE 3
#define MICA_ATTENTION_GRAD_MASK_TYPE 4
#define MICA_ATTENTION_GRAD_HAS_MASK 5
#define MICA_ATTENTION_GRAD_CAUSAL 6
#define MICA_ATTENTION_GRAD_C_TYPE 7

/* Function constants of attention.metal. */
#define MICA_ATTENTION_Q_TYPE 0
#define MICA_ATTENTION_K_TYPE 1
#define MICA_ATTENTION_V_TYPE 2
#define MICA_ATTENTION_OUT_TYPE 3
#define MICA_ATTENTION_MASK_TYPE 4
#define MICA_ATTENTION_HAS_MASK 5
#define MICA_ATTENTION_CAUSAL 6
#define MICA_ATTENTION_HAS_SCALES 7
#define MICA_ATTENTION_SCALE_TYPE 8
#define MICA_ATTENTION_CACHED 9
#define MICA_ATTENTION_LENGTH_TYPE 10
#define MICA_ATTENTION_IN_PARTS 11
#define MICA_ATTENTION_ONLY_ODD 12
#define MICA_ATTENTION_RUNS 13

/* An operand of up to four axes, counted from its lowest element. */
typedef struct mica_head_view {
    int64_t start, stride[4];
} mica_head_view;
MICA_LAYOUT(mica_head_view, 40);

typedef struct mica_attention_params {
    mica_head_view q, k, v, mask; /* (B, H or G, T or S, D or E); mask (B, H, T, S) */
    mica_head_view k_scale, v_scale; /* (B, G, S)                                   */
    mica_head_view c;             /* gradients: the gradient of the result          */
    float scale;
    uint32_t heads, groups, times, keys, dims, size;
    uint32_t parts, each;         /* few queries: parts of the keys, keys of a part */
    uint32_t rows;                /* B * H * T                                      */
    uint32_t tile, unused;        /* many queries: queries of a tile                */
} mica_attention_params;
MICA_LAYOUT(mica_attention_params, 328);

#endif
