/* Parity cases of scans and of random numbers. */
#include "parity_cases.h"

#define NUMBERS PARITY_OPERAND(-1, 1, -3, 3, PARITY_PLAIN)

/* ----------------------------------------------------------------- scan --- */

/* carry (n), x (t, n), w (n): carry' = carry * w + x - carry, y = carry' + w. */
static mica_status step_affine(mica_scope *s, mica_array *const *carry, mica_array *const *x, mica_array **carry_out,
                               mica_array **y_out, void *user)
{
    mica_array *w = user;
    mica_array *scaled = mica__build2(s, MICA__OP_MUL, carry[0], w, NULL, 0);
    carry_out[0] = mica__build2(s, MICA__OP_ADD, scaled, x[0], NULL, 0);
    y_out[0] = mica__build2(s, MICA__OP_SUB, carry_out[0], w, NULL, 0);
    return mica_scope_status(s);
}

static const parity_shape scan_shapes[][3] = {
    {{1, {1}}, {2, {1, 1}}, {1, {1}}}, {{1, {5}}, {2, {17, 5}}, {1, {5}}},
    {{0, {0}}, {1, {33}}, {0, {0}}},   {{2, {3, 65}}, {3, {4, 3, 65}}, {2, {3, 65}}},
    {{1, {3}}, {2, {0, 3}}, {1, {3}}}, {{1, {0}}, {2, {4, 0}}, {1, {0}}},
};

/* Variant: bit 0 runs backwards, bit 1 returns the ys instead of the last carry. */
static mica_array *build_scan(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    mica_scan_options options;
    mica_scan_options_init(&options);
    options.n_carry = options.n_x = options.n_y = 1;
    options.reverse = call->variant & 1;
    mica_array *carry = NULL, *ys = NULL;
    if (mica_scan(s, step_affine, x[2], &options, &x[0], &x[1], &carry, &ys) != MICA_OK) return NULL;
    return call->variant & 2 ? ys : carry;
}

/* --------------------------------------------------------------- random --- */

static const parity_shape random_shapes[] = {{0, {0}},   {1, {1}},    {1, {3}},       {2, {5, 33}},
                                             {1, {130}}, {2, {0, 3}}, {3, {2, 3, 17}}};

static mica_array *random_of(mica_scope *s, mica_dtype dtype, mica__dist dist, const parity_shape *shape)
{
    const int n = shape->ndim;
    const int64_t *size = shape->size;
    const mica__attr_random gumbel = {.spec = {.dtype = (int32_t)dtype, .ndim = n}, .dist = dist, .seed = 9};
    mica__attr_random attr = gumbel;
    for (int d = 0; d < n; d++) attr.spec.shape[d] = size[d];
    const bool is_float = mica__is_float(dtype), is_int = mica__is_int(dtype);
    switch (dist) {
    case MICA__DIST_BITS: return dtype == MICA_U32 || dtype == MICA_U64 ? mica_random_bits(s, dtype, n, size, 5) : NULL;
    case MICA__DIST_UNIFORM: return is_float ? mica_random_uniform(s, dtype, n, size, -2, 3, 6) : NULL;
    case MICA__DIST_NORMAL: return is_float ? mica_random_normal(s, dtype, n, size, 7) : NULL;
    case MICA__DIST_TRUNCATED_NORMAL:
        return is_float ? mica_random_truncated_normal(s, dtype, n, size, -1, 2, 8) : NULL;
    case MICA__DIST_GUMBEL:
        return dtype == MICA_F32 || dtype == MICA_F64 ? mica__build(s, MICA__OP_RANDOM, NULL, 0, &attr, sizeof attr)
                                                      : NULL;
    case MICA__DIST_INTEGER: return is_int ? mica_random_randint(s, dtype, n, size, 0, 100, 10) : NULL;
    }
    return NULL;
}

static mica_array *build_random(mica_scope *s, mica_array *const *x, const parity_call *call)
{
    (void)x;
    return random_of(s, call->dtype, (mica__dist)(call->variant / PARITY_COUNT(random_shapes)),
                     &random_shapes[call->variant % PARITY_COUNT(random_shapes)]);
}

const parity_case parity_cases_loop[] = {
    /* clang-format off */
    PARITY_CASE(SCAN, "scan", build_scan, 2, 3, scan_shapes, 1, 0, NUMBERS, NUMBERS, NUMBERS),
    PARITY_CASE(PART, "part", build_scan, 4, 3, scan_shapes, 1, 0, NUMBERS, NUMBERS, NUMBERS),
    {MICA__OP_RANDOM, "random", build_random, 6 * PARITY_COUNT(random_shapes), 0,
     {NUMBERS}, NULL, 1, 1, PARITY_NUMBERS},
    {0},
    /* clang-format on */
};
