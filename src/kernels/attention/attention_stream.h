/* Attention of a few queries over many keys (attention_stream.c). */
#ifndef MICA_KERNELS_ATTENTION_STREAM_H
#define MICA_KERNELS_ATTENTION_STREAM_H

#include "kernels/attention/attention_job.h"

/* Is this the way for these operands: few queries, and possible? */
bool mica__attention_streams(const mica__tensor *in);
/* Is it possible, for any number of queries? */
bool mica__attention_can_stream(const mica__tensor *in);
/* Floats of scratch for it. */
size_t mica__attention_stream_floats(const mica__tensor *in);
void mica__attention_stream(const mica__attention_job *job);

#endif
