#!/usr/bin/env bash
# The project speaks of itself alone: no machine paths of ours, no package hosts, no leftovers.
set -euo pipefail
cd "$(dirname "$0")/.."
if git grep -nIE '/work/|/farm/|deb\.debian\.org|registry\.npmjs|FIXME|HACK' -- ':!tools/check_wording.sh' ':!voice/NOTICE.flite' ':!LICENSE'; then
  echo "words that do not belong in the tree (see above)" >&2
  exit 1
fi
