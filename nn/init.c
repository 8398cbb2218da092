/* Initial values of parameters. */
#include <math.h>
#include <stdlib.h>

#include "forward.h"

/* Standard deviation or half width that gives the variance of the scheme. */
static double init_spread(mica_init how, double scale, int ndim, const int64_t *shape)
{
    double in = 1, out = ndim > 0 ? (double)shape[0] : 1, area = 1;
    for (int d = 1; d < ndim; d++) in *= (double)shape[d];
    for (int d = 2; d < ndim; d++)
        area *= (double)shape[d]; /* each output of a convolution reads that many
                                                              * positions */
    const double width = sqrt(3.0); /* half width of a uniform distribution with standard deviation 1 */
    switch (how) {
    case MICA_INIT_XAVIER_UNIFORM: return width * scale * sqrt(2 / (in + out * area));
    case MICA_INIT_XAVIER_NORMAL: return scale * sqrt(2 / (in + out * area));
    case MICA_INIT_KAIMING_UNIFORM: return width * scale / sqrt(in);
    case MICA_INIT_KAIMING_NORMAL: return scale / sqrt(in);
    default: return scale;
    }
}

/* Makes the rows of q (n, m), n <= m, orthonormal with Gram-Schmidt, applied twice because once loses digits. The
 * result is the Q of the QR decomposition of the transposed matrix whose R has a positive diagonal, so it is uniformly
 * distributed. */
static bool orthonormal_rows(double *q, int64_t n, int64_t m)
{
    for (int64_t i = 0; i < n; i++) {
        double *row = q + i * m, length = 0;
        for (int64_t pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < i; k++) {
                double dot = 0;
                for (int64_t c = 0; c < m; c++) dot += row[c] * q[k * m + c];
                for (int64_t c = 0; c < m; c++) row[c] -= dot * q[k * m + c];
            }
        for (int64_t c = 0; c < m; c++) length += row[c] * row[c];
        if (!(length > 0)) return false;
        for (int64_t c = 0; c < m; c++) row[c] /= sqrt(length);
    }
    return true;
}

/* Draws normal values, evaluates them and orthogonalises them on the host; this runs once. */
static mica_array *orthogonal(mica_scope *s, double scale, mica_dtype dtype, int ndim, const int64_t *shape,
                              uint64_t seed)
{
    if (ndim < 2) return mica_scope_fail(s, MICA_ERR_SHAPE, "init: orthogonal values of %d axes, not 2 or more", ndim);
    const int64_t rows = shape[0];
    mica_array *x = mica_reshape(s, mica_random_normal(s, MICA_F64, ndim, shape, seed), 2, (const int64_t[]){rows, -1});
    const int64_t cols = x ? mica_array_shape(x)[1] : 0;
    if (rows > cols) x = mica_transpose(s, x);
    const mica_status status = mica_eval(s, &x, 1);
    if (status != MICA_OK) return mica_scope_fail(s, status, "%s", mica_last_error());
    double *q = malloc(mica_array_nbytes(x) + sizeof *q);
    if (!q) return mica_scope_fail(s, MICA_ERR_MEMORY, "out of memory: an orthogonal matrix");
    mica_array *y = NULL;
    if (mica_copy_out(x, q, mica_array_nbytes(x)) == MICA_OK &&
        orthonormal_rows(q, mica_array_shape(x)[0], mica_array_shape(x)[1]))
        y = mica_from_data(s, MICA_F64, 2, mica_array_shape(x), q);
    else mica_scope_fail(s, MICA_ERR_INTERNAL, "init: rows of an orthogonal matrix are not independent");
    free(q);
    if (rows > cols) y = mica_transpose(s, y);
    return mica_cast(s, mica_mul(s, mica_reshape(s, y, ndim, shape), mica_scalar(s, scale)), dtype);
}

mica_array *mica_init_array(mica_scope *s, mica_init how, double scale, mica_dtype dtype, int ndim,
                            const int64_t *shape, uint64_t seed)
{
    if (ndim < 0 || ndim > MICA_MAX_DIMS || (ndim > 0 && !shape))
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "init: shape is NULL, or %d axes", ndim);
    const double spread = init_spread(how, scale, ndim, shape);
    if (!isfinite(spread)) return mica_scope_fail(s, MICA_ERR_ARGUMENT, "init: scale %g is not finite", scale);
    switch (how) {
    case MICA_INIT_ZEROS: return mica_zeros(s, dtype, ndim, shape);
    case MICA_INIT_ONES: return mica_ones(s, dtype, ndim, shape);
    case MICA_INIT_UNIFORM:
    case MICA_INIT_XAVIER_UNIFORM:
    case MICA_INIT_KAIMING_UNIFORM: return mica_random_uniform(s, dtype, ndim, shape, -spread, spread, seed);
    case MICA_INIT_NORMAL:
    case MICA_INIT_XAVIER_NORMAL:
    case MICA_INIT_KAIMING_NORMAL:
        return mica_mul(s, mica_random_normal(s, dtype, ndim, shape, seed), mica_scalar(s, spread));
    case MICA_INIT_ORTHOGONAL: return orthogonal(s, scale, dtype, ndim, shape, seed);
    }
    return mica_scope_fail(s, MICA_ERR_ARGUMENT, "init: %d is not a mica_init", (int)how);
}

static mica_status add_named_param(mica_scope *s, mica_params *params, bool buffer, mica_array *value,
                                   const char *format, va_list args)
{
    char name[NN_NAME];
    if (!mica__nn_name(name, format, args))
        return mica_fail(MICA_ERR_ARGUMENT, "params_make: no name, or one of more than %d characters: '%s'",
                         NN_NAME - 1, name);
    const mica_status status = mica_eval(s, &value, 1);
    if (status != MICA_OK) return status;
    return buffer ? mica_params_add_buffer(params, name, value) : mica_params_add(params, name, value);
}

mica_status mica_params_make(mica_scope *s, mica_params *params, mica_init how, double scale, int ndim,
                             const int64_t *shape, uint64_t seed, const char *format, ...)
{
    if (!params) return mica_fail(MICA_ERR_ARGUMENT, "params_make: no set of parameters");
    const uint64_t own = mica_seed_split(seed, mica_params_count(params));
    va_list args;
    va_start(args, format);
    const mica_status status =
        add_named_param(s, params, false, mica_init_array(s, how, scale, MICA_F32, ndim, shape, own), format, args);
    va_end(args);
    return status;
}

mica_status mica_params_make_buffer(mica_scope *s, mica_params *params, double value, int ndim, const int64_t *shape,
                                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const mica_status status =
        add_named_param(s, params, true, mica_full(s, MICA_F32, ndim, shape, value), format, args);
    va_end(args);
    return status;
}
