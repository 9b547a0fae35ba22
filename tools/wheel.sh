#!/usr/bin/env bash
# Makes a wheel of the Python package that needs nothing of the machine but its C and C++ runtime (docs/PYTHON.md).
#   tools/wheel.sh [FOLDER]      FOLDER: where it goes, default dist
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-dist}")

tools/install_deps.sh --wheel
mkdir -p "$out"
PYTHONPATH=bindings/python/packaging PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c '
import backend, sys
print(sys.argv[1] + "/" + backend.build_wheel(sys.argv[1], {"repair": "yes"}))' "$out"
