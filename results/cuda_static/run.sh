#!/usr/bin/env bash
# Static facts of GPU kernels for sm_90, by skeleton and knobs (no GPU is needed, nothing is
# run). Writes rows.csv and table.md into FT_RESULTS_OUT (default: this folder); prints a
# JSON object last. Needs CUDA 13's libnvrtc, and pip for nvdisasm.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${FT_RESULTS_OUT:-$here}
nvdisasm=nvidia-cuda-nvdisasm==13.2.51

cd "$root"
cmake --build --preset release --target ft_codegen >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip install -q --no-deps --target "$work/pip" "$nvdisasm" >&2
disassembler=$(find "$work/pip" -name nvdisasm -type f | head -n 1)
[ -n "$disassembler" ] || { echo "cuda_static: $nvdisasm has no nvdisasm" >&2; exit 1; }
chmod +x "$disassembler"
clang -std=c11 -D_GNU_SOURCE -O2 -I"$root" results/cuda_static/static.c \
  build/release/libft_codegen.a build/release/libft_graph.a build/release/libft_core.a \
  $(pkg-config --cflags --libs jansson libmd) -lm -lpthread -ldl -o "$work/static"
mkdir "$work/cubin"
"$work/static" "$work/cubin" >"$work/rows.csv"
python3 results/cuda_static/report.py "$work/rows.csv" "$work/cubin" "$disassembler" "$out"
