/* Asynchronous evaluation: a queue of runs, one thread that runs them in order, and
 * events that are signalled when a run has ended. */
#ifndef MICA_RUNTIME_STREAM_H
#define MICA_RUNTIME_STREAM_H

#include "runtime/run.h"

/* Queues a run whose results are outs[], which become pending at once. Owns the run
 * on success. leaf[] are the arrays that it reads; they are kept until it has ended. */
mica_status mica__stream_submit(mica__run *run, mica_array *const *outs, size_t n_out, mica_array *const *leaf,
                                size_t n_leaf, mica_event **event);
/* Runs what is queued, then ends the thread. NULL is allowed. */
void mica__stream_free(mica__stream *stream);

/* Waits; returns the status of the run and sets its error message for this thread. */
mica_status mica__event_wait(mica_event *event);

#endif
