#!/usr/bin/env python3
"""rows.csv (with what the SASS shows) and table.md; the figures as JSON on stdout.

usage: report.py ROWS CUBINS NVDISASM OUT
"""
import csv
import json
import os
import re
import subprocess
import sys

# Bytes in flight that a multiprocessor of an H200 needs for 4.8 TB/s at 9.5 ns a byte
# (Little's law, search_and_codegen 12.1): about 46 KB.
NEEDED = 46000
LOAD = re.compile(r"\bLDG\.E(?:\.[A-Z0-9_]+)*")
STORE = re.compile(r"\bSTG\.E(?:\.[A-Z0-9_]+)*")
LOCAL = re.compile(r"\b(?:LDL|STL)\b")


def width(text):
    for bits in (128, 64, 16, 8):
        if f".{bits}" in text or f".U{bits}" in text:
            return bits
    return 32


def sass(nvdisasm, cubin):
    text = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    loads = [width(m) for m in LOAD.findall(text)]
    stores = [width(m) for m in STORE.findall(text)]
    return {
        "loads_128": loads.count(128),
        "loads_other": len(loads) - loads.count(128),
        "stores_128": stores.count(128),
        "stores_other": len(stores) - stores.count(128),
        "local_accesses": len(LOCAL.findall(text)),
        "instructions": len(re.findall(r"/\*[0-9a-f]{4,}\*/", text)),
    }


def is_fit(row):
    """Marked fit for 90 % of DRAM bandwidth: enough bytes in flight, nothing spilled."""
    return (row["skeleton"] in ("pointwise", "row", "column") and "vector=4" in row["knobs"]
            and int(row["bytes_in_flight"]) >= NEEDED and int(row["spill_store_bytes"]) == 0)


def table(rows):
    lines = ["sm_90, fp32. fit: at least 46 KB in flight on a multiprocessor, no spills.", "",
             "| group | skeleton | knobs | threads | registers | spills | occupancy | limit | KB in flight | "
             "128-bit loads, other | 128-bit stores, other | local | fit |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(
            f"| {r['group']} | {r['skeleton']} | {r['knobs']} | {r['threads']} | {r['registers']} | "
            f"{r['spill_store_bytes']} | {float(r['occupancy']):.0%} | {r['limit']} | "
            f"{int(r['bytes_in_flight']) / 1000:.0f} | {r['loads_128']}, {r['loads_other']} | "
            f"{r['stores_128']}, {r['stores_other']} | {r['local_accesses']} | {'yes' if r['fit'] == '1' else ''} |")
    return "\n".join(lines) + "\n"


def main():
    path, cubins, nvdisasm, out = sys.argv[1:]
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for r in rows:
        r.update(sass(nvdisasm, os.path.join(cubins, r["row"] + ".cubin")))
        r["fit"] = "1" if is_fit(r) else "0"
    with open(os.path.join(out, "rows.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with open(os.path.join(out, "table.md"), "w") as file:
        file.write(table(rows))
    fit = [r for r in rows if r["fit"] == "1"]
    print(json.dumps({
        "arch": "sm_90",
        "kernels": len(rows),
        "spilling": sum(int(r["spill_store_bytes"]) > 0 for r in rows),
        "fit": len(fit),
        "fit_by_group": {g: sum(r["group"] == g for r in fit) for g in dict.fromkeys(r["group"] for r in rows)},
        "fit_with_128_bit_accesses": sum(r["loads_128"] > 0 and (r["stores_128"] > 0) for r in fit),
        "fit_with_local_memory": sum(r["local_accesses"] > 0 for r in fit),
    }))


main()
