#!/usr/bin/env python3
"""Writes src/text/unicode.def from Python's own Unicode tables.

    python3 tools/unicode_table.py > src/text/unicode.def"""
import unicodedata

ORDER = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
runs, last = [], None
for c in range(0x110000):
    category = unicodedata.category(chr(c))
    if category != last:
        runs.append((c << 5) | ORDER.index(category))
        last = category
print("/* Made by tools/unicode_table.py, Unicode %s: where each run of one general category begins," %
      unicodedata.unidata_version)
print(" * as code point * 32 + category (the order is in unicode.h). Do not edit. */")
for i in range(0, len(runs), 12):
    print(", ".join("0x%x" % r for r in runs[i:i + 12]) + ",")
