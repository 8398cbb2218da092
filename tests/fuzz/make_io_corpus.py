#!/usr/bin/env python3
"""Writes the first inputs of the fuzzers of src/io: small valid files, and the
attacks of docs/FORMATS.md. Only the Python standard library.

    python3 tests/fuzz/make_io_corpus.py        (from the root of the project)"""
import io
import json
import os
import struct
import zipfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def store(fuzzer, name, data):
    folder = os.path.join(HERE, fuzzer)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


# ------------------------------------------------------------------ gguf ----

def text(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(b)) + b


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def info(name, dims, kind, offset):
    return text(name) + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, kind, offset)


def gguf(pairs, infos, data=b"", version=3, n_pairs=None, n_infos=None, align=32):
    head = b"GGUF" + struct.pack("<IQQ", version, len(infos) if n_infos is None else n_infos,
                                 len(pairs) if n_pairs is None else n_pairs)
    head += b"".join(pairs) + b"".join(infos)
    return head + b"\0" * (-len(head) % align) + data


def make_gguf():
    arch = pair("general.architecture", 8, text("bitnet-b1.58"))
    scalars = [pair("k%d" % k, k, b"\1\2\3\4\5\6\7\1"[:n]) for k, n in
               {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}.items()]
    arrays = [pair("list", 9, struct.pack("<IQ3i", 5, 3, 1, -2, 3)),
              pair("texts", 9, struct.pack("<IQ", 8, 2) + text("a") + text("bc"))]
    good = {
        "empty": gguf([], []),
        "scalars": gguf([arch] + scalars + arrays, []),
        "f32": gguf([arch], [info("w", [3, 2], 0, 0)], b"\1" * 24),
        "i2_s": gguf([arch], [info("w", [128, 2], 36, 0), info("n", [4], 0, 96)], b"\x55" * 112),
        "q8_0_q4_k": gguf([], [info("a", [64], 8, 0), info("b", [256], 12, 96)], b"\1" * 240),
        "q2_0_of_prism": gguf([], [info("a", [4096], 42, 0), info("e", [1], 24, 1088)], b"\1" * 1089),
        "tq1_0": gguf([], [info("a", [256], 34, 0)], b"\x20" * 54),
        "aligned_64": gguf([pair("general.alignment", 4, struct.pack("<I", 64))],
                           [info("a", [3], 24, 0), info("b", [1], 24, 64)], b"abc" + b"\0" * 61 + b"d", align=64),
    }
    bad = {
        "count_lies": gguf([], [], n_infos=1 << 60),
        "meta_count_lies": gguf([arch], [], n_pairs=(1 << 64) - 1),
        "string_lies": gguf([struct.pack("<Q", (1 << 64) - 8) + b"key"], []),
        "array_lies": gguf([pair("a", 9, struct.pack("<IQ", 12, 1 << 61))], []),
        "nested_array": gguf([pair("a", 9, struct.pack("<IQIQ", 9, 1, 0, 1) + b"\1")], []),
        "wrong_type": gguf([pair("a", 99, b"\0" * 8)], []),
        "alignment_text": gguf([pair("general.alignment", 8, text("32"))], []),
        "alignment_huge": gguf([pair("general.alignment", 4, struct.pack("<I", 1 << 31))], []),
        "product_wraps": gguf([], [info("w", [1 << 32, 1 << 32], 0, 0)], b"\0" * 64),
        "padding_wraps": gguf([], [info("w", [(1 << 63) - 1], 24, 0)], b"\0" * 64),
        "offset_wraps": gguf([], [info("w", [1], 0, (1 << 64) - 32)], b"\0" * 64),
        "overlap": gguf([], [info("a", [16], 0, 0), info("b", [8], 0, 32)], b"\0" * 128),
        "twice": gguf([arch, arch], [info("a", [1], 0, 0), info("a", [1], 0, 32)], b"\0" * 64),
        "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    }
    for name, data in {**good, **bad}.items():
        store("io_gguf", name, data)


# ----------------------------------------------------------- safetensors ----

def make_safetensors():
    def entry(dtype, shape, begin, end):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    headers = {
        "empty": ({}, 0),
        "two": ({"a": entry("F32", [2, 3], 0, 24), "b": entry("U8", [], 24, 25)}, 25),
        "metadata": ({"__metadata__": {"format": "pt", "x": "\u00e9\n"}, "a": entry("BF16", [0], 0, 0)}, 0),
        "sub_byte": ({"a": entry("F4", [4], 0, 2), "b": entry("F6_E3M2", [4], 2, 5)}, 5),
        "overlap": ({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 2, 6)}, 6),
        "hole": ({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 5, 9)}, 9),
        "wraps": ({"a": entry("F32", [1 << 32, 1 << 32], 0, 0)}, 0),
        "negative": ({"a": entry("F32", [-1], 0, 4)}, 4),
        "float": ({"a": entry("F32", [1.0], 0, 4)}, 4),
        "unknown_dtype": ({"a": entry("F7", [1], 0, 4)}, 4),
        "deep": ({"a": {"x": [[[[1]]]]}}, 0),
        "escaped_name": ({"a\u0000b": entry("U8", [1], 0, 1), "\U0001f600": entry("U8", [1], 1, 2)}, 2),
    }
    for name, (header, n) in headers.items():
        text_of = json.dumps(header, separators=(",", ":")).encode()
        store("io_safetensors", name, struct.pack("<Q", len(text_of)) + text_of + b"\1" * n)
        store("io_safetensors", name + "_json", bytes([n]) + text_of)
    store("io_safetensors", "length_huge", struct.pack("<Q", (1 << 64) - 1) + b"{}")
    store("io_safetensors", "twice_json", b"\2" + b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
          b'"\\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}')


# ------------------------------------------------------------------- npz ----

def npy(descr, shape, data, fortran=False, major=1):
    d = ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n" % (descr, fortran, shape)).encode()
    return b"\x93NUMPY" + bytes([major, 0]) + struct.pack("<H" if major == 1 else "<I", len(d)) + d + data


def npz(entries, method):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as z:
        for name, data in entries:
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, method)
    return buffer.getvalue()


def make_npz():
    a = npy("<f4", (2, 3), b"\1\2\3\4" * 6)
    store("io_npz", "npy", a)
    store("io_npz", "npy_fortran", npy("<i2", (2, 2), b"12345678", True, 2))
    store("io_npz", "npy_object", npy("|O", (1,), b"\x80\2N."))
    store("io_npz", "npy_short", npy("<f8", (2,), b"1234567"))
    store("io_npz", "npy_wraps", npy("<f8", (1 << 32, 1 << 32), b""))
    store("io_npz", "stored", npz([("x.npy", a), ("y.npy", npy("|u1", (), b"7"))], zipfile.ZIP_STORED))
    store("io_npz", "deflated", npz([("x.npy", a), ("z.npy", npy("|u1", (4000,), b"\0" * 4000))], zipfile.ZIP_DEFLATED))
    store("io_npz", "dots", npz([("../x.npy", a)], zipfile.ZIP_STORED))
    store("io_npz", "pickle", npz([("a/data.pkl", b"\x80\2N.")], zipfile.ZIP_STORED))
    bomb = npz([("x.npy", npy("|u1", (100000,), b"\0" * 100000))], zipfile.ZIP_DEFLATED)
    store("io_npz", "bomb", bomb)
    store("io_npz", "bomb_lies", bomb.replace(b"100000", b"999999"))
    import zlib
    words = b"the quick brown fox jumps over the lazy dog, then the lazy dog jumps over the quick brown fox " * 3
    for level in (0, 9):
        c = zlib.compressobj(level, zlib.DEFLATED, -15)
        store("io_npz", "stream_%d" % level, c.compress(words) + c.flush())


def make_json():
    texts = {
        "empty": "", "object": '{"a":[1,-2.5e3,true,false,null,"x\\n\\u00e9\\ud83d\\ude00"],"b":{}}',
        "twice": '{"a":1,"\\u0061":2}', "deep": "[" * 40, "surrogate": '"\\ud800"', "comma": "[1,]",
        "number": "[01]", "long": "1" * 300, "nested": "[[[[{}]]]]", "keys": json.dumps({"k%d" % i: i for i in range(40)}),
    }
    for name, value in texts.items():
        store("io_json", name, value.encode())
    store("io_json", "not_utf8", b'"\xed\xa0\x80"')


make_gguf()
make_safetensors()
make_npz()
make_json()


# ---------------------------------------------------- JSON beside a model ----

CONFIGS = {
    "bitnet": '{"architectures": ["BitNetForCausalLM"], "hidden_size": 2560, "rope_theta": 5e5, "tie": true,'
              ' "quantization_config": {"linear_class": "autobitlinear", "modules": ["a", "b"]}, "eos": [1, 2]}',
    "huge": '{"model_max_length": 1000000000000000019884624838656, "least": -9223372036854775808, "over": 9223372036854775808}',
    "mixed": '{"a": [1, "two", [3, 4.5, []], {"b": null}], "c": [true, 1], "d": [1, 2.5, -3], "e": [null]}',
    "escapes": '{"a\\u00e9\\n": "\\ud83d\\ude00", "list": ["\\"", "\\\\", ""]}',
    "dots": '{"a": {"b": 1}, "a.b": 2}',
    "nul_key": '{"a\\u0000b": 1}',
    "twice": '{"a": 1, "a": 2}',
    "deep": '{"a":' * 70 + "1" + "}" * 70,
    "deep_lists": '{"a":' + "[" * 70 + "]" * 70 + "}",
    "infinite": '{"a": [1, 1e999]}',
    "no_object": "[1, 2]",
    "more": '{"a": 1} 2',
    "cut": '{"a": [1, 2, "',
    "empty": "",
}
for config, content in CONFIGS.items():
    store("io_config", config, content.encode())
