#!/bin/sh
# install-packages.sh [--check] LIST...   Installs the packages on the lists (tools/packages-*.txt explain the
# format) with apt, as root or through sudo. Does not call apt if all are installed: a second run is fast and
# offline. --check installs nothing: it names what is missing and fails.
set -eu
check=no
if [ "${1:-}" = --check ]; then check=yes; shift; fi

if ! command -v dpkg-query >/dev/null; then
  echo "no dpkg here: install the packages that these files name: $*" >&2
  exit 0
fi

distribution=$(sed -n 's/^ID=//p' /etc/os-release 2>/dev/null || true)
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' | sed -n 's/ installed$//p')
missing=
while read -r package rest; do
  case $package in '' | '#'*) continue ;; esac
  case $rest in *"unless:${distribution:-nowhere}"*) continue ;; esac
  case $rest in *"only:${distribution:-nowhere}"*) ;; *only:*) continue ;; esac
  case $rest in *provides:*) if command -v "${rest##*provides:}" >/dev/null; then continue; fi ;; esac
  printf '%s\n' "$installed" | grep -qxF "$package" || missing="$missing $package"
done <<LISTS
$(cat "$@")
LISTS
[ -n "$missing" ] || exit 0

if [ $check = yes ]; then
  printf 'missing packages:%s\n' "$missing" >&2
  exit 1
fi

root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    printf 'missing packages:%s\nhint: there is no sudo here; as root: apt-get install%s\n' "$missing" "$missing" >&2
    exit 1
  fi
  root=sudo
fi
printf 'installing:%s\n' "$missing"
$root env DEBIAN_FRONTEND=noninteractive sh -c '
  apt-get -qq update
  exec apt-get -qq -y -o Dpkg::Use-Pty=0 -o APT::Install-Recommends=false install "$@" >/dev/null' apt $missing
