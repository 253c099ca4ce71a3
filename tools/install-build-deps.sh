#!/bin/sh
# Brings what building needs (packages-build.txt). With --check it only names what is missing.
exec "$(dirname "$0")/install-packages.sh" "$@" "$(dirname "$0")/packages-build.txt"
