"""Writes the results of bench/peers.py as a Markdown table, JSON and a bar chart. Files are replaced atomically."""

import json
import math
import os

COLOURS = {
    "openblas": "#4269d0", "onednn": "#efb118", "torch": "#ff725c", "numpy": "#6cc5b0", "mlx": "#9c6b4e", "c_loop": "#97bbf5"
}


def write_file(path, text):
    with open(path + ".new", "w") as out:
        out.write(text)
    os.rename(path + ".new", path)


def format_time(ns):
    for limit, unit, scale in ((1e4, "ns", 1), (1e6, "us", 1e3), (1e9, "ms", 1e6)):
        if ns < limit:
            return "%.4g %s" % (ns / scale, unit)
    return "%.4g s" % (ns / 1e9)


def format_ratio(ratio):
    return "%.2fx" % ratio if ratio < 10 else "%.0fx" % ratio


def markdown_row(row, peers):
    mica = row["times"]["mica"]
    cells = [row["case"], str(row["threads"]), format_time(mica["fastest_ns"]) if "fastest_ns" in mica else "failed"]
    for name in peers:
        ratio, time = row["ratios"].get(name), row["times"].get(name, {})
        if ratio:
            cells.append("%s (%s)" % (format_ratio(ratio["best"]), format_time(time["fastest_ns"])))
        else:
            cells.append("-")
    best = min((r["best"] for r in row["ratios"].values()), default=None)
    cells.append(format_ratio(best) if best else "-")
    cells.append("gated: one core" if row["gated"] else mica.get("absent", ""))
    return cells


def markdown(report):
    mica, peaks = report["mica"], report["peaks"]
    lines = ["# mica compared with its peers", ""]
    lines += ["- mica %s, commit %s, %s" % (mica["version"], mica["commit"], report["date"])]
    lines += ["- " + line for line in report["machine"]]
    if peaks.get("fma_f32"):
        lines += [
            "- measured peaks, 1 thread / %d: f32 %.1f / %.1f GFLOP/s, DRAM read %.1f / %.1f GB/s"
            % (peaks["threads"], peaks["fma_f32"], peaks["fma_f32_all"], peaks["dram_read"], peaks["dram_read_all"])
        ]
    lines += ["- load before the run: %.2f" % report["load"]]
    lines += ["- %s: %s" % (name, report["versions"][name]) for name in report["peers"]]
    lines += ["- %s: absent, %s" % (name, why) for name, why in sorted(report["absent"].items())]
    lines += [
        "- fastest of %d rounds of %g s each, in turns; `%s`" % (report["rounds"], report["seconds"], report["command"]),
        "",
        "A cell has the ratio of the peer's time to mica's (above 1: mica is faster) and the peer's time. The last ratio "
        "is that to the fastest peer.",
        "",
    ]
    rows = [["work", "T", "mica"] + report["peers"] + ["best peer", "note"]]
    rows += [markdown_row(row, report["peers"]) for row in report["rows"]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    lines += ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


class Chart:
    """Horizontal bars on a logarithmic scale; at 1 mica and the peer are equally fast."""

    LEFT, WIDTH, BAR, GAP, TOP = 300, 620, 9, 10, 74
    LOW, HIGH = 0.1, 100.0

    def __init__(self, report):
        self.report, self.parts = report, []
        self.rows = [row for row in report["rows"] if row["ratios"]]

    def x(self, ratio):
        ratio = min(max(ratio, self.LOW), self.HIGH)
        return self.LEFT + self.WIDTH * math.log(ratio / self.LOW) / math.log(self.HIGH / self.LOW)

    def text(self, x, y, text, size=11, anchor="start", colour="#333"):
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(
            '<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s">%s</text>' % (x, y, size, anchor, colour, text)
        )

    def rect(self, x, y, width, height, colour, title=""):
        self.parts.append(
            '<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s</title></rect>'
            % (x, y, max(width, 0.5), height, colour, title)
        )

    def legend(self):
        self.text(12, 22, "Time of each peer divided by the time of mica", 15)
        self.text(12, 39, "right of 1: mica is faster; logarithmic; grey: both threads on one core; %s, %s" % (self.report["machine"][0], self.report["date"]))
        x = self.LEFT
        for name in self.report["peers"]:
            self.rect(x, 48, 10, 10, COLOURS.get(name, "#888"))
            self.text(x + 14, 57, name)
            x += 28 + 7 * len(name)

    def grid(self, height):
        for ratio in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100):
            x, strong = self.x(ratio), ratio == 1
            self.parts.append(
                '<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="%s"/>'
                % (x, self.TOP, x, height - 22, "#000" if strong else "#ddd", "1.5" if strong else "1")
            )
            self.text(x, height - 8, "%g" % ratio, 11, "middle")

    def bars(self, row, y):
        label = "%s, %d thread%s" % (row["case"], row["threads"], "" if row["threads"] == 1 else "s")
        names = [name for name in self.report["peers"] if name in row["ratios"]]
        middle = y + self.BAR * len(names) / 2 + 4
        self.text(self.LEFT - 40, middle, label, 11, "end", "#999" if row["gated"] else "#333")
        for name in names:
            ratio = row["ratios"][name]["best"]
            start, end = sorted((self.x(1), self.x(ratio)))
            self.rect(start, y, end - start, self.BAR - 1, COLOURS.get(name, "#888"), "%s: %.2fx" % (name, ratio))
            anchor, at = ("start", end + 3) if ratio >= 1 else ("end", start - 3)
            self.text(at, y + self.BAR - 2, format_ratio(ratio), 8, anchor, "#666")
            y += self.BAR
        return y + self.GAP

    def svg(self):
        n_bars = sum(len(row["ratios"]) for row in self.rows)
        height = self.TOP + n_bars * self.BAR + len(self.rows) * self.GAP + 34
        self.legend()
        self.grid(height)
        y = self.TOP + 6
        for row in self.rows:
            y = self.bars(row, y)
        width = self.LEFT + self.WIDTH + 60
        head = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif">' % (width, height)
        return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>'] + self.parts + ["</svg>"]) + "\n"


def write_report(report, folder):
    os.makedirs(folder, exist_ok=True)
    write_file(os.path.join(folder, "peers.json"), json.dumps(report, indent=1) + "\n")
    write_file(os.path.join(folder, "peers.md"), markdown(report))
    write_file(os.path.join(folder, "peers.svg"), Chart(report).svg())
