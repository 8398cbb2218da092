/* The test harness: one header, one file, no dependency, so that the same
 * programs run natively, under the sanitizers, valgrind and qemu. Why it is not
 * cmocka: docs/adr/0001-own-test-harness.md.
 *
 *     #include "test.h"
 *
 *     TEST(add_is_commutative)
 *     {
 *         for (int i = 0; i < 3; i++) {
 *             test_case("i = %d", i);          // counted and named separately
 *             CHECK_INT(i + 1, 1 + i);
 *         }
 *     }
 *
 * A program is one tests/FOLDER/test_NAME.c; main() is in test.c. Its last
 * line is always "N passed, N failed, N skipped". Arguments: a substring of the
 * names of the tests to run, -l to list them, -v to show each result.
 *
 * CHECK* leave the calling function at the first failure (so it returns void);
 * EXPECT* continue and are expressions: false if they failed. Both may be used
 * from several threads; test_case and SKIP only from the thread of the test. */
#ifndef MICA_TEST_H
#define MICA_TEST_H

#include <stdbool.h>
#include <stddef.h>

#define TEST(name)                                                      \
    static void test_body_##name(void);                                 \
    __attribute__((constructor)) static void test_register_##name(void) \
    {                                                                   \
        static test_entry entry = {#name, test_body_##name, NULL};      \
        test_register(&entry);                                          \
    }                                                                   \
    static void test_body_##name(void)

/* The message is evaluated only after a failure, so it may call functions for the cause:
 * EXPECT_MSG(mica_eval(s, &y, 1) == MICA_OK, "%s", mica_last_error()). */
#define EXPECT_MSG(condition, ...) test_said((condition) || test_fail(__FILE__, __LINE__, __VA_ARGS__))
#define EXPECT(condition) EXPECT_MSG(condition, "%s", #condition)

#define CHECK_MSG(condition, ...)                        \
    do {                                                 \
        if (!EXPECT_MSG(condition, __VA_ARGS__)) return; \
    } while (0)
#define CHECK(condition) CHECK_MSG(condition, "%s", #condition)

#define EXPECT_INT(got, want) test_expect_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
#define EXPECT_STR(got, want) test_expect_str(__FILE__, __LINE__, #got, got, want)
/* NaN equals nothing here, not even NaN; the _OR_NAN form lets NaN match NaN. */
#define EXPECT_CLOSE(got, want, rtol, atol) \
    test_expect_close(__FILE__, __LINE__, #got, (double)(got), (double)(want), rtol, atol, false)
#define EXPECT_CLOSE_OR_NAN(got, want, rtol, atol) \
    test_expect_close(__FILE__, __LINE__, #got, (double)(got), (double)(want), rtol, atol, true)

#define CHECK_INT(got, want)                \
    do {                                    \
        if (!EXPECT_INT(got, want)) return; \
    } while (0)
#define CHECK_STR(got, want)                \
    do {                                    \
        if (!EXPECT_STR(got, want)) return; \
    } while (0)
#define CHECK_CLOSE(got, want, rtol, atol)                \
    do {                                                  \
        if (!EXPECT_CLOSE(got, want, rtol, atol)) return; \
    } while (0)
#define CHECK_CLOSE_OR_NAN(got, want, rtol, atol)                \
    do {                                                         \
        if (!EXPECT_CLOSE_OR_NAN(got, want, rtol, atol)) return; \
    } while (0)

/* Counts as skipped, not as passed, and prints why. SKIP leaves the test;
 * test_skip marks the current case only, to `continue` with the next. */
#define SKIP(...)               \
    do {                        \
        test_skip(__VA_ARGS__); \
        return;                 \
    } while (0)

#define TEST_PRINTF(format_index) __attribute__((format(printf, format_index, (format_index) + 1)))

/* Ends the previous sub-case, if any, and begins one with this name. A test with
 * sub-cases counts one result for each; a test without counts as one. */
void test_case(const char *format, ...) TEST_PRINTF(1);
void test_skip(const char *format, ...) TEST_PRINTF(1);

/* |got - want| <= atol + rtol |want|. NaN is not close to any value, an infinity only
 * to itself. */
bool test_close(double got, double want, double rtol, double atol);

/* test_close for each element; *where (may be NULL) is the first that is not. */
bool test_arrays_close_f64(const double *got, const double *want, size_t n, double rtol, double atol, size_t *where);

/* The same, with a NaN allowed where nan_matches is set and want is NaN too. */
bool test_arrays_close_nan_f64(const double *got, const double *want, size_t n, double rtol, double atol,
                               bool nan_matches, size_t *where);

int test_main(int argc, char **argv);

/* Functions of the macros above. */

typedef struct test_entry {
    const char *name;
    void (*body)(void);
    struct test_entry *next;
} test_entry;

void test_register(test_entry *entry);
/* Records a failure of the current case and returns false. */
/* A function call, so that an EXPECT with an unused value gives no warning. */
static inline bool test_said(bool held) { return held; }
bool test_fail(const char *file, int line, const char *format, ...) TEST_PRINTF(3);
bool test_expect_int(const char *file, int line, const char *what, long long got, long long want);
bool test_expect_str(const char *file, int line, const char *what, const char *got, const char *want);
bool test_expect_close(const char *file, int line, const char *what, double got, double want, double rtol, double atol,
                       bool nan_matches);

#endif
