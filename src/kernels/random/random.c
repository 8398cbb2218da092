/* Random numbers: the words, and the distributions computed from them; one by one, as
 * ref defines them, and in pieces, with the words and floats of a CPU variant. */
#include "kernels/random/random.h"

#include <float.h>

#include "base/cpu.h"
#include "kernels/random/random_cpu.h"
#include "kernels/random/random_math.h"
#include "kernels/walk.h"

void mica__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The words of block number `block` of a seed. */
static void random_words(uint64_t seed, uint64_t block, uint32_t out[4])
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    mica__philox(counter, key, out);
}

/* The upper half of the product, from 32-bit halves. */
static uint64_t random_mul_high(uint64_t a, uint64_t b)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32), cross = a0 * b1 + (uint32_t)mid;
    return a1 * b1 + (mid >> 32) + (cross >> 32);
}

/* Everything that does not depend on the element. */
typedef struct random_job {
    const mica__attr_random *attr;
    uint64_t seed;
    mica_dtype dtype;
    char *data;
    double a, b;                 /* bounds of the result                           */
    double low, middle, high;    /* normal: probability below a, between, above b  */
    int32_t side;
    mica__random_far far;        /* normal far from 0; end 0: it is not far        */
    mica__normal_far far32;
    bool wide;                   /* 64 bits an element                             */
    const mica__random_variant *variant; /* cpu only                               */
} random_job;

/* ------------------------------------------------------------ 32 bits ------ */

static float random_f32(const random_job *job, uint32_t bits)
{
    switch (job->attr->dist) {
    case MICA__DIST_UNIFORM: return mica__uniform_f32(bits, (float)job->a, (float)job->b);
    case MICA__DIST_GUMBEL: return mica__gumbel_f32(bits);
    default:
        if (job->far.end > 0) return mica__normal_far_f32(bits, &job->far32, job->side, (float)job->a, (float)job->b);
        return mica__normal_f32(bits, (float)job->low, (float)job->middle, (float)job->high, job->side, (float)job->a,
                                (float)job->b);
    }
}

/* The next larger or smaller 16-bit float, f16 or bf16. */
static uint16_t random_step_16(uint16_t bits, bool up)
{
    const bool negative = bits >> 15;
    if ((bits & 0x7fff) == 0) return up ? 0x0001 : 0x8001;
    return (uint16_t)(up != negative ? bits + 1 : bits - 1);
}

/* Rounds, but not out of the bounds (UNIFORM excludes b). */
static uint16_t random_round_16(const random_job *job, float value)
{
    const bool half = job->dtype == MICA_F16, open = job->attr->dist == MICA__DIST_UNIFORM;
    uint16_t bits = half ? mica_f16_from_f32(value) : mica_bf16_from_f32(value);
    const double rounded = (double)(half ? mica_f16_to_f32(bits) : mica_bf16_to_f32(bits));
    if (rounded > job->b || (open && rounded == job->b && job->a < job->b)) bits = random_step_16(bits, false);
    else if (rounded < job->a) bits = random_step_16(bits, true);
    return bits;
}

/* One element from its word. */
static void random_put_32(const random_job *job, int64_t i, uint32_t bits)
{
    if (job->attr->dist == MICA__DIST_BITS) {
        memcpy(job->data + i * 4, &bits, 4);
    } else if (job->dtype == MICA_F32) {
        const float value = random_f32(job, bits);
        memcpy(job->data + i * 4, &value, 4);
    } else {
        const uint16_t value = random_round_16(job, random_f32(job, bits));
        memcpy(job->data + i * 2, &value, 2);
    }
}

/* ------------------------------------------------------------ 64 bits ------ */

/* As mica__tail_f32. */
static double random_tail_f64(uint64_t bits, bool *upper)
{
    *upper = bits >> 63;
    return ((double)(*upper ? ~bits : bits) + 0.5) * 0x1p-64;
}

/* Starts with mica__normal_tail_f32 and applies Halley's steps on erfc, each of
 * which triples the number of correct digits. */
static double random_normal_tail_f64(double p)
{
    const double root2 = 1.4142135623730951, root_2pi = 2.5066282746310005;
    /* Out of the range of f32 the start is the leading part of the asymptotic series. */
    const bool tiny = p < 1e-37;
    double x =
        tiny ? sqrt(-2 * log(p) - log(-4 * 3.141592653589793 * log(p))) : (double)mica__normal_tail_f32((float)p);
    for (int i = 0; i < (tiny ? 4 : 1); i++) {
        const double off = (0.5 * erfc(x / root2) - p) * root_2pi * exp(0.5 * x * x);
        x += off / (1 - 0.5 * x * off);
    }
    return x;
}

static double random_normal_f64(const random_job *job, uint64_t bits)
{
    bool upper;
    double p = random_tail_f64(bits, &upper);
    if (job->side && upper != (job->side > 0)) {
        p = 1 - p;
        upper = !upper;
    }
    double t = (upper ? job->high : job->low) + p * job->middle;
    if (t > 0.5) {
        t = 1 - t;
        upper = !upper;
    }
    if (t < 1e-300) t = 1e-300;
    const double magnitude = random_normal_tail_f64(t);
    return fmin(fmax(upper ? magnitude : -magnitude, job->a), job->b);
}

/* log(x Q(x) / phi(x)), t = 1 / x^2: ten terms of the asymptotic series, to 1e-9 for x >= 8 and 1e-18 for x >= 30. */
static double random_far_log(double t)
{
    double s = 1;
    for (int n = 19; n > 0; n -= 2) s = 1 - n * t * s;
    return log(s);
}

/* As mica__normal_far_f32. */
static double random_far_f64(const random_job *job, uint64_t bits)
{
    const mica__random_far *f = &job->far;
    bool upper;
    const double p = random_tail_f64(bits, &upper);
    if (job->side < 0) upper = !upper;
    const double w = (upper ? 1 - p : p) * f->inside;
    const double e = w < 0.25 ? -log1p(-w) : -log(f->beyond + (upper ? p : 1 - p) * f->inside);
    double rest = e, r = 0;
    for (int i = 0; i < 7; i++) {
        const double c = f->square * rest;
        r = 2 * c / (1 + sqrt(1 + 2 * c));
        rest = (e - log1p(r)) + (random_far_log(f->square / ((1 + r) * (1 + r))) - f->log_end);
    }
    const double magnitude = f->end + f->end * r;
    return fmin(fmax(job->side < 0 ? -magnitude : magnitude, job->a), job->b);
}

static double random_f64(const random_job *job, uint64_t bits)
{
    bool upper;
    double u, p, x;
    switch (job->attr->dist) {
    case MICA__DIST_UNIFORM:
        u = (double)(bits >> 11) * 0x1p-53;
        x = job->a + u * (job->b - job->a);
        if (isinf(job->b - job->a)) x = job->a * (1 - u) + job->b * u;
        return x >= job->b && job->a < job->b ? nextafter(job->b, -INFINITY) : x;
    case MICA__DIST_GUMBEL: p = random_tail_f64(bits, &upper); return -log(upper ? -log1p(-p) : -log(p));
    default: return job->far.end > 0 ? random_far_f64(job, bits) : random_normal_f64(job, bits);
    }
}

static void random_put_64(const random_job *job, int64_t i, uint64_t bits)
{
    const mica__attr_random *attr = job->attr;
    const uint64_t range = (uint64_t)attr->high - (uint64_t)attr->low;
    if (attr->dist == MICA__DIST_BITS) mica__set_i64(job->dtype, job->data, i, (int64_t)bits);
    else if (attr->dist == MICA__DIST_INTEGER)
        mica__set_i64(job->dtype, job->data, i, (int64_t)((uint64_t)attr->low + random_mul_high(bits, range)));
    else mica__set_f64(job->dtype, job->data, i, random_f64(job, bits));
}

/* ------------------------------------------------------------- launches ---- */

static double random_below(double x) { return 0.5 * erfc(-x / 1.4142135623730951); }

/* f64 has probabilities up to 37 standard deviations, and 2^-64 of them up to 34. */
#define RANDOM_FAR_F64 30.0

static mica__random_far random_far_of(double end, double other)
{
    const double square = 1 / end / end, log_end = random_far_log(square);
    /* log(Q(end) / Q(other)) */
    const double drop =
        0.5 * (other - end) * (other + end) + log(other / end) - (random_far_log(1 / other / other) - log_end);
    return (mica__random_far){end, square, log_end, .inside = -expm1(-drop), .beyond = exp(-drop)};
}

mica__normal_far mica__random_far_f32(const mica__random_far *far)
{
    const float square = (float)far->square;
    return (mica__normal_far){.end = far->end > FLT_MAX ? FLT_MAX : (float)far->end,
                              .square = square,
                              .log_end = mica__far_log_f32(square),
                              .inside = (float)far->inside,
                              .beyond = (float)far->beyond};
}

mica__random_parts mica__random_parts_of(const mica__attr_random *attr)
{
    const bool truncated = attr->dist == MICA__DIST_TRUNCATED_NORMAL;
    const bool bounded = truncated || attr->dist == MICA__DIST_UNIFORM;
    mica__random_parts parts = {.a = bounded ? attr->a : -INFINITY, .b = bounded ? attr->b : INFINITY, .middle = 1};
    if (!truncated) return parts;
    parts.side = attr->b <= 0 ? -1 : attr->a >= 0 ? 1 : 0;
    parts.low = random_below(attr->a);
    parts.high = random_below(-attr->b);
    /* Computed from the smaller tail, so that nothing cancels. */
    parts.middle = parts.side < 0   ? random_below(attr->b) - parts.low
                   : parts.side > 0 ? random_below(-attr->a) - parts.high
                                    : 1 - parts.low - parts.high;
    const double end = parts.side < 0 ? -attr->b : attr->a;
    if (parts.side != 0 && end >= (attr->spec.dtype == MICA_F64 ? RANDOM_FAR_F64 : MICA__FAR_F32))
        parts.far = random_far_of(end, parts.side < 0 ? -attr->a : attr->b);
    return parts;
}

static void random_begin(const mica__launch *launch, random_job *job)
{
    const mica__attr_random *attr = launch->attr;
    const mica__random_parts parts = mica__random_parts_of(attr);
    const uint64_t given = launch->n_in ? (uint64_t)mica__get_i64(MICA_U64, launch->in[0].data, 0) : 0;
    *job = (random_job){.attr = attr,
                        .seed = attr->seed + given,
                        .dtype = mica__dtype_of(launch->out),
                        .data = launch->out->data,
                        .a = parts.a,
                        .b = parts.b,
                        .low = parts.low,
                        .middle = parts.middle,
                        .high = parts.high,
                        .side = parts.side,
                        .far = parts.far,
                        .far32 = mica__random_far_f32(&parts.far)};
    job->wide = job->dtype == MICA_F64 || attr->dist == MICA__DIST_INTEGER || job->dtype == MICA_U64;
}

mica_status mica__random_ref(const mica__launch *launch)
{
    random_job job;
    uint32_t words[4];
    random_begin(launch, &job);
    const int64_t count = mica__spec_size(&launch->out->spec), per_block = job.wide ? 2 : 4;
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = i % per_block;
        if (k == 0) random_words(job.seed, (uint64_t)(i / per_block), words);
        if (job.wide) random_put_64(&job, i, words[2 * k] | (uint64_t)words[2 * k + 1] << 32);
        else random_put_32(&job, i, words[k]);
    }
    return MICA_OK;
}

enum { RANDOM_PIECE = 1024 }; /* words at a time */

static void random_range(const void *context, int64_t begin, int64_t end)
{
    const random_job *job = context;
    const mica__random_floats f = {.dist = (mica__dist)job->attr->dist,
                                   .a = (float)job->a,
                                   .b = (float)job->b,
                                   .low = (float)job->low,
                                   .middle = (float)job->middle,
                                   .high = (float)job->high,
                                   .side = job->side,
                                   .far = job->far32};
    const int64_t per_block = job->wide ? 2 : 4, step = RANDOM_PIECE / 4 * per_block;
    uint32_t *words = mica__scratch_alloc(RANDOM_PIECE * sizeof *words);
    float *floats = mica__scratch_alloc(RANDOM_PIECE * sizeof *floats);
    /* begin is the start of a block: see mica__random_cpu */
    for (int64_t i = begin; i < end; i += step) {
        const int64_t n = mica__min_i64(step, end - i);
        job->variant->words(job->seed, (uint64_t)(i / per_block), (n + per_block - 1) / per_block, words);
        if (job->wide) {
            for (int64_t k = 0; k < n; k++) random_put_64(job, i + k, words[2 * k] | (uint64_t)words[2 * k + 1] << 32);
        } else if (f.dist == MICA__DIST_BITS) {
            memcpy(job->data + i * 4, words, (size_t)n * 4);
        } else if (job->dtype == MICA_F32) {
            job->variant->floats(&f, words, n, (float *)(void *)job->data + i);
        } else {
            job->variant->floats(&f, words, n, floats);
            for (int64_t k = 0; k < n; k++) {
                const uint16_t value = random_round_16(job, floats[k]);
                memcpy(job->data + (i + k) * 2, &value, 2);
            }
        }
    }
    mica__scratch_release(words);
}

mica_status mica__random_cpu(const mica__launch *launch)
{
    random_job job;
    size_t n_variant;
    random_begin(launch, &job);
    job.variant = mica__random_variants(&n_variant);
    job.variant += n_variant - 1;
    /* a work of 8 gives tasks of 4,096 elements, which are whole blocks */
    mica__run_rows(launch->pool, mica__spec_size(&launch->out->spec), 8, random_range, &job);
    return MICA_OK;
}

/* -------------------------------------------------------------- variants --- */

#define MICA_RANDOM(name, needs)                     \
    mica__random_words_fn mica__random_words_##name; \
    mica__random_floats_fn mica__random_floats_##name;
#include "kernels/random/random.def"
#undef MICA_RANDOM

static const mica__random_variant random_table[] = {
#define MICA_RANDOM(name, needs) {#name, needs, mica__random_words_##name, mica__random_floats_##name},
#include "kernels/random/random.def"
#undef MICA_RANDOM
};

const mica__random_variant *mica__random_variants(size_t *n)
{
    const unsigned have = mica__cpu_features();
    *n = 0;
    for (size_t i = 0; i < sizeof random_table / sizeof *random_table; i++)
        if ((random_table[i].needs & ~have) == 0) *n = i + 1;
    return random_table;
}
