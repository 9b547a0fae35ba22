#!/usr/bin/env bash
# From a fresh Debian 12 to a spoken sentence: installs the packages, builds, speaks with the built-in voice.
#   tools/speak.sh "Any text." [FILE.wav]
set -euo pipefail
text=${1:?usage: tools/speak.sh \"Any text.\" [FILE.wav]}
out=$(realpath "${2:-hello.wav}")
cd "$(dirname "$0")/.."

tools/install_deps.sh
cmake --preset release -DSHOAL_TESTS=OFF -B build/speak
cmake --build build/speak --target shoal
build/speak/src/cli/shoal say "$text" -o "$out"
