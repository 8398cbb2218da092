/* SM_COUNT=file and sm_count (softmetal.h): which kernels are counted, and the line of JSON for each dispatch. */
#ifndef SOFTMETAL_COUNT_RECORD_H
#define SOFTMETAL_COUNT_RECORD_H

#include "../core.h"

/* Whether kernels that are built now are counted. */
bool sm_count_wanted(void);

/* How many of the threadgroups of a dispatch to count. */
uint64_t sm_count_sample(uint64_t groups, uint32_t threads);
/* Whether a threadgroup is one of the sample: one of each `groups / sample` that follow each other, not always at the
 * same place among them, or the sample would be columns of a grid. */
bool sm_count_is_sampled(uint64_t number, uint64_t groups, uint64_t sample);

/* Function constants as JSON, "{\"rows\":4}"; NULL: out of memory. */
char *sm_count_constants(const sm_library *library, const sm_constant *values, int count);

/* Appends the record of a dispatch to the file, if there is one. false: message. */
bool sm_count_write(const sm_kernel *kernel, const sm_dispatch *dispatch, char **message);

#endif
