/* Helpers for the tests that pass invalid arguments to every function of mica.h. Each call must
 * return a status and one error message that names the op. Nothing crashes, leaks or is printed,
 * and the engine stays usable. */
#ifndef MICA_TEST_ERRORS_H
#define MICA_TEST_ERRORS_H

#include <math.h>

#include "api.h"
#include "base/alloc.h"

/* Arguments for the calls: arrays of several kinds, and one of another engine. */
static struct {
    mica_engine *e, *other;
    mica_scope *s, *t;
    mica_array *x;       /* f32 (4)     */
    mica_array *m;       /* f32 (2, 3)  */
    mica_array *i;       /* i64 (3)     */
    mica_array *b;       /* bool (4)    */
    mica_array *zero;    /* f32 ()      */
    mica_array *image;   /* f32 (1, 2, 5, 5) */
    mica_array *foreign; /* f32 (4), of other */
} g;

static UNUSED void world_begin(void)
{
    g.e = open_engine("cpu");
    g.other = open_engine("cpu");
    g.s = mica_scope_begin(g.e);
    g.t = mica_scope_begin(g.other);
    g.x = count_up(g.s, 4, 1);
    g.m = count_up_2d(g.s, 2, 3);
    g.i = mica_from_data(g.s, MICA_I64, SHAPE(3), (int64_t[]){0, 1, 2});
    g.b = mica_from_data(g.s, MICA_BOOL, SHAPE(4), (bool[]){true, false, true, false});
    g.zero = mica_from_data(g.s, MICA_F32, 0, NULL, &(float){1});
    g.image = mica_reshape(g.s, count_up(g.s, 50, 0), SHAPE(1, 2, 5, 5));
    g.foreign = count_up(g.t, 4, 1);
}

/* Nothing ran, and both engines still work. */
static void world_end(void)
{
    EXPECT_INT(stats_of(g.e).kernels, 0);
    mica_scope_clear_error(g.s);
    mica_array *y = mica_neg(g.s, g.x), *z = mica_neg(g.t, g.foreign);
    EXPECT_OK(mica_eval(g.s, &y, 1));
    EXPECT_OK(mica_eval(g.t, &z, 1));
    EXPECT_VALUES(y, -1, -2, -3, -4);
    mica_scope_end(g.s);
    mica_scope_end(g.t);
    mica_close(g.e);
    mica_close(g.other);
}

/* A call that builds an array returns NULL. The scope has this status and an error
 * message that begins with the op. */
#define BAD(call, want, op) bad_array(__FILE__, __LINE__, #call, call, want, op)
static UNUSED void bad_array(const char *file, int line, const char *call, mica_array *got, mica_status want,
                             const char *op)
{
    const mica_status status = mica_scope_status(g.s);
    const char *text = mica_scope_error(g.s);
    if (got) test_fail(file, line, "%s gives an array", call);
    if (status != want)
        test_fail(file, line, "%s: status %d \"%s\", not %d (%s)", call, (int)status, mica_status_text(status),
                  (int)want, text);
    if (strncmp(text, op, strlen(op)) != 0 || in_name(text[strlen(op)]))
        test_fail(file, line, "%s: the error message \"%s\" does not begin with \"%s\"", call, text, op);
    if (strcmp(text, mica_last_error()) != 0) test_fail(file, line, "%s: last error \"%s\"", call, mica_last_error());
    mica_scope_clear_error(g.s);
}

/* Without a scope only the thread's last error holds the failure. */
#define BAD_SCOPE(call, op) bad_scope(__FILE__, __LINE__, #call, call, op)
static UNUSED void bad_scope(const char *file, int line, const char *call, mica_array *got, const char *op)
{
    if (got) test_fail(file, line, "%s gives an array", call);
    const char *text = mica_last_error();
    if (strncmp(text, op, strlen(op)) != 0 || in_name(text[strlen(op)]) || !strstr(text, "scope"))
        test_fail(file, line, "%s: \"%s\" does not state that \"%s\" has no scope", call, text, op);
}

/* The same for calls that return a status. */
#define BAD_STATUS(call, want, op) bad_status(__FILE__, __LINE__, #call, call, want, op)
static UNUSED void bad_status(const char *file, int line, const char *call, mica_status got, mica_status want,
                              const char *op)
{
    const char *text = mica_last_error();
    if (got != want)
        test_fail(file, line, "%s: status %d \"%s\", not %d (%s)", call, (int)got, mica_status_text(got), (int)want,
                  text);
    if (strncmp(text, op, strlen(op)) != 0 || in_name(text[strlen(op)]))
        test_fail(file, line, "%s: the error message \"%s\" does not begin with \"%s\"", call, text, op);
    mica_scope_clear_error(g.s);
}

#define ARGUMENT MICA_ERR_ARGUMENT

static const int64_t nine[9] UNUSED = {1, 1, 1, 1, 1, 1, 1, 1, 1};
static const int64_t huge[2] UNUSED = {INT64_MAX, INT64_MAX};
static const int64_t beyond[2] UNUSED = {(int64_t)1 << 31, (int64_t)1 << 30}; /* times 4 bytes: 2^63 */

/* One group of functions. The output of failed checks is captured together with the
 * output of the library, so a failure shows both. */
#define BAD_INPUT(name)                                 \
    static void check_##name(void);                     \
    TEST(bad_input_##name) { bad_input(check_##name); } \
    static void check_##name(void)

static void bad_input(void (*check)(void))
{
    const int64_t live = live_blocks();
    const silence q = listen_begin();
    world_begin();
    check();
    world_end();
    char *printed = listen_end(q);
    if (!EXPECT_MSG(printed[0] == '\0', "something was printed:")) fputs(printed, stdout);
    free(printed);
    EXPECT_INT(live_blocks(), live);
}

#endif
