/* CPU features, detected once at run time.
 *
 * A kernel variant names the features it needs. Its family selects the fastest
 * variant that the CPU can run. MICA_CPU (for example avx2) disables features, so
 * that a slower variant can be tested and timed on a faster machine. */
#ifndef MICA_BASE_CPU_H
#define MICA_BASE_CPU_H

#include <stddef.h>

#include "base/status.h"

enum {
    MICA__CPU_SSE2 = 1 << 0,
    MICA__CPU_AVX2 = 1 << 1,        /* with FMA and F16C                         */
    MICA__CPU_AVX512 = 1 << 2,      /* F, BW, VL and DQ                          */
    MICA__CPU_AVX512_VNNI = 1 << 3, /* vpdpbusd: 8-bit dots into 32 bits         */
    MICA__CPU_AVX512_BF16 = 1 << 4, /* vdpbf16ps                                 */
    MICA__CPU_NEON = 1 << 5,
    MICA__CPU_DOTPROD = 1 << 6,     /* sdot, udot                                */
    MICA__CPU_I8MM = 1 << 7,        /* smmla, usdot                              */
    MICA__CPU_BF16 = 1 << 8         /* bfdot, bfmmla                             */
};

/* Features that the CPU has, the system saves, and MICA_CPU allows. */
unsigned mica__cpu_features(void);

/* The same without MICA_CPU. */
unsigned mica__cpu_detected(void);

/* MICA_ERR_ARGUMENT when MICA_CPU is not a level, MICA_ERR_UNSUPPORTED when this
 * CPU lacks it. In both cases mica__cpu_features() returns all detected features. */
mica_status mica__cpu_check(void);

/* The features of have that stay enabled at a level; NULL: all. Fails like mica__cpu_check. */
mica_status mica__cpu_limit(unsigned have, const char *level, unsigned *out);

/* The name of the highest level that features reach: "avx2", "scalar". */
const char *mica__cpu_level(unsigned features);

/* Bytes of the data cache of a level, 1 to 3, that one core can use; 0 if there is
 * no such cache or its size is unknown. */
size_t mica__cpu_cache(int level);

#endif
