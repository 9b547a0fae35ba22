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

# Clients, browsers and interpreters wait half of their time: modules compute meanwhile, and take nothing else from them.
log=build/$preset/module_tests.log status=0
setsid nice -n 10 tools/module_tests.py "$preset" >"$log" 2>&1 &
modules=$!
trap 'kill -- -$modules 2>/dev/null || true' EXIT  # whoever interrupts this ends them, too
tools/ctest.sh "$preset" -LE '^module$' || status=$?
wait "$modules" || status=$?
cat "$log"
exit "$status"
