/* Random numbers as a dispatch with one thread for each block of words (random.metal). */
#include <math.h>

#include "kernels/common/gpu_view.h"
#include "kernels/random/random.h"
#include "kernels/random/random_cpu.h"

#include "kernels/random/random_params.h"

#define X(name, code) _Static_assert(MICA__DIST_##name == (code), #name);
MICA_RANDOM_DISTS(X)
#undef X

/* The nearest float that is not above (below) x. */
static float random_at_most(double x)
{
    const float near = (float)x;
    return (double)near > x ? nextafterf(near, -INFINITY) : near;
}

mica_status mica__random_gpu(const mica__gpu_launch *l, mica__gpu_list *list)
{
    const mica__attr_random *attr = l->attr;
    const mica__random_parts parts = mica__random_parts_of(attr);
    if (mica__gpu_has_f64(l)) return mica__gpu_refuse(list, "Metal has no f64");
    if (!mica__gpu_counts(l)) return mica__gpu_refuse(list, "more than 2^31 elements");
    const mica__normal_far far = mica__random_far_f32(&parts.far);
    const bool uniform = attr->dist == MICA__DIST_UNIFORM;
    const bool wide = attr->dist == MICA__DIST_INTEGER || l->out->spec.dtype == MICA_U64;
    const mica_random_params p = {
        .seed = attr->seed,
        .low = attr->low,
        .range = (uint64_t)attr->high - (uint64_t)attr->low,
        .a = (float)parts.a,
        .b = (float)parts.b,
        .least = -random_at_most(-parts.a),
        .most = random_at_most(parts.b),
        .below = (float)parts.low,
        .middle = (float)parts.middle,
        .above = (float)parts.high,
        .side = parts.side,
        .count = (uint32_t)mica__spec_size(&l->out->spec),
        .far_end = far.end,
        .far_square = far.square,
        .far_log_end = far.log_end,
        .far_inside = far.inside,
        .far_beyond = far.beyond,
        .open = uniform && parts.a < parts.b && (double)random_at_most(parts.b) == parts.b,
    };
    mica__gpu_dispatch *d = mica__gpu_add(list, "random", "random_blocks");
    mica__gpu_constant_uint(d, MICA_RANDOM_DTYPE, (uint32_t)l->out->spec.dtype);
    mica__gpu_constant_uint(d, MICA_RANDOM_DIST, (uint32_t)attr->dist);
    mica__gpu_constant_bool(d, MICA_RANDOM_SEEDED, l->n_in > 0);
    if (l->n_in) mica__gpu_operand(d, l, 0);
    else mica__gpu_bind_out(d, 0);
    mica__gpu_bind_out(d, 0);
    mica__gpu_params(list, d, &p, sizeof p);
    mica__gpu_grid_flat(d, l->gpu, mica__gpu_parts(p.count, wide ? 2 : 4));
    return MICA_OK;
}
