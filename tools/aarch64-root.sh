#!/bin/sh
# aarch64-root.sh [DIR]   Unpacks a Debian 12 root file system for aarch64 with the libraries that phlox links
# against, for cross-compiling (cmake/aarch64.cmake). Nothing in it is run, and this machine is not changed.
# Its packages are GoogleTest and the libraries of packages-build.txt and packages-static.txt. Does nothing if it exists already.
set -eu
tools=$(dirname "$0")
root=${1:-${PHLOX_AARCH64_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/aarch64/root}}
# Build tools, which run on this machine, and packages not used on aarch64.
not_there='cmake ninja-build g\+\+ ccache esbuild libzydis-dev'
packages=$(sed -n 's/^\([a-z0-9][a-z0-9.+-]*\).*/\1/p' "$tools/packages-build.txt" "$tools/packages-static.txt" |
  grep -vxE "$(echo "$not_there" | tr ' ' '|')" | paste -sd,)
packages=$packages,libc6-dev,libstdc++6,libgtest-dev,googletest
made="$packages"
[ "$(cat "$root.made" 2>/dev/null || true)" = "$made" ] && exit 0

"$tools/install-packages.sh" "$tools/packages-aarch64.txt"
echo "unpacking libraries for aarch64 into $root"
rm -rf "$root" "$root.made"
mkdir -p "$(dirname "$root")"
# This machine's own mirror.
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\(http[^ ]*debian\/\{0,1\}\) .*/\2/p' \
  /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | sed -n 1p)
mmdebstrap --quiet --mode="$([ "$(id -u)" = 0 ] && echo root || echo unshare)" --architectures=arm64 --variant=extract \
  --include="$packages" bookworm "$root" ${mirror:+"$mirror"}
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale"
# A linker with a sysroot would follow an absolute link to /lib/... out of it.
find "$root/lib" "$root/usr/lib" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$root$(readlink "$link")")" "$link"
done
echo "$made" > "$root.made"
