"""The golden file format, exact rounding to every dtype, and tolerances.

A golden file is text, one block per case:

    case unary/exp/f32            name, unique in the whole set
    op exp                        key of the builder table in tests/parity/golden_ops.h
    i axes 0 2                    integer attributes
    f eps 0x1.4p-3                double attributes, C99 hex floats, inf, nan
    in i8 2 3 : 1 -7 ...          an input: dtype, shape, elements in row-major order;
                                  integers and bool in decimal, "-" for no element
    in f32 2 : 3f8 c0490fdb       floats as bit patterns in hex, most significant digit
                                  first, zeros at the end left out; or, in one word,
    in f32 2 : 3f800000c0490fdb   all digits of all elements, whichever is shorter
    in f32 9 99 gen 7 -8 9 2      made by rule, not stored: seed 7, low, high, shift; element
                                  i is (low + mix(seed + i) % (high - low)) / 2^shift, with
                                  mix the finaliser of splitmix64
    in null                       an argument that is NULL
    in scalar 0x1p-1              a mica_scalar
    out f32 2 3 : ...             an expected result
    cot f64 2 3 : ...             gradient cases: one cotangent per output,
    wrt 0 2                       the inputs to differentiate by,
    grad f64 2 3 : ...            one expected gradient per wrt,
    cot2 f64 2 3 : ...            second order: one cotangent per gradient,
    grad2 f64 2 3 : ...           d sum_i <cot2_i, grad_i> / d wrt
    tol 1e-6 1e-9                 |got - want| <= atol + rtol |want|; absent: exact
    gtol 1e-6 1e-9                the same for gradients; absent: tol
    signed_zero                   the sign of a zero result counts
    nan_free                      where the reference is NaN, any result is accepted
    status 11                     building or evaluating must fail with this status
    end

Where the reference is NaN the result must be NaN, elsewhere it must not.
"""
import math

import numpy as np

DTYPES = ["bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"]
CODE = {name: i for i, name in enumerate(DTYPES)}
FLOATS = ["f16", "bf16", "f32", "f64"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
SIGNED = ["i8", "i16", "i32", "i64"]
INTS = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"]
SIZE = {
    "bool": 1,
    "u8": 1,
    "i8": 1,
    "u16": 2,
    "i16": 2,
    "u32": 4,
    "i32": 4,
    "u64": 8,
    "i64": 8,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
}
NP = {
    "bool": np.bool_,
    "u8": np.uint8,
    "i8": np.int8,
    "u16": np.uint16,
    "i16": np.int16,
    "u32": np.uint32,
    "i32": np.int32,
    "u64": np.uint64,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": np.float32,
    "f32": np.float32,
    "f64": np.float64,
}  # bf16 is held in f32
AUTO = -(2**63)
# bits of the significand after the leading one, and the exponent of the smallest denormal
MANT = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
DENORM = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}
ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, ERR_INDEX = 10, 11, 12, 14


def ulp(dtype, n):
    """n units in the last place as (rtol, atol); integers and bool are exact."""
    if dtype not in MANT:
        return (0.0, 0.0)
    return (n * 2.0 ** -MANT[dtype], n * 2.0 ** DENORM[dtype] if dtype != "f64" else n * 5e-324)


class Arr:
    """An array with one of mica's dtypes."""

    def __init__(self, dtype, values):
        self.dtype = dtype
        self.v = np.asarray(values)
        assert self.v.dtype == NP[dtype], (dtype, self.v.dtype)

    @property
    def shape(self):
        return self.v.shape

    def f64(self):
        return self.v.astype(np.float64)

    def ld(self):
        return self.v.astype(np.longdouble)

    def bits(self):
        flat = np.ascontiguousarray(self.v).reshape(-1)
        if self.dtype == "bool":
            return flat.astype(np.uint8)
        if self.dtype == "bf16":
            raw = flat.view(np.uint32)
            assert not np.any(raw & 0xFFFF), "not a bf16 value"
            return (raw >> 16).astype(np.uint16)
        return flat.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[SIZE[self.dtype]])

    def text(self):
        shape = "".join(" %d" % d for d in self.shape)
        if self.dtype in MANT:
            digits = ["%0*x" % (2 * SIZE[self.dtype], int(b)) for b in self.bits()]
            body = min(" ".join(d.rstrip("0") or "0" for d in digits), "".join(digits), key=len)
        else:
            body = " ".join(str(int(v)) for v in self.v.reshape(-1))
        return "%s%s : %s" % (self.dtype, shape, body or "-")


def mix_bits(z):
    """The finaliser of splitmix64."""
    mask = 2**64 - 1
    z = (z + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


class Gen(Arr):
    """An input that both sides generate by rule, so that large shapes are not stored."""

    def __init__(self, dtype, shape, seed, low, high, shift=0):
        n = int(np.prod(shape))
        values = np.array([low + mix_bits(seed + i) % (high - low) for i in range(n)]).reshape(shape)
        super().__init__(dtype, arr(dtype, values / 2.0**shift if shift else values).v)
        self.rule = "gen %d %d %d %d" % (seed, low, high, shift)

    def text(self):
        return "%s%s %s" % (self.dtype, "".join(" %d" % d for d in self.shape), self.rule)


def drawn(rng, dtype, shape):
    """Values of [-1.9, 1.9] in steps of 1/64, which every float dtype holds."""
    return Gen(dtype, shape, int(rng.integers(1 << 20)), -120, 121, 6)


def bf16_round(x):
    """To bf16 with one rounding to nearest even, held in f32. x: f32, f64 or long double."""
    x, shape = np.atleast_1d(np.asarray(x)), np.shape(x)
    with np.errstate(all="ignore"):
        f = x.astype(np.float32)
        # Round to odd at f32, so that the second rounding is correct.
        over = np.abs(f.astype(x.dtype)) > np.abs(x)
        f = np.where(over, np.nextafter(f, np.float32(0)), f).astype(np.float32)
        bits = f.view(np.uint32).astype(np.uint64)
        bits = np.where((f.astype(x.dtype) != x) & ~np.isnan(x), bits | 1, bits)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)
    out = rounded.view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), out).astype(np.float32).reshape(shape)


def rnd(dtype, x):
    """Round real numbers (f64 or long double) to a float dtype."""
    x = np.asarray(x)
    if x.dtype != np.longdouble:
        x = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if dtype == "bf16":
            return Arr(dtype, bf16_round(x))
        if dtype == "f16" and x.dtype == np.longdouble:
            x = x.astype(np.float64)
        return Arr(dtype, x.astype(NP[dtype]))


def arr(dtype, x):
    """Values that the dtype can hold exactly, or integers that wrap."""
    x = np.asarray(x)
    if dtype in MANT:
        return rnd(dtype, x.astype(np.float64) if x.dtype != np.longdouble else x)
    if dtype == "bool":
        return Arr(dtype, x.astype(np.bool_))
    return Arr(dtype, x.astype(NP[dtype]))


def wrap(dtype, ints):
    """Python integers (an object array or list) reduced modulo 2^bits."""
    bits = 8 * SIZE[dtype]
    o = np.asarray(ints, dtype=object)
    flat = []
    for v in o.reshape(-1):
        v = int(v) & ((1 << bits) - 1)
        if dtype in SIGNED and v >= 1 << (bits - 1):
            v -= 1 << bits
        flat.append(v)
    return Arr(dtype, np.array(flat, dtype=NP[dtype]).reshape(o.shape))


def sum_tol(dtype, n, abs_sum):
    """A sum of n terms, accumulated in f32 (f64 for f64): the error of a random walk
    of n roundings, scaled by the sum of magnitudes, and one rounding of the result."""
    if dtype not in MANT:
        return (0.0, 0.0)
    unit = 2.0**-53 if dtype == "f64" else 2.0**-24
    return (ulp(dtype, 1)[0], (2 + math.sqrt(n)) * unit * float(abs_sum) + ulp(dtype, 1)[1])


def normal(rng, dtype, shape, scale=1.0):
    """On a grid of 1/256: the files stay small, and sums of a few are exact in f32."""
    return rnd(dtype, np.round(scale * 256 * rng.standard_normal(shape)) / 256)


def ints(rng, dtype, shape, low=-9, high=10):
    if dtype == "bool":
        return Arr("bool", rng.integers(0, 2, shape).astype(bool))
    return arr(dtype, rng.integers(0 if dtype in UNSIGNED else low, high, shape))


def some(rng, dtype, shape):
    return normal(rng, dtype, shape) if dtype in FLOATS else ints(rng, dtype, shape)


def up(x):
    """Four digits, never below x."""
    text = "%.3e" % x
    return text if float(text) >= x else "%.3e" % (x * 1.0006)


class Book:
    """Collects the cases of one golden file."""

    names = set()

    def __init__(self, name):
        self.name, self.lines, self.count = name, [], 0

    def case(
        self,
        name,
        op,
        ins=(),
        outs=(),
        attrs=None,
        tol=(0.0, 0.0),
        gtol=None,
        cots=(),
        wrt=(),
        grads=(),
        cots2=(),
        grads2=(),
        signed_zero=False,
        nan_free=False,
        status=0,
    ):
        assert name not in Book.names, name
        Book.names.add(name)
        put = self.lines.append
        put("case " + name)
        put("op " + op)
        for key, value in (attrs or {}).items():
            values = list(value) if isinstance(value, (list, tuple)) else [value]
            if any(isinstance(v, (float, np.floating)) for v in values):
                put("f " + " ".join([key] + [float(v).hex() for v in values]))
            else:
                put("i " + " ".join([key] + [str(int(v)) for v in values]))
        for x in ins:
            if x is None:
                put("in null")
            elif isinstance(x, float):
                put("in scalar " + x.hex())
            else:
                put("in " + x.text())
        for kind, arrays in (("out", outs), ("cot", cots)):
            for x in arrays:
                put("%s %s" % (kind, x.text()))
        if wrt:
            put("wrt " + " ".join(str(i) for i in wrt))
        for kind, arrays in (("grad", grads), ("cot2", cots2), ("grad2", grads2)):
            for x in arrays:
                put("%s %s" % (kind, x.text()))
        if tol != (0.0, 0.0):
            put("tol %s %s" % (up(tol[0]), up(tol[1])))
        if gtol is not None:
            put("gtol %s %s" % (up(gtol[0]), up(gtol[1])))
        if signed_zero:
            put("signed_zero")
        if nan_free:
            put("nan_free")
        if status:
            put("status %d" % status)
        put("end")
        self.count += 1

    def text(self):
        return (
            "# Made by tests/golden/make_golden.py, %d cases. Do not edit.\n" % self.count
            + "\n".join(self.lines)
            + "\n"
        )
