/* Graphs larger than any stack: many nodes, long chains, many inputs. */
#include <time.h>

#include "api.h"
#include "sanitized.h"
#include "base/alloc.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A lattice: every node of a row uses three nodes of the previous row. */
TEST(ten_thousand_nodes)
{
    for (size_t b = 0; b < COUNT(backends); b++) {
        test_case("%s", backends[b]);
        enum { WIDTH = 100, ROWS = 100 };
        const double start = seconds();
        mica_engine *e = open_engine(backends[b]);
        mica_scope *s = mica_scope_begin(e);
        mica_array *row[WIDTH], *next[WIDTH], *leaf = count_up(s, 4, 1);
        for (int i = 0; i < WIDTH; i++) row[i] = mica_mul(s, leaf, mica_scalar(s, 1.0 / (1 + i)));
        for (int r = 0; r < ROWS; r++) {
            for (int i = 0; i < WIDTH; i++) {
                /* means, so that the size of the numbers does not change */
                mica_array *sum = mica_add(s, row[i], mica_add(s, row[(i + 1) % WIDTH], row[(i + 7) % WIDTH]));
                next[i] = i % 10 == 0 ? mica_cumsum(s, mica_div(s, sum, mica_scalar(s, 3)), 0)
                                      : mica_div(s, sum, mica_scalar(s, 3));
                if (i % 10 == 0) next[i] = mica_div(s, next[i], mica_scalar(s, 2));
            }
            memcpy(row, next, sizeof row);
        }
        CHECK_OK(mica_eval(s, row, WIDTH));
        EXPECT(element(row[3], 0) > 0);
        mica_scope_end(s);
        mica_close(e);
        EXPECT_MSG(seconds() - start < 60, "%.1f s", seconds() - start);
    }
}

/* Deep enough that a recursive walk would overflow any stack. */
#if defined(SANITIZED)
enum { CHAIN = 200000 };
#else
enum { CHAIN = 1000000 };
#endif

TEST(a_chain_of_a_million_nodes)
{
    const int64_t live = live_blocks();
    const double start = seconds();
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_from_data(s, MICA_F32, 0, NULL, &(float){0}),
               *one = mica_from_data(s, MICA_F32, 0, NULL, &(float){1});
    for (int i = 0; i < CHAIN; i++) x = mica_add(s, x, one);
    CHECK(x != NULL);
    CHECK_OK(mica_eval(s, &x, 1));
    EXPECT(item_of(x) == (double)CHAIN);
    mica_scope_end(s);
    EXPECT_INT(stats_of(e).bytes_in_use, 0);
    mica_close(e);
    EXPECT_INT(live_blocks(), live);
    EXPECT_MSG(seconds() - start < 120, "%.1f s", seconds() - start);
}

/* The same, but freed through one kept array after its scope has ended. */
TEST(a_kept_chain_is_freed_without_a_stack)
{
    const int64_t live = live_blocks();
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 1, 0), *kept;
    for (int i = 0; i < CHAIN; i++) x = mica_neg(s, x);
    kept = mica_keep(x);
    mica_scope_end(s);
    mica_drop(kept);
    mica_close(e);
    EXPECT_INT(live_blocks(), live);
}

TEST(the_gradient_of_a_long_chain)
{
    enum { LONG = 20000 };
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_from_data(s, MICA_F64, 0, NULL, &(double){0.5}), *y = x, *grad;
    for (int i = 0; i < LONG; i++) y = mica_add(s, mica_sin(s, y), x);
    CHECK_OK(mica_grad(s, y, &x, 1, &grad));
    CHECK_OK(mica_eval(s, ARRAYS(y, grad)));
    /* dy' = cos(y) dy + 1 has converged to 1 / (1 - cos y) */
    double value;
    CHECK_OK(mica_item(y, &value));
    const double before = value; /* y = sin(y) + x at the fixed point */
    EXPECT_CLOSE(item_of(grad), 1 / (1 - __builtin_cos(before)), 1e-9, 1e-9);
    mica_scope_end(s);
    mica_close(e);
}

TEST(many_inputs_and_results)
{
    enum { MANY = 2000 };
    mica_engine *e = open_engine("cpu");
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = count_up(s, 3, 1), *parts[MANY];
    for (int i = 0; i < MANY; i++) parts[i] = mica_add(s, x, mica_from_data(s, MICA_F32, 0, NULL, &(float){(float)i}));
    mica_array *joined = mica_concat(s, parts, MANY, 0), *sum = parts[0];
    for (int i = 1; i < MANY; i++) sum = mica_add(s, sum, parts[i]);
    mica_array *all[MANY + 2];
    memcpy(all, parts, sizeof parts);
    all[MANY] = joined;
    all[MANY + 1] = sum;
    CHECK_OK(mica_eval(s, all, MANY + 2));
    EXPECT_INT(mica_array_size(joined), 3 * MANY);
    EXPECT(element(joined, 3 * MANY - 1) == 3 + MANY - 1);
    EXPECT_CLOSE(element(sum, 0), (double)(MANY + MANY * (MANY - 1) / 2), 1e-5, 0);
    mica_scope_end(s);
    mica_close(e);
}
