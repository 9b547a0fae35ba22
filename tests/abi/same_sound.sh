#!/usr/bin/env bash
# The same text, voice and seed give the same bytes through the C interface and through the program.
#   same_sound.sh EXAMPLE_SPEAK SHOAL
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "A fish swims by." "$folder/c.pcm"
"$2" say "A fish swims by." --voice clara --seed 7 -o "$folder/program.pcm" --quiet
cmp "$folder/c.pcm" "$folder/program.pcm"
