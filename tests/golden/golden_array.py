"""Creation, views, joining, indexing, sorting. The oracle is NumPy. Behaviour that
NumPy does not define (stable descending order, NaN as the largest, the last of equal
scatter positions counts) is implemented here."""
import math

import numpy as np

from golden_format import *


# ---------------------------------------------------------------- creation


def creation(book, rng):
    for dtype in DTYPES:
        book.case(
            "zeros/%s" % dtype,
            "zeros",
            [],
            [arr(dtype, np.zeros((2, 3)))],
            attrs={"dtype": CODE[dtype], "shape": [2, 3]},
        )
        book.case(
            "ones/%s" % dtype, "ones", [], [arr(dtype, np.ones((3, 1)))], attrs={"dtype": CODE[dtype], "shape": [3, 1]}
        )
        v = 1.0 if dtype == "bool" else 7.0 if dtype in INTS else 2.625
        book.case(
            "full/%s" % dtype,
            "full",
            [],
            [arr(dtype, np.full((4,), v))],
            attrs={"dtype": CODE[dtype], "shape": [4], "value": v},
        )
        big = {
            "i64": -(2**63),
            "u64": 2**63 - 1,
            "i32": -(2**31),
            "u32": 2**32 - 1,
            "i8": -128,
            "u8": 255,
            "i16": -32768,
            "u16": 65535,
        }
        k = big.get(dtype, 1)
        book.case(
            "full_i64/%s" % dtype,
            "full_i64",
            [],
            [wrap(dtype, [k, k]) if dtype in INTS else arr(dtype, np.array([1, 1]))],
            attrs={"dtype": CODE[dtype], "shape": [2], "value": k},
        )
        for k in (-2, -1, 0, 1, 3, 9):
            if dtype not in ("f32", "i8", "bool", "f16") and k != 1:
                continue
            book.case(
                "eye/%s/%d" % (dtype, k),
                "eye",
                [],
                [arr(dtype, np.eye(3, 5, k))],
                attrs={"dtype": CODE[dtype], "rows": 3, "cols": 5, "k": k},
            )
            book.case(
                "tri/%s/%d" % (dtype, k),
                "tri",
                [],
                [arr(dtype, np.tri(4, 3, k))],
                attrs={"dtype": CODE[dtype], "rows": 4, "cols": 3, "k": k},
            )
    book.case("zeros/scalar", "zeros", [], [arr("f32", np.zeros(()))], attrs={"dtype": CODE["f32"], "shape": []})
    book.case(
        "full/empty",
        "full",
        [],
        [arr("f32", np.zeros((0, 3)))],
        attrs={"dtype": CODE["f32"], "shape": [0, 3], "value": 5.0},
    )
    for value in (math.nan, math.inf, -math.inf, -0.0):
        book.case(
            "full/f32/%s" % value,
            "full",
            [],
            [arr("f32", np.full(3, value))],
            attrs={"dtype": CODE["f32"], "shape": [3], "value": value},
            signed_zero=True,
        )
    for dtype in ("i32", "i64", "u8", "i8", "f32", "f64", "f16", "bf16"):
        for start, stop, step in ((0, 5, 1), (2, 11, 3), (5, 0, -1), (0, 10, 3), (3, 3, 1), (3, 1, 1), (9, 1, -4)):
            book.case(
                "arange/%s/%g_%g_%g" % (dtype, start, stop, step),
                "arange",
                [],
                [arr(dtype, np.arange(start, stop, step))],
                attrs={"dtype": CODE[dtype], "start": float(start), "stop": float(stop), "step": float(step)},
            )
    for dtype in ("f32", "f64", "f16", "bf16"):
        for start, stop, step in ((0.0, 1.0, 0.125), (0.0, 1.0, 0.1), (-1.0, 2.0, 0.7), (2.5, -1.0, -0.3)):
            n = math.ceil((stop - start) / step)
            book.case(
                "arange/%s/%g_%g_%g" % (dtype, start, stop, step),
                "arange",
                [],
                [rnd(dtype, start + step * np.arange(n))],
                attrs={"dtype": CODE[dtype], "start": start, "stop": stop, "step": step},
                tol=(ulp(dtype, 2)[0], 4 * 2.0 ** -(MANT[dtype] + 1)),
            )
        for start, stop, n in (
            (0.0, 1.0, 5),
            (-1.0, 2.5, 7),
            (3.0, -3.0, 4),
            (1.0, 1.0, 3),
            (0.0, 7.0, 1),
            (0.0, 1.0, 0),
            (0.0, 10.0, 33),
        ):
            book.case(
                "linspace/%s/%g_%g_%d" % (dtype, start, stop, n),
                "linspace",
                [],
                [rnd(dtype, np.linspace(start, stop, n))],
                attrs={"dtype": CODE[dtype], "start": start, "stop": stop, "n": n},
                tol=(ulp(dtype, 2)[0], 4 * 2.0 ** -(MANT[dtype] + 1)),
            )
    book.case(
        "linspace/i32",
        "linspace",
        [],
        [arr("i32", np.linspace(0, 12, 5))],
        attrs={"dtype": CODE["i32"], "start": 0.0, "stop": 12.0, "n": 5},
    )
    x = arr("f32", np.array([[1.5, -2.0], [0.0, 3.25]]))
    book.case("from_data/f32", "identity", [x], [x])
    book.case("from_data/scalar", "identity", [arr("i16", np.array(-7))], [arr("i16", np.array(-7))])


# ------------------------------------------------------------------- views


def views(book, rng):
    for dtype in ("f32", "u8", "i64", "bf16"):
        x = some(rng, dtype, (2, 3, 4))
        v = x.v
        put = lambda name, op, y, **attrs: book.case(
            "view/%s/%s" % (name, dtype), op, [x], [Arr(dtype, np.ascontiguousarray(y))], attrs=attrs
        )
        put("reshape", "reshape", v.reshape(6, 4), shape=[6, 4])
        put("reshape/auto", "reshape", v.reshape(4, -1, 2), shape=[4, -1, 2])
        put("flatten", "flatten", v.reshape(-1))
        for axis in (0, 1, 3, -1, -4):
            put("expand_dims/%d" % axis, "expand_dims", np.expand_dims(v, axis), axis=axis)
        for axes in ((0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0), (-1, 0, -2)):
            put("permute/%d%d%d" % axes, "permute", np.transpose(v, axes), axes=list(axes))
        put("transpose", "transpose", np.swapaxes(v, -1, -2))
        for axis in (0, 1, -1):
            put("flip/%d" % axis, "flip", np.flip(v, axis), axis=axis)
        put("broadcast_to", "broadcast_to", np.broadcast_to(v, (5, 2, 3, 4)), shape=[5, 2, 3, 4])
        put("contiguous", "contiguous", v)
        y = some(rng, dtype, (1, 3, 1, 2))
        for axis in (0, 2, -2):
            book.case(
                "view/squeeze/%d/%s" % (axis, dtype),
                "squeeze",
                [y],
                [Arr(dtype, np.squeeze(y.v, axis))],
                attrs={"axis": axis},
            )
        book.case(
            "view/broadcast_to/ones/%s" % dtype,
            "broadcast_to",
            [y],
            [Arr(dtype, np.ascontiguousarray(np.broadcast_to(y.v, (4, 3, 5, 2))))],
            attrs={"shape": [4, 3, 5, 2]},
        )
    a = AUTO
    x = ints(rng, "i16", (5, 7), -99, 100)
    for i, (s, e, p) in enumerate(
        [
            ([0, 0], [5, 7], [1, 1]),
            ([1, 2], [4, 6], [1, 1]),
            ([a, a], [a, a], [2, 3]),
            ([a, a], [a, a], [-1, -1]),
            ([a, a], [a, a], [-2, -3]),
            ([-3, -5], [-1, -1], [1, 2]),
            ([4, 6], [0, 0], [-1, -2]),
            ([4, 6], [a, a], [-2, -2]),
            ([10, 0], [20, 7], [1, 1]),
            ([3, 0], [1, 7], [1, 1]),
            ([-100, 1], [100, a], [1, 5]),
            ([-1, a], [-6, a], [-1, 1]),
            ([1, 6], [2, -8], [1, -6]),
            ([2, 2], [3, 3], None),
            ([100, 100], [-100, -100], [-3, -1]),
        ]
    ):
        index = tuple(
            slice(None if s[d] == a else s[d], None if e[d] == a else e[d], p[d] if p else None) for d in range(2)
        )
        attrs = {"start": s, "stop": e}
        if p:
            attrs["step"] = p
        book.case("view/slice/%02d" % i, "slice", [x], [Arr("i16", np.ascontiguousarray(x.v[index]))], attrs=attrs)
    for i, (axis, s, e, p) in enumerate(
        [(0, 1, 4, 1), (1, a, a, -1), (-1, 6, 0, -2), (-2, -2, a, 1), (1, 2, a, 2), (0, 9, 20, 1), (1, -3, -1, 1)]
    ):
        cut = slice(None if s == a else s, None if e == a else e, p)
        y = x.v[cut] if axis in (0, -2) else x.v[:, cut]
        book.case(
            "view/slice_axis/%d" % i,
            "slice_axis",
            [x],
            [Arr("i16", np.ascontiguousarray(y))],
            attrs={"axis": axis, "start": s, "stop": e, "step": p},
        )
    for i in range(80):
        nd = int(rng.integers(1, 5))
        x = ints(rng, "i8", tuple(int(d) for d in rng.integers(1, 7 - nd, nd)), -99, 100)
        s, e, p, cut = [], [], [], []
        for d in x.shape:
            s.append(a if rng.random() < 0.25 else int(rng.integers(-d - 2, d + 3)))
            e.append(a if rng.random() < 0.25 else int(rng.integers(-d - 2, d + 3)))
            p.append(int(rng.choice([1, 1, 2, 3, -1, -2, -3])))
            cut.append(slice(None if s[-1] == a else s[-1], None if e[-1] == a else e[-1], p[-1]))
        book.case(
            "view/slice/random%02d" % i,
            "slice",
            [x],
            [Arr("i8", np.ascontiguousarray(x.v[tuple(cut)]))],
            attrs={"start": s, "stop": e, "step": p},
        )
    book.case("view/reshape/refused", "reshape", [ints(rng, "i8", (2, 3))], status=ERR_SHAPE, attrs={"shape": [4, 2]})
    book.case(
        "view/broadcast_to/refused",
        "broadcast_to",
        [ints(rng, "i8", (2, 3))],
        status=ERR_SHAPE,
        attrs={"shape": [2, 4]},
    )


# --------------------------------------------------- joining, indexing, sorting


def joining(book, rng):
    for dtype in ("f32", "i8", "u64", "bool", "f16", "bf16"):
        parts = [some(rng, dtype, s) for s in ((2, 3), (2, 1), (2, 4))]
        book.case(
            "concat/%s/1" % dtype,
            "concat",
            parts,
            [Arr(dtype, np.concatenate([p.v for p in parts], 1))],
            attrs={"axis": 1},
        )
        parts = [some(rng, dtype, s) for s in ((2, 3), (0, 3), (1, 3))]
        book.case(
            "concat/%s/-2" % dtype,
            "concat",
            parts,
            [Arr(dtype, np.concatenate([p.v for p in parts], 0))],
            attrs={"axis": -2},
        )
        parts = [some(rng, dtype, (2, 3)) for _ in range(3)]
        for axis in (0, 1, 2, -1):
            book.case(
                "stack/%s/%d" % (dtype, axis),
                "stack",
                parts,
                [Arr(dtype, np.stack([p.v for p in parts], axis))],
                attrs={"axis": axis},
            )
        x = some(rng, dtype, (3, 7))
        cut = np.split(x.v, [2, 2, 6], axis=1)
        book.case(
            "split/%s/1" % dtype,
            "split",
            [x],
            [Arr(dtype, np.ascontiguousarray(c)) for c in cut],
            attrs={"axis": 1, "sizes": [2, 0, 4, 1]},
        )
        cut = np.split(x.v, [1], axis=0)
        book.case(
            "split/%s/-2" % dtype,
            "split",
            [x],
            [Arr(dtype, np.ascontiguousarray(c)) for c in cut],
            attrs={"axis": -2, "sizes": [1, 2]},
        )
        x = some(rng, dtype, (2, 3))
        v = 1.0 if dtype == "bool" else 5.0
        book.case(
            "pad/%s" % dtype,
            "pad",
            [x],
            [Arr(dtype, np.pad(x.v, ((1, 2), (0, 3)), constant_values=NP[dtype](v)))],
            attrs={"low": [1, 0], "high": [2, 3], "value": v},
        )
        book.case(
            "pad/%s/zero" % dtype,
            "pad",
            [x],
            [Arr(dtype, np.pad(x.v, ((0, 0), (2, 1))))],
            attrs={"low": [0, 2], "high": [0, 1], "value": 0.0},
        )
        book.case("tile/%s" % dtype, "tile", [x], [Arr(dtype, np.tile(x.v, (2, 3)))], attrs={"reps": [2, 3]})
        book.case("tile/%s/once" % dtype, "tile", [x], [Arr(dtype, np.tile(x.v, (1, 2)))], attrs={"reps": [1, 2]})
        for axis, n in ((0, 2), (1, 3), (-1, 1)):
            book.case(
                "repeat/%s/%d" % (dtype, axis),
                "repeat",
                [x],
                [Arr(dtype, np.repeat(x.v, n, axis))],
                attrs={"count": n, "axis": axis},
            )
        for axis, n in ((0, 1), (1, -1), (-1, 2), (1, 7), (0, -5), (1, 0)):
            book.case(
                "roll/%s/%d/%d" % (dtype, axis, n),
                "roll",
                [x],
                [Arr(dtype, np.roll(x.v, n, axis))],
                attrs={"shift": n, "axis": axis},
            )
    x = normal(rng, "f32", (2, 2))
    book.case(
        "pad/minus_inf",
        "pad",
        [x],
        [Arr("f32", np.pad(x.v, ((1, 0), (0, 1)), constant_values=np.float32(-np.inf)))],
        attrs={"low": [1, 0], "high": [0, 1], "value": -math.inf},
    )
    book.case("concat/one", "concat", [x], [x], attrs={"axis": 0})
    book.case("concat/refused", "concat", [x, normal(rng, "f32", (3, 3))], status=ERR_SHAPE, attrs={"axis": 0})


def gather(x, idx):
    k = idx.shape[-1]
    return x[tuple(idx[..., j] for j in range(k))]


def scatter(x, idx, upd, add):
    out, k = x.copy(), idx.shape[-1]
    rest = x.shape[k:]
    for row, u in zip(idx.reshape(-1, k), upd.reshape((-1,) + rest)):
        out[tuple(row)] = out[tuple(row)] + u if add else u
    return out


def indexing(book, rng):
    for dtype in ("f32", "i8", "bool", "f16", "bf16", "u64", "f64"):
        x = some(rng, dtype, (3, 2, 4))
        for axis, idt, shape in (
            (0, "i64", (3,)),
            (1, "i32", (2, 4)),
            (-1, "u8", (6,)),
            (0, "i8", ()),
            (2, "i16", (2, 1, 2)),
            (1, "u32", (0,)),
        ):
            n = x.shape[axis]
            idx = arr(idt, rng.integers(0 if idt in UNSIGNED else -n, n, shape))
            book.case(
                "take/%s/%d/%s" % (dtype, axis, idt),
                "take",
                [x, idx],
                [Arr(dtype, np.take(x.v, idx.v.astype(np.int64), axis))],
                attrs={"axis": axis},
            )
        for axis, m in ((0, 2), (1, 4), (-1, 3)):
            n = x.shape[axis]
            shape = list(x.shape)
            shape[axis] = m
            idx = arr("i32" if axis else "i64", rng.integers(-n, n, shape))
            book.case(
                "take_along_axis/%s/%d" % (dtype, axis),
                "take_along_axis",
                [x, idx],
                [Arr(dtype, np.take_along_axis(x.v, idx.v.astype(np.int64), axis))],
                attrs={"axis": axis},
            )
        for k, lead in ((1, (3,)), (2, (2, 2)), (3, (4,)), (2, ()), (1, (0,))):
            idx = np.stack([rng.integers(-n, n, lead) for n in x.shape[:k]], -1)
            i = arr("i32" if k == 2 else "i64", idx)
            tag = "%s/%d/%s" % (dtype, k, "x".join(map(str, lead)) or "one")
            book.case("gather/" + tag, "gather", [x, i], [Arr(dtype, np.ascontiguousarray(gather(x.v, idx)))])
            if dtype == "bool":
                continue
            upd = some(rng, dtype, lead + x.shape[k:])
            book.case("scatter/" + tag, "scatter", [x, i, upd], [Arr(dtype, scatter(x.v, idx, upd.v, False))])
            if dtype in FLOATS:
                y = rnd(dtype, scatter(x.f64(), idx, upd.f64(), True))
                book.case("scatter_add/" + tag, "scatter_add", [x, i, upd], [y], tol=sum_tol(dtype, 4, 8))
            else:
                with np.errstate(all="ignore"):
                    book.case(
                        "scatter_add/" + tag, "scatter_add", [x, i, upd], [Arr(dtype, scatter(x.v, idx, upd.v, True))]
                    )
    # the same position several times
    x = arr("f32", np.zeros(4))
    i = arr("i64", np.array([[1], [1], [3], [1], [-1]]))
    u = arr("f32", np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    book.case("scatter/last_wins", "scatter", [x, i, u], [arr("f32", np.array([0.0, 4.0, 0.0, 5.0]))])
    book.case("scatter_add/repeated", "scatter_add", [x, i, u], [arr("f32", np.array([0.0, 7.0, 0.0, 8.0]))])
    x = wrap("i8", [100, 100])
    book.case(
        "scatter_add/wraps",
        "scatter_add",
        [x, arr("i32", np.array([[0], [0]])), wrap("i8", [20, 20])],
        [wrap("i8", [140, 100])],
    )
    table = normal(rng, "f32", (6, 4))
    for idt, shape in (("i64", (5,)), ("i32", (2, 3)), ("u8", ()), ("u16", (0,))):
        ids = arr(idt, rng.integers(0, 6, shape))
        book.case("embedding/f32/%s" % idt, "embedding", [table, ids], [Arr("f32", table.v[ids.v.astype(np.int64)])])
    for dtype in ("f16", "bf16", "i8"):
        t3 = some(rng, dtype, (3, 2, 2))
        ids = arr("i32", np.array([2, 0, 2]))
        book.case("embedding/%s" % dtype, "embedding", [t3, ids], [Arr(dtype, t3.v[ids.v])])
    ids = arr("i64", np.array([[0, 3, 2], [7, -100, 1]]))
    hot = np.zeros((2, 3, 4))
    for r in range(2):
        for c in range(3):
            if 0 <= ids.v[r, c] < 4:
                hot[r, c, ids.v[r, c]] = 1
    for dtype in ("f32", "i32", "bool", "f16", "bf16", "u8", "f64"):
        book.case("one_hot/%s" % dtype, "one_hot", [ids], [arr(dtype, hot)], attrs={"depth": 4, "dtype": CODE[dtype]})
    book.case(
        "one_hot/u8_ids",
        "one_hot",
        [arr("u8", np.array([2, 250]))],
        [arr("f32", np.array([[0, 0, 1.0], [0, 0, 0]]))],
        attrs={"depth": 3, "dtype": CODE["f32"]},
    )
    x = normal(rng, "f32", (4, 3))
    bad = arr("i64", np.array([0, 4]))
    book.case("take/refused", "take", [x, bad], status=ERR_INDEX, attrs={"axis": 0})
    book.case("take/refused_negative", "take", [x, arr("i64", np.array([-5]))], status=ERR_INDEX, attrs={"axis": 0})
    book.case("gather/refused", "gather", [x, arr("i64", np.array([[0, 3]]))], status=ERR_INDEX)
    book.case(
        "scatter/refused", "scatter", [x, arr("i64", np.array([[9, 0]])), arr("f32", np.zeros(1))], status=ERR_INDEX
    )
    book.case(
        "scatter_add/refused",
        "scatter_add",
        [x, arr("i64", np.array([[-9, 0]])), arr("f32", np.zeros(1))],
        status=ERR_INDEX,
    )
    book.case(
        "take_along_axis/refused",
        "take_along_axis",
        [x, arr("i64", np.full((1, 3), 4))],
        status=ERR_INDEX,
        attrs={"axis": 0},
    )
    book.case("embedding/refused", "embedding", [x, bad], status=ERR_INDEX)


def order(row, descending):
    """Stable; NaN is the largest."""
    key = lambda i: (1, 0) if row[i] != row[i] else (0, row[i])
    return sorted(range(len(row)), key=key, reverse=descending)


def along(x, axis, fn):
    return np.apply_along_axis(fn, axis, x) if x.size else np.zeros(x.shape, np.int64)


def sorting(book, rng):
    inputs = []
    for dtype in ("f32", "f64", "f16", "bf16", "i8", "u8", "i64", "u64", "bool", "i32", "u16"):
        inputs.append(
            (
                dtype,
                ints(rng, dtype, (2, 3, 5), -4, 5)
                if dtype not in FLOATS
                else arr(dtype, rng.integers(-4, 5, (2, 3, 5)) / 2),
            )
        )
    inputs.append(
        (
            "f32/special",
            arr("f32", np.array([[3, np.nan, 1, -np.inf, np.inf, np.nan, 0], [0, -0.0, 0, 1, -0.0, np.inf, np.nan]])),
        )
    )
    inputs.append(("bf16/special", arr("bf16", np.array([[3, np.nan, 1, -np.inf, np.inf, np.nan, 0]]))))
    inputs.append(("f32/long", normal(rng, "f32", (1, 70))))
    inputs.append(("i8/long", ints(rng, "i8", (67,), -8, 9)))
    inputs.append(("u64/large", wrap("u64", [2**63, 1, 2**64 - 1, 2**63 - 1, 0, 2**63 + 1])))
    inputs.append(
        ("i64/large", wrap("i64", [-(2**63), 2**63 - 1, 2**62 + 1, 2**62, -(2**62) - 1, -(2**62)]))
    )
    inputs.append(("f32/empty", arr("f32", np.zeros((2, 0)))))
    for tag, x in inputs:
        axes = (-1, 0, 1) if tag in ("f32", "i8") else (-1,)
        for axis in axes:
            for descending in (False, True):
                idx = along(x.v, axis, lambda row: np.array(order(row, descending), dtype=np.int64))
                name = "%s/%d/%s" % (tag, axis, "down" if descending else "up")
                attrs = {"axis": axis, "descending": int(descending)}
                book.case("sort/" + name, "sort", [x], [Arr(x.dtype, np.take_along_axis(x.v, idx, axis))], attrs=attrs)
                book.case("argsort/" + name, "argsort", [x], [Arr("i64", idx)], attrs=attrs)
            n = x.shape[axis]
            idx = along(x.v, axis, lambda row: np.array(order(row, True), dtype=np.int64))
            for k in sorted({min(1, n), min(3, n), n}):
                top = np.take(idx, np.arange(k), axis)
                book.case(
                    "topk/%s/%d/%d" % (tag, axis, k),
                    "topk",
                    [x],
                    [Arr(x.dtype, np.take_along_axis(x.v, top, axis)), Arr("i64", top)],
                    attrs={"k": k, "axis": axis},
                )


def make(seed):
    books = {}
    table = (("create", creation), ("view", views), ("index", joining), ("index", indexing), ("sort", sorting))
    for i, (name, fn) in enumerate(table):
        fn(books.setdefault(name, Book(name)), np.random.default_rng([seed, i]))
    return books
