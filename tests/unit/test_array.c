/* Nodes, their shapes and how they are freed; what scopes and getters do with them. The five
 * functions below stand in for the runtime, so no part of the runtime is linked. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "array/array.h"
#include "array/scope.h"
#include "base/alloc.h"
#include "test.h"

static struct {
    int engine_releases, event_drops, settles, copies, zero_copy, with_copy;
    uint64_t bytes;
    mica_status settle_status;
    bool settle_makes_ready;
} seen;

static float settled_value = 42;
static int some_engine, some_event;

void mica__engine_release(struct mica_engine *engine) { seen.engine_releases += engine == (void *)&some_engine; }

void mica__event_drop(struct mica_event *event) { seen.event_drops += event == (void *)&some_event; }

mica_status mica__event_settle(mica_array *a)
{
    seen.settles++;
    if (seen.settle_status != MICA_OK) return mica__fail(seen.settle_status, "the evaluation failed");
    if (seen.settle_makes_ready) mica__array_set_ready(a, NULL, (char *)&settled_value, (int64_t[]){1});
    return MICA_OK;
}

void mica__count_copy(struct mica_engine *engine, uint64_t nbytes)
{
    (void)engine;
    seen.copies++;
    seen.bytes += nbytes;
}

void mica__count_conversion(struct mica_engine *engine, bool zero_copy)
{
    (void)engine;
    if (zero_copy) seen.zero_copy++;
    else seen.with_copy++;
}

static mica__spec spec_of(mica_dtype dtype, int ndim, const int64_t *shape)
{
    mica__spec spec = {.dtype = (int32_t)dtype, .ndim = ndim};
    if (ndim) memcpy(spec.shape, shape, (size_t)ndim * sizeof *shape);
    return spec;
}

#define SPEC(dtype, ...) \
    spec_of(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* A ready array over data, without a buffer. */
static mica_array *ready_over(mica__spec spec, const void *data, const int64_t *strides)
{
    mica_array *a = mica__array_new(1, &spec, NULL, 0, NULL, 0);
    int64_t row_major[MICA_MAX_DIMS];
    mica__row_major(&spec, row_major);
    mica__array_set_ready(a, NULL, (char *)(uintptr_t)data, strides ? strides : row_major);
    a->engine = (void *)&some_engine;
    memset(&seen, 0, sizeof seen);
    return a;
}

/* ---------------------------------------------------------------- shapes --- */

TEST(counting_elements)
{
    int64_t count;
    size_t nbytes;
    mica__spec s = SPEC(MICA_F32, 2, 3, 4);
    CHECK(mica__spec_count(&s, &count, &nbytes));
    CHECK_INT(count, 24);
    CHECK_INT(nbytes, 96);
    CHECK_INT(mica__spec_size(&s), 24);
    s = spec_of(MICA_F64, 0, NULL);
    CHECK(mica__spec_count(&s, &count, &nbytes));
    CHECK_INT(count, 1);
    CHECK_INT(nbytes, 8);
    s = SPEC(MICA_U8, 5, 0, 7);
    CHECK(mica__spec_count(&s, &count, &nbytes));
    CHECK_INT(count, 0);
    CHECK_INT(nbytes, 0);
    CHECK_INT(mica__spec_size(&s), 0);
    CHECK(mica__spec_count(&s, NULL, NULL));
}

TEST(shapes_that_do_not_fit)
{
    mica__spec s = SPEC(MICA_U8, INT64_MAX);
    CHECK(mica__spec_count(&s, NULL, NULL));
    s.dtype = MICA_U16;
    CHECK(!mica__spec_count(&s, NULL, NULL));
    s = SPEC(MICA_F32, 1ll << 31, 1ll << 31);
    CHECK(!mica__spec_count(&s, NULL, NULL));
    s = SPEC(MICA_F32, 1ll << 31, 1ll << 31, 0);
    CHECK(!mica__spec_count(&s, NULL, NULL));
    s = SPEC(MICA_F32, 3, -1);
    CHECK(!mica__spec_count(&s, NULL, NULL));
    s.ndim = 9;
    CHECK(!mica__spec_count(&s, NULL, NULL));
    s.ndim = -1;
    CHECK(!mica__spec_count(&s, NULL, NULL));
    s = SPEC((mica_dtype)77, 3);
    CHECK(!mica__spec_count(&s, NULL, NULL));
}

TEST(comparing_specs)
{
    const mica__spec a = SPEC(MICA_F32, 2, 3), b = SPEC(MICA_F32, 2, 3), c = SPEC(MICA_I32, 2, 3),
                     d = SPEC(MICA_F32, 2, 3, 1), e = SPEC(MICA_F32, 3, 2);
    CHECK(mica__spec_equal(&a, &b) && mica__shape_equal(&a, &b));
    CHECK(!mica__spec_equal(&a, &c) && mica__shape_equal(&a, &c));
    CHECK(!mica__spec_equal(&a, &d) && !mica__shape_equal(&a, &d));
    CHECK(!mica__spec_equal(&a, &e) && !mica__shape_equal(&a, &e));
    const mica__spec none = spec_of(MICA_F32, 0, NULL);
    CHECK(mica__shape_equal(&none, &none));
}

TEST(row_major)
{
    mica__spec s = SPEC(MICA_F32, 2, 3, 4);
    int64_t strides[MICA_MAX_DIMS];
    mica__row_major(&s, strides);
    CHECK(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);
    CHECK(mica__is_row_major(&s, strides));
    CHECK(!mica__is_row_major(&s, (int64_t[]){13, 4, 1}));
    CHECK(!mica__is_row_major(&s, (int64_t[]){1, 2, 6}));
    CHECK(!mica__is_row_major(&s, (int64_t[]){-12, 4, 1}));
    s = SPEC(MICA_F32, 2, 1, 4);
    CHECK(mica__is_row_major(&s, (int64_t[]){4, 777, 1}));
    s = SPEC(MICA_F32, 2, 0, 4);
    CHECK(mica__is_row_major(&s, (int64_t[]){5, 6, 7}));
    s = SPEC(MICA_F32, 3);
    CHECK(!mica__is_row_major(&s, (int64_t[]){0}));
    s = spec_of(MICA_F32, 0, NULL);
    CHECK(mica__is_row_major(&s, strides));
}

/* ----------------------------------------------------------------- nodes --- */

TEST(a_node_keeps_its_inputs_and_copies_its_attributes)
{
    const int64_t live = mica__alloc_live();
    const mica__spec s = SPEC(MICA_F32, 2);
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0), *y = mica__array_new(2, &s, NULL, 0, NULL, 0);
    CHECK(x && y && !x->attr && !x->n_in);
    char attr[19] = "eighteen letters..";
    mica_array *z = mica__array_new(3, &s, (mica_array *[]){x, y, x}, 3, attr, sizeof attr);
    memset(attr, 0, sizeof attr);
    CHECK_INT(z->op, 3);
    CHECK_INT(z->n_in, 3);
    CHECK(z->in[0] == x && z->in[1] == y && z->in[2] == x);
    CHECK_INT(z->attr_size, sizeof attr);
    CHECK_STR((const char *)z->attr, "eighteen letters..");
    CHECK_INT((uintptr_t)z->attr % 16, 0);
    CHECK_INT(mica__array_state(z), MICA__LAZY);
    CHECK_INT(atomic_load(&x->refs), 3);
    CHECK_INT(atomic_load(&z->refs), 1);
    CHECK_INT(mica__alloc_live() - live, 3);
    mica_drop(x);
    mica_drop(y);
    CHECK_INT(mica__alloc_live() - live, 3);
    mica_drop(z);
    CHECK_INT(mica__alloc_live(), live);
}

/* Freed blocks are added to the list and reused from it; larger nodes are not. */
TEST(spare_blocks)
{
    const int64_t live = mica__alloc_live();
    const mica__spec s = SPEC(MICA_F32, 2);
    mica__node_list list = {0}, more = {0};
    CHECK(!mica__node_sink(&list));
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    mica_array *y = mica__array_new(2, &s, (mica_array *[]){x, x}, 2, NULL, 0);
    char attr[1000] = {1};
    mica_array *z = mica__array_from(&list, 3, &s, (mica_array *[]){y}, 1, attr, sizeof attr);
    CHECK_INT(mica__alloc_live() - live, 3);
    mica_drop(x);
    mica_drop(y);
    mica_drop(z); /* frees the others too */
    CHECK(mica__node_sink(NULL) == &list);
#if defined(MICA_DEBUG)
    CHECK_INT(list.n, 0);
    CHECK_INT(mica__alloc_live(), live);
#else
    CHECK_INT(list.n, 2);
    CHECK_INT(mica__alloc_live() - live, 2);
    const uint64_t asked = mica__alloc_count();
    y = mica__array_from(&list, 5, &s, NULL, 0, attr, 64);
    CHECK_INT(mica__alloc_count(), asked);
    CHECK(y->refs == 1 && !y->n_in && !y->buffer && !y->event && !y->attr_free && !y->escaped && !y->weak);
    CHECK_INT(((const char *)y->attr)[0], 1);
    CHECK_INT(list.n, 1);
    z = mica__array_from(&list, 5, &s, (mica_array *[]){y, y, y}, 3, attr, sizeof attr); /* too large for a block */
    CHECK_INT(mica__alloc_count(), asked + 1);
    mica_drop(z);
    mica_drop(y); /* no sink: freed to the heap */
    mica__node_list_move(&more, &list);
    CHECK(list.n == 0 && !list.first && !list.last && more.n == 1 && more.first == more.last);
    mica__node_list_move(&more, &list); /* an empty list */
    mica__node_list_trim(&more, 1);
    CHECK_INT(more.n, 1);
#endif
    mica__node_list_trim(&more, 0);
    CHECK(more.n == 0 && !more.first && !more.last);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(no_memory_for_a_node)
{
    const int64_t live = mica__alloc_live();
    const mica__spec s = SPEC(MICA_F32, 2);
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    mica__alloc_fail_at(1);
    CHECK(!mica__array_new(1, &s, &x, 1, NULL, 0));
    CHECK(strstr(mica_last_error(), "out of memory: a node of the graph needs"));
    CHECK_INT(atomic_load(&x->refs), 1);
    CHECK(!mica__array_new(1, &s, NULL, 0, "", SIZE_MAX));
    mica_drop(x);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(keep_and_drop)
{
    const int64_t live = mica__alloc_live();
    const mica__spec s = SPEC(MICA_F32, 2);
    CHECK(!mica_keep(NULL));
    mica_drop(NULL);
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    CHECK(mica_keep(x) == x);
    mica_drop(x);
    CHECK_INT(mica__alloc_live() - live, 1);
    mica_drop(x);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(a_ready_node_holds_its_buffer)
{
    const int64_t live = mica__alloc_live();
    mica__memory *m;
    mica__buffer *b;
    CHECK_INT(mica__memory_new(0, 0, &m), MICA_OK);
    CHECK_INT(mica__buffer_new(m, 24, &b), MICA_OK);
    const mica__spec s = SPEC(MICA_F32, 2, 3);
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    mica__array_set_ready(x, b, b->data, (int64_t[]){3, 1});
    CHECK(mica_array_is_ready(x));
    CHECK(mica_array_strides(x)[0] == 3 && mica_array_strides(x)[1] == 1);
    mica__memory_stats stats;
    mica__memory_stats_get(m, &stats);
    CHECK_INT(stats.in_use, 256);
    mica_drop(x);
    mica__memory_stats_get(m, &stats);
    CHECK_INT(stats.in_use, 0);
    mica__memory_free(m);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(what_a_node_holds_is_released)
{
    const mica__spec s = SPEC(MICA_F32, 2);
    memset(&seen, 0, sizeof seen);
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    x->engine = (void *)&some_engine;
    mica_drop(x);
    CHECK_INT(seen.engine_releases, 0);
    x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    x->engine = (void *)&some_engine;
    x->escaped = true;
    x->event = (void *)&some_event;
    mica_drop(x);
    CHECK_INT(seen.engine_releases, 1);
    CHECK_INT(seen.event_drops, 1);
}

/* ------------------------------------------------- freeing without stack --- */

static mica_array *chain(mica__spec *s, int n)
{
    mica_array *x = mica__array_new(1, s, NULL, 0, NULL, 0);
    for (int i = 1; i < n && x; i++) {
        mica_array *y = mica__array_new(2, s, (mica_array *[]){x, x}, 2, NULL, 0);
        mica_drop(x);
        x = y;
    }
    return x;
}

TEST(a_chain_of_a_million_nodes)
{
    const int64_t live = mica__alloc_live();
    mica__spec s = SPEC(MICA_F32, 2);
    mica_array *x = chain(&s, 1000000);
    CHECK_INT(mica__alloc_live() - live, 1000000);
    mica_drop(x);
    CHECK_INT(mica__alloc_live(), live);
}

static void drop_owned(const void *attr) { mica_drop(*(mica_array *const *)attr); }

TEST(a_chain_through_attributes)
{
    const int64_t live = mica__alloc_live();
    mica__spec s = SPEC(MICA_F32, 2);
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    for (int i = 0; i < 300000; i++) {
        mica_array *y = mica__array_new(2, &s, NULL, 0, &x, sizeof x);
        y->attr_free = drop_owned;
        x = y;
    }
    mica_drop(x);
    CHECK_INT(mica__alloc_live(), live);
}

static void drop_user(void *data, void *user)
{
    (void)data;
    mica_drop(user);
}

TEST(a_chain_through_foreign_memory)
{
    const int64_t live = mica__alloc_live();
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, 0, &m), MICA_OK);
    mica__spec s = SPEC(MICA_U8, 1);
    char byte = 0;
    mica_array *x = NULL;
    for (int i = 0; i < 300000; i++) {
        mica__buffer *b;
        CHECK_INT(mica__buffer_wrap(m, &byte, 1, drop_user, x, &b), MICA_OK);
        x = mica__array_new(1, &s, NULL, 0, NULL, 0);
        mica__array_set_ready(x, b, &byte, (int64_t[]){1});
    }
    mica__memory_free(m);
    mica_drop(x);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(detaching)
{
    const int64_t live = mica__alloc_live();
    mica__spec s = SPEC(MICA_F32, 2);
    mica_array *x = chain(&s, 200000);
    mica__array_detach(x);
    CHECK_INT(x->n_in, 0);
    CHECK_INT(mica__alloc_live() - live, 1);
    mica__array_detach(x);
    mica_drop(x);
    CHECK_INT(mica__alloc_live(), live);
}

static void *use_array(void *a)
{
    mica__spec s = SPEC(MICA_F32, 2);
    for (int i = 0; i < 3000; i++) {
        mica_array *y = mica__array_new(2, &s, (mica_array *[]){a}, 1, NULL, 0);
        mica_drop(mica_keep(y));
        mica_drop(y);
    }
    mica_drop(a);
    return NULL;
}

TEST(references_from_many_threads)
{
    const int64_t live = mica__alloc_live();
    mica__spec s = SPEC(MICA_F32, 2);
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    pthread_t thread[6];
    for (int i = 0; i < 6; i++) CHECK_INT(pthread_create(&thread[i], NULL, use_array, mica_keep(x)), 0);
    mica_drop(x);
    for (int i = 0; i < 6; i++) pthread_join(thread[i], NULL);
    CHECK_INT(mica__alloc_live(), live);
}

/* ---------------------------------------------------------------- scopes --- */

TEST(invalid_scopes)
{
    mica_scope s = {.magic = MICA__SCOPE_OPEN};
    CHECK_INT(mica__scope_check(&s, "add"), MICA_OK);
    CHECK_INT(mica__scope_check(NULL, "add"), MICA_ERR_ARGUMENT);
    CHECK_STR(mica_last_error(), "add: the scope is NULL");
    s.magic = MICA__SCOPE_ENDED;
    CHECK_INT(mica__scope_check(&s, "add"), MICA_ERR_STATE);
    CHECK_STR(mica_last_error(), "add: the scope has ended");
    CHECK(!mica__scope_fail(&s, MICA_ERR_SHAPE, "too late"));
    CHECK_INT(s.error.status, MICA_OK);
    s.magic = 1;
    CHECK_INT(mica__scope_check(&s, "add"), MICA_ERR_ARGUMENT);
}

TEST(a_scope_keeps_the_first_failure)
{
    mica_scope s = {.magic = MICA__SCOPE_OPEN};
    CHECK(!mica__scope_fail(&s, MICA_ERR_SHAPE, "add: lengths %d and %d", 4, 5));
    CHECK_STR(mica_last_error(), "add: lengths 4 and 5");
    CHECK(!mica__scope_fail(&s, MICA_ERR_DTYPE, "second"));
    CHECK_STR(mica_last_error(), "second");
    CHECK_INT(s.error.status, MICA_ERR_SHAPE);
    CHECK_STR(s.error.text, "add: lengths 4 and 5");
    CHECK(!mica__scope_fail(NULL, MICA_ERR_ARGUMENT, "100%% %s", "without a scope"));
    CHECK_STR(mica_last_error(), "100% without a scope");
}

TEST(a_scope_owns_nodes)
{
    mica_scope s = {.magic = MICA__SCOPE_OPEN, .id = 5, .engine = (void *)&some_engine};
    const mica__spec spec = SPEC(MICA_F32, 2);
    const uint64_t before = mica__serial_now();
    mica_array *x = mica__scope_own(&s, mica__array_new(1, &spec, NULL, 0, NULL, 0));
    mica_array *y = mica__scope_own(&s, mica__array_new(1, &spec, &x, 1, NULL, 0));
    CHECK(before < x->serial && x->serial < y->serial && y->serial == mica__serial_now());
    CHECK(s.nodes == y && y->scope_next == x && !x->scope_next);
    CHECK(x->scope_id == 5 && x->engine == (void *)&some_engine);
    mica__alloc_fail_at(1);
    CHECK(!mica__scope_own(&s, mica__array_new(1, &spec, NULL, 0, NULL, 0)));
    CHECK_INT(s.error.status, MICA_ERR_MEMORY);
    CHECK(strstr(s.error.text, "out of memory"));
    mica_drop(y);
    mica_drop(x);
}

/* --------------------------------------------------------------- inspect --- */

TEST(getters_of_no_array)
{
#define REFUSED(call, none, name)        \
    mica__fail(MICA_ERR_STATE, "other"); \
    CHECK((call) == (none));             \
    CHECK_STR(mica_last_error(), name ": the array is NULL")
    double value;
    REFUSED(mica_array_dtype(NULL), (mica_dtype)0, "mica_array_dtype");
    REFUSED(mica_array_ndim(NULL), 0, "mica_array_ndim");
    REFUSED(mica_array_shape(NULL), NULL, "mica_array_shape");
    REFUSED(mica_array_strides(NULL), NULL, "mica_array_strides");
    REFUSED(mica_array_size(NULL), 0, "mica_array_size");
    REFUSED(mica_array_nbytes(NULL), 0, "mica_array_nbytes");
    REFUSED(mica_array_is_ready(NULL), false, "mica_array_is_ready");
    REFUSED(mica_data(NULL), NULL, "mica_data");
    REFUSED(mica_data_f32(NULL), NULL, "mica_data_f32");
    REFUSED(mica_data_bool(NULL), NULL, "mica_data_bool");
    REFUSED(mica_copy_out(NULL, &value, 8), MICA_ERR_ARGUMENT, "mica_copy_out");
    REFUSED(mica_item(NULL, &value), MICA_ERR_ARGUMENT, "mica_item");
}

TEST(getters)
{
    static const int16_t data[6] = {1, 2, 3, 4, 5, 6};
    mica_array *x = ready_over(SPEC(MICA_I16, 2, 3), data, NULL);
    CHECK_INT(mica_array_dtype(x), MICA_I16);
    CHECK_INT(mica_array_ndim(x), 2);
    CHECK(mica_array_shape(x)[0] == 2 && mica_array_shape(x)[1] == 3);
    CHECK_INT(mica_array_size(x), 6);
    CHECK_INT(mica_array_nbytes(x), 12);
    CHECK(mica_array_is_ready(x));
    CHECK_INT(seen.zero_copy, 0);
    CHECK(mica_data(x) == data);
    CHECK(mica_data_i16(x) == data);
    CHECK_INT(seen.zero_copy, 2);
    CHECK(!mica_data_u16(x));
    CHECK_STR(mica_last_error(), "mica_data_u16: the array is i16");
    CHECK_INT(seen.zero_copy, 2);
    CHECK_INT(seen.with_copy, 0);
    mica_drop(x);
}

TEST(each_typed_getter_takes_its_dtype)
{
    static const double data[1] = {0};
    for (int i = 0; i < MICA__DTYPE_COUNT; i++) {
        mica_array *x = ready_over(SPEC((mica_dtype)i, 1), data, NULL);
        const void *got[MICA__DTYPE_COUNT] = {mica_data_bool(x), mica_data_u8(x),  mica_data_i8(x),   mica_data_u16(x),
                                              mica_data_i16(x),  mica_data_u32(x), mica_data_i32(x),  mica_data_u64(x),
                                              mica_data_i64(x),  mica_data_f16(x), mica_data_bf16(x), mica_data_f32(x),
                                              mica_data_f64(x)};
        for (int k = 0; k < MICA__DTYPE_COUNT; k++) CHECK(got[k] == (k == i ? (const void *)data : NULL));
        mica_drop(x);
    }
}

TEST(typed_data_must_be_row_major)
{
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    mica_array *x = ready_over(SPEC(MICA_F32, 3, 2), data, (int64_t[]){1, 3});
    CHECK(!mica_data_f32(x));
    CHECK_STR(mica_last_error(), "mica_data_f32: shape (3, 2) has strides (1, 3), not row-major; use mica_copy_out");
    CHECK(mica_data(x) == data);
    mica_drop(x);
}

TEST(copying_out)
{
    int32_t data[24], out[24];
    for (int i = 0; i < 24; i++) data[i] = i;
    mica_array *x = ready_over(SPEC(MICA_I32, 2, 3, 4), data, NULL);
    CHECK_INT(mica_copy_out(x, out, sizeof out), MICA_OK);
    CHECK(memcmp(out, data, sizeof out) == 0);
    CHECK_INT(seen.with_copy, 1);
    CHECK_INT(seen.copies, 1);
    CHECK_INT(seen.bytes, 96);
    CHECK_INT(mica_copy_out(x, out, 95), MICA_ERR_ARGUMENT);
    CHECK_STR(mica_last_error(), "mica_copy_out: room for 95 bytes, the array has 96");
    CHECK_INT(mica_copy_out(x, NULL, 96), MICA_ERR_ARGUMENT);
    CHECK_INT(seen.copies, 1);
    mica_drop(x);

    /* Transposed, reversed, broadcast, a slice. */
    static const struct {
        int64_t shape[3], strides[3], first;
    } view[] = {{{4, 3, 2}, {1, 4, 12}, 0},
                {{2, 3, 4}, {-12, -4, -1}, 23},
                {{3, 2, 4}, {0, 12, 1}, 4},
                {{2, 2, 2}, {12, 4, 2}, 1},
                {{1, 1, 5}, {99, -99, 3}, 2}};
    for (size_t v = 0; v < sizeof view / sizeof *view; v++) {
        test_case("view %zu", v);
        const int64_t *n = view[v].shape, *stride = view[v].strides;
        x = ready_over(spec_of(MICA_I32, 3, n), data + view[v].first, stride);
        CHECK_INT(mica_copy_out(x, out, mica_array_nbytes(x)), MICA_OK);
        const int32_t *got = out;
        for (int64_t i = 0; i < n[0]; i++)
            for (int64_t j = 0; j < n[1]; j++)
                for (int64_t k = 0; k < n[2]; k++)
                    CHECK_INT(*got++, view[v].first + i * stride[0] + j * stride[1] + k * stride[2]);
        mica_drop(x);
    }
}

TEST(copying_out_each_element_size)
{
    static const mica_dtype dtypes[] = {MICA_U8, MICA_F16, MICA_F32, MICA_F64};
    for (size_t d = 0; d < 4; d++) {
        char data[48], out[24];
        const size_t size = mica_dtype_size(dtypes[d]);
        for (size_t i = 0; i < sizeof data; i++) data[i] = (char)i;
        mica_array *x = ready_over(SPEC(dtypes[d], 3), data, (int64_t[]){2});
        CHECK_INT(mica_copy_out(x, out, 3 * size), MICA_OK);
        for (size_t i = 0; i < 3; i++) CHECK(memcmp(out + i * size, data + 2 * i * size, size) == 0);
        mica_drop(x);
    }
}

TEST(copying_out_nothing)
{
    mica_array *x = ready_over(SPEC(MICA_F32, 0, 3), NULL, (int64_t[]){7, 7});
    CHECK_INT(mica_copy_out(x, NULL, 0), MICA_OK);
    mica_drop(x);
}

TEST(items)
{
    static const int8_t data[2] = {-7, 3};
    double value = 0;
    mica_array *x = ready_over(SPEC(MICA_I8, 1, 1), data, NULL);
    CHECK_INT(mica_item(x, &value), MICA_OK);
    CHECK(value == -7);
    CHECK_INT(mica_item(x, NULL), MICA_ERR_ARGUMENT);
    mica_drop(x);
    x = ready_over(SPEC(MICA_I8, 2), data, NULL);
    CHECK_INT(mica_item(x, &value), MICA_ERR_SHAPE);
    CHECK_STR(mica_last_error(), "mica_item: the array has 2 elements, not one");
    mica_drop(x);
}

TEST(arrays_that_are_not_ready)
{
    const mica__spec s = SPEC(MICA_F32, 1);
    double value;
    mica_array *x = mica__array_new(1, &s, NULL, 0, NULL, 0);
    memset(&seen, 0, sizeof seen);
    CHECK(!mica_array_is_ready(x));
    CHECK(!mica_array_strides(x));
    CHECK(!mica_data(x));
    CHECK_STR(mica_last_error(), "mica_data: the array is not evaluated");
    CHECK(!mica_data_f32(x));
    CHECK_INT(mica_item(x, &value), MICA_ERR_STATE);
    CHECK_INT(mica_copy_out(x, &value, 4), MICA_ERR_STATE);
    CHECK_INT(seen.settles, 0);

    /* Pending: waits, and returns the error of the evaluation. */
    atomic_store(&x->state, (uint8_t)MICA__PENDING);
    seen.settle_status = MICA_ERR_INDEX;
    CHECK_INT(mica_item(x, &value), MICA_ERR_INDEX);
    CHECK_STR(mica_last_error(), "the evaluation failed");
    CHECK(!mica_data(x));
    atomic_store(&x->state, (uint8_t)MICA__FAILED);
    CHECK(!mica_data_f32(x));
    CHECK_INT(seen.settles, 3);
    atomic_store(&x->state, (uint8_t)MICA__PENDING);
    seen.settle_status = MICA_OK;
    CHECK_INT(mica_item(x, &value), MICA_ERR_STATE);
    seen.settle_makes_ready = true;
    CHECK_INT(mica_item(x, &value), MICA_OK);
    CHECK(value == 42);
    CHECK(mica_data_f32(x) == &settled_value);
    CHECK_INT(seen.settles, 5);
    mica_drop(x);
}
