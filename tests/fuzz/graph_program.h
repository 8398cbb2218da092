/* The program that fuzz_graph.c builds: a stack of values, each on two engines (0 is ref, 1 is
 * cpu), made by steps that the input bytes choose. Each value has a bound on its size and a bound
 * on the difference between the engines, so that results of any program can be compared. The
 * functions are static in headers because a fuzzer is one file. */
#ifndef MICA_TESTS_FUZZ_GRAPH_PROGRAM_H
#define MICA_TESTS_FUZZ_GRAPH_PROGRAM_H

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica.h"

enum { FUZZ_VALUES = 40, FUZZ_STEPS = 60, FUZZ_ELEMENTS = 2048, FUZZ_LEAVES = 8 };

typedef struct fuzz_value {
    mica_array *side[2];
    mica_dtype dtype;
    int ndim;
    int64_t n;
    double top;              /* bound of |x|                                                 */
    double off;              /* bound of |cpu - ref|; 0: the same bits                       */
    bool kink;               /* depends on a comparison of inexact numbers: its gradient may
                                jump where the value does not                                */
} fuzz_value;

typedef struct fuzz_program {
    const uint8_t *data;
    size_t size, at;
    bool trace;
    uint32_t passes;         /* passes of the cpu engine                                     */
    mica_engine *engine[2];
    mica_scope *scope[2];
    fuzz_value value[FUZZ_VALUES];
    int n;
    int leaf[FUZZ_LEAVES];   /* float leaves, to differentiate by                            */
    int n_leaf;
    mica_dtype coarsest;     /* float dtype seen with the fewest digits                      */
    int n_wrapped;
    atomic_int n_released;
} fuzz_program;

/* Arguments of a maker besides its operands. */
typedef struct fuzz_args {
    int64_t i[8];
    int axis[8];
    int n;
    double v;
    mica_dtype dtype;
    bool flag;
} fuzz_args;

typedef mica_array *(*fuzz_make)(mica_scope *s, mica_array *const *x, const fuzz_args *a);

static int fuzz_byte(fuzz_program *p) { return p->at < p->size ? p->data[p->at++] : 0; }
static int fuzz_below(fuzz_program *p, int n) { return fuzz_byte(p) % n; }

static bool fuzz_is_float(mica_dtype d) { return d >= MICA_F16; }

static void fuzz_fail(const fuzz_program *p, const char *what)
{
    fprintf(stderr, "fuzz_graph: %s (%d values so far)\n", what, p->n);
    abort();
}

/* Unit roundoff of a float dtype, and of the accumulators of its sums. */
static double fuzz_unit(mica_dtype d)
{
    return d == MICA_F16 ? 0x1p-11 : d == MICA_BF16 ? 0x1p-8 : d == MICA_F64 ? 0x1p-53 : 0x1p-24;
}
static double fuzz_sum_unit(mica_dtype d) { return d == MICA_F64 ? 0x1p-53 : 0x1p-24; }

/* Larger floats are not used as operands, so that nothing overflows, not even a square. */
static double fuzz_limit(mica_dtype d) { return d == MICA_F16 ? 200 : 1e6; }

static double fuzz_int_most(mica_dtype d)
{
    if (d == MICA_BOOL) return 1;
    return ldexp(1, (int)(8 * mica_dtype_size(d)));
}

static const int64_t *fuzz_shape(const fuzz_value *v) { return mica_array_shape(v->side[0]); }

static void fuzz_trace(const fuzz_program *p, const char *name, const fuzz_value *v)
{
    if (!p->trace) return;
    fprintf(stderr, "%2d %-16s %s (", p->n - 1, name, mica_dtype_name(v->dtype));
    for (int d = 0; d < v->ndim; d++) fprintf(stderr, d ? ", %lld" : "%lld", (long long)fuzz_shape(v)[d]);
    fprintf(stderr, ") top %g off %g%s\n", v->top, v->off, v->kink ? " kink" : "");
}

static bool fuzz_same_type(mica_array *a, mica_array *b)
{
    if (mica_array_dtype(a) != mica_array_dtype(b) || mica_array_ndim(a) != mica_array_ndim(b)) return false;
    for (int d = 0; d < mica_array_ndim(a); d++)
        if (mica_array_shape(a)[d] != mica_array_shape(b)[d]) return false;
    return true;
}

/* Pushes a value that both sides made; refuses one that is too large for further steps. */
static bool fuzz_push(fuzz_program *p, const char *name, mica_array *const side[2], double top, double off, bool kink)
{
    if (!fuzz_same_type(side[0], side[1])) fuzz_fail(p, "the engines made different types");
    fuzz_value v = {.side = {side[0], side[1]},
                    .dtype = mica_array_dtype(side[0]),
                    .ndim = mica_array_ndim(side[0]),
                    .n = mica_array_size(side[0]),
                    .top = top,
                    .off = off,
                    .kink = kink};
    if (p->n == FUZZ_VALUES || v.n > FUZZ_ELEMENTS) return false;
    if (!fuzz_is_float(v.dtype)) v.top = fmin(v.top, fuzz_int_most(v.dtype));
    else if (!(v.top <= fuzz_limit(v.dtype))) return false;
    if (fuzz_is_float(v.dtype) && fuzz_unit(v.dtype) > fuzz_unit(p->coarsest)) p->coarsest = v.dtype;
    p->value[p->n++] = v;
    fuzz_trace(p, name, &v);
    return true;
}

/* Makes a value from operands on both sides. Both must succeed, or fail with the same status. */
static bool fuzz_apply(fuzz_program *p, const char *name, fuzz_make make, const fuzz_value *const *in, int n_in,
                       const fuzz_args *args, double top, double off, bool kink)
{
    mica_array *side[2];
    mica_status status[2];
    for (int e = 0; e < 2; e++) {
        mica_array *x[4];
        for (int i = 0; i < n_in; i++) x[i] = in[i]->side[e];
        side[e] = make(p->scope[e], x, args);
        status[e] = mica_scope_status(p->scope[e]);
        mica_scope_clear_error(p->scope[e]);
    }
    if (status[0] != status[1]) fuzz_fail(p, "the engines refuse differently");
    if ((side[0] == NULL) != (status[0] != MICA_OK)) fuzz_fail(p, "NULL without a failure");
    if (p->trace && !side[0]) fprintf(stderr, "   %-16s %s\n", name, mica_status_text(status[0]));
    for (int i = 0; i < n_in; i++) kink = kink || in[i]->kink;
    return side[0] && fuzz_push(p, name, side, top, off, kink);
}

static bool fuzz_one(fuzz_program *p, const char *name, fuzz_make make, const fuzz_value *x, const fuzz_args *args,
                     double top, double off, bool kink)
{
    return fuzz_apply(p, name, make, &x, 1, args, top, off, kink);
}

/* Any value of the stack; NULL if it is empty. */
static const fuzz_value *fuzz_pick(fuzz_program *p)
{
    return p->n ? &p->value[p->n - 1 - fuzz_below(p, p->n < 8 ? p->n : 8)] : NULL;
}

/* The same for n operands; false if the stack is empty. Input bytes are always read in
 * separate statements, because initialisers are not evaluated in a defined order. */
static bool fuzz_operands(fuzz_program *p, const fuzz_value **in, int n)
{
    for (int i = 0; i < n; i++) in[i] = fuzz_pick(p);
    return in[0] != NULL;
}

/* The number of elements of v along an axis; of all v if the axis is invalid. */
static double fuzz_along(const fuzz_value *v, int axis)
{
    if (axis < 0) axis += v->ndim;
    const int64_t n = axis >= 0 && axis < v->ndim ? fuzz_shape(v)[axis] : v->n;
    return n > 0 ? (double)n : 1;
}

/* An axis of v, sometimes an invalid one. */
static int fuzz_axis(fuzz_program *p, const fuzz_value *v) { return fuzz_below(p, v->ndim + 2) - 1; }

/* The error of an inexact result whose operands have the error `from`, multiplied by gain. */
static double fuzz_off(mica_dtype d, double from, double gain, double units, double top)
{
    return gain * from + units * fuzz_unit(d) * fmax(top, 1e-3);
}

#endif
