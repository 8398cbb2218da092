"""Shapes beyond one vector, tile or task. The inputs are small integers (or
binary fractions) made by rule on both sides; most results are exact, because
every partial sum fits the significand."""
import numpy as np
import scipy.special
import torch

import golden_nn as nn
from golden_array import order
from golden_format import *


def tensor(x):
    return torch.from_numpy(x.f64().copy())


def reductions(book):
    x = Gen("f32", (40009,), 1, -8, 9)
    for op, fn in (("sum", np.sum), ("max", np.max), ("min", np.min)):
        book.case("large/%s/flat" % op, op, [x], [rnd("f32", np.asarray(fn(x.f64())))], attrs={"keep": 0})
    # Numbers of order 5, sums of squares exact below 2^24: only the last operations round.
    for op, y in (("mean", x.f64().mean()), ("var", x.f64().var()), ("norm", np.sqrt((x.f64() ** 2).sum()))):
        attrs = {"keep": 0, "order": 2.0} if op == "norm" else {"keep": 0, "ddof": 0} if op == "var" else {"keep": 0}
        # 200 half-ulps: the random walk of 40009 roundings
        tol = (1e-5, 1e-7) if op == "var" else (200 * 2.0**-24, 1e-7)
        book.case("large/%s/flat" % op, op, [x], [rnd("f32", np.asarray(y))], attrs=attrs, tol=tol)
    x = Gen("f32", (37, 11, 29), 2, -8, 9)
    for axes in ([0], [1], [2], [0, 2], [0, 1], [1, 2]):
        tag = "".join(map(str, axes))
        y = x.f64().sum(axis=tuple(axes))
        book.case("large/sum/%s" % tag, "sum", [x], [rnd("f32", y)], attrs={"axes": axes, "keep": 0})
        if len(axes) == 2:
            y = x.f64().max(axis=tuple(axes), keepdims=True)
            book.case("large/max/%s" % tag, "max", [x], [rnd("f32", y)], attrs={"axes": axes, "keep": 1})
    z = Gen("i8", (301, 7), 4, -90, 90)
    x = Gen("i8", (6, 3001), 3, -8, 9)
    for op, fn in (("argmax", np.argmax), ("argmin", np.argmin)):
        book.case("large/%s" % op, op, [x], [Arr("i64", fn(x.v, axis=1))], attrs={"axis": 1, "keep": 0})
        book.case("large/%s/0" % op, op, [z], [Arr("i64", fn(z.v, axis=0))], attrs={"axis": 0, "keep": 0})
    y = x.v.astype(np.int64).sum(axis=1)
    book.case("large/sum/i8", "sum", [x], [Arr("i64", y)], attrs={"axes": [1], "keep": 0})
    x = Gen("f32", (2, 300), 5, -8, 9)
    book.case("large/cumsum", "cumsum", [x], [rnd("f32", x.f64().cumsum(1))], attrs={"axis": 1})


def rows(book):
    x = Gen("f32", (2, 300), 6, -20, 21, 2)
    book.case(
        "large/softmax",
        "softmax",
        [x],
        [rnd("f32", scipy.special.softmax(x.f64(), 1))],
        attrs={"axis": 1},
        tol=(24 * 2.0**-23, 0.0),
    )
    book.case(
        "large/log_softmax",
        "log_softmax",
        [x],
        [rnd("f32", scipy.special.log_softmax(x.f64(), 1))],
        attrs={"axis": 1},
        tol=(2.0**-22, 2.0**-20),
    )
    y = scipy.special.logsumexp(x.f64(), axis=1)
    book.case(
        "large/logsumexp", "logsumexp", [x], [rnd("f32", y)], attrs={"axes": [1], "keep": 0}, tol=(2.0**-21, 0.0)
    )
    y = nn.layer_norm(tensor(x), None, None, 1e-5).numpy()
    book.case(
        "large/layer_norm",
        "layer_norm",
        [x, None, None],
        [rnd("f32", y)],
        attrs={"eps": 1e-5},
        tol=(2.0**-22, 32 * 2.0**-24),
    )
    y = nn.rms_norm(tensor(x), None, 1e-6).numpy()
    book.case(
        "large/rms_norm", "rms_norm", [x, None], [rnd("f32", y)], attrs={"eps": 1e-6}, tol=(2.0**-22, 32 * 2.0**-24)
    )
    x = Gen("i16", (2, 400), 7, -60, 61)
    for descending in (0, 1):
        idx = np.array([order(row, bool(descending)) for row in x.v], dtype=np.int64)
        attrs = {"axis": 1, "descending": descending}
        book.case("large/argsort/%d" % descending, "argsort", [x], [Arr("i64", idx)], attrs=attrs)
        book.case("large/sort/%d" % descending, "sort", [x], [Arr("i16", np.take_along_axis(x.v, idx, 1))], attrs=attrs)
    x = Gen("f32", (3, 1000), 8, -3000, 3000)
    idx = np.array([order(row, True)[:7] for row in x.v], dtype=np.int64)
    book.case(
        "large/topk",
        "topk",
        [x],
        [Arr("f32", np.take_along_axis(x.v, idx, 1)), Arr("i64", idx)],
        attrs={"k": 7, "axis": 1},
    )


def products(book):
    shapes = (
        ((33, 257), (257, 24)),
        ((1, 300), (300, 65)),
        ((70, 9), (9, 1)),
        ((65, 64), (64, 17)),
        ((300,), (300, 33)),
        ((2, 9, 70), (70, 19)),
        ((5, 1000), (1000, 3)),
    )
    for i, (sa, sb) in enumerate(shapes):
        for dtype in ("f32", "f64") if i == 0 else ("f32",):
            a, b = Gen(dtype, sa, 10 + i, -8, 9), Gen(dtype, sb, 20 + i, -8, 9)
            y = rnd(dtype, np.matmul(a.f64(), b.f64()))
            tag = "%s/%s_%s" % (dtype, "x".join(map(str, sa)), "x".join(map(str, sb)))
            book.case("large/matmul/" + tag, "matmul", [a, b], [y])
    a, b = Gen("f32", (64, 33), 30, -8, 9), Gen("f32", (29, 64), 31, -8, 9)
    y = rnd("f32", np.matmul(a.f64().T, b.f64().T))
    book.case("large/matmul/tab", "matmul", [a, b], [y], attrs={"ta": 1, "tb": 1})
    for dtype in ("f16", "bf16"):
        a, b = Gen(dtype, (17, 130), 32, -8, 9, 3), Gen(dtype, (130, 21), 33, -8, 9, 3)
        # exact in f32, one rounding to the dtype: exact
        book.case("large/matmul/%s" % dtype, "matmul", [a, b], [rnd(dtype, np.matmul(a.f64(), b.f64()))])
    a, b = Gen("i8", (9, 70), 34, -90, 90), Gen("i8", (70, 33), 35, -90, 90)
    book.case(
        "large/matmul/i8",
        "matmul",
        [a, b],
        [wrap("i8", np.matmul(a.v.astype(np.int64), b.v.astype(np.int64)).astype(object))],
    )
    convs = (
        ("2d", False, (1, 5, 13, 14), (7, 5, 3, 3), dict(padding=[1, 1])),
        ("2d/stride", False, (2, 6, 17, 15), (8, 3, 3, 3), dict(stride=[2, 2], groups=2)),
        ("1d", False, (1, 3, 300), (2, 3, 5), dict(padding=[2])),
        ("2d", True, (1, 6, 8, 9), (6, 5, 3, 3), dict(stride=[2, 2], padding=[1, 1])),
        ("2d/depthwise", False, (1, 8, 12, 11), (8, 1, 3, 3), dict(padding=[1, 1], groups=8)),
        ("2d/pointwise", False, (1, 33, 6, 7), (17, 33, 1, 1), {}),
    )
    for i, (name, transposed, sx, sw, o) in enumerate(convs):
        x, w = Gen("f32", sx, 40 + i, -8, 9), Gen("f32", sw, 50 + i, -8, 9)
        op = nn.conv_op(transposed, sx)
        y = nn.conv_fn(transposed, sx, o)(tensor(x), tensor(w)).numpy()
        book.case("large/%s/%s" % (op, name), op, [x, w], [rnd("f32", y)], attrs=o)
    x = Gen("f32", (1, 2, 21, 20), 60, -30, 31)
    o = dict(kernel=[3, 3], stride=[2, 2], padding=[1, 1])
    for kind in ("max", "avg"):
        y = nn.pool_fn(kind, x.shape, o)(tensor(x)).numpy()
        book.case(
            "large/%s_pool2d" % kind,
            "%s_pool2d" % kind,
            [x],
            [rnd("f32", y)],
            attrs=o,
            tol=(0.0, 0.0) if kind == "max" else (2.0**-23, 0.0),
        )
    for name, sq, sk, o in (
        ("causal", (1, 4, 9, 16), (1, 2, 70, 16), dict(causal=1)),
        ("plain", (1, 1, 17, 24), (1, 1, 131, 24), {}),
    ):
        q, k, v = Gen("f32", sq, 61, -8, 9, 3), Gen("f32", sk, 62, -8, 9, 3), Gen("f32", sk, 63, -8, 9, 3)
        y = nn.attention(tensor(q), tensor(k), tensor(v), None, 0.0, bool(o)).numpy()
        # scores of order 2 are exact but for the scale; weights sum to 1, values of order 1
        book.case(
            "large/attention/" + name,
            "attention",
            [q, k, v, None],
            [rnd("f32", y)],
            attrs=dict(o, options=1) if o else None,
            tol=(2.0**-22, 32 * 2.0**-24),
        )


def elements(book):
    a, b = Gen("f32", (7, 1, 17), 70, -8, 9), Gen("f32", (11, 1), 71, -8, 9)
    book.case("large/add/broadcast", "add", [a, b], [rnd("f32", a.f64() + b.f64())])
    x = Gen("f32", (517,), 72, -512, 513, 6)
    book.case("large/exp", "exp", [x], [rnd("f32", np.exp(x.ld()))], tol=ulp("f32", 4))
    x, i = Gen("i16", (50, 7), 73, -99, 100), Gen("i32", (83,), 74, -50, 50)
    book.case("large/take", "take", [x, i], [Arr("i16", x.v[i.v])], attrs={"axis": 0})
    x, i, u = Gen("f32", (50, 3), 75, -9, 10), Gen("i64", (200, 1), 76, -50, 50), Gen("f32", (200, 3), 77, -9, 10)
    y = x.f64().copy()
    np.add.at(y, i.v[:, 0], u.f64())
    book.case("large/scatter_add", "scatter_add", [x, i, u], [rnd("f32", y)])
    y = x.v.copy()
    for row, new in zip(i.v[:, 0], u.v):
        y[row] = new
    book.case("large/scatter", "scatter", [x, i, u], [Arr("f32", y)])
    x = Gen("u8", (11, 5, 19), 78, 0, 256)
    book.case(
        "large/permute",
        "permute",
        [x],
        [Arr("u8", np.ascontiguousarray(x.v.transpose(2, 0, 1)))],
        attrs={"axes": [2, 0, 1]},
    )
    x = Gen("i8", (21, 17), 79, -99, 100)
    y = np.pad(x.v, ((2, 1), (0, 3)), constant_values=7)
    book.case("large/pad", "pad", [x], [Arr("i8", y)], attrs={"low": [2, 0], "high": [1, 3], "value": 7.0})


def make(seed):
    book = Book("large")
    for fn in (reductions, rows, products, elements):
        fn(book)
    return {"large": book}
