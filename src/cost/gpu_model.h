/* Modelled time of a GPU kernel: exact counts of what it executes and touches (softmetal, SM_COUNT) and the figures of
 * a chip (machine/chips.h) give the time of each part of the GPU; the slowest part bounds the kernel. A pure function.
 * Its result is an estimate and is called modelled wherever it is shown; docs/GPU-MODEL.md states its accuracy.
 *
 *             issue slots, slow pipe --> ALU ------------------+
 *   counts -> 128-byte lines ---------> L1, L2, SLC, DRAM -----+--> the longest / occupancy + launch
 *             threadgroup accesses ---> threadgroup memory ----+
 */
#ifndef MICA_COST_GPU_MODEL_H
#define MICA_COST_GPU_MODEL_H

#include "machine/chips.h"

/* Of one dispatch, over all its threads. A cycle is one of a scheduler for a simdgroup of 32 lanes. */
typedef struct mica__gpu_counts {
    double issue_cycles;        /* one for each instruction                                          */
    double slow_cycles;         /* of the pipe for conversions, shifts, integer products, exp2, ...  */
    double sum_cycles;          /* all costs added up, as if nothing overlapped                      */
    double line_bytes;          /* 128 for each line of device memory that a simd access touches     */
    double unique_bytes;        /* different bytes of device memory                                  */
    double local_cycles;        /* of threadgroup memory, conflicts of banks included                */
    double simdgroups;          /* launched                                                          */
    double resident;            /* simdgroups that a core can hold, by registers and threadgroup memory; 0: unknown */
} mica__gpu_counts;

/* The constants of the model that no source gives: fitted to published timings by tools/calibrate_gpu_model.py. */
typedef struct mica__gpu_fit {
    double alu, memory;         /* share of the peak that a good kernel reaches           */
    double launch;              /* seconds from a dispatch to the next that depends on it */
} mica__gpu_fit;
extern const mica__gpu_fit mica__gpu_default_fit;

typedef enum mica__gpu_roof {
    MICA__ROOF_ALU,
    MICA__ROOF_L1,
    MICA__ROOF_L2,
    MICA__ROOF_SLC,
    MICA__ROOF_DRAM,
    MICA__ROOF_LOCAL,           /* threadgroup memory */
    MICA__ROOF_LAUNCH,
    MICA__GPU_ROOFS
} mica__gpu_roof;

typedef struct mica__gpu_estimate {
    double seconds;             /* with the launch                                               */
    mica__gpu_roof bound;       /* the part that takes longest                                   */
    double part[MICA__GPU_ROOFS]; /* seconds of each part alone; 0: its rate is unknown          */
    double occupancy;           /* 0 to 1: share of the schedulers that the simdgroups keep busy */
} mica__gpu_estimate;

const char *mica__gpu_roof_name(mica__gpu_roof roof);

/* fit NULL: mica__gpu_default_fit. MICA_ERR_UNSUPPORTED if a figure of the chip is unknown. */
mica_status mica__gpu_model(const mica__gpu_counts *counts, const mica__chip *chip, const mica__gpu_fit *fit,
                            mica__gpu_estimate *estimate);

#endif
