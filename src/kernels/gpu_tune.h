/* Tile shapes and thread counts of the GPU kernels as data (gpu_tune.def), chosen by a pure
 * function of the device and the work, and by a tuner.
 *
 * A knob is one such choice. Lowerings call mica__gpu_pick. It returns the candidate that the tuning in the limits
 * selects, if that fits the device, and the choice of the rule otherwise. A tuner does:
 *
 *   for each knob, for each candidate i of mica__gpu_knob_get(knob).n that mica__gpu_fits:
 *       tuning.candidate[knob] = i + 1, mica__metal_tune(&tuning), and times its op on a new engine.
 *
 * The engine must be new because existing plans keep their shapes. The tuner stores the output of
 * mica__gpu_tuning_print; mica__gpu_tuning_parse reads it. */
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

/* 0: use the rule; i + 1: candidate i. */
typedef struct mica__gpu_tuning {
    uint8_t candidate[MICA__GPU_KNOBS];
} mica__gpu_tuning;

typedef struct mica__gpu_shape {
    mica__gpu_knob knob;
    const char *name;
    uint32_t first;             /* first GPU family for which the rule uses it           */
    uint32_t m, n, k;           /* meaning: see the knob in gpu_tune.def                 */
    uint32_t simds;             /* simdgroups per threadgroup                            */
    uint32_t bytes;             /* threadgroup memory                                    */
} mica__gpu_shape;

typedef struct mica__gpu_knob_info {
    const char *name;
    mica__op op;                /* the op whose lowering uses it                         */
    const mica__gpu_shape *shape;
    uint32_t n;
} mica__gpu_knob_info;

typedef struct mica__gpu_limits mica__gpu_limits;

mica__gpu_knob_info mica__gpu_knob_get(mica__gpu_knob knob);
/* Does it fit the limits of a threadgroup of this device? */
bool mica__gpu_fits(const mica__gpu_limits *gpu, const mica__gpu_shape *shape);
/* Returns the tuned candidate, or the first, that fits and satisfies enough(shape, work); else the last that fits; NULL
 * if none fits. enough NULL: accept any. The tuned candidate must satisfy enough too, because it was measured with much
 * work and may leave too few threadgroups for little work. */
const mica__gpu_shape *mica__gpu_pick(const mica__gpu_limits *gpu, mica__gpu_knob knob,
                                      bool (*enough)(const mica__gpu_shape *shape, const void *work), const void *work);

/* Prints `name=candidate` for each tuned knob, separated by spaces. */
void mica__gpu_tuning_print(const mica__gpu_tuning *tuning, mica__text *text);
/* MICA_ERR_FORMAT, with its name, for an unknown knob or candidate: the file is of another version. *tuning is only set
 * if the whole text is valid. */
mica_status mica__gpu_tuning_parse(const char *text, mica__gpu_tuning *tuning);

#endif
