"""The random generator: Philox 4x32-10 implemented in NumPy and checked with the
known answers of Random123, and the distributions computed from its bits."""
import math

import numpy as np
import scipy.special

from golden_format import *


def philox(counter, key):
    """Philox 4x32-10 of Salmon et al. 2011, on arrays of u64 that hold 32-bit words."""
    m = np.uint64(0xFFFFFFFF)
    c = [np.asarray(w, dtype=np.uint64) for w in counter]
    k = [np.uint64(w) for w in key]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k[0], p1 & m, (p0 >> np.uint64(32)) ^ c[3] ^ k[1], p0 & m]
        k = [np.uint64((int(k[0]) + 0x9E3779B9) & 0xFFFFFFFF), np.uint64((int(k[1]) + 0xBB67AE85) & 0xFFFFFFFF)]
    return c


def philox_known_answers():
    """The kat_vectors file of Random123."""
    for counter, key, want in (
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ):
        got = tuple(int(w) for w in philox(counter, key))
        assert got == want, [hex(w) for w in got]


def bits32(seed, n):
    i = np.arange(n, dtype=np.uint64)
    block, zero = i // np.uint64(4), np.zeros(n, np.uint64)
    words = philox((block & np.uint64(0xFFFFFFFF), block >> np.uint64(32), zero, zero), (seed & 0xFFFFFFFF, seed >> 32))
    return np.choose((i % np.uint64(4)).astype(np.int64), words).astype(np.uint32)


def bits64(seed, n):
    i = np.arange(n, dtype=np.uint64)
    block, zero = i // np.uint64(2), np.zeros(n, np.uint64)
    w = philox((block & np.uint64(0xFFFFFFFF), block >> np.uint64(32), zero, zero), (seed & 0xFFFFFFFF, seed >> 32))
    low, high = np.where(i % np.uint64(2) == 0, w[0], w[2]), np.where(i % np.uint64(2) == 0, w[1], w[3])
    return low | (high << np.uint64(32))


def randoms(book, rng):
    philox_known_answers()
    assert [hex(v) for v in bits32(0, 4)] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    seeds = (0, 1, 7, 0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFF)
    for seed in seeds:
        signed = seed - 2**64 if seed >= 2**63 else seed
        for shape in ((4,), (3, 5), (1,), (67,), ()):
            n = int(np.prod(shape))
            tag = "%x/%s" % (seed, "x".join(map(str, shape)) or "scalar")
            a = {"shape": list(shape), "seed": signed}
            book.case(
                "random_bits/u32/" + tag,
                "random_bits",
                [],
                [Arr("u32", bits32(seed, n).reshape(shape))],
                attrs=dict(a, dtype=CODE["u32"]),
            )
            book.case(
                "random_bits/u64/" + tag,
                "random_bits",
                [],
                [Arr("u64", bits64(seed, n).reshape(shape))],
                attrs=dict(a, dtype=CODE["u64"]),
            )
            u32 = ((bits32(seed, n) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)).reshape(shape)
            u64 = ((bits64(seed, n) >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)
            for low, high in ((0.0, 1.0), (-1.5, 2.25)):
                if (low, high) != (0.0, 1.0) and n > 20:
                    continue
                # The product may be fused with the sum: one ulp of the larger bound.
                for dtype, u in (("f32", u32), ("f64", u64)):
                    t = NP[dtype]
                    y = t(low) + u * t(high - low)
                    book.case(
                        "random_uniform/%s/%s/%g" % (dtype, tag, low),
                        "random_uniform",
                        [],
                        [Arr(dtype, np.asarray(y, t))],
                        attrs=dict(a, dtype=CODE[dtype], low=low, high=high),
                        tol=(0.0, 0.0 if low == 0.0 else 4 * 2.0 ** -(MANT[dtype] + 1)),
                    )


def fraction(seed, n, dtype):
    """(bits + 1/2) / 2^32 or 2^64, and its distance from 1, both to full precision."""
    bits, width = (bits64(seed, n), 64) if dtype == "f64" else (bits32(seed, n), 32)
    b = [int(v) for v in bits]
    u = np.array([np.longdouble(2 * v + 1) / np.longdouble(2) ** (width + 1) for v in b])
    rest = np.array([np.longdouble(2 * (2**width - 1 - v) + 1) / np.longdouble(2) ** (width + 1) for v in b])
    return u, rest


def normal_quantile(u, rest):
    near = np.minimum(u, rest).astype(np.float64)
    return np.where(u < rest, 1, -1) * scipy.special.ndtri(near)


def distributions(book, rng):
    """The formulas of src/kernels/random/random.h, fixed: a seed must always give the same numbers."""
    for seed in (0, 3, 0x123456789ABCDEF0):
        split = [mix_bits(mix_bits(seed) ^ mix_bits(~i & (2**64 - 1))) for i in range(6)]
        book.case("seed_split/%x" % seed, "seed_split", [], [wrap("u64", split)], attrs={"seed": seed, "n": 6})
        u, _ = fraction(seed, 40, "f32")
        plain = ((bits32(seed, 40) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)).reshape(5, 8)
        for p in (0.0, 0.3, 0.5, 1.0):
            book.case(
                "random_bernoulli/%x/%g" % (seed, p),
                "random_bernoulli",
                [],
                [Arr("bool", plain < np.float32(p))],
                attrs={"shape": [5, 8], "p": p, "seed": seed},
            )
        for dtype, low, high in (
            ("i32", -10, 10),
            ("u8", 0, 256),
            ("i8", -128, 128),
            ("i64", -(2**62), 2**62),
            ("u32", 5, 6),
            ("i16", -3, 1000),
            ("u64", 0, 2**63 - 1),
        ):
            b = [int(v) for v in bits64(seed, 12)]
            book.case(
                "random_randint/%x/%s" % (seed, dtype),
                "random_randint",
                [],
                [wrap(dtype, [low + (v * (high - low) >> 64) for v in b])],
                attrs={"shape": [12], "dtype": CODE[dtype], "low": low, "high": high, "seed": seed},
            )
        for n in (1, 2, 9, 33):
            order_ = sorted(range(n), key=lambda i: int(bits64(seed, n)[i]))
            book.case(
                "random_permutation/%x/%d" % (seed, n),
                "random_permutation",
                [],
                [Arr("i64", np.array(order_, dtype=np.int64))],
                attrs={"n": n, "seed": seed},
            )
        for dtype in FLOATS:
            u, rest = fraction(seed, 24, dtype)
            x = normal_quantile(u, rest)
            # 8 ulps: a quantile is a square root of a logarithm, or a rational function near 0
            tol = (
                ulp(dtype, 8 if dtype == "f32" else 1)[0] if dtype != "f64" else 1e-14,
                2.0**-22 if dtype != "f64" else 1e-15,
            )
            book.case(
                "random_normal/%x/%s" % (seed, dtype),
                "random_normal",
                [],
                [rnd(dtype, x.reshape(4, 6))],
                attrs={"shape": [4, 6], "dtype": CODE[dtype], "seed": seed},
                tol=tol,
            )
            for low, high in ((-2.0, 2.0), (0.5, 3.0), (-math.inf, -1.0)):
                a, b = scipy.special.ndtr(low), scipy.special.ndtr(high)
                x = (
                    scipy.special.ndtri(a + u.astype(np.float64) * (b - a))
                    if high <= 2
                    else -scipy.special.ndtri(
                        scipy.special.ndtr(-high)
                        + rest.astype(np.float64) * (scipy.special.ndtr(-low) - scipy.special.ndtr(-high))
                    )
                )
                t = (tol[0] * 4, tol[1] * 8) if dtype in ("f32", "f64") else tol
                book.case(
                    "random_truncated_normal/%x/%s/%g" % (seed, dtype, low),
                    "random_truncated_normal",
                    [],
                    [rnd(dtype, x.reshape(4, 6))],
                    attrs={"shape": [4, 6], "dtype": CODE[dtype], "low": low, "high": high, "seed": seed},
                    tol=t,
                )
        for dtype in ("f32", "f64"):
            logits = normal(rng, dtype, (8, 5))
            u, rest = fraction(seed, 40, dtype)
            gumbel = -np.log(np.where(u < rest, -np.log(u), -np.log1p(-rest)))
            score = logits.ld() + gumbel.reshape(8, 5)
            best = np.sort(score, axis=1)
            assert (best[:, -1] - best[:, -2]).min() > 1e-4  # no near ties
            book.case(
                "random_categorical/%x/%s" % (seed, dtype),
                "random_categorical",
                [logits],
                [Arr("i64", np.argmax(score, axis=1))],
                attrs={"seed": seed},
            )


def make(seed):
    book = Book("random")
    randoms(book, np.random.default_rng([seed, 0]))
    distributions(book, np.random.default_rng([seed, 1]))
    return {"random": book}
