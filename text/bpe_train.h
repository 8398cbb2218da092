/* Trains a byte-level BPE tokenizer on a text. */
#ifndef MICA_TEXT_BPE_TRAIN_H
#define MICA_TEXT_BPE_TRAIN_H

#include "text/tokenizer.h"

/* mica_tokenizer_train has already checked the options. */
mica_status mica__bpe_train(const char *text, size_t length, const mica_bpe_options *options, mica_tokenizer **out);

#endif
