#!/bin/bash
# fresh-root-test.sh [--suite SUITE] [--user] [--root DIR] [--share DIR]... [MAKE-TARGET...]
#
# Proves the set-up commands: a new Debian (bookworm unless said otherwise) or Ubuntu (jammy, noble) with git and make and nothing else, a clone of
# what is committed here, and there `make TARGET...` (demo, when nothing is said), and what `phlox doctor` says of what was built. As root, or with --user as an ordinary
# user with sudo. Needs root and debootstrap. With --root the machine is kept in DIR and used again the next time;
# else it is removed. --share shows a directory of this machine in the new one at the same place (a cache, to save time; a proof
# has none). The directory becomes the root of a mount namespace, not of a chroot: what mounts something, or shows a program
# another root, works there as on any machine.
#
# What says where packages come from (apt, pip, certificates) is copied from this machine: a fresh machine has its own.
set -euo pipefail
suite=bookworm user=no keep= root= shared=()
while [ $# -gt 0 ]; do
  case $1 in
    --suite) suite=$2; shift 2 ;;
    --user) user=yes; shift ;;
    --root) keep=yes; root=$2; shift 2 ;;
    --share) shared+=("$(readlink -f "$2")"); shift 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- demo
tree=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
[ "$(id -u)" = 0 ] || { echo 'fresh-root-test: this needs root: sudo tools/fresh-root-test.sh' >&2; exit 1; }
command -v debootstrap > /dev/null || { echo 'fresh-root-test: apt-get install debootstrap' >&2; exit 1; }

[ -n "$root" ] || root=$(mktemp -d /var/tmp/phlox-fresh.XXXXXX)
# mktemp lets nobody else in; here it becomes the root of everybody.
[ ! -d "$root" ] || chmod 755 "$root"
# Everything is mounted in a mount namespace of its own, so nothing can be left mounted, and removing removes only ours. The PIDs
# are this machine's, as on any machine: what asks for the kernel's own processes, or for those of BPF, runs too. Whoever is left in
# the namespace at the end is ended.
clean_up() {
  [ ! -s "$root/phlox.namespace" ] || for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/mnt" || true)" != "$(cat "$root/phlox.namespace")" ] || kill -9 "${process#/proc/}" || true
  done 2> /dev/null
  [ -n "$keep" ] || rm -rf --one-file-system "$root"
}
trap clean_up EXIT

mirror=$("$tree/tools/apt-mirror.sh")
script=() components=main
case $suite in
  jammy | noble | questing | resolute)
    # Beside Debian's, as mirrors have it. Its keys are not Debian's; all of its suites are made in one way.
    mirror=${mirror%/debian*}/ubuntu components=main,universe script=(gutsy) ;;
esac
if [ ! -e "$root/etc/os-release" ]; then
  debootstrap ${script:+--no-check-gpg} --variant=minbase --components=$components --include=git,make,ca-certificates,sudo \
    "$suite" "$root" "$mirror" "${script[@]}" > "$root.log" 2>&1 ||
    { tail -5 "$root.log" >&2; echo "fresh-root-test: no $suite from this machine's mirror" >&2; exit 1; }
  rm -f "$root.log"
  for f in /etc/pip.conf /etc/apt/apt.conf.d/*proxy* /usr/local/share/ca-certificates/*; do
    [ ! -f "$f" ] || install -D -m 644 "$f" "$root$f"
  done
  install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  chroot "$root" useradd --create-home --shell /bin/bash somebody
  echo 'somebody ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/somebody"
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/hosts "$root/etc/hosts"

if [ $user = yes ]; then home=/home/somebody name=somebody; else home=/root name=root; fi
rm -rf "$root$home/phlox" "$root/phlox.git"
git clone --quiet --bare "$tree" "$root/phlox.git"
git -C "$tree" rev-parse HEAD > "$root/phlox.head"
# git takes a repository from nobody but its owner.
chroot "$root" chown -R "$name:" /phlox.git

settings=$(env | grep -E '^(PIP_(CERT|DEFAULT_TIMEOUT|INDEX_URL)|(https?|no)_proxy|GO(PROXY|SUMDB|FLAGS))=' || true)
# npm asks its own settings which certificates it may believe.
cafile=$(npm config get cafile 2> /dev/null || true) # "null": there is none
[ ! -f "$cafile" ] || settings="$settings npm_config_cafile=$cafile"
rm -f "$root/phlox.namespace"
start=$(date +%s)
status=0
# shellcheck disable=SC2086
root=$root shared=$(printf '%s\n' "${shared[@]}") unshare --mount --propagation private -- bash -euc '
  readlink /proc/self/ns/mnt > "$root/phlox.namespace"
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  for directory in $shared; do mkdir -p "$root$directory"; mount --bind "$directory" "$root$directory"; done
  cd "$root"
  pivot_root . .
  umount -l .
  cd /
  name=$1 home=$2 goals=$3; shift 3
  exec setpriv --reuid "$name" --regid "$name" --init-groups \
    env -i HOME="$home" USER="$name" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" \
    bash -euc "cd; git clone --quiet /phlox.git phlox; cd phlox; git checkout --quiet --detach \$(cat /phlox.head); make $goals; [ ! -x build/release/phlox ] || build/release/phlox doctor || true"
' bash "$name" "$home" "$*" $settings || status=$?
printf 'fresh-root-test: %s as %s: make %s: %s after %s s\n' "$suite" "$name" "$*" \
  "$([ $status = 0 ] && echo good || echo "status $status")" "$(($(date +%s) - start))"
exit $status
