#!/usr/bin/env bash
# Makes the root folder of a bare Debian 12, from where this machine takes its own packages.   tools/bare_debian.sh FOLDER
set -euo pipefail
root=${1:?usage: tools/bare_debian.sh FOLDER}
mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' 2>/dev/null | sort -u | grep -v security | head -1 || true)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Without a mirror debootstrap takes its own default.
debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"} >"$log" 2>&1 || { tail "$log"; exit 1; }
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
