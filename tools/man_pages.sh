#!/usr/bin/env bash
# Manual pages of the program and each of its commands, made of their --help.   tools/man_pages.sh PROGRAM FOLDER
set -euo pipefail
program=$(realpath "${1:?usage: tools/man_pages.sh PROGRAM FOLDER}")
folder=$(realpath -m "${2:?usage: tools/man_pages.sh PROGRAM FOLDER}")
common=$(cd "$(dirname "$0")/.." && pwd)/deploy/man/common.h2m
version=$("$program" --version | sed -n "1s/^shoal //p")
mkdir -p "$folder"
wrappers=$(mktemp -d)
trap 'rm -rf "$wrappers"' EXIT

# page NAME DESCRIPTION COMMAND...: of a command, and those of the commands below it
page() {
  local name=$1 description=$2
  shift 2
  # help2man asks a program; this one has the command's name.
  printf '#!/bin/sh\nexec %q %s "$@"\n' "$program" "$*" >"$wrappers/$name"
  chmod +x "$wrappers/$name"
  local all=--help  # where it shows only what most people need, another shows the rest
  if "$wrappers/$name" --help | grep -q -e --help-all; then all=--help-all; fi
  help2man --help-option="$all" --no-info --section=1 --source=Shoal --version-string="$version" --name="${description%%;*}" \
    --include="$common" --output="$folder/$name.1" "$wrappers/$name"
  local below words
  while read -r below words; do
    [[ -z $below ]] || page "$name-$below" "$words" "$@" "$below"
  done < <("$wrappers/$name" --help | sed -n '/^Subcommands:/,/^$/{/^  [a-z]/p}')
}
page shoal "text to speech, fast, from one program"
gzip -9nf "$folder"/*.1
