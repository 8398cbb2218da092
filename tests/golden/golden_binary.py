"""Element-wise ops of two and three inputs, dtypes, broadcasting. Exact results come
from IEEE arithmetic of the hardware, Python integers, rationals, and NumPy for floor_div and
mod; transcendental functions are computed in long double, as in golden_unary.py."""
import math
from fractions import Fraction

import numpy as np
import torch

from golden_format import *
from golden_unary import sample


# ----------------------------------------------------- references: two inputs


def exact_round(dtype, frac, like):
    """A Fraction to the nearest f32 or f64, ties to even; like gives the sign of zero."""
    t = NP[dtype]
    with np.errstate(all="ignore"):
        x = t(float(frac)) if abs(frac) < Fraction(2) ** 1023 else t(math.copysign(math.inf, frac))
        best = None
        for c in (np.nextafter(x, t(-np.inf)), x, np.nextafter(x, t(np.inf))):
            if not np.isfinite(c):
                continue
            key = (
                abs(Fraction(float(c)) - frac),
                int(np.array(c).view(np.uint32 if dtype == "f32" else np.uint64)) & 1,
            )
            if best is None or key < best[0]:
                best = (key, c)
    return best[1]


def py_floor_div(a, b):
    """NumPy's and Python's: the floor of the exact quotient."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if b == 0:
        return math.nan if a == 0 else math.copysign(math.inf, a) * math.copysign(1, b)
    return float(np.floor_divide(np.float64(a), np.float64(b)))


def f_pair(fn):
    return lambda a, b: np.array(
        [fn(float(x), float(y)) for x, y in zip(a.reshape(-1), b.reshape(-1))], dtype=np.float64
    ).reshape(a.shape)


def numpy_in(dtype, fn):
    """NumPy's own scalar code in the dtype: exact by construction (fmod)."""

    def f(a, b):
        t = NP[dtype]
        with np.errstate(all="ignore"):
            return fn(a.astype(t), b.astype(t))

    return f


# name: (long double reference, ulps). add, sub, mul, div: IEEE, exact.
BINARY = {
    "add": (np.add, 0),
    "sub": (np.subtract, 0),
    "mul": (np.multiply, 0),
    "div": (np.divide, 0),
    "pow": (np.power, 4),
    "minimum": (np.minimum, 0),
    "maximum": (np.maximum, 0),
    "atan2": (np.arctan2, 4),
    "hypot": (np.hypot, 4),
}
NUMPY_BINARY = {"floor_div": np.floor_divide, "mod": np.mod}
COMPARE = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
LOGICAL = {
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
}
PAIRS = {
    "f32": [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        -3.0,
        np.inf,
        -np.inf,
        np.nan,
        2.0**-149,
        -(2.0**-126),
        3.4028234663852886e38,
        -2e38,
        7.25,
    ],
    "f64": [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        -3.0,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        -(2.0**-1022),
        1.7976931348623157e308,
        -1e308,
        7.25,
    ],
}


def binary_ref(name, dtype, a, b):
    """a, b: Arr of one dtype, already broadcast."""
    with np.errstate(all="ignore"):
        if name in ("add", "sub", "mul", "div", "minimum", "maximum") and dtype in ("f32", "f64"):
            return Arr(dtype, BINARY[name][0](a.v, b.v))  # IEEE: one rounding by the hardware
        if name in NUMPY_BINARY:
            t = "f32" if dtype in ("f16", "bf16") else dtype
            y = NUMPY_BINARY[name](a.v.astype(NP[t]), b.v.astype(NP[t]))
            return rnd(dtype, y.astype(np.float64))
        return rnd(dtype, BINARY[name][0](a.ld(), b.ld()))


def binary(book, rng):
    ops = list(BINARY) + list(NUMPY_BINARY)
    for name in ops:
        ulps = BINARY[name][1] if name in BINARY else 0
        for dtype, n in (("f32", 40), ("f64", 20), ("f16", 16), ("bf16", 16)):
            a, b = sample(rng, dtype, -9, 9, n), sample(rng, dtype, -4, 4, n)
            if name == "pow":
                a = rnd(dtype, np.abs(a.f64()) + 0.05)
            if name in ("mod", "floor_div"):
                b.v[np.abs(b.v) < 0.1] = 1.5
            y = binary_ref(name, dtype, a, b)
            tol = ulp(dtype, ulps if dtype in ("f32", "f64") else 1)
            if ulps == 0:  # also f16 and bf16: f32 has enough bits that rounding twice equals rounding once
                tol = (0.0, 0.0)
            if name == "mod":  # fmod is exact, adding b rounds once
                tol = ulp(dtype, 1)
            book.case("binary/%s/%s" % (name, dtype), name, [a, b], [y], tol=tol)
        for dtype in ("f32", "f64"):
            v = np.array(PAIRS[dtype])
            a, b = arr(dtype, v[:, None]), arr(dtype, v[None, :])
            fa, fb = (Arr(dtype, np.ascontiguousarray(np.broadcast_to(t.v, (len(v), len(v))))) for t in (a, b))
            y = binary_ref(name, dtype, fa, fb)
            book.case(
                "binary/%s/%s/special" % (name, dtype),
                name,
                [a, b],
                [y],
                tol=ulp(dtype, 1 if name == "mod" else ulps),
                signed_zero=name in ("add", "sub", "mul", "div"),
            )
    # a quotient that rounds up to an integer: the floor of the true quotient is one less
    a, b = arr("f64", np.array([1.0, -1.0, 6.0, 0.7, 1e15])), arr("f64", np.array([0.1, 0.1, 0.1, 0.1, 0.3]))
    for name, fn in NUMPY_BINARY.items():
        book.case(
            "binary/%s/f64/inexact_quotient" % name,
            name,
            [a, b],
            [Arr("f64", fn(a.v, b.v))],
            tol=ulp("f64", 1 if name == "mod" else 0),
        )
    # a negative base with an integer exponent
    a, b = arr("f32", np.array([-2.0, -2.0, -2.0, -2.0, -0.5, -8.0])), arr(
        "f32", np.array([3.0, 2.0, -3.0, 0.5, 0.0, 1 / 3])
    )
    book.case("binary/pow/f32/negative_base", "pow", [a, b], [binary_ref("pow", "f32", a, b)], tol=ulp("f32", 4))
    for name, fn in COMPARE.items():
        for dtype in ("f32", "f64", "f16", "bf16"):
            v = np.array([0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan, 2.0**-20])
            a, b = arr(dtype, v[:, None]), arr(dtype, v[None, :])
            book.case("binary/%s/%s" % (name, dtype), name, [a, b], [Arr("bool", fn(a.v, b.v))])
        for dtype in INTS + ["bool"]:
            a, b = int_grid(dtype)
            book.case("binary/%s/%s" % (name, dtype), name, [a, b], [Arr("bool", fn(a.v, b.v))])
    for name, fn in LOGICAL.items():
        for dtype in ("f32", "bf16", "i8", "u64", "bool"):
            v = np.array([0.0, -0.0, 1.0, 2.0, np.nan]) if dtype in FLOATS else np.array([0, 1, 2, 0, 7])
            a, b = arr(dtype, v[:, None]), arr(dtype, v[None, :])
            book.case("binary/%s/%s" % (name, dtype), name, [a, b], [Arr("bool", fn(a.v, b.v))])


def int_values(dtype):
    if dtype == "bool":
        return [0, 1]
    info = np.iinfo(NP[dtype])
    v = [0, 1, 2, 3, 7, 100, int(info.max), int(info.max) - 1]
    if dtype in SIGNED:
        v += [-1, -2, -3, -7, -100, int(info.min), int(info.min) + 1]
    return v


def int_grid(dtype):
    v = np.array(int_values(dtype), dtype=object)
    if dtype == "bool":
        return arr(dtype, np.array([[0], [1]])), arr(dtype, np.array([[0, 1]]))
    return wrap(dtype, v[:, None]), wrap(dtype, v[None, :])


def shl(bits):
    return lambda a, b: a << b if 0 <= b < bits else 0


def shr(bits):
    return lambda a, b: a >> b if 0 <= b < bits else (-1 if a < 0 else 0)


def integers(book, rng):
    for dtype in INTS:
        bits = 8 * SIZE[dtype]
        table = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "floor_div": lambda a, b: 0 if b == 0 else a // b,
            "mod": lambda a, b: 0 if b == 0 else a % b,
            "minimum": min,
            "maximum": max,
            "bitwise_and": lambda a, b: a & b,
            "bitwise_or": lambda a, b: a | b,
            "bitwise_xor": lambda a, b: a ^ b,
        }
        a, b = int_grid(dtype)
        v = int_values(dtype)
        for name, fn in table.items():
            book.case(
                "int/%s/%s" % (name, dtype),
                name,
                [a, b],
                [wrap(dtype, np.array([[fn(x, y) for y in v] for x in v], dtype=object))],
            )
        counts = [0, 1, 2, bits // 2, bits - 1, bits, bits + 1, 100] + ([-1, -8] if dtype in SIGNED else [])
        c = wrap(dtype, np.array([counts], dtype=object))
        for name, fn in (("shift_left", shl(bits)), ("shift_right", shr(bits))):
            book.case(
                "int/%s/%s" % (name, dtype),
                name,
                [a, c],
                [wrap(dtype, np.array([[fn(x, y) for y in counts] for x in v], dtype=object))],
            )
        exps = [0, 1, 2, 3, 5, 13]
        book.case(
            "int/pow/%s" % dtype,
            "pow",
            [a, wrap(dtype, np.array([exps], dtype=object))],
            [wrap(dtype, np.array([[x**y for y in exps] for x in v], dtype=object))],
        )
        small = [1, 2, 3, 7, 100] + ([-1, -5] if dtype in SIGNED else [])
        q = np.array([[np.float32(x) / np.float32(y) for y in small] for x in small], dtype=np.float32)
        book.case(
            "int/div/%s" % dtype,
            "div",
            [wrap(dtype, np.array(small, dtype=object)[:, None]), wrap(dtype, np.array(small, dtype=object)[None, :])],
            [Arr("f32", q)],
        )
        with np.errstate(all="ignore"):
            zero = np.array([5, 0, 1], dtype=np.float32) / np.zeros(3, dtype=np.float32)
        book.case(
            "int/div/%s/zero" % dtype, "div", [wrap(dtype, [5, 0, 1]), wrap(dtype, [0, 0, 0])], [Arr("f32", zero)]
        )
    a, b = int_grid("bool")
    for name, fn in (
        ("bitwise_and", np.logical_and),
        ("bitwise_or", np.logical_or),
        ("bitwise_xor", np.logical_xor),
        ("minimum", np.minimum),
        ("maximum", np.maximum),
        ("add", np.logical_or),
        ("mul", np.logical_and),
    ):
        book.case("int/%s/bool" % name, name, [a, b], [Arr("bool", fn(a.v, b.v))])


def promote(a, b):
    """The rule of mica.h, written without its table."""
    if a == b:
        return a
    if a in MANT or b in MANT:
        if a in MANT and b in MANT:
            if {a, b} == {"f16", "bf16"}:
                return "f32"
            return a if SIZE[a] > SIZE[b] else b
        return a if a in MANT else b
    if a == "bool" or b == "bool":
        return b if a == "bool" else a
    if (a in SIGNED) == (b in SIGNED):
        return a if SIZE[a] > SIZE[b] else b
    s, u = (a, b) if a in SIGNED else (b, a)
    if SIZE[s] > SIZE[u]:
        return s
    return {1: "i16", 2: "i32", 4: "i64", 8: "i64"}[SIZE[u]]


def promotion(book, rng):
    table = np.array([[CODE[promote(a, b)] for b in DTYPES] for a in DTYPES])
    book.case("promote/table", "promote_table", [], [Arr("i32", table.astype(np.int32))])
    for a in DTYPES:
        for b in DTYPES:
            t = promote(a, b)
            x = [0, 1, 1] if a == "bool" else [3, 1, 2] if a not in SIGNED + FLOATS else [-3, 1, 2]
            y = [1, 0, 1] if b == "bool" else [4, 2, 1] if b not in SIGNED + FLOATS else [4, -2, 1]
            ax, ay = arr(a, np.array(x)), arr(b, np.array(y))
            total = [bool(p) or bool(q) for p, q in zip(x, y)] if t == "bool" else [p + q for p, q in zip(x, y)]
            out = wrap(t, total) if t in INTS else arr(t, np.array(total))
            book.case("promote/add/%s_%s" % (a, b), "add", [ax, ay], [out])
    # what a constant without a dtype becomes
    for dtype in INTS + FLOATS:
        x = arr(dtype, np.array([1, 2, 3]))
        book.case("promote/scalar/%s" % dtype, "add", [x, 2.0], [arr(dtype, np.array([3, 4, 5]))])
        t = dtype if dtype in FLOATS else "f32"
        book.case("promote/scalar_fraction/%s" % dtype, "mul", [0.5, x], [arr(t, np.array([0.5, 1.0, 1.5]))])


# ------------------------------------------------------------------- casts


def cast_values(src):
    if src == "bool":
        return [0, 1, 1, 0]
    if src in FLOATS:
        v = [0.0, 0.25, 1.0, 1.75, 2.5, 3.5, 100.5, 127.0]
        if src in ("f32", "f64"):
            v += [-0.75, -1.5, -2.5, -100.9]
        return v
    info = np.iinfo(NP[src])
    v = [
        0,
        1,
        2,
        77,
        127,
        128,
        200,
        255,
        256,
        1000,
        32767,
        40000,
        65535,
        65536,
        100000,
        2**24 + 1,
        2**24 + 3,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**53 + 1,
        2**63 - 1,
        2**63,
        2**64 - 1,
        2**60 + 2**36 + 1,
    ]
    v = [x for x in v if x <= info.max]
    if src in SIGNED:
        v += [x for x in [-1, -2, -128, -129, -32768, -40000, -(2**31), -(2**40) - 1, -(2**63)] if x >= info.min]
    return v


def int_to_float(dtype, v):
    """The nearest value, ties to even, by exact rational arithmetic."""
    if v == 0:
        return 0.0
    f, m = Fraction(abs(v)), MANT[dtype]
    e = abs(v).bit_length() - 1
    unit = Fraction(2) ** (e - m)
    k = f / unit
    n = k.numerator // k.denominator
    rest = k - n
    n += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n % 2 == 1)
    x = n * unit
    top = {"f16": 65504, "bf16": (2 - Fraction(1, 128)) * Fraction(2) ** 127, "f32": 2**128, "f64": 2**1024}[dtype]
    return math.copysign(math.inf if x > top else float(x), v)


def casts(book, rng):
    for src in DTYPES:
        v = cast_values(src)
        x = arr(src, np.array(v)) if src in FLOATS + ["bool"] else wrap(src, v)
        for dst in DTYPES:
            if src in FLOATS:
                held = x.f64()
                if dst in FLOATS:
                    y = rnd(dst, held)
                elif dst == "bool":
                    y = Arr("bool", held != 0)
                else:
                    keep = held if dst in SIGNED else np.maximum(held, 0)
                    if dst in UNSIGNED:  # negative to unsigned saturates at 0
                        held = keep
                    y = wrap(dst, [int(t) for t in held])
            elif dst in FLOATS:
                y = rnd(dst, np.array([int_to_float(dst, int(t)) for t in v]))
            elif dst == "bool":
                y = Arr("bool", np.array([t != 0 for t in v]))
            else:
                y = wrap(dst, v)
            book.case("cast/%s_%s" % (src, dst), "cast", [x], [y], attrs={"dtype": CODE[dst]})
    # special values between floats, and to bool
    sp = np.array(
        [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            65504.0,
            65519.999,
            65520.0,
            65536.0,
            -65520.0,
            2.0**-24,
            2.0**-25,
            2.0**-25 * 1.5,
            2.0**-149,
            3.38e38,
            3.3961775e38,
            1 + 2.0**-11,
            1 + 3 * 2.0**-11,
            1 + 2.0**-8,
            1 + 3 * 2.0**-8,
            2.0**-14,
            2.0**-15 * 1.001,
            2.0**-133,
            2.0**-134,
            2.0**-127,
        ]
    )
    for src in ("f32", "f64"):
        x = arr(src, sp)
        for dst in FLOATS + ["bool"]:
            y = Arr("bool", x.v != 0) if dst == "bool" else rnd(dst, x.f64())
            book.case("cast/%s_%s/special" % (src, dst), "cast", [x], [y], attrs={"dtype": CODE[dst]}, signed_zero=True)
    # f64 values that are rounded wrongly through f32
    d = np.array(
        [
            1 + 2.0**-11 + 2.0**-40,
            1 + 2.0**-11 - 2.0**-40,
            1 + 2.0**-8 + 2.0**-40,
            1 + 3 * 2.0**-8 - 2.0**-40,
            2.0**-25 + 2.0**-60,
            -1 - 2.0**-11 - 2.0**-45,
        ]
    )
    for dst in ("f16", "bf16"):
        book.case("cast/f64_%s/one_rounding" % dst, "cast", [arr("f64", d)], [rnd(dst, d)], attrs={"dtype": CODE[dst]})
    # float to integer outside the range: saturates, NaN is 0 (src/array/dtype.h)
    for src in ("f32", "f64"):
        for dst in INTS:
            info = np.iinfo(NP[dst])
            x = arr(src, np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 3e10, -3e10]))
            y = wrap(
                dst,
                [
                    0
                    if math.isnan(t)
                    else int(min(max(t, float(info.min)), float(info.max)))
                    if float(info.min) < t < float(info.max)
                    else info.max
                    if t > 0
                    else info.min
                    for t in x.f64()
                ],
            )
            book.case("cast/%s_%s/saturate" % (src, dst), "cast", [x], [y], attrs={"dtype": CODE[dst]})


def fnv(blocks):
    out = []
    for block in blocks:
        h = 0xCBF29CE484222325
        for v in block:
            for byte in int(v).to_bytes(4, "little"):
                h = ((h ^ byte) * 0x100000001B3) & (2**64 - 1)
        out.append(h)
    return out


def half_tables(book, rng):
    """All 65,536 patterns as 64 hashes of 1024 values; every NaN counts as 7fc00000
    (to f32) or as its dtype's 7e00 / 7fc0 (from f32)."""
    p = np.arange(65536, dtype=np.uint32)
    f16 = p.astype(np.uint16).view(np.float16).astype(np.float32)
    t = torch.from_numpy(p.astype(np.uint16).view(np.int16).copy()).view(torch.float16).float().numpy()
    assert np.array_equal(f16.view(np.uint32)[~np.isnan(f16)], t.view(np.uint32)[~np.isnan(t)])
    bf = (p << 16).view(np.float32)
    for name, x, nan_bits in (("f16", f16, 0x7E00), ("bf16", bf, 0x7FC0)):
        bits = np.where(np.isnan(x), np.uint32(0x7FC00000), x.view(np.uint32))
        book.case(
            "half/%s_to_f32" % name,
            "half_to_f32",
            [],
            [Arr("u64", np.array(fnv(bits.reshape(64, 1024)), np.uint64))],
            attrs={"dtype": CODE[name]},
        )
        # from f32: for each pattern, the value and the midpoint to the next pattern, and its two f32 neighbours
        for kind, step in (("exact", None), ("below", -1), ("middle", 0), ("above", 1)):
            with np.errstate(all="ignore"):
                nxt = np.concatenate([x[1:], x[:1]])
                mid = ((x.astype(np.float64) + nxt.astype(np.float64)) / 2).astype(np.float32)
            v = x if step is None else (mid.view(np.uint32).astype(np.int64) + step).astype(np.uint32).view(np.float32)
            sane = np.isfinite(x) & np.isfinite(nxt)
            if step is not None:  # the last finite pattern and the specials have no midpoint
                v = np.where(sane, v, np.float32(0))
            with np.errstate(all="ignore"):
                if name == "f16":
                    got = v.astype(np.float16).view(np.uint16).astype(np.uint32)
                    tt = torch.from_numpy(v.copy()).to(torch.float16).view(torch.int16).numpy().view(np.uint16)
                else:
                    got = bf16_round(v).view(np.uint32) >> 16
                    tt = torch.from_numpy(v.copy()).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
            ok = ~np.isnan(v)
            assert np.array_equal(got[ok], tt[ok].astype(np.uint32)), (name, kind)
            got = np.where(np.isnan(v), np.uint32(nan_bits), got)
            book.case(
                "half/%s_from_f32/%s" % (name, kind),
                "half_from_f32",
                [],
                [Arr("u64", np.array(fnv(got.reshape(64, 1024)), np.uint64))],
                attrs={"dtype": CODE[name], "step": -9 if step is None else step},
            )


# ---------------------------------------------------------------- three inputs


def ternary(book, rng):
    for dtype in ("f32", "f64", "i8", "u8", "i32", "i64", "bool", "f16", "bf16", "u16"):
        c = Arr("bool", rng.integers(0, 2, (3, 4)).astype(bool))
        a, b = arr(dtype, rng.integers(0, 2 if dtype == "bool" else 90, (3, 4))), arr(
            dtype, rng.integers(0, 2 if dtype == "bool" else 90, (3, 4))
        )
        book.case("where/%s" % dtype, "where", [c, a, b], [Arr(dtype, np.where(c.v, a.v, b.v))])
    c = Arr("bool", np.array([[True], [False], [True]]))
    a, b = arr("f32", np.arange(4.0)), arr("f32", np.array(-1.5))
    book.case("where/broadcast", "where", [c, a, b], [Arr("f32", np.where(c.v, a.v, b.v))])
    book.case(
        "where/promote",
        "where",
        [c, arr("i16", np.arange(4)), arr("u16", np.array(7))],
        [arr("i32", np.where(c.v, np.arange(4), 7))],
    )
    book.case(
        "where/nan",
        "where",
        [
            Arr("bool", np.array([True, False])),
            arr("f32", np.array([1.0, np.nan])),
            arr("f32", np.array([np.nan, 2.0])),
        ],
        [arr("f32", np.array([1.0, 2.0]))],
    )
    for dtype in FLOATS + ["i8", "u8", "i32", "u64", "i64"]:
        lo_v, hi_v = (3, 60) if dtype in UNSIGNED else (-20, 60)
        x = arr(dtype, rng.integers(0 if dtype in UNSIGNED else -100, 100, (2, 8)))
        lo, hi = arr(dtype, np.array(lo_v)), arr(dtype, np.array(hi_v))
        book.case("clip/%s" % dtype, "clip", [x, lo, hi], [Arr(dtype, np.minimum(np.maximum(x.v, lo.v), hi.v))])
        book.case("clip/%s/low" % dtype, "clip", [x, lo, None], [Arr(dtype, np.maximum(x.v, lo.v))])
        book.case("clip/%s/high" % dtype, "clip", [x, None, hi], [Arr(dtype, np.minimum(x.v, hi.v))])
    x = arr("f32", np.array([np.nan, np.inf, -np.inf, 0.5, -3.0, 9.0]))
    book.case(
        "clip/special",
        "clip",
        [x, arr("f32", np.array(-1.0)), arr("f32", np.array(2.0))],
        [Arr("f32", np.clip(x.v, np.float32(-1), np.float32(2)))],
    )
    book.case(
        "clip/crossed",
        "clip",
        [x, arr("f32", np.array(3.0)), arr("f32", np.array(2.0))],
        [Arr("f32", np.minimum(np.maximum(x.v, np.float32(3)), np.float32(2)))],
    )
    book.case("clip/scalars", "clip", [x, -1.0, 2.0], [Arr("f32", np.clip(x.v, np.float32(-1), np.float32(2)))])
    lo2, hi2 = arr("f32", rng.uniform(-2, -1, (3, 1))), arr("f32", rng.uniform(1, 2, (1, 5)))
    x2 = arr("f32", rng.uniform(-4, 4, (3, 5)))
    book.case("clip/broadcast", "clip", [x2, lo2, hi2], [Arr("f32", np.clip(x2.v, lo2.v, hi2.v))])
    for dtype in ("f32", "f64"):
        a, b = sample(rng, dtype, -9, 9, 40), sample(rng, dtype, -4, 4, 40)
        c = sample(rng, dtype, -9, 9, 40)
        c.v[:16] = -(a.v[:16] * b.v[:16])  # the rest is the rounding error of a product
        y = [
            exact_round(dtype, Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r)), p)
            for p, q, r in zip(a.v, b.v, c.v)
        ]
        book.case("fma/%s" % dtype, "fma", [a, b, c], [Arr(dtype, np.array(y, dtype=NP[dtype]))])
        sp = arr(dtype, np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e30, -2.0]))
        s2 = arr(dtype, np.array([np.inf, 2.0, np.nan, 0.5, 1.0, 1.0, 1e30, -3.0]))
        s3 = arr(dtype, np.array([1.0, -0.0, 0.0, -np.inf, 1.0, 1.0, -1.0, 1.0]))
        with np.errstate(all="ignore"):
            y = rnd(dtype, sp.ld() * s2.ld() + s3.ld())
        book.case("fma/%s/special" % dtype, "fma", [sp, s2, s3], [y])
    for dtype in ("f16", "bf16"):
        a, b, c = (sample(rng, dtype, -4, 4, 16) for _ in range(3))
        # the sum may be rounded in f32 first: an ulp of the dtype, or of f32 where it cancels
        r, _ = ulp(dtype, 1)
        book.case("fma/%s" % dtype, "fma", [a, b, c], [rnd(dtype, a.ld() * b.ld() + c.ld())], tol=(r, 16 * 2.0**-23))
    # just below a tie: rounding to f32 first gives a tie, which rounds up to even
    a, b, c = (
        arr("f16", [2.0**-5 * (1 + 2.0**-10)]),
        arr("f16", [2.0**-6 * (1 - 2.0**-10)]),
        arr("f16", [1 + 2.0**-10]),
    )
    book.case("fma/f16/one_rounding", "fma", [a, b, c], [c])
    a, b, c = arr("bf16", [1.75]), arr("bf16", [0.578125]), arr("bf16", [-(2.0**-30)])
    book.case("fma/bf16/one_rounding", "fma", [a, b, c], [arr("bf16", [1 + 2.0**-7])])
    for dtype in ("i8", "u8", "i32", "u64"):
        v = [[3, 100, 7, 255], [5, 100, 2, 255], [1, 50, 9, 255]]
        a, b, c = (wrap(dtype, t) for t in v)
        book.case(
            "fma/%s" % dtype,
            "fma",
            [a, b, c],
            [wrap(dtype, [p * q + r for p, q, r in zip(*[[int(z) for z in t.v] for t in (a, b, c)])])],
        )
    a, b, c = (
        arr("f32", rng.integers(-4, 5, (3, 1))),
        arr("f32", rng.integers(-4, 5, (1, 4))),
        arr("f32", np.array(0.5)),
    )
    book.case("fma/broadcast", "fma", [a, b, c], [Arr("f32", a.v * b.v + c.v)])


# ---------------------------------------------------------------- broadcasting


def random_shape_pair(rng):
    """Two shapes that broadcast and the result, at most 60 elements."""
    while True:
        nd = int(rng.choice([0, 1, 2, 3, 4, 5, 6, 8], p=[0.04, 0.16, 0.25, 0.25, 0.15, 0.08, 0.04, 0.03]))
        full = [int(rng.choice([0, 1, 2, 3, 4, 5, 7], p=[0.03, 0.2, 0.25, 0.22, 0.15, 0.1, 0.05])) for _ in range(nd)]
        if np.prod(full, dtype=np.int64) > 60:
            continue
        sides = []
        for _ in range(2):
            drop = int(rng.integers(0, nd + 1)) if rng.random() < 0.4 else 0
            sides.append([1 if rng.random() < 0.3 else d for d in full][drop:])
        return tuple(sides[0]), tuple(sides[1])


def broadcast(book, rng):
    floats = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum}
    for i in range(400):
        sa, sb = random_shape_pair(rng)
        dtype = str(rng.choice(["i8", "i8", "i16", "i32", "f32", "u8"]))
        name = str(rng.choice(list(floats)))
        a, b = (arr(dtype, rng.integers(0, 100, s)) for s in (sa, sb))
        book.case(
            "broadcast/%03d/%s/%s" % (i, name, dtype),
            name,
            [a, b],
            [Arr(dtype, np.asarray(floats[name](a.v, b.v)).astype(NP[dtype]))],
        )
    n = 0
    while n < 60:
        sa, sb = (tuple(int(d) for d in rng.choice([1, 2, 3, 4], int(rng.integers(1, 5)))) for _ in range(2))
        try:
            np.broadcast_shapes(sa, sb)
            continue
        except ValueError:
            pass
        book.case(
            "broadcast/refused/%02d" % n, "add", [arr("i8", np.zeros(sa)), arr("i8", np.zeros(sb))], status=ERR_SHAPE
        )
        n += 1


def make(seed):
    books = {}
    table = (
        ("binary", binary),
        ("integer", integers),
        ("ternary", ternary),
        ("broadcast", broadcast),
        ("dtype", promotion),
        ("dtype", casts),
        ("dtype", half_tables),
    )
    for i, (name, fn) in enumerate(table):
        fn(books.setdefault(name, Book(name)), np.random.default_rng([seed, i]))
    return books
