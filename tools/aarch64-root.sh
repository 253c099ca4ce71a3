#!/bin/sh
# aarch64-root.sh [DIR]   Unpacks a Debian 12 root file system for aarch64 with the libraries that phlox links
# against, for cross-compiling (cmake/aarch64.cmake). Nothing in it is run, and this machine is not changed.
# Its packages are GoogleTest and the libraries of packages-build.txt and packages-static.txt, of the mirrors that this machine uses.
# var/lib/phlox-packages in it lists them with their versions (tools/release.py). Does nothing if it exists already.
set -eu
tools=$(dirname "$0")
root=${1:-${PHLOX_AARCH64_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/aarch64/root}}
# Build tools, which run on this machine, and packages not used on aarch64.
not_there='cmake ninja-build g\+\+ ccache esbuild libzydis-dev'
packages=$(sed -n 's/^\([a-z0-9][a-z0-9.+-]*\).*/\1/p' "$tools/packages-build.txt" "$tools/packages-static.txt" |
  grep -vxE "$(echo "$not_there" | tr ' ' '|')" | paste -sd,)
packages=$packages,libc6-dev,libstdc++6,libgtest-dev,googletest
made="$packages $(sha256sum "$0" | cut -c1-16)"
[ "$(cat "$root.made" 2>/dev/null || true)" = "$made" ] && exit 0

"$tools/install-packages.sh" "$tools/packages-cross.txt"
echo "unpacking libraries for aarch64 into $root"
rm -rf "$root" "$root.made"
mkdir -p "$(dirname "$root")"
# This machine's own mirrors, with the security updates that it has too.
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | grep -E ' bookworm(-[a-z]+)? ' | sort -u)
# shellcheck disable=SC2016
printf '%s\n' "$sources" |
  mmdebstrap --quiet --mode="$([ "$(id -u)" = 0 ] && echo root || echo unshare)" --architectures=arm64 --variant=extract --include="$packages" \
    --extract-hook='for d in "$1"/var/cache/apt/archives/*.deb; do dpkg-deb -W --showformat="\${Package} \${Version}\n" "$d"; done > "$1/var/lib/phlox-packages"' \
    bookworm "$root" ${sources:+-}
# The licences stay: a release has them.
find "$root/usr/share/doc" -type f ! -name copyright -delete
rm -rf "$root/usr/share/man" "$root/usr/share/locale"
# A linker with a sysroot would follow an absolute link to /lib/... out of it.
find "$root/lib" "$root/usr/lib" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$root$(readlink "$link")")" "$link"
done
echo "$made" > "$root.made"
