#!/usr/bin/env bash
# Formats the C++ sources with the pinned clang-format.   tools/format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files '*.h' '*.cc' '*.cu' '*.cuh')
case "${1:-}" in
  "") clang-format-19 -i "${files[@]}" ;;
  --check) clang-format-19 --dry-run --Werror "${files[@]}" ;;
  *) echo "usage: tools/format.sh [--check]" >&2; exit 2 ;;
esac
