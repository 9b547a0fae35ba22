#!/usr/bin/env bash
# On a machine with a GPU, in under 8 minutes: the GPU tests, compute-sanitizer over the kernels' tests, benchmarks.
#   tools/gpu.sh [--build DIR | --binaries FILE.tar.xz] [--out DIR] [--only tests,sanitize,bench] [--filter GTEST_FILTER]
#                [--sanitize-filter GTEST_FILTER] [--bench "ARGUMENTS OF shoal bench"]... [--minutes N]
#   --build       a configured CUDA build (default build/cuda; configured for this GPU if it is not there)
#   --binaries    what tools/gpu_pack.sh made: nothing is built
# Leaves a JSON file of every step, the logs and summary.json in DIR (default out/gpu); exits with 1 if anything failed.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
build=build/cuda binaries="" out=out/gpu only=tests,sanitize,bench filter='*' minutes=8
# Refused allocations are part of what is tested, but not by a tool that needs memory itself.
memcheck_filter='-*TooMuch*' memcheck_ops_filter='*/cuda*-*TooMuch*'
# Racecheck is up to a hundred times slower: tests of most suites that end under it (of LSTMs and of products by
# wgmma, nearly none do).
racecheck_filter='AttentionBitsTest.Short*:F32Product.Hundreds*'
racecheck_ops_filter='*/SegmentNorm.AdainRuns*/cuda:*/CopyKvPages.Moves*/cuda:*/DepthwiseConv1d.Chunks*/cuda'
racecheck_ops_filter+=':*/HarmonicSourceTest.MatchesTheOracleWithDrawn*/cuda:*/NormTest.LayerNorm*/cuda'
racecheck_ops_filter+=':*/Conv1d.Writes*/cuda_BF16:*/Linear.MatchesTheReferenceAtAwkwardSizes/cuda_F16'
racecheck_ops_filter+=':*/AttentionTest.HeadsAre*/cuda*:*/AttentionTest.Appended*/cuda*'
racecheck_ops_filter+=':*/AttentionBatch.PagesOutside*/cuda*:*/AttentionBatch.PagesAfter*/cuda_BF16'
racecheck_ops_filter+=':*/DrawBatch.ARow*/cuda:*/DrawBatch.Redraws*/cuda'
benches=()
while (($#)); do
  case "$1" in
    --build) build=$2 ;;
    --binaries) binaries=$2 ;;
    --out) out=$2 ;;
    --only) only=$2 ;;
    --filter) filter=$2 ;;
    --sanitize-filter) memcheck_filter=$2 racecheck_filter=$2 memcheck_ops_filter=$2 racecheck_ops_filter=$2 ;;
    --bench) benches+=("$2") ;;
    --minutes) minutes=$2 ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
if ((${#benches[@]} == 0)); then benches=("--random s1-mini --no-load --device cuda --json" "--device cuda --json"); fi
export PATH=$PATH:/usr/local/cuda/bin
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv,noheader
rm -rf "$out"
mkdir -p "$out"
: > "$out/steps.tsv"

wanted() { [[ ,$only, == *,$1,* ]]; }
remaining() { echo $((started + 60 * minutes - SECONDS)); }

# step NAME KIND LIMIT_S COMMAND...: runs it within its limit and what is left of the whole; notes how it ended.
step() {
  local name=$1 kind=$2 limit=$3 left status=0 began=$SECONDS
  shift 3
  left=$(remaining)
  if ((left < 5)); then
    printf '%s\t%s\tno time left\t0\n' "$name" "$kind" >> "$out/steps.tsv"
    return
  fi
  timeout -k 5 $((limit < left ? limit : left)) "$@" > "$out/$name.log" 2>&1 || status=$?
  printf '%s\t%s\t%s\t%s\n' "$name" "$kind" "$status" $((SECONDS - began)) >> "$out/steps.tsv"
  if ((status)); then
    echo "--- $name: status $status; the end of its log:"
    tail -n 40 "$out/$name.log"
  fi
}

if [ -n "$binaries" ]; then
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  tar -C "$unpacked" -xJf "$binaries"
  export LD_LIBRARY_PATH=$unpacked/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  # The tests find their data where they were built.
  source_dir=$(<"$unpacked/source_dir")
  if [ ! -e "$source_dir" ]; then mkdir -p "$(dirname "$source_dir")" && ln -s "$PWD" "$source_dir"; fi
  tests=("$unpacked"/bin/*_test)
  shoal=$unpacked/bin/shoal
else
  if [ ! -f "$build/build.ninja" ]; then
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    cmake --preset cuda -B "$build" -DSHOAL_CUDA_ARCHS="${capability/#90/90a}"
  fi
  cmake --build "$build"
  mapfile -t tests < <(ctest --test-dir "$build" -L gpu --show-only=json-v1 | python3 -c '
import json, sys
print(*sorted({test["command"][0] for test in json.load(sys.stdin)["tests"] if "command" in test}), sep="\n")')
  shoal=$build/src/cli/shoal
fi
kernels="" ops=""
for program in "${tests[@]}"; do
  name=$(basename "$program")
  if [ "$name" = ops_cuda_test ]; then kernels=$program; fi
  if [ "$name" = ops_test ]; then ops=$program; fi
  if wanted tests; then
    # The models' tests run on either kind of device; of the system's, those of the built-in voice; of the ops', those
    # on a GPU.
    tests_of=$filter
    if [ "$name" = ops_test ] && [ "$filter" = '*' ]; then tests_of='*/cuda*'; fi
    if [ "$name" = system_test ] && [ "$filter" = '*' ]; then tests_of='BuiltInVoice.*'; fi
    step "$name" test 240 env SHOAL_TEST_DEVICE=cuda "$program" --gtest_brief=1 --gtest_filter="$tests_of" \
      --gtest_output="json:$out/$name.json"
  fi
done

if wanted sanitize && [ -n "$kernels" ]; then
  step memcheck sanitizer 120 tools/gpu_sanitize.sh memcheck "$kernels" "$memcheck_filter" "$out/memcheck"
  step racecheck sanitizer 120 tools/gpu_sanitize.sh racecheck "$kernels" "$racecheck_filter" "$out/racecheck"
fi
if wanted sanitize && [ -n "$ops" ]; then
  step memcheck_ops sanitizer 120 tools/gpu_sanitize.sh memcheck "$ops" "$memcheck_ops_filter" "$out/memcheck_ops"
  step racecheck_ops sanitizer 120 tools/gpu_sanitize.sh racecheck "$ops" "$racecheck_ops_filter" "$out/racecheck_ops"
fi

if wanted bench && [ -x "$shoal" ]; then
  number=0
  for arguments in "${benches[@]}"; do
    number=$((number + 1))
    # shellcheck disable=SC2086  # arguments are words
    step "bench_$number" bench 120 "$shoal" bench $arguments
  done
fi

python3 tools/gpu_table.py "$out"
