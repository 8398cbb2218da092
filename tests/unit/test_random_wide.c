/* Random words and floats in vectors, compared to the bit with the definitions, one number at a
 * time: every variant that this CPU can run, and the code for 64-byte vectors compiled without the
 * flags of a CPU that has them.
 *
 * runs: arm, wide-vectors, check */
#define SIMD_BYTES 64
#define RANDOM_NAME(kind) mica__random_##kind##_test
#include "kernels/random/random_cpu.h"
mica__random_words_fn mica__random_words_test;
mica__random_floats_fn mica__random_floats_test;
#include "kernels/random/random.h"
#include "kernels/random/random_body.inc"
#include "kernels_util.h"

enum { MOST_VARIANTS = 8 };

static size_t all_variants(mica__random_variant *table)
{
    size_t n;
    const mica__random_variant *own = mica__random_variants(&n);
    for (size_t i = 0; i < n && i + 1 < MOST_VARIANTS; i++) table[i] = own[i];
    table[n] = (mica__random_variant){"64 bytes", 0, mica__random_words_test, mica__random_floats_test};
    return n + 1;
}

TEST(words_are_philox)
{
    /* across 2^32 and 2^64, too */
    static const uint64_t firsts[] = {0, 5, 0xfffffff0u, 0xfffffffffu, UINT64_MAX - 9};
    mica__random_variant table[MOST_VARIANTS];
    const size_t n_variant = all_variants(table);
    for (size_t v = 0; v < n_variant; v++)
        for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
            for (int64_t blocks = 0; blocks < 70; blocks += 1 + blocks / 5) {
                const uint64_t seed = util_random();
                uint32_t *words = malloc((size_t)(blocks * 4 + 1) * sizeof *words);
                if (!words) abort();
                words[blocks * 4] = 0x5a5a5a5a;
                test_case("%s: %lld blocks from %llx", table[v].name, (long long)blocks, (unsigned long long)firsts[i]);
                table[v].words(seed, firsts[i], blocks, words);
                for (int64_t k = 0; k < blocks * 4; k++) {
                    const uint64_t block = firsts[i] + (uint64_t)k / 4;
                    uint32_t want[4];
                    mica__philox((uint32_t[]){(uint32_t)block, (uint32_t)(block >> 32), 0, 0},
                                 (uint32_t[]){(uint32_t)seed, (uint32_t)(seed >> 32)}, want);
                    if (!EXPECT_INT(words[k], want[k % 4])) break;
                }
                EXPECT_INT(words[blocks * 4], 0x5a5a5a5a);
                free(words);
            }
}

static float one_float(const mica__random_floats *f, uint32_t bits)
{
    switch (f->dist) {
    case MICA__DIST_UNIFORM: return mica__uniform_f32(bits, f->a, f->b);
    case MICA__DIST_GUMBEL: return mica__gumbel_f32(bits);
    default:
        if (f->far.end > 0) return mica__normal_far_f32(bits, &f->far, f->side, f->a, f->b);
        return mica__normal_f32(bits, f->low, f->middle, f->high, f->side, f->a, f->b);
    }
}

static const mica__random_floats kinds[] = {
    /* clang-format off */
    {.dist = MICA__DIST_UNIFORM, .a = -1, .b = 3},
    {.dist = MICA__DIST_UNIFORM, .a = 2, .b = 2},
    {.dist = MICA__DIST_UNIFORM, .a = 1, .b = 1.0f + 0x1p-23f},
    {.dist = MICA__DIST_UNIFORM, .a = -3.4e38f, .b = 3.4e38f},
    {.dist = MICA__DIST_NORMAL, .a = -INFINITY, .b = INFINITY, .middle = 1},
    {.dist = MICA__DIST_TRUNCATED_NORMAL, .a = -2, .b = 2, .low = 0.02275f, .high = 0.02275f, .middle = 0.9545f},
    {.dist = MICA__DIST_TRUNCATED_NORMAL, .a = 1.5f, .b = 4, .low = 0.93319f, .high = 3e-5f, .middle = 0.06677f,
     .side = 1},
    {.dist = MICA__DIST_TRUNCATED_NORMAL, .a = -7, .b = -5, .low = 1e-12f, .high = 1, .middle = 2.8665e-7f, .side = -1},
    {.dist = MICA__DIST_TRUNCATED_NORMAL, .a = 20, .b = 30, .low = 1, .high = 0, .middle = 0, .side = 1},
    {.dist = MICA__DIST_GUMBEL},
    {.dist = MICA__DIST_TRUNCATED_NORMAL, .a = 8, .b = INFINITY, .side = 1, .far = {8, 0x1p-6f, -0.01506f, 1, 0}},
    {.dist = MICA__DIST_TRUNCATED_NORMAL, .a = -31, .b = -30, .side = -1,
     .far = {30, 1.1111111e-3f, -1.108e-3f, 1, 6e-14f}},
    {.dist = MICA__DIST_TRUNCATED_NORMAL, .a = 100, .b = 100.001f, .side = 1,
     .far = {100, 1e-4f, -1e-4f, 0.0952f, 0.9048f}},
    /* clang-format on */
};

TEST(floats_are_as_defined)
{
    static const uint32_t ends[] = {0, 1, 2, 0x7fffffffu, 0x80000000u, 0x80000001u, 0xfffffffeu, 0xffffffffu};
    enum { N_ENDS = sizeof ends / sizeof *ends };
    mica__random_variant table[MOST_VARIANTS];
    const size_t n_variant = all_variants(table);
    for (size_t v = 0; v < n_variant; v++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            for (int64_t n = 0; n < 3000; n += 1 + n / 2) {
                uint32_t *words = malloc((size_t)(n + 1) * sizeof *words);
                float *got = malloc((size_t)(n + 1) * sizeof *got);
                if (!words || !got) abort();
                for (int64_t k = 0; k < n; k++)
                    words[k] =
                        k % 5 == 0 ? ends[k / 5 % N_ENDS] : (uint32_t)util_random() >> (k % 3 ? 0 : util_below(32));
                test_case("%s: kind %zu, %lld", table[v].name, i, (long long)n);
                table[v].floats(&kinds[i], words, n, got);
                for (int64_t k = 0; k < n; k++) {
                    const float want = one_float(&kinds[i], words[k]);
                    if (!EXPECT_MSG(memcmp(&got[k], &want, sizeof want) == 0, "%08x: %a, not %a", words[k],
                                    (double)got[k], (double)want))
                        break;
                }
                free(words);
                free(got);
            }
}
