/* What the files of the decoder share. */
#ifndef MICA_NN_DECODER_NET_H
#define MICA_NN_DECODER_NET_H

#include "mica_nn.h"

/* The caller's shape, read by the rule of mica.h ("structs") and checked. */
mica_status mica__decoder_shape_read(const mica_decoder_shape *given, mica_decoder_shape *shape);

#endif
