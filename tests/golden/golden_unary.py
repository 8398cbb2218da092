"""Element-wise ops of one input. References are computed in long double (x87) or exact
integer arithmetic and rounded once, so they are correct to the last bit and do
not depend on the SIMD code that NumPy or PyTorch use on this machine. Both are
compared with them here (see cross_check)."""
import decimal
import math

import numpy as np
import torch

from golden_format import *

D = decimal.Decimal
decimal.getcontext().prec = 60
PI = D("3.14159265358979323846264338327950288419716939937510582097494459")


# ------------------------------------------------------ references: one input


def erf_dec(y):
    """erf by its Taylor series: 60 digits lose about y^2/2.3 to cancellation."""
    with decimal.localcontext() as ctx:
        ctx.prec = 120
        y2, term, total, n = y * y, y, y, 0
        while abs(term) > D(10) ** -110:
            n += 1
            term = -term * y2 / n
            total += term / (2 * n + 1)
        return total * 2 / PI.sqrt()


def to_dec(x):
    return D(float(x))


def erf_ld(x):
    x = float(x)
    if math.isnan(x) or math.isinf(x) or abs(x) > 6.5:
        return np.longdouble(math.erf(x))
    return np.longdouble(str(+erf_dec(to_dec(x))))


def phi_ld(x):
    """The normal distribution function, without cancellation on the left."""
    x = float(x)
    if math.isnan(x):
        return np.longdouble(x)
    if x < -13.5:  # far below every dtype's reach, times |x|
        return np.longdouble(0.5) * np.longdouble(math.erfc(-x / math.sqrt(2.0)))
    if x > 13.5:
        return np.longdouble(1)
    with decimal.localcontext() as ctx:
        ctx.prec = 120
        return np.longdouble(str((1 + erf_dec(to_dec(x) / D(2).sqrt())) / 2))


def erfinv_ld(x):
    x = float(x)
    if math.isnan(x) or abs(x) > 1:
        return np.longdouble(np.nan)
    if abs(x) == 1:
        return np.longdouble(math.copysign(math.inf, x))
    if x == 0 or abs(x) < 1e-300:
        return np.longdouble(x) * np.longdouble("0.886226925452758013649083741670572591")
    # Newton on erf(y) = x, from a coarse start
    a = math.log1p(-x * x)
    t = 2 / (math.pi * 0.147) + a / 2
    y = D(math.copysign(math.sqrt(max(math.sqrt(t * t - a / 0.147) - t, 1e-320)), x))
    if abs(x) < 1e-6:
        y = D(x) * PI.sqrt() / 2
    target = D(x)
    for _ in range(12):
        y -= (erf_dec(y) - target) * PI.sqrt() / 2 * (y * y).exp()
    return np.longdouble(str(+y))


def each(fn):
    def f(x):
        flat = [fn(v) for v in x.reshape(-1)]
        return np.array(flat, dtype=np.longdouble).reshape(x.shape)

    return f


def nan_through(fn):
    return lambda x: np.where(np.isnan(x), x, fn(x))


LD = np.longdouble
ONE = LD(1)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, ONE / (ONE + e), e / (ONE + e))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu_tanh(x):
    # tanh u = 2 sigmoid(2u) - 1, so x (1 + tanh u) / 2 = x sigmoid(2u): no cancellation
    u = LD("0.7978845608028653558798921198687637369") * (x + LD("0.044715") * x * x * x)
    return x * sigmoid(2 * u)


def round_even(x):
    return np.rint(x)


# name: (reference, domain low, high, ulps, absolute slack in ulps of 1)
# Ulps: 0 for what IEEE rounds correctly or moves bits, 4 for one transcendental,
# 6 for two in a row. Slack: where the usual formula cancels (1 + erf, 1 + tanh),
# an error of an ulp of 1 times |x| is the formula's, not a bug.
UNARY = {
    "neg": (lambda x: -x, -9, 9, 0, 0),
    "abs": (np.abs, -9, 9, 0, 0),
    "sign": (np.sign, -9, 9, 0, 0),
    "exp": (np.exp, -12, 11, 4, 0),
    "expm1": (np.expm1, -9, 9, 4, 0),
    "log": (np.log, 1e-6, 50, 4, 0),
    "log1p": (np.log1p, -0.999, 9, 4, 0),
    "log2": (np.log2, 1e-6, 50, 4, 0),
    "sqrt": (np.sqrt, 0, 90, 0, 0),
    "rsqrt": (lambda x: ONE / np.sqrt(x), 1e-3, 90, 2, 0),
    "reciprocal": (lambda x: ONE / x, -9, 9, 0, 0),
    "square": (lambda x: x * x, -9, 9, 0, 0),
    "sin": (np.sin, -30, 30, 4, 0),
    "cos": (np.cos, -30, 30, 4, 0),
    "tan": (np.tan, -30, 30, 4, 0),
    "asin": (np.arcsin, -1, 1, 4, 0),
    "acos": (np.arccos, -1, 1, 4, 0),
    "atan": (np.arctan, -30, 30, 4, 0),
    "sinh": (np.sinh, -9, 9, 4, 0),
    "cosh": (np.cosh, -9, 9, 4, 0),
    "tanh": (np.tanh, -9, 9, 4, 0),
    "erf": (each(erf_ld), -4, 4, 4, 0),
    "erfinv": (each(erfinv_ld), -0.999, 0.999, 8, 0),  # f64: see unary_tol
    "sigmoid": (sigmoid, -20, 20, 6, 0),
    "relu": (nan_through(lambda x: np.maximum(x, 0)), -9, 9, 0, 0),
    "relu2": (nan_through(lambda x: np.square(np.maximum(x, 0))), -9, 9, 1, 0),
    "gelu": (lambda x: x * each(phi_ld)(x), -9, 9, 6, 6),
    "gelu_tanh": (gelu_tanh, -9, 9, 6, 6),
    "silu": (lambda x: x * sigmoid(x), -20, 20, 6, 0),
    "softplus": (softplus, -20, 20, 6, 0),
    "lecun_tanh": (lambda x: LD("1.7159") * np.tanh(2 * x / 3), -9, 9, 6, 0),
    "floor": (np.floor, -9, 9, 0, 0),
    "ceil": (np.ceil, -9, 9, 0, 0),
    "round": (round_even, -9, 9, 0, 0),
}
UNARY_ATTR = {
    "leaky_relu": (lambda x, a: np.where(x >= 0, x, x * LD(a)), "slope", [0.01, 0.25], 2),
    "elu": (lambda x, a: np.where(x >= 0, x, LD(a) * np.expm1(np.minimum(x, 0))), "alpha", [1.0, 0.75], 6),
}
UNARY_BOOL = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "logical_not": lambda x: x == 0}

SPECIAL = {
    "f32": [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        2.0**-149,
        -(2.0**-149),
        2.0**-127,
        2.0**-126,
        -(2.0**-126),
        3.4028234663852886e38,
        -3.4028234663852886e38,
        1e-3,
        -1e-3,
        1e-10,
        -1e-10,
        88.5,
        -87.0,
        -100.0,
        17.0,
        -17.0,
        1.0 - 2.0**-24,
        -1.0 + 2.0**-24,
        1.0 + 2.0**-23,
        8388609.0,
        -8388609.5,
    ],
    "f64": [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        -5e-324,
        2.0**-1023,
        2.0**-1022,
        -(2.0**-1022),
        1.7976931348623157e308,
        -1.7976931348623157e308,
        1e-3,
        -1e-3,
        1e-20,
        -1e-20,
        709.5,
        -708.0,
        -740.0,
        37.0,
        -37.0,
        1.0 - 2.0**-53,
        -1.0 + 2.0**-53,
        1.0 + 2.0**-52,
        4503599627370497.5,
        -4503599627370497.5,
    ],
}
# sin, cos, tan of huge numbers need an exact reduction by pi: a separate case
HUGE = {
    "f32": [1e3, -1e4, 1e5, -1e7, 1e10, 1e20, -1e30, 3.4028234663852886e38],
    "f64": [1e3, -1e4, 1e5, -1e7, 1e10, 1e22, -1e100, 1.7976931348623157e308],
}
TRIG = ("sin", "cos", "tan")
# The textbook formula overflows before the true result is below the smallest
# normal number; flushing such results to 0 is allowed.
FLUSH = {"sigmoid": 1.0, "silu": 128.0, "gelu": 128.0, "gelu_tanh": 128.0}
MINUS_INF_UNDEFINED = ("gelu", "gelu_tanh", "silu")  # -inf * 0 in the formula: 0 or NaN
TINY = {"f16": 2.0**-126, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


IEEE = {"sqrt": np.sqrt, "square": np.square, "reciprocal": np.reciprocal, "abs": np.abs, "neg": np.negative}


def unary_ref(name, x):
    """Rounded once: IEEE operations by the hardware, the rest through long double."""
    with np.errstate(all="ignore"):
        if name in IEEE and x.dtype in ("f32", "f64"):
            return Arr(x.dtype, IEEE[name](x.v))
        return rnd(x.dtype, UNARY[name][0](x.ld()))


def unary_tol(name, dtype, ulps, slack, scale):
    if ulps == 0:
        return (0.0, 0.0)
    if name == "erfinv" and dtype == "f64":
        # Newton on erf loses x / (y erf'(y)), some 80 ulps at 0.999; PyTorch is off by 18 ulps there
        ulps = 64
    r, a = ulp(dtype, ulps if dtype in ("f32", "f64") else min(ulps, 1))
    unit = 2.0 ** -MANT["f64" if dtype == "f64" else "f32"]  # halves are computed in f32
    return (r, a + slack * scale * unit + FLUSH.get(name, 0.0) * TINY[dtype])


def pi_multiples_exact(fn_name, x):
    """sin, cos, tan of huge doubles: reduce by pi in decimal arithmetic."""
    out = []
    for v in x.reshape(-1):
        with decimal.localcontext() as ctx:
            ctx.prec = 400
            pi = pi_digits(380)
            q = (D(float(v)) / pi).to_integral_value(rounding=decimal.ROUND_HALF_EVEN)
            r = np.longdouble("%.40e" % (D(float(v)) - q * pi))
        odd = int(q) & 1
        if fn_name == "tan":
            out.append(np.tan(r))
        else:
            y = np.sin(r) if fn_name == "sin" else np.cos(r)
            out.append(-y if odd else y)
    return np.array(out, dtype=np.longdouble).reshape(x.shape)


_pi_cache = {}


def pi_digits(n):
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239), in integers."""
    if n not in _pi_cache:
        one = 10 ** (n + 20)

        def atan_inv(k):
            total = term = one // k
            i, sign = 3, -1
            while term:
                term //= k * k
                total += sign * (term // i)
                i, sign = i + 2, -sign
            return total

        _pi_cache[n] = D(16 * atan_inv(5) - 4 * atan_inv(239)) / D(one)
    return _pi_cache[n]


def sample(rng, dtype, low, high, n):
    """n values of [low, high], a third of them close to zero."""
    x = rng.uniform(low, high, n)
    if low < 0 < high:
        x[: n // 3] *= 10.0 ** rng.uniform(-4, 0, n // 3)
    x = rnd(dtype, x)
    lo, hi = rnd(dtype, np.array(low)).f64(), rnd(dtype, np.array(high)).f64()
    return rnd(dtype, np.clip(x.f64(), lo, hi))


def unary(book, rng):
    for name, (ref, low, high, ulps, slack) in UNARY.items():
        for dtype, n in (("f32", 48), ("f64", 24), ("f16", 20), ("bf16", 20)):
            x = sample(rng, dtype, low, high, n)
            if name == "log":  # 1 is a zero of log and log2: relative accuracy there too
                x.v[:4] = rnd(dtype, 1 + np.array([1, -1, 3, 0]) * 2.0**-6).v
            if name in ("log1p", "erfinv", "asin", "acos"):
                x.v[np.abs(x.v) >= 1] = 0.5
            y = unary_ref(name, x)
            book.case(
                "unary/%s/%s" % (name, dtype),
                name,
                [x],
                [y],
                tol=unary_tol(name, dtype, ulps, slack, max(abs(low), abs(high))),
            )
        for dtype in ("f32", "f64"):
            sp = np.array(SPECIAL[dtype])
            if name in MINUS_INF_UNDEFINED:
                sp = sp[sp != -np.inf]
            if name in TRIG:
                big = np.abs(sp) < 1e9
                sp = sp[big | ~np.isfinite(sp)]
                h = arr(dtype, np.array(HUGE[dtype]))
                y = rnd(dtype, pi_multiples_exact(name, h.f64()))
                book.case("unary/%s/%s/huge" % (name, dtype), name, [h], [y], tol=ulp(dtype, ulps))
            x = arr(dtype, sp)
            with np.errstate(all="ignore"):
                y = unary_ref(name, x)
            cancel = 40 if slack else 0
            book.case(
                "unary/%s/%s/special" % (name, dtype),
                name,
                [x],
                [y],
                tol=unary_tol(name, dtype, ulps, slack, cancel),
                signed_zero=name in ("neg", "abs", "sqrt", "floor", "ceil", "round"),
            )
            if name in MINUS_INF_UNDEFINED:
                book.case(
                    "unary/%s/%s/minus_inf" % (name, dtype),
                    name,
                    [arr(dtype, np.array([-np.inf, 1.0]))],
                    [rnd(dtype, np.array([np.nan, float(ref(np.array([1.0], dtype=LD))[0])]))],
                    tol=unary_tol(name, dtype, ulps, slack, 1),
                    nan_free=True,
                )
        # rank 0, an odd rank-3 shape, and nothing at all
        x = sample(rng, "f32", low, high, 1)
        if name in ("log1p", "erfinv"):
            x = arr("f32", np.array([0.25]))
        x = Arr("f32", x.v.reshape(()))
        book.case(
            "unary/%s/scalar" % name,
            name,
            [x],
            [rnd("f32", ref(x.ld()))],
            tol=unary_tol(name, "f32", ulps, slack, max(abs(low), abs(high))),
        )
        book.case(
            "unary/%s/empty" % name,
            name,
            [Arr("f32", np.zeros((2, 0, 3), np.float32))],
            [Arr("f32", np.zeros((2, 0, 3), np.float32))],
        )
    for name, (ref, key, values, ulps) in UNARY_ATTR.items():
        for a in values:
            for dtype in FLOATS:
                x = sample(rng, dtype, -9, 9, 24)
                book.case(
                    "unary/%s/%s/%g" % (name, dtype, a),
                    name,
                    [x],
                    [rnd(dtype, ref(x.ld(), a))],
                    attrs={key: a},
                    tol=ulp(dtype, ulps if dtype in ("f32", "f64") else 1),
                )
        for dtype in ("f32", "f64"):
            x = arr(dtype, np.array(SPECIAL[dtype]))
            with np.errstate(all="ignore"):
                y = rnd(dtype, ref(x.ld(), values[0]))
            book.case(
                "unary/%s/%s/special" % (name, dtype), name, [x], [y], attrs={key: values[0]}, tol=ulp(dtype, ulps)
            )
    for name, ref in UNARY_BOOL.items():
        for dtype in FLOATS:
            x = arr(dtype, np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 2.0**-20]))
            book.case("unary/%s/%s" % (name, dtype), name, [x], [Arr("bool", ref(x.v))])
        for dtype in INTS + ["bool"]:
            x = arr(dtype, np.array([0, 1, 0, 1])) if dtype == "bool" else arr(dtype, np.array([0, 1, 2, 100]))
            book.case("unary/%s/%s" % (name, dtype), name, [x], [Arr("bool", ref(x.v))])
    for dtype in INTS:
        info = np.iinfo(NP[dtype])
        ints = [0, 1, 2, 7, 100, info.max, info.max - 1, info.min] + ([-1, -2, -100] if dtype in SIGNED else [])
        x = wrap(dtype, ints)
        for name, ref in (
            ("neg", lambda v: -v),
            ("abs", abs),
            ("sign", lambda v: (v > 0) - (v < 0)),
            ("square", lambda v: v * v),
            ("relu", lambda v: max(v, 0)),
            ("bitwise_not", lambda v: ~v),
            ("floor", lambda v: v),
            ("ceil", lambda v: v),
            ("round", lambda v: v),
        ):
            book.case("unary/%s/%s" % (name, dtype), name, [x], [wrap(dtype, [ref(v) for v in ints])])
    # integers and bool become f32 if the result is not an integer
    for name in ("exp", "log", "sqrt", "reciprocal", "sin", "tanh", "erf", "sigmoid", "gelu", "softplus"):
        ref, _, _, ulps, slack = UNARY[name]
        for dtype in ("i32", "u8", "i64", "bool"):
            x = arr(dtype, np.array([1, 1, 1])) if dtype == "bool" else arr(dtype, np.array([1, 2, 3]))
            y = rnd("f32", ref(x.ld()))
            book.case("unary/%s/%s" % (name, dtype), name, [x], [y], tol=unary_tol(name, "f32", ulps, slack, 3))
    b = arr("bool", [True, False, True])
    book.case("unary/bitwise_not/bool", "bitwise_not", [b], [Arr("bool", ~b.v)])


# -------------------------------------------------------- second opinions


def cross_check():
    """Where NumPy's and PyTorch's double code differs from the references by more
    than their own accuracy, something is wrong with the reference."""
    x = np.random.default_rng(5).uniform(-4, 4, 500)
    u = np.clip(x / 4.001, -0.999, 0.999)
    p = np.abs(x) + 0.01
    t = {
        "exp": x,
        "expm1": x,
        "log": p,
        "log1p": p,
        "log2": p,
        "sqrt": p,
        "rsqrt": p,
        "reciprocal": x,
        "square": x,
        "sin": x,
        "cos": x,
        "tan": x,
        "asin": u,
        "acos": u,
        "atan": x,
        "sinh": x,
        "cosh": x,
        "tanh": x,
        "erf": x,
        "erfinv": u,
        "sigmoid": x,
        "floor": x,
        "ceil": x,
        "round": x,
        "neg": x,
        "abs": x,
        "sign": x,
    }
    import torch.nn.functional as F

    extra = {
        "relu": F.relu,
        "gelu": F.gelu,
        "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"),
        "silu": F.silu,
        "softplus": lambda v: F.softplus(v, threshold=1e9),
    }
    worst = {}
    for name in list(t) + list(extra):
        v = t.get(name, x)
        want = np.asarray(UNARY[name][0](v.astype(LD)), dtype=np.float64)
        got = (extra[name] if name in extra else getattr(torch, name))(torch.from_numpy(v)).numpy()
        worst[name] = float(np.max(np.abs(got - want) / np.maximum(np.abs(want), 1e-3)))
        assert worst[name] < 3e-13, (name, worst[name])
    return worst


def make(seed):
    cross_check()
    book = Book("unary")
    unary(book, np.random.default_rng(seed))
    return {"unary": book}
