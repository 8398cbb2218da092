#!/usr/bin/env python3
"""Fits the constants of the GPU cost model to published speeds and says how well it predicts the others.

Usage: tools/calibrate_gpu_model.py [--svg FILE] [--json FILE]

Reads bench/gpu_model/rows.json (counts of third-party kernels, published tokens a second) and src/machine/chips.def.
The time of a token is, over all matrices, max(ALU / u, DRAM / b), plus L for each dispatch: the parts of
src/cost/gpu_model.c that bind a matrix-vector product. u, b and L are fitted on half of the rows and tested on the other
half, for every way to choose that half, so that no lucky split is reported.
"""

import argparse
import itertools
import json
import math
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LANES = 128                   # of a core
OVERLAP_FAMILY = 9            # as in src/cost/gpu_model.c
DISPATCHES_A_LAYER = 17       # of llama.cpp in 2026; read from its graph, not counted
SHARES = [0.70 + 0.02 * i for i in range(14)]
LAUNCHES = [1e-6 * i for i in (2, 3, 4, 5, 6, 7, 8, 10, 12)]


def read_chips():
    """Name -> (family, cores, hz, bytes a second); the smaller variant as "NAME CORES"."""
    figure = r"F\(\s*([\d.]+),\s*([\d.]+),\s*\w+\)"
    row = re.compile(r'MICA_CHIP\(\.name = "([^"]+)",\s*\.family = (\d+),\s*\.cores = %s, \.mhz = %s,\s*\.gbs = %s' %
                     (figure, figure, figure))
    chips = {}
    for m in row.finditer((ROOT / "src/machine/chips.def").read_text()):
        name, family = m[1], int(m[2])
        full, reduced = (float(m[3]), float(m[5]), float(m[7])), (float(m[4]), float(m[6]), float(m[8]))
        for cores, mhz, gbs in (reduced, full):
            chips["%s %d" % (name, cores)] = chips[name] = (family, cores, mhz * 1e6, gbs * 1e9)
    return chips


def matrices(model, mix):
    """(weights, kernel) of each kind of matrix that a token multiplies with."""
    layers, hidden, feed, kv = model["layers"], model["hidden"], model["feed"], model["kv"]
    value_and_down = layers * (hidden * kv + feed * hidden)
    rest = layers * (2 * hidden * hidden + hidden * kv + 2 * hidden * feed) + value_and_down
    better = mix.get("value_and_down_half")
    if better:
        rest -= value_and_down / 2
        yield value_and_down / 2, better
    yield rest, mix["rest"]
    yield hidden * model["vocab"], mix["output"]


def parts(data, chip, model, mix):
    """[(ALU seconds, DRAM seconds)] at the peaks, and the number of dispatches."""
    family, cores, hz, rate = chip
    shape, total = data["models"][model], []
    for weights, name in matrices(shape, data["mixes"][mix]):
        kernel = data["kernels"][name]
        cycles = kernel["overlap" if family >= OVERLAP_FAMILY else "sum"]
        total.append((weights * cycles / (LANES * cores * hz), weights * kernel["bits"] / 8 / rate))
    return total, shape["layers"] * DISPATCHES_A_LAYER


def tokens(work, fit):
    alu, memory, launch = fit
    pairs, dispatches = work
    return 1 / (sum(max(a / alu, d / memory) for a, d in pairs) + dispatches * launch)


def best_fit(errors, rows):
    """The grid point with the least sum of squared log errors over `rows`."""
    return min(errors, key=lambda fit: sum(errors[fit][r] ** 2 for r in rows))


def svg_of(rows, predicted):
    """Predicted against published on logarithmic axes, with a band of 25 %."""
    size, edge, low, high = 480, 50, 5.0, 200.0
    at = lambda v: edge + (size - 2 * edge) * math.log(v / low) / math.log(high / low)
    point = lambda x, y: "%.1f,%.1f" % (at(x), size - at(y))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' %
           (size, size), '<rect width="100%" height="100%" fill="white"/>']
    band = [point(low, low * 1.25), point(high / 1.25, high), point(high, high), point(high, high / 1.25),
            point(low * 1.25, low), point(low, low)]
    out.append('<polygon points="%s" fill="#e8eef7"/>' % " ".join(band))
    out.append('<polyline points="%s %s" stroke="#8090a0" fill="none"/>' % (point(low, low), point(high, high)))
    for tick in (5, 10, 20, 50, 100, 200):
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (at(tick), size - edge + 18, tick))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%d</text>' % (edge - 6, size - at(tick) + 4, tick))
    for row, value in zip(rows, predicted):
        x, y = at(row["published"]), size - at(value)
        out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="#2060c0"><title>%s %s %s</title></circle>' %
                   (x, y, row["chip"], row["model"], row["mix"]))
    out.append('<text x="%d" y="%d" text-anchor="middle">published tokens/s</text>' % (size // 2, size - 12))
    out.append('<text x="14" y="%d" text-anchor="middle" transform="rotate(-90 14 %d)">modelled tokens/s</text>' %
               (size // 2, size // 2))
    out.append('<text x="%d" y="24" text-anchor="middle">decoding, fitted to all rows; band: 25 %%</text></svg>' % (size // 2))
    return "\n".join(out) + "\n"


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--svg", help="write a picture of predicted against published")
    options.add_argument("--json", help="write the figures")
    options = options.parse_args()
    data, chips = json.loads((ROOT / "bench/gpu_model/rows.json").read_text()), read_chips()
    rows = data["decode"]
    unknown = [r["chip"] for r in rows if r["chip"] not in chips or not all(chips[r["chip"]])]
    if unknown:
        sys.exit("calibrate_gpu_model: chips.def lacks a figure of %s" % ", ".join(unknown))
    work = [parts(data, chips[r["chip"]], r["model"], r["mix"]) for r in rows]
    errors = {fit: [math.log(tokens(w, fit) / r["published"]) for w, r in zip(work, rows)]
              for fit in itertools.product(SHARES, SHARES, LAUNCHES)}

    tested, worst, good = [], [], 0
    splits = list(itertools.combinations(range(len(rows)), len(rows) // 2))
    for split in splits:
        fit = best_fit(errors, split)
        out = [abs(math.exp(errors[fit][r]) - 1) for r in range(len(rows)) if r not in split]
        tested += out
        worst.append(max(out))
        good += max(out) <= 0.25
    fit = best_fit(errors, range(len(rows)))
    predicted = [tokens(w, fit) for w in work]
    print("fitted to all %d rows: ALU share %.2f, memory share %.2f, launch %.0f us" % ((len(rows),) + fit[:2] + (fit[2] * 1e6,)))
    print("%-10s %-12s %-8s %10s %10s %7s" % ("chip", "model", "weights", "published", "modelled", "error"))
    for r, p in zip(rows, predicted):
        print("%-10s %-12s %-8s %10.1f %10.1f %+6.0f%%" % (r["chip"], r["model"], r["mix"], r["published"], p, 100 * (p / r["published"] - 1)))
    print("all %d splits, rows that were not fitted: median error %.1f %%, within 25 %%: %.0f %% of rows; worst row of a split: "
          "median %.0f %%; splits with all rows within 25 %%: %.0f %%" %
          (len(splits), 100 * statistics.median(tested), 100 * sum(e <= 0.25 for e in tested) / len(tested),
           100 * statistics.median(worst), 100 * good / len(splits)))
    for r in data["ranking"]:
        pair = [tokens(parts(data, chips[r["chip"]], r["model"], r[side]), fit) for side in ("slower", "faster")]
        print("%s: %s over %s, published %.2fx, modelled %.2fx: %s" %
              (r["chip"], r["faster"], r["slower"], r["published_ratio"], pair[1] / pair[0],
               "order right" if (pair[1] > pair[0]) == (r["published_ratio"] > 1) else "order WRONG"))
    if options.svg:
        pathlib.Path(options.svg).write_text(svg_of(rows, predicted))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"alu": fit[0], "memory": fit[1], "launch": fit[2],
                                                          "median_error": statistics.median(tested)}) + "\n")


if __name__ == "__main__":
    main()
