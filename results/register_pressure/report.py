#!/usr/bin/env python3
"""table.md and plot.svg from rows.csv; the figures as one JSON object on stdout."""
import csv
import json
import os
import sys

SHAPES = [("1", "1"), ("4", "1"), ("4", "4"), ("8", "4")]
KINDS = ["unary", "reading", "keeping"]
COLOURS = {"unary": "#1b6ca8", "reading": "#c0562b", "keeping": "#3a7d44"}
DASHES = {"sm_80": "4 3", "sm_90": ""}


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def pick(rows, **want):
    return [r for r in rows if all(r[k] == v for k, v in want.items())]


def table(rows):
    lines = ["Registers per thread and occupancy at 256 threads; s: bytes of spill stores.", ""]
    for arch in ("sm_80", "sm_90"):
        lines += [f"### {arch}", "",
                  "| depth | " + " | ".join(f"{k} {v}x{u}" for k in KINDS for v, u in SHAPES) + " |",
                  "|---|" + "---|" * (len(KINDS) * len(SHAPES))]
        for depth in range(1, 17):
            cells = []
            for kind in KINDS:
                for v, u in SHAPES:
                    r = pick(rows, kind=kind, arch=arch, depth=str(depth), vector=v, unroll=u)[0]
                    spill = int(r["spill_store_bytes"])
                    cells.append(f"{r['registers']}, {float(r['occupancy']):.0%}" + (f", s {spill}" if spill else ""))
            lines.append(f"| {depth} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def curve(rows, kind, arch, v, u, x0, y0):
    points = []
    for r in pick(rows, kind=kind, arch=arch, vector=v, unroll=u):
        points.append(f"{x0 + int(r['depth']) * 16:.0f},{y0 - int(r['registers']) * 0.7:.1f}")
    return (f'<polyline fill="none" stroke="{COLOURS[kind]}" stroke-width="1.6" '
            f'stroke-dasharray="{DASHES[arch]}" points="{" ".join(points)}"/>')


def plot(rows):
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="1240" height="300" '
             'font-family="sans-serif" font-size="12">',
             '<rect width="1240" height="300" fill="white"/>']
    for i, (v, u) in enumerate(SHAPES):
        x0, y0 = 40 + i * 300, 240
        parts.append(f'<text x="{x0 + 60}" y="30">vector {v}, unroll {u}</text>')
        for registers in (32, 64, 128, 255):
            y = y0 - registers * 0.7
            parts.append(f'<line x1="{x0}" x2="{x0 + 264}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                         f'<text x="{x0 - 28}" y="{y + 4:.1f}">{registers}</text>')
        for depth in (1, 4, 8, 12, 16):
            parts.append(f'<text x="{x0 + depth * 16 - 4}" y="{y0 + 16}">{depth}</text>')
        for kind in KINDS:
            for arch in DASHES:
                parts.append(curve(rows, kind, arch, v, u, x0, y0))
    for i, kind in enumerate(KINDS):
        parts.append(f'<text x="{60 + i * 120}" y="285" fill="{COLOURS[kind]}">{kind}</text>')
    parts.append('<text x="440" y="285">registers per thread over depth; sm_80 dashed, sm_90 solid</text></svg>')
    return "\n".join(parts) + "\n"


def first_depth(rows, test):
    depths = [int(r["depth"]) for r in rows if test(r)]
    return min(depths) if depths else None


def figures(rows):
    out = {}
    for kind in KINDS:
        for v, u in SHAPES:
            mine = pick(rows, kind=kind, arch="sm_90", vector=v, unroll=u)
            start = float(pick(mine, depth="1")[0]["occupancy"])
            out[f"{kind} {v}x{u}"] = {
                "registers": [int(r["registers"]) for r in mine],
                "spills_from_depth": first_depth(mine, lambda r: int(r["spill_store_bytes"]) > 0),
                "occupancy_halved_from_depth": first_depth(mine, lambda r: float(r["occupancy"]) <= start / 2),
            }
    return out


def main():
    folder = sys.argv[1]
    rows = read(os.path.join(folder, "rows.csv"))
    with open(os.path.join(folder, "table.md"), "w") as file:
        file.write(table(rows))
    with open(os.path.join(folder, "plot.svg"), "w") as file:
        file.write(plot(rows))
    print(json.dumps({"arch": "sm_90", "chains": figures(rows)}))


main()
