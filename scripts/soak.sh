#!/usr/bin/env bash
# Proof by volume: random groups on every tactic that takes them, with a schedule of its
# space and with knobs outside it that its check accepts, against the double-precision
# reference. Builds the release preset's program first. Prints progress, the counts, each
# failure with its group, tactic and knobs, and how to run that case again. Exit code 0
# only when nothing failed and something ran; 2 for a wrong option.
#
#   --count N     random groups, default 20000
#   --seed N      the number of the first case, default 1: equal numbers are equal cases
#   --minutes M   start nothing after this long
#   --jobs N      processes at a time, default as many as there are cores
#   --one         one kernel for each tactic of a group instead of two
#   --case N      this case only, and a smaller group that fails as it does
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --help ]; then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
  exit 0
fi
mkdir -p build
if ! { cmake --preset release -DFT_TESTS=ON &&
       cmake --build --preset release --parallel "$(nproc)" --target soak; } >build/soak.log 2>&1; then
  tail -n 40 build/soak.log
  echo "soak: the build failed (whole log: build/soak.log)"
  exit 1
fi
exec build/release/tests/soak "$@"
