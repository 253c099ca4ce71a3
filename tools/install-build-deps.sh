#!/bin/sh
# Installs the build dependencies (packages-build.txt). --check only names what is missing.
exec "$(dirname "$0")/install-packages.sh" "$@" "$(dirname "$0")/packages-build.txt"
