#!/usr/bin/env bash
# Predicts plans for sm_90 with NVRTC (no GPU is needed, nothing is run): each model twice,
# with candidates in the builder's order and quotas of them (as before), and with floors.
# Writes rows.csv, environment.json and table.md into FT_RESULTS_OUT (default: this folder); prints a JSON
# object last. FUSETUNE_TIME is the budget of each search in seconds (default 30).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}
budget=${FUSETUNE_TIME:-30}

cd "$root"
cmake --build --preset release --target fusetune >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=()
for room in daemon search cost_model codegen measure db graph core; do
  libraries+=("build/release/libft_$room.a")
done
clang -std=c11 -D_GNU_SOURCE -O2 -I"$root" results/predicted_search/searches.c \
  -Wl,--start-group "${libraries[@]}" -Wl,--end-group \
  $(pkg-config --cflags --libs jansson libmd sqlite3 zlib) -lm -lpthread -ldl -o "$work/searches"
"$work/searches" "$work" "${budget%s}" examples/{bert_layer,llama_layer,resnet_bottleneck,mlp_residual}.onnx \
  >"$work/rows.csv"
mv "$work/rows.csv" "$out/rows.csv"
scripts/bench_environment build/release/fusetune "results/predicted_search/run.sh (FUSETUNE_TIME=$budget)" \
  >"$out/environment.json"
python3 results/predicted_search/report.py "$out"
