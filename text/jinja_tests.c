/* The tests that templates may use after `is`; other names are refused. */
#include <string.h>

#include "text/jinja_build.h"

static const char *const jtests[] = {"defined",  "undefined", "none", "string", "number",  "integer", "mapping",
                                     "iterable", "sequence",  "true", "false",  "boolean", "odd",     "even",
                                     "equalto",  "eq",        "ne",   "in",     "callable"};
enum { N_TESTS = sizeof jtests / sizeof jtests[0], JTEST_WITH_VALUE = 14, JTEST_CALLABLE = 18 };

static int find_test(const char *name, size_t n)
{
    for (int i = 0; i < N_TESTS; i++)
        if (strlen(jtests[i]) == n && memcmp(jtests[i], name, n) == 0) return i;
    return -1;
}

mica_status mica__jinja_test(mica__jrun *run, const char *name, size_t n, const mica__jvalue *v,
                             const mica__jargs *args, bool *out)
{
    const mica__jkind k = v->kind;
    mica__jvalue in;
    const int which = find_test(name, n);
    const int wanted = which >= JTEST_WITH_VALUE && which < JTEST_CALLABLE;
    if (which >= 0 && args->n != wanted)
        return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "the test '%.*s' has %d arguments; it takes %d", (int)n,
                                name, args->n, wanted);
    switch (which) {
    case 0: *out = k != MICA__JV_UNDEFINED; break;
    case 1: *out = k == MICA__JV_UNDEFINED; break;
    case 2: *out = k == MICA__JV_NONE; break;
    case 3: *out = k == MICA__JV_STRING; break;
    case 4: *out = k == MICA__JV_INT || k == MICA__JV_BOOL; break;
    case 5: *out = k == MICA__JV_INT; break;
    case 6: *out = k == MICA__JV_DICT; break;
    case 7:
    case 8: /* what is undefined is an empty sequence */
        *out = k == MICA__JV_LIST || k == MICA__JV_STRING || k == MICA__JV_DICT || k == MICA__JV_UNDEFINED;
        break;
    case 9: *out = k == MICA__JV_BOOL && v->n; break;
    case 10: *out = k == MICA__JV_BOOL && !v->n; break;
    case 11: *out = k == MICA__JV_BOOL; break;
    case 12:
    case 13:
        if (k != MICA__JV_INT && k != MICA__JV_BOOL)
            return mica__jinja_fail(MICA_ERR_FORMAT, run->line, "the test '%.*s' of %s", (int)n, name,
                                    mica__jv_kind(v));
        *out = (v->n % 2 == 0) == (name[0] == 'e');
        break;
    case JTEST_CALLABLE:
        *out = k == MICA__JV_FUNCTION || k == MICA__JV_UNDEFINED;
        break; /* Undefined has a __call__ that fails */
    case -1:
        return mica__jinja_fail(MICA_ERR_UNSUPPORTED, run->line, "the test '%.*s' is not known", n < 60 ? (int)n : 60,
                                name);
    default:
        if (name[0] != 'i') {
            MICA_TRY(mica__jv_equal(run, v, &args->v[0], out));
            *out ^= name[0] == 'n';
        } else {
            MICA_TRY(mica__jv_binary(run, MICA__JB_IN, v, &args->v[0], &in));
            *out = in.n != 0;
        }
    }
    return MICA_OK;
}
