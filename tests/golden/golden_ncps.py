#!/usr/bin/env python3
"""Writes tests/golden/ncps.txt from the results of the reference package: golden_ncps.py ncps.json > tests/golden/ncps.txt

A case is its name, the parameters in order (name, shape, range or "wiring"), the shape of the input, and the outputs and
last states. How parameters and inputs are drawn is in tests/api/test_liquid_golden.c."""

import json
import sys

for name, case in json.load(open(sys.argv[1])).items():
    if "error" in case or "units!" in name: # where the reference fails, and where it is silently wrong
        continue
    print("case", name.split("(")[0])
    for param, shape, spread in case.get("params(order=named_parameters)", []):
        print("param", param, *shape, ":", *(spread if isinstance(spread, list) else ["wiring"]))
    print("y", *("%.9g" % v for v in case["y"]))
    print("h", *("%.9g" % v for v in case["h"]))
