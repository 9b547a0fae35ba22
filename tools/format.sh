#!/usr/bin/env bash
# Formats the C++ sources with the pinned clang-format.   tools/format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
# As many at a time as there are processors.
each() { git ls-files -z '*.h' '*.cc' '*.cu' '*.cuh' | xargs -0 -n 32 -P "$(nproc)" clang-format-19 "$@"; }
case "${1:-}" in
  "") each -i ;;
  --check) each --dry-run --Werror ;;
  *) echo "usage: tools/format.sh [--check]" >&2; exit 2 ;;
esac
