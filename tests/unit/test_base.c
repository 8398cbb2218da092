/* Statuses, allocation with injected faults, arenas, hashing, text and environment.
 *
 * runs: check */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "test.h"

TEST(status_texts)
{
    CHECK_STR(mica_version(), MICA_VERSION_STRING);
    CHECK_STR(mica_status_text(MICA_OK), "ok");
    CHECK_STR(mica_status_text(MICA_ERR_INDEX), "index out of range");
    CHECK_STR(mica_status_text((mica_status)12345), "unknown status");
}

static void *read_error(void *out)
{
    strcpy(out, mica_last_error());
    return NULL;
}

TEST(last_error_is_per_thread)
{
    CHECK_INT(mica__fail(MICA_ERR_SHAPE, "matmul: inner sizes %d and %d", 4, 5), MICA_ERR_SHAPE);
    CHECK_STR(mica_last_error(), "matmul: inner sizes 4 and 5");
    char other[MICA__ERROR_TEXT] = "unset";
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, read_error, other), 0);
    pthread_join(thread, NULL);
    CHECK_STR(other, "");
}

TEST(last_error_may_be_its_own_argument)
{
    mica__fail(MICA_ERR_STATE, "inner");
    mica__fail(MICA_ERR_STATE, "outer: %s", mica_last_error());
    CHECK_STR(mica_last_error(), "outer: inner");
}

TEST(long_errors_are_cut)
{
    char text[2 * MICA__ERROR_TEXT];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    mica__fail(MICA_ERR_STATE, "%s", text);
    CHECK_INT(strlen(mica_last_error()), MICA__ERROR_TEXT - 1);
    mica__fail(MICA_ERR_STATE, "short");
    CHECK_STR(mica_last_error(), "short");
}

static void *raise_error(void *record)
{
    mica__error_raise(record);
    static _Thread_local char text[MICA__ERROR_TEXT];
    strcpy(text, mica_last_error());
    return strcmp(text, "index 7 of 3") == 0 ? record : NULL;
}

TEST(errors_travel_between_threads)
{
    mica__error record;
    mica__error_capture(&record, mica__fail(MICA_ERR_INDEX, "index %d of %d", 7, 3));
    mica__fail(MICA_ERR_STATE, "later");
    pthread_t thread;
    void *same = NULL;
    CHECK_INT(pthread_create(&thread, NULL, raise_error, &record), 0);
    pthread_join(thread, &same);
    CHECK(same == &record);
    CHECK_STR(mica_last_error(), "later");
    CHECK_INT(mica__error_raise(&record), MICA_ERR_INDEX);
    CHECK_STR(mica_last_error(), "index 7 of 3");
    CHECK_INT(mica__error_raise(&(mica__error){MICA_OK, ""}), MICA_OK);
    CHECK_STR(mica_last_error(), "index 7 of 3");
}

TEST(out_of_memory_has_one_wording)
{
    CHECK_INT(mica__fail_memory("a plan", 4096), MICA_ERR_MEMORY);
    CHECK_STR(mica_last_error(), "out of memory: a plan needs 4096 bytes");
}

/* ------------------------------------------------------------- allocation -- */

TEST(allocations_are_counted)
{
    const int64_t live = mica__alloc_live();
    const uint64_t count = mica__alloc_count();
    void *a = mica__alloc(0), *b = mica__alloc_zero(3, 5), *c = mica__realloc(NULL, 10);
    CHECK(a && b && c);
    CHECK_INT(mica__alloc_live() - live, 3);
    c = mica__realloc(c, 1000);
    CHECK(c);
    CHECK_INT(mica__alloc_live() - live, 3);
    CHECK_INT(mica__alloc_count() - count, 4);
    CHECK_INT(memcmp(b, (char[15]){0}, 15), 0);
    mica__free(a);
    mica__free(b);
    mica__free(c);
    mica__free(NULL);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(products_that_overflow_are_refused)
{
    const int64_t live = mica__alloc_live();
    CHECK(!mica__alloc_zero(SIZE_MAX / 2, 3));
    CHECK_INT(mica__alloc_live(), live);
}

TEST(the_nth_allocation_fails_once)
{
    const int64_t live = mica__alloc_live();
    for (uint64_t n = 1; n <= 4; n++) {
        void *got[6];
        mica__alloc_fail_at(n);
        for (int i = 0; i < 6; i++) got[i] = i % 2 ? mica__alloc(8) : mica__alloc_zero(1, 8);
        for (int i = 0; i < 6; i++) {
            CHECK_MSG((got[i] == NULL) == (i + 1 == (int)n), "fault at %d, allocation %d", (int)n, i + 1);
            mica__free(got[i]);
        }
    }
    mica__alloc_fail_at(1);
    mica__alloc_fail_at(0);
    void *p = mica__alloc(8);
    CHECK(p);
    mica__alloc_fail_at(1);
    CHECK(!mica__realloc(p, 100)); /* p stays valid */
    mica__alloc_fail_at(1);
    CHECK(!mica__alloc_pages(1 << 21));
    mica__free(p);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(pages_are_aligned_and_usable)
{
    static const size_t sizes[] = {0, 1, 256, 16383, 16384, 20000, (1 << 20) - 1, 1 << 20, (4 << 20) + 100, 9 << 20};
    const int64_t live = mica__alloc_live();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i];
        test_case("%zu bytes", n);
        char *p = mica__alloc_pages(n);
        CHECK(p);
        CHECK_INT(mica__alloc_live() - live, 1);
        CHECK_INT((uintptr_t)p % (n >= 16384 ? 4096 : 64), 0);
        if (n) p[0] = p[n - 1] = 1;
        mica__free_pages(p, n);
        CHECK_INT(mica__alloc_live(), live);
    }
    mica__free_pages(NULL, 5);
    CHECK(!mica__alloc_pages(SIZE_MAX / 2));
    CHECK_INT(mica__alloc_live(), live);
}

TEST(checked_arithmetic)
{
    size_t s;
    int64_t i;
    CHECK(mica__mul_size(3, 4, &s) && s == 12);
    CHECK(!mica__mul_size(SIZE_MAX, 2, &s));
    CHECK(!mica__add_size(SIZE_MAX, 1, &s));
    CHECK(mica__mul_i64(-3, 4, &i) && i == -12);
    CHECK(!mica__mul_i64(INT64_MIN, -1, &i));
    CHECK(!mica__add_i64(INT64_MAX, 1, &i));
    CHECK_INT(mica__round_up(257, 256), 512);
}

/* ------------------------------------------------------------------ arena -- */

TEST(an_arena_takes_over_another)
{
    const int64_t live = mica__alloc_live();
    mica__arena into, from, empty;
    mica__arena_init(&into);
    mica__arena_init(&from);
    mica__arena_init(&empty);
    mica__arena_join(&into, &from); /* two empty arenas */
    CHECK(!into.block && into.total == 0);
    int *there = mica__arena_copy(&from, &(int){7}, sizeof(int));
    CHECK(there && mica__arena_alloc(&from, 100000));
    mica__arena_join(&into, &from);
    CHECK(!from.block && from.total == 0 && into.total > 100000);
    int *here = mica__arena_copy(&into, &(int){8}, sizeof(int));
    mica__arena_join(&into, &empty);
    CHECK(here && *here == 8 && *there == 7);
    from.failed = true;
    mica__arena_join(&into, &from);
    CHECK(into.failed && !from.failed);
    mica__arena_free(&into);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(arena_memory_is_zeroed_aligned_and_apart)
{
    const int64_t live = mica__alloc_live();
    mica__arena arena;
    mica__arena_init(&arena);
    enum { N = 2000 };
    unsigned char *p[N];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            const size_t n = (size_t)(i * 37 % 300) + (i % 500 == 499 ? 100000 : 0);
            p[i] = mica__arena_alloc(&arena, n);
            CHECK(p[i]);
            CHECK_INT((uintptr_t)p[i] % 16, 0);
            for (size_t k = 0; k < n; k++) CHECK_MSG(p[i][k] == 0, "round %d, block %d, byte %zu", round, i, k);
            memset(p[i], i % 255 + 1, n);
        }
        for (int i = 0; i < N; i++) {
            const size_t n = (size_t)(i * 37 % 300) + (i % 500 == 499 ? 100000 : 0);
            for (size_t k = 0; k < n; k++) CHECK_MSG(p[i][k] == i % 255 + 1, "block %d was overwritten", i);
        }
        mica__arena_reset(&arena);
        CHECK_INT(mica__alloc_live() - live, 1);
    }
    mica__arena_free(&arena);
    CHECK_INT(mica__alloc_live(), live);
    CHECK(mica__arena_alloc(&arena, 10));
    mica__arena_free(&arena);
    mica__arena_reset(&arena);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(arena_uses_few_blocks)
{
    mica__arena arena;
    mica__arena_init(&arena);
    const uint64_t count = mica__alloc_count();
    for (int i = 0; i < 100000; i++) CHECK(mica__arena_alloc(&arena, 48));
    CHECK(mica__alloc_count() - count < 40);
    CHECK(arena.total >= 4800000 && arena.total < 6000000);
    mica__arena_free(&arena);
}

TEST(arena_failure_sticks)
{
    const int64_t live = mica__alloc_live();
    mica__arena arena;
    mica__arena_init(&arena);
    CHECK(mica__arena_alloc(&arena, 100));
    mica__alloc_fail_at(1);
    CHECK(!mica__arena_alloc(&arena, 100000));
    CHECK(arena.failed);
    CHECK(!mica__arena_alloc(&arena, 1));
    CHECK(!mica__arena_copy(&arena, "abc", 3));
    mica__arena_free(&arena);
    CHECK(!arena.failed);
    CHECK(!mica__arena_array(&arena, SIZE_MAX / 2, 4));
    CHECK(arena.failed);
    mica__arena_free(&arena);
    CHECK(!mica__arena_alloc(&arena, SIZE_MAX - 3));
    mica__arena_free(&arena);
    CHECK_INT(mica__alloc_live(), live);
}

TEST(arena_copies)
{
    mica__arena arena;
    mica__arena_init(&arena);
    CHECK_STR((char *)mica__arena_copy(&arena, "hello", 6), "hello");
    CHECK(mica__arena_copy(&arena, NULL, 0));
    CHECK(mica__arena_array(&arena, 0, 8));
    mica__arena_free(&arena);
}

/* ------------------------------------------------------------------- rest -- */

TEST(hash_sees_every_byte_and_the_length)
{
    unsigned char data[40] = {0};
    enum { N = 40 * 8 + 41 };
    uint64_t seen[N];
    int n = 0;
    for (size_t length = 0; length <= 40; length++) seen[n++] = mica__hash(data, length, 1);
    for (int bit = 0; bit < 40 * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        seen[n++] = mica__hash(data, 40, 1);
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++) CHECK_MSG(seen[i] != seen[j], "%d and %d", i, j);
    CHECK(mica__hash(data, 40, 1) != mica__hash(data, 40, 2));
    CHECK(mica__hash(data, 40, 1) == mica__hash((unsigned char[40]){0}, 40, 1));
}

TEST(hash_spreads_small_multiples)
{
    int bucket[256] = {0};
    for (uint64_t i = 1; i <= 4096; i++) bucket[mica__hash_u64(i * 256) % 256]++;
    for (int i = 0; i < 256; i++) CHECK_MSG(bucket[i] > 0 && bucket[i] < 48, "bucket %d has %d of 4096", i, bucket[i]);
}

TEST(text_counts_what_does_not_fit)
{
    char buffer[8];
    mica__text text;
    mica__text_init(&text, buffer, sizeof buffer);
    CHECK_STR(buffer, "");
    mica__text_add(&text, "ab%d", 12);
    CHECK_STR(buffer, "ab12");
    mica__text_add(&text, "cdefgh");
    CHECK_STR(buffer, "ab12cde");
    mica__text_add(&text, "ijk");
    CHECK_STR(buffer, "ab12cde");
    CHECK_INT(text.length, 13);
    mica__text_init(&text, NULL, 0);
    mica__text_add(&text, "hello %s", "world");
    CHECK_INT(text.length, 11);
    mica__text_init(&text, buffer, 1);
    mica__text_add(&text, "x");
    CHECK_STR(buffer, "");
}

TEST(shapes_as_text)
{
    char buffer[MICA__SHAPE_TEXT];
    CHECK_STR(mica__shape_text(buffer, 0, NULL), "()");
    CHECK_STR(mica__shape_text(buffer, 1, (int64_t[]){5}), "(5)");
    CHECK_STR(mica__shape_text(buffer, 3, (int64_t[]){2, -3, 4}), "(2, -3, 4)");
    int64_t worst[9];
    for (int i = 0; i < 9; i++) worst[i] = INT64_MIN;
    CHECK_INT(strlen(mica__shape_text(buffer, 8, worst)), 8 * 20 + 7 * 2 + 2);
    mica__shape_text(buffer, 9, worst);
    CHECK_STR(buffer + strlen(buffer) - 6, ", ...)");
    CHECK_STR(mica__shape_text(buffer, -1, NULL), "()");
}

TEST(environment)
{
    unsetenv("MICA_DUMP");
    CHECK(!mica__env(MICA__ENV_DUMP));
    setenv("MICA_DUMP", "", 1);
    CHECK(!mica__env(MICA__ENV_DUMP));
    setenv("MICA_DUMP", "plan,graph", 1);
    CHECK_STR(mica__env(MICA__ENV_DUMP), "plan,graph");
    CHECK_INT(mica__env_words(MICA__ENV_DUMP), 1 << MICA_DUMP_PLAN | 1 << MICA_DUMP_GRAPH);
    setenv("MICA_DUMP", "plans,graph", 1); /* a longer word is another word */
    CHECK_INT(mica__env_words(MICA__ENV_DUMP), 1 << MICA_DUMP_GRAPH);
    setenv("MICA_DUMP", "a,,b,", 1);
    CHECK_INT(mica__env_words(MICA__ENV_DUMP), 0);
    setenv("MICA_DUMP", "a,,msl", 1);
    CHECK_INT(mica__env_words(MICA__ENV_DUMP), 1 << MICA_DUMP_MSL);
    unsetenv("MICA_DUMP");
    CHECK_INT(mica__env_words(MICA__ENV_DUMP), 0);
    for (int i = 0; i < MICA__ENV_COUNT; i++) {
        CHECK(strncmp(mica__env_get((mica__env_name)i)->name, "MICA_", 5) == 0);
        CHECK(mica__env_get((mica__env_name)i)->help[0]);
    }
    CHECK(!mica__env(MICA__ENV_COUNT));
}

TEST(time_does_not_go_back)
{
    uint64_t last = mica__now_ns();
    for (int i = 0; i < 1000; i++) {
        const uint64_t now = mica__now_ns();
        CHECK(now >= last);
        last = now;
    }
}
