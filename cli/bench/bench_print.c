/* mica bench: prints results as a Markdown table, CSV or JSON, after a header about the
 * machine and the build. A missing figure is "-" in the table, empty in CSV and null in
 * JSON, never 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "bench/bench.h"
#include "core/cli.h"
#include "machine/machine.h"
#include "machine/peaks.h"

/* ----------------------------------------------------------------- header -- */

typedef void (*field_fn)(void *to, const char *name, const char *value);

/* Selected lines "cpu: AMD ..." of the doctor report, and MICA_* variables that are set. */
static void print_report_fields(void *to, field_fn field)
{
    static const char *const wanted[] = {"library", "cpu", "cores", "features", "caches", "memory"};
    char text[8192];
    mica_doctor_text(text, sizeof text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strstr(line, ": ");
        if (!colon) continue;
        *colon = 0;
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (strcmp(line, wanted[i]) == 0) field(to, line, colon + 2);
        if (strncmp(line, "MICA_", 5) == 0 && colon[2] == '"') field(to, line, colon + 2);
    }
}

static void print_header(void *to, field_fn field)
{
    char text[512];
    struct utsname host;
    double load[1];
    const time_t now = time(NULL);
    struct tm utc;
    field(to, "mica", mica_version());
    field(to, "commit", cli_commit());
    if (gmtime_r(&now, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)) field(to, "date", text);
    if (uname(&host) == 0) {
        snprintf(text, sizeof text, "%s %s %s", host.sysname, host.release, host.machine);
        field(to, "system", text);
    }
    print_report_fields(to, field);
    field(to, "engine at rest", cli_idle_memory_text());
    const bool has_load = getloadavg(load, 1) == 1;
    if (has_load) snprintf(text, sizeof text, "%.2f after the run", load[0]);
    field(to, "load", has_load ? text : "unavailable");
}

static void md_field(void *to, const char *name, const char *value) { fprintf(to, "- %s: %s\n", name, value); }
static void csv_field(void *to, const char *name, const char *value) { fprintf(to, "# %s: %s\n", name, value); }

static void json_field(void *to, const char *name, const char *value) { cli_json_text(to, name, value); }

/* --------------------------------------------------------------- Markdown -- */

static void format_time(char out[16], double ns)
{
    if (ns < 1e4) snprintf(out, 16, "%.0f ns", ns);
    else if (ns < 1e6) snprintf(out, 16, "%.2f us", ns / 1e3);
    else if (ns < 1e9) snprintf(out, 16, "%.2f ms", ns / 1e6);
    else snprintf(out, 16, "%.2f s", ns / 1e9);
}

static void print_cell(FILE *to, int width, const char *format, double value)
{
    char text[32] = "-";
    if (isfinite(value) && value != 0) snprintf(text, sizeof text, format, value);
    fprintf(to, " %*s |", width, text);
}

static void print_note(FILE *to, const bench_result *r)
{
    if (r->excess) fprintf(to, " WRONG: above the peak");
    else if (bench_gated(r)) fprintf(to, " gated: one core (%.2f, %.2f)", r->gate_before, r->gate_after);
    if (strcmp(r->work.item, "element") != 0)
        fprintf(to, "%s%.4g ns a %s", r->excess || bench_gated(r) ? "; " : " ", r->fastest_ns / r->work.items,
                r->work.item);
}

static void print_md_row(FILE *to, const bench_result *r)
{
    char fastest[16], median[16], low[16], high[16], spread[40];
    format_time(fastest, r->fastest_ns);
    format_time(median, r->median_ns);
    format_time(low, r->p10_ns);
    format_time(high, r->p90_ns);
    snprintf(spread, sizeof spread, "%s - %s", low, high);
    fprintf(to, "| %-27s | %2d | %6zu | %9s | %9s | %21s |", r->c->name, r->threads, r->runs, fastest, median, spread);
    print_cell(to, 7, "%.1f", r->work.flops / r->fastest_ns);
    print_cell(to, 7, "%.1f", r->work.bytes / r->fastest_ns);
    print_cell(to, 6, "%.1f %%", r->compute_percent);
    print_cell(to, 6, "%.1f %%", r->memory_percent);
    fprintf(to, " %-10s |", r->memory_roof ? r->memory_roof : "-");
    print_note(to, r);
    fprintf(to, " |\n");
}

static void print_md(FILE *to, const bench_session *sessions, size_t n)
{
    fprintf(to, "# mica bench\n\n");
    print_header(to, md_field);
    for (size_t i = 0; i < n; i++) {
        if (!sessions[i].has_peaks) continue;
        fputc('\n', to);
        cli_print_peaks(to, &sessions[i].peaks, sessions[i].threads);
    }
    fprintf(to, "\n| %-27s | %2s | %6s | %9s | %9s | %21s | %7s | %7s | %6s | %6s | %-10s | note |\n", "benchmark", "T",
            "runs", "fastest", "median", "p10 - p90", "GFLOP/s", "GB/s", "of mul", "of mem", "which");
    fprintf(to,
            "|-----------------------------|---:|-------:|----------:|----------:|----------------------:|--------:|"
            "--------:|-------:|-------:|------------|------|\n");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sessions[i].n; k++) print_md_row(to, &sessions[i].results[k]);
}

/* ----------------------------------------------------------- CSV and JSON -- */

/* A name and a figure; NaN: unavailable. */
typedef struct figure {
    const char *name;
    double value;
} figure;
enum { N_FIGURES = 15 };

static double or_nan(double value) { return value > 0 ? value : NAN; }

static void get_figures(const bench_result *r, figure f[N_FIGURES])
{
    const figure all[N_FIGURES] = {{"threads", r->threads},
                                   {"runs", (double)r->runs},
                                   {"fastest_ns", r->fastest_ns},
                                   {"median_ns", r->median_ns},
                                   {"p10_ns", r->p10_ns},
                                   {"p90_ns", r->p90_ns},
                                   {"items", r->work.items},
                                   {"flops", or_nan(r->work.flops)},
                                   {"bytes", or_nan(r->work.bytes)},
                                   {"gflops", or_nan(r->work.flops / r->fastest_ns)},
                                   {"gbs", or_nan(r->work.bytes / r->fastest_ns)},
                                   {"compute_percent", r->compute_percent},
                                   {"memory_percent", r->memory_percent},
                                   {"gate_before", r->gate_before},
                                   {"gate_after", r->gate_after}};
    memcpy(f, all, sizeof all);
}

static void print_csv_row(FILE *to, const bench_result *r, bool titles)
{
    figure f[N_FIGURES];
    get_figures(r, f);
    fprintf(to, "%s", titles ? "name" : r->c->name);
    for (int i = 0; i < N_FIGURES; i++) {
        if (titles) fprintf(to, ",%s", f[i].name);
        else if (isnan(f[i].value)) fprintf(to, ",");
        else fprintf(to, ",%.9g", f[i].value);
    }
    if (titles) fprintf(to, ",gated,above_peak,item,memory_roof\n");
    else
        fprintf(to, ",%d,%d,%s,%s\n", bench_gated(r), r->excess != NULL, r->work.item,
                r->memory_roof ? r->memory_roof : "");
}

static void print_csv(FILE *to, const bench_session *sessions, size_t n)
{
    print_header(to, csv_field);
    for (size_t i = 0; i < n; i++) {
        if (!sessions[i].has_peaks) continue;
        cli_json j = {.to = to};
        fprintf(to, "# peaks: ");
        cli_print_peaks_json(&j, NULL, &sessions[i].peaks, sessions[i].threads);
    }
    if (n && sessions[0].n) print_csv_row(to, &sessions[0].results[0], true);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sessions[i].n; k++) print_csv_row(to, &sessions[i].results[k], false);
}

static void print_json_row(cli_json *j, const bench_result *r)
{
    figure f[N_FIGURES];
    get_figures(r, f);
    cli_json_object(j, NULL, CLI_JSON_INLINE);
    cli_json_text(j, "name", r->c->name);
    cli_json_text(j, "what", r->c->what);
    cli_json_text(j, "item", r->work.item);
    if (r->memory_roof) cli_json_text(j, "memory_roof", r->memory_roof);
    for (int i = 0; i < N_FIGURES; i++) cli_json_number(j, f[i].name, f[i].value);
    cli_json_bool(j, "gated", bench_gated(r));
    cli_json_bool(j, "above_peak", r->excess != NULL);
    cli_json_end(j);
}

static void print_json(FILE *to, const bench_session *sessions, size_t n)
{
    cli_json j = {.to = to};
    cli_json_object(&j, NULL, CLI_JSON_LINES);
    print_header(&j, json_field);
    cli_json_array(&j, "peaks", CLI_JSON_LINES);
    for (size_t i = 0; i < n; i++)
        if (sessions[i].has_peaks) cli_print_peaks_json(&j, NULL, &sessions[i].peaks, sessions[i].threads);
    cli_json_end(&j);
    cli_json_array(&j, "results", CLI_JSON_LINES);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sessions[i].n; k++) print_json_row(&j, &sessions[i].results[k]);
    cli_json_end(&j);
    cli_json_end(&j);
}

int bench_choose_format(int format, bool json, bench_format *out)
{
    *out = json ? BENCH_JSON : (bench_format)format;
    if (json && format == BENCH_CSV)
        return cli_fail(CLI_USAGE, "mica bench: --json and --format csv exclude each other");
    return CLI_OK;
}

void bench_print(FILE *to, bench_format format, const bench_session *sessions, size_t n)
{
    switch (format) {
    case BENCH_MD: print_md(to, sessions, n); break;
    case BENCH_CSV: print_csv(to, sessions, n); break;
    case BENCH_JSON: print_json(to, sessions, n); break;
    }
}
