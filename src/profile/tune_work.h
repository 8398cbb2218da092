/* The work that is timed for each choice of the GPU kernels (kernels/gpu_tune.h): one op, large
 * enough to keep a GPU busy; a smaller size is used for a software device. */
#ifndef MICA_PROFILE_TUNE_WORK_H
#define MICA_PROFILE_TUNE_WORK_H

#include "kernels/gpu_tune.h"
#include "mica.h"

enum { MICA__TUNE_INPUTS = 3, MICA__TUNE_TEXT = 64 };

/* The inputs of one work, made on one engine. */
typedef struct mica__tune_inputs {
    mica__gpu_knob knob;
    int64_t size[3];
    mica_array *in[MICA__TUNE_INPUTS];
    mica_quant matrix;          /* format NULL: not used                                 */
} mica__tune_inputs;

/* Makes and evaluates the inputs; the scope owns them. */
mica_status mica__tune_inputs_make(mica_scope *s, mica__gpu_knob knob, bool small, mica__tune_inputs *inputs);
/* Builds the graph; NULL: failure, which the scope keeps. */
mica_array *mica__tune_build(mica_scope *s, const mica__tune_inputs *inputs);
/* A description such as "f32 2048 x 2048 x 1024". */
void mica__tune_text(const mica__tune_inputs *inputs, char text[MICA__TUNE_TEXT]);

#endif
