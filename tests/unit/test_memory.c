/* The memory pool: what is reused, what is evicted, what is counted. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "memory/memory.h"
#include "test.h"

enum { K = 1024, M = 1024 * 1024 };

static mica__memory_stats stats_of(mica__memory *m)
{
    mica__memory_stats s;
    mica__memory_stats_get(m, &s);
    return s;
}

#define EXPECT_STATS(m, want_in_use, want_cached, want_hits, want_misses, want_evictions) \
    do {                                                                                  \
        const mica__memory_stats s_ = stats_of(m);                                        \
        EXPECT_INT(s_.in_use, want_in_use);                                               \
        EXPECT_INT(s_.cached, want_cached);                                               \
        EXPECT_INT(s_.hits, want_hits);                                                   \
        EXPECT_INT(s_.misses, want_misses);                                               \
        EXPECT_INT(s_.evictions, want_evictions);                                         \
        EXPECT_INT(s_.allocated - s_.freed, s_.in_use + s_.cached);                       \
    } while (0)

static mica__buffer *take(mica__memory *m, size_t nbytes)
{
    mica__buffer *b;
    return EXPECT_MSG(mica__buffer_new(m, nbytes, &b) == MICA_OK, "%s", mica_last_error()) ? b : NULL;
}

TEST(sizes_are_rounded)
{
    CHECK_INT(mica__memory_round(0), 256);
    CHECK_INT(mica__memory_round(1), 256);
    CHECK_INT(mica__memory_round(256), 256);
    CHECK_INT(mica__memory_round(257), 512);
    CHECK_INT(mica__memory_round(M - 1), M);
    CHECK_INT(mica__memory_round(M), M);
    CHECK_INT(mica__memory_round(M + 1), M + 16 * K);
    CHECK(mica__memory_round(SIZE_MAX) == SIZE_MAX);
    CHECK(mica__memory_round(SIZE_MAX - 16382) == SIZE_MAX);
    CHECK(mica__memory_round(SIZE_MAX - 16383) == SIZE_MAX - 16383);
}

TEST(blocks_are_aligned)
{
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, 0, &m), MICA_OK);
    static const size_t sizes[] = {0, 1, 100, 16 * K - 1, 16 * K, M, 4 * M - 1, 4 * M, 5 * M + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        mica__buffer *b = take(m, sizes[i]);
        EXPECT_INT(b->nbytes, sizes[i]);
        EXPECT_INT(b->capacity, mica__memory_round(sizes[i]));
        EXPECT_INT((uintptr_t)b->data % (b->capacity >= 4 * M ? 2 * M : b->capacity >= 16 * K ? 4096 : 64), 0);
        memset(b->data, 1, b->capacity);
        mica__buffer_drop(b);
    }
    mica__memory_free(m);
}

TEST(script_of_hits_misses_and_evictions)
{
    const int64_t live = mica__alloc_live();
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, 10 * K, &m), MICA_OK);
    mica__buffer *a = take(m, 4 * K), *b = take(m, 4 * K - 1), *c = take(m, 2 * K);
    EXPECT_STATS(m, 10 * K, 0, 0, 3, 0);
    void *data_a = a->data, *data_b = b->data;
    mica__buffer_drop(a);
    mica__buffer_drop(b);
    mica__buffer_drop(c);
    EXPECT_STATS(m, 0, 10 * K, 0, 3, 0);
    EXPECT_INT(stats_of(m).largest_cached, 4 * K);

    /* The newest block of a size is reused first; other sizes do not match. */
    b = take(m, 4 * K);
    CHECK(b->data == data_b);
    EXPECT_STATS(m, 4 * K, 6 * K, 1, 3, 0);
    mica__buffer *d = take(m, 3 * K);
    EXPECT_STATS(m, 7 * K, 6 * K, 1, 4, 0);

    /* Free: c (2K), d (3K), b (4K) after a (4K): a was freed first and is evicted. */
    mica__buffer_drop(d);
    EXPECT_STATS(m, 4 * K, 9 * K, 1, 4, 0);
    mica__buffer_drop(b);
    EXPECT_STATS(m, 0, 9 * K, 1, 4, 1);
    b = take(m, 4 * K);
    CHECK(b->data == data_b);
    mica__buffer_drop(b);
    EXPECT_STATS(m, 0, 9 * K, 2, 4, 1);
    a = take(m, 2 * K);
    EXPECT_STATS(m, 2 * K, 7 * K, 3, 4, 1);
    mica__buffer_drop(a);

    /* By age: d (3K), b (4K), c (2K). 5K evict d, then b. */
    a = take(m, 5 * K);
    mica__buffer_drop(a);
    EXPECT_STATS(m, 0, 7 * K, 3, 5, 3);
    EXPECT_INT(stats_of(m).largest_cached, 5 * K);
    a = take(m, 2 * K);
    EXPECT_STATS(m, 2 * K, 5 * K, 4, 5, 3);
    mica__buffer_drop(a);

    /* A block larger than the cache evicts nothing. */
    a = take(m, 11 * K);
    mica__buffer_drop(a);
    EXPECT_STATS(m, 0, 7 * K, 4, 6, 3);

    EXPECT_INT(stats_of(m).peak, 11 * K);
    mica__memory_reset_peak(m);
    EXPECT_INT(stats_of(m).peak, 0);
    EXPECT_INT(mica__memory_trim(m), 7 * K);
    EXPECT_STATS(m, 0, 0, 4, 6, 3);
    EXPECT_INT(stats_of(m).largest_cached, 0);
    (void)data_a;
    mica__memory_free(m);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(a_cached_block_costs_no_allocation)
{
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, 100 * M, &m), MICA_OK);
    mica__buffer *b[50];
    for (int i = 0; i < 50; i++) b[i] = take(m, (size_t)(i % 7 + 1) * K);
    const uint64_t count = mica__alloc_count();
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 50; i++) mica__buffer_drop(b[i]);
        for (int i = 0; i < 50; i++) b[i] = take(m, (size_t)(i % 7 + 1) * K);
    }
    CHECK_INT(mica__alloc_count(), count);
    EXPECT_STATS(m, stats_of(m).in_use, 0, 500, 50, 0);
    for (int i = 0; i < 50; i++) mica__buffer_drop(b[i]);
    mica__memory_free(m);
}

TEST(limit)
{
    const int64_t live = mica__alloc_live();
    mica__memory *m;
    CHECK_INT(mica__memory_new(8 * K, 8 * K, &m), MICA_OK);
    mica__buffer *a = take(m, 4 * K), *b = take(m, 2 * K), *x;
    CHECK_INT(mica__buffer_new(m, 2 * K + 1, &x), MICA_ERR_MEMORY);
    CHECK(!x);
    CHECK_STR(mica_last_error(), "an array needs 2304 bytes; 2048 of the memory limit of 8192 bytes are left");
    mica__buffer *c = take(m, 2 * K);
    CHECK_INT(mica__buffer_new(m, 1, &x), MICA_ERR_MEMORY);
    CHECK_STR(mica_last_error(), "an array needs 256 bytes; 0 of the memory limit of 8192 bytes are left");
    EXPECT_STATS(m, 8 * K, 0, 0, 3, 0);

    /* Cached memory counts, and is evicted, oldest first. */
    mica__buffer_drop(b);
    mica__buffer_drop(a);
    EXPECT_STATS(m, 2 * K, 6 * K, 0, 3, 0);
    CHECK_INT(mica__memory_check(m, "the plan", 6 * K), MICA_OK);
    CHECK_INT(mica__memory_check(m, "the plan", 6 * K + 1), MICA_ERR_MEMORY);
    CHECK_STR(mica_last_error(), "the plan needs 6145 bytes; 6144 of the memory limit of 8192 bytes are left");
    CHECK_INT(mica__memory_check(m, "the plan", UINT64_MAX), MICA_ERR_MEMORY);
    EXPECT_STATS(m, 2 * K, 6 * K, 0, 3, 0);
    b = take(m, 1 * K);
    EXPECT_STATS(m, 3 * K, 4 * K, 0, 4, 1);
    a = take(m, 4 * K);
    EXPECT_STATS(m, 7 * K, 0, 1, 4, 1);
    mica__buffer_drop(a);
    a = take(m, 5 * K);
    EXPECT_STATS(m, 8 * K, 0, 1, 5, 2);

    /* A request that can never fit evicts nothing. */
    mica__buffer_drop(a);
    CHECK_INT(mica__buffer_new(m, 6 * K, &x), MICA_ERR_MEMORY);
    EXPECT_STATS(m, 3 * K, 5 * K, 1, 5, 2);
    mica__buffer_drop(b);
    mica__buffer_drop(c);
    mica__memory_free(m);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(sizes_that_do_not_exist)
{
    mica__memory *m;
    mica__buffer *b;
    CHECK_INT(mica__memory_new(0, M, &m), MICA_OK);
    CHECK_INT(mica__buffer_new(m, SIZE_MAX, &b), MICA_ERR_SIZE);
    CHECK(!b);
    CHECK_INT(mica__buffer_new(m, SIZE_MAX / 2, &b), MICA_ERR_MEMORY);
    CHECK(!b);
    CHECK_INT(mica__memory_check(m, "a plan", UINT64_MAX), MICA_OK);
    EXPECT_STATS(m, 0, 0, 0, 0, 0);
    mica__memory_free(m);
}

/* The same rules in the simplest form: an array in order of age. */
typedef struct slow_cache {
    size_t size[2048];
    int n;
    uint64_t cached, hits, misses, evictions;
} slow_cache;

static void slow_take(slow_cache *c, size_t size)
{
    for (int i = c->n - 1; i >= 0; i--) {
        if (c->size[i] != size) continue;
        memmove(&c->size[i], &c->size[i + 1], sizeof *c->size * (size_t)(c->n - i - 1));
        c->n--;
        c->cached -= size;
        c->hits++;
        return;
    }
    c->misses++;
}

static void slow_drop(slow_cache *c, size_t size, uint64_t limit)
{
    if (size > limit) return;
    c->size[c->n++] = size;
    for (c->cached += size; c->cached > limit; c->n--, c->evictions++) {
        c->cached -= c->size[0];
        memmove(c->size, c->size + 1, sizeof *c->size * (size_t)(c->n - 1));
    }
}

/* With more sizes than the cache has buckets, buckets hold several. */
static void random_use(uint32_t held_max, uint32_t sizes, uint64_t limit, int steps)
{
    const int64_t live = mica__alloc_live();
    static slow_cache slow;
    static mica__buffer *held[1000];
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, limit, &m), MICA_OK);
    memset(&slow, 0, sizeof slow);
    memset(held, 0, sizeof held);
    uint32_t random = 12345;
    for (int step = 0; step < steps; step++) {
        random = random * 1664525u + 1013904223u;
        const uint32_t i = (random >> 16) % held_max, size = ((random >> 8) % 5000 % sizes + 1) * 256;
        if (held[i]) {
            slow_drop(&slow, held[i]->capacity, limit);
            mica__buffer_drop(held[i]);
            held[i] = NULL;
        } else {
            slow_take(&slow, size);
            held[i] = take(m, size);
        }
        const mica__memory_stats s = stats_of(m);
        CHECK_MSG(s.cached == slow.cached && s.hits == slow.hits && s.misses == slow.misses &&
                      s.evictions == slow.evictions,
                  "step %d", step);
    }
    CHECK(slow.hits > 1000 && slow.evictions > 1000);
    for (uint32_t i = 0; i < held_max; i++) mica__buffer_drop(held[i]);
    mica__memory_free(m);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(random_use_agrees_with_a_slow_model)
{
    test_case("few sizes");
    random_use(24, 13, 9000, 20000);
    test_case("many sizes");
    random_use(1000, 700, 24 * M, 20000);
}

/* ------------------------------------------------------------ foreign ------ */

typedef struct released {
    int times;
    void *data;
} released;

static void release_note(void *data, void *user)
{
    released *r = user;
    r->times++;
    r->data = data;
}

TEST(foreign_memory_is_released_once)
{
    const int64_t live = mica__alloc_live();
    mica__memory *m;
    CHECK_INT(mica__memory_new(100, 100, &m), MICA_OK);
    float data[1000];
    released r = {0};
    mica__buffer *b;
    CHECK_INT(mica__buffer_wrap(m, data, sizeof data, release_note, &r, &b), MICA_OK);
    CHECK(b->data == data);
    CHECK_INT(b->capacity, 0);
    EXPECT_STATS(m, 0, 0, 0, 0, 0);
    CHECK(mica__buffer_keep(b) == b);
    mica__buffer_drop(b);
    CHECK_INT(r.times, 0);
    mica__buffer_drop(b);
    CHECK_INT(r.times, 1);
    CHECK(r.data == data);
    CHECK_INT(mica__buffer_wrap(m, data, sizeof data, NULL, NULL, &b), MICA_OK);
    mica__buffer_drop(b);
    mica__memory_free(m);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(foreign_memory_is_released_when_wrapping_fails)
{
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, 0, &m), MICA_OK);
    char data[10];
    released r = {0};
    mica__buffer *b = (mica__buffer *)&b;
    mica__alloc_fail_at(1);
    CHECK_INT(mica__buffer_wrap(m, data, sizeof data, release_note, &r, &b), MICA_ERR_MEMORY);
    CHECK(!b);
    CHECK_INT(r.times, 1);
    CHECK(r.data == data);
    CHECK(strstr(mica_last_error(), "out of memory"));
    mica__memory_free(m);
}

typedef struct drops_another {
    mica__buffer *other;
} drops_another;

static void release_other(void *data, void *user)
{
    (void)data;
    mica__buffer_drop(((drops_another *)user)->other);
}

TEST(a_release_may_free_further_buffers)
{
    const int64_t live = mica__alloc_live();
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, M, &m), MICA_OK);
    drops_another user = {take(m, 100)};
    mica__buffer *b;
    CHECK_INT(mica__buffer_wrap(m, user.other->data, 100, release_other, &user, &b), MICA_OK);
    mica__memory_free(m);
    mica__buffer_drop(b);
    CHECK_INT(mica__alloc_live(), live);
}

/* ----------------------------------------------------- lifetime and faults -- */

TEST(memory_lives_until_its_last_buffer)
{
    const int64_t live = mica__alloc_live();
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, M, &m), MICA_OK);
    mica__buffer *a = take(m, 1000), *b = take(m, 2 * M), *c = take(m, 1000);
    mica__buffer_drop(c);
    mica__memory_free(m);
    memset(a->data, 1, 1000);
    const int64_t before = mica__alloc_live();
    mica__buffer_drop(a);
    CHECK_INT(mica__alloc_live(), before - 1); /* it cannot be reused any more */
    memset(b->data, 1, 2 * M);
    mica__buffer_drop(b);
    CHECK_INT(mica__alloc_live(), live);
    mica__memory_free(NULL);
    mica__buffer_drop(NULL);
    CHECK(!mica__buffer_keep(NULL));
}

TEST(each_allocation_may_fail)
{
    const int64_t live = mica__alloc_live();
    int failures = 0;
    for (uint64_t n = 1; n <= 6; n++) {
        test_case("allocation %d", (int)n);
        mica__memory *m;
        mica__buffer *a = NULL, *b = NULL;
        mica__alloc_fail_at(n);
        mica_status status = mica__memory_new(0, M, &m);
        if (status == MICA_OK) {
            status = mica__buffer_new(m, 5000, &a);
            if (status == MICA_OK) status = mica__buffer_new(m, 6000, &b);
            EXPECT_INT(stats_of(m).in_use, (a ? 5120 : 0) + (b ? 6144 : 0));
        } else {
            CHECK(!m);
        }
        mica__alloc_fail_at(0);
        CHECK(status == MICA_OK || status == MICA_ERR_MEMORY);
        failures += status != MICA_OK;
        mica__buffer_drop(a);
        mica__buffer_drop(b);
        mica__memory_free(m);
        EXPECT_INT(mica__alloc_live(), live);
    }
    CHECK_INT(failures, 5);
}

TEST(the_cache_gives_way_when_the_system_refuses)
{
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, M, &m), MICA_OK);
    mica__buffer *a = take(m, 1 * K), *b = take(m, 2 * K);
    mica__buffer_drop(a);
    mica__buffer_drop(b);
    mica__alloc_fail_at(2); /* the record, then the block */
    a = take(m, 3 * K);
    EXPECT_STATS(m, 3 * K, 0, 0, 3, 2);
    mica__buffer_drop(a);
    mica__memory_free(m);
}

static void *use_memory(void *m)
{
    for (int i = 0; i < 2000; i++) {
        mica__buffer *a, *b;
        if (mica__buffer_new(m, (size_t)(i % 9) * 300, &a) != MICA_OK) return NULL;
        if (mica__buffer_new(m, (size_t)(i % 5) * 700, &b) != MICA_OK) return NULL;
        memset(a->data, i, a->capacity);
        memset(b->data, i, b->capacity);
        mica__buffer_keep(a);
        mica__buffer_drop(a);
        mica__buffer_drop(b);
        mica__buffer_drop(a);
    }
    return m;
}

TEST(many_threads)
{
    const int64_t live = mica__alloc_live();
    mica__memory *m;
    CHECK_INT(mica__memory_new(0, 6 * K, &m), MICA_OK);
    pthread_t thread[6];
    for (int i = 0; i < 6; i++) CHECK_INT(pthread_create(&thread[i], NULL, use_memory, m), 0);
    for (int i = 0; i < 6; i++) {
        void *result = NULL;
        pthread_join(thread[i], &result);
        CHECK(result == m);
    }
    const mica__memory_stats s = stats_of(m);
    EXPECT_INT(s.in_use, 0);
    EXPECT_INT(s.hits + s.misses, 6 * 4000);
    CHECK(s.cached <= 6 * K);
    EXPECT_INT(s.allocated - s.freed, s.cached);
    mica__memory_free(m);
    CHECK_INT(mica__alloc_live(), live);
}

static void forget_nothing(void *device) { (void)device; }

/* Random blocks of an engine with a device: blocks do not overlap, each is within its slab,
 * and all memory is freed. */
TEST(small_blocks_in_slabs)
{
    enum { BLOCKS = 200, TURNS = 5000 };
    static mica__buffer *block[BLOCKS];
    mica__memory *m;
    const int64_t live = mica__alloc_live();
    uint32_t random = 12345;
    CHECK_INT(mica__memory_new(0, 0, &m), MICA_OK); /* no cache: a dropped block is removed from its slab */
    mica__memory_on_release(m, forget_nothing);
    memset(block, 0, sizeof block);
    for (int turn = 0; turn < TURNS; turn++) {
        random = random * 1664525u + 1013904223u;
        mica__buffer **b = &block[(random >> 8) % BLOCKS];
        if (*b) {
            const unsigned char *data = (*b)->data;
            const unsigned char mark = (unsigned char)(b - block);
            EXPECT(data[0] == mark && data[(*b)->capacity - 1] == mark);
            mica__buffer_drop(*b);
            *b = NULL;
        } else {
            *b = take(m, (random >> 16) % 20000);
            EXPECT_INT((*b)->slab != NULL, (*b)->capacity < 16 * K);
            if ((*b)->slab) {
                const char *data = (*b)->data, *whole = (*b)->whole;
                EXPECT(data >= whole && data + (*b)->capacity <= whole + (*b)->whole_nbytes);
            }
            memset((*b)->data, (int)(b - block), (*b)->capacity);
        }
    }
    for (int i = 0; i < BLOCKS; i++) mica__buffer_drop(block[i]);
    EXPECT_INT(stats_of(m).in_use, 0);
    EXPECT_INT(stats_of(m).allocated, stats_of(m).freed);
    mica__memory_free(m);
    EXPECT_INT(mica__alloc_live(), live);
}
