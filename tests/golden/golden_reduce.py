"""Reductions and cumulative ops over sets of axes, dtypes, lengths and special
values, by NumPy in double."""
import math

import numpy as np
import scipy.special

from golden_format import *


def logsumexp(x, axis, keepdims):
    with np.errstate(all="ignore"):
        return scipy.special.logsumexp(x, axis=axis, keepdims=keepdims)


def norm(order):
    def f(x, axis, keepdims):
        m = np.abs(x)
        if order == 0:
            return np.sum(x != 0, axis=axis, keepdims=keepdims).astype(np.float64)
        if math.isinf(order):
            return np.max(m, axis=axis, keepdims=keepdims)
        return np.sum(m**order, axis=axis, keepdims=keepdims) ** (1 / order)

    return f


AXES = [None, [0], [1], [2], [-1], [0, 2], [1, 2], [-3, -1], [0, 1, 2], [2, 0]]


def np_axes(axes):
    return None if axes is None else tuple(axes)


def count(shape, axes):
    return int(np.prod(shape)) if axes is None else int(np.prod([shape[a] for a in axes]))


def sum_dtype(dtype):
    return dtype if dtype in FLOATS else "u64" if dtype in UNSIGNED else "i64"


def reductions(book, rng):
    def put(name, op, x, y, axes, keep, tol, **attrs):
        if axes is not None:
            attrs["axes"] = axes
        book.case("reduce/" + name, op, [x], [y], attrs=dict(attrs, keep=int(keep)), tol=tol)

    def float_tol(op, dtype, x, y, axes, keep, order=None):
        n, m = count(x.shape, axes), np.abs(x.f64())
        if op in ("max", "min", "any", "all") or order in (0, math.inf):
            return (0.0, 0.0)
        r, a = ulp(dtype, 1)
        unit = 2.0**-53 if dtype == "f64" else 2.0**-24
        walk = 2 + math.sqrt(n)
        scale = {"sum": np.sum, "mean": np.mean}.get(op)
        if scale:
            return (r, a + walk * unit * float(np.max(scale(m, axis=np_axes(axes)))))
        if op == "prod":
            return (r + n * unit, a)
        # var, std, norm, logsumexp: sums of positive terms, so relative; plus one transcendental
        extra = 4 * 2 * unit
        if op == "logsumexp":
            return (r + extra, a + (walk + 4) * unit * max(1.0, float(np.max(np.abs(y)))))
        return (r + walk * unit + 2 * extra, a)

    for i, axes in enumerate(AXES):
        for op, fn in (("sum", np.sum), ("mean", np.mean), ("prod", np.prod), ("max", np.max), ("min", np.min)):
            keep = bool((i + len(op)) % 2)
            dtype = "f32" if i % 3 else "f64"
            x = drawn(rng, dtype, (3, 4, 5))
            y = np.asarray(fn(x.f64(), axis=np_axes(axes), keepdims=keep))
            put("%s/%s/%d" % (op, dtype, i), op, x, rnd(dtype, y), axes, keep, float_tol(op, dtype, x, y, axes, keep))
        for op, fn in (("any", np.any), ("all", np.all)):
            keep = bool((i + len(op) + (op == "all")) % 2)
            x = Arr("bool", rng.random((3, 4, 5)) < (0.15 if op == "any" else 0.85))
            put(
                "%s/bool/%d" % (op, i),
                op,
                x,
                Arr("bool", np.asarray(fn(x.v, axis=np_axes(axes), keepdims=keep))),
                axes,
                keep,
                (0.0, 0.0),
            )
        for op, fn in (("var", np.var), ("std", np.std)):
            for ddof in (0, 1):
                keep = bool((i + ddof) % 2)
                dtype = "f32" if (i + ddof) % 3 else "f64"
                x = rnd(dtype, 2.0 + rng.standard_normal((3, 4, 5)))
                y = np.asarray(fn(x.f64(), axis=np_axes(axes), keepdims=keep, ddof=ddof))
                put(
                    "%s/%s/%d/ddof%d" % (op, dtype, i, ddof),
                    op,
                    x,
                    rnd(dtype, y),
                    axes,
                    keep,
                    float_tol(op, dtype, x, y, axes, keep),
                    ddof=ddof,
                )
        for order in (2.0, 1.0, 3.0, 0.5, 0.0, math.inf):
            if order not in (2.0, 1.0) and i % 4:
                continue
            keep = bool((i + int(order == 1.0)) % 2)
            dtype = "f32" if (i + int(order == 1.0)) % 3 else "f64"
            x = normal(rng, dtype, (3, 4, 5))
            x.v[0, 1, 2] = 0
            y = np.asarray(norm(order)(x.f64(), np_axes(axes), keep))
            put(
                "norm/%s/%d/%g" % (dtype, i, order),
                "norm",
                x,
                rnd(dtype, y),
                axes,
                keep,
                float_tol("norm", dtype, x, y, axes, keep, order),
                order=order,
            )
        keep = bool(i % 2)
        dtype = "f32" if i % 3 else "f64"
        x = drawn(rng, dtype, (3, 4, 5))
        y = np.asarray(logsumexp(x.f64(), np_axes(axes), keep))
        put(
            "logsumexp/%s/%d" % (dtype, i),
            "logsumexp",
            x,
            rnd(dtype, y),
            axes,
            keep,
            float_tol("logsumexp", dtype, x, y, axes, keep),
        )

    for dtype in INTS + ["bool"]:
        x = ints(rng, dtype, (4, 6), -100, 100)
        t = sum_dtype(dtype)
        ob = x.v.astype(object)
        put("sum/%s" % dtype, "sum", x, wrap(t, ob.sum(axis=1)), [1], False, (0.0, 0.0))
        put("prod/%s" % dtype, "prod", x, wrap(t, np.prod(ob + 0, axis=0, keepdims=True)), [0], True, (0.0, 0.0))
        put("mean/%s" % dtype, "mean", x, rnd("f32", x.f64().mean(axis=1)), [1], False, sum_tol("f32", 6, 100))
        put("var/%s" % dtype, "var", x, rnd("f32", x.f64().var(axis=0)), [0], False, (16 * 2.0**-24, 1e-6), ddof=0)
        put("max/%s" % dtype, "max", x, Arr(dtype, x.v.max(axis=1)), [1], False, (0.0, 0.0))
        put("min/%s" % dtype, "min", x, Arr(dtype, x.v.min(axis=0)), [0], False, (0.0, 0.0))
        put("any/%s" % dtype, "any", x, Arr("bool", (x.v != 0).any(axis=1)), [1], False, (0.0, 0.0))
        put("all/%s" % dtype, "all", x, Arr("bool", (x.v != 0).all(axis=0)), [0], False, (0.0, 0.0))
    for dtype in ("f16", "bf16"):
        x = drawn(rng, dtype, (3, 30))
        for op, fn in (
            ("sum", np.sum),
            ("mean", np.mean),
            ("max", np.max),
            ("min", np.min),
            ("var", np.var),
            ("std", np.std),
            ("prod", np.prod),
        ):
            y = np.asarray(fn(x.f64(), axis=1))
            put(
                "%s/%s" % (op, dtype),
                op,
                x,
                rnd(dtype, y),
                [1],
                False,
                float_tol(op, dtype, x, y, [1], False),
                **({"ddof": 0} if op in ("var", "std") else {})
            )
        y = norm(2.0)(x.f64(), 1, False)
        put(
            "norm/%s" % dtype,
            "norm",
            x,
            rnd(dtype, y),
            [1],
            False,
            float_tol("norm", dtype, x, y, [1], False),
            order=2.0,
        )
        y = logsumexp(x.f64(), 1, False)
        put(
            "logsumexp/%s" % dtype,
            "logsumexp",
            x,
            rnd(dtype, y),
            [1],
            False,
            float_tol("logsumexp", dtype, x, y, [1], False),
        )
    # lengths around vector widths, and one long row
    for n in (1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 129):
        x = rnd("f32", rng.standard_normal(n))
        put(
            "sum/length%d" % n,
            "sum",
            x,
            rnd("f32", np.asarray(x.f64().sum())),
            None,
            False,
            sum_tol("f32", n, np.abs(x.f64()).sum()),
        )
        put("max/length%d" % n, "max", x, rnd("f32", np.asarray(x.f64().max())), None, False, (0.0, 0.0))
    x = Arr("f32", np.full((600,), np.float32(0.1)))
    put("sum/long", "sum", x, rnd("f32", np.asarray(x.f64().sum())), None, False, sum_tol("f32", 600, 60))
    # catastrophic for E[x^2] - E[x]^2
    x = rnd("f32", 1e4 + rng.standard_normal((4, 16)))
    put("var/offset", "var", x, rnd("f32", x.f64().var(axis=1)), [1], False, (1e-3, 0.0), ddof=0)
    # NaN, infinities
    s = arr(
        "f32",
        np.array(
            [
                [1, np.nan, 3],
                [np.inf, 1, 2],
                [-np.inf, 1, 2],
                [np.inf, -np.inf, 0],
                [-np.inf, -np.inf, -np.inf],
                [1e4, -1e4, 0],
                [-1e4, -1e4, -1e4],
            ]
        ),
    )
    with np.errstate(all="ignore"):
        for op, fn in (("sum", np.sum), ("mean", np.mean), ("prod", np.prod), ("max", np.max), ("min", np.min)):
            put("%s/special" % op, op, s, rnd("f32", fn(s.f64(), axis=1)), [1], False, (2.0**-22, 1e-12))
        put(
            "logsumexp/special",
            "logsumexp",
            s,
            rnd("f32", np.where(np.isnan(s.v).any(1), np.nan, logsumexp(s.f64(), 1, False))),
            [1],
            False,
            (2.0**-21, 0.0),
        )
        put("any/nan", "any", s, Arr("bool", (s.v != 0).any(axis=1)), [1], False, (0.0, 0.0))
        put(
            "norm/special",
            "norm",
            s,
            rnd("f32", norm(2.0)(s.f64(), 1, False)),
            [1],
            False,
            (2.0**-22, 0.0),
            order=2.0,
        )
    # nothing to reduce over
    e = arr("f32", np.zeros((2, 0)))
    put("sum/empty", "sum", e, arr("f32", np.zeros(2)), [1], False, (0.0, 0.0))
    put("prod/empty", "prod", e, arr("f32", np.ones(2)), [1], False, (0.0, 0.0))
    put("any/empty", "any", e, Arr("bool", np.array([False, False])), [1], False, (0.0, 0.0))
    put("all/empty", "all", e, Arr("bool", np.array([True, True])), [1], False, (0.0, 0.0))
    put("mean/empty", "mean", e, arr("f32", np.array([np.nan, np.nan])), [1], False, (0.0, 0.0))
    put("sum/scalar", "sum", arr("f32", np.array(2.5)), arr("f32", np.array(2.5)), None, False, (0.0, 0.0))


def big_integers(book):
    """Larger than a double holds exactly: reveals a conversion to floats."""
    values = {
        "i64": [2**53 + 1, 2**53, -(2**62) + 1, 7, 2**62 + 3, 2**53 + 3],
        "u64": [2**63 + 1, 2**63, 2**63 + 2, 5, 2**53 + 1, 1],
    }
    for dtype, v in values.items():
        x = wrap(dtype, v)
        for op, y in (("sum", sum(v)), ("prod", math.prod(v)), ("max", max(v)), ("min", min(v))):
            book.case("reduce/%s/%s/large" % (op, dtype), op, [x], [wrap(dtype, y)], attrs={"keep": 0})
        for op, y in (("argmax", v.index(max(v))), ("argmin", v.index(min(v)))):
            book.case("%s/%s/large" % (op, dtype), op, [x], [Arr("i64", np.asarray(y))], attrs={"axis": 0, "keep": 0})
        o = np.array(v, dtype=object)
        for op, y in (("cumsum", np.cumsum(o)), ("cumprod", np.cumprod(o)), ("cummax", np.maximum.accumulate(o))):
            book.case("%s/%s/large" % (op, dtype), op, [x], [wrap(dtype, y)], attrs={"axis": 0})
        m = [[v[0], v[1]], [v[4], v[5]]]
        mm = np.array(m, dtype=object)
        book.case("matmul/%s/large" % dtype, "matmul", [wrap(dtype, m), wrap(dtype, m)], [wrap(dtype, mm.dot(mm))])
        lo, hi = wrap(dtype, v[1]), wrap(dtype, max(v[2], v[4]) - 1)
        y = [min(max(t, v[1]), max(v[2], v[4]) - 1) for t in v]
        book.case("clip/%s/large" % dtype, "clip", [x, lo, hi], [wrap(dtype, y)])
        idx = arr("i64", np.array([[0], [0], [3]]))
        u = wrap(dtype, [v[1], v[0], v[4]])
        y = list(v)
        y[0], y[3] = y[0] + v[1] + v[0], y[3] + v[4]
        book.case("scatter_add/%s/large" % dtype, "scatter_add", [x, idx, u], [wrap(dtype, y)])


def arg(book, rng):
    for op, fn in (("argmax", np.argmax), ("argmin", np.argmin)):
        for dtype in ("f32", "f64", "f16", "bf16", "i8", "u16", "i64", "bool"):
            x = (
                ints(rng, dtype, (3, 4, 5), -3, 4)
                if dtype not in FLOATS
                else arr(dtype, rng.integers(-3, 4, (3, 4, 5)))
            )  # many ties
            for axis in (0, 1, -1):
                if axis != -1 and dtype not in ("f32", "i8"):
                    continue
                keep = axis == 1
                y = fn(x.v, axis=axis)
                book.case(
                    "%s/%s/%d" % (op, dtype, axis),
                    op,
                    [x],
                    [Arr("i64", np.expand_dims(y, axis) if keep else y)],
                    attrs={"axis": axis, "keep": int(keep)},
                )
        x = arr(
            "f32",
            np.array(
                [[1, np.nan, 3, np.nan], [np.inf, 5, np.inf, 5], [-np.inf, 0, -0.0, -np.inf], [0.0, -0.0, 0.0, 0.0]]
            ),
        )
        book.case("%s/special" % op, op, [x], [Arr("i64", fn(x.v, axis=1))], attrs={"axis": 1, "keep": 0})
        x = normal(rng, "f32", (131,))
        book.case("%s/long" % op, op, [x], [Arr("i64", np.asarray(fn(x.v)))], attrs={"axis": 0, "keep": 0})


def cumulative(book, rng):
    for op, fn in (("cumsum", np.cumsum), ("cumprod", np.cumprod), ("cummax", np.maximum.accumulate)):
        for dtype in FLOATS:
            for axis in (0, 1, -1):
                x = drawn(rng, dtype, (3, 4, 5))
                y = fn(x.f64(), axis=axis)
                tol = (0.0, 0.0) if op == "cummax" else sum_tol(dtype, 5, np.cumsum(np.abs(x.f64()), axis=axis).max())
                if op == "cumprod":
                    tol = (ulp(dtype, 1)[0] + 5 * (2.0**-53 if dtype == "f64" else 2.0**-24), ulp(dtype, 1)[1])
                book.case("%s/%s/%d" % (op, dtype, axis), op, [x], [rnd(dtype, y)], attrs={"axis": axis}, tol=tol)
        for dtype in INTS + ["bool"]:
            x = ints(rng, dtype, (2, 7), -9, 10)
            t = dtype if op == "cummax" else sum_dtype(dtype)
            y = fn(x.v.astype(object) + 0, axis=1)
            book.case(
                "%s/%s" % (op, dtype), op, [x], [arr("bool", y) if t == "bool" else wrap(t, y)], attrs={"axis": 1}
            )
        x = arr("f32", np.array([[1, 0, np.nan, 2], [1, np.inf, -1, -np.inf], [2, 0, 3, np.inf]]))
        with np.errstate(all="ignore"):
            book.case("%s/special" % op, op, [x], [rnd("f32", fn(x.f64(), axis=1))], attrs={"axis": 1})
        x = normal(rng, "f32", (70,))
        y = fn(x.f64(), axis=0)
        tol = {
            "cumsum": sum_tol("f32", 70, np.abs(x.f64()).sum()),
            "cumprod": (72 * 2.0**-24, 70 * 2.0**-149),
            "cummax": (0.0, 0.0),
        }[op]
        book.case("%s/long" % op, op, [x], [rnd("f32", y)], attrs={"axis": 0}, tol=tol)
        book.case(
            "%s/empty" % op, op, [arr("f32", np.zeros((2, 0)))], [arr("f32", np.zeros((2, 0)))], attrs={"axis": 1}
        )


def make(seed):
    book = Book("reduce")
    rng = np.random.default_rng(seed)
    reductions(book, rng)
    arg(book, rng)
    cumulative(book, rng)
    big_integers(book)
    return {"reduce": book}
