#!/usr/bin/env bash
# Imports a generated 500 MB model, and GPT-2's graph where the test data is, with
# fusetune, protobuf-c and python's onnx.load. Writes rows.csv, environment.json and
# table.md into FT_RESULTS_OUT (default: this folder); prints a JSON object last.
# Needs scripts/deps.sh all, and about 1.5 GB of disk and 2 GB of memory for a moment.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}
rounds=${ROUNDS:-9}
proto=/usr/lib/python3/dist-packages/onnx
data=${FT_TEST_DATA:-$root/../shared/data}

cd "$root"
cmake --build --preset release --target ft_graph >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
protoc-c --c_out="$work" -I"$proto" onnx-ml.proto
clang -std=c11 -D_GNU_SOURCE -O3 -w -I"$root" -I"$work" results/import/reader.c "$work/onnx-ml.pb-c.c" \
  build/release/libft_graph.a build/release/libft_core.a \
  $(pkg-config --cflags --libs libprotobuf-c jansson libmd) -lm -lpthread -o "$work/reader"
models=()
gpt2=$data/onnx/models/gpt2_no_past_opset11.onnx
[ -f "$gpt2" ] && models+=("GPT-2, 2848 nodes=$gpt2=8")
scripts/bench_environment build/release/fusetune "results/import/run.sh (ROUNDS=$rounds)" >"$out/environment.json"
python3 results/import/bench.py --reader "$work/reader" --work "$work" --out "$out" --rounds "$rounds" "${models[@]}"
