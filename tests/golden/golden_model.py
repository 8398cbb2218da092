"""Ops for running a model: updates of a state, attention over a cache, products with
block formats. The packings are implemented here from their descriptions, so that they
also check those of src/quant. Sums are in double."""
import numpy as np
import torch

import golden_nn as nn
from golden_format import *

# As in tests/parity/golden_ops.h.
FORMATS = ["HF_TERNARY", "TQ2_0", "Q8_0", "AFFINE"]
ACT_NONE, ACT_TOKEN, ACT_BLOCK256 = 0, 1, 2


def hf_ternary(codes):
    """Byte (r, c) holds rows r, r + R, r + 2R, r + 3R of column c, low bits first."""
    rows, cols = codes.shape
    quarter = (rows + 3) // 4
    padded = np.zeros((4 * quarter, cols), np.int64)
    padded[:rows] = codes + 1
    return sum(padded[i * quarter : (i + 1) * quarter] << (2 * i) for i in range(4)).astype(np.uint8)


def tq2_0(codes, scale):
    """Blocks of 256: 64 bytes, then the scale in f16; bits 2j of byte b of half h are
    element 128 h + 32 j + b."""
    blocks = (codes + 1).reshape(-1, 2, 4, 32)
    packed = sum(blocks[:, :, j] << (2 * j) for j in range(4)).astype(np.uint8).reshape(-1, 64)
    d = np.full((len(packed), 1), scale, np.float16).view(np.uint8)
    return np.concatenate([packed, d], 1).reshape(-1)


def q8_0(rng, rows, cols):
    """Blocks of 32: the scale in f16, then 32 bytes. Returns bytes and values."""
    codes = rng.integers(-127, 128, (rows * cols // 32, 32))
    d = (rng.integers(1, 64, (len(codes), 1)) / 256).astype(np.float16)
    packed = np.concatenate([d.view(np.uint8), codes.astype(np.int8).view(np.uint8)], 1).reshape(-1)
    return packed, (codes * d.astype(np.float64)).reshape(rows, cols)


def affine4(rng, rows, cols, group):
    """Eight values of 4 bits a u32, low bits first; value = scale q + bias."""
    q = rng.integers(0, 16, (rows, cols))
    words = sum(q[:, i::8].astype(np.uint32) << np.uint32(4 * i) for i in range(8)).astype("<u4")
    scales = normal(rng, "f32", (rows, cols // group))
    biases = normal(rng, "f32", (rows, cols // group))
    spread = lambda a: np.repeat(a.f64(), group, 1)
    return words.view(np.uint8).reshape(-1), scales, biases, spread(scales) * q + spread(biases)


def rounded(x, act):
    """x as 8-bit integers times their scale, computed in f32 as the kernels do."""
    if act == ACT_NONE:
        return x.astype(np.float64)
    out = np.zeros(x.shape)
    step = x.shape[-1] if act == ACT_TOKEN else 256
    for t in range(x.shape[0]):
        for at in range(0, x.shape[1], step):
            part = x[t, at : at + step].astype(np.float32)
            top = part[np.argmax(np.abs(part))]
            if act == ACT_TOKEN:
                most = np.maximum(np.abs(top), np.float32(1e-5))
                times, scale = np.float32(127) / most, most / np.float32(127)
            else:
                times = np.float32(-127) / top
                scale = np.float32(1) / times
            q = np.clip(np.rint(part * times), -128, 127)
            out[t, at : at + step] = q.astype(np.float64) * np.float64(scale)
    return out


def matrices(rng):
    for name, rows, cols in (("hf", 12, 20), ("hf/odd", 7, 33)):
        codes = rng.integers(-1, 2, (rows, cols))
        for divides in (0, 1):
            scale = 0.3125 if not divides else 3.2
            value = codes * (np.float64(np.float32(0.3125)) if not divides else 1 / np.float64(np.float32(3.2)))
            yield (
                name + ("/divides" if divides else ""),
                dict(format=0, rows=rows, cols=cols, divides=divides),
                [arr("u8", hf_ternary(codes)), rnd("f32", np.array([scale])), None],
                value,
            )
    codes = rng.integers(-1, 2, (2, 512))
    yield "tq2_0", dict(format=1, rows=2, cols=512), [arr("u8", tq2_0(codes, 0.75)), None, None], codes * 0.75
    data, value = q8_0(rng, 3, 64)
    yield "q8_0", dict(format=2, rows=3, cols=64), [arr("u8", data), None, None], value
    data, scales, biases, value = affine4(rng, 4, 64, 32)
    yield "affine", dict(format=3, rows=4, cols=64, bits=4, group=32), [arr("u8", data), scales, biases], value


def quantised(book, rng):
    for name, attrs, arrays, value in matrices(rng):
        cols = attrs["cols"]
        for act in (ACT_NONE, ACT_TOKEN, ACT_BLOCK256):
            x = drawn(rng, "f32", (3, cols))
            y = rounded(x.v, act) @ value.T
            book.case(
                "quant_matmul/%s/%d" % (name, act),
                "quant_matmul",
                [x] + arrays,
                [rnd("f32", y)],
                attrs=dict(attrs, act=act),
                tol=(2.0**-22, (2 + np.sqrt(cols)) * 2.0**-23 * float((np.abs(x.f64()) @ np.abs(value.T)).max())),
            )
        ids = arr("i32", np.array([[0, attrs["rows"] - 1], [1, -2]]))
        book.case(
            "quant_rows/" + name,
            "quant_rows",
            [ids] + arrays,
            [rnd("f32", value[ids.v])],
            attrs=attrs,
            tol=(2.0**-23, 2.0**-22),
        )
        book.case(
            "quant_rows/%s/range" % name,
            "quant_rows",
            [arr("i32", np.array([attrs["rows"]]))] + arrays,
            [],
            attrs=attrs,
            status=ERR_INDEX,
        )


def states(book, rng):
    for dtype in ("f32", "f16", "bf16", "i32"):
        for name, shape, axis, at, n in (("first", (4, 3), 0, 1, 2), ("last", (2, 5), 1, 4, 1), ("mid", (2, 4, 3), 1, 0, 4)):
            values = some(rng, "f32" if dtype != "i32" else "i32", shape[:axis] + (n,) + shape[axis + 1 :])
            out = np.zeros(shape)
            out[tuple([slice(None)] * axis + [slice(at, at + n)])] = values.f64()
            book.case(
                "update/%s/%s" % (name, dtype),
                "update",
                [values, arr("i64", np.array(at))],
                [arr(dtype, out)],
                attrs=dict(dtype=CODE[dtype], shape=list(shape), axis=axis),
            )
    for at in (-1, 3):
        book.case(
            "update/outside/%d" % at,
            "update",
            [normal(rng, "f32", (2, 3)), arr("i32", np.array(at))],
            [],
            attrs=dict(dtype=CODE["f32"], shape=[4, 3], axis=0),
            status=ERR_INDEX,
        )


def caches(book, rng):
    for name, sq, sk, length in (
        ("one", (1, 4, 1, 8), (1, 2, 9, 8), 5),
        ("full", (1, 2, 1, 16), (1, 2, 7, 16), 7),
        ("many", (2, 6, 5, 8), (2, 2, 12, 8), 11),
        ("first", (1, 2, 3, 4), (1, 1, 6, 4), 3),
    ):
        for dtype in ("f32", "f16", "bf16"):
            for causal in (0, 1):
                q, k, v = drawn(rng, "f32", sq), drawn(rng, dtype, sk), drawn(rng, dtype, sk)
                tail = lambda a: nn.T(a)[:, :, :length]
                y = nn.attention(nn.T(q), tail(k), tail(v), None, 0.0, bool(causal)).numpy()
                book.case(
                    "attention_cached/%s/%s%s" % (name, dtype, "/causal" if causal else ""),
                    "attention_cached",
                    [q, k, v, arr("i32", np.array(length))],
                    [rnd("f32", y)],
                    attrs=dict(causal=causal),
                    tol=(ulp("f32", 1)[0], 32 * 2.0**-24 * float(np.abs(v.f64()).max())),
                )
    q, k = drawn(rng, "f32", (1, 1, 1, 4)), drawn(rng, "f32", (1, 1, 3, 4))
    book.case(
        "attention_cached/outside",
        "attention_cached",
        [q, k, k, arr("i64", np.array(4))],
        [],
        attrs=dict(causal=1),
        status=ERR_INDEX,
    )


def bytes_of_rows(book, rng):
    """All in f32: the maximum, divided by 127, a quotient, rounded to even."""
    for shape in ((3, 8), (2, 3, 33), (1, 1)):
        x = normal(rng, "f32", shape)
        x.v[0] = 0
        most = np.abs(x.v).max(-1, keepdims=True).astype(np.float32)
        scales = (most / np.float32(127)).astype(np.float32)
        with np.errstate(invalid="ignore"):
            codes = np.nan_to_num(np.rint((x.v / scales).astype(np.float32))).astype(np.int8)
        book.case(
            "rows_to_i8/%s" % "x".join(str(n) for n in shape),
            "rows_to_i8",
            [x],
            [arr("i8", codes), arr("f32", scales[..., 0])],
        )


def make(seed):
    torch.set_num_threads(1)
    book = Book("model")
    for i, fn in enumerate((quantised, states, caches, bytes_of_rows)):
        fn(book, np.random.default_rng([seed, i]))
    return {"model": book}
