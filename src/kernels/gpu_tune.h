/* Tile shapes and thread counts of the GPU kernels as data (gpu_tune.def), chosen by a pure
 * function of the device and the work, and by a tuner.
 *
 * A knob is one such choice. Lowerings ask mica__gpu_pick, which takes the candidate that the
 * tuning in the limits names, if it fits the device, and the rule's otherwise. A tuner
 *
 *   for each knob, for each candidate i of mica__gpu_knob_get(knob).n that mica__gpu_fits:
 *       tuning.candidate[knob] = i + 1, mica__metal_tune(&tuning), and times its op on a new engine,
 *
 * because plans that were made keep their shapes; it stores what mica__gpu_tuning_print writes, and
 * mica__gpu_tuning_parse reads it back. */
#ifndef MICA_KERNELS_GPU_TUNE_H
#define MICA_KERNELS_GPU_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "graph/graph.h"

#define MICA_SHAPE(id, name, first, m, n, k, simds, bytes)
typedef enum mica__gpu_knob {
#define MICA_KNOB(id, name, op) MICA__KNOB_##id,
#include "kernels/gpu_tune.def"
#undef MICA_KNOB
    MICA__GPU_KNOBS
} mica__gpu_knob;
#undef MICA_SHAPE

/* 0: as the rule says; i + 1: candidate i. */
typedef struct mica__gpu_tuning {
    uint8_t candidate[MICA__GPU_KNOBS];
} mica__gpu_tuning;

typedef struct mica__gpu_shape {
    mica__gpu_knob knob;
    const char *name;
    uint32_t first;             /* GPU family from which on the rule takes it            */
    uint32_t m, n, k;           /* gpu_tune.def says of what                             */
    uint32_t simds;             /* simdgroups of a threadgroup                           */
    uint32_t bytes;             /* threadgroup memory                                    */
} mica__gpu_shape;

typedef struct mica__gpu_knob_info {
    const char *name;
    mica__op op;                /* whose lowering asks                                   */
    const mica__gpu_shape *shape;
    uint32_t n;
} mica__gpu_knob_info;

typedef struct mica__gpu_limits mica__gpu_limits;

mica__gpu_knob_info mica__gpu_knob_get(mica__gpu_knob knob);
/* Has a threadgroup of this device room for it? */
bool mica__gpu_fits(const mica__gpu_limits *gpu, const mica__gpu_shape *shape);
/* The tuning's candidate, or the first, that fits with enough(shape, work), or the last that fits;
 * NULL: none does. enough NULL: any is. What was measured with much work says nothing of little:
 * so a tuning's candidate has to leave enough threadgroups too. */
const mica__gpu_shape *mica__gpu_pick(const mica__gpu_limits *gpu, mica__gpu_knob knob,
                                      bool (*enough)(const mica__gpu_shape *shape, const void *work), const void *work);

/* `name=candidate` for each knob that is not left to its rule, with spaces between. */
void mica__gpu_tuning_print(const mica__gpu_tuning *tuning, mica__text *text);
/* MICA_ERR_FORMAT, naming it, at a knob or a candidate that there is not: the file is of another
 * version. *tuning is set only if all of it was understood. */
mica_status mica__gpu_tuning_parse(const char *text, mica__gpu_tuning *tuning);

#endif
