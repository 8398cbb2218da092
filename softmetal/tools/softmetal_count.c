/* softmetal-count: counts what one dispatch of a kernel costs on an Apple GPU, without a program around it. */
#include "count_arguments.h"
#include "softmetal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: softmetal-count FILE.metal KERNEL --grid X,Y,Z --threads X,Y,Z [options]\n"
    "  counts the operations and memory accesses of one dispatch (softmetal/README.md, Counting)\n"
    "  --grid X,Y,Z       threads of the grid       --threads X,Y,Z  threads of a threadgroup\n"
    "  --buffer N=SIZE[:zero|random|iota|FILE]   a buffer; SIZE in bytes, or with K, M, G; iota: 32-bit integers\n"
    "  --bytes N=HEX, --bytes N=TYPE:VALUE,...   a small buffer; values are aligned as in a struct\n"
    "  --threadgroup N=BYTES                     threadgroup memory\n"
    "  --constant I=TYPE:VALUE                   a function constant by index or name\n"
    "  --groups N         count at most N threadgroups; others do not run, and the counts are scaled\n"
    "  --precise          without fast math         --json   the record as a line of JSON\n"
    "  -I a:b             folders of #include \"...\"  -D name[=value]  a macro\n"
    "Exit code: 0 counted, 1 the file does not build or the kernel fails, 2 usage or a file that cannot be read.\n";

static const struct row {
    double cost;
    const char *title;
} rows[] = {
#define X(id, name, cost, slots, pipe, title) {cost, title},
#include "count/classes.def"
#undef X
};

static void print_operations(const sm_counts *c, double threads)
{
    printf("%-50s %14s %10s %6s %8s\n", "operations", "executed", "a thread", "cost", "share");
    for (int k = 0; k < SM_COSTS; k++) {
        if (!(c->operations[k] > 0)) continue;
        printf("  %-48s %14.0f %10.3f %6g %7.1f%%\n", rows[k].title, c->operations[k], c->operations[k] / threads,
               rows[k].cost, 100 * c->issued[k] * rows[k].cost * (double)SM_SIMD_WIDTH / c->sum);
    }
    printf("lane cycles: sum %.0f (%.3f a thread), issue slots %.0f, pipe of cost 4 %.0f, overlap %.0f (%.3f)\n",
           c->sum, c->sum / threads, c->slots, c->pipe, c->overlap, c->overlap / threads);
    printf("active lanes: %.2f of 32\n", c->active_lanes);
}

static void print_memory(const sm_counts *c)
{
    printf("device memory: %.0f bytes loaded, %.0f stored; %.0f and %.0f different ones\n", c->loaded_bytes,
           c->stored_bytes, c->read_bytes, c->written_bytes);
    if (c->lines_touched > 0)
        printf("  %.0f simd accesses touch %.0f lines of 128 bytes, ideal %.0f: %.1f%%\n", c->device_accesses,
               c->lines_touched, c->lines_ideal, 100 * c->lines_ideal / c->lines_touched);
    if (c->constant_accesses > 0)
        printf("constant memory at variable indices: %.0f simd accesses, %.0f bytes\n", c->constant_accesses,
               c->constant_bytes);
    if (c->threadgroup_bytes)
        printf("threadgroup memory: %llu bytes, %.0f simd accesses, %.0f cycles (32 banks of 4 bytes, assumed), "
               "%.0f of them conflicts\n",
               (unsigned long long)c->threadgroup_bytes, c->local_accesses, c->local_cycles,
               c->local_cycles - c->local_ideal);
    printf("simd instructions: %.0f barriers, %.0f shuffles, ballots and reductions, %.0f matrix products\n",
           c->issued[SM_COST_BARRIER],
           c->issued[SM_COST_SHUFFLE] + c->issued[SM_COST_SHUFFLE_RANDOM] + c->issued[SM_COST_REDUCTION],
           c->issued[SM_COST_MATRIX]);
    printf("registers: about %u of 16 bits, %u threads resident on a core", c->registers, c->resident_threads);
    if (c->thread_bytes) printf("; arrays in memory: %u bytes a thread", c->thread_bytes);
    printf("\n");
}

static void print_counts(const count_arguments *a, const sm_counts *c)
{
    const uint32_t *n = a->dispatch.threads, *g = a->dispatch.group;
    printf("%s: grid %u x %u x %u, threadgroups of %u x %u x %u", a->kernel, n[0], n[1], n[2], g[0], g[1], g[2]);
    if (c->counted < c->groups)
        printf("; sampled: %llu of %llu threadgroups, scaled", (unsigned long long)c->counted,
               (unsigned long long)c->groups);
    printf("\n");
    print_operations(c, (double)n[0] * n[1] * n[2]);
    print_memory(c);
}

static bool run(count_arguments *a, sm_kernel *kernel)
{
    char *message = NULL;
    sm_counts counts;
    a->dispatch.only_counted = true;
    const bool good = sm_kernel_run(kernel, &a->dispatch, &message) == SM_OK && sm_kernel_counts(kernel, &counts);
    char *line = good && a->json ? sm_count_json(kernel, &a->dispatch) : NULL;
    if (!good) fprintf(stderr, "softmetal-count: %s\n", message ? message : "the grid is empty");
    else if (a->json) fputs(line ? line : "", stdout);
    else print_counts(a, &counts);
    free(line);
    free(message);
    return good;
}

static int count(count_arguments *a)
{
    size_t length;
    char *message = NULL, *text = count_read_file(a->file, &length);
    if (!text) {
        fprintf(stderr, "softmetal-count: cannot read '%s'\n", a->file);
        return 2;
    }
    sm_count("", a->groups);
    sm_library *library = sm_library_open(text, length, &a->options, &message);
    sm_kernel *kernel = NULL;
    if (library) {
        free(message);
        kernel = sm_kernel_build(library, a->kernel, a->constants, a->constants_count, &message);
    }
    if (!kernel) fprintf(stderr, "%s\n", message ? message : "softmetal-count: the file does not build");
    const bool good = kernel && run(a, kernel);
    sm_kernel_close(kernel);
    sm_library_close(library);
    free(message);
    free(text);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    static count_arguments arguments;
    int status = 2;
    if (!count_arguments_read(&arguments, argc, argv))
        fprintf(stderr, "softmetal-count: %s; see --help\n", arguments.problem);
    else if (arguments.help) status = fputs(help, stdout) < 0;
    else status = count(&arguments);
    count_arguments_free(&arguments);
    return status;
}
