#!/usr/bin/env bash
# Starts Shoal on a bare pod with a GPU, as root: finds or makes the program, measures it, serves.
#   git clone REPOSITORY shoal && shoal/deploy/runpod/setup.sh [--program FILE] [--bench OPTIONS] [OPTIONS of shoal serve]
# The program: --program, or the first that is there of shoal-cuda and shoal on the path and the packages of
# build/packages; else it is built here for this pod's GPU (CUDA 13 with nvcc; about half an hour).
#   --bench "--text Hi."   options of the benchmark; --bench none leaves it out
# It listens on 0.0.0.0 at $PORT (8080). SHOAL_MODEL names the model, SHOAL_API_KEY the key that clients send.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
program='' bench=''
while (($#)); do
  case $1 in
    --program) program=${2:?--program FILE}; shift 2 ;;
    --bench) bench=${2?--bench OPTIONS}; shift 2 ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) break ;;
  esac
done

gpu=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | head -n 1 || true)
[[ $gpu ]] || echo "no GPU here: nvidia-smi names none; Shoal will use the CPU" >&2

build() {
  cd "$here"
  tools/install_deps.sh
  local preset=release arguments=()
  if [[ $gpu ]]; then
    command -v nvcc >/dev/null || { echo "nvcc is not on the path: take a pod image with the CUDA 13 toolkit, or the packages of tools/package.sh --cuda" >&2; exit 1; }
    local arch=${gpu##*, }
    arch=${arch/./}
    [[ $arch == 90 ]] && arch=90a
    preset=cuda arguments=("-DSHOAL_CUDA_ARCHS=$arch")
  fi
  cmake --preset "$preset" -DSHOAL_TESTS=OFF "${arguments[@]}" >/dev/null
  cmake --build "build/$preset" --target shoal
  program=$here/build/$preset/src/cli/shoal
}

if [[ ! $program ]]; then
  packages=("$here"/build/packages/shoal*.deb)
  if ! command -v shoal >/dev/null && [[ -e ${packages[0]} ]]; then
    apt-get update -q && apt-get install -y -q --no-install-recommends "${packages[@]}"
  fi
  program=$(command -v shoal-cuda || command -v shoal || true)
  [[ $program ]] || build
fi

"$program" --version
if [[ $bench != none ]]; then
  echo "benchmark of ${gpu:-this CPU}"
  # shellcheck disable=SC2086  # options
  "$program" bench ${SHOAL_MODEL:+--model "$SHOAL_MODEL"} $bench
fi
export SHOAL_LISTEN=${SHOAL_LISTEN:-0.0.0.0:8080}  # with $PORT's port, if that is set
exec "$program" serve "$@"
