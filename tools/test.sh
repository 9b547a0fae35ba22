#!/usr/bin/env bash
# The whole test suite: installs what it needs, builds, runs every test and prints the counts.
#   tools/test.sh [PRESET] [ctest options]      PRESET: release (default), asan, tsan
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
if (($#)); then shift; fi

tools/install_deps.sh --test
cmake --preset "$preset"
cmake --build --preset "$preset"
if (($#)); then exec tools/ctest.sh "$preset" "$@"; fi

status=0
tools/module_tests.py "$preset" || status=$?
tools/ctest.sh "$preset" -LE '^module$' || status=$?
exit "$status"
