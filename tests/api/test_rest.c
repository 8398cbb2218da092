/* An idle engine: the memory that it keeps after its work is done and the results are freed.
 * Measured in bytes, not in time.
 *
 * runs: metal, check */
#include "api.h"
#include "base/alloc.h"
#include "sanitized.h"

/* Resident memory of this process without pages of files; -1: the system does not report it. */
static double process_bytes(void)
{
    char line[256];
    double kilobytes = -1;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return -1;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lf kB", &kilobytes) == 1) break;
    fclose(f);
    return kilobytes < 0 ? -1 : 1024 * kilobytes;
}

static void evaluate_network(mica_engine *e)
{
    mica_scope *s = mica_scope_begin(e);
    mica_array *x = mica_random_normal(s, MICA_F32, SHAPE(64, 64), 1),
               *w = mica_random_normal(s, MICA_F32, SHAPE(64, 64), 2);
    mica_array *y = x, *grad = NULL;
    for (int i = 0; i < 10; i++) y = mica_softmax(s, mica_gelu(s, mica_matmul(s, y, w)), -1);
    mica_array *loss = mica_sum(s, mica_square(s, y), NULL, 0, false);
    CHECK_OK(mica_grad(s, loss, &w, 1, &grad));
    CHECK_OK(mica_eval(s, ARRAYS(loss, grad)));
    mica_scope_end(s);
}

TEST(an_engine_at_rest_is_small)
{
#if defined(SANITIZED)
    SKIP("a sanitizer's own memory is in the figure");
#endif
    const double before = process_bytes();
    if (before < 0) SKIP("the system does not say how much memory a process has");
    mica_engine *e = open_engine("cpu");
    for (int i = 0; i < 3; i++) evaluate_network(e);
    const double after = process_bytes();
    EXPECT_MSG(after - before < 10e6, "%.1f MB", 1e-6 * (after - before));
    mica_close(e);
}

/* Memory of a large graph is not kept: the number of spare node blocks is bounded, and
 * trimming frees them. */
TEST(a_large_graph_leaves_little_behind)
{
    enum { NODES = 50000 };
    mica_engine *e = open_engine("cpu");
    evaluate_network(e);
    mica_engine_trim(e);
    const int64_t before = live_blocks();
    mica_scope *s = mica_scope_begin(e);
    mica_array *y = mica_ones(s, MICA_F32, SHAPE(4));
    for (int i = 0; i < NODES; i++) y = mica_neg(s, y);
    CHECK(y != NULL);
    EXPECT(live_blocks() - before > NODES / 2);
    mica_scope_end(s);
    EXPECT_MSG(live_blocks() - before <= 8192 + 8, "%d blocks are kept", (int)(live_blocks() - before));
    mica_engine_trim(e);
    EXPECT_MSG(live_blocks() - before <= 8, "%d blocks are kept", (int)(live_blocks() - before));
    mica_close(e);
}

/* Nested and consecutive scopes: no node is allocated from the heap once there are
 * enough spare blocks. */
TEST(building_a_known_number_of_nodes_allocates_nothing)
{
#if defined(MICA_DEBUG)
    SKIP("debug builds never reuse a block");
#endif
    mica_engine *e = open_engine("cpu");
    for (int round = 0; round < 4; round++) {
        mica_scope *outer = mica_scope_begin(e);
        mica_array *x = mica_full(outer, MICA_F32, SHAPE(4), 1);
        for (int k = 0; k < 3; k++) {
            const uint64_t asked = mica__alloc_count();
            mica_scope *s = mica_scope_begin(e);
            mica_array *y = x;
            for (int i = 0; i < 100; i++) y = mica_add(s, mica_exp(s, y), x);
            EXPECT(y != NULL);
            mica_scope_end(s);
            if (round > 1 && k > 0) EXPECT_INT(mica__alloc_count() - asked, 0);
        }
        mica_scope_end(outer);
    }
    mica_close(e);
}
