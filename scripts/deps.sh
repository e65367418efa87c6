#!/usr/bin/env bash
# Installs what is missing to build, run and test fusetune, from Debian 12's packages.
#
#   scripts/deps.sh          all of it
#   scripts/deps.sh build    only what building and running needs
#
# Asks dpkg first: when nothing is missing it says nothing and makes no network call.
# Needs root or sudo only when something is missing.
set -euo pipefail

build=(gcc clang libc6-dev cmake ninja-build pkg-config  # clang and gcc also build kernels
       libjansson-dev libsqlite3-dev zlib1g-dev libmd-dev python3
       libdnnl-dev)  # kernels call it; without it fusetune builds, tests and works all the same
tests=(libcriterion-dev clang-format
       libclang-rt-14-dev   # the runtime of ASan and libFuzzer
       libprotobuf-c-dev protobuf-c-compiler  # a second reader of ONNX files, to disagree with
       python3-onnx libonnx-testdata)  # onnx-ml.proto; ONNX's own models with inputs and outputs

case "${1:-all}" in
  build) wanted=("${build[@]}") ;;
  all) wanted=("${build[@]}" "${tests[@]}") ;;
  *) echo "usage: scripts/deps.sh [build|all]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "deps: this is not a Debian system; install these by other means: ${wanted[*]}" >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "deps: missing ${missing[*]}" >&2
    echo "deps: neither root nor sudo here; as root run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q \
    -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" </dev/null
}

echo "deps: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! apt update >"$log" 2>&1; then
  echo "deps: apt-get update failed; once more"
  apt update >"$log" 2>&1 || { cat "$log" >&2; echo "deps: apt-get update failed" >&2; exit 1; }
fi
if ! apt install --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "deps: apt-get install ${missing[*]} failed" >&2
  exit 1
fi
echo "deps: done"
