# The builds that .ci/run tests besides the release build. Sourced.

. .ci/sanitized.sh

build_asan() {
  cmake --preset asan && cmake --build --preset asan --target parity_tests shoal_python $(printf '%s_test ' $asan_modules)
}

build_tsan() {
  cmake --preset tsan -DSHOAL_SANITIZE_KERNELS=OFF && cmake --build --preset tsan --target $(printf '%s_test ' $tsan_modules)
}

# For one architecture. Without a GPU nothing runs the kernels, and code that compiles quickly shows as much. nvcc knows
# how since CUDA 12.9.
build_cuda() {
  local quick=OFF
  export PATH=/usr/local/cuda/bin:$PATH
  if ! command -v nvcc; then return; fi
  if ! nvidia-smi -L 2>/dev/null && nvcc --help | grep -q Ofast-compile; then quick=ON; fi
  cmake --preset cuda -DSHOAL_CUDA_ARCHS=90a -DSHOAL_CUDA_QUICK="$quick" && cmake --build --preset cuda --target \
    shoal ops_test ops_cuda_test dual_ar_test dac_test kokoro_test runtime_test system_test
}

build_fuzz() {
  cmake --preset fuzz && cmake --build --preset fuzz --target fuzz/all
}

# Makes each of these builds, one after the other, from what all other programs leave of the machine.
# FOLDER/NAME.log: what it prints; FOLDER/NAME.status: how it ended; FOLDER/ahead: what all computed.   build_ahead FOLDER NAME...
build_ahead() {
  local folder=$1 name
  shift
  # Where Linux shares the processor among sessions first (autogroup), priorities count within this session alone.
  if [ -w /proc/self/autogroup ]; then echo 19 >/proc/self/autogroup; fi
  renice -n 19 $$ >/dev/null
  chrt --idle --pid 0 $$ || true  # even less, where the system can
  for name in "$@"; do
    "build_$name" >"$folder/$name.log" 2>&1
    echo $? >"$folder/status"
    mv "$folder/status" "$folder/$name.status"
  done
  times >"$folder/ahead"
}

# What `times` wrote of a shell's children to FILE, as "1m2.345s 0m6.789s", in seconds; 0: there is none.   seconds_of FILE
seconds_of() {
  if ! [ -e "$1" ]; then echo 0; return; fi
  awk 'END { split($1 "m" $2, part, "m"); print int(60 * (part[1] + part[3]) + part[2] + part[4]) }' "$1"
}

# Waits until build_ahead, process $ahead, has made a build. Fails as it did.   wait_for_build FOLDER NAME
wait_for_build() {
  while ! [ -e "$1/$2.status" ] && jobs -pr | grep -qx "$ahead"; do sleep 1; done
  if ! [ -e "$1/$2.status" ]; then echo "the build of $2 ended without a word"; return 1; fi
  if [ "$(<"$1/$2.status")" != 0 ]; then cat "$1/$2.log"; return 1; fi
  tail -n 1 "$1/$2.log"
}
