#!/bin/bash
# release-roots.sh [SUITE...]   Makes roots of Debian and Ubuntu that have a Python with pip, and nothing of phlox's, for trying what
# `make release` made (tests/package/test_release_elsewhere.py). Default: bookworm jammy noble. They lie in PHLOX_ROOTS (default
# /var/tmp/phlox-roots) and are made once. Needs root and debootstrap.
set -euo pipefail
tools=$(dirname "$0")
roots=${PHLOX_ROOTS:-/var/tmp/phlox-roots}
[ $# -gt 0 ] || set -- bookworm jammy noble
[ "$(id -u)" = 0 ] || { echo 'release-roots: needs root, to make roots' >&2; exit 1; }
command -v debootstrap > /dev/null || { echo 'release-roots: apt-get install debootstrap' >&2; exit 1; }
mirror=$("$tools/apt-mirror.sh")
for suite; do
  root=$roots/$suite from=$mirror options=(--components=main) script=()
  [ ! -e "$root/ok" ] || continue
  case $suite in
    # Next to Debian's, as on most mirrors. Its keys are not Debian's; one script suits all of its suites.
    jammy | noble) from=${mirror%/debian*}/ubuntu options=(--components=main,universe --no-check-gpg) script=(gutsy) ;;
  esac
  rm -rf "$root"
  mkdir -p "$roots"
  debootstrap "${options[@]}" --variant=minbase --include=python3,python3-venv,python3-pip "$suite" "$root" "$from" "${script[@]}" > "$root.log" 2>&1 ||
    { tail -5 "$root.log" >&2; echo "release-roots: $suite could not be had" >&2; exit 1; }
  rm -rf "$root/var/cache/apt/archives" "$root.log"
  touch "$root/ok"
done
