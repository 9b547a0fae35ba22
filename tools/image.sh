#!/usr/bin/env bash
# Builds the image of the server and tries it: starts it with a read-only root, speaks, stops it.
#   tools/image.sh [--cuda] [--base IMAGE] [--no-test]
#   --cuda        the program for NVIDIA GPUs; ARCHS="90a" for fewer GPU architectures (default: all)
#   --base IMAGE  of Debian 12; default: Docker Hub's debian:12-slim, or, where no registry answers, one that
#                 debootstrap makes
# The packages are made on this machine (tools/package.sh). To compile in a container instead: deploy/Containerfile.
set -euo pipefail
cd "$(dirname "$0")/.."
variant=cpu base= try=1
while (($#)); do
  case $1 in
    --cuda) variant=cuda ;;
    --base) base=${2:?--base needs the name of an image}; shift ;;
    --no-test) try= ;;
    *) echo "usage: tools/image.sh [--cuda] [--base IMAGE] [--no-test]" >&2; exit 2 ;;
  esac
  shift
done
for tool in docker podman buildah none; do
  if command -v $tool >/dev/null && $tool info >/dev/null 2>&1; then break; fi
done
if [[ $tool == none ]]; then echo "image.sh needs docker, podman or buildah; on Debian: apt install buildah runc" >&2; exit 2; fi
build=("$tool" build)
if [[ $tool == buildah ]]; then build=(buildah bud --isolation chroot); fi

echo "1 of 4: packages"
rm -f build/packages/*.deb
tools/package.sh
if [[ $variant == cuda ]]; then tools/package.sh --cuda; fi

echo "2 of 4: a bare Debian 12"
if [[ -z $base ]]; then
  base=docker.io/library/debian:12-slim
  if ! timeout 60 "$tool" pull -q $base >/dev/null 2>&1; then
    base=localhost/shoal-debian:12
    if ! "$tool" inspect $base >/dev/null 2>&1; then
      work=$(mktemp -d)
      trap 'rm -rf --one-file-system "$work"' EXIT
      chmod 755 "$work"
      tools/bare_debian.sh "$work/root"
      tar -C "$work/root" -c . >"$work/root.tar"
      printf 'FROM scratch\nADD root.tar /\n' >"$work/Containerfile"
      "${build[@]}" -q -t $base -f "$work/Containerfile" "$work" >/dev/null
    fi
  fi
fi

echo "3 of 4: image"
version=$(build/package/src/cli/shoal --version | sed -n '1s/^shoal //p')
commit=$(build/package/src/cli/shoal --version | sed -n '2s/^commit //p')
name=shoal
if [[ $variant == cuda ]]; then name=shoal-cuda; fi
"${build[@]}" -f deploy/Containerfile -t "$name:$version" -t "$name:latest" --build-arg BASE="$base" --build-arg PACKAGES=given \
  --build-arg VARIANT=$variant --build-arg VERSION="$version" --build-arg COMMIT="$commit" . >build/image.log 2>&1 || { tail -30 build/image.log; exit 1; }
"$tool" images | sed -nE "1p; \\#(^|/)$name +#p"

if [[ $try ]]; then
  echo "4 of 4: start, speak, stop"
  tools/image_test.sh "$tool" "$name:$version"
fi
