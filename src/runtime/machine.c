/* See machine.h. Linux: /proc and /sys; macOS: sysctl. A value that cannot be
 * read is printed as "unavailable", never guessed. */
#include "runtime/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "base/cores.h"

/* ---------------------------------------------------------------- macOS --- */

#if defined(__APPLE__)

static bool sysctl_text(const char *name, char *out, size_t cap)
{
    size_t n = cap;
    return sysctlbyname(name, out, &n, NULL, 0) == 0;
}

static bool sysctl_number(const char *name, long long *out)
{
    union {
        int32_t i32;
        int64_t i64;
    } v = {0};
    size_t n = sizeof v;
    if (sysctlbyname(name, &v, &n, NULL, 0) != 0) return false;
    *out = n == sizeof v.i32 ? v.i32 : v.i64;
    return true;
}

static bool cpu_name(char *out, size_t cap) { return sysctl_text("machdep.cpu.brand_string", out, cap); }

static void print_features(mica__text *text)
{
    static const char *const names[] = {"FEAT_DotProd", "FEAT_I8MM", "FEAT_BF16", "FEAT_FP16", "FEAT_SME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char key[64];
        long long on;
        snprintf(key, sizeof key, "hw.optional.arm.%s", names[i]);
        if (sysctl_number(key, &on) && on) mica__text_add(text, " %s", names[i]);
    }
}

static void print_caches(mica__text *text)
{
    static const char *const names[][2] = {{"L1d", "hw.perflevel0.l1dcachesize"}, {"L2", "hw.perflevel0.l2cachesize"}};
    for (size_t i = 0; i < 2; i++) {
        long long bytes;
        if (sysctl_number(names[i][1], &bytes)) mica__text_add(text, " %s %lld KiB", names[i][0], bytes / 1024);
    }
}

static bool memory_total(unsigned long long *bytes)
{
    long long n;
    if (!sysctl_number("hw.memsize", &n)) return false;
    *bytes = (unsigned long long)n;
    return true;
}

static bool memory_free(unsigned long long *bytes)
{
    (void)bytes;
    return false;
}

/* ---------------------------------------------------------------- Linux --- */

#else

/* The value of the first line of a /proc file that starts with key. */
static bool proc_value(const char *path, const char *key, char *out, size_t cap)
{
    char line[4096];
    bool found = false;
    FILE *f = fopen(path, "r");
    if (!f) return false;
    while (!found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *colon = strchr(line, ':');
        if (!colon) continue;
        snprintf(out, cap, "%s", colon + 1 + strspn(colon + 1, " \t"));
        out[strcspn(out, "\n")] = 0;
        found = true;
    }
    fclose(f);
    return found;
}

static bool cpu_name(char *out, size_t cap)
{
    return proc_value("/proc/cpuinfo", "model name", out, cap) || proc_value("/proc/cpuinfo", "CPU part", out, cap);
}

static bool has_flag(const char *flags, const char *flag)
{
    const size_t n = strlen(flag);
    for (const char *p = flags; (p = strstr(p, flag)) != NULL; p += n)
        if ((p == flags || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0)) return true;
    return false;
}

/* Prints only features that a kernel may use. */
static void print_features(mica__text *text)
{
    static const char *const names[] = {"avx2",        "fma",         "f16c",        "avx512f", "avx512bw",
                                        "avx512_vnni", "avx512_bf16", "avx512_vbmi", "asimd",   "asimddp",
                                        "i8mm",        "bf16",        "asimdhp",     "sve",     "sme"};
    char flags[4096];
    if (!proc_value("/proc/cpuinfo", "flags", flags, sizeof flags) &&
        !proc_value("/proc/cpuinfo", "Features", flags, sizeof flags)) {
        mica__text_add(text, " unavailable");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has_flag(flags, names[i])) mica__text_add(text, " %s", names[i]);
}

static bool sys_text(const char *dir, int index, const char *name, char *out, size_t cap)
{
    char path[200];
    snprintf(path, sizeof path, "%s/index%d/%s", dir, index, name);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const bool ok = fgets(out, (int)cap, f) != NULL;
    fclose(f);
    if (ok) out[strcspn(out, "\n")] = 0;
    return ok;
}

static void print_caches(mica__text *text)
{
    static const char dir[] = "/sys/devices/system/cpu/cpu0/cache";
    bool any = false;
    for (int i = 0; i < 8; i++) {
        char level[16], type[32], size[32];
        if (!sys_text(dir, i, "level", level, sizeof level) || !sys_text(dir, i, "type", type, sizeof type) ||
            !sys_text(dir, i, "size", size, sizeof size))
            break;
        any = true;
        mica__text_add(text, " L%s%s %s", level, type[0] == 'D' ? "d" : type[0] == 'I' ? "i" : "", size);
    }
    if (!any) mica__text_add(text, " unavailable");
}

static bool memory_line(const char *key, unsigned long long *bytes)
{
    char value[64];
    if (!proc_value("/proc/meminfo", key, value, sizeof value)) return false;
    *bytes = strtoull(value, NULL, 10) * 1024;
    return true;
}

static bool memory_total(unsigned long long *bytes) { return memory_line("MemTotal", bytes); }
static bool memory_free(unsigned long long *bytes) { return memory_line("MemAvailable", bytes); }

#endif

/* ---------------------------------------------------------------- print --- */

/* Prints the file that contains this code: the shared library, or the program that it is
 * linked into. It is found in /proc/self/maps, if the system has that file. */
static void print_library(mica__text *text)
{
    const uintptr_t here = (uintptr_t)&print_library;
    char line[1024], path[768];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && !found && fgets(line, sizeof line, f)) {
        unsigned long long begin, end;
        found =
            sscanf(line, "%llx-%llx %*s %*s %*s %*s %767[^\n]", &begin, &end, path) == 3 && here >= begin && here < end;
    }
    if (f) fclose(f);
    struct stat file;
    if (found && stat(path, &file) == 0)
        mica__text_add(text, "library: in %s, %.2f MB\n", strrchr(path, '/') ? strrchr(path, '/') + 1 : path,
                       1e-6 * (double)file.st_size);
    else mica__text_add(text, "library: unavailable\n");
}

static void print_memory(mica__text *text, const char *what, bool known, unsigned long long bytes)
{
    if (known) mica__text_add(text, "%s %.1f GiB", what, (double)bytes / (1024.0 * 1024.0 * 1024.0));
    else mica__text_add(text, "%s unavailable", what);
}

void mica__machine_print(mica__text *text)
{
    char name[256];
    unsigned long long total = 0, available = 0;
    print_library(text);
    mica__text_add(text, "cpu: %s\n", cpu_name(name, sizeof name) ? name : "unavailable");
    mica__text_add(text, "cores: %d for threads\n", mica__cores());
    mica__text_add(text, "features:");
    print_features(text);
    mica__text_add(text, "\ncaches:");
    print_caches(text);
    mica__text_add(text, "\nmemory: ");
    const bool has_total = memory_total(&total), has_available = memory_free(&available);
    print_memory(text, "total", has_total, total);
    print_memory(text, ", available", has_available, available);
    mica__text_add(text, "\n");
}
