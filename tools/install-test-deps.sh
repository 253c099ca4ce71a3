#!/bin/sh
# Brings what the tests need beside the build: packages, and an environment with pytest and playwright outside the tree.
# Prints nothing but what it does; does nothing when all is there.
set -eu
tools=$(dirname "$0")
"$tools/install-packages.sh" "$tools/packages-test.txt"

venv=${PHLOX_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/phlox/venv}
if ! cmp -s "$tools/requirements-test.txt" "$venv/requirements-test.txt"; then
  echo "making $venv"
  # One that works is added to: others may be running tests in it.
  if ! "$venv/bin/python" -m pip --version > /dev/null 2>&1; then
    rm -rf "$venv"
    mkdir -p "$(dirname "$venv")"
    /usr/bin/python3 -m venv "$venv"
  fi
  "$venv/bin/python" -m pip --quiet install -r "$tools/requirements-test.txt"
  cp "$tools/requirements-test.txt" "$venv/"
fi
