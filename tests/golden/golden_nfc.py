#!/usr/bin/env python3
"""Writes tests/golden/nfc.txt: texts and their normal form C, by Python's unicodedata.

    python3 tests/golden/golden_nfc.py > tests/golden/nfc.txt

The first line is FNV-1a over the forms of three texts for each character; then lines "TEXT FORM" in hexadecimal."""
import random
import unicodedata

assert unicodedata.unidata_version == "14.0.0"  # that of text/unicode_nfc.def


def form(text):
    return unicodedata.normalize("NFC", text).encode()


value = 0xCBF29CE484222325
for c in range(0x110000):
    if 0xD800 <= c < 0xE000:
        continue
    for text in (chr(c), "a" + chr(c) + "\u0301", unicodedata.normalize("NFD", chr(c))):
        for byte in form(text):
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
print("%016x" % value)
random.seed(1)
marks = [c for c in range(0x300, 0x2000) if unicodedata.combining(chr(c))]
bases = [c for c in range(0x41, 0x2000) if unicodedata.decomposition(chr(c))] + [0x1100, 0x1161, 0x11A8, 0xAC00, 0x4E00]
for _ in range(300):
    text = "".join(chr(random.choice(random.choice((marks, marks, bases, [0x61, 0x20])))) for _ in range(random.randint(1, 30)))
    print(text.encode().hex(), form(text).hex())
