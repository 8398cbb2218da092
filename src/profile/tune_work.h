/* What is timed for each choice of the GPU kernels (kernels/gpu_tune.h): one op of a size that
 * keeps a GPU busy, and the same smaller for a device in software. */
#ifndef MICA_PROFILE_TUNE_WORK_H
#define MICA_PROFILE_TUNE_WORK_H

#include "kernels/gpu_tune.h"
#include "mica.h"

enum { MICA__TUNE_INPUTS = 3, MICA__TUNE_TEXT = 64 };

/* Inputs of one work, on one engine. */
typedef struct mica__tune_inputs {
    mica__gpu_knob knob;
    int64_t size[3];
    mica_array *in[MICA__TUNE_INPUTS];
    mica_quant matrix;          /* format NULL: none                                     */
} mica__tune_inputs;

/* Evaluated, and the scope's. */
mica_status mica__tune_inputs_make(mica_scope *s, mica__gpu_knob knob, bool small, mica__tune_inputs *inputs);
/* The op; NULL as every builder. */
mica_array *mica__tune_build(mica_scope *s, const mica__tune_inputs *inputs);
void mica__tune_text(const mica__tune_inputs *inputs, char text[MICA__TUNE_TEXT]);

#endif
