#!/usr/bin/env bash
# A test program under compute-sanitizer, in shards side by side: most of its time are references on the CPU.
#   tools/gpu_sanitize.sh TOOL PROGRAM GTEST_FILTER LOGS
# Leaves a log of every shard in the folder LOGS; says what each found, and ends with 1 if one found anything or failed.
set -euo pipefail
tool=$1 program=$2 filter=$3 logs=$4
shards=$(($(nproc) < 16 ? $(nproc) : 16))
mkdir -p "$logs"
pids=()
for ((shard = 0; shard < shards; ++shard)); do
  # Errors of calls are part of what is tested. Ports of its own: by default all would take the same ten.
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard compute-sanitizer --tool "$tool" --port $((49152 + 16 * shard)) \
    --report-api-errors no --error-exitcode 99 "$program" --gtest_filter="$filter" > "$logs/$shard.log" 2>&1 &
  pids+=($!)
done
failed=0 summaries=0
for ((shard = 0; shard < shards; ++shard)); do
  log=$logs/$shard.log status=0
  wait "${pids[shard]}" || status=$?
  # A shard of few tests may have none that uses the GPU.
  if grep -q 'before first instrumented API call' "$log" && grep -q '^\[  PASSED  \]' "$log" &&
    ! grep -q '^\[  FAILED  \]' "$log"; then continue; fi
  if ((status)); then
    failed=1
    echo "--- shard $shard:"
    grep -vE '^\[ (RUN|      OK)' "$log" | tail -n 40
  fi
  if grep -E ' SUMMARY: ' "$log"; then summaries=$((summaries + 1)); else echo "shard $shard: no summary"; fi
done
exit $((failed || summaries == 0))
