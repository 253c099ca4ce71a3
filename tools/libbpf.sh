#!/bin/bash
# libbpf.sh   Where the distribution's libbpf is older than 1.0 (Ubuntu 22.04), downloads the archive and the headers of the next
# long-term release (24.04), to ${XDG_CACHE_HOME:-~/.cache}/phlox/libbpf, once. Elsewhere it does nothing. If that fails,
# phlox is built without kernel sampling, and the build says so.
set -euo pipefail
export LC_ALL=C
umask 022
[ ! -e /usr/include/bpf/libbpf_version.h ] || exit 0
grep -qsx ID=ubuntu /etc/os-release || exit 0
TOOLS=$(cd "$(dirname "$0")" && pwd)
. "$TOOLS/private-apt.sh"
DIR=${XDG_CACHE_HOME:-$HOME/.cache}/phlox/libbpf
mkdir -p "$DIR"
exec 8> "$DIR/.lock"
flock 8
[ ! -e "$DIR/made" ] || exit 0
rm -rf "$DIR/files" "$DIR/include" "$DIR/lib"
trap 'rm -rf "$DIR/files"' EXIT
mkdir -p "$DIR/files/root" "$DIR/include" "$DIR/lib"

bring() {
  local mirror suite
  mirror=$("$TOOLS/apt-mirror.sh") &&
    private_apt "$DIR/files/apt" < <(for suite in noble noble-updates; do echo "deb $mirror $suite main"; done) &&
    (cd "$DIR/files" && apt-get -qq download libbpf-dev linux-libc-dev) || return 1
  for package in "$DIR"/files/*.deb; do dpkg-deb -x "$package" "$DIR/files/root" || return 1; done
  cp -r "$DIR/files/root/usr/include/bpf" "$DIR/files/root/usr/include/linux" "$DIR/include/" &&
    cp "$DIR"/files/root/usr/lib/*/libbpf.a "$DIR/lib/" || return 1
  # It was compiled with glibc 2.39, whose headers give these functions names that older ones do not have: they also accept 0b101.
  objcopy --redefine-sym __isoc23_strtol=strtol --redefine-sym __isoc23_strtoul=strtoul --redefine-sym __isoc23_strtoll=strtoll \
    --redefine-sym __isoc23_strtoull=strtoull --redefine-sym __isoc23_sscanf=sscanf --redefine-sym __isoc23_fscanf=fscanf \
    --redefine-sym __isoc23_vsscanf=vsscanf "$DIR/lib/libbpf.a"
}
if bring > "$DIR/log" 2>&1; then touch "$DIR/made"; else
  echo "libbpf: the download failed, so this phlox will lack kernel sampling (see $DIR/log)" >&2
fi
