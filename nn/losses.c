/* Losses: the mean over all elements or rows, as one element. Narrow dtypes are cast to f32 first, because a mean of
 * many elements loses too much precision. */
#include "mica_nn.h"

static mica_array *widened(mica_scope *s, mica_array *x)
{
    const bool narrow = x && (mica_array_dtype(x) == MICA_F16 || mica_array_dtype(x) == MICA_BF16);
    return narrow ? mica_cast(s, x, MICA_F32) : x;
}

static mica_array *mean_of(mica_scope *s, mica_array *x) { return mica_mean(s, x, NULL, 0, false); }

/* Refuses shapes that would broadcast, which is usually a mistake: (n, 1) with (n) gives n^2 differences. */
static bool shapes_fit(mica_scope *s, const char *loss, const mica_array *y, const mica_array *target)
{
    if (!y || !target) return false;
    bool same = mica_array_ndim(y) == mica_array_ndim(target);
    for (int d = 0; same && d < mica_array_ndim(y); d++) same = mica_array_shape(y)[d] == mica_array_shape(target)[d];
    if (!same)
        mica_scope_fail(s, MICA_ERR_SHAPE, "%s: %lld values in %d axes and %lld targets in %d axes: shapes differ",
                        loss, (long long)mica_array_size(y), mica_array_ndim(y), (long long)mica_array_size(target),
                        mica_array_ndim(target));
    return same;
}

static mica_array *difference(mica_scope *s, const char *loss, mica_array *y, mica_array *target)
{
    return shapes_fit(s, loss, y, target) ? mica_sub(s, widened(s, y), widened(s, target)) : NULL;
}

mica_array *mica_mse_loss(mica_scope *s, mica_array *y, mica_array *target)
{
    return mean_of(s, mica_square(s, difference(s, "mse_loss", y, target)));
}

mica_array *mica_mae_loss(mica_scope *s, mica_array *y, mica_array *target)
{
    return mean_of(s, mica_abs(s, difference(s, "mae_loss", y, target)));
}

/* min(a, delta) (a - min(a, delta) / 2), a = |y - target| */
mica_array *mica_huber_loss(mica_scope *s, mica_array *y, mica_array *target, double delta)
{
    if (!(delta > 0)) return mica_scope_fail(s, MICA_ERR_ARGUMENT, "huber_loss: delta %g is not above 0", delta);
    mica_array *a = mica_abs(s, difference(s, "huber_loss", y, target));
    mica_array *near = mica_minimum(s, a, mica_scalar(s, delta));
    return mean_of(s, mica_mul(s, near, mica_sub(s, a, mica_mul(s, near, mica_scalar(s, 0.5)))));
}

/* (1 - smoothing) times the label's loss plus smoothing times the mean over all classes. */
mica_array *mica_cross_entropy_loss(mica_scope *s, mica_array *logits, mica_array *labels, double smoothing)
{
    if (!(smoothing >= 0 && smoothing < 1))
        return mica_scope_fail(s, MICA_ERR_ARGUMENT, "cross_entropy_loss: smoothing %g is not in [0, 1)", smoothing);
    logits = widened(s, logits);
    mica_array *hit = mean_of(s, mica_cross_entropy(s, logits, labels));
    if (smoothing == 0) return hit;
    mica_array *all = mica_neg(s, mean_of(s, mica_log_softmax(s, logits, -1)));
    return mica_add(s, mica_mul(s, hit, mica_scalar(s, 1 - smoothing)), mica_mul(s, all, mica_scalar(s, smoothing)));
}

/* target softplus(-x) + (1 - target) softplus(x): no precision is lost at large |x|, and the derivative is sigmoid(x)
 * - target everywhere. */
mica_array *mica_bce_loss(mica_scope *s, mica_array *logits, mica_array *target)
{
    if (!shapes_fit(s, "bce_loss", logits, target)) return NULL;
    mica_array *x = widened(s, logits), *t = widened(s, target);
    mica_array *yes = mica_mul(s, t, mica_softplus(s, mica_neg(s, x)));
    return mean_of(s, mica_add(s, yes, mica_mul(s, mica_sub(s, mica_scalar(s, 1), t), mica_softplus(s, x))));
}
