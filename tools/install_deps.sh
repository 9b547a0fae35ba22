#!/usr/bin/env bash
# Installs the Debian 12 packages that Shoal needs.   tools/install_deps.sh [--test | --package | --wheel]
#   (no option)  to build and run          --test  also to run the test suite, the sanitizers and the fuzzers
#                                          --package  also to make Debian packages and to try them
#                                          --wheel  also to make a Python wheel
set -euo pipefail

build=(g++ cmake ninja-build pkg-config git nlohmann-json3-dev libcli11-dev
       libsndfile1-dev libflac-dev libogg-dev libopus-dev libopusenc-dev libmp3lame-dev
       libvo-aacenc-dev libsoxr-dev libsonic-dev libboost1.81-dev libspdlog-dev libfmt-dev prometheus-cpp-dev zlib1g-dev
       libpcre2-dev libutf8proc-dev libexpat1-dev libssl-dev libxxhash-dev libtomlplusplus-dev libespeak-ng-dev espeak-ng-data)
test=(libgtest-dev libgmock-dev ccache python3 clang-19 libclang-rt-19-dev clang-tidy-19 clang-format-19
      chromium prometheus haproxy iproute2 python3-numpy python3-fastapi
      curl python3-httpx python3-aiohttp python3-requests)
package=(dpkg-dev file help2man lintian debootstrap curl)
wheel=(python3 python3-venv patchelf)
# The web page is built by npm, the tests of clients run on Node; an installation of one's own is as good as Debian's.
command -v npm >/dev/null || build+=(nodejs npm)

packages=("${build[@]}")
case "${1:-}" in
  "") ;;
  --test) packages+=("${test[@]}" "${wheel[@]}") ;;
  --package) packages+=("${package[@]}") ;;
  --wheel) packages+=("${wheel[@]}") ;;
  *) echo "usage: tools/install_deps.sh [--test | --package | --wheel]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]} == 0)); then exit 0; fi

sudo=()
if ((EUID != 0)); then sudo=(sudo); fi
echo "installing: ${missing[*]}"
"${sudo[@]}" apt-get update -q
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
