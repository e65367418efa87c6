#!/usr/bin/env python3
"""Imports each model with each reader, ROUNDS times, interleaved; one process per import.

    bench.py --reader READER --work FOLDER --out FOLDER --rounds N [MODEL=PATH=DIM ...]

Writes rows.csv and table.md into --out; the last line on stdout is a JSON object. The
500 MB model is generated: ten MatMul layers of [3616, 3616] float weights as raw_data.
"""
import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys

PYTHON = """
import sys, time
import onnx
def kib(key):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(key))
before = kib("VmRSS:"); start = time.monotonic_ns()
model = onnx.load(sys.argv[1])
print(time.monotonic_ns() - start, kib("VmHWM:") - before)
"""
LAYERS, WIDTH = 10, 3616
READERS = ("fusetune", "protobuf-c", "python onnx.load")


def varint(n):
    out = b""
    while True:
        byte, n = n & 127, n >> 7
        out += bytes([byte | (128 if n else 0)])
        if not n:
            return out


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name):
    dims = field(1, field(1, 1)) + field(1, field(1, WIDTH))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def write_large(path):
    block = random.Random(1).randbytes(WIDTH * WIDTH * 4 // 8)  # any bits are a float
    graph = [field(2, "large"), field(11, value_info("x0")), field(12, value_info(f"x{LAYERS}"))]
    for i in range(LAYERS):
        graph.append(field(1, field(1, f"x{i}") + field(1, f"w{i}") + field(2, f"x{i + 1}") + field(4, "MatMul")))
        graph.append(field(5, field(1, WIDTH) + field(1, WIDTH) + field(2, 1) + field(8, f"w{i}") + field(9, block * 8)))
    body = b"".join(graph)
    with open(path, "wb") as f:
        f.write(field(1, 8) + field(8, field(2, 17)) + field(7, body))


def once(reader, tool, path, dim):
    command = {"fusetune": [tool, "ours", path, dim], "protobuf-c": [tool, "protobuf-c", path],
               "python onnx.load": ["/usr/bin/python3", "-c", PYTHON, path]}[reader]
    time_ns, kib = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(time_ns), int(kib)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--reader", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("models", nargs="*")
    a = p.parse_args()
    large = os.path.join(a.work, "large.onnx")
    write_large(large)
    models = [("500 MB", large, "1")] + [tuple(m.split("=")) for m in a.models]
    rows = []
    for number in range(a.rounds + 1):  # round 0 warms the page cache and is flagged
        for name, path, dim in models:
            order = list(READERS)
            random.Random(f"{number} {name}").shuffle(order)
            for reader in order:
                rows.append([number, name, os.path.getsize(path), reader, *once(reader, a.reader, path, dim), int(number == 0)])
    with open(f"{a.out}/rows.csv", "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["round", "model", "file_bytes", "reader", "time_ns", "peak_kib", "warm_up"])
        out.writerows(rows)
    figures, lines = {}, ["| model | reader | median ms (low, high) | peak MiB | time / fusetune |", "|---|---|---|---|---|"]
    for name, path, _ in models:
        figures[name] = {"file_bytes": os.path.getsize(path)}
        base = {r[0]: r[4] for r in rows if r[1] == name and r[3] == "fusetune" and r[0]}
        for reader in READERS:
            kept = [r for r in rows if r[1] == name and r[3] == reader and r[0]]
            times = [r[4] for r in kept]
            ratio = statistics.median(r[4] / base[r[0]] for r in kept)
            peak = max(r[5] for r in kept)
            figures[name][reader] = {"median_ns": int(statistics.median(times)), "low_ns": min(times),
                                     "high_ns": max(times), "samples": len(times), "peak_kib": peak,
                                     "over_fusetune": round(ratio, 2)}
            lines.append(f"| {name} | {reader} | {statistics.median(times) / 1e6:.2f} ({min(times) / 1e6:.2f}, "
                         f"{max(times) / 1e6:.2f}) | {peak / 1024:.1f} | {ratio:.1f} |")
    with open(f"{a.out}/table.md", "w") as f:
        f.write("\n".join(lines) + "\n")
    print(json.dumps(figures))


sys.exit(main())
