#!/usr/bin/env bash
# Runs the tests of a built preset and prints their counts, the skipped ones too.
#   tools/ctest.sh PRESET [ctest options]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?usage: tools/ctest.sh PRESET [ctest options]}
shift
report=$PWD/build/$preset/tests.xml

status=0
ctest --preset "$preset" --parallel "$(nproc)" --output-junit "$report" "$@" || status=$?
python3 - "$preset" "$report" <<'END'
import sys
import xml.etree.ElementTree as xml
suite = xml.parse(sys.argv[2]).getroot()
total, failed, skipped, disabled = (int(suite.get(key, 0)) for key in ("tests", "failures", "skipped", "disabled"))
print(f"{sys.argv[1]}: {total} tests: {total - failed - skipped - disabled} passed, {failed} failed, "
      f"{skipped} skipped, {disabled} disabled")
END
exit "$status"
