/* See cpu.h. x86: cpuid, and xgetbv for the registers that the system saves at a
 * task switch. ARM: getauxval on Linux, sysctl on macOS. */
#include "base/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

/* --------------------------------------------------------------- detect --- */

#if defined(__APPLE__)
static long long sysctl_value(const char *name)
{
    union {
        int32_t i32;
        int64_t i64;
    } v = {0};
    size_t n = sizeof v;
    if (sysctlbyname(name, &v, &n, NULL, 0) != 0) return 0;
    return n == sizeof v.i32 ? v.i32 : v.i64;
}
#endif

#if defined(__x86_64__)

/* Bits of XCR0: the registers that the system saves: xmm and ymm; these plus k and zmm. */
enum { SAVED_YMM = 0x06, SAVED_ZMM = 0xe6 };

static unsigned saved_registers(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
}

static bool has_bits(unsigned word, unsigned bits) { return (word & bits) == bits; }

static unsigned detect_cpu(void)
{
    unsigned a, b, c, d, features = MICA__CPU_SSE2;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_bits(c, bit_OSXSAVE)) return features;
    const unsigned saved = saved_registers();
    const bool ymm = has_bits(saved, SAVED_YMM) && has_bits(c, bit_AVX | bit_FMA | bit_F16C);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
    const unsigned deepest = a; /* the last sub-leaf of leaf 7 */
    if (!ymm || !has_bits(b, bit_AVX2)) return features;
    features |= MICA__CPU_AVX2;
    if (!has_bits(saved, SAVED_ZMM) || !has_bits(b, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ))
        return features;
    features |= MICA__CPU_AVX512;
    if (has_bits(c, bit_AVX512VNNI)) features |= MICA__CPU_AVX512_VNNI;
    /* bit_AVX512BF16, which older compilers do not name */
    if (deepest >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && has_bits(a, 1u << 5))
        features |= MICA__CPU_AVX512_BF16;
    return features;
}

#elif defined(__aarch64__) && defined(__APPLE__)

static unsigned detect_cpu(void)
{
    unsigned features = MICA__CPU_NEON;
    if (sysctl_value("hw.optional.arm.FEAT_DotProd")) features |= MICA__CPU_DOTPROD;
    if (sysctl_value("hw.optional.arm.FEAT_I8MM")) features |= MICA__CPU_I8MM;
    if (sysctl_value("hw.optional.arm.FEAT_BF16")) features |= MICA__CPU_BF16;
    return features;
}

#elif defined(__aarch64__) && defined(__linux__)

/* Part of the Linux ABI, so the same on every system (uapi/asm/hwcap.h). */
enum { ARM_ASIMD = 1 << 1, ARM_ASIMDDP = 1 << 20, ARM2_I8MM = 1 << 13, ARM2_BF16 = 1 << 14 };

static unsigned detect_cpu(void)
{
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    unsigned features = 0;
    if (first & ARM_ASIMD) features |= MICA__CPU_NEON;
    if (first & ARM_ASIMDDP) features |= MICA__CPU_DOTPROD;
    if (second & ARM2_I8MM) features |= MICA__CPU_I8MM;
    if (second & ARM2_BF16) features |= MICA__CPU_BF16;
    return features;
}

#else

static unsigned detect_cpu(void) { return 0; }

#endif

/* --------------------------------------------------------------- levels --- */

/* keeps: the features that stay enabled at a level; needs: the features that the CPU
 * must have to run it. Levels of one architecture are in ascending order. */
static const struct {
    const char *name;
    unsigned keeps, needs;
} cpu_levels[] = {
    {"scalar", 0, 0},
#define KEEPS_AVX512 (MICA__CPU_SSE2 | MICA__CPU_AVX2 | MICA__CPU_AVX512)
    {"sse2", MICA__CPU_SSE2, MICA__CPU_SSE2},
    {"avx2", MICA__CPU_SSE2 | MICA__CPU_AVX2, MICA__CPU_AVX2},
    {"avx512", KEEPS_AVX512, MICA__CPU_AVX512},
    {"avx512_vnni", KEEPS_AVX512 | MICA__CPU_AVX512_VNNI, MICA__CPU_AVX512_VNNI},
    {"avx512_bf16", KEEPS_AVX512 | MICA__CPU_AVX512_VNNI | MICA__CPU_AVX512_BF16, MICA__CPU_AVX512_BF16},
#undef KEEPS_AVX512
    {"neon", MICA__CPU_NEON, MICA__CPU_NEON},
    {"dotprod", MICA__CPU_NEON | MICA__CPU_DOTPROD, MICA__CPU_DOTPROD},
    {"i8mm", MICA__CPU_NEON | MICA__CPU_DOTPROD | MICA__CPU_I8MM, MICA__CPU_I8MM},
    {"bf16", MICA__CPU_NEON | MICA__CPU_DOTPROD | MICA__CPU_I8MM | MICA__CPU_BF16, MICA__CPU_BF16},
};
enum { N_CPU_LEVELS = sizeof cpu_levels / sizeof cpu_levels[0] };

const char *mica__cpu_level(unsigned features)
{
    int level = 0;
    for (int i = 1; i < N_CPU_LEVELS; i++)
        if ((cpu_levels[i].needs & ~features) == 0) level = i;
    return cpu_levels[level].name;
}

static mica_status unknown_level(const char *level)
{
    char list[160] = "";
    size_t used = 0;
    for (int i = 0; i < N_CPU_LEVELS; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", cpu_levels[i].name);
    return mica__fail(MICA_ERR_ARGUMENT, "MICA_CPU is \"%.40s\"; it must be one of %s", level, list);
}

static int find_level(const char *level)
{
    int i = 0;
    while (i < N_CPU_LEVELS && strcmp(cpu_levels[i].name, level) != 0) i++;
    return i;
}

static bool level_exists(unsigned have, int i) { return i < N_CPU_LEVELS && (cpu_levels[i].needs & ~have) == 0; }

mica_status mica__cpu_limit(unsigned have, const char *level, unsigned *out)
{
    *out = have;
    if (!level) return MICA_OK;
    const int i = find_level(level);
    if (i == N_CPU_LEVELS) return unknown_level(level);
    if (!level_exists(have, i))
        return mica__fail(MICA_ERR_UNSUPPORTED, "MICA_CPU is %s, which this CPU does not have; its highest level is %s",
                          level, mica__cpu_level(have));
    *out = have & cpu_levels[i].keeps;
    return MICA_OK;
}

/* ---------------------------------------------------------------- caches -- */

#if defined(__APPLE__)

static size_t read_cache(int level)
{
    static const char *const names[] = {"hw.perflevel0.l1dcachesize", "hw.perflevel0.l2cachesize",
                                        "hw.perflevel0.l3cachesize"};
    return (size_t)sysctl_value(names[level - 1]);
}

#else

/* A line of /sys/devices/system/cpu/cpu0/cache/index<i>/<name>. */
static bool cache_text(int i, const char *name, char out[32])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, name);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const bool ok = fgets(out, 32, f) != NULL;
    fclose(f);
    return ok;
}

static size_t read_cache(int level)
{
    char text[32];
    for (int i = 0; cache_text(i, "level", text); i++) {
        if (atoi(text) != level || !cache_text(i, "type", text) || text[0] == 'I') continue;
        if (!cache_text(i, "size", text)) continue;
        char *unit;
        const unsigned long long n = strtoull(text, &unit, 10);
        return (size_t)(*unit == 'K' ? n << 10 : *unit == 'M' ? n << 20 : n);
    }
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    static const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    const long n = sysconf(names[level - 1]);
    if (n > 0) return (size_t)n;
#endif
    return 0;
}

#endif

/* ----------------------------------------------------------------- once --- */

static struct {
    unsigned detected, features;
    char level[48]; /* MICA_CPU at the first call; "": not set */
    size_t cache[3];
} cpu;

static pthread_once_t cpu_once = PTHREAD_ONCE_INIT;

static void init_cpu(void)
{
    const char *level = mica__env(MICA__ENV_CPU);
    snprintf(cpu.level, sizeof cpu.level, "%s", level ? level : "");
    cpu.detected = detect_cpu();
    /* An invalid level removes no feature; mica__cpu_check reports the error. */
    const int i = level ? find_level(level) : N_CPU_LEVELS;
    cpu.features = level_exists(cpu.detected, i) ? cpu.detected & cpu_levels[i].keeps : cpu.detected;
    for (int n = 1; n <= 3; n++) cpu.cache[n - 1] = read_cache(n);
}

unsigned mica__cpu_features(void)
{
    pthread_once(&cpu_once, init_cpu);
    return cpu.features;
}

unsigned mica__cpu_detected(void)
{
    pthread_once(&cpu_once, init_cpu);
    return cpu.detected;
}

mica_status mica__cpu_check(void)
{
    unsigned features;
    pthread_once(&cpu_once, init_cpu);
    return mica__cpu_limit(cpu.detected, cpu.level[0] ? cpu.level : NULL, &features);
}

size_t mica__cpu_cache(int level)
{
    pthread_once(&cpu_once, init_cpu);
    return level >= 1 && level <= 3 ? cpu.cache[level - 1] : 0;
}
