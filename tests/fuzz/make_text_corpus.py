#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/text_jinja and text_tokenizer: small inputs of every kind for the fuzzers to begin with.

    python3 tests/fuzz/make_text_corpus.py"""
import base64
import json
import os
import re
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def write(folder, name, data):
    path = os.path.join(HERE, "corpus", folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def jinja():
    golden = open(os.path.join(HERE, "..", "golden", "jinja.txt"), encoding="utf-8").read()
    seen = {}
    for name, template in re.findall(r"==== (\w+) \w+ \d\n(.*?)\n----\n", golden, re.S):
        seen.setdefault(name, template)
    for name, template in seen.items():
        write("text_jinja", name, template)
    write("text_jinja", "loop", "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}")
    write("text_jinja", "grow", "{% set n = namespace(x='ab') %}{% for a in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}")
    write("text_jinja", "deep", "{{ " + "(" * 100 + "1" + ")" * 100 + " }}")


def bpe(**changes):
    vocab = {c: i for i, c in enumerate("abcdeHlo\u0120\u010a<>12345")}
    for token in ("ab", "\u0120a", "lo", "abc"):
        vocab[token] = len(vocab)
    whole = {
        "version": "1.0",
        "added_tokens": [{"id": len(vocab), "content": "<|end|>", "special": True, "lstrip": True, "rstrip": True}],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}]},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": ["a b", ["\u0120", "a"], "l o", "ab c"]},
    }
    whole.update(changes)
    return json.dumps(whole, ensure_ascii=False)


def spm():
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, "<0x41>": 3, "\u2581": 4, "a": 5, "b": 6, "\u2581a": 7, "ab": 8}
    return bpe(
        added_tokens=[{"id": i, "content": c, "special": True} for i, c in enumerate(("<unk>", "<s>", "</s>"))],
        normalizer={"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        pre_tokenizer=None,
        post_processor=None,
        decoder={"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        model={"type": "BPE", "byte_fallback": True, "unk_token": "<unk>", "vocab": vocab, "merges": ["\u2581 a", "a b"]})


def field(number, kind, data):
    return bytes([number << 3 | kind]) + (bytes([len(data)]) if kind == 2 else b"") + data


def tokenizers():
    split = {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    write("text_tokenizer", "bpe.json", bpe())
    write("text_tokenizer", "sequence.json", bpe(
        normalizer={"type": "NFC"},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [
            split, {"type": "Punctuation", "behavior": "Contiguous"}, level, {"type": "Digits", "individual_digits": True},
            {"type": "Split", "pattern": {"String": "a."}, "behavior": "Removed", "invert": False}]}))
    write("text_tokenizer", "spm.json", spm())
    write("text_tokenizer", "metaspace.json", bpe(
        pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
        decoder={"type": "Metaspace", "replacement": "\u2581"}))
    pieces = b""
    for text, score, kind in (("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), ("<0x41>", 0, 6), ("\u2581", -1, 1), ("a", -2, 1)):
        pieces += field(1, 2, field(1, 2, text.encode()) + field(2, 5, struct.pack("<f", score)) + field(3, 0, bytes([kind])))
    write("text_tokenizer", "spm.model", pieces + field(2, 2, field(3, 0, b"\2")) + field(3, 2, field(4, 0, b"\0")))
    tokens = [b"<unk>", b"\n<s>\n", b"\n</s>\n"] + [b"<0x%02X>" % i for i in range(256)] + [b" ", b"a", b" a"]
    write("text_tokenizer", "llama2.bin", struct.pack("<I", 6) + b"".join(
        struct.pack("<fI", -i, len(t)) + t for i, t in enumerate(tokens)))
    ranks = [bytes([i]) for i in range(32, 127)] + [b"ab", b"abc"]
    write("text_tokenizer", "ranks", b"".join(b"%s %d\n" % (base64.b64encode(t), i) for i, t in enumerate(ranks)))


jinja()
tokenizers()
