/* Shared by the files of mica bench.
 *
 * bench_cases.def lists the cases; bench_work.c, bench_decode.c, bench_graphs.c and bench_liquid.c build
 * their graphs; bench_time.c times them; bench_print.c prints the results; bench.c is the command. All
 * cases use public headers only, so they measure what a user of the library gets. */
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

/* The work of one run, counted from the shapes and not measured. */
typedef struct bench_work {
    double flops;      /* 0: not counted                                             */
    double bytes;      /* each input read once, each output written once; 0: not counted */
    double touched;    /* size of the working set, which selects the memory roof     */
    bool writes;       /* writes about as much as it reads                           */
    double items;
    const char *item;  /* name of an item: "element", "node"                         */
} bench_work;

/* A kind of work; a case is one size of it. */
typedef struct bench_family {
    const char *name;
    /* Fills in[] with lazy arrays of the scope b->inputs. */
    void (*make)(bench_state *b);
    /* Builds the graph from in[] in s and fills out[]; returns the number of outputs. */
    size_t (*build)(const bench_case *c, mica_scope *s, mica_array *const *in, mica_array **out);
    /* Sets what the arrays alone do not give: flops, items. */
    void (*count)(const bench_case *c, bench_work *work);
} bench_family;

typedef enum bench_mode {
    BENCH_EVAL,  /* build the graph and mica_eval it                                   */
    BENCH_CALL,  /* mica_call a compiled function: no graph is built                   */
    BENCH_BUILD, /* build only                                                         */
    BENCH_DROP,  /* mica_scope_end of what was built                                   */
    BENCH_FIRST  /* mica_eval on a new engine: simplify, plan, run                     */
} bench_mode;

/* Which multiply peak limits a case. */
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
    double gate_before, gate_after; /* speed of two threads over one; NaN with one thread */
    /* from the peaks, by bench_compare: */
    double compute_percent;         /* of the multiply peak; NaN: not counted          */
    double memory_percent;          /* of the peak of the memory that `touched` fits in */
    const char *memory_roof;        /* name of that memory: "L2 read", "DRAM triad"    */
    const char *excess;             /* unit of a rate above the peak; NULL: no excess  */
    double excess_rate, excess_peak;
} bench_result;

/* Below this ratio two threads shared a core. */
#define BENCH_GATE 1.85
/* A result above this fraction of a peak means that the benchmark is wrong. */
#define BENCH_EXCESS 1.05

bool bench_gated(const bench_result *r);

/* Warms up and runs a case for about `seconds`. On failure the error message is *why or,
 * if *why is NULL, mica_last_error(). */
mica_status bench_time(mica_engine *engine, const bench_case *c, double seconds, bench_result *r, const char **why);

/* Sets the percentages, and `excess` for rates above a peak. */
void bench_compare(bench_result *r, const mica_peaks *peaks);

/* ---------------------------------------------------------------- print --- */

typedef enum bench_format { BENCH_MD, BENCH_CSV, BENCH_JSON } bench_format;

/* All results for one number of threads, and the peaks for that number. */
typedef struct bench_session {
    int threads;
    bool has_peaks;
    mica_peaks peaks;
    bench_result *results;
    size_t n;
} bench_session;

/* The format that --format and --json choose together; CLI_USAGE after an error message: they disagree. */
int bench_choose_format(int format, bool json, bench_format *out);

/* The two forms of the command, and the function that chooses one by the arguments. */
extern const cli_command cli_bench_command, cli_bench_model_command;
const cli_command *cli_bench_form(int argc, char **argv);

void bench_print(FILE *to, bench_format format, const bench_session *sessions, size_t n);

#endif
