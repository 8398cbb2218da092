/* A comparison that cannot fail proves nothing, so this program tests what the predicates of all
 * other tests must refuse. tests/e2e/harness.sh tests how a failure changes the counts and the exit
 * code.
 *
 * runs: check */
#include "test.h"

#include <float.h>
#include <math.h>

TEST(nan_is_close_to_nothing)
{
    CHECK(!test_close(NAN, 1.0, 1e9, 1e9));
    CHECK(!test_close(1.0, NAN, 1e9, 1e9));
    CHECK(!test_close(NAN, NAN, 1e9, 1e9));
    CHECK(!test_close(NAN, INFINITY, 1e9, 1e9));
    CHECK(!test_close(INFINITY, NAN, 1e9, 1e9));
    CHECK(!test_close(1.0, 1.5, NAN, 0.0));
}

TEST(infinity_is_close_to_itself_only)
{
    CHECK(test_close(INFINITY, INFINITY, 0.0, 0.0));
    CHECK(test_close(-INFINITY, -INFINITY, 0.0, 0.0));
    CHECK(!test_close(-INFINITY, INFINITY, 1.0, 1.0));
    CHECK(!test_close(DBL_MAX, INFINITY, 1.0, 1.0));
    CHECK(!test_close(INFINITY, DBL_MAX, 1.0, 1.0));
    /* The tolerance itself overflows to infinity here. */
    CHECK(!test_close(INFINITY, DBL_MAX, 10.0, 0.0));
}

TEST(tolerances_add_up)
{
    CHECK(test_close(3.0, 3.0, 0.0, 0.0));
    CHECK(test_close(0.0, -0.0, 0.0, 0.0));
    CHECK(!test_close(3.0, nextafter(3.0, 4.0), 0.0, 0.0));
    CHECK(test_close(0.5, 0.0, 0.0, 0.5));
    CHECK(!test_close(0.5, 0.0, 1.0, 0.25));
    CHECK(test_close(12.0, 8.0, 0.5, 0.0));
    CHECK(!test_close(12.5, 8.0, 0.5, 0.0));
    CHECK(test_close(12.5, 8.0, 0.5, 0.5));
    CHECK(test_close(-12.0, -8.0, 0.5, 0.0));
    CHECK(!test_close(8.0, -8.0, 0.5, 0.0));
}

TEST(arrays_report_the_first_difference)
{
    const double want[] = {1.0, 2.0, 3.0, 4.0};
    const double got[] = {1.0, 2.0, 3.5, 5.0};
    size_t where = 99;
    CHECK(test_arrays_close_f64(got, want, 2, 0.0, 0.0, &where));
    CHECK_INT(where, 99);
    CHECK(!test_arrays_close_f64(got, want, 4, 0.0, 0.0, &where));
    CHECK_INT(where, 2);
    CHECK(!test_arrays_close_f64(got, want, 4, 0.0, 0.5, &where));
    CHECK_INT(where, 3);
    CHECK(!test_arrays_close_f64(got, want, 4, 0.0, 0.0, NULL));
    CHECK(test_arrays_close_f64(NULL, NULL, 0, 0.0, 0.0, NULL));
}

TEST(arrays_match_nan_only_when_asked)
{
    const double want[] = {1.0, NAN};
    const double nan_too[] = {1.0, NAN};
    const double nan_elsewhere[] = {NAN, NAN};
    const double number[] = {1.0, 2.0};
    size_t where = 99;
    CHECK(!test_arrays_close_f64(nan_too, want, 2, 1e9, 1e9, &where));
    CHECK_INT(where, 1);
    CHECK(!test_arrays_close_nan_f64(nan_too, want, 2, 1e9, 1e9, false, NULL));
    CHECK(test_arrays_close_nan_f64(nan_too, want, 2, 0.0, 0.0, true, NULL));
    CHECK(!test_arrays_close_nan_f64(nan_elsewhere, want, 2, 1e9, 1e9, true, &where));
    CHECK_INT(where, 0);
    CHECK(!test_arrays_close_nan_f64(number, want, 2, 1e9, 1e9, true, &where));
    CHECK_INT(where, 1);
}

TEST(checks_evaluate_their_arguments_once)
{
    int n = 0;
    CHECK(n++ == 0);
    CHECK_INT(n++, 1);
    CHECK_CLOSE(n++, 2.0, 0.0, 0.0);
    CHECK_MSG(EXPECT(n++ == 3), "n is %d", n);
    CHECK_INT(n, 4);
    CHECK_STR("same", "same");
    CHECK_CLOSE_OR_NAN(NAN, NAN, 0.0, 0.0);
}
