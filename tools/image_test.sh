#!/usr/bin/env bash
# Starts an image's server with a read-only root and as its own user, waits until it is ready, speaks, and stops it.
#   tools/image_test.sh docker|podman|buildah IMAGE
set -euo pipefail
tool=${1:?usage: tools/image_test.sh TOOL IMAGE} image=${2:?usage: tools/image_test.sh TOOL IMAGE}
work=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
now_ms() { echo $(($(date +%s%N) / 1000000)); }

if [[ $tool == buildah ]]; then
  # No engine: runc starts what the image says, from its unpacked root.
  container=$(buildah from "$image")
  root=$(buildah mount "$container")
  buildah inspect --type image "$image" >"$work/image.json"
  python3 "$(dirname "$0")/image_bundle.py" "$work/image.json" "$root" "$port" >"$work/config.json"
  name=shoal-$$
  finish() { runc delete -f "$name" 2>/dev/null || true; buildah rm "$container" >/dev/null; rm -rf "$work"; }
  trap finish EXIT
  began=$(now_ms)
  runc run --bundle "$work" "$name" >"$work/log" 2>&1 &
  inside() { runc exec "$name" "$@"; }
  stop() { runc kill "$name" TERM; }
else
  name=shoal-$$
  finish() { "$tool" rm -f "$name" >/dev/null 2>&1 || true; rm -rf "$work"; }
  trap finish EXIT
  began=$(now_ms)
  "$tool" run --name "$name" --read-only --tmpfs /tmp --cap-drop all -p "127.0.0.1:$port:8080" "$image" >"$work/log" 2>&1 &
  inside() { "$tool" exec "$name" "$@"; }
  stop() { "$tool" stop "$name" >/dev/null; }
fi
server=$!

until curl -fs "http://127.0.0.1:$port/ready" >/dev/null; do
  if ! kill -0 $server 2>/dev/null || (($(now_ms) - began > 60000)); then cat "$work/log"; exit 1; fi
  sleep 0.02
done
echo "ready $(($(now_ms) - began)) ms after the container's start"
curl -fsS "http://127.0.0.1:$port/v1/audio/speech" -H 'content-type: application/json' \
  -d '{"model":"tts-1","input":"Hello, and welcome to Shoal.","voice":"alloy","response_format":"wav"}' -o "$work/hello.wav"
echo "spoke $(stat -c %s "$work/hello.wav") bytes"
(($(stat -c %s "$work/hello.wav") > 10000))
inside /usr/bin/shoal ready >/dev/null
if inside /bin/sh -c true 2>/dev/null; then echo "there is a shell in the image" >&2; exit 1; fi
began=$(now_ms)
stop
code=0
wait $server || code=$?
echo "stopped in $(($(now_ms) - began)) ms with exit code $code"
((code == 0))
