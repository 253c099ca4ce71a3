#!/bin/bash
# release-twice.sh [DIR]   Proves that a release depends on nothing but the commit and the packages that it is built with: makes it
# in two clones of HEAD, in directories of different length, and compares. The second one compiles everything anew, without ccache, and
# builds the libraries of static-libraries.sh again. Leaves both in DIR (default: /var/tmp/phlox-twice).
set -euo pipefail
tree=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
dir=${1:-/var/tmp/phlox-twice}
rm -rf "$dir"
made() { # NAME [VARIABLE=VALUE...]
  local clone=$dir/$1
  shift
  git clone --quiet --no-hardlinks "$tree" "$clone"
  git -C "$clone" checkout --quiet --detach "$(git -C "$tree" rev-parse HEAD)"
  env "$@" make -C "$clone" release
}
made one
made a-second-one-with-a-longer-name CCACHE_DISABLE=1 PHLOX_STATIC_LIBRARIES="$dir/libraries"
cd "$dir"
if cmp one/dist/SHA256SUMS a-second-one-with-a-longer-name/dist/SHA256SUMS; then
  echo 'release-twice: the same bytes:'
  cat one/dist/SHA256SUMS
else
  diff one/dist/SHA256SUMS a-second-one-with-a-longer-name/dist/SHA256SUMS || true
  echo 'release-twice: these differ' >&2
  exit 1
fi
