#!/usr/bin/env bash
# From a fresh clone to a tuned BERT-base encoder layer: installs what is missing, builds,
# tunes, and explains the plan kernel by kernel. Under 6 minutes on two cores.
#
#   FUSETUNE_TIME   budget of the tuning run, default 90s
#   FUSETUNE_MODEL  what to tune, default examples/bert_layer.onnx
#   FUSETUNE_STORE  where trials and plans are kept, default build/quickstart/store.db
#   FUSETUNE_CACHE  where built kernels are kept, default build/quickstart/cache
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${FUSETUNE_TIME:-90s}
model=${FUSETUNE_MODEL:-examples/bert_layer.onnx}
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
echo
echo "\$ fusetune tune $model --time $budget"
"$fusetune" tune "$model" --time "$budget"
echo
echo "\$ fusetune explain $model"
"$fusetune" explain "$model"

echo
echo "quickstart: took $SECONDS s; plans and trials are in $FUSETUNE_STORE"
