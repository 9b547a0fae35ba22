#!/bin/sh
# Types and unit tests of the page, in a folder of the build tree.   web/check.sh FOLDER
set -eu
web=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
rm -rf src test
cp -R "$web/src" "$web/test" "$web/package.json" "$web/package-lock.json" "$web/.npmrc" "$web/tsconfig.json" "$web/build.mjs" .
if ! cmp -s package-lock.json installed; then
  npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
  cp package-lock.json installed
fi
npm run --silent check
npm test --silent
