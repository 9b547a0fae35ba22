#!/usr/bin/env bash
# Packs a CUDA build for a GPU machine that cannot build: its GPU tests, the program, and the libraries that they
# need beyond those of every system.   tools/gpu_pack.sh [BUILD] [FILE.tar.xz]      then there: tools/gpu.sh --binaries FILE
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/cuda}
file=$(realpath -m "${2:-$build/gpu.tar.xz}")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/bin" "$stage/lib"

# The programs of the tests labelled gpu, each once.
mapfile -t programs < <(ctest --test-dir "$build" -L gpu --show-only=json-v1 | python3 -c '
import json, sys
print(*sorted({test["command"][0] for test in json.load(sys.stdin)["tests"] if "command" in test}), sep="\n")')
for program in "${programs[@]}" "$build/src/cli/shoal"; do
  if [ -x "$program" ]; then strip -o "$stage/bin/$(basename "$program")" "$program"; fi
done
for program in "$stage"/bin/*; do
  ldd "$program" | awk '$3 ~ /^\// {print $3}'
done | sort -u | grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so' |
  xargs -r -I{} cp -L {} "$stage/lib/"
echo "$PWD" > "$stage/source_dir"
# One window over all programs: the kernels that each of them holds are packed once.
tar -C "$stage" -c . | xz -T1 --lzma2=preset=6,dict=256MiB > "$file"
ls -l "$stage/bin"
ls -l "$file"
