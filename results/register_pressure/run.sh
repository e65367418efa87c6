#!/usr/bin/env bash
# Compiles pointwise chains of depth 1 to 16 for sm_80 and sm_90 with NVRTC (no GPU is
# needed, nothing is run). Writes rows.csv, table.md and plot.svg into FT_RESULTS_OUT
# (default: this folder); prints a JSON object last. Needs CUDA 13's libnvrtc.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}

cd "$root"
cmake --build --preset release --target ft_codegen >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clang -std=c11 -D_GNU_SOURCE -O2 -I"$root" results/register_pressure/chains.c \
  build/release/libft_codegen.a build/release/libft_graph.a build/release/libft_core.a \
  $(pkg-config --cflags --libs jansson libmd) -lm -lpthread -ldl -o "$work/chains"
"$work/chains" >"$work/rows.csv"
mv "$work/rows.csv" "$out/rows.csv"
python3 results/register_pressure/report.py "$out"
