/* See peaks.h. */
#include "machine/peaks.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/process.h"
#include "core/progress.h"

static const struct {
    const char *name, *unit, *key;
    size_t one, all; /* offsets in mica_peaks; all 0: there is only one value */
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

void cli_print_peaks_json(cli_json *j, const char *key, const mica_peaks *peaks, int threads)
{
    char all[64];
    cli_json_object(j, key, CLI_JSON_INLINE);
    cli_json_int(j, "threads", threads);
    for (int i = 0; i < N_PEAK_LINES; i++) {
        cli_json_number(j, peak_lines[i].key, field_of(peaks, peak_lines[i].one));
        if (!peak_lines[i].all) continue;
        snprintf(all, sizeof all, "%s_all", peak_lines[i].key);
        cli_json_number(j, all, field_of(peaks, peak_lines[i].all));
    }
    cli_json_end(j);
}

double cli_dram_percent(double bytes, double gbs, const mica_peaks *peaks, bool *in_cache)
{
    const bool surely_not = bytes > 4 * peaks->l3_bytes;
    *in_cache = !surely_not && (bytes <= peaks->l3_bytes || gbs > peaks->dram_read_all);
    return *in_cache ? NAN : 100 * gbs / peaks->dram_read_all;
}

/* ------------------------------------------------------------ cache file --- */

enum { PATH_ROOM = 1024, TEXT_ROOM = 1 << 16 };

/* A hash of the lines of the doctor report about CPU, cores, features and caches. */
static uint64_t hash_cpu(void)
{
    static const char *const keys[] = {"cpu: ", "cores: ", "features: ", "caches: "};
    uint64_t hash = 0;
    char *text = malloc(TEXT_ROOM);
    if (!text) return 0;
    (void)mica_doctor_text(text, TEXT_ROOM);
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0) hash = 31 * hash + cli_hash(line, n);
        line += n + (line[n] == '\n');
    }
    free(text);
    return hash;
}

static bool peaks_path(const mica_engine *engine, char path[PATH_ROOM])
{
    const char *set = getenv("MICA_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[PATH_ROOM - 128];
    int n = -1;
#if defined(__APPLE__)
    static const char in_home[] = "Library/Caches";
#else
    static const char in_home[] = ".cache";
#endif
    if (set && strcmp(set, "off") == 0) return false;
    if (set && *set) n = snprintf(folder, sizeof folder, "%s", set);
    else if (xdg && xdg[0] == '/') n = snprintf(folder, sizeof folder, "%s/mica", xdg);
    else if (home && *home) n = snprintf(folder, sizeof folder, "%s/%s/mica", home, in_home);
    if (n <= 0 || (size_t)n >= sizeof folder) return false;
    snprintf(path, PATH_ROOM, "%s/peaks-%s-%016llx-%d.txt", folder, mica_version(), (unsigned long long)hash_cpu(),
             mica_engine_threads(engine));
    return true;
}

/* Creates the folder of a file and its parent folder. */
static void make_folders(const char *path)
{
    char folder[PATH_ROOM];
    snprintf(folder, sizeof folder, "%s", path);
    char *last = strrchr(folder, '/');
    if (!last) return;
    *last = '\0';
    char *above = strrchr(folder, '/');
    if (above && above != folder) {
        *above = '\0';
        (void)mkdir(folder, 0755);
        *above = '/';
    }
    (void)mkdir(folder, 0755);
}

void cli_peaks_save(const mica_engine *engine, const mica_peaks *peaks)
{
    char path[PATH_ROOM], temporary[PATH_ROOM + 32];
    if (!peaks_path(engine, path)) return;
    make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    FILE *f = fopen(temporary, "w");
    if (!f) return; /* without the cache file the next run measures again */
    for (int i = 0; i < N_PEAK_LINES; i++)
        fprintf(f, "%s %.17g %.17g\n", peak_lines[i].key, field_of(peaks, peak_lines[i].one),
                peak_lines[i].all ? field_of(peaks, peak_lines[i].all) : 0);
    fputs("end\n", f);
    const bool written = !ferror(f);
    if (fclose(f) != 0 || !written || rename(temporary, path) != 0) remove(temporary);
}

static bool parse_peak(const char *text, double *out)
{
    if (strcmp(text, "nan") == 0 || strcmp(text, "-nan") == 0) {
        *out = NAN;
        return true;
    }
    return mica_number_parse(text, strlen(text), out);
}

/* False unless the file has all lines in the expected order. */
static bool read_peaks(FILE *f, mica_peaks *peaks)
{
    char line[256], key[64], one[64], all[64];
    for (int i = 0; i < N_PEAK_LINES; i++) {
        double first, second;
        if (!fgets(line, sizeof line, f) || sscanf(line, "%63s %63s %63s", key, one, all) != 3) return false;
        if (strcmp(key, peak_lines[i].key) != 0 || !parse_peak(one, &first) || !parse_peak(all, &second)) return false;
        memcpy((char *)peaks + peak_lines[i].one, &first, sizeof first);
        if (peak_lines[i].all) memcpy((char *)peaks + peak_lines[i].all, &second, sizeof second);
    }
    return fgets(line, sizeof line, f) && strcmp(line, "end\n") == 0;
}

bool cli_machine_peaks(mica_engine *engine, mica_peaks *peaks)
{
    char path[PATH_ROOM];
    FILE *f = peaks_path(engine, path) ? fopen(path, "r") : NULL;
    const bool found = f && read_peaks(f, peaks);
    if (f) fclose(f);
    if (found) return true;
    cli_show_line("measuring the peaks of this machine, once");
    *peaks = (mica_peaks){.struct_size = sizeof *peaks};
    const bool measured = mica_measure_peaks(engine, peaks) == MICA_OK;
    cli_clear_line();
    if (measured) cli_peaks_save(engine, peaks);
    return measured;
}
