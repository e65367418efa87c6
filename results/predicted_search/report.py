#!/usr/bin/env python3
"""table.md from rows.csv; the figures as one JSON object on stdout."""
import csv
import json
import os
import sys


def main():
    out = sys.argv[1]
    with open(os.path.join(out, "rows.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["| model | way | took s | built | groups built | tuned us | gap | ended |", "|---|---|---|---|---|---|---|---|"]
    figures = {}
    for r in rows:
        lines.append(f"| {r['model']} | {r['way']} | {r['took_s']} | {r['built']} | {r['groups_built']} of "
                     f"{r['groups_unique']} | {float(r['tuned_us']):.1f} | {float(r['gap']):.1%} | {r['ended']} |")
        figures.setdefault(r["model"], {})[r["way"]] = r
    answer = {}
    for model, way in figures.items():
        floors, quotas = way["floors"], way["quotas"]
        answer[model] = {"predicted_ratio": round(float(quotas["tuned_us"]) / float(floors["tuned_us"]), 3),
                         "gap": float(floors["gap"]), "gap_without": float(quotas["gap"]),
                         "built": int(floors["built"]), "built_without": int(quotas["built"]),
                         "took_s": float(floors["took_s"]), "took_s_without": float(quotas["took_s"])}
    with open(os.path.join(out, "table.md"), "w") as file:
        file.write("\n".join(lines) + "\n")
    print(json.dumps({"models": answer}))


main()
