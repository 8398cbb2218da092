/* Counts while a kernel runs: blocks of code by thread, accesses by simdgroup. A counted kernel runs on one OS thread.
 *
 * The lanes of a simdgroup run one after another here. The n-th execution of a block or an access in each lane, since
 * the lanes last met (a barrier, a simd operation of all lanes, the start), is taken as one simd instruction. That is
 * what a GPU does, unless lanes go around an inner loop a different number of times in each round of an outer one. */
#ifndef SOFTMETAL_COUNT_TALLY_H
#define SOFTMETAL_COUNT_TALLY_H

#include "../core.h"
#include "../shim/abi.h"

struct sm_engine;
typedef struct sm_tally sm_tally;

/* For one dispatch. NULL: out of memory. */
sm_tally *sm_tally_open(struct sm_engine *engine, const sm_count_module *module, const sm_dispatch *dispatch);
void sm_tally_close(sm_tally *tally);

/* Call when a threadgroup begins and ends; is_counted: it is part of the sample. */
void sm_tally_begin(sm_tally *tally, bool is_counted);
void sm_tally_end(sm_tally *tally);
/* Call when another thread runs. */
void sm_tally_thread(sm_tally *tally, unsigned thread);
/* All lanes of the simdgroup that have not ended are at the same place. */
void sm_tally_meet(sm_tally *tally, unsigned simdgroup);

/* The result, after the last threadgroup. false: out of memory while counting. */
bool sm_tally_result(const sm_tally *tally, uint64_t groups, uint64_t threads, sm_counts *counts);

/* Called by kernels. */
void sm_count_access(const void *address, unsigned size, int kind, unsigned site);

#endif
