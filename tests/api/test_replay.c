/* A second evaluation of an equal graph plans nothing and allocates nothing. Allocations are
 * counted in the library's allocation functions and, where the program may replace it, in malloc.
 *
 * runs: metal, check */
#include <pthread.h>

#include "api.h"
#include "base/alloc.h"
#include "malloc_count.h"

/* ------------------------------------------------------------ programs ------ */

typedef size_t (*program)(mica_scope *s, mica_array **out);

static size_t elementwise(mica_scope *s, mica_array **out)
{
    mica_array *x = count_up_2d(s, 8, 8);
    out[0] = mica_gelu(s, mica_add(s, mica_mul(s, x, x), mica_transpose(s, x)));
    out[1] = mica_where(s, mica_less(s, x, out[0]), x, mica_scalar(s, 3));
    return 2;
}

static size_t reductions(mica_scope *s, mica_array **out)
{
    mica_array *x = count_up_2d(s, 40, 50);
    out[0] = mica_sum(s, x, (int[]){0}, 1, false);
    out[1] = mica_var(s, x, (int[]){1}, 1, 1, true);
    out[2] = mica_logsumexp(s, x, NULL, 0, false);
    out[3] = mica_argmax(s, x, 1, false);
    return 4;
}

static size_t views(mica_scope *s, mica_array **out)
{
    out[0] = mica_flip(s, mica_transpose(s, count_up_2d(s, 5, 6)), 0);
    return 1;
}

static size_t families(mica_scope *s, mica_array **out)
{
    mica_array *x = count_up_2d(s, 16, 16), *i = mica_from_data(s, MICA_I64, SHAPE(3), (int64_t[]){1, -1, 4});
    out[0] = mica_softmax(s, mica_matmul(s, x, mica_transpose(s, x)), -1);
    out[1] = mica_sort(s, x, 0, true);
    out[2] = mica_take(s, x, i, 1);
    out[3] = mica_concat(s, ARRAYS(x, mica_cumsum(s, x, 1)), 0);
    out[4] = mica_pad(s, x, (int64_t[]){1, 2}, (int64_t[]){3, 0}, 7);
    out[5] = mica_random_normal(s, MICA_F32, SHAPE(100), 5);
    out[6] = mica_scatter_add(s, x, mica_reshape(s, i, SHAPE(3, 1)), mica_ones(s, MICA_F32, SHAPE(3, 16)));
    return 7;
}

static size_t network(mica_scope *s, mica_array **out)
{
    mica_array *image = mica_reshape(s, count_up(s, 2 * 3 * 8 * 8, 0), SHAPE(2, 3, 8, 8));
    mica_array *w = mica_random_normal(s, MICA_F32, SHAPE(4, 3, 3, 3), 1), *grads[1];
    mica_array *q = mica_random_normal(s, MICA_F32, SHAPE(1, 2, 6, 8), 2);
    mica_pool_options o;
    mica_pool_options_init(&o);
    o.kernel[0] = o.kernel[1] = 2;
    out[0] = mica_max_pool2d(s, mica_relu(s, mica_conv2d(s, image, w, NULL)), &o);
    out[1] = mica_attention(s, mica_rope(s, q, NULL, NULL), q, q, NULL, NULL);
    if (mica_grad(s, mica_sum(s, out[0], NULL, 0, false), &w, 1, grads) != MICA_OK) return 0;
    out[2] = grads[0];
    return 3;
}

static const struct {
    const char *name;
    program build;
} programs[] = {{"element-wise", elementwise},
                {"reductions", reductions},
                {"views", views},
                {"families", families},
                {"network", network}};

TEST(an_equal_graph_allocates_nothing)
{
    for (size_t b = 0; b < COUNT(backends); b++)
        for (size_t p = 0; p < COUNT(programs); p++) {
            test_case("%s: %s", backends[b], programs[p].name);
            mica_engine *e = open_engine(backends[b]);
            for (int round = 0; round < 4; round++) {
                mica_scope *s = mica_scope_begin(e);
                mica_array *out[8];
                const size_t n = programs[p].build(s, out);
                CHECK_MSG(n > 0, "%s", mica_scope_error(s));
                const mica_stats before = stats_of(e);
                const uint64_t asked = mica__alloc_count(), mallocs_before = malloc_count();
                const mica_status status = mica_eval(s, out, n);
                const uint64_t asked_now = mica__alloc_count(), mallocs_now = malloc_count();
                CHECK_OK(status);
                const mica_stats after = stats_of(e);
                EXPECT_INT(after.plan_misses - before.plan_misses, round == 0);
                EXPECT_INT(after.plan_hits - before.plan_hits, round > 0);
                if (round >= 2) {
                    EXPECT_INT(asked_now - asked, 0);
                    EXPECT_INT(mallocs_now - mallocs_before, 0);
                    EXPECT_INT(after.bytes_allocated, before.bytes_allocated);
                    EXPECT_INT(after.pool_misses, before.pool_misses);
                }
                mica_scope_end(s);
            }
            mica_close(e);
        }
}

/* The rest of a training step does not grow either: scopes, nodes and their memory are
 * reused each time. */
TEST(a_loop_of_equal_steps_is_steady)
{
    mica_engine *e = open_engine("cpu");
    int64_t live = 0;
    uint64_t taken = 0, asked = 0, last_asked = 0;
    for (int step = 0; step < 30; step++) {
        mica_scope *s = mica_scope_begin(e);
        mica_array *out[8];
        const size_t n = network(s, out);
        CHECK_OK(mica_eval(s, out, n));
        mica_scope_end(s);
        if (step == 10) live = live_blocks(), taken = stats_of(e).bytes_allocated;
        if (step > 10) {
#if !defined(MICA_DEBUG) /* debug builds never reuse a scope */
            EXPECT_INT(live_blocks(), live);
            if (step > 12) EXPECT_INT(mica__alloc_count() - asked, last_asked);
#endif
            EXPECT_INT(stats_of(e).bytes_allocated, taken);
            EXPECT_INT(stats_of(e).bytes_in_use, 0);
            last_asked = mica__alloc_count() - asked;
        }
        asked = mica__alloc_count();
    }
    (void)live, (void)last_asked;
    mica_close(e);
}

TEST(the_count_sees_malloc)
{
    if (!SEES_MALLOC) SKIP("malloc cannot be replaced in this build");
    const uint64_t before = malloc_count();
    void *volatile p = malloc(100); /* volatile: not optimised away */
    free(p);
    EXPECT_INT(malloc_count() - before, 1);
    mica_engine *e = open_engine("cpu"); /* allocations of the library are counted too */
    EXPECT(malloc_count() - before > 3);
    mica_close(e);
}

/* A seed is data: dropout with a new one each step keeps its plan. */
TEST(new_seed_same_plan)
{
    mica_engine *e;
    CHECK_OK(mica_open(NULL, &e));
    mica_stats stats = {.struct_size = sizeof stats};
    float first[2] = {0, 0};
    for (uint64_t seed = 1; seed <= 2; seed++) {
        mica_scope *s = mica_scope_begin(e);
        mica_array *x = mica_random_uniform(s, MICA_F32, 1, (int64_t[]){8}, 0, 1, seed);
        EXPECT_OK(mica_eval(s, &x, 1));
        first[seed - 1] = mica_data_f32(x)[0];
        mica_scope_end(s);
    }
    mica_engine_stats(e, &stats);
    EXPECT_INT(stats.plan_misses, 1);
    EXPECT_INT(stats.plan_hits, 1);
    EXPECT_MSG(first[0] != first[1], "both seeds give %g", (double)first[0]);
    mica_close(e);
}
