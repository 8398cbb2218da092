/* Asynchronous evaluation: a queue of runs, one thread that works it off, and
 * the events that tell when a run is over. */
#ifndef MICA_RUNTIME_STREAM_H
#define MICA_RUNTIME_STREAM_H

#include "runtime/run.h"

/* Queue a run whose results are outs[]; they become pending at once. Takes over
 * the run on success. leaf[] are what it reads; they are kept until it ended. */
mica_status mica__stream_submit(mica__run *run, mica_array *const *outs, size_t n_out, mica_array *const *leaf,
                                size_t n_leaf, mica_event **event);
/* Works off what is queued, then ends the thread. NULL is fine. */
void mica__stream_free(mica__stream *stream);

/* Waits; the status and text of the run on this thread. */
mica_status mica__event_wait(mica_event *event);

#endif
