#!/usr/bin/env bash
# Tunes each graph of this folder REPEATS times, each in a store of its own, and exports every
# trial of the group of all its primitives: what each tactic's schedules took. Writes rows.csv,
# environment.json and table.md into FT_RESULTS_OUT (default: this folder); prints a JSON
# object last.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}
repeats=${REPEATS:-3}
budget=${FUSETUNE_TIME:-20s}
fusetune=$root/build/release/fusetune
models=(gemm_gelu conv_relu)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"  # the plan names the model as it was given: results/...
stores=()
for i in $(seq "$repeats"); do
  for model in "${models[@]}"; do
    "$fusetune" tune "results/gemm_epilogue/$model.json" --time "$budget" \
      --store "$work/$model.$i.db" --cache "$work/cache" --json >"$work/tuned.json"
    stores+=("$model=$work/$model.$i.db")
  done
done
command="results/gemm_epilogue/run.sh (REPEATS=$repeats FUSETUNE_TIME=$budget)"
scripts/bench_environment "$fusetune" "$command" >"$out/environment.json"
python3 "$here/rows.py" --out "$out" "${stores[@]}"
