/* What a dispatch of a counted kernel executed and touched. Counts are exact for the threadgroups that were counted;
 * of a large grid those are a sample, and every count is scaled by threads of the grid / threads counted. */
#ifndef SOFTMETAL_COUNTS_H
#define SOFTMETAL_COUNTS_H

#include <stdint.h>

typedef enum sm_cost {
#define X(id, name, cost, slots, pipe, title) SM_COST_##id,
#include "classes.def"
#undef X
    SM_COSTS,
    SM_COST_FREE = SM_COSTS
} sm_cost;

typedef enum sm_rule {
#define FOLD(id, name, text) SM_RULE_##id,
#include "rules.def"
    SM_RULES
} sm_rule;

typedef struct sm_counts {
    double operations[SM_COSTS]; /* executed by threads */
    double issued[SM_COSTS];     /* simd instructions: for 32 threads, or fewer active ones */
    /* Lane cycles, 32 for each simd instruction of cost 1, inactive lanes included. */
    double sum;     /* of all costs */
    double slots;   /* of the scheduler */
    double pipe;    /* of the pipeline of the classes of cost 4 */
    double overlap; /* the larger of the two */
    double active_lanes; /* of 32, weighted by cost */

    double loaded_bytes, stored_bytes;   /* device memory, by threads */
    double device_accesses;              /* simd instructions */
    double lines_touched, lines_ideal;   /* of 128 bytes, for each simd instruction; ideal: its bytes side by side */
    double constant_accesses, constant_bytes; /* at a variable index */
    double local_accesses, local_bytes;  /* threadgroup memory; accesses: simd instructions */
    double local_cycles, local_ideal;    /* 32 banks of 4 bytes (assumed), one word of a bank a cycle */
    double read_bytes, written_bytes;    /* different bytes of device memory that the dispatch reads, writes */

    unsigned registers;        /* 16-bit, live at the widest point: an estimate */
    unsigned resident_threads; /* on a core, by registers and threadgroup memory, in whole threadgroups */
    unsigned thread_bytes;     /* arrays of a thread that are not in registers */
    uint64_t threadgroup_bytes;
    uint64_t groups, counted; /* threadgroups of the grid, and those counted */
    unsigned folds[SM_RULES]; /* how often a rule applies in the text of the kernel */
} sm_counts;

#endif
