/* Gradients of element-wise ops of one input. A formula uses the result y where that is
 * shorter: y is computed anyway. */
#include <math.h>

#include "graph/vjp_util.h"

/* For ops whose gradient is not supported. */
MICA__VJP_RULE(refuse)
{
    (void)s, (void)ct, (void)grads;
    return mica__fail(MICA_ERR_UNSUPPORTED, "%s: has no gradient; build the graph for training without a state",
                      mica__op_get(y->op)->name);
}

MICA__VJP_RULE(zero)
{
    (void)s, (void)y, (void)ct, (void)grads;
    return MICA_OK;
}

/* Defines a rule that sets grads[0] to the expression; x is the input. */
#define VJP_ONE(name, expression) \
    MICA__VJP_RULE(name)          \
    {                             \
        mica_array *x = y->in[0]; \
        (void)s, (void)x;         \
        grads[0] = (expression);  \
        return MICA_OK;           \
    }

VJP_ONE(cast, mica__is_float(vjp_dtype(x)) ? vjp_narrow(s, ct, vjp_dtype(x)) : NULL)
VJP_ONE(copy, ct)
VJP_ONE(neg, mica_neg(s, ct))
VJP_ONE(abs, mica_mul(s, ct, mica_sign(s, x)))
VJP_ONE(square, mica_mul(s, ct, vjp_times(s, x, 2)))

/* powers, exponentials, logarithms */
VJP_ONE(exp, mica_mul(s, ct, y))
VJP_ONE(expm1, mica_mul(s, ct, mica_exp(s, x))) /* y + 1 would lose the digits of small results */
VJP_ONE(log, mica_div(s, ct, x))
VJP_ONE(log1p, mica_div(s, ct, vjp_plus(s, x, 1)))
VJP_ONE(log2, mica_div(s, ct, vjp_times(s, x, M_LN2)))
VJP_ONE(log10, mica_div(s, ct, vjp_times(s, x, 2.3025850929940456840)))
VJP_ONE(sqrt, mica_div(s, ct, vjp_times(s, y, 2)))
VJP_ONE(rsqrt, mica_mul(s, ct, mica_mul(s, mica_square(s, y), vjp_times(s, y, -0.5))))
VJP_ONE(reciprocal, mica_mul(s, ct, mica_neg(s, mica_square(s, y))))

/* circular and hyperbolic functions */
VJP_ONE(sin, mica_mul(s, ct, mica_cos(s, x)))
VJP_ONE(cos, mica_mul(s, ct, mica_neg(s, mica_sin(s, x))))
VJP_ONE(tan, mica_mul(s, ct, vjp_plus(s, mica_square(s, y), 1)))
VJP_ONE(atan, mica_div(s, ct, vjp_plus(s, mica_square(s, x), 1)))
VJP_ONE(sinh, mica_mul(s, ct, mica_cosh(s, x)))
VJP_ONE(cosh, mica_mul(s, ct, mica_sinh(s, x)))
VJP_ONE(tanh, mica_mul(s, ct, vjp_rsub(s, 1, mica_square(s, y))))

/* 1 / sqrt(1 - x^2); (1 - x)(1 + x) does not cancel near +-1 as 1 - x^2 does */
static mica_array *vjp_arc_slope(mica_scope *s, mica_array *x)
{
    return mica_rsqrt(s, mica_mul(s, vjp_rsub(s, 1, x), vjp_plus(s, x, 1)));
}
VJP_ONE(asin, mica_mul(s, ct, vjp_arc_slope(s, x)))
VJP_ONE(acos, mica_mul(s, ct, mica_neg(s, vjp_arc_slope(s, x))))

/* the error function */
#define VJP_SQRT_PI 1.7724538509055160273
VJP_ONE(erf, mica_mul(s, ct, vjp_times(s, mica_exp(s, mica_neg(s, mica_square(s, x))), 2 / VJP_SQRT_PI)))
VJP_ONE(erfinv, mica_mul(s, ct, vjp_times(s, mica_exp(s, mica_square(s, y)), VJP_SQRT_PI / 2)))

/* activations; at a kink the left derivative is used */
VJP_ONE(sigmoid, mica_mul(s, ct, mica_mul(s, y, vjp_rsub(s, 1, y))))
VJP_ONE(relu, vjp_or_zero(s, mica_greater(s, y, mica_scalar(s, 0)), ct)) /* y > 0 where x > 0; x need not be kept */
VJP_ONE(relu2, mica_mul(s, ct, vjp_times(s, mica_relu(s, x), 2)))
VJP_ONE(softplus, mica_mul(s, ct, mica_sigmoid(s, x)))

MICA__VJP_RULE(leaky_relu)
{
    const double slope = ((const mica__attr_value *)y->attr)->value;
    grads[0] = mica_where(s, mica_greater(s, y->in[0], mica_scalar(s, 0)), ct, vjp_times(s, ct, slope));
    return MICA_OK;
}

/* For x <= 0 the derivative alpha exp(x) is y + alpha. Unlike exp(x) that stays finite for
 * large x, where the second derivative multiplies it by 0. */
MICA__VJP_RULE(elu)
{
    const double alpha = ((const mica__attr_value *)y->attr)->value;
    grads[0] = mica_where(s, mica_greater(s, y->in[0], mica_scalar(s, 0)), ct, mica_mul(s, ct, vjp_plus(s, y, alpha)));
    return MICA_OK;
}

/* silu'(x) = g + x g (1 - g), g = sigmoid(x) */
MICA__VJP_RULE(silu)
{
    mica_array *g = mica_sigmoid(s, y->in[0]);
    grads[0] = mica_mul(s, ct, mica_add(s, g, mica_mul(s, y, vjp_rsub(s, 1, g))));
    return MICA_OK;
}

/* Phi(x) + x phi(x) */
MICA__VJP_RULE(gelu)
{
    mica_array *x = y->in[0];
    mica_array *cdf = vjp_times(s, vjp_plus(s, mica_erf(s, vjp_times(s, x, M_SQRT1_2)), 1), 0.5);
    mica_array *pdf = vjp_times(s, mica_exp(s, vjp_times(s, mica_square(s, x), -0.5)), M_SQRT1_2 / VJP_SQRT_PI);
    grads[0] = mica_mul(s, ct, mica_add(s, cdf, mica_mul(s, x, pdf)));
    return MICA_OK;
}

/* y = x (1 + t) / 2, t = tanh(c (x + k x^3)) */
MICA__VJP_RULE(gelu_tanh)
{
    const double c = M_SQRT2 / VJP_SQRT_PI, k = 0.044715;
    mica_array *x = y->in[0], *x2 = mica_square(s, x);
    mica_array *t = mica_tanh(s, mica_mul(s, x, vjp_plus(s, vjp_times(s, x2, c * k), c)));
    mica_array *dt = mica_mul(s, vjp_rsub(s, 1, mica_square(s, t)), vjp_plus(s, vjp_times(s, x2, 3 * c * k), c));
    mica_array *slope = mica_add(s, vjp_plus(s, t, 1), mica_mul(s, x, dt));
    grads[0] = mica_mul(s, ct, vjp_times(s, slope, 0.5));
    return MICA_OK;
}

/* y = a tanh(2x/3): y' = 2/3 (a - y^2 / a) */
MICA__VJP_RULE(lecun_tanh)
{
    const double a = 1.7159, b = 2.0 / 3;
    grads[0] = mica_mul(s, ct, vjp_rsub(s, a * b, vjp_times(s, mica_square(s, y), b / a)));
    return MICA_OK;
}

#undef VJP_ONE
#undef VJP_SQRT_PI
