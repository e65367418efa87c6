#!/usr/bin/env bash
# From a fresh clone to three tuned plans: installs what is missing, builds, tunes three
# models of examples/, and explains one plan. Under 5 minutes on two cores.
#
#   FUSETUNE_TIME   budget of each model, default 20s
#   FUSETUNE_STORE  where trials and plans are kept, default build/quickstart/store.db
#   FUSETUNE_CACHE  where built kernels are kept, default build/quickstart/cache
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${FUSETUNE_TIME:-20s}
export FUSETUNE_STORE=${FUSETUNE_STORE:-$PWD/build/quickstart/store.db}
export FUSETUNE_CACHE=${FUSETUNE_CACHE:-$PWD/build/quickstart/cache}

scripts/deps.sh build
mkdir -p build "$(dirname "$FUSETUNE_STORE")"
options=()
pkg-config --exists criterion || options=(-DFT_TESTS=OFF)  # tests are not needed here
echo "quickstart: building"
if ! { cmake --preset release "${options[@]}" &&
       cmake --build --preset release --parallel "$(nproc)" --target fusetune; } \
     >build/quickstart.log 2>&1; then
  tail -n 40 build/quickstart.log >&2
  echo "quickstart: the build failed (whole log: build/quickstart.log)" >&2
  exit 1
fi

fusetune=$PWD/build/release/fusetune
for model in chain bias_gelu_residual layer_norm_residual; do
  echo
  echo "\$ fusetune tune examples/$model.onnx --time $budget"
  "$fusetune" tune "examples/$model.onnx" --time "$budget"
done

echo
echo "\$ fusetune explain examples/layer_norm_residual.onnx"
"$fusetune" explain examples/layer_norm_residual.onnx

echo
echo "quickstart: took $SECONDS s; plans and trials are in $FUSETUNE_STORE"
