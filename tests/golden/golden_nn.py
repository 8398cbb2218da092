"""Neural-network ops: softmax, norms, matmul, convolutions, pooling, rope,
attention, cross entropy. References are computed in double by PyTorch. Formulas that
PyTorch 1.13 lacks (rope, attention with empty rows, rms_norm) are implemented here; the
same functions compute the gradients in golden_grad.py."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from golden_format import *


def T(x):
    return torch.from_numpy(np.ascontiguousarray(x.f64()))


def layer_norm(x, w, b, eps):
    return F.layer_norm(x, x.shape[-1:], w, b, eps)


def rms_norm(x, w, eps):
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)
    return y if w is None else y * w


def rope(x, positions=None, dims=0, base=10000.0, scale=1.0, interleaved=False):
    """Pair i of a vector at position p turns by p * scale * base^(-2i/dims)."""
    d = dims or x.shape[-1]
    if positions is None:
        positions = torch.arange(x.shape[-2], dtype=torch.float64)
    theta = base ** (-2.0 * torch.arange(d // 2, dtype=torch.float64) / d)
    angle = (positions * scale).unsqueeze(-1) * theta
    c, s = torch.cos(angle), torch.sin(angle)
    if interleaved:
        a, b = x[..., 0:d:2], x[..., 1:d:2]
        turned = torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)
    else:
        a, b = x[..., : d // 2], x[..., d // 2 : d]
        turned = torch.cat([a * c - b * s, a * s + b * c], -1)
    return torch.cat([turned, x[..., d:]], -1)


def attention(q, k, v, mask=None, scale=0.0, causal=False):
    """Query head h reads kv head h / (heads / kv_heads). A row without keys is 0."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    t, n = q.shape[2], k.shape[2]
    score = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[3]))
    see = torch.ones(score.shape, dtype=torch.bool)
    if mask is not None:
        if mask.dtype == torch.bool:
            see = see & mask
        else:
            score = score + torch.where(torch.isneginf(mask), torch.zeros_like(mask), mask)
            see = see & ~torch.isneginf(mask)
    if causal:
        see = see & torch.ones(t, n, dtype=torch.bool).tril(n - t)
    score = torch.where(see, score, torch.full_like(score, -1e300))
    w = torch.softmax(score, -1)
    return torch.where(see, w, torch.zeros_like(w)) @ v


def cross_entropy(logits, labels):
    return -torch.log_softmax(logits, -1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def conv_case_tol(dtype, terms, scale):
    return sum_tol(dtype, terms, scale)


# name, transposed, x shape, w shape, options; w is (out, in / groups, k) or (in, out / groups, k)
CONVS = [
    ("1d/plain", False, (2, 3, 7), (4, 3, 3), {}),
    ("1d/all", False, (2, 4, 11), (6, 2, 3), dict(stride=[2], padding=[2], dilation=[2], groups=2)),
    ("1d/depthwise", False, (1, 3, 8), (3, 1, 4), dict(padding=[1], groups=3)),
    ("1d/pointwise", False, (2, 3, 5), (2, 3, 1), {}),
    ("2d/plain", False, (1, 2, 5, 6), (3, 2, 3, 3), {}),
    ("2d/same", False, (2, 3, 5, 4), (2, 3, 3, 3), dict(padding=[1, 1])),
    ("2d/stride", False, (1, 2, 8, 7), (2, 2, 3, 2), dict(stride=[2, 3], padding=[1, 0])),
    ("2d/all", False, (2, 4, 9, 8), (4, 2, 3, 2), dict(stride=[2, 1], padding=[2, 1], dilation=[2, 3], groups=2)),
    ("2d/depthwise", False, (1, 4, 5, 5), (8, 1, 3, 3), dict(padding=[1, 1], groups=4)),
    ("2d/pointwise", False, (2, 5, 3, 3), (4, 5, 1, 1), {}),
    ("2d/patch", False, (1, 3, 8, 8), (5, 3, 4, 4), dict(stride=[4, 4])),
    ("1d/plain", True, (2, 3, 5), (3, 4, 3), {}),
    ("1d/all", True, (2, 4, 5), (4, 3, 3), dict(stride=[3], padding=[1], dilation=[2], groups=2, output_padding=[2])),
    ("1d/depthwise", True, (1, 3, 4), (3, 1, 4), dict(stride=[2], padding=[1], groups=3)),
    ("2d/plain", True, (1, 2, 4, 3), (2, 3, 3, 3), {}),
    ("2d/stride", True, (2, 3, 3, 4), (3, 2, 3, 2), dict(stride=[2, 2], padding=[1, 0], output_padding=[1, 0])),
    (
        "2d/all",
        True,
        (1, 4, 4, 3),
        (4, 2, 3, 2),
        dict(stride=[2, 3], padding=[2, 1], dilation=[2, 1], groups=2, output_padding=[1, 2]),
    ),
]


def conv_fn(transposed, shape, options):
    o = dict(options)
    if transposed:
        fn = F.conv_transpose1d if len(shape) == 3 else F.conv_transpose2d
    else:
        fn = F.conv1d if len(shape) == 3 else F.conv2d
    return lambda x, w: fn(x, w, **{k: tuple(v) if isinstance(v, list) else v for k, v in o.items()})


def conv_op(transposed, shape):
    return "conv%s%dd" % ("_transpose" if transposed else "", len(shape) - 2)


POOLS = [
    ("1d/plain", (2, 3, 8), dict(kernel=[2])),
    ("1d/stride", (1, 2, 9), dict(kernel=[3], stride=[2], padding=[1])),
    ("2d/plain", (1, 2, 6, 4), dict(kernel=[2, 2])),
    ("2d/stride", (2, 2, 7, 6), dict(kernel=[3, 2], stride=[2, 1], padding=[1, 1])),
    ("2d/overlap", (1, 1, 5, 5), dict(kernel=[3, 3], stride=[1, 1])),
    ("2d/uneven", (1, 2, 7, 5), dict(kernel=[2, 3], stride=[3, 2], padding=[0, 1])),
]


def pool_fn(kind, shape, o, exclude=False):
    one = len(shape) == 3
    k, s, p = tuple(o["kernel"]), tuple(o.get("stride", o["kernel"])), tuple(o.get("padding", [0] * len(o["kernel"])))
    if kind == "max":
        return lambda x: (F.max_pool1d if one else F.max_pool2d)(x, k, s, p)
    return lambda x: (F.avg_pool1d if one else F.avg_pool2d)(x, k, s, p, False, not exclude)


# x, parameters of the synapses, where lists of them begin
SYNAPSES = [
    ("plain", (4, 3), (3, 5), None),
    ("one", (3,), (3, 2), None),
    ("listed", (2, 3, 6), (17,), [0, 2, 2, 8, 9, 13, 17]),
    ("listed/one", (5,), (9,), [0, 0, 5, 6, 9, 9]),
]

# shapes of q, k, mask kind, options
ATTENTION = [
    ("plain", (2, 2, 4, 8), (2, 2, 5, 8), None, {}),
    ("scale", (1, 2, 3, 4), (1, 2, 3, 4), None, dict(scale=0.3)),
    ("causal", (1, 2, 5, 4), (1, 2, 5, 4), None, dict(causal=1)),
    ("causal/more_keys", (1, 2, 3, 4), (1, 2, 6, 4), None, dict(causal=1)),
    ("causal/one_query", (2, 2, 1, 4), (2, 2, 7, 4), None, dict(causal=1)),
    ("causal/fewer_keys", (1, 1, 5, 4), (1, 1, 3, 4), None, dict(causal=1)),  # the first two rows have no keys
    ("grouped", (2, 4, 3, 4), (2, 2, 5, 4), None, {}),
    ("grouped/one_kv", (1, 3, 3, 4), (1, 1, 4, 4), None, dict(causal=1)),
    ("mask/bool", (2, 2, 3, 4), (2, 2, 5, 4), ("bool", (2, 2, 3, 5)), {}),
    ("mask/bool_broadcast", (2, 2, 3, 4), (2, 2, 5, 4), ("bool", (3, 5)), {}),
    ("mask/float", (2, 2, 3, 4), (2, 2, 5, 4), ("float", (2, 1, 3, 5)), {}),
    ("mask/float_inf", (1, 2, 3, 4), (1, 2, 5, 4), ("inf", (1, 1, 3, 5)), {}),
    ("mask/empty_row", (1, 2, 3, 4), (1, 2, 4, 4), ("empty", (3, 4)), {}),
    ("mask/empty_row_float", (1, 2, 3, 4), (1, 2, 4, 4), ("empty_float", (3, 4)), {}),
    ("mask/bool_causal", (1, 4, 3, 4), (1, 2, 5, 4), ("bool", (1, 1, 3, 5)), dict(causal=1)),
    ("odd", (1, 3, 7, 5), (1, 1, 9, 5), None, dict(causal=1)),
]


def make_mask(rng, spec, dtype):
    if spec is None:
        return None
    kind, shape = spec
    if kind in ("bool", "empty"):
        m = rng.random(shape) < 0.65
        m[..., -1] = True
        if kind == "empty":
            m[..., 1, :] = False
        return Arr("bool", m)
    m = np.round(64 * rng.standard_normal(shape)) / 64
    if kind != "float":
        m[rng.random(shape) < 0.3] = -np.inf
        m[..., -1] = 0.5
    if kind == "empty_float":
        m[..., 1, :] = -np.inf
    return rnd(dtype, m)


def mask_tensor(mask):
    if mask is None:
        return None
    return torch.from_numpy(mask.v.copy()) if mask.dtype == "bool" else T(mask)


ROPES = [
    ("half", (2, 5, 8), None, dict(interleaved=0)),
    ("interleaved", (2, 5, 8), None, dict(interleaved=1)),
    ("default", (3, 6), None, None),
    ("partial/half", (1, 2, 4, 10), None, dict(dims=6, interleaved=0)),
    ("partial/interleaved", (1, 2, 4, 10), None, dict(dims=6, interleaved=1)),
    ("base", (4, 4), None, dict(base=500.0, interleaved=0)),
    ("scale", (4, 4), None, dict(scale=0.25, interleaved=1)),
    ("positions", (2, 4, 6), ("i64", [7, 0, 3, 100]), dict(interleaved=0)),
    ("positions/i32", (2, 4, 6), ("i32", [-2, 5, 3, 9]), dict(interleaved=1)),
    ("positions/f32", (2, 3, 4), ("f32", [0.5, 2.25, 30.0]), dict(interleaved=0)),
    ("positions/batch", (2, 2, 3, 4), ("i64", [[[0, 1, 2]], [[5, 6, 7]]]), dict(interleaved=0)),
]


def rope_kwargs(options):
    o = dict(options or {})
    return {
        "dims": int(o.get("dims", 0)),
        "base": o.get("base", 10000.0),
        "scale": o.get("scale", 1.0),
        "interleaved": bool(o.get("interleaved", 0)),
    }


MATMULS = [
    ((3, 4), (4, 5)),
    ((1, 1), (1, 1)),
    ((7, 13), (13, 5)),
    ((17, 9), (9, 11)),
    ((4,), (4,)),
    ((4,), (4, 3)),
    ((2, 4), (4,)),
    ((3, 2, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 2)),
    ((2, 1, 3, 4), (3, 4, 2)),
    ((5, 1, 2, 3), (1, 4, 3, 2)),
    ((1, 8), (8, 1)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((2, 0, 3), (3, 2)),
]


def norms(book, rng):
    for dtype in FLOATS:
        for axis in (-1, 0, 1):
            x = normal(rng, dtype, (3, 4, 5), 2.0)
            if axis != -1 and dtype in ("f16", "bf16"):
                continue
            book.case(
                "softmax/%s/%d" % (dtype, axis),
                "softmax",
                [x],
                [rnd(dtype, torch.softmax(T(x), axis).numpy())],
                attrs={"axis": axis},
                tol=ulp(dtype, 12 if dtype in ("f32", "f64") else 1),
            )  # exp of x - max (4), the sum, the quotient; |x - max| <= 12 adds 6
            y = torch.log_softmax(T(x), axis).numpy()
            unit = 2.0**-53 if dtype == "f64" else 2.0**-24
            book.case(
                "log_softmax/%s/%d" % (dtype, axis),
                "log_softmax",
                [x],
                [rnd(dtype, y)],
                attrs={"axis": axis},
                tol=(
                    ulp(dtype, 2)[0] if dtype in ("f32", "f64") else ulp(dtype, 1)[0],
                    4 * unit * float(np.abs(y).max()),
                ),
            )
    big = arr(
        "f32",
        np.array(
            [
                [1e4, -1e4, 0, 1e4],
                [-1e4, -1e4, -1e4, -1e4],
                [1e4, 1e4 - 1, 1e4 - 2, 1e4 - 30],
                [0, -50, -87, -110],
                [-np.inf, 0, -np.inf, 1],
                [np.inf, 0, 1, 2],
                [np.nan, 0, 1, 2],
            ]
        ),
    )
    book.case(
        "softmax/large",
        "softmax",
        [big],
        [rnd("f32", torch.softmax(T(big), -1).numpy())],
        attrs={"axis": -1},
        tol=ulp("f32", 12),
    )
    book.case(
        "log_softmax/large",
        "log_softmax",
        [big],
        [rnd("f32", torch.log_softmax(T(big), -1).numpy())],
        attrs={"axis": -1},
        tol=(2.0**-21, 2.0**-22),
    )
    for n in (1, 17, 64, 130):
        x = normal(rng, "f32", (2, n), 3.0)
        book.case(
            "softmax/length%d" % n,
            "softmax",
            [x],
            [rnd("f32", torch.softmax(T(x), -1).numpy())],
            attrs={"axis": -1},
            tol=(16 * 2.0**-23, 2.0**-149),
        )
    for dtype in FLOATS:
        for shape in ((3, 5), (2, 3, 8), (2, 33)):
            if dtype in ("f16", "bf16") and shape != (2, 3, 8):
                continue
            x, w, b = normal(rng, dtype, shape, 2.0), normal(rng, dtype, shape[-1:]), normal(rng, dtype, shape[-1:])
            tag = "%s/%d" % (dtype, shape[-1])
            unit = 2.0**-53 if dtype == "f64" else 2.0**-24
            tol = (ulp(dtype, 1)[0], 32 * unit)  # values of order 1 from sums of order n: 32 half-ulps of 1
            for name, ww, bb in (("both", w, b), ("weight", w, None), ("none", None, None), ("bias", None, b)):
                y = layer_norm(T(x), None if ww is None else T(ww), None if bb is None else T(bb), 1e-5)
                book.case(
                    "layer_norm/%s/%s" % (tag, name),
                    "layer_norm",
                    [x, ww, bb],
                    [rnd(dtype, y.numpy())],
                    attrs={"eps": 1e-5},
                    tol=tol,
                )
                if bb is None:
                    y = rms_norm(T(x), None if ww is None else T(ww), 1e-6)
                    book.case(
                        "rms_norm/%s/%s" % (tag, name),
                        "rms_norm",
                        [x, ww],
                        [rnd(dtype, y.numpy())],
                        attrs={"eps": 1e-6},
                        tol=tol,
                    )
    c = arr("f32", np.full((2, 4), 3.0))
    book.case(
        "layer_norm/constant",
        "layer_norm",
        [c, None, None],
        [arr("f32", np.zeros((2, 4)))],
        attrs={"eps": 1e-5},
        tol=(0.0, 1e-3),
    )
    z = arr("f32", np.zeros((2, 4)))
    book.case("rms_norm/zero", "rms_norm", [z, None], [z], attrs={"eps": 1e-6})
    # a large offset: E[x^2] - E[x]^2 would cancel
    x = rnd("f32", 1e4 + rng.standard_normal((2, 16)))
    book.case(
        "layer_norm/offset",
        "layer_norm",
        [x, None, None],
        [rnd("f32", layer_norm(T(x), None, None, 1e-5).numpy())],
        attrs={"eps": 1e-5},
        tol=(0.0, 4e-3),
    )


def matmuls(book, rng):
    for i, (sa, sb) in enumerate(MATMULS):
        for dtype in FLOATS if i in (0, 3, 12) else ("f32",) if i % 2 else ("f64",):
            a, b = drawn(rng, dtype, sa), drawn(rng, dtype, sb)
            y = np.matmul(a.f64(), b.f64())
            k = sa[-1]
            scale = np.max(np.matmul(np.abs(a.f64()), np.abs(b.f64())), initial=0)
            name = "%s/%s_%s" % (dtype, "x".join(map(str, sa)), "x".join(map(str, sb)))
            tol = sum_tol(dtype, k, scale)
            book.case("matmul/" + name, "matmul", [a, b], [rnd(dtype, y)], tol=tol)
            if len(sa) > 1 and len(sb) > 1:
                at, bt = (Arr(dtype, np.ascontiguousarray(np.swapaxes(t.v, -1, -2))) for t in (a, b))
                book.case("matmul/ta/" + name, "matmul", [at, b], [rnd(dtype, y)], attrs={"ta": 1}, tol=tol)
                book.case("matmul/tb/" + name, "matmul", [a, bt], [rnd(dtype, y)], attrs={"tb": 1}, tol=tol)
                if i % 3 == 0:
                    book.case(
                        "matmul/tab/" + name, "matmul", [at, bt], [rnd(dtype, y)], attrs={"ta": 1, "tb": 1}, tol=tol
                    )
    for dtype in ("i32", "i8", "u8", "i64", "u16"):  # integers wrap, as in NumPy
        x, y = ints(rng, dtype, (3, 7), -90, 90), ints(rng, dtype, (7, 4), -90, 90)
        book.case("matmul/" + dtype, "matmul", [x, y], [wrap(dtype, np.matmul(x.v.astype(object), y.v.astype(object)))])
    book.case("matmul/refused", "matmul", [normal(rng, "f32", (2, 3)), normal(rng, "f32", (4, 2))], status=ERR_SHAPE)
    book.case(
        "matmul/refused_batch",
        "matmul",
        [normal(rng, "f32", (2, 2, 3)), normal(rng, "f32", (3, 3, 2))],
        status=ERR_SHAPE,
    )


def windows(book, rng):
    for name, transposed, sx, sw, o in CONVS:
        for dtype in ("f32", "f64", "f16", "bf16") if name.endswith("/all") else ("f32",):
            x, w = drawn(rng, dtype, sx), drawn(rng, dtype, sw)
            fn = conv_fn(transposed, sx, o)
            y, scale = fn(T(x), T(w)).numpy(), fn(T(x).abs(), T(w).abs()).numpy().max()
            op = conv_op(transposed, sx)
            book.case(
                "%s/%s/%s" % (op, name, dtype),
                op,
                [x, w],
                [rnd(dtype, y)],
                attrs=o,
                tol=sum_tol(dtype, sw[1] * np.prod(sw[2:]), scale),
            )
    for name, shape, o in POOLS:
        for dtype in ("f32", "f64", "bf16") if name == "2d/stride" else ("f32",):
            x = drawn(rng, dtype, shape)
            for kind, exclude in (("max", False), ("avg", False), ("avg", True)):
                y = pool_fn(kind, shape, o, exclude)(T(x)).numpy()
                op = "%s_pool%dd" % (kind, len(shape) - 2)
                tol = (0.0, 0.0) if kind == "max" else sum_tol(dtype, np.prod(o["kernel"]), np.abs(x.f64()).max())
                book.case(
                    "%s/%s/%s%s" % (op, name, dtype, "/exclude" if exclude else ""),
                    op,
                    [x],
                    [rnd(dtype, y)],
                    attrs=dict(o, exclude=int(exclude)),
                    tol=tol,
                )
    x = arr("f32", np.array([[[-np.inf, -np.inf, np.nan, 1.0, -2.0, -3.0]]]))
    book.case(
        "max_pool1d/special",
        "max_pool1d",
        [x],
        [arr("f32", np.array([[[-np.inf, np.nan, -2.0]]]))],
        attrs=dict(kernel=[2]),
    )


def sequence(book, rng):
    for name, shape, pos, o in ROPES:
        for dtype in ("f32", "f64", "f16", "bf16") if name in ("half", "interleaved") else ("f32",):
            x = drawn(rng, dtype, shape)
            p = None if pos is None else arr(pos[0], np.array(pos[1]))
            y = rope(T(x), None if p is None else T(p), **rope_kwargs(o)).numpy()
            # An angle of up to 100 in f32 carries 100 * 2^-24 of error into sine and cosine.
            angle = max(4.0, 0 if p is None else np.abs(p.f64()).max()) * rope_kwargs(o)["scale"]
            unit = 2.0**-53 if dtype == "f64" else 2.0**-24
            book.case(
                "rope/%s/%s" % (name, dtype),
                "rope",
                [x, p],
                [rnd(dtype, y)],
                attrs=dict(o, options=1) if o is not None else None,
                tol=(ulp(dtype, 1)[0], (4 + 2 * angle) * unit * float(np.abs(x.f64()).max())),
            )
    own = np.random.default_rng(6)  # a separate stream, so that the cases below do not change
    for name, shape, params, first in SYNAPSES:
        for dtype in ("f32", "f64"):
            x, sigma = drawn(own, dtype, shape), drawn(own, dtype, params)
            mu, drive, weight = (drawn(own, dtype, params) for _ in range(3))
            source = arr("i64", own.integers(0, shape[-1], params)) if first else None
            seen = x.f64()[..., np.array(source.f64(), dtype=int)] if first else x.f64()[..., None]
            opened = 1 / (1 + np.exp(-sigma.f64() * (seen - mu.f64())))
            if first:
                lists = [slice(a, b) for a, b in zip(first, first[1:])]
                sums = [np.stack([(opened * p.f64())[..., k].sum(-1) for k in lists], -1) for p in (drive, weight)]
            else:
                sums = [(opened * p.f64()).sum(-2) for p in (drive, weight)]
            unit = 2.0**-53 if dtype == "f64" else 2.0**-24
            # an opening is off by the rounding of its argument, of order 30; sums of 6 at most of order 3
            book.case(
                "synapses/%s/%s" % (name, dtype),
                "synapses",
                [x, source, arr("i64", first) if first else None, sigma, mu, drive, weight],
                [rnd(dtype, np.stack(sums, -2))],
                tol=(ulp(dtype, 1)[0], 600 * unit),
            )
    for name, sq, sk, spec, o in ATTENTION:
        for dtype in FLOATS if name in ("plain", "causal/more_keys") else ("f32",):
            q, k, v = drawn(rng, dtype, sq), drawn(rng, dtype, sk), drawn(rng, dtype, sk)
            mask = make_mask(rng, spec, dtype)
            y = attention(T(q), T(k), T(v), mask_tensor(mask), o.get("scale", 0.0), bool(o.get("causal", 0))).numpy()
            assert not np.isnan(y).any()
            unit = 2.0**-53 if dtype == "f64" else 2.0**-24
            # scores of order 10 carry 10 * dims half-ulps into exp; values of order 3
            book.case(
                "attention/%s/%s" % (name, dtype),
                "attention",
                [q, k, v, mask],
                [rnd(dtype, y)],
                attrs=dict(o, options=1) if o else None,
                tol=(ulp(dtype, 1)[0], 32 * unit * float(np.abs(v.f64()).max())),
            )
    for dtype in FLOATS:
        for shape in ((4, 5), (2, 3, 7), (6,)):
            if dtype in ("f16", "bf16") and shape != (4, 5):
                continue
            x = normal(rng, dtype, shape, 2.0)
            labels = arr("i64" if len(shape) == 3 else "i32", rng.integers(0, shape[-1], shape[:-1]))
            y = cross_entropy(T(x), torch.from_numpy(labels.v.astype(np.int64))).numpy()
            unit = 2.0**-53 if dtype == "f64" else 2.0**-24
            book.case(
                "cross_entropy/%s/%d" % (dtype, len(shape)),
                "cross_entropy",
                [x, labels],
                [rnd(dtype, y)],
                tol=(ulp(dtype, 2)[0] if dtype in ("f32", "f64") else ulp(dtype, 1)[0], 16 * unit),
            )
    x = arr("f32", np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [5.0, 5.0, 5.0]]))
    labels = arr("u8", np.array([1, 2, 0]))
    book.case(
        "cross_entropy/large",
        "cross_entropy",
        [x, labels],
        [rnd("f32", cross_entropy(T(x), torch.tensor([1, 2, 0])).numpy())],
        tol=(2.0**-21, 0.0),
    )
    x = normal(rng, "f32", (2, 130), 3.0)
    labels = arr("i64", np.array([129, 64]))
    book.case(
        "cross_entropy/long",
        "cross_entropy",
        [x, labels],
        [rnd("f32", cross_entropy(T(x), torch.tensor([129, 64])).numpy())],
        tol=(2.0**-21, 16 * 2.0**-24),
    )


def make(seed):
    torch.set_num_threads(1)
    book = Book("nn")
    for i, fn in enumerate((norms, matmuls, windows, sequence)):
        fn(book, np.random.default_rng([seed, i]))
    return {"nn": book}
