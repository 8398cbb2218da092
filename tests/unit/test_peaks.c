/* CPU features and measured peaks: they exist and are consistent. Their size is not tested.
 *
 * runs: check */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "profile/peaks.h"
#include "test.h"

/* ------------------------------------------------------------- features --- */

static const unsigned x86_all =
    MICA__CPU_SSE2 | MICA__CPU_AVX2 | MICA__CPU_AVX512 | MICA__CPU_AVX512_VNNI | MICA__CPU_AVX512_BF16;
static const unsigned arm_all = MICA__CPU_NEON | MICA__CPU_DOTPROD | MICA__CPU_I8MM | MICA__CPU_BF16;

TEST(features_fit_together)
{
    const unsigned have = mica__cpu_detected();
    EXPECT(!((have & x86_all) && (have & arm_all)));
    EXPECT(!(have & MICA__CPU_AVX2) || (have & MICA__CPU_SSE2));
    EXPECT(!(have & MICA__CPU_AVX512) || (have & MICA__CPU_AVX2));
    EXPECT(!(have & (MICA__CPU_AVX512_VNNI | MICA__CPU_AVX512_BF16)) || (have & MICA__CPU_AVX512));
    EXPECT(!(have & (MICA__CPU_DOTPROD | MICA__CPU_I8MM | MICA__CPU_BF16)) || (have & MICA__CPU_NEON));
    EXPECT((mica__cpu_features() & ~have) == 0);
#if defined(__x86_64__)
    EXPECT(have & MICA__CPU_SSE2);
#elif defined(__aarch64__)
    EXPECT(have & MICA__CPU_NEON);
#endif
}

/* Compares the detected features with those of the compiler's runtime. */
TEST(features_agree_with_the_compiler)
{
#if defined(__x86_64__)
    const unsigned have = mica__cpu_detected();
    __builtin_cpu_init();
    EXPECT_INT(!!(have & MICA__CPU_AVX2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    EXPECT_INT(!!(have & MICA__CPU_AVX512), __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                                __builtin_cpu_supports("avx512vl") &&
                                                __builtin_cpu_supports("avx512dq"));
    EXPECT_INT(!!(have & MICA__CPU_AVX512_VNNI),
               __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni"));
#else
    SKIP("the compiler can be asked on x86 only");
#endif
}

TEST(levels_take_features_away)
{
    static const struct {
        unsigned have;
        const char *level;
        unsigned left;
    } cases[] = {
        {MICA__CPU_SSE2 | MICA__CPU_AVX2, NULL, MICA__CPU_SSE2 | MICA__CPU_AVX2},
        {MICA__CPU_SSE2 | MICA__CPU_AVX2, "avx2", MICA__CPU_SSE2 | MICA__CPU_AVX2},
        {MICA__CPU_SSE2 | MICA__CPU_AVX2, "sse2", MICA__CPU_SSE2},
        {MICA__CPU_SSE2 | MICA__CPU_AVX2, "scalar", 0},
        {MICA__CPU_NEON | MICA__CPU_DOTPROD | MICA__CPU_BF16, "dotprod", MICA__CPU_NEON | MICA__CPU_DOTPROD},
        {MICA__CPU_NEON | MICA__CPU_DOTPROD | MICA__CPU_BF16, "neon", MICA__CPU_NEON},
        {0, "scalar", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_case("%s of %x", cases[i].level ? cases[i].level : "all", cases[i].have);
        unsigned left = 77;
        CHECK_INT(mica__cpu_limit(cases[i].have, cases[i].level, &left), MICA_OK);
        EXPECT_INT(left, cases[i].left);
    }
    test_case("avx512 of everything");
    unsigned left;
    CHECK_INT(mica__cpu_limit(x86_all, "avx512", &left), MICA_OK);
    EXPECT_INT(left, MICA__CPU_SSE2 | MICA__CPU_AVX2 | MICA__CPU_AVX512);
    EXPECT_STR(mica__cpu_level(left), "avx512");
    EXPECT_STR(mica__cpu_level(x86_all), "avx512_bf16");
    EXPECT_STR(mica__cpu_level(arm_all), "bf16");
    EXPECT_STR(mica__cpu_level(0), "scalar");
}

TEST(levels_that_are_none_or_missing_are_refused)
{
    unsigned left;
    CHECK_INT(mica__cpu_limit(x86_all, "avx3", &left), MICA_ERR_ARGUMENT);
    EXPECT_INT(left, x86_all);
    EXPECT_STR(mica_last_error(), "MICA_CPU is \"avx3\"; it must be one of scalar, sse2, avx2, avx512, avx512_vnni, "
                                  "avx512_bf16, neon, dotprod, i8mm, bf16");
    CHECK_INT(mica__cpu_limit(MICA__CPU_SSE2 | MICA__CPU_AVX2, "avx512", &left), MICA_ERR_UNSUPPORTED);
    EXPECT_STR(mica_last_error(), "MICA_CPU is avx512, which this CPU does not have; its highest level is avx2");
    CHECK_INT(mica__cpu_limit(x86_all, "neon", &left), MICA_ERR_UNSUPPORTED);
    CHECK_INT(mica__cpu_limit(x86_all, "", &left), MICA_ERR_ARGUMENT);
}

static void *ask_features(void *argument)
{
    *(unsigned *)argument = mica__cpu_features();
    return NULL;
}

TEST(every_thread_gets_the_same_answer)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    unsigned answer[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK_INT(pthread_create(&threads[i], NULL, ask_features, &answer[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) EXPECT_INT(answer[i], mica__cpu_features());
}

TEST(caches_grow)
{
    EXPECT_INT(mica__cpu_cache(0), 0);
    EXPECT_INT(mica__cpu_cache(4), 0);
    if (!mica__cpu_cache(1)) SKIP("the system does not tell the size of its caches");
    EXPECT(mica__cpu_cache(1) >= 4096);
    EXPECT(!mica__cpu_cache(2) || mica__cpu_cache(2) >= mica__cpu_cache(1));
    EXPECT(!mica__cpu_cache(3) || mica__cpu_cache(3) >= mica__cpu_cache(2));
}

/* ---------------------------------------------------------------- peaks --- */

static bool positive(double value) { return isfinite(value) && value > 0; }
static bool positive_or_nan(double value) { return isnan(value) || positive(value); }

TEST(peaks_are_numbers)
{
    const int64_t live = mica__alloc_live();
    for (int threads = 1; threads <= 3; threads++) {
        test_case("%d threads", threads);
        mica__pool *pool;
        mica_peaks p = {.struct_size = sizeof p};
        CHECK_INT(mica__pool_new(threads, &pool), MICA_OK);
        CHECK_MSG(mica__peaks_measure(pool, &mica__peaks_quick, &p) == MICA_OK, "%s", mica_last_error());
        mica__pool_free(pool);
        EXPECT(positive(p.fma_f32) && positive(p.fma_f32_all));
        EXPECT(positive(p.dram_read) && positive(p.dram_read_all));
        EXPECT(positive(p.dram_copy) && positive(p.dram_copy_all));
        EXPECT(positive(p.dram_triad) && positive(p.dram_triad_all));
        EXPECT(positive_or_nan(p.l1_read) && positive_or_nan(p.l2_read) && positive_or_nan(p.l3_read));
        EXPECT_INT(isnan(p.l1_bytes), mica__cpu_cache(1) == 0);
        EXPECT(positive_or_nan(p.fork_join_us));
        EXPECT_INT(isnan(p.two_threads), threads == 1);
        if (threads == 1) EXPECT(p.fma_f32_all == p.fma_f32 && p.dram_read_all == p.dram_read);
        const unsigned i8 = MICA__CPU_AVX2 | MICA__CPU_DOTPROD, bf16 = MICA__CPU_AVX512_BF16 | MICA__CPU_BF16;
        EXPECT_INT(!isnan(p.dot_i8), (mica__cpu_features() & i8) != 0);
        EXPECT_INT(!isnan(p.dot_bf16), (mica__cpu_features() & bf16) != 0);
    }
    EXPECT_INT(mica__alloc_live(), live);
}

TEST(no_memory_for_the_peaks)
{
    mica_peaks p = {.struct_size = sizeof p};
    const int64_t live = mica__alloc_live();
    mica__alloc_fail_at(1);
    EXPECT_INT(mica__peaks_measure(NULL, &mica__peaks_quick, &p), MICA_ERR_MEMORY);
    mica__alloc_fail_at(0);
    EXPECT_INT(mica__alloc_live(), live);
}

TEST(arguments_are_checked)
{
    mica_engine *engine;
    mica_engine_options options;
    mica_engine_options_init(&options);
    options.threads = 1;
    CHECK_INT(mica_open(&options, &engine), MICA_OK);
    mica_peaks p = {.struct_size = sizeof p + 4096};
    double ratio = 0;
    EXPECT_INT(mica_measure_peaks(NULL, &p), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_measure_peaks(engine, NULL), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_measure_peaks(engine, &p), MICA_ERR_ARGUMENT);
    p.struct_size = 0;
    EXPECT_INT(mica_measure_peaks(engine, &p), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_measure_two_threads(NULL, &ratio), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_measure_two_threads(engine, NULL), MICA_ERR_ARGUMENT);
    EXPECT_INT(mica_measure_two_threads(engine, &ratio), MICA_OK);
    EXPECT(isnan(ratio));
    mica_close(engine);
}
