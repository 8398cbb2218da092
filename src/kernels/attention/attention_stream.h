/* Attention of a few queries over many keys (attention_stream.c). */
#ifndef MICA_KERNELS_ATTENTION_STREAM_H
#define MICA_KERNELS_ATTENTION_STREAM_H

#include "kernels/attention/attention_job.h"

/* Should these operands be streamed: there are few queries, and it is possible. */
bool mica__attention_streams(const mica__tensor *in);
/* Can these operands be streamed, for any number of queries? */
bool mica__attention_can_stream(const mica__tensor *in);
/* Floats of scratch that streaming needs. */
size_t mica__attention_stream_floats(const mica__tensor *in);
void mica__attention_stream(const mica__attention_job *job);

#endif
