#!/usr/bin/env bash
# Installs the packages of build/packages in a bare Debian 12, speaks with them, and purges them (about two minutes).
# shoal-cuda is one of them if it is there (tools/package.sh --cuda): without a driver it speaks on the CPU.
#   tools/package_test.sh      needs root (or sudo): a root folder is made by debootstrap and removed at the end
set -euo pipefail
cd "$(dirname "$0")/.."
if ((EUID != 0)); then exec sudo "$0" "$@"; fi
root=$(mktemp -d) server=
finish() {
  if [[ $server ]]; then kill "$server" 2>/dev/null || true; fi
  umount "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$root"
}
trap finish EXIT
chmod 755 "$root"
within=(chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
inside() { "${within[@]}" "$@"; }
# apt talks much: its words are shown if it fails.
quietly() { "$@" >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }; }
files() { (cd "$root" && find etc lib opt srv usr var -xdev ! -path 'var/lib/apt/*' ! -path 'var/cache/apt/*' ! -path 'var/cache/debconf/*' \
  ! -path 'var/lib/dpkg/*' ! -path 'var/log/*' ! -path 'var/cache/ldconfig/*' ! -type d | sort); }

echo "1 of 5: lintian"
lintian --fail-on error build/packages/*.deb

echo "2 of 5: a bare Debian 12"
tools/bare_debian.sh "$root"
mount -t proc proc "$root/proc" 2>/dev/null || echo "(without /proc)"
mkdir "$root/packages"
cp build/packages/{shoal_,shoal-voice_,libshoal0_,libshoal-dev_}*.deb "$root/packages/"
cuda=$(ls build/packages/shoal-cuda_*.deb 2>/dev/null || true)
if [[ $cuda ]]; then cp "$cuda" "$root/packages/"; fi
quietly inside apt-get update -q

echo "3 of 5: install and speak"
quietly inside sh -c 'apt-get install -y -q --no-install-recommends /packages/*.deb'
inside shoal --version
inside shoal say "Hello, and welcome to Shoal." -o /root/hello.wav --quiet
cp "$root/root/hello.wav" build/packages/hello.wav
build/package/src/cli/shoal say "Hello, and welcome to Shoal." -o build/packages/here.wav --quiet
cmp build/packages/hello.wav build/packages/here.wav
inside test -s /usr/share/man/man1/shoal-say.1.gz
if [[ $cuda ]]; then
  # Nothing of NVIDIA's is linked: a program finds the driver's libcuda by itself, or computes on the CPU.
  inside ldd /usr/bin/shoal-cuda >"$root/libraries"
  if grep -iE 'not found|cuda|cublas|nvidia|nvrtc' "$root/libraries"; then echo "shoal-cuda links these (see above)" >&2; exit 1; fi
  inside shoal-cuda say "Hello, and welcome to Shoal." -o /root/cuda.wav --quiet --device cpu
  cmp "$root/root/cuda.wav" build/packages/hello.wav
  inside shoal-cuda --version | tail -1
else
  echo "not run: shoal-cuda (tools/package.sh --cuda makes it)"
fi

echo "4 of 5: serve as the unit does"
start=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/shoal.service")
port=$((20000 + RANDOM % 10000))
began=$(date +%s%N)
# shellcheck disable=SC2086  # a command line
"${within[@]}" SHOAL_REFERENCES_DIR=/var/lib/shoal/references SHOAL_CACHE_DIR=/var/cache/shoal \
  $start --listen 127.0.0.1:$port >"$root/log" 2>&1 &
server=$!
until curl -fs "http://127.0.0.1:$port/ready" >/dev/null; do
  kill -0 "$server" || { cat "$root/log"; exit 1; }
  sleep 0.02
done
echo "ready after $((($(date +%s%N) - began) / 1000000)) ms"
curl -fs "http://127.0.0.1:$port/v1/audio/speech" -H 'content-type: application/json' \
  -d '{"model":"tts-1","input":"Hello, and welcome to Shoal.","voice":"alloy","response_format":"wav"}' -o build/packages/served.wav
test "$(stat -c %s build/packages/served.wav)" -gt 10000
kill -TERM "$server"
wait "$server"
server=

echo "5 of 5: purge leaves nothing"
files >"$root/before"
quietly inside apt-get purge -y -q shoal shoal-voice libshoal0 libshoal-dev ${cuda:+shoal-cuda}
files >"$root/after"
if grep -i shoal "$root/after"; then echo "left behind (see above)" >&2; exit 1; fi
printf '%s files removed\n' "$(comm -23 "$root/before" "$root/after" | wc -l)"
rm -f build/packages/*.wav
echo "packages are good"
