/* Helpers for tests of constructors: an engine and a scope, checks of the dtype and shape of an
 * array, and checks of how a call failed. */
#ifndef MICA_TEST_SHAPE_CHECK_H
#define MICA_TEST_SHAPE_CHECK_H

#include <stdio.h>
#include <string.h>

#include "mica.h"
#include "test.h"

static mica_engine *engine;
static mica_scope *s;
static char described[400];

static inline const char *describe(const mica_array *x)
{
    if (!x) {
        snprintf(described, sizeof described, "NULL: %s", mica_scope_error(s));
        return described;
    }
    int at = snprintf(described, sizeof described, "%s(", mica_dtype_name(mica_array_dtype(x)));
    for (int d = 0; d < mica_array_ndim(x); d++)
        at += snprintf(described + at, sizeof described - (size_t)at, d ? ",%lld" : "%lld",
                       (long long)mica_array_shape(x)[d]);
    snprintf(described + at, sizeof described - (size_t)at, ")");
    return described;
}

static inline bool begin(void)
{
    return EXPECT(mica_open(NULL, &engine) == MICA_OK) && EXPECT((s = mica_scope_begin(engine)) != NULL);
}

static inline void end(void)
{
    mica_scope_end(s);
    mica_close(engine);
}

/* EXPECT as a statement. */
#define HOLDS(condition) ((void)EXPECT(condition))

/* The expression makes an array of this dtype and shape. */
#define MAKES(expression, text) EXPECT_STR(describe(expression), text)

static char fails_text[600];

/* The expression fails with "status: error message"; the scope is usable after it. */
static inline const char *failure(const void *result)
{
    snprintf(fails_text, sizeof fails_text, "%s%d: %s", result ? "not NULL, " : "", (int)mica_scope_status(s),
             mica_scope_error(s));
    mica_scope_clear_error(s);
    return fails_text;
}
#define FAILS(expression, text) EXPECT_STR(failure(expression), text)

#define SHAPE(...) \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#define LIST(...) \
    (int64_t[]) { __VA_ARGS__ }
#define AXES(...) (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define ALL NULL, 0

static inline mica_array *zeros(mica_dtype dtype, int ndim, const int64_t *shape)
{
    return mica_zeros(s, dtype, ndim, shape);
}
#define F32(...) zeros(MICA_F32, SHAPE(__VA_ARGS__))
#define I32(...) zeros(MICA_I32, SHAPE(__VA_ARGS__))
#define OF(dtype) zeros(dtype, 1, LIST(2))

/* Release functions count their calls. */
static int released;
static inline void count_release(void *data, void *user)
{
    (void)data, (void)user;
    released++;
}

#endif
