#!/usr/bin/env bash
# All tests, from a fresh clone: installs what is missing, checks the sources, builds the
# presets dev (gcc), release (clang) and asan (clang), runs their suites and the fuzz
# targets. Prints each suite's counts and seconds; the last line is
# "N passed, N failed, N skipped". Exit code 0 only when nothing failed and something ran.
#
#   FT_TEST_DATA      test data, default ../shared/data; tests that need it skip without
#   FT_REQUIRE_DATA=1 they fail instead
#   FT_FUZZ_SECONDS   for each fuzz target, default 15; as many run at a time as there are cores
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export FT_TEST_DATA=${FT_TEST_DATA:-$(cd .. && pwd)/shared/data}
scripts/deps.sh || exit 1

mkdir -p build
tally=$PWD/build/tally
: >"$tally"
jobs=$(nproc)
failures=()

# check NAME COMMAND...: one test; exit code 3 means skipped.
check() {
  local name=$1; shift
  "$@"
  case $? in
    0) echo 1 0 0 >>"$tally" ;;
    3) echo 0 0 1 >>"$tally" ;;
    *) echo 0 1 0 >>"$tally"; failures+=("$name") ;;
  esac
}

# build PRESET [TARGET...]: quiet unless it fails; a failed build counts as one failure.
build() {
  local preset=$1; shift
  local log=build/$preset.log start=$SECONDS targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  if cmake --preset "$preset" -DFT_TESTS=ON >"$log" 2>&1 &&
     cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}" >>"$log" 2>&1; then
    echo "$preset: built in $((SECONDS - start)) s"
    return 0
  fi
  tail -n 60 "$log"
  echo "$preset: BUILD FAILED (whole log: $log)"
  echo 0 1 0 >>"$tally"
  failures+=("build $preset")
  return 1
}

suites() {
  local preset=$1 label=$2; shift 2
  scripts/run_suites "build/$preset" --label "$label" --tally "$tally" "$@" ||
    failures+=("$label suites of $preset")
}

check floorplan scripts/check_floorplan
check format scripts/format --check
check examples examples/make_examples.py --check
check docs scripts/check_docs

if build dev; then suites dev unit; fi
if build release; then
  check exports scripts/check_exports build/release
  suites release unit
  suites release kernel
fi
if build asan; then suites asan unit --sanitized; fi

targets=()
for source in tests/fuzz/fuzz_*.c; do
  [ -e "$source" ] && targets+=("$(basename "$source" .c)")
done
if [ ${#targets[@]} -eq 0 ]; then
  echo "fuzz: no target in tests/fuzz"
elif build fuzz "${targets[@]}"; then
  scripts/run_fuzz build/fuzz "${FT_FUZZ_SECONDS:-15}" --tally "$tally" || failures+=("fuzz")
fi

echo "took $SECONDS s; test data: $([ -d "$FT_TEST_DATA" ] && echo "$FT_TEST_DATA" || echo absent)"
[ ${#failures[@]} -eq 0 ] || printf 'failed: %s\n' "${failures[@]}"
read -r passed failed skipped < <(awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}' "$tally")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] && [ ${#failures[@]} -eq 0 ]
