/* mica bench: what its files share.
 *
 * bench_cases.def says what can be measured, bench_work.c, bench_decode.c and bench_graphs.c build
 * it, bench_time.c times it, bench_print.c prints it, bench.c is the command. All
 * of it stands on mica.h alone, so it measures what a user of the library gets. */
#ifndef MICA_CLI_BENCH_H
#define MICA_CLI_BENCH_H

#include <mica.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/command.h"

enum { BENCH_MAX_IN = 64, BENCH_MAX_OUT = 64, BENCH_MAX_PARAM = 6 };

/* ---------------------------------------------------------------- cases --- */

typedef struct bench_case bench_case;

/* One case being measured on one engine. */
typedef struct bench_state {
    const bench_case *c;
    mica_engine *engine;
    mica_scope *inputs;             /* owns in[]                                     */
    mica_array *in[BENCH_MAX_IN];   /* evaluated before the timer starts             */
    size_t n_in;
    mica_function *function;        /* BENCH_CALL                                    */
} bench_state;

/* What one run does, as counted from the shapes; never from what was done. */
typedef struct bench_work {
    double flops;      /* 0: not counted                                             */
    double bytes;      /* each input read once, each output written once; 0: none    */
    double touched;    /* bytes that must be somewhere near: chooses the memory roof */
    bool writes;       /* as much as it reads, more or less                          */
    double items;
    const char *item;  /* what items are: "element", "node"                          */
} bench_work;

/* Of a kind of work; a case is one size of it. */
typedef struct bench_family {
    const char *name;
    /* Fill in[] with lazy arrays of b->inputs. */
    void (*make)(bench_state *b);
    /* Build the graph from in[] in s, fill out[]; returns how many. */
    size_t (*build)(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out);
    /* Correct what was counted from the arrays: flops, items. */
    void (*count)(const bench_case *c, bench_work *work);
} bench_family;

typedef enum bench_mode {
    BENCH_EVAL,  /* build the graph and mica_eval it                                   */
    BENCH_CALL,  /* mica_call a compiled function: no graph is built                   */
    BENCH_BUILD, /* build only                                                         */
    BENCH_DROP,  /* mica_scope_end of what was built                                   */
    BENCH_FIRST  /* mica_eval on a new engine: simplify, plan, run                     */
} bench_mode;

/* Which of the multiply peaks limits it. */
typedef enum bench_roof { BENCH_F32, BENCH_BF16, BENCH_I8 } bench_roof;

struct bench_case {
    const char *name, *what;
    const bench_family *family;
    int64_t p[BENCH_MAX_PARAM];     /* sizes, as the family reads them                 */
    bench_mode mode;
    bench_roof roof;
    bool is_long;                   /* only with --long, or by its name                */
};

extern const bench_case bench_cases[];
extern const size_t n_bench_cases;

/* bench_work.c */
extern const bench_family bench_matmul, bench_matmul_i8, bench_linear, bench_gelu, bench_chain, bench_typed_chain,
    bench_softmax, bench_layernorm, bench_rmsnorm, bench_sum, bench_transpose, bench_take, bench_sort, bench_random,
    bench_attention, bench_conv, bench_ternary, bench_blocks;
/* bench_decode.c */
extern const bench_family bench_cache, bench_decode;
/* bench_graphs.c */
extern const bench_family bench_mlp, bench_tiny, bench_kernels, bench_deep;

/* bench_liquid.c */
extern const bench_family bench_liquid;

/* ----------------------------------------------------------------- time --- */

typedef struct bench_result {
    const bench_case *c;
    int threads;
    bench_work work;
    size_t runs;
    double fastest_ns, median_ns, p10_ns, p90_ns;
    double gate_before, gate_after; /* two threads over one; NaN with one thread       */
    /* from the peaks, by bench_compare: */
    double compute_percent;         /* of the multiply peak; NaN: not counted          */
    double memory_percent;          /* of the memory that touched fits in              */
    const char *memory_roof;        /* which that is: "L2", "DRAM triad"               */
    const char *excess;             /* more than the machine can do: of what; or NULL  */
    double excess_rate, excess_peak;
} bench_result;

/* Below this a second thread had no core of its own. */
#define BENCH_GATE 1.85
/* More than this part of a peak is a mistake of the benchmark. */
#define BENCH_TOO_MUCH 1.05

bool bench_gated(const bench_result *r);

/* Runs a case for about so many seconds after warming up. MICA_OK, or a failure
 * with its message in mica_last_error() or, if that is empty, in *why. */
mica_status bench_time(mica_engine *engine, const bench_case *c, double seconds, bench_result *r, const char **why);

/* Fill in the percentages, and what is above a peak. */
void bench_compare(bench_result *r, const mica_peaks *peaks);

/* ---------------------------------------------------------------- print --- */

typedef enum bench_format { BENCH_MD, BENCH_CSV, BENCH_JSON } bench_format;

/* All results of one number of threads, and the peaks measured with them. */
typedef struct bench_session {
    int threads;
    bool has_peaks;
    mica_peaks peaks;
    bench_result *results;
    size_t n;
} bench_session;

/* The form of the command that measures a model, and whether the arguments call it. */
extern const cli_command cli_bench_command, cli_bench_model_command;
const cli_command *cli_bench_form(int argc, char **argv);

void bench_print(FILE *to, bench_format format, const bench_session *sessions, size_t n);

#endif
