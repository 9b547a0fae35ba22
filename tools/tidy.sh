#!/usr/bin/env bash
# clang-tidy 19 with the short list of .clang-tidy over the library sources; warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f build/release/compile_commands.json ] || cmake --preset release
# Kernels of one instruction set are a matter of intrinsics, and this build has no CUDA; everything else is checked.
git ls-files 'src/**/*.cc' 'bench/*.cc' | grep -vE '_test\.cc$|_bench\.cc$|/cpu/|/cuda/' |
  xargs -P "$(nproc)" -n 4 clang-tidy-19 --quiet -p build/release --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations  # libstdc++ 12's stable_sort
