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
#   --simt        instead: kernels in the shape of a GPU, run by SIM; --count (default
#                 50000) and --seed as above. The first failure ends a quarter of the run.
#                 Then joined kernels, turns and products, a twentieth as many each
#   --simt-all    what the tests take a sample of: every mutant, every schedule compiled
#                 for every architecture, the groups of all models (some 20 minutes)
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --help ]; then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
  exit 0
fi
mode=${1:-}
case $mode in
  --simt) shift; programs=(codegen_kernel_simt_random codegen_kernel_simt_blocks_random
                           codegen_kernel_simt_turn_random codegen_kernel_simt_gemm) ;;
  --simt-all) shift; programs=(codegen_kernel_simt_mutants codegen_kernel_simt
                               codegen_kernel_simt_models) ;;
  *) programs=(soak) ;;
esac
mkdir -p build
if ! { cmake --preset release -DFT_TESTS=ON &&
       cmake --build --preset release --parallel "$(nproc)" --target "${programs[@]}"; } >build/soak.log 2>&1; then
  tail -n 40 build/soak.log
  echo "soak: the build failed (whole log: build/soak.log)"
  exit 1
fi

count=50000
while [[ $mode = --simt && $# -gt 1 ]]; do
  case $1 in
    --count) count=$2 ;;
    --seed) export FT_RANDOM_SEED=$2 ;;
    *) break ;;
  esac
  shift 2
done
if [[ $mode = --simt* ]]; then
  [ $# -eq 0 ] || { echo "soak: $1 goes not with $mode" >&2; exit 2; }
  export FT_TEST_DATA=${FT_TEST_DATA:-$(cd .. && pwd)/shared/data}
  export FT_SIMT_CASES=$count FT_SIMT_TURNS=$((count / 20))
  [ "$mode" = --simt ] || export FT_SIMT_MUTANTS=all FT_SIMT_COMPILE=all FT_SIMT_MODELS=all
  failed=0
  for program in "${programs[@]}"; do
    start=$SECONDS
    "build/release/tests/$program" --jobs "$(nproc)" || failed=1
    echo "soak: $program took $((SECONDS - start)) s"
    FT_SIMT_CASES=$((count / 20))  # of the others
  done
  exit $failed
fi
exec build/release/tests/soak "$@"
