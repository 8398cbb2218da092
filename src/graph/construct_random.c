/* Random arrays. An element of a RANDOM node is a function of the seed and its index. So
 * there is no state, and elements can be computed in any order on any backend. */
#include <inttypes.h>
#include <math.h>

#include "graph/construct.h"

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection in which
 * every input bit reaches every output bit. */
static uint64_t mix_bits(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Different indices of one seed always give different seeds: both mixes are bijections. */
uint64_t mica_seed_split(uint64_t seed, uint64_t index) { return mix_bits(mix_bits(seed) ^ mix_bits(~index)); }

static mica_array *random_node(mica_scope *s, mica__attr_random attr)
{
    mica_array *seed = mica__data_u64(s, attr.seed);
    attr.seed = 0;
    return mica__build1(s, MICA__OP_RANDOM, seed, &attr, sizeof attr);
}

static bool float_spec(mica_scope *s, const char *op, mica_dtype dtype, int ndim, const int64_t *shape, mica__spec *out)
{
    if (!mica__make_spec(s, op, dtype, ndim, shape, out)) return false;
    if (mica__is_float(dtype)) return true;
    mica__scope_fail(s, MICA_ERR_DTYPE, "%s: dtype %s; it must be a float", op, mica_dtype_name(dtype));
    return false;
}

mica_array *mica_random_bits(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, uint64_t seed)
{
    mica__attr_random attr = {.dist = MICA__DIST_BITS, .seed = seed};
    if (!mica__make_spec(s, "random_bits", dtype, ndim, shape, &attr.spec)) return NULL;
    if (dtype != MICA_U32 && dtype != MICA_U64)
        return mica__scope_fail(s, MICA_ERR_DTYPE, "random_bits: dtype %s; it must be u32 or u64",
                                mica_dtype_name(dtype));
    return random_node(s, attr);
}

mica_array *mica_random_uniform(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, double low,
                                double high, uint64_t seed)
{
    mica__attr_random attr = {.dist = MICA__DIST_UNIFORM, .seed = seed, .a = low, .b = high};
    if (!float_spec(s, "random_uniform", dtype, ndim, shape, &attr.spec)) return NULL;
    if (!(low <= high) || !isfinite(low) || !isfinite(high))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT,
                                "random_uniform: from %g to %g: both must be finite and in ascending order", low, high);
    return random_node(s, attr);
}

mica_array *mica_random_normal(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, uint64_t seed)
{
    mica__attr_random attr = {.dist = MICA__DIST_NORMAL, .seed = seed};
    if (!float_spec(s, "random_normal", dtype, ndim, shape, &attr.spec)) return NULL;
    return random_node(s, attr);
}

mica_array *mica_random_truncated_normal(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, double low,
                                         double high, uint64_t seed)
{
    mica__attr_random attr = {.dist = MICA__DIST_TRUNCATED_NORMAL, .seed = seed, .a = low, .b = high};
    if (!float_spec(s, "random_truncated_normal", dtype, ndim, shape, &attr.spec)) return NULL;
    if (!(low < high))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "random_truncated_normal: low %g must be less than high %g", low,
                                high);
    return random_node(s, attr);
}

mica_array *mica_random_bernoulli(mica_scope *s, int ndim, const int64_t *shape, double p, uint64_t seed)
{
    mica__spec spec;
    if (!mica__make_spec(s, "random_bernoulli", MICA_F32, ndim, shape, &spec)) return NULL;
    if (!(p >= 0 && p <= 1))
        return mica__scope_fail(s, MICA_ERR_ARGUMENT, "random_bernoulli: probability %g is out of range (0 to 1)", p);
    return mica_less(s, mica_random_uniform(s, MICA_F32, ndim, shape, 0, 1, seed), mica_scalar(s, p));
}

/* The largest value of an integer dtype, at most INT64_MAX. */
static int64_t integer_max(mica_dtype dtype)
{
    const int bits = 8 * (int)mica_dtype_size(dtype) - (mica__dtype_kind(dtype) == MICA__KIND_INT);
    return bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

mica_array *mica_random_randint(mica_scope *s, mica_dtype dtype, int ndim, const int64_t *shape, int64_t low,
                                int64_t high, uint64_t seed)
{
    mica__attr_random attr = {.dist = MICA__DIST_INTEGER, .seed = seed, .low = low, .high = high};
    if (!mica__make_spec(s, "random_randint", dtype, ndim, shape, &attr.spec)) return NULL;
    if (!mica__is_int(dtype))
        return mica__scope_fail(s, MICA_ERR_DTYPE, "random_randint: dtype %s; it must be an integer",
                                mica_dtype_name(dtype));
    const int64_t top = integer_max(dtype), bottom = mica__dtype_kind(dtype) == MICA__KIND_INT ? -top - 1 : 0;
    if (high <= low || low < bottom || high - 1 > top)
        return mica__scope_fail(s, MICA_ERR_ARGUMENT,
                                "random_randint: [%" PRId64 ", %" PRId64 ") is empty or does not fit %s", low, high,
                                mica_dtype_name(dtype));
    return random_node(s, attr);
}

mica_array *mica_random_categorical(mica_scope *s, mica_array *logits, uint64_t seed)
{
    if (!mica__usable1(s, "random_categorical", logits)) return NULL;
    if (logits->spec.ndim == 0) return mica__scope_fail(s, MICA_ERR_SHAPE, "random_categorical: logits have no axes");
    logits = mica__widen(s, logits);
    if (!logits) return NULL;
    /* argmax(logits + Gumbel noise) is i with probability softmax(logits)[i]. */
    const mica__attr_random attr = {.spec = logits->spec, .dist = MICA__DIST_GUMBEL, .seed = seed};
    mica_array *drawn = mica_argmax(s, mica_add(s, logits, random_node(s, attr)), -1, false);
    /* A row without any probability gets an index out of range: an error at run time. */
    const int last = logits->spec.ndim - 1;
    const int64_t n = logits->spec.shape[last];
    mica_array *most = mica_max(s, logits, &last, 1, false);
    mica_array *sound = mica_greater(s, most, mica_scalar(s, -INFINITY));
    drawn = mica_where(s, sound, drawn, mica_full_i64(s, MICA_I64, 0, NULL, n));
    return mica__checked_index(s, MICA__CALLER_RANDOM_CATEGORICAL, drawn, n);
}

mica_array *mica_random_permutation(mica_scope *s, int64_t n, uint64_t seed)
{
    mica__spec spec;
    if (!mica__make_spec(s, "random_permutation", MICA_I64, 1, &n, &spec)) return NULL;
    return mica_argsort(s, mica_random_bits(s, MICA_U64, 1, &n, seed), 0, false);
}
