#!/usr/bin/env python3
"""Compares mica with other libraries (peers): the same work, alternating, on one machine.

    bench/peers.py --mica build/mica --peers build/peers --out build/bench [NAME...]

For each case of `mica bench` and each number of threads, every round runs mica, then each peer. A ratio is the peer's
fastest time divided by mica's in the same rounds: above 1 mica is faster. Rounds alternate, so other load affects
both. tools/peers.sh installs the peers; an absent peer is reported with the reason, and the others run. Writes
peers.md, peers.json and peers.svg into --out."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time

from peers_report import write_report

GATE = 1.85  # as in mica bench
ORDER = ["openblas", "onednn", "torch", "numpy", "mlx", "c_loop"]

# Every goal of docs/speed/GOALS.md, and the cases that peers support.
CASES = (
    ["matmul_f32_%d" % n for n in (32, 64, 128, 256, 512, 1024, 2048)]
    + ["matmul_f32_32x64", "matmul_f32_64x64", "matmul_bf16_1024", "matmul_f16_1024", "matmul_i8_1024"]
    + ["linear_4096_b%d" % n for n in (1, 4, 32, 128)]
    + ["linear_%s_4096_b%d" % (dtype, n) for dtype in ("bf16", "i8") for n in (1, 32)]
    + ["gelu_64k", "gelu_16m", "chain_64k", "chain_16m"]
    + ["%s_%sx1024" % (op, rows) for op in ("softmax", "layernorm", "rmsnorm") for rows in (1024, 16384)]
    + ["sum_%s_%s" % (of, size) for of in ("all", "rows", "columns") for size in ("1024x1024", "16384x4096")]
    + ["transpose_2048", "embedding_32000x1024", "take_1m", "sort_1m", "random_normal_16m"]
    + ["attention_s%d_d%d%s" % (s, d, c) for d in (64, 128) for s in (128, 512, 1024) for c in ("", "_causal")]
    + ["attention_decode_s4096", "attention_decode_s32768", "attention_grad_s512_d64", "attention_grad_s1024_d128"]
    + ["conv_%s%s" % (g, c) for g in ("", "grad_") for c in ("3x3_64_56", "1x1_256_56", "depthwise_128_56")]
    + ["cfc_64_b1", "cfc_64_b64", "cfc_step_64_b32", "ltc_32_b1", "ltc_step_32_b32", "ltc_ncp_step_64_b32"]
    + ["mlp_step", "mlp_step_call", "tiny_1000", "tiny_1000_call"]
)


class Peer:
    """A process that reads a case and prints its time; it waits between cases."""

    def __init__(self, name, command, threads):
        self.name, self.version, self.why = name, None, None
        env = dict(os.environ)
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
            env[variable] = str(threads)
        argv = shlex.split(command.replace("{threads}", str(threads)))
        try:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
            )
            self.version = json.loads(self.process.stdout.readline())["version"]
        except (OSError, ValueError, KeyError) as why:
            self.why = "does not start: %s" % (str(why) or "no answer")

    def measure(self, case, seconds):
        if self.why:
            return {"absent": self.why}
        try:
            self.process.stdin.write("%s %g\n" % (case, seconds))
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            self.why = "ended while it ran %s" % case
            return {"absent": self.why}

    def close(self):
        if self.version:
            self.process.stdin.close()
            self.process.wait()


def read_peers(folder):
    """Reads the table that tools/peers.sh wrote: name, command, reason."""
    with open(os.path.join(folder, "peers.tsv")) as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return sorted(rows, key=lambda row: ORDER.index(row[0]) if row[0] in ORDER else len(ORDER))


def run_mica(mica, case, threads, seconds):
    command = [mica, "bench", case, "--threads", str(threads), "--seconds", str(seconds), "--no-peaks", "-o", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return {"absent": (done.stderr.strip().splitlines() or ["exit code %d" % done.returncode])[0]}
    return json.loads(done.stdout)["results"][0]


def merge(old, new):
    """The faster of two rounds; a reason only if no round has a time."""
    if "fastest_ns" not in new:
        return old or new
    if old and "fastest_ns" in old:
        new = dict(new, fastest_ns=min(old["fastest_ns"], new["fastest_ns"]), median_ns=min(old["median_ns"], new["median_ns"]))
    return new


def median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else None


def run_case(options, case, threads, peers):
    """One row of the report. With several threads, rounds that failed the gate are ignored, unless all failed."""
    rounds = []
    for _ in range(options.rounds):
        turn = {"mica": run_mica(options.mica, case, threads, options.seconds)}
        for peer in peers:
            time.sleep(0.02)  # a peer's threads spin for a while after their work
            turn[peer.name] = peer.measure(case, options.seconds)
        rounds.append(turn)
    good = [t for t in rounds if not t["mica"].get("gated")]
    row = {"case": case, "threads": threads, "gated": not good, "what": rounds[0]["mica"].get("what"), "times": {}, "ratios": {}}
    for turn in good or rounds:
        for name, result in turn.items():
            row["times"][name] = merge(row["times"].get(name), result)
    for peer in peers:
        pairs = [(t[peer.name], t["mica"]) for t in good or rounds]
        each = [p["fastest_ns"] / m["fastest_ns"] for p, m in pairs if "fastest_ns" in p and "fastest_ns" in m]
        if each:
            best = row["times"][peer.name]["fastest_ns"] / row["times"]["mica"]["fastest_ns"]
            row["ratios"][peer.name] = {"best": best, "median": median(each), "low": min(each), "high": max(each)}
    return row


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


def run_all(options, table):
    rows, versions, reasons = [], {}, {}
    for name, command, why in table:
        if not command:
            reasons[name] = why
    for threads in options.threads:
        peers = [Peer(name, command, threads) for name, command, _ in table if command]
        for peer in peers:
            if peer.version:
                versions[peer.name] = peer.version
            else:
                reasons[peer.name] = peer.why
        peers = [peer for peer in peers if peer.version]
        for i, case in enumerate(options.names):
            progress("%d threads, %d of %d: %s" % (threads, i + 1, len(options.names), case))
            rows.append(run_case(options, case, threads, peers))
        for peer in peers:
            peer.close()
    progress("")
    return rows, versions, reasons


def machine_of(mica):
    """The head of the report: the machine and its measured peaks, as mica prints them."""
    doctor = subprocess.run([mica, "doctor", "--peaks", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    version = subprocess.run([mica, "version", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    report = json.loads(doctor.stdout)
    lines = [line for line in report["report"] if line.split(":")[0] in ("cpu", "cores", "features", "caches", "memory")]
    return {"mica": json.loads(version.stdout), "machine": lines, "peaks": report["peaks"], "load": os.getloadavg()[0]}


def complain(text):
    """Prints an error message and returns the exit code of a usage error."""
    sys.stderr.write("peers: %s\n" % text)
    return 2


def parse_options():
    parser = argparse.ArgumentParser(description="compare mica with other libraries, alternating")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases of `mica bench`; default: all of peers")
    parser.add_argument("--mica", default="build/mica")
    parser.add_argument("--peers", default="build/peers")
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--threads", default="", help="numbers, such as 1,2; default: 1 and all cores")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each case, peer and round")
    options = parser.parse_args()
    cores = os.cpu_count() or 1
    try:
        options.threads = [int(n) for n in options.threads.split(",")] if options.threads else sorted({1, cores})
    except ValueError:
        sys.exit(complain("--threads: '%s' is not a list of numbers separated by commas" % options.threads))
    if options.rounds < 1 or not options.seconds > 0:
        sys.exit(complain("--rounds and --seconds must be above 0"))
    for name in options.names:
        if name not in CASES:
            sys.exit(complain("NAME: '%s' is not a case that peers support" % name))
    options.names = options.names or CASES
    if not os.path.exists(os.path.join(options.peers, "peers.tsv")):
        sys.exit(complain("there is no %s/peers.tsv; tools/peers.sh makes it" % options.peers))
    return options


def main():
    options = parse_options()
    try:
        report = machine_of(options.mica)
    except (OSError, subprocess.CalledProcessError) as why:
        sys.exit(complain("%s cannot measure the peaks: %s" % (options.mica, why)))
    rows, versions, reasons = run_all(options, read_peers(options.peers))
    report.update(
        command=shlex.join(sys.argv), date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), rounds=options.rounds,
        seconds=options.seconds, versions=versions, absent=reasons, gate=GATE, rows=rows,
        peers=[name for name in ORDER if name in versions],
    )
    write_report(report, options.out)
    for name, why in sorted(reasons.items()):
        print("peers: %s is absent: %s" % (name, why))
    print("peers: wrote %s/peers.md, peers.json and peers.svg" % options.out)


if __name__ == "__main__":
    main()
