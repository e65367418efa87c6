#!/usr/bin/env bash
# Tunes every example, and every shared model that is imported where the test data is, once
# each in a store of its own, and writes one table: the tuned plan against unfused and
# greedy, end to end, interleaved, and what the search did. Writes rows.csv,
# environment.json and table.md into FT_RESULTS_OUT (default: this folder); prints a JSON
# object last. MODELS picks some; WORK is a folder for the stores, so that a run can be made
# in pieces: what is there is not tuned again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}
budget=${FUSETUNE_TIME:-60s}
fusetune=$root/build/release/fusetune
data=${FT_TEST_DATA:-$root/../shared/data}

work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
cd "$root"
names=() files=()
for model in examples/*.onnx "$data"/onnx/models/*.onnx; do
  [ -e "$model" ] || continue
  name=$(basename "$model" .onnx)
  if [ -n "${MODELS:-}" ] && ! grep -qw -- "$name" <<<"$MODELS"; then continue; fi
  answer=$work/$name.json
  if [ ! -s "$answer" ]; then
    rm -f "$work/$name.db"
    "$fusetune" tune "$model" --dim '*=1' --time "$budget" --store "$work/$name.db" \
      --cache "$work/cache" --json >"$answer.new" 2>"$work/$name.log" || true
    mv "$answer.new" "$answer"
  fi
  names+=("$name") files+=("$answer")
done
scripts/bench_environment "$fusetune" "results/plans/run.sh (FUSETUNE_TIME=$budget)" >"$out/environment.json"
python3 results/plans/report.py "$work" "$out" "${names[@]}"
