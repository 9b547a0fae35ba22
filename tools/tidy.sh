#!/usr/bin/env bash
# clang-tidy 19 with the short list of .clang-tidy over the library sources; warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release -B build/tidy -DSHOAL_TESTS=OFF >/dev/null
# A module at a time, the largest first. Kernels of one instruction set are a matter of intrinsics, and this build has
# no CUDA; everything else is checked.
find build/tidy -name 'unity_*.cxx' -printf '%p\n' | grep -v /examples/ | xargs wc -l | sort -rn | awk '$2 != "total" { print $2 }' |
  xargs -P "$(nproc)" -n 1 clang-tidy-19 --quiet -p build/tidy --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations  # libstdc++ 12's stable_sort
