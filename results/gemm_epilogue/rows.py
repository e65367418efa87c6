#!/usr/bin/env python3
"""Exports the trials of each model's whole group, and compares the tactics' best.

    rows.py --out FOLDER MODEL=STORE...

Writes FOLDER/rows.csv (every cold trial of the group of all primitives, failed ones too) and
FOLDER/table.md (made from rows.csv alone); the last line on stdout is a JSON object.
"""
import argparse
import csv
import json
import os
import sqlite3
import statistics

QUERY = """SELECT c.tactic, c.schedule, t.attempt, t.outcome, t.median_ns, t.low_ns, t.high_ns, t.samples
           FROM trial t JOIN candidate c ON c.id = t.candidate_id
           WHERE t.mode = 'cold' AND c.workload_id = (SELECT id FROM workload ORDER BY primitives DESC, id LIMIT 1)
           ORDER BY c.tactic, c.schedule, t.attempt"""
COLUMNS = ["model", "repeat", "tactic", "schedule", "attempt", "outcome", "median_ns", "low_ns", "high_ns", "samples"]


def export(stores, path):
    repeats = {}
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(COLUMNS)
        for model, store in stores:
            repeats[model] = repeats.get(model, 0) + 1
            with sqlite3.connect(f"file:{os.path.abspath(store)}?mode=ro", uri=True) as db:
                for row in db.execute(QUERY):
                    out.writerow([model, repeats[model], *row])


def best(path):
    """{model: {tactic: {repeat: (median_ns, schedule)}}} of the fastest trials that ended well. The
    longest look at a candidate is the one that counts."""
    looks = {}
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            if row["outcome"] != "ok":
                continue
            key = row["model"], row["tactic"], row["repeat"], row["schedule"]
            look = int(row["samples"]), int(row["median_ns"])
            looks[key] = max(looks.get(key, look), look)
    found = {}
    for (model, tactic, repeat, schedule), (_, median) in looks.items():
        here = found.setdefault(model, {}).setdefault(tactic, {})
        here[repeat] = min(here.get(repeat, (median, schedule)), (median, schedule))
    return found


def figures(found):
    out = {}
    for model, tactics in found.items():
        times = {t: [median for median, _ in r.values()] for t, r in tactics.items()}
        out[model] = {t: {"median_ns": statistics.median(v), "low_ns": min(v), "high_ns": max(v), "repeats": len(v)}
                      for t, v in sorted(times.items())}
        for other in times:
            if other == "contract" or "contract" not in times:
                continue
            both = tactics[other].keys() & tactics["contract"].keys()
            ratios = [tactics[other][r][0] / tactics["contract"][r][0] for r in both]
            if ratios:
                out[model][f"{other}_over_contract"] = {"median": statistics.median(ratios), "low": min(ratios),
                                                        "high": max(ratios), "repeats": len(ratios)}
    return out


def table(result, found, path):
    lines = ["| model | tactic | best, ms (median of repeats, range) | over contract | best schedule |", "|---|---|---|---|---|"]
    for model, tactics in found.items():
        for tactic, repeats in sorted(tactics.items()):
            t, ratio = result[model][tactic], result[model].get(f"{tactic}_over_contract")
            over = f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})" if ratio else ""
            words = json.loads(min(repeats.values())[1])
            schedule = " ".join(f"{k}={v}" for k, v in words.items())
            lines.append(f"| {model} | {tactic} | {t['median_ns'] / 1e6:.3f} ({t['low_ns'] / 1e6:.3f} to "
                         f"{t['high_ns'] / 1e6:.3f}) | {over} | {schedule} |")
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("stores", nargs="+")
    args = parser.parse_args()
    rows = os.path.join(args.out, "rows.csv")
    export([s.split("=", 1) for s in args.stores], rows)
    found = best(rows)
    result = figures(found)
    table(result, found, os.path.join(args.out, "table.md"))
    print(json.dumps({"benchmark": "gemm_epilogue", "models": result}, sort_keys=True))


if __name__ == "__main__":
    main()
