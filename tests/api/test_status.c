/* Every status of mica.h is reached in a way that is possible in a real program, with an error
 * message that states the reason. The engine stays usable after each.
 *
 * runs: metal, check */
#include <pthread.h>

#include "api.h"
#include "graph/graph.h"
#include "io/model_file.h"

static struct {
    mica_engine *e;
    mica_scope *s;
    mica_array *x;       /* f32 (4)    */
    mica_array *m;       /* f32 (2, 3) */
    mica_array *i;       /* i64 (3)    */
    mica_array *one;     /* f32 ()     */
} w;

static void world_begin(void)
{
    w.e = open_engine("cpu");
    w.s = mica_scope_begin(w.e);
    w.x = count_up(w.s, 4, 1);
    w.m = count_up_2d(w.s, 2, 3);
    w.i = mica_from_data(w.s, MICA_I64, SHAPE(3), (int64_t[]){0, 1, 2});
    w.one = mica_from_data(w.s, MICA_F32, 0, NULL, &(float){1});
}

static void world_end(void)
{
    mica_scope_clear_error(w.s);
    mica_array *y = mica_neg(w.s, w.x);
    EXPECT_OK(mica_eval(w.s, &y, 1));
    EXPECT_VALUES(y, -1, -2, -3, -4);
    mica_scope_end(w.s);
    mica_close(w.e);
}

static mica_status reach_ok(void) { return mica_eval(w.s, &w.x, 1); }
static mica_status reach_argument(void) { return mica_eval(w.s, NULL, 1); }

static mica_status reach_shape(void)
{
    mica_array *y = mica_matmul(w.s, w.m, w.m);
    return mica_eval(w.s, &y, 1);
}

static mica_status reach_dtype(void)
{
    mica_array *y = mica_bitwise_not(w.s, w.x);
    return mica_eval(w.s, &y, 1);
}

static mica_status reach_state(void) { return mica_item(mica_neg(w.s, w.one), &(double){0}); }

static mica_status reach_index(void)
{
    mica_array *y = mica_take(w.s, w.m, w.i, 0);
    return mica_eval(w.s, &y, 1);
}

static mica_status reach_size(void)
{
    mica_array *y = mica_zeros(w.s, MICA_F32, SHAPE(INT64_MAX, INT64_MAX));
    return mica_eval(w.s, &y, 1);
}

static mica_status reach_memory(void)
{
    const int64_t n = (int64_t)1 << 46; /* bytes: more than any machine has, but a size_t holds it */
    mica_array *y = mica_contiguous(w.s, mica_zeros(w.s, MICA_U8, 1, &n));
    return mica_eval(w.s, &y, 1);
}

static mica_status reach_unsupported(void)
{
    mica_array *y = mica_exp(w.s, mica_cast(w.s, w.x, MICA_F64)); /* Metal has no f64 */
    return mica_plan_text(w.s, &y, 1, MICA_DUMP_MSL, NULL, 0, NULL);
}

/* The default stack of new threads is larger than the address space. */
static mica_status reach_device(void)
{
#if defined(__GLIBC__)
    pthread_attr_t normal, endless;
    if (pthread_getattr_default_np(&normal) != 0) return MICA_OK;
    pthread_attr_init(&endless);
    mica_status status = MICA_OK;
    mica_event *event = NULL;
    mica_array *y = mica_neg(w.s, w.x);
    if (pthread_attr_setstacksize(&endless, (size_t)1 << 47) == 0 && pthread_setattr_default_np(&endless) == 0)
        status = mica_eval_async(w.s, &y, 1, &event);
    mica_event_free(event);
    pthread_setattr_default_np(&normal);
    pthread_attr_destroy(&endless);
    pthread_attr_destroy(&normal);
    return status;
#else
    return MICA_OK;
#endif
}

static mica_status reach_internal(void)
{
    /* Only a bug of the library reaches this, so the test corrupts a graph. */
    mica__arena arena;
    mica__graph *graph = NULL;
    uint32_t id;
    const mica__attr_full full = {.spec = {.dtype = MICA_F32}};
    mica__arena_init(&arena);
    mica_status status = mica__graph_new(&arena, &graph);
    if (status == MICA_OK) status = mica__graph_add(graph, MICA__OP_FULL, NULL, 0, &full, sizeof full, &id);
    if (status == MICA_OK) status = mica__graph_add(graph, MICA__OP_EXP, &id, 1, NULL, 0, &id);
    if (status == MICA_OK) status = mica__graph_verify(graph, "building");
    if (status == MICA_OK) {
        graph->node[id].spec.dtype = MICA_I32;
        status = mica__graph_verify(graph, "the test");
    }
    mica__arena_free(&arena);
    return status;
}

static mica_status reach_format(void)
{
    mica__file *file = NULL;
    return mica__file_from_memory("model", "GGUF\3\0\0\0\1", 9, NULL, &file);
}

static mica_status reach_file(void)
{
    mica__file *file = NULL;
    return mica__file_open("tests/no-such-model", NULL, &file);
}

static bool try_way(mica_status want, mica_status (*reach)(void), const char *part)
{
    world_begin();
    const mica_status got = reach();
    char said[512];
    snprintf(said, sizeof said, "%s", mica_last_error());
    world_end();
    if (got == MICA_OK && want == MICA_ERR_DEVICE) {
        test_skip("this C library cannot be made to refuse a thread");
        return true;
    }
    return EXPECT_MSG(got == want, "status %d: %s", (int)got, said) &&
           EXPECT_MSG(want == MICA_OK || strstr(said, part), "\"%s\" without \"%s\"", said, part);
}

TEST(every_status_is_reached)
{
    static const struct {
        mica_status status;
        mica_status (*reach)(void);
        const char *part;
    } ways[] = {
        {MICA_OK, reach_ok, ""},
        {MICA_ERR_ARGUMENT, reach_argument, "eval: arrays is NULL"},
        {MICA_ERR_SHAPE, reach_shape, "matmul"},
        {MICA_ERR_DTYPE, reach_dtype, "bitwise_not"},
        {MICA_ERR_STATE, reach_state, "not evaluated"},
        {MICA_ERR_INDEX, reach_index, "2"},
        {MICA_ERR_SIZE, reach_size, "9223372036854775807"},
        {MICA_ERR_FORMAT, reach_format, "the number of tensors at byte 8 needs 8 bytes"},
        {MICA_ERR_FILE, reach_file, "tests/no-such-model: cannot open it"},
        {MICA_ERR_MEMORY, reach_memory, "70368744177664"},
        {MICA_ERR_UNSUPPORTED, reach_unsupported, "f64"},
        {MICA_ERR_DEVICE, reach_device, "thread"},
        {MICA_ERR_INTERNAL, reach_internal, "graph after the test: %1 (exp)"},
    };
    int reached = 0, all = 0;
#define ONE(name, value, text)                                                      \
    {                                                                               \
        test_case("%s", #name);                                                     \
        size_t i = 0;                                                               \
        while (i < COUNT(ways) && ways[i].status != name) i++;                      \
        EXPECT_MSG(i < COUNT(ways), "no way to reach it is known");                 \
        if (i < COUNT(ways)) reached += try_way(name, ways[i].reach, ways[i].part); \
        EXPECT_STR(mica_status_text(name), text);                                   \
        EXPECT_INT(name, value);                                                    \
        all++;                                                                      \
    }
    MICA_STATUS_LIST(ONE)
#undef ONE
    test_case("all of them");
    EXPECT_INT(reached, all);
}

/* Code built on mica.h reports errors in the same way: the scope keeps the first cause. */
TEST(failures_of_callers)
{
    world_begin();
    EXPECT(!mica_scope_fail(w.s, MICA_ERR_STATE, "layer: %d of %s", 3, "four"));
    EXPECT(!mica_scope_fail(w.s, MICA_ERR_SHAPE, "later"));
    EXPECT_STR(mica_last_error(), "later");
    EXPECT_FAILS(mica_eval(w.s, &w.x, 1), MICA_ERR_STATE, "layer: 3 of four");
    world_end();
}
