/* The measured peaks of a machine, as text and as JSON. */
#include <math.h>

#include "core/cli.h"

static const struct {
    const char *name, *unit, *key;
    size_t one, all; /* where in mica_peaks; all 0: there is only one figure */
} peak_lines[] = {
#define BOTH(name, unit, field) {name, unit, #field, offsetof(mica_peaks, field), offsetof(mica_peaks, field##_all)}
#define ONE(name, unit, field) {name, unit, #field, offsetof(mica_peaks, field), 0}
    BOTH("f32 multiply-add", "GFLOP/s", fma_f32),
    BOTH("8-bit integer dot", "Gop/s", dot_i8),
    BOTH("bf16 dot", "GFLOP/s", dot_bf16),
    BOTH("L1 read", "GB/s", l1_read),
    BOTH("L2 read", "GB/s", l2_read),
    BOTH("L3 read", "GB/s", l3_read),
    BOTH("DRAM read", "GB/s", dram_read),
    BOTH("DRAM copy", "GB/s", dram_copy),
    BOTH("DRAM triad", "GB/s", dram_triad),
    ONE("L1 size", "bytes", l1_bytes),
    ONE("L2 size", "bytes", l2_bytes),
    ONE("L3 size", "bytes", l3_bytes),
    ONE("fork-join", "us", fork_join_us),
    ONE("two threads / one", "times", two_threads),
#undef BOTH
#undef ONE
};
enum { N_PEAK_LINES = sizeof peak_lines / sizeof peak_lines[0] };

static double field_of(const mica_peaks *peaks, size_t at) { return *(const double *)((const char *)peaks + at); }

static void print_figure(FILE *to, double value)
{
    if (isnan(value)) fprintf(to, " | %12s", "unavailable");
    else fprintf(to, value < 10 ? " | %12.3f" : value < 1e4 ? " | %12.1f" : " | %12.0f", value);
}

void cli_print_peaks(FILE *to, const mica_peaks *peaks, int threads)
{
    fprintf(to, "| %-18s | %-7s | %12s | %6d thread%s |\n", "measured peak", "unit", "1 thread", threads,
            threads == 1 ? " " : "s");
    fprintf(to, "|--------------------|---------|--------------|----------------|\n");
    for (int i = 0; i < N_PEAK_LINES; i++) {
        fprintf(to, "| %-18s | %-7s", peak_lines[i].name, peak_lines[i].unit);
        print_figure(to, field_of(peaks, peak_lines[i].one));
        if (peak_lines[i].all) print_figure(to, field_of(peaks, peak_lines[i].all));
        else fprintf(to, " | %12s", "");
        fprintf(to, "   |\n");
    }
}

void cli_print_peaks_json(FILE *to, const mica_peaks *peaks, int threads)
{
    fprintf(to, "{\"threads\": %d", threads);
    for (int i = 0; i < N_PEAK_LINES; i++) {
        fprintf(to, ", \"%s\": ", peak_lines[i].key);
        cli_print_json_number(to, field_of(peaks, peak_lines[i].one));
        if (!peak_lines[i].all) continue;
        fprintf(to, ", \"%s_all\": ", peak_lines[i].key);
        cli_print_json_number(to, field_of(peaks, peak_lines[i].all));
    }
    fputs("}", to);
}
