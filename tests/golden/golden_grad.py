"""Gradients by torch.autograd in double, with given cotangents, for every
differentiable op; second order for a few. Inputs avoid kinks and ties, where the
derivative is a convention, unless a case states otherwise."""
import math

import numpy as np
import torch
import torch.nn.functional as F

import golden_nn as nn
from golden_format import *


def grid(x, step=256):
    return np.round(np.asarray(x) * step) / step


def no_zero(x):
    return np.where(x == 0, 1 / 256, x)


class Maker:
    def __init__(self, book, rng):
        self.book, self.rng = book, rng

    def uniform(self, low, high, *shape):
        return no_zero(grid(self.rng.uniform(low, high, shape)))

    def normal(self, *shape):
        return no_zero(grid(self.rng.standard_normal(shape)))

    def case(self, name, op, fn, ins, attrs=None, wrt=None, dtype="f64", second=False, scale=1.0):
        """ins: float arrays (differentiated), Arr (passed unchanged) or None. fn gets tensors."""
        arrays = [x if x is None or isinstance(x, Arr) else rnd(dtype, x) for x in ins]
        if wrt is None:
            wrt = [i for i, x in enumerate(ins) if x is not None and not isinstance(x, Arr)]
        tensors = []
        for i, x in enumerate(arrays):
            if x is None:
                tensors.append(None)
            elif x.dtype in FLOATS:
                tensors.append(torch.from_numpy(x.f64().copy()).requires_grad_(i in wrt))
            elif x.dtype == "bool":
                tensors.append(torch.from_numpy(x.v.copy()))
            else:
                tensors.append(torch.from_numpy(x.v.astype(np.int64)))
        y = fn(*tensors)
        outs = list(y) if isinstance(y, (tuple, list)) else [y]
        cots = [rnd(dtype, grid(self.rng.standard_normal(o.shape), 16)) for o in outs]
        live = [(o, torch.from_numpy(c.f64().copy())) for o, c in zip(outs, cots) if o.requires_grad]
        wt = [tensors[i] for i in wrt]

        def gradients(ys, gs):
            got = torch.autograd.grad(ys, wt, gs, create_graph=second, allow_unused=True) if ys else [None] * len(wt)
            return [torch.zeros_like(t) if g is None else g for t, g in zip(wt, got)]

        grads = gradients([o for o, _ in live], [g for _, g in live])
        cots2, grads2 = [], []
        if second:
            cots2 = [rnd(dtype, grid(self.rng.standard_normal(g.shape), 16)) for g in grads]
            pairs = [(g, torch.from_numpy(c.f64().copy())) for g, c in zip(grads, cots2) if g.requires_grad]
            second_grads = gradients([p[0] for p in pairs], [p[1] for p in pairs])
            grads2 = [rnd(dtype, g.detach().numpy()) for g in second_grads]
        outs = [rnd(dtype, o.detach().numpy()) for o in outs]
        grads = [rnd(dtype, g.detach().numpy()) for g in grads]
        for t in outs + grads + grads2:
            assert np.isfinite(t.v).all(), name
        # Sums of up to ~100 products of order `scale`, at f64 accuracy with a factor of 1000 to
        # spare: a wrong formula is off by 1e-2, one computed in f32 by 1e-7.
        biggest = max([scale] + [float(np.abs(t.v).max()) for t in outs + grads + grads2 if t.v.size])
        if dtype == "f64":
            tol = (1e-12, 1e-13 * biggest)
        elif dtype == "f32":
            tol = (16 * 2.0**-23, 64 * 2.0**-24 * biggest)
        else:  # two roundings to the dtype, of terms no larger than the largest result
            tol = (ulp(dtype, 1)[0], ulp(dtype, 1)[0] * biggest)
        tag = name if dtype == "f64" else name + "/" + dtype
        self.book.case(
            "grad/" + tag,
            op,
            arrays,
            outs,
            attrs=attrs,
            tol=tol,
            cots=cots,
            wrt=wrt,
            grads=grads,
            cots2=cots2,
            grads2=grads2,
        )


def relu2(x):
    return torch.relu(x) ** 2


def unary(m):
    table = {
        "neg": (torch.neg, -3, 3),
        "abs": (torch.abs, -3, 3),
        "sign": (torch.sign, -3, 3),
        "exp": (torch.exp, -2, 2),
        "expm1": (torch.expm1, -2, 2),
        "log": (torch.log, 0.1, 4),
        "log1p": (torch.log1p, -0.8, 4),
        "log2": (torch.log2, 0.1, 4),
        "sqrt": (torch.sqrt, 0.1, 4),
        "rsqrt": (torch.rsqrt, 0.1, 4),
        "reciprocal": (torch.reciprocal, 0.2, 3),
        "square": (torch.square, -3, 3),
        "sin": (torch.sin, -5, 5),
        "cos": (torch.cos, -5, 5),
        "tan": (torch.tan, -1.2, 1.2),
        "asin": (torch.asin, -0.9, 0.9),
        "acos": (torch.acos, -0.9, 0.9),
        "atan": (torch.atan, -3, 3),
        "sinh": (torch.sinh, -2, 2),
        "cosh": (torch.cosh, -2, 2),
        "tanh": (torch.tanh, -2, 2),
        "erf": (torch.erf, -2, 2),
        "erfinv": (torch.erfinv, -0.9, 0.9),
        "sigmoid": (torch.sigmoid, -4, 4),
        "relu": (torch.relu, -3, 3),
        "relu2": (relu2, -3, 3),
        "gelu": (F.gelu, -3, 3),
        "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), -3, 3),
        "silu": (F.silu, -4, 4),
        "softplus": (lambda x: F.softplus(x, threshold=1e9), -4, 4),
        "lecun_tanh": (lambda x: 1.7159 * torch.tanh(2 * x / 3), -3, 3),
        "floor": (torch.floor, -3, 3),
        "ceil": (torch.ceil, -3, 3),
        "round": (torch.round, -3, 3),
    }
    smooth2 = (
        "tanh",
        "gelu",
        "gelu_tanh",
        "exp",
        "log",
        "sigmoid",
        "silu",
        "erf",
        "softplus",
        "square",
        "rsqrt",
        "reciprocal",
        "sin",
        "atan",
        "asin",
        "sqrt",
        "relu2",
        "erfinv",
        "tan",
        "sinh",
        "log1p",
    )
    for name, (fn, low, high) in table.items():
        x = m.uniform(low, high, 2, 5)
        x[np.abs(x - np.round(x)) < 0.01] += 0.05  # away from steps and kinks
        m.case(name, name, fn, [x], second=name in smooth2)
    for name in ("exp", "tanh", "gelu", "sigmoid"):
        m.case(name, name, table[name][0], [m.uniform(-2, 2, 6)], dtype="f32")
    m.case("leaky_relu", "leaky_relu", lambda x: F.leaky_relu(x, 0.1), [m.normal(2, 4)], attrs={"slope": 0.1})
    m.case("elu", "elu", lambda x: F.elu(x, 0.7), [m.normal(2, 4)], attrs={"alpha": 0.7}, second=True)
    # saturated: derivatives go to 0 or 1 without NaN
    far = np.array([-60.0, -25.0, 25.0, 60.0])
    for name in ("sigmoid", "silu", "softplus", "tanh", "gelu", "gelu_tanh", "erf", "lecun_tanh"):
        m.case(name + "/saturated", name, table[name][0], [far])
    m.case("relu/zero", "relu", torch.relu, [np.array([0.0, 1.0, -1.0])])
    m.case("abs/zero", "abs", torch.abs, [np.array([0.0, 1.0, -1.0])])
    # the gradient has the dtype of the input
    x, g = np.array([1.5, -2.0, 0.25]), np.array([0.5, 3.0, -1.0])
    for a, b in (("f32", "f64"), ("f64", "f32"), ("f16", "f32"), ("bf16", "f64")):
        m.book.case(
            "grad/cast/%s_%s" % (a, b),
            "cast",
            [rnd(a, x)],
            [rnd(b, x)],
            attrs={"dtype": CODE[b]},
            cots=[rnd(b, g)],
            wrt=[0],
            grads=[rnd(a, g)],
        )


def binary(m):
    pos = lambda *s: m.uniform(0.3, 3, *s)
    two = {
        "add": (torch.add, m.normal, m.normal),
        "sub": (torch.sub, m.normal, m.normal),
        "mul": (torch.mul, m.normal, m.normal),
        "div": (torch.div, m.normal, pos),
        "pow": (torch.pow, pos, m.normal),
        "minimum": (torch.minimum, m.normal, m.normal),
        "maximum": (torch.maximum, m.normal, m.normal),
        "atan2": (torch.atan2, m.normal, m.normal),
        "hypot": (torch.hypot, m.normal, m.normal),
        "mod": (torch.remainder, m.normal, pos),
        "floor_div": (lambda a, b: torch.floor(a / b), m.normal, pos),
    }
    for name, (fn, fa, fb) in two.items():
        if name == "floor_div":
            fn = lambda a, b: torch.floor(a.detach() / b.detach())
        second = name in ("mul", "div", "pow", "atan2", "hypot")
        m.case(name, name, fn, [fa(2, 3), fb(2, 3)], second=second)
        m.case(name + "/broadcast", name, fn, [fa(2, 1, 3), fb(4, 1)], second=name in ("mul", "div"))
        m.case(name + "/scalar", name, fn, [fa(2, 3), fb()])
    m.case("mul/f32", "mul", torch.mul, [m.normal(2, 3), m.normal(3)], dtype="f32")
    # equal values share the gradient
    tied = [np.array([1.0, 2.0, -3.0, 0.5]), np.array([1.0, 2.5, -3.0, 0.25])]
    m.case("maximum/ties", "maximum", torch.maximum, tied)
    m.case("minimum/ties", "minimum", torch.minimum, tied)
    m.case("mul/self", "mul_self", lambda x: x * x, [m.normal(4)], second=True)
    # x^2 and x^3 at 0 and below: the derivative by x is finite
    m.case(
        "pow/negative_base",
        "pow",
        torch.pow,
        [np.array([-2.0, -0.5, 0.0, 1.5]), Arr("f64", np.array([2.0, 3.0, 2.0, 3.0]))],
    )
    c = Arr("bool", m.rng.integers(0, 2, (2, 4)).astype(bool))
    m.case("where", "where", torch.where, [c, m.normal(2, 4), m.normal(2, 4)])
    m.case(
        "where/broadcast", "where", torch.where, [Arr("bool", np.array([[True], [False]])), m.normal(4), m.normal(2, 4)]
    )
    m.case(
        "clip", "clip", lambda x, a, b: torch.clamp(x, a, b), [m.uniform(-3, 3, 12), np.array(-1.01), np.array(1.03)]
    )
    m.case("clip/low", "clip", lambda x, a, _: torch.clamp_min(x, a), [m.uniform(-3, 3, 8), np.full(8, -0.51), None])
    m.case("clip/high", "clip", lambda x, _, b: torch.minimum(x, b), [m.uniform(-3, 3, 8), None, np.full(8, 0.51)])
    m.case("fma", "fma", lambda a, b, d: a * b + d, [m.normal(2, 3), m.normal(3), m.normal(2, 1)], second=True)


def reductions(m):
    def norm(x, order, axes, keep):
        a = x.abs()
        if math.isinf(order):
            return torch.amax(a, axes, keepdim=keep)
        return (a**order).sum(axes, keepdim=keep) ** (1 / order)

    for i, axes in enumerate(([0], [-1], [0, 2], None)):
        t, keep = (0, 1, 2) if axes is None else tuple(axes), bool(i % 2)
        at = {"keep": int(keep)}
        if axes is not None:
            at["axes"] = axes
        x = m.normal(2, 3, 4)
        m.case("sum/%d" % i, "sum", lambda v: v.sum(t, keepdim=keep), [x], attrs=at)
        m.case("mean/%d" % i, "mean", lambda v: v.mean(t, keepdim=keep), [x], attrs=at)
        distinct = grid(m.rng.permutation(24).reshape(2, 3, 4) / 7.0 - 1.5)
        m.case("max/%d" % i, "max", lambda v: torch.amax(v, t, keepdim=keep), [distinct], attrs=at)
        m.case("min/%d" % i, "min", lambda v: torch.amin(v, t, keepdim=keep), [distinct], attrs=at)
        for ddof in (0, 1):
            m.case(
                "var/%d/ddof%d" % (i, ddof),
                "var",
                lambda v: v.var(t, unbiased=bool(ddof), keepdim=keep),
                [x],
                attrs=dict(at, ddof=ddof),
                second=i == 1,
            )
            m.case(
                "std/%d/ddof%d" % (i, ddof),
                "std",
                lambda v: v.std(t, unbiased=bool(ddof), keepdim=keep),
                [x],
                attrs=dict(at, ddof=ddof),
            )
        for order in (2.0, 1.0, 3.0, math.inf):
            if order != 2.0 and i % 2 == 0:
                continue
            m.case(
                "norm/%d/%g" % (i, order),
                "norm",
                lambda v: norm(v, order, t, keep),
                [distinct + 0.0078125],
                attrs=dict(at, order=order),
                second=order == 2.0 and i == 1,
            )
        m.case(
            "logsumexp/%d" % i, "logsumexp", lambda v: torch.logsumexp(v, t, keepdim=keep), [x], attrs=at, second=i == 1
        )

    tied = np.array([[1.0, 3.0, 3.0, -2.0], [0.5, 0.5, 0.5, 0.5], [1.0, 2.0, -2.0, -2.0]])
    m.case("max/ties", "max", lambda v: torch.amax(v, 1), [tied], attrs={"axes": [1], "keep": 0})
    m.case("min/ties", "min", lambda v: torch.amin(v, 1), [tied], attrs={"axes": [1], "keep": 0})

    def prod(v, axes):
        for a in sorted(axes, reverse=True):
            v = v.prod(a)
        return v

    zeros = m.normal(3, 4)
    zeros[0, 1] = 0  # one zero in a row: its gradient is the product of the others
    zeros[1, 0] = zeros[1, 3] = 0  # two: all gradients are 0
    m.case("prod/0", "prod", lambda v: v.prod(0), [m.normal(3, 4)], attrs={"axes": [0], "keep": 0}, second=True)
    m.case("prod/all", "prod", lambda v: prod(v, [0, 1]), [m.normal(2, 3)], attrs={"keep": 0})
    m.case("prod/zeros", "prod", lambda v: v.prod(1), [zeros], attrs={"axes": [1], "keep": 0})
    m.case(
        "norm/zero",
        "norm",
        lambda v: torch.linalg.vector_norm(v, 2, 1),
        [np.array([[0.0, 0.0], [3.0, -4.0]])],
        attrs={"axes": [1], "keep": 0, "order": 2.0},
    )
    big = np.array([[1e4, -1e4, 1e4 - 1], [-1e4, -1e4, -1e4]])
    m.case("logsumexp/large", "logsumexp", lambda v: torch.logsumexp(v, 1), [big], attrs={"axes": [1], "keep": 0})
    m.case("sum/f32", "sum", lambda v: v.sum(1), [m.normal(3, 5)], attrs={"axes": [1], "keep": 0}, dtype="f32")
    for axis in (0, 1):
        m.case("cumsum/%d" % axis, "cumsum", lambda v: v.cumsum(axis), [m.normal(3, 4)], attrs={"axis": axis})
        m.case("cumprod/%d" % axis, "cumprod", lambda v: v.cumprod(axis), [m.normal(3, 4)], attrs={"axis": axis})
        m.case("cumprod/zeros/%d" % axis, "cumprod", lambda v: v.cumprod(axis), [zeros], attrs={"axis": axis})
        m.case(
            "cummax/%d" % axis,
            "cummax",
            lambda v: v.cummax(axis)[0],
            [grid(m.rng.permutation(12).reshape(3, 4) / 5.0)],
            attrs={"axis": axis},
        )


def views(m):
    x = lambda: m.normal(2, 3, 4)
    a = AUTO
    m.case("reshape", "reshape", lambda v: v.reshape(4, 6), [x()], attrs={"shape": [4, -1]})
    m.case("flatten", "flatten", lambda v: v.flatten(), [x()])
    m.case("expand_dims", "expand_dims", lambda v: v.unsqueeze(1), [x()], attrs={"axis": 1})
    m.case("squeeze", "squeeze", lambda v: v.squeeze(1), [m.normal(2, 1, 3)], attrs={"axis": 1})
    m.case("permute", "permute", lambda v: v.permute(2, 0, 1), [x()], attrs={"axes": [2, 0, 1]})
    m.case("transpose", "transpose", lambda v: v.transpose(-1, -2), [x()])
    m.case("flip", "flip", lambda v: v.flip(1), [x()], attrs={"axis": 1})
    m.case(
        "slice",
        "slice",
        lambda v: v[:, 1:3, ::2],
        [x()],
        attrs={"start": [a, 1, a], "stop": [a, 3, a], "step": [1, 1, 2]},
    )
    m.case(
        "slice/negative",
        "slice",
        lambda v: v.flip(1).flip(2)[:, :, ::2][1:],
        [x()],
        attrs={"start": [1, a, a], "stop": [a, a, a], "step": [1, -1, -2]},
    )
    m.case(
        "slice_axis", "slice_axis", lambda v: v[:, :, 1:3], [x()], attrs={"axis": 2, "start": 1, "stop": 3, "step": 1}
    )
    m.case("broadcast_to", "broadcast_to", lambda v: v.expand(4, 2, 3), [m.normal(2, 1)], attrs={"shape": [4, 2, 3]})
    m.case("contiguous", "contiguous", lambda v: v.contiguous(), [x()])
    m.case(
        "concat",
        "concat",
        lambda *p: torch.cat(p, 1),
        [m.normal(2, 3), m.normal(2, 1), m.normal(2, 2)],
        attrs={"axis": 1},
    )
    m.case("stack", "stack", lambda *p: torch.stack(p, 1), [m.normal(2, 3), m.normal(2, 3)], attrs={"axis": 1})
    m.case(
        "split",
        "split",
        lambda v: torch.split(v, [2, 1, 3], 1),
        [m.normal(2, 6)],
        attrs={"axis": 1, "sizes": [2, 1, 3]},
    )
    m.case(
        "pad",
        "pad",
        lambda v: F.pad(v, (0, 3, 1, 2), value=5.0),
        [m.normal(2, 3)],
        attrs={"low": [1, 0], "high": [2, 3], "value": 5.0},
    )
    m.case("tile", "tile", lambda v: v.repeat(2, 3), [m.normal(2, 3)], attrs={"reps": [2, 3]})
    m.case("repeat", "repeat", lambda v: v.repeat_interleave(3, 1), [m.normal(2, 3)], attrs={"count": 3, "axis": 1})
    m.case("roll", "roll", lambda v: v.roll(2, 1), [m.normal(2, 5)], attrs={"shift": 2, "axis": 1})


def indexing(m):
    i64 = lambda v: Arr("i64", np.array(v, dtype=np.int64))
    m.case("take", "take", lambda x, i: x[i], [m.normal(4, 3), i64([2, 0, 2, -1])], attrs={"axis": 0})
    m.case(
        "take/1", "take", lambda x, i: x[:, i], [m.normal(3, 4), i64([[1, 1], [3, 0]])], attrs={"axis": 1}, second=True
    )
    m.case(
        "take_along_axis",
        "take_along_axis",
        lambda x, i: x.gather(1, i),
        [m.normal(3, 4), i64([[0, 0, 3], [1, 2, 1], [3, 3, 3]])],
        attrs={"axis": 1},
    )
    m.case("gather", "gather", lambda x, i: x[i[..., 0], i[..., 1]], [m.normal(3, 4, 2), i64([[0, 1], [2, 3], [0, 1]])])
    i = i64([[0, 1], [2, 3]])
    m.case(
        "scatter", "scatter", lambda x, j, u: x.index_put((j[:, 0], j[:, 1]), u), [m.normal(3, 4, 2), i, m.normal(2, 2)]
    )
    i = i64([[0], [2], [0], [-1]])
    m.case(
        "scatter_add",
        "scatter_add",
        lambda x, j, u: x.index_put((j[:, 0],), u, accumulate=True),
        [m.normal(3, 4), i, m.normal(4, 4)],
    )
    # of two updates to one position only the last one counts
    i = i64([[1], [1], [0]])
    m.case(
        "scatter/last_wins",
        "scatter",
        lambda x, j, u: torch.stack([u[2], u[1], x[2]]),
        [m.normal(3, 2), i, m.normal(3, 2)],
    )
    m.case("embedding", "embedding", lambda t, i: t[i], [m.normal(5, 3), i64([[4, 0], [4, 2]])])
    distinct = grid(m.rng.permutation(15).reshape(3, 5) / 4.0 - 1)
    for down in (False, True):
        m.case(
            "sort/%d" % down,
            "sort",
            lambda x: torch.sort(x, 1, descending=down)[0],
            [distinct],
            attrs={"axis": 1, "descending": int(down)},
        )
    m.case("sort/axis0", "sort", lambda x: torch.sort(x, 0)[0], [distinct], attrs={"axis": 0, "descending": 0})
    m.case("topk", "topk_values", lambda x: torch.topk(x, 2, 1)[0], [distinct], attrs={"k": 2, "axis": 1})


def layers(m):
    for axis in (0, -1):
        m.case(
            "softmax/%d" % axis,
            "softmax",
            lambda x: torch.softmax(x, axis),
            [m.normal(3, 4)],
            attrs={"axis": axis},
            second=True,
        )
        m.case(
            "log_softmax/%d" % axis,
            "log_softmax",
            lambda x: torch.log_softmax(x, axis),
            [m.normal(3, 4)],
            attrs={"axis": axis},
            second=True,
        )
    m.case("softmax", "softmax", lambda x: torch.softmax(x, 1), [m.normal(3, 4)], attrs={"axis": 1}, dtype="f32")
    big = np.array([[1e4, -1e4, 0.0], [1e4, 1e4 - 1, -1e4]])
    m.case("softmax/large", "softmax", lambda x: torch.softmax(x, 1), [big], attrs={"axis": 1})
    m.case("log_softmax/large", "log_softmax", lambda x: torch.log_softmax(x, 1), [big], attrs={"axis": 1})
    for name, w, b in (("both", True, True), ("weight", True, False), ("none", False, False)):
        ins = [m.normal(3, 5), m.normal(5) if w else None, m.normal(5) if b else None]
        m.case(
            "layer_norm/" + name,
            "layer_norm",
            lambda x, g, c: nn.layer_norm(x, g, c, 1e-5),
            ins,
            attrs={"eps": 1e-5},
            second=name != "weight",
        )
        if not b:
            m.case(
                "rms_norm/" + name,
                "rms_norm",
                lambda x, g: nn.rms_norm(x, g, 1e-6),
                ins[:2],
                attrs={"eps": 1e-6},
                second=True,
            )
    m.case(
        "layer_norm",
        "layer_norm",
        lambda x, g, c: nn.layer_norm(x, g, c, 1e-5),
        [m.normal(2, 3, 6), m.normal(6), m.normal(6)],
        attrs={"eps": 1e-5},
        dtype="f32",
    )
    for i, (sa, sb) in enumerate(
        (
            ((3, 4), (4, 2)),
            ((4,), (4,)),
            ((4,), (4, 3)),
            ((2, 4), (4,)),
            ((2, 3, 4), (4, 2)),
            ((2, 1, 3, 4), (3, 4, 2)),
            ((3,), (2, 3, 2)),
        )
    ):
        m.case(
            "matmul/%s_%s" % ("x".join(map(str, sa)), "x".join(map(str, sb))),
            "matmul",
            torch.matmul,
            [m.normal(*sa), m.normal(*sb)],
            second=i in (0, 4),
        )
    m.case(
        "matmul/ta", "matmul", lambda a, b: a.transpose(-1, -2) @ b, [m.normal(4, 3), m.normal(4, 2)], attrs={"ta": 1}
    )
    m.case(
        "matmul/tb",
        "matmul",
        lambda a, b: a @ b.transpose(-1, -2),
        [m.normal(2, 3, 4), m.normal(2, 4)],
        attrs={"tb": 1},
    )
    m.case("matmul", "matmul", torch.matmul, [m.normal(5, 7), m.normal(7, 3)], dtype="f32")
    for name, transposed, sx, sw, o in nn.CONVS:
        if name in ("1d/pointwise", "2d/pointwise", "2d/same"):
            continue
        shrink = lambda s: (1,) + s[1:]
        op = nn.conv_op(transposed, sx)
        m.case(
            "%s/%s" % (op, name),
            op,
            nn.conv_fn(transposed, sx, o),
            [m.normal(*shrink(sx)), m.normal(*sw)],
            attrs=o,
            second=name == "1d/all",
        )
    for name, shape, o in nn.POOLS:
        distinct = grid(m.rng.permutation(int(np.prod(shape))).reshape(shape) / 16.0 - 2)
        for kind, exclude in (("max", False), ("avg", False), ("avg", True)):
            if exclude and "padding" not in o:
                continue
            op = "%s_pool%dd" % (kind, len(shape) - 2)
            m.case(
                "%s/%s%s" % (op, name, "/exclude" if exclude else ""),
                op,
                nn.pool_fn(kind, shape, o, exclude),
                [distinct],
                attrs=dict(o, exclude=int(exclude)),
            )
    for name, shape, pos, o in nn.ROPES:
        if name not in ("half", "interleaved", "partial/half", "positions", "positions/batch"):
            continue
        p = None if pos is None else arr(pos[0], np.array(pos[1]))
        m.case(
            "rope/" + name,
            "rope",
            lambda x, q: nn.rope(x, q, **nn.rope_kwargs(o)),
            [m.normal(*shape), p],
            attrs=dict(o, options=1) if o is not None else None,
        )
    for name, sq, sk, spec, o in nn.ATTENTION:
        if name in ("scale", "odd", "causal/one_query", "mask/bool_broadcast", "grouped/one_kv"):
            continue
        mask = nn.make_mask(m.rng, spec, "f64")
        ins = [m.normal(*sq), m.normal(*sk), m.normal(*sk), mask]
        wrt = [0, 1, 2] + ([3] if spec and spec[0] == "float" else [])
        m.case(
            "attention/" + name,
            "attention",
            lambda q, k, v, w: nn.attention(q, k, v, w, o.get("scale", 0.0), bool(o.get("causal", 0))),
            ins,
            attrs=dict(o, options=1) if o else None,
            wrt=wrt,
            second=name == "causal",
        )
    labels = Arr("i64", np.array([2, 0, 3]))
    m.case("cross_entropy", "cross_entropy", nn.cross_entropy, [m.normal(3, 4), labels], second=True)
    m.case("cross_entropy", "cross_entropy", nn.cross_entropy, [m.normal(3, 4), labels], dtype="f32")
    m.case("cross_entropy/large", "cross_entropy", nn.cross_entropy, [np.array([[1e4, -1e4, 0.0, 1.0]] * 3), labels])


def programs(m):
    """Calls that change how gradients flow; their small programs are in golden_ops.h."""
    m.case("stop_gradient", "stop_gradient", lambda x: x * x.detach(), [m.normal(5)])
    m.case("checkpoint", "checkpoint", lambda x, w: F.gelu(x * w), [m.normal(2, 3), m.normal(3)], second=True)

    class Floor3(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.floor(x)

        @staticmethod
        def backward(ctx, g):
            return 3 * g

    m.case("custom_grad", "custom_grad", Floor3.apply, [m.normal(5)])
    for reverse in (0, 1):

        def rnn(h, w, x):
            ys, steps = [None] * x.shape[0], range(x.shape[0])
            for t in reversed(steps) if reverse else steps:
                h = torch.tanh(h * w + x[t])
                ys[t] = h * x[t]
            return h, torch.stack(ys)

        m.case(
            "scan/%d" % reverse,
            "scan",
            rnn,
            [m.normal(3), m.normal(3), m.normal(4, 3)],
            attrs={"reverse": reverse},
            second=reverse == 0,
        )


def mlp(x, w1, b1, w2, b2, labels):
    return nn.cross_entropy(F.gelu(x @ w1 + b1) @ w2 + b2, labels).mean()


def block(x, wq, wk, wv, wo, g, wu, wd):
    """A decoder block: 4 heads of 2, 2 kv heads, rope, causal, gated silu."""
    t, d = x.shape
    h = nn.rms_norm(x, g, 1e-6)
    q = nn.rope((h @ wq).reshape(1, t, 4, 2).permute(0, 2, 1, 3))
    k = nn.rope((h @ wk).reshape(1, t, 2, 2).permute(0, 2, 1, 3))
    v = (h @ wv).reshape(1, t, 2, 2).permute(0, 2, 1, 3)
    a = nn.attention(q, k, v, causal=True).permute(0, 2, 1, 3).reshape(t, d)
    x = x + a @ wo
    u = nn.layer_norm(x, None, None, 1e-5) @ wu
    return x + (F.silu(u[:, :5]) * u[:, 5:]) @ wd


def chain(x, y):
    """Element-wise ops around reductions, by hand: softmax, then a normalisation."""
    z = x * y + torch.sin(x)
    e = torch.exp(z - torch.amax(z, 1, keepdim=True).detach())
    p = e / e.sum(1, keepdim=True)
    c = p - p.mean(0, keepdim=True)
    return torch.tanh(c * torch.rsqrt((c * c).mean(0, keepdim=True) + 0.25)) * torch.where(x > y, x, -y)


def maze(x):
    """Views of views: nothing here should need a copy to be right."""
    a = x.permute(2, 0, 1).flip(1)[1:, :, ::2]
    b = torch.cat([a, a.flip(2)], 1).transpose(-1, -2)
    c = F.pad(b.reshape(-1, 4), (1, 0, 0, 2))
    return c.expand(2, *c.shape).roll(1, 2)[:, ::3] * x.sum()


def composites(m):
    labels = Arr("i64", np.array([2, 0, 3, 1, 1]))
    for dtype in ("f64", "f32"):
        ins = [m.normal(5, 6), m.normal(6, 7), m.normal(7), m.normal(7, 4), m.normal(4), labels]
        m.case("program/mlp", "program_mlp", mlp, ins, dtype=dtype)
        half = lambda *s: m.normal(*s) / 2
        ins = [m.normal(3, 8), half(8, 8), half(8, 4), half(8, 4), half(8, 8), m.normal(8), half(8, 10), half(5, 8)]
        m.case("program/block", "program_block", block, ins, dtype=dtype)
        m.case(
            "program/chain", "program_chain", chain, [m.normal(4, 7), m.normal(7)], dtype=dtype, second=dtype == "f64"
        )
        m.case("program/maze", "program_maze", maze, [m.normal(2, 3, 4)], dtype=dtype, second=dtype == "f64")
    for dtype in ("bf16", "f16"):
        x = lambda *s: m.rng.integers(-96, 97, s) / 64 + 1 / 64
        m.case("mul", "mul", torch.mul, [x(2, 3), x(3)], dtype=dtype)
        m.case("exp", "exp", torch.exp, [x(6)], dtype=dtype)
        m.case("matmul", "matmul", torch.matmul, [x(3, 4), x(4, 2)], dtype=dtype)
        m.case("sum", "sum", lambda v: v.sum(1), [x(3, 5)], attrs={"axes": [1], "keep": 0}, dtype=dtype)
        m.case("softmax", "softmax", lambda v: torch.softmax(v, 1), [x(3, 4)], attrs={"axis": 1}, dtype=dtype)
        m.case("embedding", "embedding", lambda t, i: t[i], [x(5, 3), Arr("i64", np.array([4, 0, 4]))], dtype=dtype)


def make(seed):
    torch.set_num_threads(1)
    book = Book("grad")
    for i, fn in enumerate((unary, binary, reductions, views, indexing, layers, programs, composites)):
        fn(Maker(book, np.random.default_rng([seed, i])))
    return {"grad": book}
