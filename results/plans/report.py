#!/usr/bin/env python3
"""rows.csv (every interleaved round) and table.md from the answers and stores of tuning runs.

usage: report.py WORK OUT NAME...   with WORK/NAME.json and WORK/NAME.db

The figures as one JSON object on stdout.
"""
import csv
import json
import os
import re
import sqlite3
import sys

ROUNDS = """SELECT c.round, p.role, p.strategy, substr(p.hash, 1, 19), c.time_ns, c.flags
            FROM comparison c JOIN plan p ON p.id = c.plan_id ORDER BY c.run_id, c.round, p.id"""


def ms(time):
    if not time:
        return ""
    median, low, high = (f"{time[k] / 1e6:#.3g}" for k in ("median_ns", "low_ns", "high_ns"))
    return f"{median} [{low}, {high}]"


def ratio(time, base):
    return time["median_ns"] / base["median_ns"] if time and base else None


def load(work, name):
    with open(os.path.join(work, name + ".json")) as file:
        text = file.read()
    return json.loads(text) if text.strip() else {"error": {"message": "no answer"}}


def served_time(answer):
    """The time of the plan that is served; `tuned` in the answer is it."""
    return answer.get("tuned")


def figures(answer):
    served, unfused, greedy = served_time(answer), answer.get("unfused"), answer.get("greedy")
    return {
        "operators": answer["operators"], "primitives": answer["primitives"], "kernels": answer["kernels"],
        "served": answer["served"], "tuned": served, "unfused": unfused, "greedy": greedy,
        "unfused_over_tuned": ratio(unfused, served), "greedy_over_tuned": ratio(greedy, served),
        "sign_test_p": answer["sign_test_p"], "gap": answer["gap"],
        "groups_unique": answer["groups_unique"], "groups_measured": answer["groups_measured"],
        "share_measured": answer["groups_measured"] / max(1, answer["groups_unique"]),
        "trials": answer["trials"], "stop_reason": answer["stop_reason"],
        "compared_rounds": answer["comparison"]["rounds"],
    }


def row(name, f):
    over = lambda x: "" if x is None else f"{x:.2f}"
    return (f"| {name} | {f['operators']} -> {f['kernels']} | {f['served']} | {ms(f['tuned'])} | {ms(f['unfused'])} | "
            f"{over(f['unfused_over_tuned'])} | {ms(f['greedy'])} | {over(f['greedy_over_tuned'])} | "
            f"{f['sign_test_p']:.1e} | {f['gap']:.1%} | {f['groups_measured']} of {f['groups_unique']} "
            f"({f['share_measured']:.0%}) | {f['trials']} | {f['stop_reason']} | {f['compared_rounds']} |")


def write_rows(work, out, names):
    with open(os.path.join(out, "rows.csv"), "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "round", "role", "strategy", "plan", "time_ns", "flags"])
        for name in names:
            path = os.path.abspath(os.path.join(work, name + ".db"))
            if not os.path.exists(path):
                continue
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
                for line in db.execute(ROUNDS):
                    writer.writerow([name, *line])


def main():
    work, out, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    answers = {name: load(work, name) for name in names}
    good = {name: figures(a) for name, a in answers.items() if "error" not in a}
    lines = ["Times in ms, end to end, interleaved, cold caches: median and 95 % interval. p: paired sign",
             "test of the served plan against unfused (1: unfused is served).", "",
             "| model | operators -> kernels | served | served plan | unfused | ratio | greedy | ratio | p | gap | "
             "unique groups measured | trials | ended by | rounds |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    lines += [row(name, f) for name, f in good.items()]
    # Names of files without where they lie on this machine.
    refused = {name: re.sub(r"/\S*/", "", a["error"].get("message", "?"))
               for name, a in answers.items() if "error" in a}
    lines += [""] + [f"- `{name}`: {message[:160]}" for name, message in refused.items()]
    with open(os.path.join(out, "table.md"), "w") as file:
        file.write("\n".join(lines) + "\n")
    write_rows(work, out, list(good))
    shares = sorted(f["share_measured"] for f in good.values())
    print(json.dumps({"models": good, "refused": refused,
                      "share_measured_median": shares[len(shares) // 2] if shares else None}))


main()
