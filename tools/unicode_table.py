#!/usr/bin/env python3
"""Writes text/unicode.def and text/unicode_nfc.def from Python's own Unicode tables.

    python3 tools/unicode_table.py category > text/unicode.def
    python3 tools/unicode_table.py nfc > text/unicode_nfc.def"""
import sys
import unicodedata

ORDER = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
VERSION = unicodedata.unidata_version


def print_rows(rows, per_line):
    for i in range(0, len(rows), per_line):
        print(", ".join(rows[i:i + per_line]) + ",")


def categories():
    runs, last = [], None
    for c in range(0x110000):
        category = unicodedata.category(chr(c))
        if category != last:
            runs.append((c << 5) | ORDER.index(category))
            last = category
    print("/* Made by tools/unicode_table.py, Unicode %s: where each run of one general category begins," % VERSION)
    print(" * as code point * 32 + category (the order is in unicode.h). Do not edit. */")
    print_rows(["0x%x" % r for r in runs], 12)


def nfc():
    pairs, classes = [], []
    for c in range(0x110000):
        parts = unicodedata.decomposition(chr(c))
        if parts and parts[0] != "<" and not 0xac00 <= c <= 0xd7a3:
            first, *rest = [int(p, 16) for p in parts.split()]
            composes = bool(rest) and unicodedata.normalize("NFC", chr(first) + chr(rest[0])) == chr(c)
            pairs.append((c, first, rest[0] if rest else 0, int(composes)))
        k = unicodedata.combining(chr(c))
        if classes and classes[-1][1] == c - 1 and classes[-1][2] == k:
            classes[-1][1] = c
        elif k:
            classes.append([c, c, k])
    print("/* Made by tools/unicode_table.py, Unicode %s. Do not edit.\n *" % VERSION)
    print(" * MICA_NFC_PAIRS: a character and the one or two it is made of, and whether the two become it again. */")
    print("#ifdef MICA_NFC_PAIRS")
    print_rows(["{0x%x, 0x%x, 0x%x, %d}" % p for p in pairs], 4)
    print("#endif\n/* MICA_NFC_ORDER: positions in it of those that are made again, by what they are made of. */")
    print("#ifdef MICA_NFC_ORDER")
    order = sorted((i for i, p in enumerate(pairs) if p[3]), key=lambda i: pairs[i][1:3])
    print_rows(["%d" % i for i in order], 20)
    print("#endif\n/* MICA_NFC_CLASSES: first, last and combining class of characters that have one. */")
    print("#ifdef MICA_NFC_CLASSES")
    print_rows(["{0x%x, 0x%x, %d}" % tuple(k) for k in classes], 5)
    print("#endif")


{"category": categories, "nfc": nfc}[sys.argv[1]]()
