#!/usr/bin/env bash
# Debian packages of this checkout, in build/packages.
#   tools/package.sh           shoal, shoal-voice, libshoal0, libshoal-dev
#   tools/package.sh --cuda    shoal-cuda, beside them; ARCHS="90a" for fewer GPU architectures (default: all)
set -euo pipefail
cd "$(dirname "$0")/.."
arguments=()
case "${1:-}" in
  "") build=build/package targets=(shoal shoal-phonemizer shoal_shared shoal_documents shoal_changelog) ;;
  --cuda)
    build=build/package-cuda targets=(shoal shoal_changelog)
    arguments=(-DSHOAL_CUDA=ON ${ARCHS:+"-DSHOAL_CUDA_ARCHS=$ARCHS"})
    ;;
  *) echo "usage: tools/package.sh [--cuda]" >&2; exit 2 ;;
esac

echo "1 of 3: packages that the build needs"
tools/install_deps.sh --package
echo "2 of 3: build (about 4 minutes on two cores, once; with CUDA 15)"
mkdir -p build
cmake --preset release -B "$build" -DSHOAL_TESTS=OFF -DSHOAL_PACKAGES=ON -DCMAKE_INSTALL_PREFIX=/usr \
  "${arguments[@]}" >"$build.log" || { cat "$build.log"; exit 1; }
NINJA_STATUS="[%f of %t, %e s] " cmake --build "$build" --target "${targets[@]}"
echo "3 of 3: packages"
(cd "$build" && cpack >cpack.log) || { cat "$build/cpack.log"; exit 1; }
mkdir -p build/packages
mv "$build"/packages/*.deb build/packages/
ls -l build/packages/*.deb
