#!/usr/bin/env bash
# No leftovers: marks of unfinished work and of unfinished merges, and sources cited that are not in the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
if git grep -nIE 'FIXME|HACK\b|^(<<<<<<<|>>>>>>>) ' -- ':!tools/check_leftovers.sh' ':!LICENSE'; then
  echo "leftovers in the tree (see above)" >&2
  status=1
fi
# What a comment cites, a reader must be able to open: MODEL.md, docs/, a paper or a project by its name.
if git grep -niIE '\bspec[ /](dual_ar|dac|kokoro|prompt|serving|compatibility)|\(design (section )?[0-9]' -- \
    ':!tools/check_leftovers.sh' ':!tests/data'; then
  echo "sources that are not in the repository (see above): cite MODEL.md, docs/ or the project by name" >&2
  status=1
fi
exit "$status"
