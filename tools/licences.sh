#!/usr/bin/env bash
# Copies the licences of what is compiled into the program from the packages that it was built with.
#   tools/licences.sh BUILD_FOLDER FOLDER
set -euo pipefail
build=${1:?usage: tools/licences.sh BUILD_FOLDER FOLDER} folder=${2:?usage: tools/licences.sh BUILD_FOLDER FOLDER}
mkdir -p "$folder"
# Libraries whose headers have the code. Shared libraries come with licences of their own.
for package in libboost1.81-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libspdlog-dev libfmt-dev prometheus-cpp-dev; do
  cp "$(readlink -f "/usr/share/doc/$package/copyright")" "$folder/$package"
done
gzip -9nf "$folder"/*
page=$build/src/server/page/web/node_modules
if [[ -d $page ]]; then
  cp "$page/uplot/LICENSE" "$folder/uplot"
  cp "$page/@fontsource/newsreader/LICENSE" "$folder/newsreader"
fi
