#!/usr/bin/env bash
# Builds the libFuzzer programs and runs each for SECONDS.   tools/fuzz.sh [SECONDS] [NAME...]
# New inputs go to build/fuzz/corpus/NAME; a finding stops the run and leaves its input in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
if (($#)); then shift; fi

tools/install_deps.sh --test
cmake --preset fuzz
names=("$@")
if ((${#names[@]} == 0)); then
  for source in fuzz/*/*_fuzz.cc; do names+=("$(basename "$source" .cc)"); done
fi
cmake --build --preset fuzz --target "${names[@]}"
mkdir -p build/fuzz/findings
# Whether what was found is an input that took too long once and does not again: libFuzzer looks at the wall clock.
stalled() {
  local input
  input=$(grep -oP 'Test unit written to \K\S+' "build/fuzz/$1.log" | tail -n 1) && [[ $input == *-timeout-* ]] || return 1
  "build/fuzz/fuzz/$1" -timeout=10 -rss_limit_mb=2048 -close_fd_mask=2 "$input" >>"build/fuzz/$1.log" 2>&1 && rm "$input"
}
run() {
  local name=$1 seeds=()
  mkdir -p "build/fuzz/corpus/$name"
  for folder in fuzz/*/corpus/"$name"; do [ -d "$folder" ] && seeds+=("$folder"); done
  if "build/fuzz/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -close_fd_mask=2 \
      -artifact_prefix="build/fuzz/findings/$name-" "build/fuzz/corpus/$name" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1; then
    echo "$name: no finding in $(grep -oP 'number_of_executed_units: \K\d+' "build/fuzz/$name.log") runs"
  elif stalled "$name"; then
    echo "$name: one input took over 10 s, and did not again: the machine stalled"
  else
    tail -n 40 "build/fuzz/$name.log"
    echo "$name: FINDING, see build/fuzz/findings" >&2
    return 1
  fi
}
export -f run stalled
export seconds
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run {}'
