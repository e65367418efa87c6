#!/usr/bin/env bash
# Tunes each model below REPEATS times, each in a store of its own, and exports every
# interleaved end-to-end round; asks `doctor` after each how fast as many bytes are copied
# with the stores that the plan uses. MODELS picks some of them; WORK is a folder for the
# stores, so that a run can be made in pieces: what is there is not tuned again. Writes
# rows.csv, traffic.csv, environment.json and table.md into FT_RESULTS_OUT (default: this
# folder); prints a JSON object last.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}
repeats=${REPEATS:-3}
budget=${FUSETUNE_TIME:-20s}
fusetune=$root/build/release/fusetune
read -ra models <<<"${MODELS:-softmax_decomposed layer_norm_residual rms_norm bias_gelu_residual}"

work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
cd "$root"  # the plan names the model as it was given: examples/...
stores=()

# What must move: each graph input read once, each output written once (all are f32).
bytes_of() {
  python3 - "$work/graph.json" <<'PY'
import json, math, sys
graph = json.load(open(sys.argv[1]))
values = graph["inputs"] + graph["outputs"]
assert all(v["dtype"] == "f32" for v in values), values
print(sum(4 * math.prod(v["shape"]) for v in values))
PY
}

# The median copy with streamed stores when a kernel of the served plan streams, else with
# ordinary ones.
line_of_traffic() {
  python3 - "$1" "$2" "$work/tuned.json" "$work/doctor.json" <<'PY'
import json, sys
name, moved, plan, doctor = *sys.argv[1:3], json.load(open(sys.argv[3])), json.load(open(sys.argv[4]))
streams = any(g["schedule"].get("non_temporal") for g in plan["groups"])
stores = "streamed" if streams else "ordinary"
worker = next(f for f in doctor["findings"] if f["name"] == "worker")
print(f"{name},{moved},{stores},{worker['copy_' + stores]['median']:.0f}")
PY
}

echo "model,bytes,stores,copy_bytes_per_s" >"$out/traffic.csv"
for i in $(seq "$repeats"); do
  for model in "${models[@]}"; do
    line=$work/$model.$i.csv
    if [ ! -s "$line" ]; then
      rm -f "$work/$model.$i.db"
      paths=(--store "$work/$model.$i.db" --cache "$work/cache")
      "$fusetune" tune "examples/$model.onnx" --time "$budget" "${paths[@]}" --json >"$work/tuned.json"
      "$fusetune" explain --graph "examples/$model.onnx" "${paths[@]}" --json >"$work/graph.json"
      bytes=$(bytes_of)
      "$fusetune" doctor --bytes "$bytes" "${paths[@]}" --json >"$work/doctor.json"
      line_of_traffic "$model" "$bytes" >"$line"
    fi
    cat "$line" >>"$out/traffic.csv"
    stores+=("$model=$work/$model.$i.db")
  done
done
command="results/cpu_kernels/run.sh (REPEATS=$repeats FUSETUNE_TIME=$budget)"
scripts/bench_environment "$fusetune" "$command" >"$out/environment.json"
scripts/bench_rows --name cpu_kernels --out "$out" "${stores[@]}"
