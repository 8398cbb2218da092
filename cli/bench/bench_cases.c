/* The table of benchmarks: bench_cases.def as data. */
#include "bench/bench.h"

enum { SHORT = false, LONG = true };

const bench_case bench_cases[] = {
#define CASE(name, family, mode, roof, when, what, ...) \
    {#name, what, &bench_##family, {__VA_ARGS__}, BENCH_##mode, BENCH_##roof, when},
#include "bench/bench_cases.def"
#undef CASE
};

const size_t n_bench_cases = sizeof bench_cases / sizeof bench_cases[0];
