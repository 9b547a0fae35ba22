#!/bin/sh
# Makes the root folder of an image from the Debian packages in /packages (a stage of deploy/Containerfile).
#   image_root.sh cpu|cuda FOLDER
set -eu
variant=$1 root=$2
rm -f /packages/libshoal*.deb
if [ "$variant" = cpu ]; then rm -f /packages/shoal-cuda_*.deb; fi
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends /packages/*.deb espeak-ng-data

mkdir -p "$root/usr/bin" "$root/usr/share" "$root/etc" "$root/tmp" "$root/data/references" "$root/data/cache"
cp /usr/bin/shoal-phonemizer "$root/usr/bin/"
if [ "$variant" = cuda ]; then cp /usr/bin/shoal-cuda "$root/usr/bin/shoal"; else cp /usr/bin/shoal "$root/usr/bin/"; fi
cp -r /usr/share/shoal "$root/usr/share/"
cp -r --parents /usr/lib/x86_64-linux-gnu/espeak-ng-data "$root/"

# The libraries that these programs link, where the loader looks for them, and the terms of each.
ldd "$root/usr/bin/shoal" "$root/usr/bin/shoal-phonemizer" | grep -oE '/[^ ]+ ' | sort -u >/libraries
mkdir -p "$root/usr/lib/x86_64-linux-gnu" "$root/lib64" "$root/usr/share/doc"
while read -r library; do
  cp -L "$library" "$root/usr/lib/x86_64-linux-gnu/"
  package=$(dpkg -S "$(readlink -f "$library")" "$library" 2>/dev/null | head -1 | cut -d: -f1)
  mkdir -p "$root/usr/share/doc/$package"
  cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/" 2>/dev/null || true
done </libraries
ln -s usr/lib "$root/lib"
mv "$root"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 "$root/lib64/"
for package in shoal shoal-voice espeak-ng-data; do cp -rL "/usr/share/doc/$package" "$root/usr/share/doc/" 2>/dev/null || true; done
mkdir -p "$root/usr/share/common-licenses"
cp -L /usr/share/common-licenses/* "$root/usr/share/common-licenses/"

printf 'root:x:0:0:root:/:/sbin/nologin\nshoal:x:65532:65532:shoal:/data:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nshoal:x:65532:\n' >"$root/etc/group"
chmod 1777 "$root/tmp"
chown -R 65532:65532 "$root/data"
