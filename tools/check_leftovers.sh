#!/usr/bin/env bash
# No leftovers: marks of unfinished work and of unfinished merges.
set -euo pipefail
cd "$(dirname "$0")/.."
if git grep -nIE 'FIXME|HACK\b|^(<<<<<<<|>>>>>>>) ' -- ':!tools/check_leftovers.sh' ':!LICENSE'; then
  echo "leftovers in the tree (see above)" >&2
  exit 1
fi
