/* Gradients of element-wise ops of two and three inputs. Their inputs have equal shapes:
 * a broadcast is a separate node, and its rule sums. */
#include "graph/vjp_util.h"

MICA__VJP_RULE(add)
{
    (void)s, (void)y;
    grads[0] = grads[1] = ct;
    return MICA_OK;
}

MICA__VJP_RULE(sub)
{
    (void)y;
    grads[0] = ct;
    grads[1] = mica_neg(s, ct);
    return MICA_OK;
}

MICA__VJP_RULE(mul)
{
    grads[0] = mica_mul(s, ct, y->in[1]);
    grads[1] = mica_mul(s, ct, y->in[0]);
    return MICA_OK;
}

MICA__VJP_RULE(div)
{
    grads[0] = mica_div(s, ct, y->in[1]);
    grads[1] = mica_neg(s, mica_mul(s, grads[0], y));
    return MICA_OK;
}

MICA__VJP_RULE(fma)
{
    grads[0] = mica_mul(s, ct, y->in[1]);
    grads[1] = mica_mul(s, ct, y->in[0]);
    grads[2] = ct;
    return MICA_OK;
}

/* a - b floor(a / b) */
MICA__VJP_RULE(mod)
{
    grads[0] = ct;
    grads[1] = mica_neg(s, mica_mul(s, ct, mica_floor_div(s, y->in[0], y->in[1])));
    return MICA_OK;
}

/* b a^(b-1), and 0 for 0^0; a^b log(a), and 0 where a has no logarithm. Only the point
 * a = b = 0 is excluded: for any other a the formula and its derivative by b are also
 * right at b = 0. */
MICA__VJP_RULE(pow)
{
    mica_array *a = y->in[0], *b = y->in[1], *zero = mica_scalar(s, 0);
    mica_array *at_zero = mica_logical_and(s, mica_equal(s, a, zero), mica_equal(s, b, zero));
    mica_array *slope = mica_mul(s, b, mica_pow(s, a, vjp_plus(s, b, -1)));
    grads[0] = mica_mul(s, ct, mica_where(s, at_zero, zero, slope));
    mica_array *positive = mica_greater(s, a, zero);
    mica_array *log_a = mica_log(s, mica_where(s, positive, a, mica_scalar(s, 1)));
    grads[1] = mica_mul(s, ct, vjp_or_zero(s, positive, mica_mul(s, y, log_a)));
    return MICA_OK;
}

/* The larger (or smaller) operand gets the cotangent; equal operands get half each. */
static void vjp_extreme_pair(mica_scope *s, mica_array *ct, mica_array *winner_if, mica_array *a, mica_array *b,
                             mica_array **grads)
{
    mica_array *tie = mica_equal(s, a, b);
    mica_array *first = mica_where(s, tie, vjp_times(s, ct, 0.5), vjp_or_zero(s, winner_if, ct));
    grads[0] = first;
    grads[1] = mica_where(s, tie, vjp_times(s, ct, 0.5), mica_where(s, winner_if, mica_scalar(s, 0), ct));
}

MICA__VJP_RULE(maximum)
{
    vjp_extreme_pair(s, ct, mica_greater(s, y->in[0], y->in[1]), y->in[0], y->in[1], grads);
    return MICA_OK;
}

MICA__VJP_RULE(minimum)
{
    vjp_extreme_pair(s, ct, mica_less(s, y->in[0], y->in[1]), y->in[0], y->in[1], grads);
    return MICA_OK;
}

/* b / (a^2 + b^2), -a / (a^2 + b^2), 0 at the origin. Divides twice by the length,
 * because the square of a small length is 0. */
MICA__VJP_RULE(atan2)
{
    mica_array *a = y->in[0], *b = y->in[1];
    mica_array *length = vjp_not_zero(s, mica_hypot(s, a, b));
    mica_array *scaled = mica_div(s, ct, length);
    grads[0] = mica_mul(s, scaled, mica_div(s, b, length));
    grads[1] = mica_neg(s, mica_mul(s, scaled, mica_div(s, a, length)));
    return MICA_OK;
}

MICA__VJP_RULE(hypot)
{
    mica_array *scaled = mica_div(s, ct, vjp_not_zero(s, y));
    grads[0] = mica_mul(s, scaled, y->in[0]);
    grads[1] = mica_mul(s, scaled, y->in[1]);
    return MICA_OK;
}

MICA__VJP_RULE(where)
{
    grads[1] = vjp_or_zero(s, y->in[0], ct);
    grads[2] = mica_where(s, y->in[0], mica_scalar(s, 0), ct);
    return MICA_OK;
}
