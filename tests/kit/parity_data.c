/* See parity_data.h. */
#include "parity_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/dtype.h"

const char *const parity_layout_names[PARITY_LAYOUTS] = {
    [PARITY_CONTIGUOUS] = "contiguous",       [PARITY_TRANSPOSED] = "transposed",
    [PARITY_BROADCAST_FIRST] = "broadcast 0", [PARITY_BROADCAST_LAST] = "broadcast -1",
    [PARITY_BROADCAST_ALL] = "broadcast all", [PARITY_STEPPED] = "stepped",
    [PARITY_NEGATIVE] = "negative",           [PARITY_MIXED] = "mixed",
};

void *parity_alloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) {
        puts("parity: out of memory");
        abort();
    }
    return p;
}

const parity_float *parity_float_of(mica_dtype dtype)
{
    static const parity_float f16 = {11, 65504, 0x1p-14, 0x1p-24}, bf16 = {8, 0x1.fep127, 0x1p-126, 0x1p-133};
    static const parity_float f32 = {24, 0x1.fffffep127, 0x1p-126, 0x1p-149};
    static const parity_float f64 = {53, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074};
    return dtype == MICA_F16 ? &f16 : dtype == MICA_BF16 ? &bf16 : dtype == MICA_F32 ? &f32 : &f64;
}

/* -------------------------------------------------------------- numbers --- */

uint64_t parity_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double parity_uniform(uint64_t *state, double low, double high)
{
    return low + (double)(parity_random(state) >> 11) * 0x1p-53 * (high - low);
}

int64_t parity_between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(parity_random(state) % ((uint64_t)(high - low) + 1));
}

static bool is_special(const parity_domain *domain, uint64_t *state)
{
    if (domain->special == PARITY_PLAIN) return false;
    return parity_random(state) % (domain->special == PARITY_NOT_FINITE ? 32 : 4) == 0;
}

static double special_float(mica_dtype dtype, parity_special special, uint64_t *state)
{
    const parity_float *f = parity_float_of(dtype);
    const double quiet[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
    if (special == PARITY_MINUS_INF) return -INFINITY;
    if (special == PARITY_NOT_FINITE) return quiet[parity_random(state) % (sizeof quiet / sizeof quiet[0])];
    const double values[] = {
        NAN, INFINITY, -INFINITY, 0.0,  -0.0, f->most, -f->most, f->least, -f->least, f->least_normal, -f->least_normal,
        1.0, -1.0,     0.5,       -0.5, 1.5,  2.5,     -2.5,     100.0};
    return values[parity_random(state) % (sizeof values / sizeof values[0])];
}

static void set_float(parity_input *in, int64_t at, const parity_domain *domain, uint64_t *state)
{
    const double value = is_special(domain, state) ? special_float(in->dtype, domain->special, state)
                                                   : parity_uniform(state, domain->low, domain->high);
    mica__set_f64(in->dtype, in->memory, at, value);
}

/* The limits of an integer dtype, clamped to i64. */
static int64_t int_least(mica_dtype dtype)
{
    const int bits = (int)(8 * mica_dtype_size(dtype));
    return mica__dtype_kind(dtype) == MICA__KIND_INT ? INT64_MIN >> (64 - bits) : 0;
}

static int64_t int_most(mica_dtype dtype)
{
    const int bits = (int)(8 * mica_dtype_size(dtype)) - (mica__dtype_kind(dtype) == MICA__KIND_INT);
    return bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

static int64_t int_value(mica_dtype dtype, const parity_domain *domain, uint64_t *state)
{
    const bool any = domain->int_low == 0 && domain->int_high == 0;
    int64_t low = int_least(dtype), high = int_most(dtype);
    if (!any && domain->int_low > low) low = domain->int_low;
    if (!any && domain->int_high < high) high = domain->int_high;
    if (is_special(domain, state)) {
        const int64_t values[] = {0, 1, -1, 2, low, high};
        const int64_t value = values[parity_random(state) % 6];
        if (value >= low && value <= high) return value;
    }
    return any ? (int64_t)parity_random(state) : parity_between(state, low, high);
}

static void set_element(parity_input *in, int64_t at, const parity_domain *domain, uint64_t *state)
{
    if (mica__is_float(in->dtype)) set_float(in, at, domain, state);
    else if (in->dtype == MICA_BOOL) in->memory[at] = (char)(parity_random(state) & 1);
    else mica__set_i64(in->dtype, in->memory, at, int_value(in->dtype, domain, state));
}

/* --------------------------------------------------------------- layout --- */

/* Sets the strides of the layout, and the number of elements in memory before the first
 * element, and from it on. */
static void lay_out(parity_input *in, parity_layout layout, int64_t *before, int64_t *from)
{
    const bool reverse = layout == PARITY_TRANSPOSED || layout == PARITY_MIXED;
    int64_t extent = 1;
    *before = 0;
    *from = 1;
    for (int k = 0; k < in->ndim; k++) {
        const int d = reverse ? k : in->ndim - 1 - k;
        const int64_t n = in->shape[d];
        int64_t step = 1, room = n;
        bool spread = false;
        switch (layout) {
        case PARITY_BROADCAST_FIRST: spread = d == 0; break;
        case PARITY_BROADCAST_LAST: spread = d == in->ndim - 1; break;
        case PARITY_BROADCAST_ALL: spread = true; break;
        case PARITY_STEPPED: step = d == in->ndim - 1 ? 2 : 3; break;
        case PARITY_NEGATIVE: step = -1; break;
        case PARITY_MIXED: step = d % 2 ? -2 : 3; break;
        default: break;
        }
        room = (n > 0 ? n - 1 : 0) * llabs(step) + 1;
        in->strides[d] = spread ? 0 : step * extent;
        if (spread || n == 0) continue;
        if (step < 0) *before += (n - 1) * -in->strides[d];
        else *from += (n - 1) * in->strides[d];
        extent *= room;
    }
}

static bool next_element(const parity_input *in, int64_t *index, int64_t *at)
{
    for (int d = in->ndim - 1; d >= 0; d--) {
        *at += in->strides[d];
        if (++index[d] < in->shape[d]) return true;
        *at -= in->shape[d] * in->strides[d];
        index[d] = 0;
    }
    return false;
}

void parity_input_make(parity_input *in, mica_dtype dtype, int ndim, const int64_t *shape, parity_layout layout,
                       const parity_domain *domain, uint64_t seed)
{
    *in = (parity_input){.dtype = dtype, .ndim = ndim};
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        in->shape[d] = shape[d];
        empty = empty || shape[d] == 0;
    }
    int64_t before, from;
    lay_out(in, layout, &before, &from);
    if (empty) before = from = 0;
    in->offset = before;
    in->nbytes = (size_t)(before + from) * mica_dtype_size(dtype);
    in->memory = parity_alloc(in->nbytes);
    memset(in->memory, dtype == MICA_BOOL ? 1 : 0xff, in->nbytes);
    if (empty) return;
    int64_t index[MICA_MAX_DIMS] = {0}, at = in->offset;
    do set_element(in, at, domain, &seed);
    while (next_element(in, index, &at));
}

void parity_input_free(parity_input *in)
{
    free(in->memory);
    in->memory = NULL;
}

void parity_input_abs(parity_input *in)
{
    if (!mica__is_float(in->dtype)) return;
    for (int64_t i = 0; i < (int64_t)(in->nbytes / mica_dtype_size(in->dtype)); i++)
        mica__set_f64(in->dtype, in->memory, i, fabs(mica__get_f64(in->dtype, in->memory, i)));
}

mica_array *parity_input_wrap(mica_scope *s, const parity_input *in)
{
    const char *first = in->memory + (size_t)in->offset * mica_dtype_size(in->dtype);
    return mica_wrap(s, in->dtype, in->ndim, in->shape, in->strides, first, NULL, NULL);
}
