/* Convolutions on the GPU. After common_params.h. */
#ifndef MICA_KERNELS_CONV_PARAMS_H
#define MICA_KERNELS_CONV_PARAMS_H

/* Function constants of conv.metal. */
#define MICA_CONV_DTYPE 0

/* As mica__conv_sizes; x and w are counted from their lowest elements. */
typedef struct mica_conv_params {
    int64_t x_start, x_batch, x_channel, x_step[2];
    int64_t w_start, w_out, w_channel, w_step[2];
    int32_t size[2], kernel[2], out[2];
    int32_t stride[2], pad[2], dilation[2], input_dilation[2];
    uint32_t batch, groups, channels, outs;
    uint32_t count, unused;
} mica_conv_params;
MICA_LAYOUT(mica_conv_params, 160);

#endif
