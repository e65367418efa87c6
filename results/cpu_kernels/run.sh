#!/usr/bin/env bash
# Tunes each model below REPEATS times, each in a store of its own, and exports every
# interleaved end-to-end round; asks `doctor` for the copy ceiling after each. Writes
# rows.csv, traffic.csv, environment.json and table.md into FT_RESULTS_OUT (default: this
# folder); prints a JSON object last.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}
repeats=${REPEATS:-3}
budget=${FUSETUNE_TIME:-20s}
fusetune=$root/build/release/fusetune
models=(softmax_decomposed layer_norm_residual rms_norm bias_gelu_residual)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"  # the plan names the model as it was given: examples/...
stores=()

# What must move: each graph input read once, each output written once (all are f32).
line_of_traffic() {
  python3 - "$1" "$work/graph.json" "$work/doctor.json" <<'PY'
import json, math, sys
name, graph, doctor = sys.argv[1], json.load(open(sys.argv[2])), json.load(open(sys.argv[3]))
values = graph["inputs"] + graph["outputs"]
assert all(v["dtype"] == "f32" for v in values), values
moved = sum(4 * math.prod(v["shape"]) for v in values)
copy = next(f["copy_bytes_per_s"] for f in doctor["findings"] if f["name"] == "worker")
print(f"{name},{moved},{copy:.0f}")
PY
}

echo "model,bytes,copy_bytes_per_s" >"$out/traffic.csv"
for i in $(seq "$repeats"); do
  for model in "${models[@]}"; do
    paths=(--store "$work/$model.$i.db" --cache "$work/cache")
    "$fusetune" tune "examples/$model.onnx" --time "$budget" "${paths[@]}" --json >"$work/tuned.json"
    "$fusetune" explain --graph "examples/$model.onnx" "${paths[@]}" --json >"$work/graph.json"
    "$fusetune" doctor "${paths[@]}" --json >"$work/doctor.json"
    line_of_traffic "$model" >>"$out/traffic.csv"
    stores+=("$model=$work/$model.$i.db")
  done
done
command="results/cpu_kernels/run.sh (REPEATS=$repeats FUSETUNE_TIME=$budget)"
scripts/bench_environment "$fusetune" "$command" >"$out/environment.json"
scripts/bench_rows --name cpu_kernels --out "$out" "${stores[@]}"
