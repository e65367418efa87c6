#!/usr/bin/env bash
# Tunes examples/chain.onnx REPEATS times, each in a store of its own, and exports every
# interleaved end-to-end round. Writes rows.csv, environment.json and table.md into
# FT_RESULTS_OUT (default: this folder); prints a JSON object last.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}
repeats=${REPEATS:-3}
budget=${FUSETUNE_TIME:-20s}
fusetune=$root/build/release/fusetune

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"  # the plan names the model as it was given: examples/chain.onnx
stores=()
for i in $(seq "$repeats"); do
  "$fusetune" tune examples/chain.onnx --time "$budget" \
    --store "$work/$i.db" --cache "$work/cache" --json >"$work/$i.json"
  stores+=("$work/$i.db")
done
command="results/pointwise_chain/run.sh (REPEATS=$repeats FUSETUNE_TIME=$budget)"
scripts/bench_environment "$fusetune" "$command" >"$out/environment.json"
scripts/bench_rows --name pointwise_chain --out "$out" "${stores[@]}"
