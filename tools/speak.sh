#!/usr/bin/env bash
# From a fresh Debian 12 to a spoken sentence: installs the packages, builds, speaks with the built-in voice.
#   tools/speak.sh "Any text." [FILE.wav]
set -euo pipefail
text=${1:?usage: tools/speak.sh \"Any text.\" [FILE.wav]}
out=$(realpath "${2:-hello.wav}")
cd "$(dirname "$0")/.."

echo "1 of 3: packages"
tools/install_deps.sh
echo "2 of 3: build (about 4 minutes on two cores, once)"
mkdir -p build
cmake --preset release -DSHOAL_TESTS=OFF -B build/speak >build/speak.log || { cat build/speak.log; exit 1; }
NINJA_STATUS="[%f of %t, %e s] " cmake --build build/speak --target shoal
echo "3 of 3: speak"
build/speak/src/cli/shoal say "$text" -o "$out"
