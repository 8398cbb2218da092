/* Shared by the files of the trained decoder. */
#ifndef MICA_NN_DECODER_NET_H
#define MICA_NN_DECODER_NET_H

#include "mica_nn.h"

/* Reads the caller's shape by the rule of mica.h ("structs") and validates it. */
mica_status mica__decoder_shape_read(const mica_decoder_shape *given, mica_decoder_shape *shape);

#endif
