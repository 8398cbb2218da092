/* See cores.h. Sources on Linux: the affinity mask, /sys/devices/cpu_core (hybrid
 * Intel CPUs), cpu_capacity (hybrid ARM CPUs), and cpu.max or cpu.cfs_quota_us of
 * the control groups. On macOS: sysctl. */
#include "base/cores.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <sched.h>
#endif

enum { CORES_MAX = 1024, CORES_PATH = 1024 };

/* ---------------------------------------------------------------- files ---- */

/* The first line of root/path. */
static bool core_file(const char *root, const char *path, char *line, int cap)
{
    char name[CORES_PATH];
    const int n = snprintf(name, sizeof name, "%s%s", root, path);
    FILE *f = n > 0 && (size_t)n < sizeof name ? fopen(name, "r") : NULL;
    if (!f) return false;
    const bool ok = fgets(line, cap, f) != NULL;
    fclose(f);
    if (ok) line[strcspn(line, "\n")] = 0;
    return ok;
}

/* ----------------------------------------------------------- fast cores ---- */

/* Is cpu in a list such as "0-3,8,10-11"? */
static bool in_cpu_list(const char *list, int cpu)
{
    for (const char *p = list; *p;) {
        char *end;
        const long first = strtol(p, &end, 10);
        if (end == p) return false;
        long last = first;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        if (cpu >= first && cpu <= last) return true;
        p = *end == ',' ? end + 1 : end;
        if (p == end && *p) return false;
    }
    return false;
}

static uint16_t core_capacity(const char *root, int cpu)
{
    char path[100], line[32];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
    return core_file(root, path, line, sizeof line) ? (uint16_t)strtoul(line, NULL, 10) : 0;
}

/* Clears the slow CPUs in fast[]; returns how many are left. */
static int keep_fast(const char *root, bool *fast, int n)
{
    char list[2048];
    int count = 0, most = 0;
    uint16_t capacity[CORES_MAX]; /* relative speed; 1024 is the fastest */
    const bool hybrid = core_file(root, "/sys/devices/cpu_core/cpus", list, sizeof list);
    for (int i = 0; i < n; i++) {
        capacity[i] = fast[i] && !hybrid ? core_capacity(root, i) : 0;
        if (capacity[i] > most) most = capacity[i];
    }
    for (int i = 0; i < n; i++) {
        /* On CPUs with three kinds of cores the middle kind has 80 % or more, the small kind half or less. */
        if (hybrid ? !in_cpu_list(list, i) : capacity[i] * 4 < most * 3) fast[i] = false;
        count += fast[i];
    }
    return count;
}

/* ---------------------------------------------------------------- quota ---- */

/* Quota and period in microseconds, converted to cores, rounded up; 0: no limit. */
static long quota_cores(double quota, double period)
{
    if (!(quota > 0) || !(period > 0)) return 0;
    const double cores = quota / period;
    const long whole = cores < (double)CORES_MAX ? (long)cores : CORES_MAX;
    return (double)whole < cores ? whole + 1 : whole;
}

static void lower_to(int *cores, long limit)
{
    if (limit > 0 && limit < *cores) *cores = (int)limit;
}

/* Reads the process's control group and all its parents; the lowest limit applies. */
static void limit_by_cpu_max(const char *root, int *cores)
{
    char line[CORES_PATH] = "", path[CORES_PATH], own[CORES_PATH] = "";
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "0::", 3) == 0) snprintf(own, sizeof own, "%.900s", line + 3);
    if (f) fclose(f);
    own[strcspn(own, "\n")] = 0;
    for (;;) {
        double quota, period;
        snprintf(path, sizeof path, "/sys/fs/cgroup%.900s/cpu.max", own);
        if (core_file(root, path, line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2)
            lower_to(cores, quota_cores(quota, period));
        char *slash = strrchr(own, '/');
        if (!slash) return;
        *slash = 0;
    }
}

static void limit_by_cfs_quota(const char *root, int *cores)
{
    char quota[32], period[32];
    if (core_file(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota) &&
        core_file(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period))
        lower_to(cores, quota_cores(strtod(quota, NULL), strtod(period, NULL)));
}

int mica__cores_under(const char *root, const bool *allowed, int n)
{
    bool fast[CORES_MAX] = {false};
    int all = 0;
    if (n > CORES_MAX) n = CORES_MAX;
    for (int i = 0; i < n; i++) all += fast[i] = allowed[i];
    int cores = keep_fast(root, fast, n);
    if (cores == 0) cores = all; /* only slow CPUs are allowed */
    limit_by_cpu_max(root, &cores);
    limit_by_cfs_quota(root, &cores);
    return cores > 0 ? cores : 1;
}

/* -------------------------------------------------------------- systems ---- */

int mica__cores(void)
{
#if defined(__APPLE__)
    static const char *const names[] = {"hw.perflevel0.logicalcpu", "hw.logicalcpu"};
    for (int i = 0; i < 2; i++) {
        int n = 0;
        size_t size = sizeof n;
        if (sysctlbyname(names[i], &n, &size, NULL, 0) == 0 && size == sizeof n && n > 0) return n;
    }
#elif defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        bool allowed[CORES_MAX];
        for (int i = 0; i < CORES_MAX; i++) allowed[i] = i < CPU_SETSIZE && CPU_ISSET((size_t)i, &set);
        return mica__cores_under("", allowed, CORES_MAX);
    }
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
